package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.kullback.internal.work.ThisThread;
import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.FullBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a batch tells of its Gaussians, and the batches of some of them. */
class ReadingBackTest {
  private static final int N = 9;
  private static final int D = 5;

  @ParameterizedTest
  @EnumSource
  void diagonalBatchesGiveWhatTheyWereGiven(Batch.Kind kind) {
    for (boolean isDouble : new boolean[] {false, true}) {
      Random random = new Random(1);
      Batch batch =
          Batch.ofStd(
              kind,
              isDouble,
              random.doubles(N * D, -1e3, 1e3).toArray(),
              random.doubles(N * D, 0.1, 9).toArray(),
              D);
      Gaussians g = batch.gaussians();
      assertThat(g.kind()).isEqualTo(kind.scaleKind());
      assertThat(g.isDouble()).isEqualTo(isDouble);
      for (int i = 0; i < N; i++) {
        assertThat(g.mean(i)).isEqualTo(row(batch.mean(), i, D));
        assertThat(g.scale(i)).isEqualTo(row(batch.scale(), i, D));
      }
    }
  }

  /** Also what is not of the least or greatest order, and the signs of zeros. */
  @Test
  void toTheBit() {
    double[] mean = {-0.0, Double.MIN_VALUE, -Double.MAX_VALUE};
    double[] scale = {Double.MIN_VALUE, 1 / 3.0, Double.MAX_VALUE};
    Gaussians g = DiagonalGaussians.ofVariance(mean, scale, 3);
    assertThat(g.mean(0)).isEqualTo(mean);
    assertThat(g.scale(0)).isEqualTo(scale);
    float[] small = {-0f, Float.MIN_VALUE, -1 / 3f};
    g = DiagonalGaussians.ofLogVariance(small, small, 3);
    assertThat(g.mean(0)).isEqualTo(Batch.widened(small));
    assertThat(g.scale(0)).isEqualTo(Batch.widened(small));
    double[] far = {-0.0, 1e300};
    double[] l = {1e-300, 0, -0.0, 1e300};
    g = FullGaussians.ofScaleTril(far, l, 2);
    assertThat(g.mean(0)).isEqualTo(far);
    assertThat(g.scale(0)).isEqualTo(l);
  }

  @Test
  void replacedScalesComeBackAsTheyWereReplaced() {
    Gaussians g =
        Gaussians.of(
            ScaleKind.LOG_VARIANCE,
            new float[3],
            new float[] {-100, 1, 100},
            3,
            ScalePolicy.CLAMPED);
    assertThat(g.scale(0)).containsExactly(-30, 1, 20);
    g = Gaussians.of(ScaleKind.STD, new double[2], new double[] {0, 2}, 1, ScalePolicy.CLAMPED);
    assertThat(g.scale(0)).containsExactly(1e-8);
    assertThat(g.select(1, 0).scale(1)).containsExactly(1e-8);
  }

