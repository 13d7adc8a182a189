package dev.kullback.internal.vector;

import dev.kullback.internal.formula.PairKl;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * Sums {@code R_ij = Σ_h [(μ_ih − μ_jh)² + v_ih] / v_jh} of a tile in float, by {@link FloatMicroKernels}. The build derives {@code
 * DoubleKernels} from this text.
 *
 * <p>Layouts, for column panel b, row panel a, dimension h:
 *
 * <pre>
 * columns [b][h][2][NR]   μ, 1/v of the NR columns of panel b; the vector side
 * rows    [a][h][2][MR]   μ, v of the MR rows of panel a; the broadcast side, packed from columns block by block
 * </pre>
 *
 * <p>The mean enters as a difference, so large means do not cancel; the cancellation of {@code ½R} and {@code D/2} is within the error
 * bound that {@link PairKl} states. Subtracting {@code v_j} in every term instead takes a fourth instruction and another vector of the
 * panel: 52.6 against 55.8·10⁹ (i,j,h)/s.
 *
 * <p>An entry's value depends on its row and column alone: every lane sees the same operations in the same order, whatever the
 * species, the tile and the position in it.
 */
final class FloatKernels extends TileSums<float[]> {
  static final VectorSpecies<Float> S = Species.FLOAT;

  static final int MR = FloatPanels.MR;
  static final int NR = FloatPanels.NR;
  private static final int KC = FloatPanels.KC;
  private static final int PROMOTED = FloatPanels.PROMOTED;

  /** MR lanes, or as many as a vector has. */
  private static final VectorSpecies<Float> ROW =
      VectorSpecies.of(
          float.class, VectorShape.forBitSize(Math.min(VectorWidth.BITS, MR * Float.SIZE)));

  private static final int V = S.length();

  /**
   * Whether up to half a vector of columns is computed in half vectors. Processors that split 512 bits do it in half the time: of 138 µs at
   * 100 x 256, 12 (Zen 4). Doubles would be the only ones of 256 bits, see {@link FloatTranspose}.
   */
  private static final boolean HALVES = Float.SIZE == 32 && VectorWidth.BITS == 512;

  static final VectorSpecies<Float> HALF =
      VectorSpecies.of(float.class, VectorShape.forBitSize(VectorWidth.BITS / (HALVES ? 2 : 1)));

  /** R of an entry that no error bound leaves open, put where the diagonal's would be. */
  private static final float CERTAIN = 0x1p100f;

  /** No tile's first column. */
  private static final int NONE = -1;

  /**
   * Accumulators of a panel, laid out as {@code r[k]}: R before it is promoted, or the sums of the dimensions since the last promotion. In
   * double, up to PROMOTED dimensions accumulate in {@code r[k]} itself.
   */
  final float[] acc = new float[Tile.CAPACITY + V];

  /** A block's rows, packed; grown on demand. */
  private float[] rows = {};

  private int d;

  /** Whether {@link #rows} are the block's. */
  private boolean arePacked;

  /** First column of the tile that was computed whole, if it is still there. */
  private int computed;

  FloatKernels(int panels) {
    super(panels, NR, 0.5);
  }

  /** Begins a block, whose first row is a multiple of MR. */
  void begin(Packed<float[]> q, Packed<float[]> p, double tolerance, int dimension) {
    begin(q, p, tolerance);
    d = dimension;
    arePacked = false;
    computed = NONE;
  }

  private void packRows(Tile t) {
    int needed = Math.ceilDiv(t.rows, MR) * MR * 2 * d;
    if (rows.length < needed) {
      rows = new float[needed];
    }
    float[] columns = valuesQ();
    int at = 0;
    for (int a = t.row; a < t.row + t.rows; a += MR) {
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

  /** Computes rows [from, to) of the tile, unless it was computed whole; {@code from} is a multiple of MR. */
  void compute(Tile t, int from, int to) {
    if (computed == t.column) {
      return;
    }
    if (!arePacked) {
      packRows(t);
      arePacked = true;
    }
    for (int k = 0; k * NR < t.columns; k++) {
      panel(t, from, to, k, d > PROMOTED ? acc : Epilogue.accumulators(acc, r[k]));
    }
    computed = from == 0 && to == t.rows ? t.column : NONE;
  }

  /** Promotes a tile that was computed whole, if that has left it in {@link #acc}. */
  void promote(Tile t) {
    if (d <= PROMOTED) {
      Epilogue.promote(Epilogue.accumulators(acc, r[0]), r[0], 0, t.rows * NR, true);
    }
  }

  /** Accumulates panel k of the columns; the L1 cache holds KC dimensions of it for every row panel after the first. */
  private void panel(Tile t, int from, int to, int k, float[] sums) {
    int columns = Math.min(NR, t.columns - k * NR);
    int c = (t.column + k * NR) * 2 * d;
    for (int h = 0; h < d; h += KC, c += KC * 2 * NR) {
      int length = Math.min(KC, d - h);
      boolean first = h % PROMOTED == 0;
      boolean last = h + KC >= d;
      for (int i = from; i < to; i += MR) {
        int at = i * 2 * d + h * 2 * MR;
        for (int j = 0; j < columns; j += 2 * V) {
          micro(at, to - i, c + j, columns - j, length, sums, i * NR + j, first);
        }
      }
      for (int i = from; i < to && last && t.isDiagonal; i++) {
        int j = t.row + i - t.column - k * NR;
        if (j >= 0 && j < NR) {
          sums[i * NR + j] = CERTAIN;
        }
      }
      if (d > PROMOTED && (last || (h + KC) % PROMOTED == 0)) {
        int end = Math.ceilDiv(to, MR) * MR * NR;
        Epilogue.promote(sums, r[k], from * NR, end, h < PROMOTED);
      }
    }
  }

  /** Accumulates up to MR rows by up to two vectors of columns. */
  private void micro(
      int r,
      int rowCount,
      int c,
      int columnCount,
      int length,
      float[] sums,
      int to,
      boolean first) {
    float[] columns = valuesP();
    if (MR == 4 && columnCount > V) {
      FloatMicroKernels.tile4x2Fenced(rows, r, columns, c, length, sums, to, first);
    } else if (MR == 4) {
      FloatMicroKernels.tile4x1(rows, r, columns, c, length, sums, to, first);
    } else if (HALVES && columnCount <= V / 2) {
      FloatMicroKernels.tile8x1Half(rows, r, columns, c, length, sums, to, first);
    } else if (columnCount <= V) {
      FloatMicroKernels.tile8x1(rows, r, columns, c, length, sums, to, first);
    } else if (rowCount <= 4) { // where a batch ends: 3 of 93 µs at 100 x 256 (Zen 5)
      FloatMicroKernels.tile4x2(rows, r, columns, c, length, sums, to, first);
    } else {
      FloatMicroKernels.tile8x2(rows, r, columns, c, length, sums, to, first);
    }
  }
}
