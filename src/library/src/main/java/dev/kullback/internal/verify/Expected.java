package dev.kullback.internal.verify;

import java.util.Arrays;

/** Expected result of an operation, with the allowed absolute errors of its values. */
record Expected(double[] values, double[] allowed, int[] indices) {
  static final int[] NONE = {};

  /** Numbers that must keep a relative error. */
  static Expected of(double[] values, double contract) {
    return new Expected(values, scaled(values, contract), NONE);
  }

  /** The same, whose values must keep another relative error. */
  Expected within(double contract) {
    return new Expected(values, scaled(values, contract), indices);
  }

  /** Returns the error of an entry of a result, relative to the allowed one. */
  double error(Result r, int k) {
    double error = Math.abs(r.values[k] - values[k]);
    return r.values[k] == values[k]
        ? 0
        : Double.isNaN(error) ? Double.POSITIVE_INFINITY : error / allowed[k];
  }

  static double[] scaled(double[] values, double factor) {
    return Arrays.stream(values).map(x -> Math.abs(x) * factor).toArray();
  }
}
