package dev.kullback.internal.verify;

import java.util.Arrays;

/** What it should give, within absolute errors. */
@SuppressWarnings("ArrayRecordComponent") // never compared
record Expected(double[] values, double[] allowed, int[] indices) {
  static final int[] NONE = {};

  /** Of numbers that must keep the contract. */
  static Expected of(double[] values, double contract) {
    return new Expected(values, scaled(values, contract), NONE);
  }

  static double[] scaled(double[] values, double factor) {
    return Arrays.stream(values).map(x -> Math.abs(x) * factor).toArray();
  }
}