  @ParameterizedTest
  @EnumSource
  void fullBatchesGiveFactors(FullBatch.Kind kind) {
    for (boolean isDouble : new boolean[] {false, true}) {
      FullBatch batch = FullBatch.random(isDouble, N, D, 100, 0, new Random(2)).as(kind);
      FullGaussians g = batch.gaussians();
      assertThat(g.kind()).isEqualTo(ScaleKind.SCALE_TRIL);
      for (int i = 0; i < N; i++) {
        assertThat(g.mean(i)).isEqualTo(row(batch.mean(), i, D));
        double[] l = g.scale(i);
        double[] given = row(batch.matrix(), i, batch.matrix().length / N);
        for (int r = 0; r < D; r++) {
          for (int c = r + 1; c < D; c++) {
            assertThat(l[r * D + c]).isZero();
          }
        }
        switch (kind) {
          case SCALE_TRIL -> assertThat(l).isEqualTo(given);
          case PACKED ->
              assertThat(Gaussians.of(ScaleKind.SCALE_TRIL, g.mean(i), l, D).scale(0)).isEqualTo(l);
          case COVARIANCE -> assertThat(g.covariance(i)).isEqualTo(given);
          case PACKED_LOG, PRECISION -> assertThat(l[0]).isPositive();
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 8, 40})
  void covariancesComeBack(int d) {
    for (double condition : new double[] {1, 1e3, 1e8}) {
      for (boolean isDouble : new boolean[] {false, true}) {
        if (condition == 1e8 && !isDouble) {
          continue; // rounded to float, it is singular but for rounding
        }
        Random random = new Random(d);
        // a matrix of the caller's is symmetric to the bit, and so not the product of its own
        // factor
        double[] sigma = symmetric(d, condition, random);
        if (!isDouble) {
          sigma = Batch.widened(Batch.narrowed(sigma));
        }
        double[] mean = new double[d];
        FullGaussians g =
            isDouble
                ? FullGaussians.ofCovariance(mean, sigma, d)
                : FullGaussians.ofCovariance(new float[d], Batch.narrowed(sigma), d);
        double[] read = g.covariance(0);
        for (int k = 0; k < sigma.length; k++) {
          double scale = Math.sqrt(sigma[k / d * (d + 1)] * sigma[k % d * (d + 1)]);
          if (Math.abs(sigma[k]) >= 1e-15 * d * scale) {
            assertThat(read[k]).as("D = %d, condition %s", d, condition).isEqualTo(sigma[k]);
          }
          assertThat(Math.abs(read[k] - sigma[k])).isLessThanOrEqualTo(1e-31 * d * scale);
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(doubles = {1e-300, 1e-100, 1, 1e100, 1e300})
  void covariancesOfAnyMagnitudeComeBack(double magnitude) {
    Random random = new Random(3);
    double[] sigma = symmetric(6, 100, random);
    for (int r = 0; r < 6; r++) {
      for (int c = 0; c < 6; c++) {
        sigma[r * 6 + c] *= magnitude;
      }
    }
    FullGaussians g = FullGaussians.ofCovariance(new double[6], sigma, 6);
    assertThat(g.covariance(0)).isEqualTo(sigma);
  }

  /** Zeros where the factor has none are sums of products, whose rounding is left. */
  @Test
  void zerosOfCovariances() {
    double[] sigma = {4, 1, 0.5, 1, 3, 0, 0.5, 0, 2};
    double[] read = FullGaussians.ofCovariance(new double[3], sigma, 3).covariance(0);
    assertThat(Math.abs(read[5])).isLessThan(0x1p-100);
    read[5] = read[7] = 0;
    assertThat(read).isEqualTo(sigma);
    double[] blocks = {4, 1, 0, 1, 3, 0, 0, 0, 2};
    assertThat(FullGaussians.ofCovariance(new double[3], blocks, 3).covariance(0))
        .isEqualTo(blocks);
  }

  /** The mean of both triangles is the Gaussian's, as it is symmetric. */
  @Test
  void covariancesAreSymmetric() {
    double[] sigma = {2, 1 + 0x1p-30, 1, 3};
    assertThat(FullGaussians.ofCovariance(new double[2], sigma, 2).covariance(0))
        .containsExactly(2, 1 + 0x1p-31, 1 + 0x1p-31, 3);
    Gaussians precision =
        Gaussians.of(ScaleKind.PRECISION_MATRIX, new double[2], new double[] {2, 0, 0, 8}, 2);
    assertThat(precision.covariance(0)).containsExactly(0.5, 0, 0, 0.125);
  }

  /** Variances are those given, or the squares, inverses and exponentials of what is stored, rounded once. */
  @Test
  void covariancesOfDiagonalBatches() {
    double[] given = {0x1.123456789abcdp-3, 3, 0x1p-1074, 0.1f, 7e300};
    for (int from = 0; from < given.length; from++) {
      double[] s = {given[from], given[(from + 1) % 5]};
      assertThat(diagonal(ScaleKind.VARIANCE, s).covariance(0)).containsExactly(s[0], 0, 0, s[1]);
      assertThat(diagonal(ScaleKind.STD, s).covariance(0))
          .containsExactly(s[0] * s[0], 0, 0, s[1] * s[1]);
      assertThat(diagonal(ScaleKind.PRECISION, s).covariance(0))
          .containsExactly(1 / s[0], 0, 0, 1 / s[1]);
    }
    for (double x : new Random(7).doubles(50, -600, 700).toArray()) {
      double[] sigma = diagonal(ScaleKind.LOG_VARIANCE, new double[] {x, 0}).covariance(0);
      BigFloat error = BigFloat.of(sigma[0]).minus(BigFloat.of(x).exp());
      assertThat(Math.abs(error.toDouble())).isLessThanOrEqualTo(0.5 * Math.ulp(sigma[0]));
      assertThat(sigma).endsWith(0, 0, 1);
    }
    assertThat(diagonal(ScaleKind.LOG_VARIANCE, new double[] {1e300, -1e300}).covariance(0))
        .containsExactly(Double.POSITIVE_INFINITY, 0, 0, 0);
    Gaussians floats = DiagonalGaussians.ofStd(new float[4], new float[] {1, 1, 0.1f, 3}, 2);
    assertThat(floats.covariance(1)).containsExactly((double) 0.1f * 0.1f, 0, 0, 9);
    double[] zero = new double[2];
    assertThat(
            Gaussians.of(ScaleKind.STD, zero, zero, 2, ScalePolicy.DETERMINISTIC_IF_ZERO)
                .covariance(0))
        .containsOnly(0);
    int most = 50_000;
    double[] ones = new double[most];
    Arrays.fill(ones, 1);
    Gaussians large = DiagonalGaussians.ofStd(ones, ones, most);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> large.covariance(0))
        .withMessageStartingWith("a covariance of dimension 50000 does not fit an array");
  }

  private static Gaussians diagonal(ScaleKind kind, double[] scale) {
    return Gaussians.of(kind, new double[scale.length], scale, scale.length);
  }

  @Test
  void covarianceEndsWhenInterrupted() {
    int d = 600;
    double[] unit = new double[d * d];
    for (int k = 0; k < d; k++) {
      unit[k * d + k] = 1;
    }
    FullGaussians g = FullGaussians.ofScaleTril(new double[d], unit, d);
    Thread.currentThread().interrupt();
    try {
      assertThatExceptionOfType(CancellationException.class).isThrownBy(() -> g.covariance(0));
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  private static double[] symmetric(int d, double condition, Random random) {
    double[] l = FullBatch.random(true, 1, d, condition, 0, random).matrix();
    double[] sigma = new double[d * d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double sum = 0;
        for (int k = 0; k <= c; k++) {
          sum += l[r * d + k] * l[c * d + k];
        }
        sigma[r * d + c] = sigma[c * d + r] = sum;
      }
    }
    return sigma;
  }

  @Test
  void intoTheCallersArray() {
    Gaussians diagonal = Batch.random(false, 2, 3, 0, new Random(4)).gaussians();
    Gaussians full = FullBatch.random(true, 2, 3, 10, 0, new Random(4)).gaussians();
    for (Gaussians g : List.of(diagonal, full)) {
      double[] out = new double[11];
      Arrays.fill(out, 7);
      assertThat(g.mean(1, out)).isSameAs(out);
      assertThat(Arrays.copyOf(out, 3)).isEqualTo(g.mean(1));
      assertThat(Arrays.copyOfRange(out, 3, 11)).containsOnly(7);
      Arrays.fill(out, 7);
      assertThat(g.scale(1, out)).isSameAs(out);
      int length = g.kind().isFull() ? 9 : 3;
      assertThat(Arrays.copyOf(out, length)).isEqualTo(g.scale(1)).doesNotContain(7);
      assertThat(Arrays.copyOfRange(out, length, 11)).containsOnly(7);
      refusedAs("out has 2 elements but 3 are needed", () -> g.mean(0, new double[2]));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> g.scale(0, new double[length - 1]))
          .withMessage("out has %d elements but %d are needed", length - 1, length);
      assertThatNullPointerException().isThrownBy(() -> g.mean(0, null)).withMessage("out");
      assertThatNullPointerException().isThrownBy(() -> g.scale(0, null)).withMessage("out");
    }
  }

  @Test
  void readingIntoTheCallersArrayAllocatesNothing() {
    Gaussians diagonal = Batch.random(false, 2, 3, 0, new Random(4)).gaussians();
    Gaussians full = FullBatch.random(true, 2, 3, 10, 0, new Random(4)).gaussians();
    double[] out = new double[9];
    long fewest = Long.MAX_VALUE;
    for (int attempt = 0; attempt < 5; attempt++) {
      long before = ThisThread.allocatedBytes();
      for (int i = 0; i < 100; i++) {
        diagonal.mean(1, out);
        diagonal.scale(0, out);
        full.mean(0, out);
        full.scale(1, out);
      }
      fewest = Math.min(fewest, ThisThread.allocatedBytes() - before);
    }
    assertThat(fewest).isZero();
  }

  @Test
  void whatIsHandedOutIsTheCallers() {
    Gaussians g = Batch.random(true, 2, 3, 0, new Random(5)).gaussians();
    double[] mean = g.mean(0);
    Arrays.fill(g.mean(0), 7);
    Arrays.fill(g.scale(0), 7);
    assertThat(g.mean(0)).isEqualTo(mean);
    assertThat(g.scale(0)).doesNotContain(7);
  }

  @Test
  void indices() {
    DiagonalGaussians diagonal = Batch.random(false, N, D, 0, new Random(6)).gaussians();
    FullGaussians full = FullBatch.random(false, N, D, 10, 0, new Random(6)).gaussians();
    double[] out = new double[D * D];
    for (int i : new int[] {-1, N, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
      String range = " is " + i + "; it must be in [0, 9)";
      for (Gaussians g : List.of(diagonal, full)) {
        outOfBounds("i" + range, () -> g.mean(i));
        outOfBounds("i" + range, () -> g.mean(i, out));
        outOfBounds("i" + range, () -> g.scale(i));
        outOfBounds("i" + range, () -> g.scale(i, out));
        outOfBounds("indices[2]" + range, () -> g.select(0, 8, i));
        outOfBounds("i" + range, () -> g.covariance(i));
      }
    }
    for (Gaussians g : List.of(diagonal, full)) {
      outOfBounds("from is -1; it must be in [0, 9]", () -> g.slice(-1, 3));
      outOfBounds("from is 10; it must be in [0, 9]", () -> g.slice(10, 10));
      outOfBounds("to is 10; it must be in [from, size] = [3, 9]", () -> g.slice(3, 10));
      outOfBounds("to is 2; it must be in [from, size] = [3, 9]", () -> g.slice(3, 2));
      assertThatNullPointerException()
          .isThrownBy(() -> g.select((int[]) null))
          .withMessage("indices");
    }
  }

  private static void outOfBounds(String message, Runnable call) {
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(call::run)
        .withMessage(message);
  }

  private static List<Gaussians> batches() {
    List<Gaussians> batches = new ArrayList<>();
    Random random = new Random(7);
    for (boolean isDouble : new boolean[] {false, true}) {
      for (Batch.Kind kind : Batch.Kind.values()) {
        Batch drawn = Batch.random(isDouble, 70, D, 0, random);
        batches.add(Batch.ofStd(kind, isDouble, drawn.mean(), drawn.scale(), D).gaussians());
      }
      for (FullBatch.Kind kind : FullBatch.Kind.values()) {
        batches.add(FullBatch.random(isDouble, 70, D, 50, 0, random).as(kind).gaussians());
      }
    }
    // rows that kernels cannot hold, among others
    double[] extreme = new double[70 * D];
    Arrays.fill(extreme, 1);
    extreme[3 * D] = 1e290;
    extreme[40 * D + 1] = 1e-290;
    batches.add(DiagonalGaussians.ofVariance(new double[70 * D], extreme, D));
    return batches;
  }

  /** Of q, whose rows are no others' business, by every kind of batch and by more than one panel. */
  @Test
  void resultsOfPartsAreThoseOfTheWhole() {
    int[] some = {69, 3, 40, 3, 0};
    Gaussians p = batches().getFirst();
    double[] out = new double[70 * 70];
    double[] part = new double[70 * 70];
    try (KlEngine engine = KlEngine.builder().build()) {
      for (Gaussians whole : batches()) {
        engine.pairwise(whole, p, out);
        for (int from : new int[] {0, 1, 37, 69}) {
          Gaussians slice = whole.slice(from, Math.min(70, from + 35));
          assertAlike(whole, slice);
          engine.pairwise(slice, p, part);
          for (int i = 0; i < slice.size(); i++) {
            assertThat(slice.mean(i)).isEqualTo(whole.mean(from + i));
            assertThat(slice.scale(i)).isEqualTo(whole.scale(from + i));
            assertThat(row(part, i, 70)).isEqualTo(row(out, from + i, 70));
          }
        }
        Gaussians selection = whole.select(some);
        assertAlike(whole, selection);
        engine.pairwise(selection, p, part);
        for (int i = 0; i < some.length; i++) {
          assertThat(selection.mean(i)).isEqualTo(whole.mean(some[i]));
          assertThat(selection.scale(i)).isEqualTo(whole.scale(some[i]));
          assertThat(row(part, i, 70)).isEqualTo(row(out, some[i], 70));
        }
      }
    }
  }

  /** What rounding took from a factor goes along: equal covariances are at 0 of each other, and come back. */
  @Test
  void partsOfCovariancesAreTheSameGaussians() {
    FullGaussians whole =
        FullBatch.random(true, 20, D, 1e6, 0, new Random(8))
            .as(FullBatch.Kind.COVARIANCE)
            .gaussians();
    FullGaussians part = (FullGaussians) whole.slice(5, 9);
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] kl = engine.pairwise(part, whole, new double[80]);
      for (int i = 0; i < 4; i++) {
        assertThat(part.covariance(i)).isEqualTo(whole.covariance(5 + i));
        assertThat(kl[i * 20 + 5 + i]).isZero();
      }
    }
  }

  private static void assertAlike(Gaussians whole, Gaussians part) {
    assertThat(part).hasSameClassAs(whole);
    assertThat(part.kind()).isEqualTo(whole.kind());
    assertThat(part.isDouble()).isEqualTo(whole.isDouble());
    assertThat(part.dimension()).isEqualTo(whole.dimension());
  }

  @Test
  void partsOfDeterministicBatchesAreDeterministic() {
    Gaussians zeros =
        Gaussians.of(
            ScaleKind.STD,
            new float[] {1, 2, 3},
            new float[3],
            1,
            ScalePolicy.DETERMINISTIC_IF_ZERO);
    Gaussians one = DiagonalGaussians.ofStd(new float[1], new float[] {1}, 1);
    try (KlEngine engine = KlEngine.builder().build()) {
      for (Gaussians part : List.of(zeros.slice(1, 3), zeros.select(2, 0))) {
        assertThat(part.scale(0)).containsExactly(0);
        assertThat(engine.pairwise(part, one)).containsExactly(0, 0);
        assertThatIllegalArgumentException().isThrownBy(() -> engine.pairwise(one, part));
      }
    }
    assertThat(zeros.slice(2, 2).size()).isZero();
  }

  @Test
  void emptyParts() {
    Gaussians diagonal = Batch.random(true, 3, 2, 0, new Random(9)).gaussians();
    for (Gaussians empty : List.of(diagonal.slice(1, 1), diagonal.slice(3, 3), diagonal.select())) {
      assertThat(empty.size()).isZero();
      assertThat(empty).hasToString("DiagonalGaussians[0 x 2, double, STD]");
      assertThat(empty.slice(0, 0).size()).isZero();
      outOfBounds("i is 0; it must be in [0, 0)", () -> empty.mean(0));
    }
    Gaussians full = FullBatch.random(true, 3, 2, 10, 0, new Random(9)).gaussians();
    String message = "a batch of full covariances has at least one Gaussian; none is selected";
    refusedAs(message, () -> full.slice(1, 1));
    refusedAs(message, () -> full.select());
  }

  @Test
  void partsAreCopies() {
    Gaussians whole = Batch.random(false, 5000, 20, 0, new Random(10)).gaussians();
    whole.prepare();
    assertThat(whole.slice(0, 10).memoryBytes()).isLessThan(10_000);
    Gaussians full = FullBatch.random(false, 500, 8, 10, 0, new Random(10)).gaussians();
    assertThat(full.slice(0, 2).memoryBytes()).isLessThan(10_000);
  }

  @Test
  void tooMany() {
    int d = 1 << 20;
    Gaussians one = DiagonalGaussians.ofLogVariance(new float[d], new float[d], d);
    refused(
        () -> one.select(new int[600]),
        "600 Gaussians of dimension 1048576 are too many for one batch");
  }

  private static double[] row(double[] values, int i, int length) {
    return Arrays.copyOfRange(values, i * length, (i + 1) * length);
  }
}
