package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.plain.Chernoff;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.Objects;

/**
 * Bounds on the differential entropy, in nats, of a mixture {@code Σ_i c_i p_i} of Gaussians, which has no closed form: the
 * pairwise-distance estimators
 *
 * <pre>
 * H_D = Σ_i c_i H(p_i) − Σ_i c_i ln Σ_j c_j exp(−D(p_i ‖ p_j))
 * </pre>
 *
 * <p>of A. Kolchinsky and B. D. Tracey, "Estimating Mixture Entropy with Pairwise Distances", Entropy 19 (2017) 361. With D = KL
 * it is an upper bound, with the Chernoff α-divergence {@code C_α(p ‖ q) = −ln ∫ p^α q^(1−α)}, α in [0, 1], a lower one. Both are
 * exact where components coincide or do not overlap.
 *
 * <p>Components are diagonal or full. Immutable, and safe for use by any number of threads.
 */
public final class MixtureEntropy {
  private static final double LN_2PI = Math.log(2 * Math.PI);

  /** What weights of float may miss a sum of 1 by. */
  private static final double SUM_TOLERANCE = 1e-5;

  private final Gaussians components;
  private final Batch batch;
  private final double[] weights;

  private MixtureEntropy(Gaussians components, double[] weights) {
    this.components = components;
    batch = KlEngine.batch(components, "components");
    this.weights = weights;
    if (batch instanceof DiagonalBatch d) {
      if (d.isDeterministic()) {
        throw new IllegalArgumentException(
            "components are deterministic (std 0), so their entropy is -Infinity");
      }
      for (int i = 0; i < d.size(); i++) {
        if (d.isBeyond64(i)) {
          throw new IllegalArgumentException(
              "components[%d] has a variance outside [2^-500, 2^500]".formatted(i));
        }
      }
    }
  }

  /** The mixture of a batch's Gaussians with equal weights 1/M. */
  public static MixtureEntropy of(Gaussians components) {
    double[] weights = new double[Objects.requireNonNull(components, "components").size()];
    Arrays.fill(weights, 1.0 / weights.length);
    return new MixtureEntropy(components, weights);
  }

  /**
   * The mixture of a batch's Gaussians with the weights given.
   *
   * @param weights c, M of them, ≥ 0; their sum is 1 to 1e-5, and they are divided by it. A component of weight 0 does not count
   * @throws IllegalArgumentException if the weights are not such, or the components deterministic or beyond variances of 2^±500
   */
  public static MixtureEntropy of(Gaussians components, double[] weights) {
    Objects.requireNonNull(components, "components");
    Objects.requireNonNull(weights, "weights");
    if (weights.length != components.size()) {
      throw new IllegalArgumentException(
          "weights has %d elements but there are %d components"
              .formatted(weights.length, components.size()));
    }
    double sum = 0;
    for (int i = 0; i < weights.length; i++) {
      if (!(weights[i] >= 0)) {
        throw new IllegalArgumentException(
            "weights[%d] is %s; it must be >= 0".formatted(i, weights[i]));
      }
      sum += weights[i];
    }
    if (!(Math.abs(sum - 1) <= SUM_TOLERANCE)) {
      throw new IllegalArgumentException("the sum of weights is " + sum + "; it must be 1");
    }
    double[] normal = new double[weights.length];
    for (int i = 0; i < normal.length; i++) {
      normal[i] = weights[i] / sum;
    }
    return new MixtureEntropy(components, normal);
  }

  /** {@code H(p_i) = ½ D (1 + ln 2π) + Σ_h ln σ_ih}, for full covariances {@code + ln det L_i}, as a new array of M: exact. */
  public double[] componentEntropies() {
    double[] entropies = new double[batch.size()];
    for (int i = 0; i < entropies.length; i++) {
      entropies[i] = 0.5 * batch.dimension() * (1 + LN_2PI) + batch.logDet(i);
    }
    return entropies;
  }

  /** {@code Σ_i c_i H(p_i)}, the entropy given the component, which that of the mixture is not below. */
  public double conditionalEntropy() {
    return mean(componentEntropies());
  }

  /** The upper bound H_KL, by {@link KlEngine#weightedLogSumExp(Gaussians, Gaussians, double[])}. */
  public double upperBound(KlEngine engine) {
    Objects.requireNonNull(engine, "engine");
    double[] log = new double[weights.length];
    for (int i = 0; i < log.length; i++) {
      log[i] = Math.log(weights[i]);
    }
    double[] overlap = engine.weightedLogSumExp(components, components, log);
    return conditionalEntropy() - mean(overlap);
  }

  /** The lower bound of the Bhattacharyya distance, {@link #lowerBound(double)} of ½: for components of one covariance the best. */
  public double lowerBound() {
    return lowerBound(0.5);
  }

  /**
   * The lower bound H_Cα, with {@code Σ = (1−α)Σ_i + αΣ_j} and
   *
   * <pre>
   * C_α(p_i ‖ p_j) = ½ α(1−α) (μ_i − μ_j)ᵀ Σ⁻¹ (μ_i − μ_j) + ½ ln(det Σ / (det Σ_i^(1−α) det Σ_j^α))
   * </pre>
   *
   * <p>computed in double, pair by pair, on the calling thread: {@code O(M²D)}, for full covariances {@code O(M²D³)}.
   * Ends with a {@link java.util.concurrent.CancellationException} if the thread is interrupted.
   *
   * @param alpha α, in [0, 1]; 0 and 1 give the {@link #conditionalEntropy()}
   */
  public double lowerBound(double alpha) {
    if (!(alpha >= 0 && alpha <= 1)) {
      throw new IllegalArgumentException("alpha must be in [0, 1], is " + alpha);
    }
    if (alpha == 0 || alpha == 1) {
      return conditionalEntropy(); // 0·∞ would be NaN
    }
    Chernoff chernoff = Chernoff.of(batch, alpha);
    Checkpoint checkpoint = new Checkpoint();
    double[] overlap = new double[weights.length];
    for (int i = 0; i < overlap.length; i++) {
      Checkpoint.checkInterrupt(Thread.currentThread());
      double sum = 0; // of terms from 0 to 1, one of which, j = i, is 1
      for (int j = 0; weights[i] > 0 && j < overlap.length; j++) {
        if (weights[j] > 0) {
          checkpoint.pass(chernoff.terms());
          sum += weights[j] * (i == j ? 1 : Math.exp(-Math.max(0, chernoff.divergence(i, j))));
        }
      }
      overlap[i] = Math.log(sum);
    }
    return conditionalEntropy() - mean(overlap);
  }

  /** {@code Σ_i c_i x_i}. */
  private double mean(double[] x) {
    double sum = 0;
    for (int i = 0; i < x.length; i++) {
      sum += weights[i] == 0 ? 0 : weights[i] * x[i];
    }
    return sum;
  }
}
