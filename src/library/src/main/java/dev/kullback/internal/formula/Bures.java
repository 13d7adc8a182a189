package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;

/**
 * Computes the squared 2-Wasserstein distance of one pair with full covariances in double, or its root,
 *
 * <pre>
 * W² = ‖μq − μp‖² + B, B = tr Σq + tr Σp − 2 tr (√Σq Σp √Σq)^½
 * </pre>
 *
 * <p>(D. Dowson, B. Landau, "The Fréchet distance between multivariate normal distributions", Journal of Multivariate Analysis 12, 1982).
 * The last trace is the sum of the singular values of {@code L_bᵀ L_a}, which is right to some {@code D} roundings of the other traces.
 * Where B is small beside these, it is {@code tr (XΣbX)} of the symmetric X with {@code XΣb + ΣbX + XΣbX = Σa − Σb}: the optimal map is I + X.
 * In the axes of Σb, the equation without its last term is solved element by element; the last is found by iteration. Nothing there
 * cancels, as {@code Σa − Σb} is made of L_a − L_b. An order of the parameters decides which is b, so that no bit depends on the roles. The
 * relative error of B is some {@code D·cond(L)} roundings there, and {@code D·cond(L)²} where it is not small in each direction but small
 * beside the traces. Covariances may be singular. Holds the working memory of one thread.
 */
final class Bures implements Formula.Full {
  /** Part of the traces above which B may be their difference from the singular values' sum. */
  private static final double FAR = 0.05;

  /** Greatest row sum of |X| with which the iteration begins. It converges for more. */
  private static final double NEAR = 0.5;

  /** Least {@code tr √(ΣqΣp)} whose square, times that of an element, is within the range of double. */
  private static final double NO_ANGLE = 0x1p-300;

  /** Least B of two dimensions that has lost nothing that underflowed, if that trace is not less. */
  private static final double LEAST = 0x1p-120;

  private static final int MOST_ITERATIONS = 100;
  private static final int MOST_SWEEPS = 60;

  /** Steps for an eigenvalue, of which one or two suffice mostly, and 33 did for all matrices tried. */
  private static final int MOST_STEPS = 200;

  /** Squared length that counts as 0, where the greatest element of a factor is in [1, 2). */
  private static final double NOTHING = 0x1p-200;

  private static final double HALF_ULP = 0x1p-53;

  /** Cosine of two columns below which they count as orthogonal. */
  private static final double ORTHOGONAL = 0x1p-52;

  /** Change of X, relative and squared, with which iteration ends. */
  private static final double SETTLED = 0x1p-104;

  private final Wasserstein2 formula;
  private final Worker worker;
  private final FullPair.Factor q = new FullPair.Factor();
  private final FullPair.Factor p = new FullPair.Factor();
  private int d;

  /** Matrices, of which these two are by columns: what is reflected or rotated, and L_a − L_b, which is rotated with L_b. */
  private double[][] columns = {};

  private double[][] changes = {};
  private double[][] first = {};
  private double[][] second = {};
  private double[][] third = {};
  private double[] norms = {};

  /** Factors of what is added to the columns, {@code w vᵀ + y xᵀ}. */
  private double[] v = {};

  private double[] w = {};
  private double[] x = {};
  private double[] y = {};

  /** Squares of the elements on and beside a diagonal in turn, and room for the next ones. */
  private double[] z = {};

  private double[] next = {};

  Bures(Wasserstein2 formula, Worker worker) {
    this.formula = formula;
    this.worker = worker;
  }

  /** Looks whether the call is to end, in work of D³ and more, after some passes over D or D² elements. */
  private void pass(long elements) {
    worker.pass(Checkpoint.ofPlain(elements));
  }

  @Override
  public void clear() {
    q.clear();
    p.clear();
  }

