package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Checkpoint;
import java.util.SplittableRandom;

/**
 * Samples {@code ln q_i(x) − ln p_i(x)}, x from q_i. With {@code x = μ_q + L_q z} and {@code δ = L_p⁻¹(x − μ_p) − z} that is
 *
 * <pre>
 * Σ_h δ_h (z_h + ½ δ_h) + ln det L_p − ln det L_q
 * </pre>
 *
 * <p>δ and the logarithms are made of differences of the parameters, so that rounding is relative to the difference of q and p, as the
 * spread of the samples is. Holds the working memory of one thread.
 */
public abstract class PairSampler {
  /** Time of a normal number and its part of the sample relative to a term of plain code. */
  private static final int DRAW = 8;

  /** Relative error of a σ computed in twice the precision of double. */
  private static final double CONVERSION = 0x1p-100;

  final int d;
  final double[] z;
  final double[] delta;

  /** {@code ln det L_p − ln det L_q}, and the magnitudes of its terms. */
  private double logDets;

  private double logMagnitudes;

  /** Whether some σ was converted from another scale. */
  boolean isConverted;

  private final Checkpoint checkpoint = new Checkpoint();

  /** Terms that a sample counts at the checkpoint. */
  private final long terms;

  private PairSampler(int d, int timeOfDelta) {
    this.d = d;
    z = new double[d];
    delta = new double[d];
    terms = Checkpoint.ofPlain((long) d * (DRAW + timeOfDelta));
  }

  public static PairSampler of(Batch q, Batch p) {
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? new Diagonal(a, b)
        : new Full(q, p);
  }

  /** Prepares for pair i: calls {@link #addLogs} for each dimension. */
  abstract void set(int i);

  /** Adds a term {@code lp − lq} to the logarithms. */
  final void addLogs(double lp, double lq) {
    logDets += lp - lq;
    logMagnitudes += Math.abs(lp) + Math.abs(lq);
  }

  /** Computes δ. */
  abstract void displace();

  /** {@code Σ_h |z_h + δ_h|·g_h}, where a rounding changes δ_h by its share of g_h. */
  abstract double magnitudes();

  /** Bound on the rounding error of the sample. */
  private double rounding() {
    double sum = logMagnitudes + magnitudes();
    for (int h = 0; h < d; h++) {
      sum += Math.abs(delta[h]) * (Math.abs(z[h]) + Math.abs(delta[h]));
    }
    return Estimate.rounding(d, sum) + (isConverted ? CONVERSION * d : 0);
  }

  private static final class Diagonal extends PairSampler {
    private final DiagonalBatch q;
    private final DiagonalBatch p;

    /** {@code σ_q/σ_p − 1} and {@code (μ_q − μ_p)/σ_p}. */
    private final double[] excess;

    private final double[] shift;

    private final Variance vq = new Variance();
    private final Variance vp = new Variance();

    Diagonal(DiagonalBatch q, DiagonalBatch p) {
      super(q.dimension(), 0);
      this.q = q;
      this.p = p;
      excess = new double[d];
      shift = new double[d];
      isConverted = q.kind() != p.kind();
    }

    @Override
    void set(int i) {
      for (int h = 0, k = i * d; h < d; h++, k++) {
        double sq = q.scale(k);
        double sp = p.scale(k);
        double x = q.kind() == p.kind() ? q.kind().excess(sq, sp) : excess(sq, sp);
        excess[h] = x / (1 + Math.sqrt(1 + x));
        shift[h] = p.kind().standardize(q.mean(k) - p.mean(k), sp);
        if (Math.abs(x) < 0.5) {
          addLogs(0, 0.5 * Math.log1p(x));
        } else {
          addLogs(0.5 * p.kind().logVariance(sp), 0.5 * q.kind().logVariance(sq));
        }
      }
    }

    /** Returns {@code σ_q²/σ_p² − 1} of scales that are stated differently. */
    private double excess(double sq, double sp) {
      vq.set(q.kind(), sq);
      vp.set(p.kind(), sp);
      return Variance.excess(vq, vp);
    }

    @Override
    void displace() {
      for (int h = 0; h < d; h++) {
        delta[h] = excess[h] * z[h] + shift[h];
      }
    }

