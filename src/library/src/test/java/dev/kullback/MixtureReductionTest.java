package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.WarmCalls;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.function.DoubleUnaryOperator;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Reduced mixtures against exact arithmetic, against a loop that recomputes everything, and against published results. */
class MixtureReductionTest {
  private static final double INFINITY = Double.POSITIVE_INFINITY;
  private static final int NONE = -1;

  /** A mixture with covariances [N, D, D], or variances [N, D]. */
  private record Mix(double[] weights, double[] means, double[] covariances, boolean isFull) {
    int size() {
      return weights.length;
    }

    int dimension() {
      return means.length / size();
    }

    Gaussians components() {
      return isFull
          ? FullGaussians.ofCovariance(means, covariances, dimension())
          : DiagonalGaussians.ofVariance(means, covariances, dimension());
    }

    MixtureReduction reduce(int size, double maxCost) {
      return MixtureReduction.runnalls(
          Mixtures.unnormalized(components(), weights), size, maxCost, _ -> {});
    }

    Mix part(int from, int to) {
      int d = dimension();
      int length = covariances.length / size();
      return new Mix(
          Arrays.copyOfRange(weights, from, to),
          Arrays.copyOfRange(means, from * d, to * d),
          Arrays.copyOfRange(covariances, from * length, to * length),
          isFull);
    }

    /** Element (r, c) of P_i. */
    double covariance(int i, int r, int c) {
      int d = dimension();
      return isFull ? covariances[(i * d + r) * d + c] : r == c ? covariances[i * d + r] : 0;
    }

    double mean(int i, int h) {
      return means[i * dimension() + h];
    }
  }

  private static Mix random(int n, int d, boolean isFull, double spread, Random random) {
    double[] means = new double[n * d];
    double[] covariances = new double[n * (isFull ? d * d : d)];
    double[] weights = random.doubles(n, 0.1, 1).toArray();
    double sum = Arrays.stream(weights).sum();
    for (int i = 0; i < n; i++) {
      weights[i] /= sum;
      double[] l = new double[d * d];
      for (int r = 0; r < d; r++) {
        means[i * d + r] = spread * random.nextGaussian();
        for (int c = 0; c < r; c++) {
          l[r * d + c] = 0.3 * random.nextGaussian();
        }
        l[r * d + r] = random.nextDouble(0.5, 1.5);
      }
      setCovariance(covariances, i, d, isFull, l);
    }
    return new Mix(weights, means, covariances, isFull);
  }

