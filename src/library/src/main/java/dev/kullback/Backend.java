package dev.kullback;

import dev.kullback.internal.engine.Platform;

/**
 * The implementation that computes. System property {@value #PROPERTY} overrides {@link #AUTO} for a whole process.
 *
 * @since 0.1.0
 */
public enum Backend {
  /** {@link #VECTOR} where it can run, else {@link #SCALAR}, with one warning in the log that says why. */
  AUTO,

  /**
   * Kernels on {@code jdk.incubator.vector}. They need that module, the C2 compiler and hardware FMA. As long as vectors are not compiled,
   * plain code computes, to the same bits.
   */
  VECTOR,

  /** Plain Java, which runs everywhere. It is as accurate, and slower by one or two orders of magnitude. */
  SCALAR,

  /**
   * An NVIDIA device of compute capability 8.0 or later, through a native library that you build: see <a href="doc-files/cuda.html">CUDA</a>.
   * It is device 0 in the numbering of {@code CUDA_VISIBLE_DEVICES}, and as accurate as the others. {@link #AUTO} never
   * chooses it, since it has not been measured yet from which size on it pays, transfers included. Its first use in a
   * process loads native code, for which Java wants {@code --enable-native-access}.
   */
  CUDA;

  static final String PROPERTY = Platform.PROPERTY;

  /**
   * {@return whether {@link KlEngine.Builder#build()} takes this backend in this process}
   *
   * <p>{@link #AUTO} is not available where a system property of the library has a value that it cannot have, or asks for what is not to
   * be had. The first call for {@link #CUDA} loads native code.
   */
  public boolean isAvailable() {
    return Platform.isAvailable(choice());
  }

  /**
   * {@return a line for people: the backend's name, whether it can run in this process and how that is known, and if not, why and what to
   * do}
   *
   * <p>The first call finds out whether the JVM compiles vectors, unless that is known, which takes 0.2 s, or 3 s if it does not.
   */
  public String reason() {
    return Platform.describe(choice());
  }

  static Backend of(Platform.Choice choice) {
    return valueOf(choice.name());
  }

  Platform.Choice choice() {
    return Platform.Choice.valueOf(name());
  }
}
