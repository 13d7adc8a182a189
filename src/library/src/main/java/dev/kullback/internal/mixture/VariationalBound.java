package dev.kullback.internal.mixture;

import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;

/**
 * The variational upper bound of J. R. Hershey and P. A. Olsen, "Approximating the Kullback Leibler divergence between Gaussian mixture
 * models", ICASSP 2007, section 8. It is the least of
 *
 * <pre>
 * J(φ) = Σ_b Φ_b ln(Φ_b/ω_b) + Σ_ab φ_ab D_ab,  Φ_b = Σ_a φ_ab
 * </pre>
 *
 * <p>over φ ≥ 0 with {@code Σ_b φ_ab = π_a}, to which the paper's bound of φ and ψ comes down once ψ is the best for φ. The paper's
 * iteration is {@code φ_ab ← c_a φ_ab exp(−g_ab)}, where {@code g_ab = D_ab + ln(Φ_b/ω_b)} is the gradient but for a constant. J is
 * convex, so that {@code Σ_ab φ_ab (g_ab − min_b g_ab)} bounds what it is above its least. While that falls, the gradient is multiplied
 * by a step that grows, which takes a quarter of the iterations; where it rises, the step is the paper's 1 again. Every φ gives an upper
 * bound.
 */
public final class VariationalBound {
  /** Distance from the least at which the iteration ends, in nats; relative to a bound above 1. */
  public static final double TOLERANCE = 1e-6;

  public static final int MOST_ITERATIONS = 10_000;

  private static final double GROWTH = 2;

  /** Least part of π_a that an element keeps, so that it can grow again. */
  private static final double FLOOR = 1e-300;

  /** Divergence above which an element keeps nothing: so little would count, too. */
  private static final double MOST_KEPT = 1e280;

  private final double[] pi;
  private final double[] omega;

  /** D, or the greatest double where it is infinite: there, φ is 0. */
  private final double[] d;

  /** {@code φ_ab/π_a}. */
  private final double[] shares;

  /** {@code ln(Φ_b/ω_b)}. */
  private final double[] logs;

  /** A problem of K × L weights above 0 and their divergences D, row-major [K, L]. */
  public VariationalBound(double[] pi, double[] omega, double[] d) {
    this.pi = pi;
    this.omega = omega;
    this.d = Arrays.stream(d).map(x -> Math.min(x, Double.MAX_VALUE)).toArray();
    shares = new double[d.length];
    Arrays.setAll(shares, k -> d[k] <= Double.MAX_VALUE ? omega[k % omega.length] : 0);
    logs = new double[omega.length];
  }

  public double compute() {
    for (int a = 0; a < pi.length; a++) {
      if (!normalize(a)) {
        return Double.POSITIVE_INFINITY;
      }
    }
    Checkpoint checkpoint = new Checkpoint();
    double least = Double.POSITIVE_INFINITY;
    double step = 1;
    double last = Double.POSITIVE_INFINITY;
    for (int n = 0; n < MOST_ITERATIONS; n++) {
      checkpoint.pass(Checkpoint.ofPlain(d.length));
      least = Math.min(least, evaluate());
      double gap = gap();
      if (gap <= TOLERANCE * Math.max(1, least)) {
        break;
      }
      step = gap < last ? GROWTH * step : 1;
      last = gap;
      advance(step);
    }
    return Math.max(0, least);
  }

  /** Makes the sum of a row's shares 1; returns false if all are 0. */
  private boolean normalize(int a) {
    int row = a * omega.length;
    double sum = 0;
    for (int k = row; k < row + omega.length; k++) {
      sum += shares[k];
    }
    for (int k = row; k < row + omega.length; k++) {
      shares[k] /= sum;
    }
    return sum > 0;
  }

  /** Returns J, and sets the logarithms. */
  private double evaluate() {
    Arrays.fill(logs, 0);
    double value = 0;
    for (int k = 0; k < d.length; k++) {
      double phi = pi[k / omega.length] * shares[k];
      logs[k % omega.length] += phi;
      value += phi * d[k];
    }
    for (int b = 0; b < omega.length; b++) {
      double sum = logs[b];
      // finite for a column of no share
      logs[b] = Math.log(Math.max(sum, Double.MIN_VALUE)) - Math.log(omega[b]);
      value += sum * logs[b];
    }
    return value;
  }

  private double least(int a) {
    double least = Double.POSITIVE_INFINITY;
    for (int b = 0; b < omega.length; b++) {
      least = Math.min(least, d[a * omega.length + b] + logs[b]);
    }
    return least;
  }

  private double gap() {
    double gap = 0;
    for (int a = 0, k = 0; a < pi.length; a++) {
      double least = least(a);
      for (int b = 0; b < omega.length; b++, k++) {
        gap += pi[a] * shares[k] * (d[k] + logs[b] - least);
      }
    }
    return gap;
  }

  private void advance(double step) {
    for (int a = 0, k = 0; a < pi.length; a++) {
      double least = least(a);
      for (int b = 0; b < omega.length; b++, k++) {
        double share = shares[k] * Math.exp(-step * (d[k] + logs[b] - least));
        shares[k] = d[k] <= MOST_KEPT ? Math.max(share, FLOOR) : share;
      }
      normalize(a);
    }
  }
}
