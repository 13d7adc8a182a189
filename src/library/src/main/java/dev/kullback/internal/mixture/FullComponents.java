package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.Excess;
import dev.kullback.internal.formula.MergerBounds;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.DoubleLogProduct;
import dev.kullback.internal.numerics.SemidefiniteFactor;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.BitSet;
import java.util.function.LongConsumer;

/**
 * Components with full covariances, as packed triangles. The factor of {@code I + M} is {@code I + F} with F computed of M as it is, so
 * that nothing cancels where M is small, and {@code G(M) = tr M − ln|I + M|} is {@code ‖F‖² + 2 Σ_k (F_kk − ln(1 + F_kk))}.
 */
final class FullComponents extends Components {
  /** Factors L of the covariances, packed, rounded from twice the precision of double. */
  private double[] factor = {};

  /** What rounding took from them. */
  private double[] factorLow = {};

  /** Components whose covariances were raised. */
  private final BitSet raised = new BitSet();

  /** ln|P_i|, and the diagonals of the inverses. */
  private double[] logDet = {};

  private double[] precision = {};
  private final Cholesky cholesky = new Cholesky();
  private final LongConsumer pass = this::pass;
  private final double[] high;
  private final double[] low;

  /** Working memory: {@code P_j − P_i}, and then X; {@code L⁻¹(P_j − P_i)}, square; F; y; and a diagonal. */
  private final double[] x;

  private final double[] half;
  private final double[] f;
  private final double[] y;
  private final double[] diagonal;

  FullComponents(int dimension) {
    super(dimension, Cholesky.packedLength(dimension));
    high = new double[length];
    low = new double[length];
    x = new double[length];
    half = new double[dimension * dimension];
    f = new double[length];
    y = new double[dimension];
    diagonal = new double[dimension];
  }

  @Override
  void grow(int n) {
    super.grow(n);
    factor = new double[n * length];
    factorLow = new double[n * length];
    logDet = new double[n];
    precision = new double[n * dimension];
  }

  /** Multiplies the factor out: a covariance that the caller gave comes back as it was. */
  @Override
  void take(Batch batch, int from, int i) {
    FullBatch full = (FullBatch) batch;
    System.arraycopy(full.mean(), from * dimension, mean, i * dimension, dimension);
    System.arraycopy(full.scaleTril(), full.factorFrom(from), factor, i * length, length);
    double[] lows = full.scaleTrilLow();
    if (lows == null) {
      Arrays.fill(factorLow, i * length, (i + 1) * length, 0);
    } else {
      System.arraycopy(lows, full.factorFrom(from), factorLow, i * length, length);
    }
    full.covariance(from, covariance, i * length, checkpoint);
    raised.clear(i);
    setInverse(i);
  }

  @Override
  boolean isFull() {
    return true;
  }

  @Override
  void copyScale(int i, double[] to, double[] low, int at) {
    System.arraycopy(factor, i * length, to, at, length);
    System.arraycopy(factorLow, i * length, low, at, length);
  }

  @Override
  boolean isRaised(int i) {
    return raised.get(i);
  }

  @Override
  double doubleCost(int heavy, int light) {
    double w = weight[heavy] + weight[light];
    double a = weight[heavy] / w;
    double b = weight[light] / w;
    boolean differ = setX(heavy, light);
    double norm = 0;
    for (int r = 0, k = 0; differ && r < dimension; r++) {
      for (int c = 0; c <= r; c++, k++) {
        norm += (c < r ? 2 : 1) * x[k] * x[k];
      }
    }
    double scale = 0;
    if (norm <= SMALL * SMALL && differ) {
      factor(1);
      scale = b * gap();
    }
    factor(b);
    if (norm <= SMALL * SMALL) {
      scale = differ ? w * (scale - gap()) : 0;
    } else {
      for (int r = 0, k = 0; r < dimension; k += ++r + 1) {
        diagonal[r] = factor[light * length + k] / factor[heavy * length + k];
      }
      double ratio = DoubleLogProduct.of(diagonal, 0, dimension, false);
      double merged = 0; // not by the product, as F may be small for a small b
      for (int r = 0, k = 0; r < dimension; k += ++r + 1) {
        merged += Math.log1p(f[k]);
      }
      scale = Math.max(0, 2 * w * (merged - b * ratio));
    }
    return scale + w * Math.log1p(a * b * distance(heavy, light));
  }

  @Override
  void factorWhole(double[] covariance) {
    Arrays.fill(low, 0);
    if (!cholesky.factor(covariance, low, dimension, pass)) {
      throw new IllegalArgumentException(
          "the covariance of the whole mixture is singular in double; take another rule than Salmond's");
    }
  }

  @Override
  double squares(int i, int j) {
    solve(i, j);
    double squares = 0;
    for (double t : y) {
      squares += t * t;
    }
    return squares;
  }

