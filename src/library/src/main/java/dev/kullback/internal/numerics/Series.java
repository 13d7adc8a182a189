package dev.kullback.internal.numerics;

import java.util.Arrays;
import java.util.function.IntToDoubleFunction;

/** Coefficients of power series, of n ascending or, where {@code from > to}, descending. */
public final class Series {
  private Series() {}

  /** Returns the {@code 1/(2n + 3)} of {@code artanh z = z + z³ Σ_n z²ⁿ/(2n + 3)}. */
  public static double[] artanh(int from, int to) {
    return coefficients(from, to, n -> 1 / (2.0 * n + 3));
  }

  /** Returns the {@code 1/n!} of {@code e^x = Σ_n xⁿ/n!}, n at most 18: the factorials are exact. */
  public static double[] exponential(int from, int to) {
    return coefficients(from, to, Series::inverseFactorial);
  }

  private static double inverseFactorial(int n) {
    double factorial = 1;
    for (int k = 2; k <= n; k++) {
      factorial *= k;
    }
    return 1 / factorial;
  }

  private static double[] coefficients(int from, int to, IntToDoubleFunction of) {
    double[] coefficients = new double[Math.abs(to - from) + 1];
    Arrays.setAll(coefficients, k -> of.applyAsDouble(from > to ? from - k : from + k));
    return coefficients;
  }
}
