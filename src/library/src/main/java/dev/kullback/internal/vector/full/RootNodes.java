package dev.kullback.internal.vector.full;

/**
 * Nodes t and weights w of the square root, as a sum of fractions none of which is negative: {@code √x = LINEAR·x + Σ w tx/(1 + tx)}, to
 * within 3·10⁻¹⁷ for x in [0, 1]. It is the trapezoidal rule for {@code √x = (2/π) ∫ x cosh v/(1 + x sinh² v) dv} over v from 0 on, with
 * steps that grow as the rest shrinks: {@code v = A j + B j³ + C j⁵}. With 80 nodes it is within 9·10⁻¹⁶ at best, with 88 within 1.5·10⁻¹⁶.
 *
 * <p>Of eigenvalues x of a bidiagonal matrix's square, which has squares q on its diagonal and e beside it, the sum of {@code tx/(1 + tx)}
 * is the logarithmic derivative by t of the determinant of {@code I + t BᵀB}. Its pivots are {@code p = u + tq}, {@code u = 1 + te·u/p} of
 * the last, and {@code u′ = te/p·(u′ + (u − u′)·u/p)}: as {@code u ≥ u′}, nothing cancels, a term {@code (u′ + tq)/p} errs by some roundings
 * a row, and a matrix of any rank has finite ones (the stationary qd algorithm with shifts: K. Fernando, B. Parlett, "Accurate singular
 * values and differential qd algorithms", 1994).
 */
final class RootNodes {
  /** Nodes, a multiple of 4. */
  static final int COUNT = 96;

  private static final double A = 0.248523;
  private static final double B = 1.742479e-5;
  private static final double C = 3.5937e-12;

  static final double LINEAR = A / Math.PI;
  static final double[] PLACES = new double[COUNT];
  static final double[] WEIGHTS = new double[COUNT];

  static {
    for (int k = 0; k < COUNT; k++) {
      double j = k + 1;
      double v = j * (A + j * j * (B + j * j * C));
      double step = A + j * j * (3 * B + 5 * j * j * C);
      double sinh = StrictMath.sinh(v);
      PLACES[k] = sinh * sinh;
      WEIGHTS[k] = 2 / Math.PI * step * StrictMath.cosh(v) / (sinh * sinh);
    }
  }

  private RootNodes() {}
}
