package dev.kullback.bench;

/** The loops one writes first, spared the [B, B, H] temporaries of the array languages; and the one that one writes next. */
final class PlainJava {
  private PlainJava() {}

  /** {@code (mu_q[:, None] * mu_p[None]).sum(-1)}. */
  static void product(float[] q, float[] p, float[] out, Shape shape) {
    int n = shape.size();
    int d = shape.dimension();
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int h = 0; h < d; h++) {
          sum += q[i * d + h] * p[j * d + h];
        }
        out[i * n + j] = sum;
      }
    }
  }

  /** The broadcast formula term by term, its logarithm of a ratio included. */
  static void broadcastKl(float[] mean, float[] std, float[] out, Shape shape) {
    int n = shape.size();
    int d = shape.dimension();
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int h = 0; h < d; h++) {
          float s1 = Math.max(std[i * d + h], 1e-8f);
          float s2 = Math.max(std[j * d + h], 1e-8f);
          float difference = mean[i * d + h] - mean[j * d + h];
          sum +=
              (float) Math.log(s2 / s1)
                  + (s1 * s1 + difference * difference) / (2 * s2 * s2)
                  - 0.5f;
        }
        out[i * n + j] = sum;
      }
    }
  }

  /** {@code ln p_j(x_i)} with σ⁻¹ and {@code −Σ ln σ − D/2·ln 2π} computed once per Gaussian. */
  static void logDensity(float[] points, float[] mean, float[] std, float[] out, Shape shape) {
    int n = shape.size();
    int d = shape.dimension();
    float[] inverse = new float[n * d];
    float[] constants = new float[n];
    for (int j = 0; j < n; j++) {
      double constant = -0.5 * d * Math.log(2 * Math.PI);
      for (int h = j * d; h < (j + 1) * d; h++) {
        inverse[h] = 1 / std[h];
        constant -= Math.log(std[h]);
      }
      constants[j] = (float) constant;
    }
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int h = 0; h < d; h++) {
          float z = (points[i * d + h] - mean[j * d + h]) * inverse[j * d + h];
          sum += z * z;
        }
        out[i * n + j] = constants[j] - 0.5f * sum;
      }
    }
  }

  /** Computes in double, with what depends on a row alone, σ² and Σ ln σ, computed once. */
  static void hoistedKl(double[] mean, double[] std, float[] out, Shape shape) {
    int n = shape.size();
    int d = shape.dimension();
    double[] variance = new double[n * d];
    double[] logs = new double[n];
    for (int i = 0; i < n; i++) {
      for (int h = i * d; h < (i + 1) * d; h++) {
        variance[h] = std[h] * std[h];
        logs[i] += Math.log(std[h]);
      }
    }
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) {
        double sum = -d;
        for (int h = 0; h < d; h++) {
          double difference = mean[i * d + h] - mean[j * d + h];
          sum += (variance[i * d + h] + difference * difference) / variance[j * d + h];
        }
        out[i * n + j] = (float) (sum / 2 + logs[j] - logs[i]);
      }
    }
  }
}
