package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.numerics.Scale;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The derivatives of {@link PairGradient} for elements of a batch in a row, each beside the same element of another batch or N(0, I): in loops over
 * arrays, of which C2 makes vectors. Elements of which some are stated differently, or are beyond a double kernel's range, go one by one. For one
 * thread.
 *
 * <p>{@code x = vq/vp − 1} is made of a difference of scales, of log-variances {@code e = ln vq − ln vp} by the series of {@code exp(e) − 1}
 * up to {@link #NEAR}, whose rest is below 2⁻⁵³, and by the quotient of 1/v beyond, where the 7 roundings of that lose 7 bits: so a term is within
 * 2⁻⁴³.
 */
public final class GradientLoops {
  /**
   * Most elements at once. The arrays of a call take 15 KiB, and what is read and written as much: (4096, 256) takes 5 to 15 % longer with 256, which leave the
   * L1 cache, and of STD in float up to 20 % with 128 (Zen 4, beside others' work).
   */
  public static final int LENGTH = 192;

  private static final double NEAR = 0x1p-7;

  private final PairGradient pair;

  private final double[] meansQ = new double[LENGTH];
  private final double[] precisionsQ = new double[LENGTH];
  private final double[] meansP = new double[LENGTH];
  private final double[] precisionsP = new double[LENGTH];

  /** Scales of each element, as they were given. */
  public final double[] givenQ = new double[LENGTH];

  public final double[] givenP = new double[LENGTH];

  /** The cotangent of each element. */
  public final double[] weights = new double[LENGTH];

  /** Derivatives by q's mean, and by scales as {@link PairGradient} has them, times the cotangent. */
  public final double[] mean = new double[LENGTH];

  public final double[] scaleQ = new double[LENGTH];
  public final double[] scaleP = new double[LENGTH];

  public GradientLoops(Term term) {
    pair = new PairGradient(term);
  }

  /** Returns what computes the derivatives of one element. */
  public PairGradient pair() {
    return pair;
  }

  /** Computes the derivatives for n elements of q and p, or N(0, I) if p is null, from an index on, times {@link #weights}. */
  public void set(DiagonalBatch q, @Nullable DiagonalBatch p, int from, int n) {
    Scale kind = q.kind();
    Scale kindP = p == null ? kind : p.kind();
    q.read(from, n, meansQ, givenQ);
    if (p == null) {
      Arrays.fill(meansP, 0, n, 0);
      Arrays.fill(givenP, 0, n, kind.unit());
    } else {
      p.read(from, n, meansP, givenP);
    }
    boolean isSame = kind == kindP;
    boolean isRight = isSame && isHeld(q, from, n) && (p == null || isHeld(p, from, n));
    if (isSame) {
      if (pair.term() != Term.KL || kind == Scale.LOG_VARIANCE) {
        setPrecisions(q, from, n, givenQ, precisionsQ);
      }
      if (p == null) {
        Arrays.fill(precisionsP, 0, n, 1);
      } else {
        setPrecisions(p, from, n, givenP, precisionsP);
      }
      double most =
          switch (pair.term()) {
            case KL -> setKl(kind, n);
            case JEFFREYS -> setJeffreys(kind, n);
            case WASSERSTEIN_2 -> setWasserstein2(kind, n);
          };
      isRight &= most <= Double.MAX_VALUE;
    }
    if (!isRight) {
      for (int k = 0; k < n; k++) {
        int row = (from + k) / q.dimension();
        // not by its neighbours, so that its digits are its own
        if (!isSame
            || q.beyond64().get(row)
            || (p != null && p.beyond64().get(row))
            || !(Math.abs(mean[k]) + Math.abs(scaleQ[k]) + Math.abs(scaleP[k])
                <= Double.MAX_VALUE)) {
          pair.set(kind, meansQ[k], givenQ[k], kindP, meansP[k], givenP[k]);
          put(k, pair.meanQ(), pair.scaleQ(), pair.scaleP());
        }
      }
    }
    for (int k = 0; k < n; k++) { // after the cotangent, which may be 0
      mean[k] = pair.term().byMean(mean[k]) + 0.0; // not −0
    }
  }

  private void put(int k, double ofMean, double ofQ, double ofP) {
    double g = weights[k];
    mean[k] = g * ofMean;
    scaleQ[k] = g * ofQ;
    scaleP[k] = g * ofP;
  }

  /** Whether double kernels hold the variances of all Gaussians that have some of n elements. */
  private static boolean isHeld(DiagonalBatch g, int from, int n) {
    int row = g.beyond64().nextSetBit(from / g.dimension());
    return row < 0 || row > (from + n - 1) / g.dimension();
  }

  /** Makes 1/v; of log-variances, whose exponentials take long, the batch may have them. */
  private static void setPrecisions(
      DiagonalBatch g, int from, int n, double[] scales, double[] to) {
    switch (g.kind()) {
      case STD -> {
        for (int k = 0; k < n; k++) {
          to[k] = 1 / (scales[k] * scales[k]);
        }
      }
      case VARIANCE -> {
        for (int k = 0; k < n; k++) {
          to[k] = 1 / scales[k];
        }
      }
      case LOG_VARIANCE -> {
        double[] made = g.precisionsOfPair();
        if (made != null) {
          System.arraycopy(made, from, to, 0, n);
          return;
        }
        for (int k = 0; k < n; k++) {
          to[k] = 1 / Math.exp(scales[k]);
        }
      }
      case PRECISION -> System.arraycopy(scales, 0, to, 0, n);
    }
  }

  /** Makes a's {@code va/vb − 1}. */
  private static void setExcess(
      Scale kind, int n, double[] a, double[] ra, double[] b, double[] rb, double[] to) {
    switch (kind) {
      case STD -> {
        for (int k = 0; k < n; k++) {
          double x = (a[k] - b[k]) / b[k];
          to[k] = x * (x + 2);
        }
      }
      case VARIANCE -> {
        for (int k = 0; k < n; k++) {
          to[k] = (a[k] - b[k]) / b[k];
        }
      }
      case LOG_VARIANCE -> {
        for (int k = 0; k < n; k++) {
          double e = a[k] - b[k];
          double x = 1.0 / 120 + e * (1.0 / 720);
          x = e + e * e * (0.5 + e * (1.0 / 6 + e * (1.0 / 24 + e * x)));
          to[k] = Math.abs(e) < NEAR ? x : rb[k] / ra[k] - 1;
        }
      }
      case PRECISION -> {
        for (int k = 0; k < n; k++) {
          to[k] = (b[k] - a[k]) / a[k];
        }
      }
    }
  }

  /** Computes the derivatives of KL, and returns the greatest magnitude. */
  private double setKl(Scale kind, int n) {
    setExcess(kind, n, givenQ, precisionsQ, givenP, precisionsP, scaleQ);
    double most = 0;
    for (int k = 0; k < n; k++) {
      double d = meansQ[k] - meansP[k];
      double t = d * precisionsP[k];
      double s = d * t;
      put(k, t, scaleQ[k], -(scaleQ[k] + s));
      most = Math.max(most, Math.max(Math.abs(t), s));
    }
    return most;
  }

  private double setJeffreys(Scale kind, int n) {
    setExcess(kind, n, givenQ, precisionsQ, givenP, precisionsP, scaleQ);
    setExcess(kind, n, givenP, precisionsP, givenQ, precisionsQ, scaleP);
    double most = 0;
    for (int k = 0; k < n; k++) {
      double d = meansQ[k] - meansP[k];
      double t = d * precisionsP[k];
      double u = d * precisionsQ[k];
      double x = scaleQ[k];
      double z = scaleP[k];
      put(k, t + u, x - (z + d * u), z - (x + d * t));
      most = Math.max(most, Math.max(Math.abs(t + u), d * t + d * u));
    }
    return most;
  }

  /** Computes those of the Wasserstein distance: {@code σq − σp = x σp/(1 + σq/σp)} unless σ is stated. */
  private double setWasserstein2(Scale kind, int n) {
    double most = 0;
    if (kind != Scale.STD) {
      setExcess(kind, n, givenQ, precisionsQ, givenP, precisionsP, scaleQ);
    }
    for (int k = 0; k < n; k++) {
      double d = meansQ[k] - meansP[k];
      double r = precisionsP[k];
      double difference =
          kind == Scale.STD
              ? givenQ[k] - givenP[k]
              : scaleQ[k] / (Math.sqrt(r) * (1 + Math.sqrt(r / precisionsQ[k])));
      put(k, d, difference, -difference);
      most = Math.max(most, Math.abs(d));
    }
    return most;
  }

  /** Makes derivatives by scales as they were given of sums, n from an index on, in their place; a clamp passes none where it acts. */
  public void toGiven(DiagonalBatch g, int from, int n, double[] given, double[] sums) {
    pair.term().byScale(g.kind(), given, sums, n);
    for (int at = g.nextClamped(from); at >= 0 && at < from + n; at = g.nextClamped(at + 1)) {
      sums[at - from] = 0;
    }
  }
}
