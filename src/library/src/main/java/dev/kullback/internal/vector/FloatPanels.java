package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;

/**
 * Packs a batch into the panels that {@link FloatKernels} reads, and computes its sums without vectors. Nothing here loads a class of
 * vectors, but {@link FloatTranspose} may. The build derives {@code DoublePanels} from this text.
 */
public final class FloatPanels {
  public static final int MR = Shapes.MR;
  public static final int NR = Shapes.columns(Float.SIZE);

  /** Dimensions that a micro-kernel accumulates. 32 costs 8 % at D = 256; 128 would double what {@link PairKl#UNITS32} allows for. */
  static final int KC = PairKl.BLOCK;

  /** Dimensions whose chunks of KC add up in this precision before they are promoted to double. */
  static final int PROMOTED = PairKl.BLOCKS;

  /** Dimensions packed at a time; 64 read shorter runs of each row and took 216 µs instead of 192 at 1024 x 256. */
  private static final int PACK = 256;

  static final PanelForm<DiagonalBatch, float[], Packed<float[]>> COLUMNS =
      new PanelForm<>(
          g -> Math.ceilDiv(g.size(), NR) * NR * 2 * g.dimension(),
          float[]::new,
          FloatPanels::packColumns,
          c -> (long) Float.BYTES * c.values().length + c.rowBytes());

  private FloatPanels() {}

  /** Packs into an array that may be longer. The rows that pad the last panel keep any values. */
  private static Packed<float[]> packColumns(
      DiagonalBatch g, float[] columns, boolean vectors, Worker worker) {
    float[] mean = g.mean32(); // in double copies of a float batch's: once for all parts
    float[] scale = g.scale32();
    worker.share(
        g.size(),
        NR,
        Checkpoint.ofPlain(g.dimension()), // some 50 µs at a time
        (from, to) -> packPanels(g, mean, scale, from, to - from, columns, vectors));
    return Packed.of(g, columns, NR, PairKl.unit32(g.dimension()), g.beyond32());
  }

  /** Packs {@code count} rows from {@code first} on, a multiple of NR. */
  private static void packPanels(
      DiagonalBatch g,
      float[] mean,
      float[] scale,
      int first,
      int count,
      float[] columns,
      boolean vectors) {
    int n = first + count;
    int d = g.dimension();
    FloatTranspose transpose = new FloatTranspose(vectors);
    float[] inverse = new float[NR * Math.min(PACK, d)];
    Checkpoint checkpoint = new Checkpoint();
    for (int b = first; b < n; b += NR) {
      checkpoint.pass((long) NR * d);
      int rows = Math.min(NR, n - b);
      for (int h = 0; h < d; h += PACK) {
        int length = Math.min(PACK, d - h);
        int from = b * d + h;
        int to = (b * d + h * NR) * 2;
        transpose.toLanes(mean, from, d, rows, length, columns, to, 2 * NR);
        for (int i = 0; i < rows; i++) {
          System.arraycopy(scale, from + i * d, inverse, i * length, length);
        }
        invert(g.kind(), inverse, rows * length);
        transpose.toLanes(inverse, 0, length, rows, length, columns, to + NR, 2 * NR);
      }
    }
  }

  /** Turns raw scales into 1/v, in place: where two arrays could be one, C2 of JDK 25 makes no vectors; 0.84 ns each, not 0.25 (Zen 4). */
  @SuppressWarnings("cast") // redundant in double
  static void invert(Scale kind, float[] values, int n) {
    switch (kind) {
      case STD -> {
        for (int k = 0; k < n; k++) {
          values[k] = 1 / (values[k] * values[k]);
        }
      }
      case VARIANCE -> {
        for (int k = 0; k < n; k++) {
          values[k] = 1 / values[k];
        }
      }
      case PRECISION -> {}
      case LOG_VARIANCE -> {
        for (int k = 0; k < n; k++) {
          values[k] = 1 / (float) kind.variance(values[k]);
        }
      }
    }
  }

  /** Packs row i without vectors, to {@code row[to…]}: {@code [h][2]} of μ, v. */
  static void packRow(float[] columns, int d, int i, float[] row, int to) {
    int k = (i - i % NR) * 2 * d + i % NR;
    for (int h = 0; h < d; h++, k += 2 * NR) {
      row[to + 2 * h] = columns[k];
      row[to + 2 * h + 1] = 1 / columns[k + NR];
    }
  }

  /**
   * Computes {@code sum[0…3] = R} of one row and four columns without vectors, each by the very operations of a lane of {@link
   * FloatKernels#compute}. Four hide the latency of an fma.
   *
   * @param r where the row begins in {@code row}
   * @param j the first column, a multiple of 4
   */
  static void sums(float[] row, int r, float[] columns, int j, int d, double[] sum) {
    int c = (j - j % NR) * 2 * d + j % NR;
    Arrays.fill(sum, 0);
    for (int g = 0; g < d; g += PROMOTED) {
      float b0 = 0;
      float b1 = 0;
      float b2 = 0;
      float b3 = 0;
      for (int h = g, end = Math.min(d, g + PROMOTED); h < end; h += KC) {
        float a0 = 0;
        float a1 = 0;
        float a2 = 0;
        float a3 = 0;
        for (int k = h, last = Math.min(end, h + KC); k < last; k++) {
          float m = row[r + 2 * k];
          float v = row[r + 2 * k + 1];
          int at = c + k * 2 * NR;
          float x = m - columns[at];
          a0 = Math.fma(Math.fma(x, x, v), columns[at + NR], a0);
          x = m - columns[at + 1];
          a1 = Math.fma(Math.fma(x, x, v), columns[at + NR + 1], a1);
          x = m - columns[at + 2];
          a2 = Math.fma(Math.fma(x, x, v), columns[at + NR + 2], a2);
          x = m - columns[at + 3];
          a3 = Math.fma(Math.fma(x, x, v), columns[at + NR + 3], a3);
        }
        b0 += a0;
        b1 += a1;
        b2 += a2;
        b3 += a3;
      }
      sum[0] += b0;
      sum[1] += b1;
      sum[2] += b2;
      sum[3] += b3;
    }
  }
}
