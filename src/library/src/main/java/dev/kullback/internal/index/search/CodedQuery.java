package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.index.store.Codes;
import dev.kullback.internal.index.store.Coordinates;
import dev.kullback.internal.index.store.Rounding;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.kernel.CodeScan;
import org.jspecify.annotations.Nullable;

/**
 * What bounds divergences of one query by a {@link CodeScan} of a segment's codes, certainly: of KL and of points, {@link OfKl}, or of another
 * whose codes have other {@link Coordinates}, {@link OfDistance}.
 */
abstract sealed class CodedQuery {
  /** Roundings of the kernel's that are no sums, with some to spare. */
  private static final int UNITS = 16;

  /** Error γ up to which codes are read. */
  private static final double MOST_ERROR = 0.25;

  /** Relative error of √Ŝ by that of t, and of what follows in float. */
  private static final double ERROR = 0x1p-19;

  /** Greatest |t| and √s. Then a term is less than 2⁸⁰·2⁸, and a sum of 2²⁴ terms no more than float holds. */
  private static final double MOST = 0x1p39;

  final CodeScan.Limit limit = new CodeScan.Limit();

  /** What {@link CodeScan} takes. */
  float[] terms = {};

  private @Nullable Codes codes;
  private double gamma;
  private double alpha;

  /** Makes one for a formula, of which {@code bounds} are if that is KL or of points. */
  static CodedQuery of(Formula formula, Bounds bounds) {
    return formula.kernels().forward() instanceof Kl ? new OfKl(bounds) : new OfDistance(formula);
  }

  /** Prepares for a segment with codes; returns false if codes cannot bound this query's divergences. */
  final boolean set(DiagonalBatch q, int i, Segment segment, Codes codes) {
    this.codes = codes;
    int n = codes.count();
    int length = 2 * CodeScan.TERMS * codes.words();
    if (terms.length < length) {
      terms = new float[length];
    }
    gamma = (n + UNITS) * 0x1p-24;
    alpha = n * 0x1p-100;
    if (!(gamma < MOST_ERROR) || !setTerms(q, i, segment, codes)) {
      return false;
    }
    for (int to = CodeScan.TERMS * n; to < length; to++) {
      terms[to] = 0;
    }
    limit.factor = (float) ((1 + ERROR) / (1 - gamma));
    limit.more = (float) alpha;
    return true;
  }

  /** Sets the terms of all coordinates; returns false if floats do not hold one. */
  abstract boolean setTerms(DiagonalBatch q, int i, Segment segment, Codes codes);

  /**
   * Sets what a coordinate adds to: {@code [(x − m̂)² + v] p̂ factor}, where the factor is that of a metric that depends on the query.
   *
   * @return false if floats do not hold it
   */
  final boolean setTerm(Codes codes, int c, double x, double v, double factor) {
    double root = codes.root(c) * factor;
    double t = (x - codes.center(c)) * root;
    double s = v * root * root;
    if (!(Math.abs(t) <= MOST && s <= MOST * MOST)) {
      return false;
    }
    // p̃ of the second coordinate of a word is 2⁸ times as much
    double scale = c % 2 == 0 ? 1 : 0x1p-4;
    int to = CodeScan.TERMS * c;
    terms[to] = (float) (t * scale);
    terms[to + 1] = (float) (-codes.unit(c) * root * Codes.SCALE * scale);
    terms[to + 2] = Rounding.down(s * (1 - 0x1p-50) * scale * scale);
    return true;
  }

  /** Returns the codes that it was prepared for. */
  final Codes codes() {
    if (codes == null) {
      throw new IllegalStateException("no codes");
    }
    return codes;
  }

  final void clear() {
    codes = null;
  }

  /** Sets the limit for references whose divergences are to be at most so much. */
  final void limit(double most) {
    limit.base = Rounding.up(base(most));
  }

  /** Returns at least the A, less a reference's l, with which its divergence is {@code most}. */
  abstract double base(double most);

  /** Returns l of a reference, or 0 where it does not count. */
  final float counted(float l) {
    return limit.logs == 0 ? 0 : l; // which may be ∞
  }

  /** Bounds a divergence from below by the sum and by r and l of its reference. */
  final double lower(float sum, float r, float l) {
    double s = Math.sqrt(Math.max(0, (sum - alpha) * (1 - gamma))) * (1 - ERROR);
    return least(Math.max(0, s - r), counted(l));
  }

  /** Bounds a divergence from below by the least √A and by l. */
  abstract double least(double y, float l);

  /**
   * One query as a {@link CodeScan} of a segment's codes takes it, and what its sums say of divergences {@code KL(x ‖ m_j)}, certainly. With
   * {@code A} as in {@link Bounds} and the numbers of {@link Codes}, the vectors {@code ((x − m) p̂^½, (v p̂)^½)} and {@code ((x − m̂) p̂^½, (v
   * p̂)^½)} of 2D numbers have the distance {@code ‖m − m̂‖} in the metric p̂, and {@code p̂ ≤ p}. So {@code A ≥ max(0, √Ŝ − ‖m − m̂‖)²}, where Ŝ is
   * the square of the second one's length: {@code Ŝ = Σ [(t − k m̃)² + s] p̃}, {@code t = (x − c) root}, {@code k = unit·root}, {@code s = v root²}.
   *
   * <p><b>Rounding of t, k and s.</b> They are within 2⁻²⁴ of these numbers, relatively, and s is rounded down. Where |t| is at most 256 k, the
   * difference of means is wrong by {@code 2⁻²⁴ (|t| + k |m̃|) ≤ 2⁻¹⁵ k}, and by 2⁻¹⁷ k more where a kernel has no fma; r counts 2⁻¹⁴ k for it.
   * Where it is more, {@code |t − k m̃| ≥ |t|/2}, and the difference is wrong by {@code 2⁻²²} at most, relatively; so is √Ŝ.
   *
   * <p><b>Rounding of the sum.</b> S is within {@code γŜ + α} of Ŝ, as in {@link Bounds}. Nothing overflows, by the limits of {@link Codes}' grid
   * and {@link #MOST}. The most that S may be is computed in float, of an l and a base that are rounded up, with five roundings.
   */
  static final class OfKl extends CodedQuery {
    private final Bounds bounds;

