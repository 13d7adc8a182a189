package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.vector.DoubleTranspose;
import dev.kullback.internal.vector.Species;
import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * {@link FullPair} in lanes: one row and a vector of columns, a vector of pairs, or a vector of Gaussians and N(0, I). Each lane takes the
 * scalar form's operations, so its bits are the same. For one thread.
 *
 * <p>The two are not one text: the scalar form decides where a factor overflows, which lanes leave to it, so that it would have to stay
 * beside a twin of this. That twin took 1.08 of its time at D = 3, 0.8 at 16 and 0.62 at 64, a pair at a time (Zen 4, JDK 25.0.3).
 */
final class FullSolveKernel {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  static final int V = S.length();
  private static final int BLOCK = Compensation.BLOCK;

  private int dimension;

  /** Whether no factor has a low part. */
  private boolean isExact;

  /** Whether all factors are equal. */
  private boolean areAlike;

  /** Vectors, one for each entry of the packed factors: L_p in two parts; L_q, which E replaces, and its low part. */
  private double[] factor = {};

  private double[] factorLow = {};
  private double[] e = {};
  private double[] low = {};

  /** Vectors, one for each dimension: μ_p; the power of two that a row is scaled by; the inverse of the pivot so scaled. */
  private double[] mean = {};

  private double[] scale = {};
  private double[] inverse = {};

  /** E_kk, which its ½x² + x − ln(1+x) replaces; the ratio of the pivots, 1 + E_kk; μ_q, which y replaces. */
  private double[] excess = {};

  private double[] ratio = {};
  private double[] y = {};

  /** Two rows of −L_p, scaled and interleaved; sums of squares of each column in a block of rows. */
  private double[] rows = {};

  private double[] squares = {};

  /** Sum of all squares off the diagonal, and its rounding errors. */
  private final double[] off = new double[V];

  private final double[] offErrors = new double[V];

  private final double[] kl = new double[V];
  private final DoubleTranspose transpose = new DoubleTranspose(true);

  /** Packs V columns from {@code first} on, for rows of q; lanes beyond the batch repeat its last. */
  void pack(FullBatch q, FullBatch p, int first) {
    pack(q, p, first, false);
  }

  /**
   * Packs columns likewise. Where factors are equal, E is 0, and y alone is solved for: 1.0, 0.8 and 0.7 of the time of factors written out, at D = 8, 32
   * and 64, where pair by pair it was 3.6, 2.6 and 1.7 times (64 x 64, all open, Zen 4).
   *
   * @param areAlike whether all factors of q and p are equal
   */
  void pack(FullBatch q, FullBatch p, int first, boolean areAlike) {
    this.areAlike = areAlike;
    int d = p.dimension();
    makeRoom(d);
    isExact = q.scaleTrilLow() == null && p.scaleTrilLow() == null;
    if (e.length < factor.length) {
      e = new double[factor.length];
      scale = new double[mean.length];
      inverse = new double[mean.length];
      y = new double[mean.length];
      rows = new double[2 * mean.length];
      squares = new double[mean.length];
    }
    if (!isExact && low.length < factor.length) {
      factorLow = new double[factor.length];
      low = new double[factor.length];
    }
    lanes(p, first, factor, factorLow, mean);
    for (int k = 0, diagonal = 0; k < d; diagonal += (++k + 1) * V) {
      for (int i = 0; i < V; i++) {
        scale[k * V + i] = FullPair.inversePower(factor[diagonal + i]);
      }
      DoubleVector pivot = DoubleVector.fromArray(S, factor, diagonal);
      DoubleVector.broadcast(S, 1)
          .div(pivot.mul(DoubleVector.fromArray(S, scale, k * V)))
          .intoArray(inverse, k * V);
    }
  }

  /** L_p of the columns packed, a vector for each entry. */
  double[] factor() {
    return factor;
  }

  /** E of the pairs of the last call, a vector for each entry, until the next call. */
  double[] e() {
    return e;
  }

