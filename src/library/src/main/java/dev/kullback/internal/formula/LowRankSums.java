package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Capacitance;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Sums over the dimensions of a pair, by which {@link LowRankPair} computes KL, in the terms of its javadoc. A dimension is in one of {@link #LANES}
 * lanes, whatever the width of vectors; a lane has a sum of each block of {@link #BLOCK} dimensions, and the sum of these. Holds the working memory of
 * one thread.
 */
public abstract class LowRankSums {
  /** Dimensions of a block: what is multiplied of 8 columns, 24 KiB, stays in the L1 cache. */
  protected static final int BLOCK = 64;

  protected static final int LANES = 8;

  /** Numbers that arrays made one after the other are longer than they need be: a store delays loads that are 4 KiB away from it. */
  private static final int APART = 136;

  /** Greatest |x| of scales that are alike. */
  private static final double ALIKE = 0.25;

  /** Coefficients of t² to the ninth in {@code 1 − u/sinh u} for {@code t = sinh(u/2)}, the last first: the next term is 2⁻⁵³ of x − ln(1+x), where |x| is a quarter. */
  protected static final double[] SINH = sinh(9);

  final Capacitance capacitance = new Capacitance();

  /** r: the greater rank; columns, an even number of them, of which the last is 0 where r is odd; blocks. */
  protected int rank;

  protected int columns;
  protected int blocks;
  private int dimension;

  /** By dimension of p, to whole blocks: μ, the scale, 1/v, what multiplies a difference of scales, and uM⁻¹u. */
  protected double[] meanP = {};

  protected double[] scaleP = {};
  protected double[] inverses = {};
  protected double[] ratios = {};
  protected double[] leverages = {};

  /** The same of the pair: μ and scale of q, x, c, and d/v_p. */
  protected double[] meanQ = {};

  protected double[] scaleQ = {};
  protected double[] excesses = {};
  protected double[] changes = {};
  protected double[] differences = {};

  /** U and UM⁻¹, {@code [block][column][BLOCK]}. */
  protected double[] u = {};

  protected double[] solvedU = {};

  /** Columns of a block, {@code [column][BLOCK]}: W_q, G, V⁻¹G, cG and cW_q. */
  protected double[] w = {};

  protected double[] g = {};
  protected double[] weighedG = {};
  protected double[] changedG = {};
  protected double[] changedW = {};

  /** Sums by lane: P, Q, GᵀcG and WᵀcW, {@code [4][column][column]}, those of a column, {@code [4][column]}, and those of the diagonal. */
  protected double[] products = {};

  protected double[] ofColumns = {};
  protected final double[] ofDiagonal = new double[4 * LANES];

  /** M⁻¹ and M⁻¹K, r × r, what an error of the second is relative to, and {@code Σ_k K_kk M⁻¹_kk}. */
  double[] inverse = {};

  double[] weights = {};
  double[] weightSizes = {};
  double own;

  /** What the contract of double multiplies by, and the error of C (see {@link Capacitance}). */
  double condition;

  double error;

  /** P, Q and {@code W_qᵀcW_q}, r × r. */
  double[] ofUG = {};

  double[] ofGG = {};
  double[] ofWW = {};

  /** {@code UᵀV⁻¹d}, and the roots of {@code Σ |c| u²} and {@code Σ |c| g²} of each column. */
  double[] ud = {};

  double[] rootU = {};
  double[] rootG = {};

  /** {@code Σ x − ln(1+x) + d²/v}, {@code Σ d²/v}, the greatest |x|, {@code tr M⁻¹(Q_c + 2 P_c)} and {@code tr M⁻¹U_xc}. */
  double diagonal;

  double squares;
  protected double mostExcess;
  double traceOfG;
  double traceOfU;

  private final Variance vq = new Variance();
  private final Variance vp = new Variance();
  private final ScaleRatio scales = new ScaleRatio();

  /** Whose values are at hand, as the pairs of a column have p in common. */
  private @Nullable LowRankBatch ofP;

  private int rowOfP;

  private static double[] sinh(int count) {
    double[] coefficients = new double[count];
    double c = -1;
    for (int n = 1; n <= count; n++) {
      c *= -2.0 * n / (2 * n + 1);
      coefficients[count - n] = c;
    }
    return coefficients;
  }

  /** Takes x, c and d/v of a block of scales of one kind that may be alike, and adds d²/v, x − ln(1+x) and xc uM⁻¹u, and the greatest |x|, to those of each lane. */
  protected abstract void takeAlike(Scale kind, int from, int length);

  /** Sums the products of a block, whose W is at hand, of so many dimensions, whole lanes. */
  protected abstract void addUp(int block, int length);

  /** Adds multiples of a column of U in a block to one of UM⁻¹. */
  protected abstract void addSolved(int column, int solved, double by, int length);

  /** Drops the caller's batches. */
  void clear() {
    ofP = null;
  }

  /** Sums up a pair. */
  final void sum(LowRankBatch q, int i, LowRankBatch p, int j) {
    int d = q.dimension();
    int r = Math.max(q.rank(), p.rank());
    if (r != rank || d != dimension) {
      clear();
      rank = r;
      dimension = d;
      boolean hasRoom = false;
      try {
        makeRoom();
        hasRoom = true;
      } finally {
        rank = hasRoom ? r : -1; // where memory ran out, the next call tries again
      }
    }
    if (p != ofP || j != rowOfP) {
      ofP = null;
      takeP(p, j);
      ofP = p;
      rowOfP = j;
    }
    takeDiagonal(q, i, p, j);
    Arrays.fill(products, 0, 4 * columns * columns * LANES, 0);
    Arrays.fill(ofColumns, 0, 4 * columns * LANES, 0);
    for (int b = 0; b < blocks && r > 0; b++) {
      int length = copy(q, i, b, w, 0);
      addUp(b, length);
    }
    finish();
  }

  private void makeRoom() {
    columns = rank + rank % 2;
    blocks = Math.ceilDiv(dimension, BLOCK);
    int length = blocks * BLOCK;
    meanP = zeros(meanP, length);
    scaleP = zeros(scaleP, length);
    inverses = zeros(inverses, length);
    ratios = zeros(ratios, length);
    leverages = zeros(leverages, length);
    meanQ = zeros(meanQ, length);
    scaleQ = zeros(scaleQ, length);
    excesses = zeros(excesses, length);
    changes = zeros(changes, length);
    differences = zeros(differences, length);
    u = zeros(u, columns * length);
    solvedU = zeros(solvedU, columns * length);
    w = zeros(w, columns * BLOCK);
    g = zeros(g, columns * BLOCK);
    weighedG = zeros(weighedG, columns * BLOCK);
    changedG = zeros(changedG, columns * BLOCK);
    changedW = zeros(changedW, columns * BLOCK);
    products = zeros(products, 4 * columns * columns * LANES);
    ofColumns = zeros(ofColumns, 4 * columns * LANES);
    inverse = zeros(inverse, rank * rank);
    weights = zeros(weights, rank * rank);
    weightSizes = zeros(weightSizes, rank * rank);
    ofUG = zeros(ofUG, rank * rank);
    ofGG = zeros(ofGG, rank * rank);
    ofWW = zeros(ofWW, rank * rank);
    ud = zeros(ud, rank);
    rootU = zeros(rootU, rank);
    rootG = zeros(rootG, rank);
  }

  private static double[] zeros(double[] array, int length) {
    if (array.length < length) {
      return new double[length + APART];
    }
    Arrays.fill(array, 0);
    return array;
  }

  /** Copies the columns of a factor in a block, 0 in those that it lacks, and returns the dimensions there, rounded up to whole lanes of 0. */
  private int copy(LowRankBatch batch, int i, int b, double[] to, int at) {
    int d = batch.dimension();
    int r = batch.rank();
    int length = Math.min(BLOCK, d - b * BLOCK);
    int padded = padded(length);
    for (int k = 0; k < rank; k++) {
      int column = at + k * BLOCK;
      int end = k < r ? length : 0;
      if (k < r) {
        System.arraycopy(batch.factor(), (i * r + k) * d + b * BLOCK, to, column, length);
      }
      Arrays.fill(to, column + end, column + padded, 0);
    }
    return padded;
  }

  private static int padded(int length) {
    return Math.ceilDiv(length, LANES) * LANES;
  }

  /** Takes what depends on p alone. */
  private void takeP(LowRankBatch p, int j) {
    int d = p.dimension();
    DiagonalBatch diagonal = p.diagonal();
    Scale kind = diagonal.kind();
    diagonal.readMean(j, meanP);
    diagonal.readScale(j, scaleP);
    Arrays.fill(scaleP, d, blocks * BLOCK, kind.unit());
    for (int h = 0; h < d; h++) {
      double s = scaleP[h];
      inverses[h] = 1 / kind.variance(s);
      ratios[h] = kind == Scale.STD ? 1 / s : inverses[h];
    }
    capacitance.set(p, j, rank);
    condition = Math.clamp(capacitance.condition(), 1, 100);
    error = capacitance.error();
    invert();
    Arrays.fill(leverages, 0, blocks * BLOCK, 0);
    Arrays.fill(solvedU, 0, blocks * columns * BLOCK, 0);
    for (int b = 0; b < blocks && rank > 0; b++) {
      int at = b * columns * BLOCK;
      int length = copy(p, j, b, u, at);
      for (int k = 0; k < rank; k++) {
        for (int l = 0; l < rank; l++) {
          addSolved(at + l * BLOCK, at + k * BLOCK, inverse[k * rank + l], length);
        }
        for (int t = 0; t < length; t++) {
          leverages[b * BLOCK + t] += u[at + k * BLOCK + t] * solvedU[at + k * BLOCK + t];
        }
      }
    }
  }

  /**
   * Computes M⁻¹ and M⁻¹K. Where a column of U is nearly another's multiple, elements of the latter cancel; an error of C, times {@link #error}, changes one
   * by the root of M⁻¹_kk K_ll, as {@code KM⁻¹K ≤ K}.
   */
  private void invert() {
    int r = rank;
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
    double[] gram = capacitance.gram();
    own = 0;
    for (int k = 0; k < r; k++) {
      own += gram[k * (r + 1)] * inverse[k * (r + 1)];
      for (int l = 0; l < r; l++) {
        double sum = 0;
        double size = Math.sqrt(inverse[k * (r + 1)] * gram[l * (r + 1)]);
        for (int m = 0; m < r; m++) {
          double product = inverse[k * r + m] * gram[m * r + l];
          sum += product;
          size += Math.abs(product);
        }
        weights[k * r + l] = sum;
        weightSizes[k * r + l] = size;
      }
    }
  }

  /** Takes what weighs the dimensions, and sums what is of them alone. */
  private void takeDiagonal(LowRankBatch q, int i, LowRankBatch p, int j) {
    DiagonalBatch dq = q.diagonal();
    DiagonalBatch dp = p.diagonal();
    dq.readMean(i, meanQ);
    dq.readScale(i, scaleQ);
    Arrays.fill(scaleQ, dimension, blocks * BLOCK, dq.kind().unit());
    mostExcess = 0;
    if (dq.kind() == dp.kind()) {
      Arrays.fill(ofDiagonal, 0);
      for (int h = 0; h < dimension; h += BLOCK) {
        takeAlike(dq.kind(), h, padded(Math.min(BLOCK, dimension - h)));
      }
      for (int lane = 0; lane < LANES; lane++) {
        mostExcess = Math.max(mostExcess, ofDiagonal[3 * LANES + lane]);
      }
    }
    if (dq.kind() == dp.kind() && mostExcess <= ALIKE) {
      squares = total(ofDiagonal, 0);
      diagonal = total(ofDiagonal, LANES) + squares;
      traceOfU = total(ofDiagonal, 2 * LANES);
    } else {
      takeUnlike(dimension, dq.kind(), dp.kind());
      diagonal = 2 * PairKl.stable(scales, dq, i, dp, j);
    }
  }

  /** Takes x, c and d/v of any scales. */
  private void takeUnlike(int d, Scale kindQ, Scale kindP) {
    mostExcess = 0;
    squares = 0;
    for (int h = 0; h < d; h++) {
      double sq = scaleQ[h];
      double sp = scaleP[h];
      double x;
      if (kindQ == kindP) {
        x = kindQ.excess(sq, sp);
      } else {
        vq.set(kindQ, sq);
        vp.set(kindP, sp);
        x = Variance.excess(vq, vp);
      }
      double difference = meanQ[h] - meanP[h];
      double c = x == 0 ? 0 : x / kindQ.variance(sq);
      excesses[h] = x;
      changes[h] = c;
      mostExcess = Math.max(mostExcess, Math.abs(x));
      differences[h] = difference * inverses[h];
      squares += difference * differences[h];
    }
    traceOfU = 0;
    for (int h = 0; h < d; h += BLOCK) {
      double sum = 0;
      for (int k = h; k < Math.min(d, h + BLOCK); k++) {
        sum += changes[k] * excesses[k] * leverages[k];
      }
      traceOfU += sum;
    }
  }

  /** Takes the sums from their lanes. */
  private void finish() {
    int n = columns * columns * LANES;
    double sum = 0;
    double ofChange = 0;
    for (int k = 0; k < rank; k++) {
      int at = k * LANES;
      ud[k] = total(ofColumns, at);
      ofChange += total(ofColumns, at + columns * LANES);
      rootU[k] = Math.sqrt(total(ofColumns, at + 2 * columns * LANES));
      rootG[k] = Math.sqrt(total(ofColumns, at + 3 * columns * LANES));
      for (int l = 0; l < rank; l++) {
        ofUG[k * rank + l] = total(products, (k * columns + l) * LANES);
      }
      for (int l = 0; l <= k; l++) {
        int of = n + (k * columns + l) * LANES;
        ofGG[k * rank + l] = ofGG[l * rank + k] = total(products, of);
        ofWW[k * rank + l] = ofWW[l * rank + k] = total(products, of + 2 * n);
        sum += (l < k ? 2 : 1) * inverse[k * rank + l] * total(products, of + n);
      }
    }
    traceOfG = sum + 2 * ofChange;
  }

  private static double total(double[] lanes, int at) {
    return ((lanes[at] + lanes[at + 4]) + (lanes[at + 2] + lanes[at + 6]))
        + ((lanes[at + 1] + lanes[at + 5]) + (lanes[at + 3] + lanes[at + 7]));
  }
}
