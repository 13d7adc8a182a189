package dev.kullback.spark;

import dev.kullback.Neighbors;
import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.jspecify.annotations.Nullable;

/** The k references nearest to each of N queries among those offered so far, as rows, by divergence and number. */
final class NearestLists {
  private final int k;
  private final int[] count;
  private final double[] kl;
  private final long[] number;
  private final byte[][] rows;

  NearestLists(int queries, int k) {
    this.k = k;
    count = new int[queries];
    kl = new double[Math.multiplyExact(queries, k)];
    number = new long[kl.length];
    rows = new byte[kl.length][];
  }

  int count(int query) {
    return count[query];
  }

  double kl(int query, int rank) {
    return kl[query * k + rank];
  }

  /** Makes a view of a row. */
  void point(UnsafeRow view, int query, int rank) {
    byte[] row = rows[query * k + rank];
    view.pointTo(row, row.length);
  }

  private boolean isAmong(int query, double value, long n) {
    int last = query * k + k - 1;
    return count[query] < k || value < kl[last] || (value == kl[last] && n < number[last]);
  }

  private void insert(int query, double value, long n, byte[] row) {
    int at = query * k + Math.min(count[query], k - 1);
    count[query] = Math.min(count[query] + 1, k);
    for (;
        at > query * k && (value < kl[at - 1] || (value == kl[at - 1] && n < number[at - 1]));
        at--) {
      kl[at] = kl[at - 1];
      number[at] = number[at - 1];
      rows[at] = rows[at - 1];
    }
    kl[at] = value;
    number[at] = n;
    rows[at] = row;
  }

  /**
   * Returns lists of k neighbors of each query, with its k-th divergence so far, for a search among further references to continue: it leaves
   * out those that are farther. Their indices are beyond the references', so that these come first where they are as far. Null where a list
   * is not full.
   */
  @Nullable Neighbors bounds(int references) {
    int[] start = new int[count.length + 1];
    int[] indices = new int[kl.length];
    double[] values = new double[kl.length];
    for (int i = 0; i < count.length; i++) {
      if (count[i] < k) {
        return null;
      }
      start[i + 1] = (i + 1) * k;
      for (int r = 0; r < k; r++) {
        indices[i * k + r] = references + r;
        values[i * k + r] = kl[i * k + k - 1];
      }
    }
    return Neighbors.of(start, indices, values);
  }

  /** Offers what a search among a buffer's Gaussians has found. */
  void offer(Neighbors found, RowBuffer references) {
    for (int i = 0; i < count.length; i++) {
      for (int r = 0; r < found.count(i); r++) {
        if (found.index(i, r) >= references.gaussians()) {
          break; // one of the bounds
        }
        int row = references.rowOf(found.index(i, r));
        if (!isAmong(i, found.value(i, r), references.number(row))) {
          break; // the next ones are no nearer
        }
        insert(i, found.value(i, r), references.number(row), references.row(row).getBytes());
      }
    }
  }

  /** Returns the lists as bytes. */
  byte[] encoded() {
    long length = 0;
    for (int i = 0; i < count.length; i++) {
      length += Integer.BYTES;
      for (int at = i * k; at < i * k + count[i]; at++) {
        length += Double.BYTES + Long.BYTES + Integer.BYTES + rows[at].length;
      }
    }
    ByteBuffer out = ByteBuffer.allocate(Math.toIntExact(length));
    for (int i = 0; i < count.length; i++) {
      out.putInt(count[i]);
      for (int at = i * k; at < i * k + count[i]; at++) {
        out.putDouble(kl[at]).putLong(number[at]).putInt(rows[at].length).put(rows[at]);
      }
    }
    return out.array();
  }

  /** Offers what other lists of these queries, encoded, have. */
  void offer(byte[] encoded) {
    ByteBuffer in = ByteBuffer.wrap(encoded);
    for (int i = 0; i < count.length; i++) {
      for (int n = in.getInt(); n > 0; n--) {
        double value = in.getDouble();
        long at = in.getLong();
        byte[] row = new byte[in.getInt()];
        in.get(row);
        if (isAmong(i, value, at)) {
          insert(i, value, at, row);
        }
      }
    }
  }
}
