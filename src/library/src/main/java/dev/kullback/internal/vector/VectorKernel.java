package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Form;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Window;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The Vector API backend: walks a block tile by tile through the fast kernel and refines the entries whose error bound exceeds
 * the contract.
 */
public final class VectorKernel extends BlockKernel<DiagonalBatch> {
  private static final Form<DiagonalBatch, Packed<float[]>> SHORT =
      new Form<>(Packed::ofShort, Packed::rowBytes);

  /** Of the micro-kernel for float. */
  public static final int TILE_ROWS = FloatKernels.MR;

  public static final int TILE_COLUMNS = FloatKernels.NR;

  /**
   * From so many entries a tile on, the double kernel computes the tile whole instead of single entries: by the kernels' rates it
   * takes as long as some 10 of them (D = 256).
   */
  private static final int DENSE = 10;

  /**
   * A batch is packed into memory of the engine's at its first use, up to so many floats (4 MiB), and keeps panels of its own
   * from the second on: fresh memory costs more than packing does, 45 against 30 µs at 100 x 256 (Zen 5).
   */
  private static final int MOST_PANELS = 1 << 20;

  private final Worker worker;
  private final Tile tile = new Tile();

  /** The batches of a call in float. */
  private @Nullable Packed<float[]> q32;

  private @Nullable Packed<float[]> p32;

  /** Those in double, where entries are recomputed. */
  private @Nullable Packed<double[]> q64;

  private @Nullable Packed<double[]> p64;

  /** Panels of batches used for the first time, which may never be again, by role; grown on demand. */
  private final float[][] panels32 = {{}, {}};

  public VectorKernel(Worker worker) {
    this.worker = worker;
  }

  /** Makes all forms that calls may read. */
  public static void prepare(DiagonalBatch batch) {
    if (!batch.isDouble()) {
      FloatKernels.COLUMNS.of(batch);
      SHORT.of(batch);
      NearKernel.COLUMNS.of(batch);
    }
    DoubleKernels.COLUMNS.of(batch);
  }

  @Override
  protected void prepare(DiagonalBatch q, DiagonalBatch p) {
    if (isWide(q, p)) {
      q64 = DoubleKernels.columns(q, worker);
      p64 = q == p ? q64 : DoubleKernels.columns(p, worker);
    } else {
      q32 = panels(q, 0);
      p32 = q == p ? q32 : panels(p, 1);
    }
  }

  @Override
  public void join(BlockKernel<?> lead) {
    super.join(lead);
    VectorKernel other = (VectorKernel) lead;
    q32 = other.q32;
    p32 = other.p32;
    q64 = other.q64;
    p64 = other.p64;
  }

  @Override
  public void end() {
    super.end();
    q32 = null;
    p32 = null;
    q64 = null;
    p64 = null;
    tile.clear();
  }

  private Packed<float[]> panels(DiagonalBatch batch, int role) {
    int length = FloatKernels.columnsLength(batch);
    if (length > MOST_PANELS || !batch.isFirstUse()) {
      return FloatKernels.columns(batch, worker);
    }
    if (panels32[role].length < length) {
      panels32[role] = new float[length];
    }
    return FloatKernels.packColumns(batch, panels32[role], worker);
  }

  private Packed<float[]> q32() {
    return Objects.requireNonNull(q32);
  }

  private Packed<float[]> p32() {
    return Objects.requireNonNull(p32);
  }

  private Packed<double[]> q64() {
    if (q64 == null) {
      q64 = DoubleKernels.COLUMNS.of(q());
    }
    return q64;
  }

  private Packed<double[]> p64() {
    if (p64 == null) {
      p64 = DoubleKernels.COLUMNS.of(p());
    }
    return p64;
  }

  private static boolean isWide(DiagonalBatch q, DiagonalBatch p) {
    return q.isDouble() || p.isDouble();
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, Window out) {
    DiagonalBatch q = q();
    DiagonalBatch p = p();
    Tile t = tile;
    t.begin(out);
    boolean wide = isWide(q, p);
    int nr = wide ? DoubleKernels.NR : FloatKernels.NR;
    packRows(q, row0, row1, wide, t);
    for (int column = column0; column < column1; column += nr) {
      t.column = column;
      t.columns = Math.min(nr, column1 - column);
      worker.pass((long) (row1 - row0) * nr * q.dimension());
      for (int row = row0; row < row1; row += Tile.ROWS) {
        t.row = row;
        t.rows = Math.min(Tile.ROWS, row1 - row);
        if (t.near && near(q, p, t)) {
          continue;
        }
        int panel = (row - row0) / FloatKernels.MR;
        boolean diagonal = q == p && row < column + t.columns && column < row + t.rows;
        boolean whole = !wide && !diagonal && Epilogue.isWhole(t, q.dimension());
        if (wide) {
          tile64(panel, t.rows, p, column, t.columns, t, t.sum);
        } else {
          tile32(panel, t.rows, p, t, t.sum, !whole, FloatKernels.KC, FloatKernels.PROMOTED);
        }
        if (diagonal) {
          exclude(t, nr);
        }
        if (whole ? !Epilogue.storeWhole(t, q32(), p32(), margin(q, p)) : !store(q, p, t)) {
          if (whole) {
            Epilogue.promote(t.acc32, t.sum, t.rows * nr, true);
          }
          refine(q, p, panel, t, nr);
        }
        if (diagonal) {
          zero(t);
        }
      }
    }
  }

