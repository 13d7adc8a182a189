package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.vector.GradientKernel.Difference;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;

/** A block of {@link GradientKernel} in float, its working memory and what it adds to the sums of all. */
final class FloatGradientBlock {
  private static final int W = GradientKernel.W;
  private static final int SIDE = GradientKernel.SIDE;
  private static final int CHUNK = GradientKernel.CHUNK;
  private static final int CHUNKS = SIDE / CHUNK;

  /** Rows that go through the columns together. */
  private static final int ROWS = 4;

  /** Cotangents, SIDE a row, 0 in rows up to the next multiple of four. */
  final float[] weights = new float[SIDE * SIDE];

  /** Columns that have a cotangent, SIDE for each four rows, and the end of each chunk of columns among these. */
  final int[] list = new int[SIDE / ROWS * SIDE];

  final int[] ends = new int[SIDE / ROWS * CHUNKS];

  /** Two sums for each dimension of a panel, by the mean and by the scale, those of columns negated. */
  final float[] rowSums = new float[SIDE * 2 * W];

  final float[] columnSums = new float[SIDE * 2 * W];

  /** Sums by scale of each row and column from which on the parts of variances tell log-variances near 0 apart. */
  private final float[] leastOfRows = new float[SIDE];

  private final float[] leastOfColumns = new float[SIDE];

  /** Working memory for the columns of a chunk and their sums. */
  final float[] chunk = new float[CHUNK * FloatGradientForm.FIELDS * W];

  final float[] chunkSums = new float[CHUNK * 2 * W];

  /** Takes the cotangents of a block, and returns whether they and its Gaussians are in range. */
  boolean take(
      Cotangents cotangents,
      FloatGradientForm q,
      int row0,
      int rows,
      FloatGradientForm p,
      int column0,
      int columns) {
    int row = q.beyond.nextSetBit(row0);
    int column = p.beyond.nextSetBit(column0);
    boolean isHeld = (row < 0 || row >= row0 + rows) && (column < 0 || column >= column0 + columns);
    for (int i = 0; i < rows && isHeld; i++) {
      isHeld =
          cotangents.read(
              row0 + i,
              column0,
              column0 + columns,
              weights,
              i * SIDE,
              FloatGradientForm.LEAST_WEIGHT,
              FloatGradientForm.MOST_WEIGHT);
    }
    return isHeld;
  }

  /** Adds the block's sums to those of all, as {@link GradientKernel#add} does. */
  void add(
      Term term,
      Difference difference,
      boolean vectors,
      DiagonalBatch q,
      FloatGradientForm formQ,
      int row0,
      int rows,
      DiagonalBatch p,
      FloatGradientForm formP,
      int column0,
      int columns,
      double[] sumsQ,
      double[] sumsP,
      Worker worker) {
    if (!list(rows, columns)) {
      return;
    }
    boolean mayBeNear = formQ.nearZero.intersects(formP.nearZero);
    if (mayBeNear) {
      addWeights(rows, columns);
    }
    int d = q.dimension();
    for (int h = 0; h < d; h += W) {
      worker.pass(2L * W * rows * columns);
      int q0 = (h / W * q.size() + row0) * (FloatGradientForm.FIELDS * W);
      int p0 = (h / W * p.size() + column0) * (FloatGradientForm.FIELDS * W);
      sum(term, difference, vectors, formQ.panels, q0, rows, formP.panels, p0, columns);
      if (mayBeNear
          && formQ.nearZero.get(h / W)
          && formP.nearZero.get(h / W)
          && !(areTold(vectors, rowSums, leastOfRows, rows, d - h)
              && areTold(vectors, columnSums, leastOfColumns, columns, d - h))) {
        worker.pass(4L * W * rows * columns);
        float[] logsQ = FloatGradientForm.of(q, term.isByStd(), true).panels;
        float[] logsP = FloatGradientForm.of(p, term.isByStd(), true).panels;
        sum(term, Difference.LOGS, vectors, logsQ, q0, rows, logsP, p0, columns);
      }
      add(rowSums, rows * 2 * W, sumsQ, (h / W * q.size() + row0) * 2 * W);
      add(columnSums, columns * 2 * W, sumsP, (h / W * p.size() + column0) * 2 * W);
    }
  }

  /** Makes the sums of a panel. */
  private void sum(
      Term term,
      Difference difference,
      boolean vectors,
      float[] panelsQ,
      int q0,
      int rows,
      float[] panelsP,
      int p0,
      int columns) {
    if (vectors) {
      FloatGradientSums.block(term, difference, panelsQ, q0, rows, panelsP, p0, columns, this);
    } else {
      FloatScalarGradientSums.block(
          term, difference, panelsQ, q0, rows, panelsP, p0, columns, this);
    }
  }

  /** Makes the least sums, of the magnitudes of the cotangents. */
  @SuppressWarnings("cast") // of the twin in double
  private void addWeights(int rows, int columns) {
    Arrays.fill(leastOfColumns, 0, columns, 0);
    for (int i = 0; i < rows; i++) {
      double sum = 0;
      for (int j = 0; j < columns; j++) {
        float least = FloatGradientForm.LEAST_SUM * Math.abs(weights[i * SIDE + j]);
        sum += least;
        leastOfColumns[j] += least;
      }
      leastOfRows[i] = (float) sum;
    }
  }

  /** Whether the sums by scale of n Gaussians are all so large, in W dimensions or those that are left. */
  private static boolean areTold(
      boolean vectors, float[] sums, float[] least, int n, int dimensions) {
    if (dimensions >= W) {
      return vectors
          ? FloatGradientSums.areTold(sums, least, n)
          : FloatScalarGradientSums.areTold(sums, least, n);
    }
    boolean are = true;
    for (int i = 0; i < n && are; i++) {
      for (int k = (2 * i + 1) * W; k < (2 * i + 1) * W + dimensions; k++) {
        are &= Math.abs(sums[k]) >= least[i];
      }
    }
    return are;
  }

  /** Lists the columns that have a cotangent in each four rows, and returns whether there are any. */
  private boolean list(int rows, int columns) {
    Arrays.fill(weights, rows * SIDE, Math.ceilDiv(rows, ROWS) * ROWS * SIDE, 0);
    boolean any = false;
    for (int group = 0; group * ROWS < rows; group++) {
      int end = group * SIDE;
      for (int j = 0, w = group * ROWS * SIDE; j < columns; j++, w++) {
        list[end] = j; // to be overwritten unless it counts
        if (weights[w] != 0
            || weights[w + SIDE] != 0
            || weights[w + 2 * SIDE] != 0
            || weights[w + 3 * SIDE] != 0) {
          end++;
        }
        ends[group * CHUNKS + j / CHUNK] = end;
      }
      any |= end > group * SIDE;
    }
    return any;
  }

  private static void add(float[] from, int length, double[] to, int first) {
    for (int k = 0; k < length; k++) {
      to[first + k] += from[k];
    }
  }
}