  @Override
  public double divergence(Batch batchQ, int i, Batch batchP, int j) {
    d = batchQ.dimension();
    q.set(batchQ, i);
    p.set(batchP, j);
    if (d <= 2) {
      return planar(false);
    }
    if (norms.length < d) {
      columns = new double[d][d];
      changes = new double[d][d];
      first = new double[d][d];
      second = new double[d][d];
      third = new double[d][d];
      norms = new double[d];
      v = new double[d];
      w = new double[d];
      x = new double[d];
      y = new double[d];
      z = new double[2 * d];
      next = new double[2 * d];
    }
    if (q.equals(p, d)) {
      return 0;
    }
    int more = q.zeros(d) - p.zeros(d); // the one of less rank is b, which near() prefers
    FullPair.Factor a = more == 0 ? q.isBefore(p, d) ? q : p : more < 0 ? q : p;
    FullPair.Factor b = a == q ? p : q;
    double scale = scale();
    double bures = bures(a, b, scale);
    return finish(bures / scale / scale, Math.sqrt(bures) / scale);
  }

  /** Returns a power of two that scales the greatest element of both factors to [1, 2), unless it is beyond double's normal range. */
  private double scale() {
    double most = 0;
    for (int k = 0; k < Cholesky.packedLength(d); k++) {
      most = Math.max(most, Math.max(Math.abs(q.high(k)), Math.abs(p.high(k))));
    }
    return FullPair.inversePower(most);
  }

  /**
   * Returns the divergence of at most two dimensions. B is the least {@code ‖L_q − L_p R‖²} of rotations R. Of the rotation by 2φ it is that
   * of {@code E cos φ − S J sin φ}, where {@code E = L_q − L_p}, {@code S = L_q + L_p} and J is the rotation by 90°. The least is where
   * {@code tan 2φ = s/c}, with {@code c = tr L_qᵀL_p} and {@code 2s = E₂₁S₂₂ − E₂₂S₂₁}. An error δ of φ adds less than {@code 4δ² tr
   * √(ΣqΣp)}, and those of the elements are roundings of E: the relative error of B is some {@code cond(L)} roundings. Exchanging q and p
   * turns the signs of E and φ.
   */
  private double planar(boolean isScaled) {
    double scale = isScaled ? scale() : 1;
    double a = q.high(0) * scale;
    double b = p.high(0) * scale;
    double e0 = a - b + (q.low(0) - p.low(0)) * scale;
    double s0 = a + b;
    double e1 = 0;
    double s1 = 0;
    double e2 = 0;
    double s2 = 0;
    double cos = 1; // both times a norm
    double sin = 0;
    double squaredNorm = 1;
    if (d == 2) {
      double a1 = q.high(1) * scale;
      double b1 = p.high(1) * scale;
      double a2 = q.high(2) * scale;
      double b2 = p.high(2) * scale;
      e1 = a1 - b1 + (q.low(1) - p.low(1)) * scale;
      s1 = a1 + b1;
      e2 = a2 - b2 + (q.low(2) - p.low(2)) * scale;
      s2 = a2 + b2;
      double c = a * b + a1 * b1 + a2 * b2;
      double s = 0.5 * (e1 * s2 - e2 * s1);
      double root = Math.sqrt(c * c + s * s);
      if (root > NO_ANGLE && root < 1 / NO_ANGLE) {
        double u = root + Math.abs(c);
        squaredNorm = 2 * root * u;
        cos = c >= 0 ? u : Math.abs(s);
        sin = c >= 0 ? s : Math.copySign(u, s);
      } else if (!isScaled) {
        return planar(true);
      } // else the traces are B
    }
    double square = square(e0 * cos, s0 * sin, e1 * cos - s2 * sin, e2 * cos + s1 * sin);
    square /= squaredNorm;
    if (!isScaled) {
      return square > LEAST && square <= Double.MAX_VALUE ? finish(square, 0) : planar(true);
    }
    double norm = Math.sqrt(squaredNorm);
    cos /= norm;
    sin /= norm;
    double w = e0 * cos;
    double x = s0 * sin;
    double y = e1 * cos - s2 * sin;
    double z = e2 * cos + s1 * sin;
    double most = Math.max(Math.max(Math.abs(w), Math.abs(x)), Math.max(Math.abs(y), Math.abs(z)));
    double up = FullPair.inversePower(most);
    square = square(w * up, x * up, y * up, z * up);
    return finish(square / up / scale / up / scale, Math.sqrt(square) / up / scale);
  }

  private static double square(double w, double x, double y, double z) {
    return w * w + x * x + (y * y + z * z);
  }