  /** Packs rows into the tile's memory. */
  private void packRows(DiagonalBatch q, int from, int to, boolean wide, Tile t) {
    int d = q.dimension();
    int needed = Math.ceilDiv(to - from, FloatKernels.MR) * FloatKernels.MR * 2 * d;
    if (wide) {
      if (t.rows64.length < needed) {
        t.rows64 = new double[needed];
      }
      DoubleKernels.packRows(q64().values(), d, from, to, t.rows64);
    } else {
      if (t.rows32.length < needed) {
        t.rows32 = new float[needed];
      }
      FloatKernels.packRows(q32().values(), d, from, to, t.rows32);
    }
  }

  private void tile32(
      int rowPanel,
      int rows,
      DiagonalBatch p,
      Tile t,
      double[] sum,
      boolean promote,
      int chunk,
      int promoted) {
    FloatKernels.tile(
        t.rows32,
        rowPanel,
        rows,
        p32().values(),
        t.column / FloatKernels.NR,
        t.columns,
        p.dimension(),
        t.acc32,
        sum,
        promote,
        chunk,
        promoted);
  }

  private void tile64(
      int rowPanel, int rows, DiagonalBatch p, int column, int columns, Tile t, double[] sum) {
    DoubleKernels.tile(
        t.rows64,
        rowPanel,
        rows,
        p64().values(),
        column / DoubleKernels.NR,
        columns,
        p.dimension(),
        t.acc64,
        sum,
        true,
        DoubleKernels.KC,
        DoubleKernels.PROMOTED);
  }

  private boolean store(DiagonalBatch q, DiagonalBatch p, Tile t) {
    return isWide(q, p)
        ? Epilogue.store(t, DoubleKernels.NR, q64(), p64(), margin(q, p))
        : Epilogue.store(t, FloatKernels.NR, q32(), p32(), margin(q, p));
  }

  /** What {@link PairKl#isCertain} compares with, for the fast kernel. */
  private static double margin(DiagonalBatch q, DiagonalBatch p) {
    return isWide(q, p)
        ? PairKl.DOUBLE_TOLERANCE - PairKl.unit64(q.dimension())
        : PairKl.FLOAT_TOLERANCE - PairKl.unit32();
  }

  /** Keeps the diagonal of KL(q‖q), which is 0, from counting as uncertain. */
  private static void exclude(Tile t, int nr) {
    for (int i = Math.max(t.row, t.column);
        i < Math.min(t.row + t.rows, t.column + t.columns);
        i++) {
      t.sum[(i - t.row) * nr + i - t.column] = 0x1p100;
    }
  }

  private static void zero(Tile t) {
    for (int i = Math.max(t.row, t.column);
        i < Math.min(t.row + t.rows, t.column + t.columns);
        i++) {
      t.put(i, i, 0);
    }
  }

  /** Tries the near form for the whole tile; whether it settled every entry. */
  private boolean near(DiagonalBatch q, DiagonalBatch p, Tile t) {
    Arrays.fill(t.open, 0, t.rows, valid(t));
    t.near = settleNear(q, p, t) == 0;
    return t.near;
  }

  private static long valid(Tile t) {
    return -1L >>> -t.columns;
  }

  /**
   * Recomputes the uncertain entries by the near form, in float by shorter chunks, in double, and by the stable form, in this order, each
   * settling what it is right for. Only open entries are stored, so a value does not depend on what else its tile needs.
   */
  private void refine(DiagonalBatch q, DiagonalBatch p, int rowPanel, Tile t, int nr) {
    boolean wide = isWide(q, p);
    int d = q.dimension();
    Epilogue.judge(
        t,
        0,
        t.rows,
        t.sum,
        nr,
        0,
        t.columns,
        wide ? q64() : q32(),
        wide ? p64() : p32(),
        wide ? PairKl.unit64(d) : PairKl.unit32(),
        wide ? PairKl.DOUBLE_TOLERANCE : PairKl.FLOAT_TOLERANCE);
    boolean all = true;
    long close = 0;
    for (int i = 0; i < t.rows; i++) {
      t.open[i] = ~t.certain[i] & valid(t);
      all &= t.open[i] == valid(t);
      close |= t.open[i] & t.close[i];
    }
    if (!wide) {
      if (close != 0 && q.kind() == p.kind()) {
        t.near = settleNear(q, p, t) == 0 && all;
      }
      settleShort(q, p, rowPanel, t);
      settleWide(q, p, t);
    }
    for (int i = 0; i < t.rows; i++) {
      for (long bits = t.open[i]; bits != 0; bits &= bits - 1) {
        int column = t.column + Long.numberOfTrailingZeros(bits);
        worker.pass((long) Checkpoint.PLAIN * d);
        t.put(t.row + i, column, PairKl.stable(q, t.row + i, p, column));
      }
    }
  }

