package dev.kullback.internal.vector;

/**
 * Whether the vector kernels are compiled. Before C2 has them they take 10 to 10,000 times as long, 30 ns an operation by C1 and 5 µs
 * in the interpreter; until then plain twins compute, by the same operations in the same order, so to the same bits.
 */
public final class Readiness {
  private static volatile boolean ready;

  private Readiness() {}

  /** A thread that uses the ones or the others as it is told. */
  public static final class Trial extends Thread {
    private boolean vectors;

    public Trial(Runnable task, String name) {
      super(task, name);
    }

    /** For what this thread, which is one, computes next. */
    public static void use(boolean vectors) {
      ((Trial) Thread.currentThread()).vectors = vectors;
    }
  }

  /** Whether the calling thread is to use vectors: the choice between the kernels and their twins, made anew for each block. */
  static boolean isReady() {
    return Thread.currentThread() instanceof Trial trial ? trial.vectors : ready;
  }

  /** Has all threads use vectors from now on. */
  public static void setReady() {
    ready = true;
  }
}
