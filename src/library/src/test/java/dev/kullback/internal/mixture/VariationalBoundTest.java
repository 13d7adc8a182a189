package dev.kullback.internal.mixture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The bound against the least over all forests. Some φ of least value has no cycle of components, as flow can be moved around one at no
 * cost until an element is 0. On a forest, the best φ has a closed form: all of a tree is given by one constant, and that by its mass.
 */
class VariationalBoundTest {
  /** Ten times what the javadoc promises, for rounding. */
  private static final double TOLERANCE = 1e-8;

  /** The over-relaxed step of an earlier iteration left a share of 1e-300 here, and was 15 % too high. */
  @Test
  void overshootingStep() {
    double[] pi = {0.95, 0.05};
    double[] omega = {0.8, 0.2};
    double[] d = new double[4];
    double[][] f = {{2.8, 1}, {1.6, 1.3}};
    double[][] g = {{3.7, 0.5}, {2.8, 1.6}};
    Arrays.setAll(d, k -> kl(f[k / 2][0], f[k / 2][1], g[k % 2][0], g[k % 2][1]));
    assertThat(least(pi, omega, d)).isBetween(1.43406331, 1.43406333);
    check(pi, omega, d);
  }

  @Test
  void smallMixtures() {
    checkMany(new Random(1), 2000, 3);
  }

  @Tag("long")
  @ParameterizedTest
  @ValueSource(longs = {2, 3, 4, 5})
  void moreSmallMixtures(long seed) {
    checkMany(new Random(seed), 30_000, 3);
    checkMany(new Random(seed), 100, 4);
  }

  /** Mixtures of tens of components, against the bounds of the paper's own iteration from both sides. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3})
  void largerMixtures(int kind) {
    Random random = new Random(6);
    for (int n = 0; n < 2; n++) {
      double[] pi = weights(random, 40);
      double[] omega = weights(random, 15 + 20 * (n % 2));
      double[] d = divergences(random, kind, 40, omega.length);
      checkBetweenPapers(pi, omega, d);
    }
  }

  /** Divergences of any magnitude, some infinite, and weights down to the least, beside which forests' flows are rounded to 0. */
  @Test
  void extremeNumbers() {
    Random random = new Random(7);
    for (int n = 0; n < 100; n++) {
      double[] pi = extremeWeights(random, 1 + n % 3);
      double[] omega = extremeWeights(random, 1 + random.nextInt(3));
      double[] d = new double[pi.length * omega.length];
      boolean isFar = random.nextBoolean();
      Arrays.setAll(
          d,
          _ ->
              random.nextInt(8) == 0
                  ? Double.POSITIVE_INFINITY
                  : Math.pow(10, random.nextDouble(-15, isFar ? 300 : 3)));
      checkBetweenPapers(pi, omega, d);
    }
  }

  /** Rows of the least weights spoil nothing for the others. */
  @Test
  void tiniestWeights() {
    double[] d = {0.5, 2, 3, 0.1, 1, 1, 4, 0.2};
    for (double tiny : new double[] {1e-300, 1e-306, 1e-308, 1e-309, Double.MIN_VALUE}) {
      for (double light : new double[] {1e-300, 1e-100, 1e-10}) {
        double[] pi = {1.0 / 3, 1.0 / 3, 1.0 / 3, tiny};
        double got = new VariationalBound(pi, new double[] {1, light}, d).compute();
        double[] three = {1.0 / 3, 1.0 / 3, 1.0 / 3};
        check(three, new double[] {1, light}, Arrays.copyOf(d, 6));
        double without =
            new VariationalBound(three, new double[] {1, light}, Arrays.copyOf(d, 6)).compute();
        assertThat(got).as("%s, %s", tiny, light).isCloseTo(without, within(2e-9));
      }
    }
  }

  private static void checkBetweenPapers(double[] pi, double[] omega, double[] d) {
    double[] bounds = papers(pi, omega, d);
    double got = new VariationalBound(pi, omega, d).compute();
    if (bounds[1] == Double.POSITIVE_INFINITY) {
      assertThat(got).isEqualTo(bounds[1]);
      return;
    }
    assertThat(got)
        .isBetween(
            bounds[0] - 1e-13 * Math.max(1, bounds[0]),
            bounds[1] + TOLERANCE * Math.max(1, bounds[1]));
  }

  private static void checkMany(Random random, int count, int most) {
    for (int n = 0; n < count; n++) {
      double[] pi = weights(random, 1 + random.nextInt(most));
      double[] omega = weights(random, 1 + random.nextInt(most));
      int kind = random.nextInt(4);
      omega = kind == 3 && omega.length == pi.length ? pi : omega;
      check(pi, omega, divergences(random, kind, pi.length, omega.length));
    }
  }

