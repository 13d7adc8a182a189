package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.plain.ExactKl;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** The columns of each row within a radius. Where the kernels' error bound does not tell, an entry is recomputed. */
public final class WithinRows extends RowReduction {
  private final Batch q;
  private final Batch p;
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
  public WithinRows(Batch q, Batch p, boolean reverse, double radius, int most) {
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
  public boolean isReverse() {
    return reverse;
  }

  @Override
  public void begin(int row0, int row1, Band band) {
    for (int i = 0; i < row1 - row0; i++) {
      band.candidates(i).clear();
    }
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, Band band) {
    int width = column1 - column0;
    int[] at = band.positions(width);
    double limit = Math.nextUp(radius / (1 - error));
    long found = 0;
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - band.first);
      int from = (i - row0) * width;
      int count = band.scan.atMost(limit, kl, from, from + width, at);
      for (int s = 0; s < count; s++) {
        int j = column0 + at[s];
        double x = kl[from + at[s]];
        if (x * (1 + error) > radius && x < Double.POSITIVE_INFINITY) {
          x = decided(i, j, band);
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
  private double decided(int i, int j, Band band) {
    double kl = band.ranks.precise(q, i, p, j, reverse);
    if (Math.abs(kl - radius) > Ranks.PRECISE_ERROR * radius) {
      return kl;
    }
    ExactKl exact = band.ranks.exact(q, i, p, j, reverse, kl);
    return exact.isBeyond(radius, tolerance) ? Double.POSITIVE_INFINITY : exact.value;
  }

  @Override
  public void end(int row0, int row1, Band band) {
    int count = 0;
    for (int i = 0; i < row1 - row0; i++) {
      count += band.candidates(i).count;
    }
    int[] index = new int[count];
    double[] value = new double[index.length];
    int to = 0;
    for (int i = 0; i < row1 - row0; i++) {
      Candidates c = band.candidates(i);
      System.arraycopy(c.index, 0, index, to, c.count);
      System.arraycopy(c.value, 0, value, to, c.count);
      to += c.count;
      start[row0 + i + 1] = c.count;
    }
    indices.set(row0, index);
    values.set(row0, value);
  }

  /** Compressed sparse rows: row i has the entries {@code start[i]} to {@code start[i + 1] − 1}. */
  @SuppressWarnings("ArrayRecordComponent") // handed on, and never compared
  public record Found(int[] start, int[] indices, double[] values) {}

  /** What all bands have. */
  public Found result() {
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
    return new Found(start, index, value);
  }

  private void check(long count) {
    if (count > most) {
      throw new IllegalArgumentException(
          "more than %d pairs are within the radius %s; take a smaller one, or split q by rows"
              .formatted(most, radius));
    }
  }
}
