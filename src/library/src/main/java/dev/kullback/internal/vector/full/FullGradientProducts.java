package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Fma;
import dev.kullback.internal.vector.DoubleTranspose;
import dev.kullback.internal.vector.GradientKernel;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Sums up the derivatives of KL or Jeffreys' divergence by some Gaussians of one batch, the targets, and all of the other, as products of the
 * cotangents with what the matrix product of the values is packed of. With {@code P = Σ_p⁻¹}, m the means relative to a centre, and {@code W = L⁻¹},
 * those of KL by q and by p are
 *
 * <pre>
 * A = Σ_j g P_j                        b = Σ_j g P_j m_j     ∂μ = A m − b     ∂L = tril(A L) − Σ_j g diag(1/L_kk)
 * S = Σ_i g (Σ_i + m_i m_iᵀ) centred   t = Σ_i g (m_i − m)   ∂μ = −Wᵀ W t     ∂L = −tril(Wᵀ (W S Wᵀ − Σ_i g I))
 * </pre>
 *
 * <p>in which terms of alike Gaussians cancel. So each derivative has a bound on its error, {@code accuracy.md} has the proof, and a target of
 * which one exceeds its share of a lower bound of the terms' magnitudes is left to {@link FullGradientKernel}. Layouts: others' entries {@code
 * [k/MR][other][MR]}, cotangents {@code [target/NR][other][NR]}, products {@code [target/NR][k][NR]}: targets are in lanes. This class is for one thread.
 */
public final class FullGradientProducts {
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;
  private static final int KC = ProductKernels.KC;
  private static final int SIDE = GradientKernel.SIDE;
  private static final int CHUNK = BlockKernel.MOST_ROWS;

  /** Products of the targets of a task, 2 MiB. */
  private static final int MOST_PRODUCTS = 1 << 18;

  /**
   * Most dimensions: a thread keeps its vectors and sums, 30 MiB at 256. Of 1200 it kept 1.1 GiB, and of six Gaussians of D = 600,
   * float and well-conditioned, one was within the bound.
   */
  private static final int MOST_DIMENSIONS = 256;

  /** Parts of a small batch, so that several threads have some. */
  private static final int PARTS = 4;

  /** Relative error that derivatives of batches of float are allowed: of the promised 1e-5, some is left for rounding to float. */
  private static final double FLOAT_TOLERANCE = 8e-6;

  /** Least sizes and magnitudes: beside them, what underflow takes of their terms is below a rounding. */
  private static final double LEAST_SIZE = 0x1p-500;

  private static final double LEAST_MAGNITUDE = 0x1p-900;

  private static final double[] NONE = {};
  private static final FullBatch NO_BATCH = FullBatch.standard(1);

  private final boolean vectors;
  private final boolean hasReverse;
  private final int v;
  private final ProductKernels products = new ProductKernels();
  private final ScalarProductKernels plainProducts = new ScalarProductKernels();
  private final DoubleTranspose transpose;
  private final Checkpoint checkpoint = new Checkpoint();

  /** A chunk of the others' entries; their diagonals. */
  private final double[] entries = new double[KC * CHUNK];

  private double[] diagonals = NONE;

  /** Cotangents of all targets and a chunk of others; of the first chunk; and magnitudes, times what errors are relative to them. */
  private final double[] weights = new double[SIDE * CHUNK];

  private final double[] firstWeights = new double[SIDE * CHUNK];
  private final double[] sizes = new double[SIDE * CHUNK];

  /** What errors of the others' terms are relative to their magnitudes. */
  private final double[] relative = new double[CHUNK];

  private final Sums byQ = new Sums(true);
  private final Sums byP = new Sums(false);

  private FullBatch target = NO_BATCH;
  private FullBatch other = NO_BATCH;
  private @Nullable FullOperands operands;
  private boolean isOfQ;
  private int from;
  private int to;
  private int count;
  private int firstOther;
  private int others;
  private int d;
  private int length;
  private int width;

  /** Vectors of the lanes' Gaussians: L, W, m; squares {@link #width} wide; the derivatives, packed and by means. */
  private double[] l = NONE;

