package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Capacitance;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Sums over the dimensions of a pair, by which {@link LowRankPair} computes KL, in the terms of its javadoc. Each is of blocks of {@link #BLOCK}
 * dimensions, as the bound of its error has it. Holds the working memory of one thread.
 */
public abstract class LowRankSums {
  /** Dimensions of a block. */
  protected static final int BLOCK = 64;

  final Capacitance capacitance = new Capacitance();

  /** r: the greater rank, and number of blocks. */
  protected int rank;

  protected int blocks;

  /** By block and dimension, 0 beyond them: 1/v_p, c, xc and d/v_p; whether all c are 0, and the greatest |x|. */
  protected double[][] inverses = {};

  protected double[][] changes = {};
  protected double[][] excesses = {};
  protected double[][] differences = {};
  protected boolean isShared;
  double mostExcess;

  /** M⁻¹, r × r. */
  protected double[] inverse = {};

  /** P, Q and {@code W_qᵀcW_q}, r × r. */
  protected double[] ofUG = {};

  protected double[] ofGG = {};
  protected double[] ofWW = {};

  /** {@code UᵀV⁻¹d}, and {@code Σ |c| u²} and {@code Σ |c| g²} of each column. */
  protected double[] ud = {};

  protected double[] sizeU = {};
  protected double[] sizeG = {};

  /** {@code tr M⁻¹(Q_c + 2 P_c)} and {@code tr M⁻¹U_xc}. */
  protected double traceOfG;

  protected double traceOfU;

  private final Variance vq = new Variance();
  private final Variance vp = new Variance();

  /** Whose values are at hand, as the pairs of a column have p in common. */
  private @Nullable LowRankBatch ofP;

  private int rowOfP;

  /** Makes room for other numbers of blocks and columns than before: the arrays whose lengths tell it are made last, as memory may run out. */
  protected abstract void makeRoom();

  /** Takes what else depends on p alone. */
  protected abstract void takeP(LowRankBatch p, int j);

  /** Sums all but what {@link #sum} does. */
  protected abstract void sumProducts(LowRankBatch q, int i);

  /** Drops the caller's batches. */
  protected void clear() {
    ofP = null;
  }

  /** Sums up a pair; returns {@code Σ d²/v_p}. */
  final double sum(LowRankBatch q, int i, LowRankBatch p, int j) {
    int d = q.dimension();
    int r = Math.max(q.rank(), p.rank());
    int needed = Math.ceilDiv(d, BLOCK);
    if (r != rank || needed != blocks) {
      clear();
      rank = r;
      blocks = needed;
      boolean hasRoom = false;
      try {
        makeOwnRoom();
        makeRoom();
        hasRoom = true;
      } finally {
        rank = hasRoom ? r : -1; // where memory ran out, the next call tries again
      }
    }
    if (p != ofP || j != rowOfP) {
      takeOwnP(p, j);
      takeP(p, j);
      ofP = p;
      rowOfP = j;
    }
    double squares = take(q, i, p, j);
    sumProducts(q, i);
    return squares;
  }

  private void makeOwnRoom() {
    if (inverses.length < blocks) {
      changes = new double[blocks][BLOCK];
      excesses = new double[blocks][BLOCK];
      differences = new double[blocks][BLOCK];
      inverses = new double[blocks][BLOCK];
    }
    int n = rank * rank;
    if (inverse.length < n) {
      ofUG = new double[n];
      ofGG = new double[n];
      ofWW = new double[n];
      ud = new double[rank];
      sizeU = new double[rank];
      sizeG = new double[rank];
      inverse = new double[n];
    }
  }

  /** Takes V⁻¹, C and M⁻¹. */
  private void takeOwnP(LowRankBatch p, int j) {
    int d = p.dimension();
    capacitance.set(p, j, rank);
    invert(rank);
    Scale kind = p.diagonal().kind();
    for (int b = 0; b < blocks; b++) {
      int length = Math.clamp(d - b * BLOCK, 0, BLOCK);
      for (int t = 0, at = j * d + b * BLOCK; t < length; t++, at++) {
        inverses[b][t] = 1 / kind.variance(p.diagonal().scale(at));
      }
      Arrays.fill(inverses[b], length, BLOCK, 0);
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
}
