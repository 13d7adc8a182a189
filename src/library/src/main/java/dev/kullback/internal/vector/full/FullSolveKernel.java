package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.vector.Transpose;
import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * {@link FullPair} for one row and a vector of columns: the same operations on the same numbers in every lane, so the same bits
 * except where the scalar form must decide, which is left to it: an infinite result. Holds the working memory of one thread.
 */
final class FullSolveKernel {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  static final int V = S.length();
  private static final int BLOCK = Compensation.BLOCK;

  private int dimension;

  /** Per entry of the packed factors, a vector: L_p in two parts, and E. */
  private double[] factor = {};

  private double[] factorLow = {};

  /** What a batch that has no low parts is taken to have. */
  private double[] zeros = {};

  private double[] e = {};

  /** Per dimension, a vector: μ_p, the power of two that a row is scaled by, the inverse of the pivot so scaled. */
  private double[] mean = {};

  private double[] scale = {};
  private double[] inverse = {};

  /** A row of L_p, scaled; y; a block of rows' sums of squares by column. */
  private double[] row = {};

  private double[] y = {};
  private double[] squares = {};

  /** Of all squares off the diagonal: the sum, and what rounding took from it. */
  private final double[] off = new double[V];

  private final double[] offErrors = new double[V];

  private final double[] kl = new double[V];
  private final double[] scratch = new double[Transpose.SCRATCH];

  /** Takes V columns from {@code first} on; those beyond the batch repeat its last. */
  void pack(FullBatch p, int first) {
    int d = p.dimension();
    int length = Cholesky.packedLength(d);
    dimension = d;
    if (mean.length < d * V) {
      factor = new double[length * V];
      factorLow = new double[length * V];
      zeros = new double[length];
      e = new double[length * V];
      mean = new double[d * V];
      scale = new double[d * V];
      inverse = new double[d * V];
      row = new double[d * V];
      y = new double[d * V];
      squares = new double[d * V];
    }
    int count = Math.min(V, p.size() - first);
    FullPacking.lanes(p.scaleTril(), first, count, length, factor, 0, V, scratch);
    if (p.scaleTrilLow() != null) {
      FullPacking.lanes(p.scaleTrilLow(), first, count, length, factorLow, 0, V, scratch);
    } else {
      Arrays.fill(factorLow, 0, length * V, 0);
    }
    FullPacking.lanes(p.mean(), first, count, d, mean, 0, V, scratch);
    for (int k = 0, diagonal = 0; k < d; diagonal += (++k + 1) * V) {
      for (int i = 0; i < V; i++) {
        double t = FullPair.inversePower(factor[diagonal + i]);
        scale[k * V + i] = t;
        inverse[k * V + i] = 1 / (factor[diagonal + i] * t);
      }
    }
  }

  /** KL(q_i ‖ p_j) for the columns packed, or +∞ where {@link FullPair} must decide; valid until the next call. */
  double[] row(FullBatch q, int i) {
    int d = dimension;
    int l = i * Cholesky.packedLength(d);
    double[] factors = q.scaleTril();
    double[] low = q.scaleTrilLow();
    solve(q.mean(), i * d, factors, l, low == null ? zeros : low, low == null ? 0 : l, d);
    for (int lane = 0; lane < V; lane++) {
      double sum = 0;
      double errors = 0;
      for (int from = 0, at = l, pivot = lane; from < d; from += BLOCK) {
        double acc = 0;
        for (int end = Math.min(d, from + BLOCK), k = from; k < end; ) {
          double z = y[k * V + lane];
          acc += 0.5 * z * z + FullPair.excess(e[pivot], factors[at], factor[pivot]);
          k++;
          at += k + 1;
          pivot += (k + 1) * V;
        }
        double t = sum + acc;
        errors += Compensation.error(sum, acc, t);
        sum = t;
      }
      double x = sum + errors + 0.5 * (off[lane] + offErrors[lane]);
      kl[lane] = x >= 0 ? x : Double.POSITIVE_INFINITY;
    }
    return kl;
  }

  /** E, y and the sum of the squares off the diagonal. In pieces that C2 compiles without boxing vectors. */
  private void solve(
      double[] qMean, int qm, double[] qFactor, int q, double[] qLow, int ql, int d) {
    Arrays.fill(squares, 0, d * V, 0);
    Arrays.fill(off, 0);
    Arrays.fill(offErrors, 0);
    for (int k = 0, at = 0; k < d; at += ++k) {
      head(qMean[qm + k], qFactor[q + at + k], qLow[ql + at + k], k, at);
      start(qFactor, q + at, qLow, ql + at, k, at);
      int c = 0;
      for (; c + 4 <= k; c += 4) {
        four(c, k, at);
      }
      for (; c < k; c++) {
        one(c, k, at);
      }
      if ((k + 1) % BLOCK == 0 || k + 1 == d) {
        for (int from = 0; from < k; from += BLOCK) {
          addBlock(from, Math.min(k, from + BLOCK));
        }
      }
    }
  }

