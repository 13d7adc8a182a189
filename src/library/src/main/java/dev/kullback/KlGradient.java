package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.GradientCall;
import dev.kullback.internal.engine.GradientCall.Of;
import dev.kullback.internal.engine.Workspace;
import dev.kullback.internal.formula.PairGradient.Term;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Gradients of an engine's operations: the vector–Jacobian products that a training step needs, of {@link DiagonalGaussians} and KL, Jeffreys'
 * divergence or the squared 2-Wasserstein distance, and of {@link FullGaussians} and KL or Jeffreys' divergence. {@link KlEngine#gradient()} makes one.
 *
 * <p>A method computes the derivatives of {@code Σ g · out}, where {@code out} is what the engine's method of the same name gives for the same
 * batches and g, the cotangent, is the derivative of a loss by it. They are those by the parameters <em>as they were given</em>: by means, and by
 * σ, σ², ln σ² or 1/σ², or by the factor L, whatever {@link ScaleKind} the batch was made of. A scale that {@link ScalePolicy#CLAMPED} has changed
 * has the derivative 0. Scales that a batch's Gaussians share have one for each Gaussian, and those of one number for each Gaussian one in each
 * dimension, to be added up.
 *
 * <p>{@link #q(float[], float[])} and {@link #p(float[], float[])} say where the results of all following calls go: in the layout of what the batch was
 * made of, row-major {@code [N, D]} and {@code [M, D]}, or of factors {@code [N, D, D]}, 0 above the diagonal, or packed {@code [N, D(D+1)/2]}. They are
 * overwritten. A batch without arrays has its gradient left out; a call for which there are none at all is an {@link IllegalStateException}. If q is p, the same object, the parameters are the same, and q's arrays
 * get the sum of both gradients.
 *
 * <pre>
 * KL        ∂/∂μ_q = Σ_j g_ij d/v_p     ∂/∂v_q = ½ Σ_j g_ij (v_q − v_p)/(v_q v_p)     d = μ_q − μ_p
 *           ∂/∂μ_p = −Σ_i g_ij d/v_p    ∂/∂v_p = −½ Σ_i g_ij (v_q − v_p + d²)/v_p²
 *
 * of L      ∂/∂μ_q = Σ_j g_ij L_p⁻ᵀ y     ∂/∂L_q = Σ_j g_ij [tril(L_p⁻ᵀ E) + diag(E_kk/L_q,kk)]     L_p y = μ_q − μ_p
 *           ∂/∂μ_p = −Σ_i g_ij L_p⁻ᵀ y    ∂/∂L_p = −Σ_i g_ij tril(L_p⁻ᵀ (yyᵀ + E + Eᵀ + EEᵀ))     L_p E = L_q − L_p
 * </pre>
 *
 * <p>The error is at most 1e-5 of the sum of the magnitudes of these terms, d² and {@code v_q − v_p} apart, and 1e-12 of it if either batch is of
 * double, of factors times {@code cond(L_p)}. That holds however near the Gaussians are, as differences are computed without loss; equal Gaussians have
 * exactly 0. No result is NaN: of diagonal batches, a term's derivative by a mean or by the logarithm of a scale that is beyond double's range counts as its greatest
 * number; of full ones, whose gradient cannot be told then, it is an {@link IllegalArgumentException}. Beside these errors, numbers below 1e-30 may lose
 * digits, of batches of double below 1e-290: derivatives, and cotangents or weights times d² or {@code v_q − v_p}, which are far smaller where all σ are. A loss of {@link #logSumExp} weighs divergences of 1e-12; a column with less than
 * e⁻⁷⁰⁷ of the greatest weight of a row has none. The bits do not depend on threads.
 *
 * <p>Memory: for each Gaussian and each dimension, rounded up to 16 dimensions, 16 bytes of the engine's and 16 that the batch keeps, 32 of double, of
 * log-variances near 0 as many again. The weights of {@link #logSumExp} take up to 32 MB, and of each thread 256 bytes for each of M, up to 32 MB again; from an M of
 * 2¹⁹ on both take 64 bytes for each. Calls with an M above 2¹⁵ allocate what is a thread's anew, above 2¹⁹ both. Pairs of rows need none of it, but a batch of log-variances keeps 8 bytes, which one of its first calls allocates. Full batches need
 * {@code 4D(D + 3)} bytes of the engine's for each Gaussian. All other warm calls with one thread allocate nothing. An instance is for one thread at a
 * time; an engine may have many.
 *
 * @since 0.1.0
 */
public final class KlGradient {
  private final KlEngine owner;
  private final Engine engine;
  private final GradientCall call = new GradientCall();

  KlGradient(KlEngine owner) {
    this.owner = owner;
    engine = owner.engine.ofGradients();
  }

  /**
   * Has q's gradients stored.
   *
   * @param mean receives the derivatives by q's means, {@code [N, D]}
   * @param scale receives those by q's scales as they were given, {@code [N, D]}, or by its factors; another array
   * @return this
   */
  public KlGradient q(float[] mean, float[] scale) {
    return send(true, mean, scale);
  }

  /** Has q's gradients stored, as {@link #q(float[], float[])} does. */
  public KlGradient q(double[] mean, double[] scale) {
    return send(true, mean, scale);
  }

  /**
   * Has p's gradients stored.
   *
   * @param mean receives the derivatives by p's means, {@code [M, D]}
   * @param scale receives those by p's scales as they were given, {@code [M, D]}, or by its factors; another array
   * @return this
   */
  public KlGradient p(float[] mean, float[] scale) {
    return send(false, mean, scale);
  }

  /** Has p's gradients stored, as {@link #p(float[], float[])} does. */
  public KlGradient p(double[] mean, double[] scale) {
    return send(false, mean, scale);
  }

  /**
   * Computes the gradient of {@code Σ_ij g_ij KL(q_i ‖ p_j)}.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param cotangent g, row-major {@code [N, M]}, finite
   */
  public void pairwise(Gaussians q, Gaussians p, float[] cotangent) {
    checkCotangents(checkMatrix(q, p), Objects.requireNonNull(cotangent, "cotangent").length);
    call.set(cotangent, null, p.size());
    run("gradient.pairwise", q, p);
  }

  /** Computes the gradient of {@link #pairwise(Gaussians, Gaussians, float[])}. */
  public void pairwise(Gaussians q, Gaussians p, double[] cotangent) {
    checkCotangents(checkMatrix(q, p), Objects.requireNonNull(cotangent, "cotangent").length);
    call.set(null, cotangent, p.size());
    run("gradient.pairwise", q, p);
  }

  /**
   * Computes the gradient of {@code Σ_i g_i KL(q_i ‖ p_i)}.
   *
   * @param q N Gaussians
   * @param p N Gaussians
   * @param cotangent g, N numbers, finite
   */
  public void aligned(Gaussians q, Gaussians p, double[] cotangent) {
    Arguments.checkAligned(engine.formula(), batch(q, "q"), batch(p, "p"));
    rows("gradient.aligned", Of.PAIRS, q, p, cotangent, null);
  }

  /**
   * Computes the gradient of {@code Σ_i g_i KL(q_i ‖ N(0, I))}.
   *
   * @param q N Gaussians
   * @param cotangent g, N numbers, finite
   */
  public void toStandardNormal(Gaussians q, double[] cotangent) {
    Arguments.checkStandard(engine.formula(), batch(q, "q"));
    checkCotangent(q, cotangent);
    checkTarget(true, q);
    if (!call.isSent(true)) {
      throw new IllegalStateException(
          "nowhere to store the gradient; give arrays by q(mean, scale) before");
    }
    call.set(Of.PAIRS, cotangent, null);
    run("gradient.toStandardNormal", q, null);
  }

  /**
   * Computes the gradient of {@code Σ_i g_i Σ_j KL(q_i ‖ p_j)}.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param cotangent g, N numbers, finite
   */
  public void rowSum(Gaussians q, Gaussians p, double[] cotangent) {
    checkPair(q, p);
    rows("gradient.rowSum", Of.SUMS, q, p, cotangent, null);
  }

  /**
   * Computes the gradient of {@code Σ_i g_i ln Σ_j exp(−KL(q_i ‖ p_j))}. The weights of the columns in a row, their shares of the sum, are made on the
   * way, some rows at a time. A row of which no term is left, as all divergences are +∞, has the gradient 0.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param cotangent g, N numbers, finite
   */
  public void logSumExp(Gaussians q, Gaussians p, double[] cotangent) {
    checkPair(q, p);
    rows("gradient.logSumExp", Of.SOFTMAX, q, p, cotangent, null);
  }

  /**
   * Computes the gradient of {@code Σ_i g_i ln Σ_j exp(w_j − KL(q_i ‖ p_j))} by the parameters of q and p, as {@link #logSumExp} does.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param logWeights w, M numbers, none NaN or +∞; −∞ leaves a term out
   * @param cotangent g, N numbers, finite
   */
  public void weightedLogSumExp(Gaussians q, Gaussians p, double[] logWeights, double[] cotangent) {
    checkPair(q, p);
    Arguments.checkLogWeights(batch(p, "p"), logWeights, null);
    rows("gradient.weightedLogSumExp", Of.SOFTMAX, q, p, cotangent, logWeights);
  }

  private KlGradient send(boolean ofQ, float[] mean, float[] scale) {
    checkArrays(mean, scale);
    call.send(ofQ, mean, scale);
    return this;
  }

  private KlGradient send(boolean ofQ, double[] mean, double[] scale) {
    checkArrays(mean, scale);
    call.send(ofQ, mean, scale);
    return this;
  }

  private static void checkArrays(Object mean, Object scale) {
    if (Objects.requireNonNull(mean, "mean") == Objects.requireNonNull(scale, "scale")) {
      throw new IllegalArgumentException(
          "mean and scale are the same array; each receives a gradient of its own");
    }
  }

  /** Computes a gradient whose cotangents are of rows. */
  private void rows(
      String operation,
      Of of,
      Gaussians q,
      Gaussians p,
      double[] cotangent,
      double @Nullable [] logWeights) {
    checkAlike(q, p);
    checkCotangent(q, cotangent);
    checkTargets(q, p);
    call.set(of, cotangent, logWeights);
    run(operation, q, p);
  }

  /** Computes a call that is checked. */
  private void run(String operation, Gaussians q, @Nullable Gaussians p) {
    try {
      Workspace workspace = engine.begin();
      workspace.gradient(operation, call, batch(q, "q"), p == null ? null : batch(p, "p"));
    } finally {
      call.clear();
    }
  }

  /** Checks batches, and returns how many cotangents a matrix has. */
  private int checkMatrix(Gaussians q, Gaussians p) {
    int length = Arguments.arrayLength(engine.formula(), batch(q, "q"), batch(p, "p"));
    checkAlike(q, p);
    checkTargets(q, p);
    return length;
  }

  private void checkPair(Gaussians q, Gaussians p) {
    Arguments.check(engine.formula(), batch(q, "q"), batch(p, "p"), false);
  }

  /** Checks a length: a cotangent that is longer is likely to be of another operation. */
  private static void checkCotangents(int needed, int length) {
    if (length != needed) {
      throw new IllegalArgumentException(
          "cotangent has %d elements; it must have %d, one for each value"
              .formatted(length, needed));
    }
  }

  private static void checkCotangent(Gaussians q, double[] cotangent) {
    checkCotangents(q.size(), Objects.requireNonNull(cotangent, "cotangent").length);
    for (int i = 0; i < q.size(); i++) {
      if (!(Math.abs(cotangent[i]) <= Double.MAX_VALUE)) {
        throw new IllegalArgumentException(
            "cotangent[%d] is %s; it must be finite".formatted(i, cotangent[i]));
      }
    }
  }

  private void checkTargets(Gaussians q, Gaussians p) {
    if (call.sendsTwice()) {
      throw new IllegalArgumentException(
          "an array for q's gradient is one for p's, too; each receives a gradient of its own");
    }
    if (q == p && call.isSent(false)) {
      throw new IllegalArgumentException(
          "q is p, whose gradient is the sum of both: it goes to q's arrays, so give none for p");
    }
    checkTarget(true, q);
    checkTarget(false, p);
    if (!call.isSent(true) && !call.isSent(false)) {
      throw new IllegalStateException(
          "nowhere to store gradients; give arrays by q(mean, scale), p(mean, scale) or both before");
    }
  }

  /** Describes the engine and whose gradients are stored. */
  @Override
  public String toString() {
    String stored =
        call.isSent(true)
            ? call.isSent(false) ? "of q and p" : "of q"
            : call.isSent(false) ? "of p" : "not stored yet";
    return "KlGradient[%s, gradients %s]".formatted(owner.engine.describe(), stored);
  }

  private void checkTarget(boolean ofQ, Gaussians gaussians) {
    if (!call.isSent(ofQ)) {
      return;
    }
    Batch batch = batch(gaussians, ofQ ? "q" : "p");
    int n = batch.size();
    int d = batch.dimension();
    Arguments.checkLength(
        ofQ ? "the array for q's gradient by means" : "the array for p's gradient by means",
        n * d,
        call.meanLength(ofQ));
    long each = batch instanceof FullBatch f ? f.given().length(d) : d;
    if (n * each > Batch.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "a gradient by %d x %d elements does not fit an array; divide the batch by rows, or give packed factors"
              .formatted(n, each));
    }
    Arguments.checkLength(
        ofQ ? "the array for q's gradient by scales" : "the array for p's gradient by scales",
        (int) (n * each),
        call.scaleLength(ofQ));
  }

  /** Returns a batch if its gradient is computed. */
  private Batch batch(Gaussians gaussians, String name) {
    owner.engine.checkOpen();
    switch (Objects.requireNonNull(gaussians, name)) {
      case DiagonalGaussians g -> {
        if (engine.formula().hasDeterministic() && g.batch.isDeterministic()) {
          throw new IllegalArgumentException(
              name
                  + " is deterministic (std 0), whose divergence is 0 by convention and has no gradient");
        }
        return g.batch;
      }
      case FullGaussians g -> {
        if (Term.required(engine.formula()) == Term.WASSERSTEIN_2) {
          throw new IllegalArgumentException(
              name
                  + " has full covariances, whose gradients are computed of kl and jeffreys alone; give diagonal ones");
        }
        if (!g.batch.given().isTriangular()) {
          throw new IllegalArgumentException(
              "%s was not made of factors L, by which gradients are computed; give the Cholesky factor L of Σ = LLᵀ, which is ScaleKind.SCALE_TRIL or --scale-tril"
                  .formatted(name));
        }
        return g.batch;
      }
      case LowRankGaussians _ ->
          throw new IllegalArgumentException(
              name
                  + " has low-rank covariances, whose gradients are not computed; give diagonal ones, or L of Σ = LLᵀ, which is ScaleKind.SCALE_TRIL or --scale-tril");
    }
  }

  /** Checks that both are diagonal, or both full. */
  private static void checkAlike(Gaussians q, Gaussians p) {
    if (q instanceof FullGaussians != p instanceof FullGaussians) {
      boolean isQ = q instanceof FullGaussians;
      throw new IllegalArgumentException(
          "%s has full covariances and %s has diagonal ones, of which gradients are not computed; give both as FullGaussians, by factors L with σ on the diagonal"
              .formatted(isQ ? "q" : "p", isQ ? "p" : "q"));
    }
  }
}