  private double[] w = NONE;
  private double[] m = NONE;
  private double[] square = NONE;
  private double[] triangle = NONE;
  private double[] x = NONE;
  private double[] scratch = NONE;
  private double[] byFactor = NONE;
  private double[] byMean = NONE;
  private double[] total = NONE;

  /** Factors of the error bound of an entry: a row's, and a column's or the mean's, which is behind them. */
  private double[] ofRow = NONE;

  private double[] ofColumn = NONE;

  /** Relative errors that the lanes are allowed. */
  private final double[] tolerance;

  private final double[] minusOnes;
  private final boolean[] isOpen = new boolean[SIDE + NR];

  /** What is summed up for the targets as KL's q, or as its p. */
  private final class Sums {
    private final boolean asQ;
    private double[] values = NONE;
    private double[] sizes = NONE;
    private final double[] ofWeights = new double[SIDE];
    private final double[] ofSizes = new double[SIDE];

    Sums(boolean asQ) {
      this.asQ = asQ;
    }

    boolean isWanted() {
      return hasReverse || asQ == isOfQ;
    }

    void begin(int panels) {
      int needed = panels * padded(length + d) * NR;
      values = values.length < needed ? new double[needed] : values;
      needed = panels * padded(d + 1) * NR;
      sizes = sizes.length < needed ? new double[needed] : sizes;
      Arrays.fill(ofWeights, 0);
      Arrays.fill(ofSizes, 0);
    }
  }

  FullGradientProducts(boolean vectors, boolean hasReverse) {
    this.vectors = vectors;
    this.hasReverse = hasReverse;
    v = vectors ? FullSolveKernel.V : 1;
    transpose = new DoubleTranspose(vectors);
    tolerance = new double[v];
    minusOnes = new double[v];
    Arrays.fill(minusOnes, -1);
  }

  private static int padded(int k) {
    return Math.ceilDiv(k, MR) * MR;
  }

  /**
   * Whether batches as they are packed can be multiplied: each Gaussian has a factor of its own, and none is such that P may underflow, which no bound
   * counts, or a divergence be +∞, which pairs refuse.
   */
  public static boolean isPossible(FullBatch q, FullBatch p) {
    boolean isEach = !q.isShared() && !p.isShared();
    boolean isSmall = q.dimension() <= MOST_DIMENSIONS;
    return Fma.IS_HARDWARE && isEach && isSmall && q.isHeld() && p.isHeld();
  }

  /** Returns how many Gaussians of n are targets at once. */
  public static int targets(int n, int d) {
    int most = MOST_PRODUCTS / padded(FullColumns.length(d));
    int panels = Math.ceilDiv(Math.min(Math.ceilDiv(n, PARTS), most), NR);
    return Math.clamp(panels, 1, SIDE / NR) * NR;
  }

  /** Begins the sums of Gaussians [from, to) of q, or of p, over [first, end) of the other batch, which begin at a whole panel. */
  public void begin(FullOperands operands, boolean ofQ, int from, int to, int first, int end) {
    this.operands = operands;
    this.from = from;
    this.to = to;
    firstOther = first;
    others = end - first;
    isOfQ = ofQ;
    FullBatch q = (FullBatch) operands.q();
    FullBatch p = (FullBatch) operands.p();
    target = ofQ ? q : p;
    other = ofQ ? p : q;
    count = 0;
    makeRoom(target.dimension());
    int panels = Math.ceilDiv(to - from, NR);
    byQ.begin(panels);
    byP.begin(panels);
  }

  private void makeRoom(int dimension) {
    d = dimension;
    length = Cholesky.packedLength(d);
    width = Math.ceilDiv(d, 4) * 4;
    if (m.length < d * v) {
      l = new double[length * v];
      w = new double[length * v];
      m = new double[d * v];
      square = new double[d * width * v];
      triangle = new double[d * width * v];
      x = new double[(d * width + 4) * v];
      scratch = new double[d * v];
      byFactor = new double[(length + 4) * v];
      byMean = new double[d * v];
      total = new double[(length + d) * v];
      diagonals = new double[padded(d + 1) * CHUNK];
      ofRow = new double[d * v];
      ofColumn = new double[(d + 1) * v];
    }
  }

