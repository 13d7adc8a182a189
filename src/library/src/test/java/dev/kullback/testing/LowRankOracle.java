package dev.kullback.testing;

import dev.kullback.LowRankGaussians;
import dev.kullback.ScaleKind;

/**
 * {@code KL = (tr Σp⁻¹Σq + (μq − μp)ᵀ Σp⁻¹ (μq − μp) − D + ln det Σp − ln det Σq) / 2} of the exact parameters in {@link BigFloat}, with
 * {@code Σp⁻¹ = V⁻¹ − V⁻¹U M⁻¹ UᵀV⁻¹} by an LDLᵀ factorization of the r × r matrix {@code M = I + UᵀV⁻¹U}.
 */
public final class LowRankOracle {
  private static final int ZERO_POWER = -180;

  private final int d;
  private final Side q;
  private final Side p;

  /** A Gaussian's mean, variances and W, row-major [D, r], and M = LDLᵀ: L below the diagonal, D on it. */
  private record Side(
      BigFloat[] mean, BigFloat[] v, BigFloat[] w, int r, BigFloat[] ldl, BigFloat logDet) {}

  /** Of q_i and p_j. */
  public LowRankOracle(LowRankGaussians q, int i, LowRankGaussians p, int j) {
    d = q.dimension();
    this.q = side(q, i);
    this.p = side(p, j);
  }

  public static double kl(LowRankGaussians q, int i, LowRankGaussians p, int j) {
    return new LowRankOracle(q, i, p, j).kl().toDouble();
  }

  private Side side(LowRankGaussians g, int i) {
    int r = g.rank();
    BigFloat[] mean = of(g.mean(i));
    BigFloat[] v = of(g.scale(i));
    BigFloat[] w = of(g.factor(i));
    BigFloat product = BigFloat.ONE;
    for (int h = 0; h < d; h++) {
      v[h] = variance(g.kind(), v[h]);
      product = product.times(v[h]);
    }
    BigFloat[] m = new BigFloat[r * r];
    for (int a = 0; a < r; a++) {
      for (int b = 0; b <= a; b++) {
        BigFloat sum = a == b ? BigFloat.ONE : BigFloat.ZERO;
        for (int h = 0; h < d; h++) {
          sum = sum.plus(w[h * r + a].times(w[h * r + b]).dividedBy(v[h]));
        }
        for (int k = 0; k < b; k++) {
          sum = sum.minus(m[a * r + k].times(m[b * r + k]).times(m[k * r + k]));
        }
        m[a * r + b] = a == b ? sum : sum.dividedBy(m[b * r + b]);
      }
      product = product.times(m[a * r + a]);
    }
    return new Side(mean, v, w, r, m, product.ln());
  }

  private static BigFloat variance(ScaleKind kind, BigFloat s) {
    return switch (kind) {
      case STD -> s.times(s);
      case VARIANCE -> s;
      case LOG_VARIANCE -> s.exp();
      case PRECISION -> BigFloat.ONE.dividedBy(s);
      default -> throw new AssertionError(kind);
    };
  }

  private static BigFloat[] of(double[] values) {
    BigFloat[] result = new BigFloat[values.length];
    for (int k = 0; k < values.length; k++) {
      result[k] = BigFloat.of(values[k]);
    }
    return result;
  }

  /** Columns x, [D, columns] row-major, weighed by w_h: {@code Σ_c x_cᵀ Σp⁻¹ x_c}. */
  private BigFloat quadratic(BigFloat[] x, int columns) {
    BigFloat sum = BigFloat.ZERO;
    for (int c = 0; c < columns; c++) {
      BigFloat[] y = new BigFloat[p.r];
      for (int h = 0; h < d; h++) {
        BigFloat value = x[h * columns + c];
        sum = sum.plus(value.times(value).dividedBy(p.v[h]));
      }
      for (int k = 0; k < p.r; k++) {
        y[k] = BigFloat.ZERO;
        for (int h = 0; h < d; h++) {
          y[k] = y[k].plus(p.w[h * p.r + k].times(x[h * columns + c]).dividedBy(p.v[h]));
        }
        for (int l = 0; l < k; l++) {
          y[k] = y[k].minus(p.ldl[k * p.r + l].times(y[l]));
        }
        sum = sum.minus(y[k].times(y[k]).dividedBy(p.ldl[k * p.r + k]));
      }
    }
    return sum;
  }

  /** {@code tr Σp⁻¹V_q = Σ v_q/v_p − Σ_h v_q,h/v_p,h² u_hᵀM⁻¹u_h}. */
  private BigFloat traceOfDiagonal() {
    BigFloat sum = BigFloat.ZERO;
    for (int h = 0; h < d; h++) {
      BigFloat ratio = q.v[h].dividedBy(p.v[h]);
      sum = sum.plus(ratio);
      BigFloat[] y = new BigFloat[p.r];
      BigFloat squares = BigFloat.ZERO;
      for (int k = 0; k < p.r; k++) {
        y[k] = p.w[h * p.r + k];
        for (int l = 0; l < k; l++) {
          y[k] = y[k].minus(p.ldl[k * p.r + l].times(y[l]));
        }
        squares = squares.plus(y[k].times(y[k]).dividedBy(p.ldl[k * p.r + k]));
      }
      sum = sum.minus(ratio.times(squares).dividedBy(p.v[h]));
    }
    return sum;
  }

  public BigFloat kl() {
    BigFloat[] difference = new BigFloat[d];
    for (int h = 0; h < d; h++) {
      difference[h] = q.mean[h].minus(p.mean[h]);
    }
    BigFloat shape = traceOfDiagonal().plus(quadratic(q.w, q.r)).minus(BigFloat.of(d));
    shape = shape.plus(p.logDet).minus(q.logDet);
    BigFloat distance = quadratic(difference, 1);
    return (shape.below(ZERO_POWER) ? distance : shape.plus(distance)).half();
  }
}
