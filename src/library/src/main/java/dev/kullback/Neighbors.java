package dev.kullback;

import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.rows.NeighborLists;
import java.util.Objects;

/**
 * Some columns j of each row i of the matrix {@code KL(q_i ‖ p_j)}, or of {@code KL(p_j ‖ q_i)}, in nats: what a search of a
 * {@link KlEngine} found. The value of an entry is that of the matrix at its row and column. {@link Query#offset} may have been added to the
 * columns.
 *
 * @since 0.1.0
 */
public final class Neighbors extends SearchResult {
  final NeighborLists lists;

  Neighbors(NeighborLists lists) {
    super(lists.start(), lists.values());
    this.lists = lists;
  }

  /**
   * {@return neighbors from arrays, such as those of another process's result; the arrays become this object's own}
   *
   * @param start N + 1 positions, the first 0 and none less than the one before: row i has the entries
   *     {@code start[i]} to {@code start[i + 1] − 1}
   * @param indices the columns of all rows, none negative
   * @param values the divergences of all rows, in nats, none negative or NaN
   * @throws IllegalArgumentException if the arrays are not of this form, or differ in length
   */
  public static Neighbors of(int[] start, int[] indices, double[] values) {
    Objects.requireNonNull(start, "start");
    Objects.requireNonNull(indices, "indices");
    Objects.requireNonNull(values, "values");
    if (start.length == 0 || start[0] != 0) {
      throw new IllegalArgumentException("start must begin with 0");
    }
    for (int i = 1; i < start.length; i++) {
      if (start[i] < start[i - 1]) {
        throw new IllegalArgumentException(
            "start[%d] is %d, less than start[%d], which is %d"
                .formatted(i, start[i], i - 1, start[i - 1]));
      }
    }
    int length = start[start.length - 1];
    if (indices.length != length || values.length != length) {
      throw new IllegalArgumentException(
          "start ends with %d, but there are %d indices and %d values"
              .formatted(length, indices.length, values.length));
    }
    for (int s = 0; s < length; s++) {
      if (indices[s] < 0 || !(values[s] >= 0)) {
        throw new IllegalArgumentException(
            "entry %d has index %d and value %s; neither may be negative or NaN"
                .formatted(s, indices[s], values[s]));
      }
    }
    return new Neighbors(new NeighborLists(start, indices, values));
  }

  /**
   * {@return the k nearest neighbors of each row of several lists, by value and then index}
   *
   * <p>For results of {@linkplain Query#exact() exact} searches of one q among different blocks of references,
   * with at least this k and indices {@linkplain Query#offset in the whole set's numbering}, this is exactly the
   * result of a search among all. A row has fewer than k neighbors if the lists have. An index that comes twice in a row
   * is an error: blocks overlap then, or their numbering does.
   *
   * @param k the number of neighbors, at least 1
   * @param lists one list or more, of as many rows
   * @throws IllegalArgumentException if k is less than 1, there are no lists, they differ in their rows, a row is not
   *     ascending or has an index twice, or there are more than 2³¹ − 9 neighbors
   */
  public static Neighbors merge(int k, Neighbors... lists) {
    if (k < 1) {
      throw new IllegalArgumentException("k must be at least 1, is " + k);
    }
    if (lists.length == 0) {
      throw new IllegalArgumentException("there are no lists to merge");
    }
    NeighborLists[] all = new NeighborLists[lists.length];
    for (int l = 0; l < lists.length; l++) {
      String name = "lists[" + l + "]";
      all[l] = Objects.requireNonNull(lists[l], name).lists;
      if (all[l].size() != all[0].size()) {
        throw new IllegalArgumentException(
            "%s has %d rows but lists[0] has %d; they must be of the same q"
                .formatted(name, all[l].size(), all[0].size()));
      }
      Arguments.checkOrder(name, all[l]);
    }
    Arguments.checkMerge(k, all);
    return new Neighbors(NeighborLists.merge(k, all));
  }

  /**
   * {@return the column of neighbor r of row i}
   *
   * @param i the row, in [0, N)
   * @param r the neighbor, in [0, count(i))
   * @throws IndexOutOfBoundsException if i or r is not in its range
   */
  public int index(int i, int r) {
    return lists.indices()[at(i, r)];
  }

  /** {@return the columns of all rows, as this object's own array} */
  public int[] indices() {
    return lists.indices();
  }

  @Override
  long idAt(int entry) {
    return lists.indices()[entry];
  }
}