  /** Returns the divergence of B, of which the root is given where B may be beyond the range of double, else 0. */
  private double finish(double bures, double root) {
    double square = bures;
    for (int h = 0; h < d; h++) {
      double x = q.mean(h) - p.mean(h);
      square += x * x;
    }
    return formula.isBeyondRange(square)
        ? Math.hypot(meanDistance(), root == 0 ? Math.sqrt(bures) : root)
        : formula.finish(square);
  }

  /** Returns ‖μq − μp‖, whose square may be beyond the range of double. */
  private double meanDistance() {
    double most = 0;
    for (int h = 0; h < d; h++) {
      most = Math.max(most, Math.abs(q.mean(h) - p.mean(h)));
    }
    if (most == 0 || most == Double.POSITIVE_INFINITY) {
      return most;
    }
    double up = FullPair.inversePower(most);
    double sum = 0;
    for (int h = 0; h < d; h++) {
      double x = (q.mean(h) - p.mean(h)) * up;
      sum += x * x;
    }
    return Math.sqrt(sum) / up;
  }

  /** Returns B of covariances scaled by a power of two. */
  private double bures(FullPair.Factor a, FullPair.Factor b, double scale) {
    double traces = product(a, b, scale);
    bidiagonalize();
    double nothing = HALF_ULP * traces / d;
    double far = Math.max(0, traces - 2 * sumOfRoots(z, next, 0, d - 1, 0, nothing * nothing));
    double near = far > FAR * traces ? Double.NaN : near(a, b, scale);
    return Double.isNaN(near) ? far : near;
  }

  /** Sets the columns to L_bᵀ L_a, two rows of the factors at a time, and returns the sum of all squares of both. */
  private double product(FullPair.Factor a, FullPair.Factor b, double scale) {
    double traces = 0;
    Arrays.fill(v, 0, d, 0);
    Arrays.fill(w, 0, d, 0);
    for (int k = 0, at = 0; k < d; k++) {
      boolean isSecond = (d - k) % 2 == 1;
      double[] left = isSecond ? x : v;
      double[] right = isSecond ? y : w;
      for (int c = 0; c <= k; c++, at++) {
        left[c] = a.high(at) * scale;
        right[c] = b.high(at) * scale;
        traces += left[c] * left[c] + right[c] * right[c];
      }
      Arrays.fill(columns[k], 0, d, 0);
      if (isSecond) {
        pass((long) k * k);
        add(0, k + 1);
      }
    }
    return traces;
  }

  /** Adds {@code w vᵀ + y xᵀ} to what is from one row and column to another. */
  private void add(int from, int end) {
    for (int c = from; c < end; c++) {
      double[] column = columns[c];
      double left = v[c];
      double right = x[c];
      for (int r = from; r < end; r++) {
        column[r] += left * w[r] + right * y[r];
      }
    }
  }

  /**
   * Reflects rows and columns in turn until two diagonals are left, whose squares go to {@link #z} (G. Golub, W. Kahan, "Calculating the
   * singular values and pseudo-inverse of a matrix", 1965).
   */
  private void bidiagonalize() {
    for (int k = 0; k < d; k++) {
      pass(3L * (d - k) * (d - k));
      double norm = 0;
      for (int c = k; c < d; c++) {
        v[c] = columns[c][k];
        norm += v[c] * v[c];
      }
      z[2 * k] = norm;
      double inverse = reflection(v, k, norm);
      Arrays.fill(w, 0, d, 0);
      for (int c = k; c < d; c++) {
        double[] column = columns[c];
        double factor = v[c] * inverse;
        for (int r = k + 1; r < d; r++) {
          w[r] += factor * column[r];
        }
      }
      for (int r = k + 1; r < d; r++) {
        y[r] = columns[k][r] + v[k] * w[r];
      }
      norm = dot(y, y, k + 1);
      z[2 * k + 1] = norm;
      inverse = reflection(y, k + 1, norm);
      double wy = dot(w, y, k + 1);
      for (int c = k + 1; c < d; c++) {
        x[c] = inverse * (dot(columns[c], y, k + 1) + v[c] * wy);
      }
      add(k + 1, d);
    }
  }

