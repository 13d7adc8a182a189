package dev.kullback;

import java.util.Random;

/** Calls an engine until the VM has compiled what the calls run, told by their getting no faster. */
final class WarmUp {
  /** C2 compiles in the background, the largest kernel in some 0.1 s. */
  private static final double WINDOW_SECONDS = 0.25;

  /** Of windows without gain, one may have waited for the compiler. */
  private static final int STABLE_WINDOWS = 2;

  private static final int MOST_WINDOWS = 20;
  private static final double GAIN = 0.9;

  /** Up to which the matrix is computed, too. */
  private static final long MOST_ENTRIES = 1 << 22;

  private final KlEngine engine;
  private final Gaussians q;
  private final Gaussians p;
  private final int k;
  private final int[] indices;
  private final float[] values32;
  private final double[] values64;
  private final double[] sums;
  private final boolean matrix;

  WarmUp(KlEngine engine, Gaussians q, Gaussians p) {
    this.engine = engine;
    this.q = q;
    this.p = p;
    boolean wide = q.isDouble() || p.isDouble();
    long entries = (long) q.size() * p.size();
    matrix = entries <= MOST_ENTRIES;
    k = Math.min(10, p.size());
    indices = new int[q.size() * k];
    int length = matrix ? (int) entries : indices.length;
    values32 = new float[wide ? 0 : length];
    values64 = new double[wide ? length : 0];
    sums = new double[q.size()];
  }

  void run() {
    double before = Double.POSITIVE_INFINITY;
    int stable = 0;
    for (int w = 0; w < MOST_WINDOWS && stable < STABLE_WINDOWS; w++) {
      double best = window();
      stable = best > GAIN * before ? stable + 1 : 0;
      before = Math.min(before, best);
    }
  }

  /** The shortest round's seconds. */
  private double window() {
    double best = Double.POSITIVE_INFINITY;
    long start = System.nanoTime();
    long now = start;
    do {
      round();
      long end = System.nanoTime();
      best = Math.min(best, (end - now) * 1e-9);
      now = end;
    } while (now - start < WINDOW_SECONDS * 1e9);
    return best;
  }

  private void round() {
    if (q.isDouble() || p.isDouble()) {
      if (matrix) {
        engine.pairwise(q, p, values64);
      }
      engine.nearest(q, p, k, indices, values64);
    } else {
      if (matrix) {
        engine.pairwise(q, p, values32);
      }
      engine.nearest(q, p, k, indices, values32);
    }
    engine.logSumExp(q, p, sums);
    engine.rowMin(q, p, sums);
  }

  /** Made-up Gaussians, every eighth of which is near one of every batch made so: they are recomputed. */
  static DiagonalGaussians batch(int size, int dimension, long seed) {
    Random random = new Random(seed);
    float[] mean = new float[Math.multiplyExact(size, dimension)];
    float[] std = new float[mean.length];
    for (int k = 0; k < mean.length; k++) {
      double spread = k / dimension % 8 == 0 ? 1e-4 : 1;
      mean[k] = (float) (spread * random.nextGaussian());
      std[k] = (float) Math.exp(0.3 * spread * random.nextGaussian());
    }
    return DiagonalGaussians.ofStd(mean, std, dimension);
  }
}