  /** y of the same pairs, a vector for each dimension. */
  double[] y() {
    return y;
  }

  private void makeRoom(int d) {
    dimension = d;
    if (mean.length < d * V) {
      factor = new double[Cholesky.packedLength(d) * V];
      mean = new double[d * V];
      excess = new double[d * V];
      ratio = new double[d * V];
    }
  }

  /** Packs V Gaussians from {@code first} on, one in each lane. */
  private void lanes(FullBatch g, int first, double[] high, double[] low, double[] mean) {
    int d = dimension;
    int length = Cholesky.packedLength(d);
    int count = Math.min(V, g.size() - first);
    FullPacking.factors(g.scaleTril(), g, first, count, high, transpose);
    FullPacking.means(g, first, count, mean, 0, V, transpose);
    double[] lows = g.scaleTrilLow();
    if (lows != null) {
      FullPacking.factors(lows, g, first, count, low, transpose);
    } else if (!isExact) {
      Arrays.fill(low, 0, length * V, 0);
    }
  }

  /** KL(q_i ‖ p_j) for the columns packed, or +∞ where {@link FullPair} must decide; valid until the next call. */
  double[] row(FullBatch q, int i) {
    int length = Cholesky.packedLength(dimension);
    spread(q.scaleTril(), q.factorFrom(i), length, e);
    spread(q.mean(), i * dimension, dimension, y);
    double[] lows = q.scaleTrilLow();
    if (lows != null) {
      spread(lows, q.factorFrom(i), length, low);
    } else if (!isExact) {
      Arrays.fill(low, 0, length * V, 0);
    }
    return solve();
  }

  /** KL of V pairs: rows from {@code first} on with the columns packed, as {@link #row} has them. */
  double[] pairs(FullBatch q, int first) {
    lanes(q, first, e, low, y);
    return solve();
  }

  /** KL of {@code count ≤ V} Gaussians from {@code first} on from N(0, I), or NaN where {@link FullPair#standard} must decide. */
  double[] standard(FullBatch g, int first, int count) {
    int d = g.dimension();
    makeRoom(d);
    FullPacking.factors(g.scaleTril(), g, first, count, factor, transpose);
    FullPacking.means(g, first, count, mean, 0, V, transpose);
    double[] lows = g.scaleTrilLow();
    for (int i = 0; i < count; i++) {
      for (int r = 0, k = g.factorFrom(first + i), at = i; r < d; k += ++r + 1, at += V) {
        ratio[at] = g.scaleTril()[k];
        excess[at] = ratio[at] - 1 + (lows == null ? 0 : lows[k]);
      }
    }
    FullExcess.of(excess, ratio, d * V);
    standardTotal();
    return kl;
  }

  /**
   * Adds up each row's terms of KL from N(0, I), and their rounding errors. A row's first terms go through memory: of a vector that the blocks
   * carry, which is seldom, C2 boxed the sum, 8,000 B a call of {@code toStandardNormal} (256 bits on AVX-512, JDK 25.0.3).
   */
  private void standardTotal() {
    DoubleVector sum = DoubleVector.zero(S);
    DoubleVector errors = DoubleVector.zero(S);
    for (int r = 0, k = 0; r < dimension; r++, k += V) {
      DoubleVector m = DoubleVector.fromArray(S, mean, r * V);
      m.mul(0.5).mul(m).add(DoubleVector.fromArray(S, excess, r * V)).intoArray(excess, r * V);
      int c = 0;
      do {
        DoubleVector squares = DoubleVector.zero(S);
        for (int end = Math.min(r, c + BLOCK); c < end; c++, k += V) {
          DoubleVector x = DoubleVector.fromArray(S, factor, k);
          squares = x.mul(x).add(squares);
        }
        DoubleVector acc = squares.mul(0.5).add(DoubleVector.fromArray(S, excess, r * V));
        DoubleVector t = acc.add(sum);
        DoubleVector back = t.sub(sum);
        errors = sum.sub(t.sub(back)).add(acc.sub(back)).add(errors);
        sum = t;
        DoubleVector.zero(S).intoArray(excess, r * V); // for a further block
      } while (c < r);
    }
    sum.intoArray(off, 0);
    errors.intoArray(offErrors, 0);
    for (int i = 0; i < V; i++) {
      kl[i] = Compensation.total(off[i], offErrors[i]);
    }
  }

