package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.rows.RowStatistic;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Mixtures of a batch's Gaussians, whose weights have the sum 1 in each, and their entropies. Its arrays are only read. */
public final class MixtureBatch {
  private static final double LN_2PI = Math.log(2 * Math.PI);

  final Batch components;
  final double[] weights;

  /** Index of the first component of each mixture, and the number of components. */
  final int[] offsets;

  public MixtureBatch(Batch components, double[] weights, int[] offsets) {
    this.components = components;
    this.weights = weights;
    this.offsets = offsets;
  }

  /** Returns the number of mixtures. */
  public int size() {
    return offsets.length - 1;
  }

  int componentCount(int m) {
    return offsets[m + 1] - offsets[m];
  }

  /** Returns the components of mixture m, of those of all. */
  public static Batch part(Batch components, int[] offsets, int m) {
    if (offsets.length == 2) {
      return components;
    }
    int[] indices = IntStream.range(offsets[m], offsets[m + 1]).toArray();
    return switch (components) {
      case DiagonalBatch d -> d.select(indices, Platform.rangeCheck());
      case FullBatch f -> f.select(indices);
      case LowRankBatch g -> g.select(indices, Platform.rangeCheck());
    };
  }

  /**
   * Returns the entropies of Gaussians.
   *
   * @throws IllegalArgumentException if a diagonal one has a variance outside [2⁻⁵⁰⁰, 2⁵⁰⁰]
   */
  public static double[] componentEntropies(Batch batch) {
    int beyond =
        switch (batch) {
          case DiagonalBatch d -> d.beyond64().nextSetBit(0);
          case FullBatch _ -> -1;
          case LowRankBatch g -> g.diagonal().beyond64().nextSetBit(0);
        };
    if (beyond >= 0) {
      throw new IllegalArgumentException(
          "components[%d] has a variance outside [2^-500, 2^500]".formatted(beyond));
    }
    double[] entropies = new double[batch.size()];
    for (int i = 0; i < entropies.length; i++) {
      entropies[i] = 0.5 * batch.dimension() * (1 + LN_2PI) + batch.logDet(i);
    }
    return entropies;
  }

  /** Returns the entropies of the components. */
  public double[] componentEntropies() {
    return componentEntropies(components);
  }

  private double[] conditionalEntropy(double[] entropies) {
    double[] out = new double[size()];
    Arrays.setAll(out, m -> mean(m, entropies, offsets[m]));
    return out;
  }

  /** Returns the upper bounds, by an engine of KL. */
  public double[] entropyUpperBound(Engine engine) {
    engine.checkOpen();
    return bounds(engine);
  }

  /** Returns the lower bounds by the Chernoff α-divergence, α in [0, 1]. */
  public double[] entropyLowerBound(double alpha) {
    if (alpha == 0 || alpha == 1) {
      return conditionalEntropy(componentEntropies()); // 0·∞ would be NaN
    }
    Platform.Choice backend =
        Platform.mayHaveVectors() ? Platform.Choice.VECTOR : Platform.Choice.SCALAR;
    try (Engine engine = new Engine(Chernoff.ofOrder(alpha), backend, 1, null)) {
      return bounds(engine);
    }
  }

  /** Returns these mixtures, with components written out if an engine's divergence does not take low-rank ones. */
  public MixtureBatch takenBy(Engine engine) {
    return engine.formula().hasLowRank()
        ? this
        : new MixtureBatch(LowRankBatch.writtenOut(components), weights, offsets);
  }

  private double[] bounds(Engine engine) {
    double[] out = conditionalEntropy(componentEntropies());
    Batch all = takenBy(engine).components;
    for (int m = 0; m < out.length; m++) {
      Batch part = part(all, offsets, m);
      double[] logs = Arrays.stream(weights, offsets[m], offsets[m + 1]).map(Math::log).toArray();
      double[] sums = new double[logs.length];
      engine.begin().statistic(RowStatistic.Kind.LOG_SUM_EXP, part, part, logs, sums);
      out[m] -= mean(m, sums, 0);
    }
    return out;
  }

  /** Returns {@code Σ_a π_a x_a} of mixture m, whose x begin at {@code from}. */
  private double mean(int m, double[] x, int from) {
    double sum = 0;
    for (int i = offsets[m]; i < offsets[m + 1]; i++) {
      sum += weights[i] == 0 ? 0 : weights[i] * x[from + i - offsets[m]];
    }
    return sum;
  }
}
