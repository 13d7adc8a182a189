package dev.kullback;

import dev.kullback.testing.FullBatch;
import dev.kullback.testing.FullBatch.Kind;
import dev.kullback.testing.FullCheck;
import dev.kullback.testing.FullCheck.Due;
import dev.kullback.testing.Regime;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Batches that a matrix product cannot settle alone: each term of its error bound has one that
 * breaks without it, and all meet batches of factors graded, ill-conditioned, near and far.
 */
@Tag("device")
class FullBoundsTest {
  /** Families of batches that challenge the error bound. */
  private enum Regime {
    /** Copies of one factor, changed by 1 … 1e-15 of it, about a mean of 1e6. */
    NEAR_GRADED_COLUMNS,
    NEAR_GRADED_ROWS,
    NEAR_LARGE_OFF_DIAGONAL,
    NEAR,
    /** Every factor its own grading. */
    GRADED,
    /** A direction of almost no variance. */
    COLLAPSED,
    /** Units of 1e-6 … 1e6, means in these. */
    SCALES,
    /** Ordinary but for a mean at 1e12. */
    OUTLIER,
    /** Means at 1e6, 1e-3 apart. */
    FAR;

    boolean isNear() {
      return ordinal() <= NEAR.ordinal();
    }
  }

  private static double[] factor(Regime regime, int d, Random random) {
    double[] row = new double[d];
    double[] column = new double[d];
    Arrays.fill(row, 1);
    Arrays.fill(column, 1);
    double below = 1;
    double unit = 1;
    switch (regime) {
      case NEAR_GRADED_COLUMNS, GRADED -> {
        for (int c = 0; c < d; c++) {
          column[c] =
              Math.pow(10, -12.0 * c / d * (regime == Regime.GRADED ? random.nextDouble() : 1));
        }
      }
      case NEAR_GRADED_ROWS -> {
        for (int r = 0; r < d; r++) {
          row[r] = Math.pow(10, -random.nextInt(8));
        }
      }
      case NEAR_LARGE_OFF_DIAGONAL -> below = Math.pow(10, random.nextInt(4));
      case COLLAPSED -> column[random.nextInt(d)] = Math.pow(10, -3 - random.nextInt(8));
      case SCALES -> unit = Math.pow(10, random.nextInt(13) - 6);
      case NEAR, OUTLIER, FAR -> {}
    }
    double[] l = new double[d * d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < r; c++) {
        l[r * d + c] = unit * row[r] * column[c] * below * random.nextGaussian();
      }
      l[r * d + r] = unit * row[r] * column[r] * (0.5 + random.nextDouble());
    }
    return l;
  }

  private static FullBatch draw(
      Regime regime, boolean isDouble, int n, int d, double[] base, Random random) {
    double[] mean = new double[n * d];
    double[] tril = new double[n * d * d];
    for (int i = 0; i < n; i++) {
      double[] l = base.clone();
      double around = 1e6;
      double spread = Math.pow(10, -random.nextInt(16));
      if (regime.isNear()) {
        for (int k = 0; k < l.length; k++) {
          l[k] *= 1 + spread * random.nextGaussian();
        }
        for (int k = 0; k < d; k++) {
          l[k * d + k] = Math.abs(l[k * d + k]) + 1e-30;
        }
      } else {
        l = factor(regime, d, random);
        around = regime == Regime.FAR ? 1e6 : regime == Regime.OUTLIER && i == n / 2 ? 1e12 : 0;
        spread = regime == Regime.FAR ? 1e-3 : regime == Regime.SCALES ? l[0] : 1;
      }
      System.arraycopy(l, 0, tril, i * d * d, d * d);
      for (int h = 0; h < d; h++) {
        mean[i * d + h] = around + spread * random.nextGaussian();
      }
    }
    return new FullBatch(Kind.SCALE_TRIL, isDouble, mean, tril, d);
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void adversary(Backend backend) {
    for (Regime regime : Regime.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        for (int d : new int[] {1, 2, 3, 4, 5, 6, 7, 18, 33}) {
          if (d > 7 && regime != Regime.NEAR && regime != Regime.NEAR_GRADED_ROWS) {
            continue;
          }
          Random random = new Random(10_000 + 100 * regime.ordinal() + d);
          double[] base = factor(regime, d, random);
          FullBatch q = draw(regime, isDouble, d > 7 ? 3 : 6, d, base, random);
          FullBatch p = draw(regime, isDouble, d > 7 ? 5 : 17, d, base, random);
          String what = "%s, D=%d, %s".formatted(regime, d, isDouble ? "double" : "float");
          FullCheck.check(backend, what, q, p, Due.CONTRACT);
        }
      }
    }
  }

  private static FullBatch centred(boolean isDouble, double[] tril, int d) {
    return new FullBatch(Kind.SCALE_TRIL, isDouble, new double[tril.length / d], tril, d);
  }

  /** {@code L_q = L_p(I + E)} of equal means: the product cancels, by ‖P‖‖Σ_q‖. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void errorsOfTheProduct(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (double condition : new double[] {1e4, 1e5, 1e6, 1e7}) {
        for (double change : new double[] {0.01, 0.1, 1, 10}) {
          for (int d : new int[] {2, 4, 7}) {
            Random random = new Random(d);
            FullBatch p = FullBatch.random(isDouble, 9, d, condition * condition, 0, random);
            double[] l = p.matrix();
            double[] tril = new double[l.length];
            for (int i = 0; i < 9; i++) {
              for (int c = 0, at = i * d * d; c < d; c++) {
                for (int k = c; k < d; k++) {
                  double x =
                      k == c ? 1 + change * random.nextDouble() : change * random.nextGaussian();
                  for (int r = k; r < d; r++) {
                    tril[at + r * d + c] += l[at + r * d + k] * x;
                  }
                }
              }
            }
            String what =
                "%s, condition %.0e, change %.0e, D=%d"
                    .formatted(isDouble ? "double" : "float", condition, change, d);
            FullCheck.check(
                backend, what, centred(isDouble, tril, d), centred(isDouble, l, d), Due.CONTRACT);
          }
        }
      }
    }
  }

  /**
   * Condition numbers of 1e6 do not excuse errors of 1e-9: {@code L_q = L_p + τI} widens the narrow
   * directions only, so that its divergence is far above what the product cancels.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void ofAnIllConditionedFactor(Backend backend) {
    for (int d : new int[] {3, 4, 5, 6, 7}) {
      FullBatch p = FullBatch.random(true, 17, d, 1e12, 0, new Random(d));
      double[] tril = p.matrix().clone();
      for (int k = 0; k < 17 * d; k++) {
        tril[k * d + k % d] += 1e-4;
      }
      FullBatch q = centred(true, tril, d);
      FullCheck.check(backend, "D=" + d, q, centred(true, p.matrix(), d), Due.AIM);
    }
  }

  /**
   * A residual of the inverse that the divergence keeps: {@code L_p⁻¹ = [1; −17/8, 1/B; 0, −1, 1]},
   * where the 0 is computed as the difference of 17/8 B and as much times {@code B·(1/B)}, for such B
   * not 1. Triangular solves are exact, as {@code 17/8 B·(1/B)} is.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void errorsOfTheInverse(Backend backend) {
    double[] odd = {49, 103, 107, 161, 187, 197};
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int power = 6; power < 40; power += 3) {
        double[] p = new double[9 * odd.length];
        double[] q = new double[9 * odd.length];
        for (int i = 0; i < odd.length; i++) {
          double b = Math.scalb(odd[i], power);
          double[] l = {1, 0, 0, 2.125 * b, b, 0, 2.125 * b, b, 1};
          System.arraycopy(l, 0, p, 9 * i, 9);
          q[9 * i] = q[9 * i + 8] = 1;
          q[9 * i + 4] = odd[i] / 64;
          q[9 * i + 6] = i;
        }
        FullBatch rows = centred(isDouble, q, 3);
        FullBatch columns = centred(isDouble, p, 3);
        String what = "%s, 2^%d".formatted(isDouble ? "double" : "float", power);
        FullCheck.check(backend, what, rows, columns, Due.AIM);
      }
    }
  }

  /**
   * Means of p far from their centre, each along the wide direction of its own, so that {@code
   * L_p⁻¹m_p} cancels, and q near the centre. Few bits, which float holds and whose sums are exact.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void farAlongTheWideDirection(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int power : isDouble ? new int[] {12, 13, 14, 15, 16} : new int[] {20, 22, 24, 26, 28}) {
        for (int near : new int[] {-6, -8, -10, -12}) {
          Random random = new Random(power);
          int n = 6;
          double[] mean = new double[2 * n];
          double[] tril = new double[4 * n];
          double[] nearMean = new double[2 * n];
          double[] nearTril = new double[4 * n];
          for (int i = 0; i < n; i++) {
            double a = i % 2 == 0 ? 1 + random.nextInt(1 << 11) * 0x1p-11 : tril[4 * i - 4];
            double b = i % 2 == 0 ? 1 + random.nextInt(1 << 11) * 0x1p-11 : tril[4 * i - 2];
            double t = Math.scalb(1 + random.nextInt(1 << 11) * 0x1p-11, near - 1);
            tril[4 * i] = a;
            tril[4 * i + 2] = b;
            tril[4 * i + 3] = nearTril[4 * i + 3] = Math.scalb(1.0, -power);
            mean[2 * i] = i % 2 == 0 ? a : -a;
            mean[2 * i + 1] = i % 2 == 0 ? b : -b;
            nearMean[2 * i] = t * a;
            nearMean[2 * i + 1] = t * b;
            nearTril[4 * i] = Math.scalb(a, near);
            nearTril[4 * i + 2] = Math.scalb(b, near);
          }
          FullBatch q = new FullBatch(Kind.SCALE_TRIL, isDouble, nearMean, nearTril, 2);
          FullBatch p = new FullBatch(Kind.SCALE_TRIL, isDouble, mean, tril, 2);
          String what = "%s, 2^%d, q at 2^%d".formatted(isDouble ? "double" : "float", power, near);
          FullCheck.check(backend, what, q, p, Due.AIM);
        }
      }
    }
  }
}
