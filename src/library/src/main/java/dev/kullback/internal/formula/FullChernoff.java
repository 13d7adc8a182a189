package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * Computes the Chernoff α-divergence of one pair with full covariances in double, with {@code Σ* = (1−α) Σq + α Σp}:
 *
 * <pre>
 * C = ½ α(1−α) dᵀ Σ*⁻¹ d + ½ [ln det Σ* − (1−α) ln det Σq − α ln det Σp]
 * </pre>
 *
 * <p>Let b be the one of greater weight, a the other and {@code w ≤ ½} its weight; for equal weights an order of the parameters decides, so
 * that no bit depends on the roles. With E and y of {@link FullPair}, {@code L_b E = L_a − L_b}, {@code Σ* = L_b G L_bᵀ} and {@code G = I + w
 * (E + Eᵀ + EEᵀ)}. Where G is near I, C comes from terms that hardly cancel; elsewhere from the factor of Σ*, by rotations that form
 * no covariance, which would square the condition number. The relative error is some {@code D·cond(L_b)} roundings.
 *
 * <p>Of {@code α > 1}, w = 1 − α is negative and b is p. Then C is at most 0, by terms of one sign that never cancel, and −∞ where Σ* is not positive
 * definite; the error grows with the reciprocal of G's least pivot. Holds the working memory of one thread.
 */
final class FullChernoff implements Formula.Full {
  /** Greatest norm of G − I for which C is computed by what G and I differ in. */
  private static final double NEAR = 0.5;

  private static final double UP = 0x1p500;

  private final Formula formula;

  /** Weights of Σq and Σp: 1 − α and α. */
  private final double weightQ;

  private final double weightP;
  private final Worker worker;
  private final FullPair pair;
  private final FullPair.Factor q = new FullPair.Factor();
  private final FullPair.Factor p = new FullPair.Factor();

  /** Packed by rows: U, with {@code G = U diag(π)⁻¹ Uᵀ} below the diagonal, or the factor of Σ*. */
  private double[] l = {};

  private double[] pivots = {};
  private double[] x = {};
  private double[] scales = {};
  private int dimension;
  private boolean isEqual;

  FullChernoff(Formula formula, double alpha, Worker worker) {
    this.formula = formula;
    weightQ = 1 - alpha;
    weightP = alpha;
    this.worker = worker;
    pair = new FullPair(worker);
  }

  @Override
  public void clear() {
    pair.clear();
    q.clear();
    p.clear();
  }

  @Override
  public double divergence(Batch q, int i, Batch p, int j) {
    double c = chernoff(q, i, p, j);
    return Chernoff.isUnderflowing(formula, c) ? root() : Math.abs(formula.finish(c)); // not -0
  }

  private double chernoff(Batch batchQ, int i, Batch batchP, int j) {
    int d = batchQ.dimension();
    dimension = d;
    if (x.length < d) {
      x = new double[d];
      pivots = new double[d];
      scales = new double[d];
      l = new double[Cholesky.packedLength(d)];
    }
    q.set(batchQ, i);
    p.set(batchP, j);
    boolean isBaseP = weightQ < weightP || (weightQ == weightP && q.isBefore(p, d));
    double w = Math.min(weightQ, weightP);
    double heavy = Math.max(weightQ, weightP);
    FullPair.Factor a = isBaseP ? q : p;
    FullPair.Factor b = isBaseP ? p : q;
    isEqual = q.equals(p, d);
    if (isEqual) {
      return 0;
    }
    if (isBaseP) {
      pair.divergence(batchQ, i, batchP, j); // sets E and y
    } else {
      pair.divergence(batchP, j, batchQ, i);
    }
    double norm = 0;
    for (int k = 0; k < Cholesky.packedLength(d); k++) {
      norm += pair.e(k) * pair.e(k);
    }
    norm = Math.sqrt(norm);
    if (w < 0) {
      double c = near(a, b, w, heavy);
      return c <= 0 ? c : Double.NEGATIVE_INFINITY;
    }
    double c =
        norm <= NEAR || w * norm * (2 + norm) <= NEAR ? near(a, b, w, heavy) : far(a, b, w, heavy);
    return c >= 0 ? c : Double.isNaN(c) ? Double.POSITIVE_INFINITY : 0;
  }