    @Override
    double magnitudes() {
      double sum = 0;
      for (int h = 0; h < d; h++) {
        sum += Math.abs(z[h] + delta[h]) * (Math.abs(excess[h] * z[h]) + Math.abs(shift[h]));
      }
      return sum;
    }
  }

  /** {@code δ = L_p⁻¹((L_q − L_p) z + μ_q − μ_p)}. */
  private static final class Full extends PairSampler {
    private final Batch q;
    private final Batch p;
    private final FullPair.Factor factorQ = new FullPair.Factor();
    private final FullPair.Factor factorP = new FullPair.Factor();

    /** {@code L_q − L_p}. */
    private final double[] difference;

    private final double[] error;

    Full(Batch q, Batch p) {
      super(q.dimension(), q.dimension());
      this.q = q;
      this.p = p;
      difference = new double[Cholesky.packedLength(d)];
      error = new double[d];
    }

    @Override
    void set(int i) {
      factorQ.set(q, i);
      factorP.set(p, i);
      isConverted = factorQ.isConverted() || factorP.isConverted();
      for (int k = 0; k < difference.length; k++) {
        difference[k] = factorQ.high(k) - factorP.high(k) + (factorQ.low(k) - factorP.low(k));
      }
      for (int h = 0, k = 0; h < d; k += ++h + 1) {
        double x = difference[k] / factorP.high(k);
        if (Math.abs(x) < 0.5) {
          addLogs(0, Math.log1p(x));
        } else {
          addLogs(Math.log(factorP.high(k)), Math.log(factorQ.high(k)));
        }
      }
    }

    private double meanDifference(int h) {
      return factorQ.mean(h) - factorP.mean(h);
    }

    @Override
    void displace() {
      for (int r = 0, row = 0; r < d; row += ++r) {
        double sum = meanDifference(r);
        for (int c = 0; c <= r; c++) {
          sum += difference[row + c] * z[c];
        }
        for (int c = 0; c < r; c++) {
          sum -= factorP.high(row + c) * delta[c];
        }
        delta[r] = sum / factorP.high(row + r);
      }
    }

    /**
     * Rounding enters each row in proportion to the magnitudes that are added there, and L_p⁻¹ amplifies it. The signs of z stand in for
     * its unknown signs.
     */
    @Override
    double magnitudes() {
      double total = 0;
      for (int r = 0, row = 0; r < d; row += ++r) {
        double sum = Math.abs(meanDifference(r));
        for (int c = 0; c <= r; c++) {
          sum += Math.abs(difference[row + c] * z[c]) + Math.abs(factorP.high(row + c) * delta[c]);
        }
        sum *= z[r];
        for (int c = 0; c < r; c++) {
          sum -= factorP.high(row + c) * error[c];
        }
        error[r] = sum / factorP.high(row + r);
        total += Math.abs(error[r]) * Math.abs(z[r] + delta[r]);
      }
      return total;
    }
  }

  /** Draws samples for pair i. */
  public final Estimate sample(int i, int samples, SplittableRandom random) {
    logDets = 0;
    logMagnitudes = 0;
    set(i);
    Estimate estimate = new Estimate();
    for (long s = 1; s <= samples; s++) {
      checkpoint.pass(terms);
      for (int h = 0; h < d; h++) {
        z[h] = random.nextGaussian();
      }
      displace();
      double ratio = 0;
      for (int h = 0; h < d; h++) {
        ratio += delta[h] * (z[h] + 0.5 * delta[h]);
      }
      ratio += logDets;
      estimate.addSample(ratio);
      if (!(ratio < Double.POSITIVE_INFINITY)) { // or NaN, of ∞ − ∞
        return estimate;
      }
      if (Estimate.isBounded(s)) {
        estimate.addRounding(rounding());
      }
    }
    return estimate;
  }

  /** Estimates all pairs i by samples whose random numbers are of a seed; writes nothing for deterministic Gaussians. */
  public static void sample(
      Batch q, Batch p, int samples, long seed, double[] estimates, double[] errors) {
    if (q.isDeterministic()) {
      return;
    }
    SplittableRandom random = new SplittableRandom(seed);
    PairSampler sampler = of(q, p);
    for (int i = 0; i < estimates.length; i++) {
      Checkpoint.checkInterrupt(Thread.currentThread());
      Estimate estimate = sampler.sample(i, samples, random.split());
      estimates[i] = estimate.mean();
      errors[i] = estimate.standardError();
    }
  }
}
