package dev.kullback.internal.engine;

import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What a caller wants of gradients: cotangents and where results go. Arrays are float or double, one of each pair. */
public final class GradientCall {
  static final GradientCall NONE = new GradientCall();

  /** Cotangents of a matrix, or of rows. */
  private float @Nullable [] weights32;

  private double @Nullable [] weights64;

  private boolean isMatrix;
  private boolean isSoftmax;
  private boolean isWide;
  private double @Nullable [] logWeights;

  private final Target q = new Target();
  private final Target p = new Target();

  /** Where the gradient of a batch goes, if anywhere. */
  private static final class Target {
    float @Nullable [] mean32;
    float @Nullable [] scale32;
    double @Nullable [] mean64;
    double @Nullable [] scale64;

    private static void put(
        double[] from,
        int first,
        int n,
        float @Nullable [] to32,
        double @Nullable [] to64,
        int at) {
      if (to32 != null) {
        for (int k = 0; k < n; k++) {
          to32[at + k] = (float) from[first + k];
        }
      } else if (to64 != null) {
        System.arraycopy(from, first, to64, at, n);
      }
    }

    /** Whether an array is one of these. */
    private boolean has(@Nullable Object array) {
      return array != null
          && (array == mean32 || array == scale32 || array == mean64 || array == scale64);
    }

    private static int length(float @Nullable [] array32, double @Nullable [] array64) {
      return array32 != null ? array32.length : array64 != null ? array64.length : -1;
    }
  }

  /** Sends the gradient of q, or of p, to arrays. */
  public void send(boolean ofQ, float[] mean, float[] scale) {
    Target target = ofQ ? q : p;
    target.mean64 = null;
    target.scale64 = null;
    target.mean32 = mean;
    target.scale32 = scale;
  }

  /** Sends the gradient of q, or of p, to arrays. */
  public void send(boolean ofQ, double[] mean, double[] scale) {
    Target target = ofQ ? q : p;
    target.mean32 = null;
    target.scale32 = null;
    target.mean64 = mean;
    target.scale64 = scale;
  }

  /** Whether an array for q's gradient is one for p's, too. */
  public boolean sendsTwice() {
    return p.has(q.mean32) || p.has(q.scale32) || p.has(q.mean64) || p.has(q.scale64);
  }

  /** Whether the gradient of q, or of p, goes anywhere. */
  public boolean isSent(boolean ofQ) {
    return meanLength(ofQ) >= 0;
  }

  /** Returns the elements of the array for the gradient by q's means, or p's; −1 if it goes nowhere. */
  public int meanLength(boolean ofQ) {
    Target to = ofQ ? q : p;
    return Target.length(to.mean32, to.mean64);
  }

  /** Returns those of the array for the gradient by scales. */
  public int scaleLength(boolean ofQ) {
    Target to = ofQ ? q : p;
    return Target.length(to.scale32, to.scale64);
  }

  /** Sets the cotangents of a call, one of the two arrays. */
  public void set(
      float @Nullable [] weights32,
      double @Nullable [] weights64,
      boolean isMatrix,
      boolean isSoftmax,
      double @Nullable [] logWeights,
      boolean isWide) {
    this.weights32 = weights32;
    this.weights64 = weights64;
    this.isMatrix = isMatrix;
    this.isSoftmax = isSoftmax;
    this.logWeights = logWeights;
    this.isWide = isWide;
  }

  /** Drops the cotangents of a call. */
  public void clear() {
    set(null, null, false, false, null, false);
  }

  /** Whether a row's cotangent is to be multiplied by the weights of its logSumExp. */
  boolean isSoftmax() {
    return isSoftmax;
  }

  /** Whether results are to have double's accuracy. */
  boolean isWide() {
    return isWide;
  }

  double @Nullable [] logWeights() {
    return logWeights;
  }

  /** Stores derivatives by n elements of means from an index on. */
  void putMean(boolean ofQ, int at, int n, double[] from, int first) {
    Target to = ofQ ? q : p;
    Target.put(from, first, n, to.mean32, to.mean64, at);
  }

  /** Stores derivatives by n elements of scales from an index on. */
  void putScale(boolean ofQ, int at, int n, double[] from, int first) {
    Target to = ofQ ? q : p;
    Target.put(from, first, n, to.scale32, to.scale64, at);
  }

  /** Makes n derivatives by scales from an index on 0. */
  void clearScale(boolean ofQ, int at, int n) {
    Target to = ofQ ? q : p;
    if (to.scale32 != null) {
      Arrays.fill(to.scale32, at, at + n, 0);
    } else if (to.scale64 != null) {
      Arrays.fill(to.scale64, at, at + n, 0);
    }
  }

  /** Returns the cotangents of rows. */
  double[] weights() {
    return Objects.requireNonNull(weights64);
  }

  /** Returns the cotangent of a row. */
  double weight(int i) {
    return weights64 != null ? weights64[i] : 0;
  }

  /** Copies the cotangents of row i and columns [column, end) to an index and behind it. */
  void readWeights(int i, int columns, int column, int end, double[] to, int at) {
    int length = end - column;
    int first = i * columns + column;
    if (!isMatrix) {
      Arrays.fill(to, at, at + length, weight(i));
    } else if (weights64 != null) {
      System.arraycopy(weights64, first, to, at, length);
    } else if (weights32 != null) {
      float[] from = weights32;
      for (int k = 0; k < length; k++) {
        to[at + k] = from[first + k];
      }
    }
  }

  /** Copies them rounded to float; returns whether each is 0 or of a magnitude in [least, most]. */
  boolean readWeights(
      int i, int columns, int column, int end, float[] to, int at, float least, float most) {
    int length = end - column;
    int first = i * columns + column;
    if (!isMatrix) {
      double weight = weight(i);
      Arrays.fill(to, at, at + length, (float) weight);
      return isWithin(weight, least, most);
    }
    if (weights64 != null) {
      return narrow(weights64, first, length, to, at, least, most);
    }
    boolean are = true;
    if (weights32 != null) {
      System.arraycopy(weights32, first, to, at, length);
      for (int k = at; k < at + length; k++) {
        float size = Math.abs(to[k]);
        are &= size <= most && (size >= least || size == 0);
      }
    }
    return are;
  }

  /** Copies n numbers rounded to float; returns whether each is 0 or of a magnitude in [least, most], in one pass, as two took twice the time. */
  static boolean narrow(
      double[] from, int first, int n, float[] to, int at, double least, double most) {
    boolean are = true;
    for (int k = 0; k < n; k++) {
      double x = from[first + k];
      are &= isWithin(x, least, most);
      to[at + k] = (float) x;
    }
    return are;
  }

  /** Whether n numbers are each 0 or of a magnitude in [least, most]. */
  static boolean areWithin(double[] x, int from, int n, double least, double most) {
    boolean are = true;
    for (int k = from; k < from + n; k++) {
      are &= isWithin(x[k], least, most);
    }
    return are;
  }

  private static boolean isWithin(double x, double least, double most) {
    double size = Math.abs(x);
    return size <= most && (size >= least || size == 0);
  }
}