  private static void check(double[] pi, double[] omega, double[] d) {
    double least = least(pi, omega, d);
    double got = new VariationalBound(pi, omega, d).compute();
    if (least == Double.POSITIVE_INFINITY) {
      assertThat(got).isEqualTo(least);
      return;
    }
    assertThat(got)
        .as("%s %s %s", Arrays.toString(pi), Arrays.toString(omega), Arrays.toString(d))
        .isBetween(least - 1e-13 * Math.max(1, least), least + TOLERANCE * Math.max(1, least));
  }

  // --- inputs

  private static double[] weights(Random random, int n) {
    double[] weights = new double[n];
    int kind = random.nextInt(4);
    Arrays.setAll(
        weights,
        _ ->
            switch (kind) {
              case 0 -> 0.05 + 0.05 * random.nextInt(19);
              case 1 -> Math.pow(10, -12 * random.nextDouble());
              case 2 -> 1;
              default -> random.nextDouble(1e-3, 1);
            });
    return divided(weights);
  }

  private static double[] extremeWeights(Random random, int n) {
    return divided(random.doubles(n).map(u -> Math.pow(10, -323 * u)).toArray());
  }

  private static double[] divided(double[] weights) {
    double sum = Arrays.stream(weights).sum();
    return Arrays.stream(weights).map(w -> w / sum).toArray();
  }

  /** Divergences of one-dimensional components: round numbers, any, hardly different ones, and those of nearly equal mixtures. */
  private static double[] divergences(Random random, int kind, int rows, int columns) {
    double spread = Math.pow(10, random.nextDouble(-3, 2));
    double[][] f = components(random, kind, rows, spread);
    double[][] g = components(random, kind, columns, spread);
    for (int i = 0; kind == 3 && i < Math.min(rows, columns); i++) {
      g[i][0] = f[i][0] * (1 + 1e-6 * random.nextGaussian());
      g[i][1] = f[i][1] * (1 + 1e-6 * random.nextGaussian());
    }
    double[] d = new double[rows * columns];
    Arrays.setAll(
        d, k -> kl(f[k / columns][0], f[k / columns][1], g[k % columns][0], g[k % columns][1]));
    return d;
  }

  private static double[][] components(Random random, int kind, int n, double spread) {
    double[][] components = new double[n][];
    Arrays.setAll(
        components,
        _ ->
            switch (kind) {
              case 0 -> new double[] {0.1 * random.nextInt(50), 0.5 + 0.1 * random.nextInt(15)};
              case 1 ->
                  new double[] {
                    spread * random.nextGaussian(), Math.exp(0.5 * random.nextGaussian())
                  };
              default ->
                  new double[] {
                    spread * random.nextGaussian(), Math.exp(1e-3 * random.nextGaussian())
                  };
            });
    return components;
  }

  private static double kl(double mean, double std, double other, double otherStd) {
    double z = (mean - other) / otherStd;
    double ratio = std / otherStd;
    return Math.max(0, 0.5 * (z * z + ratio * ratio - 1) - Math.log(ratio));
  }

  // --- references

  /** Returns the least J over all forests in which each row has an edge. */
  private static double least(double[] pi, double[] omega, double[] d) {
    int edges = d.length;
    int most = pi.length + omega.length - 1;
    double least = Double.POSITIVE_INFINITY;
    for (int set = 1; set < 1 << edges; set++) {
      if (Integer.bitCount(set) <= most) {
        least = Math.min(least, new Forest(pi, omega, d, set).value());
      }
    }
    return least;
  }

  /** Bounds from below and above, by the paper's iteration. */
  private static double[] papers(double[] pi, double[] omega, double[] d) {
    double[] shares = new double[d.length];
    Arrays.setAll(shares, k -> omega[k % omega.length]);
    double below = Double.NEGATIVE_INFINITY;
    double above = Double.POSITIVE_INFINITY;
    double[] logs = new double[omega.length];
    for (int n = 0; n < 1000; n++) {
      for (int a = 0; a < pi.length; a++) {
        int row = a * omega.length;
        double[] exponents = new double[omega.length];
        Arrays.setAll(
            exponents,
            b ->
                shares[row + b] == 0
                    ? Double.NEGATIVE_INFINITY
                    : Math.log(shares[row + b]) - d[row + b] - logs[b]);
        double most = Arrays.stream(exponents).max().orElseThrow();
        if (most == Double.NEGATIVE_INFINITY) {
          return new double[] {Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY};
        }
        double sum = Arrays.stream(exponents).map(x -> Math.exp(x - most)).sum();
        for (int b = 0; b < omega.length; b++) {
          shares[row + b] = Math.exp(exponents[b] - most) / sum;
        }
      }
      double[] phi = new double[d.length];
      Arrays.setAll(phi, k -> pi[k / omega.length] * shares[k]);
      above = Math.min(above, value(omega, d, phi, logs));
      double dual = 0;
      for (int a = 0; a < pi.length; a++) {
        double min = Double.POSITIVE_INFINITY;
        for (int b = 0; b < omega.length; b++) {
          min = Math.min(min, d[a * omega.length + b] + logs[b]);
        }
        dual += pi[a] * min;
      }
      below = Math.max(below, dual);
    }
    return new double[] {below, above};
  }