  /** Broadcasts each number from {@code in[from]} on to a vector. */
  private static void spread(double[] in, int from, int length, double[] out) {
    for (int k = 0; k < length; k++) {
      DoubleVector.broadcast(S, in[from + k]).intoArray(out, k * V);
    }
  }

  /** Computes KL of the Gaussians in the lanes. */
  private double[] solve() {
    int d = dimension;
    Arrays.fill(squares, 0, d * V, 0);
    Arrays.fill(off, 0);
    Arrays.fill(offErrors, 0);
    int k = 0;
    int at = 0;
    for (; k < d && areAlike; at += ++k) {
      head(k, at, 0);
    }
    for (; k + 2 <= d; k += 2) {
      two(k, at);
      at += 2 * k + 3;
      endBlock(k + 1);
    }
    if (k < d) {
      head(k, at, 0);
      for (int c = 0; c < k; c++) {
        one(c, k, at, 0);
      }
      endBlock(k);
    }
    FullExcess.of(excess, ratio, d * V);
    total();
    return kl;
  }

  /** Computes rows k and k + 1 of E and of y, in pieces that C2 compiles without boxing vectors. */
  private void two(int k, int at) {
    int below = at + k + 1;
    head(k, at, 0);
    head(k + 1, below, V);
    int c = 0;
    for (; c + 4 <= k; c += 4) {
      four(c, k, at);
    }
    for (int i = c; i < k; i++) {
      one(i, k, at, 0);
    }
    for (int i = c; i <= k; i++) {
      one(i, k + 1, below, V);
    }
  }

  /** Begins row k of E with the scaled difference of L_q and L_p; scales row k of L_p; computes y_k and E_kk. */
  private void head(int k, int at, int place) {
    DoubleVector t = DoubleVector.fromArray(S, scale, k * V);
    DoubleVector z =
        DoubleVector.fromArray(S, y, k * V).sub(DoubleVector.fromArray(S, mean, k * V)).mul(t);
    for (int l = 0, i = at * V; l < k; l++, i += V) {
      DoubleVector own = DoubleVector.fromArray(S, factor, i);
      DoubleVector f = own.mul(t).neg();
      f.intoArray(rows, 2 * l * V + place);
      DoubleVector.fromArray(S, e, i).sub(own).mul(t).intoArray(e, i);
      z = f.mul(DoubleVector.fromArray(S, y, l * V)).add(z);
    }
    z.mul(DoubleVector.fromArray(S, inverse, k * V)).intoArray(y, k * V);
    int diagonal = (at + k) * V;
    DoubleVector pivot = DoubleVector.fromArray(S, factor, diagonal);
    DoubleVector own = DoubleVector.fromArray(S, e, diagonal);
    DoubleVector x = own.sub(pivot);
    if (!isExact) {
      addLow(k, at);
      DoubleVector lows = DoubleVector.fromArray(S, low, diagonal);
      x = x.add(lows.sub(DoubleVector.fromArray(S, factorLow, diagonal)));
    }
    x = x.div(pivot);
    x.intoArray(e, diagonal);
    x.intoArray(excess, k * V);
    own.div(pivot).intoArray(ratio, k * V);
  }

  /** Adds the scaled difference of the low parts to row k of E. */
  private void addLow(int k, int at) {
    DoubleVector t = DoubleVector.fromArray(S, scale, k * V);
    for (int i = at * V; i < (at + k) * V; i += V) {
      DoubleVector lows = DoubleVector.fromArray(S, low, i);
      DoubleVector rest = lows.sub(DoubleVector.fromArray(S, factorLow, i)).mul(t);
      DoubleVector.fromArray(S, e, i).add(rest).intoArray(e, i);
    }
  }

