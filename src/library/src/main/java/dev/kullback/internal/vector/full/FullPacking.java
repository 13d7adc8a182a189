package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.DoubleTranspose;
import dev.kullback.internal.vector.PanelForm;
import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.function.IntToDoubleFunction;

/**
 * Turns batches into the rows and columns of the full-covariance product, a Gaussian in each lane, with a bound on each entry's error: in
 * units of rounding, with g = roundings(d), norms ‖·‖ of Frobenius, and ν(L) ≥ ‖|L||Lᵀ|‖,
 *
 * <pre>
 * product          g·‖P‖·(‖Σq‖ + 2‖mq‖² + ‖mp‖²)     as 2‖mq‖‖P mp‖ ≤ ‖P‖(‖mq‖² + ‖mp‖²)
 * Σq = LLᵀ         (D+3)·ν(Lq)·‖P‖                   L itself is rounded
 * P = WᵀW, P mp    D·ν(Wᵀ)·(‖Σq‖ + 3‖mq‖² + 5‖mp‖²)
 * m = μ − centre   4·‖P‖·(‖mq‖² + ‖mp‖²)
 * </pre>
 *
 * half of which is at most weightQ·weightP + noiseP. W = Lp⁻¹ is computed such that W Lp = I + G with |G| ≤ (D+6)|W||Lp| (N. J. Higham,
 * Accuracy and Stability of Numerical Algorithms, 2nd ed., 14.2.1), so G only scales what it is used for.
 */
final class FullPacking {
  static final int V = VectorWidth.BITS / Double.SIZE;
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  /** Gaussians whose means tell where a batch lies. */
  private static final int SAMPLES = 31;

  /** Factor for the terms that first-order error bounds leave out. */
  private static final double SAFETY = 1.0625;

  static final double UNIT = 0x1p-53 * SAFETY;

  /** A batch as rows, Gaussians in lanes. */
  static final PanelForm<FullBatch, double[], FullRows> ROWS =
      new PanelForm<>(
          g -> factors(g, MR) * Cholesky.packedLength(g.dimension()),
          double[]::new,
          FullPacking::packRows,
          FullRows::bytes);

  /** A batch as columns, Gaussians in lanes. */
  static final PanelForm<FullBatch, double[], FullColumns> COLUMNS =
      new PanelForm<>(
          g ->
              factors(g, NR) * Cholesky.packedLength(g.dimension()) + padded(g, NR) * g.dimension(),
          double[]::new,
          FullPacking::packColumns,
          FullColumns::bytes);

  /** Points as rows, whose covariances are one panel of zeros. */
  static final PanelForm<DiagonalBatch, double[], FullRows> POINTS =
      new PanelForm<>(
          g -> Math.ceilDiv(g.size(), MR) * MR * g.dimension(),
          double[]::new,
          (g, means, vectors, worker) -> packPoints(g, means),
          FullRows::bytes);

  private FullPacking() {}

  /** Factors of a batch in panels: a panel of the one that all share. */
  private static int factors(FullBatch g, int panel) {
    return g.isShared() ? panel : padded(g, panel);
  }

  static int padded(Batch g, int panel) {
    return Math.ceilDiv(g.size(), panel) * panel;
  }

  /** Roundings of a product of matrices. */
  private static double roundings(int d) {
    return FullColumns.roundings(FullColumns.length(d));
  }

  private static FullRows packRows(
      FullBatch g, double[] covariance, boolean vectors, Worker worker) {
    int padded = padded(g, MR);
    FullRows rows =
        new FullRows(
            covariance,
            g.isShared() ? 0 : MR * Cholesky.packedLength(g.dimension()),
            new double[padded * g.dimension()],
            new double[padded],
            new double[padded],
            new double[padded]);
    share(g, MR, worker, (from, to) -> packRows(g, from, to, rows, vectors));
    return rows;
  }

