package dev.kullback.testing;

import java.util.Arrays;

/**
 * KL divergences of the exact parameters, right far beyond double: {@code KL = (T - D - (ln|q| -
 * ln|p|) + S) / 2} with {@code T} the sum of variance ratios, {@code S} of squared scaled mean
 * differences and {@code |.|} the product of variances, all in {@link BigFloat}. The cancellation
 * in {@code T - D - ln} costs at most twice the digits of the closest parameters: with 77 digits
 * and parameters that differ by 1e-16, 45 remain.
 */
public final class Oracle {
  /**
   * Below this, T - D - ln is rounding: equal distributions. Differing doubles near 1 give 2^-108
   * or more.
   */
  private static final int ZERO_POWER = -200;

  private final Batch q;
  private final Batch p;
  private final BigFloat[] qVariance;
  private final BigFloat[] pPrecision;
  private final BigFloat[] qLogDeterminant;
  private final BigFloat[] pLogDeterminant;

  public Oracle(Batch q, Batch p) {
    this.q = q;
    this.p = p;
    BigFloat[] pVariance = variances(p);
    qVariance = q == p ? pVariance : variances(q);
    pPrecision = Arrays.stream(pVariance).map(BigFloat.ONE::dividedBy).toArray(BigFloat[]::new);
    pLogDeterminant = logDeterminants(p, pVariance);
    qLogDeterminant = q == p ? pLogDeterminant : logDeterminants(q, qVariance);
  }

  /** KL(q_i, p_j), in nats. */
  public BigFloat kl(int i, int j) {
    int dimension = q.dimension();
    BigFloat ratios = BigFloat.ZERO;
    for (int h = 0; h < dimension; h++) {
      ratios = ratios.plus(qVariance[i * dimension + h].times(pPrecision[j * dimension + h]));
    }
    BigFloat squares = mahalanobis(i, j);
    BigFloat shape =
        ratios.minus(BigFloat.of(dimension)).minus(qLogDeterminant[i].minus(pLogDeterminant[j]));
    return (shape.below(ZERO_POWER) ? squares : shape.plus(squares)).half();
  }

  /** Σ (μq_i − μp_j)²/σp_j², of the means of q alone. */
  public BigFloat mahalanobis(int i, int j) {
    BigFloat squares = BigFloat.ZERO;
    for (int a = i * q.dimension(), b = j * q.dimension(); a < (i + 1) * q.dimension(); a++, b++) {
      if (q.mean()[a] != p.mean()[b]) {
        BigFloat d = BigFloat.of(q.mean()[a]).minus(BigFloat.of(p.mean()[b]));
        squares = squares.plus(d.times(d).times(pPrecision[b]));
      }
    }
    return squares;
  }

  /** Σ ln σp_j². */
  public BigFloat logDeterminant(int j) {
    return pLogDeterminant[j];
  }

  /** Row-major [N, M], rounded to double; infinite beyond its range. */
  public double[] pairwise() {
    double[] result = new double[q.size() * p.size()];
    for (int i = 0; i < q.size(); i++) {
      for (int j = 0; j < p.size(); j++) {
        result[i * p.size() + j] = kl(i, j).toDouble();
      }
    }
    return result;
  }

  public static double[] pairwise(Batch q, Batch p) {
    return Known.answer(() -> new Oracle(q, p).pairwise(), "diagonal", q, p);
  }

  static BigFloat[] variances(Batch batch) {
    BigFloat[] result = new BigFloat[batch.scale().length];
    for (int i = 0; i < result.length; i++) {
      BigFloat scale = BigFloat.of(batch.scale()[i]);
      result[i] =
          switch (batch.kind()) {
            case STD -> scale.times(scale);
            case VARIANCE -> scale;
            case LOG_VARIANCE -> scale.exp();
            case PRECISION -> BigFloat.ONE.dividedBy(scale);
          };
    }
    return result;
  }

  private static BigFloat[] logDeterminants(Batch batch, BigFloat[] variances) {
    BigFloat[] result = new BigFloat[batch.size()];
    for (int i = 0; i < result.length; i++) {
      BigFloat product = BigFloat.ONE;
      BigFloat sum = BigFloat.ZERO;
      for (int at = i * batch.dimension(); at < (i + 1) * batch.dimension(); at++) {
        if (batch.kind() == Batch.Kind.LOG_VARIANCE) {
          sum = sum.plus(BigFloat.of(batch.scale()[at]));
        } else {
          product = product.times(variances[at]);
        }
      }
      result[i] = batch.kind() == Batch.Kind.LOG_VARIANCE ? sum : product.ln();
    }
    return result;
  }
}
