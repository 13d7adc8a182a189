package dev.kullback.internal.vector.full;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.internal.formula.MergerBounds;
import dev.kullback.internal.formula.ScalarMergers;
import dev.kullback.testing.WarmCalls;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Tag("vector")
class MergerBoundsTest {
  private static final int SIZE = 61;

  private static IntStream dimensions() {
    return IntStream.rangeClosed(1, MergerBounds.MOST);
  }

  /** Components, the first of which merges with the others. */
  private static final class Mixture {
    final int d;
    final double[] weight = new double[SIZE];
    final double[][] mean = new double[SIZE][];
    final double[][][] covariance = new double[SIZE][][];
    final double[] panel;

    /** Components whose means and covariances differ by so much from those of one, times a scale. */
    Mixture(int d, double spread, double scale, Random random) {
      this.d = d;
      panel = new double[MergerBounds.rows(d) * MergerBounds.STRIDE];
      Arrays.fill(panel, Double.NaN); // what no component has is not looked at
      for (int i = 0; i < SIZE; i++) {
        weight[i] = 0.1 + random.nextDouble();
        mean[i] = random.doubles(d, -spread * scale, spread * scale).toArray();
        double[][] l = new double[d][d];
        for (int r = 0; r < d; r++) {
          for (int c = 0; c <= r; c++) {
            l[r][c] = scale * ((r == c ? 1 : 0.1) + 0.3 * spread * random.nextDouble());
          }
        }
        covariance[i] = new double[d][d];
        for (int r = 0; r < d; r++) {
          for (int c = 0; c < d; c++) {
            for (int k = 0; k < d; k++) {
              covariance[i][r][c] += l[r][k] * l[c][k];
            }
          }
        }
        put(i);
      }
    }

    private void put(int i) {
      int k = i;
      panel[k] = weight[i];
      for (double m : mean[i]) {
        panel[k += MergerBounds.STRIDE] = m;
      }
      for (int r = 0; r < d; r++) {
        for (int c = 0; c <= r; c++) {
          panel[k += MergerBounds.STRIDE] = weight[i] * covariance[i][r][c];
        }
      }
      for (int h = 0; h < d; h++) {
        panel[k += MergerBounds.STRIDE] = weight[i] * inverse(covariance[i], h);
      }
      panel[k + MergerBounds.STRIDE] = -0.5 * weight[i] * logDet(covariance[i]);
    }

    double[] own() {
      double[] own = new double[MergerBounds.rows(d)];
      Arrays.setAll(own, k -> panel[k * MergerBounds.STRIDE]);
      return own;
    }

