package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.FullOracle;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Batches of full covariance: which arguments they accept and reject, and which results are exact. */
@Tag("device")
class FullGaussiansTest {
  private static final int D = 4;

  /** tril_indices, row-major: the k-th element of a packed factor is at row r and column c. */
  @Test
  void packedOrder() {
    FullBatch tril = FullBatch.random(true, 3, D, 100, 0, new Random(1));
    double[] packed = new double[3 * D * (D + 1) / 2];
    double[] logs = new double[packed.length];
    int k = 0;
    for (int i = 0; i < 3; i++) {
      for (int r = 0; r < D; r++) {
        for (int c = 0; c <= r; c++, k++) {
          packed[k] = tril.matrix()[(i * D + r) * D + c];
          logs[k] = r == c ? Math.log(packed[k]) : packed[k];
        }
      }
    }
    FullGaussians q = tril.gaussians();
    FullGaussians plain =
        (FullGaussians) Gaussians.of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, tril.mean(), packed, D);
    assertThat(plain.batch.scaleTril()).containsExactly(q.batch.scaleTril());
    FullGaussians log = FullGaussians.ofPackedScaleTril(tril.mean(), logs, D);
    assertThat(log.batch.scaleTril()).containsExactly(q.batch.scaleTril(), offset(1e-15));
    assertThat(
            ((FullGaussians) Gaussians.of(ScaleKind.PACKED_SCALE_TRIL, tril.mean(), logs, D))
                .batch.scaleTril())
        .containsExactly(log.batch.scaleTril());
  }

  @Test
  void anythingAboveADiagonalIsRefusedOrIgnored() {
    for (boolean isDouble : new boolean[] {false, true}) {
      FullBatch batch = FullBatch.random(isDouble, 3, D, 100, 0, new Random(1));
      double[] factor = batch.gaussians().batch.scaleTril();
      double[] all = batch.matrix().clone();
      for (double above : new double[] {1e-30, -7, Double.NaN, Double.NEGATIVE_INFINITY}) {
        for (int k = 0; k < all.length; k++) {
          int r = k / D % D;
          if (r >= k % D) {
            continue;
          }
          all[k] = above; // from here on ever more
          double[] one = batch.matrix().clone();
          one[k] = above;
          String place =
              "scaleTril[%d][%d][%d] (Gaussian %1$d, row %2$d, column %3$d) is %s: not lower triangular"
                  .formatted(k / D / D, r, k % D, isDouble ? "" + above : "" + (float) above);
          rejects(place, () -> factors(ScaleKind.SCALE_TRIL, batch, one));
          assertThat(factors(ScaleKind.SCALE_TRIL_IGNORING_UPPER, batch, one).batch.scaleTril())
              .containsExactly(factor);
        }
        rejects("(Gaussian 0, row 0, column 1)", () -> factors(ScaleKind.SCALE_TRIL, batch, all));
        assertThat(factors(ScaleKind.SCALE_TRIL_IGNORING_UPPER, batch, all).batch.scaleTril())
            .containsExactly(factor);
      }
      Arrays.setAll(all, k -> k / D % D < k % D ? -0.0 : batch.matrix()[k]);
      assertThat(factors(ScaleKind.SCALE_TRIL, batch, all).batch.scaleTril())
          .containsExactly(factor);
    }
  }

  /** Covariances and upper factors are told what they may be; ignoring what is above the diagonal excuses nothing below it. */
  @Test
  void noFactors() {
    double[] mean = new double[4];
    double[] covariance = {1, 0, 0, 1, 2, 1, 1, 2};
    String advice =
        "; is it a covariance (ofCovariance), or an upper factor? Transpose one of a covariance, such as R of a QR factorization;"
            + " one of a precision, such as scikit-learn's precisions_cholesky_, is ScaleKind.PRECISION_CHOLESKY."
            + " ScaleKind.SCALE_TRIL_IGNORING_UPPER does not look above the diagonal";
    rejects(
        "scaleTril[1][0][1] (Gaussian 1, row 0, column 1) is 1.0: not lower triangular" + advice,
        () -> FullGaussians.ofScaleTril(mean, covariance, 2));
    rejects(
        "(Gaussian 1, row 0, column 1) is 1.0: not lower triangular" + advice,
        () -> Gaussians.of(ScaleKind.SCALE_TRIL, mean, covariance, 2, ScalePolicy.STRICT));
    rejects(
        "(Gaussian 0, row 0, column 1) is 1.0: not lower triangular", // scikit-learn's
        () -> FullGaussians.ofScaleTril(new float[2], new float[] {2, 1, 0, 0.5f}, 2));
    MemorySegment means = MemorySegment.ofArray(mean);
    MemorySegment zero = MemorySegment.ofArray(new double[] {1, 9, 0, 1, 2, 9, 1, -0.0});
    rejects(
        "scaleTril[1][1][1] (Gaussian 1, row 1, column 1) is -0.0; a diagonal element",
        () ->
            Gaussians.of(
                ScaleKind.SCALE_TRIL_IGNORING_UPPER,
                means,
                ValueLayout.JAVA_DOUBLE,
                zero,
                ValueLayout.JAVA_DOUBLE,
                2,
                ScalePolicy.STRICT));
    float[] garbage = {2, 7, 1, 3};
    double[] wide = {2, Double.NaN, 1, 3};
    assertThat(
            ((FullGaussians)
                    Gaussians.of(ScaleKind.SCALE_TRIL_IGNORING_UPPER, new float[2], garbage, 2))
                .batch.scaleTril())
        .isEqualTo(
            ((FullGaussians)
                    Gaussians.of(ScaleKind.SCALE_TRIL_IGNORING_UPPER, new double[2], wide, 2))
                .batch.scaleTril())
        .contains(2, 1, 3);
  }

  private static FullGaussians factors(ScaleKind kind, FullBatch of, double[] matrix) {
    return (FullGaussians)
        (of.isDouble()
            ? Gaussians.of(kind, of.mean(), matrix, D)
            : Gaussians.of(kind, Batch.narrowed(of.mean()), Batch.narrowed(matrix), D));
  }

  @Test
  void argumentsAreCopied() {
    FullBatch batch = FullBatch.random(false, 3, D, 100, 0, new Random(1));
    float[] mean = Batch.narrowed(batch.mean());
    float[] tril = Batch.narrowed(batch.matrix());
    FullGaussians q = FullGaussians.ofScaleTril(mean, tril, D);
    Arrays.fill(tril, 7);
    Arrays.fill(mean, 7);
    assertThat(q.batch.mean()).doesNotContain(7);
    assertThat(q.batch.scaleTril()).containsExactly(batch.gaussians().batch.scaleTril());
  }

  @ParameterizedTest
  @CsvSource({
    "SCALE_TRIL, 2, 0 0 NaN 0, 1 0 0 1 1 0 0 1, 'mean[1][0] (Gaussian 1, dimension 0) is NaN; it must be finite'",
    "SCALE_TRIL, 2, 0 0 0 0, 1 0 0 1 1 0 Infinity 1, 'scaleTril[1][1][0] (Gaussian 1, row 1, column 0) is Infinity; it must be finite'",
    "SCALE_TRIL, 2, 0 0 0 0, 1 0 0 -Infinity 1 0 0 1, 'scaleTril[0][1][1] (Gaussian 0, row 1, column 1) is -Infinity; a diagonal element, it must be finite and not 0'",
    "SCALE_TRIL, 2, 0 0, 0 0 0 0, 'scaleTril[0][0][0] (Gaussian 0, row 0, column 0) is 0.0; a diagonal element, it must be finite and not 0: the matrix is singular; a small positive number there mends it'",
    "PACKED_SCALE_TRIL, 2, 0 0 0 0, 0 0 0 0 0 800, 'packed[1][2] (Gaussian 1, row 1, column 1) is 800.0'",
    "PACKED_SCALE_TRIL, 2, 0 0 0 0, 0 0 0 0 NaN 0, 'packed[1][1] (Gaussian 1, row 1, column 0) is NaN'",
    "PLAIN_PACKED_SCALE_TRIL, 2, 0 0 0 0, 1 0 1 1 0 0, 'packed[1][2] (Gaussian 1, row 1, column 1) is 0.0'",
    "COVARIANCE, 2, 0 0 0 0, 1 0 0 1 1 2 2 1, 'covariance[1] (Gaussian 1) is not positive definite: pivot 1 is -3.0'",
    "PRECISION_MATRIX, 2, 0 0 0 0, 1 0 0 1 1 2 2 1, 'precision[1] (Gaussian 1) is not positive definite: pivot 0 is -3.0'",
    "COVARIANCE, 2, 0 0 0 0, 1 .2 .1 1 1 0 0 1, 'covariance[0] (Gaussian 0) is not symmetric: [1][0] is 0.1 but [0][1] is 0.2'",
    "COVARIANCE, 2, 0 0 0 0, 1 NaN NaN 1 1 0 0 1, 'covariance[0][0][1] (Gaussian 0, row 0, column 1) is NaN'",
    "COVARIANCE, 2, 0 0 0 0, 1 NaN 0 1 1 0 0 1, 'covariance[0][0][1] (Gaussian 0, row 0, column 1) is NaN'",
    "SCALE_TRIL, 0, 0 0 0 0, 1 0 0 1 1 0 0 1, dimension must be at least 1",
    "SCALE_TRIL, 3, 0 0 0 0, 1 0 0 1 1 0 0 1, 'mean has 4 elements, which is not a positive multiple of the dimension 3'",
    "SCALE_TRIL, 2, 0 0 0 0, 0 0, 'mean has 4 elements, [2, 2], but scaleTril has 2; it must be [2, D, D], 4 elements each, or one for all'",
    "PACKED_SCALE_TRIL, 2, 0 0 0 0, 1 0 0 1 1 0 0 1, 'mean has 4 elements, [2, 2], but packed has 8; it must be [2, D(D+1)/2], 3 elements each, or one for all'"
  })
  void errorsNameThePlace(ScaleKind kind, int d, String mean, String matrix, String message) {
    rejects(message, () -> Gaussians.of(kind, Batch.numbers(mean), Batch.numbers(matrix), d));
    rejects(
        message,
        () ->
            Gaussians.of(
                kind,
                Batch.narrowed(Batch.numbers(mean)),
                Batch.narrowed(Batch.numbers(matrix)),
                d));
  }

  private static void rejects(String message, ThrowingCallable call) {
    refused(call, message);
  }

  /** Of a pair that rounding made different, the mean counts. */
  @Test
  void roundedSymmetry() {
    float[] covariance = {2, 0.3f, Math.nextUp(0.3f), 1};
    FullGaussians q = FullGaussians.ofCovariance(new float[2], covariance, 2);
    double mean = 0.5 * ((double) covariance[1] + covariance[2]);
    double expected = mean / Math.sqrt(2);
    assertThat(q.batch.scaleTril()[1]).isEqualTo(expected, offset(1e-16));
    float a = 0.3f;
    double[] widened = {1, a, Math.nextUp(a), 1};
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] kl =
          engine.toStandardNormal(
              FullGaussians.ofCovariance(new double[2], widened, 2), new double[1]);
      double c = 0.5 * (widened[1] + widened[2]);
      assertThat(kl[0])
          .isEqualTo(-0.5 * Math.log1p(-c * c), offset(1e-15))
          .isEqualTo(0.04715534857807, offset(1e-14));
    }
  }

  /** Asserts that matrices that are not quite symmetric make the Gaussians of their means, to the promised accuracy. */
  private static void checkMean(double[] mean, double[] matrix, int d) {
    for (FullBatch.Kind kind :
        new FullBatch.Kind[] {FullBatch.Kind.COVARIANCE, FullBatch.Kind.PRECISION}) {
      FullBatch q = new FullBatch(kind, true, mean, matrix, d);
      double[] unit = new double[d * d];
      for (int k = 0; k < d; k++) {
        unit[k * d + k] = 1;
      }
      FullBatch p = new FullBatch(FullBatch.Kind.SCALE_TRIL, true, new double[d], unit, d);
      double[] expected = FullOracle.pairwise(q, p);
      try (KlEngine engine = KlEngine.builder().build()) {
        double[] kl = engine.pairwise(q.gaussians(), p.gaussians(), new double[q.size()]);
        for (int i = 0; i < kl.length; i++) {
          assertThat(Check.Precision.DOUBLE.error(expected[i], kl[i])).isLessThan(1e-12);
        }
      }
    }
  }

  /** The mean is not rounded: between ill-conditioned matrices, a rounding of an element would be seen. */
  @Test
  void theMeanIsExact() {
    Random random = new Random(3);
    for (int d : new int[] {2, 3, 8}) {
      FullBatch batch = FullBatch.random(true, 9, d, 1e10, 0, random).as(FullBatch.Kind.COVARIANCE);
      double[] matrix = batch.matrix().clone();
      for (int k = 0; k < matrix.length; k++) {
        int i = k / d / d * d * d;
        int r = k / d % d;
        int c = k % d;
        double scale = Math.sqrt(matrix[i + r * d + r] * matrix[i + c * d + c]);
        double part = r == c ? 0 : 9e-13 * scale * random.nextDouble();
        matrix[k] += r < c ? part : -part * random.nextDouble();
      }
      checkMean(batch.mean(), matrix, d);
    }
    // what an element of the mean lies between has no bit for the half
    double c = 1 - 0x1p-30;
    double[] half = {1, c, Math.nextDown(c), 1};
    checkMean(new double[2], half, 2);
    double[] inverted = {1, -c, -Math.nextUp(c), 1};
    checkMean(new double[2], inverted, 2);
  }

  /** Any magnitude: sums of two elements may overflow or lose bits, their mean does not. */
  @Test
  void meansOfAnyMagnitude() {
    double[] expected =
        FullGaussians.ofCovariance(new double[2], new double[] {1.5, 1 + 1e-7, 1, 1.25}, 2)
            .batch
            .scaleTril();
    for (int exponent : new int[] {1022, 600, -600, -960}) {
      double scale = Math.scalb(1.0, exponent);
      double[] matrix = {1.5 * scale, (1 + 1e-7) * scale, scale, 1.25 * scale};
      double[] factor = FullGaussians.ofCovariance(new double[2], matrix, 2).batch.scaleTril();
      for (int k = 0; k < 3; k++) {
        assertThat(Math.scalb(factor[k], -exponent / 2)).isEqualTo(expected[k]);
      }
    }
    double[] uneven = {1e300, 1 + 1e-7, 1, 1e-299};
    assertThat(FullGaussians.ofCovariance(new double[2], uneven, 2).batch.scaleTril()[1])
        .isEqualTo((1 + 5e-8) / 1e150, offset(1e-165));
  }

  /** The limit is relative to the diagonal, 1e-6 for double, and 1e-5 for float. */
  @Test
  void theMostAsymmetry() {
    double[] mean = new double[2];
    for (double[] at : new double[][] {{1, 1}, {1e8, 1e-4}, {1e-200, 1e-180}, {4e-30, 1e30}}) {
      double scale = Math.sqrt(at[0]) * Math.sqrt(at[1]);
      for (double part : new double[] {0, 0.3, -0.6}) {
        double[] close = {at[0], part * scale, (part + 0.999e-6) * scale, at[1]};
        FullGaussians.ofCovariance(mean, close, 2);
        Gaussians.of(ScaleKind.PRECISION_MATRIX, mean, close, 2);
        double[] apart = {at[0], part * scale, (part - 1.002e-6) * scale, at[1]};
        rejects(
            "a difference of 1.002e-06 √([1][1]·[0][0]); up to 1e-06 passes for rounding",
            () -> FullGaussians.ofCovariance(mean, apart, 2));
        rejects(
            "a difference of 1.002e-06 √([1][1]·[0][0]); up to 1e-06 passes for rounding",
            () -> Gaussians.of(ScaleKind.PRECISION_MATRIX, mean, apart, 2));
      }
    }
    FullGaussians.ofCovariance(new float[2], new float[] {4, 1, 1 + 1.99e-5f, 1}, 2);
    rejects(
        "precision[0] (Gaussian 0) is not symmetric: [1][0] is 1.0000205 but [0][1] is 1.0, a difference of 1.025e-05"
            + " √([1][1]·[0][0]); up to 1e-05 passes for rounding: if it is that, give (C + Cᵀ)/2",
        () ->
            Gaussians.of(
                ScaleKind.PRECISION_MATRIX, new float[2], new float[] {4, 1, 1 + 2.05e-5f, 1}, 2));
    double[] scipy = {.8, .2, .1, 1.4};
    rejects("a difference of 0.09449 √", () -> FullGaussians.ofCovariance(mean, scipy, 2));
    rejects(
        "a difference of 0.09449 √",
        () -> FullGaussians.ofCovariance(new float[2], Batch.narrowed(scipy), 2));
    rejects(
        "a difference of Infinity √",
        () -> FullGaussians.ofCovariance(mean, new double[] {0, 1e-9, 0, 1}, 2));
    double most = Double.MAX_VALUE;
    rejects(
        "not symmetric",
        () -> FullGaussians.ofCovariance(mean, new double[] {most, most, -most, most}, 2));
  }

  /** KL is 0 for the same object, equal copies, and equal parameters given otherwise, of any magnitude. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void equalParametersGiveZero(Backend backend) {
    try (KlEngine engine = Engines.on(backend)) {
      for (boolean isDouble : new boolean[] {false, true}) {
        for (int d : new int[] {1, 2, 5, 33}) {
          for (double condition : new double[] {1, 1e6}) {
            FullBatch batch = FullBatch.random(isDouble, 11, d, condition, 100, new Random(d));
            for (FullBatch.Kind kind :
                new FullBatch.Kind[] {FullBatch.Kind.SCALE_TRIL, FullBatch.Kind.PACKED_LOG}) {
              FullGaussians q = batch.as(kind).gaussians();
              assertZeroDiagonal(engine, q, q);
              assertZeroDiagonal(engine, q, batch.as(kind).gaussians());
            }
            assertZeroDiagonal(
                engine, batch.gaussians(), batch.as(FullBatch.Kind.PACKED).gaussians());
          }
        }
        for (double scale : new double[] {1e-45, 1e-20, 1e20, 1e38}) {
          for (double mean : new double[] {0, 1e-30, 1e38}) {
            double[] tril = {scale, 0, -2 * scale, scale};
            FullBatch b =
                new FullBatch(
                    FullBatch.Kind.SCALE_TRIL, isDouble, new double[] {mean, -mean}, tril, 2);
            assertZeroDiagonal(engine, b.gaussians(), b.gaussians());
          }
        }
      }
      double[] steep = {1, 0, 1e300, 1e-300};
      FullGaussians a = FullGaussians.ofScaleTril(new double[2], steep, 2);
      assertZeroDiagonal(engine, a, FullGaussians.ofScaleTril(new double[2], steep, 2));
    }
  }

  /** A diagonal batch equals the full one that is given the same numbers. */
  @ParameterizedTest
  @EnumSource
  void equalToDiagonalOfEveryKind(Batch.Kind kind) {
    Random random = new Random(1);
    double[] integers = IntStream.range(1, 200).mapToDouble(k -> k).toArray();
    double[] drawn =
        random
            .doubles(204)
            .map(x -> kind == Batch.Kind.LOG_VARIANCE ? 40 * x - 20 : Math.exp(40 * x - 20))
            .toArray();
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int d : new int[] {1, 3, 17, 199, 204}) {
        for (double[] scale : new double[][] {integers, drawn}) {
          if (scale.length % d != 0) {
            continue;
          }
          double[] mean = random.doubles(scale.length).toArray();
          Batch batch = new Batch(kind, isDouble, mean, scale, d);
          DiagonalGaussians q = batch.gaussians();
          FullGaussians p = FullBatch.of(batch).gaussians();
          assertZeroDiagonals(q, p);
        }
      }
    }
  }

  /** Asserts KL of 0 between equal rows both ways, on every backend. */
  private static void assertZeroDiagonals(Gaussians q, Gaussians p) {
    Engines.backends()
        .forEach(backend -> {
          try (KlEngine engine = Engines.on(backend)) {
            assertZeroDiagonal(engine, q, p);
            assertZeroDiagonal(engine, p, q);
          }
        });
  }

  /** A diagonal batch equals the full one from the least number of double to the greatest, in one dimension and among others. */
  @ParameterizedTest
  @EnumSource
  void equalToDiagonalOfAnyMagnitude(Batch.Kind kind) {
    double[] scale = FullBatch.magnitudes(kind);
    for (int d : new int[] {1, 2, scale.length}) {
      Batch batch = new Batch(kind, true, new double[scale.length], scale, d);
      DiagonalGaussians q = batch.gaussians();
      FullGaussians p = FullBatch.of(batch).gaussians();
      assertZeroDiagonals(q, p);
    }
  }

  private static void assertZeroDiagonal(KlEngine engine, Gaussians q, Gaussians p) {
    int n = q.size();
    double[] matrix = engine.pairwise(q, p, new double[n * n]);
    double[] aligned = engine.aligned(q, p, new double[n]);
    for (int i = 0; i < n; i++) {
      assertThat(matrix[i * n + i]).isEqualTo(0.0);
      assertThat(aligned[i]).isEqualTo(0.0);
    }
    assertThat(Arrays.stream(matrix)).allMatch(kl -> kl >= 0);
  }

  /** No part of a sum below the greatest double overflows: means, diagonal elements and others. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void overflowsOnlyBeyondDouble(Backend backend) {
    double far = 1.55e154;
    double kl = 0.5 * far * far;
    FullGaussians unit = FullGaussians.ofScaleTril(new double[2], new double[] {1, 0, 0, 1}, 2);
    try (KlEngine engine = Engines.on(backend)) {
      for (FullGaussians q :
          List.of(
              FullGaussians.ofScaleTril(new double[] {0, far}, new double[] {1, 0, 0, 1}, 2),
              FullGaussians.ofScaleTril(new double[2], new double[] {far, 0, 0, 1}, 2),
              FullGaussians.ofScaleTril(new double[2], new double[] {1, 0, far, 1}, 2))) {
        for (double value :
            new double[] {
              engine.pairwise(q, unit, new double[1])[0],
              engine.toStandardNormal(q, new double[1])[0]
            }) {
          if (backend != Backend.CUDA || value < 1 / 0.0) { // it sums twice the divergence
            assertThat(value).isCloseTo(kl, offset(1e-12 * kl));
          }
        }
      }
    }
  }

  /** Never NaN: magnitudes at both ends of double, and of float. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void overflowIsInfinite(Backend backend) {
    double[] scales = {Double.MIN_VALUE, 1e-300, 1e-160, 1, 1e160, 1e300, Double.MAX_VALUE};
    int n = scales.length;
    double[] mean = new double[2 * n];
    double[] tril = new double[4 * n];
    for (int i = 0; i < n; i++) {
      mean[2 * i] = i % 2 == 0 ? 1e308 : -1e308;
      tril[4 * i] = scales[i];
      tril[4 * i + 2] = i % 2 == 0 ? scales[n - 1 - i] : -scales[n - 1 - i];
      tril[4 * i + 3] = scales[i];
    }
    FullGaussians q = FullGaussians.ofScaleTril(mean, tril, 2);
    FullGaussians p = FullGaussians.ofScaleTril(mean, tril, 2);
    FullGaussians ordinary =
        FullGaussians.ofScaleTril(new double[2], new double[] {1, 0, 0.5, 1}, 2);
    try (KlEngine engine = Engines.on(backend)) {
      assertZeroDiagonal(engine, q, p);
      assertThat(Arrays.stream(engine.pairwise(q, ordinary, new double[n]))).allMatch(kl -> kl > 0);
      assertThat(Arrays.stream(engine.pairwise(ordinary, q, new double[n]))).allMatch(kl -> kl > 0);
      assertThat(engine.toStandardNormal(q, new double[n])).containsOnly(1 / 0.0);
      // 1e200 and 1e-200 apart: each within double's range, their product not
      FullGaussians wide =
          FullGaussians.ofScaleTril(new double[2], new double[] {1e200, 0, 5e199, 1e200}, 2);
      FullGaussians narrow =
          FullGaussians.ofScaleTril(new double[2], new double[] {2e200, 0, 1e200, 2e200}, 2);
      double[] kl = engine.pairwise(wide, narrow, new double[1]);
      double expected = 2 * (0.5 * (0.25 - 1) + Math.log(2));
      assertThat(kl[0]).isEqualTo(expected, offset(1e-14));
    }
  }

  /** Several covariances at a time and one by one, every lane and residue. */
  @Test
  void sameBitsHoweverFactored() {
    Random random = new Random(5);
    Cholesky cholesky = new Cholesky();
    for (int d : new int[] {1, 2, 3, 4, 7, 18}) {
      for (int n = 1; n <= 17; n++) {
        FullBatch tril = FullBatch.random(true, n, d, 1e4, 0, random);
        double[] matrix = new double[n * d * d];
        double[] expected = new double[n * d * (d + 1) / 2];
        double[] inverted = new double[expected.length];
        for (int i = 0, to = 0; i < n; i++) {
          double[] high = new double[d * (d + 1) / 2];
          for (int r = 0, k = 0; r < d; r++) {
            for (int c = 0; c <= r; c++, k++) {
              double sum = 0;
              for (int h = 0; h <= c; h++) {
                sum += tril.matrix()[(i * d + r) * d + h] * tril.matrix()[(i * d + c) * d + h];
              }
              matrix[(i * d + r) * d + c] = matrix[(i * d + c) * d + r] = sum;
            }
          }
          double[] flipped = new double[high.length];
          for (int r = 0, k = 0; r < d; r++) {
            for (int c = 0; c <= r; c++, k++) {
              high[k] = matrix[(i * d + r) * d + c];
              flipped[k] = matrix[(i * d + d - 1 - c) * d + d - 1 - r];
            }
          }
          double[] low = new double[high.length];
          assertThat(cholesky.factor(high, low, d, _ -> {})).isTrue();
          Arrays.fill(low, 0);
          assertThat(cholesky.factor(flipped, low, d, _ -> {})).isTrue();
          cholesky.invert(flipped, low, d, _ -> {});
          for (int r = 0; r < d; r++) {
            for (int c = 0; c <= r; c++, to++) {
              expected[to] = high[r * (r + 1) / 2 + c];
              inverted[to] = flipped[(d - 1 - c) * (d - c) / 2 + d - 1 - r];
            }
          }
        }
        double[] mean = new double[n * d];
        assertThat(FullGaussians.ofCovariance(mean, matrix, d).batch.scaleTril())
            .containsExactly(expected);
        assertThat(
                ((FullGaussians) Gaussians.of(ScaleKind.PRECISION_MATRIX, mean, matrix, d))
                    .batch.scaleTril())
            .containsExactly(inverted);
      }
    }
  }

  @Test
  void theMatrixAndPivotThatAreNotPositiveDefinite() {
    int n = 17;
    int d = 5;
    double[] mean = new double[n * d];
    for (int bad = 0; bad < n; bad++) {
      double[] matrix = new double[n * d * d];
      for (int k = 0; k < n * d; k++) {
        matrix[k * d + k % d] = 1;
      }
      int row = bad % d;
      matrix[(bad * d + row) * d + row] = -3;
      if (bad + 2 < n) {
        matrix[(bad + 2) * d * d] = -4; // the first of two is named
      }
      assertThatThrownBy(() -> FullGaussians.ofCovariance(mean, matrix, d))
          .hasMessage(
              "covariance[%d] (Gaussian %1$d) is not positive definite: pivot %d is -3.0",
              bad, row);
      assertThatThrownBy(() -> Gaussians.of(ScaleKind.PRECISION_MATRIX, mean, matrix, d))
          .hasMessage(
              "precision[%d] (Gaussian %1$d) is not positive definite: pivot %d is -3.0", bad, row);
    }
  }

  /** Every residue of N and M, with guard zones. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void tails(Backend backend) {
    FullBatch q = FullBatch.random(false, 20, 5, 10, 0, new Random(1));
    FullBatch p = FullBatch.random(false, 35, 5, 10, 0, new Random(2));
    double[] expected = FullOracle.pairwise(q, p);
    try (KlEngine engine = Engines.on(backend)) {
      for (int n = 1; n <= 20; n++) {
        FullGaussians rows = q.rows(0, n).gaussians();
        for (int m = 1; m <= 35; m += n % 3 + 1) {
          float[] out = new float[n * m + 40];
          Arrays.fill(out, Float.NaN);
          engine.pairwise(rows, p.rows(0, m).gaussians(), out);
          for (int i = 0; i < n; i++) {
            for (int j = 0; j < m; j++) {
              double error = Check.Precision.FLOAT.error(expected[i * 35 + j], out[i * m + j]);
              assertThat(error).as("N=%d, M=%d, [%d, %d]", n, m, i, j).isLessThan(1e-6);
            }
          }
          for (int k = n * m; k < out.length; k++) {
            assertThat(out[k]).isNaN();
          }
        }
      }
    }
  }

  /** A diagonal batch too large to be written out is taken pair by pair, to about the same values. */
  @Test
  void largeDiagonalBatch() {
    int d = 40;
    int n = 30_000;
    float[] mean = new float[n * d];
    float[] std = new float[n * d];
    Random random = new Random(1);
    for (int k = 0; k < mean.length; k++) {
      mean[k] = random.nextFloat();
      std[k] = random.nextFloat() + 0.5f;
    }
    DiagonalGaussians all = DiagonalGaussians.ofStd(mean, std, d);
    DiagonalGaussians few =
        DiagonalGaussians.ofStd(Arrays.copyOf(mean, 3 * d), Arrays.copyOf(std, 3 * d), d);
    assertThat(all.batch.isExpandable()).isFalse();
    FullGaussians p = FullBatch.random(false, 1, d, 10, 0, random).gaussians();
    try (KlEngine engine = KlEngine.builder().build()) {
      float[] expected = engine.pairwise(few, p);
      assertThat(engine.pairwise(all, p)).startsWith(expected);
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void deterministicDiagonal(Backend backend) {
    Gaussians zero =
        Gaussians.of(
            ScaleKind.STD, new float[2], new float[2], 2, ScalePolicy.DETERMINISTIC_IF_ZERO);
    FullGaussians p = FullBatch.random(false, 1, 2, 10, 0, new Random(1)).gaussians();
    try (KlEngine engine = Engines.on(backend)) {
      assertThat(engine.pairwise(zero, p)).containsExactly(0f);
      assertThat(engine.aligned(zero, p)).containsExactly(0f);
      rejects("p is deterministic", () -> engine.pairwise(p, zero));
    }
  }
}
