package dev.kullback;

import org.jspecify.annotations.Nullable;

/** One number of each row. */
final class RowStatistic extends RowReduction {
  enum Kind {
    MIN,
    SUM,
    MEAN,
    LOG_SUM_EXP
  }

  /** Terms of less than e⁻⁶⁰ times the greatest so far are left out: 2³¹ of them do not reach half an ulp. */
  private static final double NEGLIGIBLE = -60;

  private static final double[] NONE = {};

  private Kind kind = Kind.MIN;
  private int columns;
  private double @Nullable [] logWeights;
  private double[] out = NONE;

  /** Describes a call. */
  void set(Kind kind, int columns, double @Nullable [] logWeights, double[] out) {
    this.kind = kind;
    this.columns = columns;
    this.logWeights = logWeights;
    this.out = out;
  }

  /** Drops the caller's arrays. */
  void clear() {
    logWeights = null;
    out = NONE;
  }

  @Override
  void begin(int row0, int row1, Tile t) {
    double first =
        switch (kind) {
          case MIN -> Double.POSITIVE_INFINITY;
          case SUM, MEAN -> 0;
          case LOG_SUM_EXP -> Double.NEGATIVE_INFINITY;
        };
    double[] state = t.state(2 * (row1 - row0));
    for (int i = 0; i < row1 - row0; i++) {
      state[2 * i] = first;
      state[2 * i + 1] = 0;
    }
  }

  @Override
  void block(int row0, int row1, int column0, int column1, Tile t) {
    double[] kl = t.block64();
    int width = column1 - column0;
    double[] state = t.state(2 * (row1 - row0));
    for (int i = 0; i < row1 - row0; i++) {
      switch (kind) {
        case MIN -> state[2 * i] = Math.min(state[2 * i], min(kl, i * width, width));
        case SUM, MEAN -> state[2 * i] += sum(kl, i * width, width);
        case LOG_SUM_EXP -> addExp(kl, i * width, width, column0, state, 2 * i);
      }
    }
  }

  @Override
  void end(int row0, int row1, Tile t) {
    double[] state = t.state(2 * (row1 - row0));
    for (int i = 0; i < row1 - row0; i++) {
      double x = state[2 * i];
      out[row0 + i] =
          switch (kind) {
            case MIN, SUM -> x;
            case MEAN -> x / columns;
            case LOG_SUM_EXP -> x == Double.NEGATIVE_INFINITY ? x : x + Math.log(state[2 * i + 1]);
          };
    }
  }

  private static double min(double[] kl, int from, int width) {
    double min = kl[from];
    for (int j = from + 1; j < from + width; j++) {
      min = Math.min(min, kl[j]);
    }
    return min;
  }

  /** Four partial sums: shorter chains, and smaller errors. */
  private static double sum(double[] kl, int from, int width) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int j = from;
    for (; j + 4 <= from + width; j += 4) {
      a += kl[j];
      b += kl[j + 1];
      c += kl[j + 2];
      d += kl[j + 3];
    }
    for (; j < from + width; j++) { // scalar tail
      a += kl[j];
    }
    return (a + b) + (c + d);
  }

  /** {@code state[at]} is the greatest of w − KL so far, {@code state[at + 1]} the sum of {@code exp(w − KL)} over its. */
  private void addExp(double[] kl, int from, int width, int column, double[] state, int at) {
    double[] w = logWeights;
    if (w != null) {
      for (int j = 0; j < width; j++) {
        double weight = w[column + j];
        // ∞ − ∞ is NaN: without weight a term is nothing
        kl[from + j] =
            weight == Double.NEGATIVE_INFINITY ? Double.POSITIVE_INFINITY : kl[from + j] - weight;
      }
    }
    double max = state[at];
    double greatest = Math.max(max, -min(kl, from, width));
    if (greatest == Double.NEGATIVE_INFINITY) {
      return;
    }
    double sum = max == Double.NEGATIVE_INFINITY ? 0 : state[at + 1] * Math.exp(max - greatest);
    for (int j = from; j < from + width; j++) {
      double x = -kl[j] - greatest;
      if (x > NEGLIGIBLE) {
        sum += Math.exp(x);
      }
    }
    state[at] = greatest;
    state[at + 1] = sum;
  }
}
