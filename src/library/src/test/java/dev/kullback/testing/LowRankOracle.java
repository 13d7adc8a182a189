package dev.kullback.testing;

import dev.kullback.LowRankGaussians;
import dev.kullback.ScaleKind;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * {@code KL = (tr Σp⁻¹Σq + (μq − μp)ᵀ Σp⁻¹ (μq − μp) − D + ln det Σp − ln det Σq) / 2} of the exact parameters in {@link BigFloat}, with
 * {@code Σp⁻¹ = V⁻¹ − V⁻¹U M⁻¹ UᵀV⁻¹} by an LDLᵀ factorization of the r × r matrix {@code M = I + UᵀV⁻¹U}.
 */
public final class LowRankOracle {
  private static final int ZERO_POWER = -180;

  private final int d;
  private final Side q;
  private final Side p;

  /**
   * A Gaussian's mean, variances, W and V⁻¹W, row-major [D, r], M = LDLᵀ, L below the diagonal, D on it, and D⁻¹: a quotient takes as long as
   * many products.
   */
  private record Side(
      BigFloat[] mean,
      BigFloat[] v,
      BigFloat[] w,
      BigFloat[] over,
      int r,
      BigFloat[] ldl,
      BigFloat[] inverse,
      BigFloat logDet) {}

  private LowRankOracle(int d, Side q, Side p) {
    this.d = d;
    this.q = q;
    this.p = p;
  }

  /** Row-major [N, M], rounded to double. */
  public static double[] pairwise(LowRankGaussians q, LowRankGaussians p) {
    return Known.answer(
        () -> {
          Side[] rows = sides(q);
          Side[] columns = sides(p);
          return IntStream.range(0, rows.length * columns.length)
              .mapToDouble(k -> {
                Side row = rows[k / columns.length];
                Side column = columns[k % columns.length];
                return new LowRankOracle(q.dimension(), row, column).kl().toDouble();
              })
              .toArray();
        },
        "low rank",
        q.dimension(),
        question(q),
        question(p));
  }

  /** All parameters in one text: {@link Double#toString} tells every double from every other. */
  private static String question(LowRankGaussians g) {
    StringBuilder text = new StringBuilder().append(g.kind()).append(g.rank());
    for (int i = 0; i < g.size(); i++) {
      text.append(Arrays.toString(g.mean(i)))
          .append(Arrays.toString(g.scale(i)))
          .append(Arrays.toString(g.factor(i)));
    }
    return text.toString();
  }

  private static Side[] sides(LowRankGaussians g) {
    return IntStream.range(0, g.size()).mapToObj(i -> side(g, i)).toArray(Side[]::new);
  }

  private static Side side(LowRankGaussians g, int i) {
    int d = g.dimension();
    int r = g.rank();
    BigFloat[] mean = of(g.mean(i));
    BigFloat[] v = of(g.scale(i));
    BigFloat[] w = of(g.factor(i));
    BigFloat[] over = new BigFloat[d * r];
    BigFloat product = BigFloat.ONE;
    for (int h = 0; h < d; h++) {
      v[h] = variance(g.kind(), v[h]);
      product = product.times(v[h]);
      for (int k = h * r; k < (h + 1) * r; k++) {
        over[k] = w[k].dividedBy(v[h]);
      }
    }
    BigFloat[] m = new BigFloat[r * r];
    BigFloat[] inverse = new BigFloat[r];
    for (int a = 0; a < r; a++) {
      for (int b = 0; b <= a; b++) {
        BigFloat sum = a == b ? BigFloat.ONE : BigFloat.ZERO;
        for (int h = 0; h < d; h++) {
          sum = sum.plus(w[h * r + a].times(over[h * r + b]));
        }
        for (int k = 0; k < b; k++) {
          sum = sum.minus(m[a * r + k].times(m[b * r + k]).times(m[k * r + k]));
        }
        m[a * r + b] = a == b ? sum : sum.times(inverse[b]);
      }
      inverse[a] = BigFloat.ONE.dividedBy(m[a * r + a]);
      product = product.times(m[a * r + a]);
    }
    return new Side(mean, v, w, over, r, m, inverse, product.ln());
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
          y[k] = y[k].plus(p.over[h * p.r + k].times(x[h * columns + c]));
        }
        for (int l = 0; l < k; l++) {
          y[k] = y[k].minus(p.ldl[k * p.r + l].times(y[l]));
        }
        sum = sum.minus(y[k].times(y[k]).times(p.inverse[k]));
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
        squares = squares.plus(y[k].times(y[k]).times(p.inverse[k]));
      }
      sum = sum.minus(ratio.times(squares).dividedBy(p.v[h]));
    }
    return sum;
  }

  private BigFloat kl() {
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
