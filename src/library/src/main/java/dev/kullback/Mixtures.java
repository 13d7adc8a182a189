package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.mixture.Barycenter;
import dev.kullback.internal.mixture.MixtureBatch;
import dev.kullback.internal.mixture.MixtureDivergences;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A batch of N mixtures {@code f_m = Σ_a π_a f_a} of Gaussians, diagonal, full or of low rank. The components of all are one batch, of which mixture m
 * has those from {@code offset(m)} to {@code offset(m + 1) − 1}. Low-rank components stay such where KL of them or their entropies are all that is needed; all
 * else writes them out, as {@link LowRankGaussians#full()} does.
 *
 * <p>The weights of each mixture have the sum 1, or those of an intensity, as a tracker has it, any positive sum
 * ({@link #unnormalized(Gaussians, double[], int[]) unnormalized}). Weights of less than float's precision, such as float16's, miss the sum
 * 1 by more than {@code of} accepts: divide them by their sum before. {@link MixtureKl} has the divergences of mixtures, and
 * {@link MixtureReduction} mixtures with fewer components.
 *
 * <p><b>Entropy.</b> The differential entropy of a mixture, in nats, has no closed form. The bounds here are the pairwise-distance
 * estimators
 *
 * <pre>
 * H_D = Σ_a π_a H(f_a) − Σ_a π_a ln Σ_b π_b exp(−D(f_a ‖ f_b))
 * </pre>
 *
 * <p>of A. Kolchinsky and B. D. Tracey, "Estimating Mixture Entropy with Pairwise Distances", Entropy 19 (2017) 361. With D = KL, this is
 * an upper bound. With the Chernoff α-divergence {@code C_α(p ‖ q) = −ln ∫ p^α q^(1−α)}, α in [0, 1], it is a lower bound. Both are
 * exact where components coincide or do not overlap. A component of weight 0 does not count. Methods of entropies throw an
 * {@link IllegalArgumentException} if a diagonal or low-rank component has a variance v outside [2⁻⁵⁰⁰, 2⁵⁰⁰], or if the weights of a mixture do not
 * have the sum 1 to 1e-5.
 *
 * <p>Mixtures are immutable and safe to share between threads.
 *
 * @since 0.1.0
 */
public final class Mixtures {
  /** Allowed distance of the sum of weights from 1, for weights of float. */
  private static final double SUM_TOLERANCE = 1e-5;

  /** Largest sum of weights, and its inverse the least: costs of mergers are in double's range. */
  private static final double MOST_SUM = 0x1p500;

  private final Gaussians components;
  private final double[] weights;
  private final int[] offsets;
  private final boolean isNormalized;

  /** Made when it is first asked for. */
  private volatile double @Nullable [] logWeights;

  private Mixtures(Gaussians components, double[] weights, int[] offsets, boolean isNormalized) {
    this.components = components;
    this.weights = weights;
    this.offsets = offsets;
    this.isNormalized = isNormalized;
  }

  /**
   * Makes one mixture with equal weights 1/K.
   *
   * @param components K Gaussians, not deterministic
   * @return the mixture, of size 1
   * @throws IllegalArgumentException if the components are deterministic, or if there are none
   */
  public static Mixtures of(Gaussians components) {
    int k = checked(components).size();
    double[] weights = new double[k];
    Arrays.fill(weights, 1.0 / k);
    return new Mixtures(components, weights, checked(whole(k), k), true);
  }

  /**
   * Makes one mixture.
   *
   * @param components K Gaussians, not deterministic
   * @param weights π, K numbers ≥ 0 whose sum is 1 to 1e-5. They are copied and divided by their sum
   * @return the mixture, of size 1
   * @throws IllegalArgumentException if the arguments are not such
   */
  public static Mixtures of(Gaussians components, double[] weights) {
    return make(components, weights, whole(checked(components).size()), true);
  }

  /**
   * Makes a batch of N mixtures.
   *
   * @param components the Gaussians of all mixtures, not deterministic
   * @param weights a weight for each, ≥ 0, of which those of a mixture have the sum 1 to 1e-5. They are copied, and divided by it
   * @param offsets N + 1 indices, the first 0, the last the number of components, each greater than the one before; copied
   * @return the mixtures
   * @throws IllegalArgumentException if the arguments are not such
   */
  public static Mixtures of(Gaussians components, double[] weights, int[] offsets) {
    return make(components, weights, offsets, true);
  }

  /**
   * Makes one mixture whose weights may have any positive sum, for {@link MixtureReduction}.
   *
   * @param components K Gaussians, not deterministic
   * @param weights K finite numbers ≥ 0 of a sum in [2⁻⁵⁰⁰, 2⁵⁰⁰], which are copied as they are
   * @return the mixture, of size 1
   * @throws IllegalArgumentException if the arguments are not such
   */
  public static Mixtures unnormalized(Gaussians components, double[] weights) {
    return make(components, weights, whole(checked(components).size()), false);
  }

  /**
   * Makes a batch of N mixtures whose weights may have any positive sums, for {@link MixtureReduction}. {@link MixtureKl} and the entropies
   * refuse such weights, unless the sum of each mixture is 1 to 1e-5, by which they are divided then.
   *
   * @param components the Gaussians of all mixtures, not deterministic
   * @param weights a weight for each, finite and ≥ 0, of which those of a mixture have a sum in [2⁻⁵⁰⁰, 2⁵⁰⁰]. They are copied as they are
   * @param offsets N + 1 indices, the first 0, the last the number of components, each greater than the one before; copied
   * @return the mixtures
   * @throws IllegalArgumentException if the arguments are not such
   */
  public static Mixtures unnormalized(Gaussians components, double[] weights, int[] offsets) {
    return make(components, weights, offsets, false);
  }

  /** Makes mixtures of what was checked and is not to be copied. */
  static Mixtures owning(
      Gaussians components, double[] weights, int[] offsets, boolean isNormalized) {
    return new Mixtures(components, weights, offsets, isNormalized);
  }

  private static Mixtures make(
      Gaussians components, double[] weights, int[] offsets, boolean isNormalized) {
    int n = checked(components).size();
    Objects.requireNonNull(offsets, "offsets");
    if (Objects.requireNonNull(weights, "weights").length != n) {
      throw new IllegalArgumentException(
          "weights has %d elements but there are %d components".formatted(weights.length, n));
    }
    int[] places = checked(offsets.clone(), n);
    double[] own = weights.clone();
    for (int m = 0; m < places.length - 1; m++) {
      double sum = sum(own, places[m], places[m + 1]);
      String whose = places.length == 2 ? "" : " of mixture " + m;
      if (isNormalized) {
        normalize(
            own,
            places[m],
            places[m + 1],
            sum,
            "the sum of weights" + whose,
            "; divide them by it, or take Mixtures.unnormalized for a MixtureReduction");
      } else if (sum == 0) {
        throw new IllegalArgumentException(
            "the weights%s are all 0: the mixture has no component".formatted(whose));
      } else if (!(sum >= 1 / MOST_SUM && sum <= MOST_SUM)) {
        throw new IllegalArgumentException(
            "the sum of weights%s is %s; it must be in [2^-500, 2^500]: scale them all by one number"
                .formatted(whose, sum));
      }
    }
    return new Mixtures(components, own, places, isNormalized);
  }

  private static Batch checked(Gaussians components) {
    Batch batch = KlEngine.batch(components, "components");
    if (batch.isDeterministic()) {
      throw new IllegalArgumentException(
          "components are deterministic (std 0), so they have no density");
    }
    batch.checkDefinite("components");
    return batch;
  }

  private static int[] whole(int count) {
    return new int[] {0, count};
  }

  private static int[] checked(int[] offsets, int count) {
    int n = offsets.length - 1;
    if (n < 1 || offsets[0] != 0 || offsets[n] != count) {
      throw new IllegalArgumentException(
          "offsets are %s; they must begin with 0 and end with the number of components, %d"
              .formatted(n < 1 ? "too few" : offsets[0] + " to " + offsets[n], count));
    }
    for (int m = 0; m < n; m++) {
      if (offsets[m + 1] <= offsets[m]) {
        throw new IllegalArgumentException(
            "offsets[%d] is %d; it must be greater than offsets[%d], which is %d"
                .formatted(m + 1, offsets[m + 1], m, offsets[m]));
      }
    }
    return offsets;
  }

  /** Returns the sum of the weights in [from, to), which it checks. */
  private static double sum(double[] weights, int from, int to) {
    double sum = 0;
    for (int i = from; i < to; i++) {
      if (!(weights[i] >= 0 && weights[i] <= Double.MAX_VALUE)) {
        throw new IllegalArgumentException(
            "weights[%d] is %s; it must be finite and >= 0%s"
                .formatted(i, weights[i], weights[i] < 0 ? "; is it a logarithm?" : ""));
      }
      sum += weights[i];
    }
    return sum;
  }

  /** Divides the weights in [from, to) by their sum, if that is 1 but for rounding. */
  private static void normalize(
      double[] weights, int from, int to, double sum, String what, String advice) {
    if (!(Math.abs(sum - 1) <= SUM_TOLERANCE)) {
      boolean isDivisor = sum > 0 && sum <= Double.MAX_VALUE;
      throw new IllegalArgumentException(
          "%s is %s; it must be 1%s".formatted(what, sum, isDivisor ? advice : ""));
    }
    for (int i = from; i < to; i++) {
      weights[i] /= sum;
    }
  }

  /** {@return the number N of mixtures} */
  public int size() {
    return offsets.length - 1;
  }

  /** {@return the components of all mixtures} */
  public Gaussians components() {
    return components;
  }

  /** {@return the weights of {@link #components()}, a new array} */
  public double[] weights() {
    return weights.clone();
  }

  /**
   * {@return the index of mixture m's first component; of m = N, the number of components}
   *
   * @param m the index of a mixture, in [0, N]
   * @throws IndexOutOfBoundsException if m is not in [0, N]
   */
  public int offset(int m) {
    Arguments.checkIndex("m", m, offsets.length);
    return offsets[m];
  }

  /** Returns the array of {@link #weights}, only to be read. */
  double[] ownWeights() {
    return weights;
  }

  /** Returns the logarithms of the weights, only to be read. */
  double[] logWeights() {
    double[] logs = logWeights;
    if (logs == null) {
      logs = Arrays.stream(weights).map(Math::log).toArray();
      logWeights = logs;
    }
    return logs;
  }

  /** Returns the array of {@link #offset}, only to be read. */
  int[] offsets() {
    return offsets;
  }

  boolean isNormalized() {
    return isNormalized;
  }

  /**
   * Returns the mixtures with weights of which those of each have the sum 1, only to be read.
   *
   * @param name what the caller calls these mixtures
   * @throws IllegalArgumentException if they are not such but for rounding
   */
  MixtureBatch batch(String name) {
    double[] normal = isNormalized ? weights : weights.clone();
    for (int m = 0; m < size() && !isNormalized; m++) {
      normalize(
          normal,
          offsets[m],
          offsets[m + 1],
          sum(normal, offsets[m], offsets[m + 1]),
          "%s: the sum of weights of mixture %d".formatted(name, m),
          "; divide them by it");
    }
    return new MixtureBatch(KlEngine.batch(components), normal, offsets);
  }

  /**
   * Computes the entropies of the components, in nats: {@code H(f_a) = ½ D (1 + ln 2π) + Σ_h ln σ_ah}, with {@code ln det L_a} as the last
   * term for full covariances. They are exact.
   *
   * @return a new array, of an entropy for each of {@link #components()}
   * @throws IllegalArgumentException if a diagonal or low-rank component has a variance v outside [2⁻⁵⁰⁰, 2⁵⁰⁰]
   */
  public double[] componentEntropies() {
    return MixtureBatch.componentEntropies(KlEngine.batch(components));
  }

  /**
   * Computes the upper bound H_KL of each mixture's entropy, in nats, by {@link KlEngine#weightedLogSumExp(Gaussians, Gaussians,
   * double[])}. A mixture of many needs a copy of its components.
   *
   * @param engine the engine that computes the divergences
   * @return a new array {@code [N]}
   * @throws IllegalArgumentException if the engine computes another divergence than KL, and as {@linkplain Mixtures described above}
   * @throws IllegalStateException if the engine is closed
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   * @throws CudaException if the device fails
   */
  public double[] entropyUpperBound(KlEngine engine) {
    Objects.requireNonNull(engine, "engine").requireKl("the upper bound is of KL");
    return batch("mixtures").entropyUpperBound(engine.engine);
  }

  /**
   * Computes the lower bound H_Cα of each mixture's entropy, in nats, with {@code Σ = (1−α)Σ_a + αΣ_b} and
   *
   * <pre>
   * C_α(f_a ‖ f_b) = ½ α(1−α) (μ_a − μ_b)ᵀ Σ⁻¹ (μ_a − μ_b) + ½ ln(det Σ / (det Σ_a^(1−α) det Σ_b^α))
   * </pre>
   *
   * <p>It is computed on the calling thread, as an engine of {@link Divergence#chernoff} does, by vectors where they run.
   *
   * @param alpha α, in [0, 1]. ½ gives the bound of the Bhattacharyya distance, the best one where the covariances are equal; 0 and 1 give
   *     the conditional entropy {@code Σ_a π_a H(f_a)}, which the mixture's entropy is never below
   * @return a new array {@code [N]}
   * @throws IllegalArgumentException if alpha is not in [0, 1], and as {@linkplain Mixtures described above}
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   */
  public double[] entropyLowerBound(double alpha) {
    if (!(alpha >= 0 && alpha <= 1)) {
      throw new IllegalArgumentException("alpha must be in [0, 1], but is " + alpha);
    }
    return batch("mixtures").entropyLowerBound(alpha);
  }

  /**
   * Computes each mixture's barycenter, the Gaussian q of the least {@code Σ_a π_a D(f_a ‖ q)}, of mean μ and covariance P:
   *
   * <pre>
   * KL                     μ = Σ π_a μ_a,         P = Σ π_a [P_a + (μ_a − μ)(μ_a − μ)ᵀ]: the mixture's moments
   * REVERSE_KL             P⁻¹μ = Σ π_a P_a⁻¹μ_a,  P⁻¹ = Σ π_a P_a⁻¹
   * SQUARED_WASSERSTEIN_2  μ = Σ π_a μ_a,         P = Σ π_a (P^½ P_a P^½)^½
   * </pre>
   *
   * <p>The last is found by the fixed point of P. C. Álvarez-Esteban et al., "A fixed-point approach to barycenters in Wasserstein space",
   * Journal of Mathematical Analysis and Applications 441 (2016) 744–762, to 1e-10 of both sides. Of diagonal components, q is the diagonal one of
   * the least sum, and the closed form is {@code σ = Σ π_a σ_a}. Weights of an {@linkplain #unnormalized(Gaussians, double[])
   * intensity} are divided by their sum. Everything is computed in double, on the calling thread.
   *
   * @param divergence {@link Divergence#KL}, {@link Divergence#REVERSE_KL} or {@link Divergence#SQUARED_WASSERSTEIN_2}
   * @return N Gaussians of double, of the components' kind, or full ones of low-rank components
   * @throws IllegalArgumentException if the divergence is another one; if covariances are so near to singular that double does not have
   *     the barycenter; of KL, as {@link MixtureReduction#runnalls(Mixtures, int)} does
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   */
  public Gaussians barycenters(Divergence divergence) {
    Objects.requireNonNull(divergence, "divergence");
    boolean isKl = divergence.equals(Divergence.KL);
    boolean isReverse = divergence.equals(Divergence.REVERSE_KL);
    if (!isKl && !isReverse && !divergence.equals(Divergence.SQUARED_WASSERSTEIN_2)) {
      throw new IllegalArgumentException(
          "there is no barycenter of %s here; take kl, reverse-kl or squared-wasserstein-2"
              .formatted(divergence));
    }
    int d = components.dimension();
    Batch batch = LowRankBatch.writtenOut(KlEngine.batch(components));
    if (isKl) {
      MixtureReduction.checkRange(batch);
    }
    Barycenter nearest = new Barycenter(batch, weights);
    double[] means = new double[size() * d];
    double[] scales = new double[size() * nearest.scale.length];
    for (int m = 0; m < size(); m++) {
      if (isKl) {
        nearest.ofMoments(offsets[m], offsets[m + 1]);
      } else if (isReverse) {
        nearest.ofPrecisions(offsets[m], offsets[m + 1]);
      } else {
        nearest.ofTransport(offsets[m], offsets[m + 1]);
      }
      System.arraycopy(nearest.mean, 0, means, m * d, d);
      System.arraycopy(nearest.scale, 0, scales, m * nearest.scale.length, nearest.scale.length);
    }
    return components instanceof DiagonalGaussians
        ? DiagonalGaussians.ofVariance(means, scales, d)
        : FullGaussians.ofCovariance(means, scales, d);
  }

  /**
   * Computes the least mean divergence of components over all couplings of weights, for each of these mixtures q and each of others:
   *
   * <pre>
   * out[m·M + n] = min_φ Σ_ab φ_ab D(q_a ‖ p_b),  Σ_b φ_ab = π_a,  Σ_a φ_ab = ω_b,  φ ≥ 0
   * </pre>
   *
   * <p>D is the engine's divergence. Of the {@linkplain Divergence#SQUARED_WASSERSTEIN_2 squared Wasserstein distance}, the root is a distance of
   * mixtures, which is the 2-Wasserstein distance with couplings that are mixtures of Gaussians, and never below that: J. Delon and A.
   * Desolneux, "A Wasserstein-type distance in the space of Gaussian mixture models", SIAM Journal on Imaging Sciences 13 (2020) 936–970. Of KL,
   * it is a bound that KL of the mixtures is never above.
   *
   * <p>The transport is exact, of the divergences as the engine has them, but for rounding: 1e-15 of the weight may go another way. It
   * is +∞ where more than 1e-12 of the weight can go by infinite divergences alone. The engine's threads share the pairs of mixtures. It goes by shortest paths, in
   * {@code O(k³)} time or a few times that for two mixtures of k components with weight: 50 and 50 take 1.3 ms, 200 and 200 84 ms, 300 and 300
   * 150 ms, or twice that where many divergences are equal (Zen 4). It needs memory as {@link MixtureKl#upperBound} does.
   *
   * @param p M mixtures
   * @param engine the engine that computes the divergences, of any
   * @return a new array {@code [N, M]}
   * @throws IllegalArgumentException if dimensions differ, if a sum of weights is not 1, or if so many divergences do not fit an array
   * @throws IllegalStateException if the engine is closed
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   * @throws CudaException if the device fails
   */
  public double[] transport(Mixtures p, KlEngine engine) {
    MixtureBatch others = Objects.requireNonNull(p, "p").batch("p");
    Engine by = Objects.requireNonNull(engine, "engine").engine;
    return new MixtureDivergences(batch("q").takenBy(by), others.takenBy(by)).transport(by);
  }

  @Override
  public String toString() {
    return "Mixtures[%d of %s]".formatted(size(), components);
  }
}
