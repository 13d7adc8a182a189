package dev.kullback.internal.numerics;

import java.util.Arrays;

/** Tells whether many numbers are equal, 0 and −0 among them, which {@link Arrays} tells apart. The build derives {@code DoubleEquality} from this text. */
public final class FloatEquality {
  private FloatEquality() {}

  /** Whether {@code x[from + k] == y[start + k]} for k in [0, n), or these have the same bits. */
  public static boolean areEqual(float[] x, int from, float[] y, int start, int n) {
    int k = Arrays.mismatch(x, from, from + n, y, start, start + n);
    while (k >= 0 && k < n && x[from + k] == y[start + k]) {
      k++;
    }
    return k < 0 || k == n;
  }
}
