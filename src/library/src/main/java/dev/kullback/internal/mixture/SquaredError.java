package dev.kullback.internal.mixture;

import static java.util.Objects.requireNonNull;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.DoubleEquality;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Finds the two components whose merger adds least to {@code J = ∫ (f − g)²}, as a share of {@code ∫ f²}: f is the mixture at first, and g what
 * it is now (J. L. Williams and P. S. Maybeck, "Cost-function-based Gaussian mixture reduction for target tracking", Fusion 2003). With
 * {@code h = m − i − j}, m being what i and j merge into, each with its weight, and {@code e = g − f}, a merger adds
 *
 * <pre>
 * ∫ h² + 2 ∫ h e,  e = Σ (a merged component − the original ones in it)
 * </pre>
 *
 * <p>h and m stay as they are as long as i and j do, and each merger adds its own h_t to e. So what a cost has changed by since it was computed
 * is {@code 2 ∫ m h_t}, three integrals for each merger, less what is kept of i and j alone. It is within {@code ±2 ‖h‖ Σ ‖h_t‖}, and its first part within
 * {@code ±2 ‖m‖ Σ ‖h_t‖}; where a cost was never computed, ‖e‖ stands for the sum. Costs are computed only where these bounds leave it open which is the
 * least.
 *
 * <p>Integrals are made of the logarithms of overlaps, of weights and of {@code ∫ f²}, and none exceeds N²: densities may be beyond double's
 * range. Used by one thread, again and again: once its arrays are long enough, it allocates nothing.
 */
final class SquaredError {
  /** Costs that differ by less than this share of the least one's terms may be equal: rounding does less to them. */
  private static final double TIE = 0x1p-38;

  /** More than what rounding does to a squared norm, as a share of its terms. */
  private static final double ROUNDING = 0x1p-46;

  /** Bytes of a pair. */
  private static final long BYTES = 7 * Double.BYTES + Integer.BYTES;

  private static final int NONE = -1;

  /** Row that has what the pair at hand would merge into. */
  private static final int CANDIDATE = 0;

  private final Components components;
  private final int dimension;

  /** The most components that there is room for, and the places of those that are left, ascending. */
  private int capacity;

  private int[] left = {};
  private int size;

  /** The component at each place, and its row. */
  private int[] component = {};

  private int[] row = {};

  /** How many mergers were made, and the rows of the two that each has merged. */
  private int mergers;

  private int[] lower = {};
  private int[] upper = {};

  /**
   * Means and scales: of the candidate, of each original component from row 1 on, and of what each merger made from row {@code 1 + capacity}
   * on. Scales are variances or packed factors.
   */
  private double[] mean = {};

  private double[] scale = {};
  private double[] low = {};
  private @Nullable Overlap overlaps;

  /** Weight of each row, and its logarithm less half of that of {@code ∫ f²}. */
  private double[] weight = {};

  private double[] logWeight = {};
  private double halfUnit;

  /** Of each component k: {@code ∫ k²}, and {@code ∫ k e}, its rounding errors, and the sum of its terms' absolute values. */
  private double[] square = {};

  private double[] error = {};
  private double[] errorLow = {};
  private double[] errorTerms = {};

  /** Of each pair: {@code ∫ i j}, {@code ∫ h²}, and bounds above ‖h‖, 0 where h is 0, and ‖m‖. */
  private double[] overlap = {};

  private double[] pairSquare = {};
  private double[] norm = {};
  private double[] mergedNorm = {};

  /**
   * Of each pair, after as many mergers as {@link #time} says, whose complement it is where the merger waits, as double does not hold it: the cost, {@code ∫ m e}, and the
   * sum of the absolute values of the terms of both that are of this pair alone; or bounds below the first two, and the third with the other sign.
   */
  private double[] cost = {};

  private double[] cross = {};
  private double[] terms = {};
  private int[] time = {};

  /** Bounds above {@code Σ ‖h_t‖} of the first mergers; and {@code ∫ e²}, and what rounding has done to it at most. */
  private double[] moved = {};

  private double increase;
  private double rounding;

  /** A sum, its rounding errors, and the sum of its terms' absolute values. */
  private double sum;

  private double sumLow;
  private double sumTerms;

  /** The pair of the least cost so far, and the greatest cost that may be equal. */
  private int best;

  private double limit;
  private boolean hasRisen;

  /** The pair that was found. */
  private int first;

  private int second;

  /** Whether all pairs wait. */
  private boolean isLast;

  private final double[] column;
  private final LongConsumer pass;

  SquaredError(Components components) {
    this.components = components;
    dimension = components.dimension();
    column = new double[dimension];
    pass = this::pass;
  }

