package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import java.util.Arrays;
import java.util.Objects;

/**
 * Bounds on the differential entropy, in nats, of a mixture {@code Σ_i c_i p_i} of M Gaussians, which has no closed
 * form. They are the pairwise-distance estimators
 *
 * <pre>
 * H_D = Σ_i c_i H(p_i) − Σ_i c_i ln Σ_j c_j exp(−D(p_i ‖ p_j))
 * </pre>
 *
 * <p>of A. Kolchinsky and B. D. Tracey, "Estimating Mixture Entropy with Pairwise Distances", Entropy 19 (2017) 361.
 * With D = KL, this is an upper bound. With the Chernoff α-divergence {@code C_α(p ‖ q) = −ln ∫ p^α q^(1−α)}, α in [0,
 * 1], it is a lower bound. Both are exact where components coincide or do not overlap.
 *
 * <p>Components may be diagonal or full. A {@code MixtureEntropy} is immutable and safe for use by any number of
 * threads.
 *
 * @since 0.1.0
 */
public final class MixtureEntropy {
  private static final double LN_2PI = Math.log(2 * Math.PI);

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
      int beyond = d.beyond64().nextSetBit(0);
      if (beyond >= 0) {
        throw new IllegalArgumentException(
            "components[%d] has a variance outside [2^-500, 2^500]".formatted(beyond));
      }
    }
  }

  /**
   * Makes the mixture of the Gaussians of a batch with equal weights 1/M.
   *
   * @param components M Gaussians
   * @return the mixture
   * @throws IllegalArgumentException if the components are deterministic, or diagonal with a variance outside [2⁻⁵⁰⁰,
   *     2⁵⁰⁰]
   */
  public static MixtureEntropy of(Gaussians components) {
    double[] weights = new double[Objects.requireNonNull(components, "components").size()];
    Arrays.fill(weights, 1.0 / weights.length);
    return new MixtureEntropy(components, weights);
  }

  /**
   * Makes the mixture of the Gaussians of a batch with the given weights.
   *
   * @param components M Gaussians
   * @param weights c, M numbers ≥ 0 whose sum is 1 to 1e-5, as for a {@link Mixture}. They are copied and divided by
   *     their sum. A component of weight 0 does not count
   * @return the mixture
   * @throws IllegalArgumentException if the weights are not such, or the components are deterministic, or diagonal with
   *     a variance outside [2⁻⁵⁰⁰, 2⁵⁰⁰]
   */
  public static MixtureEntropy of(Gaussians components, double[] weights) {
    Objects.requireNonNull(components, "components");
    Mixture.checkLength(weights, components.size());
    double[] normal = weights.clone();
    Mixture.normalize(normal, 0, normal.length, "");
    return new MixtureEntropy(components, normal);
  }

  /**
   * Computes the entropies of the components, in nats: {@code H(p_i) = ½ D (1 + ln 2π) + Σ_h ln σ_ih}, with
   * {@code ln det L_i} as the last term for full covariances. They are exact.
   *
   * @return a new array of M entropies
   */
  public double[] componentEntropies() {
    double[] entropies = new double[batch.size()];
    for (int i = 0; i < entropies.length; i++) {
      entropies[i] = 0.5 * batch.dimension() * (1 + LN_2PI) + batch.logDet(i);
    }
    return entropies;
  }

  /**
   * {@return {@code Σ_i c_i H(p_i)}, in nats, the entropy given the component} The entropy of the mixture is never
   * below it.
   */
  public double conditionalEntropy() {
    return mean(componentEntropies());
  }

  /**
   * Computes the upper bound H_KL, in nats, by {@link KlEngine#weightedLogSumExp(Gaussians, Gaussians, double[])}.
   *
   * @param engine the engine that computes the divergences
   * @return the upper bound
   * @throws IllegalArgumentException if the engine computes another divergence than KL
   * @throws IllegalStateException if the engine is closed
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   * @throws CudaException if the device fails
   */
  public double upperBound(KlEngine engine) {
    Objects.requireNonNull(engine, "engine");
    if (!engine.divergence().equals(Divergence.KL)) {
      throw new IllegalArgumentException(
          "engine computes %s; the upper bound is of KL".formatted(engine.divergence().name()));
    }
    return bound(engine);
  }

  private double bound(KlEngine engine) {
    double[] log = Arrays.stream(weights).map(Math::log).toArray();
    return conditionalEntropy() - mean(engine.weightedLogSumExp(components, components, log));
  }

  /**
   * Computes the lower bound of the Bhattacharyya distance, {@link #lowerBound(double)} with α = ½. For components that
   * have the same covariance, it is the best one.
   *
   * @return the lower bound, in nats
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   */
  public double lowerBound() {
    return lowerBound(0.5);
  }

  /**
   * Computes the lower bound H_Cα, in nats, with {@code Σ = (1−α)Σ_i + αΣ_j} and
   *
   * <pre>
   * C_α(p_i ‖ p_j) = ½ α(1−α) (μ_i − μ_j)ᵀ Σ⁻¹ (μ_i − μ_j) + ½ ln(det Σ / (det Σ_i^(1−α) det Σ_j^α))
   * </pre>
   *
   * <p>It is computed on the calling thread, as an engine of {@link Divergence#chernoff} does, by vectors where they run.
   *
   * @param alpha α, in [0, 1]; 0 and 1 give the {@link #conditionalEntropy()}
   * @return the lower bound
   * @throws IllegalArgumentException if alpha is not in [0, 1]
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   */
  public double lowerBound(double alpha) {
    if (!(alpha >= 0 && alpha <= 1)) {
      throw new IllegalArgumentException("alpha must be in [0, 1], is " + alpha);
    }
    if (alpha == 0 || alpha == 1) {
      return conditionalEntropy(); // 0·∞ would be NaN
    }
    Divergence chernoff = Divergence.chernoff(alpha);
    Platform.Choice backend =
        Platform.mayHaveVectors() ? Platform.Choice.VECTOR : Platform.Choice.SCALAR;
    try (KlEngine engine = new KlEngine(new Engine(chernoff.formula, backend, 1, null), chernoff)) {
      return bound(engine);
    }
  }

  /** Returns {@code Σ_i c_i x_i}. */
  private double mean(double[] x) {
    double sum = 0;
    for (int i = 0; i < x.length; i++) {
      sum += weights[i] == 0 ? 0 : weights[i] * x[i];
    }
    return sum;
  }
}
