package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairGradient;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.Fma;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Sums up the derivatives of divergences, each times its cotangent, over the pairs of a block. A block is computed in float where accuracy of
 * float is asked for and all its numbers are in a range that keeps products from over- and underflow, and otherwise in double; a pair with a
 * Gaussian or a cotangent beyond double's range, too, is left to {@link PairGradient}. This class is for one thread.
 *
 * <p>With u the unit roundoff: differences of means and of variances lose no digits, so that a term is within 8u of the sum of its parts'
 * magnitudes, or 2⁻¹⁸ in float and 2⁻⁴² in double where log-variances differ by little. Its cotangent has a rounding, the sum of a chunk adds 64u, in
 * double that of a block 256u, and those of its chunks and the factor of a row or column 5u. The sums of blocks are in double. That makes 78·2⁻²⁴ +
 * 2⁻¹⁸ = 8.5e-6 for float, and {@code 2⁻⁴² + (270 + N/256)·2⁻⁵³} for double, below 1e-12 up to N = 10⁶.
 *
 * <p>Of log-variances near 0, two may be nearer than the parts of their variances tell. Such terms count for little unless all of a Gaussian's are
 * so small, which its sum shows, as {@code |Σ g t| ≤ Σ |g| |t|}: then the panel is added up anew by differences of logarithms. That takes twice as long as the parts, which
 * took 49 ms where logarithms took 87 (1024 x 256, float, KL, Zen 4, AVX-512, one thread, in turn).
 */
public final class GradientKernel {
  /**
   * Most rows and columns of a block. Adding its sums to all takes memory's time: 1024 x 256 in float takes 5.2 times the matrix's time with 64, 4.5 with
   * 128 and 3.6 to 3.9 with 256 (Zen 4, AVX-512, one thread, beside others' work).
   */
  public static final int SIDE = 256;

  /** Rows and columns whose terms are added without another level of sums. */
  static final int CHUNK = 64;

  /** Dimensions of a panel: floats of the widest vectors, and twice as many doubles; narrower ones go through it in steps. */
  public static final int W = 16;

  /** How differences of variances, or of σ, are made of the second and third fields of panels. */
  enum Difference {
    /** Of two parts each. */
    PARTS,
    /** Of numbers and logarithms. */
    LOGS,
    /** Of variances, from σ: {@code σq² − vp} is rounded once, and v's second part subtracted. */
    SQUARES,
    /** Of numbers that are all there is. */
    NUMBERS,
    /** Of precisions: {@code vq/vp − 1 = (1/vp − 1/vq) vq}. */
    PRECISIONS;

    static Difference of(Term term, Scale q, Scale p) {
      boolean areStd = q == Scale.STD && p == Scale.STD;
      if (areStd && !term.isByStd()) {
        return SQUARES;
      }
      if (q == Scale.PRECISION && p == Scale.PRECISION && !term.isByStd()) {
        return PRECISIONS;
      }
      boolean areVariances = q == Scale.VARIANCE && p == Scale.VARIANCE;
      return areStd || (areVariances && !term.isByStd()) ? NUMBERS : PARTS;
    }
  }

  /** Share of the greatest, about e⁻⁷⁰⁷, below which one is 0. */
  private static final double LEAST_SHARE = 0x1p-1020;

  /** Elements of plain code that take as long as a dimension of a pair. */
  private static final int PAIR_TERMS = 16;

  private final boolean vectors;
  private final FloatGradientBlock floats = new FloatGradientBlock();
  private final DoubleGradientBlock doubles = new DoubleGradientBlock();

  /** Makes a kernel that uses vectors, or not, to the same bits. */
  public GradientKernel(boolean vectors) {
    this.vectors = vectors;
  }

  /**
   * Adds the sums of a block of at most {@link #SIDE} rows and columns: to q's those of {@link PairGradient#meanQ} and {@link
   * PairGradient#scaleQ}, and to p's the negated ones of p, in the places that {@link #at} tells.
   */
  public void add(
      PairGradient pair,
      Cotangents cotangents,
      GradientRows<DiagonalBatch> rows,
      GradientRows<DiagonalBatch> columns,
      Worker worker) {
    DiagonalBatch q = rows.batch();
    DiagonalBatch p = columns.batch();
    Term term = pair.term();
    Difference difference = Difference.of(term, q.kind(), p.kind());
    boolean byStd = term.isByStd() || difference == Difference.SQUARES;
    boolean hasForms =
        Fma.IS_HARDWARE && DoubleGradientForm.isPossible(q) && DoubleGradientForm.isPossible(p);
    if (hasForms && !q.isDouble() && !p.isDouble()) {
      FloatGradientForm a = FloatGradientForm.of(q, byStd, false);
      FloatGradientForm b = FloatGradientForm.of(p, byStd, false);
      if (floats.take(cotangents, rows, a, columns, b)) {
        floats.add(term, difference, vectors, rows, a, columns, b, worker);
        return;
      }
    }
    DoubleGradientForm a = hasForms ? DoubleGradientForm.of(q, byStd, false) : null;
    DoubleGradientForm b = hasForms ? DoubleGradientForm.of(p, byStd, false) : null;
    if (a == null || b == null || !doubles.take(cotangents, rows, a, columns, b)) {
      addOthers(pair, cotangents, rows, a, columns, b, worker);
    }
    if (a != null && b != null) {
      doubles.add(term, difference, vectors, rows, a, columns, b, worker);
    }
  }