  private void pass(long products) {
    components.checkpoint.pass(Checkpoint.ofPlain(products));
  }

  /** Takes the components that are left, ascending, as f. */
  void begin(int[] of, int count) {
    if (capacity < count) {
      grow(count);
    }
    size = count;
    System.arraycopy(of, 0, component, 0, count);
    mergers = 0;
    increase = 0;
    rounding = 0;
    halfUnit = 0;
    for (int k = 0; k < size; k++) {
      left[k] = k;
      copy(k, 1 + k);
      error[k] = 0;
      errorLow[k] = 0;
      errorTerms[k] = 0;
    }
    setUnit();
    for (int k = 1; k < size; k++) {
      for (int l = 0; l < k; l++) {
        setPair(l, k);
      }
    }
  }

  private void grow(int n) {
    long pairs = (long) n * (n - 1) / 2;
    long numbers = (1 + 2L * n) * components.length;
    long bytes = BYTES * pairs + 2L * Double.BYTES * numbers;
    if (Math.max(pairs, numbers) > Batch.MOST_ELEMENTS
        || bytes > Runtime.getRuntime().maxMemory()) {
      throw new IllegalArgumentException(
          "by Williams' rule, %d components take %d MB, more than arrays or the heap hold; take another rule, or leave light ones out"
              .formatted(n, bytes >> 20));
    }
    capacity = 0; // until all have room
    int rows = 1 + 2 * n;
    if (components.isFull()) {
      mean = new double[rows * dimension];
      scale = new double[rows * components.length];
      low = new double[scale.length];
      Batch batch = new FullBatch(mean, scale, null, dimension, true, true);
      overlaps = Overlap.of(batch, batch);
    } else {
      DiagonalBatch batch = DiagonalBatch.ofTaken(rows, dimension, Scale.VARIANCE, true, false);
      mean = batch.mean64();
      scale = batch.scale64();
      overlaps = Overlap.of(batch, batch);
    }
    weight = new double[rows];
    logWeight = new double[rows];
    left = new int[n];
    component = new int[n];
    row = new int[n];
    lower = new int[n];
    upper = new int[n];
    moved = new double[n];
    square = new double[n];
    error = new double[n];
    errorLow = new double[n];
    errorTerms = new double[n];
    overlap = new double[(int) pairs];
    pairSquare = new double[overlap.length];
    norm = new double[overlap.length];
    mergedNorm = new double[overlap.length];
    cost = new double[overlap.length];
    cross = new double[overlap.length];
    terms = new double[overlap.length];
    time = new int[overlap.length];
    capacity = n;
  }

  /** Returns the place of a pair. */
  private static int index(int i, int j) {
    int last = Math.max(i, j);
    return (int) ((long) last * (last - 1) / 2) + Math.min(i, j);
  }

  /** Copies the component at a place to a row, which is its row from now on. */
  private void copy(int k, int to) {
    int i = component[k];
    components.copyMean(i, mean, to * dimension);
    components.copyScale(i, scale, low, to * components.length);
    weigh(to, components.weight(i));
    row[k] = to;
  }

  private void weigh(int at, double w) {
    weight[at] = w;
    logWeight[at] = Math.log(w) - halfUnit;
  }

  /** Sets overlaps, in the unit in which {@code ∫ f²} is 1. */
  private void setUnit() {
    double most = Double.NEGATIVE_INFINITY;
    for (int k = 0; k < size; k++) {
      int j = left[k];
      for (int l = 0; l < k; l++) {
        int p = index(left[l], j);
        overlap[p] = logIntegral(row[left[l]], row[j]);
        most = Math.max(most, overlap[p]);
      }
      square[j] = logIntegral(row[j], row[j]);
      most = Math.max(most, square[j]);
    }
    clearSum();
    for (int k = 0; k < size; k++) {
      for (int l = 0; l < k; l++) {
        add(2 * Math.exp(overlap[index(left[l], left[k])] - most));
      }
      add(Math.exp(square[left[k]] - most));
    }
    halfUnit = 0.5 * (most + Math.log(sum + sumLow));
    for (int k = 0; k < size; k++) {
      int j = left[k];
      for (int l = 0; l < k; l++) {
        int p = index(left[l], j);
        overlap[p] = Math.exp(overlap[p] - 2 * halfUnit);
      }
      square[j] = Math.exp(square[j] - 2 * halfUnit);
      weigh(row[j], weight[row[j]]);
    }
  }

  /** Returns the logarithm of the integral of two rows' product. */
  private double logIntegral(int a, int b) {
    return weight[a] == 0 || weight[b] == 0
        ? Double.NEGATIVE_INFINITY
        : requireNonNull(overlaps).log(a, b) + logWeight[a] + logWeight[b];
  }

