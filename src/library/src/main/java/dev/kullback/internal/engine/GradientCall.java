package dev.kullback.internal.engine;

import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.vector.Cotangents;
import org.jspecify.annotations.Nullable;

/** What a caller wants of gradients: cotangents and where results go. */
public final class GradientCall {
  static final GradientCall NONE = new GradientCall();

  /** What the cotangents are of. */
  public enum Of {
    /** Entries of a matrix. */
    ENTRIES,
    /** Pairs of rows. */
    PAIRS,
    /** Rows' sums. */
    SUMS,
    /** Rows' logSumExp, by whose weights they are to be multiplied. */
    SOFTMAX
  }

  final Cotangents cotangents = new Cotangents();
  private Of of = Of.ENTRIES;
  private double @Nullable [] logWeights;
  private final Target q = new Target();
  private final Target p = new Target();

  /** Where the gradient of a batch goes, if anywhere. */
  static final class Target {
    final Results means = new Results();
    final Results scales = new Results();
    private @Nullable Object meanArray;
    private @Nullable Object scaleArray;
    private int meanLength = -1;
    private int scaleLength = -1;

    private void set(Object mean, int meanLength, Object scale, int scaleLength) {
      meanArray = mean;
      scaleArray = scale;
      this.meanLength = meanLength;
      this.scaleLength = scaleLength;
    }

    private boolean has(@Nullable Object array) {
      return array != null && (array == meanArray || array == scaleArray);
    }
  }

  /** Sends the gradient of q, or of p, to arrays. */
  public void send(boolean ofQ, float[] mean, float[] scale) {
    Target to = target(ofQ);
    to.set(mean, mean.length, scale, scale.length);
    to.means.set(mean);
    to.scales.set(scale);
  }

  /** Sends the gradient of q, or of p, to arrays. */
  public void send(boolean ofQ, double[] mean, double[] scale) {
    Target to = target(ofQ);
    to.set(mean, mean.length, scale, scale.length);
    to.means.set(mean);
    to.scales.set(scale);
  }

  Target target(boolean ofQ) {
    return ofQ ? q : p;
  }

  /** Whether an array for q's gradient is one for p's, too. */
  public boolean sendsTwice() {
    return p.has(q.meanArray) || p.has(q.scaleArray);
  }

  /** Whether the gradient of q, or of p, goes anywhere. */
  public boolean isSent(boolean ofQ) {
    return meanLength(ofQ) >= 0;
  }

  /** Returns the elements of the array for the gradient by q's means, or p's; −1 if it goes nowhere. */
  public int meanLength(boolean ofQ) {
    return target(ofQ).meanLength;
  }

  /** Returns those of the array for the gradient by scales. */
  public int scaleLength(boolean ofQ) {
    return target(ofQ).scaleLength;
  }

  /** Sets the cotangents of a matrix, one of the two arrays. */
  public void set(float @Nullable [] matrix32, double @Nullable [] matrix64, int columns) {
    cotangents.set(matrix32, matrix64, columns);
    of = Of.ENTRIES;
    logWeights = null;
  }

  /** Sets the cotangents of rows. */
  public void set(Of of, double[] cotangents, double @Nullable [] logWeights) {
    this.cotangents.set(cotangents);
    this.of = of;
    this.logWeights = logWeights;
  }

  /** Drops the cotangents of a call. */
  public void clear() {
    set(null, null, 0);
  }

  Of of() {
    return of;
  }

  double @Nullable [] logWeights() {
    return logWeights;
  }
}
