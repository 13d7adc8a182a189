package dev.kullback.internal.index.search;

import java.util.concurrent.atomic.AtomicLongArray;

/** Limits of some queries' rankings, of which threads that scan different panels tell one another. */
final class SharedLimits {
  /** Limits of a search that one thread does alone. */
  static final SharedLimits NONE = new SharedLimits(0);

  private static final long INFINITY = Double.doubleToRawLongBits(Double.POSITIVE_INFINITY);

  /** Bits of the limits, which are ordered as they are: none is negative. */
  private final AtomicLongArray bits;

  SharedLimits(int queries) {
    bits = new AtomicLongArray(queries);
    for (int i = 0; i < queries; i++) {
      bits.setPlain(i, INFINITY);
    }
  }

  double get(int i) {
    return bits.length() == 0 ? Double.POSITIVE_INFINITY : Double.longBitsToDouble(bits.get(i));
  }

  void put(int i, double limit) {
    if (bits.length() > 0 && limit < get(i)) {
      bits.accumulateAndGet(i, Double.doubleToRawLongBits(limit), Math::min);
    }
  }
}
