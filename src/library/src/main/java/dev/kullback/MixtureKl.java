package dev.kullback;

import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.mixture.MixtureDivergences;
import java.util.Objects;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The divergences {@code KL(q_m ‖ p_n)}, in nats, of N mixtures {@code q_m = Σ_a π_a q_a} from M mixtures {@code p_n = Σ_b ω_b p_b}. They
 * have no closed form; there are two bounds, an estimate by sampling, and approximations. Each is a matrix, row-major {@code [N, M]}.
 *
 * <ul>
 *   <li>Bounds: the divergence is never below {@link #lowerBound} nor above {@link #upperBound}. The latter is 0 for equal mixtures up to
 *       its tolerance.
 *   <li>An estimate: {@link #monteCarlo} goes to the divergence with the number of samples, and comes with a standard error.
 *   <li>Approximations: {@link #variational}, {@link #productOfGaussians} and {@link #matchedPairs} are no bounds, and their
 *       error is unknown. Where components overlap, they may be several times the divergence. The first two are 0 for equal mixtures up to rounding, and
 *       may be negative.
 * </ul>
 *
 * <p>All but the lower bound are those of J. R. Hershey and P. A. Olsen, "Approximating the Kullback Leibler divergence between Gaussian
 * mixture models", ICASSP 2007, IV-317–320, and exact where both mixtures have one component, but for the product of Gaussians.
 *
 * <p>The divergences of components come from an engine; their relative errors, at most 1e-5 for batches of float and 1e-12 for those of
 * double, pass on to the results at most relatively to the greatest divergence that counts in these. The rest is computed in double. The engine's threads share the
 * components of the mixtures q, or the samples, and bits do not depend on them; a method without an engine is the calling thread's. Memory does not grow with all pairs of
 * components: each thread has the divergences of a block, 65,536 or those of eight components of q if these are more, and where a q_m is in several blocks, M doubles
 * for each component of those that wait for an earlier one. {@link #upperBound} needs those of all components of two mixtures, and is a thread's for each two mixtures. A {@code MixtureKl} is immutable and safe for use by any number of threads.
 *
 * @since 0.1.0
 */
public final class MixtureKl {
  private final MixtureDivergences divergences;
  private final int rows;
  private final int columns;

  private MixtureKl(Mixtures q, Mixtures p) {
    divergences = new MixtureDivergences(q.batch("q"), p.batch("p"));
    rows = q.size();
    columns = p.size();
  }

  /**
   * Prepares for two batches of mixtures.
   *
   * @param q N mixtures, the rows
   * @param p M mixtures of the same dimension, the columns
   * @return the divergences, which are computed by their methods
   * @throws IllegalArgumentException if the dimensions differ, if the weights of a mixture are {@linkplain Mixtures#unnormalized(Gaussians,
   *     double[], int[]) unnormalized} and do not have the sum 1 to 1e-5, or if the matrix has more elements than an array. {@link #upperBound}
   *     throws it if the divergences of two mixtures' components are more
   */
  public static MixtureKl of(Mixtures q, Mixtures p) {
    Objects.requireNonNull(q, "q");
    Objects.requireNonNull(p, "p");
    int d = q.components().dimension();
    if (d != p.components().dimension()) {
      throw new IllegalArgumentException(
          "q has dimension %d but p has %d; they must be the same"
              .formatted(d, p.components().dimension()));
    }
    MixtureDivergences.requireArray((long) q.size() * p.size(), "of mixtures");
    return new MixtureKl(q, p);
  }

  /**
   * Computes the lower bound of J.-L. Durrieu, J.-P. Thiran and F. Kelly, "Lower and upper bounds for approximation of the Kullback-Leibler
   * divergence between Gaussian mixture models", ICASSP 2012, 4833–4836, with the entropies {@code H(q_a) = ½ ln det(2πe Σ_a)}:
   *
   * <pre>
   * Σ_a π_a [ ln( Σ_a' π_a' exp(−KL(q_a ‖ q_a')) / Σ_b ω_b ∫ q_a p_b ) − H(q_a) ] ≤ KL(q ‖ p)
   * </pre>
   *
   * <p>Where that is negative, the bound is 0. Even for two Gaussians it is below the divergence; for equal ones by {@code ½ D (1 − ln 2)}
   * before that.
   *
   * <p>It takes the divergences of q's components from each other and, as {@link #productOfGaussians}, {@code O(D)} time for each pair of
   * components, and {@code O(D³)} with full covariances.
   *
   * @param engine computes the components' divergences, which are KL
   * @return a new array {@code [N, M]}, never above the divergences but for rounding
   */
  public double[] lowerBound(KlEngine engine) {
    return divergences.lowerBound(ofKl(engine));
  }

  /**
   * Computes the variational approximation, section 7 of the paper. It is neither a bound nor an estimate:
   *
   * <pre>
   * Σ_a π_a ln( Σ_a' π_a' exp(−KL(q_a ‖ q_a')) / Σ_b ω_b exp(−KL(q_a ‖ p_b)) )
   * </pre>
   *
   * @param engine computes the components' divergences, which are KL
   * @return a new array {@code [N, M]}
   */
  public double[] variational(KlEngine engine) {
    return divergences.variational(ofKl(engine));
  }

  /**
   * Computes the product-of-Gaussians approximation, section 5 of the paper. It is neither a bound nor an estimate:
   *
   * <pre>
   * Σ_a π_a ln( Σ_a' π_a' ∫ q_a q_a' / Σ_b ω_b ∫ q_a p_b )
   * </pre>
   *
   * <p>It takes {@code O(D)} time for each pair of components, and {@code O(D³)} with full covariances.
   *
   * @return a new array {@code [N, M]}
   */
  public double[] productOfGaussians() {
    return divergences.productOfGaussians(null);
  }

  /**
   * Computes {@link #productOfGaussians()} by the threads of an engine.
   *
   * @param engine an engine of any divergence, whose threads share the components
   * @return a new array {@code [N, M]}, the same to the bit
   */
  public double[] productOfGaussians(KlEngine engine) {
    return divergences.productOfGaussians(engine.engine);
  }

  /**
   * Computes the approximation by matched pairs, section 6 of the paper, of J. Goldberger, S. Gordon and H. Greenspan, ICCV 2003. It is
   * neither a bound nor an estimate:
   *
   * <pre>
   * Σ_a π_a min_b [ KL(q_a ‖ p_b) + ln π_a − ln ω_b ]
   * </pre>
   *
   * @param engine computes the components' divergences, which are KL
   * @return a new array {@code [N, M]}
   */
  public double[] matchedPairs(KlEngine engine) {
    return divergences.matchedPairs(ofKl(engine));
  }

  /**
   * Computes the variational upper bound, section 8 of the paper: the least, over weights φ with {@code Σ_b φ_ab = π_a} and ψ with {@code
   * Σ_a ψ_ab = ω_b}, of
   *
   * <pre>
   * Σ_ab φ_ab [ ln(φ_ab / ψ_ab) + KL(q_a ‖ p_b) ] ≥ KL(q ‖ p)
   * </pre>
   *
   * <p>An iteration comes to within 1e-9 nats of it, or 1e-9 of a bound above 1, for the components' divergences as the engine has them.
   * It ends when a bound from below proves that. Mixtures of up to 200 components took at most 92 rounds, whatever their weights. After
   * 1000 rounds, it would end with what it has, which is an upper bound, too. A round takes {@code O(k² K)} time for mixtures of k and K ≥
   * k components; 50 and 50 took 5 ms in all. Beside the divergences, it needs five doubles for each pair of components of two mixtures.
   *
   * @param engine computes the components' divergences, which are KL
   * @return a new array {@code [N, M]}
   */
  public double[] upperBound(KlEngine engine) {
    return divergences.upperBound(ofKl(engine));
  }

  /**
   * Estimates the divergences as means of {@code ln q_m(x) − ln p_n(x)} over S samples x of q_m.
   *
   * <p>Samples of a row are the same for all columns. They come from the m-th {@link SplittableRandom#split()} of a {@link
   * SplittableRandom} of the seed: for each sample a {@code nextDouble()}, which chooses the component, and D values of {@code
   * nextGaussian()}. So the bits of an estimate depend on its two mixtures, on m, the seed and the JDK's generator. It takes {@code O(S
   * D)} time for each component, and {@code O(S D²)} with full covariances.
   *
   * @param samples S, at least 2
   * @param seed the seed of the generator
   * @return the estimates of the N·M entries, that of (m, n) as number {@code m·M + n}, unbiased, with standard errors from the samples'
   *     variance and a bound on rounding. An error below 1e-12 or so is that bound
   * @throws IllegalArgumentException if there are fewer samples, or if one is drawn of a component of q with a standard deviation, or an
   *     element of a factor's diagonal, outside [2⁻¹⁰⁰⁰, 2¹⁰⁰⁰]
   */
  public MonteCarloEstimates monteCarlo(int samples, long seed) {
    return monteCarlo(null, samples, seed);
  }

  /**
   * Estimates the divergences as {@link #monteCarlo(int, long)} does, by the threads of an engine.
   *
   * @param samples S, at least 2
   * @param seed the seed of the generator
   * @param engine an engine of any divergence, whose threads share the samples, which the caller draws where there are few rows
   * @return the same estimates, to the bit
   * @throws IllegalArgumentException as {@link #monteCarlo(int, long)} does
   */
  public MonteCarloEstimates monteCarlo(int samples, long seed, KlEngine engine) {
    return monteCarlo(engine.engine, samples, seed);
  }

  private MonteCarloEstimates monteCarlo(@Nullable Engine engine, int samples, long seed) {
    if (samples < 2) {
      throw new IllegalArgumentException("samples must be at least 2, is " + samples);
    }
    double[] estimates = new double[rows * columns];
    double[] errors = new double[estimates.length];
    divergences.monteCarlo(engine, samples, seed, estimates, errors);
    return new MonteCarloEstimates(samples, estimates, errors);
  }

  private static Engine ofKl(KlEngine engine) {
    engine.requireKl("divergences of mixtures need that of components");
    return engine.engine;
  }

  @Override
  public String toString() {
    return "MixtureKl[%d x %d]".formatted(rows, columns);
  }
}
