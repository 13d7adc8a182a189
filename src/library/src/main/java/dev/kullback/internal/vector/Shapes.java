package dev.kullback.internal.vector;

/** Shapes of the micro-kernels by the number of vector registers; a line of the table for each instruction set that wants its own. */
public final class Shapes {
  /**
   * A line of the table.
   *
   * @param rows rows of a micro-kernel of diagonal Gaussians, two vectors wide: 16 or 8 accumulators. With 512 bits and 32 registers, 6, 8,
   *     10 and 12 rows ran at 54, 56, 55 and 55·10⁹ (i,j,h)/s; with three vectors 6, 7 and 8 rows at 55, 32 and 39, as C2 begins to spill;
   *     with one vector 8 rows at 40 (D = 256; Zen 5, one core, JDK 25.0.3; the ceiling of two fma an (i,j,h) is 60 at the clock of that
   *     day). For 16 registers see {@code FloatSums.java.ftl}. Processors of 32 registers and narrower vectors get the shapes of 512 bits,
   *     untried
   * @param productRows rows of a micro-kernel of the full-covariance product, two vectors wide. With 16 registers 4 x 2 vectors of 256 bits
   *     ran at 22 … 23.8·10⁹ multiply-adds/s, 8 x 1 at 18.7 … 20.7, 5 x 2 at 22 … 24, 6 x 2 at 11, as C2 spills (Zen 3, from the L1
   *     cache, the ceiling is 24)
   * @param chernoffColumns columns of a tile of a pair's factor: the sums of 4 x 4 entries need 32 registers
   */
  private record Shape(int rows, int productRows, int chernoffColumns) {
    /** Refuses a shape for which the callers of micro-kernels have no branch: they would take another. */
    Shape {
      if ((rows != 4 && rows != 8)
          || (productRows != 4 && productRows != 8)
          || (chernoffColumns != 2 && chernoffColumns != 4)) {
        throw new IllegalStateException(
            "no micro-kernels of %d, %d and %d".formatted(rows, productRows, chernoffColumns));
      }
    }
  }

  private static final Shape SHAPE =
      switch (VectorWidth.REGISTERS) {
        case 16 -> new Shape(4, 4, 2);
        case 32 -> new Shape(8, 8, 4);
        default -> throw new IllegalStateException("%d registers".formatted(VectorWidth.REGISTERS));
      };

  /** Rows of a panel of diagonal Gaussians. */
  public static final int MR = SHAPE.rows;

  public static final int PRODUCT_ROWS = SHAPE.productRows;
  public static final int CHERNOFF_COLUMNS = SHAPE.chernoffColumns;

  private Shapes() {}

  /** Returns the columns of a panel of diagonal Gaussians, in elements of {@code bits}: two vectors, or a row panel if that is more. */
  static int columns(int bits) {
    return Math.max(2 * VectorWidth.BITS / bits, MR);
  }
}
