package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.Fma;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import org.jspecify.annotations.Nullable;

/**
 * Computes the divergence of one diagonal pair in double: by the fast difference form, or by the stable form where rounding could show.
 * This is the reference of the vector kernels.
 */
public final class PairKl {
  /** Greatest error bound of the float kernels: the contract, less two roundings to float. */
  public static final double FLOAT_TOLERANCE = 1e-5 - 0x1p-23;

  /**
   * Greatest error bound of the double form on float inputs: half of the aim, 1e-6. With 1e-7 the near form would have to serve Gaussians
   * whose parameters differ by 1e-4.
   */
  public static final double REFINED_TOLERANCE = 5e-7;

  /** Contract for batches of double. */
  public static final double DOUBLE_TOLERANCE = 1e-12;

  /** Error bound of values that are ordered. */
  private static final double RANK_TOLERANCE = 1e-13;

  /**
   * Units u of roundoff by which {@code A = ½ Σ t}, a sum of terms {@code t ≥ 0}, may be wrong, as far as they do not depend on D.
   * Rounding d, v, 1/v and the numerator costs at most 6 units of a term, in double 8, where the exp of a log-variance may err by 2. A
   * term is in all later sums of its chunk of 64, or of D dimensions if they are fewer, and in those of up to 4 chunks. Each of these sums
   * may lose u times itself: at most min(D, 64) + 3 units more. So the error is at most (8 + min(D, 64) + 3)·u·A, whatever the order of
   * the terms and the roundings. {@link #unit64} has all of it.
   */
  private static final double UNITS64 = 8 + 3;

  /**
   * Units of roundoff by which A may be wrong in float, whatever D. The bound is tighter than {@link #UNITS64}, because large errors need
   * terms of very different size in each chunk, and such Gaussians are not alike: {@code KL ≥ ½ Σ (t − 1 − ln t)}. An entry with {@code
   * 58·u·A ≤ τ·KL}, τ the contract, has error ≤ λτ·KL + (1 − λ)·58·u·A ≤ τ·KL for λ = 0.17, since Σ [w_h t_h − (λτ/u)(t_h − 1 − ln t_h) −
   * (1 − λ)·58 t_h] ≤ 0 for the units w_h of the term at each place of the four chunks and any t_h. ErrorBoundTest adds it up from these
   * constants.
   */
  static final double UNITS32 = 58;

  /** Dimensions of the kernels' chunks, and of their groups of chunks. */
  public static final int BLOCK = 64;

  public static final int BLOCKS = 4 * BLOCK;

  private PairKl() {}

  /**
   * Returns KL(q_i ‖ p_j), to the contract of the batches' precision.
   *
   * @param scales the thread's, for scales that are stated differently
   */
  public static double of(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return within(tolerance(q, p), scales, q, i, p, j);
  }

  /** Returns the greatest error bound of {@link #of}'s difference form. */
  public static double tolerance(DiagonalBatch q, DiagonalBatch p) {
    return q.isDouble() || p.isDouble() ? DOUBLE_TOLERANCE : REFINED_TOLERANCE;
  }

  /** Returns KL(q_i ‖ p_j) to 1e-13, whatever the batches' precision. */
  public static double precise(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return within(RANK_TOLERANCE, scales, q, i, p, j);
  }

  private static double within(
      double tolerance, ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    double kl = certain(tolerance, q, i, p, j);
    return Double.isNaN(kl) ? stable(scales, q, i, p, j) : kl;
  }

  /** Returns KL by the difference form, or NaN where the error bound exceeds the tolerance. */
  public static double certain(double tolerance, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    double unit = unit64(q.dimension());
    double kl = difference(q, i, p, j);
    double noise = noiseQ(q, i, unit) + noiseP(p, j, unit);
    return isCertain(kl, noise, tolerance - unit) ? kl : Double.NaN;
  }

  /** Relative error of A in the float kernels: 6 roundings of a term and its D sums, or {@link #UNITS32}. */
  public static double unit32(int dimension) {
    return Math.min(6 + dimension, UNITS32) * 0x1p-24;
  }

