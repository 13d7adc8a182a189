package dev.kullback.internal.vector;

import dev.kullback.internal.numerics.Measure;

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

  static Summand of(Measure measure) {
    return switch (measure.family()) {
      case WASSERSTEIN_2 -> WASSERSTEIN_2;
      case JEFFREYS -> JEFFREYS;
      case CHERNOFF, RENYI, HELLINGER -> CHERNOFF;
      case KL, REVERSE_KL -> throw new IllegalArgumentException(measure.toString());
    };
  }
}
