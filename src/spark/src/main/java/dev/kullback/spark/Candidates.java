package dev.kullback.spark;

import java.io.Serializable;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The nearest of some references to each of N queries, by (kl, id): {@code neighbors[i*width + r]} and its {@code kl}.
 * Exact values make lists of different references comparable.
 *
 * <p>No record, as Spark's Kryo does not read those.
 */
final class Candidates implements Serializable {
  private static final long serialVersionUID = 1;

  /** Number of the queries' block. */
  final int block;

  private final long[] queries;
  private final int width;
  private final long[] neighbors;
  private final double[] kl;

  Candidates(int block, long[] queries, int width, long[] neighbors, double[] kl) {
    this.block = block;
    this.queries = queries;
    this.width = width;
    this.neighbors = neighbors;
    this.kl = kl;
  }

  /** Merges two lists to their k nearest, in any order of merging to the same. */
  static Candidates merge(int k, Candidates a, Candidates b) {
    int n = a.queries.length;
    int width = Math.min(k, a.width + b.width);
    long[] neighbors = new long[n * width];
    double[] kl = new double[n * width];
    for (int i = 0, to = 0; i < n; i++) {
      int atA = i * a.width;
      int atB = i * b.width;
      int endA = atA + a.width;
      int endB = atB + b.width;
      for (int r = 0; r < width; r++, to++) {
        boolean isA = atB == endB || (atA < endA && a.isNearer(atA, b, atB));
        kl[to] = isA ? a.kl[atA] : b.kl[atB];
        neighbors[to] = isA ? a.neighbors[atA++] : b.neighbors[atB++];
      }
    }
    return new Candidates(a.block, a.queries, width, neighbors, kl);
  }

  private boolean isNearer(int at, Candidates other, int otherAt) {
    int order = Double.compare(kl[at], other.kl[otherAt]);
    return order < 0 || (order == 0 && neighbors[at] < other.neighbors[otherAt]);
  }

  /** Rows of id, rank, neighbor, kl. */
  Iterator<InternalRow> rows() {
    return new Rows(
        4,
        neighbors.length,
        (row, at) -> {
          row.setLong(0, queries[at / width]);
          row.setInt(1, at % width + 1);
          row.setLong(2, neighbors[at]);
          row.setDouble(3, kl[at]);
        });
  }
}
