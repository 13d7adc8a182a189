package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntConsumer;

/** Mixtures that were reduced, each by itself: their components in double, and what became of the original ones. */
public final class ReducedMixtures {
  public final double[] weights;
  public final double[] means;

  /** Variances, or packed factors with what rounding took from them. */
  public final double[] scales;

  public final double[] low;

  /** Index of the first component of each mixture, and the number of components. */
  public final int[] offsets;

  /** Component that each original one is part of. */
  public final int[] assignments;

  /** Costs of all mergers, mixture by mixture. */
  public final double[] costs;

  /** Number of covariances that were raised. */
  public final int raised;

  private final boolean isFull;

  /** One mixture after its mergers. */
  private record Part(Components merged, Reduction reduction, double[] costs) {}

  /**
   * Reduces mixtures.
   *
   * @param size of each, at most
   * @param maxCost the most that a merger may cost
   * @param progress takes the number of components that are left in all mixtures, before the first merger and after each
   */
  public ReducedMixtures(
      Batch components,
      double[] originalWeights,
      int[] originalOffsets,
      int size,
      double maxCost,
      IntConsumer progress) {
    int[] left = {originalWeights.length};
    progress.accept(left[0]);
    int n = originalOffsets.length - 1;
    List<Part> parts = new ArrayList<>();
    for (int m = 0; m < n; m++) {
      double[] own =
          Arrays.copyOfRange(originalWeights, originalOffsets[m], originalOffsets[m + 1]);
      Components merged = Components.of(MixtureBatch.part(components, originalOffsets, m), own);
      Reduction reduction = new Reduction(merged, own.length);
      double[] costs = reduction.run(size, maxCost, () -> progress.accept(--left[0]));
      parts.add(new Part(merged, reduction, costs));
    }
    offsets = new int[n + 1];
    int[] costOffsets = new int[n + 1];
    for (int m = 0; m < n; m++) {
      offsets[m + 1] = offsets[m] + parts.get(m).reduction.size();
      costOffsets[m + 1] = costOffsets[m] + parts.get(m).costs.length;
    }
    int d = components.dimension();
    isFull = parts.getFirst().merged.isFull();
    int length = parts.getFirst().merged.scaleLength();
    weights = new double[offsets[n]];
    means = new double[offsets[n] * d];
    scales = new double[offsets[n] * length];
    low = new double[isFull ? scales.length : 0];
    int count = 0;
    assignments = new int[originalOffsets[n]];
    costs = new double[costOffsets[n]];
    for (int m = 0; m < n; m++) {
      Components merged = parts.get(m).merged;
      Reduction reduction = parts.get(m).reduction;
      int[] places = new int[originalOffsets[m + 1] - originalOffsets[m]];
      for (int p = offsets[m]; p < offsets[m + 1]; p++) {
        int i = reduction.component(p - offsets[m]);
        places[i] = p;
        weights[p] = merged.weight(i);
        merged.copyMean(i, means, p * d);
        merged.copyScale(i, scales, low, p * length);
        count += merged.isRaised(i) ? 1 : 0;
      }
      for (int i = 0; i < places.length; i++) {
        assignments[originalOffsets[m] + i] = places[merged.owner(i)];
      }
      System.arraycopy(parts.get(m).costs, 0, costs, costOffsets[m], parts.get(m).costs.length);
    }
    raised = count;
  }

  /** Whether covariances are matrices, not variances. */
  public boolean isFull() {
    return isFull;
  }
}