  private double integral(int a, int b) {
    return Math.exp(logIntegral(a, b));
  }

  private void clearSum() {
    sum = 0;
    sumLow = 0;
    sumTerms = 0;
  }

  private void add(double x) {
    double next = sum + x;
    sumLow += Compensation.error(sum, x, next);
    sum = next;
    sumTerms += Math.abs(x);
  }

  /** Sets what stays of a pair, whose overlap is known, and bounds below its cost, or the cost as long as nothing was merged. */
  private void setPair(int i, int j) {
    int p = index(i, j);
    time[p] = mergers;
    norm[p] = 0;
    cost[p] = 0;
    terms[p] = 0;
    if (weight[row[i]] == 0 || weight[row[j]] == 0 || areEqual(row[i], row[j])) {
      return;
    }
    setCandidate(row[i], row[j]);
    double merged = integral(CANDIDATE, CANDIDATE);
    double across = integral(CANDIDATE, row[i]) + integral(CANDIDATE, row[j]);
    double apart = square[i] + square[j] + 2 * overlap[p];
    double all = merged + apart + 2 * across;
    double most = Math.min(moved[mergers], Math.sqrt(Math.max(0, increase) + rounding));
    pairSquare[p] = merged + apart - 2 * across;
    norm[p] = Math.sqrt(Math.max(0, pairSquare[p]) + ROUNDING * all);
    if (norm[p] == 0) {
      return; // all integrals are hardly above 0
    }
    mergedNorm[p] = Math.sqrt(merged);
    cost[p] = pairSquare[p] - 2 * norm[p] * most;
    cross[p] = -mergedNorm[p] * most;
    terms[p] = mergers == 0 ? all : -all;
  }

  private boolean areEqual(int a, int b) {
    int d = dimension;
    int n = components.length;
    return DoubleEquality.areEqual(mean, a * d, mean, b * d, d)
        && DoubleEquality.areEqual(scale, a * n, scale, b * n, n);
  }

  /** Makes what two rows merge into. */
  private void setCandidate(int a, int b) {
    double w = weight[a] + weight[b];
    double s = weight[a] / w;
    double t = weight[b] / w;
    weigh(CANDIDATE, w);
    int n = components.length;
    for (int h = 0; h < dimension; h++) {
      column[h] = mean[b * dimension + h] - mean[a * dimension + h];
      mean[h] = mean[a * dimension + h] + t * column[h];
    }
    if (components.isFull()) {
      for (int k = 0; k < n; k++) {
        scale[k] = Math.sqrt(s) * scale[a * n + k];
      }
      for (int h = 0; h < dimension; h++) {
        column[h] *= Math.sqrt(s * t);
      }
      Cholesky.update(scale, column, 0, dimension);
      Cholesky.add(scale, scale, b * n, Math.sqrt(t), dimension, column, pass);
    } else {
      for (int h = 0; h < dimension; h++) {
        double spread = s * column[h] * (t * column[h]);
        scale[h] = s * scale[a * n + h] + t * scale[b * n + h] + spread;
      }
    }
  }

  /** Computes the cost of a pair. */
  private void evaluate(int i, int j) {
    int p = index(i, j);
    if (norm[p] > 0) {
      setCandidate(row[i], row[j]);
      clearSum();
      boolean wasKnown = terms[p] >= 0;
      addError(CANDIDATE, wasKnown ? since(p) : 0);
      cross[p] = (wasKnown ? cross[p] : 0) + (sum + sumLow);
      terms[p] = Math.abs(terms[p]) + 2 * sumTerms;
      cost[p] = pairSquare[p] + 2 * (cross[p] - error(i) - error(j));
    }
    time[p] = isWaiting(p) ? ~mergers : mergers;
  }

  private boolean isWaiting(int p) {
    return time[p] < 0;
  }

  /** Returns the number of mergers after which a pair's numbers are. */
  private int since(int p) {
    return isWaiting(p) ? ~time[p] : time[p];
  }

  /** Returns the integral of a component's product with e. */
  private double error(int i) {
    return error[i] + errorLow[i];
  }

  /** Adds up the integral of a row's product with what the mergers from one on added to e. */
  private void addError(int of, int from) {
    for (int t = from; t < mergers; t++) {
      add(integral(of, 1 + capacity + t));
      add(-integral(of, lower[t]));
      add(-integral(of, upper[t]));
    }
  }

