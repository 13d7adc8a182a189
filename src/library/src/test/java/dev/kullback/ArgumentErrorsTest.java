package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Factors;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Engines;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Bad arguments: the exception says which array, row and dimension. */
class ArgumentErrorsTest {
  private static final int SIZE = 29;
  private static final int DIMENSION = 23;
  private static final int ROW = 17;
  private static final int H = 13;

  @ParameterizedTest
  @EnumSource(Kind.class)
  void nonFiniteNumbers(Kind kind) {
    for (double bad :
        new double[] {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY}) {
      assertRejected(kind, "mean", bad);
      assertRejected(kind, kind.parameter, bad);
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"STD", "VARIANCE", "PRECISION"})
  void scalesThatAreNotPositive(Kind kind) {
    for (double bad : new double[] {0, -0.0, -1, -Float.MIN_VALUE}) {
      assertRejected(kind, kind.parameter, bad);
    }
  }

  /**
   * Puts a bad number first, last and in the middle: as float, double and segment, with and without
   * a policy.
   */
  private static void assertRejected(Kind kind, String array, double bad) {
    for (int[] at : new int[][] {{0, 0}, {ROW, H}, {SIZE - 1, DIMENSION - 1}}) {
      double[] mean = new double[SIZE * DIMENSION];
      double[] scale = new double[mean.length];
      Arrays.fill(scale, 0.5);
      double[] changed = array.equals("mean") ? mean : scale;
      changed[at[0] * DIMENSION + at[1]] = bad;
      float[] floatMean = Batch.narrowed(mean);
      float[] floatScale = Batch.narrowed(scale);
      for (ThrowingCallable construction :
          new ThrowingCallable[] {
            () -> kind.of(mean, scale, DIMENSION),
            () -> kind.of(floatMean, floatScale, DIMENSION),
            () -> kind.of(floatMean, floatScale, DIMENSION, ScalePolicy.STRICT),
            () ->
                ofSegments(
                    kind.scaleKind(),
                    MemorySegment.ofArray(floatMean),
                    MemorySegment.ofArray(floatScale))
          }) {
        assertThatIllegalArgumentException()
            .as("%s: %s[%d][%d] = %s", kind, array, at[0], at[1], bad)
            .isThrownBy(construction)
            .satisfies(e -> assertNames(e.getMessage(), array, at[0], at[1]));
      }
    }
  }

