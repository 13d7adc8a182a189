package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.work.Worker;

/**
 * Computes KL of one pair with low-rank covariances, {@code Σ = V + WWᵀ}, from differences. With V, U, M = CCᵀ and K = M − I of p, {@code
 * x = v_q/v_p − 1}, {@code c = x/v_q}, {@code G = W_q − U}, columns that one lacks being 0, {@code f(x) = x − ln(1+x)} and d = μ_q − μ_p,
 *
 * <pre>
 * Q = GᵀV⁻¹G, P = UᵀV⁻¹G, Q_c = GᵀcG, P_c = UᵀcG, U_c = UᵀcU, U_xc = UᵀxcU
 * I + A = C⁻¹M_qC⁻ᵀ = LLᵀ, A = C⁻¹(P + Pᵀ + Q − U_c − P_c − P_cᵀ − Q_c)C⁻ᵀ, e_k = L_kk² − 1
 *
 * 2 KL = Σ_h [f(x_h) + d_h²/v_h] − ‖C⁻¹UᵀV⁻¹d‖²
 *        + Σ_k f(e_k) + Σ_{r>c} L_rc² + tr M⁻¹KQ + tr M⁻¹Q_c − ‖C⁻¹P‖² + 2 tr M⁻¹P_c − tr M⁻¹U_xc
 * </pre>
 *
 * <p>It is {@code tr(Σ_p⁻¹Σ_q) − D − ln det(Σ_p⁻¹Σ_q) + dᵀΣ_p⁻¹d}, from which 1, x and P, the terms that are not of second order in the
 * differences, have been cancelled. So terms cancel as far as the condition of M and the differences' direction have them, not by how small they
 * are. Where the bound of that exceeds the contract, {@link LowRankExact} computes in twice the precision. Holds the working memory of one
 * thread.
 */
public final class LowRankPair implements Formula.Full {
  /** Least pivot 1 + e whose error the bound allows for. */
  private static final double LEAST_PIVOT = 0.125;

  private final Worker worker;
  private final LowRankSums sums;
  private final LowRankExact exact = new LowRankExact();

  /** A, which L replaces; and C⁻¹X of the last X. */
  private double[] a = {};

  private double[] solved = {};

  /** Roots of Q's diagonal. */
  private double[] roots = {};

  /** Σ f(e) and the squares of L below its diagonal. */
  private double excess;

  /** Bound of the last result's error; infinite if there is none. */
  private double error;

  LowRankPair(Worker worker) {
    this(worker, new LowRankScalarSums());
  }

  /** Makes one whose sums are a kernel's. */
  public LowRankPair(Worker worker, LowRankSums sums) {
    this.worker = worker;
    this.sums = sums;
  }

  @Override
  public void clear() {
    sums.clear();
  }

  @Override
  public double divergence(Batch qs, int i, Batch ps, int j) {
    LowRankBatch q = LowRankBatch.of(qs);
    LowRankBatch p = LowRankBatch.of(ps);
    if (q.isEqual(i, p, j)) {
      return 0;
    }
    if (q.diagonal().beyond64().get(i) || p.diagonal().beyond64().get(j)) {
      return exact(q, i, p, j); // variances or their inverses may be beyond double
    }
    sums.sum(q, i, p, j);
    int n = sums.rank * sums.rank;
    if (a.length < n) {
      a = new double[n];
      solved = new double[n];
      roots = new double[sums.rank];
    }
    double kl = 0.5 * total(q.dimension());
    double tolerance =
        qs.isDouble() || ps.isDouble()
            ? PairKl.DOUBLE_TOLERANCE * sums.condition
            : PairKl.REFINED_TOLERANCE;
    if (PairKl.isCertain(kl, error, tolerance - 0x1p-50)) {
      return kl;
    }
    double value = exact(q, i, p, j);
    return exact.error() <= error || !(error < Double.POSITIVE_INFINITY) ? value : Math.max(0, kl);
  }

  private double exact(LowRankBatch q, int i, LowRankBatch p, int j) {
    worker.pass(32 * Batch.terms(q, p));
    return exact.kl(q, i, p, j);
  }

