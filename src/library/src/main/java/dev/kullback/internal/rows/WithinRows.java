package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.plain.DoubleDoubleKl;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/** The columns of each row within a radius. Where the kernels' error bound does not tell, an entry is recomputed. */
public final class WithinRows extends RowReduction {
  private final Batch q;
  private final Batch p;
  private final boolean reverse;
  private final double radius;
  private final double error;
  private final double tolerance;

  /** By first row of a band, and its span: what it has; then null. */
  private AtomicReferenceArray<@Nullable Slice> parts = new AtomicReferenceArray<>(0);

  private int spans = 1;

  /** The entries of a band's rows, or of a span of theirs: row i has those from {@code start[i]} on. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Slice(int[] start, int[] indices, double[] values) {
    int rows() {
      return start.length - 1;
    }
  }

  private final int most;

  /** Entries found so far. */
  private final AtomicLong total = new AtomicLong();

  /** {@code reverse} decides by {@code KL(p_j ‖ q_i)}. */
  public WithinRows(Batch q, Batch p, boolean reverse, double radius, int most) {
    this.q = q;
    this.p = p;
    this.reverse = reverse;
    this.radius = radius;
    this.most = most;
    error = ExactOrder.error(q, p);
    tolerance = DoubleDoubleKl.tolerance(q.dimension());
  }

  @Override
  public int mostSpans() {
    return Integer.MAX_VALUE;
  }

  @Override
  public void cut(int rows, int spans) {
    this.spans = spans;
    parts = new AtomicReferenceArray<>(rows * spans);
  }

  @Override
  public boolean isReverse() {
    return reverse;
  }

  @Override
  public void begin(int row0, int row1, BandState band) {
    for (int i = 0; i < row1 - row0; i++) {
      band.candidates(i).clear();
    }
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    int width = column1 - column0;
    int[] at = band.positions(width);
    double limit = limit();
    long found = 0;
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - band.first);
      int before = c.count;
      int from = (i - row0) * width;
      int count = band.scan.atMost(limit, kl, from, from + width, at);
      for (int s = 0; s < count; s++) {
        offer(i, column0 + at[s], kl[from + at[s]], c, band);
      }
      found += c.count - before;
    }
    check(total.addAndGet(found));
  }

  /** What a kernel's value is at most if the divergence may be within the radius. */
  private double limit() {
    return Math.nextUp(radius / (1 - error));
  }

  @Override
  public RowQuery query() {
    return RowQuery.within(limit());
  }

  @Override
  public boolean take(RowAnswer answer, int i, int piece, BandState band) {
    Candidates c = band.candidates(i - band.first);
    int before = c.count;
    boolean all = band.take(answer, i, piece, (j, kl) -> offer(i, j, kl, c, band));
    check(total.addAndGet(c.count - before));
    return all;
  }

  private void offer(int i, int j, double kl, Candidates c, BandState band) {
    double x = kl;
    if (x * (1 + error) > radius && x < Double.POSITIVE_INFINITY) {
      x = decided(i, j, band);
    }
    if (x <= radius) {
      c.append(j, x);
    }
  }

  /** The divergence of i and j, infinite if it is beyond the radius by less than rounding leaves. */
  private double decided(int i, int j, BandState band) {
    double kl = band.order.precise(q, i, p, j, reverse);
    if (Math.abs(kl - radius) > ExactOrder.PRECISE_ERROR * radius) {
      return kl;
    }
    DoubleDoubleKl exact = band.order.exact(q, i, p, j, reverse, kl);
    return exact.isBeyond(radius, tolerance) ? Double.POSITIVE_INFINITY : exact.value;
  }

  @Override
  public void end(int row0, int row1, BandState band) {
    int[] start = new int[row1 - row0 + 1];
    for (int i = 0; i < row1 - row0; i++) {
      start[i + 1] = start[i] + band.candidates(i).count;
    }
    int[] index = new int[start[row1 - row0]];
    double[] value = new double[index.length];
    for (int i = 0; i < row1 - row0; i++) {
      Candidates c = band.candidates(i);
      System.arraycopy(c.index, 0, index, start[i], c.count);
      System.arraycopy(c.value, 0, value, start[i], c.count);
    }
    parts.set(row0 * spans + Math.max(0, band.span), new Slice(start, index, value));
  }

  /** What all bands have. */
  public NeighborLists result() {
    int n = q.size();
    int[] start = new int[n + 1];
    for (int k = 0; k < parts.length(); k++) {
      Slice part = parts.get(k);
      for (int i = 0; part != null && i < part.rows(); i++) {
        start[k / spans + i + 1] += part.start[i + 1] - part.start[i];
      }
    }
    for (int i = 0; i < n; i++) {
      start[i + 1] += start[i];
    }
    int[] index = new int[start[n]];
    double[] value = new double[index.length];
    int[] to = start.clone();
    for (int k = 0; k < parts.length(); k++) {
      Slice part = parts.get(k);
      for (int i = 0; part != null && i < part.rows(); i++) {
        int row = k / spans + i;
        int count = part.start[i + 1] - part.start[i];
        System.arraycopy(part.indices, part.start[i], index, to[row], count);
        System.arraycopy(part.values, part.start[i], value, to[row], count);
        to[row] += count;
      }
      parts.set(k, null);
    }
    return new NeighborLists(start, index, value);
  }

  private void check(long count) {
    if (count > most) {
      throw new IllegalArgumentException(
          "more than %d pairs are within the radius %s; take a smaller one, or split q by rows"
              .formatted(most, radius));
    }
  }
}
