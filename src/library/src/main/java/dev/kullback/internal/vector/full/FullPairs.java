package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.plain.Pair;
import dev.kullback.internal.plain.Pairs;
import dev.kullback.internal.vector.DoubleTranspose;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/** {@link Pairs} of full batches with a pair in each lane, to the bits of {@link FullPair}. */
public final class FullPairs extends Pairs {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final int V = S.length();
  private static final int BLOCK = Compensation.BLOCK;

  /** Fewest pairs that take less time as a vector than one by one. */
  private static final int SEVERAL = 2;

  /**
   * Most doubles of a vector of factors; larger ones are left to {@link FullPair}. At D = 512, 4 MiB, pairs still take 0.3 of its time;
   * those with N(0, I), which go through their factors once, take 1.05 of it at D = 256 (Zen 3, AVX2).
   */
  private static final int MOST_OF_PAIRS = 1 << 20;

  private static final int MOST_OF_STANDARD = 1 << 16;

  private final Worker worker;

  /** The pairs' kernel, made when it is needed. */
  private @Nullable FullSolveKernel solve;

  /** Vectors: L, one for each packed entry; one for each dimension of μ, of L's pivots 1 + x, and of their ½x² + x − ln(1+x). */
  private double[] factor = {};

  private double[] mean = {};
  private double[] pivots = {};
  private double[] excess = {};

  private final double[] sums = new double[2 * V];
  private final DoubleTranspose transpose = new DoubleTranspose(true);

  public FullPairs(Pair pair, Worker worker) {
    super(pair);
    this.worker = worker;
  }

  private static boolean isWithin(int most, FullBatch g) {
    return (long) V * Cholesky.packedLength(g.dimension()) <= most;
  }

  @Override
  public void aligned(Batch q, Batch p, int from, int to, Results out) {
    int i = from;
    if (q != p
        && q instanceof FullBatch a
        && p instanceof FullBatch b
        && isWithin(MOST_OF_PAIRS, b)) {
      if (solve == null) {
        solve = new FullSolveKernel();
      }
      for (; to - i >= SEVERAL; i += V) {
        worker.pass(Checkpoint.ofSolve(b.dimension()));
        solve.pack(a, b, i);
        double[] kl = solve.pairs(a, i);
        for (int k = i; k < Math.min(i + V, to); k++) {
          double x = kl[k - i];
          out.put(k, x < Double.POSITIVE_INFINITY ? x : pair.of(q, k, p, k));
        }
      }
    }
    super.aligned(q, p, i, to, out);
  }

  @Override
  public void standard(Batch q, int from, int to, Results out) {
    int i = from;
    if (q instanceof FullBatch f && isWithin(MOST_OF_STANDARD, f)) {
      for (; to - i >= SEVERAL; i += V) {
        worker.pass(Pair.standardTerms(q));
        standard(f, i, Math.min(i + V, to), out);
      }
    }
    super.standard(q, i, to, out);
  }

  /** {@link FullPair#standard} of at most V Gaussians. */
  private void standard(FullBatch g, int from, int to, Results out) {
    int d = g.dimension();
    int length = Cholesky.packedLength(d);
    if (mean.length < d * V) {
      factor = new double[length * V];
      mean = new double[d * V];
      pivots = new double[d * V];
      excess = new double[d * V];
    }
    FullPacking.lanes(g.scaleTril(), from, to - from, length, factor, 0, V, transpose);
    FullPacking.lanes(g.mean(), from, to - from, d, mean, 0, V, transpose);
    double[] lows = g.scaleTrilLow();
    for (int i = from; i < to; i++) {
      for (int r = 0, k = i * length, at = i - from; r < d; k += ++r + 1, at += V) {
        pivots[at] = g.scaleTril()[k];
        excess[at] = pivots[at] - 1 + (lows == null ? 0 : lows[k]);
      }
    }
    Excess.of(excess, pivots, d * V);
    sum(d);
    for (int i = from; i < to; i++) {
      double kl = Compensation.total(sums[i - from], sums[V + i - from]);
      out.put(i, kl <= Double.POSITIVE_INFINITY ? kl : FullPair.standard(g, i));
    }
  }

  /** Sums the terms of all rows, and their rounding errors. */
  private void sum(int d) {
    DoubleVector sum = DoubleVector.zero(S);
    DoubleVector errors = DoubleVector.zero(S);
    for (int r = 0, k = 0; r < d; r++, k += V) {
      DoubleVector m = DoubleVector.fromArray(S, mean, r * V);
      DoubleVector acc = m.mul(0.5).mul(m).add(DoubleVector.fromArray(S, excess, r * V));
      int c = 0;
      do {
        DoubleVector squares = DoubleVector.zero(S);
        for (int end = Math.min(r, c + BLOCK); c < end; c++, k += V) {
          DoubleVector x = DoubleVector.fromArray(S, factor, k);
          squares = squares.add(x.mul(x));
        }
        acc = acc.add(squares.mul(0.5));
        DoubleVector t = sum.add(acc);
        DoubleVector back = t.sub(sum);
        errors = errors.add(sum.sub(t.sub(back)).add(acc.sub(back)));
        sum = t;
        acc = DoubleVector.zero(S);
      } while (c < r);
    }
    sum.intoArray(sums, 0);
    errors.intoArray(sums, V);
  }
}
