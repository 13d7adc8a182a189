package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Pairs;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/** {@link Pairs} of full batches with a pair in each lane, to the bits of {@link FullPair}. */
public final class FullPairs extends Pairs {
  private static final int V = FullSolveKernel.V;

  /** Fewest pairs that take less time as a vector than one by one. */
  private static final int SEVERAL = 2;

  /**
   * Most doubles of a vector of factors; larger ones are left to {@link FullPair}. At D = 512, 4 MiB, pairs still take 0.3 of its time;
   * those with N(0, I), which go through their factors once, take 1.05 of it at D = 256 (Zen 3, AVX2).
   */
  private static final int MOST_OF_PAIRS = 1 << 20;

  private static final int MOST_OF_STANDARD = 1 << 16;

  private final Worker worker;
  private final FullSolveKernel solve = new FullSolveKernel();

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
        double[] kl = solve.standard(f, i, Math.min(V, to - i));
        for (int k = i; k < Math.min(i + V, to); k++) {
          out.put(k, kl[k - i] <= Double.POSITIVE_INFINITY ? kl[k - i] : FullPair.standard(f, k));
        }
      }
    }
    super.standard(q, i, to, out);
  }
}
