package dev.kullback.internal.formula;

import dev.kullback.internal.batch.LowRankBatch;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * {@link LowRankSums} by columns, a dimension in each lane. A block is an array of its own, so that loops have one index for all, as C2 makes no
 * vectors of others: 0.7 of the time (Zen 4, D = 512, r = 8). Two columns are multiplied with two others: three matrices' products took 15 µs that
 * way, and 24 µs, with those of one more, column by column. With two blocks in a loop, 12 arrays, it took 27 µs (AVX-512, Intel, CPU family 6, JDK 25).
 */
final class LowRankPlainSums extends LowRankSums {
  /** The parts of each lane of two by two products of columns, or of one. */
  private final double[][] lanes = new double[4][BLOCK];

  /** Columns of a matrix, rounded up to an even number. */
  private int columns;

  /** By block and dimension uM⁻¹u. */
  private double[][] leverages = {};

  /** By column and block, U, V⁻¹U, UM⁻¹, G, V⁻¹G, cG, W_q and cW_q. */
  private double[][] u = {};

  private double[][] weighedU = {};
  private double[][] solvedU = {};
  private double[][] g = {};
  private double[][] weighedG = {};
  private double[][] changedG = {};
  private double[][] w = {};
  private double[][] changedW = {};

  /** {@code GᵀcG}. */
  private double[] changed = {};

  /** Whose W is at hand, as the pairs of a row have q in common. */
  private @Nullable LowRankBatch ofW;

  private int rowOfW;

  @Override
  protected void clear() {
    super.clear();
    ofW = null;
  }

  @Override
  protected void makeRoom() {
    columns = rank + rank % 2;
    int length = columns * blocks;
    if (leverages.length < blocks) {
      leverages = new double[blocks][BLOCK];
    }
    if (u.length < length) {
      weighedU = new double[length][BLOCK];
      solvedU = new double[length][BLOCK];
      g = new double[length][BLOCK];
      weighedG = new double[length][BLOCK];
      changedG = new double[length][BLOCK];
      w = new double[length][BLOCK];
      changedW = new double[length][BLOCK];
      u = new double[length][BLOCK];
    }
    if (changed.length < rank * rank) {
      changed = new double[rank * rank];
    }
  }

  @Override
  protected void takeP(LowRankBatch p, int j) {
    transpose(p, j, u);
    for (int b = 0; b < blocks; b++) {
      Arrays.fill(leverages[b], 0);
      for (int k = 0; k < columns; k++) {
        double[] x = u[k * blocks + b];
        multiply(inverses[b], x, weighedU[k * blocks + b]);
        double[] y = solvedU[k * blocks + b];
        Arrays.fill(y, 0);
        for (int l = 0; k < rank && l < rank; l++) {
          addMultiple(y, inverse[k * rank + l], u[l * blocks + b]);
        }
        addProduct(leverages[b], x, y);
      }
    }
  }

  @Override
  protected void sumProducts(LowRankBatch q, int i) {
    if (q != ofW || i != rowOfW) {
      transpose(q, i, w);
      ofW = q;
      rowOfW = i;
    }
    traceOfG = 0;
    for (int k = 0; k < columns; k++) {
      weigh(k);
    }
    addUp(ofUG, weighedU, g);
    addUp(ofGG, weighedG, g);
    if (isShared) {
      Arrays.fill(ofWW, 0);
      traceOfU = 0;
      return;
    }
    addUp(changed, changedG, g);
    addUp(ofWW, changedW, w);
    for (int k = 0; k < rank * rank; k++) {
      traceOfG += inverse[k] * changed[k];
    }
    Arrays.fill(lanes[0], 0);
    for (int b = 0; b < blocks; b++) {
      addProduct(lanes[0], excesses[b], leverages[b]);
    }
    traceOfU = total(lanes[0]);
  }

  /** Sums the products of the columns of two matrices, two by two; all but those with U are symmetric. */
  private void addUp(double[] to, double[][] x, double[][] y) {
    for (int k = 0; k < columns; k += 2) {
      for (int l = 0; l < (to == ofUG ? columns : k + 2); l += 2) {
        for (double[] lane : lanes) {
          Arrays.fill(lane, 0);
        }
        int row = k * blocks;
        int column = l * blocks;
        for (int b = 0; b < blocks; b++, row++, column++) {
          addProducts(
              lanes[0],
              lanes[1],
              lanes[2],
              lanes[3],
              x[row],
              x[row + blocks],
              y[column],
              y[column + blocks]);
        }
        for (int place = 0; place < 4; place++) {
          int m = k + place / 2;
          int n = l + place % 2;
          if (m < rank && n < rank && (to == ofUG || n <= m)) {
            double sum = total(lanes[place]);
            to[m * rank + n] = sum;
            if (to != ofUG) {
              to[n * rank + m] = sum;
            }
          }
        }
      }
    }
  }