  @Override
  double doubleDivergence(int i, int j) {
    double scale = 0;
    if (setX(j, i)) {
      factor(1);
      scale = gap();
    }
    return scale + squares(j, i);
  }

  /** Sets X, symmetric, as a packed triangle; returns whether it is not 0. */
  private boolean setX(int heavy, int light) {
    boolean differ = false;
    int i = heavy * length;
    int j = light * length;
    for (int k = 0; k < length; k++) {
      x[k] = covariance[j + k] - covariance[i + k];
      differ |= x[k] != 0;
    }
    if (!differ) {
      return false;
    }
    for (int r = 0, row = 0; r < dimension; row += ++r) { // L H = P_j − P_i
      pass((long) r * dimension);
      double pivot = factor[i + row + r];
      for (int c = 0, above = 0; c < dimension; above += ++c) {
        double t = x[c <= r ? row + c : above + r];
        for (int k = 0; k < r; k++) {
          t -= factor[i + row + k] * half[k * dimension + c];
        }
        half[r * dimension + c] = t / pivot;
      }
    }
    for (int r = 0, row = 0; r < dimension; row += ++r) { // X Lᵀ = H
      pass((long) r * r / 2);
      for (int c = 0, above = 0; c <= r; above += ++c) {
        double t = half[r * dimension + c];
        for (int k = 0; k < c; k++) {
          t -= x[row + k] * factor[i + above + k];
        }
        x[row + c] = t / factor[i + above + c];
      }
    }
    return true;
  }

  /** Sets F so that {@code (I + F)(I + F)ᵀ = I + bX}, which is well conditioned for b ≤ ½, and for b = 1 where X is small. */
  private void factor(double b) {
    for (int r = 0, row = 0; r < dimension; row += ++r) {
      pass((long) r * r / 2);
      for (int c = 0, above = 0; c <= r; above += ++c) {
        double t = b * x[row + c];
        for (int k = 0; k < c; k++) {
          t -= f[row + k] * f[above + k];
        }
        f[row + c] = c < r ? t / (1 + f[above + c]) : t / (1 + Math.sqrt(1 + t));
      }
    }
  }

  /** Returns G of the matrix that F is of. */
  private double gap() {
    double sum = 0;
    for (int r = 0, k = 0; r < dimension; r++, k++) {
      for (int c = 0; c < r; c++, k++) {
        sum += f[k] * f[k];
      }
      sum += 2 * Excess.of(f[k], 1 + f[k], 1);
    }
    return sum;
  }

  /** Returns {@code yᵀ(I + bX)⁻¹y}, where F is of bX. */
  private double distance(int heavy, int light) {
    solve(heavy, light);
    double squares = 0;
    for (int r = 0, row = 0; r < dimension; row += ++r) { // (I + F) z = y, in its place
      double t = y[r];
      for (int k = 0; k < r; k++) {
        t -= f[row + k] * y[k];
      }
      y[r] = t / (1 + f[row + r]);
      squares += y[r] * y[r];
    }
    return squares;
  }

  /** Sets {@code y = L⁻¹d}, of component i's factor and j's difference from it. */
  private void solve(int i, int j) {
    for (int r = 0, row = i * length; r < dimension; row += ++r) {
      double t = mean[j * dimension + r] - mean[i * dimension + r];
      for (int k = 0; k < r; k++) {
        t -= factor[row + k] * y[k];
      }
      y[r] = t / factor[row + r];
    }
  }

  /** Tries the definition, which cancels where components are alike, less a bound of rounding: see {@link MergerBounds}. */
  @Override
  double boundByDefinition(int i, int j) {
    if (weight[i] == 0 || weight[j] == 0) { // costs nothing, and needs no factor to tell
      return 0;
    }
    double w = weight[i] + weight[j];
    double a = weight[i] / w;
    double b = weight[j] / w;
    double condition = setPivots(i, j, a, b);
    double log = DoubleLogProduct.of(diagonal, 0, dimension, false);
    double logs = Math.abs(log) + Math.abs(logDet[i]) + Math.abs(logDet[j]) + dimension + 16;
    log -= 0x1p-51 * (dimension * (dimension + 5) * condition + logs);
    return 0.5 * w * (log - (a * logDet[i] + b * logDet[j]));
  }

  @Override
  void copyNumbers(int i, double[] to, int at, int stride) {
    int k = at;
    to[k] = weight[i];
    for (int h = 0; h < dimension; h++) {
      to[k += stride] = mean[i * dimension + h];
    }
    for (int e = 0; e < length; e++) {
      to[k += stride] = weight[i] * covariance[i * length + e];
    }
    // what rounding did to determinants is to be bounded from above: 0 would be below
    for (int h = 0; h < dimension; h++) {
      to[k += stride] = Math.max(weight[i] * precision[i * dimension + h], Double.MIN_NORMAL);
    }
    double error = 0x1p-51 * (Math.abs(logDet[i]) + dimension + 16);
    to[k + stride] = isInRange(i) ? -0.5 * weight[i] * (logDet[i] + error) : 2 * MergerBounds.LEAST;
  }