  /** Returns J, and sets {@code ln(Φ_b/ω_b)}. */
  private static double value(double[] omega, double[] d, double[] phi, double[] logs) {
    double[] sums = new double[omega.length];
    double value = 0;
    for (int k = 0; k < d.length; k++) {
      sums[k % omega.length] += phi[k];
      value += phi[k] > 0 ? phi[k] * d[k] : 0;
    }
    for (int b = 0; b < omega.length; b++) {
      logs[b] = Math.log(Math.max(sums[b], Double.MIN_NORMAL)) - Math.log(omega[b]);
      value += sums[b] > 0 ? sums[b] * logs[b] : 0;
    }
    return value;
  }

  /** A set of edges from rows to columns: bit k is that of {@code D_k}. */
  private record Forest(double[] pi, double[] omega, double[] d, int set) {
    private boolean has(int k) {
      return (set >> k & 1) != 0;
    }

    private int column(int k) {
      return pi.length + k % omega.length;
    }

    private int row(int k) {
      return k / omega.length;
    }

    /** Returns J at the best φ of these edges, or +∞ if there is none or if it has a cycle or a negative flow. */
    double value() {
      int[] tree = trees();
      if (tree.length == 0) {
        return Double.POSITIVE_INFINITY;
      }
      double[] balance = Arrays.copyOf(pi, pi.length + omega.length);
      double[] offsets = offsets(tree);
      for (int t = 0; t < tree.length; t++) {
        double mass = 0;
        double most = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < tree.length; i++) {
          if (tree[i] == t && i < pi.length) {
            mass += pi[i];
          } else if (tree[i] == t) {
            most = Math.max(most, offsets[i] + Math.log(omega[i - pi.length]));
          }
        }
        double sum = 0;
        for (int pass = 0; pass < 2; pass++) {
          for (int i = pi.length; i < tree.length; i++) {
            if (tree[i] == t) {
              double part = Math.exp(offsets[i] + Math.log(omega[i - pi.length]) - most);
              balance[i] = mass * (part / sum);
              sum += pass == 0 ? part : 0;
            }
          }
        }
      }
      double[] phi = flows(balance);
      return phi.length == 0
          ? Double.POSITIVE_INFINITY
          : VariationalBoundTest.value(omega, d, phi, new double[omega.length]);
    }

    /** Numbers of the trees of rows and columns; empty if there is a cycle, an infinite edge, or a row without an edge. */
    private int[] trees() {
      for (int a = 0; a < pi.length; a++) {
        if ((set >> a * omega.length & (1 << omega.length) - 1) == 0) {
          return new int[0];
        }
      }
      int[] tree = new int[pi.length + omega.length];
      Arrays.setAll(tree, i -> i);
      for (int k = 0; k < d.length; k++) {
        if (has(k)) {
          int a = tree[row(k)];
          int b = tree[column(k)];
          if (a == b || d[k] == Double.POSITIVE_INFINITY) {
            return new int[0];
          }
          Arrays.setAll(tree, i -> tree[i] == b ? a : tree[i]);
        }
      }
      return tree;
    }

    /** Returns λ_b, and {@code D_ab + λ_b} of the edges of a, but for a constant of each tree. */
    private double[] offsets(int[] tree) {
      double[] offsets = new double[tree.length];
      boolean[] isSet = new boolean[tree.length];
      for (int i = 0; i < tree.length; i++) {
        isSet[i] = tree[i] == i;
      }
      for (int n = 0; n < tree.length; n++) {
        for (int k = 0; k < d.length; k++) {
          if (has(k) && isSet[row(k)] != isSet[column(k)]) {
            if (isSet[row(k)]) {
              offsets[column(k)] = offsets[row(k)] - d[k];
            } else {
              offsets[row(k)] = offsets[column(k)] + d[k];
            }
            isSet[row(k)] = isSet[column(k)] = true;
          }
        }
      }
      return offsets;
    }

    /** Returns φ of given sums, leaf by leaf; empty if an element is negative beyond rounding. */
    private double[] flows(double[] balance) {
      double[] phi = new double[d.length];
      for (int left = set; left != 0; ) {
        for (int i = 0; i < balance.length; i++) {
          int degree = 0;
          int edge = 0;
          for (int k = 0; k < d.length; k++) {
            if ((left >> k & 1) != 0 && (row(k) == i || column(k) == i)) {
              degree++;
              edge = k;
            }
          }
          if (degree == 1) {
            if (balance[i] < -1e-14) {
              return new double[0];
            }
            phi[edge] = Math.max(0, balance[i]);
            balance[row(edge) == i ? column(edge) : row(edge)] -= balance[i];
            left &= ~(1 << edge);
          }
        }
      }
      return phi;
    }
  }
}
