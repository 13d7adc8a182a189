package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.vector.GradientKernel.Difference;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.Objects;

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
      GradientRows<DiagonalBatch> rows,
      FloatGradientForm q,
      GradientRows<DiagonalBatch> columns,
      FloatGradientForm p) {
    boolean isHeld = q.holds(rows.from, rows.to) && p.holds(columns.from, columns.to);
    float least = FloatGradientForm.LEAST_WEIGHT;
    float most = FloatGradientForm.MOST_WEIGHT;
    for (int i = rows.from; i < rows.to && isHeld; i++) {
      int at = (i - rows.from) * SIDE;
      isHeld = cotangents.read(i, columns.from, columns.to, weights, at, least, most);
    }
    return isHeld;
  }

  /** Adds the block's sums to those of all, as {@link GradientKernel#add} does. */
  void add(
      Term term,
      Difference difference,
      boolean vectors,
      GradientRows<DiagonalBatch> rows,
      FloatGradientForm q,
      GradientRows<DiagonalBatch> columns,
      FloatGradientForm p,
      Worker worker) {
    if (!list(rows.size(), columns.size())) {
      return;
    }
    boolean mayBeNear = q.nearZero.intersects(p.nearZero);
    if (mayBeNear) {
      addWeights(rows.size(), columns.size());
    }
    int d = rows.batch().dimension();
    for (int h = 0; h < d; h += W) {
      worker.pass(2L * W * rows.size() * columns.size());
      sum(term, difference, vectors, h, rows, q, columns, p);
      if (mayBeNear
          && q.nearZero.get(h / W)
          && p.nearZero.get(h / W)
          && !(areTold(vectors, rowSums, leastOfRows, rows.size(), d - h)
              && areTold(vectors, columnSums, leastOfColumns, columns.size(), d - h))) {
        worker.pass(4L * W * rows.size() * columns.size());
        FloatGradientForm logsQ = FloatGradientForm.of(rows.batch(), term.isByStd(), true);
        FloatGradientForm logsP = FloatGradientForm.of(columns.batch(), term.isByStd(), true);
        sum(term, Difference.LOGS, vectors, h, rows, logsQ, columns, logsP);
      }
      add(rowSums, rows, h);
      add(columnSums, columns, h);
    }
  }

  /** Makes the sums of a panel, from dimension h on. */
  private void sum(
      Term term,
      Difference difference,
      boolean vectors,
      int h,
      GradientRows<DiagonalBatch> rows,
      FloatGradientForm q,
      GradientRows<DiagonalBatch> columns,
      FloatGradientForm p) {
    int q0 = first(rows, h) * (FloatGradientForm.FIELDS * W);
    int p0 = first(columns, h) * (FloatGradientForm.FIELDS * W);
    int n = rows.size();
    int m = columns.size();
    if (vectors) {
      FloatGradientSums.block(term, difference, q.panels, q0, n, p.panels, p0, m, this);
    } else {
      FloatScalarGradientSums.block(term, difference, q.panels, q0, n, p.panels, p0, m, this);
    }
  }

  /** Returns the number of the first Gaussian in the panel of dimension h, of all panels. */
  private static int first(GradientRows<DiagonalBatch> rows, int h) {
    return h / W * rows.batch().size() + rows.from;
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

  private static void add(float[] from, GradientRows<DiagonalBatch> rows, int h) {
    double[] to = Objects.requireNonNull(rows.sums);
    int first = first(rows, h) * 2 * W;
    for (int k = 0; k < rows.size() * 2 * W; k++) {
      to[first + k] += from[k];
    }
  }
}
