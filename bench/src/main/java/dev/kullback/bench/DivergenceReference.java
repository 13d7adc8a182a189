package dev.kullback.bench;

import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.CommonOps_DDRM;
import org.ejml.dense.row.factory.DecompositionFactory_DDRM;
import org.ejml.interfaces.decomposition.SingularValueDecomposition_F64;

/** Divergences other than KL in double, by their textbook formulas: of Gaussians that are far apart, as those of the contenders are. */
final class DivergenceReference {
  private DivergenceReference() {}

  static double diagonal(String name, Batch q, Batch p, int i, int j) {
    int d = q.shape().dimension();
    double alpha = alpha(name);
    double sum = 0;
    for (int h = 0; h < d; h++) {
      double s = q.std()[i * d + h];
      double t = p.std()[j * d + h];
      double m = (double) q.mean()[i * d + h] - p.mean()[j * d + h];
      double mixed = (1 - alpha) * s * s + alpha * t * t;
      sum +=
          switch (name) {
            case "jeffreys" ->
                0.5 * (s * s / (t * t) + t * t / (s * s) - 2 + m * m * (1 / (s * s) + 1 / (t * t)));
            case "squared-wasserstein-2" -> m * m + (s - t) * (s - t);
            case "bhattacharyya", "hellinger", "renyi:0.3" ->
                0.5 * alpha * (1 - alpha) * m * m / mixed
                    + 0.5 * Math.log(mixed)
                    - (1 - alpha) * Math.log(s)
                    - alpha * Math.log(t);
            default -> throw new IllegalArgumentException(name);
          };
    }
    return ofChernoff(name, sum);
  }

  static double full(String name, FullBatch q, FullBatch p, int i, int j) {
    return switch (name) {
      case "jeffreys" -> Agreement.kl(q, p, i, j) + Agreement.kl(p, q, j, i);
      case "squared-wasserstein-2" -> bures(q, p, i, j);
      case "bhattacharyya", "hellinger", "renyi:0.3" ->
          ofChernoff(name, chernoff(alpha(name), q, p, i, j));
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static double alpha(String name) {
    int colon = name.indexOf(':');
    return colon < 0 ? 0.5 : Double.parseDouble(name.substring(colon + 1));
  }

  private static double ofChernoff(String name, double c) {
    return switch (name) {
      case "hellinger" -> Math.sqrt(-Math.expm1(-c));
      case "renyi:0.3" -> c / 0.7;
      default -> c;
    };
  }

  /** By elimination, whose pivots are those of the mean covariance. */
  private static double chernoff(double alpha, FullBatch q, FullBatch p, int i, int j) {
    int d = q.shape().dimension();
    double[] mixed = q.covariance(i);
    double[] other = p.covariance(j);
    double[] m = new double[d];
    for (int k = 0; k < d * d; k++) {
      mixed[k] = (1 - alpha) * mixed[k] + alpha * other[k];
    }
    for (int h = 0; h < d; h++) {
      m[h] = q.mean()[i * d + h] - p.mean()[j * d + h];
    }
    double squares = 0;
    double log = 0;
    for (int k = 0; k < d; k++) {
      double pivot = mixed[k * d + k];
      squares += m[k] * m[k] / pivot;
      log +=
          0.5 * Math.log(pivot)
              - (1 - alpha) * Math.log(q.scaleTril()[(i * d + k) * d + k])
              - alpha * Math.log(p.scaleTril()[(j * d + k) * d + k]);
      for (int r = k + 1; r < d; r++) {
        double factor = mixed[r * d + k] / pivot;
        m[r] -= factor * m[k];
        for (int c = k + 1; c < d; c++) {
          mixed[r * d + c] -= factor * mixed[k * d + c];
        }
      }
    }
    return 0.5 * alpha * (1 - alpha) * squares + log;
  }

  /** The cross term is the sum of the singular values of {@code L_qᵀ L_p}. */
  private static double bures(FullBatch q, FullBatch p, int i, int j) {
    int d = q.shape().dimension();
    DMatrixRMaj a = factor(q, i);
    DMatrixRMaj b = factor(p, j);
    DMatrixRMaj product = new DMatrixRMaj(d, d);
    CommonOps_DDRM.multTransA(a, b, product);
    SingularValueDecomposition_F64<DMatrixRMaj> svd =
        DecompositionFactory_DDRM.svd(d, d, false, false, true);
    if (!svd.decompose(product)) {
      throw new AssertionError("the inputs are ordinary");
    }
    double sum = 0;
    for (double value : svd.getSingularValues()) {
      sum -= 2 * value;
    }
    for (double x : a.data) {
      sum += x * x;
    }
    for (double x : b.data) {
      sum += x * x;
    }
    for (int h = 0; h < d; h++) {
      double m = q.mean()[i * d + h] - p.mean()[j * d + h];
      sum += m * m;
    }
    return sum;
  }

  private static DMatrixRMaj factor(FullBatch batch, int i) {
    int d = batch.shape().dimension();
    double[] values = new double[d * d];
    System.arraycopy(batch.scaleTril(), i * d * d, values, 0, d * d);
    return DMatrixRMaj.wrap(d, d, values);
  }
}