  /** Relative error of A in double, where groups of four chunks are added one after the other; the epilogue makes three roundings. */
  public static double unit64(int dimension) {
    return (UNITS64 + Math.min(dimension, BLOCK) + 3 + (double) dimension / BLOCKS) * 0x1p-53;
  }

  /**
   * Whether the error bound {@code unit·kl + noise} is within {@code tolerance·kl}; false for a value that overflowed or is NaN.
   *
   * @param margin tolerance − unit
   */
  public static boolean isCertain(double kl, double noise, double margin) {
    double rest = kl * margin - noise;
    return rest >= 0 && rest < Double.POSITIVE_INFINITY;
  }

  /** Part of q's row i in {@code Σ ln σp − Σ ln σq − D/2}, which A needs to be KL. */
  public static double offsetQ(DiagonalBatch q, int i) {
    return -q.logDet(i);
  }

  /** Part of p's row i in the same sum. */
  public static double offsetP(DiagonalBatch p, int i) {
    return p.logDet(i) - 0.5 * p.dimension();
  }

  /**
   * Part of q's row i in the noise of {@link #isCertain}: {@code unit·A} and the errors of the log-determinants are {@code unit·KL + noiseQ
   * + noiseP}.
   */
  public static double noiseQ(DiagonalBatch q, int i, double unit) {
    return q.logDetBound(i) + unit * (0.5 * q.dimension() + q.logDet(i));
  }

  /** Part of p's row i in that noise. */
  public static double noiseP(DiagonalBatch p, int i, double unit) {
    return p.logDetBound(i) - unit * p.logDet(i);
  }

  /**
   * Returns {@code KL = ½ Σ_h [(μq − μp)² + vq] / vp + Σ ln σp − Σ ln σq − D/2} by the operations of a lane of {@code DoubleKlSums} and
   * its epilogue; NaN where a variance is out of their range.
   */
  private static double difference(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    double[] rq = q.precisionsOfPair();
    double[] rp = p.precisionsOfPair();
    int a = i * d;
    int b = j * d;
    double sum = 0;
    double chunks = 0;
    for (int h = 0; h < d; h += BLOCK) {
      double acc = 0;
      for (int end = Math.min(d, h + BLOCK), k = h; k < end; k++) {
        double x = q.mean(a + k) - p.mean(b + k);
        double v = 1 / (rq != null ? rq[a + k] : q.precision(a + k));
        double r = rp != null ? rp[b + k] : p.precision(b + k);
        acc = Fma.IS_HARDWARE ? Math.fma(Math.fma(x, x, v), r, acc) : acc + (x * x + v) * r;
      }
      chunks += acc;
      if ((h + BLOCK) % BLOCKS == 0 || h + BLOCK >= d) {
        sum += chunks;
        chunks = 0;
      }
    }
    return q.beyond64().get(i) || p.beyond64().get(j)
        ? Double.NaN
        : 0.5 * sum + (offsetP(p, j) + offsetQ(q, i));
  }

  /**
   * Returns KL as {@code ½ Σ_h [x − ln(1+x) + y²]} with {@code x = σq²/σp² − 1} and {@code y = (μq − μp)/σp}. No term is negative and none
   * cancels, so the relative error is that of a term, whatever the value, and of a block's sum, whatever the dimension.
   *
   * <p>In units of 2⁻⁵³, a term is within 70: at x = ½, 5 units of x and the logarithm are 65 of their difference. A block's sum adds 63,
   * and the compensated sum of the blocks 2, which makes 1.5e-14.
   */
  public static double stable(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return stable(scales, q, i, p, j, !q.beyond64().get(i) && !p.beyond64().get(j));
  }

  /** Returns the stable form against p_j, or against N(0, I) if p is null. */
  private static double stable(
      ScaleRatio scales, DiagonalBatch q, int i, @Nullable DiagonalBatch p, int j, boolean held) {
    int d = q.dimension();
    Scale kind = p == null ? q.kind() : p.kind();
    double sum = 0;
    double errors = 0;
    for (int h = 0; h < d; h += BLOCK) {
      double acc = 0;
      for (int end = Math.min(d, h + BLOCK), k = h; k < end; k++) {
        double mean = p == null ? 0 : p.mean(j * d + k);
        double scale = p == null ? kind.unit() : p.scale(j * d + k);
        acc += term(scales, q, i * d + k, kind, mean, scale, held);
      }
      double t = sum + acc;
      errors += Compensation.error(sum, acc, t);
      sum = t;
    }
    return Compensation.total(sum, errors);
  }

