package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.MadeUpGaussians;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntToDoubleFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Batches of one kind and shape, perhaps with an index of p, and reference results from the plain implementation. */
final class Case implements AutoCloseable {
  /** Terms of a small case at most. */
  private static final int SMALL = 6_600;

  /** Dimension of full covariances: a block of eight and a rest. */
  private static final int FULL_DIMENSION = 12;

  /** Their dimension in one shape, several of KL's larger blocks. */
  private static final int LARGE_FULL_DIMENSION = 67;

  /** The most dimensions in which mixtures of low-rank components, which are full covariances to them, are tried: O(D³) a pair. */
  private static final int MOST_WRITTEN_OUT = 150;

  private static final List<Scale> SCALES = List.of(Scale.values());

  /** Neighbors of a row; of which a row's first columns may bound few, but not many. */
  private static final int FEW_NEIGHBORS = 3;

  private static final int MANY_NEIGHBORS = 40;

  private static final int CLUSTERS = 3;

  /** One divergence in {@value} is within the radius. */
  private static final int MANY = 3;

  /** The same of an index, so that its codes exclude most references. */
  private static final int FEW = 50;

  static final double FLOAT_CONTRACT = 1e-5;
  private static final double DOUBLE_CONTRACT = 1e-12;

  /** Contract of double times a condition number, which is 10 and more in these batches. */
  private static final double FULL_CONTRACT = 1e-11;

  /** Columns of low-rank factors. */
  private static final int RANK = 3;

  /** Error that sums and logarithms of rows add. */
  static final double ROUNDING = 1e-12;

  final Kind kind;
  final Scale scaleQ;
  final Scale scaleP;
  final int n;
  final int m;
  final int d;
  final boolean isSelf;

  /** An index of p; null for a case without. */
  final @Nullable Indexed index;

  final Supplier<Batch> makeQ;
  final Supplier<Batch> makeP;
  final Batch q;
  final Batch p;
  final double contract;
  final double[] kl;
  final double[] logWeights;
  final double radius;

  private final int neighbors;

  /** Rows 0 to n − 1, and the columns that pair with them: n − 1 − i with row i. */
  final int[] ascending;

  final int[] descending;

  final SearchOptions nearest;
  final SearchOptions nearestExcludingSelf;
  final SearchOptions nearestReverse;

  final SearchOptions within;
  final SearchOptions withinReverse;

  private final Pair pair;

  /** Whether it is of KL, and without an index. */
  private final boolean hasMixtures;

  /** Made where it is asked for. */
  private @Nullable MixtureCase mixtures;

  private @Nullable PointCase points;

  private @Nullable GradientCase gradients;

  private final Formula formula;

  /** KL(p_j ‖ q_i) of a case with an index, whose reverse searches have the roles of its p exchanged. */
  private final double[] reverse;

  /** q; for covariances a batch of the factors that they were made of. */
  private final Batch plainQ;

  private final Batch plainP;

  /** How q and p state standard deviations, or other scales, where their kind leaves a choice. */
  record Scales(Scale q, Scale p) {
    /** Returns one in turn for both, and where they are of two precisions another for p. */
    static Scales inTurn(Kind kind, int turn, int round) {
      Scale q = scale(turn);
      return new Scales(q, kind.isDoubleQ() == kind.isDoubleP() ? q : scale(turn + 1 + round));
    }

    private static Scale scale(int turn) {
      return SCALES.get(turn % SCALES.size());
    }
  }

