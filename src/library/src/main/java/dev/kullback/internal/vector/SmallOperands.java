package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.AlikeTerm;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The batches of a call as {@link SmallKernel} reads them. Layouts, for vector b of V columns, dimension h:
 *
 * <pre>
 * columns [b][D][2][V], [b][V]   μ, 1/v; then offsetP, the last of a vector's 2 D + 1
 *         [N]                    noiseP, behind all of these
 * scales  [b][D][2][V]           the raw scale s, of precisions 1/s; 1/σ
 * variances [b][D][4][V]         of batches of two kinds, columns and rows: v, what it lacks once it is rounded, 1/v, 1/√v
 * </pre>
 */
public final class SmallOperands extends Operands<DiagonalBatch> {
  private static final int V = VectorWidth.BITS / Double.SIZE;

  /** Largest mean at which, with variances in 2^±500, no sum overflows. */
  private static final double MOST_MEAN = 0x1p250;

  /** A batch as columns. */
  record Columns(double[] values, double mostNoise) {}

  private static final PanelForm<DiagonalBatch, double[], Columns> COLUMNS =
      new PanelForm<>(
          SmallOperands::length,
          double[]::new,
          (batch, array, vectors, worker) -> pack(batch, array),
          c -> (long) Double.BYTES * c.values().length);

  /** Scales of a batch as columns, read where entries are recomputed. */
  static final DerivedForm<DiagonalBatch, double[]> SCALES =
      new DerivedForm<>(SmallOperands::packScales, s -> (long) Double.BYTES * s.length);

  /** Variances of a batch in two parts, read where entries of two kinds of scales are recomputed. */
  static final DerivedForm<DiagonalBatch, double[]> VARIANCES =
      new DerivedForm<>(SmallOperands::packVariances, v -> (long) Double.BYTES * v.length);

  private final PanelForm.Memory<double[]> memory = new PanelForm.Memory<>();
  private @Nullable Columns columns;

  @Override
  public void prepare(Batch batch, boolean vectors) {
    COLUMNS.of((DiagonalBatch) batch, vectors);
    SCALES.of((DiagonalBatch) batch);
  }

  @Override
  public void pack(Batch q, Batch p, boolean vectors, Worker worker) {
    hold((DiagonalBatch) q, (DiagonalBatch) p);
    columns = COLUMNS.of(p(), p.markUsed(), memory, vectors, worker);
  }

  @Override
  public void clear() {
    super.clear();
    columns = null;
  }

  Columns columns() {
    return Objects.requireNonNull(columns);
  }

  /** Whether a batch has its {@link #VARIANCES}, or so many entries that are recomputed are worth them. */
  static boolean areVariancesKept(DiagonalBatch g, int entries) {
    return VARIANCES.made(g) != null || g.isWorthForms(entries);
  }

  /** Index of the first noise in a batch's columns. */
  static int noises(DiagonalBatch g) {
    return padded(g) * (2 * g.dimension() + 1);
  }

  /** Columns, with padding that fills the last vector. */
  private static int padded(DiagonalBatch g) {
    return Math.ceilDiv(g.size(), V) * V;
  }

  private static int length(DiagonalBatch g) {
    return padded(g) * (2 * g.dimension() + 2);
  }

  private static Columns pack(DiagonalBatch g, double[] values) {
    int d = g.dimension();
    int padded = padded(g);
    int noises = noises(g);
    double unit = PairKl.unit64(d);
    double most = 0;
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < padded; j++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      int i = Math.min(j, g.size() - 1); // what fills a vector must not look uncertain
      int to = j / V * V * (2 * d + 1) + j % V;
      boolean held = isHeld(g, i);
      for (int h = 0; h < d; h++, to += 2 * V) {
        values[to] = held ? g.mean(i * d + h) : 0;
        values[to + V] = held ? g.precision(i * d + h) : 0;
      }
      double noise = held ? PairKl.noiseP(g, i, unit) : 0;
      values[noises + j] = noise;
      values[to] = held ? PairKl.offsetP(g, i) : Double.NEGATIVE_INFINITY;
      most = Math.max(most, noise);
    }
    return new Columns(values, most);
  }

  static boolean isHeld(DiagonalBatch g, int i) {
    int d = g.dimension();
    boolean held = !g.beyond64().get(i);
    for (int k = i * d; k < (i + 1) * d; k++) {
      held &= Math.abs(g.mean(k)) <= MOST_MEAN;
    }
    return held;
  }

  private static double[] packScales(DiagonalBatch g) {
    int d = g.dimension();
    double[] scales = new double[padded(g) * 2 * d];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < g.size(); j++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      int to = j / V * V * 2 * d + j % V;
      for (int h = 0; h < d; h++, to += 2 * V) {
        double s = g.scale(j * d + h);
        scales[to] = g.kind() == Scale.PRECISION ? 1 / s : s;
        scales[to + V] = AlikeTerm.inverseStd(g.kind(), s);
      }
    }
    return scales;
  }

  private static double[] packVariances(DiagonalBatch g) {
    int d = g.dimension();
    double[] variances = new double[padded(g) * 4 * d];
    Variance variance = new Variance();
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < g.size(); j++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      int to = j / V * V * 4 * d + j % V;
      for (int h = 0; h < d; h++, to += 4 * V) {
        variance.set(g.kind(), g.scale(j * d + h));
        double v = variance.toDouble();
        variances[to] = v;
        variances[to + V] = variance.restToDouble();
        variances[to + 2 * V] = 1 / v;
        variances[to + 3 * V] = AlikeTerm.inverseStd(Scale.VARIANCE, v);
      }
    }
    return variances;
  }
}
