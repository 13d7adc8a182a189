package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Options of a search by an engine, against those that it has without them, and against an index. */
class QueryTest {
  private static final LongPredicate SOME = id -> id % 5 != 2 && id % 7 != 0;

  /** What a search of everything finds, without the columns that do not count. */
  private static Neighbors kept(Neighbors all, Kept kept, int most) {
    int[] start = new int[all.size() + 1];
    List<Neighbor> left = new ArrayList<>();
    for (int i = 0; i < all.size(); i++) {
      int row = i;
      all.row(i).stream().filter(n -> kept.is(row, n.id())).limit(most).forEach(left::add);
      start[i + 1] = left.size();
    }
    return Neighbors.of(
        start,
        left.stream().mapToInt(n -> (int) n.id()).toArray(),
        left.stream().mapToDouble(Neighbor::value).toArray());
  }

  private interface Kept {
    boolean is(int row, long id);
  }

  private static void same(String what, Neighbors found, Neighbors expected) {
    for (int i = 0; i < expected.size(); i++) {
      assertThat(found.row(i)).as("%s, row %d", what, i).isEqualTo(expected.row(i));
    }
    assertThat(found.indices()).as(what).isEqualTo(expected.indices());
    assertThat(found.values()).as(what).isEqualTo(expected.values());
  }

  private static Gaussians batch(int n, int d, boolean full, int seed) {
    return full
        ? FullBatch.random(false, n, d, 10, 0, new Random(seed)).gaussians()
        : Batch.random(seed % 2 == 0, n, d, 0, new Random(seed)).gaussians();
  }

  /** Of a batch by itself, in several panels of rows, each has all but itself. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void manyRowsLeaveOutThemselves(Backend backend) {
    Gaussians q = batch(130, 3, false, 1);
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = Engines.on(backend, threads)) {
        for (boolean reverse : new boolean[] {false, true}) {
          String what = "%s, %d threads, reverse %s".formatted(backend, threads, reverse);
          Neighbors all = engine.search(q, q, options(Query.nearest(130), reverse, 0));
          for (int k : new int[] {1, 129}) {
            Query others = options(Query.nearest(k).excludeSelf(), reverse, 0);
            same(what, engine.search(q, q, others), kept(all, (row, id) -> row != id, k));
          }
          Query within = options(Query.within(1e9), reverse, 0);
          same(
              what,
              engine.search(q, q, within.excludeSelf()),
              kept(engine.search(q, q, within), (row, id) -> row != id, 130));
        }
      }
    }
  }

  /** Filters, excluded ids and rows that leave out themselves, of columns that are a block, in both directions and kinds of search. */
  @Tag("device")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void optionsLeaveWhatASearchOfTheOthersFinds(Backend backend) {
    boolean device = backend == Backend.CUDA;
    for (boolean full : new boolean[] {false, true}) {
      int m = device || full ? 60 : 9000; // in several blocks
      Gaussians q = batch(12, 3, full, 1);
      Gaussians p = batch(m, 3, full, 2);
      int first = 1000;
      int own = m > 5000 ? 4090 : 4; // at the end of a block, and in the next
      long[] excluded = {first + 3, 5, first + m, -1, Long.MAX_VALUE, first + 3, first + m - 1};
      Kept kept =
          (row, id) ->
              id != first + own + row && id != first + 3 && id != first + m - 1 && SOME.test(id);
      for (int threads : new int[] {1, 3}) {
        try (KlEngine engine = Engines.on(backend, threads)) {
          for (boolean reverse : new boolean[] {false, true}) {
            String what =
                "%s, full %s, %d threads, reverse %s".formatted(backend, full, threads, reverse);
            for (int k : new int[] {1, 9, m}) {
              Query exact = options(Query.nearest(m), reverse, first).exact();
              Query query = options(Query.nearest(k), reverse, first).exact();
              Neighbors expected = kept(engine.search(q, p, exact), kept, k);
              Query asked = query.excludeSelf(first + own).excluding(excluded).filter(SOME);
              Neighbors found = engine.search(q, p, asked);
              same(what, found, expected);
              if (k < m) {
                int[] indices = new int[12 * k];
                double[] values = new double[12 * k];
                engine.search(q, p, asked, indices, values);
                assertThat(indices).as(what).isEqualTo(expected.indices());
                assertThat(values).as(what).isEqualTo(expected.values());
              }
              double radius = found.value(0, found.count(0) - 1);
              for (boolean exactly : new boolean[] {false, true}) {
                Query all = options(Query.within(radius), reverse, first);
                Query within = exactly ? all.exact() : all;
                same(
                    what + ", within",
                    engine.search(
                        q, p, within.excludeSelf(first + own).excluding(excluded).filter(SOME)),
                    kept(engine.search(q, p, within), kept, m));
              }
            }
          }
        }
      }
    }
  }

