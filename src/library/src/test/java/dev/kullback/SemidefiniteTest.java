package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Covariances without full rank: taken by the Wasserstein distance, which needs no inverse, and refused by rank elsewhere. */
class SemidefiniteTest {
  /** Eigenvalues 0, 1 and 3. */
  private static final double[] SINGULAR = {1, 0, 1, 0, 1, 1, 1, 1, 2};

  private static final double[] UNIT = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  private static final double TO_UNIT = 5 - 2 * Math.sqrt(3);
  private static final Pattern ADDED = Pattern.compile("add (\\S+?)(·I| times its diagonal),");

  private static Gaussians of(ScaleKind kind, boolean isDouble, int d, double... matrix) {
    return of(kind, isDouble, new double[matrix.length / (kind.isFull() ? d : 1)], matrix, d);
  }

  private static Gaussians of(
      ScaleKind kind, boolean isDouble, double[] mean, double[] matrix, int d) {
    return isDouble
        ? Gaussians.of(kind, mean, matrix, d, ScalePolicy.SEMIDEFINITE)
        : Gaussians.of(
            kind, Batch.narrowed(mean), Batch.narrowed(matrix), d, ScalePolicy.SEMIDEFINITE);
  }

  private static KlEngine engine(Backend backend, Divergence divergence) {
    return KlEngine.builder().backend(backend).threads(2).divergence(divergence).build();
  }

  private static double square(Gaussians q, Gaussians p) {
    try (KlEngine engine = engine(Backend.SCALAR, Divergence.SQUARED_WASSERSTEIN_2)) {
      double forth = engine.pairwise(q, p, new double[1])[0];
      assertThat(engine.pairwise(p, q, new double[1])[0]).isEqualTo(forth);
      assertThat(forth).isNotNegative().isFinite();
      return forth;
    }
  }

  private static double[] times(double factor, double... x) {
    return Arrays.stream(x).map(v -> factor * v).toArray();
  }

  private static double[] concat(double[]... parts) {
    return Arrays.stream(parts).flatMapToDouble(Arrays::stream).toArray();
  }

