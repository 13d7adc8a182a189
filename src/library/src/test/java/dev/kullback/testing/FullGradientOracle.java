package dev.kullback.testing;

import dev.kullback.Divergence;
import java.util.Arrays;

/**
 * Derivatives of {@code Σ_ij g_ij · divergence(q_i, p_j)} by the exact means and factors as they were given, in {@link BigFloat}, with the
 * inverse W of L_p: of KL {@code Wᵀ y}, {@code tril(Wᵀ X) − diag(1/L_q)} and {@code −tril(Wᵀ (yyᵀ + XXᵀ − I))} with {@code X = W L_q} and {@code y =
 * W (μ_q − μ_p)}.
 */
public final class FullGradientOracle {
  /** Derivatives by q's means and factors and p's, in the layout of the parameters. */
  public final double[][] values = new double[4][];

  /** Sums of the magnitudes of their terms, of which X − I and XXᵀ − I are those, which bound errors. */
  public final double[][] magnitudes = new double[4][];

  private final BigFloat[][] sums = new BigFloat[4][];
  private final double dueOfCondition;
  private final int d;

  private FullGradientOracle(FullBatch q, FullBatch p, boolean isConditioned) {
    d = q.dimension();
    dueOfCondition = isConditioned ? 1 : 0;
    for (int k = 0; k < 4; k++) {
      FullBatch of = k < 2 ? q : p;
      int length = of.size() * (k % 2 == 0 ? d : of.stride());
      sums[k] = new BigFloat[length];
      Arrays.fill(sums[k], BigFloat.ZERO);
      magnitudes[k] = new double[length];
    }
  }

  /**
   * Computes the gradients for the cotangents g, row-major [N, M].
   *
   * @param isConditioned whether a pair's magnitudes are multiplied by the condition number {@code ‖L_p‖‖L_p⁻¹‖}
   */
  public static FullGradientOracle of(
      Divergence divergence, FullBatch q, FullBatch p, double[] g, boolean isConditioned) {
    FullGradientOracle oracle = new FullGradientOracle(q, p, isConditioned);
    for (int i = 0; i < q.size(); i++) {
      for (int j = 0; j < p.size(); j++) {
        double weight = g[i * p.size() + j];
        if (weight != 0) {
          oracle.add(weight, q, i, 0, p, j, 2);
          if (divergence.equals(Divergence.JEFFREYS)) {
            oracle.add(weight, p, j, 2, q, i, 0);
          }
        }
      }
    }
    for (int k = 0; k < 4; k++) {
      oracle.values[k] = Arrays.stream(oracle.sums[k]).mapToDouble(BigFloat::toDouble).toArray();
    }
    return oracle;
  }

