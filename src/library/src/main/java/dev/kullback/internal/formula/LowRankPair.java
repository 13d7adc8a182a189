package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.Capacitance;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

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
final class LowRankPair implements Formula.Full {
  /**
   * Dimensions of a block. Each is an array of its own, so that loops have one index for all, as C2 makes no vectors of others: 0.7 of the time
   * (Zen 4, D = 512, r = 8). Sums take two blocks at a time, an even number in all: 0.88 of the time, as the lanes are read and written half as often.
   */
  private static final int BLOCK = 64;

  /** Least pivot 1 + e whose error the bound allows for. */
  private static final double LEAST_PIVOT = 0.125;

  /** Places of the sums of products in {@link #sums}, r² each. */
  private static final int GG = 0;

  private static final int UG = 1;
  private static final int GG_C = 2;
  private static final int UG_C = 3;
  private static final int UU_C = 4;
  private static final int UU_XC = 5;
  private static final int KINDS = 6;

  private final Worker worker;
  private final Capacitance capacitance = new Capacitance();
  private final LowRankExact exact = new LowRankExact();

  /** Sums of products, and of those with one column the parts of each lane. */
  private double[] sums = {};

  private double[][] lanes = {};
  private final double[] laneD = new double[BLOCK];
  private final double[] laneU = new double[BLOCK];
  private final double[] laneG = new double[BLOCK];

  private int blocks;

  /** By block and dimension 1/v_p, c, x and d/v_p, and whether all c are 0. */
  private double[][] inverses = {};

  private double[][] changes = {};
  private double[][] excesses = {};
  private double[][] differences = {};
  private boolean isShared;

  /** Two blocks of a column of U or G, weighed. */
  private final double[][] ofU = new double[2][BLOCK];

  private final double[][] ofG = new double[2][BLOCK];
  private final double[][] ofUc = new double[2][BLOCK];
  private final double[][] ofGc = new double[2][BLOCK];
  private final double[][] ofUxc = new double[2][BLOCK];
  private final Variance vq = new Variance();
  private final Variance vp = new Variance();

  /** {@code UᵀV⁻¹d}; U and G, by block and column; sums of |c| u² and of |c| g². */
  private double[] ud = {};

  private double[][] u = {};
  private double[][] g = {};

  /** W_q by block and column, kept for the next pair, as the pairs of a block go row by row. */
  private double[][] w = {};

  private @Nullable LowRankBatch ofW;
  private int rowOfW;
  private int rankOfW;
  private double[] sizeU = {};
  private double[] sizeG = {};

  /** M⁻¹; A, which L replaces; and a matrix to multiply by. */
  private double[] inverse = {};

  private double[] a = {};
  private double[] spare = {};

  /** Σ f(e) and the squares of L below its diagonal. */
  private double excess;

  /** Bound of the last result's error; infinite if there is none. */
  private double error;

  LowRankPair(Worker worker) {
    this.worker = worker;
  }

  @Override
  public void clear() {
    ofW = null;
  }

  @Override
  public double divergence(Batch qs, int i, Batch ps, int j) {
    LowRankBatch q = LowRankBatch.of(qs);
    LowRankBatch p = LowRankBatch.of(ps);
    if (q.isEqual(i, p, j)) {
      return 0;
    }
    int r = Math.max(q.rank(), p.rank());
    makeRoom(q.dimension(), r);
    capacitance.set(p, j, r);
    double squares = sum(q, i, p, j);
    double diagonal = 2 * PairKl.stable(q.diagonal(), i, p.diagonal(), j);
    double kl = 0.5 * total(q.dimension(), diagonal, squares);
    double tolerance =
        qs.isDouble() || ps.isDouble()
            ? PairKl.DOUBLE_TOLERANCE * Math.clamp(capacitance.condition(), 1, 100)
            : PairKl.REFINED_TOLERANCE;
    if (PairKl.isCertain(kl, error, tolerance - 0x1p-50)) {
      return kl;
    }
    worker.pass(32 * Batch.terms(qs, ps));
    double value = exact.kl(q, i, p, j);
    return exact.error() <= error || !(error < Double.POSITIVE_INFINITY) ? value : Math.max(0, kl);
  }