  /** Shares a batch's panels among threads; a factor that all share is one thread's work. */
  private static void share(FullBatch g, int panel, Worker worker, Worker.Range task) {
    int step = g.isShared() ? padded(g, panel) : panel;
    worker.share(g.size(), step, Checkpoint.ofSolve(g.dimension()), task);
  }

  private static FullRows packPoints(DiagonalBatch g, double[] means) {
    int d = g.dimension();
    int padded = padded(g, MR);
    double[] offset = new double[padded];
    double[] zeros = new double[padded];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < g.size(); i++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      int at = i / MR * MR * d + i % MR;
      for (int h = 0; h < d; h++, at += MR) {
        means[at] = g.mean(i * d + h);
        offset[i] = FullBatch.holds(means[at]) ? offset[i] : Double.NaN;
      }
    }
    return new FullRows(new double[MR], 0, means, offset, zeros, zeros);
  }

  private static void packRows(FullBatch g, int from, int n, FullRows rows, boolean vectors) {
    Packer packer = new Packer(g, vectors, false);
    for (int first = from; first < n; first += packer.lanes) {
      packer.row(first, Math.min(packer.lanes, n - first), rows);
    }
  }

  private static FullColumns packColumns(
      FullBatch g, double[] values, boolean vectors, Worker worker) {
    int padded = padded(g, NR);
    FullColumns columns =
        new FullColumns(
            values,
            g.isShared(),
            false,
            centre(g.size(), g.dimension(), k -> g.mean()[k]),
            new double[padded],
            new double[padded],
            new double[padded],
            new double[padded],
            new double[padded]);
    share(g, NR, worker, (from, to) -> packColumns(g, from, to, columns, vectors));
    return columns;
  }

  private static void packColumns(
      FullBatch g, int from, int n, FullColumns columns, boolean vectors) {
    Packer packer = new Packer(g, vectors, true);
    for (int first = from; first < n; first += packer.lanes) {
      packer.column(first, Math.min(packer.lanes, n - first), columns);
    }
  }

  /**
   * Returns the medians of some of n Gaussians' means: unlike the mean of all, they stay where most are if a few are far away.
   *
   * @param mean row-major [n, d]
   */
  static double[] centre(int n, int d, IntToDoubleFunction mean) {
    int count = Math.min(n, SAMPLES);
    double[] sample = new double[count];
    double[] centre = new double[d];
    for (int h = 0; h < d; h++) {
      for (int i = 0; i < count; i++) {
        sample[i] = mean.applyAsDouble((int) ((long) i * n / count) * d + h);
      }
      Arrays.sort(sample);
      centre[h] = sample[count / 2];
    }
    return centre;
  }

  /** Puts means of Gaussians into lanes: {@code out[to + h·stride + i] = mean(first + i, h)}; lanes i from count to V repeat the last or stay as they are. */
  static void means(
      FullBatch g,
      int first,
      int count,
      double[] out,
      int to,
      int stride,
      DoubleTranspose transpose) {
    int d = g.dimension();
    lanes(g.mean(), first * d, d, count, d, out, to, stride, transpose);
  }

  /** Puts packed factors, or their low parts, into lanes likewise, entry k of Gaussian i at {@code out[k·V + i]}. */
  static void factors(
      double[] factors,
      FullBatch g,
      int first,
      int count,
      double[] out,
      DoubleTranspose transpose) {
    int length = Cholesky.packedLength(g.dimension());
    int step = g.isShared() ? 0 : length;
    lanes(factors, g.factorFrom(first), step, count, length, out, 0, V, transpose);
  }

  private static void lanes(
      double[] in,
      int from,
      int step,
      int count,
      int length,
      double[] out,
      int to,
      int stride,
      DoubleTranspose transpose) {
    if (V >= 4) {
      transpose.toLanes(in, from, step, count, length, out, to, stride);
      return;
    }
    for (int i = 0; i < V; i += 2) {
      int a = from + Math.min(i, count - 1) * step;
      int b = from + Math.min(i + 1, count - 1) * step;
      for (int k = 0, at = to + i; k < length; k++, at += stride) {
        out[at] = in[a + k];
        out[at + 1] = in[b + k];
      }
    }
  }

  /** Stores the weights of rows [row0, row1) in the error bound, with means relative to the columns' centre. */
  static void weigh(FullRows q, int row0, int row1, FullColumns p, double[] weights) {
    double[] centre = p.centre();
    int d = centre.length;
    double weight = p.ofSquares(); // of ‖m_q‖²
    for (int i = row0; i < row1; i++) {
      double squares = 0;
      for (int h = 0, at = i / MR * MR * d + i % MR; h < d; h++, at += MR) {
        double m = q.mean()[at] - centre[h];
        squares += m * m;
      }
      weights[i - row0] = q.weight()[i] + weight * squares;
    }
  }

  /**
   * Packs Gaussians in lanes, and keeps its memory for the next, and a factor that all share. Each step is a method: as one loop, C2 compiled all of them
   * together, plain ones and vectors, and twice, which took it 0.4 s in the first seconds of a process (Zen 4).
   */
  private static final class Packer {
    private final FullBatch g;
    private final int d;
    private final int length;
    private final boolean vectors;
    private final int lanes;
    private final double[] l;
    private final double[] w;
    private final double[] m;
    private final double[] sums;
    private final double[] norms;
    private final DoubleTranspose transpose = new DoubleTranspose(true);
    private final Checkpoint checkpoint = new Checkpoint();

    private Packer(FullBatch g, boolean vectors, boolean hasColumns) {
      this.g = g;
      this.vectors = vectors;
      d = g.dimension();
      length = Cholesky.packedLength(d);
      lanes = vectors ? V : 1;
      l = new double[length * lanes];
      w = new double[hasColumns ? length * lanes : 0];
      m = new double[hasColumns ? d * lanes : 0];
      sums = new double[d * lanes];
      norms = new double[7 * lanes];
    }

    /** Whether the factor of a Gaussian is yet to be packed: all but the first may share that one's. */
    private boolean isToPack(int first) {
      return !g.isShared() || first == 0;
    }

    /** Repeats what was packed of a shared factor, in the first lane of its only panel, in the others. */
    private void repeat(double[] values, int panel) {
      for (int k = 0; k < length * panel && g.isShared(); k += panel) {
        Arrays.fill(values, k + 1, k + panel, values[k]);
      }
    }

    private void row(int first, int count, FullRows rows) {
      if (isToPack(first)) {
        checkpoint.pass(lanes * Checkpoint.ofSolve(d));
        int at = rows.panel(first) + first % MR;
        if (vectors) {
          square(first, count, rows, at);
        } else {
          plainSquare(first, rows, at);
        }
        repeat(rows.covariance(), MR);
      }
      checkpoint.pass(lanes * Checkpoint.ofPlain(d));
      int at = first / MR * MR * d + first % MR;
      if (vectors) {
        means(g, first, count, rows.mean(), at, MR, transpose);
      } else {
        for (int h = 0; h < d; h++) {
          rows.mean()[at + h * MR] = g.mean()[first * d + h];
        }
      }
      bound(first, count, rows);
    }

    private void square(int first, int count, FullRows rows, int at) {
      factors(g.scaleTril(), g, first, count, l, transpose);
      TriangleKernels.squareRows(l, d, rows.covariance(), at, norms, checkpoint);
      TriangleKernels.norms(l, d, sums, norms, V);
    }

    private void plainSquare(int row, FullRows rows, int at) {
      System.arraycopy(g.scaleTril(), g.factorFrom(row), l, 0, length);
      ScalarTriangleKernels.squareRows(l, d, rows.covariance(), at, norms, checkpoint);
      ScalarTriangleKernels.norms(l, d, sums, norms, 1);
    }

    private void bound(int first, int count, FullRows rows) {
      for (int i = 0; i < count; i++) {
        int row = first + i;
        rows.offset()[row] = g.isBeyond(row) ? Double.NaN : -g.logDet(row);
        rows.noise()[row] = g.logDetBound(row) + 4 * UNIT * Math.abs(g.logDet(row));
        rows.weight()[row] =
            0.5 * UNIT * (roundings(d) * Math.sqrt(norms[i]) + (d + 3) * norms[2 * lanes + i]);
      }
    }

    private void column(int first, int count, FullColumns columns) {
      if (isToPack(first)) {
        checkpoint.pass(lanes * Checkpoint.ofSolve(d));
        int at = columns.precision(first) + first % NR;
        if (vectors) {
          invert(first, count, columns, at);
        } else {
          plainInvert(first, columns, at);
        }
        repeat(columns.values(), NR);
      }
      checkpoint.pass(lanes * Checkpoint.ofPlain(2L * length));
      int at = columns.ofMean(first) + first % NR;
      if (vectors) {
        means(g, first, count, m, 0, V, transpose);
        TriangleKernels.subtract(columns.centre(), d, m);
        TriangleKernels.solve(w, m, d, columns.values(), at, sums, norms, V);
      } else {
        System.arraycopy(g.mean(), first * d, m, 0, d);
        ScalarTriangleKernels.subtract(columns.centre(), d, m);
        ScalarTriangleKernels.solve(w, m, d, columns.values(), at, sums, norms, 1);
      }
      bound(first, count, columns);
    }

    private void invert(int first, int count, FullColumns columns, int at) {
      factors(g.scaleTril(), g, first, count, l, transpose);
      TriangleKernels.invert(l, d, w, checkpoint);
      TriangleKernels.squareColumns(w, d, columns.values(), at, norms, checkpoint);
      TriangleKernels.norms(l, d, sums, norms, 3 * V);
      TriangleKernels.norms(w, d, sums, norms, 5 * V);
    }

    private void plainInvert(int column, FullColumns columns, int at) {
      System.arraycopy(g.scaleTril(), g.factorFrom(column), l, 0, length);
      ScalarTriangleKernels.invert(l, d, w, checkpoint);
      ScalarTriangleKernels.squareColumns(w, d, columns.values(), at, norms, checkpoint);
      ScalarTriangleKernels.norms(l, d, sums, norms, 3);
      ScalarTriangleKernels.norms(w, d, sums, norms, 5);
    }

    private void bound(int first, int count, FullColumns columns) {
      double units = roundings(d);
      for (int i = 0; i < count; i++) {
        int j = first + i;
        double precision = Math.sqrt(norms[i]);
        double mahalanobis = norms[lanes + i];
        double squaredMean = norms[2 * lanes + i];
        double normL = norms[3 * lanes + i];
        double spreadL = norms[4 * lanes + i];
        double normW = norms[5 * lanes + i];
        double spreadW = norms[6 * lanes + i];
        double residual =
            UNIT * (d + 6) * Math.min(spreadL / normL * normW, spreadW / normW * normL);
        columns.offset()[j] = g.isBeyond(j) ? Double.NaN : g.logDet(j) + 0.5 * (mahalanobis - d);
        columns.noise()[j] =
            g.logDetBound(j)
                + 4 * UNIT * (Math.abs(g.logDet(j)) + d + mahalanobis)
                + 0.5 * UNIT * squaredMean * ((units + 4) * precision + 5 * d * spreadW)
                + residual * mahalanobis;
        columns.weight()[j] = precision + 1.5 * d / units * spreadW;
        columns.inverseError()[j] = residual;
        // the condition number counts up to where it would show: the bounds are those of the worst
        // case, and errors found are below 1e-13
        columns.tolerance()[j] = PairKl.DOUBLE_TOLERANCE * Math.clamp(normL * normW, 1, 100);
      }
    }
  }
}
