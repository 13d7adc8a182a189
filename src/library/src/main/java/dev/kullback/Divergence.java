package dev.kullback;

import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.RenyiAboveOne;
import dev.kullback.internal.formula.Wasserstein2;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.function.DoubleFunction;
import java.util.stream.Collectors;

/**
 * A divergence of two Gaussians, which a {@link KlEngine} computes if it is
 * {@linkplain KlEngine.Builder#divergence(Divergence) told to}. Wherever methods and pages write {@code KL(q ‖ p)}, such
 * an engine computes this divergence of q and p instead.
 *
 * <p>Formulas are for diagonal Gaussians, with the variances v, {@code d = μ_q − μ_p} and sums over the dimensions, and
 * for full covariances Σ with {@code d} as a vector. All are in nats, but for Hellinger's distance, a number, the
 * Wasserstein distance, whose unit is the means', and its square. None is negative, none is NaN, and all are exactly 0 for
 * identical parameters. Errors are those that the {@linkplain dev.kullback package description} promises for KL, for full
 * covariances with the greater of both condition numbers. Where a divergence is symmetric, exchanging q and p changes no bit.
 *
 * <p>Searches order and decide as exact arithmetic does, as {@link KlEngine#nearest(Gaussians, Gaussians, int)} describes
 * it for KL. With full covariances, what is left uncertain are roundings of double, times condition numbers.
 *
 * @since 0.1.0
 */
public final class Divergence {
  /** {@code KL(q ‖ p)}, the default. */
  public static final Divergence KL = new Divergence("kl", Kl.FORWARD);

  /** {@code KL(p ‖ q)}: KL with the roles exchanged. */
  public static final Divergence REVERSE_KL = new Divergence("reverse-kl", Kl.REVERSE);

  /**
   * Jeffreys' divergence {@code KL(q ‖ p) + KL(p ‖ q)}, symmetric: {@code ½ Σ [(v_q − v_p)²/(v_q v_p) + d² (1/v_q + 1/v_p)]}.
   */
  public static final Divergence JEFFREYS = new Divergence("jeffreys", Jeffreys.FORMULA);

  /**
   * The Bhattacharyya distance {@code B = −ln ∫ √(q p)}, symmetric: {@code ¼ Σ d²/(v_q + v_p) + ½ Σ ln[(v_q + v_p)/(2 σ_q
   * σ_p)]}, or {@code ⅛ dᵀ Σ⁻¹ d + ½ ln[det Σ/√(det Σ_q det Σ_p)]} with {@code Σ = ½ (Σ_q + Σ_p)}.
   */
  public static final Divergence BHATTACHARYYA =
      new Divergence("bhattacharyya", Chernoff.BHATTACHARYYA);

  /**
   * Hellinger's distance {@code √(1 − e^−B)}, symmetric, with the Bhattacharyya distance B: in [0, 1]. Where it is near 1,
   * searches no longer tell one from another, from B = 55 on; nor do {@linkplain Query#exact exact lists}, whose values are
   * doubles, from B = 37 on. {@link #BHATTACHARYYA} gives the same order, and tells.
   */
  public static final Divergence HELLINGER = new Divergence("hellinger", Chernoff.HELLINGER);

  /**
   * The 2-Wasserstein distance, symmetric, in the unit of the means: the root of {@link #SQUARED_WASSERSTEIN_2}, rounded once, so with half
   * its relative error. It is as accurate where the square would overflow or underflow and the distance does not. It needs no inverse of a
   * covariance, so Gaussians may be singular: see {@link ScalePolicy#SEMIDEFINITE}.
   */
  public static final Divergence WASSERSTEIN_2 =
      new Divergence("wasserstein-2", Wasserstein2.DISTANCE);

  /**
   * The squared 2-Wasserstein distance, symmetric, in the square of the means' unit: {@code Σ [d² + (σ_q − σ_p)²]}, or {@code
   * ‖d‖² + tr Σ_q + tr Σ_p − 2 tr (√Σ_q Σ_p √Σ_q)^½} (D. Dowson, B. Landau, 1982), which for Gaussians is the Fréchet distance that FID
   * computes. With a full covariance, its relative error is at most 1e-12 times the square of the greater condition number
   * {@code ‖L‖‖L⁻¹‖} (1e-5 for batches of float, up to condition numbers of Σ of 1e6), and two values that are nearer to each
   * other than that may come in either order. Gaussians may be singular, as for {@link #WASSERSTEIN_2}: the condition number is then that of
   * the directions with a variance, and the error of a pair whose directions differ is relative to the sum of both traces.
   */
  public static final Divergence SQUARED_WASSERSTEIN_2 =
      new Divergence("squared-wasserstein-2", Wasserstein2.SQUARED);

  /** All divergences but the families, whose names have an order. */
  static final List<Divergence> NAMED =
      List.of(
          KL, REVERSE_KL, JEFFREYS, BHATTACHARYYA, HELLINGER, WASSERSTEIN_2, SQUARED_WASSERSTEIN_2);

  private static final String RENYI = "renyi";
  private static final String CHERNOFF = "chernoff";

  /** Orders that are whole are written without a point below this one, as {@link Double#toString} writes them without an exponent. */
  private static final double MOST_WHOLE = 1e7;

  final Formula formula;
  private final String name;
  private final OptionalDouble alpha;

  private Divergence(String name, Formula formula) {
    this(name, formula, OptionalDouble.empty());
  }

  private Divergence(String name, Formula formula, OptionalDouble alpha) {
    this.name = name;
    this.formula = formula;
    this.alpha = alpha;
  }