  private void makeRoom(int d, int r) {
    blocks = 2 * Math.ceilDiv(d, 2 * BLOCK);
    if (inverses.length < blocks) {
      inverses = new double[blocks][BLOCK];
      changes = new double[blocks][BLOCK];
      excesses = new double[blocks][BLOCK];
      differences = new double[blocks][BLOCK];
    }
    if (u.length < r * blocks) {
      u = new double[r * blocks][BLOCK];
      g = new double[r * blocks][BLOCK];
      w = new double[r * blocks][BLOCK];
      ofW = null;
    }
    if (ud.length < r) {
      sums = new double[KINDS * r * r];
      lanes = new double[KINDS * r][BLOCK];
      inverse = new double[r * r];
      a = new double[r * r];
      spare = new double[r * r];
      ud = new double[r];
      sizeU = new double[r];
      sizeG = new double[r];
    }
  }

  /** Sums the products, each dimension of a block in a lane of its own; returns {@code Σ d²/v_p}. */
  private double sum(LowRankBatch q, int i, LowRankBatch p, int j) {
    int r = capacitance.rank();
    double squares = take(q, i, p, j);
    transpose(p, j, u);
    if (q != ofW || i != rowOfW || r != rankOfW) {
      transpose(q, i, w);
      ofW = q;
      rowOfW = i;
      rankOfW = r;
    }
    for (int k = 0; k < r * blocks; k++) {
      subtract(w[k], u[k], g[k]);
    }
    for (int k = 0; k < r; k++) {
      for (int place = 0; place < KINDS * r; place++) {
        Arrays.fill(lanes[place], 0);
      }
      Arrays.fill(laneD, 0);
      Arrays.fill(laneU, 0);
      Arrays.fill(laneG, 0);
      for (int b = 0; b < blocks; b += 2) {
        weigh(k, b, 0);
        weigh(k, b + 1, 1);
        for (int l = 0; l < r; l++) {
          double[] x0 = u[b * r + l];
          double[] x1 = u[(b + 1) * r + l];
          double[] y0 = g[b * r + l];
          double[] y1 = g[(b + 1) * r + l];
          addProducts(lanes[UG * r + l], ofU[0], y0, ofU[1], y1);
          if (l <= k) {
            addProducts(lanes[GG * r + l], ofG[0], y0, ofG[1], y1);
          }
          if (!isShared) {
            addProducts(lanes[UG_C * r + l], ofUc[0], y0, ofUc[1], y1);
          }
          if (l <= k && !isShared) {
            addProducts(lanes[GG_C * r + l], ofGc[0], y0, ofGc[1], y1);
            addProducts(lanes[UU_C * r + l], ofUc[0], x0, ofUc[1], x1);
            addProducts(lanes[UU_XC * r + l], ofUxc[0], x0, ofUxc[1], x1);
          }
        }
      }
      ud[k] = total(laneD);
      sizeU[k] = total(laneU);
      sizeG[k] = total(laneG);
      for (int kind = 0; kind < KINDS; kind++) {
        boolean isSymmetric = kind != UG && kind != UG_C;
        for (int l = 0; l < (isSymmetric ? k + 1 : r); l++) {
          double sum = total(lanes[kind * r + l]);
          sums[(kind * r + k) * r + l] = sum;
          if (isSymmetric) {
            sums[(kind * r + l) * r + k] = sum;
          }
        }
      }
    }
    return squares;
  }

  /** Takes what weighs the dimensions, 0 beyond them. */
  private double take(LowRankBatch q, int i, LowRankBatch p, int j) {
    int d = q.dimension();
    Scale kindQ = q.diagonal().kind();
    Scale kindP = p.diagonal().kind();
    double squares = 0;
    isShared = true;
    for (int h = 0; h < d; h++) {
      double sq = q.diagonal().scale(i * d + h);
      double sp = p.diagonal().scale(j * d + h);
      double x;
      if (kindQ == kindP) {
        x = kindQ.excess(sq, sp);
      } else {
        vq.set(kindQ, sq);
        vp.set(kindP, sp);
        x = Variance.excess(vq, vp);
      }
      double difference = q.diagonal().mean(i * d + h) - p.diagonal().mean(j * d + h);
      double inverse = 1 / kindP.variance(sp);
      int b = h / BLOCK;
      int t = h % BLOCK;
      inverses[b][t] = inverse;
      changes[b][t] = x == 0 ? 0 : x / kindQ.variance(sq);
      excesses[b][t] = x;
      isShared &= x == 0;
      differences[b][t] = difference * inverse;
      squares += difference * differences[b][t];
    }
    for (int b = d / BLOCK; b < blocks; b++) {
      int end = Math.max(0, d - b * BLOCK);
      Arrays.fill(inverses[b], end, BLOCK, 0);
      Arrays.fill(changes[b], end, BLOCK, 0);
      Arrays.fill(excesses[b], end, BLOCK, 0);
      Arrays.fill(differences[b], end, BLOCK, 0);
    }
    return squares;
  }

