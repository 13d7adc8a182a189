package dev.kullback;

import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.testing.Batch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Scales of one Gaussian that all Gaussians of a batch share. */
class SharedScalesTest {
  /** N, D: N = 1, D = 1, both, N < D, and what fills no panel; of matrices alone also N = D. */
  private static final int[][] SHAPES = {{1, 3}, {3, 1}, {1, 1}, {2, 3}, {37, 5}, {3, 3}};

  private static float[] scale(ScaleKind kind, int d, Random random) {
    return switch (kind) {
      case STD, VARIANCE, PRECISION -> floats(d, () -> 0.5f + random.nextFloat());
      case LOG_VARIANCE -> floats(d, random::nextFloat);
      case PACKED_SCALE_TRIL, PLAIN_PACKED_SCALE_TRIL ->
          floats(d * (d + 1) / 2, () -> 0.5f + random.nextFloat());
      case SCALE_TRIL, SCALE_TRIL_IGNORING_UPPER -> matrix(d, (r, c) -> r > c ? 0.5f : 0);
      case PRECISION_CHOLESKY -> matrix(d, (r, c) -> r < c ? 0.5f : 0);
      case COVARIANCE, PRECISION_MATRIX -> matrix(d, (r, c) -> 0.25f);
    };
  }

  private interface Entry {
    float at(int r, int c);
  }

  private static float[] matrix(int d, Entry other) {
    float[] matrix = new float[d * d];
    for (int k = 0; k < matrix.length; k++) {
      matrix[k] = k / d == k % d ? 2 + k % d : other.at(k / d, k % d);
    }
    return matrix;
  }

  private static float[] floats(int count, Supplier<Float> value) {
    float[] floats = new float[count];
    for (int k = 0; k < count; k++) {
      floats[k] = value.get();
    }
    return floats;
  }

  private static float[] repeated(float[] one, int n) {
    float[] all = new float[one.length * n];
    IntStream.range(0, n).forEach(i -> System.arraycopy(one, 0, all, i * one.length, one.length));
    return all;
  }

  @ParameterizedTest
  @EnumSource
  void areThoseOfEachToTheBit(ScaleKind kind) {
    Random random = new Random(kind.ordinal());
    ValueLayout.OfFloat f = ValueLayout.JAVA_FLOAT;
    ValueLayout.OfDouble d = ValueLayout.JAVA_DOUBLE;
    for (int[] shape : SHAPES) {
      int n = shape[0];
      if (!kind.isFull() && n == 3 && shape[1] == 3) {
        continue; // see noneWhereTheyMayBeOfEachGaussian
      }
      float[] mean = floats(n * shape[1], () -> (float) random.nextGaussian());
      float[] one = scale(kind, shape[1], random);
      float[] all = repeated(one, n);
      Gaussians floats = Gaussians.of(kind, mean, all, shape[1]);
      assertSame(floats, Gaussians.of(kind, mean, one, shape[1]));
      MemorySegment means = MemorySegment.ofArray(mean);
      assertSame(
          floats,
          Gaussians.of(
              kind, means, f, MemorySegment.ofArray(one), f, shape[1], ScalePolicy.STRICT));
      double[] wideMean = Batch.widened(mean);
      double[] wide = Batch.widened(one);
      Gaussians doubles = Gaussians.of(kind, wideMean, Batch.widened(all), shape[1]);
      assertSame(doubles, Gaussians.of(kind, wideMean, wide, shape[1]));
      assertSame(
          doubles,
          Gaussians.of(
              kind, means, f, MemorySegment.ofArray(wide), d, shape[1], ScalePolicy.STRICT));
      if (!kind.isFull()) {
        assertSame(floats, Gaussians.owning(kind, mean, one, shape[1]));
        assertSame(doubles, Gaussians.owning(kind, wideMean, wide, shape[1]));
      }
    }
  }

