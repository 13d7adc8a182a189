package dev.kullback.internal.formula;

/**
 * Bounds below the costs of merging a component of a mixture with others, of full covariances in few dimensions: {@code ½[w ln|P| − w_i
 * ln|P_i| − w_j ln|P_j|]} with {@code P = aP_i + bP_j + ab ddᵀ}, less what rounding does to it at most.
 *
 * <p>A panel has up to {@link #STRIDE} components, number k of each from {@code k·STRIDE} on: the weight w, the mean, wP packed, the diagonal of
 * {@code wP⁻¹}, and {@code −½w ln|P|} less a bound of its error. Those of the one that merges, in this order, are {@code own}.
 *
 * <p>The pivots are exactly those of P + E with {@code |E_rc| ≤ (D + 8)·2⁻⁵³·√(P_rr P_cc)} or so (J. W. Demmel, "On floating point errors in
 * Cholesky", LAPACK Working Note 14, 1989), so that, as ln|P| is concave, the logarithm is too great by at most {@code tr P⁻¹E ≤ D(D +
 * 8)·2⁻⁵³·Σ_h P_hh (P⁻¹)_hh}. As {@code P ≥ aP_i + bP_j} and the inverse is convex, {@code P⁻¹ ≤ aP_i⁻¹ + bP_j⁻¹}, which does not grow with the distance
 * of the means. Twice this is taken, from |P| itself: {@code ln(|P| − e) ≤ ln|P| − e/|P|}.
 *
 * <p>Nanoseconds a pair at D = 3, 4, 8: with vectors of 512 bits 2.5, 3.6, 12; of 256 2.8, 3.9, 15; of 128 5.2, 7.4, 24; without 11, 16, 59 (Intel
 * with AVX-512, CPU family 6, JDK 25.0.3; before diagonals of inverses were read). Determinants and logarithms have loops of their own, so that the processor begins a pair before it
 * has ended the last: in one loop, a step of 200 components to 20 took 1.14 times as long.
 */
public interface MergerBounds {
  /** The most dimensions that these are for. */
  int MOST = 8;

  /** Components of a panel, at most. */
  int STRIDE = 128;

  /** What a bound is not above, if a number, that says nothing, as the determinant is too large or too small, or no number greater than 0. */
  double LEAST = -0x1p900;

  /** Numbers of a component. */
  static int rows(int dimension) {
    return 2 + 2 * dimension + dimension * (dimension + 1) / 2;
  }

  /** Whether bounds of all components in a range take less time than those of a list. */
  boolean takesAll();

  /**
   * Sets the bounds of the components at some places of a panel: those from {@code from} to {@code to}, exclusive, if this takes all, and
   * perhaps others; or else those that the list {@code places} has in this range.
   */
  void set(
      int dimension, double[] own, double[] panel, int from, int to, int[] places, double[] bounds);
}