  /**
   * Puts the columns of W where they are blocks, with 0 behind the dimensions and for those that it lacks. With dimensions in the outer loop and W_q
   * anew for each pair, a pair took 58 µs instead of 50 (Zen 4, D = 512, r = 8).
   */
  private void transpose(LowRankBatch batch, int i, double[][] to) {
    double[] factor = batch.factor();
    int d = batch.dimension();
    int rank = batch.rank();
    int r = capacitance.rank();
    for (int b = 0; b < blocks; b++) {
      int length = Math.clamp(d - b * BLOCK, 0, BLOCK);
      for (int k = 0; k < r; k++) {
        double[] column = to[b * r + k];
        int end = k < rank ? length : 0;
        for (int t = 0, from = (i * d + b * BLOCK) * rank + k; t < end; t++, from += rank) {
          column[t] = factor[from];
        }
        Arrays.fill(column, end, BLOCK, 0);
      }
    }
  }

  /** Multiplies columns k of U and G by what weighs a block's dimensions, the first or second of two. */
  private void weigh(int k, int b, int place) {
    int r = capacitance.rank();
    double[] x = u[b * r + k];
    double[] y = g[b * r + k];
    multiply(inverses[b], x, ofU[place]);
    multiply(inverses[b], y, ofG[place]);
    addProduct(laneD, differences[b], x);
    if (isShared) {
      return;
    }
    multiply(changes[b], x, ofUc[place]);
    multiply(changes[b], y, ofGc[place]);
    multiply(excesses[b], ofUc[place], ofUxc[place]);
    addSize(laneU, ofUc[place], x);
    addSize(laneG, ofGc[place], y);
  }

  private static void addSize(double[] sums, double[] x, double[] y) {
    for (int t = 0; t < BLOCK; t++) {
      sums[t] += Math.abs(x[t] * y[t]);
    }
  }

  private static void multiply(double[] x, double[] y, double[] to) {
    for (int t = 0; t < BLOCK; t++) {
      to[t] = x[t] * y[t];
    }
  }

  private static void subtract(double[] x, double[] y, double[] to) {
    for (int t = 0; t < BLOCK; t++) {
      to[t] = x[t] - y[t];
    }
  }

  private static void addProducts(
      double[] sums, double[] x0, double[] y0, double[] x1, double[] y1) {
    for (int t = 0; t < BLOCK; t++) {
      sums[t] += x0[t] * y0[t] + x1[t] * y1[t];
    }
  }

