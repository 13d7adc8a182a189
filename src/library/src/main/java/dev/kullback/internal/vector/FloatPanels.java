package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Formula.Field;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Packs a batch into the panels that the sums of tiles read: for each dimension the mean and the scales that the formula names. Only
 * {@link FloatTranspose} may load a class of vectors. The build derives {@code DoublePanels} from this text.
 */
public final class FloatPanels {
  public static final int MR = Shapes.MR;
  public static final int NR = Shapes.columns(Float.SIZE);

  /** Dimensions packed at a time; 64 read shorter runs of each row and took 216 µs instead of 192 at 1024 x 256. */
  private static final int PACK = 256;

  /** The forms of batches, by their scales; formulas with the same share them. */
  private static final Map<List<Field>, PanelForm<DiagonalBatch, float[], float[]>> FORMS =
      new ConcurrentHashMap<>();

  private FloatPanels() {}

  static PanelForm<DiagonalBatch, float[], float[]> of(Formula formula) {
    return FORMS.computeIfAbsent(formula.sums32().scales(), FloatPanels::form);
  }

  private static PanelForm<DiagonalBatch, float[], float[]> form(List<Field> scales) {
    int fields = 1 + scales.size();
    return new PanelForm<>(
        g -> Math.ceilDiv(g.size(), NR) * NR * fields * g.dimension(),
        float[]::new,
        (g, columns, vectors, worker) -> pack(scales, g, columns, vectors, worker),
        c -> (long) Float.BYTES * c.length);
  }

  /** Packs into an array that may be longer. The rows that pad the last panel keep any values. */
  private static float[] pack(
      List<Field> scales, DiagonalBatch g, float[] columns, boolean vectors, Worker worker) {
    float[] mean = g.mean32(); // in double copies of a float batch's: once for all parts
    float[] scale = g.scale32();
    worker.share(
        g.size(),
        NR,
        Checkpoint.ofPlain(g.dimension()), // some 50 µs at a time
        (from, to) -> packPanels(scales, g, mean, scale, from, to, columns, vectors));
    return columns;
  }

  /** Packs rows [first, end), where first is a multiple of NR. */
  private static void packPanels(
      List<Field> scales,
      DiagonalBatch g,
      float[] mean,
      float[] scale,
      int first,
      int end,
      float[] columns,
      boolean vectors) {
    if (end - first == 1) {
      packRow(scales, g, mean, scale, first, columns);
      return;
    }
    int d = g.dimension();
    int fields = 1 + scales.size();
    FloatTranspose transpose = new FloatTranspose(vectors);
    float[] values = new float[NR * Math.min(PACK, d)];
    Checkpoint checkpoint = new Checkpoint();
    for (int b = first; b < end; b += NR) {
      checkpoint.pass((long) NR * d);
      int rows = Math.min(NR, end - b);
      for (int h = 0; h < d; h += PACK) {
        int length = Math.min(PACK, d - h);
        int from = b * d + h;
        int to = (b * d + h * NR) * fields;
        transpose.toLanes(mean, from, d, rows, length, columns, to, fields * NR);
        for (int field = 1; field < fields; field++) {
          for (int i = 0; i < rows; i++) {
            g.copyScales(scale, b + i, h, values, i * length, length);
          }
          convert(scales.get(field - 1), g.kind(), values, rows * length);
          transpose.toLanes(values, 0, length, rows, length, columns, to + field * NR, fields * NR);
        }
      }
    }
  }

  /** Packs a panel of one row, a query as a rule, without the memory that squares take: 4·D bytes instead of 128·D. */
  private static void packRow(
      List<Field> scales, DiagonalBatch g, float[] mean, float[] scale, int row, float[] columns) {
    int d = g.dimension();
    int fields = 1 + scales.size();
    int from = row * d;
    int to = from * fields;
    toLane(mean, from, d, columns, to, fields * NR);
    float[] values = new float[d];
    for (int field = 1; field < fields; field++) {
      g.copyScales(scale, row, 0, values, 0, d);
      convert(scales.get(field - 1), g.kind(), values, d);
      toLane(values, 0, d, columns, to + field * NR, fields * NR);
    }
  }

  private static void toLane(float[] in, int from, int n, float[] out, int to, int stride) {
    for (int k = 0; k < n; k++) {
      out[to + k * stride] = in[from + k];
    }
  }

  private static void convert(Field field, Scale kind, float[] values, int n) {
    switch (field) {
      case STD -> toStd(kind, values, n);
      case VARIANCE -> toVariance(kind, values, n);
      case PRECISION -> toPrecision(kind, values, n);
    }
  }

  @SuppressWarnings("cast") // redundant in double
  private static void toStd(Scale kind, float[] values, int n) {
    switch (kind) {
      case STD -> {}
      case VARIANCE -> {
        for (int k = 0; k < n; k++) {
          values[k] = (float) Math.sqrt(values[k]);
        }
      }
      case LOG_VARIANCE -> {
        for (int k = 0; k < n; k++) {
          values[k] = (float) Math.exp(0.5 * values[k]);
        }
      }
      case PRECISION -> {
        for (int k = 0; k < n; k++) {
          values[k] = (float) (1 / Math.sqrt(values[k]));
        }
      }
    }
  }

  @SuppressWarnings("cast") // redundant in double
  private static void toVariance(Scale kind, float[] values, int n) {
    switch (kind) {
      case STD -> {
        for (int k = 0; k < n; k++) {
          values[k] = values[k] * values[k];
        }
      }
      case VARIANCE -> {}
      case LOG_VARIANCE -> {
        for (int k = 0; k < n; k++) {
          values[k] = (float) kind.variance(values[k]);
        }
      }
      case PRECISION -> {
        for (int k = 0; k < n; k++) {
          values[k] = 1 / values[k];
        }
      }
    }
  }

  /** Turns raw scales into 1/v, in place: where two arrays could be one, C2 of JDK 25 makes no vectors; 0.84 ns each, not 0.25 (Zen 4). */
  @SuppressWarnings("cast") // redundant in double
  private static void toPrecision(Scale kind, float[] values, int n) {
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
}
