package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * Packs a batch into the panels that {@link FloatMeasureSums} reads, and computes its sums without vectors. Nothing here loads a class of
 * vectors, but {@link FloatTranspose} may. The build derives {@code DoubleMeasurePanels} from this text.
 */
final class FloatMeasurePanels {
  static final int NR = FloatPanels.NR;

  /** Dimensions packed at a time. */
  private static final int PACK = 256;

  private static final PanelForm<DiagonalBatch, float[], float[]> STDS =
      form(Summand.WASSERSTEIN_2);
  private static final PanelForm<DiagonalBatch, float[], float[]> VARIANCES =
      form(Summand.CHERNOFF);
  private static final PanelForm<DiagonalBatch, float[], float[]> BOTH = form(Summand.JEFFREYS);

  private FloatMeasurePanels() {}

  static PanelForm<DiagonalBatch, float[], float[]> of(Summand summand) {
    return switch (summand) {
      case WASSERSTEIN_2 -> STDS;
      case JEFFREYS -> BOTH;
      case CHERNOFF -> VARIANCES;
    };
  }

  private static PanelForm<DiagonalBatch, float[], float[]> form(Summand summand) {
    return new PanelForm<>(
        g -> Math.ceilDiv(g.size(), NR) * NR * summand.fields() * g.dimension(),
        float[]::new,
        (g, columns, vectors, worker) -> pack(summand, g, columns, vectors, worker),
        c -> (long) Float.BYTES * c.length);
  }

  /** Packs into an array that may be longer. The rows that pad the last panel keep any values. */
  private static float[] pack(
      Summand summand, DiagonalBatch g, float[] columns, boolean vectors, Worker worker) {
    float[] mean = g.mean32(); // in double copies of a float batch's: once for all parts
    float[] scale = g.scale32();
    worker.share(
        g.size(),
        NR,
        Checkpoint.ofPlain(g.dimension()),
        (from, to) -> packPanels(summand, g, mean, scale, from, to, columns, vectors));
    return columns;
  }

  private static void packPanels(
      Summand summand,
      DiagonalBatch g,
      float[] mean,
      float[] scale,
      int first,
      int end,
      float[] columns,
      boolean vectors) {
    int d = g.dimension();
    int fields = summand.fields();
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
            System.arraycopy(scale, from + i * d, values, i * length, length);
          }
          if (summand == Summand.WASSERSTEIN_2) {
            toStd(g.kind(), values, rows * length);
          } else if (field == 1) {
            toVariance(g.kind(), values, rows * length);
          } else {
            FloatPanels.invert(g.kind(), values, rows * length);
          }
          transpose.toLanes(values, 0, length, rows, length, columns, to + field * NR, fields * NR);
        }
      }
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

  /**
   * Computes the sum of row i of q and column j of p without vectors, by the very operations of a lane of {@link FloatMeasureSums#compute}.
   */
  static double sum(
      MeasureOperands operands,
      float[] q,
      MeasureOperands.Rows rowsQ,
      int i,
      float[] p,
      MeasureOperands.Rows rowsP,
      int j) {
    Summand summand = operands.summand();
    int d = operands.q().dimension();
    int step = summand.fields() * NR;
    int a = (i - i % NR) * summand.fields() * d + i % NR;
    int b = (j - j % NR) * summand.fields() * d + j % NR;
    return switch (summand) {
      case WASSERSTEIN_2, JEFFREYS -> {
        double sum = 0;
        for (int g = 0; g < d; g += FloatPanels.PROMOTED) {
          float chunks = 0;
          for (int h = g, end = Math.min(d, g + FloatPanels.PROMOTED); h < end; h += PairKl.BLOCK) {
            int last = Math.min(end, h + PairKl.BLOCK);
            chunks +=
                summand == Summand.JEFFREYS
                    ? jeffreys(q, a + h * step, p, b + h * step, last - h)
                    : wasserstein(q, a + h * step, p, b + h * step, last - h);
          }
          sum += chunks;
        }
        yield sum;
      }
      case CHERNOFF -> {
        double alpha = operands.alpha();
        double logs = -2 * alpha * rowsP.log()[j] + -2 * (1 - alpha) * rowsQ.log()[i];
        yield chernoff(alpha, q, a, p, b, d, logs + d * Math.log(alpha));
      }
    };
  }

  private static float wasserstein(float[] q, int a, float[] p, int b, int length) {
    float sum = 0;
    for (int k = 0; k < length; k++, a += 2 * NR, b += 2 * NR) {
      float x = q[a] - p[b];
      float y = q[a + NR] - p[b + NR];
      sum = Math.fma(y, y, Math.fma(x, x, sum));
    }
    return sum;
  }

  private static float jeffreys(float[] q, int a, float[] p, int b, int length) {
    float sum = 0;
    for (int k = 0; k < length; k++, a += 3 * NR, b += 3 * NR) {
      float x = q[a] - p[b];
      float s = q[a + 2 * NR] + p[b + 2 * NR];
      if (Float.SIZE == 32) {
        sum = Math.fma(Math.fma(x, x, q[a + NR] + p[b + NR]), s, sum);
      } else {
        float y = q[a + NR] - p[b + NR];
        float z = p[b + 2 * NR] - q[a + 2 * NR];
        sum = Math.fma(y, z, Math.fma(x * x, s, sum));
      }
    }
    return sum;
  }

  @SuppressWarnings("cast") // redundant in double
  private static double chernoff(
      double alpha, float[] q, int a, float[] p, int b, int d, double offset) {
    float weight = (float) MeasureOperands.rowWeight(alpha);
    double sum = 0;
    float chunks = 0;
    float product = 1;
    float numerator = 0;
    double exponent = 0;
    for (int h = 0; h < d; h++, a += 2 * NR, b += 2 * NR) {
      float x = q[a] - p[b];
      float s = q[a + NR] * weight + p[b + NR];
      numerator = Math.fma(numerator, s, x * x * product);
      product *= s;
      boolean isLast = h + 1 == d;
      if ((h + 1) % Summand.RUN == 0 || isLast) {
        int e = Math.getExponent(product);
        exponent += e;
        float power = (float) Math.scalb(1.0, -e);
        product *= power;
        numerator *= power;
      }
      if ((h + 1) % Summand.RUNS == 0 || isLast) {
        chunks += numerator / product;
        numerator = 0;
      }
      if ((h + 1) % FloatPanels.PROMOTED == 0 || isLast) {
        sum += chunks;
        chunks = 0;
      }
    }
    return Logarithm.add(sum, 1 - alpha, product, exponent, offset);
  }
}
