package dev.kullback.internal.index.search;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.internal.index.search.SearchesTest.Case;
import dev.kullback.internal.index.search.SearchesTest.Draw;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.TimeLimit;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A search that ends early, by its time or by its share of the work, has exact values in their order, and no reference that it lacks is nearer than
 * it says: all values are compared with those of every pair.
 */
class ProofTest {
  private static final KlEngine ENGINE = KlEngine.builder().build();

  /** How a search ends. */
  private enum End {
    SHARE,
    TIME,
    SLOW_FILTER
  }

  /** What rows were, all together. */
  private static final class Tally {
    int rows;
    int open;
    int proven;

    /** Open rows of which a reference that was left is nearer than 1.001 times what is proven. */
    int near;

    void add(Tally other) {
      rows += other.rows;
      open += other.open;
      proven += other.proven;
      near += other.near;
    }
  }

  @AfterAll
  static void close() {
    ENGINE.close();
  }

  @ParameterizedTest
  @EnumSource
  void nothingIsNearerThanProven(Draw draw) {
    Tally all = new Tally();
    for (int seed = 1000; seed < 1012; seed++) {
      all.add(check(draw, seed));
    }
    assertThat(all.open).isPositive();
  }

  @Tag("long")
  @Test
  void nothingIsNearerThanProvenOfTenThousand() {
    Tally all = new Tally();
    for (int seed = 2000; all.rows < 10_000; seed++) {
      for (Draw draw : Draw.values()) {
        all.add(check(draw, seed));
      }
    }
    assertThat(all.open).isGreaterThan(2000);
    assertThat(all.proven).isGreaterThan(400);
  }

  /** What is proven is so near to what is true that a thousandth more would be false somewhere: the other tests can fail. */
  @Test
  void moreThanProvenIsFalse() {
    Tally all = new Tally();
    for (int seed = 1000; seed < 1030; seed++) {
      all.add(check(Draw.PLAIN, seed));
    }
    assertThat(all.near).isPositive();
  }

  private static Tally check(Draw draw, int seed) {
    Case c = new Case(draw, seed);
    Random random = new Random(seed);
    boolean reverse = random.nextInt(3) == 0;
    int m = c.liveIds.length;
    Query exact = Query.nearest(m).exact();
    Neighbors every =
        ENGINE.search(c.queries.gaussians(), c.live, reverse ? exact.reverse() : exact);
    SearchOptions options =
        random.nextInt(3) == 0
            ? SearchOptions.within(every.value(0, random.nextInt(m)))
            : SearchOptions.nearest(1 + random.nextInt(random.nextBoolean() ? 5 : 60));
    options = reverse ? options.reversed() : options;
    int n = c.queries.batch().size();
    if (random.nextInt(3) == 0) {
      options = options.without(c.liveIds[random.nextInt(m)]);
    }
    if (random.nextInt(3) == 0) {
      long[][] out = new long[n][];
      Arrays.setAll(out, i -> new long[] {c.liveIds[random.nextInt(m)]});
      options = options.withoutOf(out);
    }
    LongPredicate filter = random.nextInt(3) == 0 ? id -> (id & 3) != 1 : id -> true;
    SearchOptions counting = options.filteredBy(filter);
    End end = End.values()[random.nextInt(3)];
    options = end == End.SHARE && random.nextBoolean() ? options : counting;
    TimeLimit time = null;
    switch (end) {
      case SHARE ->
          options =
              options.withShare(new double[] {1e-9, 1e-3, 0.01, 0.05, 0.3}[random.nextInt(5)]);
      case TIME -> time = TimeLimit.of(Duration.ofNanos(1L << random.nextInt(10, 22)), "neighbors");
      case SLOW_FILTER -> {
        time = TimeLimit.of(Duration.ofMillis(20), "neighbors");
        int last = random.nextInt(100);
        int[] calls = {0};
        long slow = 25_000_000;
        options =
            options.filteredBy(id -> {
              if (calls[0]++ == last) {
                long begin = System.nanoTime();
                while (System.nanoTime() - begin < slow) {
                  Thread.onSpinWait();
                }
              }
              return true;
            });
      }
    }
    options = time == null ? options : options.limitedTo(time);
    int threads = end == End.SLOW_FILTER ? 1 : 1 + 2 * random.nextInt(2);
    String what = "%s, seed %d, %s, threads %d, ".formatted(draw, seed, end, threads);
    SearchOptions whole = options.filter() == null ? options : counting;
    try (Searches searches = new Searches(c.d, threads, null)) {
      NeighborIds found = searches.search(c.snapshot, c.queries.batch(), options, options.end());
      if (end == End.SHARE) {
        NeighborIds again = searches.search(c.snapshot, c.queries.batch(), options, 0);
        assertThat(again).as(what).usingRecursiveComparison().isEqualTo(found);
      }
      Query radius = Query.within(options.radius()).exact();
      Neighbors within =
          options.isWithin()
              ? ENGINE.search(c.queries.gaussians(), c.live, reverse ? radius.reverse() : radius)
              : null;
      return check(c, every, within, whole, found, what);
    }
  }

  private static Tally check(
      Case c,
      Neighbors every,
      @Nullable Neighbors within,
      SearchOptions options,
      NeighborIds found,
      String what) {
    Tally tally = new Tally();
    for (int i = 0; i < every.size(); i++) {
      String which = what + "query " + i;
      Map<Long, Double> left = new HashMap<>();
      int wanted = 0;
      for (int r = 0; r < every.count(i); r++) {
        long id = c.liveIds[every.index(i, r)];
        if (options.accepts(id, i)) {
          left.put(id, every.value(i, r));
        }
      }
      if (within != null) {
        for (int r = 0; r < within.count(i); r++) {
          wanted += left.containsKey(c.liveIds[within.index(i, r)]) ? 1 : 0;
        }
      } else {
        wanted = Math.min(options.k(), left.size());
      }
      int from = found.start()[i];
      int to = found.start()[i + 1];
      double x = found.proven()[i];
      for (int s = from; s < to; s++) {
        assertThat(left.remove(found.ids()[s])).as(which).isEqualTo(found.values()[s]);
        if (s > from) {
          long id = found.ids()[s];
          double before = found.values()[s - 1];
          boolean isAfter = id > found.ids()[s - 1];
          assertThat(
                  options.isWithin()
                      ? isAfter
                      : before < found.values()[s] || (before == found.values()[s] && isAfter))
              .as(which)
              .isTrue();
        }
      }
      double nearest = left.values().stream().mapToDouble(v -> v).min().orElse(Double.NaN);
      assertThat(nearest < x).as("%s: %s is nearer than %s", which, nearest, x).isFalse();
      assertThat(x).as(which).isGreaterThanOrEqualTo(0);
      double last =
          options.isWithin()
              ? options.radius()
              : to - from == options.k() ? found.values()[to - 1] : Double.POSITIVE_INFINITY;
      tally.rows++;
      if (found.isComplete()[i]) {
        assertThat(to - from).as(which).isEqualTo(wanted);
        assertThat(nearest < last).as(which).isFalse();
        assertThat(x)
            .as(which)
            .isEqualTo(left.isEmpty() && x > last ? Double.POSITIVE_INFINITY : last);
      } else {
        tally.open++;
        tally.proven += x > 0 ? 1 : 0;
        tally.near += x > 0 && x < last && nearest < 1.001 * x ? 1 : 0;
        assertThat(x).as(which).isLessThanOrEqualTo(last);
      }
    }
    return tally;
  }
}
