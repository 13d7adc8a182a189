package dev.kullback;

import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * {@link FullPair} for one row and a vector of columns: the same operations on the same numbers in every lane, so the same bits
 * except where the scalar form must decide, which is left to it: an infinite result. Holds the working memory of one thread.
 */
final class FullSolveKernel {
  private static final VectorSpecies<Double> S = VectorWidth.DOUBLE;
  static final int V = S.length();

  private int dimension;

  /** Per entry of the packed factors, a vector: L_p, and E. */
  private double[] factor = {};

  private double[] e = {};

  /** Per dimension, a vector: μ_p, the power of two that a row is scaled by, the inverse of the pivot so scaled. */
  private double[] mean = {};

  private double[] scale = {};
  private double[] inverse = {};

  /** A row of L_p, scaled; y; sums by column. */
  private double[] row = {};

  private double[] y = {};
  private double[] squares = {};

  private final double[] kl = new double[V];

  /** Takes V columns from {@code first} on; those beyond the batch repeat its last. */
  void pack(FullGaussians p, int first) {
    int d = p.dimension();
    int length = FullGaussians.packedLength(d);
    if (dimension != d) {
      dimension = d;
      factor = new double[length * V];
      e = new double[length * V];
      mean = new double[d * V];
      scale = new double[d * V];
      inverse = new double[d * V];
      row = new double[d * V];
      y = new double[d * V];
      squares = new double[d * V];
    }
    int count = Math.min(V, p.size() - first);
    FullKernels.lanes(p.scaleTril, first, count, length, factor, 0, V);
    FullKernels.lanes(p.mean, first, count, d, mean, 0, V);
    for (int k = 0, diagonal = 0; k < d; diagonal += (++k + 1) * V) {
      for (int i = 0; i < V; i++) {
        double t = FullPair.inversePower(factor[diagonal + i]);
        scale[k * V + i] = t;
        inverse[k * V + i] = 1 / (factor[diagonal + i] * t);
      }
    }
  }

  /** KL(q_i ‖ p_j) for the columns packed, or +∞ where {@link FullPair} must decide; valid until the next call. */
  double[] row(FullGaussians q, int i) {
    int d = dimension;
    solve(q.mean, i * d, q.scaleTril, i * FullGaussians.packedLength(d), d);
    for (int lane = 0; lane < V; lane++) {
      double sum = 0;
      for (int k = 0, at = i * FullGaussians.packedLength(d), pivot = lane; k < d; ) {
        double z = y[k * V + lane];
        double s = q.scaleTril[at];
        double t = factor[pivot];
        sum += 0.5 * z * z + FullPair.excess(e[pivot], s, t);
        k++;
        at += k + 1;
        pivot += (k + 1) * V;
      }
      double off = 0;
      for (int c = 0; c < d; c++) {
        off += squares[c * V + lane];
      }
      double x = sum + 0.5 * off;
      kl[lane] = x >= 0 ? x : Double.POSITIVE_INFINITY;
    }
    return kl;
  }

  /** E, y and the sums of squares by column. */
  private void solve(double[] qMean, int qm, double[] qFactor, int q, int d) {
    double[] e = this.e;
    double[] row = this.row;
    double[] y = this.y;
    double[] squares = this.squares;
    for (int c = 0; c < d * V; c += V) {
      DoubleVector.zero(S).intoArray(squares, c);
    }
    for (int k = 0, at = 0; k < d; at += ++k) {
      DoubleVector t = DoubleVector.fromArray(S, scale, k * V);
      DoubleVector inv = DoubleVector.fromArray(S, inverse, k * V);
      DoubleVector z =
          DoubleVector.broadcast(S, qMean[qm + k])
              .sub(DoubleVector.fromArray(S, mean, k * V))
              .mul(t);
      for (int l = 0; l < k; l++) {
        DoubleVector f = DoubleVector.fromArray(S, factor, (at + l) * V).mul(t);
        f.intoArray(row, l * V);
        z = z.sub(f.mul(DoubleVector.fromArray(S, y, l * V)));
      }
      z.mul(inv).intoArray(y, k * V);
      int c = 0;
      for (; c + 4 <= k; c += 4) { // four columns share what they load; each has its terms in order
        int first = q + at + c;
        int from = (at + c) * V;
        DoubleVector x0 = difference(qFactor, first, factor, from, t);
        DoubleVector x1 = difference(qFactor, first + 1, factor, from + V, t);
        DoubleVector x2 = difference(qFactor, first + 2, factor, from + 2 * V, t);
        DoubleVector x3 = difference(qFactor, first + 3, factor, from + 3 * V, t);
        int above = (FullGaussians.packedLength(c) + c) * V;
        DoubleVector f = DoubleVector.fromArray(S, row, c * V);
        x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, above)));
        above += (c + 1) * V;
        f = DoubleVector.fromArray(S, row, (c + 1) * V);
        x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, above)));
        x1 = x1.sub(f.mul(DoubleVector.fromArray(S, e, above + V)));
        above += (c + 2) * V;
        f = DoubleVector.fromArray(S, row, (c + 2) * V);
        x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, above)));
        x1 = x1.sub(f.mul(DoubleVector.fromArray(S, e, above + V)));
        x2 = x2.sub(f.mul(DoubleVector.fromArray(S, e, above + 2 * V)));
        above += (c + 3) * V;
        for (int l = c + 3; l < k; above += ++l * V) {
          f = DoubleVector.fromArray(S, row, l * V);
          x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, above)));
          x1 = x1.sub(f.mul(DoubleVector.fromArray(S, e, above + V)));
          x2 = x2.sub(f.mul(DoubleVector.fromArray(S, e, above + 2 * V)));
          x3 = x3.sub(f.mul(DoubleVector.fromArray(S, e, above + 3 * V)));
        }
        store(x0.mul(inv), e, from, squares, c * V);
        store(x1.mul(inv), e, from + V, squares, (c + 1) * V);
        store(x2.mul(inv), e, from + 2 * V, squares, (c + 2) * V);
        store(x3.mul(inv), e, from + 3 * V, squares, (c + 3) * V);
      }
      for (; c < k; c++) {
        DoubleVector x = difference(qFactor, q + at + c, factor, (at + c) * V, t);
        for (int l = c, above = FullGaussians.packedLength(c) + c; l < k; above += ++l) {
          DoubleVector f = DoubleVector.fromArray(S, row, l * V);
          x = x.sub(f.mul(DoubleVector.fromArray(S, e, above * V)));
        }
        store(x.mul(inv), e, (at + c) * V, squares, c * V);
      }
      DoubleVector pivot = DoubleVector.fromArray(S, factor, (at + k) * V);
      DoubleVector.broadcast(S, qFactor[q + at + k])
          .sub(pivot)
          .div(pivot)
          .intoArray(e, (at + k) * V);
    }
  }

  private static DoubleVector difference(double[] q, int i, double[] p, int j, DoubleVector t) {
    return DoubleVector.broadcast(S, q[i]).sub(DoubleVector.fromArray(S, p, j)).mul(t);
  }

  private static void store(DoubleVector x, double[] e, int at, double[] squares, int c) {
    x.intoArray(e, at);
    DoubleVector.fromArray(S, squares, c).add(x.mul(x)).intoArray(squares, c);
  }
}