  /**
   * Makes a case.
   *
   * @param shape rows, columns and dimension
   * @param mayBeSelf whether q is to be p, too, where both have one kind and size
   * @param threads of the searches of an index; 0 for a case without
   */
  Case(
      Formula formula,
      Kind kind,
      Scales scales,
      int[] shape,
      boolean mayBeSelf,
      int seed,
      int threads) {
    this.formula = formula;
    pair = new Pair(formula, new Worker());
    this.kind = kind;
    boolean isQueryOfFloats = threads > 0 && !kind.isDoubleQ();
    scaleQ = isQueryOfFloats ? Scale.STD : scales.q;
    scaleP = scales.p;
    n = shape[0];
    m = shape[1];
    boolean full = kind.isFull(true) || kind.isFull(false);
    d =
        full
            ? (shape[2] == 64 && formula instanceof Kl
                ? LARGE_FULL_DIMENSION
                : Math.min(shape[2], FULL_DIMENSION))
            : shape[2];
    boolean isWrittenOut = kind.isLowRank() && d > MOST_WRITTEN_OUT;
    hasMixtures = formula == Kl.FORWARD && threads == 0 && !isWrittenOut;
    isSelf = mayBeSelf && n == m && kind.isOne() && scaleQ == scaleP;
    SplittableRandom random = new SplittableRandom(100L * seed + d);
    MadeUpGaussians normal = MadeUpGaussians.normal(d, full || kind.isLowRank());
    MadeUpGaussians center =
        switch (kind.spread()) {
          case NEAR -> normal.around(1, random, 1);
          case CLUSTERS -> normal.around(CLUSTERS, random, 1);
          default -> normal;
        };
    // Hellinger's distances of unlike Gaussians round to 1, which has no order that double could
    // tell
    boolean isUnlike =
        kind.spread() == Kind.Spread.WIDE && formula.lastStep() == Formula.LastStep.HELLINGER;
    double spread = (isUnlike ? Kind.Spread.ALIKE : kind.spread()).size;
    MadeUpGaussians a = center.around(n, random, spread).withDuplicates();
    MadeUpGaussians b = isSelf ? a : center.around(m, random, spread).withDuplicates();
    if (!formula.needsInverse()) {
      a.withSingular();
      b.withSingular();
    }
    makeQ = () -> batch(a, kind.isFull(true), scaleQ, kind.isDoubleQ());
    makeP = isSelf ? makeQ : () -> batch(b, kind.isFull(false), scaleP, kind.isDoubleP());
    q = makeQ.get();
    p = isSelf ? q : makeP.get();
    boolean isConditioned = full || kind.isLowRank();
    contract = !kind.isDouble() ? FLOAT_CONTRACT : isConditioned ? FULL_CONTRACT : DOUBLE_CONTRACT;
    plainQ = plain(q, a, kind.isDoubleQ());
    plainP = isSelf ? plainQ : plain(p, b, kind.isDoubleP());
    kl = new double[n * m];
    for (int at = 0; at < kl.length; at++) {
      kl[at] = pair.stable(plainQ, at / m, plainP, at % m);
    }
    logWeights = random.doubles(m, -3, 0).toArray();
    if (m > 1) {
      logWeights[m / 2] = Double.NEGATIVE_INFINITY;
    }
    ascending = IntStream.range(0, n).toArray();
    descending = IntStream.range(0, n).map(i -> n - 1 - i).toArray();
    neighbors = seed % 3 == 2 ? MANY_NEIGHBORS : FEW_NEIGHBORS;
    nearest = SearchOptions.nearest(k(0));
    nearestExcludingSelf = SearchOptions.nearest(k(1)).excludingSelf(0);
    nearestReverse = SearchOptions.nearest(Math.min(neighbors, n)).reversed();
    radius = radius(kl, threads == 0 ? MANY : FEW);
    within = SearchOptions.within(radius);
    if (threads == 0) {
      index = null;
      reverse = new double[0];
      withinReverse = within.reversed();
      return;
    }
    index = new Indexed((DiagonalBatch) p, k(0), threads);
    reverse = new double[kl.length];
    for (int at = 0; at < kl.length; at++) {
      reverse[at] = pair.stable(p, at % m, q, at / m);
    }
    withinReverse = SearchOptions.within(radius(reverse, FEW)).reversed();
  }

