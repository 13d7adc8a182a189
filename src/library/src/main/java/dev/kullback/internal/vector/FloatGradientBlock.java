package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairGradient.Term;
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

  private final float[] weights = new float[SIDE * SIDE];
  private final int[] list = new int[SIDE / ROWS * SIDE];
  private final int[] ends = new int[SIDE / ROWS * CHUNKS];
  private final float[] rowSums = new float[SIDE * 2 * W];
  private final float[] columnSums = new float[SIDE * 2 * W];
  private final float[] chunkSums = new float[CHUNK * 2 * W];

  /** Takes the cotangents of a block, and returns whether they and its Gaussians are in range. */
  @SuppressWarnings("cast") // of the twin in double
  boolean take(
      double[] from,
      FloatGradientForm q,
      int row0,
      int rows,
      FloatGradientForm p,
      int column0,
      int columns) {
    boolean isHeld = true;
    for (int i = 0; i < rows; i++) {
      for (int k = i * SIDE; k < i * SIDE + columns; k++) {
        double weight = Math.abs(from[k]);
        isHeld &=
            weight <= FloatGradientForm.MOST_WEIGHT
                && (weight >= FloatGradientForm.LEAST_WEIGHT || weight == 0);
        weights[k] = (float) from[k];
      }
    }
    int row = q.beyond.nextSetBit(row0);
    int column = p.beyond.nextSetBit(column0);
    return isHeld && (row < 0 || row >= row0 + rows) && (column < 0 || column >= column0 + columns);
  }

  /** Adds the block's sums to those of all, as {@link GradientKernel#add} does. */
  void add(
      Term term,
      boolean ofLogs,
      boolean vectors,
      DiagonalBatch q,
      float[] panelsQ,
      int row0,
      int rows,
      DiagonalBatch p,
      float[] panelsP,
      int column0,
      int columns,
      double[] sumsQ,
      double[] sumsP,
      Worker worker) {
    if (!list(rows, columns)) {
      return;
    }
    int d = q.dimension();
    for (int h = 0; h < d; h += W) {
      worker.pass(2L * W * rows * columns);
      int q0 = (h / W * q.size() + row0) * (FloatGradientForm.FIELDS * W);
      int p0 = (h / W * p.size() + column0) * (FloatGradientForm.FIELDS * W);
      if (vectors) {
        FloatGradientSums.block(
            term,
            ofLogs,
            panelsQ,
            q0,
            rows,
            panelsP,
            p0,
            columns,
            weights,
            list,
            ends,
            rowSums,
            columnSums,
            chunkSums);
      } else {
        FloatScalarGradientSums.block(
            term,
            ofLogs,
            panelsQ,
            q0,
            rows,
            panelsP,
            p0,
            columns,
            weights,
            list,
            ends,
            rowSums,
            columnSums,
            chunkSums);
      }
      add(rowSums, rows * 2 * W, sumsQ, (h / W * q.size() + row0) * 2 * W);
      add(columnSums, columns * 2 * W, sumsP, (h / W * p.size() + column0) * 2 * W);
    }
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
