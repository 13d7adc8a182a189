package dev.kullback.spark;

import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.Platform;

/** Reads Catalyst's arrays of float or double. Those in Spark's own format are copied whole, with no call for an element. */
final class ArrayReader {
  private ArrayReader() {}

  /** Returns the index of the first element that is null, or −1. */
  static int firstNull(ArrayData array) {
    int n = array.numElements();
    if (array instanceof UnsafeArrayData unsafe) {
      // behind the number of elements, a bit for each, in words of which unused bits are 0
      long at = unsafe.getBaseOffset() + Long.BYTES;
      long set = 0;
      for (int h = 0; h < n; h += Long.SIZE, at += Long.BYTES) {
        set |= Platform.getLong(unsafe.getBaseObject(), at);
      }
      if (set == 0) {
        return -1;
      }
    }
    for (int h = 0; h < n; h++) {
      if (array.isNullAt(h)) {
        return h;
      }
    }
    return -1;
  }

  /** Copies an array of float without nulls to a part of one that is long enough. */
  static void copyFloats(ArrayData from, float[] to, int at) {
    int n = from.numElements();
    if (from instanceof UnsafeArrayData unsafe) {
      Platform.copyMemory(
          unsafe.getBaseObject(),
          unsafe.getBaseOffset() + UnsafeArrayData.calculateHeaderPortionInBytes(n),
          to,
          Platform.FLOAT_ARRAY_OFFSET + (long) Float.BYTES * at,
          (long) Float.BYTES * n);
    } else {
      System.arraycopy(from.toFloatArray(), 0, to, at, n);
    }
  }

  /** Copies an array of float or double without nulls to a part of one that is long enough. */
  static void copyDoubles(ArrayData from, boolean fromFloat, double[] to, int at) {
    int n = from.numElements();
    if (fromFloat) {
      for (int h = 0; h < n; h++) {
        to[at + h] = from.getFloat(h);
      }
    } else if (from instanceof UnsafeArrayData unsafe) {
      Platform.copyMemory(
          unsafe.getBaseObject(),
          unsafe.getBaseOffset() + UnsafeArrayData.calculateHeaderPortionInBytes(n),
          to,
          Platform.DOUBLE_ARRAY_OFFSET + (long) Double.BYTES * at,
          (long) Double.BYTES * n);
    } else {
      System.arraycopy(from.toDoubleArray(), 0, to, at, n);
    }
  }
}
