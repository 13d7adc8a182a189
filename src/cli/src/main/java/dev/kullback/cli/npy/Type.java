package dev.kullback.cli.npy;

import java.util.EnumSet;
import java.util.Set;

/** The types of elements that files have; those without a size are known only to be refused by name. */
public enum Type {
  FLOAT16(2),
  /** The upper half of a float32. */
  BFLOAT16(2),
  FLOAT32(4),
  FLOAT64(8),
  INT8(1),
  INT16(2),
  INT32(4),
  INT64(8),
  UINT8(1),
  UINT16(2),
  UINT32(4),
  UINT64(8),
  BOOL(0),
  LONG_DOUBLE(0),
  COMPLEX(0),
  TEXT(0),
  TIME(0),
  OBJECT(0),
  FIELDS(0),
  BYTES(0),
  OTHER(0);

  /** Those that become float32 or float64 in memory. */
  static final Set<Type> FLOATS = EnumSet.range(FLOAT16, FLOAT64);

  /** Those that become int64 in memory. */
  static final Set<Type> INTEGERS = EnumSet.range(INT8, UINT64);

  private static final Set<Type> UNSIGNED = EnumSet.range(UINT8, UINT64);

  private final int bytes;

  Type(int bytes) {
    this.bytes = bytes;
  }

  int bytes() {
    return bytes;
  }

  /** Whether rounding to this type shows in the sum of a few numbers. */
  public boolean isHalf() {
    return this == FLOAT16 || this == BFLOAT16;
  }

  /** Returns the relative error of a half that is a quotient by a sum, where both were rounded. */
  public double relativeRounding() {
    return this == FLOAT16 ? 0x1p-10 : 0x1p-7;
  }

  /** Returns the error of a half below the smallest normal number, 2⁻¹⁴ or 2⁻¹²⁶. */
  public double absoluteRounding() {
    return this == FLOAT16 ? 0x1p-25 : 0x1p-134;
  }

  boolean isUnsigned() {
    return UNSIGNED.contains(this);
  }

  /** Returns the type of NumPy or PyTorch to convert to, without loss where there is one, for floats or for the wanted integers. */
  String target(String wanted) {
    return !wanted.startsWith("float")
        ? wanted
        : bytes == 1 || this == INT16 || this == UINT16 || this == BOOL ? "float32" : "float64";
  }
}