  /** Adds the terms of others [first, end), at most {@link GradientKernel#SIDE}; row i and column j of the block have the cotangent {@code block[i·SIDE + j]}. */
  public void add(double[] block, int first, int end, Worker worker) {
    for (int o = first; o < end; o += CHUNK) {
      int n = Math.min(CHUNK, end - o);
      double[] g = count == 0 ? firstWeights : weights;
      int at = isOfQ ? o - first : (o - first) * SIDE;
      for (int t = 0; t < to - from; t += NR) {
        int lanes = Math.min(NR, to - from - t);
        for (int k = 0; k < n && !isOfQ; k++) {
          System.arraycopy(block, at + k * SIDE + t, g, t * CHUNK + k * NR, lanes);
        }
        if (isOfQ) {
          transpose.toLanes(block, at + t * SIDE, SIDE, lanes, n, g, t * CHUNK, NR);
        }
      }
      if (byQ.isWanted()) {
        addByQ(othersAsColumns(), o, n, g, worker);
      }
      if (byP.isWanted()) {
        FullRows rows = isOfQ ? operands().otherRows() : operands().rows();
        addByP(rows, o, n, g, worker);
      }
      count += n;
    }
  }

  private FullOperands operands() {
    return Objects.requireNonNull(operands);
  }

  /** Returns the targets as columns. */
  private FullColumns columns() {
    return isOfQ ? operands().otherColumns() : operands().columns();
  }

  private FullColumns othersAsColumns() {
    return isOfQ ? operands().columns() : operands().otherColumns();
  }

  private void addByQ(FullColumns p, int o, int n, double[] g, Worker worker) {
    double[] values = p.values();
    double units = units(3);
    for (int k = 0; k < n; k++) {
      int j = o + k;
      relative[k] = units + 2.5 * p.inverseError()[j];
      double squares = 0;
      for (int h = 0, at = p.precision(j) + j % NR; h < d; at += (++h + 1) * NR) {
        double mean = other.mean()[j * d + h] - p.centre()[h];
        double precision = values[at];
        squares += precision * mean * mean;
        diagonals[(h / MR * CHUNK + k) * MR + h % MR] = precision;
      }
      diagonals[(d / MR * CHUNK + k) * MR + d % MR] = d * squares;
    }
    int end = length + d;
    for (int k0 = 0; k0 < end; k0 += KC) {
      int height = Math.min(KC, end - k0);
      for (int k = 0; k < height; k += MR) {
        int rows = Math.min(MR, height - k);
        for (int j = 0; j < n; j += NR) {
          int in = p.precision(o + j) + (k0 + k) * NR;
          transpose.toLanes(values, in, NR, rows, NR, entries, (k / MR * CHUNK + j) * MR, MR);
        }
      }
      multiply(byQ, k0, height, n, g, worker);
    }
    finishChunk(byQ, n, g, d + 1, worker);
  }

  private void addByP(FullRows q, int o, int n, double[] g, Worker worker) {
    double[] centre = columns().centre();
    for (int k = 0; k < n; k++) {
      int i = o + k;
      int in = q.panel(i) + i % MR;
      for (int h = 0; h < d; in += (++h + 1) * MR) {
        double mean = other.mean()[i * d + h] - centre[h];
        diagonals[(h / MR * CHUNK + k) * MR + h % MR] = q.covariance()[in] + mean * mean;
      }
    }
    for (int k0 = 0; k0 < length + d; k0 += KC) {
      int height =
          vectors
              ? products.pack(q, o, o + n, columns(), k0)
              : plainProducts.pack(q, o, o + n, columns(), k0);
      double[] chunk = vectors ? products.chunk : plainProducts.chunk;
      for (int k = 0; k < height; k += MR) {
        int rows = Math.min(MR, height - k);
        for (int i = 0; i < n; i += MR) {
          int to = (k / MR * CHUNK + i) * MR;
          transpose.toLanes(chunk, i * height + k * MR, MR, rows, MR, entries, to, MR);
        }
      }
      multiply(byP, k0, height, n, g, worker);
    }
    Arrays.fill(relative, 1);
    finishChunk(byP, n, g, d, worker);
  }

