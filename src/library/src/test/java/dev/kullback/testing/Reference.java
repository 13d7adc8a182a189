package dev.kullback.testing;

/**
 * The textbook sum in plain double: fast, and right to about 1e-14 where the divergence is not
 * small against the dimension.
 */
public final class Reference {
  private Reference() {}

  /**
   * Row-major [N, M] of {@code Σ_h ln σp − ln σq + (σq² + (μq − μp)²) / (2 σp²) − ½}, standard
   * deviations given.
   */
  public static double[] pairwise(Batch q, Batch p) {
    return pairwise(q, p, 0);
  }

  /** Computes the same with every standard deviation raised to {@code least}. */
  public static double[] pairwise(Batch q, Batch p, double least) {
    if (q.kind() != Batch.Kind.STD || p.kind() != Batch.Kind.STD) {
      throw new IllegalArgumentException("standard deviations only");
    }
    int m = p.size();
    double[] logQ = logs(q, least);
    double[] logP = logs(p, least);
    double[] result = new double[q.size() * m];
    for (int at = 0; at < result.length; at++) {
      int a = at / m * q.dimension();
      int b = at % m * q.dimension();
      double sum = 0;
      for (int h = 0; h < q.dimension(); h++, a++, b++) {
        double sq = Math.max(q.scale()[a], least);
        double sp = Math.max(p.scale()[b], least);
        double d = q.mean()[a] - p.mean()[b];
        sum += logP[b] - logQ[a] + (sq * sq + d * d) / (2 * sp * sp) - 0.5;
      }
      result[at] = sum;
    }
    return result;
  }

  private static double[] logs(Batch batch, double least) {
    double[] result = new double[batch.scale().length];
    for (int i = 0; i < result.length; i++) {
      result[i] = Math.log(Math.max(batch.scale()[i], least));
    }
    return result;
  }
}
