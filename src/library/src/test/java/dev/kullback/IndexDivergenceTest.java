package dev.kullback;

import static dev.kullback.IndexModel.D;
import static dev.kullback.IndexModel.nearest;
import static dev.kullback.IndexModel.row;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.IndexModel.Asked;
import dev.kullback.IndexModel.Data;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Share;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.MethodSource;

/** An index ranks by any divergence, as the sorted values of all pairs are. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IndexDivergenceTest {
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

  /** Some data of each divergence; full covariances, of which there are few, in the short run. */
  private static List<Data> data(Divergence divergence, Share share) {
    return Stream.of(Data.values())
        .filter(data ->
            data == Data.FULL
                ? share == Share.SOME
                : share.has(ALL.indexOf(divergence) + data.ordinal()))
        .toList();
  }

  private static void findsWhatSortedValuesSay(Divergence divergence, Share share) {
    for (Data data : data(divergence, share)) {
      IndexModel model = new IndexModel(data, 1);
      try (KlIndex index = data.builder(divergence).build()) {
        model.fill(index);
        assertThat(index.hasFullCovariances()).isEqualTo(data == Data.FULL);
        Asked.of(divergence, model).forEach(asked -> asked.check(index));
      }
    }
  }

  /** Tiles, of KL, or kernels for matrices answer for the one, and bounds of single queries for the other. */
  @Tag("long")
  @ParameterizedTest
  @FieldSource("ALL")
  void manyQueriesFindWhatFewDo(Divergence divergence) {
    for (Data data : Data.values()) {
      IndexModel model = new IndexModel(data, 5);
      int threads = 1 + 2 * (data.ordinal() + 1) % 4;
      try (KlIndex index = data.builder(divergence).threads(threads).build()) {
        model.fill(index);
        for (boolean isDouble :
            data == Data.FULL || divergence == Divergence.KL
                ? new boolean[] {false, true}
                : new boolean[1]) {
          manyQueriesFindWhatFewDo(index, model, isDouble);
        }
      }
    }
  }

  private static void manyQueriesFindWhatFewDo(KlIndex index, IndexModel model, boolean isDouble) {
    int n = 70; // kernels for matrices answer from 32 on, and keep room for 64
    Gaussians many = model.data.many(n, isDouble, new Random(6));
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
      for (int from = 0; from < n; from += 28) {
        int to = Math.min(n, from + 14);
        IndexNeighbors few = index.search(many.slice(from, to), query);
        for (int i = from; i < to; i++) {
          assertThat(row(found, i))
              .as("%s, %s, row %d", model.data, query, i)
              .isEqualTo(row(few, i - from));
          assertThat(found.isComplete(i)).isTrue();
        }
      }
    }
  }

  /** Whatever kernels a search has used: those of references of float and of double are others. */
  @ParameterizedTest
  @FieldSource("ALL")
  void queriesAreForgotten(Divergence divergence) throws InterruptedException {
    try (KlIndex index = KlIndex.builder(D).divergence(divergence).threads(2).build()) {
      new IndexModel(Data.ORDINARY, 7).fill(index);
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
    Gaussians many = Data.ORDINARY.many(300, false, new Random(8));
    index.nearest(many, 3);
    return new WeakReference<>(KlEngine.batch(many));
  }

  static Stream<Arguments> ordinaryAndFull() {
    return ALL.stream()
        .flatMap(divergence ->
            Stream.of(Data.ORDINARY, Data.FULL).map(data -> Arguments.of(divergence, data)));
  }

  /** Through commits, another opening, readers, refreshing, snapshots, a purge and merges, with several threads. */
  @ParameterizedTest
  @MethodSource("ordinaryAndFull")
  void isKeptByAFolder(Divergence divergence, Data data) {
    Path folder = scratch.resolve("index");
    Path copy = scratch.resolve("copy");
    IndexModel model = new IndexModel(data, 2);
    List<Asked> all;
    try (KlIndex index = data.builder(divergence).open(folder);
        KlIndex reader = KlIndex.openReadOnly(folder)) {
      assertThat(reader.divergence()).isEqualTo(divergence);
      model.fill(index);
      index.commit();
      all = Asked.of(divergence, model);
      all.forEach(asked -> asked.check(index));
      assertThat(reader.refresh()).isTrue();
      all.forEach(asked -> asked.check(reader));
      index.verify();
      index.snapshot(copy);
      index.purge();
      assertThat(index.stats().deleted()).isZero();
      all.forEach(asked -> asked.check(index));
    }
    for (Path place : List.of(folder, copy)) {
      try (KlIndex index = KlIndex.builder(D).threads(3).open(place)) {
        assertThat(index.divergence()).isEqualTo(divergence);
        all.forEach(asked -> asked.check(index));
        index.compact(); // of full covariances given and computed factors, of float and double
        assertThat(index.stats().segments()).isEqualTo(data == Data.FULL ? 4 : 8);
        index.commit();
      }
    }
    try (KlIndex index = KlIndex.openReadOnly(folder)) {
      all.forEach(asked -> asked.check(index));
    }
  }

  /** By id, by ids, without some, page by page, one by one, and gathered. */
  @ParameterizedTest
  @MethodSource("ordinaryAndFull")
  void allSearchesAreByTheDivergence(Divergence divergence, Data data) {
    IndexModel model = new IndexModel(data, 3);
    try (KlIndex index = data.builder(divergence).build();
        KlIndex gathered = data.builder(divergence).batchQueries(Duration.ofMillis(1)).build();
        KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
      model.fill(index);
      model.fill(gathered);
      long id = model.parts.get(6).ids()[1];
      Gaussians own = index.get(id);
      Query all = Query.within(Double.POSITIVE_INFINITY);
      List<Map.Entry<Long, Double>> values = model.all(engine, own, all).getFirst();
      List<Map.Entry<Long, Double>> others = without(values, id);
      assertThat(row(index.nearest(id, 20), 0)).isEqualTo(nearest(others, 20));

      List<Map.Entry<Long, Double>> of =
          values.stream().filter(entry -> entry.getKey() % 3 == 0).toList();
      long[] some = of.stream().mapToLong(Map.Entry::getKey).toArray();
      List<Map.Entry<Long, Double>> expected = nearest(of, 15);
      assertThat(row(index.rank(own, new long[][] {some}, 15), 0)).isEqualTo(expected);
      Query nearest = Query.nearest(15);
      for (Query query : List.of(nearest.filter(x -> x % 3 == 0), nearest.among(some))) {
        assertThat(row(index.search(own, query), 0)).isEqualTo(expected);
      }
      IndexNeighbors few = index.search(own, Query.nearest(5).among(some[4], some[2], 5000));
      assertThat(few.count(0)).isEqualTo(2);
      assertThat(row(index.search(own, Query.nearest(5).excluding(id)), 0))
          .isEqualTo(nearest(others, 5));
      long[][] out = {{id, some[0]}};
      assertThat(row(index.search(own, Query.nearest(700).excluding(out)), 0))
          .isEqualTo(nearest(without(others, some[0]), 700));
      try (KlIndex now = index.reader()) {
        IndexNeighbors first = now.search(own, Query.nearest(9));
        IndexNeighbors second = now.search(own, Query.nearest(9).after(first));
        assertThat(Stream.of(first, second).flatMap(page -> row(page, 0).stream()).toList())
            .isEqualTo(nearest(values, 18));
      }

      Gaussians x = data.queries().reversed().get(1);
      float[] mean = Batch.narrowed(x.mean(0));
      float[] std = Batch.narrowed(x.scale(0));
      List<Map.Entry<Long, Double>> byArrays = nearest(model.all(engine, x, all).getFirst(), 7);
      for (KlIndex asked : List.of(index, gathered)) {
        long[] ids = new long[7];
        float[] found = new float[7];
        assertThat(asked.query(mean, 0, std, 0, 7, ids, found)).isEqualTo(7);
        for (int r = 0; r < 7; r++) {
          assertThat(ids[r]).isEqualTo(byArrays.get(r).getKey());
          assertThat(found[r]).isEqualTo((float) (double) byArrays.get(r).getValue());
        }
      }
    }
  }

  private static List<Map.Entry<Long, Double>> without(
      List<Map.Entry<Long, Double>> values, long id) {
    return values.stream().filter(entry -> entry.getKey() != id).toList();
  }

  /** Takes a second or two each. */
  @Tag("long")
  @ParameterizedTest
  @FieldSource("ALL")
  void warmsUp(Divergence divergence) {
    KlIndex.Builder builder = Data.ORDINARY.builder(divergence);
    try (KlIndex index = builder.build();
        KlIndex gathered = builder.batchQueries(Duration.ofMillis(1)).build()) {
      IndexModel model = new IndexModel(Data.ORDINARY, 3).fill(index);
      model.fill(gathered);
      assertThat(index.warmUp()).isEqualTo(index.isReady() && gathered.warmUp());
      if (Share.SOME.has(ALL.indexOf(divergence))) {
        boolean isVector = Backend.VECTOR.isAvailable();
        assertThat(index.warmUpFor(Query.within(1).reverse())).isEqualTo(isVector);
        assertThat(index.warmUpFor(Query.nearest(3).byLogDensity())).isEqualTo(isVector);
      }
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
        Batch references = data.batch(Batch.Kind.STD, false, 20_000, new Random(4));
        long[] ids = new long[20_000];
        Arrays.setAll(ids, i -> i);
        index.add(ids, references.gaussians());
        long before = index.stats().bytesRead();
        Gaussians queries = data.queries().getFirst();
        index.nearest(queries, 5);
        // the codes are 20 bytes a reference, and what was given 80 with both times it is counted
        assertThat(index.stats().bytesRead() - before).isLessThan(queries.size() * 20_000L * 36);
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
      new IndexModel(Data.ORDINARY, 5).fill(index);
      index.commit();
    }
    write(scratch, "divergence jeffreys", "divergence wasserstein-2");
    assertThatExceptionOfType(CorruptIndexException.class).isThrownBy(() -> KlIndex.open(scratch));
  }

  /** Changes a manifest, and its checksum. */
  static void write(Path folder, String from, String to) throws IOException {
    String text = Files.readString(folder.resolve("manifest"));
    String changed = text.substring(0, text.lastIndexOf("checksum")).replaceFirst(from, to);
    Files.writeString(
        folder.resolve("manifest"),
        changed + "checksum %08x\n".formatted(crc(changed.getBytes(StandardCharsets.US_ASCII))));
  }

  static int crc(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return (int) crc.getValue();
  }

  /** A call that ends by itself, of each divergence; nothing of it is kept by the thread in the background. */
  @Test
  void anIndexWithoutReferencesFindsNone() {
    Stream.of(Divergence.JEFFREYS, Divergence.HELLINGER)
        .forEach(divergence -> {
          try (KlIndex index = KlIndex.builder(D).divergence(divergence).build()) {
            IndexNeighbors found = index.nearest(Data.TIES.queries().getFirst(), 3);
            assertThat(found.count(0)).isZero();
          }
        });
  }
}
