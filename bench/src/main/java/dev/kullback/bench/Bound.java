package dev.kullback.bench;

/** Relation in which a figure should be to a limit. */
enum Bound {
  AT_MOST("≤"),
  BELOW("<"),
  AT_LEAST("≥"),
  NONE("");

  private final String sign;

  Bound(String sign) {
    this.sign = sign;
  }

  /** Whether a figure misses its limit, which is said on stderr: the tables hold what was measured, and are published. */
  boolean missed(String figure, double value, double limit) {
    boolean met =
        switch (this) {
          case AT_MOST -> value <= limit;
          case BELOW -> value < limit;
          case AT_LEAST -> value >= limit;
          case NONE -> true;
        };
    if (!met) {
      System.err.printf(
          "missed: %s: %s, limit %s %s%n",
          figure, Report.number(value), sign, Report.number(limit));
    }
    return !met;
  }
}
