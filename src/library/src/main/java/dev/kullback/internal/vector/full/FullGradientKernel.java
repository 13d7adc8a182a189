package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.formula.PairGradient;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.vector.GradientKernel;
import dev.kullback.internal.vector.GradientRows;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Sums up the derivatives of KL or Jeffreys' divergence by means and factors L of full covariances, each times its cotangent. With E and y of
 * {@link FullPair}, {@code L_p E = L_q − L_p} and {@code L_p y = μ_q − μ_p}, those of KL are
 *
 * <pre>
 * ∂μ_q = L_p⁻ᵀ y = −∂μ_p
 * ∂L_q = tril(L_p⁻ᵀ E) + diag(E_kk / L_q,kk)
 * ∂L_p = −tril(L_p⁻ᵀ (yyᵀ + E + Eᵀ + EEᵀ))
 * </pre>
 *
 * <p>in which nothing cancels however near the two are: {@code L_p⁻ᵀ} is triangular, so {@code tril(L_p⁻ᵀ X) − diag(1/L_q,kk)}, with {@code X = I + E}, is
 * ∂L_q, and {@code yyᵀ + XXᵀ − I} is the middle of ∂L_p. A column's products are added up over the rows before one solve makes its ∂L_p of them. A
 * pair takes D³/2 multiplications, a third for each of E, {@code EEᵀ} and {@code L_p⁻ᵀ E}. Lanes are columns, and each row adds theirs in their
 * order, so the bits do not depend on their number. This class is for one thread.
 */
public final class FullGradientKernel {
  private static final int SIDE = GradientKernel.SIDE;

  /** Room for cotangents of a block, {@link GradientKernel#SIDE} a row. */
  public final double[] weights = new double[SIDE * SIDE];

  private final boolean hasReverse;
  private final FullPair pair;
  private final FullGradientProducts productsOfBatches;

  /** What solves in lanes; null for one pair at a time. */
  private final @Nullable FullSolveKernel lanes;

  private final int v;

  private int dimension;
  private int length;

  /** Whether the columns' derivatives are wanted. */
  private boolean hasProducts;

  /** L_p, E, and sums of products, a vector for each entry of a packed triangle. */
  private double[] factor = {};

  private double[] e = {};
  private double[] products = {};

  /** 1/L_p,kk, y, its sums, and the diagonal of E times the cotangent, a vector for each dimension. */
  private double[] inverse = {};

  private double[] y = {};
  private double[] sums = {};
  private double[] diagonal = {};

  /** Cotangents of the lanes. */
  private final double[] g;

  /** Lanes whose L_p has a diagonal so small that 1/L_p,kk is beyond double's range. */
  private final boolean[] isBeyond;

  private final double[] minusOnes;

  /** N(0, I), of the last dimension. */
  private @Nullable FullBatch normal;

  /** Makes a kernel that uses vectors, or not, to the same bits. */
  public FullGradientKernel(Term term, boolean vectors, Worker worker) {
    hasReverse = term == Term.JEFFREYS;
    pair = new FullPair(worker);
    productsOfBatches = new FullGradientProducts(vectors, hasReverse);
    lanes = vectors ? new FullSolveKernel() : null;
    v = vectors ? FullSolveKernel.V : 1;
    g = new double[v];
    isBeyond = new boolean[v];
    minusOnes = new double[v];
    Arrays.fill(minusOnes, -1);
  }

  /** Returns what computes the derivatives of a batch as products, but for those that this class must. */
  public FullGradientProducts products() {
    return productsOfBatches;
  }

  /** Returns the sums of a Gaussian: by its mean, and by L, packed. Gaussian i's are from {@code i} times as many on. */
  public static int sums(int dimension) {
    return dimension + Cholesky.packedLength(dimension);
  }

  /** Returns the length of an array of sums. */
  public static int sums(FullBatch batch) {
    return GradientKernel.checkSums(batch, (long) batch.size() * sums(batch.dimension()));
  }

  /**
   * Adds the derivatives of a block of at most {@link GradientKernel#SIDE} rows and columns to their sums, if they have any.
   *
   * @param weights cotangents, that many a row
   */
  public void add(
      double[] weights, GradientRows<FullBatch> q, GradientRows<FullBatch> p, Worker worker) {
    for (int i = q.from; i < q.to; i++) {
      for (int j = p.from; j < p.to; j++) {
        GradientKernel.checkFinite(weights[(i - q.from) * SIDE + j - p.from], i, j);
      }
    }
    makeRoom(q.batch().dimension());
    add(weights, SIDE, 1, q, p, worker);
    if (hasReverse) {
      add(weights, 1, SIDE, p, q, worker);
    }
  }

