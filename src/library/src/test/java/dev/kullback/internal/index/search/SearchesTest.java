package dev.kullback.internal.index.search;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.index.store.Codes;
import dev.kullback.internal.index.store.Content;
import dev.kullback.internal.index.store.Coordinates;
import dev.kullback.internal.index.store.LiveSegment;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.vector.scan.ScalarCodeScan;
import dev.kullback.internal.vector.scan.ScalarPanelScan;
import dev.kullback.internal.work.Worker;
import dev.kullback.testing.Share;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.LongPredicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Searches find what an exact search of a batch in the order of the ids finds, to the bit. */
class SearchesTest {
  private static final KlEngine ENGINE = KlEngine.builder().build();

  /** Computes each value by itself. */
  private static final KlEngine SCALAR = KlEngine.builder().backend(Backend.SCALAR).build();

  @AfterAll
  static void close() {
    ENGINE.close();
    SCALAR.close();
  }

  /** How the Gaussians of a case are drawn. */
  enum Draw {
    PLAIN {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        fill(random, mean, std, 1);
      }
    },
    /** Groups of equal Gaussians. */
    TWINS {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        fill(random, mean, std, 1);
        int n = mean.length / d;
        for (int i = 1; i < n; i++) {
          if (random.nextInt(3) > 0) {
            int from = random.nextInt(i);
            System.arraycopy(mean, from * d, mean, i * d, d);
            System.arraycopy(std, from * d, std, i * d, d);
          }
        }
      }
    },
    /** All alike, so that the bounds leave all. */
    ALIKE {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        for (int k = 0; k < mean.length; k++) {
          mean[k] = 1 + 1e-6 * random.nextGaussian();
          std[k] = 1 + 1e-6 * random.nextGaussian();
        }
      }
    },
    /** Doubles that float does not tell apart. */
    LAST_BITS {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        fill(random, mean, std, 1);
        for (int k = d; k < mean.length; k++) {
          mean[k] = mean[k % d] + random.nextInt(4) * Math.ulp(mean[k % d]);
          std[k] = std[k % d] + random.nextInt(4) * Math.ulp(std[k % d]);
        }
      }
    },
    /** Means so far from 0 beside σ that rounding them to float shows. */
    FAR {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        fill(random, mean, std, 0.05);
        for (int k = 0; k < mean.length; k++) {
          mean[k] += 1000 * Math.sin(1 + k % d);
        }
      }
    },
    OUTLIERS {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        fill(random, mean, std, 1);
        for (int k = 0; k < mean.length; k++) {
          if (random.nextInt(3 * d) == 0) {
            mean[k] *= Math.pow(10, random.nextInt(38));
          }
          if (random.nextInt(3 * d) == 0) {
            std[k] *= Math.pow(10, random.nextInt(-30, 30));
          }
        }
      }
    },
    SCALES {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        for (int k = 0; k < mean.length; k++) {
          std[k] = Math.pow(10, random.nextDouble(-38, 38));
          double x = random.nextGaussian() * Math.pow(10, random.nextDouble(-38, 38));
          mean[k] = Math.clamp(x, -Float.MAX_VALUE, Float.MAX_VALUE);
        }
      }
    },
    /** Each Gaussian has its scale, so that float over- or underflows in all its terms or in none. */
    ROW_SCALES {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        for (int k = 0; k < mean.length; k++) {
          double scale = Math.pow(10, new Random(31 + k / d / 3).nextDouble(-18, 18));
          std[k] = scale * random.nextDouble(0.5, 1.5);
          mean[k] = scale * random.nextGaussian();
        }
      }
    },
    /** Divergences that differ in a few bits only: dimensions in another order. */
    TURNED {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        fill(random, mean, std, 1);
        for (int k = d; k < mean.length; k++) {
          mean[k] = mean[k - d + (k % d < d - 1 ? 1 : 1 - d)];
          std[k] = std[k - d + (k % d < d - 1 ? 1 : 1 - d)];
        }
      }
    },
    /** Posteriors of which most dimensions are the prior's. */
    COLLAPSED {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        for (int k = 0; k < mean.length; k++) {
          boolean isLearned = k % d % 7 == 3;
          mean[k] = isLearned ? random.nextGaussian() : 1e-4 * random.nextGaussian();
          std[k] = isLearned ? random.nextDouble(1e-3, 1) : 1 - 1e-5 * random.nextDouble();
        }
      }
    },
    /** Divergences beyond double, where scales are of double or logarithms, and of all sizes. */
    OVERFLOW {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        fill(random, mean, std, 1);
        for (int k = 0; k < mean.length; k++) {
          if (random.nextInt(2 * d) == 0) {
            std[k] = Math.exp(random.nextDouble(-350, 0));
            mean[k] = 3e38 * random.nextDouble(-1, 1);
          }
        }
      }
    },
    /** Divergences below double's least normal number, where means are of double. */
    SUBNORMAL {
      @Override
      void draw(Random random, double[] mean, double[] std, int d) {
        Arrays.fill(std, 1);
        for (int k = 0; k < mean.length; k++) {
          mean[k] = random.nextGaussian() * Math.pow(10, random.nextDouble(-162, -153));
        }
      }
    };

    abstract void draw(Random random, double[] mean, double[] std, int d);

    static void fill(Random random, double[] mean, double[] std, double scale) {
      for (int k = 0; k < mean.length; k++) {
        mean[k] = scale * random.nextGaussian();
        std[k] = scale * random.nextDouble(0.2, 1.5);
      }
    }
  }

  /** Some Gaussians as the engine and as the index have them. */
  record Rows(DiagonalGaussians gaussians, DiagonalBatch batch) {
    static Rows of(ScaleKind kind, boolean isDouble, double[] mean, double[] std, int d) {
      double[] scale = new double[std.length];
      float[] mean32 = new float[std.length];
      float[] scale32 = new float[std.length];
      for (int k = 0; k < scale.length; k++) {
        double s = std[k];
        scale[k] =
            switch (kind) {
              case STD -> s;
              case VARIANCE -> s * s;
              case LOG_VARIANCE -> 2 * Math.log(s);
              default -> 1 / (s * s);
            };
        mean32[k] = (float) mean[k];
        scale32[k] = (float) scale[k];
        if (kind != ScaleKind.LOG_VARIANCE) {
          scale32[k] = Math.clamp(scale32[k], Float.MIN_VALUE, Float.MAX_VALUE);
        }
      }
      Scale internal = Scale.valueOf(kind.name());
      return isDouble
          ? new Rows(
              (DiagonalGaussians) Gaussians.of(kind, mean, scale, d, ScalePolicy.STRICT),
              DiagonalBatch.of(
                  Elements.of(mean, "mean"),
                  Elements.of(scale, "scale"),
                  d,
                  internal,
                  ScalePolicy.STRICT,
                  RangeCheck.PLAIN))
          : new Rows(
              (DiagonalGaussians) Gaussians.of(kind, mean32, scale32, d, ScalePolicy.STRICT),
              DiagonalBatch.of(
                  Elements.of(mean32, "mean"),
                  Elements.of(scale32, "scale"),
                  d,
                  internal,
                  ScalePolicy.STRICT,
                  RangeCheck.PLAIN));
    }
  }

  /** References with ids, in segments, some of them removed. */
  static final class Case {
    final Random random;
    final int d;
    final Rows queries;
    final long[] ids;
    final BitSet removed = new BitSet();
    final Snapshot snapshot;

    /** Live references in the order of their ids, which are {@code liveIds}. */
    final DiagonalGaussians live;

    final long[] liveIds;

    Case(Draw draw, long seed) {
      this(draw, seed, Coordinates.KL, 1);
    }

    Case(Draw draw, long seed, Coordinates coordinates, int leastQueries) {
      random = new Random(seed);
      boolean isCoded = seed % 5 == 0;
      d =
          isCoded
              ? 8 + random.nextInt(60)
              : random.nextInt(4) == 0 ? 1 + random.nextInt(3) : 1 + random.nextInt(40);
      int m = isCoded ? 1100 + random.nextInt(2000) : 1 + random.nextInt(150);
      int n = leastQueries + random.nextInt(20);
      double[] mean = new double[(m + n) * d];
      double[] std = new double[(m + n) * d];
      draw.draw(random, mean, std, d);
      shuffle(mean, std);
      ScaleKind kind = kind();
      boolean isDouble = random.nextBoolean();
      queries =
          Rows.of(
              random.nextBoolean() ? kind : kind(),
              random.nextInt(4) == 0 ? !isDouble : isDouble,
              Arrays.copyOfRange(mean, m * d, (m + n) * d),
              Arrays.copyOfRange(std, m * d, (m + n) * d),
              d);
      mean = Arrays.copyOf(mean, m * d);
      std = Arrays.copyOf(std, m * d);
      Rows all = Rows.of(kind, isDouble, mean, std, d);
      ids = random.longs(m).distinct().sorted().toArray();
      int parts = 1 + random.nextInt(isCoded ? 2 : 4);
      int[] part = random.ints(m, 0, parts).toArray();
      int chance = random.nextInt(3);
      for (int i = 1; i < m; i++) {
        removed.set(i, chance > 0 && random.nextInt(2 * chance) == 0);
      }
      List<LiveSegment> segments = new ArrayList<>();
      for (int k = 0; k < parts; k++) {
        int its = k;
        int[] rows = IntStream.range(0, m).filter(i -> part[i] == its).toArray();
        if (rows.length > 0) {
          long[] its2 = Arrays.stream(rows).mapToLong(i -> ids[i]).toArray();
          long[] deleted =
              Arrays.stream(rows).filter(removed::get).mapToLong(i -> ids[i]).toArray();
          Segment segment =
              isCoded || (seed + k) % 3 > 0
                  ? Content.segment(coordinates, its2, all.batch, rows)
                  : Content.openSegment(its2, all.batch, rows);
          segments.add(Content.without(segment, deleted));
        }
      }
      int[] left = IntStream.range(0, m).filter(i -> !removed.get(i)).toArray();
      liveIds = Arrays.stream(left).mapToLong(i -> ids[i]).toArray();
      snapshot = Content.snapshot(left.length, segments.toArray(new LiveSegment[0]));
      live = Rows.of(kind, isDouble, rows(mean, left), rows(std, left), d).gaussians;
    }

    private ScaleKind kind() {
      ScaleKind[] kinds = {
        ScaleKind.STD, ScaleKind.VARIANCE, ScaleKind.LOG_VARIANCE, ScaleKind.PRECISION
      };
      return kinds[random.nextInt(4)];
    }

    private void shuffle(double[] mean, double[] std) {
      for (int i = mean.length / d - 1; i > 0; i--) {
        int j = random.nextInt(i + 1);
        for (int h = 0; h < d; h++) {
          for (double[] values : new double[][] {mean, std}) {
            double x = values[i * d + h];
            values[i * d + h] = values[j * d + h];
            values[j * d + h] = x;
          }
        }
      }
    }

    private double[] rows(double[] values, int[] rows) {
      double[] some = new double[rows.length * d];
      for (int i = 0; i < rows.length; i++) {
        System.arraycopy(values, rows[i] * d, some, i * d, d);
      }
      return some;
    }
  }

  /** What the index finds and excludes, of cases that take longer to make than to search. */
  @ParameterizedTest
  @EnumSource
  void findsWhatTheBatchHas(Draw draw) {
    findsWhatTheBatchHas(draw, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @EnumSource
  void findsWhatOtherBatchesHave(Draw draw) {
    findsWhatTheBatchHas(draw, Share.OTHERS);
  }

  private static void findsWhatTheBatchHas(Draw draw, Share share) {
    long[] finite = new long[BOUNDED.size()];
    for (int seed = 300; seed < 360; seed++) {
      if (!share.has(seed)) {
        continue;
      }
      int leastQueries = seed % 8 == 3 ? 32 : 1; // go over panels together
      Case c = new Case(draw, seed, Coordinates.KL, leastQueries);
      String what = "%s, seed %d".formatted(draw, seed);
      nearestIsThatOfTheBatch(what, c);
      // laws compare the two numbers of threads in each case
      int threads = (draw.ordinal() + seed / 4) % 2 == 0 ? 1 : 3;
      try (Searches searches = new Searches(c.d, threads, null)) {
        if (seed < 330) {
          withinFindsThoseOfTheBatch(what, c, searches);
          filteredReferencesDoNotCount(what, c, searches);
        }
        if (seed < 340) {
          pointsFindThoseOfTheBatch(what, c, searches);
        }
      }
      for (int f = 0; f < finite.length && seed < 340; f++) {
        finite[f] += boundsHold(what, c, BOUNDED.get(f));
      }
    }
    if (draw != Draw.SCALES && draw != Draw.OVERFLOW) {
      assertThat(Arrays.stream(finite)).allMatch(count -> count > 1000);
    } else if (share == Share.OTHERS) { // few are
      assertThat(Arrays.stream(finite)).allMatch(count -> count > 0);
    }
  }

  private static void nearestIsThatOfTheBatch(String what, Case c) {
    int k = 1 + c.random.nextInt(c.random.nextInt(5) == 0 ? 200 : 12);
    boolean reverse = c.random.nextBoolean();
    Query exact = Query.nearest(k).exact();
    Neighbors expected =
        ENGINE.search(c.queries.gaussians, c.live, reverse ? exact.reverse() : exact);
    SearchOptions options = options(k, reverse, null);
    for (int threads = 1; threads <= 3; threads += 2) {
      try (Searches searches = new Searches(c.d, threads, null)) {
        NeighborIds found = searches.search(c.snapshot, c.queries.batch, options, 0);
        same(what + ", threads " + threads, c, found, expected);
      }
    }
  }

  private static void withinFindsThoseOfTheBatch(String what, Case c, Searches searches) {
    boolean reverse = c.random.nextBoolean();
    int k = 1 + c.random.nextInt(c.liveIds.length);
    Query exact = Query.nearest(k).exact();
    double radius =
        ENGINE
            .search(c.queries.gaussians.slice(0, 1), c.live, reverse ? exact.reverse() : exact)
            .value(0, k - 1); // on the edge
    Query within = Query.within(radius).exact();
    Neighbors expected =
        ENGINE.search(c.queries.gaussians, c.live, reverse ? within.reverse() : within);
    SearchOptions forward = SearchOptions.within(radius);
    SearchOptions options = reverse ? forward.reversed() : forward;
    same(
        what + ", within " + radius,
        c,
        searches.search(c.snapshot, c.queries.batch, options, 0),
        expected);
  }

  /** Points find what they find in the batch, to the bit: of distances exactly, and of densities as a pair computes them. */
  private static void pointsFindThoseOfTheBatch(String what, Case c, Searches searches) {
    DiagonalBatch asked = queries(c, Density.EXCESS);
    DiagonalGaussians points =
        asked.isDouble()
            ? DiagonalGaussians.ofPoints(asked.mean64(), c.d)
            : DiagonalGaussians.ofPoints(asked.mean32(), c.d);
    int k = 1 + c.random.nextInt(Math.min(c.liveIds.length, 40));
    for (boolean isByDensity : new boolean[] {false, true}) {
      Query nearest = isByDensity ? Query.nearest(k).byLogDensity() : Query.nearest(k).exact();
      SearchOptions options = options(k, false, null);
      String which = what + ", points, by density: " + isByDensity;
      Neighbors expected = SCALAR.search(points, c.live, nearest);
      same(
          which,
          c,
          searches.search(c.snapshot, asked, isByDensity ? options.rankedByDensity() : options, 0),
          expected);
      double edge = expected.value(0, expected.count(0) - 1);
      if (edge < Double.POSITIVE_INFINITY) {
        SearchOptions within = SearchOptions.within(edge);
        same(
            which + ", within " + edge,
            c,
            searches.search(c.snapshot, asked, isByDensity ? within.rankedByDensity() : within, 0),
            SCALAR.search(
                points,
                c.live,
                isByDensity ? Query.denserThan(-edge) : Query.within(edge).exact()));
      }
    }
  }

  private static void same(String what, Case c, NeighborIds found, Neighbors expected) {
    for (int i = 0; i < expected.size(); i++) {
      int from = found.start()[i];
      assertThat(found.start()[i + 1] - from)
          .as("%s, row %d", what, i)
          .isEqualTo(expected.count(i));
      for (int r = 0; r < expected.count(i); r++) {
        long id = c.liveIds[expected.index(i, r)];
        double value = expected.value(i, r);
        if (found.ids()[from + r] != id || found.values()[from + r] != value) {
          fail(
              "%s, row %d, %d: %d, %s instead of %d, %s",
              what, i, r, found.ids()[from + r], found.values()[from + r], id, value);
        }
      }
    }
  }

  /** A filter and an excluded id leave what a search of the others finds. */
  private static void filteredReferencesDoNotCount(String what, Case c, Searches searches) {
    LongPredicate filter = id -> (id >>> 3 & 3) != 0;
    long excluded = c.liveIds[c.random.nextInt(c.liveIds.length)];
    int k = 5;
    // three in four of the ids pass, so that the nearest of all hold the nearest of these
    int most = Math.min(c.liveIds.length, 10 * k);
    Neighbors all = ENGINE.search(c.queries.gaussians, c.live, Query.nearest(most).exact());
    NeighborIds found =
        searches.search(c.snapshot, c.queries.batch, options(k, false, filter, excluded), 0);
    for (int i = 0; i < c.queries.batch.size(); i++) {
      long[] wanted =
          all.row(i).stream()
              .mapToLong(n -> c.liveIds[(int) n.id()])
              .filter(id -> filter.test(id) && id != excluded)
              .limit(k)
              .toArray();
      assertThat(Arrays.copyOfRange(found.ids(), found.start()[i], found.start()[i + 1]))
          .as("%s, filtered, query %d", what, i)
          .containsExactly(wanted);
    }
  }

  /** Where float knows nothing of a sum of so many terms, every reference is to be looked at. */
  @Test
  void nothingIsExcludedInTheMostDimensions() {
    int d = DiagonalBatch.MOST_DIMENSIONS;
    DiagonalBatch query = DiagonalBatch.ofSlot(d, Scale.STD, false);
    Arrays.fill(query.scale32(), 1);
    query.takeRow(0, 0, true);
    Block block = new Block();
    block.rows = 1;
    block.leastPrecision = 1;
    block.logDet = new double[1];
    block.bound = new double[1];
    block.slack = new float[1];
    block.length = new float[1];
    float[] most = new float[PanelScan.LANES];
    Bounds bounds = new Bounds(Kl.FORWARD);
    for (boolean reverse : new boolean[] {false, true}) {
      bounds.set(query, 0, reverse, 0);
      bounds.most(block, 0, PanelScan.LANES, 1, most);
      assertThat(most[0]).isEqualTo(Float.POSITIVE_INFINITY);
      assertThat(bounds.lower(block, 0, d)).isLessThanOrEqualTo(0);
      assertThat(bounds.upper(block, 0, d)).isEqualTo(Double.POSITIVE_INFINITY);
    }
  }

  /** Memory for the candidates of a batch's queries is dropped, also of those that the last task did not have. */
  @Test
  void searcherKeepsLittleMemory() {
    int n = 10_000;
    double[] mean = new Random(1).doubles(n).toArray();
    double[] std = new double[n];
    Arrays.fill(std, 1);
    DiagonalBatch batch = Rows.of(ScaleKind.STD, true, mean, std, 1).batch;
    int[] rows = IntStream.range(0, n).toArray();
    Segment segment =
        Content.segment(
            Coordinates.KL, IntStream.range(0, n).asLongStream().toArray(), batch, rows);
    Snapshot snapshot = Content.snapshot(n, new LiveSegment(segment));
    Searcher searcher = new Searcher(Kl.FORWARD, 1, null);
    searcher.startCall();
    for (int queries = 3; queries > 0; queries -= 2) {
      searcher.start(snapshot, SearchOptions.within(1e9), Integer.MAX_VALUE, 1, false, 0);
      searcher.ask(batch, 0, queries);
      searcher.scanAll();
      searcher.decide(0);
      assertThat(searcher.ranking(0).count()).isEqualTo(n);
    }
    assertThat(searcher.ranking(2).capacity()).isGreaterThanOrEqualTo(n);
    searcher.clear();
    assertThat(searcher.ranking(2).capacity()).isLessThan(n);
  }

  /**
   * A value of the pair's stable form, which errs by far less, times this is below the exact one, which takes longer: that is asked for where the
   * former leaves a bound open.
   */
  private static final double SURE = 1 - 1e-9;

  private static final List<Formula> BOUNDED =
      List.of(Kl.FORWARD, Density.MAHALANOBIS, Density.EXCESS);

  /** Returns the queries, or points in their places. */
  private static DiagonalBatch queries(Case c, Formula formula) {
    DiagonalBatch q = c.queries.batch;
    return formula.isOfPoints()
        ? DiagonalBatch.ofPoints(
            q.isDouble() ? Elements.of(q.mean64(), "points") : Elements.of(q.mean32(), "points"),
            c.d,
            RangeCheck.PLAIN)
        : q;
  }

  /** Returns what the excesses of a segment's rows are over, those that are removed, too. */
  private static double least(Formula formula, Segment segment) {
    return formula == Density.EXCESS
        ? IntStream.range(0, segment.size()).mapToDouble(segment::logDet).min().orElse(0)
        : 0;
  }

  private static double own(Formula formula, Segment segment, int row, double least) {
    return formula == Density.EXCESS ? segment.logDet(row) - least : 0;
  }

  /** Every exact value lies between the bounds of its sum, and one whose sum exceeds its limit lies beyond this; returns how many are finite. */
  private static long boundsHold(String what, Case c, Formula formula) {
    PanelScan scan = new ScalarPanelScan();
    Block block = new Block();
    Bounds bounds = new Bounds(formula);
    Worker worker = new Worker();
    worker.startCall();
    Pair pair = new Pair(formula, worker);
    long finite = 0;
    boolean reverse = c.random.nextBoolean() && !formula.isOfPoints();
    DiagonalBatch queries = queries(c, formula);
    for (LiveSegment part : c.snapshot.segments()) {
      Segment segment = part.segment();
      double least = least(formula, segment);
      DiagonalBatch p = DiagonalBatch.ofSlot(c.d, segment.kind(), segment.isDouble());
      block.load(segment, 0, Math.min(segment.panels(), Block.mostPanels(segment)));
      int n = block.panels * PanelScan.LANES;
      float[] most = new float[n];
      float[] sum = new float[n];
      float[] rests = new float[n];
      for (int i = 0; i < queries.size(); i++) {
        bounds.set(queries, i, reverse, least);
        float greatest = bounds.rests(block, queries.isDouble(), rests);
        bounds.order(segment);
        Arrays.fill(most, Float.POSITIVE_INFINITY);
        scan.sums(
            bounds.query,
            reverse,
            c.d,
            segment.image(),
            segment.panelAt(0),
            block.panels,
            most,
            sum,
            new int[block.panels]);
        double limit = Double.NaN;
        for (int r = 0; r < block.rows; r++) {
          segment.fill(p, r);
          DiagonalBatch a = reverse ? p : queries;
          DiagonalBatch b = reverse ? queries : p;
          double own = own(formula, segment, r, least);
          double kl = pair.stable(a, reverse ? 0 : i, b, reverse ? i : 0) + own;
          limit = Double.isNaN(limit) ? kl : limit;
          double upper = bounds.upper(block, r, sum[r]);
          finite += upper < Double.POSITIVE_INFINITY ? 1 : 0;
          double lower = bounds.lower(block, r, sum[r]);
          bounds.most(block, r, 1, limit, most);
          boolean isBeyond = sum[r] > most[0];
          bounds.most(block, r, 1, kl * SURE, most);
          if (lower <= kl * SURE
              && kl <= upper * SURE
              && !(sum[r] > most[0])
              && !(sum[r] - rests[r] > bounds.mostOfQuery(block, kl * SURE, greatest))
              && !(isBeyond && kl * SURE <= limit)) {
            continue;
          }
          kl = pair.rounded(a, reverse ? 0 : i, b, reverse ? i : 0) + own;
          bounds.most(block, r, 1, kl, most);
          boolean isLost =
              sum[r] > most[0]
                  || sum[r] - rests[r] > bounds.mostOfQuery(block, kl, greatest)
                  || (isBeyond && kl <= limit);
          if (!(lower <= kl && kl <= upper) || isLost) {
            fail(
                "%s of %s, query %d, row %d: %s from %s to %s, lost: %s",
                what, formula, i, r, kl, lower, upper, isLost);
          }
        }
      }
    }
    return finite;
  }

  /** Codes bound every exact value from below, and exclude none that is within the limit; on plain data they exclude nearly all. */
  @ParameterizedTest
  @EnumSource
  void codesBoundFromBelow(Draw draw) {
    codesBoundFromBelow(draw, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "PLAIN")
  void codesBoundFromBelowInOtherCases(Draw draw) {
    codesBoundFromBelow(draw, Share.OTHERS);
  }

  private static final Map<Coordinates, List<Formula>> CODED =
      Map.of(
          Coordinates.KL, List.of(Kl.FORWARD, Density.MAHALANOBIS, Density.EXCESS),
          Coordinates.JEFFREYS, List.of(Jeffreys.FORMULA),
          Coordinates.WASSERSTEIN_2, List.of(Wasserstein2.DISTANCE, Wasserstein2.SQUARED));

  private static void codesBoundFromBelow(Draw draw, Share share) {
    CODED.forEach((coordinates, formulas) -> {
      Map<Formula, Left> left = new HashMap<>();
      for (int seed = 500; seed < 540; seed += 5) {
        if (draw == Draw.PLAIN || share.has(seed / 5 + coordinates.ordinal())) {
          Case c = new Case(draw, seed, coordinates, 1);
          for (Formula formula : formulas) {
            Left its = left.computeIfAbsent(formula, f -> new Left());
            codesBoundFromBelow(draw, seed, c, formula, share, its);
          }
        }
      }
      if (draw == Draw.PLAIN) { // an average of all its seeds
        double most = coordinates == Coordinates.JEFFREYS ? 350 : 30;
        left.forEach((formula, its) ->
            assertThat((double) its.left / its.searches).as("%s", formula).isBetween(10.0, most));
      }
    });
  }

  /** References that searches for the tenth have left. */
  private static final class Left {
    int searches;
    int left;
  }

  private static void codesBoundFromBelow(
      Draw draw, int seed, Case c, Formula formula, Share share, Left left) {
    CodeScan scan = new ScalarCodeScan();
    Bounds bounds = new Bounds(formula);
    CodedQuery coded = CodedQuery.of(formula, bounds);
    Worker worker = new Worker();
    worker.startCall();
    Pair pair = new Pair(formula, worker);
    DiagonalBatch asked = queries(c, formula);
    for (LiveSegment part : c.snapshot.segments()) {
      Segment segment = part.segment();
      double least = least(formula, segment);
      Codes codes = segment.codes();
      if (codes == null) {
        assertThat(segment.size()).isLessThan(256);
        continue;
      }
      DiagonalBatch p = DiagonalBatch.ofSlot(c.d, segment.kind(), segment.isDouble());
      int panels = Math.ceilDiv(segment.size(), CodeScan.LANES);
      float[] most = new float[panels * CodeScan.LANES];
      float[] sum = new float[most.length];
      // a thousand values each
      int queries = draw == Draw.PLAIN || share == Share.OTHERS ? 4 : 1;
      for (int i = 0; i < Math.min(queries, asked.size()); i++) {
        bounds.set(asked, i, false, least);
        if (!coded.set(asked, i, segment, codes)) {
          assertThat(draw).isIn(Draw.SCALES, Draw.ROW_SCALES, Draw.OUTLIERS, Draw.OVERFLOW);
          continue;
        }
        double[] kl = new double[segment.size()];
        for (int r = 0; r < kl.length; r++) {
          segment.fill(p, r);
          kl[r] = pair.stable(asked, i, p, 0) + own(formula, segment, r, least);
        }
        double tenth = Arrays.stream(kl).sorted().toArray()[9];
        for (double limit : new double[] {Double.POSITIVE_INFINITY, tenth, kl[3], 1e-3}) {
          coded.limit(limit);
          scan.sums(
              coded.terms,
              codes.words(),
              coded.limit,
              segment.image(),
              codes.panelAt(0),
              panels,
              most,
              sum,
              new int[panels]);
          for (int r = 0; r < kl.length; r++) {
            double low = coded.lower(sum[r], codes.slack(r), codes.logs(r));
            boolean isBeyond = sum[r] > most[r];
            if (!(low <= kl[r] * SURE) || isBeyond && kl[r] * SURE <= limit) {
              segment.fill(p, r);
              kl[r] = pair.rounded(asked, i, p, 0) + own(formula, segment, r, least);
            }
            if (!(low <= kl[r]) || isBeyond && kl[r] <= limit) {
              fail(
                  "%s, %s, seed %d, query %d, row %d: %s from %s, limit %s",
                  draw, formula, seed, i, r, kl[r], low, limit);
            }
            left.left += limit == tenth && !(sum[r] > most[r]) ? 1 : 0;
          }
        }
        left.searches++;
      }
    }
  }

  /** An index of nothing has no neighbors. */
  @Test
  void emptySnapshot() {
    Case c = new Case(Draw.PLAIN, 5);
    try (Searches searches = new Searches(c.d, 1, null)) {
      NeighborIds found =
          searches.search(Snapshot.EMPTY, c.queries.batch, SearchOptions.nearest(3), 0);
      assertThat(found.ids()).isEmpty();
      assertThat(found.start()).hasSize(c.queries.batch.size() + 1);
    }
  }

  private static SearchOptions options(
      int k, boolean reverse, @Nullable LongPredicate filter, long... excluded) {
    SearchOptions options = SearchOptions.nearest(k).without(excluded);
    options = reverse ? options.reversed() : options;
    return filter == null ? options : options.filteredBy(filter);
  }
}