  /**
   * Solves for columns c … c + 3 < k of rows k and k + 1: they share what they load, and each has its terms in order. Unrolled by hand, in
   * this class: as a static method from a template, its vectors were boxed for good in 2 of 18 processes, so in none of 14 (256 bits,
   * Zen 4, JDK 25).
   */
  private void four(int c, int k, int at) {
    double[] e = this.e;
    double[] rows = this.rows;
    int to = (at + c) * V;
    int below = to + (k + 1) * V;
    DoubleVector a0 = DoubleVector.fromArray(S, e, to);
    DoubleVector a1 = DoubleVector.fromArray(S, e, to + V);
    DoubleVector a2 = DoubleVector.fromArray(S, e, to + 2 * V);
    DoubleVector a3 = DoubleVector.fromArray(S, e, to + 3 * V);
    DoubleVector b0 = DoubleVector.fromArray(S, e, below);
    DoubleVector b1 = DoubleVector.fromArray(S, e, below + V);
    DoubleVector b2 = DoubleVector.fromArray(S, e, below + 2 * V);
    DoubleVector b3 = DoubleVector.fromArray(S, e, below + 3 * V);
    int from = (Cholesky.packedLength(c) + c) * V;
    int i = 2 * c * V;
    // above row c + 3, E of the four columns is a triangle
    DoubleVector f = DoubleVector.fromArray(S, rows, i);
    DoubleVector g = DoubleVector.fromArray(S, rows, i + V);
    DoubleVector x = DoubleVector.fromArray(S, e, from);
    a0 = f.mul(x).add(a0);
    b0 = g.mul(x).add(b0);
    from += (c + 1) * V;
    f = DoubleVector.fromArray(S, rows, i + 2 * V);
    g = DoubleVector.fromArray(S, rows, i + 3 * V);
    x = DoubleVector.fromArray(S, e, from);
    a0 = f.mul(x).add(a0);
    b0 = g.mul(x).add(b0);
    x = DoubleVector.fromArray(S, e, from + V);
    a1 = f.mul(x).add(a1);
    b1 = g.mul(x).add(b1);
    from += (c + 2) * V;
    f = DoubleVector.fromArray(S, rows, i + 4 * V);
    g = DoubleVector.fromArray(S, rows, i + 5 * V);
    x = DoubleVector.fromArray(S, e, from);
    a0 = f.mul(x).add(a0);
    b0 = g.mul(x).add(b0);
    x = DoubleVector.fromArray(S, e, from + V);
    a1 = f.mul(x).add(a1);
    b1 = g.mul(x).add(b1);
    x = DoubleVector.fromArray(S, e, from + 2 * V);
    a2 = f.mul(x).add(a2);
    b2 = g.mul(x).add(b2);
    from += (c + 3) * V;
    i += 6 * V;
    for (int l = c + 3; l < k; from += ++l * V, i += 2 * V) {
      f = DoubleVector.fromArray(S, rows, i);
      g = DoubleVector.fromArray(S, rows, i + V);
      x = DoubleVector.fromArray(S, e, from);
      a0 = f.mul(x).add(a0);
      b0 = g.mul(x).add(b0);
      x = DoubleVector.fromArray(S, e, from + V);
      a1 = f.mul(x).add(a1);
      b1 = g.mul(x).add(b1);
      x = DoubleVector.fromArray(S, e, from + 2 * V);
      a2 = f.mul(x).add(a2);
      b2 = g.mul(x).add(b2);
      x = DoubleVector.fromArray(S, e, from + 3 * V);
      a3 = f.mul(x).add(a3);
      b3 = g.mul(x).add(b3);
    }
    x = DoubleVector.fromArray(S, inverse, k * V);
    a0 = x.mul(a0);
    a1 = x.mul(a1);
    a2 = x.mul(a2);
    a3 = x.mul(a3);
    a0.intoArray(e, to);
    a1.intoArray(e, to + V);
    a2.intoArray(e, to + 2 * V);
    a3.intoArray(e, to + 3 * V);
    g = DoubleVector.fromArray(S, rows, i + V);
    x = DoubleVector.fromArray(S, inverse, (k + 1) * V);
    g.mul(a0).add(b0).mul(x).intoArray(e, below);
    g.mul(a1).add(b1).mul(x).intoArray(e, below + V);
    g.mul(a2).add(b2).mul(x).intoArray(e, below + 2 * V);
    g.mul(a3).add(b3).mul(x).intoArray(e, below + 3 * V);
    for (int j = 0; j < 4 * V; j += V) {
      a0 = DoubleVector.fromArray(S, e, to + j);
      b0 = DoubleVector.fromArray(S, e, below + j);
      DoubleVector.fromArray(S, squares, c * V + j)
          .add(a0.mul(a0))
          .add(b0.mul(b0))
          .intoArray(squares, c * V + j);
    }
  }

