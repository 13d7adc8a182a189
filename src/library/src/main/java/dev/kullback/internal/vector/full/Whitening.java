package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Rows whose means are whitened by the factor L that all p share: with a centre c and {@code y = L⁻¹(μ − c)}, the squared Mahalanobis distance is {@code
 * ‖y_q − y_p‖²}, and KL a half of it and what the factors alone make. So the product has D entries, where that of matrices has D(D+3)/2.
 *
 * <p>y is computed in twice the precision of double, to a relative error of {@code η = u + 4 D²u²κ} with u the unit of rounding and {@code κ =
 * ‖L‖‖L⁻¹‖}. With Γ roundings of an inner product the error of {@code ½‖y_q − y_p‖²} is at most
 *
 * <pre>
 * product      ½Γu (‖y_q‖² + ‖y_p‖²)     as 2‖y_q‖‖y_p‖ ≤ ‖y_q‖² + ‖y_p‖²
 * ½‖y‖²        ½Γu (‖y_q‖² + ‖y_p‖²)
 * y            2η (‖y_q‖² + ‖y_p‖²)      as the difference changes by η(‖y_q‖ + ‖y_p‖)
 * addition     1.5u (‖y_q‖² + ‖y_p‖²)
 * </pre>
 *
 * which is at most {@code 1.5 + 4(η/u − 1)/(2Γ + 4)} times the weight {@code ½u(2Γ + 4)} of squares in {@link FullColumns#ofSquares}. For one thread.
 */
final class Whitening implements IntConsumer {
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  private static final DerivedForm<FullBatch, Form> FORM =
      new DerivedForm<>(p -> new Form(p, false, new Worker()), Form::bytes);

  /** Whether vectors whiten, or plain code to the same bits. */
  private boolean vectors;

  private @Nullable Batch g;
  private @Nullable FullBatch p;
  private double[] centre = {};

  /** Panels of a task. */
  private int panels;

  private FullRows rows = rows(0, 0);

  /** What rounding took of the rows' means, in the same order. */
  private double[] low = {};

  /** A batch whose Gaussians share a factor as columns, and its own rows. */
  static final class Form {
    final FullColumns columns;
    final FullRows rows;
    final double[] centre;

    private Form(FullBatch p, boolean vectors, Worker worker) {
      int d = p.dimension();
      int padded = FullPacking.padded(p, NR);
      centre = FullPacking.centre(p.size(), d, k -> p.mean()[k]);
      rows = new Whitening().of(p, p, centre, 0.5, 0, vectors, worker);
      double[] values = new double[padded * d];
      for (int j = 0; j < p.size(); j++) {
        int from = j / MR * MR * d + j % MR;
        int to = j / NR * NR * d + j % NR;
        for (int h = 0; h < d; h++) {
          values[to + h * NR] = -2 * rows.mean()[from + h * MR];
        }
      }
      columns =
          new FullColumns(
              values,
              true,
              true,
              new double[d],
              Arrays.copyOf(rows.offset(), padded),
              new double[padded],
              new double[padded],
              new double[padded],
              new double[padded]);
      double condition = condition(p, vectors, worker);
      double more = 4.0 * d * d * FullPacking.UNIT * condition; // η/u − 1
      double weight = 1.5 + 4 * more * 0.5 * FullPacking.UNIT / columns.ofSquares();
      Arrays.fill(columns.weight(), weight);
      for (int j = 0; j < p.size(); j++) {
        columns.noise()[j] = weight * columns.ofSquares() * 2 * columns.offset()[j];
      }
      Arrays.fill(columns.tolerance(), PairKl.DOUBLE_TOLERANCE * Math.clamp(condition, 1, 100));
    }

    private long bytes() {
      return columns.bytes() + rows.bytes() + (long) Double.BYTES * centre.length;
    }
  }

  /** Returns the form that a batch keeps, which all threads of the worker's call make if nobody has. */
  static Form of(FullBatch p, boolean vectors, Worker worker) {
    Form made = FORM.made(p);
    return made != null ? made : FORM.of(p, batch -> new Form(batch, vectors, worker));
  }

  /** Returns a batch as rows until the next call, of which each adds {@code factor·‖y‖² + more}. */
  FullRows of(
      Batch g,
      FullBatch p,
      double[] centre,
      double factor,
      double more,
      boolean vectors,
      Worker worker) {
    int d = p.dimension();
    int padded = FullPacking.padded(g, MR);
    if (low.length < padded * d || rows.offset().length < padded) {
      rows = rows(padded, d);
      low = new double[padded * d];
    }
    this.g = g;
    this.p = p;
    this.centre = centre;
    this.vectors = vectors;
    panels = Checkpoint.taskRows(terms(d), MR) / MR;
    worker.share(Math.ceilDiv(padded, MR * panels), this);
    for (int i = 0; i < g.size(); i++) {
      boolean isHeld = !(g instanceof FullBatch full && full.isBeyond(i));
      rows.offset()[i] = isHeld ? factor * squares(i, d) + more : Double.NaN;
    }
    return rows;
  }

  /** Drops the caller's batches, also of a call that was interrupted. */
  void clear() {
    g = null;
    p = null;
  }

  private static FullRows rows(int padded, int d) {
    double[] zeros = new double[padded];
    return new FullRows(
        new double[MR], 0, new double[padded * d], new double[padded], zeros, zeros);
  }

  /** Counts what a mean takes: half of D² terms of some ten operations. */
  private static long terms(int d) {
    return 8L * d * d;
  }

  /** Whitens the panels of a task. */
  @Override
  public void accept(int task) {
    Batch g = Objects.requireNonNull(this.g);
    FullBatch p = Objects.requireNonNull(this.p);
    int d = p.dimension();
    int all = FullPacking.padded(g, MR) / MR;
    for (int panel = task * panels; panel < Math.min(all, (task + 1) * panels); panel++) {
      int at = panel * d * MR;
      for (int lane = 0; lane < MR; lane++) {
        int i = Math.min(panel * MR + lane, g.size() - 1);
        for (int h = 0; h < d; h++) {
          double mean = mean(g, i * d + h);
          double m = mean - centre[h];
          rows.mean()[at + h * MR + lane] = m;
          low[at + h * MR + lane] = Compensation.error(mean, -centre[h], m);
        }
      }
      whiten(p, 0, rows.mean(), low, at, vectors);
    }
  }

  private static double mean(Batch g, int k) {
    return g instanceof FullBatch full ? full.mean()[k] : ((DiagonalBatch) g).mean(k);
  }

  private static void whiten(
      FullBatch p, int first, double[] y, double[] low, int at, boolean vectors) {
    double[] l = p.scaleTril();
    int d = p.dimension();
    if (vectors) {
      for (int v = 0; v < MR; v += FullPacking.V) {
        TriangleKernels.whiten(l, p.scaleTrilLow(), first, d, y, low, at + v);
      }
    } else {
      for (int v = 0; v < MR; v++) {
        ScalarTriangleKernels.whiten(l, p.scaleTrilLow(), first, d, y, low, at + v);
      }
    }
  }

  /** Returns ‖y‖² of a row, NaN of one that the product cannot hold. */
  private double squares(int i, int d) {
    double[] y = rows.mean();
    double sum = 0;
    for (int h = 0, at = i / MR * MR * d + i % MR; h < d; ) {
      double squares = 0;
      for (int end = Math.min(d, h + ProductKernels.KC); h < end; h++, at += MR) {
        squares = Math.fma(y[at], y[at], squares);
      }
      sum += squares;
    }
    return FullBatch.holds(Math.sqrt(sum)) ? sum : Double.NaN;
  }

  /** Returns {@code ‖L‖‖L⁻¹‖}, the inverse from whitened unit vectors. */
  private static double condition(FullBatch p, boolean vectors, Worker worker) {
    int d = p.dimension();
    double squares = 0;
    for (int k = 0; k < Cholesky.packedLength(d); k++) {
      squares += p.scaleTril()[k] * p.scaleTril()[k];
    }
    double[] norms = new double[d];
    worker.share(
        d,
        MR,
        terms(d),
        (from, to) -> {
          double[] y = new double[d * MR];
          double[] low = new double[d * MR];
          for (int first = from; first < to; first += MR) {
            Arrays.fill(y, 0);
            Arrays.fill(low, 0);
            for (int c = first; c < Math.min(first + MR, d); c++) {
              y[c * MR + c - first] = 1;
            }
            whiten(p, first, y, low, 0, vectors);
            for (double x : y) {
              norms[first] += x * x;
            }
          }
        });
    return Math.sqrt(squares) * Math.sqrt(Arrays.stream(norms).sum());
  }
}
