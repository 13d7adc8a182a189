package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The partial derivatives of a divergence by the parameters of one dimension of a pair of diagonal Gaussians, by forms in which nothing
 * cancels however near the two are. With {@code d = μq − μp}, {@code x = vq/vp − 1}, {@code z = vp/vq − 1}, {@code y = d/σp} and {@code w =
 * d/σq}, they are
 *
 * <pre>
 * KL         ∂μq = y/σp = −∂μp,          2vq ∂vq = x,             2vp ∂vp = −(x + y²)
 * Jeffreys   ∂μq = y/σp + w/σq = −∂μp,   2vq ∂vq = x − (z + w²),  2vp ∂vp = z − (x + y²)
 * W₂²        ½ ∂μq = d = −½ ∂μp,         ½ ∂σq = σq − σp = −½ ∂σp
 * </pre>
 *
 * <p>Each of x, z, y², w² and d is within some roundings, and so is a derivative, of the sum of its parts' magnitudes. One that overflows is
 * ±{@link Double#MAX_VALUE}, so that sums of derivatives are never NaN. This class is for one thread.
 */
public final class PairGradient {
  /** A divergence that has a gradient. */
  public enum Term {
    KL,
    JEFFREYS,
    WASSERSTEIN_2;

    /** Returns the term of a formula, or null if it has none. */
    public static @Nullable Term of(Formula formula) {
      if (formula instanceof Kl && !formula.isReverse()) {
        return KL;
      }
      return formula instanceof Jeffreys
          ? JEFFREYS
          : formula instanceof Wasserstein2 w && w.lastStep() == Formula.LastStep.NONE
              ? WASSERSTEIN_2
              : null;
    }

    /** Returns the term of a formula that has a gradient. */
    public static Term required(Formula formula) {
      return Objects.requireNonNull(of(formula));
    }

    /** Whether the derivatives by scales are ½ ∂σ, and not 2v ∂v; those by means are ½ ∂μ then. */
    public boolean isByStd() {
      return this == WASSERSTEIN_2;
    }

    /** Returns the derivative by a mean, of what {@link #meanQ} gives. */
    public double byMean(double sum) {
      return isByStd() ? 2 * sum : sum;
    }

    /**
     * Makes n derivatives by scales as they were given, of what {@link #scaleQ} or {@link #scaleP} gives, or of sums of such, in their place.
     */
    public void byScale(Scale kind, double[] scales, double[] sums, int n) {
      if (isByStd()) {
        hold(1, sums, n);
        for (int k = 0; k < n; k++) {
          sums[k] = sums[k] == 0 ? 0 : byStd(kind, scales[k], sums[k]); // where σ is 0, too
        }
        return;
      }
      hold(kind == Scale.STD ? 1 : kind == Scale.PRECISION ? -0.5 : 0.5, sums, n);
      for (int k = 0; k < n && kind != Scale.LOG_VARIANCE; k++) {
        sums[k] /= scales[k];
      }
    }

    /** A method of its own: in a loop beside others, C2 left {@link #held} scalar, which took 4 ns an element instead of 0.3 (Zen 4). */
    private static void hold(double factor, double[] sums, int n) {
      for (int k = 0; k < n; k++) {
        sums[k] = factor * held(sums[k]) + 0.0; // not −0
      }
    }

    private static double byStd(Scale kind, double s, double sum) {
      return switch (kind) {
        case STD -> 2 * sum;
        case VARIANCE -> sum / Math.sqrt(s);
        case LOG_VARIANCE -> sum * kind.std(s);
        case PRECISION -> -sum / s / Math.sqrt(s);
      };
    }
  }

  private final Term term;
  private final ScaleRatio scales = new ScaleRatio();
  private final Variance first = new Variance();
  private final Variance second = new Variance();

  private double meanQ;
  private double scaleQ;
  private double scaleP;
  private double sizeQ;
  private double sizeP;

  public PairGradient(Term term) {
    this.term = term;
  }

  public Term term() {
    return term;
  }

  /** Computes the derivatives for q's element a and p's element b. */
  public void set(DiagonalBatch q, int a, DiagonalBatch p, int b) {
    set(q.kind(), q.mean(a), q.scale(a), p.kind(), p.mean(b), p.scale(b));
  }

  void set(Scale kindQ, double mq, double sq, Scale kindP, double mp, double sp) {
    if (term == Term.WASSERSTEIN_2) {
      scales.compare(kindQ, sq, kindP, sp);
      double difference = scales.stdDifference();
      meanQ = held(mq - mp);
      scaleQ = held(scales.isGreaterQ ? difference : -difference);
      scaleP = -scaleQ;
      sizeQ = sizeP = Math.abs(scaleQ);
      return;
    }
    boolean isMixed = kindQ != kindP;
    if (isMixed) {
      first.set(kindQ, sq);
      second.set(kindP, sp);
    }
    double x = isMixed ? Variance.excess(first, second) : kindQ.excess(sq, sp);
    double y = kindP.standardize(mq, mp, sp);
    meanQ = held(kindP.standardize(y, sp));
    scaleQ = held(x);
    scaleP = -held(x + y * y);
    sizeQ = Math.abs(x);
    sizeP = sizeQ + y * y;
    if (term == Term.JEFFREYS) {
      double z = isMixed ? Variance.excess(second, first) : kindQ.excess(sp, sq);
      double w = kindQ.standardize(mq, mp, sq);
      meanQ = held(meanQ + held(kindQ.standardize(w, sq)));
      scaleQ = held(scaleQ - held(z + w * w));
      scaleP = held(scaleP + held(z));
      sizeQ += Math.abs(z) + w * w;
      sizeP += Math.abs(z);
    }
  }

  /** Returns a number, or the greatest of its sign if it is infinite. */
  public static double held(double x) {
    return Math.clamp(x, -Double.MAX_VALUE, Double.MAX_VALUE);
  }

  /** ∂μq or ½ ∂μq, and −1 times that of p. */
  public double meanQ() {
    return meanQ;
  }

  /** 2vq ∂vq or ½ ∂σq. */
  public double scaleQ() {
    return scaleQ;
  }

  /** 2vp ∂vp or ½ ∂σp. */
  public double scaleP() {
    return scaleP;
  }

  /** The sum of the magnitudes of the parts of {@link #scaleQ}, to which its error is relative. */
  public double sizeQ() {
    return sizeQ;
  }

  /** The same of {@link #scaleP}. */
  public double sizeP() {
    return sizeP;
  }
}
