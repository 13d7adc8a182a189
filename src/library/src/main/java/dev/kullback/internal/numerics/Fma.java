package dev.kullback.internal.numerics;

/** Whether {@link Math#fma} is an instruction; without hardware support it goes through BigDecimal. */
public final class Fma {
  /**
   * Told by its speed, for the flag can be read only through modules that need not be there: an instruction takes some 50 ns
   * in the interpreter and the BigDecimal replacement over 1 µs. The best of several trials, as others may use the processor.
   */
  public static final boolean IS_HARDWARE = probe();

  private Fma() {}

  /** {@code ab + c}, rounded once where that is an instruction. */
  public static double of(double a, double b, double c) {
    return IS_HARDWARE ? Math.fma(a, b, c) : a * b + c;
  }

  private static boolean probe() {
    double x = 1;
    long best = Long.MAX_VALUE;
    int calls = 100;
    for (int trial = 0; trial < 10; trial++) {
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        x = Math.fma(x, 0.9999, 1e-9);
      }
      best = Math.min(best, System.nanoTime() - start);
    }
    return best < 400L * calls && x < 2;
  }
}
