package dev.kullback.testing;

/**
 * {@code KL = (tr(P Σq) + (μq − μp)ᵀ P (μq − μp) − D + ln det Σp − ln det Σq) / 2} of the exact
 * parameters in {@link BigFloat}, with {@code P = Σp⁻¹} by an LDLᵀ factorization: of 77 digits, condition
 * numbers of 1e12 and parameters that differ by 1e-16 leave over 30.
 */
public final class FullOracle {
  private static final int ZERO_POWER = -180;

  private final int dimension;
  private final Moments[] q;
  private final Moments[] p;

  /** Row-major [D, D]; twice the factor's log-determinant. */
  record Moments(BigFloat[] mean, BigFloat[] covariance, BigFloat[] precision, BigFloat logDet) {}

  record Inverse(BigFloat[] matrix, BigFloat logDet) {}

  public FullOracle(FullBatch q, FullBatch p) {
    dimension = q.dimension();
    this.q = moments(q, false);
    this.p = moments(p, true);
  }

  public static double[] pairwise(FullBatch q, FullBatch p) {
    return new FullOracle(q, p).pairwise();
  }

  Moments q(int i) {
    return q[i];
  }

  Moments p(int j) {
    return p[j];
  }

  /** {@code ‖L_p‖‖L_p⁻¹‖} of p_j, norms of Frobenius: the roots of the traces of Σ and P. */
  public double condition(int j) {
    BigFloat covariance = BigFloat.ZERO;
    BigFloat precision = BigFloat.ZERO;
    for (int k = 0; k < dimension * dimension; k += dimension + 1) {
      covariance = covariance.plus(p[j].covariance[k]);
      precision = precision.plus(p[j].precision[k]);
    }
    return Math.sqrt(covariance.times(precision).toDouble());
  }

  public double[] pairwise() {
    double[] result = new double[q.length * p.length];
    for (int i = 0; i < q.length; i++) {
      for (int j = 0; j < p.length; j++) {
        result[i * p.length + j] = kl(i, j).toDouble();
      }
    }
    return result;
  }

  public BigFloat kl(int i, int j) {
    int d = dimension;
    BigFloat trace = BigFloat.ZERO;
    for (int k = 0; k < d * d; k++) {
      trace = trace.plus(p[j].precision[k].times(q[i].covariance[k]));
    }
    BigFloat distance = mahalanobis(i, j);
    BigFloat shape = trace.minus(BigFloat.of(d)).minus(q[i].logDet.minus(p[j].logDet));
    return (shape.below(ZERO_POWER) ? distance : shape.plus(distance)).half();
  }

  /** (μq − μp)ᵀ P (μq − μp), of the means of q alone. */
  public BigFloat mahalanobis(int i, int j) {
    int d = dimension;
    BigFloat[] m = new BigFloat[d];
    for (int r = 0; r < d; r++) {
      m[r] = q[i].mean[r].minus(p[j].mean[r]);
    }
    BigFloat distance = BigFloat.ZERO;
    for (int r = 0; r < d; r++) {
      BigFloat row = BigFloat.ZERO;
      for (int c = 0; c < d; c++) {
        row = row.plus(p[j].precision[r * d + c].times(m[c]));
      }
      distance = distance.plus(row.times(m[r]));
    }
    return distance;
  }

  /** ln det Σp_j. */
  public BigFloat logDeterminant(int j) {
    return p[j].logDet;
  }