  /** Returns KL(q_i ‖ N(0, I)). */
  static double standard(ScaleRatio scales, DiagonalBatch q, int i) {
    int d = q.dimension();
    double sum = 0;
    double errors = 0;
    for (int h = 0; h < d; h += BLOCK) {
      double acc = 0;
      for (int end = Math.min(d, h + BLOCK), k = i * d + h; k < i * d + end; k++) {
        double x = q.mean(k);
        double v = q.kind().variance(q.scale(k));
        acc += x * x + (v - 1);
      }
      double t = sum + acc;
      errors += Compensation.error(sum, acc, t);
      sum = t;
    }
    boolean held = !q.beyond64().get(i);
    double kl = held ? 0.5 * (sum + errors) - q.logDet(i) : Double.NaN;
    double tolerance = q.isDouble() ? DOUBLE_TOLERANCE : REFINED_TOLERANCE;
    double unit = unit64(d);
    double noise = noiseQ(q, i, unit) + 0.5 * unit * d; // for terms that may be −1
    return isCertain(kl, noise, tolerance - unit) ? kl : stable(scales, q, i, null, 0, held);
  }

  /** Returns half a term of KL. */
  private static double term(
      ScaleRatio scales, DiagonalBatch q, int k, Scale kind, double mean, double sp, boolean held) {
    double sq = q.scale(k);
    if (q.kind() != kind) {
      return mixedTerm(scales, q.kind(), sq, q.mean(k), kind, sp, mean, held);
    }
    double alike = held ? AlikeTerm.of(kind, sq, sp, 0, q.mean(k) - mean) : Double.NaN;
    if (alike < Double.POSITIVE_INFINITY) {
      return alike;
    }
    double x = kind.excess(sq, sp);
    double half =
        Math.abs(x) < 0.5
            ? 0.5 * AlikeTerm.lessLog(x)
            : farTerm(
                x < Double.POSITIVE_INFINITY ? 0.5 * x : kind.halfRatio(sq, sp),
                kind.logRatio(sq, sp));
    return half + square(q.mean(k), mean, kind, sp);
  }

  /** Returns half a term of scales that are stated differently, as variances of two parts. */
  @SuppressWarnings("TooManyParameters")
  private static double mixedTerm(
      ScaleRatio scales,
      Scale kindQ,
      double sq,
      double mq,
      Scale kindP,
      double sp,
      double mp,
      boolean held) {
    Variance vq = scales.first;
    Variance vp = scales.second;
    vq.set(kindQ, sq);
    vp.set(kindP, sp);
    double alike =
        held
            ? AlikeTerm.of(
                Scale.VARIANCE,
                vq.toDouble(),
                vp.toDouble(),
                vq.restToDouble() - vp.restToDouble(),
                mq - mp)
            : Double.NaN;
    if (alike < Double.POSITIVE_INFINITY) {
      return alike;
    }
    double x = Variance.excess(vq, vp);
    double half =
        Math.abs(x) < 0.5
            ? 0.5 * AlikeTerm.lessLog(x)
            : farTerm(
                x < Double.POSITIVE_INFINITY ? 0.5 * x : Variance.halfRatio(vq, vp),
                Variance.logRatio(vq, kindQ, sq, vp, kindP, sp));
    return half + square(mq, mp, kindP, sp);
  }

  /** Returns ½ (x − ln(1+x)) of {@code |x| ≥ ½} by ½ x, which may be infinite, and the logarithm of 1 + x. */
  private static double farTerm(double half, double logRatio) {
    return half == Double.POSITIVE_INFINITY ? half : half - 0.5 * logRatio;
  }

  /** Returns ½ (mq − mp)²/σp². */
  private static double square(double mq, double mp, Scale kind, double sp) {
    double y = kind.standardize(mq, mp, sp);
    return 0.5 * y * y;
  }
}
