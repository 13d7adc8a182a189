package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/** Finds the columns of each row within a radius. Entries that the kernels' error bound leaves undecided are recomputed. */
public final class WithinRows extends RowSearch {
  /** The radius of the values before the shift; negative if nothing is within. */
  private double radius;

  /** Greatest kernel value whose divergence may be within the radius. */
  private double limit;

  /** Greatest kernel value whose divergence is certainly within it. */
  private double certain;

  /** Entries found, by first row of a band and span; null elsewhere. */
  private AtomicReferenceArray<@Nullable NeighborLists> parts = new AtomicReferenceArray<>(0);

  private int spans = 1;

  /** Entries found so far. */
  private final AtomicLong total = new AtomicLong();

  @Override
  public void set(Batch q, Batch p, SearchOptions options, double shift, Runnable look) {
    super.set(q, p, options, shift, look);
    radius = options.radiusWithout(shift);
    limit = Math.nextUp(radius / (1 - error));
    certain = radius < 0 ? 0 : certain(radius, error);
  }

  private static double certain(double radius, double error) {
    double x = radius / (1 + error);
    while (Ranking.atMost(x, error) > radius) {
      x = Math.nextDown(x);
    }
    while (x < radius && Ranking.atMost(Math.nextUp(x), error) <= radius) {
      x = Math.nextUp(x);
    }
    return x;
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
  public void begin(int row0, int row1, BandState band) {
    for (int i = 0; i < row1 - row0; i++) {
      band.ranking(i).startDecided();
    }
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    int width = column1 - column0;
    int[] at = band.positions(width);
    long added = 0;
    for (int i = row0; i < row1; i++) {
      Ranking found = band.ranking(i - band.first);
      int before = found.count();
      int from = (i - row0) * width;
      int count = band.scan.atMost(limit, kl, from, from + width, at);
      for (int s = 0; s < count; s++) {
        offer(i, column0 + at[s], kl[from + at[s]], found, band);
      }
      added += found.count() - before;
    }
    options.checkPairs(total.addAndGet(added));
  }

  @Override
  public RowQuery query() {
    return RowQuery.within(limit);
  }

  @Override
  public boolean take(RowAnswer answer, int i, int piece, BandState band) {
    Ranking found = band.ranking(i - band.first);
    int before = found.count();
    boolean all = band.take(answer, i, piece, (j, kl) -> offer(i, j, kl, found, band));
    options.checkPairs(total.addAndGet(found.count() - before));
    return all;
  }

  private void offer(int i, int j, double value, Ranking found, BandState band) {
    if (!columns.has(i, j)) {
      return;
    }
    double x = value;
    if (options.exact()) {
      Source source = source(i, band);
      x = source.decide(j, source.rounded(j), radius);
    } else if (x > certain && x < Double.POSITIVE_INFINITY) {
      Source source = source(i, band);
      x = source.decide(j, source.precise(j), radius);
    }
    if (x <= radius) {
      found.append(options.firstColumn() + j, x + shift);
    }
  }

  @Override
  public void end(int row0, int row1, BandState band) {
    NeighborLists found = NeighborLists.ofCounts(row1 - row0, i -> band.ranking(i).count());
    for (int i = 0; i < row1 - row0; i++) {
      band.ranking(i).copy(found.indices(), found.values(), found.start()[i]);
    }
    parts.set(row0 * spans + Math.max(0, band.span), found);
  }

  /** Joins the lists of all bands, and drops them. */
  public NeighborLists result() {
    int[] counts = new int[q().size()];
    for (int k = 0; k < parts.length(); k++) {
      NeighborLists part = parts.get(k);
      for (int i = 0; part != null && i < part.size(); i++) {
        counts[k / spans + i] += part.count(i);
      }
    }
    NeighborLists all = NeighborLists.ofCounts(counts.length, i -> counts[i]);
    int[] to = all.start().clone();
    for (int k = 0; k < parts.length(); k++) {
      NeighborLists part = parts.get(k);
      for (int i = 0; part != null && i < part.size(); i++) {
        int row = k / spans + i;
        int from = part.start()[i];
        System.arraycopy(part.indices(), from, all.indices(), to[row], part.count(i));
        System.arraycopy(part.values(), from, all.values(), to[row], part.count(i));
        to[row] += part.count(i);
      }
      parts.set(k, null);
    }
    return all;
  }
}