  /** Whether rounding is relative in weighted covariances, and in products of the pivots of what this merges into; weight 0 adds nothing. */
  private boolean isInRange(int i) {
    boolean isInRange = true;
    double product = 1;
    for (int h = 0; h < dimension; h++) {
      product *= spread(i, h);
      isInRange &=
          product >= 0x1p-960 && product <= 0x1p960 && weight[i] * spread(i, h) >= 0x1p-1015;
    }
    return weight[i] == 0 || isInRange;
  }

  /** Sets the pivots v of {@code F diag(v) Fᵀ = P}, and returns {@code Σ_h P_hh (P_i⁻¹)_hh} with the heavier component's P_i. */
  private double setPivots(int i, int j, double a, double b) {
    int heavy = (a >= b ? i : j) * dimension;
    double sum = 0;
    for (int h = 0; h < dimension; h++) {
      y[h] = mean[j * dimension + h] - mean[i * dimension + h];
    }
    for (int r = 0, row = 0; r < dimension; row += ++r) {
      pass((long) r * r / 2);
      double s = a * b * y[r];
      for (int c = 0, above = 0; c <= r; above += ++c) {
        double t = a * covariance[i * length + row + c] + b * covariance[j * length + row + c];
        t += s * y[c];
        sum += c < r ? 0 : t * precision[heavy + r];
        for (int k = 0; k < c; k++) {
          t -= x[row + k] * f[above + k];
        }
        x[row + c] = t; // F_rc v_c
        f[row + c] = c < r ? t / diagonal[c] : 1;
        diagonal[c] = c < r ? diagonal[c] : t;
      }
    }
    return sum;
  }

  /** Factors a covariance as a batch of covariances does, and raises it until such a batch takes it. */
  @Override
  boolean factor(int i, boolean mayRaise) {
    double tolerance = SemidefiniteFactor.tolerance(dimension, false);
    raised.clear(i);
    for (double more = tolerance; !factorScaled(i, tolerance); more *= 2) {
      if (!mayRaise) {
        return false;
      }
      for (int r = 0, k = i * length; r < dimension; k += ++r + 1) {
        covariance[k] += covariance[k] * more;
      }
      raised.set(i);
    }
    for (int r = 0, k = 0; r < dimension; r++) {
      double t = scaleOf(i, r);
      for (int c = 0; c <= r; c++, k++) {
        factor[i * length + k] = high[k] / t;
        factorLow[i * length + k] = low[k] / t;
      }
    }
    setInverse(i);
    return true;
  }

  /** Factors a covariance with rows and columns scaled; returns whether it is positive definite. */
  private boolean factorScaled(int i, double tolerance) {
    Arrays.fill(low, 0);
    for (int r = 0, k = 0; r < dimension; r++) {
      double t = scaleOf(i, r);
      for (int c = 0; c <= r; c++, k++) {
        double u = scaleOf(i, c);
        high[k] = covariance[i * length + k] * Math.max(t, u) * Math.min(t, u);
      }
    }
    return cholesky.factor(high, low, dimension, pass)
        && !SemidefiniteFactor.isSingular(high, 0, 1, dimension, tolerance);
  }

  /** Sets ln|P_i| and the diagonal of {@code P_i⁻¹ = L⁻ᵀL⁻¹}. */
  private void setInverse(int i) {
    for (int c = 0; c < dimension; c++) {
      pass((long) (dimension - c) * (dimension - c) / 2);
      double squares = 0;
      for (int r = c, row = i * length + Cholesky.packedLength(c); r < dimension; row += ++r) {
        double t = r == c ? 1 : 0;
        for (int k = c; k < r; k++) {
          t -= factor[row + k] * y[k];
        }
        y[r] = t / factor[row + r];
        squares += y[r] * y[r];
      }
      precision[i * dimension + c] = squares;
      diagonal[c] = factor[i * length + Cholesky.packedLength(c) + c];
    }
    logDet[i] = 2 * DoubleLogProduct.of(diagonal, 0, dimension, false);
  }

  /** Looks whether the work is to end, which takes D³ for a cost and a merger. */
  private void pass(long products) {
    checkpoint.pass(Checkpoint.ofPlain(products));
  }

  /** Returns a power of two near the inverse of a standard deviation. */
  private double scaleOf(int i, int r) {
    return Cholesky.inverseRoot(covariance[i * length + Cholesky.packedLength(r) + r]);
  }
}
