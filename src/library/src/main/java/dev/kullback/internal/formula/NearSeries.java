package dev.kullback.internal.formula;

import dev.kullback.internal.numerics.Scale;
import java.util.Arrays;

/**
 * Series of the terms of Gaussians that hardly differ. With {@code u = ln(vq/vp)} and {@code x = e^u − 1}, the part of a divergence's term that
 * comes from the scales is {@code H = ∫ x/(1 + wx) du} from 0 to u, w the weight of q's variance: {@code x − ln(1+x)} of KL, for which w is 0.
 * It is made of a y that does not cancel, {@code y = (s − t)/√(st)} of two scales s and t, and {@code s − t} of log-variances:
 *
 * <pre>
 * H = y² (E(y²) + y O(y²))
 * </pre>
 *
 * <p>Of scales {@code y = 2 sinh(ln(s/t)/2)}, so that {@code e^u = (√(1 + y²/4) + y/2)^2k}, where {@code v = s^k}. As a function of y² this has
 * no singularity nearer than −4, or −2 where v = s², whatever w is, and that of log-variances none nearer than −π². So E and O converge fast for {@code |y| ≤
 * LIMIT}, and faster as polynomials of less degree that come nearest: n terms of a series in y² leave the sum of {@code c_k LIMIT^2k 2^(1 − 2k)}
 * for k from n on.
 */
public final class NearSeries {
  /** Greatest |y| of which the polynomials in double hold, and those of Chernoff's term in float. */
  public static final double LIMIT = 0.4;

  public static final double LIMIT_IN_SINGLE = 0.1;

  /** Terms of E and O before they are economized; the next one is below 2⁻⁵⁶. */
  private static final int TERMS = 14;

  private static final int LENGTH = 2 * TERMS + 2;

  private NearSeries() {}

  /** Returns E's coefficients and then O's, each in descending order, of polynomials that hold for |y| up to {@code limit}. */
  public static double[] of(Scale kind, NearTerm term, double w, int even, int odd, double limit) {
    double[] slope = slope(kind, w);
    if (term == NearTerm.JEFFREYS) {
      double[] reverse = slope(kind, 1);
      Arrays.setAll(slope, n -> slope[n] + reverse[n]);
    }
    double[] coefficients = new double[even + odd];
    for (int parity = 0; parity < 2; parity++) {
      double[] c = new double[TERMS];
      for (int n = 0; n < TERMS; n++) {
        int k = 2 * n + parity;
        c[n] = slope[k + 1] / (k + 2);
      }
      if (parity == 1 && term == NearTerm.CHERNOFF && w == 0.5) {
        Arrays.fill(c, 0); // symmetric, to the bit
      }
      int count = parity == 0 ? even : odd;
      economize(c, count, limit * limit);
      for (int n = 0; n < count; n++) {
        coefficients[(parity == 0 ? 0 : even) + count - 1 - n] = c[n];
      }
    }
    return coefficients;
  }

  /**
   * Returns coefficients of {@code g(s²) = (s − 2 arsinh(s/2))/s³}, in descending order, of a polynomial that holds for |s| up to {@code limit}.
   */
  static double[] lessAsinh(int count, double limit) {
    double[] c = new double[TERMS];
    double binomial = 1;
    for (int n = 0; n < TERMS; n++) {
      binomial *= -(2.0 * n + 1) / (2 * n + 2) / 4;
      c[n] = -binomial / (2 * n + 3);
    }
    economize(c, count, limit * limit);
    double[] coefficients = new double[count];
    Arrays.setAll(coefficients, n -> c[count - 1 - n]);
    return coefficients;
  }

  /** Returns the series of dH/dy. */
  private static double[] slope(Scale kind, double w) {
    double[] power = new double[LENGTH]; // e^u
    double[] slope = new double[LENGTH]; // du/dy
    power[0] = 1;
    slope[0] = 1;
    if (kind == Scale.LOG_VARIANCE) {
      for (int n = 1; n < LENGTH; n++) {
        power[n] = power[n - 1] / n;
      }
    } else {
      double[] root = new double[LENGTH]; // √(1 + y²/4)
      root[0] = 1;
      for (int n = 1; 2 * n < LENGTH; n++) {
        root[2 * n] = root[2 * n - 2] * (1.5 - n) / (4 * n);
      }
      slope = quotient(slope, root);
      root[1] = kind == Scale.PRECISION ? -0.5 : 0.5;
      power = product(root, root);
      if (kind == Scale.STD) {
        power = product(power, power);
      }
      double k = kind == Scale.STD ? 2 : kind == Scale.PRECISION ? -1 : 1;
      for (int n = 0; n < LENGTH; n++) {
        slope[n] *= k;
      }
    }
    power[0] = 0;
    double[] x = power;
    double[] below = new double[LENGTH];
    for (int n = 0; n < LENGTH; n++) {
      below[n] = w * x[n];
    }
    below[0] += 1;
    return product(slope, quotient(x, below));
  }

  private static double[] product(double[] a, double[] b) {
    double[] product = new double[LENGTH];
    for (int n = 0; n < LENGTH; n++) {
      for (int k = 0; k <= n; k++) {
        product[n] += a[k] * b[n - k];
      }
    }
    return product;
  }

  /** Returns a/b, where b begins with 1. */
  private static double[] quotient(double[] a, double[] b) {
    double[] quotient = Arrays.copyOf(a, LENGTH);
    for (int n = 0; n < LENGTH; n++) {
      for (int k = 1; k <= n; k++) {
        quotient[n] -= b[k] * quotient[n - k];
      }
    }
    return quotient;
  }

  /**
   * Makes a polynomial of y² one of less degree, by subtracting multiples of Chebyshev's of the interval from 0 to {@code end}, whose coefficients
   * follow from the first. Each that is subtracted is at most {@code 2^(1 − 2n)} times its first term at the interval's end.
   */
  private static void economize(double[] c, int count, double end) {
    for (int n = c.length - 1; n >= Math.max(count, 1); n--) {
      double b = c[n];
      for (int k = n - 1; k >= 0; k--) {
        b *= -(2.0 * k + 1) * (2 * k + 2) / (4.0 * (n + k) * (n - k)) * end;
        c[k] -= b;
      }
    }
  }
}
