package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.DoubleEquality;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Computes the divergence of one pair with full covariances in double by a triangular solve without cancellation: with {@code L_p E = L_q −
 * L_p} and {@code L_p y = μ_q − μ_p},
 *
 * <pre>
 * KL = ½ (‖y‖² + Σ_{r>c} E_rc²) + Σ_k [½ E_kk² + E_kk − ln(1 + E_kk)]
 * </pre>
 *
 * <p>which is {@code ½ (‖y‖² + ‖X‖² − D) − Σ ln X_kk} for {@code X = I + E}. No term is negative, and sums are of blocks, so the
 * relative error is that of a term: some {@code D·cond(L_p)} roundings. Holds the working memory of one thread.
 */
public final class FullPair implements Formula.Full {
  private static final int BLOCK = Compensation.BLOCK;

  private final Worker worker;
  private final Factor q = new Factor();
  private final Factor p = new Factor();

  /** E, packed as L is; y; and half a block of rows' sums of squares by column. */
  private double[] e = {};

  private double[] y = {};
  private double[] squares = {};

  /** Pairs of which neither has a full covariance. */
  private final LowRankPair lowRank;

  public FullPair(Worker worker) {
    this.worker = worker;
    lowRank = new LowRankPair(worker);
  }

  /** Mean and packed L of one Gaussian, where they lie. L has two parts, of which the low one may be missing. */
  public static final class Factor {
    private double[] mean = {};
    private double[] l = {};
    private double @Nullable [] low;
    private int meanAt;
    private int at;

    /** Mean and L of a diagonal Gaussian, written out; zero off the diagonal. */
    private double[] ownMean = {};

    private double[] own = {};
    private double[] ownLow = {};
    private int ownDimension;
    private final Cholesky cholesky = new Cholesky();

    /** Drops the caller's batch. */
    public void clear() {
      mean = ownMean;
      l = own;
      low = null;
    }

    /** Whether L was computed from the caller's numbers. */
    public boolean isConverted() {
      return low != null;
    }

    /** Whether L is, but for its low part, as {@link #copy} has copied it. */
    boolean isCopied(double[] copy) {
      return Arrays.equals(copy, 0, copy.length, l, at, at + copy.length);
    }

    void copy(double[] to) {
      System.arraycopy(l, at, to, 0, to.length);
    }

    /** Hash code of L's diagonal. */
    int hash(int d) {
      int hash = 0;
      for (int h = 0, k = at; h < d; k += ++h + 1) {
        hash = 31 * hash + Double.hashCode(l[k]);
      }
      return hash;
    }

    /** Whether it comes before another in an order of all parameters, which tells two apart whatever their roles. */
    public boolean isBefore(Factor other, int d) {
      int c = Arrays.compare(mean, meanAt, meanAt + d, other.mean, other.meanAt, other.meanAt + d);
      int length = Cholesky.packedLength(d);
      c = c != 0 ? c : Arrays.compare(l, at, at + length, other.l, other.at, other.at + length);
      for (int k = 0; c == 0 && k < length; k++) {
        c = Double.compare(low(k), other.low(k));
      }
      return c < 0;
    }

    /** Number of dimensions less the rank. */
    int zeros(int d) {
      int zeros = 0;
      for (int h = 0, k = at; h < d; k += ++h + 1) {
        zeros += l[k] == 0 ? 1 : 0;
      }
      return zeros;
    }

    boolean equals(Factor other, int d) {
      return DoubleEquality.areEqual(mean, meanAt, other.mean, other.meanAt, d)
          && hasFactorOf(other, d);
    }

    boolean hasFactorOf(Factor other, int d) {
      if (l == other.l && low == other.low && at == other.at) { // shared
        return true;
      }
      int length = Cholesky.packedLength(d);
      boolean same = DoubleEquality.areEqual(l, at, other.l, other.at, length);
      for (int k = 0; same && k < length; k++) {
        same = low(k) == other.low(k);
      }
      return same;
    }

    public double mean(int h) {
      return mean[meanAt + h];
    }

    public double high(int k) {
      return l[at + k];
    }

    public double low(int k) {
      return low == null ? 0 : low[at + k];
    }

