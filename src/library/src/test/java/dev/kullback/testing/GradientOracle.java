package dev.kullback.testing;

import dev.kullback.Divergence;
import java.util.Arrays;

/** Derivatives of {@code Σ_ij g_ij · divergence(q_i, p_j)} by the exact parameters, in {@link BigFloat}, by their textbook formulas. */
public final class GradientOracle {
  private final Batch q;
  private final Batch p;
  private final double[] g;
  private final BigFloat[] vq;
  private final BigFloat[] vp;
  private final Divergence divergence;

  /** Derivatives, row-major [N, D], and sums of the magnitudes of their terms, which bound errors. */
  public final double[][] values = new double[4][];

  public final double[][] magnitudes = new double[4][];

  private final BigFloat[][] sums = new BigFloat[4][];
  private final BigFloat[][] absolute = new BigFloat[4][];

  private GradientOracle(Divergence divergence, Batch q, Batch p, double[] g) {
    this.divergence = divergence;
    this.q = q;
    this.p = p;
    this.g = g;
    vq = Oracle.variances(q);
    vp = Oracle.variances(p);
  }

  /** Computes the gradients by q's means and scales and p's, for the cotangents g, row-major [N, M]. */
  public static GradientOracle of(Divergence divergence, Batch q, Batch p, double[] g) {
    GradientOracle oracle = new GradientOracle(divergence, q, p, g);
    oracle.compute();
    return oracle;
  }

  private void compute() {
    int d = q.dimension();
    for (int k = 0; k < 4; k++) {
      int length = (k < 2 ? q : p).mean().length;
      sums[k] = zeros(length);
      absolute[k] = zeros(length);
    }
    for (int i = 0; i < q.size(); i++) {
      for (int j = 0; j < p.size(); j++) {
        BigFloat weight = BigFloat.of(g[i * p.size() + j]);
        for (int h = 0; h < d && weight.signum() != 0; h++) {
          add(weight, i * d + h, j * d + h);
        }
      }
    }
    for (int k = 0; k < 4; k++) {
      values[k] = new double[sums[k].length];
      magnitudes[k] = new double[sums[k].length];
      for (int at = 0; at < sums[k].length; at++) {
        values[k][at] = sums[k][at].toDouble();
        magnitudes[k][at] = absolute[k][at].toDouble();
      }
    }
  }

  private static BigFloat[] zeros(int n) {
    BigFloat[] zeros = new BigFloat[n];
    Arrays.fill(zeros, BigFloat.ZERO);
    return zeros;
  }

  private void add(BigFloat weight, int a, int b) {
    BigFloat d = BigFloat.of(q.mean()[a]).minus(BigFloat.of(p.mean()[b]));
    BigFloat kindQ = byScale(q, a, vq[a]).times(weight);
    BigFloat kindP = byScale(p, b, vp[b]).times(weight);
    if (divergence.equals(Divergence.SQUARED_WASSERSTEIN_2)) {
      BigFloat sq = vq[a].sqrt();
      BigFloat sp = vp[b].sqrt();
      BigFloat e =
          q.kind() == Batch.Kind.STD && p.kind() == Batch.Kind.STD
              ? BigFloat.of(q.scale()[a]).minus(BigFloat.of(p.scale()[b]))
              : sq.minus(sp);
      addMean(a, b, weight.times(d).plus(weight.times(d)));
      put(1, a, e.dividedBy(sq).times(kindQ));
      put(3, b, e.dividedBy(sp).times(kindP).negate());
      return;
    }
    BigFloat e = vq[a].minus(vp[b]).half();
    BigFloat square = d.times(d).half();
    addMean(a, b, weight.times(d.dividedBy(vp[b])));
    put(1, a, e.dividedBy(vq[a].times(vp[b])).times(kindQ));
    put(3, b, e.dividedBy(vp[b].times(vp[b])).times(kindP).negate());
    put(3, b, square.dividedBy(vp[b].times(vp[b])).times(kindP).negate());
    if (divergence.equals(Divergence.JEFFREYS)) {
      addMean(a, b, weight.times(d.dividedBy(vq[a])));
      put(3, b, e.dividedBy(vq[a].times(vp[b])).times(kindP).negate());
      put(1, a, e.dividedBy(vq[a].times(vq[a])).times(kindQ));
      put(1, a, square.dividedBy(vq[a].times(vq[a])).times(kindQ).negate());
    }
  }

  /** Adds a term to the derivative by q's mean, and takes it from that by p's. */
  private void addMean(int a, int b, BigFloat term) {
    put(0, a, term);
    put(2, b, term.negate());
  }

  private void put(int which, int at, BigFloat term) {
    sums[which][at] = sums[which][at].plus(term);
    absolute[which][at] = absolute[which][at].plus(term.signum() < 0 ? term.negate() : term);
  }

  /** ∂v/∂s. */
  private static BigFloat byScale(Batch batch, int at, BigFloat v) {
    BigFloat s = BigFloat.of(batch.scale()[at]);
    return switch (batch.kind()) {
      case STD -> s.plus(s);
      case VARIANCE -> BigFloat.ONE;
      case LOG_VARIANCE -> v;
      case PRECISION -> v.times(v).negate();
    };
  }
}