  /** Solves for column c < k of row k of E, and adds its square. */
  private void one(int c, int k, int at, int place) {
    DoubleVector x = DoubleVector.fromArray(S, e, (at + c) * V);
    for (int l = c, from = Cholesky.packedLength(c) + c; l < k; from += ++l) {
      DoubleVector f = DoubleVector.fromArray(S, rows, 2 * l * V + place);
      x = f.mul(DoubleVector.fromArray(S, e, from * V)).add(x);
    }
    x = x.mul(DoubleVector.fromArray(S, inverse, k * V));
    x.intoArray(e, (at + c) * V);
    DoubleVector.fromArray(S, squares, c * V).add(x.mul(x)).intoArray(squares, c * V);
  }

  /** Adds up the squares where row k ends a block of rows. */
  private void endBlock(int k) {
    if ((k + 1) % BLOCK == 0 || k + 1 == dimension) {
      for (int from = 0; from < k; from += BLOCK) {
        addBlock(from, Math.min(k, from + BLOCK));
      }
    }
  }

  /** Adds the squares of a block of rows in columns [from, to) to their compensated sum. */
  private void addBlock(int from, int to) {
    DoubleVector acc = DoubleVector.zero(S);
    for (int c = from; c < to; c++) {
      acc = DoubleVector.fromArray(S, squares, c * V).add(acc);
    }
    Arrays.fill(squares, from * V, to * V, 0);
    DoubleVector sum = DoubleVector.fromArray(S, off, 0);
    DoubleVector t = sum.add(acc);
    DoubleVector back = t.sub(sum);
    DoubleVector error = sum.sub(t.sub(back)).add(acc.sub(back));
    t.intoArray(off, 0);
    DoubleVector.fromArray(S, offErrors, 0).add(error).intoArray(offErrors, 0);
  }

  /** KL from y, the excesses, and the squares. */
  private void total() {
    int d = dimension;
    DoubleVector sum = DoubleVector.zero(S);
    DoubleVector errors = DoubleVector.zero(S);
    for (int from = 0; from < d; from += BLOCK) {
      DoubleVector acc = DoubleVector.zero(S);
      for (int end = Math.min(d, from + BLOCK), k = from; k < end; k++) {
        DoubleVector z = DoubleVector.fromArray(S, y, k * V);
        acc = z.mul(0.5).mul(z).add(DoubleVector.fromArray(S, excess, k * V)).add(acc);
      }
      DoubleVector t = acc.add(sum);
      DoubleVector back = t.sub(sum);
      errors = sum.sub(t.sub(back)).add(acc.sub(back)).add(errors);
      sum = t;
    }
    DoubleVector rest =
        DoubleVector.fromArray(S, off, 0).add(DoubleVector.fromArray(S, offErrors, 0));
    sum.add(errors).add(rest.mul(0.5)).intoArray(kl, 0);
    for (int i = 0; i < V; i++) {
      kl[i] = kl[i] >= 0 ? kl[i] : Double.POSITIVE_INFINITY;
    }
  }
}
