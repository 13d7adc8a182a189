package dev.kullback.internal.formula;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Computes a divergence of one pair of Gaussians, whatever their kinds: the scalar kernel of a {@link Formula}. Pairs, searches and
 * verification use it. It decides where a kernel's error bound cannot: the order of two candidates, or of a candidate and a radius. As a
 * kernel it computes all blocks of the scalar backend, but of deterministic batches, and on the others, blocks for which there is no kernel
 * of their own or, up to four dimensions, not yet a compiled one. Holds the working memory of one thread.
 */
public final class Pair implements BlockKernel<Operands<?>> {
  /** Contract of the float kernels. */
  private static final double FLOAT_ERROR = 1e-5;

  /** Contract of the double kernels with a full covariance: it grows with the condition number, of which the kernels allow 100 at most. */
  private static final double FULL_ERROR = 1e-10;

  /** Relative difference up to which two values of {@link #precise} may be equal: diagonal ones err by 1e-13 each. */
  public static final double PRECISE_ERROR = 2e-13;

  /** N(0, I), kept with a batch, as KL has no other form for it: a batch of another dimension in turn allocates nothing. */
  private static final DerivedForm<LowRankBatch, DiagonalBatch> NORMAL =
      new DerivedForm<>(g -> normal(g.form(), g.dimension()), DiagonalBatch::memoryBytes);

  private final Formula formula;
  private final Worker worker;
  private final ScaleRatio scales = new ScaleRatio();

  /** Whether a deterministic q has the divergence 0. */
  private final boolean hasDeterministic;

  private final Formula.Full full;
  private final Unrounded exact;

  /** The pair that this one asks, with the roles exchanged. */
  private final @Nullable Pair forward;

  private @Nullable Pair reversed;

  /** N(0, I) in the terms of the batch that was last compared with it. */
  private @Nullable DiagonalBatch normal;

  public Pair(Formula formula, Worker worker) {
    this(formula, worker, formula.isReverse() ? new Pair(formula.forward(), worker) : null);
  }

  private Pair(Formula formula, Worker worker, @Nullable Pair forward) {
    this.formula = formula;
    this.worker = worker;
    this.forward = forward;
    hasDeterministic = formula.hasDeterministic();
    full = forward != null ? forward.full : formula.full(worker);
    exact = forward != null ? forward.exact : formula.exact();
  }

  /** Returns the pair that serves kernels, whose roles a call of the reverse exchanges as a whole. */
  public Pair forward() {
    return forward != null ? forward : this;
  }

  /** Returns the pair with the roles exchanged, which has the same working memory. */
  public Pair reversed() {
    if (forward != null) {
      return forward;
    }
    if (reversed == null) {
      reversed = new Pair(formula, worker, this);
    }
    return reversed;
  }

  /** Drops the caller's batches. */
  @Override
  public void clear() {
    full.clear();
    exact.clear();
  }

  /** Returns the divergence of q_i and p_j, to the contract of the batches' precision. */
  public double of(Batch q, int i, Batch p, int j) {
    if (forward != null) {
      return forward.of(p, j, q, i);
    }
    worker.pass(Batch.terms(q, p));
    if ((hasDeterministic && q.isDeterministic()) || (q == p && i == j)) {
      return 0;
    }
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? formula.fast(scales, a, i, b, j)
        : full.divergence(q, i, p, j);
  }