  /**
   * Finds the pair of the least cost, the lowest of those whose costs may be equal to it, among all that do not wait; or among all, if there are
   * no others.
   */
  void find() {
    best = NONE;
    limit = Double.POSITIVE_INFINITY;
    offerLeast();
    isLast = best == NONE;
    do {
      hasRisen = false;
      for (int k = 1; k < size; k++) {
        for (int l = 0; l < k; l++) {
          offer(left[l], left[k]);
        }
      }
    } while (hasRisen);
    best = NONE;
    for (int l = 0; l < size && best == NONE; l++) {
      for (int k = l + 1; k < size && best == NONE; k++) {
        int p = index(left[l], left[k]);
        if (isWaiting(p) == isLast && isKnown(p) && cost[p] <= limit) {
          best = p;
          first = left[l];
          second = left[k];
        }
      }
    }
  }

  /** Offers the pair of the least bound, so that it rules out most others. */
  private void offerLeast() {
    double least = Double.POSITIVE_INFINITY;
    int i = NONE;
    int j = NONE;
    for (int k = 1; k < size; k++) {
      for (int l = 0; l < k; l++) {
        double bound = bound(left[l], left[k]);
        if (bound < least) {
          least = bound;
          i = left[l];
          j = left[k];
        }
      }
    }
    if (i != NONE) {
      offer(i, j);
    }
  }

  /** Computes the cost of a pair, if it may be the least. */
  private void offer(int i, int j) {
    if (isLast || bound(i, j) <= limit) {
      int p = index(i, j);
      if (!isKnown(p)) {
        evaluate(i, j);
      }
      if (best == NONE || cost[p] < cost[best]) {
        double before = limit;
        best = p;
        limit = cost[p] + TIE * (terms[p] + 2 * (errorTerms[i] + errorTerms[j]));
        hasRisen |= limit > before;
      }
    }
  }

  /** Whether the cost of a pair is that of now. */
  private boolean isKnown(int p) {
    return since(p) == mergers && terms[p] >= 0;
  }

  /** Returns a bound below the cost of a pair, which it is if that is known; +∞ where the pair waits. */
  private double bound(int i, int j) {
    int p = index(i, j);
    if (isWaiting(p)) {
      return Double.POSITIVE_INFINITY;
    }
    if (norm[p] == 0 || isKnown(p)) {
      return cost[p];
    }
    double change = moved[mergers] - moved[time[p]];
    double rest = pairSquare[p] + 2 * (cross[p] - mergedNorm[p] * change - error(i) - error(j));
    return Math.max(rest, cost[p] - 2 * norm[p] * change);
  }

  /** Returns the lower component of the pair that was found. */
  int first() {
    return component[first];
  }

  int second() {
    return component[second];
  }

  /** Returns what the merger of the pair that was found adds to J. */
  double cost() {
    return cost[best];
  }

  /** Whether all pairs wait. */
  boolean isLast() {
    return isLast;
  }

  /** Has the pair that was found wait. */
  void postpone() {
    time[best] = ~time[best];
  }

  /** Follows the merger of the pair that was found. */
  void follow() {
    int i = first;
    int j = second;
    increase += cost[best];
    rounding += TIE * (terms[best] + 2 * (errorTerms[i] + errorTerms[j]));
    moved[mergers + 1] = moved[mergers] + norm[best];
    lower[mergers] = row[i];
    upper[mergers] = row[j];
    double signI = row[i] > capacity ? -1 : 1; // a merged one is a term of e no more
    double signJ = row[j] > capacity ? -1 : 1;
    copy(i, 1 + capacity + mergers);
    mergers++;
    size = remove(j);
    square[i] = integral(row[i], row[i]);
    for (int l = 0; l < size; l++) {
      int k = left[l];
      if (k != i) {
        double own = overlap[index(i, k)];
        double other = overlap[index(j, k)];
        double merged = integral(row[i], row[k]);
        addError(k, merged, merged);
        addError(k, -own, signI * own);
        addError(k, -other, signJ * other);
        overlap[index(i, k)] = merged;
      }
    }
    clearSum();
    addError(row[i], 0);
    error[i] = sum;
    errorLow[i] = sumLow;
    errorTerms[i] = sumTerms;
    for (int l = 0; l < size; l++) {
      if (left[l] != i) {
        setPair(i, left[l]);
      }
    }
  }

  private void addError(int k, double x, double term) {
    double next = error[k] + x;
    errorLow[k] += Compensation.error(error[k], x, next);
    error[k] = next;
    errorTerms[k] = Math.max(0, errorTerms[k] + term);
  }

  private int remove(int j) {
    int n = 0;
    for (int k = 0; k < size; k++) {
      left[n] = left[k];
      n += left[k] == j ? 0 : 1;
    }
    return n;
  }
}
