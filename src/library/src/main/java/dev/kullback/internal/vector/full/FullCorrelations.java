package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.FullBatch;
import java.util.Arrays;

/**
 * Bounds the greatest eigenvalue of {@code R_kl = P_kl/√(P_kk P_ll)}, P the precision matrices of a batch, by the greatest sum of absolute
 * values in a row of R. For one thread.
 */
final class FullCorrelations {
  private static final int NR = FullColumns.NR;

  private static final DerivedForm<FullBatch, double[]> KEPT =
      new DerivedForm<>(
          g -> of(FullPacking.COLUMNS.of(g, false), new double[padded(g)]),
          bounds -> (long) Double.BYTES * bounds.length);

  /** Scratch for the bounds of a batch that is not worth keeping them for yet. */
  private double[] memory = {};

  /** Returns the bounds of a batch, of which these are the columns, by the Gaussian; padded to whole panels. */
  double[] of(FullBatch g, FullColumns columns, boolean isFirstUse) {
    double[] made = KEPT.made(g);
    if (made != null) {
      return made;
    }
    if (!isFirstUse) {
      return make(g, columns);
    }
    if (memory.length < padded(g)) {
      memory = new double[padded(g)];
    }
    return of(columns, memory);
  }

  /** Makes the bounds that the batch keeps; a method of its own, as the lambda is an object that warm calls must not make. */
  private static double[] make(FullBatch g, FullColumns columns) {
    return KEPT.of(g, _ -> of(columns, new double[padded(g)]));
  }

  private static int padded(FullBatch g) {
    return Math.ceilDiv(g.size(), NR) * NR;
  }

  private static double[] of(FullColumns columns, double[] bounds) {
    int d = columns.centre().length;
    double[] values = columns.values();
    double[] roots = new double[d * NR];
    double[] sums = new double[d * NR];
    for (int first = 0; first < columns.offset().length; first += NR) {
      int panel = columns.precision(first);
      for (int r = 0, k = panel; r < d; k += (++r + 1) * NR) {
        for (int i = 0; i < NR; i++) {
          roots[r * NR + i] = 1 / Math.sqrt(values[k + i]);
        }
      }
      Arrays.fill(sums, 1);
      for (int r = 0, k = panel; r < d; r++, k += NR) {
        for (int c = 0; c < r; c++, k += NR) {
          for (int i = 0; i < NR; i++) { // twice what is off the diagonal
            double x = 0.5 * Math.abs(values[k + i]) * (roots[r * NR + i] * roots[c * NR + i]);
            sums[r * NR + i] += x;
            sums[c * NR + i] += x;
          }
        }
      }
      Arrays.fill(bounds, first, first + NR, 0);
      for (int r = 0; r < d; r++) {
        for (int i = 0; i < NR; i++) {
          bounds[first + i] = Math.max(bounds[first + i], sums[r * NR + i]);
        }
      }
    }
    return bounds;
  }
}
