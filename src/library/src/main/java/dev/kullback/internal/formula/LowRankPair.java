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
   * (Zen 4, D = 512, r = 8). Two columns are multiplied with two others: three matrices' products took 15 µs that way, and 24 µs, with those of one
   * more, column by column. With two blocks in a loop, 12 arrays, it took 27 µs (AVX-512, Intel, CPU family 6, JDK 25).
   */
  private static final int BLOCK = 64;

  /** Least pivot 1 + e whose error the bound allows for. */
  private static final double LEAST_PIVOT = 0.125;

  /** Places of the sums of products in {@link #sums}, r² each. */
  private static final int GG = 0;

  private static final int UG = 1;
  private static final int GG_C = 2;
  private static final int WW_C = 3;
  private static final int KINDS = 4;

  private final Worker worker;
  private final Capacitance capacitance = new Capacitance();
  private final LowRankExact exact = new LowRankExact();

  /** Sums of products, and the parts of each lane of two by two of them, or of one. */
  private double[] sums = {};

  private final double[][] lanes = new double[4][BLOCK];

  private int blocks;

  /** Columns of a matrix, rounded up to an even number. */
  private int columns;

  /** By block and dimension 1/v_p, c, x c, d/v_p and uM⁻¹u, whether all c are 0, and the greatest |x|. */
  private double[][] inverses = {};

  private double[][] changes = {};
  private double[][] excesses = {};
  private double[][] differences = {};
  private double[][] leverages = {};
  private boolean isShared;
  private double mostExcess;

  private final Variance vq = new Variance();
  private final Variance vp = new Variance();

  /** {@code UᵀV⁻¹d}; by column and block, U, V⁻¹U, UM⁻¹, G, V⁻¹G, cG and cW_q; sums of |c| u² and of |c| g². */
  private double[] ud = {};

  private double[][] u = {};
  private double[][] ofU = {};
  private double[][] solvedU = {};
  private double[][] g = {};
  private double[][] ofG = {};
  private double[][] ofGc = {};
  private double[][] ofWc = {};

  /** W_q by column and block. */
  private double[][] w = {};

  /** Whose values are at hand, as the pairs of a block have q or p in common with the one before, and for how many columns. */
  private @Nullable LowRankBatch ofW;

  private int rowOfW;
  private int rankOfW;
  private @Nullable LowRankBatch ofP;
  private int rowOfP;
  private int rankOfP;
  private double[] sizeU = {};
  private double[] sizeG = {};

  /** {@code tr M⁻¹P_c} and {@code tr M⁻¹U_xc}. */
  private double traceOfUG;

  private double traceOfUU;

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
    ofP = null;
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
    takeP(p, j, r);
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
    blocks = Math.ceilDiv(d, BLOCK);
    columns = r + r % 2;
    if (inverses.length < blocks) {
      inverses = new double[blocks][BLOCK];
      changes = new double[blocks][BLOCK];
      excesses = new double[blocks][BLOCK];
      differences = new double[blocks][BLOCK];
      leverages = new double[blocks][BLOCK];
      clear();
    }
    if (u.length < columns * blocks) {
      u = new double[columns * blocks][BLOCK];
      ofU = new double[columns * blocks][BLOCK];
      solvedU = new double[columns * blocks][BLOCK];
      g = new double[columns * blocks][BLOCK];
      ofG = new double[columns * blocks][BLOCK];
      ofGc = new double[columns * blocks][BLOCK];
      ofWc = new double[columns * blocks][BLOCK];
      w = new double[columns * blocks][BLOCK];
      clear();
    }
    if (ud.length < r) {
      sums = new double[KINDS * r * r];
      inverse = new double[r * r];
      a = new double[r * r];
      spare = new double[r * r];
      ud = new double[r];
      sizeU = new double[r];
      sizeG = new double[r];
      clear();
    }
  }

  /** Takes what depends on p alone, if it is not at hand: V⁻¹, C, M⁻¹, V⁻¹U, UM⁻¹ and uM⁻¹u. */
  private void takeP(LowRankBatch p, int j, int r) {
    if (p == ofP && j == rowOfP && r == rankOfP) {
      return;
    }
    ofP = p;
    rowOfP = j;
    rankOfP = r;
    int d = p.dimension();
    capacitance.set(p, j, r);
    invert(r);
    Scale kind = p.diagonal().kind();
    for (int b = 0; b < blocks; b++) {
      int length = Math.clamp(d - b * BLOCK, 0, BLOCK);
      for (int t = 0, at = j * d + b * BLOCK; t < length; t++, at++) {
        inverses[b][t] = 1 / kind.variance(p.diagonal().scale(at));
      }
      Arrays.fill(inverses[b], length, BLOCK, 0);
    }
    transpose(p, j, u);
    for (int b = 0; b < blocks; b++) {
      Arrays.fill(leverages[b], 0);
      for (int k = 0; k < columns; k++) {
        double[] x = u[k * blocks + b];
        multiply(inverses[b], x, ofU[k * blocks + b]);
        double[] y = solvedU[k * blocks + b];
        Arrays.fill(y, 0);
        for (int l = 0; k < r && l < r; l++) {
          addMultiple(y, inverse[k * r + l], u[l * blocks + b]);
        }
        addProduct(leverages[b], x, y);
      }
    }
  }

  private void invert(int r) {
    double[] c = capacitance.inverse();
    for (int k = 0; k < r; k++) {
      for (int l = 0; l <= k; l++) {
        double sum = 0;
        for (int m = k; m < r; m++) {
          sum += c[m * r + k] * c[m * r + l];
        }
        inverse[k * r + l] = inverse[l * r + k] = sum;
      }
    }
  }

  /** Sums the products, each dimension of a block in a lane of its own; returns {@code Σ d²/v_p}. */
  private double sum(LowRankBatch q, int i, LowRankBatch p, int j) {
    int r = capacitance.rank();
    double squares = take(q, i, p, j);
    if (q != ofW || i != rowOfW || r != rankOfW) {
      transpose(q, i, w);
      ofW = q;
      rowOfW = i;
      rankOfW = r;
    }
    traceOfUG = 0;
    for (int k = 0; k < columns; k++) {
      weigh(k, r);
    }
    addUp(UG, ofU, g, r);
    addUp(GG, ofG, g, r);
    if (isShared) {
      Arrays.fill(sums, GG_C * r * r, KINDS * r * r, 0);
      traceOfUU = 0;
      return squares;
    }
    addUp(GG_C, ofGc, g, r);
    addUp(WW_C, ofWc, w, r);
    Arrays.fill(lanes[0], 0);
    for (int b = 0; b < blocks; b++) {
      addProduct(lanes[0], excesses[b], leverages[b]);
    }
    traceOfUU = total(lanes[0]);
    return squares;
  }

  /** Sums the products of the columns of two matrices, two by two; all but those with U are symmetric. */
  private void addUp(int kind, double[][] x, double[][] y, int r) {
    for (int k = 0; k < columns; k += 2) {
      for (int l = 0; l < (kind == UG ? columns : k + 2); l += 2) {
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
          if (m < r && n < r && (kind == UG || n <= m)) {
            double sum = total(lanes[place]);
            sums[(kind * r + m) * r + n] = sum;
            if (kind != UG) {
              sums[(kind * r + n) * r + m] = sum;
            }
          }
        }
      }
    }
  }

  /** Takes what weighs the dimensions, 0 beyond them. */
  private double take(LowRankBatch q, int i, LowRankBatch p, int j) {
    int d = q.dimension();
    Scale kindQ = q.diagonal().kind();
    Scale kindP = p.diagonal().kind();
    double squares = 0;
    isShared = true;
    mostExcess = 0;
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
      int b = h / BLOCK;
      int t = h % BLOCK;
      double c = x == 0 ? 0 : x / kindQ.variance(sq);
      changes[b][t] = c;
      excesses[b][t] = c * x;
      isShared &= x == 0;
      mostExcess = Math.max(mostExcess, Math.abs(x));
      differences[b][t] = difference * inverses[b][t];
      squares += difference * differences[b][t];
    }
    for (int b = d / BLOCK; b < blocks; b++) {
      int end = Math.max(0, d - b * BLOCK);
      Arrays.fill(changes[b], end, BLOCK, 0);
      Arrays.fill(excesses[b], end, BLOCK, 0);
      Arrays.fill(differences[b], end, BLOCK, 0);
    }
    return squares;
  }

  /** Puts the columns of W where they are blocks, with 0 behind the dimensions and for those that it lacks. */
  private void transpose(LowRankBatch batch, int i, double[][] to) {
    double[] factor = batch.factor();
    int d = batch.dimension();
    int rank = batch.rank();
    for (int b = 0; b < blocks; b++) {
      int length = Math.clamp(d - b * BLOCK, 0, BLOCK);
      for (int k = 0; k < columns; k++) {
        double[] column = to[k * blocks + b];
        int end = k < rank ? length : 0;
        for (int t = 0, from = (i * d + b * BLOCK) * rank + k; t < end; t++, from += rank) {
          column[t] = factor[from];
        }
        Arrays.fill(column, end, BLOCK, 0);
      }
    }
  }

  /** Computes column k of G, and it and that of W_q by what weighs the dimensions, and sums what has one column. */
  private void weigh(int k, int r) {
    for (double[] lane : lanes) {
      Arrays.fill(lane, 0);
    }
    for (int b = 0, at = k * blocks; b < blocks; b++, at++) {
      subtract(w[at], u[at], inverses[b], g[at], ofG[at]);
      addProduct(lanes[0], differences[b], u[at]);
      if (!isShared) {
        multiply(changes[b], g[at], w[at], ofGc[at], ofWc[at]);
        addProduct(lanes[1], ofGc[at], solvedU[at]);
        addSizes(lanes[2], lanes[3], changes[b], u[at], ofGc[at], g[at]);
      }
    }
    if (k < r) {
      ud[k] = total(lanes[0]);
      traceOfUG += total(lanes[1]);
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

  /**
   * Returns 2 KL, and bounds the error of half of it. To first order, each sum of products errs by γ times the root of the product of the sums
   * of its factors' squares, γ = (D/64 + 64 + 2r + 16)·2⁻⁵³; that of C⁻¹ multiplies by 1 + {@link Capacitance#error}/γ at most.
   */
  private double total(int d, double diagonal, double squares) {
    int r = capacitance.rank();
    double[] w = capacitance.inverse();
    double[] gram = capacitance.gram();
    for (int k = 0; k < r; k++) {
      for (int l = 0; l <= k; l++) {
        a[k * r + l] = at(UG, k, l) + at(UG, l, k) + at(GG, k, l) - at(WW_C, k, l);
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
    double sum = diagonal + 2 * traceOfUG - traceOfUU;
    double sizes = 8 * diagonal;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        double x = inverse[k * r + l];
        double y = 0;
        for (int m = 0; m < r; m++) {
          y += inverse[k * r + m] * gram[m * r + l];
        }
        sum += y * at(GG, l, k);
        sum += x * at(GG_C, k, l);
        sizes += Math.abs(y) * root(at(GG, k, k), at(GG, l, l));
        sizes += Math.abs(x) * root(sizeG[k], sizeG[l]);
        sizes += 2 * Math.abs(x) * root(sizeU[k], sizeG[l]);
        sizes += Math.abs(x) * mostExcess * root(sizeU[k], sizeU[l]);
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
    double unit = 0x1p-53 * ((double) d / BLOCK + BLOCK + 2 * r + 16) + capacitance.error();
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