  /** Adds the derivatives of KL(q_i ‖ p_j), whose sums are those of the index {@code ofQ} and the next, and likewise of p. */
  private void add(double g, FullBatch q, int i, int ofQ, FullBatch p, int j, int ofP) {
    BigFloat[] lq = FullOracle.matrix(q, i);
    BigFloat[] lp = FullOracle.matrix(p, j);
    BigFloat[] w = inverse(lp);
    double size = Math.abs(g);
    if (dueOfCondition != 0) {
      size *= Math.max(1, Math.sqrt(squares(lp) * squares(w)));
    }
    BigFloat[] x = new BigFloat[d * d];
    double[] sizeX = new double[d * d];
    BigFloat[] y = new BigFloat[d];
    double[] sizeY = new double[d];
    for (int r = 0; r < d; r++) {
      y[r] = BigFloat.ZERO;
      for (int k = 0; k <= r; k++) {
        BigFloat e = BigFloat.of(q.mean()[i * d + k]).minus(BigFloat.of(p.mean()[j * d + k]));
        y[r] = y[r].plus(w[r * d + k].times(e));
        sizeY[r] += size(w[r * d + k].times(e));
      }
      for (int c = 0; c < d; c++) {
        BigFloat sum = BigFloat.ZERO;
        for (int k = c; k <= r; k++) {
          sum = sum.plus(w[r * d + k].times(lq[k * d + c]));
          sizeX[r * d + c] += size(w[r * d + k].times(lq[k * d + c].minus(lp[k * d + c])));
        }
        x[r * d + c] = sum;
      }
    }
    BigFloat weight = BigFloat.of(g);
    for (int r = 0; r < d; r++) {
      BigFloat mean = BigFloat.ZERO;
      double sizeOfMean = 0;
      for (int k = r; k < d; k++) {
        mean = mean.plus(w[k * d + r].times(y[k]));
        sizeOfMean += size(w[k * d + r]) * sizeY[k];
      }
      put(ofQ, i * d + r, mean.times(weight), sizeOfMean * size);
      put(ofP, j * d + r, mean.times(weight).negate(), sizeOfMean * size);
      for (int c = 0; c <= r; c++) {
        BigFloat byQ = BigFloat.ZERO;
        BigFloat byP = BigFloat.ZERO;
        double sizeQ = 0;
        double sizeP = 0;
        for (int k = r; k < d; k++) {
          BigFloat middle = y[k].times(y[c]);
          double sizeOfMiddle = sizeY[k] * sizeY[c] + sizeX[k * d + c];
          for (int l = 0; l <= c; l++) {
            middle = middle.plus(x[k * d + l].times(x[c * d + l]));
            sizeOfMiddle += sizeX[k * d + l] * sizeX[c * d + l];
          }
          middle = k == c ? middle.minus(BigFloat.ONE) : middle;
          byQ = byQ.plus(w[k * d + r].times(x[k * d + c]));
          byP = byP.minus(w[k * d + r].times(middle));
          sizeQ += size(w[k * d + r]) * sizeX[k * d + c];
          sizeP += size(w[k * d + r]) * sizeOfMiddle;
        }
        if (r == c) {
          byQ = byQ.minus(BigFloat.ONE.dividedBy(lq[r * d + r]));
          sizeQ += sizeX[r * d + r] / lq[r * d + r].toDouble();
        }
        put(ofQ + 1, q, i, r, c, lq, byQ.times(weight), sizeQ * size);
        put(ofP + 1, p, j, r, c, lp, byP.times(weight), sizeP * size);
      }
    }
  }

  private void put(
      int which, FullBatch of, int i, int r, int c, BigFloat[] l, BigFloat term, double size) {
    boolean byLog = r == c && of.kind() == FullBatch.Kind.PACKED_LOG;
    BigFloat s = byLog ? l[r * d + r] : BigFloat.ONE;
    int at = i * of.stride() + (of.kind().isPacked() ? r * (r + 1) / 2 + c : r * d + c);
    put(which, at, term.times(s), size * s.toDouble());
  }

  private void put(int which, int at, BigFloat term, double size) {
    sums[which][at] = sums[which][at].plus(term);
    magnitudes[which][at] += size;
  }

  private static double size(BigFloat x) {
    return Math.abs(x.toDouble());
  }

  private static double squares(BigFloat[] a) {
    return Arrays.stream(a).mapToDouble(x -> x.times(x).toDouble()).sum();
  }

  /** Inverts a lower triangle. */
  private BigFloat[] inverse(BigFloat[] l) {
    BigFloat[] w = new BigFloat[d * d];
    Arrays.fill(w, BigFloat.ZERO);
    for (int c = 0; c < d; c++) {
      for (int r = c; r < d; r++) {
        BigFloat sum = r == c ? BigFloat.ONE : BigFloat.ZERO;
        for (int k = c; k < r; k++) {
          sum = sum.minus(l[r * d + k].times(w[k * d + c]));
        }
        w[r * d + c] = sum.dividedBy(l[r * d + r]);
      }
    }
    return w;
  }
}
