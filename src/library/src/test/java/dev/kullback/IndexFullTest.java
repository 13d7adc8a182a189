package dev.kullback;

import static dev.kullback.IndexDivergenceTest.nearest;
import static dev.kullback.IndexDivergenceTest.row;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.testing.Batch;
import dev.kullback.testing.FullBatch;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** An index of full covariances gives back what it was given, and ranks it as the sorted values of all pairs are. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IndexFullTest {
  private static final int D = 4;

  /** References of a part. */
  private static final int PART = 60;

  private static final int QUERIES = 2;

  /** A folder of the format, which later versions of the library are to read, too. */
  private static final Path KEPT =
      Path.of(System.getProperty("basedir", "."), "src/test/resources/index-format-full");

  @TempDir private Path scratch;

  /** Gaussians that were added together, under ids in no order. */
  private record Part(FullGaussians batch, long[] ids) {
    long[] idsOf(int... rows) {
      return Arrays.stream(rows).mapToLong(row -> ids[row]).toArray();
    }
  }

  /** One of each kind and precision, the first third of each near one Gaussian, and some of them alike; ids of different parts alternate. */
  private static List<Part> parts(int seed) {
    Random random = new Random(seed);
    List<Part> parts = new ArrayList<>();
    for (FullBatch.Kind kind : FullBatch.Kind.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        FullBatch all = FullBatch.random(true, PART, D, 30, 0, random);
        double[] mean = all.mean();
        double[] tril = all.matrix();
        for (int i = 0; i < PART / 3; i++) {
          for (int k = 0; k < D * D; k++) {
            tril[i * D * D + k] = tril[k] * (1 + (i % 2 == 0 ? 0 : 1e-3 * i));
          }
          for (int k = 0; k < D; k++) {
            mean[i * D + k] = mean[k] * (1 + (i % 2 == 0 ? 0 : 1e-14 * i));
          }
        }
        FullBatch factors = new FullBatch(FullBatch.Kind.SCALE_TRIL, true, mean, tril, D);
        FullBatch given =
            kind == FullBatch.Kind.SCALE_TRIL && isDouble ? factors : factors.as(kind);
        FullBatch batch = new FullBatch(given.kind(), isDouble, given.mean(), given.matrix(), D);
        int part = parts.size();
        long[] ids = LongStream.range(0, PART).map(i -> 10 * (i * 7 % PART) + part - 100).toArray();
        parts.add(new Part(batch.gaussians(), ids));
      }
    }
    return parts;
  }

  /** Queries of several kinds, diagonal ones among them. */
  private static List<Gaussians> queries() {
    Random random = new Random(99);
    FullBatch factors = FullBatch.random(false, QUERIES, D, 5, 0, random);
    return List.of(
        factors.gaussians(),
        FullBatch.random(true, QUERIES, D, 5, 0, random).as(FullBatch.Kind.COVARIANCE).gaussians(),
        Batch.random(false, QUERIES, D, 0, random).gaussians(),
        new Batch(
                Batch.Kind.LOG_VARIANCE,
                true,
                random.doubles(QUERIES * D).toArray(),
                random.doubles(QUERIES * D).toArray(),
                D)
            .gaussians());
  }

  private static KlIndex.Builder builder(Divergence divergence) {
    return KlIndex.builder(D).fullCovariances().divergence(divergence);
  }

  /** The references as they are to be in an index: its parts, less what was removed. */
  private static final class Model {
    final List<Part> parts;
    final List<Long> removed = new ArrayList<>();

    Model(int seed) {
      parts = parts(seed);
    }

    /** Adds all, in several segments, some after others were under their ids, and removes some. */
    Model fill(KlIndex index) {
      for (Part part : parts) {
        index.add(part.ids(), part.batch());
      }
      for (Part part : parts.reversed()) {
        long[] few = part.idsOf(5, 3, 30);
        index.remove(few);
        index.add(few, part.batch().select(3, 5, 30)); // two are exchanged
        index.replace(part.idsOf(3, 5), part.batch().select(3, 5));
      }
      for (int k = 0; k < PART; k += 11) {
        removed.add(parts.get(k % parts.size()).ids()[k]);
      }
      index.remove(removed.stream().mapToLong(id -> id).toArray());
      return this;
    }

    /** The values of each query and all references, by id, as an engine has them. */
    List<List<Map.Entry<Long, Double>>> all(KlEngine engine, Gaussians x, Query query) {
      List<List<Map.Entry<Long, Double>>> all = new ArrayList<>();
      List<Neighbors> found =
          parts.stream().map(part -> engine.search(x, part.batch(), query.exact())).toList();
      for (int i = 0; i < x.size(); i++) {
        Map<Long, Double> values = new TreeMap<>();
        for (int part = 0; part < parts.size(); part++) {
          Neighbors of = found.get(part);
          for (int r = 0; r < of.count(i); r++) {
            values.put(parts.get(part).ids()[of.index(i, r)], of.value(i, r));
          }
        }
        removed.forEach(values::remove);
        all.add(List.copyOf(values.entrySet()));
      }
      return all;
    }
  }

  private static void check(KlIndex index, Model model) {
    assertThat(index.hasFullCovariances()).isTrue();
    try (KlEngine engine = KlEngine.builder().divergence(index.divergence()).build()) {
      Query all = Query.within(Double.POSITIVE_INFINITY);
      for (Gaussians x : queries()) {
        for (boolean reverse : new boolean[] {false, true}) {
          List<List<Map.Entry<Long, Double>>> values =
              model.all(engine, x, reverse ? all.reverse() : all);
          for (int k : new int[] {1, 10, 700}) {
            Query nearest = reverse ? Query.nearest(k).reverse() : Query.nearest(k);
            IndexNeighbors found = index.search(x, nearest);
            for (int i = 0; i < x.size(); i++) {
              assertThat(row(found, i)).isEqualTo(nearest(values.get(i), k, Long.MIN_VALUE));
              assertThat(found.isComplete(i)).isTrue();
            }
          }
          // just what has the value, too
          double radius = nearest(values.getFirst(), 25, Long.MIN_VALUE).getLast().getValue();
          Query within = reverse ? Query.within(radius).reverse() : Query.within(radius);
          IndexNeighbors found = index.search(x, within);
          List<List<Map.Entry<Long, Double>>> expected = model.all(engine, x, within);
          for (int i = 0; i < x.size(); i++) {
            assertThat(row(found, i)).isEqualTo(expected.get(i));
          }
        }
      }
    }
  }

  @ParameterizedTest
  @FieldSource("dev.kullback.IndexDivergenceTest#ALL")
  void findsWhatSortedValuesSay(Divergence divergence) {
    try (KlIndex index = builder(divergence).build()) {
      check(index, new Model(1).fill(index));
    }
  }

  /** In several groups, of which threads share the references. */
  @ParameterizedTest
  @FieldSource("dev.kullback.IndexDivergenceTest#ALL")
  void manyQueriesFindWhatFewDo(Divergence divergence) {
    Model model = new Model(12);
    Random random = new Random(13);
    try (KlIndex index = builder(divergence).threads(3).build()) {
      model.fill(index);
      for (boolean isDouble : new boolean[] {false, true}) {
        Gaussians many = FullBatch.random(isDouble, 70, D, 9, 0, random).gaussians();
        double radius = index.nearest(many.slice(0, 1), 25).value(0, 24);
        for (Query query :
            List.of(
                Query.nearest(10),
                Query.nearest(60).reverse(),
                Query.nearest(3).filter(id -> id % 3 == 0).excluding(model.parts.get(2).ids()),
                Query.nearest(9).timeout(Duration.ofDays(1)),
                Query.within(radius).reverse())) {
          IndexNeighbors found = index.search(many, query);
          for (int i = 0; i < 70; i += 3) {
            assertThat(row(found, i)).isEqualTo(row(index.search(many.slice(i, i + 1), query), 0));
          }
        }
      }
    }
  }

  /** Through commits, another opening, readers, refreshing, snapshots, a purge and merges, with several threads. */
  @ParameterizedTest
  @FieldSource("dev.kullback.IndexDivergenceTest#ALL")
  void isKeptByAFolder(Divergence divergence) {
    Path folder = scratch.resolve("index");
    Path copy = scratch.resolve("copy");
    Model model = new Model(2);
    try (KlIndex index = builder(divergence).open(folder);
        KlIndex reader = KlIndex.openReadOnly(folder)) {
      model.fill(index);
      index.commit();
      check(index, model);
      assertThat(reader.refresh()).isTrue();
      check(reader, model);
      index.verify();
      index.snapshot(copy);
      index.purge();
      assertThat(index.stats().deleted()).isZero();
      check(index, model);
    }
    for (Path place : List.of(folder, copy)) {
      try (KlIndex index = KlIndex.builder(D).threads(3).open(place)) {
        assertThat(index.divergence()).isEqualTo(divergence);
        check(index, model);
        index.compact(); // given and computed factors, of float and double
        assertThat(index.stats().segments()).isEqualTo(4);
        index.commit();
      }
      try (KlIndex index = KlIndex.openReadOnly(place)) {
        check(index, model);
      }
    }
  }

  /** By id, by ids, without some, page by page, and one by one. */
  @ParameterizedTest
  @FieldSource("dev.kullback.IndexDivergenceTest#ALL")
  void allSearchesAreOfFullCovariances(Divergence divergence) {
    Model model = new Model(3);
    try (KlIndex index = builder(divergence).batchQueries(Duration.ofMillis(1)).build();
        KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
      model.fill(index);
      long id = model.parts.get(6).ids()[1];
      Gaussians own = index.get(id);
      Query all = Query.within(Double.POSITIVE_INFINITY);
      List<Map.Entry<Long, Double>> values = model.all(engine, own, all).getFirst();
      assertThat(row(index.nearest(id, 20), 0)).isEqualTo(nearest(values, 20, id));

      long[] some = values.stream().mapToLong(Map.Entry::getKey).filter(x -> x % 3 == 0).toArray();
      List<Map.Entry<Long, Double>> of =
          values.stream().filter(entry -> entry.getKey() % 3 == 0).toList();
      List<Map.Entry<Long, Double>> expected = nearest(of, 15, Long.MIN_VALUE);
      assertThat(row(index.rank(own, new long[][] {some}, 15), 0)).isEqualTo(expected);
      Query nearest = Query.nearest(15);
      for (Query query : List.of(nearest.filter(x -> x % 3 == 0), nearest.among(some))) {
        assertThat(row(index.search(own, query), 0)).isEqualTo(expected);
      }
      IndexNeighbors few = index.search(own, Query.nearest(5).among(some[4], some[2], 5000));
      assertThat(few.count(0)).isEqualTo(2);
      assertThat(row(index.search(own, Query.nearest(5).excluding(id)), 0))
          .isEqualTo(nearest(values, 5, id));
      long[][] out = {{id, some[0]}};
      assertThat(row(index.search(own, Query.nearest(700).excluding(out)), 0))
          .isEqualTo(nearest(values, 700, id).stream().filter(e -> e.getKey() != some[0]).toList());
      try (KlIndex now = index.reader()) {
        IndexNeighbors first = now.search(own, Query.nearest(9));
        IndexNeighbors second = now.search(own, Query.nearest(9).after(first));
        assertThat(Stream.of(first, second).flatMap(page -> row(page, 0).stream()).toList())
            .isEqualTo(nearest(values, 18, Long.MIN_VALUE));
      }

      Gaussians x = queries().get(2); // diagonal, of float
      float[] mean = Batch.narrowed(x.mean(0));
      float[] std = Batch.narrowed(x.scale(0));
      List<Map.Entry<Long, Double>> byArrays =
          nearest(model.all(engine, x, all).getFirst(), 7, Long.MIN_VALUE);
      long[] ids = new long[7];
      float[] found = new float[7];
      assertThat(index.query(mean, 0, std, 0, 7, ids, found)).isEqualTo(7);
      for (int r = 0; r < 7; r++) {
        assertThat(ids[r]).isEqualTo(byArrays.get(r).getKey());
        assertThat(found[r]).isEqualTo((float) (double) byArrays.get(r).getValue());
      }
    }
  }

  private static void assertSame(Gaussians found, Gaussians expected) {
    assertThat(found).isInstanceOf(FullGaussians.class);
    assertThat(found.size()).isEqualTo(expected.size());
    assertThat(found.isDouble()).isEqualTo(expected.isDouble());
    assertThat(((FullGaussians) found).hasComputedFactors())
        .isEqualTo(((FullGaussians) expected).hasComputedFactors());
    for (int i = 0; i < found.size(); i++) {
      assertThat(found.mean(i)).isEqualTo(expected.mean(i));
      assertThat(found.scale(i)).isEqualTo(expected.scale(i));
      assertThat(found.covariance(i)).isEqualTo(expected.covariance(i)); // by what rounding took
    }
  }

  private static void checkGivenBack(KlIndex index, Model model) {
    List<Long> all = new ArrayList<>();
    for (Part part : model.parts) {
      int[] rows =
          IntStream.range(0, PART).filter(k -> !model.removed.contains(part.ids()[k])).toArray();
      assertSame(index.get(part.idsOf(rows)), part.batch().select(rows));
      assertSame(
          index.get(part.ids()[7], part.ids()[8], part.ids()[7]), part.batch().select(7, 8, 7));
      Arrays.stream(rows).forEach(row -> all.add(part.ids()[row]));
      float[] mean = new float[D];
      float[] std = new float[D];
      for (int row : rows) {
        assertThat(index.get(part.ids()[row], mean, std)).isTrue();
        double[] covariance = part.batch().covariance(row);
        for (int h = 0; h < D; h++) {
          assertThat(mean[h]).isEqualTo((float) part.batch().mean(row)[h]);
          float expected = (float) Math.sqrt(covariance[h * (D + 1)]);
          assertThat(std[h]).isBetween(Math.nextDown(expected), Math.nextUp(expected));
        }
      }
    }
    assertThat(index.ids()).isEqualTo(all.stream().mapToLong(id -> id).sorted().toArray());
    List<Long> seen = new ArrayList<>();
    List<Boolean> precisions = new ArrayList<>();
    index.forEach((ids, batch) -> {
      assertThat(ids).isSorted();
      assertSame(batch, index.get(ids));
      precisions.add(batch.isDouble());
      Arrays.stream(ids).forEach(seen::add);
    });
    assertThat(precisions).containsExactly(false, true, false, true);
    assertThat(seen).containsExactlyInAnyOrderElementsOf(all);
  }

  @Test
  void givesBackWhatWasAdded() {
    Model model = new Model(4);
    try (KlIndex index = KlIndex.builder(D).fullCovariances().open(scratch)) {
      model.fill(index);
      checkGivenBack(index, model);
      index.commit();
      checkGivenBack(index, model);
      index.compact();
      checkGivenBack(index, model);
      index.purge();
    }
    try (KlIndex index = KlIndex.open(scratch)) {
      checkGivenBack(index, model);
      Part part = model.parts.get(7);
      long id = part.ids()[9];
      index.replace(new long[] {id, -5000}, part.batch().select(9, 2));
      assertSame(index.get(id, -5000), part.batch().select(9, 2));
      assertThat(index.remove(-5000)).isOne();
      checkGivenBack(index, model);
      // floats among doubles, and given factors among those that were computed
      Part floats = model.parts.getFirst();
      Gaussians both = index.get(floats.ids()[1], part.ids()[9]);
      assertThat(both.isDouble()).isTrue();
      assertThat(both.scale(0)).isEqualTo(floats.batch().scale(1));
      assertThat(both.covariance(0)).isEqualTo(floats.batch().covariance(1));
      assertThat(both.covariance(1)).isEqualTo(part.batch().covariance(9));
      assertThatExceptionOfType(NoSuchElementException.class)
          .isThrownBy(() -> index.get(id, 7000))
          .withMessage("ids[1] = 7000 is not in the index");
      assertThatIllegalArgumentException()
          .isThrownBy(index::get)
          .withMessage("a batch of full covariances has at least one Gaussian; none is selected");
    }
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

  /** A forEach of more than one block has each reference once. */
  @Test
  void goesOverManyInBlocks() {
    int d = 512;
    int n = 5;
    FullGaussians batch = FullBatch.of(Batch.random(false, n, d, 0, new Random(2))).gaussians();
    try (KlIndex index = KlIndex.builder(d).fullCovariances().build()) {
      index.add(LongStream.range(0, n).toArray(), batch);
      index.remove(3);
      List<Long> seen = new ArrayList<>();
      index.forEach((ids, some) -> {
        assertThat(ids).hasSizeLessThan(n - 1);
        Arrays.stream(ids).forEach(seen::add);
      });
      assertThat(seen).containsExactly(0L, 1L, 2L, 4L);
      assertThat(index.nearest(batch.select(4), 1).id(0, 0)).isEqualTo(4);
    }
  }

  /** One by one, in an open segment, beside threads that search. */
  @Test
  void takesSmallChanges() {
    Model model = new Model(5);
    try (KlIndex index = KlIndex.builder(D).fullCovariances().threads(2).open(scratch)) {
      for (int row = 0; row < PART; row++) {
        for (Part part : model.parts) {
          index.replace(part.idsOf(row), part.batch().select((row + 1) % PART));
          index.replace(part.idsOf(row), part.batch().select(row));
        }
        if (row % 25 == 24) {
          index.commit();
        }
      }
      assertThat(index.size()).isEqualTo((long) PART * model.parts.size());
      checkGivenBack(index, model);
      check(index, model);
      assertThat(index.toString())
          .isEqualTo("KlIndex[600 x 4, full covariances, %s]".formatted(scratch.toAbsolutePath()));
    }
  }

  /** What ends early has exact values, and no other reference is nearer than it says. */
  @ParameterizedTest
  @FieldSource("dev.kullback.IndexDivergenceTest#ALL")
  void provesWhatItHasNotSeen(Divergence divergence) {
    Model model = new Model(6);
    int open = 0;
    try (KlIndex index = builder(divergence).threads(2).build()) {
      model.fill(index);
      for (Gaussians x : queries()) {
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
    Model model = new Model(7);
    try (KlIndex index = builder(Divergence.KL).build()) {
      assertThat(index.nearest(queries().getFirst(), 3).count(0)).isZero();
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
    FullGaussians full = new Model(8).parts.getFirst().batch();
    Gaussians diagonal = queries().get(2);
    try (KlIndex index = KlIndex.builder(D).fullCovariances().build()) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.add(new long[] {1, 2}, diagonal))
          .withMessage(
              "batch is diagonal, and this index has full covariances; add FullGaussians, such as of factors with σ on the diagonal");
      Gaussians none = DiagonalGaussians.ofStd(new float[0], new float[0], D);
      index.add(new long[0], none); // no change, as of any index
      assertThat(index.nearest(none, 3).size()).isZero();
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.replace(new long[] {1}, full))
          .withMessage("there are 1 ids but 60 Gaussians; each needs its own");
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
      assertThatIllegalArgumentException()
          .isThrownBy(() -> call.accept(scratch))
          .withMessage("dimension must be in [1, 11406] with full covariances, is 12000");
    }
  }

  @Test
  void theManifestSaysFullCovariances() throws Exception {
    Path kl = scratch.resolve("kl");
    KlIndex.builder(D).fullCovariances().open(kl).close();
    assertThat(Files.readString(kl.resolve("manifest")))
        .startsWith("kullback-index 2\ndimension 4\ncovariances full\ngeneration 0\n");
    Path jeffreys = scratch.resolve("jeffreys");
    builder(Divergence.JEFFREYS).open(jeffreys).close();
    assertThat(Files.readString(jeffreys.resolve("manifest")))
        .startsWith(
            "kullback-index 2\ndimension 4\ndivergence jeffreys\ncovariances full\ngeneration 0\n");
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
    write(kl, "dimension 4", "dimension 11407");
    assertThatExceptionOfType(CorruptIndexException.class)
        .isThrownBy(() -> KlIndex.open(kl))
        .withMessageContaining("has the invalid number 11407");

    Path diagonal = scratch.resolve("diagonal");
    KlIndex.builder(D).open(diagonal).close();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> KlIndex.builder(D).fullCovariances().open(diagonal))
        .withMessage(
            diagonal.toRealPath()
                + " is an index of diagonal Gaussians, not of full covariances; make another index for these");
  }

  /** A segment of diagonal Gaussians is none of full covariances, nor the other way around. */
  @Test
  void aManifestOfOtherCovariancesFindsDamage() throws Exception {
    Path full = scratch.resolve("full");
    try (KlIndex index = builder(Divergence.JEFFREYS).open(full)) {
      new Model(9).fill(index);
      index.commit();
    }
    write(full, "covariances full\n", "");
    assertThatExceptionOfType(CorruptIndexException.class)
        .isThrownBy(() -> KlIndex.open(full))
        .withMessageContaining("segment-");
    Path diagonal = scratch.resolve("diagonal");
    try (KlIndex index = KlIndex.builder(D).divergence(Divergence.HELLINGER).open(diagonal)) {
      index.add(new long[] {1, 2}, queries().get(2));
      index.commit();
    }
    write(diagonal, "generation", "covariances full\ngeneration");
    assertThatExceptionOfType(CorruptIndexException.class)
        .isThrownBy(() -> KlIndex.open(diagonal))
        .withMessageContaining("segment-");
  }

  /** Changes a manifest, and its checksum. */
  private static void write(Path folder, String from, String to) throws IOException {
    String text = Files.readString(folder.resolve("manifest"));
    String changed = text.substring(0, text.lastIndexOf("checksum")).replaceFirst(from, to);
    Files.writeString(
        folder.resolve("manifest"),
        changed + "checksum %08x\n".formatted(crc(changed.getBytes(StandardCharsets.US_ASCII))));
  }

  private static int crc(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return (int) crc.getValue();
  }

  /** A header that says what the file has not, with right checksums, is refused by the name of the file. */
  @Test
  void headersThatLieAreRefused() throws Exception {
    Part part = new Model(10).parts.getLast();
    try (KlIndex index = KlIndex.builder(D).fullCovariances().open(scratch)) {
      index.add(part.ids(), part.batch());
      index.commit();
    }
    Path file = scratch.resolve("segment-000001.bin");
    byte[] good = Files.readAllBytes(file);
    String manifest = Files.readString(scratch.resolve("manifest"));
    int[][] lies = {
      {8, 1},
      {12, 0},
      {12, 5},
      {12, 11_406},
      {12, 65_536},
      {12, Integer.MAX_VALUE},
      {16, -1},
      {16, PART + 1},
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
        for (Gaussians x : queries()) {
          assertThat(index.nearest(x, 10).size()).isEqualTo(QUERIES);
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
