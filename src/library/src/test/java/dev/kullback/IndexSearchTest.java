package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.function.LongPredicate;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Options of a search of an index: ids that say which references count, pages, searches that end early, and a reader of one state. */
class IndexSearchTest {
  private static final int D = 12;
  private static final int M = 3000;
  private static final int N = 7;

  private final long[] ids = LongStream.range(0, M).map(i -> 3 * i - 1000).toArray();
  private final DiagonalGaussians queries = draw(N, 2);
  private final KlIndex index = KlIndex.builder(D).build();

  IndexSearchTest() {
    DiagonalGaussians p = draw(M, 1);
    index.add(Arrays.copyOf(ids, M / 2), p.slice(0, M / 2));
    index.add(Arrays.copyOfRange(ids, M / 2, M), p.slice(M / 2, M));
  }

  private static DiagonalGaussians draw(int n, int seed) {
    Random random = new Random(seed);
    float[] mean = new float[n * D];
    float[] std = new float[n * D];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
      std[k] = random.nextFloat(0.3f, 1.5f);
    }
    return DiagonalGaussians.ofStd(mean, std, D);
  }

  @AfterEach
  void close() {
    index.close();
  }

  private static void same(IndexNeighbors found, IndexNeighbors expected) {
    assertThat(found.ids()).isEqualTo(expected.ids());
    assertThat(found.values()).isEqualTo(expected.values());
    for (int i = 0; i < expected.size(); i++) {
      assertThat(found.count(i)).isEqualTo(expected.count(i));
      assertThat(found.isComplete(i)).isTrue();
    }
  }

  /** Few ids, which are read by themselves, and many, of which all references are gone over: both as a filter. */
  @Test
  void amongIdsIsAsAFilter() {
    for (int step : new int[] {1, 2, 40, 500}) {
      long[] some =
          IntStream.range(0, M).filter(i -> i % step == 0).mapToLong(i -> ids[i]).toArray();
      long[] given =
          Arrays.copyOf(some, some.length + 2); // with ids that are not there, and one twice
      given[some.length] = 5_000_001;
      given[some.length + 1] = some[0];
      LongPredicate filter = id -> Arrays.binarySearch(some, id) >= 0;
      for (Query query :
          new Query[] {
            Query.nearest(4),
            Query.nearest(M),
            Query.nearest(4).reverse().excluding(some[0]),
            Query.within(20).filter(id -> (id & 1) == 0),
            Query.nearest(3).timeout(Duration.ofDays(1))
          }) {
        same(
            index.search(queries, query.among(given)), index.search(queries, query.filter(filter)));
      }
      assertThat(index.search(queries, Query.nearest(M).among(given)).provenUpTo(2))
          .isEqualTo(Double.POSITIVE_INFINITY);
    }
    assertThat(index.search(queries, Query.nearest(2).among()).ids()).isEmpty();
    assertThat(index.search(queries, Query.nearest(2).among(ids[3], ids[4]).among(ids[4])).ids())
        .containsOnly(ids[4])
        .hasSize(N);
  }

  /** Half of the queries have found all after the first pass of a search with a time limit, and the others more than that computes. */
  @Test
  void mostPairsCountBothPassesOfATimedSearch() {
    int d = 8;
    int n = 20_000;
    float[] ones = new float[n * d];
    Arrays.fill(ones, 1);
    float[] mean = new float[n * d];
    Random random = new Random(1);
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
    }
    float[] asked = new float[32 * d];
    Arrays.fill(asked, 0, 16 * d, 0.9F);
    DiagonalGaussians q = DiagonalGaussians.ofStd(asked, Arrays.copyOf(ones, 32 * d), d);
    try (KlIndex many = KlIndex.builder(d).build()) {
      many.add(LongStream.range(0, n).toArray(), DiagonalGaussians.ofStd(mean, ones, d));
      int pairs = many.within(q, 2.2).start(32);
      Query timed = Query.within(2.2).timeout(Duration.ofDays(1));
      assertThat(many.search(q, timed.maxPairs(pairs)).start(32)).isEqualTo(pairs);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> many.search(q, timed.maxPairs(pairs - 1)));
    }
  }

  @Test
  void amongColumnsOfAnEngineIsAsAFilter() {
    DiagonalGaussians p = draw(50, 3);
    try (KlEngine engine = KlEngine.builder().build()) {
      for (Query query : new Query[] {Query.nearest(3), Query.within(30).excluding(7)}) {
        Neighbors found = engine.search(queries, p, query.among(7, 9, 30, 31, 99));
        Neighbors expected =
            engine.search(queries, p, query.filter(j -> j == 7 || j == 9 || j == 30 || j == 31));
        assertThat(found.indices()).isEqualTo(expected.indices());
        assertThat(found.values()).isEqualTo(expected.values());
      }
    }
  }

  /** Rows without ids of their own, and pages, which are parts of the list of all. */
  @Test
  void pagesAreTheWholeList() {
    IndexNeighbors all = index.nearest(queries, 50);
    Query query = Query.nearest(10);
    for (int page = 0; page < 5; page++) {
      IndexNeighbors found = index.search(queries, query);
      for (int i = 0; i < N; i++) {
        for (int r = 0; r < 10; r++) {
          assertThat(found.id(i, r)).isEqualTo(all.id(i, 10 * page + r));
          assertThat(found.value(i, r)).isEqualTo(all.value(i, 10 * page + r));
        }
        assertThat(found.provenUpTo(i)).isEqualTo(all.value(i, 10 * page + 9));
      }
      query = query.after(found);
    }
    assertThat(query).hasToString("Query[nearest 10, excluding ids of 7 rows]");
  }

  /** A small share finds some, says what it has missed, and costs less; a large one finds all. */
  @Test
  void approximate() {
    DiagonalGaussians far = draw(N, 9);
    IndexNeighbors exact = index.nearest(far, 10);
    IndexNeighbors few = index.search(far, Query.nearest(10).approximate(1e-3));
    int open = 0;
    for (int i = 0; i < N; i++) {
      open += few.isComplete(i) ? 0 : 1;
      assertThat(few.count(i)).isEqualTo(10);
      int certain = 0;
      while (certain < 10 && few.value(i, certain) < few.provenUpTo(i)) {
        assertThat(few.id(i, certain)).isEqualTo(exact.id(i, certain));
        certain++;
      }
      assertThat(few.provenUpTo(i)).isPositive().isLessThanOrEqualTo(few.value(i, 9));
    }
    assertThat(open).isPositive();
    same(index.search(far, Query.nearest(10).approximate(0.9)), exact);
    same(index.search(far, Query.nearest(10).approximate(1)), exact);
    assertThat(Query.nearest(2).approximate(0.5).approximate(0.75))
        .hasToString("Query[nearest 2, approximate 0.5]");
  }

  /** Queries in arrays find what batches find, with every option; a negative count tells that it is not all. */
  @Test
  void queriesInArrays() {
    float[] mean = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9};
    float[] std = {0.5f, 1, 1, 1, 1, 1, 0.7f, 1, 1, 1, 1, 1};
    DiagonalGaussians one = DiagonalGaussians.ofStd(Arrays.copyOfRange(mean, 1, 13), std, D);
    long[] found = new long[M];
    float[] kl = new float[M];
    double[] proven = new double[1];
    for (Query query :
        new Query[] {
          Query.nearest(7),
          Query.nearest(7).reverse().filter(id -> id > 0),
          Query.within(60).excluding(ids[3]),
          Query.nearest(5).among(ids[1], ids[8], ids[9]),
          Query.nearest(5).excluding(new long[][] {{ids[1]}}),
          Query.nearest(5).timeout(Duration.ofDays(1)),
          Query.nearest(5).timeout(Duration.ofNanos(1)),
          Query.nearest(5).approximate(1e-3),
          Query.within(70).approximate(1e-3)
        }) {
      IndexNeighbors expected = index.search(one, query);
      int n = index.query(mean, 1, std, 0, query, found, kl, proven);
      assertThat(n >= 0).as(query.toString()).isEqualTo(expected.isComplete(0));
      n = n < 0 ? ~n : n;
      assertThat(Arrays.copyOf(found, n)).as(query.toString()).isEqualTo(expected.ids());
      for (int r = 0; r < n; r++) {
        assertThat(kl[r]).isEqualTo((float) expected.value(0, r));
      }
      assertThat(proven[0]).as(query.toString()).isEqualTo(expected.provenUpTo(0));
    }
    assertThat(
            index.query(
                mean, 1, std, 0, Query.nearest(1).timeout(Duration.ofNanos(1)), found, kl, proven))
        .isEqualTo(~0);
    kl[7] = -1;
    assertThat(index.query(mean, 1, std, 0, 7, found, kl)).isEqualTo(7);
    assertThat(Arrays.copyOf(found, 7)).isEqualTo(index.nearest(one, 7).ids());
    assertThat(kl[7]).isEqualTo(-1); // what it has not found it leaves
    refused(
        () -> index.query(mean, 1, std, 0, Query.within(1e9), new long[5], kl, proven),
        "there is room for 5 ids and values, but 3000 references are within");
    index.remove(ids);
    assertThat(index.query(mean, 1, std, 0, 6, found, kl)).isZero();
  }

  /** Changes of the index are not seen by a reader, which ends by itself or with the index. */
  @Test
  void readerKeepsOneState() {
    IndexNeighbors before = index.nearest(queries, 20);
    KlIndex reader = index.reader();
    index.remove(before.ids());
    assertThat(index.size()).isLessThan(M);
    assertThat(reader.size()).isEqualTo(M);
    assertThat(reader.contains(before.id(0, 0))).isTrue();
    assertThat(reader.ids()).hasSize(M);
    assertThat(reader).hasToString("KlIndex[reader of %d x 12, in memory]".formatted(index.size()));
    same(reader.nearest(queries, 20), before);
    assertThatIllegalStateException()
        .isThrownBy(() -> reader.remove(ids[0]))
        .withMessageContaining("reader()");
    for (Runnable change :
        new Runnable[] {
          reader::commit, () -> reader.commit(new byte[1]), reader::compact, reader::purge
        }) {
      assertThatIllegalStateException().isThrownBy(change::run).withMessageContaining("reader()");
    }
    try (KlIndex again = reader.reader()) {
      reader.close();
      reader.close();
      assertThatExceptionOfType(AlreadyClosedException.class)
          .isThrownBy(() -> reader.nearest(queries, 1))
          .withMessageContaining("reader");
      same(again.nearest(queries, 20), before);
      index.close();
      assertThatExceptionOfType(AlreadyClosedException.class).isThrownBy(again::size);
    }
  }
}