  /** Returns what a batch is compared with: covariances of double with the factors that they were made of, which others tell only to their rounding. */
  private Batch plain(Batch batch, MadeUpGaussians g, boolean isDouble) {
    boolean isOfCovariances =
        kind.form() == Kind.Form.COVARIANCE && isDouble && kind.spread() == Kind.Spread.WIDE;
    return isOfCovariances ? g.full(MatrixForm.SCALE_TRIL, true, Platform::factorization) : batch;
  }

  /** Returns a radius within which about one in {@code share} of these divergences is, and that is near none. */
  private static double radius(double[] kl, int share) {
    double[] sorted = kl.clone();
    Arrays.sort(sorted);
    double low = sorted[sorted.length / share];
    double high = Arrays.stream(sorted).filter(x -> x > 1.001 * low).findFirst().orElse(2 * low);
    return 0.5 * (low + high);
  }

  boolean hasMixtures() {
    return hasMixtures;
  }

  /** Whether points have densities in its batches. */
  boolean hasPoints() {
    return hasMixtures && !kind.isLowRank();
  }

  /** Returns points of its Gaussians. */
  PointCase points() {
    if (points == null) {
      points = new PointCase(this, plainQ, plainP);
    }
    return points;
  }

  /** Whether its divergence has a gradient for its batches, which are two and have inverses. */
  boolean hasGradient() {
    return index == null
        && !isSelf
        && Term.of(formula) != null
        && ((q instanceof DiagonalBatch && p instanceof DiagonalBatch)
            || (areOfFactors() && Term.of(formula) != Term.WASSERSTEIN_2))
        && !q.isSingular()
        && !p.isSingular();
  }

  private boolean areOfFactors() {
    return q instanceof FullBatch a
        && p instanceof FullBatch b
        && a.given().isTriangular()
        && b.given().isTriangular();
  }

  /** Returns gradients of its matrix. */
  GradientCase gradients() {
    if (gradients == null) {
      gradients = new GradientCase(this);
    }
    return gradients;
  }

  /** Returns what they are. */
  Expected expectedGradients() {
    return gradients().expected(Term.required(formula), pair);
  }

  /** Returns mixtures of its Gaussians. */
  MixtureCase mixtures() {
    if (mixtures == null) {
      mixtures = new MixtureCase(this, pair, plainQ, plainP);
    }
    return mixtures;
  }

  /** Whether q is of double. */
  boolean isDoubleQ() {
    return kind.isDoubleQ();
  }

  @Override
  public void close() {
    if (index != null) {
      index.close();
    }
  }

  private Batch batch(MadeUpGaussians g, boolean full, Scale scale, boolean isDouble) {
    if (kind.isLowRank()) {
      return g.lowRank(RANK, Scale.STD, isDouble);
    }
    MatrixForm matrix =
        kind.form() == Kind.Form.COVARIANCE ? MatrixForm.COVARIANCE : MatrixForm.SCALE_TRIL;
    if (kind.form() == Kind.Form.SHARED_FULL) {
      return g.sharingFirst(matrix, isDouble, Platform::factorization);
    }
    return full ? g.full(matrix, isDouble, Platform::factorization) : g.diagonal(scale, isDouble);
  }

  /** Whether a call takes no more than some microseconds. */
  boolean isSmall() {
    return n * m * d <= SMALL;
  }

  /** Whether operations on its mixtures take no longer than others on small cases. */
  boolean hasSmallMixtures() {
    return isSmall() && (d <= FULL_DIMENSION || !kind.isLowRank());
  }

  private int k(int excluded) {
    return Math.min(neighbors, m - excluded);
  }

  double[] row(int i) {
    return Arrays.copyOfRange(kl, i * m, (i + 1) * m);
  }

  double[] rows(IntToDoubleFunction f) {
    return IntStream.range(0, n).mapToDouble(f).toArray();
  }

  double[] toStandardNormal() {
    Batch normal = MadeUpGaussians.normal(d, false).diagonal(Scale.STD, true);
    return rows(i -> pair.stable(plainQ, i, normal, 0));
  }