  /** Returns √B of the last pair where its B may underflow: covariances are equal then, and {@code B = ⅛ ‖y‖²}. */
  private double root() {
    double sum = 0;
    for (int k = 0; k < dimension && !isEqual; k++) {
      double y = UP * pair.y(k);
      sum += y * y;
    }
    return Math.sqrt(0.125 * sum) / UP;
  }

  /**
   * Returns C by {@code ln det G = Σ ln(1 + π_k)}, {@code π_k = w F_kk − c_k} with {@code F = E + Eᵀ + EEᵀ} and c_k ≥ 0 what elimination
   * takes away. The terms of first order are those of w ln det(Σa Σb⁻¹), and what is left is
   *
   * <pre>
   * w (‖E‖² + 2 Σ f(E_kk)) − Σ [c_k + f(π_k)], f(x) = x − ln(1+x)
   * </pre>
   *
   * <p>whose second sum is, to leading order, w times the first, at most half.
   */
  private double near(FullPair.Factor a, FullPair.Factor b, double w, double heavy) {
    double weight = 0.5 * w * heavy;
    double first = 0;
    double second = 0;
    double squares = 0;
    for (int r = 0, row = 0; r < dimension; row += ++r) {
      worker.pass(Checkpoint.ofPlain((long) r * r));
      double taken = 0;
      double z = pair.y(r);
      for (int c = 0, above = 0; c < r; above += ++c) {
        double f = pair.e(row + c);
        for (int k = 0; k <= c; k++) {
          f += pair.e(row + k) * pair.e(above + k);
        }
        double u = w * f;
        for (int k = 0; k < c; k++) {
          u -= l[row + k] * (l[above + k] / pivots[k]);
        }
        l[row + c] = u;
        taken += u * (u / pivots[c]);
        z -= u / pivots[c] * x[c];
        first += pair.e(row + c) * pair.e(row + c);
      }
      double e = pair.e(row + r);
      double f = 2 * e;
      for (int k = 0; k <= r; k++) {
        f += pair.e(row + k) * pair.e(row + k);
      }
      double more = w * f - taken;
      pivots[r] = 1 + more;
      if (w < 0 && !(pivots[r] > 0)) {
        return Double.NEGATIVE_INFINITY;
      }
      x[r] = z;
      squares += z * (weight * (z / pivots[r]));
      first += 2 * Excess.of(e, a.high(row + r), b.high(row + r));
      second += taken + AlikeTerm.lessLog(more);
    }
    double logs = w * first - second;
    return squares + 0.5 * (w < 0 ? logs : Math.max(0, logs));
  }

  /** Returns C by the factor of Σ*: L_b's updated by the columns of L_a (J. Dongarra et al., LINPACK Users' Guide, 1979, DCHUD). */
  private double far(FullPair.Factor a, FullPair.Factor b, double w, double heavy) {
    double rootA = Math.sqrt(w);
    double rootB = Math.sqrt(heavy);
    for (int r = 0, row = 0; r < dimension; row += ++r) {
      double most = 0;
      for (int k = row; k <= row + r; k++) {
        most = Math.max(most, Math.max(Math.abs(a.high(k)), Math.abs(b.high(k))));
      }
      scales[r] = FullPair.inversePower(most); // of a row, which scales L's alike, exactly
      for (int k = row; k <= row + r; k++) {
        l[k] = rootB * (b.high(k) * scales[r]);
      }
    }
    for (int column = 0; column < dimension; column++) {
      worker.pass(Checkpoint.ofPlain((long) (dimension - column) * (dimension - column) / 2));
      for (int r = column, k = Cholesky.packedLength(r) + column; r < dimension; k += ++r) {
        x[r] = rootA * (a.high(k) * scales[r]);
      }
      Cholesky.update(l, x, column, dimension);
    }
    double weight = 0.5 * w * heavy;
    double squares = 0;
    double logs = 0;
    for (int r = 0, row = 0; r < dimension; row += ++r) {
      double z = FullPair.difference(a.mean(r), b.mean(r), scales[r]);
      for (int c = 0; c < r; c++) {
        z -= l[row + c] * x[c];
      }
      int k = row + r;
      x[r] = z / l[k];
      squares += x[r] * (weight * x[r]);
      logs += logRatio(l[k], b.high(k) * scales[r]) - w * logRatio(a.high(k), b.high(k));
    }
    return squares + logs;
  }

  private static double logRatio(double a, double b) {
    double r = a / b;
    return r > Excess.LEAST_RATIO && r < Excess.MOST_RATIO
        ? Math.log(r)
        : Math.log(a) - Math.log(b);
  }
}