  /** Returns the roundings of sums over the others and of so many products of D terms. */
  private double units(int products) {
    int chunks = Math.ceilDiv(others, CHUNK);
    return FullPacking.UNIT * (FullColumns.roundings(others) + chunks + products * d + 16);
  }

  private void multiply(Sums to, int k0, int height, int n, double[] g, Worker worker) {
    for (int t = 0; t < this.to - from; t += NR) {
      worker.pass(2L * NR * n * height);
      multiply(entries, height, g, t, n, to.values, at(t, length + d) + k0 * NR);
    }
  }

  private void multiply(double[] rows, int height, double[] g, int t, int n, double[] to, int at) {
    if (vectors) {
      ProductMicroKernels.multiply(rows, 0, CHUNK, height, g, t * CHUNK, n, NR, to, at, count == 0);
    } else {
      ScalarProductMicroKernels.multiply(
          rows, 0, CHUNK, height, g, t * CHUNK, n, NR, to, at, count == 0);
    }
  }

  /** Adds up cotangents and magnitudes of a chunk. */
  private void finishChunk(Sums to, int n, double[] g, int height, Worker worker) {
    for (int t = 0; t < this.to - from; t += NR) {
      for (int k = 0, at = t * CHUNK; k < n; k++, at += NR) {
        for (int i = 0; i < NR; i++) {
          double x = g[at + i];
          double size = Math.abs(x) * relative[k];
          sizes[at + i] = size;
          to.ofWeights[t + i] += x;
          to.ofSizes[t + i] += size;
        }
      }
      worker.pass(2L * NR * n * height);
      multiply(diagonals, height, sizes, t, n, to.sizes, at(t, d + 1));
    }
  }

  /**
   * Adds the derivatives of the targets that are within the bound to {@code sums}, and returns whether that leaves some, which {@link #isOpen}
   * tells.
   */
  public boolean finish(double[] sums, Worker worker) {
    boolean any = false;
    for (int t = 0; t < to - from; t += v) {
      int lanes = Math.min(v, to - from - t);
      worker.pass(5L * lanes * Checkpoint.ofSolve(d));
      load(t, lanes);
      Arrays.fill(isOpen, t, t + v, false);
      Arrays.fill(total, 0, (length + d) * v, 0);
      if (byQ.isWanted()) {
        finishByQ(t);
        addUp(byQ, t, lanes);
      }
      if (byP.isWanted()) {
        finishByP(t);
        addUp(byP, t, lanes);
      }
      store(t, lanes, sums);
      for (int i = 0; i < lanes; i++) {
        any |= isOpen[t + i];
      }
    }
    operands = null;
    target = other = NO_BATCH;
    return any;
  }

  private void store(int t, int lanes, double[] sums) {
    int stride = length + d;
    for (int k = 0; k < stride; k++) {
      for (int i = 0; i < lanes; i++) {
        sums[(from + t + i) * stride + k] += isOpen[t + i] ? 0 : total[k * v + i];
      }
    }
  }

  /** Whether target t is to be computed pair by pair. */
  public boolean isOpen(int t) {
    return isOpen[t];
  }

  private void load(int t, int lanes) {
    if (vectors) {
      FullPacking.factors(target.scaleTril(), target, from + t, lanes, l, transpose);
    } else {
      System.arraycopy(target.scaleTril(), target.factorFrom(from + t), l, 0, length);
    }
  }

  private void loadMeans(int t, double[] centre) {
    if (vectors) {
      FullPacking.means(target, from + t, Math.min(v, to - from - t), m, 0, v, transpose);
      TriangleKernels.subtract(centre, d, m);
    } else {
      System.arraycopy(target.mean(), (from + t) * d, m, 0, d);
      ScalarTriangleKernels.subtract(centre, d, m);
    }
  }

  /** Returns where the products of target t with {@code height} entries begin. */
  private static int at(int t, int height) {
    return t / NR * padded(height) * NR + t % NR;
  }