  private Moments[] moments(FullBatch batch, boolean inverse) {
    int d = dimension;
    Moments[] result = new Moments[batch.size()];
    for (int i = 0; i < result.length; i++) {
      BigFloat[] mean = new BigFloat[d];
      for (int h = 0; h < d; h++) {
        mean[h] = BigFloat.of(batch.mean()[i * d + h]);
      }
      BigFloat[] given = matrix(batch, i);
      switch (batch.kind()) {
        case COVARIANCE -> {
          Inverse p = invert(given);
          result[i] = new Moments(mean, given, p.matrix, p.logDet);
        }
        case PRECISION -> {
          Inverse s = invert(given);
          result[i] = new Moments(mean, s.matrix, given, s.logDet.negate());
        }
        default -> {
          BigFloat product = BigFloat.ONE;
          BigFloat[] covariance = new BigFloat[d * d];
          for (int r = 0; r < d; r++) {
            product = product.times(given[r * d + r]).times(given[r * d + r]);
            for (int c = 0; c <= r; c++) {
              BigFloat sum = BigFloat.ZERO;
              for (int k = 0; k <= c; k++) {
                sum = sum.plus(given[r * d + k].times(given[c * d + k]));
              }
              covariance[r * d + c] = covariance[c * d + r] = sum;
            }
          }
          BigFloat[] precision = inverse ? invert(covariance).matrix : covariance;
          result[i] = new Moments(mean, covariance, precision, product.ln());
        }
      }
    }
    return result;
  }

  /** Row-major [D, D]; of symmetric matrices the mean of both triangles is what counts. */
  static BigFloat[] matrix(FullBatch batch, int i) {
    int d = batch.dimension();
    BigFloat[] full = new BigFloat[d * d];
    boolean symmetric =
        batch.kind() == FullBatch.Kind.COVARIANCE || batch.kind() == FullBatch.Kind.PRECISION;
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        int k = batch.kind().isPacked() ? r * (r + 1) / 2 + c : r * d + c;
        BigFloat x = BigFloat.of(batch.matrix()[i * batch.stride() + k]);
        if (symmetric) {
          x = x.plus(BigFloat.of(batch.matrix()[i * batch.stride() + c * d + r])).half();
        }
        full[r * d + c] = r == c && batch.kind() == FullBatch.Kind.PACKED_LOG ? x.exp() : x;
        if (c < r) {
          full[c * d + r] = symmetric ? x : BigFloat.ZERO;
        }
      }
    }
    return full;
  }

  /** Inverts a positive definite matrix {@code L diag(v) Lᵀ}. */
  Inverse invert(BigFloat[] a) {
    int d = dimension;
    BigFloat[] l = new BigFloat[d * d];
    BigFloat[] v = new BigFloat[d];
    BigFloat product = BigFloat.ONE;
    for (int r = 0; r < d; r++) {
      BigFloat[] scaled = new BigFloat[r + 1]; // L_rk v_k
      for (int c = 0; c <= r; c++) {
        BigFloat sum = a[r * d + c];
        for (int k = 0; k < c; k++) {
          sum = sum.minus(scaled[k].times(l[c * d + k]));
        }
        scaled[c] = sum;
        l[r * d + c] = c < r ? sum.dividedBy(v[c]) : BigFloat.ONE;
      }
      v[r] = scaled[r];
      if (v[r].signum() <= 0) {
        throw new ArithmeticException("not positive definite: pivot " + r + " is " + v[r]);
      }
      product = product.times(v[r]);
    }
    BigFloat[] w = new BigFloat[d * d]; // L⁻¹
    for (int r = 0; r < d; r++) {
      w[r * d + r] = BigFloat.ONE;
      for (int c = 0; c < r; c++) {
        BigFloat sum = BigFloat.ZERO;
        for (int k = c; k < r; k++) {
          sum = sum.minus(l[r * d + k].times(w[k * d + c]));
        }
        w[r * d + c] = sum;
      }
    }
    BigFloat[] inverse = new BigFloat[d * d];
    for (int r = 0; r < d; r++) {
      BigFloat[] scaled = new BigFloat[d];
      for (int k = r; k < d; k++) {
        scaled[k] = w[k * d + r].dividedBy(v[k]);
      }
      for (int c = 0; c <= r; c++) {
        BigFloat sum = BigFloat.ZERO;
        for (int k = r; k < d; k++) {
          sum = sum.plus(scaled[k].times(w[k * d + c]));
        }
        inverse[r * d + c] = inverse[c * d + r] = sum;
      }
    }
    return new Inverse(inverse, product.ln());
  }
}
