package dev.kullback.internal.numerics;

/** Tells whether many floats lie between two bounds. */
public interface RangeCheck {
  /** Checks by plain code. */
  RangeCheck PLAIN =
      new RangeCheck() {
        @Override
        public boolean contains(double least, double most, float[] values, int from, int to) {
          return FloatRange.contains(least, most, values, from, to);
        }
      };

  /** Whether {@code least ≤ values[i] ≤ most} for i in [from, to); false for NaN. */
  boolean contains(double least, double most, float[] values, int from, int to);
}