  /** Adds those of KL, whose i-th row and j-th column have the cotangent at {@code i·down + j·across}. */
  private void add(
      double[] weights,
      int down,
      int across,
      GradientRows<FullBatch> q,
      GradientRows<FullBatch> p,
      Worker worker) {
    for (int j = p.from; j < p.to; j += v) {
      int count = Math.min(v, p.to - j);
      pack(q.batch(), p.batch(), j, p.sums != null);
      for (int i = q.from; i < q.to; i++) {
        boolean any = false;
        for (int lane = 0; lane < v; lane++) {
          int at = (i - q.from) * down + (j + lane - p.from) * across;
          g[lane] = lane < count ? weights[at] : 0;
          any |= g[lane] != 0;
        }
        if (any) {
          worker.pass(count * Checkpoint.ofSolve(dimension));
          addPairs(q.batch(), i, 0, p.batch(), j, count, q.sums);
        }
      }
      finish(count, p.sums, j);
    }
  }

  /**
   * Adds the derivatives of pairs of the same rows of both.
   *
   * @param weights the cotangent of row i at i
   * @param p null for N(0, I)
   */
  public void addPairs(
      double[] weights,
      GradientRows<FullBatch> q,
      @Nullable GradientRows<FullBatch> p,
      Worker worker) {
    makeRoom(q.batch().dimension());
    for (int i = q.from; i < q.to; i += v) {
      int count = Math.min(v, q.to - i);
      for (int lane = 0; lane < v; lane++) {
        g[lane] = lane < count ? weights[i + lane] : 0;
      }
      if (p == null) {
        addStandard(q, i, count, worker);
        continue;
      }
      addPairs(q, p, i, count, worker);
      if (hasReverse) {
        addPairs(p, q, i, count, worker);
      }
    }
  }

  private void addPairs(
      GradientRows<FullBatch> q, GradientRows<FullBatch> p, int i, int count, Worker worker) {
    worker.pass(count * Checkpoint.ofSolve(dimension));
    pack(q.batch(), p.batch(), i, p.sums != null);
    addPairs(q.batch(), i, 1, p.batch(), i, count, q.sums);
    finish(count, p.sums, i);
  }

  /** Adds those of pairs with N(0, I). */
  private void addStandard(GradientRows<FullBatch> q, int i, int count, Worker worker) {
    double[] sums = q.sums;
    worker.pass(Checkpoint.ofPlain((long) count * length));
    for (int lane = 0; lane < count && sums != null; lane++) {
      addStandard(g[lane], q.batch(), i + lane, sums);
    }
    if (hasReverse) {
      worker.pass(count * Checkpoint.ofSolve(dimension));
      pack(normal(), q.batch(), i, sums != null);
      addPairs(normal(), 0, 0, q.batch(), i, count, null);
      finish(count, sums, i);
    }
  }

  private FullBatch normal() {
    FullBatch made = normal;
    if (made == null || made.dimension() != dimension) {
      normal = made = FullBatch.standard(dimension);
    }
    return made;
  }

  /** Adds the derivatives of KL from N(0, I): of μ and {@code L − diag(1/L_kk)}. */
  private void addStandard(double weight, FullBatch q, int i, double[] to) {
    int d = dimension;
    double[] low = q.scaleTrilLow();
    int at = i * sums(d);
    for (int h = 0; h < d; h++) {
      to[at++] += weight * q.mean()[i * d + h];
    }
    for (int r = 0, k = q.factorFrom(i); r < d; r++) {
      for (int c = 0; c < r; c++, k++) {
        to[at++] += weight * q.scaleTril()[k];
      }
      double s = q.scaleTril()[k];
      double e = s - 1 + (low == null ? 0 : low[k]);
      double x = weight * e;
      to[at++] += x + x / s; // 1/s may overflow
      k++;
    }
  }

  /** Makes derivatives by the factor as it was given, of a Gaussian's sums from an index on. */
  public static void toGiven(FullBatch batch, int i, double[] sums, int at, String role) {
    int d = batch.dimension();
    double most = 0;
    for (int k = at; k < at + d; k++) {
      most = Math.max(most, Math.abs(sums[k]));
    }
    int from = batch.factorFrom(i);
    for (int r = 0, k = at + d; r < d; r++) {
      for (int c = 0; c <= r; c++, k++, from++) {
        if (batch.isTurned(i, c)) {
          sums[k] = 0 - sums[k];
        }
        if (c == r && batch.given() == MatrixForm.PACKED_SCALE_TRIL) {
          sums[k] *= batch.scaleTril()[from];
        }
        most = Math.max(most, Math.abs(sums[k]));
      }
    }
    if (!(most <= Double.MAX_VALUE)) { // NaN is ∞ − ∞
      throw new IllegalArgumentException(
          "the gradient by %s, Gaussian %d, is beyond double's range; give smaller cotangents, or multiply all means and factors by one number"
              .formatted(role, i));
    }
  }

