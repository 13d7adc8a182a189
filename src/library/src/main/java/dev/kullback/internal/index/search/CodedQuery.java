package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.index.store.Codes;
import dev.kullback.internal.index.store.Rounding;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.kernel.CodeScan;
import org.jspecify.annotations.Nullable;

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
final class CodedQuery {
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

  /** Prepares for a segment with codes; returns false if codes cannot bound this query's divergences. */
  boolean set(DiagonalBatch q, int i, Segment segment, Codes codes) {
    this.codes = codes;
    int d = q.dimension();
    int length = 2 * CodeScan.TERMS * codes.words();
    if (terms.length < length) {
      terms = new float[length];
    }
    gamma = (d + UNITS) * 0x1p-24;
    alpha = d * 0x1p-100;
    int[] order = segment.order();
    for (int h = 0; h < d; h++) {
      int from = i * d + order[h];
      double root = codes.root(h);
      double t = (q.mean(from) - codes.center(h)) * root;
      double s = q.kind().variance(q.scale(from)) * root * root;
      if (!(Math.abs(t) <= MOST && s <= MOST * MOST)) {
        return false;
      }
      // p̃ of the second dimension of a word is 2⁸ times as much
      double scale = h % 2 == 0 ? 1 : 0x1p-4;
      int to = CodeScan.TERMS * h;
      terms[to] = (float) (t * scale);
      terms[to + 1] = (float) (-codes.unit(h) * root * Codes.SCALE * scale);
      terms[to + 2] = Rounding.down(s * (1 - 0x1p-50) * scale * scale);
    }
    for (int to = CodeScan.TERMS * d; to < length; to++) {
      terms[to] = 0;
    }
    limit.factor = (float) ((1 + ERROR) / (1 - gamma));
    limit.more = (float) alpha;
    return gamma < MOST_ERROR;
  }

  /** Returns the codes that it was prepared for. */
  Codes codes() {
    if (codes == null) {
      throw new IllegalStateException("no codes");
    }
    return codes;
  }

  void clear() {
    codes = null;
  }

  /** Sets the limit for references whose divergences are to be at most so much. */
  void limit(double most, Bounds bounds) {
    limit.base = Rounding.up(bounds.base(most));
  }

  /** Bounds a divergence from below by the sum and by r and l of its reference. */
  double lower(float sum, float r, float l, Bounds bounds) {
    double s = Math.sqrt(Math.max(0, (sum - alpha) * (1 - gamma))) * (1 - ERROR);
    double y = Math.max(0, s - r);
    return 0.5 * (y * y - l - bounds.base(0));
  }
}