  private static void assertSame(Gaussians expected, Gaussians actual) {
    assertThat(actual).hasToString(expected.toString());
    for (int i = 0; i < expected.size(); i++) {
      assertThat(actual.mean(i)).isEqualTo(expected.mean(i));
      assertThat(actual.scale(i)).isEqualTo(expected.scale(i));
    }
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] out = new double[expected.size() * expected.size()];
      assertThat(engine.pairwise(actual, expected, out.clone()))
          .isEqualTo(engine.pairwise(expected, expected, out));
    }
  }

  /** Means (0,0), (1,2), (3,−1); covariance [[2, ½], [½, 1]]: KL is ½ dᵀΣ⁻¹d, exactly 2, 4, 8. */
  @Test
  void ofThreeMeans() {
    double[] mean = {0, 0, 1, 2, 3, -1};
    try (KlEngine engine = KlEngine.builder().build()) {
      FullGaussians tied = FullGaussians.ofCovariance(mean, new double[] {2, .5, .5, 1}, 2);
      assertThat(engine.pairwise(tied, tied, new double[9]))
          .usingComparatorWithPrecision(1e-14)
          .containsExactly(0, 2, 4, 2, 0, 8, 4, 8, 0);
      DiagonalGaussians row = DiagonalGaussians.ofVariance(mean, new double[] {2, 1}, 2);
      assertThat(engine.pairwise(row, row, new double[9])) // ½ (d₀²/2 + d₁²)
          .containsExactly(0, 2.25, 2.75, 2.25, 0, 5.5, 2.75, 5.5, 0);
    }
  }

  /** D scales take the memory of D, and one matrix that of one, also in parts and of points, and every reader finds those of its row. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void oneRowIsKeptOnce(Backend backend) {
    int d = 9;
    for (ScaleKind kind : ScaleKind.values()) {
      int n = kind.isFull() ? 20 : 70; // several panels
      for (double spread : new double[] {1, 1e-7}) { // of usual data, and of what is alike
        Random random = new Random(kind.ordinal());
        float[] base = floats(d, () -> (float) random.nextGaussian());
        float[] mean = repeated(base, n);
        for (int k = 0; k < mean.length; k++) {
          mean[k] += (float) (spread * random.nextGaussian());
        }
        float[] one = scale(kind, d, random);
        float[] all = repeated(one, n);
        float[] other = one.clone();
        other[0] *= 1.0001f;
        boolean isDouble = spread == 1 == (kind.ordinal() % 2 == 0);
        assertKeptOnce(
            backend,
            isDouble
                ? Gaussians.of(kind, Batch.widened(mean), Batch.widened(one), d)
                : Gaussians.of(kind, mean, one, d),
            isDouble
                ? Gaussians.of(kind, Batch.widened(mean), Batch.widened(all), d)
                : Gaussians.of(kind, mean, all, d),
            Gaussians.of(kind, mean, repeated(other, n), d),
            other(kind));
      }
    }
    float[] points = floats(70 * d, () -> 1f);
    assertThat(DiagonalGaussians.ofPoints(points, d).memoryBytes())
        .isLessThan((long) Float.BYTES * points.length + 32L * 70);
  }

  /** N numbers take the memory of N, also in parts, as many as dimensions; that they are those of each is a law. */
  @ParameterizedTest
  @EnumSource(names = {"STD", "VARIANCE", "LOG_VARIANCE", "PRECISION"})
  void oneNumberForEachIsKeptOnce(ScaleKind kind) {
    int d = 9;
    int n = 70;
    float[] mean = new float[n * d];
    float[] each = new float[n];
    float[] all = new float[n * d];
    for (int k = 0; k < all.length; k++) {
      all[k] = each[k / d] = 1 + 0.01f * (k / d);
    }
    int[] some = IntStream.range(3, 3 + d).toArray();
    for (int bytes : new int[] {4, 8}) {
      Gaussians kept =
          bytes == 4
              ? Gaussians.of(kind, mean, each, d)
              : Gaussians.of(kind, Batch.widened(mean), Batch.widened(each), d);
      Gaussians written =
          bytes == 4
              ? Gaussians.of(kind, mean, all, d)
              : Gaussians.of(kind, Batch.widened(mean), Batch.widened(all), d);
      assertThat(written.memoryBytes() - kept.memoryBytes()).isEqualTo((d - 1) * n * bytes);
      assertThat(written.select(some).memoryBytes() - kept.select(some).memoryBytes())
          .isEqualTo((d - 1) * d * bytes);
      long[] ids = IntStream.range(0, n).asLongStream().toArray();
      try (KlIndex index = KlIndex.builder(d).build()) {
        index.add(ids, kept);
        for (int i : some) {
          assertThat(index.get(ids).scale(i)).isEqualTo(written.scale(i));
        }
      }
    }
  }

  /** Returns one of the divergences whose kernels are not KL's, for each kind another; laws try all. */
  private static Divergence other(ScaleKind kind) {
    List<Divergence> others =
        List.of(Divergence.JEFFREYS, Divergence.HELLINGER, Divergence.WASSERSTEIN_2);
    return others.get(kind.ordinal() % others.size());
  }

  /**
   * Checks a batch that keeps one row of scales against one that has all.
   *
   * @param other a divergence beside KL
   */
  private static void assertKeptOnce(
      Backend backend, Gaussians one, Gaussians all, Gaussians p, Divergence other) {
    int n = one.size();
    int d = one.dimension();
    int bytes = one.isDouble() ? Double.BYTES : Float.BYTES;
    long each = (long) d * bytes;
    if (one instanceof FullGaussians full) {
      each = d * (d + 1L) / 2 * Double.BYTES * (full.hasComputedFactors() ? 2 : 1);
    }
    assertThat(all.memoryBytes() - one.memoryBytes()).isEqualTo((n - 1) * each);
    int[] some = IntStream.range(3, 3 + d).toArray(); // as many as dimensions
    assertThat(all.select(some).memoryBytes() - one.select(some).memoryBytes())
        .isEqualTo((d - 1) * each);
    for (Divergence divergence : List.of(Divergence.KL, other)) {
      try (KlEngine engine = KlEngine.builder().backend(backend).divergence(divergence).build()) {
        for (int call = 0; call < 2; call++) {
          assertThat(engine.pairwise(one, p, new double[n * n]))
              .isEqualTo(engine.pairwise(all, p, new double[n * n]));
          assertThat(engine.pairwise(p, one, new double[n * n]))
              .isEqualTo(engine.pairwise(p, all, new double[n * n]));
          assertThat(engine.pairwise(one, all, new double[n * n]))
              .isEqualTo(engine.pairwise(all, all, new double[n * n]));
        }
        assertThat(engine.aligned(one, p, new double[n]))
            .isEqualTo(engine.aligned(all, p, new double[n]));
        assertThat(engine.aligned(one.select(some), p.select(some), new double[d]))
            .isEqualTo(engine.aligned(all.select(some), p.select(some), new double[d]));
        assertThat(engine.toStandardNormal(one, new double[n]))
            .isEqualTo(engine.toStandardNormal(all, new double[n]));
      }
    }
    KlIndex.Builder index = KlIndex.builder(d);
    if (one instanceof FullGaussians) {
      index.fullCovariances();
    }
    long[] ids = IntStream.range(0, n).asLongStream().toArray();
    try (KlIndex kept = index.build();
        KlIndex expected = index.build()) {
      kept.add(ids, one);
      expected.add(ids, all);
      assertSame(expected.get(ids), kept.get(ids));
    }
    if (one instanceof FullGaussians) { // panels, too
      assertThat(one.memoryBytes()).isLessThan(all.memoryBytes() / 2);
    }
  }

  /** Where CLAMPED set the one scale of a Gaussian, the gradient by it is 0 in each of its dimensions. */
  @Test
  void clampedOnesAreKnownInEachDimension() {
    double[] mean = {1, 2, 3, 4, 5, 6};
    Gaussians q = Gaussians.of(ScaleKind.STD, mean, new double[] {3, 0, 2}, 2, ScalePolicy.CLAMPED);
    Gaussians all =
        Gaussians.of(ScaleKind.STD, mean, new double[] {3, 3, 0, 0, 2, 2}, 2, ScalePolicy.CLAMPED);
    try (KlEngine engine = KlEngine.builder().build()) {
      int[] rows = {2, 1, 0};
      assertSame(all, q);
      assertSame(all.select(rows), q.select(rows));
      for (int turn = 0; turn < 2; turn++) {
        double[] byScale = new double[6];
        double[] expected = new double[6];
        double[] ones = {1, 1, 1};
        engine
            .gradient()
            .q(new double[6], byScale)
            .toStandardNormal(turn == 0 ? q : q.select(rows), ones);
        engine
            .gradient()
            .q(new double[6], expected)
            .toStandardNormal(turn == 0 ? all : all.select(rows), ones);
        assertThat(byScale).isEqualTo(expected);
        assertThat(new double[] {byScale[2], byScale[3]}).containsExactly(0, 0);
        assertThat(byScale[5]).isNotZero();
      }
    }
  }

  @Test
  void policiesAndErrors() {
    float[] mean = new float[6];
    Gaussians clamped =
        Gaussians.of(ScaleKind.STD, mean, new float[] {1, 0}, 2, ScalePolicy.CLAMPED);
    assertThat(clamped.scale(2)).containsExactly(1, 1e-8f);
    Gaussians zero =
        Gaussians.of(ScaleKind.STD, mean, new float[2], 2, ScalePolicy.DETERMINISTIC_IF_ZERO);
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(engine.toStandardNormal(zero)).containsExactly(0, 0, 0);
    }
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> DiagonalGaussians.ofStd(mean, new float[] {1, -1}, 2))
        .withMessageStartingWith("std[0][1] (Gaussian 0, dimension 1) is -1.0");
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> FullGaussians.ofCovariance(mean, new float[] {1, 2, 2, 1}, 2))
        .withMessageStartingWith("covariance[0] (Gaussian 0) is not positive definite");
    assertThat(DiagonalGaussians.ofStd(new float[0], new float[] {1, 1}, 2).size()).isZero();
  }

  /** D numbers where N = D, which may be a row or one number for each Gaussian. One number of one Gaussian is both. */
  @Test
  void noneWhereTheyMayBeOfEachGaussian() {
    double[] mean = {0, 0, 1, 2};
    for (ScaleKind kind : ScaleKind.values()) {
      if (!kind.isFull()) {
        for (ThrowingCallable call :
            List.<ThrowingCallable>of(
                () -> Gaussians.of(kind, mean, new double[] {1, 4}, 2),
                () -> Gaussians.of(kind, new float[4], new float[] {1, 4}, 2),
                () -> Gaussians.owning(kind, mean, new double[] {1, 4}, 2),
                () ->
                    Gaussians.of(
                        kind, mean, new double[] {1, 4}, 2, ScalePolicy.DETERMINISTIC_IF_ZERO))) {
          assertThatIllegalArgumentException()
              .isThrownBy(call)
              .withMessageEndingWith(
                  " has 2 elements for 2 Gaussians of dimension 2, one for each dimension or one for each Gaussian: write out [2, 2], of the first the row 2 times, of the second each element 2 times");
        }
      }
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> DiagonalGaussians.ofVariance(mean, new double[] {1, 4}, 2))
        .withMessageStartingWith("variance has 2 elements for 2 Gaussians");
    assertThat(DiagonalGaussians.ofVariance(mean, new double[] {1, 4, 1, 4}, 2).scale(1))
        .containsExactly(1, 4);
    assertThat(DiagonalGaussians.ofVariance(new double[] {0}, new double[] {4}, 1).scale(0))
        .containsExactly(4);
    assertThat(FullGaussians.ofCovariance(mean, new double[] {2, 1, 1, 2}, 2).size()).isEqualTo(2);
  }

  /** One number for all and one mean for several scales are not told apart by lengths. */
  @Test
  void noOtherLengthsAreRepeated() {
    for (int[] lengths : new int[][] {{6, 1}, {6, 5}, {2, 6}, {6, 4}, {6, 0}}) {
      assertThatIllegalArgumentException()
          .as("%s of %s", lengths[1], lengths[0])
          .isThrownBy(
              () -> DiagonalGaussians.ofStd(new float[lengths[0]], new float[lengths[1]], 2))
          .withMessageStartingWith("mean has " + lengths[0] + " elements but std has ");
    }
    for (int[] lengths : new int[][] {{6, 1}, {6, 2}, {6, 8}, {2, 12}, {6, 0}}) {
      assertThatIllegalArgumentException()
          .as("%s of %s", lengths[1], lengths[0])
          .isThrownBy(
              () -> FullGaussians.ofCovariance(new double[lengths[0]], new double[lengths[1]], 2))
          .withMessageStartingWith("mean has " + lengths[0] + " elements, [");
    }
    refusedAs(
        "mean has 3 elements, which is not a multiple of the dimension 2",
        () -> DiagonalGaussians.ofStd(new float[3], new float[2], 2));
  }
}
