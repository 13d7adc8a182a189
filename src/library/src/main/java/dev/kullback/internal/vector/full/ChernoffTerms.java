package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.Formula;

/**
 * Makes the divergence of a pair of the factor of {@code S = Σq + scale·Σp}, {@code scale = wp/wq}, so that {@code Σ* = wq S} and
 *
 * <pre>
 * C = ½ wp dᵀS⁻¹d + ½ (ln det S + D ln wq) − wq ln det Lq − wp ln det Lp
 * </pre>
 *
 * <p>Its error bound, in units of rounding, with s_k of the diagonal of S, and H that is S scaled to a unit diagonal:
 *
 * <ul>
 *   <li>Entry (i, j) of LLᵀ is that of S to within {@code (D + 8 + min(i, j)) √(s_i s_j)}: D + 5 by Σ = LLᵀ of rounded factors, whose entries
 *       Cauchy's inequality bounds, and by their sum; the rest by the factorization (N. J. Higham, Accuracy and Stability of Numerical
 *       Algorithms, 2nd ed., 8.4 and 10.3).
 *   <li>So ln det S changes by at most {@code Σ_ij (D + 8 + min(i, j)) |H⁻¹_ij|}. With {@code |H⁻¹_ij| ≤ √(h_i h_j)}, h the diagonal of H⁻¹,
 *       this is at most {@code Σ_k w_k h_k}, {@code w_k = D (D + 8) + kD − k(k + 1)/2}. As Σq and scale·Σp are at most S, {@code h_k ≤ s_k
 *       min((Σq⁻¹)_kk, (Σp⁻¹)_kk/scale)}: that is {@code change}.
 *   <li>Relatively, {@code dᵀS⁻¹d} changes by at most {@code Σ_ij (D + 8 + min(i, j)) |y_i| √s_i |y_j| √s_j / yᵀSy}, {@code y = S⁻¹d}, so
 *       by Cauchy's inequality with weights 1/(Σq⁻¹)_kk by at most {@code r Σ_k (D + 8 + k) s_k (Σq⁻¹)_kk}, r of {@link FullCorrelations};
 *       likewise by those of p. Sums with w_k instead, {@code changeQ} and {@code changeP}, are multiplied by the greatest ratio, that of k =
 *       D − 1. The solve adds {@code (3D + 6) Σ_k h_k}.
 *   <li>{@code Σ⁻¹ = WᵀW} is within FullColumns.inverseError.
 * </ul>
 */
final class ChernoffTerms {
  static final double UNIT = FullPacking.UNIT;

  private final Formula formula;
  final double weightQ;
  final double weightP;

  /** {@code wp/wq}. */
  final double scale;

  private final double logWeight;

  ChernoffTerms(Formula formula) {
    this.formula = formula;
    weightQ = 1 - formula.alpha();
    weightP = formula.alpha();
    scale = weightP / weightQ;
    logWeight = Math.log(weightQ);
  }

  /** Returns {@code ½ D ln wq}. */
  double constant(int d) {
    return 0.5 * d * logWeight;
  }

  /** Returns w_k, in units of rounding. */
  static double weight(int d, int k) {
    return UNIT * (d * (d + 8.0) + k * (double) d - 0.5 * k * (k + 1.0));
  }

  /** Returns the factor that makes changeQ and changeP the relative change of {@code dᵀS⁻¹d}. */
  static double ofSquares(int d) {
    return (2 * d + 7) / (d * (d + 8.0) + 0.5 * d * (d - 1.0));
  }

  /** Returns the factor that makes the change what the solve adds to it. */
  static double ofSolve(int d) {
    return (3 * d + 6) / (d * (d + 8.0));
  }

  /** Returns the error of pivots and their product, and of adding the {@link #constant}. */
  double noise(int d) {
    return UNIT * (4 * Math.abs(constant(d)) + 2 * d + 4);
  }

  /** Returns the divergence, a function of C. */
  double finish(double c) {
    return formula.finish(c);
  }
}
