package dev.kullback.internal.formula;

import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Variance;

/**
 * KL of one pair with low-rank covariances in twice the precision of double, with C and B of p (see {@link LowRankPair}),
 *
 * <pre>
 * 2 KL = Σ_h (v_q + ‖W_q,h‖² + d_h²)/v_p − tr C⁻¹HC⁻ᵀ − ‖C⁻¹UᵀV_p⁻¹[W_q, d]‖² − D + ln det Σ_p − ln det Σ_q,   H = UᵀV_p⁻¹V_qV_p⁻¹U
 * </pre>
 *
 * <p>A term is within some D·r·2⁻¹⁰² of its size, and exponents are unbounded. So KL is within 1e-12 down to 1e-17 of the sum of the terms' sizes;
 * what is below 0 by rounding is 0. Holds the working memory of one thread.
 */
final class LowRankExact {
  private final Variance vp = new Variance();
  private final Variance vq = new Variance();
  private final DoubleDouble inverse = new DoubleDouble();
  private final DoubleDouble ratio = new DoubleDouble();
  private final DoubleDouble sum = new DoubleDouble();
  private final DoubleDouble product = new DoubleDouble();
  private final DoubleDouble difference = new DoubleDouble();
  private final DoubleDouble x = new DoubleDouble();
  private final DoubleDouble y = new DoubleDouble();

  /** M of p and q, H, and {@code UᵀV_p⁻¹[W_q, d]} by columns. */
  private DoubleDouble[] ofP = {};

  private DoubleDouble[] ofQ = {};
  private DoubleDouble[] weighted = {};
  private DoubleDouble[] columns = {};

  /** Sum of the terms' sizes, times roundings of each. */
  private double size;

  /** r of p. */
  private int rank;

  double kl(LowRankBatch q, int i, LowRankBatch p, int j) {
    int rp = p.rank();
    rank = rp;
    int rq = q.rank();
    ofP = zeros(ofP, rp * rp);
    ofQ = zeros(ofQ, rq * rq);
    weighted = zeros(weighted, rp * rp);
    columns = zeros(columns, rp * (rq + 1));
    addUp(q, i, p, j);
    size = sum.toDouble() + q.dimension();
    factor(ofQ, rq, true);
    factor(ofP, rp, false);
    for (int column = 0; column <= rq; column++) {
      solve(columns, column * rp, 1, rp);
      for (int k = 0; k < rp; k++) {
        subtractSquare(columns[column * rp + k]);
      }
    }
    // tr C⁻¹HC⁻ᵀ: the rows of H, then the columns
    for (int k = 0; k < rp; k++) {
      solve(weighted, k, rp, rp);
    }
    for (int k = 0; k < rp; k++) {
      solve(weighted, k * rp, 1, k + 1);
      sum.subtract(weighted[k * rp + k]);
    }
    sum.add(-q.dimension());
    y.set(product);
    y.log(x);
    size += Math.abs(y.toDouble());
    size *= 2 * q.dimension() + 16.0 * (rp + rq + 1);
    sum.add(y);
    sum.scale(-1);
    return Math.max(0, sum.toDouble());
  }

  /** Bounds the last result's error, but for that of C. */
  double error() {
    return 0x1p-102 * size;
  }

  private static DoubleDouble[] zeros(DoubleDouble[] array, int length) {
    DoubleDouble[] zeros = array;
    if (array.length < length) {
      zeros = new DoubleDouble[length];
      for (int k = 0; k < length; k++) {
        zeros[k] = new DoubleDouble();
      }
    }
    for (int k = 0; k < length; k++) {
      zeros[k].set(0);
    }
    return zeros;
  }

  /** Sums the products of all dimensions, and has {@code det V_p/det V_q} in {@link #product}. */
  private void addUp(LowRankBatch q, int i, LowRankBatch p, int j) {
    int d = q.dimension();
    int rp = p.rank();
    int rq = q.rank();
    sum.set(0);
    product.set(1);
    for (int k = 0; k < rp; k++) {
      ofP[k * (rp + 1)].set(1);
    }
    for (int k = 0; k < rq; k++) {
      ofQ[k * (rq + 1)].set(1);
    }
    for (int h = 0; h < d; h++) {
      vp.set(p.diagonal().kind(), p.diagonal().scale(j * d + h));
      vq.set(q.diagonal().kind(), q.diagonal().scale(i * d + h));
      difference.setDifference(q.diagonal().mean(i * d + h), p.diagonal().mean(j * d + h));
      inverse.set(1);
      inverse.divide(vp);
      ratio.set(vq);
      ratio.divide(vp);
      sum.add(ratio);
      product.divide(ratio);
      x.set(difference);
      x.multiply(difference);
      x.multiply(inverse);
      sum.add(x);
      int ofRow = i * rq * d + h;
      for (int k = 0; k < rq; k++) {
        double w = q.factor()[ofRow + k * d];
        x.set(w);
        x.multiply(w);
        x.multiply(inverse);
        sum.add(x);
        x.set(w);
        x.divide(vq);
        for (int l = 0; l <= k; l++) {
          addProduct(x, q.factor()[ofRow + l * d], ofQ[k * rq + l]);
        }
      }
      int ofColumn = j * rp * d + h;
      for (int k = 0; k < rp; k++) {
        x.set(inverse);
        x.multiply(p.factor()[ofColumn + k * d]);
        for (int l = 0; l < rq; l++) {
          addProduct(x, q.factor()[ofRow + l * d], columns[l * rp + k]);
        }
        y.set(x);
        y.multiply(difference);
        columns[rq * rp + k].add(y);
        for (int l = 0; l <= k; l++) {
          addProduct(x, p.factor()[ofColumn + l * d], ofP[k * rp + l]);
        }
        x.multiply(ratio);
        for (int l = 0; l < rp; l++) {
          addProduct(x, p.factor()[ofColumn + l * d], weighted[k * rp + l]);
        }
      }
    }
  }

  private void addProduct(DoubleDouble by, double w, DoubleDouble to) {
    y.set(by);
    y.multiply(w);
    to.add(y);
  }

  private void subtractSquare(DoubleDouble of) {
    y.set(of);
    y.multiply(of);
    sum.subtract(y);
  }

  /** Replaces a matrix by its factor, and multiplies {@link #product} by its determinant, or divides it. */
  private void factor(DoubleDouble[] m, int r, boolean divide) {
    for (int k = 0; k < r; k++) {
      for (int l = 0; l <= k; l++) {
        DoubleDouble to = m[k * r + l];
        for (int n = 0; n < l; n++) {
          y.set(m[k * r + n]);
          y.multiply(m[l * r + n]);
          to.subtract(y);
        }
        if (l < k) {
          to.divide(m[l * r + l]);
        }
      }
      DoubleDouble pivot = m[k * r + k];
      if (!(pivot.toDouble() >= 1)) {
        pivot.set(1); // of I + K it is at least 1: it is not where roundings are larger
      }
      if (divide) {
        product.divide(pivot);
      } else {
        product.multiply(pivot);
      }
      pivot.sqrt();
    }
  }

  /** Solves {@code Cx = b} for the first elements of x, a stride apart, in the place of b. */
  private void solve(DoubleDouble[] b, int at, int stride, int n) {
    int r = rank;
    for (int k = 0; k < n; k++) {
      DoubleDouble to = b[at + k * stride];
      for (int l = 0; l < k; l++) {
        y.set(ofP[k * r + l]);
        y.multiply(b[at + l * stride]);
        to.subtract(y);
      }
      to.divide(ofP[k * r + k]);
    }
  }
}