  private void finishByQ(int t) {
    loadMeans(t, othersAsColumns().centre());
    double[] a = byQ.values;
    int at = at(t, length + d);
    Arrays.fill(triangle, 0, d * width * v, 0);
    if (vectors) {
      FullGradientSums.byQ(a, at, NR, l, m, d, width, square, triangle, byFactor, byMean);
    } else {
      ScalarFullGradientSums.byQ(a, at, NR, l, m, d, width, square, triangle, byFactor, byMean);
    }
    for (int i = 0; i < v; i++) {
      for (int h = 0, k = i; h < d; k += (++h + 1) * v) {
        byMean[h * v + i] += 0.5 * a[at + (length + h) * NR + i];
        byFactor[k] -= byQ.ofWeights[t + i] / l[k];
      }
    }
  }

  private void finishByP(int t) {
    loadMeans(t, columns().centre());
    double[] s = byP.values;
    int at = at(t, length + d);
    Arrays.fill(triangle, 0, d * width * v, 0);
    System.arraycopy(byP.ofWeights, t, scratch, 0, v);
    if (vectors) {
      TriangleKernels.invert(l, d, w, checkpoint);
      FullGradientSums.byP(
          s, at, NR, w, m, scratch, d, width, square, triangle, x, byFactor, byMean);
    } else {
      ScalarTriangleKernels.invert(l, d, w, checkpoint);
      ScalarFullGradientSums.byP(
          s, at, NR, w, m, scratch, d, width, square, triangle, x, byFactor, byMean);
    }
    for (int h = 0, k = 0; h < d; k += (++h + 1) * v) {
      for (int i = 0; i < v; i++) {
        byFactor[k + i] -= byP.ofWeights[t + i];
        m[h * v + i] = w[k + i]; // the inverse of the diagonal
      }
    }
    if (vectors) {
      FullGradientSums.solve(l, m, minusOnes, d, byFactor, byMean, scratch);
    } else {
      ScalarFullGradientSums.solve(l, m, minusOnes, d, byFactor, byMean, scratch);
    }
  }

  /** Adds the derivatives of the lanes, and opens those that are not within the bound. */
  private void addUp(Sums of, int t, int lanes) {
    if (of.asQ) {
      boundByQ(t);
    } else {
      boundByP(t, lanes);
    }
    for (int i = 0; i < lanes; i++) {
      double own = of.asQ ? PairKl.DOUBLE_TOLERANCE : columns().tolerance()[from + t + i];
      tolerance[i] = moreTolerance() + own;
    }
    for (int r = 0, k = 0; r < d; r++) {
      check(of, t, lanes, r, d, byMean, r * v);
      for (int c = 0; c <= r; c++, k += v) {
        check(of, t, lanes, r, c, byFactor, k);
      }
    }
    for (int k = 0; k < d * v; k++) {
      total[k] += byMean[k];
    }
    for (int k = 0; k < length * v; k++) {
      total[d * v + k] += byFactor[k];
    }
  }

  /** Opens the lanes whose derivative by an entry, or in column D by a mean, is not within the bound. */
  private void check(Sums of, int t, int lanes, int r, int c, double[] derivatives, int k) {
    for (int i = 0; i < lanes; i++) {
      double error = ofRow[r * v + i] * ofColumn[c * v + i];
      if (c == r && of.asQ) {
        error += of.ofSizes[t + i] / l[k + i];
      }
      double most = tolerance[i] * Math.abs(derivatives[k + i]);
      if (!isWithin(error, most) && !isOpen[t + i]) {
        isOpen[t + i] = !isWithin(of, t + i, r, c, error, most);
      }
    }
  }

  private double moreTolerance() {
    return target.isDouble() || other.isDouble() ? 0 : FLOAT_TOLERANCE;
  }

  /** Opens a lane where sizes are such that underflow might count. */
  private double root(int t, double size) {
    isOpen[t] |= !(size >= LEAST_SIZE);
    return Math.sqrt(size);
  }

  /** Bounds errors by {@code √a_r Σ_k √a_k |L_kc|}, where a are sums of magnitudes of {@code P_rr ≥ P_rk² / P_kk}. */
  private void boundByQ(int t) {
    int at = at(t, d + 1);
    Arrays.fill(ofColumn, 0);
    for (int r = 0, k = 0; r < d; r++) {
      for (int i = 0; i < v; i++) {
        ofRow[r * v + i] = root(t + i, byQ.sizes[at + r * NR + i]);
      }
      for (int c = 0; c <= r; c++, k += v) {
        addProducts(l, k, ofRow, r * v, ofColumn, c * v);
      }
      addProducts(m, r * v, ofRow, r * v, ofColumn, d * v);
    }
    for (int i = 0; i < v; i++) {
      ofColumn[d * v + i] += Math.sqrt(byQ.sizes[at + d * NR + i]);
    }
  }

