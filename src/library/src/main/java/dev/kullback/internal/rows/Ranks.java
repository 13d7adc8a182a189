package dev.kullback;

/**
 * What decides between two candidates, or a candidate and a radius, that a kernel's error bound leaves undecided. A kernel's value
 * v stands for an exact one in {@code [v(1 − error), v(1 + error)]}: the contract allows a square of the error more, of which the kernels
 * keep well clear. 0 and ∞ count as exact.
 */
final class Ranks {
  /** The contract of the float kernels, and of the double ones. */
  private static final double FLOAT_ERROR = 1e-5;

  private static final double DOUBLE_ERROR = 1e-12;

  /** With a full covariance that of double grows with the condition number, of which the kernels allow 100 at most. */
  private static final double FULL_ERROR = 1e-10;

  /** Of {@link #precise}, with diagonal batches twice over, as both that are compared have it. */
  static final double PRECISE_ERROR = 2e-13;

  /** How many times as long as {@link #precise} the unrounded value takes, about. */
  private static final int EXACT = 32;

  private Ranks() {}

  /** Relative error of the kernels' values at most. */
  static double error(Gaussians q, Gaussians p) {
    if (!q.isDouble() && !p.isDouble()) {
      return FLOAT_ERROR;
    }
    return q instanceof DiagonalGaussians && p instanceof DiagonalGaussians
        ? DOUBLE_ERROR
        : FULL_ERROR;
  }

  /** KL(q_i ‖ p_j), or in reverse KL(p_j ‖ q_i), to {@link #PRECISE_ERROR}, whatever the batches' precision. */
  static double precise(Gaussians q, int i, Gaussians p, int j, boolean reverse, Tile t) {
    if (reverse) {
      return precise(p, j, q, i, false, t);
    }
    t.checkInterrupt(); // of a tile all entries may come here
    t.pass(Checkpoint.ofPair(q, p));
    return q instanceof DiagonalGaussians a && p instanceof DiagonalGaussians b
        ? PairKl.precise(a, i, b, j)
        : t.full.pair.kl(q, i, p, j);
  }

  /** The same unrounded where it is to be had, else {@code kl}, which {@link #precise} gave; valid until the next. */
  static ExactKl exact(Gaussians q, int i, Gaussians p, int j, boolean reverse, double kl, Tile t) {
    if (reverse) {
      return exact(p, j, q, i, false, kl, t);
    }
    t.checkInterrupt();
    t.pass(EXACT * Checkpoint.ofPair(q, p));
    if (!(q instanceof DiagonalGaussians a
        && p instanceof DiagonalGaussians b
        && kl >= Double.MIN_NORMAL
        && t.exact.compute(a, i, b, j))) {
      t.exact.set(kl);
    }
    return t.exact;
  }

  /** Whether two columns certainly have the same divergences. */
  static boolean isSame(Gaussians p, int i, int j) {
    return p instanceof DiagonalGaussians d && d.isEqual(i, d, j);
  }
}
