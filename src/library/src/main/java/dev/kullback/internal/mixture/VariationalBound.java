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
 * <p>over φ ≥ 0 with {@code Σ_b φ_ab = π_a}, to which the paper's bound of φ and ψ comes down once ψ is the best for φ. J is convex, every
 * φ gives an upper bound, and every φ gives a bound below the least, too: with {@code λ_b = ln(Φ_b/ω_b)} that is {@code Σ_a π_a min_b (D_ab
 * + λ_b)}. The iteration ends when the two meet.
 *
 * <p>A step of the paper's iteration, {@code φ_ab ← c_a φ_ab exp(−g_ab)} of the gradient {@code g_ab = D_ab + λ_b}, comes first, and is all
 * that a single row or column needs. Its convergence is slow where components nearly coincide, so the rest is an interior-point method
 * (S. J. Wright, "Primal-Dual Interior-Point Methods", SIAM 1997): Newton's for
 *
 * <pre>
 * x_ab s_ab = μ w_a,  s_ab = D_ab + λ_b − u_a,  Σ_b x_ab = 1,  φ_ab = π_a x_ab
 * </pre>
 *
 * <p>where the two bounds are μ apart, with μ a tenth of the last one, or half of it after a step that had to be shortened. The weights w_a
 * are between those of the rows and equal ones, so that rows of tiny weights are not solved more exactly than their divergences are known.
 */
public final class VariationalBound {
  /** Distance of the two bounds at which the iteration ends, in nats; relative to a bound above 1. */
  private static final double TOLERANCE = 1e-9;

  /** Ten times more than any mixture took that was tried, of up to 200 components and weights down to 1e-300. */
  private static final int MOST_ITERATIONS = 1000;

  /** Weights of rows below it count as this one where their reciprocals are taken, which would overflow. */
  private static final double LEAST_WEIGHT = 1e-290;

  /** What μ is multiplied by. */
  private static final double FAST = 0.1;

  private static final double SLOW = 0.5;

  /** Part of the way to the boundary that a step may go, and a step that is not short. */
  private static final double MOST_STEP = 0.99;

  private static final double LONG_STEP = 0.9;

  private final double[] pi;
  private final double[] omega;
  private final int rows;
  private final int columns;

  /** Infinite where φ is 0. */
  private final double[] d;

  private double upper = Double.POSITIVE_INFINITY;
  private double lower = Double.NEGATIVE_INFINITY;

  /** x, and Φ and λ of these. */
  private final double[] shares;

  private final double[] sums;
  private final double[] logs;

  /** s and u, which Newton's method has as variables of their own, and w. */
  private final double[] slacks;

  private final double[] least;
  private final double[] weights;

  /** Newton's steps of x and s. */
  private final double[] stepX;

  private final double[] stepS;

  /** Part of Newton's step that was taken. */
  private double lastStep = 1;

  private final NewtonSystem system;
  private final Checkpoint checkpoint = new Checkpoint();

  /** A problem of K × L weights above 0 and their divergences D, row-major [K, L]. */
  public VariationalBound(double[] pi, double[] omega, double[] d) {
    this.pi = pi;
    this.omega = omega;
    this.d = d;
    rows = pi.length;
    columns = omega.length;
    shares = new double[d.length];
    slacks = new double[d.length];
    stepX = new double[d.length];
    stepS = new double[d.length];
    sums = new double[columns];
    logs = new double[columns];
    least = new double[rows];
    weights = new double[rows];
    system = new NewtonSystem(pi, columns, checkpoint);
  }

  /** Returns a J that is at most {@link #TOLERANCE} above the least, unless the iterations are used up. */
  public double compute() {
    for (int a = 0; a < rows; a++) {
      if (!spread(a)) {
        return Double.POSITIVE_INFINITY;
      }
    }
    evaluate();
    if (!isSettled() && spreadEqual()) {
      evaluate();
    }
    if (!isSettled()) {
      begin();
    }
    for (int n = 0; n < MOST_ITERATIONS && !isSettled() && lastStep > 0; n++) {
      advance();
      evaluate();
    }
    return Math.max(0, upper);
  }

  private boolean isSettled() {
    return upper - lower <= TOLERANCE * Math.max(1, upper);
  }

  /** Sets a row's shares by the paper's iteration from {@code φ_ab = π_a ω_b}; returns false if all divergences are infinite. */
  private boolean spread(int a) {
    int row = a * columns;
    double most = Double.NEGATIVE_INFINITY;
    for (int b = 0; b < columns; b++) {
      most = Math.max(most, Math.log(omega[b]) - d[row + b]);
    }
    for (int b = 0; b < columns; b++) {
      shares[row + b] = Math.exp(Math.log(omega[b]) - d[row + b] - most);
    }
    return most > Double.NEGATIVE_INFINITY;
  }