  /** In every operation, by the closed form: rows Σ, 4Σ, 0 and I, columns the same. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void everyOperation(Backend backend) {
    double[] all = concat(SINGULAR, times(4, SINGULAR), new double[9], UNIT);
    double toUnit4 = 19 - 4 * (1 + Math.sqrt(3)); // of 4Σ: 16 + 3 − 2·2(1 + √3)
    double[] expected = {
      0, 4, 4, TO_UNIT, //
      4, 0, 16, toUnit4, //
      4, 16, 0, 3, //
      TO_UNIT, toUnit4, 3, 0
    };
    for (boolean isDouble : new boolean[] {false, true}) {
      Gaussians q = of(ScaleKind.COVARIANCE, isDouble, new double[12], all, 3);
      Gaussians p = of(ScaleKind.COVARIANCE, isDouble, 3, all);
      try (KlEngine engine = engine(backend, Divergence.SQUARED_WASSERSTEIN_2);
          KlEngine root = engine(backend, Divergence.WASSERSTEIN_2)) {
        check(engine.pairwise(q, p, new double[16]), expected);
        check(engine.pairwise(q, q, new double[16]), expected);
        check(
            root.pairwise(q, p, new double[16]), Arrays.stream(expected).map(Math::sqrt).toArray());
        double[] aligned = {4, 0, 3, TO_UNIT};
        check(engine.aligned(q, p.select(1, 1, 3, 0), new double[4]), aligned);
        double[] standard = {TO_UNIT, toUnit4, 3, 0};
        check(engine.toStandardNormal(q, new double[4]), standard);
        int[] rows = {2, 0};
        int[] columns = {3, 2};
        double[] pairs = new double[2];
        engine.pairs(q, rows, p, columns, pairs);
        check(pairs, new double[] {3, 4});
        Neighbors nearest = engine.nearest(q, p, 2);
        assertThat(nearest.indices()).containsExactly(0, 3, 1, 0, 2, 3, 3, 0);
        check(nearest.values(), new double[] {0, TO_UNIT, 0, 4, 0, 3, 0, TO_UNIT});
        Neighbors near = engine.search(q, p, Query.within(3.5));
        assertThat(near.indices()).containsExactly(0, 3, 1, 2, 3, 0, 2, 3);
        double[] sums = {8 + TO_UNIT, 20 + toUnit4, 23, TO_UNIT + toUnit4 + 3};
        check(engine.rowSum(q, p), sums);
        double[] tiles = new double[16];
        engine.forEachTile(
            q,
            p,
            tile -> {
              for (int i = 0; i < tile.rows(); i++) {
                for (int j = 0; j < tile.columns(); j++) {
                  tiles[(tile.rowOffset() + i) * 4 + tile.columnOffset() + j] = tile.value(i, j);
                }
              }
            });
        check(tiles, expected);
        q.prepare();
        engine.warmUp(q, p);
      }
    }
  }

  private static void check(double[] actual, double[] expected) {
    assertThat(actual).containsExactly(expected, within(1e-13));
  }

  /** W₂² of N(0, 0) to N(3, 4) is 9 + 4, however the Gaussians are stated, and of a σ of 0 in one dimension alone likewise. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void scalesOfZero(Backend backend) {
    double[] mean = {0, 0, 3, 0, 3, 1};
    double[] std = {0, 0, 2, 0, 0, 1};
    double[] squares = {0, 0, 4, 0, 0, 1};
    double[] expected = {0, 13, 11, 13, 0, 6, 11, 6, 0};
    double[] matrices = {0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1};
    double[] factors = {0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1};
    for (boolean isDouble : new boolean[] {false, true}) {
      Gaussians[] all = {
        of(ScaleKind.STD, isDouble, mean, std, 2),
        of(ScaleKind.VARIANCE, isDouble, mean, squares, 2),
        of(ScaleKind.COVARIANCE, isDouble, mean, matrices, 2),
        of(ScaleKind.SCALE_TRIL, isDouble, mean, factors, 2),
      };
      try (KlEngine engine = engine(backend, Divergence.SQUARED_WASSERSTEIN_2)) {
        for (Gaussians q : all) {
          for (Gaussians p : all) {
            assertThat(engine.pairwise(q, p, new double[9])).containsExactly(expected);
            assertThat(engine.nearest(q, p, 1).values()).containsExactly(0, 0, 0);
            double[] sums = {24, 19, 17};
            assertThat(engine.rowSum(q, p)).containsExactly(sums);
          }
          assertThat(engine.toStandardNormal(q, new double[3])).containsExactly(2, 11, 11);
          Gaussians normal = of(ScaleKind.LOG_VARIANCE, isDouble, new double[2], new double[2], 2);
          assertThat(engine.pairwise(q, normal, new double[3])).containsExactly(2, 11, 11);
          assertThat(q.select(2, 0).isDouble()).isEqualTo(isDouble);
          assertThat(engine.aligned(q.select(2, 0), q.select(1, 1), new double[2]))
              .containsExactly(6, 13);
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void manyDimensionsSomeOfThemZero(Backend backend) {
    int n = 37;
    int d = 19;
    Random random = new Random(3);
    double[] mean = random.doubles((long) n * d, -1, 1).toArray();
    double[] std = random.doubles((long) n * d, 0, 1).map(s -> s < 0.3 ? 0 : s).toArray();
    double[] expected = new double[n * n];
    for (int k = 0; k < expected.length * d; k++) {
      int i = k / d / n * d + k % d;
      int j = k / d % n * d + k % d;
      double m = (double) (float) mean[i] - (float) mean[j];
      double s = (double) (float) std[i] - (float) std[j];
      expected[k / d] += m * m + s * s;
    }
    for (boolean isDouble : new boolean[] {false, true}) {
      double[] narrow = new double[n * d];
      double[] scales = new double[n * d];
      Arrays.setAll(narrow, k -> (float) mean[k]);
      Arrays.setAll(scales, k -> (float) std[k]);
      Gaussians q = of(ScaleKind.STD, isDouble, narrow, scales, d);
      try (KlEngine engine = engine(backend, Divergence.SQUARED_WASSERSTEIN_2)) {
        assertThat(engine.pairwise(q, q, new double[n * n]))
            .containsExactly(expected, within(isDouble ? 1e-12 : 1e-4));
      }
    }
  }

  /** A deterministic batch has its convention for KL, and is what it is for the Wasserstein distance. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void deterministicBatches(Backend backend) {
    for (ScaleKind kind : new ScaleKind[] {ScaleKind.STD, ScaleKind.VARIANCE}) {
      Gaussians q =
          Gaussians.of(kind, new float[1], new float[1], 1, ScalePolicy.DETERMINISTIC_IF_ZERO);
      Gaussians p = DiagonalGaussians.ofVariance(new float[] {3}, new float[] {4}, 1);
      try (KlEngine engine = engine(backend, Divergence.SQUARED_WASSERSTEIN_2);
          KlEngine kl = engine(backend, Divergence.KL)) {
        assertThat(engine.pairwise(q, p)).containsExactly(13);
        assertThat(engine.pairwise(p, q)).containsExactly(13);
        assertThat(engine.aligned(q.select(0), p)).containsExactly(13);
        assertThat(engine.toStandardNormal(q)).containsExactly(1);
        assertThat(engine.nearest(q, p, 1).values()).containsExactly(13);
        assertThat(kl.pairwise(q, p)).containsExactly(0);
      }
    }
  }

  @Test
  void segments() {
    MemorySegment mean = MemorySegment.ofArray(new double[3]);
    MemorySegment matrix = MemorySegment.ofArray(Batch.narrowed(SINGULAR));
    Gaussians q =
        Gaussians.of(
            ScaleKind.COVARIANCE,
            mean,
            ValueLayout.JAVA_DOUBLE,
            matrix,
            ValueLayout.JAVA_FLOAT,
            3,
            ScalePolicy.SEMIDEFINITE);
    assertThat(square(q, of(ScaleKind.COVARIANCE, true, 3, UNIT)))
        .isCloseTo(TO_UNIT, within(1e-14));
  }

  @Test
  void exactDivergences() {
    for (ScaleKind kind : new ScaleKind[] {ScaleKind.STD, ScaleKind.VARIANCE}) {
      double scale = kind == ScaleKind.STD ? 2 : 4;
      ExactDivergence exact = ExactDivergence.of(Divergence.SQUARED_WASSERSTEIN_2, kind);
      double[] zero = new double[2];
      assertThat(exact.of(zero, zero, new double[] {3, 0}, new double[] {scale, 0})).isEqualTo(13);
      assertThat(exact.of(new float[1], new float[1], new float[] {3}, new float[] {(float) scale}))
          .isEqualTo(13);
      assertThat(ExactDivergence.of(Divergence.WASSERSTEIN_2, kind).of(zero, zero, zero, zero))
          .isZero();
      assertThatExceptionOfType(IllegalArgumentException.class)
          .isThrownBy(() -> ExactDivergence.of(Divergence.KL, kind).of(zero, zero, zero, zero));
    }
  }

  // --- closed forms

  private static double[] orthogonal(int d, Random random) {
    double[] q = random.doubles((long) d * d, -1, 1).toArray();
    for (int r = 0; r < d; r++) {
      for (int pass = 0; pass < 2; pass++) {
        for (int s = 0; s < r; s++) {
          double dot = 0;
          for (int h = 0; h < d; h++) {
            dot += q[r * d + h] * q[s * d + h];
          }
          for (int h = 0; h < d; h++) {
            q[r * d + h] -= dot * q[s * d + h];
          }
        }
      }
      double norm = 0;
      for (int h = 0; h < d; h++) {
        norm += q[r * d + h] * q[r * d + h];
      }
      for (int h = 0; h < d; h++) {
        q[r * d + h] /= Math.sqrt(norm);
      }
    }
    return q;
  }

  /** Returns {@code Qᵀ diag(v) Q}, symmetric. */
  private static double[] rotated(double[] q, double... v) {
    int d = v.length;
    double[] matrix = new double[d * d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double sum = 0;
        for (int k = 0; k < d; k++) {
          sum += v[k] * q[k * d + r] * q[k * d + c];
        }
        matrix[r * d + c] = matrix[c * d + r] = sum;
      }
    }
    return matrix;
  }

  /** Matrices of common axes: {@code Σ (√a − √b)²}, where many of both are 0. */
  @ParameterizedTest
  @EnumSource(
      value = ScaleKind.class,
      names = {"COVARIANCE", "SCALE_TRIL"})
  void commutingMatrices(ScaleKind kind) {
    for (int d = 2; d <= 33; d += d < 9 ? 1 : 6) {
      for (int trial = 0; trial < 20; trial++) {
        Random random = new Random(100L * d + trial);
        double[] axes = orthogonal(d, random);
        double[] a = random.doubles(d).map(v -> v < 0.4 ? 0 : Math.exp(4 * v)).toArray();
        double[] b = random.doubles(d).map(v -> v < 0.4 ? 0 : Math.exp(4 * v)).toArray();
        double expected = 0;
        for (int k = 0; k < d; k++) {
          expected += Math.pow(Math.sqrt(a[k]) - Math.sqrt(b[k]), 2);
        }
        Gaussians q = of(ScaleKind.COVARIANCE, true, d, rotated(axes, a));
        Gaussians p = of(ScaleKind.COVARIANCE, true, d, rotated(axes, b));
        if (kind == ScaleKind.SCALE_TRIL) { // the factors that were made are taken as they are
          q = of(kind, true, d, q.scale(0));
          p = of(kind, true, d, p.scale(0));
        }
        assertThat(square(q, p))
            .as("D = %d, trial %d", d, trial)
            .isCloseTo(expected, within(1e-12 * Math.max(1, expected)));
        assertThat(q.covariance(0)).containsExactly(rotated(axes, a), within(1e-12));
      }
    }
  }

  /** {@code uuᵀ} and {@code vvᵀ}: {@code ‖u‖² + ‖v‖² − 2|u·v|}, with a mean difference on top; Gelbrich's bound is attained. */
  @Test
  void matricesOfRankOne() {
    Random random = new Random(7);
    for (int trial = 0; trial < 200; trial++) {
      int d = 2 + trial % 12;
      double[] u = random.doubles(d, -1, 1).toArray();
      double[] v = random.doubles(d, -1, 1).toArray();
      double expected = 0;
      double dot = 0;
      for (int k = 0; k < d; k++) {
        expected += u[k] * u[k] + v[k] * v[k];
        dot += u[k] * v[k];
      }
      double[] mean = new double[d];
      mean[d - 1] = 2;
      Gaussians q = of(ScaleKind.COVARIANCE, true, d, outer(u));
      Gaussians p = of(ScaleKind.COVARIANCE, true, mean, outer(v), d);
      assertThat(square(q, p))
          .isCloseTo(expected - 2 * Math.abs(dot) + 4, within(1e-13 * (expected + 4)));
    }
  }

  private static double[] outer(double[] u) {
    int d = u.length;
    double[] matrix = new double[d * d];
    for (int k = 0; k < d * d; k++) {
      matrix[k] = u[k / d] * u[k % d];
    }
    return matrix;
  }

  /** Few samples: Σ to 4Σ is tr Σ, to itself 0, and to Σ(1 + δ)² it is δ² tr Σ, which does not cancel. */
  @Test
  void multiplesOfFewSamples() {
    for (int trial = 0; trial < 100; trial++) {
      Random random = new Random(trial);
      int d = 2 + trial % 20;
      double[] covariance = covariance(1 + random.nextInt(d), d, 1, random);
      double trace = 0;
      for (int h = 0; h < d; h++) {
        trace += covariance[h * (d + 1)];
      }
      Gaussians q = of(ScaleKind.COVARIANCE, true, d, covariance);
      assertThat(square(q, of(ScaleKind.COVARIANCE, true, d, times(4, covariance))))
          .isCloseTo(trace, within(1e-13 * trace));
      assertThat(square(q, of(ScaleKind.COVARIANCE, true, d, covariance))).isZero();
      double[] factor = q.scale(0);
      Gaussians given = of(ScaleKind.SCALE_TRIL, true, d, factor);
      assertThat(given.scale(0)).containsExactly(factor);
      for (double more : new double[] {1e-2, 1e-5, 1e-8}) {
        Gaussians p = of(ScaleKind.SCALE_TRIL, true, d, times(1 + more, factor));
        assertThat(square(given, p))
            .isCloseTo(more * more * trace, within(1e-6 * more * more * trace));
      }
    }
  }

  /** Next to no variance where there was none, to 30 digits by mpmath: {@code (1, 1)} is not at right angles to its direction. */
  @Test
  void nearASingularOne() {
    Gaussians q = of(ScaleKind.SCALE_TRIL, true, 2, 1, 0, 1, 0);
    assertThat(square(q, of(ScaleKind.SCALE_TRIL, true, 2, 1, 0, 1, 1e-6)))
        .isCloseTo(5.0000000000003125e-13, within(1e-27));
    assertThat(square(q, of(ScaleKind.SCALE_TRIL, true, 2, 1, 0, 1, 1e-3)))
        .isCloseTo(5.0000003124999609375e-7, within(1e-21));
  }

  /** A float32 covariance that was made a double one has the precision of float. */
  @Test
  void floatsThatAreDoubles() {
    for (int trial = 0; trial < 200; trial++) {
      Random random = new Random(trial);
      int d = 2 + trial % 9;
      double[] covariance = covariance(d - 1, d, 1, random);
      double[] narrow = new double[d * d];
      Arrays.setAll(narrow, k -> (float) covariance[k]);
      Gaussians q = of(ScaleKind.COVARIANCE, true, d, narrow);
      Gaussians p = of(ScaleKind.COVARIANCE, true, d, covariance);
      assertThat(square(q, p)).isCloseTo(0, within(1e-6));
    }
  }

  // --- what is singular

  /** Sample covariance of n samples, as NumPy computes it but for the order of a sum. */
  private static double[] covariance(int n, int d, double spread, Random random) {
    double[] x = new double[n * d];
    double[] unit = new double[d];
    Arrays.setAll(unit, h -> Math.exp(spread * random.nextGaussian()));
    double[] mean = new double[d];
    for (int k = 0; k < x.length; k++) {
      x[k] = unit[k % d] * (random.nextGaussian() + spread);
      mean[k % d] += x[k] / n;
    }
    double[] covariance = new double[d * d];
    for (int k = 0; k < d * d; k++) {
      double sum = 0;
      for (int i = 0; i < n; i++) {
        sum += (x[i * d + k / d] - mean[k / d]) * (x[i * d + k % d] - mean[k % d]);
      }
      covariance[k] = sum / Math.max(1, n - 1);
    }
    return covariance;
  }

  private static InvalidGaussianException rejected(boolean isDouble, double[] matrix, int d) {
    return catchThrowableOfType(
        InvalidGaussianException.class,
        () -> {
          if (isDouble) {
            FullGaussians.ofCovariance(new double[d], matrix, d);
          } else {
            FullGaussians.ofCovariance(new float[d], Batch.narrowed(matrix), d);
          }
        });
  }

  /** N samples of D ≥ N dimensions have the rank N − 1; what is advised to be added makes it D. */
  @Test
  void fewSamplesAreRefusedByRank() {
    for (int trial = 0; trial < 500; trial++) {
      for (boolean isDouble : new boolean[] {true, false}) {
        Random random = new Random(trial);
        int d = 2 + trial % 31;
        int n = Math.max(2, d - random.nextInt(1 + d / 2));
        double[] covariance = covariance(n, d, trial % 3, random);
        InvalidGaussianException e = rejected(isDouble, covariance, d);
        String what = "D = %d, N = %d, trial %d, double: %s".formatted(d, n, trial, isDouble);
        assertThat(e).as(what).isNotNull();
        assertThat(e.reason())
            .as(what)
            .startsWith(
                "has rank %d of %d (fewer samples than dimensions?): add 1e".formatted(n - 1, d))
            .endsWith(
                ", on which the result depends, or take more samples, shrinkage or a diagonal covariance; only the divergences wasserstein-2 and squared-wasserstein-2 need no inverse");
        assertThat(e).hasMessageEndingWith(" (ScalePolicy.SEMIDEFINITE takes it for them)");
        Matcher matcher = ADDED.matcher(e.reason());
        assertThat(matcher.find()).isTrue();
        for (int h = 0; h < d; h++) {
          double unit = matcher.group(2).equals("·I") ? 1 : covariance[h * (d + 1)];
          covariance[h * (d + 1)] += Double.parseDouble(matcher.group(1)) * unit;
        }
        assertThat(rejected(isDouble, covariance, d)).as(what).isNull();
      }
    }
  }

  /** What is to be added to variances of different units is a part of each. */
  @Test
  void variancesOfDifferentUnits() {
    double[] covariance = {1e-12, 1, 1, 1e12};
    InvalidGaussianException e = rejected(true, covariance, 2);
    assertThat(e.reason())
        .startsWith(
            "has rank 1 of 2 (fewer samples than dimensions?): add 1e-06 times its diagonal, on which");
    covariance[0] *= 1 + 1e-6;
    covariance[3] *= 1 + 1e-6;
    assertThat(rejected(true, covariance, 2)).isNull();
  }

  /** Full rank, though a direction has next to no variance: taken, and under either policy to the same bits. */
  @Test
  void illConditionedMatricesAreTaken() {
    for (int trial = 0; trial < 150; trial++) {
      Random random = new Random(trial);
      int d = 2 + trial % 31;
      for (double condition : new double[] {1e6, 1e12, 1e13, 1e14}) {
        boolean isDouble = condition > 1e6;
        double[] v = new double[d];
        for (int k = 0; k < d; k++) {
          v[k] =
              trial % 2 == 0 ? Math.pow(condition, -k / (d - 1.0)) : k < d - 1 ? 1 : 1 / condition;
        }
        double[] matrix = rotated(orthogonal(d, random), v);
        assertThat(rejected(isDouble, matrix, d))
            .as("D = %d, condition %.0e, trial %d", d, condition, trial)
            .isNull();
        double[] strict = FullGaussians.ofCovariance(new double[d], matrix, d).scale(0);
        assertThat(of(ScaleKind.COVARIANCE, true, d, matrix).scale(0)).containsExactly(strict);
      }
    }
  }

  @Test
  void negativeEigenvaluesAreRefused() {
    for (double[] matrix : new double[][] {{1, 2, 2, 1}, {0, 1e-3, 1e-3, 1}, {1, 1, 1, 1 - 1e-9}}) {
      assertThatExceptionOfType(InvalidGaussianException.class)
          .isThrownBy(() -> of(ScaleKind.COVARIANCE, true, 2, matrix))
          .withMessageContaining("covariance[0] (Gaussian 0) is not positive semidefinite: pivot ");
    }
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> of(ScaleKind.COVARIANCE, true, 1, -1))
        .withMessageContaining("is not positive semidefinite: pivot 0 is -1.0");
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> of(ScaleKind.STD, true, 2, 0, -1));
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> of(ScaleKind.PRECISION, true, 2, 0, 1));
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> of(ScaleKind.PRECISION_MATRIX, true, 2, 1, 1, 1, 1))
        .withMessageContaining(
            "precision[0] (Gaussian 0) has rank 1 of 2 (infinite variances): add 1e-06·I, on which the result depends");
  }

  /** What is below a 0 of the diagonal goes to the columns after it, where it makes the same covariance. */
  @Test
  void factorsWithZerosOnTheDiagonal() {
    double[] factor = {0, 0, 0, 3, 4, 0, 1, 0, 0};
    double[] covariance = {0, 0, 0, 0, 25, 3, 0, 3, 1};
    Gaussians q = of(ScaleKind.SCALE_TRIL, true, 3, factor);
    assertThat(q.covariance(0)).containsExactly(covariance, within(1e-14));
    assertThat(square(q, of(ScaleKind.COVARIANCE, true, 3, covariance))).isLessThan(1e-28);
    double[] packed = {0, 3, 4, 1, 0, 0};
    assertThat(of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, true, new double[3], packed, 3).scale(0))
        .containsExactly(q.scale(0));
  }

  /** Everything else refuses them, by argument, index and rank. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void otherDivergencesRefuseThem(Backend backend) {
    Gaussians good = of(ScaleKind.COVARIANCE, true, 3, concat(UNIT, UNIT));
    Gaussians bad = of(ScaleKind.COVARIANCE, true, 3, concat(UNIT, SINGULAR));
    Gaussians zero = of(ScaleKind.VARIANCE, true, 3, 1, 1, 1, 1, 0, 1);
    String full =
        "[1] (Gaussian 1) has rank 2 of 3 (fewer samples than dimensions?): add 1e-06·I, on which the result depends,"
            + " or take more samples, shrinkage or a diagonal covariance; only the divergences wasserstein-2 and squared-wasserstein-2 need no inverse";
    for (Divergence divergence :
        new Divergence[] {
          Divergence.KL,
          Divergence.REVERSE_KL,
          Divergence.JEFFREYS,
          Divergence.BHATTACHARYYA,
          Divergence.HELLINGER,
          Divergence.renyi(0.5),
          Divergence.chernoff(0.5)
        }) {
      if (backend == Backend.CUDA && !divergence.equals(Divergence.KL)) {
        continue;
      }
      try (KlEngine engine = engine(backend, divergence)) {
        assertThatExceptionOfType(InvalidGaussianException.class)
            .isThrownBy(() -> engine.pairwise(bad, good))
            .withMessage("q" + full);
        assertThatExceptionOfType(InvalidGaussianException.class)
            .isThrownBy(() -> engine.aligned(good, bad))
            .withMessage("p" + full);
        assertThatExceptionOfType(InvalidGaussianException.class)
            .isThrownBy(() -> engine.toStandardNormal(bad));
        assertThatExceptionOfType(InvalidGaussianException.class)
            .isThrownBy(() -> engine.nearest(good, zero, 1))
            .withMessageStartingWith(
                "p[1] (Gaussian 1) has rank 2 of 3 (std 0): add 1e-06·I, on which the result depends;");
        assertThatExceptionOfType(InvalidGaussianException.class)
            .isThrownBy(() -> engine.warmUp(zero, good));
        assertThat(engine.pairwise(bad.select(0), good.select(0))).containsExactly(0);
      }
    }
    bad.prepare(); // builds nothing that it cannot
    zero.prepare();
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> Mixtures.of(bad))
        .withMessageStartingWith("components[1] (Gaussian 1) has rank 2 of 3");
    try (KlIndex index = KlIndex.builder(3).build()) {
      assertThatExceptionOfType(InvalidGaussianException.class)
          .isThrownBy(() -> index.nearest(zero, 1))
          .withMessageContaining("[1] (Gaussian 1) has rank 2 of 3 (std 0)");
    }
  }

  @Test
  void ordinaryGaussiansAreAsUnderTheStrictPolicy() {
    Random random = new Random(1);
    double[] mean = random.doubles(12, -1, 1).toArray();
    double[] scale = random.doubles(12, 0.5, 1).toArray();
    for (ScaleKind kind :
        new ScaleKind[] {
          ScaleKind.STD, ScaleKind.VARIANCE, ScaleKind.LOG_VARIANCE, ScaleKind.PRECISION
        }) {
      try (KlEngine engine = engine(Backend.AUTO, Divergence.KL)) {
        Gaussians strict = Gaussians.of(kind, mean, scale, 3);
        assertThat(engine.pairwise(of(kind, true, mean, scale, 3), strict))
            .containsExactly(engine.pairwise(strict, strict));
      }
    }
  }
}
