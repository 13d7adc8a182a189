package dev.kullback.internal.index.search;

import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.work.Poll;

/** A run of panels, and the numbers of each row that its bounds need. Arrays begin with the first row. */
final class Block {
  /** Panels that fit the second-level cache, with which several queries go through them: 256 KiB. */
  private static final long MOST_BYTES = 1 << 18;

  private static final int MOST_PANELS = 256;

  int firstPanel;
  int panels;
  boolean isDouble;
  float leastPrecision;

  /** Rows, without those that fill the last panel. */
  int rows;

  /** The last number of the panels; kept so that no compiler leaves out reading it. */
  float last;

  double[] logDet = {};
  double[] bound = {};
  float[] slack = {};
  float[] length = {};

  /** Returns an even number, as panels of codes have the rows of two. */
  static int mostPanels(Segment segment) {
    return Math.clamp(MOST_BYTES / segment.panelBytes(), 2, MOST_PANELS) & -2;
  }

  int firstRow() {
    return firstPanel * PanelScan.LANES;
  }

  void load(Segment from, int first, int count) {
    isDouble = from.isDouble();
    leastPrecision = from.leastPrecision();
    firstPanel = first;
    panels = count;
    rows = Math.min(from.size() - firstRow(), count * PanelScan.LANES);
    if (!from.hasPanels()) {
      return;
    }
    if (logDet.length < rows) {
      int length = mostPanels(from) * PanelScan.LANES;
      logDet = new double[length];
      bound = new double[length];
      slack = new float[length];
      this.length = new float[length];
    }
    long row = firstRow();
    from.readNumbers(row, rows, logDet, bound, slack, this.length);
    // where a file was cut off, a vector's load would end the process by SIGBUS; this one throws
    // InternalError before it
    last = from.lastOfPanel(first + count - 1);
    Poll.now();
  }
}