  /** Makes a vector from k on that of its reflection; returns the negative inverse of half its squared length, or 0 for none. */
  private static double reflection(double[] of, int k, double norm) {
    if (norm < NOTHING) {
      return 0;
    }
    double pivot = Math.copySign(Math.sqrt(norm), of[k]);
    of[k] += pivot;
    return -1 / (pivot * of[k]);
  }

  private double dot(double[] a, double[] b, int from) {
    double sum = 0;
    for (int k = from; k < d; k++) {
      sum += a[k] * b[k];
    }
    return sum;
  }

  /**
   * Returns the sum of {@code √(shift + λ)} over the eigenvalues λ of {@code BBᵀ}, where B has √z in two diagonals from start to end, by
   * the algorithm dqds (B. Parlett, O. Marques, "An implementation of the dqds algorithm", 2000). Only shifts are subtracted, so a step
   * changes a root by some roundings of it. An element e beside q is dropped where {@code e ≤ nothing}, or {@code e·max(q, e) ≤
   * nothing·shift} of the last: that changes the sum by at most 1.5 √nothing, as roots are no smaller than √shift. In the same loop follows a
   * step without a shift, as the first alone would wait for its divisions.
   */
  private double sumOfRoots(
      double[] z, double[] next, int start, int end, double shift, double nothing) {
    double sum = 0;
    double s = -1;
    double most = Double.MAX_VALUE;
    boolean isAgain = false;
    for (int steps = 0; end > start; steps++) {
      pass(4L * (end - start));
      int last = 2 * end;
      double q = z[last];
      double e = z[last - 1];
      int k = end;
      if (e > nothing && e * Math.max(q, e) > nothing * shift && steps < MOST_STEPS) {
        do {
          k--;
        } while (k > start && z[2 * k - 1] > nothing);
      }
      if (k > start) {
        sum += sumOfRoots(z, next, k, end, shift, nothing);
        end = k - 1;
        z[2 * k - 1] = 0;
        next[2 * k - 1] = 0;
        steps = 0;
        continue;
      }
      if (s < 0) { // the least eigenvalue of the last two rows, less the influence of those before
        double before = z[last - 2];
        double influence = end > start + 1 ? Math.sqrt(before * z[last - 3]) : 0;
        double half = 0.5 * (before + e - influence - q);
        double root = Math.sqrt(half * half + q * e);
        s = Math.clamp(half > 0 ? q - q * e / (half + root) : q + half - root, 0, most);
      }
      double x = z[2 * start] - s;
      double t = x + z[2 * start + 1];
      double y = t;
      double least = x;
      for (k = 2 * start; k < last; k += 2) {
        least = Math.min(least, x);
        double off = z[k + 1] * z[k + 2] / t + NOTHING;
        x = x * z[k + 2] / t - s;
        t = x + z[k + 3];
        double u = y + off;
        next[k] = u;
        next[k + 1] = off * (t / u);
        y *= t / u;
      }
      next[last] = y;
      if (!(least >= 0 && x >= 0)) { // s was above the least eigenvalue; s + x is not if only x < 0
        double less = least < 0 ? 0.25 * s : Math.max(0, (s + x) * (1 - 4 * HALF_ULP));
        s = isAgain ? 0 : less;
        isAgain = true;
      } else {
        double[] old = z;
        z = next;
        next = old;
        shift += s;
        s = -1;
        most = isAgain ? 0.5 * Math.min(least, x) : Double.MAX_VALUE;
        isAgain = false;
      }
    }
    return sum + Math.sqrt(shift + z[2 * start]);
  }

  /** Rotates pairs of columns until all are orthogonal, the changes with them, and sets their norms (M. Hestenes, 1958). */
  private void orthogonalize() {
    boolean isDone = false;
    for (int sweep = 0; sweep < MOST_SWEEPS && !isDone; sweep++) {
      isDone = true;
      for (int k = 0; k < d; k++) {
        for (int l = k + 1; l < d; l++) {
          pass(4L * d);
          isDone &= !rotate(k, l);
        }
      }
    }
    for (int k = 0; k < d; k++) {
      norms[k] = Math.sqrt(dot(columns[k], columns[k], 0));
    }
  }

