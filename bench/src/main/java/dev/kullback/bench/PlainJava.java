package dev.kullback.bench;

/** The loops one writes first. They are spared the [B, B, H] temporaries of the array languages. */
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
}
