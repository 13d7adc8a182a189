package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.ThisThread;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;

/** Calls an engine, or searches an index, until the VM has compiled what the calls run, told by their getting no faster. */
public final class WarmUp {
  /** C2 compiles in the background, the largest kernel in some 0.1 s. */
  private static final double WINDOW_SECONDS = 0.25;

  /** Windows without gain that end it: one may have waited for the compiler. */
  private static final int STABLE_WINDOWS = 2;

  private static final double MOST_SECONDS = 5;

  /**
   * Seconds by the clock that count as one at least. Time counts while the thread has a processor, as far as the VM tells: beside other work its turns are
   * as rare as the compiler's. By the clock alone, beside six busy threads on two processors, three of four warm-ups ended while the vectors of all searches
   * were boxed, and none of four ended so by the thread's time (AVX-512, CPU family 26, JDK 25.0.3).
   */
  private static final double CLOCK_SECONDS = 6;

  private static final double GAIN = 0.9;

  /** Spread of Gaussians so alike that the fast kernels' values are recomputed. */
  private static final double NEAR = 1e-4;

  /** Spreads of columns, an eighth of which are alike. */
  private static final double[] MIXED = {1, 1, 1, 1, 1, 1, 1, NEAR};

  /** Most dimensions of a made-up batch, as a panel of few rows takes as much memory as a whole one. */
  static final int MOST_DIMENSIONS = (1 << 24) / Batch.WIDEST_PANEL;

  /** Most elements of a made-up batch: 8 MiB of floats, made of 16 MiB of doubles. More rows compile nothing else. */
  public static final int MOST_ELEMENTS = 1 << 20;

  /** Most entries of a matrix that is computed, too. */
  private static final long MOST_ENTRIES = 1 << 22;

  private final Engine engine;
  private final List<Supplier<Batch>> queries;
  private final Batch p;
  private final boolean wide;
  private final SearchOptions nearest;
  private final int[] indices;
  private final float[] values32;
  private final double[] values64;
  private final double[] sums;
  private final boolean matrix;

  private WarmUp(Engine engine, List<Supplier<Batch>> queries, int n, Batch p, boolean wide) {
    this.engine = engine;
    this.queries = queries;
    this.p = p;
    this.wide = wide;
    long entries = (long) n * p.size();
    matrix = entries <= MOST_ENTRIES;
    int k = (int) Math.min(Math.min(10, p.size()), Math.max(1, MOST_ENTRIES / n));
    nearest = SearchOptions.nearest(k);
    indices = new int[n * k];
    int length = matrix ? (int) entries : indices.length;
    values32 = new float[wide ? 0 : length];
    values64 = new double[wide ? length : 0];
    sums = new double[n];
  }

  /** Warms up with the caller's batches. */
  static void run(Engine engine, Batch q, Batch p) {
    untilStable(
        new WarmUp(engine, List.of(() -> q), q.size(), p, q.isDouble() || p.isDouble())::round);
  }

  /** Warms up with batches of its own: queries made anew each time, far from all of p and near an eighth of it. */
  static void run(Engine engine, int rows, int columns, int dimensions) {
    int dimension = Math.min(dimensions, MOST_DIMENSIONS);
    int most = Math.max(1, MOST_ELEMENTS / dimension);
    int n = Math.min(rows, most);
    int m = Math.min(columns, most);
    Random random = new Random(1);
    MadeUpGaussians normal = MadeUpGaussians.normal(dimension, false);
    Batch p = normal.around(m, random, MIXED).diagonal(Scale.STD, false);
    MadeUpGaussians far = normal.around(n, random, 1);
    MadeUpGaussians near = normal.around(n, random, NEAR);
    List<Supplier<Batch>> queries =
        List.of(() -> far.diagonal(Scale.STD, false), () -> near.diagonal(Scale.STD, false));
    untilStable(new WarmUp(engine, queries, n, p, false)::round);
  }

  /** Repeats a round until it gets no faster. */
  public static void untilStable(Runnable round) {
    double before = Double.POSITIVE_INFINITY;
    Elapsed elapsed = new Elapsed();
    for (int stable = 0; stable < STABLE_WINDOWS && elapsed.seconds() < MOST_SECONDS; ) {
      double best = window(round);
      stable = best > GAIN * before ? stable + 1 : 0;
      before = Math.min(before, best);
    }
  }

  /** The shortest round's seconds. */
  private static double window(Runnable round) {
    double best = Double.POSITIVE_INFINITY;
    Elapsed elapsed = new Elapsed();
    do {
      long now = System.nanoTime();
      round.run();
      best = Math.min(best, (System.nanoTime() - now) * 1e-9);
    } while (elapsed.seconds() < WINDOW_SECONDS);
    return best;
  }

  /** The time since it was made. */
  private static final class Elapsed {
    private final long clock = System.nanoTime();
    private final long processor = ThisThread.processorNanos();

    /** The time that this thread has had, or a share of the time that has passed if that is more. */
    double seconds() {
      double passed = (System.nanoTime() - clock) * 1e-9;
      return processor < 0
          ? passed
          : Math.max((ThisThread.processorNanos() - processor) * 1e-9, passed / CLOCK_SECONDS);
    }
  }

  private void round() {
    for (Supplier<Batch> query : queries) {
      call(query.get());
    }
  }

  private void call(Batch q) {
    engine.checkOpen();
    if (matrix) {
      into().pairwise(q, p);
    }
    into().nearest(q, p, nearest, indices);
    engine.begin().statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, null, sums);
    engine.begin().statistic(RowStatistic.Kind.MIN, q, p, null, sums);
  }

  private Workspace into() {
    return wide ? engine.into(values64) : engine.into(values32);
  }
}
