package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Form;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
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
   * Rows of a tile. With two 512-bit column vectors, 6, 8, 10 and 12 rows ran at 54, 56, 55 and 55·10⁹ (i,j,h)/s; with three
   * vectors 6, 7 and 8 rows at 55, 32 and 39, as C2 begins to spill; with one vector 8 rows at 40 (D = 256; Zen 5, one core,
   * JDK 25.0.3; the ceiling of two fma an (i,j,h) is 60 at the clock of that day).
   */
  static final int MR = 8;

  /** MR lanes, or as many as a vector has. */
  private static final VectorSpecies<Float> ROW =
      VectorSpecies.of(
          float.class, VectorShape.forBitSize(Math.min(VectorWidth.BITS, MR * Float.SIZE)));

  /** Column vectors of a kernel: two want more than the 16 registers that AVX2 has. */
  private static final int NV = VectorWidth.BITS == 512 ? 2 : 1;

  /** Columns of a panel: a kernel's, and whole row panels. */
  static final int NR = Math.max(NV * S.length(), MR);

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

  /** Whether least ≤ values[i] ≤ most for i in [from, to); false for NaN. */
  static boolean within(float[] values, int from, int to, float least, float most) {
    VectorMask<Float> within = S.maskAll(true);
    int i = from;
    for (; i + S.length() <= to; i += S.length()) {
      FloatVector v = FloatVector.fromArray(S, values, i);
      within =
          within.and(v.compare(VectorOperators.GE, least)).and(v.compare(VectorOperators.LE, most));
    }
    boolean all = within.allTrue();
    for (; i < to; i++) { // scalar tail
      all &= values[i] >= least && values[i] <= most;
    }
    return all;
  }

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
   * @param chunk, promoted {@link #KC} and {@link #PROMOTED}, or less for smaller errors
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
      boolean promote,
      int chunk,
      int promoted) {
    int c = columnPanel * NR * 2 * d;
    for (int h = 0; h < d; h += chunk) {
      int length = Math.min(chunk, d - h);
      boolean first = h % promoted == 0;
      for (int i = 0; i < rowCount; i += MR) {
        int r = (rowPanel * MR + i) * 2 * d + h * 2 * MR;
        for (int j = 0; j < columnCount; j += NV * S.length()) {
          int to = i * NR + j;
          if (NV == 2 && columnCount - j > S.length() && rowCount - i <= 4) {
            tile4x2(rows, r, columns, c + h * 2 * NR + j, length, acc, to, first);
          } else if (NV == 2 && columnCount - j > S.length()) {
            tile8x2(rows, r, columns, c + h * 2 * NR + j, length, acc, to, first);
          } else {
            tile8x1(rows, r, columns, c + h * 2 * NR + j, length, acc, to, first);
          }
        }
      }
      if (promote && (h + chunk >= d || (h + chunk) % promoted == 0)) {
        Epilogue.promote(acc, sum, Math.ceilDiv(rowCount, MR) * MR * NR, h < promoted);
      }
    }
  }

  /** Two vectors of columns over {@code length} dimensions, added to {@code acc[r][to…]} or, the first, stored there. */
  private static void tile8x2(
      float[] rows, int r, float[] columns, int c, int length, float[] acc, int to, boolean first) {
    FloatVector a0a = FloatVector.zero(S);
    FloatVector a0b = FloatVector.zero(S);
    FloatVector a1a = FloatVector.zero(S);
    FloatVector a1b = FloatVector.zero(S);
    FloatVector a2a = FloatVector.zero(S);
    FloatVector a2b = FloatVector.zero(S);
    FloatVector a3a = FloatVector.zero(S);
    FloatVector a3b = FloatVector.zero(S);
    FloatVector a4a = FloatVector.zero(S);
    FloatVector a4b = FloatVector.zero(S);
    FloatVector a5a = FloatVector.zero(S);
    FloatVector a5b = FloatVector.zero(S);
    FloatVector a6a = FloatVector.zero(S);
    FloatVector a6b = FloatVector.zero(S);
    FloatVector a7a = FloatVector.zero(S);
    FloatVector a7b = FloatVector.zero(S);
    for (int h = 0; h < length; h++) {
      int i = r + h * (2 * MR);
      int j = c + h * (2 * NR);
      FloatVector ma = FloatVector.fromArray(S, columns, j);
      FloatVector mb = FloatVector.fromArray(S, columns, j + S.length());
      FloatVector pa = FloatVector.fromArray(S, columns, j + NR);
      FloatVector pb = FloatVector.fromArray(S, columns, j + NR + S.length());
      FloatVector x;
      FloatVector v;
      FloatVector da;
      FloatVector db;
      x = FloatVector.broadcast(S, rows[i]);
      v = FloatVector.broadcast(S, rows[i + MR]);
      da = x.sub(ma);
      a0a = da.fma(da, v).fma(pa, a0a);
      db = x.sub(mb);
      a0b = db.fma(db, v).fma(pb, a0b);
      x = FloatVector.broadcast(S, rows[i + 1]);
      v = FloatVector.broadcast(S, rows[i + MR + 1]);
      da = x.sub(ma);
      a1a = da.fma(da, v).fma(pa, a1a);
      db = x.sub(mb);
      a1b = db.fma(db, v).fma(pb, a1b);
      x = FloatVector.broadcast(S, rows[i + 2]);
      v = FloatVector.broadcast(S, rows[i + MR + 2]);
      da = x.sub(ma);
      a2a = da.fma(da, v).fma(pa, a2a);
      db = x.sub(mb);
      a2b = db.fma(db, v).fma(pb, a2b);
      x = FloatVector.broadcast(S, rows[i + 3]);
      v = FloatVector.broadcast(S, rows[i + MR + 3]);
      da = x.sub(ma);
      a3a = da.fma(da, v).fma(pa, a3a);
      db = x.sub(mb);
      a3b = db.fma(db, v).fma(pb, a3b);
      x = FloatVector.broadcast(S, rows[i + 4]);
      v = FloatVector.broadcast(S, rows[i + MR + 4]);
      da = x.sub(ma);
      a4a = da.fma(da, v).fma(pa, a4a);
      db = x.sub(mb);
      a4b = db.fma(db, v).fma(pb, a4b);
      x = FloatVector.broadcast(S, rows[i + 5]);
      v = FloatVector.broadcast(S, rows[i + MR + 5]);
      da = x.sub(ma);
      a5a = da.fma(da, v).fma(pa, a5a);
      db = x.sub(mb);
      a5b = db.fma(db, v).fma(pb, a5b);
      x = FloatVector.broadcast(S, rows[i + 6]);
      v = FloatVector.broadcast(S, rows[i + MR + 6]);
      da = x.sub(ma);
      a6a = da.fma(da, v).fma(pa, a6a);
      db = x.sub(mb);
      a6b = db.fma(db, v).fma(pb, a6b);
      x = FloatVector.broadcast(S, rows[i + 7]);
      v = FloatVector.broadcast(S, rows[i + MR + 7]);
      da = x.sub(ma);
      a7a = da.fma(da, v).fma(pa, a7a);
      db = x.sub(mb);
      a7b = db.fma(db, v).fma(pb, a7b);
    }
    if (!first) {
      a0a = a0a.add(FloatVector.fromArray(S, acc, to));
      a0b = a0b.add(FloatVector.fromArray(S, acc, to + S.length()));
      a1a = a1a.add(FloatVector.fromArray(S, acc, to + NR));
      a1b = a1b.add(FloatVector.fromArray(S, acc, to + NR + S.length()));
      a2a = a2a.add(FloatVector.fromArray(S, acc, to + 2 * NR));
      a2b = a2b.add(FloatVector.fromArray(S, acc, to + 2 * NR + S.length()));
      a3a = a3a.add(FloatVector.fromArray(S, acc, to + 3 * NR));
      a3b = a3b.add(FloatVector.fromArray(S, acc, to + 3 * NR + S.length()));
      a4a = a4a.add(FloatVector.fromArray(S, acc, to + 4 * NR));
      a4b = a4b.add(FloatVector.fromArray(S, acc, to + 4 * NR + S.length()));
      a5a = a5a.add(FloatVector.fromArray(S, acc, to + 5 * NR));
      a5b = a5b.add(FloatVector.fromArray(S, acc, to + 5 * NR + S.length()));
      a6a = a6a.add(FloatVector.fromArray(S, acc, to + 6 * NR));
      a6b = a6b.add(FloatVector.fromArray(S, acc, to + 6 * NR + S.length()));
      a7a = a7a.add(FloatVector.fromArray(S, acc, to + 7 * NR));
      a7b = a7b.add(FloatVector.fromArray(S, acc, to + 7 * NR + S.length()));
    }
    a0a.intoArray(acc, to);
    a0b.intoArray(acc, to + S.length());
    a1a.intoArray(acc, to + NR);
    a1b.intoArray(acc, to + NR + S.length());
    a2a.intoArray(acc, to + 2 * NR);
    a2b.intoArray(acc, to + 2 * NR + S.length());
    a3a.intoArray(acc, to + 3 * NR);
    a3b.intoArray(acc, to + 3 * NR + S.length());
    a4a.intoArray(acc, to + 4 * NR);
    a4b.intoArray(acc, to + 4 * NR + S.length());
    a5a.intoArray(acc, to + 5 * NR);
    a5b.intoArray(acc, to + 5 * NR + S.length());
    a6a.intoArray(acc, to + 6 * NR);
    a6b.intoArray(acc, to + 6 * NR + S.length());
    a7a.intoArray(acc, to + 7 * NR);
    a7b.intoArray(acc, to + 7 * NR + S.length());
  }

  /** The same for four rows, when a batch ends on no more: 3 of 93 µs at 100 x 256. */
  private static void tile4x2(
      float[] rows, int r, float[] columns, int c, int length, float[] acc, int to, boolean first) {
    FloatVector a0a = FloatVector.zero(S);
    FloatVector a0b = FloatVector.zero(S);
    FloatVector a1a = FloatVector.zero(S);
    FloatVector a1b = FloatVector.zero(S);
    FloatVector a2a = FloatVector.zero(S);
    FloatVector a2b = FloatVector.zero(S);
    FloatVector a3a = FloatVector.zero(S);
    FloatVector a3b = FloatVector.zero(S);
    for (int h = 0; h < length; h++) {
      int i = r + h * (2 * MR);
      int j = c + h * (2 * NR);
      FloatVector ma = FloatVector.fromArray(S, columns, j);
      FloatVector mb = FloatVector.fromArray(S, columns, j + S.length());
      FloatVector pa = FloatVector.fromArray(S, columns, j + NR);
      FloatVector pb = FloatVector.fromArray(S, columns, j + NR + S.length());
      FloatVector x;
      FloatVector v;
      FloatVector da;
      FloatVector db;
      x = FloatVector.broadcast(S, rows[i]);
      v = FloatVector.broadcast(S, rows[i + MR]);
      da = x.sub(ma);
      a0a = da.fma(da, v).fma(pa, a0a);
      db = x.sub(mb);
      a0b = db.fma(db, v).fma(pb, a0b);
      x = FloatVector.broadcast(S, rows[i + 1]);
      v = FloatVector.broadcast(S, rows[i + MR + 1]);
      da = x.sub(ma);
      a1a = da.fma(da, v).fma(pa, a1a);
      db = x.sub(mb);
      a1b = db.fma(db, v).fma(pb, a1b);
      x = FloatVector.broadcast(S, rows[i + 2]);
      v = FloatVector.broadcast(S, rows[i + MR + 2]);
      da = x.sub(ma);
      a2a = da.fma(da, v).fma(pa, a2a);
      db = x.sub(mb);
      a2b = db.fma(db, v).fma(pb, a2b);
      x = FloatVector.broadcast(S, rows[i + 3]);
      v = FloatVector.broadcast(S, rows[i + MR + 3]);
      da = x.sub(ma);
      a3a = da.fma(da, v).fma(pa, a3a);
      db = x.sub(mb);
      a3b = db.fma(db, v).fma(pb, a3b);
    }
    if (!first) {
      a0a = a0a.add(FloatVector.fromArray(S, acc, to));
      a0b = a0b.add(FloatVector.fromArray(S, acc, to + S.length()));
      a1a = a1a.add(FloatVector.fromArray(S, acc, to + NR));
      a1b = a1b.add(FloatVector.fromArray(S, acc, to + NR + S.length()));
      a2a = a2a.add(FloatVector.fromArray(S, acc, to + 2 * NR));
      a2b = a2b.add(FloatVector.fromArray(S, acc, to + 2 * NR + S.length()));
      a3a = a3a.add(FloatVector.fromArray(S, acc, to + 3 * NR));
      a3b = a3b.add(FloatVector.fromArray(S, acc, to + 3 * NR + S.length()));
    }
    a0a.intoArray(acc, to);
    a0b.intoArray(acc, to + S.length());
    a1a.intoArray(acc, to + NR);
    a1b.intoArray(acc, to + NR + S.length());
    a2a.intoArray(acc, to + 2 * NR);
    a2b.intoArray(acc, to + 2 * NR + S.length());
    a3a.intoArray(acc, to + 3 * NR);
    a3b.intoArray(acc, to + 3 * NR + S.length());
  }

  /** One vector of columns over {@code length} dimensions, added to {@code acc[r][to…]} or, the first, stored there. */
  private static void tile8x1(
      float[] rows, int r, float[] columns, int c, int length, float[] acc, int to, boolean first) {
    FloatVector a0 = FloatVector.zero(S);
    FloatVector a1 = FloatVector.zero(S);
    FloatVector a2 = FloatVector.zero(S);
    FloatVector a3 = FloatVector.zero(S);
    FloatVector a4 = FloatVector.zero(S);
    FloatVector a5 = FloatVector.zero(S);
    FloatVector a6 = FloatVector.zero(S);
    FloatVector a7 = FloatVector.zero(S);
    for (int h = 0; h < length; h++) {
      int i = r + h * (2 * MR);
      int j = c + h * (2 * NR);
      FloatVector m = FloatVector.fromArray(S, columns, j);
      FloatVector p = FloatVector.fromArray(S, columns, j + NR);
      FloatVector x;
      FloatVector v;
      FloatVector d;
      x = FloatVector.broadcast(S, rows[i]);
      v = FloatVector.broadcast(S, rows[i + MR]);
      d = x.sub(m);
      a0 = d.fma(d, v).fma(p, a0);
      x = FloatVector.broadcast(S, rows[i + 1]);
      v = FloatVector.broadcast(S, rows[i + MR + 1]);
      d = x.sub(m);
      a1 = d.fma(d, v).fma(p, a1);
      x = FloatVector.broadcast(S, rows[i + 2]);
      v = FloatVector.broadcast(S, rows[i + MR + 2]);
      d = x.sub(m);
      a2 = d.fma(d, v).fma(p, a2);
      x = FloatVector.broadcast(S, rows[i + 3]);
      v = FloatVector.broadcast(S, rows[i + MR + 3]);
      d = x.sub(m);
      a3 = d.fma(d, v).fma(p, a3);
      x = FloatVector.broadcast(S, rows[i + 4]);
      v = FloatVector.broadcast(S, rows[i + MR + 4]);
      d = x.sub(m);
      a4 = d.fma(d, v).fma(p, a4);
      x = FloatVector.broadcast(S, rows[i + 5]);
      v = FloatVector.broadcast(S, rows[i + MR + 5]);
      d = x.sub(m);
      a5 = d.fma(d, v).fma(p, a5);
      x = FloatVector.broadcast(S, rows[i + 6]);
      v = FloatVector.broadcast(S, rows[i + MR + 6]);
      d = x.sub(m);
      a6 = d.fma(d, v).fma(p, a6);
      x = FloatVector.broadcast(S, rows[i + 7]);
      v = FloatVector.broadcast(S, rows[i + MR + 7]);
      d = x.sub(m);
      a7 = d.fma(d, v).fma(p, a7);
    }
    if (!first) {
      a0 = a0.add(FloatVector.fromArray(S, acc, to));
      a1 = a1.add(FloatVector.fromArray(S, acc, to + NR));
      a2 = a2.add(FloatVector.fromArray(S, acc, to + 2 * NR));
      a3 = a3.add(FloatVector.fromArray(S, acc, to + 3 * NR));
      a4 = a4.add(FloatVector.fromArray(S, acc, to + 4 * NR));
      a5 = a5.add(FloatVector.fromArray(S, acc, to + 5 * NR));
      a6 = a6.add(FloatVector.fromArray(S, acc, to + 6 * NR));
      a7 = a7.add(FloatVector.fromArray(S, acc, to + 7 * NR));
    }
    a0.intoArray(acc, to);
    a1.intoArray(acc, to + NR);
    a2.intoArray(acc, to + 2 * NR);
    a3.intoArray(acc, to + 3 * NR);
    a4.intoArray(acc, to + 4 * NR);
    a5.intoArray(acc, to + 5 * NR);
    a6.intoArray(acc, to + 6 * NR);
    a7.intoArray(acc, to + 7 * NR);
  }
}
