package dev.kullback.spark;

import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The nearest of some references to each of N queries, by (kl, id): query i has {@code neighbors[start[i]]} to {@code start[i + 1]} and
 * their {@code kl}. Exact values make lists of different references comparable. No record, as Spark's Kryo does not read those.
 */
final class Candidates implements Serializable {
  private static final long serialVersionUID = 2;

  /** Number of the queries' block. */
  final int block;

  private final long[] queries;
  private final int[] start;
  private final long[] neighbors;
  private final double[] kl;

  Candidates(int block, long[] queries, int[] start, long[] neighbors, double[] kl) {
    this.block = block;
    this.queries = queries;
    this.start = start;
    this.neighbors = neighbors;
    this.kl = kl;
  }

  /**
   * Searches a block of references for a block of queries: the k nearest of each, or fewer where others searched by this executor are
   * nearer than all that are left.
   */
  static Candidates of(KlEngine engine, Shared.Loaded q, Shared.Loaded p, int k, boolean reverse) {
    int n = q.ids().length;
    double[] limits = q.limits().get(n);
    Query query = Query.nearest(k).exact();
    query = reverse ? query.reverse() : query;
    if (limits != null) {
      query = query.resumeAfter(bounds(limits, k, p.ids().length), 0);
    }
    Neighbors found = engine.search(q.batch(), p.batch(), query);
    Candidates list = of(q, p, found);
    q.limits().put(list.greatest(k));
    return list;
  }

  /**
   * Makes lists of k neighbors with the limit as their divergence, which a search continues: it leaves out what is farther. Their indices
   * are beyond the references', so that these come first where they are as far.
   */
  private static Neighbors bounds(double[] limits, int k, int references) {
    int[] start = new int[limits.length + 1];
    int[] indices = new int[limits.length * k];
    double[] values = new double[indices.length];
    for (int i = 0; i < limits.length; i++) {
      start[i + 1] = (i + 1) * k;
      for (int r = 0; r < k; r++) {
        indices[i * k + r] = references + r;
      }
      Arrays.fill(values, i * k, (i + 1) * k, limits[i]);
    }
    return Neighbors.of(start, indices, values);
  }

  /** The found ones that are references, which come first in a list. */
  private static Candidates of(Shared.Loaded q, Shared.Loaded p, Neighbors found) {
    int n = q.ids().length;
    int[] start = new int[n + 1];
    int[] indices = found.indices();
    for (int i = 0; i < n; i++) {
      int count = 0;
      while (count < found.count(i) && indices[found.start(i) + count] < p.ids().length) {
        count++;
      }
      start[i + 1] = start[i] + count;
    }
    long[] neighbors = new long[start[n]];
    double[] kl = new double[neighbors.length];
    for (int i = 0; i < n; i++) {
      for (int to = start[i], at = found.start(i); to < start[i + 1]; to++, at++) {
        neighbors[to] = p.ids()[indices[at]];
        kl[to] = found.values()[at];
      }
    }
    return new Candidates(q.index(), q.ids(), start, neighbors, kl);
  }

  /** The k-th divergence of each query, infinite where there is none. */
  private double[] greatest(int k) {
    double[] greatest = new double[queries.length];
    for (int i = 0; i < greatest.length; i++) {
      greatest[i] = start[i + 1] - start[i] < k ? Double.POSITIVE_INFINITY : kl[start[i + 1] - 1];
    }
    return greatest;
  }

  /** Merges two lists to their k nearest, in any order of merging to the same. */
  static Candidates merge(int k, Candidates a, Candidates b) {
    int n = a.queries.length;
    int[] start = new int[n + 1];
    for (int i = 0; i < n; i++) {
      long both = (long) a.start[i + 1] - a.start[i] + b.start[i + 1] - b.start[i];
      start[i + 1] = start[i] + (int) Math.min(k, both);
    }
    long[] neighbors = new long[start[n]];
    double[] kl = new double[start[n]];
    for (int i = 0; i < n; i++) {
      int atA = a.start[i];
      int atB = b.start[i];
      int endA = a.start[i + 1];
      int endB = b.start[i + 1];
      for (int to = start[i]; to < start[i + 1]; to++) {
        boolean isA = atB == endB || (atA < endA && a.isNearer(atA, b, atB));
        kl[to] = isA ? a.kl[atA] : b.kl[atB];
        neighbors[to] = isA ? a.neighbors[atA++] : b.neighbors[atB++];
      }
    }
    return new Candidates(a.block, a.queries, start, neighbors, kl);
  }

  private boolean isNearer(int at, Candidates other, int otherAt) {
    int order = Double.compare(kl[at], other.kl[otherAt]);
    return order < 0 || (order == 0 && neighbors[at] < other.neighbors[otherAt]);
  }

  /** Rows of id, rank, neighbor, kl. */
  Iterator<InternalRow> rows() {
    int[] query = {0}; // of the next row
    return new Rows(
        4,
        neighbors.length,
        (row, at) -> {
          while (at == start[query[0] + 1]) {
            query[0]++;
          }
          row.setLong(0, queries[query[0]]);
          row.setInt(1, at - start[query[0]] + 1);
          row.setLong(2, neighbors[at]);
          row.setDouble(3, kl[at]);
        });
  }
}