  /** Row k of L_p, scaled; y_k; E_kk. */
  private void head(double qMean, double qPivot, double qLow, int k, int at) {
    DoubleVector t = DoubleVector.fromArray(S, scale, k * V);
    DoubleVector z = DoubleVector.broadcast(S, qMean).sub(DoubleVector.fromArray(S, mean, k * V));
    z = z.mul(t);
    for (int l = 0; l < k; l++) {
      DoubleVector f = DoubleVector.fromArray(S, factor, (at + l) * V).mul(t);
      f.intoArray(row, l * V);
      z = z.sub(f.mul(DoubleVector.fromArray(S, y, l * V)));
    }
    z.mul(DoubleVector.fromArray(S, inverse, k * V)).intoArray(y, k * V);
    DoubleVector pivot = DoubleVector.fromArray(S, factor, (at + k) * V);
    DoubleVector low =
        DoubleVector.broadcast(S, qLow).sub(DoubleVector.fromArray(S, factorLow, (at + k) * V));
    DoubleVector.broadcast(S, qPivot).sub(pivot).add(low).div(pivot).intoArray(e, (at + k) * V);
  }

  /** What row k of E begins with, the scaled difference of L_q and L_p. */
  private void start(double[] qFactor, int q, double[] qLow, int ql, int k, int at) {
    DoubleVector t = DoubleVector.fromArray(S, scale, k * V);
    for (int j = 0; j < k; j++) {
      DoubleVector high =
          DoubleVector.broadcast(S, qFactor[q + j])
              .sub(DoubleVector.fromArray(S, factor, (at + j) * V));
      DoubleVector low =
          DoubleVector.broadcast(S, qLow[ql + j])
              .sub(DoubleVector.fromArray(S, factorLow, (at + j) * V));
      high.mul(t).add(low.mul(t)).intoArray(e, (at + j) * V);
    }
  }

  /** E_kc … E_k,c+3 from there: they share what they load, and each has its terms in order. */
  private void four(int c, int k, int at) {
    double[] e = this.e;
    double[] row = this.row;
    int to = (at + c) * V;
    DoubleVector x0 = DoubleVector.fromArray(S, e, to);
    DoubleVector x1 = DoubleVector.fromArray(S, e, to + V);
    DoubleVector x2 = DoubleVector.fromArray(S, e, to + 2 * V);
    DoubleVector x3 = DoubleVector.fromArray(S, e, to + 3 * V);
    int from = (Cholesky.packedLength(c) + c) * V;
    DoubleVector f = DoubleVector.fromArray(S, row, c * V);
    x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, from)));
    from += (c + 1) * V;
    f = DoubleVector.fromArray(S, row, (c + 1) * V);
    x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, from)));
    x1 = x1.sub(f.mul(DoubleVector.fromArray(S, e, from + V)));
    from += (c + 2) * V;
    f = DoubleVector.fromArray(S, row, (c + 2) * V);
    x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, from)));
    x1 = x1.sub(f.mul(DoubleVector.fromArray(S, e, from + V)));
    x2 = x2.sub(f.mul(DoubleVector.fromArray(S, e, from + 2 * V)));
    from += (c + 3) * V;
    for (int l = c + 3; l < k; from += ++l * V) {
      f = DoubleVector.fromArray(S, row, l * V);
      x0 = x0.sub(f.mul(DoubleVector.fromArray(S, e, from)));
      x1 = x1.sub(f.mul(DoubleVector.fromArray(S, e, from + V)));
      x2 = x2.sub(f.mul(DoubleVector.fromArray(S, e, from + 2 * V)));
      x3 = x3.sub(f.mul(DoubleVector.fromArray(S, e, from + 3 * V)));
    }
    DoubleVector inv = DoubleVector.fromArray(S, inverse, k * V);
    x0.mul(inv).intoArray(e, to);
    x1.mul(inv).intoArray(e, to + V);
    x2.mul(inv).intoArray(e, to + 2 * V);
    x3.mul(inv).intoArray(e, to + 3 * V);
    addSquares(c, c + 4, at);
  }

  private void one(int c, int k, int at) {
    DoubleVector x = DoubleVector.fromArray(S, e, (at + c) * V);
    for (int l = c, from = Cholesky.packedLength(c) + c; l < k; from += ++l) {
      DoubleVector f = DoubleVector.fromArray(S, row, l * V);
      x = x.sub(f.mul(DoubleVector.fromArray(S, e, from * V)));
    }
    x.mul(DoubleVector.fromArray(S, inverse, k * V)).intoArray(e, (at + c) * V);
    addSquares(c, c + 1, at);
  }

  private void addSquares(int from, int to, int at) {
    for (int c = from; c < to; c++) {
      DoubleVector x = DoubleVector.fromArray(S, e, (at + c) * V);
      DoubleVector.fromArray(S, squares, c * V).add(x.mul(x)).intoArray(squares, c * V);
    }
  }

  /** Adds the squares of a block of rows in some of its columns to those added so far. */
  private void addBlock(int from, int to) {
    DoubleVector acc = DoubleVector.zero(S);
    for (int c = from; c < to; c++) {
      acc = acc.add(DoubleVector.fromArray(S, squares, c * V));
    }
    Arrays.fill(squares, from * V, to * V, 0);
    DoubleVector sum = DoubleVector.fromArray(S, off, 0);
    DoubleVector t = sum.add(acc);
    DoubleVector back = t.sub(sum);
    DoubleVector error = sum.sub(t.sub(back)).add(acc.sub(back));
    t.intoArray(off, 0);
    DoubleVector.fromArray(S, offErrors, 0).add(error).intoArray(offErrors, 0);
  }
}
