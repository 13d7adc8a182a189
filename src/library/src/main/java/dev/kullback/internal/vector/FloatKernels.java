package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Form;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * Packing and micro-kernels of {@code S_ij = Σ_h [(μ_ih − μ_jh)² + v_ih] / v_jh − D} in float. The build derives {@code
 * DoubleKernels} from this text.
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
  static final VectorSpecies<Float> S = VectorWidth.FLOAT;

  /**
   * Rows of a micro-kernel, two vectors wide: 16 or 8 accumulators. With 512 bits and 32 registers, 6, 8, 10 and 12 rows ran at 54,
   * 56, 55 and 55·10⁹ (i,j,h)/s; with three vectors 6, 7 and 8 rows at 55, 32 and 39, as C2 begins to spill; with one vector 8
   * rows at 40 (D = 256; Zen 5, one core, JDK 25.0.3; the ceiling of two fma an (i,j,h) is 60 at the clock of that day). For 16
   * registers see {@code FloatMicroKernels}. What has 32 registers and narrower vectors is taken to want what 512 bits do.
   */
  static final int MR = VectorWidth.REGISTERS == 32 ? 8 : 4;

  /** MR lanes, or as many as a vector has. */
  private static final VectorSpecies<Float> ROW =
      VectorSpecies.of(
          float.class, VectorShape.forBitSize(Math.min(VectorWidth.BITS, MR * Float.SIZE)));

  private static final int V = S.length();

  /** Columns of a panel: two vectors, and whole row panels. */
  static final int NR = Math.max(2 * V, MR);

  /**
   * Dimensions that a micro-kernel accumulates. 32 costs 8 % at D = 256; 128 would double what {@link PairKl#UNITS32} allows
   * for.
   */
  static final int KC = PairKl.BLOCK;

  /** Dimensions whose chunks of KC add up in this precision before they are promoted to double. */
  static final int PROMOTED = PairKl.BLOCKS;

  /** Dimensions packed at a time; 64 took 216 µs instead of 192 at 1024 x 256, for shorter runs of the rows. */
  private static final int PACK = 256;

  /** Elements that a thread packs at a time, some 50 µs. */
  private static final int PACKED_AT_ONCE = 1 << 16;

  /** What packing an element counts at a {@link Checkpoint}. */
  private static final long PACKING = 16;

  /** A batch in panels, kept with it. */
  static final Form<DiagonalBatch, Packed<float[]>> COLUMNS =
      new Form<>(
          FloatKernels::packColumns, c -> (long) Float.BYTES * c.values().length + c.rowBytes());

  private FloatKernels() {}

  private static Packed<float[]> packColumns(DiagonalBatch g) {
    return packColumns(g, new float[columnsLength(g)], new Worker());
  }

  /** Those kept with the batch, which all threads of a call make if nobody has. */
  static Packed<float[]> columns(DiagonalBatch g, Worker worker) {
    Packed<float[]> made = COLUMNS.made(g);
    return made != null
        ? made
        : COLUMNS.of(g, b -> packColumns(b, new float[columnsLength(b)], worker));
  }

  static int columnsLength(DiagonalBatch g) {
    return Math.ceilDiv(g.size(), NR) * NR * 2 * g.dimension();
  }

  /** Packs into an array that may be longer; what lies in it at rows that pad a panel does not matter. */
  static Packed<float[]> packColumns(DiagonalBatch g, float[] columns, Worker worker) {
    int rows = Math.max(1, PACKED_AT_ONCE / (NR * g.dimension())) * NR;
    worker.share(
        Math.ceilDiv(g.size(), rows),
        part -> packPanels(g, part * rows, Math.min(g.size() - part * rows, rows), columns));
    return Packed.of(g, columns, NR);
  }

  /** The panels of {@code count} rows from {@code first} on, a multiple of NR. */
  private static void packPanels(DiagonalBatch g, int first, int count, float[] columns) {
    int n = first + count;
    int d = g.dimension();
    float[] mean = g.mean32();
    float[] scale = g.scale32();
    float[] scratch = new float[Transpose.SCRATCH];
    Checkpoint checkpoint = new Checkpoint();
    for (int b = first; b < n; b += NR) {
      checkpoint.pass(PACKING * NR * d);
      int rows = Math.min(NR, n - b);
      for (int h = 0; h < d; h += PACK) {
        int length = Math.min(PACK, d - h);
        int from = b * d + h;
        int to = (b * d + h * NR) * 2;
        Transpose.of(mean, from, d, rows, length, columns, to, 2 * NR, scratch);
        Transpose.of(scale, from, d, rows, length, columns, to + NR, 2 * NR, scratch);
        for (int k = 0; k < length; k++) {
          invert(g.kind(), rows, columns, to + NR + k * 2 * NR);
        }
      }
    }
  }

  /** Replaces raw scales, so many of a panel, by 1/v. */
  private static void invert(Scale kind, int rows, float[] columns, int at) {
    for (int j = at; j < at + rows; j += S.length()) {
      FloatVector s = FloatVector.fromArray(S, columns, j);
      FloatVector one = FloatVector.broadcast(S, 1);
      switch (kind) {
        case STD -> one.div(s.mul(s)).intoArray(columns, j);
        case VARIANCE -> one.div(s).intoArray(columns, j);
        case PRECISION -> {}
        case LOG_VARIANCE -> {
          for (int k = j; k < j + S.length(); k++) {
            columns[k] = 1 / variance(kind, columns[k]);
          }
        }
      }
    }
  }

  @SuppressWarnings("cast") // redundant in double
  private static float variance(Scale kind, float s) {
    return (float) kind.variance(s);
  }

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
   * {@code sum[r][c] = S + D} of one tile, row-major {@code [rowCount, NR]}, promoted every so many dimensions. What the kernels read of the columns stays in the L1 cache for every row panel after the first.
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