  private static Query options(Query query, boolean reverse, int first) {
    return (reverse ? query.reverse() : query).offset(first);
  }

  /** Of rows whose nearest do not count, all others are found; of one that has none, nothing is. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nothingIsLeft(Backend backend) {
    Gaussians q = batch(5, 2, false, 1);
    Gaussians p = batch(40, 2, false, 2);
    try (KlEngine engine = Engines.on(backend)) {
      for (Query query : List.of(Query.nearest(3), Query.nearest(3).exact(), Query.within(1e9))) {
        assertThat(engine.search(q, p, query.filter(_ -> false)).indices()).isEmpty();
        Neighbors one = engine.search(q, p, query.filter(id -> id == 7));
        assertThat(one.indices()).containsOnly(7).hasSize(5);
        Neighbors self = engine.search(q, p, query.filter(id -> id == 3).excludeSelf());
        assertThat(self.count(3)).isZero();
        assertThat(self.count(2)).isEqualTo(1);
      }
      Neighbors first = engine.search(q, p, Query.nearest(3).exact());
      Query rest = Query.nearest(3).resumeAfter(first, 40).filter(_ -> false);
      same("earlier lists alone", engine.search(q, p, rest), first);
    }
  }

  /** Exact lists within a radius are an index's, to the bit, whatever the other options. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void indexAndEngineAgree(Backend backend) {
    int n = 300;
    DiagonalGaussians p = Batch.random(false, n, 4, 0, new Random(1)).gaussians();
    DiagonalGaussians q = Batch.random(true, 17, 4, 0, new Random(2)).gaussians();
    try (KlEngine engine = Engines.on(backend);
        KlIndex index = KlIndex.builder(4).build()) {
      index.add(LongStream.range(0, n).toArray(), p);
      for (Query base : List.of(Query.nearest(20), Query.within(3), Query.within(1e9))) {
        for (Query query :
            List.of(
                base,
                base.reverse(),
                base.filter(SOME),
                base.excluding(3, 200).reverse().filter(SOME),
                base.timeout(Duration.ofHours(1)).maxPairs(17 * n))) {
          SearchResult found = engine.search(q, p, query.exact());
          for (SearchResult other :
              List.of(index.search(q, query), index.search(q, query.exact()))) {
            assertThat(found.size()).isEqualTo(other.size());
            for (int i = 0; i < found.size(); i++) {
              assertThat(found.row(i)).as("%s, row %d", query, i).isEqualTo(other.row(i));
              assertThat(found.start(i)).isEqualTo(other.start(i));
            }
            assertThat(found.values()).isEqualTo(other.values());
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void tooManyPairs(Backend backend) {
    DiagonalGaussians p = Batch.random(false, 20, 4, 0, new Random(1)).gaussians();
    try (KlEngine engine = Engines.on(backend);
        KlIndex index = KlIndex.builder(4).build()) {
      index.add(LongStream.range(0, 20).toArray(), p);
      for (Query query :
          List.of(
              Query.nearest(3),
              Query.nearest(3).filter(id -> id < 15),
              Query.within(1e9).filter(id -> id < 3))) {
        assertThat(engine.search(p, p, query.maxPairs(60)).indices()).hasSize(60);
        assertThat(index.search(p, query.maxPairs(60)).ids()).hasSize(60);
        Query fewer = query.maxPairs(59).maxPairs(60);
        String message =
            query.toString().contains("within") ? "more than 59 pairs" : "maxPairs, 59";
        refused(() -> engine.search(p, p, fewer), message);
        refused(() -> index.search(p, fewer), message);
      }
      Query fewer = Query.nearest(3).maxPairs(59);
      refused(() -> engine.search(p, p, fewer, new int[60], new float[60]), "maxPairs, 59");
    }
  }

  /** A search ends soon after its timeout, on helpers and in a filter too, and leaves the engine as it was. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void timeouts(Backend backend) {
    DiagonalGaussians p = Batch.random(false, 30_000, 8, 0, new Random(1)).gaussians();
    DiagonalGaussians few = Batch.random(false, 10, 8, 0, new Random(2)).gaussians();
    for (int threads : new int[] {1, 2}) {
      try (KlEngine engine = Engines.on(backend, threads)) {
        Neighbors expected = engine.nearest(few, few, 3);
        for (Query query :
            List.of(Query.nearest(40).exact().reverse(), Query.within(0.25).exact())) {
          long begin = System.nanoTime();
          assertThatExceptionOfType(SearchTimeoutException.class)
              .isThrownBy(() -> engine.search(p, p, query.timeout(Duration.ofMillis(30))))
              .withMessageContaining(
                  query.toString().contains("nearest")
                      ? "search for the 40 nearest took longer than its timeout of PT0.03S"
                      : "search for all within 0.25 took longer than its timeout of PT0.03S");
          assertThat(System.nanoTime() - begin).isLessThan(10_000_000_000L);
          AtomicInteger calls = new AtomicInteger();
          assertThatExceptionOfType(SearchTimeoutException.class)
              .isThrownBy(() ->
                  engine.search(
                      few,
                      p,
                      query
                          .timeout(Duration.ofMillis(20))
                          .timeout(Duration.ofDays(1))
                          .filter(_ -> {
                            calls.incrementAndGet();
                            long end = System.nanoTime() + 25_000_000;
                            while (System.nanoTime() < end) {
                              Thread.onSpinWait();
                            }
                            return true;
                          })));
          assertThat(calls).hasValue(1);
        }
        same("after timeouts", engine.nearest(few, few, 3), expected);
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> engine.search(p, p, Query.nearest(3).timeout(Duration.ofHours(9))))
            .isInstanceOf(CancellationException.class)
            .isNotInstanceOf(SearchTimeoutException.class)
            .hasMessageContaining("interrupted");
        assertThat(Thread.interrupted()).isTrue();
      }
    }
  }

  @Test
  void refusals() {
    DiagonalGaussians p = Batch.random(false, 6, 4, 0, new Random(1)).gaussians();
    try (KlEngine engine = KlEngine.builder().build();
        KlIndex index = KlIndex.builder(4).build()) {
      index.add(LongStream.range(0, 6).toArray(), p);
      Query nearest = Query.nearest(2);
      Neighbors found = engine.search(p, p, nearest.exact());
      refused(
          () -> index.search(p, nearest.excludeSelf()),
          "KlIndex.search",
          "Query.excludeSelf",
          "excluding(ids) leaves out ids of each query's own, and nearest(id, k) a reference itself");
      refused(() -> engine.search(p, p, nearest.approximate(0.5)), "KlIndex.search");
      Query own = nearest.excluding(new long[5][0]);
      refused(() -> engine.search(p, p, own), "excludeSelf()", "KlIndex.search");
      refused(() -> index.search(p, own), "6 queries", "excluded for 5");
      refused(() -> own.excluding(new long[6][0]), "6 rows", "5 before");
      refused(() -> nearest.approximate(0), "share must be in (0, 1], is 0.0");
      refused(() -> nearest.approximate(Double.NaN), "share");
      refused(
          () -> index.search(p, Query.within(1).excludeSelf(3)),
          "KlIndex.search",
          "Query.excludeSelf");
      refused(
          () -> index.search(p, nearest.offset(3)),
          "KlIndex.search",
          "Query.offset",
          "their own ids");
      refused(
          () -> index.search(p, nearest.resumeAfter(found, 6)),
          "KlIndex.search",
          "Query.resumeAfter");
      assertThat(index.search(p, nearest.offset(0)).size()).isEqualTo(6);
      refused(
          () -> Query.within(1).resumeAfter(found, 6),
          "Query.resumeAfter",
          "within a radius",
          "Query.offset");
      int[] indices = new int[99];
      float[] values = new float[99];
      refused(
          () -> engine.search(p, p, Query.within(1), indices, values),
          "within a radius",
          "returns Neighbors");
      refused(
          () -> engine.search(p, p, Query.nearest(7), indices, values),
          "[1, 6], the Gaussians of p, is 7");
      refused(
          () -> engine.search(p, p, Query.nearest(6).excludeSelf(), indices, values),
          "[1, 5], the other Gaussians of p, is 6");
      refused(
          () -> engine.search(p, p, Query.nearest(5).excluding(0, 1), indices, values),
          "[1, 4], the accepted Gaussians of p, is 5");
      engine.search(p, p, Query.nearest(6).excludeSelf(6), indices, values); // leaves none out
    }
  }

  /** A query tells the options that are set, those that come with others included. */
  @Test
  void queriesAsText() {
    assertThat(Query.nearest(7)).hasToString("Query[nearest 7]");
    assertThat(Query.within(0.5).excludeSelf().timeout(Duration.ofMillis(20)))
        .hasToString("Query[within 0.5, excludeSelf, timeout PT0.02S]");
    Neighbors earlier = Neighbors.of(new int[] {0, 1, 2}, new int[] {3, 4}, new double[2]);
    Query all =
        Query.nearest(2)
            .offset(3)
            .resumeAfter(earlier, 6)
            .reverse()
            .excludeSelf(5)
            .excluding(1, 2)
            .excluding(9)
            .filter(SOME)
            .maxPairs(40)
            .timeout(Duration.ofSeconds(3))
            .timeout(Duration.ofSeconds(4));
    assertThat(all)
        .hasToString(
            "Query[nearest 2, reverse, exact, excludeSelf 5, excluding 3 ids, filter, timeout PT3S, maxPairs 40, offset 6, resumeAfter 2 rows]");
    refused(() -> all.timeout(Duration.ZERO), "timeout must be positive, is PT0S");
  }

