package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import org.jspecify.annotations.Nullable;

/**
 * Reduces each row to one number. A row's blocks of columns give two numbers at most, which are folded in the blocks' order, whichever
 * threads computed them.
 */
public final class RowStatistic extends RowReduction {
  public enum Kind {
    MIN("rowMin", RowQuery.Kind.MIN),
    SUM("rowSum", RowQuery.Kind.SUM),
    LOG_SUM_EXP("logSumExp", RowQuery.Kind.LOG_SUM_EXP);

    private final String operation;
    private final RowQuery.Kind fold;

    Kind(String operation, RowQuery.Kind fold) {
      this.operation = operation;
      this.fold = fold;
    }

    /** Returns its method's name. */
    public String operation() {
      return operation;
    }
  }

  private static final double[] NONE = {};

  private Kind kind = Kind.MIN;
  private int columns;
  private double @Nullable [] logWeights;
  private double[] out = NONE;

  /** Two numbers of each row and block, if bands are cut into spans. */
  private double[] partial = NONE;

  private int blocks;

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
    if (partial.length > KeySort.MOST_KEPT) {
      partial = NONE;
    }
  }

  @Override
  public int mostSpans() {
    return Integer.MAX_VALUE;
  }

  @Override
  public void cut(int rows, int spans) {
    blocks = Math.ceilDiv(columns, BLOCK_COLUMNS);
    if (spans > 1 && partial.length < 2 * rows * blocks) {
      partial = new double[2 * rows * blocks];
    }
  }

  @Override
  public void begin(int row0, int row1, BandState band) {
    double first = kind.fold == RowQuery.Kind.SUM ? 0 : Double.POSITIVE_INFINITY;
    double[] state = band.state(2 * (row1 - row0));
    for (int i = 0; i < row1 - row0; i++) {
      state[2 * i] = first;
      state[2 * i + 1] = 0;
    }
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      int from = (i - row0) * width;
      int to = from + width;
      double x;
      double sum = 0;
      switch (kind) {
        case MIN -> x = band.scan.min(kl, from, to);
        case SUM -> x = band.scan.sum(kl, from, to);
        case LOG_SUM_EXP -> {
          weigh(kl, from, width, column0);
          x = band.scan.min(kl, from, to);
          if (x < Double.POSITIVE_INFINITY) { // ∞ − ∞ is NaN
            sum = band.scan.sumExp(x, kl, from, to);
          }
        }
        default -> throw new AssertionError(kind);
      }
      if (band.isWhole()) {
        fold(x, sum, band.state(0), 2 * (i - band.first));
      } else {
        int at = 2 * (i * blocks + column0 / BLOCK_COLUMNS);
        partial[at] = x;
        partial[at + 1] = sum;
      }
    }
  }

  /**
   * Adds a block's numbers to a row's. For {@code logSumExp} they are the least of KL − w and the sum of {@code exp(least − (KL − w))}.
   */
  private void fold(double x, double sum, double[] state, int at) {
    double before = state[at];
    switch (kind) {
      case MIN -> state[at] = Math.min(before, x);
      case SUM -> state[at] = before + x;
      case LOG_SUM_EXP -> {
        double least = Math.min(before, x);
        if (least < Double.POSITIVE_INFINITY) {
          state[at] = least;
          state[at + 1] = state[at + 1] * Math.exp(least - before) + sum * Math.exp(least - x);
        }
      }
    }
  }

  @Override
  public RowQuery query() {
    return RowQuery.number(kind.fold, logWeights);
  }

  @Override
  public boolean take(RowAnswer answer, int i, int piece, BandState band) {
    double x = answer.number(i, piece, 0);
    fold(x, answer.number(i, piece, 1), band.state(0), 2 * (i - band.first));
    return true;
  }

  @Override
  public boolean merge(int row0, int row1, BandState band) {
    begin(row0, row1, band);
    for (int i = row0; i < row1; i++) {
      for (int at = 2 * i * blocks; at < 2 * (i + 1) * blocks; at += 2) {
        fold(partial[at], partial[at + 1], band.state(0), 2 * (i - row0));
      }
    }
    end(row0, row1, band);
    return true;
  }

  @Override
  public void end(int row0, int row1, BandState band) {
    if (!band.isWhole()) {
      return;
    }
    double[] state = band.state(0);
    for (int i = 0; i < row1 - row0; i++) {
      double x = state[2 * i];
      out[row0 + i] =
          switch (kind) {
            case MIN, SUM -> x;
            case LOG_SUM_EXP -> Math.log(state[2 * i + 1]) - x; // −∞ − ∞ if there is no term
          };
    }
  }

  /** Subtracts the weights: KL − w, which is ∞ where w is −∞. */
  private void weigh(double[] kl, int from, int width, int column) {
    double[] w = logWeights;
    if (w != null) {
      for (int j = 0; j < width; j++) {
        kl[from + j] -= w[column + j];
      }
    }
  }
}