  /** Adds products of the lanes' magnitudes with factors. */
  private void addProducts(double[] x, int k, double[] factors, int at, double[] to, int sum) {
    for (int i = 0; i < v; i++) {
      to[sum + i] += Math.abs(x[k + i]) * factors[at + i];
    }
  }

  /** Bounds errors by {@code ‖W e_r‖ ‖τ‖ ((ρ + 2ε) τ_c + ε ‖τ‖)}, with {@code τ = |W| √c + √Σ|g|}, c likewise of the covariances and means. */
  private void boundByP(int t, int lanes) {
    int at = at(t, d + 1);
    FullColumns p = columns();
    for (int i = 0; i < lanes; i++) {
      double weight = byP.ofSizes[t + i];
      double g = root(t + i, weight);
      for (int r = 0; r < d; r++) {
        double mean = target.mean()[(from + t + i) * d + r] - p.centre()[r];
        double size = 2 * (byP.sizes[at + r * NR + i] + mean * mean * weight);
        scratch[r * v + i] = root(t + i, size);
        ofColumn[r * v + i] = g;
      }
    }
    Arrays.fill(ofRow, 0);
    for (int r = 0, k = 0; r < d; r++) {
      for (int c = 0; c <= r; c++, k += v) {
        addProducts(w, k, scratch, c * v, ofColumn, r * v);
        for (int i = 0; i < v; i++) {
          ofRow[c * v + i] += w[k + i] * w[k + i];
        }
      }
    }
    double units = units(4);
    for (int i = 0; i < lanes; i++) {
      double squares = 0;
      for (int r = 0; r < d; r++) {
        squares += ofColumn[r * v + i] * ofColumn[r * v + i];
      }
      double norm = Math.sqrt(squares);
      double error = 1.25 * p.inverseError()[from + t + i];
      double relative = units + 2 * error;
      for (int r = 0; r < d; r++) {
        ofRow[r * v + i] = Math.sqrt(ofRow[r * v + i]) * norm;
        ofColumn[r * v + i] = relative * ofColumn[r * v + i] + error * norm;
      }
      ofColumn[d * v + i] = relative * Math.sqrt(byP.ofSizes[t + i]);
    }
  }

  private static boolean isWithin(double error, double most) {
    return error <= most && most >= LEAST_MAGNITUDE && most < Double.POSITIVE_INFINITY;
  }

  /**
   * Whether an error is at most what is tolerated of a lower bound of the magnitudes: a term's is at least {@code |g| |L_q,rc − L_p,rc| / L_p,rr²},
   * and of column D, by means, the same of these.
   *
   * @param most what is tolerated of the derivative itself, another bound
   */
  private boolean isWithin(Sums of, int t, int r, int c, double error, double most) {
    FullColumns p = of.asQ ? othersAsColumns() : columns();
    double more = moreTolerance();
    int diagonal = Cholesky.packedLength(r) + r;
    int entry = Cholesky.packedLength(r) + c;
    int i = from + t;
    for (int k = 0; k < Math.min(others, CHUNK) && most < Double.POSITIVE_INFINITY; k++) {
      int o = firstOther + k;
      double x =
          c == d
              ? target.mean()[i * d + r] - other.mean()[o * d + r]
              : target.scaleTril()[i * length + entry] - other.scaleTril()[o * length + entry];
      double pivot =
          of.asQ
              ? other.scaleTril()[o * length + diagonal]
              : target.scaleTril()[i * length + diagonal];
      double g = firstWeights[t / NR * NR * CHUNK + k * NR + t % NR];
      most += Math.abs(g) * (more + p.tolerance()[of.asQ ? o : i]) * (Math.abs(x) / pivot / pivot);
      if (isWithin(error, most)) {
        return true;
      }
    }
    return false;
  }
}