  /** Puts the entries of a block, whose kind it asks for once: asking for each entry takes 1.5 ns, of 10 at D = 1 (Zen 5). */
  @Override
  public void block(
      Operands<?> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    Batch q = operands.q();
    Batch p = operands.p();
    if (q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      formula.putBlock(worker, scales, a, row0, row1, b, column0, column1, out);
      return;
    }
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        out.put(i, j, of(q, i, p, j));
      }
    }
  }

  /** Returns the divergence by a form that reads nothing that is prepared: the reference of all others. */
  public double stable(Batch q, int i, Batch p, int j) {
    if (forward != null) {
      return forward.stable(p, j, q, i);
    }
    if (q == p && i == j) {
      return 0;
    }
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? formula.stable(scales, a, i, b, j)
        : full.divergence(q, i, p, j);
  }

  /** Returns the divergence of q_i and N(0, I). */
  public double toStandardNormal(Batch q, int i) {
    if (forward != null) {
      return forward.of(normal(q), 0, q, i);
    }
    if (hasDeterministic && q.isDeterministic()) {
      return 0;
    }
    double value = formula.standard(scales, q, i);
    if (Double.isNaN(value)) {
      return of(q, i, normal(q), 0);
    }
    worker.pass(standardTerms(q));
    return value;
  }

  /** Returns the divergence to {@link #PRECISE_ERROR}, whatever the batches' precision; with a full covariance, as {@link #of} does. */
  public double precise(Batch q, int i, Batch p, int j) {
    if (forward != null) {
      return forward.precise(p, j, q, i);
    }
    worker.checkInterrupt(); // all entries of a block may come here
    worker.pass(Batch.terms(q, p));
    if (q == p && i == j) {
      return 0;
    }
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? formula.precise(scales, a, i, b, j)
        : full.divergence(q, i, p, j);
  }

  /** Returns the divergence unrounded where it can be computed, else {@code value}, which {@link #precise} gave; valid until the next call. */
  public Unrounded exact(Batch q, int i, Batch p, int j, double value) {
    if (forward != null) {
      return forward.exact(p, j, q, i, value);
    }
    worker.checkInterrupt();
    worker.pass(Batch.terms(q, p));
    if (!(q instanceof DiagonalBatch a
        && p instanceof DiagonalBatch b
        && value >= Double.MIN_NORMAL
        && exact.compute(a, i, b, j))) {
      exact.setRounded(value);
    }
    return exact;
  }

  /**
   * Returns the divergence rounded to double, which depends on the two Gaussians alone, not on the kernel, its block or the machine's
   * vectors: the value of exact arithmetic wherever that is decided, else {@link #precise}; 0 for equal parameters.
   */
  public double rounded(Batch q, int i, Batch p, int j) {
    if (forward != null) {
      return forward.rounded(p, j, q, i);
    }
    if (hasDeterministic && q.isDeterministic()) {
      return 0;
    }
    if (q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      worker.checkInterrupt();
      worker.pass(Batch.terms(q, p));
      double value = exact.rounded(a, i, b, j);
      if (value >= 0) {
        return value;
      }
    }
    // of ∞, too, which precise may give a little early
    return exact(q, i, p, j, precise(q, i, p, j)).value;
  }

  /** Whether {@link #precise} takes less time than {@link #rounded}. */
  public boolean isPreciseFaster(Batch q, Batch p) {
    return areDiagonal(q, p) && !q.isDeterministic() && !p.isDeterministic();
  }

  /** Greatest relative distance of two unrounded divergences that count as equal. */
  public double tolerance(int dimension) {
    return formula.tolerance(dimension);
  }

  /** Counts the terms of {@link #toStandardNormal}, for a {@link Checkpoint}. */
  public static long standardTerms(Batch q) {
    long d = q.dimension();
    return q instanceof LowRankBatch
        ? Batch.terms(q, q)
        : Checkpoint.ofPlain(q instanceof FullBatch ? d * d : d);
  }

  /**
   * Greatest relative error of a kernel's value v, which stands for an exact one in {@code [v(1 − error), v(1 + error)]}. The contract
   * allows a square of the error more, of which the kernels keep well clear. 0 and ∞ count as exact.
   */
  public static double error(Batch q, Batch p) {
    if (!q.isDouble() && !p.isDouble()) {
      return FLOAT_ERROR;
    }
    return areDiagonal(q, p) ? PairKl.DOUBLE_TOLERANCE : FULL_ERROR;
  }

  private static boolean areDiagonal(Batch q, Batch p) {
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch;
  }

  /** Whether rows i and j of p certainly have equal divergences from any other. */
  public static boolean isSame(Batch p, int i, int j) {
    return p instanceof DiagonalBatch d && d.isEqual(i, d, j);
  }

  /** Returns N(0, I) of a batch's dimension and kind of scales, of float as it has no part in the precision. */
  private DiagonalBatch normal(Batch q) {
    if (q instanceof LowRankBatch g) {
      return NORMAL.of(g);
    }
    Scale kind = q.form() instanceof Scale form ? form : Scale.STD;
    DiagonalBatch last = normal;
    if (last == null || last.dimension() != q.dimension() || last.kind() != kind) {
      last = normal(kind, q.dimension());
      normal = last;
    }
    return last;
  }

  private static DiagonalBatch normal(Scale kind, int dimension) {
    float[] scale = new float[dimension];
    Arrays.fill(scale, (float) kind.unit());
    return DiagonalBatch.of(
        Elements.of(new float[dimension], "mean").owned(),
        Elements.of(scale, kind.argument()).owned(),
        dimension,
        kind,
        ScalePolicy.STRICT,
        RangeCheck.PLAIN);
  }
}
