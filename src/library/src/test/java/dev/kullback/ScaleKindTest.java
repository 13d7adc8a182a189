package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.kullback.testing.Batch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** One method for every kind of scales makes what the named ones make. */
class ScaleKindTest {
  private static final int N = 5;
  private static final int D = 3;
  private static final ValueLayout.OfFloat BIG_ENDIAN =
      ValueLayout.JAVA_FLOAT.withOrder(ByteOrder.BIG_ENDIAN);

  private final float[] mean = new float[N * D];

  @ParameterizedTest
  @EnumSource
  void makesWhatNamedFactoriesMake(ScaleKind kind) {
    float[] scale = scales(kind);
    double[] meanOfDouble = Batch.widened(mean);
    double[] scaleOfDouble = Batch.widened(scale);
    Gaussians floats = Gaussians.of(kind, mean, scale, D);
    Gaussians doubles = Gaussians.of(kind, meanOfDouble, scaleOfDouble, D);
    assertThat(kind.isFull()).isEqualTo(floats instanceof FullGaussians);
    assertThat(floats.kind()).isEqualTo(kind.isFull() ? ScaleKind.SCALE_TRIL : kind);
    assertThat(floats.isDouble()).isFalse();
    assertThat(doubles.isDouble()).isTrue();
    Gaussians named = named(kind, mean, scale);
    if (named != null) {
      assertSame(named, floats);
    }
    named = named(kind, meanOfDouble, scaleOfDouble);
    if (named != null) {
      assertSame(named, doubles);
    }
    ScalePolicy strict = ScalePolicy.STRICT;
    ValueLayout.OfFloat f = ValueLayout.JAVA_FLOAT;
    ValueLayout.OfDouble d = ValueLayout.JAVA_DOUBLE;
    MemorySegment means = MemorySegment.ofArray(mean);
    MemorySegment wideMeans = MemorySegment.ofArray(meanOfDouble);
    MemorySegment scales = MemorySegment.ofArray(scale);
    MemorySegment wideScales = MemorySegment.ofArray(scaleOfDouble);
    assertSame(floats, Gaussians.of(kind, mean, scale, D, strict));
    assertSame(doubles, Gaussians.of(kind, meanOfDouble, scaleOfDouble, D, strict));
    assertSame(floats, Gaussians.of(kind, means, f, scales, f, D, strict));
    assertSame(doubles, Gaussians.of(kind, wideMeans, d, wideScales, d, D, strict));
    assertSame(doubles, Gaussians.of(kind, wideMeans, d, scales, f, D, strict));
    assertSame(doubles, Gaussians.of(kind, means, f, wideScales, d, D, strict));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment swapped = arena.allocate(means.byteSize());
      for (int k = 0; k < mean.length; k++) {
        swapped.setAtIndex(BIG_ENDIAN, k, mean[k]);
      }
      assertSame(floats, Gaussians.of(kind, swapped, BIG_ENDIAN, scales, f, D, strict));
    }
  }

  private static int length(ScaleKind kind, int dimension) {
    return switch (kind) {
      case STD, VARIANCE, LOG_VARIANCE, PRECISION -> dimension;
      case PACKED_SCALE_TRIL, PLAIN_PACKED_SCALE_TRIL -> dimension * (dimension + 1) / 2;
      case SCALE_TRIL,
          SCALE_TRIL_IGNORING_UPPER,
          COVARIANCE,
          PRECISION_MATRIX,
          PRECISION_CHOLESKY ->
          dimension * dimension;
    };
  }

  /** Values are exact in float, so that both precisions make the same Gaussians. */
  private float[] scales(ScaleKind kind) {
    Random random = new Random(kind.ordinal());
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
    }
    int length = length(kind, D);
    float[] scale = new float[N * length];
    for (int k = 0; k < scale.length; k++) {
      int at = k % length;
      boolean isMatrix = length == D * D;
      boolean isDiagonal = isMatrix ? at % (D + 1) == 0 : at == 0 || at == 2 || at == 5;
      scale[k] = kind.isFull() && !isDiagonal ? 0 : 1 + random.nextFloat();
    }
    return scale;
  }

  private static void assertSame(Gaussians expected, Gaussians actual) {
    assertThat(actual).hasToString(expected.toString());
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(engine.pairwise(actual, expected, new double[N * N]))
          .isEqualTo(engine.pairwise(expected, expected, new double[N * N]));
    }
  }

  private static @Nullable Gaussians named(ScaleKind kind, float[] mean, float[] scale) {
    return switch (kind) {
      case STD -> DiagonalGaussians.ofStd(mean, scale, D);
      case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, D);
      case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, D);
      case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, D);
      case SCALE_TRIL -> FullGaussians.ofScaleTril(mean, scale, D);
      case PACKED_SCALE_TRIL -> FullGaussians.ofPackedScaleTril(mean, scale, D);
      case COVARIANCE -> FullGaussians.ofCovariance(mean, scale, D);
      case SCALE_TRIL_IGNORING_UPPER,
          PLAIN_PACKED_SCALE_TRIL,
          PRECISION_MATRIX,
          PRECISION_CHOLESKY ->
          null;
    };
  }

  private static @Nullable Gaussians named(ScaleKind kind, double[] mean, double[] scale) {
    return switch (kind) {
      case STD -> DiagonalGaussians.ofStd(mean, scale, D);
      case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, D);
      case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, D);
      case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, D);
      case SCALE_TRIL -> FullGaussians.ofScaleTril(mean, scale, D);
      case PACKED_SCALE_TRIL -> FullGaussians.ofPackedScaleTril(mean, scale, D);
      case COVARIANCE -> FullGaussians.ofCovariance(mean, scale, D);
      case SCALE_TRIL_IGNORING_UPPER,
          PLAIN_PACKED_SCALE_TRIL,
          PRECISION_MATRIX,
          PRECISION_CHOLESKY ->
          null;
    };
  }

  private static String argument(ScaleKind kind) {
    return switch (kind) {
      case STD -> "std";
      case VARIANCE -> "variance";
      case LOG_VARIANCE -> "logVariance";
      case PRECISION, PRECISION_MATRIX -> "precision";
      case SCALE_TRIL, SCALE_TRIL_IGNORING_UPPER -> "scaleTril";
      case PACKED_SCALE_TRIL, PLAIN_PACKED_SCALE_TRIL -> "packed";
      case COVARIANCE -> "covariance";
      case PRECISION_CHOLESKY -> "precisionCholesky";
    };
  }

  @ParameterizedTest
  @EnumSource
  void policiesAreForScales(ScaleKind kind) {
    float[] scale = new float[length(kind, 1)];
    scale[0] = kind == ScaleKind.LOG_VARIANCE || kind == ScaleKind.PACKED_SCALE_TRIL ? 1000 : 0;
    float[] zero = new float[1];
    boolean isSingular = // and taken as that
        kind.isFull()
            && kind != ScaleKind.PACKED_SCALE_TRIL
            && kind != ScaleKind.PRECISION_MATRIX
            && kind != ScaleKind.PRECISION_CHOLESKY;
    boolean isRepaired =
        kind == ScaleKind.STD || kind == ScaleKind.VARIANCE || kind == ScaleKind.LOG_VARIANCE;
    for (ScalePolicy policy : ScalePolicy.values()) {
      boolean accepts =
          kind == ScaleKind.LOG_VARIANCE
              || isRepaired && policy != ScalePolicy.STRICT
              || isSingular && policy == ScalePolicy.SEMIDEFINITE;
      if (accepts) {
        assertThat(Gaussians.of(kind, zero, scale, 1, policy).size()).isEqualTo(1);
      } else {
        assertThatExceptionOfType(InvalidGaussianException.class)
            .as("%s, %s", kind, policy)
            .isThrownBy(() -> Gaussians.of(kind, zero, scale, 1, policy))
            .satisfies(e -> assertThat(e.argument()).isEqualTo(argument(kind)));
      }
    }
    assertThatNullPointerException()
        .isThrownBy(() -> Gaussians.of(kind, zero, zero, 1, null))
        .withMessage("policy");
    assertThatNullPointerException()
        .isThrownBy(() -> Gaussians.of(kind, zero, null, 1, ScalePolicy.STRICT))
        .withMessage(argument(kind));
    assertThatNullPointerException()
        .isThrownBy(() -> Gaussians.of(null, zero, zero, 1))
        .withMessage("kind");
  }
}
