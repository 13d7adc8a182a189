package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Reduces each row to one number, or to one of each mixture whose components are its columns. A row's blocks of columns give two numbers at most, which are folded in the blocks' order, whichever
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

  /** Numbers of a band, 4 MiB; a band has 8 rows at least. */
  private static final int MOST_NUMBERS = 1 << 18;

  private static final double[] NONE = {};
  private static final int[] WHOLE = {0, 0};

  private Kind kind = Kind.MIN;

  /** Where the columns of each part begin, and where the last ends. */
  private int[] offsets = WHOLE;

  /** Those of a call with one part. */
  private final int[] whole = {0, 0};

  private int parts = 1;
  private double @Nullable [] logWeights;
  private double[] out = NONE;

  /** Two numbers of each row and block, if bands are cut into spans. */
  private double[] partial = NONE;

  private int blocks;

  /** Describes a call. */
  public void set(Kind kind, int columns, double @Nullable [] logWeights, double[] out) {
    whole[1] = columns;
    set(kind, whole, logWeights, out);
  }

  /** Describes a call in which each row has a number of each part of the columns. */
  public void set(Kind kind, int[] offsets, double @Nullable [] logWeights, double[] out) {
    this.kind = kind;
    this.offsets = offsets;
    this.logWeights = logWeights;
    this.out = out;
    parts = offsets.length - 1;
  }

  /** Drops the caller's arrays. */
  public void clear() {
    logWeights = null;
    offsets = WHOLE;
    out = NONE;
    if (partial.length > KeySort.MOST_KEPT) {
      partial = NONE;
    }
  }

  @Override
  public int bandRows() {
    int rows = Math.clamp(MOST_NUMBERS / parts, BlockKernel.ROW_PANEL, BAND_ROWS);
    return rows - rows % BlockKernel.ROW_PANEL;
  }

  @Override
  public int mostSpans() {
    return parts == 1 ? Integer.MAX_VALUE : 1;
  }

  @Override
  public void cut(int rows, int spans) {
    blocks = Math.ceilDiv(offsets[parts], BLOCK_COLUMNS);
    if (spans > 1 && partial.length < 2 * rows * blocks) {
      partial = new double[2 * rows * blocks];
    }
  }

  @Override
  public void begin(int row0, int row1, BandState band) {
    double first = kind.fold == RowQuery.Kind.SUM ? 0 : Double.POSITIVE_INFINITY;
    int numbers = (row1 - row0) * parts;
    double[] state = band.state(2 * numbers);
    for (int i = 0; i < numbers; i++) {
      state[2 * i] = first;
      state[2 * i + 1] = 0;
    }
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    int width = column1 - column0;
    int found = Arrays.binarySearch(offsets, column0);
    for (int part = found < 0 ? -found - 2 : found;
        part < parts && offsets[part] < column1;
        part++) {
      int first = Math.max(offsets[part], column0);
      int end = Math.min(offsets[part + 1], column1);
      for (int i = row0; i < row1; i++) {
        int from = (i - row0) * width + first - column0;
        add(i, part, first, kl, from, from + end - first, band);
      }
    }
  }

  /** Adds columns from {@code column} on of a part, {@code kl[from … to)}. */
  private void add(int i, int part, int column, double[] kl, int from, int to, BandState band) {
    double x;
    double sum = 0;
    switch (kind) {
      case MIN -> x = band.scan.min(kl, from, to);
      case SUM -> x = band.scan.sum(kl, from, to);
      case LOG_SUM_EXP -> {
        weigh(kl, from, to - from, column);
        x = band.scan.min(kl, from, to);
        if (x < Double.POSITIVE_INFINITY) { // ∞ − ∞ is NaN
          sum = band.scan.sumExp(x, kl, from, to);
        }
      }
      default -> throw new AssertionError(kind);
    }
    if (band.isWhole()) {
      fold(x, sum, band.state(0), 2 * ((i - band.first) * parts + part));
    } else {
      int at = 2 * (i * blocks + column / BLOCK_COLUMNS);
      partial[at] = x;
      partial[at + 1] = sum;
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
    for (int i = 0; i < (row1 - row0) * parts; i++) {
      double x = state[2 * i];
      out[row0 * parts + i] =
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
