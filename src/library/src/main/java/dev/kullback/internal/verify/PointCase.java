package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.stream.IntStream;

/** The means of a case's q as points, and what is expected of their distances and densities in its p: each of one pair, in double. */
final class PointCase {
  private final DiagonalBatch points;

  /** Where the one mixture of all components begins and ends. */
  final int[] offsets;

  final double[] weights;

  private final Case c;
  private final Batch p;
  private final double[] mahalanobis;
  private final double[] logDensity;

  /** What the errors of log-densities may be. */
  private final double[] allowed;

  PointCase(Case c, Batch q, Batch p) {
    this.c = c;
    this.p = p;
    int d = q.dimension();
    points = pointsOf(q);
    offsets = new int[] {0, c.m};
    weights = Arrays.stream(c.logWeights).map(Math::exp).toArray();
    mahalanobis = values(Density.MAHALANOBIS);
    logDensity = values(Density.LOG_DENSITY);
    allowed =
        IntStream.range(0, c.n * c.m)
            .mapToDouble(
                at -> c.contract * (0.5 * mahalanobis[at] + Math.abs(p.logDet(at % c.m)) + d))
            .toArray();
  }

  /** Returns the means of a batch of the case's, which may be some of its rows. */
  DiagonalBatch of(Batch q) {
    return q.size() == c.n ? points : pointsOf(q);
  }

  private static DiagonalBatch pointsOf(Batch q) {
    int d = q.dimension();
    double[] x = new double[q.size() * d];
    double[] mean = new double[d];
    for (int i = 0; i < q.size(); i++) {
      q.readMean(i, mean);
      System.arraycopy(mean, 0, x, i * d, d);
    }
    return DiagonalBatch.ofPoints(
        q.isDouble() ? Elements.of(x, "points") : Elements.of(narrowed(x), "points"),
        d,
        Platform.rangeCheck());
  }

  private static float[] narrowed(double[] x) {
    float[] floats = new float[x.length];
    for (int k = 0; k < x.length; k++) {
      floats[k] = (float) x[k];
    }
    return floats;
  }

  private double[] values(Density density) {
    Pair pair = new Pair(density, new Worker());
    return IntStream.range(0, c.n * c.m)
        .mapToDouble(at -> pair.stable(points, at / c.m, p, at % c.m))
        .toArray();
  }

  Expected mahalanobis() {
    return Expected.of(mahalanobis, c.contract);
  }

  Expected logDensity() {
    return new Expected(logDensity, allowed, Expected.NONE);
  }

  Expected nearest() {
    return c.nearest(mahalanobis, c.n, c.m, c.nearest.k(), false);
  }

  /** Negative log-densities of the densest, rounded to float. */
  Expected densest() {
    double shift = Density.EXCESS.shift(p);
    Expected found = c.nearest(values(Density.EXCESS), c.n, c.m, c.nearest.k(), false);
    double[] logs = Arrays.stream(found.values()).map(x -> x + shift).toArray();
    double[] errors = new double[found.indices().length];
    for (int at = 0; at < errors.length; at++) {
      int entry = at / c.nearest.k() * c.m + found.indices()[at];
      errors[at] = allowed[entry] * Case.FLOAT_CONTRACT / c.contract;
    }
    return new Expected(logs, errors, found.indices());
  }

  Expected logLikelihood() {
    double[] values = new double[c.n];
    double[] errors = new double[c.n];
    for (int i = 0; i < c.n; i++) {
      double most = most(i);
      double sum = 0;
      double error = 0;
      for (int j = 0; j < c.m; j++) {
        double term = weights[j] * Math.exp(logDensity[i * c.m + j] - most);
        sum += term;
        error += term * allowed[i * c.m + j];
      }
      values[i] = most + Math.log(sum);
      errors[i] = 2 * error / sum + Case.ROUNDING * Math.max(1, Math.abs(values[i]));
    }
    return new Expected(values, errors, Expected.NONE);
  }

  Expected responsibilities() {
    double[] values = new double[c.n * c.m];
    double[] errors = new double[c.n * c.m];
    Expected sums = logLikelihood();
    for (int at = 0; at < values.length; at++) {
      int i = at / c.m;
      values[at] = weights[at % c.m] * Math.exp(logDensity[at] - sums.values()[i]);
      errors[at] = 2 * values[at] * (allowed[at] + sums.allowed()[i]) + Double.MIN_NORMAL;
    }
    return new Expected(values, errors, Expected.NONE);
  }

  private double most(int i) {
    return IntStream.range(0, c.m)
        .filter(j -> weights[j] > 0)
        .mapToDouble(j -> logDensity[i * c.m + j])
        .max()
        .orElse(0);
  }
}
