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

  boolean met(double value, double limit) {
    return switch (this) {
      case AT_MOST -> value <= limit;
      case BELOW -> value < limit;
      case AT_LEAST -> value >= limit;
      case NONE -> true;
    };
  }

  /** Returns the verdict for a table's last column, as {@code ≤ 3, met}. */
  String verdict(double value, double limit) {
    if (this == NONE) {
      return "";
    }
    return sign + " " + Report.number(limit) + (met(value, limit) ? ", met" : ", **missed**");
  }
}
