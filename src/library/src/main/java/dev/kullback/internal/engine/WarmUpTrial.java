package dev.kullback.internal.engine;

import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.vector.Readiness;
import dev.kullback.internal.vector.Readiness.KernelGroup;
import dev.kullback.internal.vector.ReadyScan;
import dev.kullback.internal.vector.SmallKernel;
import java.util.Random;

/** Runs vector kernels and their plain twins, on a {@link Readiness.Trial}, until the vectors are as fast. */
final class WarmUpTrial {
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

  /** Of full covariances: blocks of four and what is left, in one chunk of the product and in several. */
  private static final int FEW_FULL_DIMENSIONS = 6;

  private static final int MOST_FULL_DIMENSIONS = 32;

  /** How far Gaussians lie from the standard one, in turn: for each rung that recomputes entries, and those that are equal. */
  private static final double[] MIXED = {1, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 0};

  private static final double[] FAR = {1};
  private static final double[] CLOSE = {0.01};
  private static final double[] NEAR = {1e-4};

  private final int dimension;
  private final long start = System.nanoTime();
  private final Random random = new Random(1);
  private final Engine engine =
      new Engine(
          Platform.Choice.VECTOR, 1, null, (_, message) -> new IllegalStateException(message));

  /** For batches of this dimension. */
  WarmUpTrial(int dimension) {
    this.dimension = dimension;
  }

  void of(KernelGroup part) {
    int most = Math.clamp(dimension, FEW_DIMENSIONS, MOST_DIMENSIONS);
    switch (part) {
      case FLOAT -> {
        matrices(FEW_DIMENSIONS, false, FAR);
        matrices(most, false, FAR);
      }
      case DOUBLE -> {
        matrices(FEW_DIMENSIONS, true, FAR, MIXED, CLOSE, NEAR);
        matrices(most, true, FAR, MIXED, CLOSE, NEAR);
      }
      case REFINEMENT -> {
        matrices(FEW_DIMENSIONS, false, MIXED, CLOSE, NEAR);
        matrices(most, false, MIXED, CLOSE, NEAR);
      }
      case SMALL -> {
        int d = Math.min(dimension, SmallKernel.MOST_DIMENSIONS);
        matrices(d, false, FAR, MIXED, CLOSE, NEAR);
        matrices(d, true, FAR, MIXED, CLOSE, NEAR);
      }
      case SCANS -> {
        Scans scans = new Scans(random);
        tryOut(scans::run);
      }
      case FULL -> {
        full(FEW_FULL_DIMENSIONS);
        full(Math.clamp(dimension, FEW_FULL_DIMENSIONS, MOST_FULL_DIMENSIONS));
      }
    }
  }

  private void matrices(int d, boolean wide, double[]... spreads) {
    for (double[] spread : spreads) {
      Parameters q = new Parameters(ROWS, d, spread, wide, random);
      Parameters p = new Parameters(COLUMNS, d, spread, wide, random);
      tryOut(() -> matrices(q.batch(), p.batch()));
    }
  }

  private void matrices(DiagonalBatch q, DiagonalBatch p) {
    engine.pairwise(q, p, engine.begin().to(new float[q.size() * p.size()]));
    engine.pairwise(q, p, engine.begin().to(new double[q.size() * p.size()]));
    engine.pairwise(q, q, engine.begin().to(new float[q.size() * q.size()]));
  }

  private void full(int d) {
    for (double[] spread : new double[][] {FAR, MIXED, NEAR}) {
      Covariances q = new Covariances(ROWS, d, spread, random);
      Covariances p = new Covariances(COLUMNS, d, spread, random);
      tryOut(() -> {
        matrices(q.batch(ScaleKind.SCALE_TRIL), p.batch(ScaleKind.SCALE_TRIL));
        matrices(q.batch(ScaleKind.PRECISION), p.batch(ScaleKind.COVARIANCE));
        pairs(p.batch(ScaleKind.SCALE_TRIL), p.batch(ScaleKind.COVARIANCE));
      });
    }
  }

  private void matrices(FullBatch q, FullBatch p) {
    engine.pairwise(q, p, engine.begin().to(new float[q.size() * p.size()]));
    engine.pairwise(q, p, engine.begin().to(new double[q.size() * p.size()]));
  }

  private void pairs(FullBatch q, FullBatch p) {
    double[] out = new double[p.size()];
    engine.aligned(q, p, engine.begin().to(out));
    engine.toStandardNormal(q, engine.begin().to(out));
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
          ScalePolicy.STRICT);
    }

    private static float[] floats(double[] values) {
      float[] narrow = new float[values.length];
      for (int k = 0; k < narrow.length; k++) {
        narrow[k] = (float) values[k];
      }
      return narrow;
    }
  }

  /** Of a batch with full covariances, likewise. */
  private static final class Covariances {
    private final double[] mean;
    private final double[] factors;
    private final double[] products;
    private final int d;

    Covariances(int n, int d, double[] spreads, Random random) {
      mean = new double[n * d];
      factors = new double[n * d * d];
      products = new double[n * d * d];
      this.d = d;
      for (int row = 0; row < n * d; row++) {
        double spread = spreads[row / d % spreads.length];
        int r = row % d;
        mean[row] = spread * random.nextGaussian();
        for (int c = 0; c <= r; c++) {
          double x = 0.3 * spread * random.nextGaussian() / d;
          factors[row * d + c] = c < r ? x : Math.exp(x);
        }
        for (int c = 0; c <= r; c++) {
          int other = row - r + c;
          double sum = 0;
          for (int k = 0; k <= c; k++) {
            sum += factors[row * d + k] * factors[other * d + k];
          }
          products[row * d + c] = sum;
          products[other * d + r] = sum;
        }
      }
    }

    FullBatch batch(ScaleKind kind) {
      double[] matrix = kind == ScaleKind.SCALE_TRIL ? factors : products;
      return Factors.of(
          Elements.of(mean, "mean"),
          Elements.of(matrix, kind.argument()),
          d,
          kind,
          Platform::factorization);
    }
  }
}