  /**
   * Returns 2 KL, and bounds the error of half of it. To first order, each sum of products errs by γ times the root of the product of the sums
   * of its factors' squares, γ = (D/64 + 64 + 2r + 24)·2⁻⁵³; that of C⁻¹ multiplies by 1 + {@link Capacitance#error}/γ at most.
   */
  private double total(int d) {
    int r = sums.rank;
    double[] inverse = sums.inverse;
    double[] ofUG = sums.ofUG;
    double[] ofGG = sums.ofGG;
    double[] rootU = sums.rootU;
    double[] rootG = sums.rootG;
    double other = 0; // Σ_k Q_kk M⁻¹_kk
    double weighted = 0;
    double trace = 0;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l <= k; l++) {
        a[k * r + l] = ofUG[k * r + l] + ofUG[l * r + k] + ofGG[k * r + l] - sums.ofWW[k * r + l];
        a[l * r + k] = a[k * r + l];
      }
      double x = inverse[k * (r + 1)];
      other += ofGG[k * (r + 1)] * x;
      trace += ofGG[k * (r + 1)];
      double root = rootU[k] + rootG[k];
      weighted += root * root * x;
      roots[k] = Math.sqrt(ofGG[k * (r + 1)]);
    }
    double own = sums.own;
    double size = 2 * Math.sqrt(own * other) + other + weighted;
    double sum = sums.diagonal + sums.traceOfG - sums.traceOfU;
    double sizes = 8 * sums.diagonal;
    for (int k = 0; k < r; k++) {
      double ofG = rootG[k] + 2 * rootU[k];
      double ofU = sums.mostExcess * rootU[k];
      for (int l = 0; l < r; l++) {
        sum += sums.weights[k * r + l] * ofGG[k * r + l];
        double ofChanges = Math.abs(inverse[k * r + l]) * (ofG * rootG[l] + ofU * rootU[l]);
        sizes += sums.weightSizes[k * r + l] * (roots[k] * roots[l]) + ofChanges;
      }
    }
    double product = solve(ofUG, r, r);
    double projected = solve(sums.ud, 1, r);
    sum -= product + projected;
    sizes += 2 * Math.sqrt(product * own * trace) + 2 * Math.sqrt(projected * own * sums.squares);
    double norm = transform(r);
    double least = excesses(r);
    sum += excess;
    sizes += 2 * (norm + size * 0x1p-40) * size / least + excess;
    double unit =
        0x1p-53 * ((double) d / LowRankSums.BLOCK + LowRankSums.BLOCK + 2 * r + 24) + sums.error;
    error = least >= LEAST_PIVOT ? 0.5 * unit * sizes : Double.POSITIVE_INFINITY;
    return sum;
  }

  /** Computes C⁻¹X of an X of so many columns; returns the sum of its squares. */
  private double solve(double[] x, int columns, int r) {
    double[] w = sums.capacitance.inverse();
    double squares = 0;
    for (int k = 0; k < r; k++) {
      int row = k * columns;
      for (int l = 0; l < columns; l++) { // side by side, as a sum waits for its last addition
        solved[row + l] = w[k * r] * x[l];
      }
      for (int m = 1; m <= k; m++) {
        double by = w[k * r + m];
        for (int l = 0; l < columns; l++) {
          solved[row + l] += by * x[m * columns + l];
        }
      }
      double sum = 0;
      for (int l = 0; l < columns; l++) {
        sum += solved[row + l] * solved[row + l];
      }
      squares += sum;
    }
    return squares;
  }

  /** Replaces F by {@code A = C⁻¹FC⁻ᵀ}, as both are symmetric; returns its norm. */
  private double transform(int r) {
    solve(a, r, r);
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        a[k * r + l] = solved[l * r + k];
      }
    }
    double squares = solve(a, r, r);
    System.arraycopy(solved, 0, a, 0, r * r);
    return Math.sqrt(squares);
  }

  /** Factors {@code I + A = LLᵀ} by the e_k; returns the least 1 + e_k. */
  private double excesses(int r) {
    double least = 1;
    excess = 0;
    for (int k = 0; k < r; k++) {
      double e = a[k * (r + 1)];
      least = Math.min(least, 1 + e);
      if (!(least >= LEAST_PIVOT)) {
        return -1;
      }
      excess += Math.abs(e) < 0.5 ? AlikeTerm.lessLog(e) : e - Math.log1p(e);
      double inverse = 1 / Math.sqrt(1 + e);
      for (int row = k + 1; row < r; row++) {
        double x = a[row * r + k] * inverse;
        a[row * r + k] = x;
        excess += x * x;
        for (int l = k + 1; l <= row; l++) {
          a[row * r + l] -= x * a[l * r + k];
        }
      }
    }
    return least;
  }
}