  Expected nearest(boolean others) {
    return nearest(kl, n, m, k(others ? 1 : 0), others);
  }

  /** Neighbors of p's rows among q's, whose divergences are the same matrix transposed. */
  Expected nearestReverse() {
    return nearest(transposed(kl, n, m), m, n, Math.min(neighbors, n), false);
  }

  Expected nearest(double[] kl, int n, int m, int k, boolean others) {
    int[] indices = new int[n * k];
    double[] values = new double[n * k];
    for (int i = 0; i < n; i++) {
      int row = i;
      int[] nearest =
          IntStream.range(0, m)
              .filter(j -> !others || j != row)
              .boxed()
              .sorted((x, y) -> Double.compare(kl[row * m + x], kl[row * m + y])) // stable
              .limit(k)
              .mapToInt(j -> j)
              .toArray();
      for (int r = 0; r < k; r++) {
        indices[i * k + r] = nearest[r];
        values[i * k + r] = kl[i * m + nearest[r]];
      }
    }
    return new Expected(values, Expected.scaled(values, contract), indices);
  }

  Expected within(boolean reverse) {
    return reverse ? within(transposed(kl, n, m), radius, m, n) : within(kl, radius, n, m);
  }

  /** Rows' neighbors in the index by KL(p_j ‖ q_i). */
  Expected nearestInIndexReverse() {
    return nearest(reverse, n, m, k(0), false);
  }

  Expected withinInIndexReverse() {
    return within(reverse, withinReverse.radius(), n, m);
  }

  private Expected within(double[] kl, double radius, int n, int m) {
    int[] at = IntStream.range(0, n * m).filter(s -> kl[s] <= radius).toArray();
    double[] values = Arrays.stream(at).mapToDouble(s -> kl[s]).toArray();
    IntStream starts = IntStream.rangeClosed(0, n).map(i -> firstFrom(at, i * m));
    int[] indices = IntStream.concat(starts, Arrays.stream(at).map(s -> s % m)).toArray();
    return new Expected(values, Expected.scaled(values, contract), indices);
  }

  /** Index of the first of some ascending numbers that is at least {@code least}. */
  private static int firstFrom(int[] ascending, int least) {
    int found = Arrays.binarySearch(ascending, least);
    return found < 0 ? ~found : found;
  }

  /** Returns the transpose of a matrix of so many rows and columns. */
  static double[] transposed(double[] matrix, int rows, int columns) {
    return IntStream.range(0, rows * columns)
        .mapToDouble(s -> matrix[s % rows * columns + s / rows])
        .toArray();
  }

  /** Allows the contract's error of each term's KL, by the term's share of the sum. */
  Expected logSumExp(double[] w) {
    double[] values = new double[n];
    double[] allowed = new double[n];
    for (int i = 0; i < n; i++) {
      double most = Double.NEGATIVE_INFINITY;
      for (int j = 0; j < m; j++) {
        most = Math.max(most, w[j] - kl[i * m + j]);
      }
      double sum = 0;
      double weighted = 0;
      for (int j = 0; j < m; j++) {
        double log = w[j] - kl[i * m + j];
        if (log > Double.NEGATIVE_INFINITY) { // others have no term
          double term = Math.exp(log - most);
          sum += term;
          weighted += term * kl[i * m + j];
        }
      }
      if (sum == 0) {
        values[i] = Double.NEGATIVE_INFINITY;
        continue;
      }
      values[i] = most + Math.log(sum);
      allowed[i] = 2 * contract * weighted / sum + ROUNDING * Math.max(1, Math.abs(most));
    }
    return new Expected(values, allowed, Expected.NONE);
  }

  @Override
  public String toString() {
    return "%s (%s, %s), %d x %d, D = %d%s%s"
        .formatted(
            kind,
            scaleQ.argument(),
            scaleP.argument(),
            n,
            m,
            d,
            isSelf ? ", q = p" : "",
            index == null ? "" : ", an index");
  }
}