    double cost(int j) {
      double w = weight[0] + weight[j];
      double a = weight[0] / w;
      double b = weight[j] / w;
      double[][] p = new double[d][d];
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < d; c++) {
          double square = (mean[j][r] - mean[0][r]) * (mean[j][c] - mean[0][c]);
          p[r][c] = a * covariance[0][r][c] + b * covariance[j][r][c] + a * b * square;
        }
      }
      return 0.5
          * (w * logDet(p) - weight[0] * logDet(covariance[0]) - weight[j] * logDet(covariance[j]));
    }

    /** Returns {@code (P⁻¹)_hh}, as |P| without row and column h, over |P|. */
    private static double inverse(double[][] matrix, int h) {
      double[][] minor =
          IntStream.range(0, matrix.length)
              .filter(r -> r != h)
              .mapToObj(r ->
                  IntStream.range(0, matrix.length)
                      .filter(c -> c != h)
                      .mapToDouble(c -> matrix[r][c])
                      .toArray())
              .toArray(double[][]::new);
      return Math.exp(logDet(minor) - logDet(matrix));
    }

    private static double logDet(double[][] matrix) {
      double[][] a = new double[matrix.length][];
      Arrays.setAll(a, r -> matrix[r].clone());
      double sum = 0;
      for (int k = 0; k < a.length; k++) {
        sum += Math.log(a[k][k]);
        for (int r = k + 1; r < a.length; r++) {
          double factor = a[r][k] / a[k][k];
          for (int c = k; c < a.length; c++) {
            a[r][c] -= factor * a[k][c];
          }
        }
      }
      return sum;
    }

    /** Returns the bounds from a place on. */
    double[] bounds(MergerBounds mergers, int from) {
      double[] bounds = new double[MergerBounds.STRIDE];
      int[] places = IntStream.range(0, MergerBounds.STRIDE).toArray();
      mergers.set(d, own(), panel, from, SIZE, places, bounds);
      return bounds;
    }
  }

  @ParameterizedTest
  @MethodSource("dimensions")
  void boundsAreJustBelowCosts(int d) {
    for (double spread : new double[] {3, 1, 1e-3}) {
      for (double scale : new double[] {1, 1e-12, 1e12}) {
        Mixture mixture = new Mixture(d, spread, scale, new Random(d));
        for (int from : new int[] {0, 1, 7, 8, 60}) {
          double[] vectors = mixture.bounds(new MergerKernel(), from);
          double[] plain = mixture.bounds(new ScalarMergers(), from);
          for (int j = from; j < SIZE; j++) {
            double cost = mixture.cost(j);
            // the cost by its definition is as wrong as the bound allows for
            assertThat(vectors[j]).isLessThan(cost + 1e-13).isCloseTo(cost, within(1e-10));
            assertThat(plain[j]).isLessThan(cost + 1e-13).isCloseTo(cost, within(1e-10));
          }
        }
      }
    }
  }

  /** The matrix of correlations is nearly singular then, and covariances are not. */
  @ParameterizedTest
  @MethodSource("dimensions")
  void farComponentsHaveBounds(int d) {
    Mixture mixture = new Mixture(d, 1, 1, new Random(d));
    for (int i = 0; i < SIZE; i++) {
      double[] mean = mixture.mean[i];
      Arrays.setAll(mean, h -> 1000 * mean[h]);
      mixture.put(i);
    }
    for (MergerBounds mergers : new MergerBounds[] {new MergerKernel(), new ScalarMergers()}) {
      double[] bounds = mixture.bounds(mergers, 1);
      for (int j = 1; j < SIZE; j++) {
        assertThat(bounds[j]).isLessThan(mixture.cost(j)).isCloseTo(mixture.cost(j), within(1e-5));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dimensions")
  void determinantsBeyondRangeSayNothing(int d) {
    for (double scale : new double[] {0x1p-510, 0x1p510}) {
      Mixture mixture = new Mixture(d, 1, scale, new Random(1));
      assertNothingSaid(mixture);
    }
  }

  @ParameterizedTest
  @MethodSource("dimensions")
  void singularCovariancesSayNothing(int d) {
    Mixture mixture = new Mixture(d, 1, 1, new Random(1));
    for (int j = 0; j < SIZE; j++) {
      for (double[] row : mixture.covariance[j]) {
        Arrays.fill(row, d == 1 ? 0 : 1);
      }
      mixture.put(j);
    }
    int logs = (MergerBounds.rows(d) - 1) * MergerBounds.STRIDE;
    Arrays.fill(mixture.panel, MergerBounds.STRIDE, (1 + d) * MergerBounds.STRIDE, 0); // means
    Arrays.fill(mixture.panel, logs, logs + MergerBounds.STRIDE, 0);
    assertNothingSaid(mixture);
  }

  private static void assertNothingSaid(Mixture mixture) {
    for (MergerBounds mergers : new MergerBounds[] {new MergerKernel(), new ScalarMergers()}) {
      double[] bounds = mixture.bounds(mergers, 0);
      for (int j = 0; j < SIZE; j++) {
        assertThat(bounds[j]).isLessThanOrEqualTo(MergerBounds.LEAST);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dimensions")
  void warmCallsAllocateNothing(int d) {
    Mixture mixture = new Mixture(d, 1, 1, new Random(1));
    MergerBounds vectors = new MergerKernel();
    double[] own = mixture.own();
    double[] bounds = new double[MergerBounds.STRIDE];
    int[] places = {};
    WarmCalls.allocateNothing(
        "bounds of mergers",
        2000,
        () -> vectors.set(d, own, mixture.panel, 3, SIZE, places, bounds));
  }
}