  /** Adds pairs that sums in double cannot have one by one, and reads the cotangents of the others. */
  private void addOthers(
      PairGradient pair,
      Cotangents cotangents,
      GradientRows<DiagonalBatch> rows,
      @Nullable DoubleGradientForm q,
      GradientRows<DiagonalBatch> columns,
      @Nullable DoubleGradientForm p,
      Worker worker) {
    double[] weights = doubles.weights;
    for (int i = rows.from; i < rows.to; i++) {
      int at = (i - rows.from) * SIDE;
      cotangents.read(i, columns.from, columns.to, weights, at, 0, Double.POSITIVE_INFINITY);
      for (int j = columns.from; j < columns.to; j++, at++) {
        double weight = weights[at];
        boolean isHeld =
            q != null
                && p != null
                && !q.beyond.get(i)
                && !p.beyond.get(j)
                && Math.abs(weight) <= DoubleGradientForm.MOST_WEIGHT;
        if (!isHeld && weight != 0) {
          worker.pass(Checkpoint.ofPlain((long) PAIR_TERMS * rows.batch().dimension()));
          checkFinite(weight, i, j);
          add(pair, weight, rows, i, columns, j);
          weights[at] = 0;
        }
      }
    }
  }

  /**
   * Stores the shares {@code factor · e^−x_j / Σ_k e^−x_k} of n numbers, which it overwrites, from an index on; 0 of all if they are infinite, and of a number
   * e⁻⁷⁰⁷ of the greatest. The sum is of pieces of {@link Compensation#BLOCK} terms.
   */
  public void weigh(double[] x, int first, int n, double factor, double[] to, int at) {
    double least = Double.POSITIVE_INFINITY;
    for (int j = first; j < first + n; j++) {
      least = x[j] < least ? x[j] : least; // Math.min takes care of NaN and −0
    }
    if (least == Double.POSITIVE_INFINITY) { // ∞ − ∞ is NaN
      Arrays.fill(to, at, at + n, 0);
      return;
    }
    if (vectors) {
      Elementary.toExponentials(x, first, first + n, least);
    } else {
      ScalarElementary.toExponentials(x, first, first + n, least);
    }
    double sum = 0;
    double errors = 0;
    for (int j = first; j < first + n; ) {
      double even = 0;
      double odd = 0;
      int end = Math.min(first + n - j, 2 * Compensation.BLOCK) + j;
      for (; j + 1 < end; j += 2) {
        even += x[j];
        odd += x[j + 1];
      }
      even += j < end ? x[j++] : 0;
      double next = sum + (even + odd);
      errors += Compensation.error(sum, even + odd, next);
      sum = next;
    }
    double share = factor / (sum + errors);
    for (int j = 0; j < n; j++) {
      to[at + j] = x[first + j] < LEAST_SHARE ? 0 : x[first + j] * share;
    }
  }

  /** Throws unless a cotangent is finite. */
  public static void checkFinite(double weight, int i, int j) {
    if (!(Math.abs(weight) <= Double.MAX_VALUE)) {
      throw new IllegalArgumentException(
          "cotangent, row %d, column %d, is %s; it must be finite".formatted(i, j, weight));
    }
  }

  /** Returns the place of the sum by Gaussian i's mean in dimension h; that by its scale is {@link #W} behind. */
  public static int at(DiagonalBatch g, int i, int h) {
    return (h / W * g.size() + i) * 2 * W + h % W;
  }

  /** Returns the length of an array of sums. */
  public static int sums(DiagonalBatch g) {
    return checkSums(g, (long) Math.ceilDiv(g.dimension(), W) * 2 * W * g.size());
  }

  /** Returns the length of an array of a batch's sums if it is possible. */
  public static int checkSums(Batch g, long length) {
    if (length > Batch.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "a batch of %d x %d is too large for its gradient; divide it by rows"
              .formatted(g.size(), g.dimension()));
    }
    return (int) length;
  }

  /** Adds the derivatives of one pair. */
  private static void add(
      PairGradient pair,
      double weight,
      GradientRows<DiagonalBatch> rows,
      int i,
      GradientRows<DiagonalBatch> columns,
      int j) {
    DiagonalBatch q = rows.batch();
    DiagonalBatch p = columns.batch();
    int d = q.dimension();
    for (int h = 0; h < d; h++) {
      pair.set(q, i * d + h, p, j * d + h);
      int toQ = at(q, i, h);
      int toP = at(p, j, h);
      add(weight * pair.meanQ(), rows, toQ);
      add(weight * pair.scaleQ(), rows, toQ + W);
      add(weight * pair.meanQ(), columns, toP);
      add(-weight * pair.scaleP(), columns, toP + W);
    }
  }

  /** Adds a number or the greatest of its sign, so that no sum is NaN. */
  private static void add(double x, GradientRows<DiagonalBatch> to, int at) {
    double[] sums = Objects.requireNonNull(to.sums);
    sums[at] = PairGradient.held(sums[at] + PairGradient.held(x));
  }
}