  /** Sets the shares that give exactly 0 where the mixtures are equal; returns false where they are not. */
  private boolean spreadEqual() {
    for (int a = 0; a < rows; a++) {
      double sum = 0;
      for (int b = 0; b < columns; b++) {
        shares[a * columns + b] = d[a * columns + b] == 0 ? omega[b] : 0;
        sum += shares[a * columns + b];
      }
      if (sum == 0) {
        return false;
      }
    }
    return true;
  }

  /** Makes the sum of each row's shares 1, sets what depends on them, and takes both bounds. */
  private void evaluate() {
    checkpoint.pass(Checkpoint.ofPlain(4L * d.length));
    Arrays.fill(sums, 0);
    double value = 0;
    for (int a = 0, k = 0; a < rows; a++) {
      double sum = 0;
      for (int b = 0; b < columns; b++) {
        sum += shares[k + b];
      }
      for (int b = 0; b < columns; b++, k++) {
        shares[k] /= sum;
        double phi = pi[a] * shares[k];
        sums[b] += phi;
        value += phi > 0 ? phi * d[k] : 0;
      }
    }
    for (int b = 0; b < columns; b++) {
      double sum = sums[b];
      sums[b] = Math.max(sum, Double.MIN_NORMAL); // of a column without a share, too
      logs[b] = Math.log(sums[b]) - Math.log(omega[b]);
      value += sum * logs[b];
    }
    upper = value < upper ? value : upper;
    double dual = 0;
    for (int a = 0; a < rows; a++) {
      double min = Double.POSITIVE_INFINITY;
      for (int b = 0; b < columns; b++) {
        min = Math.min(min, d[a * columns + b] + logs[b]);
      }
      dual += pi[a] * min;
    }
    lower = dual > lower ? dual : lower;
  }

  /** Sets x, s and u so that they are as Newton's method wants them for a large μ, but for λ, which is taken to be 0. */
  private void begin() {
    double mu = 1; // as far as λ may be from 0
    for (double w : omega) {
      mu = Math.max(mu, 1 - Math.log(w));
    }
    for (int a = 0; a < rows; a++) {
      weights[a] = 0.5 * (1 + 1 / (rows * Math.max(pi[a], LEAST_WEIGHT))) / columns;
      int row = a * columns;
      double min = Double.POSITIVE_INFINITY;
      for (int b = 0; b < columns; b++) {
        min = Math.min(min, d[row + b]);
      }
      double product = mu * weights[a];
      double below = product; // the slack of the least D is between these
      double above = product * columns;
      for (int n = 0; n < 60; n++) {
        double slack = 0.5 * (below + above);
        double sum = 0;
        for (int b = 0; b < columns; b++) {
          sum += product / (d[row + b] - min + slack);
        }
        below = sum > 1 ? slack : below;
        above = sum > 1 ? above : slack;
      }
      least[a] = min - above;
      for (int b = 0; b < columns; b++) {
        slacks[row + b] = d[row + b] - min + above;
        shares[row + b] = product / slacks[row + b];
      }
    }
    evaluate();
  }

  /** Takes a step of Newton's method. */
  private void advance() {
    double mu = 0;
    for (int k = 0; k < d.length; k++) {
      mu += shares[k] > 0 ? pi[k / columns] * (shares[k] * slacks[k]) : 0;
    }
    mu *= lastStep >= LONG_STEP ? FAST : SLOW;
    for (int k = 0; k < d.length; k++) {
      boolean isFinite = d[k] <= Double.MAX_VALUE;
      double residual = d[k] + logs[k % columns] - least[k / columns] - slacks[k];
      stepS[k] = isFinite ? residual : 0;
      double product = mu * weights[k / columns] / slacks[k] - shares[k];
      stepX[k] = isFinite ? product - shares[k] / slacks[k] * residual : 0;
    }
    system.solve(shares, slacks, sums, stepX);
    double most = Double.POSITIVE_INFINITY;
    for (int k = 0; k < d.length; k++) {
      if (d[k] <= Double.MAX_VALUE) {
        double change = system.column(k % columns) - system.row(k / columns);
        stepX[k] -= shares[k] / slacks[k] * change;
        stepS[k] += change;
        most = stepX[k] < 0 ? Math.min(most, -shares[k] / stepX[k]) : most;
        most = stepS[k] < 0 ? Math.min(most, -slacks[k] / stepS[k]) : most;
      }
    }
    lastStep = Double.isNaN(mu) ? 0 : Math.min(1, MOST_STEP * most); // which ends it
    for (int k = 0; k < d.length; k++) {
      shares[k] += lastStep * stepX[k];
      slacks[k] += lastStep * stepS[k];
    }
    for (int a = 0; a < rows; a++) {
      least[a] += lastStep * system.row(a);
    }
  }
}
