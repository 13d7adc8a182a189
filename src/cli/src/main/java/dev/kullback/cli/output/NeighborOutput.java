package dev.kullback.cli.output;

import dev.kullback.Neighbors;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.Report;
import java.lang.foreign.ValueLayout;

/**
 * Writes lists of k neighbors a row to a file of values, [N,k], and one of indices. A shorter list is filled up with entries that
 * stand for none: index -1, value infinity.
 */
public final class NeighborOutput {
  /** The index of an entry that stands for none. */
  static final int NONE = -1;

  private final OutputFile values;
  private final OutputFile indices;
  private final int k;
  private final ValueLayout element;
  private final boolean isDouble;
  private final Stats stats = new Stats();
  private long filled;

  public NeighborOutput(
      OutputFile values, OutputFile indices, long rows, int k, ValueLayout element) {
    this.values = values;
    this.indices = indices;
    this.k = k;
    this.element = element;
    isDouble = element.byteSize() == Double.BYTES;
    values.requireSpace(Npy.bytes(rows, k, element));
    indices.requireSpace(Npy.bytes(rows, k, ValueLayout.JAVA_INT));
    values.write(Npy.header(element, rows, k));
    indices.write(Npy.header(ValueLayout.JAVA_INT, rows, k));
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

  private void add(Neighbors found, int i, int leftOut) {
    int left = k;
    for (int r = 0; r < found.count(i) && left > 0; r++) {
      if (found.index(i, r) != leftOut) {
        indices.putInt(found.index(i, r));
        stats.add(values.put(found.value(i, r), isDouble));
        left--;
      }
    }
    filled += left;
    for (; left > 0; left--) {
      indices.putInt(NONE);
      values.put(Double.POSITIVE_INFINITY, isDouble);
    }
  }

  public void describe(Report report, String what) {
    stats.describe(report, what, element);
    if (filled > 0) {
      report.line(
          "%d entries stand for none, with index -1 and value inf: there are fewer than k", filled);
    }
    report.put("filled", filled);
  }
}
