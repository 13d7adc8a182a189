package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.index.store.Rounding;
import dev.kullback.internal.numerics.Scale;
import org.jspecify.annotations.Nullable;

/**
 * Bounds what {@link Bounds} does, forward, by sums in double of a row's values as they were given: a quarter of the time of
 * {@link dev.kullback.internal.formula.Pair#precise}, as the query's variances are computed once, and four sums do not wait for each other.
 *
 * <p>{@code A = Σ_h [(x − m)² + v] p} is within {@link #UNITS} units of 2⁻⁵³ and one for each sum, relatively: v and p are within 2⁻⁵⁰ and so
 * have eight each, and a term has six roundings. Nothing over- or underflows where variances are ordinary, and means no more than the
 * square root of what double holds; else there are no bounds. {@code ½ (A − D) + Σ ln σ_j − Σ ln σ_x} has three roundings beside.
 *
 * <p>Of points, what is ranked is a number in double itself, {@link #POINT_UNITS} from exact, and a square can underflow: each loses {@link #UNDERFLOW} at most.
 */
final class DoubleBounds {
  private static final int UNITS = 24;
  private static final double UNIT = 0x1p-53;

  /** Units of the sum that ranks points: a term's roundings, and those of a block. */
  private static final int POINT_UNITS = 128;

  /** A square's loss below double's least number, times the greatest precision that is ordinary. */
  private static final double UNDERFLOW = 0x1p-970;

  /** Dimensions that are added up by themselves, so that fewer roundings follow one another. */
  private static final int CHUNK = 64;

  private final Bounds bounds;
  private @Nullable DiagonalBatch batch;
  private int row;
  private double[] mean = {};
  private double[] variance = {};
  private double[] distance = {};
  private double[] precision = {};
  private boolean isKnown;
  private boolean isOrdinary;

  double lower;
  double upper;

  /** Takes what does not depend on a row from bounds that are set for the same query. */
  DoubleBounds(Bounds bounds) {
    this.bounds = bounds;
  }

  /** Takes a query, whose numbers are computed when they are needed. */
  void set(DiagonalBatch q, int i) {
    batch = q;
    row = i;
    isKnown = false;
  }

  void clear() {
    batch = null;
  }

  /** Sets the bounds of the divergence from the only row of p; returns false where there are none. */
  boolean of(DiagonalBatch p) {
    DiagonalBatch q = batch;
    if (q == null) {
      throw new IllegalStateException("no query");
    }
    if (!isKnown) {
      know(q);
    }
    if (!isOrdinary || p.beyond32().get(0)) {
      return false;
    }
    int d = q.dimension();
    read(p);
    double a = 0;
    for (int from = 0; from < d; from += CHUNK) {
      a += sum(from, Math.min(d, from + CHUNK));
    }
    if (!(a < Double.POSITIVE_INFINITY)) {
      return false;
    }
    double log = bounds.logs * p.logDet(0);
    double value = bounds.factor * (a - bounds.less) + (log + bounds.offset);
    double sums = UNITS + Math.min(d, CHUNK) + (double) d / CHUNK;
    double magnitudes = a + bounds.less + Math.abs(log) + Math.abs(bounds.offset);
    double error = p.logDetBound(0) + q.logDetBound(row) + UNIT * (sums * a + 4 * magnitudes);
    if (q.arePoints()) {
      error += UNIT * POINT_UNITS * a + UNDERFLOW * d;
    }
    lower = Math.max(0, value - error);
    upper = Math.max(0, value + error);
    return true;
  }

  /** Fills {@link #distance} and {@link #precision}, in loops that ask for nothing an element, as C2 does not take that out of them. */
  private void read(DiagonalBatch p) {
    int d = p.dimension();
    double[] scale = precision;
    if (p.isDouble()) {
      double[] means = p.mean64();
      double[] scales = p.scale64();
      for (int h = 0; h < d; h++) {
        distance[h] = mean[h] - means[h];
        scale[h] = scales[h];
      }
    } else {
      float[] means = p.mean32();
      float[] scales = p.scale32();
      for (int h = 0; h < d; h++) {
        distance[h] = mean[h] - means[h];
        scale[h] = scales[h];
      }
    }
    Scale kind = p.kind();
    switch (kind) {
      case STD -> {
        for (int h = 0; h < d; h++) {
          precision[h] = 1 / (scale[h] * scale[h]);
        }
      }
      case PRECISION -> {}
      case VARIANCE, LOG_VARIANCE -> {
        for (int h = 0; h < d; h++) {
          precision[h] = 1 / kind.variance(scale[h]);
        }
      }
    }
  }

  private double sum(int from, int end) {
    double a0 = 0;
    double a1 = 0;
    double a2 = 0;
    double a3 = 0;
    int h = from;
    for (; h + 3 < end; h += 4) {
      a0 += (distance[h] * distance[h] + variance[h]) * precision[h];
      a1 += (distance[h + 1] * distance[h + 1] + variance[h + 1]) * precision[h + 1];
      a2 += (distance[h + 2] * distance[h + 2] + variance[h + 2]) * precision[h + 2];
      a3 += (distance[h + 3] * distance[h + 3] + variance[h + 3]) * precision[h + 3];
    }
    for (; h < end; h++) {
      a0 += (distance[h] * distance[h] + variance[h]) * precision[h];
    }
    return a0 + a1 + (a2 + a3);
  }

  private void know(DiagonalBatch q) {
    int d = q.dimension();
    if (mean.length < d) {
      mean = new double[d];
      variance = new double[d];
      distance = new double[d];
      precision = new double[d];
    }
    isOrdinary = true;
    for (int h = 0; h < d; h++) {
      int at = row * d + h;
      mean[h] = q.mean(at);
      variance[h] = q.kind().variance(q.scale(at));
      isOrdinary &= q.arePoints() || Rounding.isOrdinary(variance[h]);
    }
    isKnown = true;
  }
}