  /** Messages suggest log-variances for negative scales, and clamping only for 0, which alone it repairs. */
  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"STD", "VARIANCE", "PRECISION"})
  void saysWhatANonPositiveScaleMayBe(Kind kind) {
    float[] mean = {0};
    for (float bad : new float[] {-1, -Float.MIN_VALUE, 0, -0f, Float.NEGATIVE_INFINITY}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> kind.of(mean, new float[] {bad}, 1))
          .withMessageEndingWith(
              bad == 0
                  ? kind == Kind.PRECISION
                      ? "it must be finite and > 0 (0 is an infinite variance: give a small positive one)"
                      : "it must be finite and > 0 (ScalePolicy.CLAMPED raises small ones)"
                  : bad < 0 && Float.isFinite(bad)
                      ? "it must be finite and > 0; are these log-variances (ofLogVariance)?"
                      : "it must be finite and > 0");
    }
  }

  /** An array of matrices is recognized by its length, and the message names their kind. */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void namesTheKindOfMatrices(Kind kind) {
    String matrices =
        switch (kind) {
          case STD -> " (matrices: ScaleKind.SCALE_TRIL)";
          case VARIANCE -> " (matrices: ScaleKind.COVARIANCE)";
          case LOG_VARIANCE -> "";
          case PRECISION -> " (matrices: ScaleKind.PRECISION_MATRIX)";
        };
    for (int length : new int[] {12, 11}) {
      refusedAs(
          "mean has 6 elements but %s has %d; both must be [N, 2], or %1$s [2] for all, or [N], one number for each%s"
              .formatted(kind.parameter, length, length == 12 ? matrices : ""),
          () -> kind.of(new float[6], new float[length], 2));
    }
  }

  /** A query and an exact divergence take no policy, so no message advises one. */
  @Test
  void advisesNoPolicyWhereNoneIsTaken() {
    float[] mean = new float[2];
    float[] std = {1, 0};
    String message = "std[0][1] (Gaussian 0, dimension 1) is 0.0; it must be finite and > 0";
    for (KlIndex.Builder builder :
        List.of(
            KlIndex.builder(2), KlIndex.builder(2).batchQueries(java.time.Duration.ofMillis(1)))) {
      try (KlIndex index = builder.build()) {
        index.add(new long[] {1}, DiagonalGaussians.ofStd(mean, new float[] {1, 1}, 2));
        assertThatExceptionOfType(InvalidGaussianException.class)
            .isThrownBy(() -> index.query(mean, 0, std, 0, 1, new long[1], new float[1]))
            .withMessage(message);
      }
    }
    ExactDivergence exact = ExactDivergence.of(Divergence.KL, ScaleKind.STD);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> exact.of(mean, std, mean, new float[] {1, 1}))
        .withMessageEndingWith("it must be finite and > 0");
  }

  private static void assertNames(String message, String array, int row, int h) {
    assertThat(message.toLowerCase(Locale.ROOT).replace("-", ""))
        .contains(array.toLowerCase(Locale.ROOT));
    assertThat(message).containsPattern("\\b" + row + "\\b").containsPattern("\\b" + h + "\\b");
  }

  private static Gaussians ofSegments(ScaleKind kind, MemorySegment mean, MemorySegment scale) {
    return ofSegments(kind, mean, scale, DIMENSION);
  }

  private static Gaussians ofSegments(
      ScaleKind kind, MemorySegment mean, MemorySegment scale, int dimension) {
    ValueLayout element = ValueLayout.JAVA_FLOAT;
    return Gaussians.of(kind, mean, element, scale, element, dimension, ScalePolicy.STRICT);
  }

  @ParameterizedTest
  @CsvSource({
    "6, 6, 4, '.*\\b6\\b.*\\b4\\b.*'",
    "6, 5, 1, '.*\\b6\\b.*\\b5\\b.*'",
    "5, 6, 1, '.*\\b5\\b.*\\b6\\b.*'",
    "6, 6, 0, '.*\\b0\\b.*'",
    "6, 6, -6, '.*-6\\b.*'",
    "6, 6, -2147483648, '.*-2147483648\\b.*'",
    "0, 0, 0, '.*\\b0\\b.*'",
    "0, 6, 1, '.*\\b0\\b.*\\b6\\b.*'",
    "6, 6, 7, '.*\\b6\\b.*\\b7\\b.*'"
  })
  void lengths(int means, int scales, int dimension, String message) {
    float[] ones = new float[scales];
    Arrays.fill(ones, 1);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> DiagonalGaussians.ofStd(new float[means], ones, dimension))
        .withMessageMatching(message);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> FullGaussians.ofCovariance(new double[0], new double[0], 3));
  }

  /** The smallest batch that is too large, mapped from a file without contents. */
  @Test
  void tooLarge(@TempDir Path folder) throws IOException {
    int d = DiagonalBatch.MOST_DIMENSIONS;
    int full = dev.kullback.internal.batch.FullBatch.MOST_DIMENSIONS; // not the tests' FullBatch
    assertThat(DiagonalBatch.mostRows(d)).isEqualTo(1);
    assertThat(Factors.mostRows(full)).isEqualTo(1);
    for (long k = 1; k <= full; k++) { // a panel of a factor, and all means
      long means = Math.ceilDiv(Factors.mostRows((int) k, true), 32) * 32L * k;
      assertThat(32 * (k * (k + 1) / 2) + means).isLessThan(Integer.MAX_VALUE - 8);
    }
    try (Arena arena = Arena.ofConfined();
        FileChannel file =
            FileChannel.open(
                folder.resolve("zeros"),
                StandardOpenOption.CREATE,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
      MemorySegment zeros = file.map(MapMode.READ_WRITE, 0, Float.BYTES * 2L * full * full, arena);
      for (int n = 1; n <= 2; n++) {
        int dimension = n == 1 ? d + 1 : d;
        MemorySegment values = zeros.asSlice(0, (long) Float.BYTES * n * dimension);
        refusedAs(
            n == 1
                ? "dimension 16777216 is too large: a Gaussian has at most 16777215 dimensions here"
                : "2 Gaussians of dimension 16777215 are too many for one batch: at most 1; split it by rows",
            () -> ofSegments(ScaleKind.LOG_VARIANCE, values, values, dimension));
        int side = n == 1 ? full + 1 : full;
        MemorySegment mean = zeros.asSlice(0, (long) Float.BYTES * n * side);
        MemorySegment matrices = zeros.asSlice(0, (long) Float.BYTES * n * side * side);
        refusedAs(
            n == 1
                ? "dimension 11407 is too large: a Gaussian has at most 11406 dimensions here"
                : "2 Gaussians of dimension 11406 are too many for one batch: at most 1; split it by rows",
            () -> ofSegments(ScaleKind.COVARIANCE, mean, matrices, side));
      }
    }
  }

  @Test
  @SuppressWarnings("NullAway")
  void nulls() {
    float[] ok = {1};
    double[] oks = {1};
    float[] none = null;
    double[] nones = null;
    MemorySegment noSegment = null;
    MemorySegment segment = MemorySegment.ofArray(ok);
    ScalePolicy strict = ScalePolicy.STRICT;
    DiagonalGaussians q = DiagonalGaussians.ofStd(ok, ok, 1);
    assertNamed("mean", () -> DiagonalGaussians.ofStd(none, ok, 1));
    assertNamed("variance", () -> DiagonalGaussians.ofVariance(oks, nones, 1));
    assertNamed("mean", () -> ofSegments(ScaleKind.PRECISION, noSegment, segment));
    assertNamed("logVariance", () -> ofSegments(ScaleKind.LOG_VARIANCE, segment, noSegment));
    assertNamed("covariance", () -> ofSegments(ScaleKind.COVARIANCE, segment, noSegment));
    assertNamed("mean", () -> FullGaussians.ofCovariance(none, ok, 1));
    assertNamed("scaleTril", () -> FullGaussians.ofScaleTril(oks, nones, 1));
    for (ScaleKind kind : List.of(ScaleKind.STD, ScaleKind.COVARIANCE)) {
      assertNamed("element", () -> Gaussians.of(kind, segment, null, segment, null, 1, strict));
    }
    assertNamed("backend", () -> KlEngine.builder().backend(null));
    assertNamed("executor", () -> KlEngine.builder().executor(null));
    assertNamed("components", () -> Mixtures.of(null));
    assertNamed("components", () -> Mixtures.of(null, oks));
    assertNamed("weights", () -> Mixtures.of(q, null));
    assertNamed("engine", () -> Mixtures.of(q).entropyUpperBound(null));
    try (KlEngine engine = KlEngine.builder().build()) {
      assertNamed("time", () -> engine.verify(null));
      assertNamed("q", () -> engine.warmUp(null, q));
      assertNamed("p", () -> engine.warmUp(q, null));
    }
  }

  private static void assertNamed(String argument, ThrowingCallable call) {
    assertThatNullPointerException().isThrownBy(call).withMessage(argument);
  }

  @Test
  void indices() {
    DiagonalGaussians q = ones(6, 3);
    try (KlEngine engine = KlEngine.builder().build()) {
      Neighbors found = engine.nearest(q, q, 2);
      MonteCarloEstimates estimate = engine.monteCarlo(q, q, 2, 1);
      for (int i : new int[] {-1, 6, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
        for (ThrowingCallable call :
            new ThrowingCallable[] {
              () -> found.count(i),
              () -> found.index(i, 0),
              () -> found.value(i, 0),
              () -> found.start(i == 6 ? 7 : i),
              () -> estimate.estimate(i),
              () -> estimate.standardError(i)
            }) {
          assertThatExceptionOfType(IndexOutOfBoundsException.class)
              .isThrownBy(call)
              .withMessageMatching(
                  "(row|pair) i is " + (i == 6 ? "[67]" : i) + "; it must be in .*");
        }
      }
      assertThat(found.start(6)).isEqualTo(12);
      assertThatExceptionOfType(IndexOutOfBoundsException.class)
          .isThrownBy(() -> found.value(5, 2))
          .withMessage("neighbor r is 2; row 5 has 2 of them");
    }
  }

  /** More entries than an array holds; 65536 * 65536 is 0 in int. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void tooManyEntries(Backend backend) {
    DiagonalGaussians q = ones(65536, 1);
    DiagonalGaussians p = ones(46341, 1);
    try (KlEngine engine = Engines.on(backend)) {
      assertThatIllegalArgumentException().isThrownBy(() -> engine.pairwise(q, q));
      assertThatIllegalArgumentException().isThrownBy(() -> engine.pairwise(p, p));
      refused(() -> engine.pairwise(q, q, new float[16]), "4294967296");
      assertThatIllegalArgumentException().isThrownBy(() -> engine.pairwise(q, q, new double[16]));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.pairwise(q, q, MemorySegment.ofArray(new float[16])));
      assertThatIllegalArgumentException().isThrownBy(() -> engine.pairwise(p, p, new float[16]));
    }
  }

  private static DiagonalGaussians ones(int size, int dimension) {
    float[] ones = new float[size * dimension];
    Arrays.fill(ones, 1);
    return DiagonalGaussians.ofStd(ones, ones, dimension);
  }
}
