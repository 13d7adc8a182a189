package dev.kullback.internal.engine;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.vector.Readiness;
import dev.kullback.internal.vector.ReadyScan;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.work.Checkpoint;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Has C2 compile the vector kernels, and calls change over to them from their plain twins when it has: a daemon thread, begun by the
 * first call that would use vectors, runs both on batches of its own until the vectors are as fast. Where the VM does not compile
 * vectors at all, the twins stay.
 */
final class ChangeOver {
  private static final String THREAD = "kullback-change-over";

  /** Leaves the processors to the first call, which on two of them took up to twice as long beside this (0.27 s alone, Zen 3). */
  private static final long DELAY_MILLIS = 500;

  /** After so long calls change over whatever the speed: C2 may be starved, or give up, and vectors are right all the same. */
  private static final long MOST_NANOS = 30_000_000_000L;

  /** In the twin's time. Compiled, vectors take a third of it and more where most entries are recomputed; boxed, 5 times as long. */
  private static final int SLOWER = 2;

  /** Whole tiles and tails of all widths. What compiles a method is the number of its calls, so these are short. */
  private static final int ROWS = 12;

  private static final int COLUMNS = 43;

  /** First, as the interpreter takes 5 µs for an operation; enough for every rung. */
  private static final int FEW_DIMENSIONS = 8;

  /** More than are promoted at once. */
  private static final int MOST_DIMENSIONS = 320;

  /** How far Gaussians lie from the standard one, in turn: for each rung that recomputes entries, and those that are equal. */
  private static final double[] MIXED = {1, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 0};

  private static final double[] FAR = {1};
  private static final double[] CLOSE = {0.01};
  private static final double[] NEAR = {1e-4};

  private static final AtomicReference<@Nullable Thread> STARTED = new AtomicReference<>();
  private static final CountDownLatch AWAITED = new CountDownLatch(1);

  private final long start = System.nanoTime();
  private final Random random = new Random(1);
  private final Engine engine =
      new Engine(
          Platform.Choice.VECTOR, 1, null, (_, message) -> new IllegalStateException(message));

  private ChangeOver() {}

  /** Starts the thread if nobody has, for batches of this dimension. */
  static void begin(int dimension) {
    if (!Readiness.isReady() && STARTED.get() == null) {
      Thread thread = new Readiness.Trial(() -> run(dimension), THREAD);
      if (STARTED.compareAndSet(null, thread)) {
        try {
          thread.start();
        } catch (OutOfMemoryError e) { // no more threads
          Readiness.setReady();
        }
      }
    }
  }

  /** Waits for its end. */
  static void await(int dimension) {
    begin(dimension);
    AWAITED.countDown();
    Thread thread = STARTED.get();
    if (thread != null) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw Checkpoint.interrupted();
      }
    }
  }

  private static void run(int dimension) {
    try {
      AWAITED.await(DELAY_MILLIS, TimeUnit.MILLISECONDS);
      if (Platform.isCompiled()) {
        new ChangeOver().tryAll(Math.min(dimension, MOST_DIMENSIONS));
        Readiness.setReady();
      }
    } catch (InterruptedException | RuntimeException | Error e) {
      Readiness.setReady(); // what is wrong with vectors their callers are to see
    }
  }

  private void tryAll(int d) {
    Scans scans = new Scans(random);
    tryOut(scans::run);
    matrices(Math.min(d, SmallKernel.MOST_DIMENSIONS));
    matrices(FEW_DIMENSIONS);
    matrices(Math.max(d, FEW_DIMENSIONS));
  }

  private void matrices(int d) {
    for (boolean wide : new boolean[] {false, true}) {
      for (double[] spreads : new double[][] {FAR, MIXED, CLOSE, NEAR}) {
        Parameters q = new Parameters(ROWS, d, spreads, wide, random);
        Parameters p = new Parameters(COLUMNS, d, spreads, wide, random);
        tryOut(() -> matrices(q.batch(), p.batch()));
      }
    }
  }

  private void matrices(DiagonalBatch q, DiagonalBatch p) {
    engine.pairwise(q, p, engine.begin().to(new float[q.size() * p.size()]));
    engine.pairwise(q, p, engine.begin().to(new double[q.size() * p.size()]));
    engine.pairwise(q, q, engine.begin().to(new float[q.size() * q.size()]));
  }

  /** Computes with both until vectors take no longer. */
  private void tryOut(Runnable round) {
    long twin = Long.MAX_VALUE;
    long vector = Long.MAX_VALUE;
    do {
      twin = Math.min(twin, time(false, round));
      vector = Math.min(vector, time(true, round));
    } while (vector > SLOWER * twin && System.nanoTime() - start < MOST_NANOS);
  }

  private static long time(boolean vectors, Runnable round) {
    Readiness.Trial.use(vectors);
    long start = System.nanoTime();
    round.run();
    return System.nanoTime() - start;
  }

  /** What reductions do with rows. */
  private static final class Scans {
    private static final int ROWS = 12;
    private static final int WIDTH = 160;

    private final RowScan scan = new ReadyScan();
    private final double[] values;
    private final double[] least = new double[WIDTH];
    private final int[] at = new int[WIDTH];
    private final long[] unsorted;
    private final long[] keys = new long[RowScan.FEW];

    Scans(Random random) {
      values = random.doubles(WIDTH, 0, 3).toArray();
      unsorted = random.longs(RowScan.FEW, 0, Long.MAX_VALUE).toArray();
    }

    void run() {
      for (int i = 0; i < ROWS; i++) {
        scan.sumExp(0, values, i, i + 39);
        scan.sum(values, i, WIDTH);
        scan.min(values, i, WIDTH);
        scan.atMost(1, values, i, WIDTH, at);
        scan.leastOfGroups(values, 0, WIDTH, 32, least);
        System.arraycopy(unsorted, 0, keys, 0, keys.length);
        scan.sortFew(keys, i, keys.length);
      }
    }
  }

  /** Of a batch: means about 0 and standard deviations about 1. */
  private static final class Parameters {
    private final double[] mean;
    private final double[] std;
    private final int d;
    private final boolean wide;

    Parameters(int n, int d, double[] spreads, boolean wide, Random random) {
      mean = new double[n * d];
      std = new double[n * d];
      this.d = d;
      this.wide = wide;
      for (int k = 0; k < n * d; k++) {
        double spread = spreads[k / d % spreads.length];
        mean[k] = spread * random.nextGaussian();
        std[k] = Math.exp(0.3 * spread * random.nextGaussian());
      }
    }

    /** Made anew, as its panels then are. */
    DiagonalBatch batch() {
      return DiagonalBatch.of(
          wide ? Elements.of(mean, "mean") : Elements.of(floats(mean), "mean"),
          wide ? Elements.of(std, "std") : Elements.of(floats(std), "std"),
          d,
          Scale.STD,
          DiagonalBatch.Zeros.REJECTED);
    }

    private static float[] floats(double[] values) {
      float[] narrow = new float[values.length];
      for (int k = 0; k < narrow.length; k++) {
        narrow[k] = (float) values[k];
      }
      return narrow;
    }
  }
}