    public void set(Batch g, int i) {
      int d = g.dimension();
      switch (g) {
        case LowRankBatch f -> set(f.full(), i);
        case FullBatch f -> {
          mean = f.mean();
          meanAt = i * d;
          l = f.scaleTril();
          low = f.scaleTrilLow();
          at = f.factorFrom(i);
        }
        case DiagonalBatch diagonal -> {
          if (ownMean.length < d) {
            ownMean = new double[d];
            own = new double[Cholesky.packedLength(d)];
            ownLow = new double[own.length];
          } else if (ownDimension != d) {
            Arrays.fill(own, 0);
            Arrays.fill(ownLow, 0);
          }
          ownDimension = d;
          mean = ownMean;
          meanAt = 0;
          l = own;
          low = diagonal.kind() == Scale.STD ? null : ownLow;
          at = 0;
          for (int h = 0, k = 0; h < d; k += ++h + 1) {
            cholesky.std(diagonal.kind(), diagonal.scale(i * d + h));
            own[k] = cholesky.high();
            ownLow[k] = cholesky.low();
            ownMean[h] = diagonal.mean(i * d + h);
          }
        }
      }
    }
  }

  /** Element k of E, packed as L is, of the pair that {@link #divergence} computed last. */
  double e(int k) {
    return e[k];
  }

  /** Element k of y, likewise. */
  double y(int k) {
    return y[k];
  }

  @Override
  public void clear() {
    q.clear();
    p.clear();
    lowRank.clear();
  }

  /** Returns KL(q_i ‖ p_j). */
  @Override
  public double divergence(Batch q, int i, Batch p, int j) {
    if (!(q instanceof FullBatch || p instanceof FullBatch)) {
      return lowRank.divergence(q, i, p, j);
    }
    this.q.set(q, i);
    this.p.set(p, j);
    return this.q.equals(this.p, q.dimension()) ? 0 : kl(q.dimension());
  }

  /** Returns what KL is of the first factors of two batches where means are equal. */
  public double ofFactors(FullBatch q, FullBatch p) {
    this.q.set(q, 0);
    this.p.set(p, 0);
    this.q.mean = this.p.mean;
    return this.q.hasFactorOf(this.p, q.dimension()) ? 0 : kl(q.dimension());
  }

  /** Returns KL(q_i ‖ p_j), and copies E and y to the place {@code at} of every {@code step} numbers, also of equal Gaussians. */
  public double solve(
      FullBatch q, int i, FullBatch p, int j, double[] e, double[] y, int at, int step) {
    int d = q.dimension();
    this.q.set(q, i);
    this.p.set(p, j);
    double kl = kl(d);
    for (int k = 0; k < d; k++) {
      y[k * step + at] = this.y[k];
    }
    for (int k = 0; k < Cholesky.packedLength(d); k++) {
      e[k * step + at] = this.e[k];
    }
    return kl;
  }

  private double kl(int d) {
    if (y.length < d) {
      y = new double[d];
      squares = new double[d];
      e = new double[Cholesky.packedLength(d)];
    }
    double[] squares = this.squares;
    Arrays.fill(squares, 0, d, 0);
    boolean isAlike = q.hasFactorOf(p, d);
    double off = 0;
    double offErrors = 0;
    for (int k = 0, row = 0; k < d; row += ++k) {
      worker.pass(Checkpoint.ofPlain(isAlike ? k : (long) k * k / 8));
      solveRow(k, row, isAlike ? 0 : k);
      if ((k + 1) % BLOCK == 0 || k + 1 == d) {
        for (int from = 0; from < k; from += BLOCK) {
          double acc = 0;
          for (int end = Math.min(k, from + BLOCK), c = from; c < end; c++) {
            acc += squares[c];
            squares[c] = 0;
          }
          double u = off + acc;
          offErrors += Compensation.error(off, acc, u);
          off = u;
        }
      }
    }
    double sum = 0;
    double errors = 0;
    for (int from = 0, at = 0; from < d; from += BLOCK) {
      double acc = 0;
      for (int end = Math.min(d, from + BLOCK), k = from; k < end; at += ++k + 1) {
        acc += 0.5 * y[k] * y[k] + Excess.of(e[at], q.l[q.at + at], p.l[p.at + at]);
      }
      double u = sum + acc;
      errors += Compensation.error(sum, acc, u);
      sum = u;
    }
    double kl = sum + errors + (off + offErrors);
    // NaN is ∞ − ∞: within E, or in the error of an infinite sum
    return kl >= 0 ? kl : Double.POSITIVE_INFINITY;
  }