  /** Stores the open entries that are near; how many stay open. */
  private int settleNear(DiagonalBatch q, DiagonalBatch p, Tile t) {
    NearKernel.tile(q, p, t, t.refined);
    double least = NearKernel.leastKl(q.dimension());
    Epilogue.judgeNear(t, t.refined, FloatKernels.NR, q32(), p32(), least);
    int open = 0;
    for (int i = 0; i < t.rows; i++) {
      long settled = t.open[i] & (t.certain[i] | duplicates(q, p, t, i));
      settle(t, i, settled, 0, t.columns, i * FloatKernels.NR);
      open += Long.bitCount(t.open[i]);
    }
    return open;
  }

  /** Stores the open entries that shorter chunks settle, which the fast kernel's values tell before. */
  private void settleShort(DiagonalBatch q, DiagonalBatch p, int rowPanel, Tile t) {
    int nr = FloatKernels.NR;
    Epilogue.foresee(t, nr, SHORT.of(q), SHORT.of(p));
    for (int i = 0; i < t.rows; i += FloatKernels.MR) {
      int end = Math.min(i + FloatKernels.MR, t.rows);
      long any = 0;
      for (int k = i; k < end; k++) {
        any |= t.open[k] & t.foreseen[k];
      }
      if (any == 0) {
        continue;
      }
      int panel = rowPanel + i / FloatKernels.MR;
      tile32(panel, end - i, p, t, t.refined, true, PairKl.SHORT_BLOCK, PairKl.SHORT_BLOCK);
      Epilogue.judge(
          t,
          i,
          end,
          t.refined,
          nr,
          0,
          t.columns,
          SHORT.of(q),
          SHORT.of(p),
          PairKl.unitShort(),
          PairKl.FLOAT_TOLERANCE);
      for (int k = i; k < end; k++) {
        // no others, which only what else the tile needs has brought here
        settle(t, k, t.open[k] & t.foreseen[k], 0, t.columns, (k - i) * nr);
      }
    }
  }

  /** Stores these entries of a row, {@code t.refined[from]} being column {@code first} of the tile, and closes them. */
  private static void settle(Tile t, int i, long entries, int first, int columns, int from) {
    if (entries != 0) {
      Epilogue.put(t, i, entries, first, columns, t.refined, from);
      t.open[i] &= ~entries;
    }
  }

  /** Of the open entries of a row that came out as 0, those that are. */
  private static long duplicates(DiagonalBatch q, DiagonalBatch p, Tile t, int i) {
    long equal = 0;
    for (long bits = t.open[i] & t.close[i]; bits != 0; bits &= bits - 1) {
      int column = Long.numberOfTrailingZeros(bits);
      if (q.isEqual(t.row + i, p, t.column + column)) {
        equal |= 1L << column;
      }
    }
    return equal;
  }

  /** Stores the open entries that double settles. */
  private void settleWide(DiagonalBatch q, DiagonalBatch p, Tile t) {
    for (int i = 0; i < t.rows; i += FloatKernels.MR) {
      int end = Math.min(i + FloatKernels.MR, t.rows);
      int open = 0;
      for (int k = i; k < end; k++) {
        open += Long.bitCount(t.open[k]);
      }
      if (open >= DENSE) {
        settleRows(q, p, i, end, t);
      } else if (open > 0) {
        settleEntries(q, p, i, end, t);
      }
    }
  }

  /** Those of a row panel of the tile, by the kernel. */
  private void settleRows(DiagonalBatch q, DiagonalBatch p, int from, int to, Tile t) {
    int nr = DoubleKernels.NR;
    double unit = PairKl.unit64(q.dimension());
    packRows(q, t.row + from, t.row + to, true, t);
    for (int first = 0; first < t.columns; first += nr) {
      int columns = Math.min(nr, t.columns - first);
      tile64(0, to - from, p, t.column + first, columns, t, t.refined);
      Epilogue.judge(
          t, from, to, t.refined, nr, first, columns, q64(), p64(), unit, PairKl.REFINED_TOLERANCE);
      for (int i = from; i < to; i++) {
        settle(t, i, t.open[i] & t.certain[i], first, columns, (i - from) * nr);
      }
    }
  }

  /** The same one by one, to the same bits. */
  private void settleEntries(DiagonalBatch q, DiagonalBatch p, int from, int to, Tile t) {
    double unit = PairKl.unit64(q.dimension());
    double margin = PairKl.REFINED_TOLERANCE - unit;
    for (int i = from; i < to; i++) {
      int row = t.row + i;
      for (long bits = t.open[i]; bits != 0; bits &= bits - 1) {
        int j = Long.numberOfTrailingZeros(bits);
        double kl = PairKl.difference(q, row, p, t.column + j);
        double noise = PairKl.noiseQ(q, row, unit) + PairKl.noiseP(p, t.column + j, unit);
        if (PairKl.isCertain(kl, noise, margin)) {
          t.put(row, t.column + j, kl);
          t.open[i] &= ~(1L << j);
        }
      }
    }
  }
}
