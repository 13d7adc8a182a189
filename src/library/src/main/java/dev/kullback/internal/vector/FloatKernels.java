package dev.kullback.internal.vector;

import dev.kullback.internal.plain.PairKl;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * Tiles of {@code S_ij = Σ_h [(μ_ih − μ_jh)² + v_ih] / v_jh − D} in float: packs a block's rows, and walks a tile by {@link
 * FloatMicroKernels}. The build derives {@code DoubleKernels} from this text.
 *
 * <p>Layouts, for column panel b, row panel a, dimension h:
 *
 * <pre>
 * columns [b][h][2][NR]   μ, 1/v of the NR columns of panel b; the vector side
 * rows    [a][h][2][MR]   μ, v of the MR rows of panel a; the broadcast side, packed from columns block by block
 * </pre>
 *
 * <p>The mean enters as a difference, so large means do not cancel; what {@code − D} cancels is within the error bound that
 * {@link PairKl} states. Subtracting {@code v_j} in every term instead takes a fourth instruction and another vector of the panel: 52.6
 * against 55.8·10⁹ (i,j,h)/s.
 *
 * <p>An entry's value depends on its row and column alone: every lane sees the same operations in the same order, whatever the
 * species, the tile and the position in it.
 */
final class FloatKernels {
  static final VectorSpecies<Float> S = Species.FLOAT;

  static final int MR = FloatPanels.MR;
  static final int NR = FloatPanels.NR;
  static final int KC = FloatPanels.KC;
  static final int PROMOTED = FloatPanels.PROMOTED;

  /** MR lanes, or as many as a vector has. */
  private static final VectorSpecies<Float> ROW =
      VectorSpecies.of(
          float.class, VectorShape.forBitSize(Math.min(VectorWidth.BITS, MR * Float.SIZE)));

  private static final int V = S.length();

  private FloatKernels() {}

  /** Rows [from, to), to the start of {@code rows}; {@code from} is a multiple of MR. */
  static void packRows(float[] columns, int d, int from, int to, float[] rows) {
    int at = 0;
    for (int a = from; a < to; a += MR) {
      int k = (a - a % NR) * 2 * d + a % NR;
      for (int h = 0; h < d; h++, at += 2 * MR, k += 2 * NR) {
        for (int i = 0; i < MR; i += ROW.length()) {
          FloatVector.fromArray(ROW, columns, k + i).intoArray(rows, at + i);
          FloatVector.broadcast(ROW, 1)
              .div(FloatVector.fromArray(ROW, columns, k + NR + i))
              .intoArray(rows, at + MR + i);
        }
      }
    }
  }

  /**
   * {@code sum[r][c] = S + D} of one tile, row-major {@code [rowCount, NR]}, promoted every so many dimensions. What the kernels read of
   * the columns stays in the L1 cache for every row panel after the first.
   *
   * @param rowPanel the first row panel
   * @param rowCount, columnCount how many count; up to whole panels the others may be computed too
   * @param acc scratch of the same shape
   * @param promote false, with at most PROMOTED dimensions, to leave the result in {@code acc}
   */
  static void tile(
      float[] rows,
      int rowPanel,
      int rowCount,
      float[] columns,
      int columnPanel,
      int columnCount,
      int d,
      float[] acc,
      double[] sum,
      boolean promote) {
    int c = columnPanel * NR * 2 * d;
    for (int h = 0; h < d; h += KC) {
      int length = Math.min(KC, d - h);
      boolean first = h % PROMOTED == 0;
      int at = c + h * 2 * NR;
      for (int i = 0; i < rowCount; i += MR) {
        int r = (rowPanel * MR + i) * 2 * d + h * 2 * MR;
        for (int j = 0; j < columnCount; j += 2 * V) {
          micro(
              rows,
              r,
              rowCount - i,
              columns,
              at + j,
              columnCount - j,
              length,
              acc,
              i * NR + j,
              first);
        }
      }
      if (promote && (h + KC >= d || (h + KC) % PROMOTED == 0)) {
        Epilogue.promote(acc, sum, Math.ceilDiv(rowCount, MR) * MR * NR, h < PROMOTED);
      }
    }
  }

  /** Up to MR rows by up to two vectors of columns. */
  private static void micro(
      float[] rows,
      int r,
      int rowCount,
      float[] columns,
      int c,
      int columnCount,
      int length,
      float[] acc,
      int to,
      boolean first) {
    if (MR == 4 && columnCount > V) {
      FloatMicroKernels.tile4x2Fenced(rows, r, columns, c, length, acc, to, first);
    } else if (MR == 4) {
      FloatMicroKernels.tile4x1(rows, r, columns, c, length, acc, to, first);
    } else if (columnCount <= V) {
      FloatMicroKernels.tile8x1(rows, r, columns, c, length, acc, to, first);
    } else if (rowCount <= 4) { // where a batch ends: 3 of 93 µs at 100 x 256 (Zen 5)
      FloatMicroKernels.tile4x2(rows, r, columns, c, length, acc, to, first);
    } else {
      FloatMicroKernels.tile8x2(rows, r, columns, c, length, acc, to, first);
    }
  }
}