  /** Rotates two columns so that they are orthogonal; returns whether they were not. */
  private boolean rotate(int k, int l) {
    double[] a = columns[k];
    double[] b = columns[l];
    double aa = dot(a, a, 0);
    double bb = dot(b, b, 0);
    double ab = dot(a, b, 0);
    if (!(Math.abs(ab) > ORTHOGONAL * Math.sqrt(aa) * Math.sqrt(bb))) {
      return false;
    }
    double zeta = (bb - aa) / (2 * ab);
    double tan = Math.copySign(1, zeta) / (Math.abs(zeta) + Math.hypot(1, zeta));
    double cos = 1 / Math.sqrt(1 + tan * tan);
    double sin = cos * tan;
    turn(a, b, cos, sin);
    turn(changes[k], changes[l], cos, sin);
    return true;
  }

  private void turn(double[] a, double[] b, double cos, double sin) {
    for (int r = 0; r < d; r++) {
      double x = a[r];
      a[r] = cos * x - sin * b[r];
      b[r] = sin * x + cos * b[r];
    }
  }

  /** Returns B by the map X, or NaN where it is too far from 0. */
  private double near(FullPair.Factor a, FullPair.Factor b, double scale) {
    for (int r = 0, k = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        columns[c][r] = c > r ? 0 : b.high(k) * scale;
        changes[c][r] = c > r ? 0 : (a.high(k) - b.high(k) + (a.low(k) - b.low(k))) * scale;
        k += c > r ? 0 : 1;
      }
    }
    orthogonalize(); // L_b W = V S
    for (int r = 0; r < d; r++) {
      pass((long) d * d);
      for (int c = 0; c < d; c++) { // A = Vᵀ (L_a − L_b) W
        third[r][c] = norms[r] == 0 ? 0 : dot(columns[r], changes[c], 0) / norms[r];
      }
    }
    double outside = outside();
    // Vᵀ (Σa − Σb) V = A S + S Aᵀ + A Aᵀ, in first; X in second
    double widest = 0;
    for (int r = 0; r < d; r++) {
      pass((long) d * d);
      double sum = 0;
      for (int c = 0; c < d; c++) {
        double mixed = third[r][c] * norms[c] + norms[r] * third[c][r];
        first[r][c] = mixed + dot(third[r], third[c], 0);
        second[r][c] = first[r][c] / squares(r, c);
        sum += Math.abs(second[r][c]);
      }
      widest = Math.max(widest, sum);
    }
    if (!(widest <= NEAR)) {
      return Double.NaN;
    }
    for (int n = 0; n < MOST_ITERATIONS; n++) {
      double size = 0;
      double change = 0;
      for (int r = 0; r < d; r++) {
        pass((long) d * r);
        for (int c = 0; c <= r; c++) {
          double x = first[r][c];
          for (int k = 0; k < d; k++) {
            x -= second[r][k] * norms[k] * (norms[k] * second[c][k]);
          }
          x /= squares(r, c);
          third[r][c] = x;
          third[c][r] = x;
          double step = x - second[r][c];
          double weight = r == c ? norms[r] * norms[r] : squares(r, c);
          size += x * x * weight;
          change += step * step * weight;
        }
      }
      double[][] next = third;
      third = second;
      second = next;
      if (change <= SETTLED * size) {
        return size + outside;
      }
    }
    return Double.NaN;
  }

  /**
   * Returns the variance of a in the directions in which a singular b has none: the squares of what A leaves of the changes. B is the sum of
   * it and of the B of what both have in the others.
   */
  private double outside() {
    double sum = 0;
    boolean isSingular = isSingular();
    for (int k = 0; k < d && isSingular; k++) {
      double[] change = changes[k];
      for (int r = 0; r < d; r++) {
        pass(d);
        for (int h = 0; h < d && norms[r] != 0; h++) {
          change[h] -= third[r][k] * (columns[r][h] / norms[r]);
        }
      }
      sum += dot(change, change, 0);
    }
    return sum;
  }

  private boolean isSingular() {
    for (int k = 0; k < d; k++) {
      if (norms[k] == 0) {
        return true;
      }
    }
    return false;
  }

  private double squares(int r, int c) {
    double squares = norms[r] * norms[r] + norms[c] * norms[c];
    return squares == 0 ? 1 : squares; // of what is 0
  }
}
