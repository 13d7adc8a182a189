package dev.kullback;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** The columns of each row within a radius. Where the kernels' error bound does not tell, an entry is recomputed. */
final class WithinRows extends RowReduction {
  private final Gaussians q;
  private final Gaussians p;
  private final boolean reverse;
  private final double radius;
  private final double error;
  private final double tolerance;

  /** By first row of a band: what it has; then null. */
  private final AtomicReferenceArray<int[]> indices;

  private final AtomicReferenceArray<double[]> values;

  private final int most;

  /** Entries found so far. */
  private final AtomicLong total = new AtomicLong();

  /** {@code start[i + 1]}: entries of row i, until all are known. */
  private final int[] start;

  /** {@code reverse} decides by {@code KL(p_j ‖ q_i)}. */
  WithinRows(Gaussians q, Gaussians p, boolean reverse, double radius, int most) {
    this.q = q;
    this.p = p;
    this.reverse = reverse;
    this.radius = radius;
    this.most = most;
    error = Ranks.error(q, p);
    tolerance = ExactKl.tolerance(q.dimension());
    indices = new AtomicReferenceArray<>(q.size());
    values = new AtomicReferenceArray<>(q.size());
    start = new int[q.size() + 1];
  }

  @Override
  boolean isReverse() {
    return reverse;
  }

  @Override
  void begin(int row0, int row1, Tile t) {
    for (int i = 0; i < row1 - row0; i++) {
      t.candidates(i).clear();
    }
  }

  @Override
  void block(int row0, int row1, int column0, int column1, Tile t) {
    double[] kl = t.block64();
    int width = column1 - column0;
    int[] at = t.positions(width);
    double limit = Math.nextUp(radius / (1 - error));
    long found = 0;
    for (int i = row0; i < row1; i++) {
      Candidates c = t.candidates(i - t.band);
      int from = (i - row0) * width;
      int count = t.scan.atMost(limit, kl, from, from + width, at);
      for (int s = 0; s < count; s++) {
        int j = column0 + at[s];
        double x = kl[from + at[s]];
        if (x * (1 + error) > radius && x < Double.POSITIVE_INFINITY) {
          x = decided(i, j, t);
        }
        if (x <= radius) {
          c.append(j, x);
          found++;
        }
      }
    }
    check(total.addAndGet(found));
  }

  /** The divergence of i and j, infinite if it is beyond the radius by less than rounding leaves. */
  private double decided(int i, int j, Tile t) {
    double kl = Ranks.precise(q, i, p, j, reverse, t);
    if (Math.abs(kl - radius) > Ranks.PRECISE_ERROR * radius) {
      return kl;
    }
    ExactKl exact = Ranks.exact(q, i, p, j, reverse, kl, t);
    return exact.isBeyond(radius, tolerance) ? Double.POSITIVE_INFINITY : exact.value;
  }

  @Override
  void end(int row0, int row1, Tile t) {
    int count = 0;
    for (int i = 0; i < row1 - row0; i++) {
      count += t.candidates(i).count;
    }
    int[] index = new int[count];
    double[] value = new double[index.length];
    int to = 0;
    for (int i = 0; i < row1 - row0; i++) {
      Candidates c = t.candidates(i);
      System.arraycopy(c.index, 0, index, to, c.count);
      System.arraycopy(c.value, 0, value, to, c.count);
      to += c.count;
      start[row0 + i + 1] = c.count;
    }
    indices.set(row0, index);
    values.set(row0, value);
  }

  /** What all bands have. */
  Neighbors result() {
    int[] index = new int[total.intValue()];
    double[] value = new double[index.length];
    for (int i = 0; i < start.length - 1; i++) {
      int[] band = indices.get(i);
      if (band != null) {
        System.arraycopy(band, 0, index, start[i], band.length);
        System.arraycopy(values.get(i), 0, value, start[i], band.length);
        indices.set(i, null);
        values.set(i, null);
      }
      start[i + 1] += start[i];
    }
    return new Neighbors(start, index, value);
  }

  private void check(long count) {
    if (count > most) {
      throw new IllegalArgumentException(
          "more than %d pairs are within the radius %s; take a smaller one, or split q by rows"
              .formatted(most, radius));
    }
  }
}
