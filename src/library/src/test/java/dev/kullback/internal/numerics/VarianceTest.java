package dev.kullback.internal.numerics;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import org.junit.jupiter.api.Test;

class VarianceTest {
  private static final double[] SCALES = {
    0x1p-149, 0x1p-30, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.25, 3, 4, 9, 0x1p30, 1 + 0x1p-26, 0x1p127
  };

  /** Compares exact numbers; a neighbor of an equal scale, whose square may round to the same, is unequal. */
  @Test
  void areEqualIfExactVariancesAre() {
    int equal = 0;
    for (Scale kindQ : Scale.values()) {
      for (Scale kindP : Scale.values()) {
        for (double of : SCALES) {
          for (double sq : new double[] {of, Math.nextUp(of), Math.nextDown(of), of * of}) {
            for (double sp : SCALES) {
              boolean expected =
                  kindQ == kindP ? sq == sp : haveEqualVariances(kindQ, sq, kindP, sp);
              assertThat(Variance.areEqual(kindQ, sq, kindP, sp))
                  .as("%s %s, %s %s", kindQ, sq, kindP, sp)
                  .isEqualTo(expected);
              equal += expected ? 1 : 0;
            }
          }
        }
      }
    }
    assertThat(equal).isGreaterThan(100);
    assertThat(Variance.areEqual(Scale.LOG_VARIANCE, 0, Scale.STD, 1)).isTrue();
    assertThat(Variance.areEqual(Scale.PRECISION, 1, Scale.LOG_VARIANCE, -0.0)).isTrue();
    assertThat(Variance.areEqual(Scale.LOG_VARIANCE, Double.MIN_VALUE, Scale.STD, 1)).isFalse();
  }

  /** As products of variances and precisions, none of a logarithm, as none of the scales is 0. */
  private static boolean haveEqualVariances(Scale kindQ, double sq, Scale kindP, double sp) {
    if (kindQ == Scale.LOG_VARIANCE || kindP == Scale.LOG_VARIANCE) {
      return false;
    }
    BigDecimal[] q = quotient(kindQ, sq);
    BigDecimal[] p = quotient(kindP, sp);
    return q[0].multiply(p[1]).compareTo(p[0].multiply(q[1])) == 0;
  }

  private static BigDecimal[] quotient(Scale kind, double s) {
    BigDecimal exact = new BigDecimal(s);
    return switch (kind) {
      case STD -> new BigDecimal[] {exact.multiply(exact), BigDecimal.ONE};
      case VARIANCE -> new BigDecimal[] {exact, BigDecimal.ONE};
      default -> new BigDecimal[] {BigDecimal.ONE, exact};
    };
  }
}
