package dev.kullback;

import static dev.kullback.IndexDivergenceTest.crc;
import static dev.kullback.IndexDivergenceTest.write;
import static dev.kullback.IndexModel.D;
import static dev.kullback.IndexModel.assertSame;
import static dev.kullback.IndexModel.row;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.kullback.IndexModel.Asked;
import dev.kullback.IndexModel.Data;
import dev.kullback.IndexModel.Part;
import dev.kullback.testing.FullBatch;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** An index of full covariances gives back what it was given, and ranks it as the sorted values of all pairs are. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IndexFullTest {
  /** A folder of the format, which later versions of the library are to read, too. */
  private static final Path KEPT =
      Path.of(System.getProperty("basedir", "."), "src/test/resources/index-format-full");

  @TempDir private Path scratch;

  private static KlIndex.Builder builder(Divergence divergence) {
    return Data.FULL.builder(divergence);
  }

  /** Gaussians of one kind and precision; numbers that float holds exactly, whatever computes them. */
  private static FullGaussians kept(int part) {
    double[] mean = IntStream.range(0, 6).mapToDouble(k -> (k * 7 % 11 + part) / 8.0).toArray();
    double[] tril = {1, 0, 0.5, 2, 3, 0, -0.25, 1 + part, 0.5, 0, part, 1};
    FullBatch factors = new FullBatch(FullBatch.Kind.SCALE_TRIL, true, mean, tril, 2);
    FullBatch given = part < 2 ? factors : factors.as(FullBatch.Kind.COVARIANCE);
    return new FullBatch(given.kind(), part % 2 == 1, mean, given.matrix(), 2).gaussians();
  }

  private static void fillKept(KlIndex index, Runnable commit) {
    for (int part = 0; part < 4; part++) {
      index.add(new long[] {10L * part, 10L * part + 1, 10L * part + 2}, kept(part));
    }
    commit.run();
    index.remove(21);
    commit.run();
  }

  @Test
  @EnabledIfSystemProperty(named = "index.format.folder", matches = ".+")
  void makesTheFolder() {
    Path folder = Path.of(System.getProperty("index.format.folder"));
    try (KlIndex index =
        KlIndex.builder(2).fullCovariances().divergence(Divergence.JEFFREYS).open(folder)) {
      fillKept(index, index::commit);
    }
  }

  @Test
  void aKeptFolderIsRead() throws IOException {
    Path copy = Files.createDirectory(scratch.resolve("kept"));
    try (Stream<Path> files = Files.list(KEPT)) {
      for (Path file : files.toList()) {
        Files.copy(file, copy.resolve(file.getFileName()));
      }
    }
    assertThat(Files.readAllLines(copy.resolve("manifest")))
        .startsWith("kullback-index 2", "dimension 2", "divergence jeffreys", "covariances full");
    try (KlIndex index = KlIndex.open(copy);
        KlIndex expected =
            KlIndex.builder(2).fullCovariances().divergence(Divergence.JEFFREYS).build()) {
      fillKept(expected, () -> {});
      index.verify();
      assertThat(index.stats().deleted()).isOne();
      for (int again = 0; again < 2; again++) {
        assertThat(index.ids()).isEqualTo(expected.ids());
        for (int part = 0; part < 4; part++) {
          assertSame(index.get(10L * part, 10L * part + 2), kept(part).select(0, 2));
          IndexNeighbors found = index.nearest(kept(part), 20);
          assertThat(found.values()).isEqualTo(expected.nearest(kept(part), 20).values());
          assertThat(found.ids()).isEqualTo(expected.nearest(kept(part), 20).ids());
        }
        index.compact();
        index.commit();
      }
    }
  }

  /** One by one, in an open segment, beside threads that search. */
  @Test
  void takesSmallChanges() {
    IndexModel model = new IndexModel(Data.FULL, 5);
    int part = Data.FULL.size();
    try (KlIndex index = builder(Divergence.KL).threads(2).open(scratch)) {
      for (int row = 0; row < part; row++) {
        for (Part some : model.parts) {
          index.replace(some.idsOf(row), some.batch().select((row + 1) % part));
          index.replace(some.idsOf(row), some.batch().select(row));
        }
        if (row % 25 == 24) {
          index.commit();
        }
      }
      assertThat(index.size()).isEqualTo((long) part * model.parts.size());
      model.checkGivenBack(index);
      Asked.of(Divergence.KL, model).forEach(asked -> asked.check(index));
      assertThat(index.toString())
          .isEqualTo("KlIndex[600 x 5, full covariances, %s]".formatted(scratch.toAbsolutePath()));
    }
  }

  /** What ends early has exact values, and no other reference is nearer than it says. */
  @ParameterizedTest
  @FieldSource("dev.kullback.IndexDivergenceTest#ALL")
  void provesWhatItHasNotSeen(Divergence divergence) {
    IndexModel model = new IndexModel(Data.FULL, 6);
    int open = 0;
    try (KlIndex index = builder(divergence).threads(2).build()) {
      model.fill(index);
      for (Gaussians x : Data.FULL.queries()) {
        IndexNeighbors all = index.nearest(x, 700);
        for (Query query :
            List.of(
                Query.nearest(5).approximate(0.02),
                Query.nearest(5).approximate(0.9),
                Query.nearest(5).timeout(Duration.ofNanos(1)),
                Query.nearest(5).timeout(Duration.ofMinutes(1)),
                Query.within(all.value(0, 40)).approximate(0.05))) {
          IndexNeighbors found = index.search(x, query);
          for (int i = 0; i < x.size(); i++) {
            List<Map.Entry<Long, Double>> every = row(all, i);
            List<Map.Entry<Long, Double>> some = row(found, i);
            assertThat(every).containsAll(some);
            for (Map.Entry<Long, Double> one : every) {
              assertThat(some.contains(one) || one.getValue() >= found.provenUpTo(i)).isTrue();
            }
            open += found.isComplete(i) ? 0 : 1;
          }
        }
        IndexNeighbors patient = index.search(x, Query.nearest(5).timeout(Duration.ofMinutes(1)));
        assertThat(patient.isComplete(0)).isTrue();
        assertThat(row(patient, 0)).isEqualTo(row(all, 0).subList(0, 5));
      }
    }
    assertThat(open).isPositive();
  }

  @Test
  void warmsUp() {
    IndexModel model = new IndexModel(Data.FULL, 7);
    try (KlIndex index = builder(Divergence.KL).build()) {
      assertThat(index.nearest(Data.FULL.queries().getFirst(), 3).count(0)).isZero();
      model.fill(index);
      long before = index.stats().queries();
      boolean isFast = index.warmUp();
      assertThat(index.isReady()).isTrue();
      assertThat(isFast).isEqualTo(KlIndex.builder(D).build().warmUp());
      assertThat(index.stats().queries()).isGreaterThan(before);
    }
  }

  @Test
  void wassersteinTakesWhatIsSingular() {
    double[] mean = {0, 0, 3, 4};
    double[] covariance = {1, 1, 1, 1, 4, 0, 0, 0};
    Gaussians batch =
        Gaussians.of(ScaleKind.COVARIANCE, mean, covariance, 2, ScalePolicy.SEMIDEFINITE);
    KlIndex.Builder two = KlIndex.builder(2).fullCovariances();
    try (KlIndex index = two.divergence(Divergence.SQUARED_WASSERSTEIN_2).open(scratch);
        KlEngine engine = KlEngine.builder().divergence(Divergence.SQUARED_WASSERSTEIN_2).build()) {
      index.add(new long[] {7, 8}, batch);
      index.commit();
      assertThat(index.get(8).scale(0)).isEqualTo(batch.scale(1));
      IndexNeighbors found = index.nearest(batch, 2);
      Neighbors expected = engine.search(batch, batch, Query.nearest(2).exact());
      assertThat(found.values()).isEqualTo(expected.values());
      assertThat(index.nearest(7, 1).value(0, 0)).isEqualTo(expected.value(0, 1));
    }
    try (KlIndex index = KlIndex.builder(2).fullCovariances().build()) {
      assertThatExceptionOfType(InvalidGaussianException.class)
          .isThrownBy(() -> index.add(new long[] {7, 8}, batch))
          .withMessageContaining("(Gaussian 0) has rank 1 of 2")
          .withMessageContaining(
              "only the divergences wasserstein-2 and squared-wasserstein-2 need no inverse");
    }
  }

  // --- what is refused

  @Test
  void otherGaussiansAreRefused() {
    FullGaussians full = (FullGaussians) new IndexModel(Data.FULL, 8).parts.getFirst().batch();
    Gaussians diagonal = Data.FULL.queries().get(2);
    try (KlIndex index = builder(Divergence.KL).build()) {
      refusedAs(
          "batch is diagonal, and this index has full covariances; add FullGaussians, such as of factors with σ on the diagonal",
          () -> index.add(new long[] {1, 2}, diagonal));
      Gaussians none = DiagonalGaussians.ofStd(new float[0], new float[0], D);
      index.add(new long[0], none); // no change, as of any index
      assertThat(index.nearest(none, 3).size()).isZero();
      refusedAs(
          "there are 1 ids but 60 Gaussians; each needs its own",
          () -> index.replace(new long[] {1}, full));
      index.add(new long[] {4}, full.select(0));
      double[] far = new double[D];
      Arrays.fill(far, 1500);
      Gaussians beyond = DiagonalGaussians.ofLogVariance(new double[D], far, D);
      assertThatExceptionOfType(InvalidGaussianException.class)
          .isThrownBy(() -> index.nearest(beyond, 1))
          .withMessageContaining(
              "queries[0] (Gaussian 0, dimension 0) has log-variance 1500.0; with a full covariance it must be in [-1400.0, 1400.0]");
    }
    try (KlIndex index = KlIndex.builder(2).build()) {
      assertThat(index.hasFullCovariances()).isFalse();
    }
    KlIndex.Builder wide = KlIndex.builder(12_000).fullCovariances();
    for (Consumer<Path> call : List.<Consumer<Path>>of(f -> wide.build(), wide::open)) {
      refusedAs(
          "dimension must be in [1, 11406] with full covariances, is 12000",
          () -> call.accept(scratch));
    }
  }

  @Test
  void theManifestSaysFullCovariances() throws Exception {
    Path kl = scratch.resolve("kl");
    builder(Divergence.KL).open(kl).close();
    assertThat(Files.readString(kl.resolve("manifest")))
        .startsWith("kullback-index 2\ndimension 5\ncovariances full\ngeneration 0\n");
    Path jeffreys = scratch.resolve("jeffreys");
    builder(Divergence.JEFFREYS).open(jeffreys).close();
    assertThat(Files.readString(jeffreys.resolve("manifest")))
        .startsWith(
            "kullback-index 2\ndimension 5\ndivergence jeffreys\ncovariances full\ngeneration 0\n");
    for (KlIndex index : List.of(KlIndex.open(kl), KlIndex.builder().openReadOnly(jeffreys))) {
      try (index) {
        assertThat(index.hasFullCovariances()).isTrue();
      }
    }
    byte[] before = Files.readAllBytes(kl.resolve("manifest"));
    for (String damaged :
        List.of("covariances", "covariances diagonal", "covariances full\ncovariances full", "")) {
      write(kl, "covariances full", damaged);
      assertThatExceptionOfType(CorruptIndexException.class)
          .isThrownBy(() -> KlIndex.open(kl))
          .withMessageStartingWith(kl.resolve("manifest").toRealPath() + ": ");
      Files.write(kl.resolve("manifest"), before);
    }
    write(kl, "dimension 5", "dimension 11407");
    assertThatExceptionOfType(CorruptIndexException.class)
        .isThrownBy(() -> KlIndex.open(kl))
        .withMessageContaining("has the invalid number 11407");

    Path diagonal = scratch.resolve("diagonal");
    KlIndex.builder(D).open(diagonal).close();
    refusedAs(
        diagonal.toRealPath()
            + " is an index of diagonal Gaussians, not of full covariances; make another index for these",
        () -> KlIndex.builder(D).fullCovariances().open(diagonal));
  }

  /** A segment of diagonal Gaussians is none of full covariances, nor the other way around. */
  @Test
  void aManifestOfOtherCovariancesFindsDamage() throws Exception {
    Path full = scratch.resolve("full");
    try (KlIndex index = builder(Divergence.JEFFREYS).open(full)) {
      new IndexModel(Data.FULL, 9).fill(index);
      index.commit();
    }
    write(full, "covariances full\n", "");
    assertThatExceptionOfType(CorruptIndexException.class)
        .isThrownBy(() -> KlIndex.open(full))
        .withMessageContaining("segment-");
    Path diagonal = scratch.resolve("diagonal");
    try (KlIndex index = KlIndex.builder(D).divergence(Divergence.HELLINGER).open(diagonal)) {
      index.add(new long[] {1, 2}, Data.FULL.queries().get(2));
      index.commit();
    }
    write(diagonal, "generation", "covariances full\ngeneration");
    assertThatExceptionOfType(CorruptIndexException.class)
        .isThrownBy(() -> KlIndex.open(diagonal))
        .withMessageContaining("segment-");
  }

  /** A header that says what the file has not, with right checksums, is refused by the name of the file. */
  @Test
  void headersThatLieAreRefused() throws Exception {
    Part part = new IndexModel(Data.FULL, 10).parts.getLast();
    try (KlIndex index = builder(Divergence.KL).open(scratch)) {
      index.add(part.ids(), part.batch());
      index.commit();
    }
    Path file = scratch.resolve("segment-000001.bin");
    byte[] good = Files.readAllBytes(file);
    String manifest = Files.readString(scratch.resolve("manifest"));
    int[][] lies = {
      {8, 1},
      {12, 0},
      {12, 6},
      {12, 11_406},
      {12, 65_536},
      {12, Integer.MAX_VALUE},
      {16, -1},
      {16, 61},
      {16, Integer.MAX_VALUE},
      {20, 4},
      {20, 6},
      {20, 0},
      {20, -1},
      {24, 2},
      {32, 1},
      {36, 0},
      {36, 1},
      {36, 2},
      {36, 4}
    };
    for (int[] lie : lies) {
      byte[] bytes = good.clone();
      ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putInt(lie[0], lie[1]);
      Files.write(file, bytes);
      int head = crc(Arrays.copyOf(bytes, Math.min(4096, bytes.length)));
      Files.writeString(scratch.resolve("manifest"), manifest);
      write(
          scratch,
          "(segment-000001.bin \\d+ \\d+ \\d+) \\S+ \\S+",
          "$1 %08x %08x".formatted(head, crc(bytes)));
      assertThatExceptionOfType(UncheckedIOException.class)
          .as("%s", Arrays.toString(lie))
          .isThrownBy(() -> KlIndex.open(scratch).close())
          .withMessageStartingWith(file.toRealPath().toString());
    }
  }

  /** Values in a mapped file, whose checksum opening does not compare, may be anything: searches end, and verify names the file. */
  @ParameterizedTest
  @FieldSource("dev.kullback.IndexDivergenceTest#ALL")
  void damagedValuesEndNoSearch(Divergence divergence) throws Exception {
    Random random = new Random(11);
    int n = 1000;
    FullGaussians batch =
        FullBatch.random(true, n, D, 20, 0, random).as(FullBatch.Kind.COVARIANCE).gaussians();
    try (KlIndex index = builder(divergence).open(scratch)) {
      index.add(LongStream.range(0, n).toArray(), batch);
      index.commit();
      assertThat(index.stats().mappedBytes()).isPositive();
    }
    Path file = scratch.resolve("segment-000001.bin");
    byte[] good = Files.readAllBytes(file);
    double[] values = {
      Double.NaN, -1, 0, -0.0, Double.POSITIVE_INFINITY, Double.MIN_VALUE, Double.MAX_VALUE, 1e-300
    };
    for (int round = 0; round < 4; round++) {
      ByteBuffer bytes = ByteBuffer.wrap(good.clone()).order(ByteOrder.LITTLE_ENDIAN);
      for (int change = 0; change < 5000; change++) {
        int at = 8192 + 8 * random.nextInt((good.length - 8192) / 8);
        bytes.putDouble(at, values[random.nextInt(round == 0 ? 1 : values.length)]);
      }
      Files.write(file, bytes.array());
      try (KlIndex index = KlIndex.openReadOnly(scratch)) {
        for (Gaussians x : Data.FULL.queries()) {
          assertThat(index.nearest(x, 10).size()).isEqualTo(x.size());
          index.search(x, Query.within(3).reverse());
        }
        index.nearest(index.ids()[0], 3);
        index.forEach((ids, some) -> assertThat(some.size()).isEqualTo(ids.length));
        assertThatExceptionOfType(CorruptIndexException.class)
            .isThrownBy(index::verify)
            .withMessageStartingWith(file.toRealPath().toString());
      }
    }
  }
}
