package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.Density;
import java.util.List;

/**
 * Columns of the full-covariance product for points: those of KL with offsets, error bounds and tolerances of a {@link Density}. With
 * {@code M = m_pᵀ P m_p}, the product AB is {@code R − M}, of which KL has a half, and so its error bound is that of {@code ½R}.
 */
final class FullDensity {
  private static final List<FullDensity> ALL =
      List.of(
          new FullDensity(Density.MAHALANOBIS, true),
          new FullDensity(Density.MAHALANOBIS, false),
          new FullDensity(Density.LOG_DENSITY, true),
          new FullDensity(Density.LOG_DENSITY, false),
          new FullDensity(Density.EXCESS, true),
          new FullDensity(Density.EXCESS, false));

  private final Density density;
  private final boolean areFloats;
  private final DerivedForm<FullBatch, FullColumns> kept;

  private FullDensity(Density density, boolean areFloats) {
    this.density = density;
    this.areFloats = areFloats;
    kept =
        new DerivedForm<>(
            g -> make(g, FullPacking.COLUMNS.of(g, false)),
            c -> 5L * Double.BYTES * c.offset().length);
  }

  /**
   * Returns the columns of a batch, which keeps them.
   *
   * @param areFloats whether the points and the batch are of float
   * @param kl the batch's columns for KL
   */
  static FullColumns of(Density density, FullBatch p, boolean areFloats, FullColumns kl) {
    for (FullDensity form : ALL) {
      if (form.density == density && form.areFloats == areFloats) {
        FullColumns made = form.kept.made(p);
        return made != null ? made : form.keep(p, kl);
      }
    }
    throw new AssertionError(density);
  }

  /** Makes the columns that the batch keeps; a method of its own, as the lambda is an object that warm calls must not make. */
  private FullColumns keep(FullBatch p, FullColumns kl) {
    return kept.of(p, g -> make(g, kl));
  }

  private FullColumns make(FullBatch p, FullColumns kl) {
    int d = p.dimension();
    double factor = density.factor();
    double share = 2 * Math.abs(factor);
    int padded = kl.offset().length;
    double[] offset = new double[padded];
    double[] noise = new double[padded];
    double[] weight = new double[padded];
    double[] inverseError = new double[padded];
    double[] tolerance = new double[padded];
    for (int j = 0; j < p.size(); j++) {
      double log = p.logDet(j);
      double own = density.offset(p, j);
      double squared = kl.isWhitened() ? 2 * kl.offset()[j] : 2 * (kl.offset()[j] - log) + d;
      offset[j] = factor * squared + own;
      noise[j] = share * kl.noise()[j] + density.offsetBound(p, j);
      weight[j] = share * kl.weight()[j];
      inverseError[j] = share * kl.inverseError()[j];
      tolerance[j] = kl.tolerance()[j] + (areFloats ? FullOperands.FLOAT_TOLERANCE : 0);
      if (density.isSigned()) { // the value is own − ½R, and its error relative to ½R + |log| + D
        tolerance[j] = -tolerance[j];
        noise[j] += tolerance[j] * (Math.abs(log) + d + own);
      } else if (density
          == Density
              .EXCESS) { // the error is relative to the same, of which a narrow p makes the value a
        // multiple
        noise[j] += tolerance[j] * Math.max(0, own - Math.abs(log) - d);
      }
    }
    return new FullColumns(
        kl.values(),
        kl.isShared(),
        kl.isWhitened(),
        kl.centre(),
        offset,
        noise,
        weight,
        inverseError,
        tolerance);
  }
}