  /** A last block may be shorter than k, if the lists before it have the rest. */
  @Test
  void arraysResumeWithAShortBlock() {
    Gaussians q = batch(4, 3, false, 1);
    Gaussians p = batch(20, 3, false, 2);
    Query five = Query.nearest(5).exact();
    int[] indices = new int[20];
    double[] values = new double[20];
    try (KlEngine engine = KlEngine.builder().build()) {
      Neighbors all = engine.search(q, p, five);
      Neighbors first = engine.search(q, p.slice(0, 18), five);
      engine.search(q, p.slice(18, 20), five.resumeAfter(first, 18), indices, values);
      assertThat(indices).isEqualTo(all.indices());
      assertThat(values).isEqualTo(all.values());
      Neighbors few = engine.search(q, p.slice(0, 2), five);
      assertThatThrownBy(
              () -> engine.search(q, p.slice(2, 4), five.resumeAfter(few, 2), indices, values))
          .hasMessage("k must be in [1, 4], the Gaussians of p and of the earlier list, is 5");
    }
  }

  /** Rows are lists of neighbors, which compare by id and value. */
  @Test
  void rows() {
    Neighbors all =
        Neighbors.of(new int[] {0, 2, 2, 3}, new int[] {4, 1, 9}, new double[] {0, 0.5, 2});
    assertThat(all.row(0)).hasSize(2).isUnmodifiable();
    assertThat(all.row(0).get(1).id()).isEqualTo(1);
    assertThat(all.row(0).get(1).value()).isEqualTo(0.5);
    assertThat(all.row(1)).isEmpty();
    assertThat(all.row(2)).hasToString("[9: 2.0]").isEqualTo(List.of(new Neighbor(9, 2)));
    assertThat(new Neighbor(9, 2))
        .isNotEqualTo(new Neighbor(9, 3))
        .isNotEqualTo(new Neighbor(8, 2));
    assertThat(all.id(2, 0)).isEqualTo(9);
    for (int i : new int[] {-1, 3, 4}) {
      assertThatThrownBy(() -> all.row(i))
          .isInstanceOf(IndexOutOfBoundsException.class)
          .hasMessage("row i is %d; it must be in [0, 3)", i);
    }
    assertThatThrownBy(() -> all.row(0).get(2))
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContaining("neighbor r is 2");
    assertThat(all).hasToString("Neighbors[3 rows, 3 entries]");
  }
}