    private OfKl(Bounds bounds) {
      this.bounds = bounds;
      limit.logs = (float) bounds.logs;
    }

    @Override
    boolean setTerms(DiagonalBatch q, int i, Segment segment, Codes codes) {
      int[] order = segment.order();
      boolean isHeld = true;
      for (int h = 0; h < order.length && isHeld; h++) {
        int from = i * order.length + order[h];
        isHeld = setTerm(codes, h, q.mean(from), q.kind().variance(q.scale(from)), 1);
      }
      return isHeld;
    }

    @Override
    double base(double most) {
      return bounds.base(most);
    }

    @Override
    double least(double y, float l) {
      return bounds.factor * (y * y - l - bounds.base(0));
    }
  }

  /**
   * A query of a divergence that is at least a function of a distance √A of {@link Coordinates}, divided by λ, which is 1 unless the metric depends
   * on the query.
   *
   * <p>As above, {@code A ≥ max(0, √Ŝ − ‖y − ŷ‖)²}, where Ŝ is A of the coded coordinates ŷ, with weights p̂ that are at most w. Coordinates that
   * scales make are within 2⁻⁵⁰ of theirs, relatively: a reference's within 2⁻²⁰ of a unit, by the least unit of {@link Codes}, and the
   * query's likewise, or if it is far from all references, within 2⁻⁴⁹ of the difference. What r has to spare counts both. Where |t| is too
   * great for floats, a lesser one of its sign stands for it, which is yet beyond all references.
   *
   * <p>Of Jeffreys' divergence, the metric of a mean is {@code 2 p̂/σ}, with σ of the query, and r counts {@link Codes#metric} in the place of
   * {@code 2/σ}: with λ at least 1 and each quotient of the two, {@code ‖y − ŷ‖² ≤ λ r²}.
   */
  static final class OfDistance extends CodedQuery {
    /** More than the relative error of a computed divergence, and of what is computed here in double. */
    private static final double NOISE = 0x1p-36;

    /** Where |t| is cut off: far beyond the greatest k·m̃, 2⁷ times the greatest unit of a grid. */
    private static final double FARTHEST = 0x1p38;

    private final boolean isRoot;
    private Coordinates coordinates = Coordinates.NONE;

    /** What A of the codes is divided by to bound the divergence. */
    private double divisor = 1;

    private OfDistance(Formula formula) {
      isRoot = formula.lastStep() == Formula.LastStep.ROOT;
    }

    @Override
    boolean setTerms(DiagonalBatch q, int i, Segment segment, Codes codes) {
      coordinates = segment.coordinates();
      boolean isJeffreys = coordinates == Coordinates.JEFFREYS;
      int[] order = segment.order();
      double lambda = 1;
      for (int c = 0; c < codes.count() && isJeffreys; c += 2) {
        double metric = 2 / std(q, i, order[coordinates.dimension(c)]) / codes.metric(c);
        lambda = codes.root(c) > 0 ? Math.max(lambda, metric) : lambda;
      }
      divisor = isJeffreys ? 2 / lambda : codes.scale();
      boolean isHeld = divisor > 0 && divisor < Double.POSITIVE_INFINITY;
      for (int c = 0; c < codes.count() && isHeld; c++) {
        int h = order[coordinates.dimension(c)];
        int from = i * order.length + h;
        double factor = 1;
        if (isJeffreys) {
          factor = coordinates.isMean(c) ? 2 / std(q, i, h) / lambda : 1 / lambda;
        }
        double x =
            coordinates.isMean(c) ? q.mean(from) : coordinates.ofScale(q.kind(), q.scale(from));
        isHeld = setNear(codes, c, x, Math.sqrt(factor));
      }
      return isHeld;
    }

    private static double std(DiagonalBatch q, int i, int h) {
      return q.kind().std(q.scale(i * q.dimension() + h));
    }

    private boolean setNear(Codes codes, int c, double x, double factor) {
      double root = codes.root(c) * factor;
      if (!(root > 0)) {
        return setTerm(codes, c, codes.center(c), 0, 0);
      }
      double farthest = FARTHEST / root;
      double near = Math.clamp(x - codes.center(c), -farthest, farthest) + codes.center(c);
      return setTerm(codes, c, near, 0, factor);
    }

    @Override
    double base(double most) {
      double a = isRoot ? most * most : most;
      return a * divisor * (1 + NOISE);
    }

    @Override
    double least(double y, float l) {
      double least = y * y / divisor * (1 - NOISE);
      return isRoot ? Math.sqrt(least) : least;
    }
  }
}