  /** Puts the columns of W where they are blocks, with 0 behind the dimensions and for those that it lacks. */
  private void transpose(LowRankBatch batch, int i, double[][] to) {
    double[] factor = batch.factor();
    int d = batch.dimension();
    int r = batch.rank();
    for (int b = 0; b < blocks; b++) {
      int length = Math.clamp(d - b * BLOCK, 0, BLOCK);
      for (int k = 0; k < columns; k++) {
        double[] column = to[k * blocks + b];
        int end = k < r ? length : 0;
        for (int t = 0, from = (i * d + b * BLOCK) * r + k; t < end; t++, from += r) {
          column[t] = factor[from];
        }
        Arrays.fill(column, end, BLOCK, 0);
      }
    }
  }

  /** Computes column k of G, and it and that of W_q by what weighs the dimensions, and sums what has one column. */
  private void weigh(int k) {
    for (double[] lane : lanes) {
      Arrays.fill(lane, 0);
    }
    for (int b = 0, at = k * blocks; b < blocks; b++, at++) {
      subtract(w[at], u[at], inverses[b], g[at], weighedG[at]);
      addProduct(lanes[0], differences[b], u[at]);
      if (!isShared) {
        multiply(changes[b], g[at], w[at], changedG[at], changedW[at]);
        addProduct(lanes[1], changedG[at], solvedU[at]);
        addSizes(lanes[2], lanes[3], changes[b], u[at], changedG[at], g[at]);
      }
    }
    if (k < rank) {
      ud[k] = total(lanes[0]);
      traceOfG += 2 * total(lanes[1]);
      sizeU[k] = total(lanes[2]);
      sizeG[k] = total(lanes[3]);
    }
  }

  // Loops of which C2 makes vectors.

  private static void addSizes(
      double[] ofU, double[] ofG, double[] c, double[] u, double[] gc, double[] g) {
    for (int t = 0; t < BLOCK; t++) {
      ofU[t] += Math.abs(c[t]) * (u[t] * u[t]);
      ofG[t] += Math.abs(gc[t] * g[t]);
    }
  }

  private static void multiply(double[] x, double[] y, double[] to) {
    for (int t = 0; t < BLOCK; t++) {
      to[t] = x[t] * y[t];
    }
  }

  private static void multiply(double[] x, double[] y, double[] z, double[] to, double[] other) {
    for (int t = 0; t < BLOCK; t++) {
      to[t] = x[t] * y[t];
      other[t] = x[t] * z[t];
    }
  }

  private static void subtract(double[] x, double[] y, double[] by, double[] to, double[] product) {
    for (int t = 0; t < BLOCK; t++) {
      double difference = x[t] - y[t];
      to[t] = difference;
      product[t] = difference * by[t];
    }
  }

  private static void addProducts(
      double[] s00,
      double[] s01,
      double[] s10,
      double[] s11,
      double[] x0,
      double[] x1,
      double[] y0,
      double[] y1) {
    for (int t = 0; t < BLOCK; t++) {
      s00[t] += x0[t] * y0[t];
      s01[t] += x0[t] * y1[t];
      s10[t] += x1[t] * y0[t];
      s11[t] += x1[t] * y1[t];
    }
  }

  private static void addProduct(double[] sums, double[] x, double[] y) {
    for (int t = 0; t < BLOCK; t++) {
      sums[t] += x[t] * y[t];
    }
  }

  private static void addMultiple(double[] sums, double x, double[] y) {
    for (int t = 0; t < BLOCK; t++) {
      sums[t] += x * y[t];
    }
  }

  private static double total(double[] lanes) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    for (int t = 0; t < BLOCK; t += 4) {
      a += lanes[t];
      b += lanes[t + 1];
      c += lanes[t + 2];
      d += lanes[t + 3];
    }
    return (a + b) + (c + d);
  }
}
