package dev.kullback.internal.vector;

import java.util.EnumSet;
import java.util.Set;

/**
 * Whether the vector kernels are compiled. Before C2 has them they take 10 to 10,000 times as long, 30 ns an operation by C1 and 5 µs
 * in the interpreter; until then plain twins compute, by the same operations in the same order, so to the same bits.
 */
public final class Readiness {
  /** {@code false} has vectors used as soon as they are known to be compiled at all, and no thread started to try kernels out. */
  public static final String PROPERTY = "dev.kullback.background";

  private static final boolean DEFERRED =
      Boolean.parseBoolean(System.getProperty(PROPERTY, "true"));

  /** Replaced, never changed. */
  private static volatile Set<KernelGroup> compiled = EnumSet.noneOf(KernelGroup.class);

  private Readiness() {}

  /** What is compiled, and found to be, by itself: what calls on one kind of batches need. In the order of trials. */
  public enum KernelGroup {
    /** {@link VectorKernel} of floats, where its first form settles a tile. */
    FLOAT,
    /** {@link VectorKernel} of doubles. */
    DOUBLE,
    /** {@link SmallKernel}. */
    SMALL,
    /** Full covariances: their factors, the kernel, pairs in lanes. */
    FULL,
    /** {@link VectorScan}. */
    SCANS,
    /** What {@link VectorKernel} recomputes of floats. */
    REFINEMENT
  }

  /** A thread that uses the ones or the others as it says. */
  public static final class Trial extends Thread {
    private boolean vectors;

    /** A daemon that inherits nothing of the thread that starts it. */
    public Trial(Runnable task, String name) {
      super(null, task, name, 0, false);
      setDaemon(true);
      setContextClassLoader(null);
    }

    /** For what the calling thread, which is a trial, computes next. */
    public static void use(boolean vectors) {
      ((Trial) Thread.currentThread()).vectors = vectors;
    }
  }

  /** Whether anything is left to a thread in the background. */
  public static boolean isDeferred() {
    return DEFERRED;
  }

  /** Whether the calling thread is to use vectors: the choice between the kernels and their twins, made anew for each block. */
  public static boolean isReady(KernelGroup part) {
    return Thread.currentThread() instanceof Trial trial ? trial.vectors : isCompiled(part);
  }

  /** Whether all threads but trials are to. */
  public static boolean isCompiled(KernelGroup part) {
    return compiled.contains(part);
  }

  /** Has all threads use these vectors from now on. */
  public static synchronized void setCompiled(KernelGroup part) {
    Set<KernelGroup> more = EnumSet.copyOf(compiled);
    more.add(part);
    compiled = more;
  }

  /** Has all threads use all vectors from now on. */
  static synchronized void setAllCompiled() {
    compiled = EnumSet.allOf(KernelGroup.class);
  }
}
