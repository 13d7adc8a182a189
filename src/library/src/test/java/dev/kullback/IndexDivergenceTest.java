package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Share;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

/** An index ranks by any divergence, as the sorted values of all pairs are. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IndexDivergenceTest {
  private static final int D = 5;

  /** References of a part: enough that its segments have codes. */
  private static final int PART = 300;

  private static final int QUERIES = 3;

  static final List<Divergence> ALL =
      List.of(
          Divergence.KL,
          Divergence.REVERSE_KL,
          Divergence.JEFFREYS,
          Divergence.BHATTACHARYYA,
          Divergence.HELLINGER,
          Divergence.WASSERSTEIN_2,
          Divergence.SQUARED_WASSERSTEIN_2,
          Divergence.renyi(0.3),
          Divergence.renyi(1.5),
          Divergence.chernoff(0.7));

  @TempDir private Path scratch;

  /** What means and scales are like. */
  enum Data {
    ORDINARY,
    /** Few values, so that many divergences are equal. */
    TIES,
    /** Each is nearly one of a few. */
    NEAR_TIES,
    TINY,
    /** Far from 0, of scales of many magnitudes, with outliers. */
    WILD,
    /** Dimensions in which all are alike. */
    CONSTANT
  }

  /** Gaussians that are added together. */
  private record Part(Batch batch, long[] ids) {}

  private static List<Part> parts(Data data, int seed) {
    Random random = new Random(seed);
    List<Part> parts = new ArrayList<>();
    for (Batch.Kind kind : Batch.Kind.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        int part = parts.size();
        long[] ids = new long[PART];
        Arrays.setAll(ids, i -> 8L * (i * 7 % PART) + part - 100);
        parts.add(new Part(batch(data, kind, isDouble, PART, random), ids));
      }
    }
    return parts;
  }

  private static Batch batch(Data data, Batch.Kind kind, boolean isDouble, int n, Random random) {
    double[] mean = new double[n * D];
    double[] std = new double[n * D];
    for (int k = 0; k < n * D; k++) {
      double x = random.nextGaussian();
      double y = random.nextGaussian();
      switch (data) {
        case ORDINARY -> {
          mean[k] = x;
          std[k] = Math.exp(0.5 * y);
        }
        case TIES -> {
          mean[k] = Math.rint(x);
          std[k] = y < 0 ? 1 : 2;
        }
        case NEAR_TIES -> {
          double near = 1 + 1e-15 * random.nextInt(8);
          mean[k] = Math.rint(x) * near;
          std[k] = (y < 0 ? 1 : 2) * near;
        }
        case TINY -> {
          mean[k] = 1e-17 * x;
          std[k] = 1e-15 * Math.exp(y);
        }
        case WILD -> {
          mean[k] = 1e9 * (1 + 1e-6 * x) * (random.nextInt(200) == 0 ? 1e5 : 1);
          std[k] = Math.exp(4 * y);
        }
        case CONSTANT -> {
          mean[k] = k % D == 0 ? 0 : k % D == 1 ? 3 : x;
          std[k] = k % D < 3 ? 1 : Math.exp(y);
        }
      }
    }
    return Batch.ofStd(kind, isDouble, mean, std, D);
  }

  /** One query in each of some batches, of several kinds. */
  private static List<Gaussians> queries(Data data) {
    Random random = new Random(99);
    return List.of(
        batch(data, Batch.Kind.STD, false, QUERIES, random).gaussians(),
        batch(data, Batch.Kind.LOG_VARIANCE, true, QUERIES, random).gaussians());
  }

  /** The references as they are to be in an index: its parts, less what was removed. */
  private static final class Model {
    final List<Part> parts;
    final List<Long> removed = new ArrayList<>();

    Model(List<Part> parts) {
      this.parts = parts;
    }

    void fill(KlIndex index) {
      for (Part part : parts) {
        index.add(part.ids(), part.batch().gaussians());
      }
      for (int k = 0; k < PART; k += 11) {
        removed.add(parts.get(k % 8).ids()[k]);
      }
      index.remove(removed.stream().mapToLong(id -> id).toArray());
      Part first = parts.getFirst(); // once more, in a segment of its own
      index.replace(new long[] {first.ids()[3]}, first.batch().rows(3, 4).gaussians());
      removed.remove((Long) first.ids()[3]);
    }

    /** The values of each query and all references that a search finds, in the order of the ids. */
    List<List<Map.Entry<Long, Double>>> all(KlEngine engine, Gaussians x, Query query) {
      List<Map<Long, Double>> values = new ArrayList<>();
      for (int i = 0; i < x.size(); i++) {
        values.add(new TreeMap<>());
      }
      for (Part part : parts) {
        Neighbors found = engine.search(x, part.batch().gaussians(), query.exact());
        for (int i = 0; i < x.size(); i++) {
          for (int r = 0; r < found.count(i); r++) {
            values.get(i).put(part.ids()[found.index(i, r)], found.value(i, r));
          }
        }
      }
      values.forEach(row -> row.keySet().removeAll(removed));
      return values.stream().map(row -> List.copyOf(row.entrySet())).toList();
    }
  }

  static List<Map.Entry<Long, Double>> row(IndexNeighbors found, int i) {
    List<Map.Entry<Long, Double>> row = new ArrayList<>();
    for (int r = 0; r < found.count(i); r++) {
      row.add(Map.entry(found.id(i, r), found.value(i, r)));
    }
    return row;
  }

  static List<Map.Entry<Long, Double>> nearest(
      List<Map.Entry<Long, Double>> all, int k, long without) {
    Comparator<Map.Entry<Long, Double>> order = Map.Entry.comparingByValue();
    return all.stream()
        .filter(entry -> entry.getKey() != without)
        .sorted(order.thenComparing(Map.Entry.comparingByKey()))
        .limit(k)
        .toList();
  }

  /** Queries in one direction, and the values of all references and of those within a radius, for all indexes of the same references. */
  private record Asked(
      Gaussians x,
      boolean reverse,
      List<List<Map.Entry<Long, Double>>> all,
      Query within,
      List<List<Map.Entry<Long, Double>>> near) {
    static List<Asked> of(Divergence divergence, Model model, Data data) {
      List<Asked> asked = new ArrayList<>();
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        for (Gaussians x : queries(data)) {
          for (boolean reverse : new boolean[] {false, true}) {
            Query every = directed(Query.within(Double.POSITIVE_INFINITY), reverse);
            List<List<Map.Entry<Long, Double>>> all = model.all(engine, x, every);
            // just what has the value, too
            double radius = nearest(all.getFirst(), 25, Long.MIN_VALUE).getLast().getValue();
            Query within = directed(Query.within(radius), reverse);
            asked.add(new Asked(x, reverse, all, within, model.all(engine, x, within)));
          }
        }
      }
      return asked;
    }

    private static Query directed(Query query, boolean reverse) {
      return reverse ? query.reverse() : query;
    }

    void check(KlIndex index) {
      for (int k : new int[] {1, 10, 700}) {
        IndexNeighbors found = index.search(x, directed(Query.nearest(k), reverse));
        for (int i = 0; i < x.size(); i++) {
          assertThat(row(found, i)).isEqualTo(nearest(all.get(i), k, Long.MIN_VALUE));
        }
      }
      IndexNeighbors found = index.search(x, within);
      for (int i = 0; i < x.size(); i++) {
        assertThat(row(found, i)).isEqualTo(near.get(i));
      }
    }
  }

  @ParameterizedTest
  @FieldSource("ALL")
  void findsWhatSortedValuesSay(Divergence divergence) {
    findsWhatSortedValuesSay(divergence, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @FieldSource("ALL")
  void findsWhatOtherSortedValuesSay(Divergence divergence) {
    findsWhatSortedValuesSay(divergence, Share.OTHERS);
  }

  private static List<Data> data(Divergence divergence, Share share) {
    return Stream.of(Data.values())
        .filter(data -> share.has(ALL.indexOf(divergence) + data.ordinal()))
        .toList();
  }

  private static void findsWhatSortedValuesSay(Divergence divergence, Share share) {
    for (Data data : data(divergence, share)) {
      Model model = new Model(parts(data, 1));
      try (KlIndex index = KlIndex.builder(D).divergence(divergence).build()) {
        model.fill(index);
        Asked.of(divergence, model, data).forEach(asked -> asked.check(index));
      }
    }
  }

  /** Kernels for matrices answer for the one, and bounds for the other. */
  @ParameterizedTest
  @FieldSource("ALL")
  void manyQueriesFindWhatFewDo(Divergence divergence) {
    manyQueriesFindWhatFewDo(divergence, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @FieldSource("ALL")
  void manyQueriesFindWhatFewDoInOtherCases(Divergence divergence) {
    manyQueriesFindWhatFewDo(divergence, Share.OTHERS);
  }

  private static void manyQueriesFindWhatFewDo(Divergence divergence, Share share) {
    for (Data data : data(divergence, share)) {
      Model model = new Model(parts(data, 5));
      int threads = 1 + 2 * (data.ordinal() % 2);
      try (KlIndex index = KlIndex.builder(D).divergence(divergence).threads(threads).build()) {
        model.fill(index);
        int n = 70; // kernels for matrices answer from 32 on, and keep room for 64
        Gaussians many = batch(data, Batch.Kind.VARIANCE, false, n, new Random(6)).gaussians();
        double radius = index.nearest(many.slice(0, 1), 25).value(0, 24);
        for (Query query :
            List.of(
                Query.nearest(10),
                Query.nearest(60).reverse(),
                Query.nearest(3).filter(id -> id % 3 == 0).excluding(model.parts.get(2).ids()),
                Query.nearest(9).timeout(Duration.ofDays(1)),
                Query.within(radius),
                Query.within(radius).reverse())) {
          IndexNeighbors found = index.search(many, query);
          for (int from = 0; from < n; from += share == Share.SOME ? 56 : 14) {
            int to = Math.min(n, from + 14);
            IndexNeighbors few = index.search(many.slice(from, to), query);
            for (int i = from; i < to; i++) {
              assertThat(row(found, i))
                  .as("%s, %s, row %d", data, query, i)
                  .isEqualTo(row(few, i - from));
              assertThat(found.isComplete(i)).isTrue();
            }
          }
        }
      }
    }
  }

  /** Whatever kernels a search has used: those of references of float and of double are others. */
  @ParameterizedTest
  @FieldSource("ALL")
  void queriesAreForgotten(Divergence divergence) throws InterruptedException {
    try (KlIndex index = KlIndex.builder(D).divergence(divergence).threads(2).build()) {
      new Model(parts(Data.ORDINARY, 7)).fill(index);
      WeakReference<Object> asked = ask(index);
      for (int k = 0; k < 100 && asked.get() != null; k++) {
        System.gc();
        Thread.sleep(10);
      }
      assertThat(asked.get()).isNull();
    }
  }

  /** In a method of its own, so that no local variable keeps them. */
  private static WeakReference<Object> ask(KlIndex index) {
    Gaussians many = batch(Data.ORDINARY, Batch.Kind.STD, false, 300, new Random(8)).gaussians();
    index.nearest(many, 3);
    return new WeakReference<>(KlEngine.batch(many));
  }

  /** Through commits, another opening, readers, refreshing and snapshots, with several threads. */
  @ParameterizedTest
  @FieldSource("ALL")
  void isKeptByAFolder(Divergence divergence) {
    Path folder = scratch.resolve("index");
    Path copy = scratch.resolve("copy");
    Model model = new Model(parts(Data.ORDINARY, 2));
    List<Asked> all;
    try (KlIndex index = KlIndex.builder(D).divergence(divergence).open(folder);
        KlIndex reader = KlIndex.openReadOnly(folder)) {
      assertThat(reader.divergence()).isEqualTo(divergence);
      model.fill(index);
      index.commit();
      all = Asked.of(divergence, model, Data.ORDINARY);
      all.forEach(asked -> asked.check(index));
      assertThat(reader.refresh()).isTrue();
      all.forEach(asked -> asked.check(reader));
      index.verify();
      index.snapshot(copy);
    }
    for (Path place : List.of(folder, copy)) {
      try (KlIndex index = KlIndex.builder(D).threads(3).open(place)) {
        assertThat(index.divergence()).isEqualTo(divergence);
        all.forEach(asked -> asked.check(index));
      }
    }
  }

  /** By id, by ids, without some, one by one, and gathered. */
  @ParameterizedTest
  @FieldSource("ALL")
  void allSearchesAreByTheDivergence(Divergence divergence) {
    Model model = new Model(parts(Data.ORDINARY, 3));
    KlIndex.Builder builder =
        KlIndex.builder(D).divergence(divergence).batchQueries(Duration.ofMillis(1));
    try (KlIndex index = KlIndex.builder(D).divergence(divergence).build();
        KlIndex gathered = builder.build();
        KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
      model.fill(index);
      new Model(model.parts).fill(gathered);
      long id = model.parts.get(2).ids()[1];
      Gaussians own = index.get(id);
      Query all = Query.within(Double.POSITIVE_INFINITY);
      List<Map.Entry<Long, Double>> values = model.all(engine, own, all).getFirst();
      IndexNeighbors more = index.nearest(id, 20);
      assertThat(row(more, 0)).isEqualTo(nearest(values, 20, id));

      long[] some = values.stream().mapToLong(Map.Entry::getKey).filter(x -> x % 3 == 0).toArray();
      IndexNeighbors ranked = index.rank(own, new long[][] {some}, 15);
      List<Map.Entry<Long, Double>> of =
          values.stream().filter(entry -> entry.getKey() % 3 == 0).toList();
      assertThat(row(ranked, 0)).isEqualTo(nearest(of, 15, Long.MIN_VALUE));
      IndexNeighbors filtered = index.search(own, Query.nearest(15).filter(x -> x % 3 == 0));
      assertThat(row(filtered, 0)).isEqualTo(row(ranked, 0));
      IndexNeighbors without = index.search(own, Query.nearest(5).excluding(id));
      assertThat(row(without, 0)).isEqualTo(nearest(values, 5, id));

      Gaussians x = queries(Data.ORDINARY).getFirst();
      float[] mean = Batch.narrowed(x.mean(0));
      float[] std = Batch.narrowed(x.scale(0));
      List<Map.Entry<Long, Double>> expected =
          nearest(model.all(engine, x, all).getFirst(), 7, Long.MIN_VALUE);
      for (KlIndex asked : List.of(index, gathered)) {
        long[] ids = new long[7];
        float[] found = new float[7];
        assertThat(asked.query(mean, 0, std, 0, 7, ids, found)).isEqualTo(7);
        for (int r = 0; r < 7; r++) {
          assertThat(ids[r]).isEqualTo(expected.get(r).getKey());
          assertThat(found[r]).isEqualTo((float) (double) expected.get(r).getValue());
        }
      }
    }
  }

  @ParameterizedTest
  @FieldSource("ALL")
  void warmsUp(Divergence divergence) {
    warmsUp(divergence, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @FieldSource("ALL")
  void warmsUpForOtherDivergences(Divergence divergence) {
    warmsUp(divergence, Share.OTHERS);
  }

  /** Takes a second or two each. */
  private static void warmsUp(Divergence divergence, Share share) {
    if (!share.has(ALL.indexOf(divergence))) {
      return;
    }
    KlIndex.Builder builder =
        KlIndex.builder(D).divergence(divergence).batchQueries(Duration.ofMillis(1));
    try (KlIndex index = KlIndex.builder(D).divergence(divergence).build();
        KlIndex gathered = builder.build()) {
      Model model = new Model(parts(Data.ORDINARY, 3));
      model.fill(index);
      new Model(model.parts).fill(gathered);
      assertThat(index.warmUp()).isEqualTo(index.isReady() && gathered.warmUp());
    }
  }

  /** Codes say which references are far, and leave few of them. */
  @ParameterizedTest
  @EnumSource(
      value = Data.class,
      names = {"ORDINARY", "TINY", "CONSTANT"})
  void codesLeaveFew(Data data) {
    for (Divergence divergence :
        List.of(Divergence.JEFFREYS, Divergence.WASSERSTEIN_2, Divergence.SQUARED_WASSERSTEIN_2)) {
      try (KlIndex index = KlIndex.builder(D).divergence(divergence).build()) {
        Batch references = batch(data, Batch.Kind.STD, false, 20_000, new Random(4));
        long[] ids = new long[20_000];
        Arrays.setAll(ids, i -> i);
        index.add(ids, references.gaussians());
        long before = index.stats().bytesRead();
        index.nearest(queries(data).getFirst(), 5);
        // the codes are 20 bytes a reference, and what was given 80 with both times it is counted
        assertThat(index.stats().bytesRead() - before).isLessThan(QUERIES * 20_000L * 36);
      }
    }
  }

  @Test
  void wassersteinTakesWhatIsSingular() {
    float[] mean = {0, 1, 2, 3};
    float[] std = {0, 1, 0, 0};
    long[] ids = {7, 8};
    Gaussians batch = Gaussians.of(ScaleKind.STD, mean, std, 2, ScalePolicy.SEMIDEFINITE);
    try (KlIndex index =
        KlIndex.builder(2).divergence(Divergence.SQUARED_WASSERSTEIN_2).open(scratch)) {
      index.add(ids, batch);
      index.commit();
      assertThat(index.get(7, 8).scale(1)).containsExactly(0, 0);
      index.forEach((found, same) -> assertThat(same.scale(0)).containsExactly(0, 1));
      assertThat(index.nearest(8, 1).value(0, 0)).isEqualTo(9); // 4 + 4 + 1
      assertThat(index.nearest(batch, 1).value(1, 0)).isZero();
      float[] kl = new float[2];
      assertThat(index.query(mean, 2, std, 2, 2, new long[2], kl)).isEqualTo(2);
      assertThat(kl).containsExactly(0, 9);
    }
    try (KlIndex index = KlIndex.builder(2).divergence(Divergence.JEFFREYS).build()) {
      assertThatExceptionOfType(InvalidGaussianException.class)
          .isThrownBy(() -> index.add(ids, batch))
          .withMessageContaining("(Gaussian 0) has rank 1 of 2 (std 0)")
          .withMessageContaining(
              "only the divergences wasserstein-2 and squared-wasserstein-2 need no inverse");
    }
    Gaussians deterministic =
        Gaussians.of(
            ScaleKind.STD, new float[2], new float[2], 2, ScalePolicy.DETERMINISTIC_IF_ZERO);
    try (KlIndex index = KlIndex.builder(2).divergence(Divergence.WASSERSTEIN_2).build()) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.add(new long[] {1}, deterministic))
          .withMessageContaining("deterministic");
    }
  }

  @Test
  void anotherDivergenceIsRefused() throws Exception {
    KlIndex.builder(D).divergence(Divergence.renyi(0.25)).open(scratch).close();
    String expected =
        scratch.toRealPath()
            + " is an index of the divergence renyi:0.25, not kl; open it with that one, or with none, and make another index for kl";
    KlIndex.Builder kl = KlIndex.builder(D).divergence(Divergence.KL);
    assertThatIllegalArgumentException().isThrownBy(() -> kl.open(scratch)).withMessage(expected);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> kl.openReadOnly(scratch))
        .withMessage(expected);
    for (KlIndex index :
        List.of(
            KlIndex.openReadOnly(scratch),
            KlIndex.builder(D).openReadOnly(scratch),
            KlIndex.builder(D).divergence(Divergence.renyi(0.25)).openReadOnly(scratch))) {
      try (index) {
        assertThat(index.divergence()).isEqualTo(Divergence.renyi(0.25));
        assertThat(index.toString())
            .isEqualTo("KlIndex[0 x 5, renyi:0.25, %s, read only]".formatted(scratch.toRealPath()));
      }
    }
  }

  /** The version is one that a library without divergences refuses; of KL it is as it was. */
  @Test
  void theManifestSaysTheDivergence() throws Exception {
    Path kl = scratch.resolve("kl");
    KlIndex.builder(D).divergence(Divergence.KL).open(kl).close();
    assertThat(Files.readString(kl.resolve("manifest")))
        .startsWith("kullback-index 1\ndimension 5\ngeneration 0\n");
    Path jeffreys = scratch.resolve("jeffreys");
    KlIndex.builder(D).divergence(Divergence.JEFFREYS).open(jeffreys).close();
    assertThat(Files.readString(jeffreys.resolve("manifest")))
        .startsWith("kullback-index 2\ndimension 5\ndivergence jeffreys\ngeneration 0\n");

    write(jeffreys, "divergence jeffreys", "divergence w2");
    assertThatExceptionOfType(UncheckedIOException.class)
        .isThrownBy(() -> KlIndex.open(jeffreys))
        .withMessage(
            jeffreys
                + ": is an index of the divergence w2, which this version of Kullback does not know; take the one that wrote it");
    byte[] before = Files.readAllBytes(jeffreys.resolve("manifest"));
    for (String damaged : List.of("divergence kl", "divergence ../x", "divergence", "")) {
      write(jeffreys, "divergence w2", damaged);
      assertThatExceptionOfType(CorruptIndexException.class)
          .isThrownBy(() -> KlIndex.open(jeffreys));
      Files.write(jeffreys.resolve("manifest"), before);
    }
  }

  /** A segment of one index is not one of another's. */
  @Test
  void aManifestOfAnotherDivergenceFindsDamage() throws Exception {
    try (KlIndex index = KlIndex.builder(D).divergence(Divergence.JEFFREYS).open(scratch)) {
      new Model(parts(Data.ORDINARY, 5)).fill(index);
      index.commit();
    }
    write(scratch, "divergence jeffreys", "divergence wasserstein-2");
    assertThatExceptionOfType(CorruptIndexException.class).isThrownBy(() -> KlIndex.open(scratch));
  }

  /** Changes a manifest, and its checksum. */
  private static void write(Path folder, String from, String to) throws IOException {
    String text = Files.readString(folder.resolve("manifest"));
    String changed = text.substring(0, text.lastIndexOf("checksum")).replaceFirst(from, to);
    CRC32C crc = new CRC32C();
    crc.update(changed.getBytes(StandardCharsets.US_ASCII));
    Files.writeString(
        folder.resolve("manifest"), changed + "checksum %08x\n".formatted(crc.getValue()));
  }

  /** A call that ends by itself, of each divergence; nothing of it is kept by the thread in the background. */
  @Test
  void anIndexWithoutReferencesFindsNone() {
    Stream.of(Divergence.JEFFREYS, Divergence.HELLINGER)
        .forEach(divergence -> {
          try (KlIndex index = KlIndex.builder(D).divergence(divergence).build()) {
            IndexNeighbors found = index.nearest(queries(Data.TIES).getFirst(), 3);
            assertThat(found.count(0)).isZero();
          }
        });
  }
}