  /**
   * Computes row k of E, which begins at {@code row}, and y_k; adds the row's squares to those of the columns.
   *
   * @param n columns left of the diagonal that are not all 0: none, where the factors are equal, and else k
   */
  private void solveRow(int k, int row, int n) {
    double[] lq = q.l;
    double[] lp = p.l;
    double[] e = this.e;
    double[] y = this.y;
    double[] squares = this.squares;
    boolean isExact = q.low == null && p.low == null;
    int a = q.at + row;
    int b = p.at + row;
    double pivot = lp[b + k];
    double t =
        inversePower(pivot); // rows may be scaled, exactly; now nothing overflows that KL does not
    Arrays.fill(e, row + n, row + k, 0);
    for (int c = 0; c < n; c++) {
      e[row + c] = (lq[a + c] - lp[b + c]) * t;
    }
    for (int c = 0; c < n && !isExact; c++) {
      e[row + c] += (q.low(row + c) - p.low(row + c)) * t;
    }
    double z = difference(q.mean[q.meanAt + k], p.mean[p.meanAt + k], t);
    for (int l = 0, above = 0; l < k; above += ++l) {
      double f = lp[b + l] * t;
      int end = Math.min(l + 1, n);
      if (Math.abs(f) <= Double.MAX_VALUE) {
        if (f != 0) {
          for (int c = 0; c < end; c++) {
            e[row + c] -= f * e[above + c];
          }
          z -= f * y[l];
        }
      } else { // overflowed; what it multiplies may be 0
        for (int c = 0; c < end; c++) {
          e[row + c] -= e[above + c] == 0 ? 0 : f * e[above + c];
        }
        z -= y[l] == 0 ? 0 : f * y[l];
      }
    }
    double inverse = 1 / (pivot * t);
    for (int c = 0; c < n; c++) {
      double x = e[row + c] * inverse;
      e[row + c] = x;
      squares[c] += 0.5 * x * x;
    }
    y[k] = z * inverse;
    double diagonal = lq[a + k] - pivot;
    e[row + k] = (isExact ? diagonal : diagonal + (q.low(row + k) - p.low(row + k))) / pivot;
  }

  /** Returns KL(q_i ‖ N(0, I)), by {@code E = L_q − I} and {@code y = μ_q}. */
  public static double standard(FullBatch q, int i) {
    int d = q.dimension();
    int k = q.factorFrom(i);
    double[] l = q.scaleTril();
    double[] lows = q.scaleTrilLow();
    double sum = 0;
    double errors = 0;
    for (int r = 0; r < d; r++, k++) {
      double s = l[k + r];
      double low = lows == null ? 0 : lows[k + r];
      double m = q.mean()[i * d + r];
      double acc = Excess.of(s - 1 + low, s, 1) + 0.5 * m * m;
      int c = 0;
      do {
        double halves = 0;
        for (int end = Math.min(r, c + BLOCK); c < end; c++, k++) {
          halves += 0.5 * l[k] * l[k];
        }
        acc += halves;
        double t = sum + acc;
        errors += Compensation.error(sum, acc, t);
        sum = t;
        acc = 0;
      } while (c < r);
    }
    return Compensation.total(sum, errors);
  }

  /** Returns (a − b)·t, where a − b may overflow. */
  static double difference(double a, double b, double t) {
    double d = a - b;
    return Math.abs(d) <= Double.MAX_VALUE ? d * t : a * t - b * t;
  }

  /** Returns a power of two near 1/x, within double's range. */
  public static double inversePower(double x) {
    int exponent = Math.clamp(-Math.getExponent(x), Double.MIN_EXPONENT, Double.MAX_EXPONENT);
    return Double.longBitsToDouble((long) (exponent + Double.MAX_EXPONENT) << 52);
  }
}
