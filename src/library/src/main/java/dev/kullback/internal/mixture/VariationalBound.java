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

  /** Least part of ω_b that an element keeps, so that it can grow again. */
  private static final double FLOOR = 1e-300;

  private final double[] pi;
  private final double[] omega;
  private final double[] d;
  private final double[] phi;

  /** {@code ln(Φ_b/ω_b)}. */
  private final double[] logs;

  /** A problem of K × L weights above 0 and their divergences D, row-major [K, L]. */
  public VariationalBound(double[] pi, double[] omega, double[] d) {
    this.pi = pi;
    this.omega = omega;
    this.d = d;
    phi = new double[d.length];
    Arrays.setAll(phi, k -> pi[k / omega.length] * omega[k % omega.length]);
    logs = new double[omega.length];
  }

  public double compute() {
    Checkpoint checkpoint = new Checkpoint();
    double least = Double.POSITIVE_INFINITY;
    double step = 1;
    double last = Double.POSITIVE_INFINITY;
    for (int n = 0; n < MOST_ITERATIONS; n++) {
      checkpoint.pass(Checkpoint.ofPlain(d.length));
      least = Math.min(least, evaluate());
      double gap = gap();
      if (!(gap > TOLERANCE * Math.max(1, least))) { // or NaN, of infinite divergences
        break;
      }
      step = gap < last ? GROWTH * step : 1;
      last = gap;
      advance(step);
    }
    return Math.max(0, least);
  }

  /** Returns J, and sets the logarithms. */
  private double evaluate() {
    Arrays.fill(logs, 0);
    double value = 0;
    for (int k = 0; k < d.length; k++) {
      logs[k % omega.length] += phi[k];
      value += phi[k] * d[k];
    }
    for (int b = 0; b < omega.length; b++) {
      double sum = logs[b];
      logs[b] = Math.log(sum / omega[b]);
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
        gap += phi[k] * (d[k] + logs[b] - least);
      }
    }
    return gap;
  }

  private void advance(double step) {
    for (int a = 0, row = 0; a < pi.length; a++, row += omega.length) {
      double least = least(a);
      double sum = 0;
      for (int b = 0, k = row; b < omega.length; b++, k++) {
        double factor = Math.exp(-step * (d[k] + logs[b] - least));
        phi[k] = Math.max(phi[k] * factor, FLOOR * omega[b]);
        sum += phi[k];
      }
      for (int k = row; k < row + omega.length; k++) {
        phi[k] *= pi[a] / sum;
      }
    }
  }
}