  /**
   * Rényi's divergence {@code (α − 1)⁻¹ ln ∫ q^α p^(1−α)} of order α: with {@code v = α v_p + (1 − α) v_q} it is {@code ½ α Σ
   * d²/v + ½ (1 − α)⁻¹ Σ ln[v/(v_q^(1−α) v_p^α)]} (M. Gil, F. Alajaji, T. Linder, 2013). It goes to {@code KL(q ‖ p)} for α → 1.
   *
   * <p>Where α is above 1, it is +∞ if v is not positive in each dimension, or {@code α Σ_p + (1 − α) Σ_q} is not positive definite.
   * With full covariances, the error grows by the greatest ratio of {@code α Σ_p} to that matrix. These orders are computed pair by pair in plain code,
   * which takes many times as long as an order below 1.
   *
   * @param alpha α, in (0, 1) or in (1, 2⁵⁰⁰]
   * @return the divergence
   * @throws IllegalArgumentException if alpha is 1, whose divergence is {@link #KL}, or outside (0, 2⁵⁰⁰]
   */
  public static Divergence renyi(double alpha) {
    if (alpha == 1) {
      throw new IllegalArgumentException("alpha is 1: that is kl");
    }
    return alpha > 1 && alpha <= RenyiAboveOne.MOST_ALPHA
        ? ofFamily(RENYI, alpha, new RenyiAboveOne(alpha))
        : ofOrder(RENYI, alpha, "(0, 1) or above 1, up to 2^500", Chernoff::renyi);
  }

  /**
   * The Chernoff α-divergence {@code C_α = −ln ∫ q^α p^(1−α)}: {@code 1 − α} times {@link #renyi}. With α = ½, it is the
   * Bhattacharyya distance.
   *
   * @param alpha α, in (0, 1)
   * @return the divergence
   * @throws IllegalArgumentException if alpha is not in (0, 1)
   */
  public static Divergence chernoff(double alpha) {
    return ofOrder(CHERNOFF, alpha, "(0, 1)", Chernoff::ofOrder);
  }

  private static Divergence ofOrder(
      String name, double alpha, String orders, DoubleFunction<Formula> formula) {
    if (!(alpha > 0 && alpha < 1)) {
      throw new IllegalArgumentException("alpha must be in " + orders + ", but is " + alpha);
    }
    return ofFamily(name, alpha, formula.apply(alpha));
  }

  private static Divergence ofFamily(String name, double alpha, Formula formula) {
    String order = alpha < MOST_WHOLE && alpha % 1 == 0 ? "" + (long) alpha : "" + alpha;
    return new Divergence(name + ":" + order, formula, OptionalDouble.of(alpha));
  }

  /**
   * Finds a divergence by its {@link #name()}: {@code kl}, {@code reverse-kl}, {@code jeffreys}, {@code bhattacharyya}, {@code
   * hellinger}, {@code wasserstein-2}, {@code squared-wasserstein-2}, {@code renyi:ALPHA} or {@code chernoff:ALPHA}, with a
   * number for ALPHA, as {@code renyi:0.5}. Letters may be of either case, and {@code _} may stand for {@code -}.
   *
   * @param name the name
   * @return the divergence
   * @throws IllegalArgumentException if there is none of this name, with all names in its message and the one that may be meant, or if there is
   *     none of this α
   */
  public static Divergence of(String name) {
    String wanted = Objects.requireNonNull(name, "name").toLowerCase(Locale.ROOT).replace('_', '-');
    for (Divergence divergence : NAMED) {
      if (divergence.name.equals(wanted)) {
        return divergence;
      }
    }
    int colon = wanted.indexOf(':');
    String family = colon < 0 ? "" : wanted.substring(0, colon);
    if (family.equals(RENYI) || family.equals(CHERNOFF)) {
      double alpha = order(wanted.substring(colon + 1));
      return family.equals(RENYI) ? renyi(alpha) : chernoff(alpha);
    }
    String names = NAMED.stream().map(Divergence::name).collect(Collectors.joining(", "));
    String advice = DivergenceNames.advice(name);
    throw new IllegalArgumentException(
        "there is no divergence '%s'%s; give %s, %s:ALPHA or %s:ALPHA"
            .formatted(name, advice.isEmpty() ? "" : " (" + advice + ")", names, RENYI, CHERNOFF));
  }

  private static double order(String text) {
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(
          "'" + text + "' is not a number; give one, as in renyi:0.5", e);
    }
  }

  /** {@return the name, which {@link #of} takes, as {@code kl} or {@code renyi:0.5}} */
  public String name() {
    return name;
  }

  /** {@return the order α of {@link #renyi} or {@link #chernoff}, else empty} */
  public OptionalDouble alpha() {
    return alpha;
  }

  /** {@return whether exchanging q and p never changes a value} */
  public boolean isSymmetric() {
    return formula.isSymmetric();
  }

  /**
   * {@return whether an engine of this divergence takes {@link LowRankGaussians}, as those of KL, its reverse and Jeffreys' divergence do; on a CUDA
   * device none does}
   */
  public boolean takesLowRank() {
    return formula.hasLowRank();
  }

  /**
   * {@return whether Gaussians of {@link ScalePolicy#SEMIDEFINITE} may be singular, as for the Wasserstein distance and its square; an index of such a
   * divergence takes no points}
   */
  public boolean takesSingular() {
    return !formula.needsInverse();
  }

  /** {@return whether the other is a divergence of the same name} */
  @Override
  public boolean equals(Object other) {
    return other instanceof Divergence divergence && name.equals(divergence.name);
  }

  @Override
  public int hashCode() {
    return name.hashCode();
  }

  /** {@return a text for people} */
  @Override
  public String toString() {
    return name;
  }
}
