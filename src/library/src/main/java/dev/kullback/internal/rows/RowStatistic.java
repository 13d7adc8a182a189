package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.RowScan;
import org.jspecify.annotations.Nullable;

/** One number of each row. */
public final class RowStatistic extends RowReduction {
  public enum Kind {
    MIN,
    SUM,
    MEAN,
    LOG_SUM_EXP
  }

  private static final double[] NONE = {};

  private Kind kind = Kind.MIN;
  private int columns;
  private double @Nullable [] logWeights;
  private double[] out = NONE;

  /** Describes a call. */
  public void set(Kind kind, int columns, double @Nullable [] logWeights, double[] out) {
    this.kind = kind;
    this.columns = columns;
    this.logWeights = logWeights;
    this.out = out;
  }

  /** Drops the caller's arrays. */
  public void clear() {
    logWeights = null;
    out = NONE;
  }

  @Override
  public void begin(int row0, int row1, Band band) {
    double first =
        switch (kind) {
          case MIN, LOG_SUM_EXP -> Double.POSITIVE_INFINITY;
          case SUM, MEAN -> 0;
        };
    double[] state = band.state(2 * (row1 - row0));
    for (int i = 0; i < row1 - row0; i++) {
      state[2 * i] = first;
      state[2 * i + 1] = 0;
    }
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, Band band) {
    double[] state = band.state(0);
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      int from = (i - row0) * width;
      int to = from + width;
      int at = 2 * (i - band.first);
      switch (kind) {
        case MIN -> state[at] = Math.min(state[at], band.scan.min(kl, from, to));
        case SUM, MEAN -> state[at] += band.scan.sum(kl, from, to);
        case LOG_SUM_EXP -> {
          weigh(kl, from, width, column0);
          addExp(kl, from, to, band.scan, state, at);
        }
      }
    }
  }

  @Override
  public void end(int row0, int row1, Band band) {
    double[] state = band.state(0);
    for (int i = 0; i < row1 - row0; i++) {
      double x = state[2 * i];
      out[row0 + i] =
          switch (kind) {
            case MIN, SUM -> x;
            case MEAN -> x / columns;
            case LOG_SUM_EXP -> Math.log(state[2 * i + 1]) - x; // without a term −∞ − ∞
          };
    }
  }

  /** KL − w; where w is −∞, without weight, that is ∞. */
  private void weigh(double[] kl, int from, int width, int column) {
    double[] w = logWeights;
    if (w != null) {
      for (int j = 0; j < width; j++) {
        kl[from + j] -= w[column + j];
      }
    }
  }

  /** {@code state[at]} is the least of KL − w so far, {@code state[at + 1]} the sum of {@code exp(w − KL)} over its. */
  private static void addExp(double[] kl, int from, int to, RowScan scan, double[] state, int at) {
    double before = state[at];
    double least = Math.min(before, scan.min(kl, from, to));
    if (least < Double.POSITIVE_INFINITY) { // ∞ − ∞ is NaN
      state[at] = least;
      state[at + 1] = state[at + 1] * Math.exp(least - before) + scan.sumExp(least, kl, from, to);
    }
  }
}