  private static void setCovariance(double[] to, int i, int d, boolean isFull, double[] l) {
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double sum = 0;
        for (int k = 0; k <= c; k++) {
          sum += l[r * d + k] * l[c * d + k];
        }
        if (isFull) {
          to[(i * d + r) * d + c] = to[(i * d + c) * d + r] = sum;
        } else if (r == c) {
          to[i * d + r] = sum;
        }
      }
    }
  }

  private static double[] means(MixtureReduction reduced) {
    Gaussians g = reduced.mixtures().components();
    return rows(g.size(), g::mean);
  }

  /** Covariances, or of diagonal components variances. */
  private static double[] covariances(MixtureReduction reduced) {
    Gaussians g = reduced.mixtures().components();
    return rows(g.size(), i -> g instanceof FullGaussians full ? full.covariance(i) : g.scale(i));
  }

  private static double[] rows(int count, IntFunction<double[]> row) {
    return IntStream.range(0, count).mapToObj(row).flatMapToDouble(DoubleStream::of).toArray();
  }

  // --- exact arithmetic

  /** Weight, means and second moments about the mean of some components. */
  private record Moments(BigFloat weight, BigFloat[] mean, BigFloat[][] covariance) {
    static Moments of(Mix mix, int... members) {
      int d = mix.dimension();
      BigFloat weight = BigFloat.ZERO;
      BigFloat[] mean = new BigFloat[d];
      BigFloat[][] covariance = new BigFloat[d][d];
      for (int k : members) {
        weight = weight.plus(BigFloat.of(mix.weights[k]));
      }
      for (int h = 0; h < d; h++) {
        BigFloat sum = BigFloat.ZERO;
        for (int k : members) {
          sum = sum.plus(BigFloat.of(mix.weights[k]).times(BigFloat.of(mix.mean(k, h))));
        }
        mean[h] = sum.dividedBy(weight);
      }
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < d; c++) {
          BigFloat sum = BigFloat.ZERO;
          for (int k : members) {
            BigFloat a = BigFloat.of(mix.mean(k, r)).minus(mean[r]);
            BigFloat b = BigFloat.of(mix.mean(k, c)).minus(mean[c]);
            BigFloat moment = BigFloat.of(mix.covariance(k, r, c));
            moment = mix.isFull || r == c ? moment.plus(a.times(b)) : moment;
            sum = sum.plus(BigFloat.of(mix.weights[k]).times(moment));
          }
          covariance[r][c] = sum.dividedBy(weight);
        }
      }
      return new Moments(weight, mean, covariance);
    }

    BigFloat logDet() {
      int d = mean.length;
      BigFloat[][] a = new BigFloat[d][];
      Arrays.setAll(a, r -> covariance[r].clone());
      BigFloat product = BigFloat.ONE;
      for (int k = 0; k < d; k++) {
        product = product.times(a[k][k]);
        for (int r = k + 1; r < d; r++) {
          BigFloat factor = a[r][k].dividedBy(a[k][k]);
          for (int c = k; c < d; c++) {
            a[r][c] = a[r][c].minus(factor.times(a[k][c]));
          }
        }
      }
      return product.ln();
    }
  }

  private static double exactCost(Mix mix, int i, int j) {
    Moments both = Moments.of(mix, i, j);
    BigFloat cost = both.weight.times(both.logDet());
    for (int k : new int[] {i, j}) {
      Moments one = Moments.of(mix, k);
      cost = cost.minus(one.weight.times(one.logDet()));
    }
    return Math.max(0, cost.half().toDouble()); // 0 is computed as 1e-77 or so
  }

  /** Components that differ by little or much, in mean and covariance, of similar and of very different weights. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 9})
  void costsAreExact(int d) {
    Random random = new Random(d);
    for (boolean isFull : new boolean[] {false, true}) {
      for (double change = 1e-14; change < 1e7; change *= 100) {
        for (double shift : new double[] {0, 1e-3 * change, change, 1e3 * change}) {
          for (double ratio : new double[] {1, 0.3, 1e-3, 1e-9, 1e3}) {
            Mix mix = pair(d, isFull, change, shift, ratio, random);
            double exact = exactCost(mix, 0, 1);
            double cost = mix.reduce(1, INFINITY).costs()[0];
            assertThat(cost)
                .as(
                    "D %d, full %s, change %s, shift %s, weights 1 : %s",
                    d, isFull, change, shift, ratio)
                .isCloseTo(exact, within(1e-13 * exact + 1e-60));
          }
        }
      }
    }
  }

  /** Two components of which the second's covariance is the first's, changed relatively, or for change ≥ 1 another one, scaled. */
  private static Mix pair(
      int d, boolean isFull, double change, double shift, double ratio, Random random) {
    double[] means = new double[2 * d];
    double[] covariances = new double[2 * (isFull ? d * d : d)];
    double[] l = new double[d * d];
    double[] m = new double[d * d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        l[r * d + c] = c < r ? 0.3 * random.nextGaussian() : random.nextDouble(0.5, 1.5);
        double other = c < r ? 0.3 * random.nextGaussian() : random.nextDouble(0.5, 1.5);
        m[r * d + c] =
            change < 1 ? l[r * d + c] * (1 + change * random.nextGaussian() / 4) : change * other;
      }
      means[r] = random.nextGaussian();
      means[d + r] = means[r] + shift * random.nextGaussian();
    }
    setCovariance(covariances, 0, d, isFull, l);
    setCovariance(covariances, 1, d, isFull, m);
    return new Mix(new double[] {1, ratio}, means, covariances, isFull);
  }

  /** Factors of a condition number of 1e5 cost no more digits than the covariance's. */
  @Test
  void costsOfIllConditionedCovariancesAreExact() {
    Random random = new Random(1);
    int d = 4;
    for (double change = 1e-12; change < 10; change *= 10) {
      double[] l = new double[d * d];
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < r; c++) {
          l[r * d + c] = random.nextGaussian();
        }
        l[r * d + r] = r == d - 1 ? 1e-5 : 1;
      }
      double[] m = l.clone();
      for (int k = 0; k < m.length; k++) {
        m[k] *= 1 + change * random.nextDouble();
      }
      double[] covariances = new double[2 * d * d];
      setCovariance(covariances, 0, d, true, l);
      setCovariance(covariances, 1, d, true, m);
      Mix mix = new Mix(new double[] {1, 0.5}, new double[2 * d], covariances, true);
      double exact = exactCost(mix, 0, 1);
      assertThat(mix.reduce(1, INFINITY).costs()[0])
          .as("change %s", change)
          .isCloseTo(exact, within(1e-12 * 1e10 * exact));
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "1, 1e-30", "1e-30, 1", "1e20, 1e-20", "1e-20, 1e20"})
  void costsOfExtremeScalesAreExact(double first, double second) {
    for (boolean isFull : new boolean[] {false, true}) {
      int d = 3;
      double[] covariances = new double[2 * (isFull ? d * d : d)];
      for (int h = 0; h < d; h++) {
        covariances[isFull ? h * (d + 1) : h] = first;
        covariances[covariances.length / 2 + (isFull ? h * (d + 1) : h)] = second;
      }
      double[] means = {0, 0, 0, 1e-3 * Math.sqrt(first), 0, Math.sqrt(second)};
      for (double ratio : new double[] {1, 1e-6, 1e6}) {
        Mix mix = new Mix(new double[] {1, ratio}, means, covariances, isFull);
        double exact = exactCost(mix, 0, 1);
        assertThat(mix.reduce(1, INFINITY).costs()[0]).isCloseTo(exact, within(1e-13 * exact));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(doubles = {0, 1, 1e6})
  void momentsArePreserved(double offset) {
    Random random = new Random(4);
    for (boolean isFull : new boolean[] {false, true}) {
      int d = 3;
      Mix mix = random(300, d, isFull, 3, random);
      for (int k = 0; k < mix.means.length; k++) {
        mix.means[k] += offset;
      }
      int[] all = IntStream.range(0, mix.size()).toArray();
      for (int size : new int[] {1, 7, 299}) {
        MixtureReduction reduced = mix.reduce(size, INFINITY);
        assertThat(reduced.mixtures().components().size()).isEqualTo(size);
        Mix left =
            new Mix(reduced.mixtures().weights(), means(reduced), covariances(reduced), mix.isFull);
        assertThat(DoubleStream.of(left.weights).sum()).isCloseTo(1, within(1e-14));
        Moments before = Moments.of(mix, all);
        Moments after = Moments.of(left, IntStream.range(0, size).toArray());
        for (int r = 0; r < d; r++) {
          double mean = before.mean[r].toDouble();
          double most = Math.abs(mean) + 10;
          assertThat(after.mean[r].toDouble()).isCloseTo(mean, within(1e-15 * most));
          for (int c = 0; c < d; c++) {
            BigFloat shift = after.covariance[r][c].minus(before.covariance[r][c]);
            assertThat(shift.toDouble()).isCloseTo(0, within(1e-15 * most * most));
          }
        }
        for (int p = 0; p < size; p++) { // and of each component by itself
          int place = p;
          int[] members =
              IntStream.of(all).filter(i -> reduced.assignments()[i] == place).toArray();
          Moments exact = Moments.of(mix, members);
          assertThat(left.weights[p]).isCloseTo(exact.weight.toDouble(), within(2e-16));
          for (int r = 0; r < d; r++) {
            for (int c = 0; c < d; c++) {
              double p0 = exact.covariance[r][c].toDouble();
              double scale =
                  Math.sqrt(exact.covariance[r][r].toDouble() * exact.covariance[c][c].toDouble());
              // the means that covariances are about are rounded
              assertThat(left.covariance(p, r, c))
                  .isCloseTo(p0, within(1e-14 * scale + 1e-31 * offset * offset));
            }
          }
        }
      }
    }
  }

  /** Products of weights and variances are 0 in double, and moments are right. */
  @Test
  void momentsOfLightComponents() {
    double[] means = {0, 1, 10, 1e9};
    double[] variances = {1, 1, 2, 1};
    double unit = 0x1p-240;
    for (boolean isFull : new boolean[] {false, true}) {
      Mix mix = new Mix(new double[] {0.25, 0.125, 0.5, 1}, means, variances, isFull);
      MixtureReduction expected = mix.reduce(2, INFINITY);
      Mix light =
          new Mix(
              new double[] {0x1p-602, 0x1p-603, 0x1p-601, 1},
              mapped(means, m -> unit * m),
              mapped(variances, v -> unit * unit * v),
              isFull);
      MixtureReduction got = light.reduce(2, INFINITY);
      assertThat(got.assignments()).containsExactly(0, 0, 0, 1);
      assertThat(means(got)[0]).isEqualTo(unit * means(expected)[0]);
      assertThat(covariances(got)[0]).isEqualTo(unit * unit * covariances(expected)[0]);
    }
  }

  /** What is not merged comes back as it was given. */
  @Test
  void whatIsLeftAloneIsUnchanged() {
    for (boolean isFull : new boolean[] {false, true}) {
      Mix mix = random(40, 5, isFull, 1, new Random(2));
      MixtureReduction same = mix.reduce(100, INFINITY);
      assertThat(same.mixtures().weights()).containsExactly(mix.weights);
      assertThat(means(same)).containsExactly(mix.means);
      assertThat(covariances(same)).containsExactly(mix.covariances);
      assertThat(same.costs()).isEmpty();
      assertThat(same.totalCost()).isZero();
      assertThat(same.assignments()).containsExactly(IntStream.range(0, 40).toArray());
      assertThat(same).hasToString("MixtureReduction[40 to 40, cost 0.0]");
      assertThat(same.mixtures().components().isDouble()).isTrue();
    }
  }

  @Test
  void allScalesOfTheSameComponentsReduceAlike() {
    Mix mix = random(30, 3, true, 1, new Random(8));
    MixtureReduction expected = mix.reduce(5, INFINITY);
    Gaussians factors =
        FullGaussians.ofScaleTril(mix.means, rows(30, i -> mix.components().scale(i)), 3);
    MixtureReduction got = MixtureReduction.runnalls(Mixtures.of(factors, mix.weights), 5);
    assertThat(got.assignments()).containsExactly(expected.assignments());
    assertThat(covariances(got)).containsExactly(covariances(expected), within(1e-13));
    double[] std = mapped(mix.covariances, x -> Math.sqrt(Math.abs(x)));
    Gaussians diagonal = DiagonalGaussians.ofStd(std, std, 9);
    Mix variances = new Mix(mix.weights, std, mapped(std, s -> s * s), false);
    Mixtures diagonals = Mixtures.unnormalized(diagonal, mix.weights);
    assertThat(covariances(MixtureReduction.runnalls(diagonals, 4)))
        .containsExactly(covariances(variances.reduce(4, INFINITY)));
  }

  private static double[] mapped(double[] values, DoubleUnaryOperator f) {
    return DoubleStream.of(values).map(f).toArray();
  }

  // --- a loop that recomputes everything

  /** The cost by its definition, in double. */
  private static double plainCost(Mix mix, int i, int j) {
    Mix both = merged(mix, i, j);
    double w = both.weights[0];
    return 0.5
        * (w * logDet(both, 0) - mix.weights[i] * logDet(mix, i) - mix.weights[j] * logDet(mix, j));
  }

  private static double logDet(Mix mix, int i) {
    int d = mix.dimension();
    double sum = 0;
    double[][] a = new double[d][d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        a[r][c] = mix.covariance(i, r, c);
      }
    }
    for (int k = 0; k < d; k++) {
      sum += Math.log(a[k][k]);
      for (int r = k + 1; r < d; r++) {
        double factor = a[r][k] / a[k][k];
        for (int c = k; c < d; c++) {
          a[r][c] -= factor * a[k][c];
        }
      }
    }
    return sum;
  }

  private static Mix merged(Mix mix, int i, int j) {
    int d = mix.dimension();
    double w = mix.weights[i] + mix.weights[j];
    double a = mix.weights[i] / w;
    double b = mix.weights[j] / w;
    double[] mean = new double[d];
    double[] covariance = new double[mix.isFull ? d * d : d];
    for (int r = 0; r < d; r++) {
      mean[r] = a * mix.mean(i, r) + b * mix.mean(j, r);
      for (int c = 0; c < d; c++) {
        double shift = (mix.mean(i, r) - mix.mean(j, r)) * (mix.mean(i, c) - mix.mean(j, c));
        double p = a * mix.covariance(i, r, c) + b * mix.covariance(j, r, c) + a * b * shift;
        if (mix.isFull) {
          covariance[r * d + c] = p;
        } else if (r == c) {
          covariance[r] = p;
        }
      }
    }
    return new Mix(new double[] {w}, mean, covariance, mix.isFull);
  }

  private interface Cost {
    double of(Mix mix, int i, int j);
  }

  /**
   * Merges the two of all pairs that cost least, again and again, at the costs that are expected; returns the components that are left.
   *
   * @param isOfPairs whether a pair's cost does not depend on others
   */
  private static Mix greedy(
      Mix mix, double[] expected, double error, Cost cost, boolean isOfPairs) {
    int n = mix.size();
    double[][] costs = new double[n][n];
    int merged = NONE;
    Mix left = mix;
    int[] at = IntStream.range(0, n).toArray();
    for (double found : expected) {
      int best = 0;
      int with = 1;
      double least = INFINITY;
      for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
          if (merged == NONE || !isOfPairs || i == merged || j == merged) {
            costs[at[i]][at[j]] = cost.of(left, i, j);
          }
          if (costs[at[i]][at[j]] < least) {
            least = costs[at[i]][at[j]];
            best = i;
            with = j;
          }
        }
      }
      assertThat(found).isCloseTo(least, within(1e-13 + error * least));
      left = without(left, with, best, merged(left, best, with));
      merged = best;
      n--;
      System.arraycopy(at, with + 1, at, with, n - with);
    }
    return left;
  }

  private static Mix greedy(Mix mix, MixtureReduction reduced) {
    return greedy(mix, reduced.costs(), 1e-10, MixtureReductionTest::plainCost, true);
  }

  private static void assertLeft(
      MixtureReduction reduced, Mix left, double ofMeans, double ofCovariances) {
    assertThat(reduced.mixtures().weights()).containsExactly(left.weights, within(1e-14));
    assertThat(means(reduced)).containsExactly(left.means, within(ofMeans));
    assertThat(covariances(reduced)).containsExactly(left.covariances, within(ofCovariances));
  }

  private static Mix without(Mix mix, int j, int i, Mix instead) {
    int d = mix.dimension();
    int length = mix.covariances.length / mix.size();
    List<Integer> left = new ArrayList<>(IntStream.range(0, mix.size()).boxed().toList());
    left.remove(j);
    Mix next =
        new Mix(
            new double[left.size()],
            new double[left.size() * d],
            new double[left.size() * length],
            mix.isFull);
    for (int p = 0; p < left.size(); p++) {
      int k = left.get(p);
      Mix from = k == i ? instead : mix;
      int at = k == i ? 0 : k;
      next.weights[p] = from.weights[at];
      System.arraycopy(from.means, at * d, next.means, p * d, d);
      System.arraycopy(from.covariances, at * length, next.covariances, p * length, length);
    }
    return next;
  }

  /** Of one leaf of the tree and of many. */
  @ParameterizedTest
  @CsvSource({
    "60, 3, 1, false, 3",
    "60, 3, 3, false, 1",
    "60, 3, 3, true, 1",
    "60, 3, 4, true, 10",
    "40, 3, 6, true, 0.1",
    "300, 250, 2, false, 4",
    "300, 250, 2, true, 4"
  })
  void isTheGreedyOrder(int n, int size, int d, boolean isFull, double spread) {
    for (int seed = 0; seed < (n < 100 ? 5 : 1); seed++) {
      Mix mix = random(n, d, isFull, spread, new Random(seed));
      MixtureReduction reduced = mix.reduce(size, INFINITY);
      assertThat(reduced.costs()).hasSize(n - size);
      assertLeft(reduced, greedy(mix, reduced), 1e-12, 1e-11);
    }
  }

  // --- properties

  @Test
  void equalComponentsMergeAtNoCostInTheirOrder() {
    double[] means = {5, 1, 5, 1, 5, 5};
    double[] variances = {2, 3, 2, 3, 2, 2};
    for (boolean isFull : new boolean[] {false, true}) {
      Mix mix = new Mix(new double[] {0.1, 0.2, 0.1, 0.3, 0.1, 0.2}, means, variances, isFull);
      MixtureReduction reduced = mix.reduce(1, 0);
      assertThat(reduced.costs()).containsExactly(0, 0, 0, 0);
      assertThat(reduced.assignments()).containsExactly(0, 1, 0, 1, 0, 0);
      assertThat(means(reduced)).containsExactly(5, 1);
      assertThat(covariances(reduced)).containsExactly(2, 3);
      assertThat(reduced.mixtures().weights())
          .containsExactly(new double[] {0.5, 0.5}, within(1e-16));
    }
  }

  /** On a line of equal steps all neighbors cost the same: the first two merge, and then the next two, which cost less than three. */
  @Test
  void tiesGoToTheLowerIndices() {
    double[] means = IntStream.range(0, 8).mapToDouble(i -> i).toArray();
    double[] ones = DoubleStream.generate(() -> 1).limit(8).toArray();
    for (boolean isFull : new boolean[] {false, true}) {
      Mix mix = new Mix(ones, means, ones, isFull);
      assertThat(mix.reduce(7, INFINITY).assignments()).containsExactly(0, 0, 1, 2, 3, 4, 5, 6);
      assertThat(mix.reduce(6, INFINITY).assignments()).containsExactly(0, 0, 1, 1, 2, 3, 4, 5);
      assertThat(mix.reduce(4, INFINITY).assignments()).containsExactly(0, 0, 1, 1, 2, 2, 3, 3);
    }
  }

  /** Costs of equal components are 0, and of alike ones next to nothing: what rules pairs out must not see rounding in them. */
  @Test
  void equalComponentsMergeBeforeAllOthers() {
    double[] means = new double[4];
    double[] weights = {2, 2, 3, 4};
    for (boolean isFull : new boolean[] {false, true}) {
      Mix equal = new Mix(weights, means, new double[] {0.3, 0.3, 0.3, 0.3}, isFull);
      assertThat(equal.reduce(2, INFINITY).assignments()).containsExactly(0, 0, 0, 1);
      double[] variances = {5.699999999999999, 5.7, 5.699999999999999};
      Mix alike = new Mix(new double[] {5, 3, 1}, new double[3], variances, isFull);
      assertThat(alike.reduce(1, 0).assignments()).containsExactly(0, 1, 0);
    }
  }

  /** Pairs on both sides of a middle component, of any variances and weights: the lower one merges, unless the outer two cost less. */
  @Test
  void mirroredTiesGoToTheLowerIndices() {
    double[] numbers = {0.3, 0.5, 1, 2, 3, 7};
    int ties = 0;
    for (double distance : new double[] {0.01, 0.7, 1, 1.5}) {
      for (int k = 0; k < 6 * 6 * 6 * 2; k++) {
        double inner = numbers[k % 6];
        double outer = numbers[k / 6 % 6];
        double weight = numbers[k / 36 % 6];
        double sum = 2 + weight;
        double[] weights = {1 / sum, weight / sum, 1 / sum};
        double[] means = {-distance, 0, distance};
        Mix mix = new Mix(weights, means, new double[] {outer, inner, outer}, k < 216);
        if (plainCost(mix, 0, 1) < plainCost(mix, 0, 2) * (1 - 1e-6)) {
          ties++;
          assertThat(mix.reduce(2, INFINITY).assignments())
              .as("%s %s", Arrays.toString(weights), Arrays.toString(mix.covariances))
              .containsExactly(0, 0, 1);
        }
      }
    }
    assertThat(ties).isGreaterThan(500);
  }

  /** Groups of three that are translated, reflected, permuted or reversed copies of each other: they merge one after the other. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void copiesMergeInTheirOrder(boolean isFull) {
    Random random = new Random(8);
    for (int n = 0; n < 100; n++) {
      int d = 1 + n % 3;
      int copies = 4;
      Mix group = random(3, d, isFull, 1, random);
      int length = group.covariances.length / 3;
      double[] weights = new double[3 * copies];
      double[] means = new double[3 * copies * d];
      double[] covariances = new double[3 * copies * length];
      for (int copy = 0; copy < copies; copy++) {
        int[] order = random.nextBoolean() ? new int[] {0, 1, 2} : new int[] {2, 1, 0};
        boolean isSwapped = random.nextBoolean();
        int[] sign = random.ints(d, 0, 2).map(x -> 2 * x - 1).toArray();
        for (int k = 0; k < 3; k++) {
          int from = order[k];
          int to = 3 * copy + k;
          // bits that translation keeps, and weights that make pairs of equal weights, too
          weights[to] = n % 2 == 0 ? 1.0 / 12 : Math.rint(16 * group.weights[from]) / 16 + 0.25;
          for (int h = 0; h < d; h++) {
            int g = isSwapped ? d - 1 - h : h;
            double rounded = Math.rint(0x1p20 * group.means[from * d + h]) * 0x1p-20;
            means[to * d + g] = sign[h] * rounded + 64 * copy;
            for (int c = 0; c < d; c++) {
              int e = isSwapped ? d - 1 - c : c;
              if (isFull) {
                covariances[to * length + g * d + e] =
                    sign[h] * sign[c] * group.covariances[from * length + h * d + c];
              } else {
                covariances[to * length + g] = group.covariances[from * length + h];
              }
            }
          }
        }
      }
      Mix mix = new Mix(weights, means, covariances, isFull);
      double[] costs = mix.part(0, 3).reduce(1, INFINITY).costs();
      if (costs[1] < costs[0] * (1 + 1e-6)) {
        continue; // a group merges at once
      }
      int[] merged = new int[copies];
      for (int step = 1; step <= 2 * copies; step++) {
        int[] places = mix.reduce(3 * copies - step, INFINITY).assignments();
        Arrays.setAll(
            merged, k -> 3 - (int) Arrays.stream(places, 3 * k, 3 * k + 3).distinct().count());
        int full = (step - 1) / copies;
        int more = (step - 1) % copies;
        assertThat(merged)
            .as("%d, %d dimensions, step %d", n, d, step)
            .containsExactly(
                IntStream.range(0, copies).map(k -> full + (k <= more ? 1 : 0)).toArray());
      }
    }
  }

  /**
   * Costs are proportional to the weights, and do not depend on the units of the data; by powers of 2, to the bit, even where products of weights and
   * variances, or of some variances, are subnormal.
   */
  @ParameterizedTest
  @CsvSource({
    "3, 0x1p-397, 0x1p-20, 0x1p-20",
    "1, 0x1p-990, 0x1p-36, 0x1p-36",
    "3, 0x1p-990, 0x1p-36, 0x1p-36",
    "8, 1, 0x1p-134, 0x1p67"
  })
  void unitsDoNotMatter(int d, double weight, double first, double last) {
    double[] unit = new double[d];
    Arrays.setAll(unit, h -> h < d / 2 ? first : last);
    for (int seed = 0; seed < 10; seed++) {
      Mix mix = random(50, d, true, 0.3, new Random(seed));
      for (int h = 0; h < d; h++) {
        mix.means[h] = 1e6; // is left alone, and gives weights a sum in range
      }
      Mix scaled = new Mix(mix.weights.clone(), mix.means.clone(), mix.covariances.clone(), true);
      double light = weight == 1 ? 1 : 0x1p-400;
      for (int i = 0; i < 50; i++) {
        mix.weights[i] *= i == 0 ? 1 : light;
        scaled.weights[i] *= i == 0 ? 1 : weight;
        for (int r = 0; r < d; r++) {
          scaled.means[i * d + r] *= unit[r];
          for (int c = 0; c < d; c++) {
            scaled.covariances[(i * d + r) * d + c] *= unit[r] * unit[c];
          }
        }
      }
      MixtureReduction expected = mix.reduce(4, INFINITY);
      MixtureReduction got = scaled.reduce(4, INFINITY);
      assertThat(got.assignments()).containsExactly(expected.assignments());
      assertThat(got.costs()).containsExactly(mapped(expected.costs(), c -> c / light * weight));
    }
  }

  /** Each merger of one is the lowest pair that costs nothing, copies of the first component among them, as long as any is left. */
  @Test
  void weightlessComponentsMergeWithTheFirstInTheirOrder() {
    double[] means = {3, 5, 3, 7, 3, 9, 11};
    double[] ones = {1, 1, 1, 1, 1, 1, 1};
    double[] first = {0.25, 0, 0.25, 1e-300, 0.25, 0, 0.25};
    double[] second = {0, 0, 0.5, 0.125, 0.25, 0, 0.125};
    for (boolean isFull : new boolean[] {false, true}) {
      MixtureReduction reduced = new Mix(first, means, ones, isFull).reduce(3, INFINITY);
      assertThat(reduced.assignments()).containsExactly(0, 0, 0, 1, 0, 0, 2);
      assertThat(reduced.costs()).containsExactly(0, 0, 0, 0);
      assertThat(reduced.mixtures().weights()).containsExactly(0.75, 1e-300, 0.25);
      reduced = new Mix(second, means, ones, isFull).reduce(4, INFINITY);
      assertThat(reduced.assignments()).containsExactly(0, 0, 0, 1, 0, 2, 3);
      assertThat(reduced.costs()).containsExactly(0, 0, 0);
      assertThat(means(reduced)).containsExactly(3, 7, 9, 11);
    }
  }

  /** With more dimensions than determinants are unrolled for, and with fewer. */
  @ParameterizedTest
  @ValueSource(ints = {7, 8, 9})
  void lightComponentsMergeInTheGreedyOrder(int d) {
    Mix mix = random(40, d, true, 1, new Random(d));
    for (int i = 0; i < 40; i++) {
      mix.weights[i] *= i % 3 == 0 ? 0 : Math.pow(0.5, i);
    }
    MixtureReduction reduced = mix.reduce(3, INFINITY);
    assertLeft(reduced, greedy(mix, reduced), 1e-11, 1e-10);
  }

  // --- published results

  /**
   * The mixture of ten of examples 1 and 2 of RunnalsGaussMixRed.m in the Tracker Component Library of the U.S. Naval Research
   * Laboratory, also of D. F. Crouse et al., "A look at Gaussian mixture reduction algorithms", Fusion 2011.
   */
  private static final Mix CROUSE =
      new Mix(
          new double[] {0.03, 0.18, 0.12, 0.19, 0.02, 0.16, 0.06, 0.1, 0.08, 0.06},
          new double[] {1.45, 2.20, 0.67, 0.48, 1.49, 0.91, 1.01, 1.42, 2.77, 0.89},
          new double[] {
            0.0487, 0.0305, 0.1171, 0.0174, 0.0295, 0.0102, 0.0323, 0.0380, 0.0115, 0.0679
          },
          false);

  /** The three components of example 1, as that library's output is kept in nedonatelli/TCL, tests/fixtures/matlab/mixred_r1_runnalls_*. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void trackerComponentLibraryExample1(boolean isFull) {
    Mix left =
        new Mix(
            Batch.numbers("0.15 0.18 0.24 0.19 0.16 0.08"),
            Batch.numbers("1.4353333333333333 2.2 0.81 0.48 0.91 2.77"),
            Batch.numbers("0.039604888888888891 0.0305 0.10499999999999998 0.0174 0.0102 0.0115"),
            isFull);
    Mix mix = new Mix(CROUSE.weights, CROUSE.means, CROUSE.covariances, isFull);
    assertLeft(mix.reduce(6, INFINITY), left, 1e-15, 1e-16);
  }

  /** Example 2: mergers that cost at most 0.05, by the paper's definition, leave 6 components. */
  @Test
  void trackerComponentLibraryExample2() {
    MixtureReduction reduced = CROUSE.reduce(1, 0.05);
    assertThat(reduced.mixtures().components().size()).isEqualTo(6);
    assertThat(reduced.costs()).hasSize(4);
    assertThat(DoubleStream.of(reduced.costs())).allMatch(cost -> cost <= 0.05);
    assertThat(CROUSE.reduce(5, INFINITY).costs()[4]).isGreaterThan(0.05);
  }

  /** 8 components of two dimensions to 4: the library's output, mixred_mv2_runnalls_* of the same collection. */
  @Test
  void trackerComponentLibraryInTwoDimensions() {
    Mix mix =
        new Mix(
            Batch.numbers("0.05 0.15 0.1 0.2 0.12 0.08 0.18 0.12"),
            Batch.numbers("0 0 0.3 0.1 2 1.5 2.2 1.3 -1 2 -1.2 2.3 4 -1 0.5 -0.4"),
            Batch.numbers(
                "0.2 0.05 0.05 0.3 0.15 -0.02 -0.02 0.1 0.3 0.1 0.1 0.25 0.2 0 0 0.2"
                    + " 0.4 0.12 0.12 0.35 0.25 -0.05 -0.05 0.2 0.5 0.2 0.2 0.6 0.1 0.03 0.03 0.12"),
            true);
    Mix left =
        new Mix(
            Batch.numbers("0.32 0.3 0.2 0.18"),
            Batch.numbers(
                "0.328125 -0.10312500000000002 2.1333333333333333 1.3666666666666667 -1.0799999999999998 2.1199999999999997 4 -1"),
            Batch.numbers(
                "0.16733398437500002 -0.017412109375000005 -0.017412109375000005 0.19280273437500001"
                    + " 0.24222222222222223 0.024444444444444439 0.024444444444444439 0.22555555555555556"
                    + " 0.3496 0.0376 0.0376 0.3116 0.5 0.2 0.2 0.6"),
            true);
    assertLeft(mix.reduce(4, INFINITY), left, 1e-14, 1e-14);
  }

  // --- calls

  @Test
  void argumentsAreNotKept() {
    Mix mix = random(20, 2, false, 1, new Random(1));
    double[] before = mix.weights.clone();
    MixtureReduction reduced = mix.reduce(5, INFINITY);
    assertThat(mix.weights).containsExactly(before);
    double[] weights = reduced.mixtures().weights();
    reduced.mixtures().weights()[0] = 9;
    assertThat(reduced.mixtures().weights()).containsExactly(weights);
    assertThat(reduced.costs()).isSameAs(reduced.costs());
    assertThat(reduced.assignments()).isSameAs(reduced.assignments());
  }

  /** Each mixture of a batch is reduced as it is by itself. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void batchesAreReducedOneByOne(boolean isFull) {
    int[] offsets = {0, 7, 8, 30, 40};
    int[] due = {0, 5, 6, 11, 16};
    Mix all = random(40, 3, isFull, 1, new Random(9));
    Mixtures batch = Mixtures.unnormalized(all.components(), all.weights, offsets);
    List<Integer> progress = new ArrayList<>();
    MixtureReduction reduced = MixtureReduction.runnalls(batch, 5, INFINITY, progress::add);
    Mixtures left = reduced.mixtures();
    assertThat(IntStream.rangeClosed(0, 4).map(left::offset).toArray()).containsExactly(due);
    List<MixtureReduction> each =
        IntStream.range(0, 4)
            .mapToObj(m -> all.part(offsets[m], offsets[m + 1]).reduce(5, INFINITY))
            .toList();
    assertThat(left.weights()).containsExactly(joined(each, one -> one.mixtures().weights()));
    assertThat(means(reduced)).containsExactly(joined(each, one -> means(one)));
    assertThat(covariances(reduced)).containsExactly(joined(each, one -> covariances(one)));
    assertThat(reduced.costs()).containsExactly(joined(each, MixtureReduction::costs)).hasSize(24);
    for (int m = 0; m < 4; m++) {
      int first = due[m];
      assertThat(Arrays.copyOfRange(reduced.assignments(), offsets[m], offsets[m + 1]))
          .containsExactly(IntStream.of(each.get(m).assignments()).map(i -> first + i).toArray());
    }
    double total = each.stream().mapToDouble(MixtureReduction::totalCost).sum();
    assertThat(reduced.totalCost()).isCloseTo(total, within(1e-14 * total));
    assertThat(progress)
        .containsExactlyElementsOf(IntStream.rangeClosed(16, 40).map(k -> 56 - k).boxed().toList());
    assertThat(reduced).hasToString("MixtureReduction[40 to 16, cost " + reduced.totalCost() + "]");
  }

  private static double[] joined(
      List<MixtureReduction> each, Function<MixtureReduction, double[]> part) {
    return each.stream().map(part).flatMapToDouble(DoubleStream::of).toArray();
  }

  /** Of many levels of the tree, dense and sparse: the wide components that merge in the latter are in boxes with narrow ones. */
  @Tag("long")
  @ParameterizedTest
  @CsvSource({"true, 3", "true, 300", "false, 300"})
  void twoThousandMergeInTheGreedyOrder(boolean isFull, double spread) {
    Mix mix = random(2000, 3, isFull, spread, new Random(12));
    MixtureReduction reduced = mix.reduce(20, INFINITY);
    Mix left = greedy(mix, reduced);
    assertThat(means(reduced)).containsExactly(left.means, within(1e-9));
    assertThat(reduced.mixtures().weights()).containsExactly(left.weights, within(1e-13));
  }

  // --- reducers

  /** Mixtures of several sizes, dimensions and kinds go through one reducer, whose memory they share; threads do not matter. */
  @ParameterizedTest
  @ValueSource(strings = {"runnalls", "williams"})
  void aReducerForgetsItsCalls(String rule) {
    MixtureReduction.Reducer reducer = reducer(rule, 5);
    int most = rule.equals("williams") ? 60 : 500;
    try (KlEngine engine = KlEngine.builder().threads(3).build()) {
      for (int n : new int[] {40, most, 4, 150}) {
        for (boolean isFull : new boolean[] {true, false}) {
          for (int d : new int[] {3, 1}) {
            Mix mix = random(Math.min(n, most), d, isFull, 2, new Random(n));
            int[] offsets = {0, 1, mix.size() / 2, mix.size()};
            Mixtures mixtures = Mixtures.unnormalized(mix.components(), mix.weights, offsets);
            MixtureReduction expected = reducer(rule, 5).reduce(mixtures);
            for (var each : List.of(reducer, reducer.engine(engine))) {
              MixtureReduction got = each.reduce(mixtures);
              assertThat(got.costs()).containsExactly(expected.costs());
              assertThat(got.assignments()).containsExactly(expected.assignments());
              assertThat(got.mixtures().weights()).containsExactly(expected.mixtures().weights());
              assertThat(means(got)).containsExactly(means(expected));
              assertThat(covariances(got)).containsExactly(covariances(expected));
              double[] weights = new double[15];
              double[] means = new double[15 * d];
              double[] covariances = new double[15 * d * d];
              int[] places = new int[4];
              assertThat(each.reduce(mixtures, weights, means, covariances, places))
                  .isEqualTo(expected.mixtures().components().size());
              assertThat(places)
                  .containsExactly(
                      IntStream.range(0, 4).map(expected.mixtures()::offset).toArray());
              assertThat(weights).startsWith(expected.mixtures().weights());
              assertThat(means).startsWith(means(expected));
              assertThat(covariances).startsWith(covariances(expected));
            }
          }
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"runnalls, true", "williams, true", "williams, false"})
  void aWarmStepAllocatesNothing(String rule, boolean isFull) {
    Mix mix = random(60, 4, isFull, 2, new Random(1));
    Mixtures mixtures = Mixtures.of(mix.components(), mix.weights);
    MixtureReduction.Reducer reducer = reducer(rule, 8);
    double[] weights = new double[8];
    double[] means = new double[32];
    double[] covariances = new double[128];
    int[] offsets = new int[2];
    WarmCalls.allocateNothing(
        "reductions", 20, () -> reducer.reduce(mixtures, weights, means, covariances, offsets));
  }

  // --- other rules

  private static Mixtures mixtures(Mix mix) {
    return Mixtures.unnormalized(mix.components(), mix.weights);
  }

  private static double[] inverseTimes(Mix mix, int i, double[] d) {
    int n = d.length;
    double[][] a = new double[n][n + 1];
    for (int r = 0; r < n; r++) {
      for (int c = 0; c < n; c++) {
        a[r][c] = mix.covariance(i, r, c);
      }
      a[r][n] = d[r];
    }
    for (int k = 0; k < n; k++) {
      for (int r = 0; r < n; r++) {
        double factor = r == k ? 0 : a[r][k] / a[k][k];
        for (int c = k; c <= n; c++) {
          a[r][c] -= factor * a[k][c];
        }
      }
    }
    return IntStream.range(0, n).mapToDouble(r -> a[r][n] / a[r][r]).toArray();
  }

  private static double mahalanobis(Mix mix, int i, double[] d) {
    double[] x = inverseTimes(mix, i, d);
    return IntStream.range(0, d.length).mapToDouble(h -> d[h] * x[h]).sum();
  }

  private static double[] difference(Mix mix, int i, int j) {
    return IntStream.range(0, mix.dimension())
        .mapToDouble(h -> mix.mean(j, h) - mix.mean(i, h))
        .toArray();
  }

  /** KL(N_i ‖ N_j) by its definition. */
  private static double divergence(Mix mix, int i, int j) {
    int d = mix.dimension();
    double trace = 0;
    for (int c = 0; c < d; c++) {
      int column = c;
      double[] of = IntStream.range(0, d).mapToDouble(r -> mix.covariance(i, r, column)).toArray();
      trace += inverseTimes(mix, j, of)[c];
    }
    double squares = mahalanobis(mix, j, difference(mix, i, j));
    return 0.5 * (trace - d + squares + logDet(mix, j) - logDet(mix, i));
  }

  private static int lightest(Mix mix) {
    int lightest = 0;
    for (int i = 1; i < mix.size(); i++) {
      lightest = mix.weights[i] < mix.weights[lightest] ? i : lightest;
    }
    return lightest;
  }

  /** The cost of a rule by its definition, +∞ where two may not merge. */
  private static double plainCost(String rule, Mix mix, Mix whole, int i, int j) {
    int heavy = mix.weights[j] > mix.weights[i] ? j : i;
    double w = mix.weights[i] + mix.weights[j];
    return switch (rule) {
      case "salmond" ->
          mix.weights[i] * mix.weights[j] / w * mahalanobis(whole, 0, difference(mix, i, j));
      case "gate" -> mahalanobis(mix, heavy, difference(mix, i, j));
      default -> {
        int light = lightest(mix);
        yield i == light || j == light ? divergence(mix, light, i + j - light) : INFINITY;
      }
    };
  }

  private static MixtureReduction.Reducer reducer(String rule, int size) {
    MixtureReduction.Reducer reducer = MixtureReduction.reducer(size);
    return switch (rule) {
      case "runnalls" -> reducer;
      case "salmond" -> reducer.salmond();
      case "gate" -> reducer.gate(1e9);
      case "williams" -> reducer.williams();
      default -> reducer.west();
    };
  }

  /** Each rule against a loop by its definition, and the moments of the whole. */
  @ParameterizedTest
  @CsvSource({
    "salmond, 1, false", "salmond, 3, false", "salmond, 3, true",
    "west, 1, false", "west, 3, false", "west, 3, true",
    "gate, 1, false", "gate, 3, false", "gate, 3, true"
  })
  void rulesAreTheirDefinitions(String rule, int d, boolean isFull) {
    for (int n : new int[] {50, 150}) {
      Mix mix = random(n, d, isFull, 3, new Random(d));
      MixtureReduction reduced = reducer(rule, n == 50 ? 10 : 130).reduce(mixtures(mix));
      MixtureReduction all = mix.reduce(1, INFINITY);
      Mix whole = new Mix(new double[] {1}, means(all), covariances(all), isFull);
      Cost cost = (left, i, j) -> plainCost(rule, left, whole, i, j);
      Mix left = greedy(mix, reduced.costs(), 1e-11, cost, !rule.equals("west"));
      assertLeft(reduced, left, 1e-12, 1e-12);
      assertMoments(reduced, mix);
    }
  }

  private static void assertMoments(MixtureReduction reduced, Mix mix) {
    MixtureReduction again = MixtureReduction.runnalls(reduced.mixtures(), 1);
    MixtureReduction all = mix.reduce(1, INFINITY);
    assertThat(means(again)).containsExactly(means(all), within(1e-14));
    assertThat(covariances(again)).containsExactly(covariances(all), within(1e-12));
  }

  /** {@code ∫ N_i N_j}, by its definition. */
  private static double overlap(Mix f, int i, Mix g, int j) {
    int d = f.dimension();
    double[] covariance = new double[d * d];
    double[] difference = new double[d];
    for (int r = 0; r < d; r++) {
      difference[r] = f.mean(i, r) - g.mean(j, r);
      for (int c = 0; c < d; c++) {
        covariance[r * d + c] = f.covariance(i, r, c) + g.covariance(j, r, c);
      }
    }
    Mix both = new Mix(new double[] {1}, new double[d], covariance, true);
    return Math.exp(
        -0.5 * (mahalanobis(both, 0, difference) + logDet(both, 0) + d * Math.log(2 * Math.PI)));
  }

  private static double inner(Mix f, Mix g) {
    double sum = 0;
    for (int i = 0; i < f.size(); i++) {
      for (int j = 0; j < g.size(); j++) {
        sum += f.weights[i] * g.weights[j] * overlap(f, i, g, j);
      }
    }
    return sum;
  }

  /** Each merger is that after which the integral squared error, computed anew for all, is least, and costs its share. */
  @ParameterizedTest
  @CsvSource({
    "1, false, 0.5",
    "1, true, 2",
    "2, true, 1",
    "3, false, 1",
    "3, true, 3",
    "4, true, 0.3"
  })
  void williamsMergersAddLeastToTheSquaredError(int d, boolean isFull, double spread) {
    for (int seed = 0; seed < 2; seed++) {
      Mix mix = random(10, d, isFull, spread, new Random(seed));
      MixtureReduction reduced = reducer("williams", 2).reduce(mixtures(mix));
      double whole = inner(mix, mix);
      Mix left = mix;
      double before = 0;
      for (double cost : reduced.costs()) {
        double least = INFINITY;
        Mix next = left;
        for (int i = 0; i < left.size(); i++) {
          for (int j = i + 1; j < left.size(); j++) {
            Mix g = without(left, j, i, merged(left, i, j));
            double error = whole + inner(g, g) - 2 * inner(mix, g);
            if (error < least) {
              least = error;
              next = g;
            }
          }
        }
        assertThat(cost).isCloseTo((least - before) / whole, within(1e-12));
        before = least;
        left = next;
      }
      assertThat(reduced.totalCost()).isCloseTo(before / whole, within(1e-12));
      assertLeft(reduced, left, 1e-13, 1e-12);
      assertMoments(reduced, mix);
    }
  }

  /** Squared errors know no units: neither densities that overflow nor ones that underflow matter, nor do weights. */
  @ParameterizedTest
  @CsvSource({"0x1p-80, 0x1p-400", "0x1p80, 0x1p300", "0x1p-60, 0x1p480"})
  void unitsDoNotMatterToSquaredErrors(double unit, double weight) {
    for (boolean isFull : new boolean[] {false, true}) {
      Mix mix = random(25, 20, isFull, 1, new Random(5));
      Mix scaled =
          new Mix(
              mapped(mix.weights, w -> weight * w),
              mapped(mix.means, m -> unit * m),
              mapped(mix.covariances, p -> unit * unit * p),
              isFull);
      MixtureReduction expected = reducer("williams", 3).reduce(mixtures(mix));
      MixtureReduction got = reducer("williams", 3).reduce(mixtures(scaled));
      assertThat(got.assignments()).containsExactly(expected.assignments());
      assertThat(got.costs()).containsExactly(expected.costs(), within(1e-12));
      assertThat(got.totalCost()).isBetween(1e-6, 1.0);
    }
  }

  /** Equal components add nothing, and merge at first; on a line of equal steps all neighbors add the same, and far ones all do. */
  @Test
  void equalSquaredErrorsGoToTheLowerIndices() {
    double[] ones = DoubleStream.generate(() -> 1).limit(8).toArray();
    double[] line = IntStream.range(0, 8).mapToDouble(i -> i).toArray();
    double[] means = {0, 5, 1, 5, 7, 0, 9, 5};
    double[] far = IntStream.range(0, 8).mapToDouble(i -> 1e70 * i).toArray();
    for (boolean isFull : new boolean[] {false, true}) {
      MixtureReduction reduced =
          reducer("williams", 5).reduce(mixtures(new Mix(ones, means, ones, isFull)));
      assertThat(reduced.assignments()).containsExactly(0, 1, 2, 1, 3, 0, 4, 1);
      assertThat(reduced.costs()).containsExactly(0, 0, 0);
      for (double[] mean : List.of(line, far)) {
        assertThat(
                reducer("williams", 7)
                    .reduce(mixtures(new Mix(ones, mean, ones, isFull)))
                    .assignments())
            .containsExactly(0, 0, 1, 2, 3, 4, 5, 6);
      }
    }
  }

  /** The two of weight 0 are gone at once, a limit ends it, and what is left out has no part in f. */
  @Test
  void williamsGoesWithOtherSettings() {
    double[] weights = {0.25, 0, 0.25, 0.25, 1e-9, 0, 0.25};
    double[] means = {0, 3, 0.5, 4, 2, 8, 5};
    double[] ones = {1, 1, 1, 1, 1, 1, 1};
    for (boolean isFull : new boolean[] {false, true}) {
      Mixtures seven = mixtures(new Mix(weights, means, ones, isFull));
      var reducer = reducer("williams", 1).minWeight(1e-6);
      MixtureReduction four = reducer.maxCost(0).reduce(seven);
      assertThat(four.assignments()).containsExactly(0, -1, 1, 2, -1, -1, 3);
      double[] costs = reducer.reduce(seven).costs();
      assertThat(costs).hasSize(3).isSorted();
      MixtureReduction two = reducer.maxCost(costs[1]).reduce(seven);
      assertThat(two.costs()).containsExactly(Arrays.copyOf(costs, 2));
      assertThat(two.assignments()).containsExactly(0, -1, 0, 1, -1, -1, 1);
      assertThat(reducer.maxCost(costs[0]).cap().reduce(seven).mixtures().weights())
          .containsExactly(new double[] {1 + 1e-9}, within(1e-15));
      assertThat(reducer("williams", 5).reduce(seven).costs()).containsExactly(0, 0);
    }
    Mixtures two =
        mixtures(
            new Mix(
                new double[] {1, 1},
                new double[] {0, 0, 1e7, 1e7},
                new double[] {1e-4, 0, 0, 1e-4, 1e-4, 0, 0, 1e-4},
                true));
    assertThat(reducer("williams", 1).reduce(two).raised()).isEqualTo(1);
  }

  /** Integrals of the light ones' products are 0 in double, or next to it, as a share of ∫ f². */
  @Test
  void squaredErrorsThatUnderflow() {
    for (int seed = 0; seed < 50; seed++) {
      for (boolean isFull : new boolean[] {false, true}) {
        Mix mix = random(4, 2, isFull, 1, new Random(seed));
        double[] weights = {1e-250, 1e-200, 1e-158, 1};
        MixtureReduction one =
            reducer("williams", 1)
                .reduce(mixtures(new Mix(weights, mix.means, mix.covariances, isFull)));
        assertThat(means(one))
            .containsExactly(new double[] {mix.mean(3, 0), mix.mean(3, 1)}, within(1e-15));
        assertThat(one.totalCost()).isCloseTo(0, within(1e-11));
      }
    }
  }

  /** Memory is that of the pairs that are left, and what exceeds it is refused. */
  @Test
  void pairsOfManyComponents() {
    int n = 70_000;
    double[] weights = new double[n];
    double[] means = new double[n];
    double[] ones = new double[n];
    for (int i = 0; i < n; i++) {
      weights[i] = i < n - 4 ? 1e-12 : 1;
      means[i] = i;
      ones[i] = 1;
    }
    Mixtures many = mixtures(new Mix(weights, means, ones, false));
    var reducer = reducer("williams", 3);
    MixtureReduction three = reducer.minWeight(1e-6).reduce(many);
    assertThat(three.assignments()).endsWith(-1, 0, 0, 1, 2).startsWith(-1);
    refused(() -> reducer.reduce(many), "by Williams' rule, 70000 components take 1401");
    assertThat(reducer.minWeight(1e-6).reduce(many).costs()).containsExactly(three.costs());
  }

  /** Three components of closed forms. */
  @Test
  void closedForms() {
    Mix mix =
        new Mix(
            new double[] {0.5, 0.25, 0.25}, new double[] {0, 1, 4}, new double[] {1, 2, 1}, false);
    double variance = 1.25 + 0.5 * 1.5625 + 0.25 * 0.0625 + 0.25 * 7.5625;
    assertThat(reducer("salmond", 2).reduce(mixtures(mix)).costs()[0])
        .isCloseTo(0.5 * 0.25 / 0.75 / variance, within(1e-16));
    assertThat(reducer("gate", 2).reduce(mixtures(mix)).costs()).containsExactly(1);
    // the first of the lightest: KL(N(1,2) ‖ N(0,1)) = ½ (2 − 1 + 1 − ln 2)
    assertThat(reducer("west", 2).reduce(mixtures(mix)).costs()[0])
        .isCloseTo(0.5 * (2 - Math.log(2)), within(1e-15));
  }

  /** A gate merges what is within it alone; Stone Soup's merge_threshold of 16 leaves two of these. */
  @Test
  void aGateKeepsFarComponentsApart() {
    Mix mix =
        new Mix(
            new double[] {0.25, 0.25, 0.5},
            new double[] {0, 3.9, 20},
            new double[] {1, 1, 1},
            true);
    MixtureReduction reduced = MixtureReduction.reducer(1).gate(16).reduce(mixtures(mix));
    assertThat(reduced.assignments()).containsExactly(0, 0, 1);
    assertThat(reduced.costs()[0]).isCloseTo(3.9 * 3.9, within(1e-14));
    assertThat(MixtureReduction.reducer(1).gate(15).reduce(mixtures(mix)).costs()).isEmpty();
  }

  /** The mixture of Stone Soup's test, reduced as there: weights below 1e-6 are pruned, and equal components merge. */
  @Test
  void lightComponentsAreDropped() {
    double[] weights = {1e-10, 0.2, 0.3, 1e-10, 0.5};
    for (boolean isFull : new boolean[] {false, true}) {
      Mix mix =
          new Mix(weights, new double[] {9, 1, 1, -9, 5}, new double[] {1, 2, 2, 1, 3}, isFull);
      List<Integer> left = new ArrayList<>();
      MixtureReduction reduced =
          MixtureReduction.reducer(1)
              .gate(4)
              .minWeight(1e-6)
              .progress(left::add)
              .reduce(mixtures(mix));
      assertThat(left).containsExactly(5, 4, 3, 2);
      assertThat(reduced.assignments()).containsExactly(-1, 0, 0, -1, 1);
      double sum = DoubleStream.of(weights).sum();
      assertThat(reduced.mixtures().weights())
          .containsExactly(new double[] {sum / 2, sum / 2}, within(1e-15));
      assertThat(means(reduced)).containsExactly(1, 5);
      assertThat(covariances(reduced)).containsExactly(2, 3);
      MixtureReduction capped = MixtureReduction.reducer(2).maxCost(0).cap().reduce(mixtures(mix));
      assertThat(capped.assignments()).containsExactly(-1, 0, 0, -1, 1);
      assertThat(capped.mixtures().weights())
          .containsExactly(new double[] {sum / 2, sum / 2}, within(1e-15));
      MixtureReduction one = MixtureReduction.reducer(3).minWeight(1).reduce(mixtures(mix));
      assertThat(one.assignments()).containsExactly(-1, -1, -1, -1, 0);
    }
    refusedAs(
        "minWeight must be in [0, 1], is -0.5", () -> MixtureReduction.reducer(1).minWeight(-0.5));
    assertThatIllegalArgumentException().isThrownBy(() -> MixtureReduction.reducer(1).gate(-1));
  }

  @Test
  void aReducerTellsItsSettings() {
    MixtureReduction.Reducer reducer = MixtureReduction.reducer(20);
    assertThat(reducer).hasToString("Reducer[to 20, runnalls]");
    assertThat(reducer.west().maxCost(0.5).minWeight(1e-6).cap())
        .hasToString("Reducer[to 20, west, maxCost 0.5, minWeight 1.0E-6, capped]");
    assertThat(reducer.gate(9).salmond()).hasToString("Reducer[to 20, salmond, maxCost 9.0]");
    assertThat(reducer.williams()).hasToString("Reducer[to 20, williams]");
    try (KlEngine engine = KlEngine.builder().threads(2).build()) {
      assertThat(reducer.engine(engine)).hasToString("Reducer[to 20, runnalls, " + engine + "]");
    }
  }

  @Test
  void shortArraysAreRefused() {
    Mix mix = random(20, 2, true, 2, new Random(1));
    Mixtures mixtures = Mixtures.of(mix.components(), mix.weights);
    MixtureReduction.Reducer reducer = MixtureReduction.reducer(8);
    double[] weights = new double[8];
    refusedAs(
        "covariances has 31 elements, but the reduced mixtures need 32",
        () -> reducer.reduce(mixtures, weights, new double[16], new double[31], new int[2]));
    refusedAs(
        "offsets has 1 elements, but the reduced mixtures need 2",
        () -> reducer.reduce(mixtures, weights, new double[16], new double[32], new int[1]));
    assertThat(weights).containsOnly(0);
  }

  /** What is reduced of mixtures whose weights have the sum 1 goes on as such; an intensity does not. */
  @Test
  void reducedMixturesAreMixtures() {
    Mix mix = random(12, 2, true, 1, new Random(3));
    Mixtures whole = Mixtures.of(mix.components(), mix.weights);
    Mixtures fewer = MixtureReduction.runnalls(whole, 4).mixtures();
    double bound = MixtureReduction.runnalls(whole, 4).totalCost();
    assertThat(MixtureKl.of(whole, fewer).monteCarlo(4000, 1).estimate(0)).isLessThan(bound);
    assertThat(MixtureReduction.runnalls(fewer, 2).mixtures().components().size()).isEqualTo(2);
    double[] twice = DoubleStream.of(mix.weights).map(w -> 2 * w).toArray();
    Mixtures intensity =
        MixtureReduction.runnalls(Mixtures.unnormalized(mix.components(), twice), 4).mixtures();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MixtureKl.of(whole, intensity))
        .withMessageMatching(
            "p: the sum of weights of mixture 0 is (2\\.0|1\\.99)\\d*; it must be 1; divide them by it");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> intensity.entropyLowerBound(0))
        .withMessageStartingWith("mixtures: the sum of weights of mixture 0 is ");
    Mixtures raw = Mixtures.unnormalized(mix.components(), mix.weights);
    assertThat(raw.entropyLowerBound(0)).containsExactly(whole.entropyLowerBound(0));
  }

  @Test
  void interruptionEndsIt() {
    Mix mix = random(3000, 2, true, 1, new Random(1));
    Mixtures mixture = Mixtures.unnormalized(mix.components(), mix.weights);
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> MixtureReduction.runnalls(mixture, 1))
        .isInstanceOf(CancellationException.class);
    assertThat(Thread.interrupted()).isTrue();
  }

  /** Of standard deviations, or of factors in one dimension, numbers that double's range does not leave room for, and weights, sizes and costs. */
  @ParameterizedTest
  @CsvSource({
    "STD, 0 0 0, 1 1 1, 1 1 1, 0, 1, 'size must be at least 1, is 0'",
    "STD, 0 0 0, 1 1 1, 1 1 1, 1, -1, 'maxCost must be >= 0, is -1.0'",
    "STD, 0 0 0, 1 1 1, 1 1 1, 1, NaN, 'maxCost must be >= 0, is NaN'",
    "STD, 0 0 0, 1 1 1, 0 0, 1, 1, weights has 2 elements but there are 3 components",
    "STD, 0 0 0, 1 1 1, 1 -0.5 1, 1, 1, weights[1] is -0.5; it must be finite and >= 0; is it a logarithm?",
    "STD, 0 0 0, 1 1 1, 1 0.5 NaN, 1, 1, weights[2] is NaN; it must be",
    "STD, 0 0 0, 1 1 1, Infinity 1 1, 1, 1, weights[0] is Infinity; it must be",
    "STD, 0 0 0, 1 1 1, 0 0 0, 1, 1, the weights are all 0: the mixture has no component",
    "STD, 0 0 0, 1 1 1, 1.7e308 1.7e308 1, 1, 1, the sum of weights is Infinity; it must be",
    "STD, 0 0 0, 1 1 1, 1e-160 0 0, 1, 1, 'the sum of weights is 1.0E-160; it must be in [2^-500, 2^500]'",
    "STD, 0 0 0, 0 0 0, 1 1 1, 1, 1, components are deterministic",
    "STD, 1 1 1, 1 1e-80 1, 1 1 1, 1, 1, 'components[1] has a variance outside [2^-500, 2^500]'",
    "STD, 1 1 1e80, 1 1 1, 1 1 1, 1, 1, 'components[2] has mean 1.0E80 in dimension 0, outside'",
    "SCALE_TRIL, 1e80 1 1, 1 1 1, 1 1 1, 1, 1, components[0] has a mean or a factor beyond 2^±250"
  })
  void badArguments(
      ScaleKind kind,
      String means,
      String scales,
      String weights,
      int size,
      double maxCost,
      String message) {
    ScalePolicy policy =
        kind == ScaleKind.STD ? ScalePolicy.DETERMINISTIC_IF_ZERO : ScalePolicy.STRICT;
    Gaussians components =
        Gaussians.of(kind, Batch.numbers(means), Batch.numbers(scales), 1, policy);
    refused(
        () ->
            MixtureReduction.runnalls(
                Mixtures.unnormalized(components, Batch.numbers(weights)), size, maxCost, _ -> {}),
        message);
  }

  /** A merged covariance that double does not hold is raised, as there is nothing else to merge; the cost is right to 16 digits by mpmath. */
  @Test
  void farComponents() {
    double[] mean = {0, 0, 1e7, 1e7};
    double[] narrow = {1e-4, 0, 0, 1e-4, 1e-4, 0, 0, 1e-4};
    Mixtures two =
        Mixtures.of(FullGaussians.ofCovariance(mean, narrow, 2), new double[] {0.5, 0.5});
    MixtureReduction one = MixtureReduction.runnalls(two, 1);
    assertThat(one.costs()[0]).isCloseTo(20.37669224666644, within(1e-13));
    assertThat(one.raised()).isEqualTo(1);
    assertThat(one.toString()).endsWith(", covariances raised: 1]");
    Gaussians merged = one.mixtures().components();
    assertThat(merged.mean(0)).containsExactly(5e6, 5e6);
    assertThat(merged.covariance(0))
        .containsExactly(new double[] {2.5e13, 2.5e13, 2.5e13, 2.5e13}, within(0.1));
    FullGaussians.ofCovariance(merged.mean(0), merged.covariance(0), 2); // is taken again
    MixtureReduction apart = MixtureReduction.runnalls(two, 1, 20, _ -> {});
    assertThat(apart.costs()).isEmpty();
    assertThat(apart.raised()).isZero();
    assertThat(apart.mixtures().components().covariance(0)).containsExactly(1e-4, 0, 0, 1e-4);
  }

  /** A merger that double does not hold is left out as long as there are others, though it would cost least. */
  @Test
  void farComponentsWait() {
    double[] mean = {0, 0, 1e7, 1e7, 10, 0, 10.05, 0};
    double[] covariance = new double[16];
    for (int i = 0; i < 4; i++) {
      covariance[4 * i] = covariance[4 * i + 3] = 1e-4;
    }
    double[] weights = {1e-3, 1e-3, 0.5, 0.5};
    Mixtures four = Mixtures.unnormalized(FullGaussians.ofCovariance(mean, covariance, 2), weights);
    MixtureReduction three = MixtureReduction.runnalls(four, 3);
    assertThat(three.assignments()).containsExactly(0, 1, 2, 2);
    assertThat(three.costs()).containsExactly(new double[] {0.5 * Math.log(7.25)}, within(1e-10));
    assertThat(three.raised()).isZero();
    assertThat(MixtureReduction.runnalls(four, 2).assignments()).containsExactly(0, 1, 0, 0);
    MixtureReduction one = MixtureReduction.runnalls(four, 1);
    assertThat(one.assignments()).containsExactly(0, 0, 0, 0);
    assertThat(one.mixtures().weights()).containsExactly(1.002);
  }

  /** 49 components near each other and one far: {@code ½ [ln|P| − .98 ln|P_near| − .02 ln|P_far|]} at last, whatever rounding does. */
  @Test
  void oneFarComponent() {
    int n = 50;
    double[] covariance = new double[4 * n];
    for (int i = 0; i < n; i++) {
      covariance[4 * i] = covariance[4 * i + 3] = 1e-4;
    }
    double[] weights = new double[n];
    Arrays.fill(weights, 1.0 / n);
    int raised = 0;
    for (int seed = 0; seed < 50; seed++) {
      Random random = new Random(seed);
      double[] mean = random.doubles(2 * n, -0.01, 0.01).toArray();
      mean[2 * n - 2] = mean[2 * n - 1] = 1e7;
      Gaussians all = FullGaussians.ofCovariance(mean, covariance, 2);
      MixtureReduction two = MixtureReduction.runnalls(Mixtures.of(all, weights), 2);
      double[] near = two.mixtures().components().covariance(0);
      double[] center = two.mixtures().components().mean(0);
      double det = near[0] * near[3] - near[1] * near[2];
      double x = 1e7 - center[0];
      double y = 1e7 - center[1];
      double a = 0.98 * near[0] + 0.02e-4;
      double b = 0.98 * near[1];
      double c = 0.98 * near[3] + 0.02e-4;
      double common = (a * c - b * b) + 0.0196 * (c * x * x - 2 * b * x * y + a * y * y);
      double expected = 0.5 * (Math.log(common) - 0.98 * Math.log(det) - 0.02 * Math.log(1e-8));
      MixtureReduction one = MixtureReduction.runnalls(Mixtures.of(all, weights), 1);
      assertThat(one.costs()[n - 2]).isCloseTo(expected, within(1e-11));
      assertThat(Arrays.copyOf(one.costs(), n - 2)).containsExactly(two.costs());
      Gaussians merged = one.mixtures().components();
      FullGaussians.ofCovariance(merged.mean(0), merged.covariance(0), 2); // is taken again
      raised += one.raised();
    }
    assertThat(raised).isPositive();
  }

  /** A component that is not merged is handed over as it was given, though its covariance is singular in double. */
  @Test
  void unmergedFactorsAreHandedOver() {
    double[] almost = {1, 0, 1, 1e-10, 2, 0, 2, 1e-10, 1, 0, 0, 1, 1, 0, 0, 1};
    double[] mean = {0, 0, 9, 9, 3, 0, 3, 0};
    Mixtures four =
        Mixtures.of(
            FullGaussians.ofScaleTril(mean, almost, 2), new double[] {0.25, 0.25, 0.25, 0.25});
    MixtureReduction reduced = MixtureReduction.runnalls(four, 3);
    assertThat(reduced.raised()).isZero();
    Gaussians left = reduced.mixtures().components();
    assertThat(left.scale(0)).containsExactly(1, 0, 1, 1e-10);
    assertThat(left.scale(1)).containsExactly(2, 0, 2, 1e-10);
    assertThat(left.scale(2)).containsExactly(1, 0, 0, 1);
    MixtureReduction one = MixtureReduction.runnalls(four, 1);
    assertThat(one.costs()).hasSize(3);
    assertThat(Arrays.stream(one.costs()).allMatch(Double::isFinite)).isTrue();
  }
}
