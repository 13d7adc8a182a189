package dev.kullback;

import dev.kullback.internal.engine.Platform;

/** Which implementation computes. System property {@value #PROPERTY} overrides {@link #AUTO} for a whole process. */
public enum Backend {
  /** {@link #VECTOR} where it can run, else {@link #SCALAR} with one warning in the log that says why. */
  AUTO,

  /** Kernels on {@code jdk.incubator.vector}; needs that module, the C2 compiler and hardware FMA. */
  VECTOR,

  /** Plain Java; slower by an order of magnitude or two, as accurate, and runs everywhere. */
  SCALAR,

  /**
   * An NVIDIA device of compute capability 8.0 or later, through the native library built from {@code native/}; device 0, as
   * {@code CUDA_VISIBLE_DEVICES} numbers them. As accurate as the others. Never chosen by {@link #AUTO}: no crossover has been
   * measured yet from which on it pays, transfers included. Its first use in a process loads native code, for which Java wants
   * {@code --enable-native-access}.
   */
  CUDA;

  static final String PROPERTY = Platform.PROPERTY;

  /** The backend's name, whether it can run in this process, and if not, why and what to do; one line. */
  public String describe() {
    return Platform.describe(choice());
  }

  Platform.Choice choice() {
    return Platform.Choice.valueOf(name());
  }
}
