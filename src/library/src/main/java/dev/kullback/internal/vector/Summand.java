package dev.kullback.internal.vector;

import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Wasserstein2;

/** What the kernels of {@link MeasureKernel} add up over the dimensions. */
enum Summand {
  WASSERSTEIN_2(2),
  JEFFREYS(3),
  CHERNOFF(2);

  /** Dimensions whose variances are multiplied before the product's exponent is taken apart. */
  static final int RUN = 8;

  /** Dimensions whose quotients have one denominator. */
  static final int RUNS = 32;

  private final int fields;

  Summand(int fields) {
    this.fields = fields;
  }

  /** Returns how many numbers a panel has of a dimension. */
  int fields() {
    return fields;
  }

  static Summand of(Formula formula) {
    return switch (formula) {
      case Wasserstein2 _ -> WASSERSTEIN_2;
      case Jeffreys _ -> JEFFREYS;
      case Chernoff _ -> CHERNOFF;
      default -> throw new IllegalArgumentException(formula.toString());
    };
  }
}