  private void makeRoom(int d) {
    dimension = d;
    length = Cholesky.packedLength(d);
    if (products.length < length * v) {
      products = new double[length * v];
      inverse = new double[d * v];
      sums = new double[d * v];
      diagonal = new double[d * v];
      if (lanes == null) {
        factor = new double[length];
        e = new double[length];
        y = new double[d];
      }
    }
  }

  /** Packs the columns from j on, and has no products of them. */
  private void pack(FullBatch q, FullBatch p, int j, boolean hasProducts) {
    this.hasProducts = hasProducts;
    if (lanes != null) {
      lanes.pack(q, p, j);
      factor = lanes.factor();
      e = lanes.e();
      y = lanes.y();
    } else {
      System.arraycopy(p.scaleTril(), p.factorFrom(j), factor, 0, length);
    }
    Arrays.fill(isBeyond, false);
    for (int k = 0, at = 0; k < dimension; at += (++k + 1) * v) {
      for (int lane = 0; lane < v; lane++) {
        double x = 1 / factor[at + lane];
        isBeyond[lane] |= x > Double.MAX_VALUE;
        inverse[k * v + lane] = PairGradient.held(x); // 0·∞ is NaN
      }
    }
    Arrays.fill(products, 0, length * v, 0);
    Arrays.fill(sums, 0, dimension * v, 0);
  }

  /**
   * Adds the derivatives of the columns packed and row i, or with a {@code step} of 1 the rows from i on, to products and to {@code to}, if there is
   * any.
   */
  private void addPairs(
      FullBatch q, int i, int step, FullBatch p, int j, int count, double @Nullable [] to) {
    solve(q, i, step, p, j, count);
    int d = dimension;
    if (!hasProducts) {
      // the caller wants none
    } else if (lanes != null) {
      FullGradientSums.addProducts(e, y, g, d, products, sums);
    } else {
      ScalarFullGradientSums.addProducts(e, y, g, d, products, sums);
    }
    if (to == null) {
      return;
    }
    solve(g, e, y);
    for (int lane = 0; lane < count; lane++) {
      for (int r = 0, k = 0, row = q.factorFrom(i + lane * step); r < d; k += ++r + 1) {
        e[k * v + lane] += diagonal[r * v + lane] / q.scaleTril()[row + k];
      }
    }
    for (int lane = 0; lane < count; lane += step == 0 ? count : 1) {
      int end = step == 0 ? count : lane + 1;
      int at = (i + lane) * sums(d);
      addLanes(y, lane, end, d, to, at);
      addLanes(e, lane, end, length, to, at + d);
    }
  }

  /** Adds some lanes of n vectors, in their order. */
  private void addLanes(double[] from, int first, int end, int n, double[] to, int at) {
    for (int k = 0; k < n; k++) {
      double sum = to[at + k];
      for (int lane = first; lane < end; lane++) {
        sum += from[k * v + lane];
      }
      to[at + k] = sum;
    }
  }

  /** Makes E and y of pairs; those of a divergence or a gradient beyond double's range are 0 if nothing is to be added. */
  private void solve(FullBatch q, int i, int step, FullBatch p, int j, int count) {
    double[] kl = lanes == null ? null : step == 0 ? lanes.row(q, i) : lanes.pairs(q, i);
    for (int lane = 0; lane < count; lane++) {
      if (kl != null && kl[lane] < Double.POSITIVE_INFINITY && !isBeyond[lane]) {
        continue;
      }
      int row = i + lane * step;
      double x = pair.solve(q, row, p, j + lane, e, y, lane, v);
      if (x == 0 || (x < Double.POSITIVE_INFINITY && !isBeyond[lane])) {
        continue;
      }
      if (g[lane] != 0) {
        throw new IllegalArgumentException(
            "the gradient of the divergence of Gaussians %d and %d is beyond double's range; give them the cotangent 0"
                .formatted(row, j + lane));
      }
      for (int k = 0; k < length; k++) {
        e[k * v + lane] = 0;
      }
      for (int k = 0; k < dimension; k++) {
        y[k * v + lane] = 0;
      }
    }
  }

  private void solve(double[] weights, double[] triangle, double[] x) {
    if (lanes != null) {
      FullGradientSums.solve(factor, inverse, weights, dimension, triangle, x, diagonal);
    } else {
      ScalarFullGradientSums.solve(factor, inverse, weights, dimension, triangle, x, diagonal);
    }
  }

  /** Adds the derivatives of the columns packed, of their products. */
  private void finish(int count, double @Nullable [] to, int j) {
    if (to == null) {
      return;
    }
    solve(minusOnes, products, sums);
    for (int lane = 0; lane < count; lane++) {
      int at = (j + lane) * sums(dimension);
      addLanes(sums, lane, lane + 1, dimension, to, at);
      addLanes(products, lane, lane + 1, length, to, at + dimension);
    }
  }
}
