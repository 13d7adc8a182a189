package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

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
  /** Greatest part of the traces above which B is their difference from the singular values' sum. */
  private static final double FAR = 0.05;

  /** Roundings of the traces by which that difference errs, in units of √D: 2.5 to 4.2 at worst for D = 3 to 256. */
  private static final double ROUNDINGS = 6;

  /** Relative error that is allowed for it. */
  private static final double ERROR = 1e-12;

  /** Greatest norm of X, of bounds of it, with which the iteration begins. It converges for more. */
  private static final double NEAR = 0.5;

  /** Least {@code tr √(ΣqΣp)} whose square, times that of an element, is within the range of double. */
  private static final double NO_ANGLE = 0x1p-300;

  /** Least B of two dimensions that has lost nothing that underflowed, if that trace is not less. */
  private static final double LEAST = 0x1p-120;

  private static final int MOST_ITERATIONS = 100;
  private static final int MOST_SWEEPS = 60;

  /** Rows and columns of a tile of a product's second factor: 128 kB, and 2 kB of a sum. */
  private static final int TILE_ROWS = 64;

  private static final int TILE_COLUMNS = 256;

  /** Doubles of V, and as many of W, of the axes that a thread keeps, 21 MB with the factors, but of one Gaussian at least, and Gaussians at most. */
  private static final int KEPT = 1 << 20;

  private static final int MOST_KEPT = 1024;

  /** Ratio of the squares of singular values above which eigenvectors of LᵀL make V orthogonal. */
  private static final double REGULAR = 0x1p-40;

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

  /** What is reflected, by columns, and what it is made of. */
  private double[][] columns = {};

  private double[][] first = {};
  private double[][] second = {};

  /** More matrices of near pairs, made for the first one. */
  private double[][] third = {};

  private double[][] fourth = {};

  /** What {@link #advance} returns beside a length: the factor of the last reflection. */
  private double inverse;

  /** Places of L_b's columns in its decomposition. */
  private int[] order = {};

  /** Singular values of L_b in a pair's scale. */
  private double[] norms = {};

  /** Principal axes of Gaussians that were b before, in places that a hash code tells. */
  private @Nullable Axes[] axes = {};

  /** Factors of what is added to the columns, {@code w vᵀ + y xᵀ}, and the next v and w. */
  private double[] v = {};

  private double[] w = {};
  private double[] x = {};
  private double[] y = {};
  private double[] nextV = {};
  private double[] nextW = {};

  /** Squares of the elements on and beside a diagonal in turn, and room for the next ones. */
  private double[] z = {};

  private double[] next = {};

  /** Sum of squares or of singular values, and what rounding added to it: equal ones would round alike. */
  private double sum;

  private double rest;

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
    if (v.length != d) {
      makeRoom();
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

  private void makeRoom() {
    columns = new double[d][d];
    first = new double[d][d];
    second = new double[d][d];
    third = new double[0][];
    axes = new Axes[0];
    norms = new double[d];
    order = new int[d];
    v = new double[d];
    w = new double[d];
    x = new double[d];
    y = new double[d];
    nextV = new double[d];
    nextW = new double[d];
    z = new double[2 * d];
    next = new double[2 * d];
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
    startSum();
    addRoots(z, next, 0, d - 1, 0, nothing * nothing);
    double far = Math.max(0, traces - 2 * sum);
    double near = far > leastPart(d) * traces ? Double.NaN : near(a, b, scale);
    return Double.isNaN(near) ? far : near;
  }

  /** Returns the part of the traces above which B is their difference from the singular values' sum. */
  static double leastPart(int d) {
    return Math.min(FAR, ROUNDINGS * Math.sqrt(d) * HALF_ULP / ERROR);
  }

  /** Sets the columns to L_bᵀ L_a, and returns the sum of all squares of both. */
  private double product(FullPair.Factor a, FullPair.Factor b, double scale) {
    startSum();
    for (int r = 0, k = 0; r < d; r++) {
      double row = 0;
      Arrays.fill(first[r], 0, r, 0);
      Arrays.fill(second[r], r, d, 0);
      for (int c = 0; c <= r; c++, k++) {
        double left = a.high(k) * scale;
        double right = b.high(k) * scale;
        first[c][r] = left;
        second[r][c] = right;
        row += left * left + right * right;
      }
      add(row);
    }
    multiply(columns, first, Shape.UPPER, second, true, false);
    return sum;
  }

  private void startSum() {
    sum = 0;
    rest = 0;
  }

  /** Adds a number to {@link #sum}, by W. Kahan's compensated summation. */
  private void add(double number) {
    double term = number - rest;
    double total = sum + term;
    rest = total - sum - term;
    sum = total;
  }

  private static void add(
      double[] to, double a, double[] x, double b, double[] y, int from, int end) {
    for (int r = from; r < end; r++) {
      to[r] += a * x[r] + b * y[r];
    }
  }

  /**
   * Reflects rows and columns in turn until two diagonals are left, whose squares go to {@link #z} (G. Golub, W. Kahan, "Calculating the
   * singular values and pseudo-inverse of a matrix", 1965).
   */
  private void bidiagonalize() {
    begin();
    for (int k = 0; k < d; k++) {
      pass(2L * (d - k) * (d - k));
      z[2 * k] = advance(columns, k, k);
      for (int r = k + 1; r < d; r++) {
        y[r] = columns[k][r] + v[k] * w[r];
      }
      double norm = dot(y, y, k + 1);
      z[2 * k + 1] = norm;
      double inverse = reflection(y, k + 1, norm);
      double wy = dot(w, y, k + 1);
      for (int c = k + 1; c < d; c += 4) {
        dots(c, k + 1);
      }
      for (int c = k + 1; c < d; c++) {
        x[c] = inverse * (x[c] + v[c] * wy);
      }
    }
  }

  private void begin() {
    Arrays.fill(v, 0);
    Arrays.fill(w, 0);
    Arrays.fill(x, 0);
    Arrays.fill(y, 0);
  }

  /** Sets x from c on to the products of four columns, or the last ones, and y from a row on. */
  private void dots(int c, int from) {
    double[] a0 = columns[c];
    double[] a1 = columns[Math.min(c + 1, d - 1)];
    double[] a2 = columns[Math.min(c + 2, d - 1)];
    double[] a3 = columns[Math.min(c + 3, d - 1)];
    double[] y = this.y;
    double s0 = 0;
    double s1 = 0;
    double s2 = 0;
    double s3 = 0;
    for (int r = from; r < y.length; r++) {
      double f = y[r];
      s0 += a0[r] * f;
      s1 += a1[r] * f;
      s2 += a2[r] * f;
      s3 += a3[r] * f;
    }
    x[Math.min(c + 3, d - 1)] = s3;
    x[Math.min(c + 2, d - 1)] = s2;
    x[Math.min(c + 1, d - 1)] = s1;
    x[c] = s0;
  }

  /**
   * Adds {@code w vᵀ + y xᵀ} to columns and sets v to the reflection of row k from the pivot on, w to the columns' product with it, in
   * one pass. Returns the row's squared length; {@link #inverse} tells the reflection's.
   */
  private double advance(double[][] columns, int k, int pivot) {
    for (int c = k; c < d; c++) {
      nextV[c] = columns[c][k] + v[c] * w[k] + x[c] * y[k];
    }
    double norm = dot(nextV, nextV, pivot);
    inverse = reflection(nextV, pivot, norm);
    Arrays.fill(nextW, 0);
    int c = pivot;
    for (; c + 1 < d; c += 2) {
      advance(columns[c], columns[c + 1], c, k + 1);
    }
    if (c < d) {
      add(columns[c], v[c], w, x[c], y, k + 1, d);
      add(nextW, nextV[c] * inverse, columns[c], 0, columns[c], k + 1, d);
    }
    double[] last = v;
    v = nextV;
    nextV = last;
    last = w;
    w = nextW;
    nextW = last;
    return norm;
  }

  private void advance(double[] first, double[] second, int c, int from) {
    double[] w = this.w;
    double[] y = this.y;
    double[] sum = nextW;
    double v0 = v[c];
    double v1 = v[c + 1];
    double x0 = x[c];
    double x1 = x[c + 1];
    double f0 = nextV[c] * inverse;
    double f1 = nextV[c + 1] * inverse;
    for (int r = from; r < w.length; r++) {
      double a = first[r] + (v0 * w[r] + x0 * y[r]);
      double b = second[r] + (v1 * w[r] + x1 * y[r]);
      first[r] = a;
      second[r] = b;
      sum[r] += f0 * a + f1 * b;
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

  /** Returns a product from one element on, in four sums, as one would wait for each addition. */
  private double dot(double[] a, double[] b, int from) {
    double s0 = 0;
    double s1 = 0;
    double s2 = 0;
    double s3 = 0;
    int k = from;
    for (; k < d - 3; k += 4) {
      s0 += a[k] * b[k];
      s1 += a[k + 1] * b[k + 1];
      s2 += a[k + 2] * b[k + 2];
      s3 += a[k + 3] * b[k + 3];
    }
    for (; k < d; k++) {
      s0 += a[k] * b[k];
    }
    return (s0 + s1) + (s2 + s3);
  }

  /**
   * Adds {@code √(shift + λ)} of the eigenvalues λ of {@code BBᵀ} to {@link #sum}, where B has √z in two diagonals from start to end, by
   * the algorithm dqds (B. Parlett, O. Marques, "An implementation of the dqds algorithm", 2000). Only shifts are subtracted, so a step
   * changes a root by some roundings of it. An element e beside q is dropped where {@code e ≤ nothing}, or {@code e·max(q, e) ≤
   * nothing·shift} of the last: that changes the sum by at most 1.5 √nothing, as roots are no smaller than √shift. In the same loop follows a
   * step without a shift, as the first alone would wait for its divisions.
   */
  private void addRoots(
      double[] z, double[] next, int start, int end, double shift, double nothing) {
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
        addRoots(z, next, k, end, shift, nothing);
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
    add(Math.sqrt(shift + z[2 * start]));
  }

  /** The decomposition {@code L = V S Wᵀ} of a factor that was scaled by a power of two: rows of Vᵀ and of W, and S. */
  private static final class Axes {
    final double[][] v;
    final double[][] w;
    final double[] norms;
    double scale;

    /** L, packed. */
    final double[] factor;

    Axes(int d) {
      v = new double[d][d];
      w = new double[d][d];
      norms = new double[d];
      factor = new double[Cholesky.packedLength(d)];
    }
  }

  /** Returns the axes of b, which are kept for other pairs: of rows of a block, or of a row's columns, some are b in many. */
  private Axes axes(FullPair.Factor b) {
    if (third.length == 0) {
      third = new double[d][d];
      fourth = new double[d][d];
      axes = new Axes[Math.clamp(KEPT / ((long) d * d), 1, MOST_KEPT)];
    }
    int place = Math.floorMod(b.hash(d), axes.length);
    Axes known = axes[place];
    if (known == null || !b.isCopied(known.factor)) {
      axes[place] = null; // until it is whole
      known = known == null ? new Axes(d) : known;
      decompose(b, known);
      axes[place] = known;
    }
    return known;
  }

  /** Decomposes LᵀL, whose eigenvectors are W, and where its condition is bad, rotates them until V is orthogonal, too. */
  private void decompose(FullPair.Factor b, Axes to) {
    double most = 0;
    for (int k = 0; k < Cholesky.packedLength(d); k++) {
      most = Math.max(most, Math.abs(b.high(k)));
    }
    b.copy(to.factor);
    to.scale = FullPair.inversePower(most);
    double[][] l = first;
    double[][] transposed = second;
    int rank = d - b.zeros(d);
    for (int c = 0, zeros = 0; c < d; c++) { // columns of 0 last, which stay 0
      int place = b.high(Cholesky.packedLength(c) + c) == 0 ? rank + zeros++ : c - zeros;
      order[c] = place;
      for (int r = 0; r < d; r++) {
        l[r][place] = c > r ? 0 : b.high(Cholesky.packedLength(r) + c) * to.scale;
        transposed[place][r] = l[r][place];
      }
    }
    multiply(third, transposed, Shape.UPPER, l, true, true);
    mirror(third);
    tridiagonalize(third, fourth);
    double[][] w = fourth;
    diagonalize(w);
    multiply(to.v, w, Shape.FULL, transposed, false, false);
    if (!isRegular(to)) {
      orthogonalize(to.v, w);
    }
    for (int r = 0; r < d; r++) {
      double norm = Math.sqrt(dot(to.v[r], to.v[r], 0));
      to.norms[r] = norm;
      double inverse = norm == 0 ? 0 : 1 / norm;
      for (int c = 0; c < d; c++) {
        to.v[r][c] *= inverse;
        to.w[c][r] = w[r][order[c]];
      }
    }
  }

  /** Whether the rows, as long as singular values are, are as good as orthogonal, but what is 0. */
  private boolean isRegular(Axes of) {
    double least = Double.MAX_VALUE;
    double most = 0;
    for (double[] row : of.v) {
      double square = dot(row, row, 0);
      least = square == 0 ? least : Math.min(least, square);
      most = Math.max(most, square);
    }
    return least > REGULAR * most;
  }

  /**
   * Reflects a symmetric matrix from both sides until a diagonal, next, and the elements beside it, z, are left (A. Householder, 1958). Sets
   * rows to what takes it there.
   */
  private void tridiagonalize(double[][] of, double[][] rows) {
    begin();
    for (int k = 0; k < d; k++) {
      pass(2L * (d - k) * (d - k));
      if (k + 1 == d) {
        next[k] = of[k][k] + v[k] * w[k] + x[k] * y[k];
        break;
      }
      double norm = advance(of, k, k + 1);
      next[k] = v[k];
      z[k] = inverse == 0 ? v[k + 1] : -Math.copySign(Math.sqrt(norm), v[k + 1]);
      System.arraycopy(v, k + 1, of[k], k + 1, d - k - 1);
      of[k][k] = inverse;
      v[k] = 0;
      w[k] = 0;
      double half = 0.5 * inverse * dot(v, w, k + 1);
      for (int c = k; c < d; c++) {
        w[c] += half * v[c];
        x[c] = w[c];
        y[c] = v[c];
      }
    }
    for (int k = d - 1; k >= 0; k--) {
      Arrays.fill(rows[k], 0);
      rows[k][k] = 1;
      pass((long) (d - k) * (d - k));
      for (int i = k + 1; i < d; i++) {
        add(rows[i], of[k][k] * dot(rows[i], of[k], k + 1), of[k], 0, of[k], k + 1, d);
      }
    }
  }

  /**
   * Rotates rows until what they take to three diagonals is one, by implicit QL steps (A. Dubrulle, R. Martin, J. Wilkinson, "The implicit QL
   * algorithm", 1968).
   */
  private void diagonalize(double[][] rows) {
    double[] diagonal = next;
    double[] off = z;
    off[d - 1] = 0;
    for (int l = 0; l < d; l++) {
      for (int steps = 0; steps < MOST_STEPS; steps++) {
        int m = l;
        while (m < d - 1
            && Math.abs(off[m]) > HALF_ULP * (Math.abs(diagonal[m]) + Math.abs(diagonal[m + 1]))) {
          m++;
        }
        if (m == l) {
          break;
        }
        double half = (diagonal[l + 1] - diagonal[l]) / (2 * off[l]);
        double root = Math.copySign(Math.sqrt(half * half + 1), half);
        double g = diagonal[m] - diagonal[l] + off[l] / (half + root);
        double sin = 1;
        double cos = 1;
        double less = 0;
        int i = m - 1;
        for (; i >= l; i--) {
          double f = sin * off[i];
          double b = cos * off[i];
          double r = Math.sqrt(f * f + g * g);
          off[i + 1] = r;
          if (r == 0) {
            diagonal[i + 1] -= less;
            break;
          }
          sin = f / r;
          cos = g / r;
          g = diagonal[i + 1] - less;
          r = (diagonal[i] - g) * sin + 2 * cos * b;
          less = sin * r;
          diagonal[i + 1] = g + less;
          g = cos * r - b;
          v[i] = cos;
          w[i] = sin;
        }
        off[m] = 0;
        if (i < l) {
          diagonal[l] -= less;
          off[l] = g;
        }
        pass(2L * d * (m - i));
        for (int k = m - 1; k > i; k--) {
          turn(rows[k], rows[k + 1], v[k], w[k]);
        }
      }
    }
  }

  /** Which elements of a matrix are 0. */
  private enum Shape {
    LOWER,
    UPPER,
    FULL
  }

  /**
   * Sets a matrix to the product of two, in tiles that stay in the cache: of 64 rows of the second, by 256 columns.
   *
   * @param isLower whether the second one is a lower triangle
   * @param isHalf whether only the lower half is wanted
   */
  private void multiply(
      double[][] to, double[][] a, Shape shape, double[][] b, boolean isLower, boolean isHalf) {
    for (int r = 0; r < d; r++) {
      Arrays.fill(to[r], 0);
    }
    for (int left = 0; left < d; left += TILE_COLUMNS) {
      int right = Math.min(d, left + TILE_COLUMNS);
      for (int top = isLower ? left - left % TILE_ROWS : 0; top < d; top += TILE_ROWS) {
        int bottom = Math.min(d, top + TILE_ROWS);
        for (int r = isHalf ? left : 0; r < d; r++) {
          int from = shape == Shape.UPPER ? Math.max(top, r) : top;
          int end = shape == Shape.LOWER ? Math.min(bottom, r + 1) : bottom;
          int until = isHalf ? Math.min(right, r + 1) : right;
          pass((long) Math.max(0, end - from) * (until - left) / 8);
          addRows(to[r], a[r], b, from, end, left, until);
        }
      }
    }
  }

  /** Adds rows of a matrix, each times an element of a. */
  private static void addRows(
      double[] to, double[] a, double[][] b, int from, int end, int left, int right) {
    int k = from;
    for (; k < end - 3; k += 4) {
      double[] b0 = b[k];
      double[] b1 = b[k + 1];
      double[] b2 = b[k + 2];
      double[] b3 = b[k + 3];
      double a0 = a[k];
      double a1 = a[k + 1];
      double a2 = a[k + 2];
      double a3 = a[k + 3];
      for (int c = left; c < right; c++) {
        to[c] += a0 * b0[c] + a1 * b1[c] + (a2 * b2[c] + a3 * b3[c]);
      }
    }
    for (; k < end; k++) {
      double[] row = b[k];
      double factor = a[k];
      for (int c = left; c < right; c++) {
        to[c] += factor * row[c];
      }
    }
  }

  private void mirror(double[][] m) {
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < r; c++) {
        m[c][r] = m[r][c];
      }
    }
  }

  /** Rotates pairs of rows until all are orthogonal, others with them (M. Hestenes, 1958). */
  private void orthogonalize(double[][] rows, double[][] others) {
    boolean isDone = false;
    for (int sweep = 0; sweep < MOST_SWEEPS && !isDone; sweep++) {
      isDone = true;
      for (int k = 0; k < d; k++) {
        for (int l = k + 1; l < d; l++) {
          pass(4L * d);
          isDone &= !rotate(rows, others, k, l);
        }
      }
    }
  }

  /** Rotates two rows so that they are orthogonal; returns whether they were not. */
  private boolean rotate(double[][] rows, double[][] others, int k, int l) {
    double[] a = rows[k];
    double[] b = rows[l];
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
    turn(others[k], others[l], cos, sin);
    return true;
  }

  private static void turn(double[] a, double[] b, double cos, double sin) {
    for (int r = 0; r < a.length; r++) {
      double x = a[r];
      double y = b[r];
      a[r] = cos * x - sin * y;
      b[r] = sin * x + cos * y;
    }
  }

  /** Returns B by the map X, or NaN where it is too far from 0. */
  private double near(FullPair.Factor a, FullPair.Factor b, double scale) {
    Axes known = axes(b); // L_b = V S Wᵀ
    for (int r = 0; r < d; r++) {
      norms[r] = known.norms[r] * (scale / known.scale);
    }
    for (int r = 0, k = 0; r < d; r++) {
      for (int c = 0; c <= r; c++, k++) {
        first[r][c] = (a.high(k) - b.high(k) + (a.low(k) - b.low(k))) * scale;
      }
    }
    multiply(second, first, Shape.LOWER, known.w, false, false);
    multiply(third, known.v, Shape.FULL, second, false, false); // A = Vᵀ (L_a − L_b) W
    double outside = outside(known, second);
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        second[c][r] = third[r][c];
      }
    }
    multiply(first, third, Shape.FULL, second, false, true);
    // Vᵀ (Σa − Σb) V = A S + S Aᵀ + A Aᵀ, in first; X in second
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        first[r][c] += third[r][c] * norms[c] + norms[r] * third[c][r];
        second[r][c] = first[r][c] / squares(r, c);
      }
    }
    mirror(second);
    if (!isNear()) {
      return Double.NaN;
    }
    double last = 0;
    for (int n = 0; n < MOST_ITERATIONS; n++) {
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < d; c++) {
          third[r][c] = second[r][c] * (norms[c] * norms[c]);
        }
      }
      multiply(fourth, third, Shape.FULL, second, false, true); // X S² X
      double size = 0;
      double change = 0;
      for (int r = 0; r < d; r++) {
        for (int c = 0; c <= r; c++) {
          double squares = squares(r, c);
          double x = (first[r][c] - fourth[r][c]) / squares;
          double step = x - second[r][c];
          double weight = r == c ? norms[r] * norms[r] : squares;
          second[r][c] = x;
          size += x * x * weight;
          change += step * step * weight;
        }
      }
      mirror(second);
      if (!(size < Double.POSITIVE_INFINITY)) {
        return Double.NaN;
      }
      if (change <= SETTLED * size || (change < last && change / last * change <= SETTLED * size)) {
        return size + outside;
      }
      last = change;
    }
    return Double.NaN;
  }

  /**
   * Whether X, in second, is near enough to 0: by its row sums or, as these are some √D times the norm of dense changes, by the fourth root of
   * the Frobenius norm of X⁴, which is less than twice it up to D = 4000.
   */
  private boolean isNear() {
    double widest = 0;
    for (int r = 0; r < d; r++) {
      double sum = 0;
      for (int c = 0; c < d; c++) {
        sum += Math.abs(second[r][c]);
      }
      widest = Math.max(widest, sum);
    }
    if (!(widest > NEAR)) {
      return widest <= NEAR;
    }
    multiply(third, second, Shape.FULL, second, false, true);
    mirror(third);
    multiply(fourth, third, Shape.FULL, third, false, true);
    double squares = 0;
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        squares += (r == c ? 1 : 2) * fourth[r][c] * fourth[r][c];
      }
    }
    return Math.sqrt(Math.sqrt(Math.sqrt(squares))) <= NEAR;
  }

  /**
   * Returns the variance of a in the directions in which a singular b has none: the squares of what A leaves of the changes. B is the sum of
   * it and of the B of what both have in the others.
   */
  private double outside(Axes of, double[][] changes) {
    double sum = 0;
    if (!isSingular()) {
      return sum;
    }
    for (int c = 0; c < d; c++) {
      for (int h = 0; h < d; h++) {
        v[h] = changes[h][c];
      }
      for (int r = 0; r < d; r++) {
        pass(d);
        add(v, -third[r][c], of.v[r], 0, of.v[r], 0, d);
      }
      sum += dot(v, v, 0);
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
