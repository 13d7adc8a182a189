package dev.kullback.cli.output;

import dev.kullback.IndexNeighbors;
import dev.kullback.Neighbors;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.Report;
import java.lang.foreign.ValueLayout;

/**
 * Writes lists of k neighbors a row to a file of values, [N,k], and one of indices or ids. A shorter list is filled up with entries that
 * stand for none: index -1, value infinity.
 */
public final class NeighborOutput {
  /** The index of an entry that stands for none. */
  public static final int NONE = -1;

  private final OutputFile values;
  private final OutputFile indices;
  private final int k;
  private final ValueLayout element;
  private final boolean isDouble;
  private final boolean isLong;
  private final Stats stats = new Stats();
  private long filled;

  /** Begins files of int32 indices. */
  public NeighborOutput(
      OutputFile values, OutputFile indices, long rows, int k, ValueLayout element) {
    this(values, indices, rows, k, element, ValueLayout.JAVA_INT);
  }

  /** Begins files of exact values and int64 ids. */
  public static NeighborOutput ofIds(OutputFile values, OutputFile ids, long rows, int k) {
    return new NeighborOutput(values, ids, rows, k, ValueLayout.JAVA_DOUBLE, ValueLayout.JAVA_LONG);
  }

  private NeighborOutput(
      OutputFile values,
      OutputFile indices,
      long rows,
      int k,
      ValueLayout element,
      ValueLayout index) {
    this.values = values;
    this.indices = indices;
    this.k = k;
    this.element = element;
    isDouble = element.byteSize() == Double.BYTES;
    isLong = index.byteSize() == Long.BYTES;
    values.requireSpace(Npy.bytes(rows, k, element));
    indices.requireSpace(Npy.bytes(rows, k, index));
    values.write(Npy.header(element, rows, k));
    indices.write(Npy.header(index, rows, k));
  }

  /** Appends rows. */
  public void add(Neighbors found) {
    for (int i = 0; i < found.size(); i++) {
      add(found, i, NONE);
    }
  }

  /** Appends rows of k + 1 without index {@code own + i} in row i, or without their last. */
  public void addOthers(Neighbors found, int own) {
    for (int i = 0; i < found.size(); i++) {
      add(found, i, own + i);
    }
  }

  /** Appends rows of an index. */
  public void add(IndexNeighbors found) {
    for (int i = 0; i < found.size(); i++) {
      for (int r = 0; r < found.count(i); r++) {
        put(found.id(i, r), found.value(i, r));
      }
      fill(k - found.count(i));
    }
  }

  private void add(Neighbors found, int i, int leftOut) {
    int left = k;
    for (int r = 0; r < found.count(i) && left > 0; r++) {
      if (found.index(i, r) != leftOut) {
        put(found.index(i, r), found.value(i, r));
        left--;
      }
    }
    fill(left);
  }

  private void put(long index, double value) {
    putIndex(index);
    stats.add(values.put(value, isDouble));
  }

  private void fill(int left) {
    for (int r = 0; r < left; r++) {
      putIndex(NONE);
      values.put(Double.POSITIVE_INFINITY, isDouble);
    }
    filled += left;
  }

  private void putIndex(long index) {
    if (isLong) {
      indices.putLong(index);
    } else {
      indices.putInt((int) index);
    }
  }

  /**
   * Reports the lists, and the time since the report's start.
   *
   * @param what their formula and the numbers of Gaussians
   * @param dimension theirs
   */
  public void describe(Report report, String what, int dimension) {
    stats.describe(report, what, dimension, element);
    describeFilled(report);
  }

  /** Reports lists of which no dimension is known. */
  public void describe(Report report, String what) {
    stats.describe(report, what, element);
    describeFilled(report);
  }

  private void describeFilled(Report report) {
    if (filled > 0) {
      report.line(
          "%d entries stand for none, with %s -1 and value inf, as fewer than k were found",
          filled, isLong ? "id" : "index");
    }
    report.put("filled", filled);
  }
}