  private static void addProduct(double[] sums, double[] x, double[] y) {
    for (int t = 0; t < BLOCK; t++) {
      sums[t] += x[t] * y[t];
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

  /**
   * Returns 2 KL, and bounds the error of half of it. To first order, each sum of products errs by γ times the root of the product of the sums
   * of its factors' squares, γ = (D/64 + 64 + r + 16)·2⁻⁵³; that of C⁻¹ multiplies by 1 + {@link Capacitance#error}/γ at most.
   */
  private double total(int d, double diagonal, double squares) {
    int r = capacitance.rank();
    double[] w = capacitance.inverse();
    double[] gram = capacitance.gram();
    for (int k = 0; k < r; k++) {
      for (int l = 0; l <= k; l++) {
        double sum = 0;
        for (int m = k; m < r; m++) {
          sum += w[m * r + k] * w[m * r + l];
        }
        inverse[k * r + l] = inverse[l * r + k] = sum;
        a[k * r + l] = at(UG, k, l) + at(UG, l, k) + at(GG, k, l);
        a[k * r + l] -= at(UU_C, k, l) + at(UG_C, k, l) + at(UG_C, l, k) + at(GG_C, k, l);
        a[l * r + k] = a[k * r + l];
      }
    }
    double own = 0; // Σ_k K_kk M⁻¹_kk, of U; and so of the others
    double other = 0;
    double weighted = 0;
    double trace = 0;
    for (int k = 0; k < r; k++) {
      double x = inverse[k * (r + 1)];
      own += gram[k * (r + 1)] * x;
      other += at(GG, k, k) * x;
      trace += at(GG, k, k);
      double root = Math.sqrt(sizeU[k]) + Math.sqrt(sizeG[k]);
      weighted += root * root * x;
    }
    double size = 2 * Math.sqrt(own * other) + other + weighted;
    double sum = diagonal;
    double sizes = 8 * diagonal;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        double x = inverse[k * r + l];
        double y = 0;
        for (int m = 0; m < r; m++) {
          y += inverse[k * r + m] * gram[m * r + l];
        }
        sum += y * at(GG, l, k);
        sum += x * (at(GG_C, k, l) + 2 * at(UG_C, k, l) - at(UU_XC, k, l));
        sizes += Math.abs(y) * root(at(GG, k, k), at(GG, l, l));
        sizes += Math.abs(x) * root(sizeG[k], sizeG[l]);
        sizes += 2 * Math.abs(x) * root(sizeU[k], sizeG[l]);
        sizes += Math.abs(x) * root(at(UU_XC, k, k), at(UU_XC, l, l));
      }
    }
    double product = solved(UG * r * r, sums, r, r);
    double projected = solved(0, ud, 1, r);
    sum -= product + projected;
    sizes += 2 * Math.sqrt(product * own * trace) + 2 * Math.sqrt(projected * own * squares);
    double norm = transform(r, w);
    double least = excesses(r);
    sum += excess;
    sizes += 2 * (norm + size * 0x1p-40) * size / least + excess;
    double unit = 0x1p-53 * ((double) d / BLOCK + BLOCK + r + 16) + capacitance.error();
    error = least >= LEAST_PIVOT ? 0.5 * unit * sizes : Double.POSITIVE_INFINITY;
    return sum;
  }

  private double at(int kind, int k, int l) {
    int r = capacitance.rank();
    return sums[(kind * r + k) * r + l];
  }

  private static double root(double x, double y) {
    return Math.sqrt(x * y);
  }

  /** Returns {@code ‖C⁻¹X‖²} of an X of so many columns. */
  private double solved(int from, double[] x, int columns, int r) {
    double[] w = capacitance.inverse();
    double squares = 0;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < columns; l++) {
        double sum = 0;
        for (int m = 0; m <= k; m++) {
          sum += w[k * r + m] * x[from + m * columns + l];
        }
        squares += sum * sum;
      }
    }
    return squares;
  }

  /** Replaces F by {@code A = C⁻¹FC⁻ᵀ}; returns its norm. */
  private double transform(int r, double[] w) {
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        double sum = 0;
        for (int m = 0; m <= k; m++) {
          sum += w[k * r + m] * a[m * r + l];
        }
        spare[k * r + l] = sum;
      }
    }
    double squares = 0;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        double sum = 0;
        for (int m = 0; m <= l; m++) {
          sum += spare[k * r + m] * w[l * r + m];
        }
        a[k * r + l] = sum;
        squares += sum * sum;
      }
    }
    return Math.sqrt(squares);
  }

  /** Factors {@code I + A = LLᵀ} by the e_k; returns the least 1 + e_k. */
  private double excesses(int r) {
    double least = 1;
    excess = 0;
    for (int k = 0; k < r; k++) {
      double e = a[k * (r + 1)];
      for (int m = 0; m < k; m++) {
        double x = a[k * r + m];
        excess += x * x;
        e -= x * x;
      }
      least = Math.min(least, 1 + e);
      if (!(least >= LEAST_PIVOT)) {
        return -1;
      }
      excess += Math.abs(e) < 0.5 ? AlikeTerm.lessLog(e) : e - Math.log1p(e);
      double pivot = Math.sqrt(1 + e);
      for (int row = k + 1; row < r; row++) {
        double sum = a[row * r + k];
        for (int m = 0; m < k; m++) {
          sum -= a[row * r + m] * a[k * r + m];
        }
        a[row * r + k] = sum / pivot;
      }
    }
    return least;
  }
}
