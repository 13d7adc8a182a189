package dev.kullback;

import dev.kullback.internal.batch.Batch;
import java.util.Objects;

/**
 * A batch of N mixtures {@code f_m = Σ_a π_a f_a} of Gaussians. The components of all are one batch, of which mixture m has those from
 * {@code offset(m)} to {@code offset(m + 1) − 1}. Weights of less than float's precision, such as float16's, miss the sum 1 by more than is
 * accepted: divide them by their sum before. Mixtures are immutable and safe to share between threads.
 *
 * @since 0.1.0
 */
public final class Mixture {
  /** Allowed distance of the sum of weights from 1, for weights of float. */
  private static final double SUM_TOLERANCE = 1e-5;

  private final Gaussians components;
  private final double[] weights;
  private final int[] offsets;

  private Mixture(Gaussians components, double[] weights, int[] offsets) {
    this.components = components;
    this.weights = weights;
    this.offsets = offsets;
  }

  /**
   * Makes one mixture.
   *
   * @param components K Gaussians, not deterministic
   * @param weights π, K numbers ≥ 0 whose sum is 1 to 1e-5. They are copied and divided by their sum
   * @return the mixture
   * @throws IllegalArgumentException if the arguments are not such
   */
  public static Mixture of(Gaussians components, double[] weights) {
    return of(components, weights, new int[] {0, KlEngine.batch(components, "components").size()});
  }

  /**
   * Makes a batch of N mixtures.
   *
   * @param components the Gaussians of all mixtures, not deterministic
   * @param weights a weight for each, ≥ 0, of which those of a mixture have the sum 1 to 1e-5. They are copied, and divided by it
   * @param offsets N + 1 indices, the first 0, the last the number of components, each greater than the one before
   * @return the mixtures
   * @throws IllegalArgumentException if the arguments are not such
   */
  public static Mixture of(Gaussians components, double[] weights, int[] offsets) {
    Batch batch = KlEngine.batch(components, "components");
    Objects.requireNonNull(offsets, "offsets");
    if (batch.isDeterministic()) {
      throw new IllegalArgumentException(
          "components are deterministic (std 0), so they have no density");
    }
    checkLength(weights, batch.size());
    int n = offsets.length - 1;
    if (n < 1 || offsets[0] != 0 || offsets[n] != batch.size()) {
      throw new IllegalArgumentException(
          "offsets are %s; they must begin with 0 and end with the number of components, %d"
              .formatted(n < 1 ? "too few" : offsets[0] + " to " + offsets[n], batch.size()));
    }
    for (int m = 0; m < n; m++) {
      if (offsets[m + 1] <= offsets[m]) {
        throw new IllegalArgumentException(
            "offsets[%d] is %d; it must be greater than offsets[%d], which is %d"
                .formatted(m + 1, offsets[m + 1], m, offsets[m]));
      }
    }
    double[] normal = weights.clone();
    for (int m = 0; m < n; m++) {
      normalize(normal, offsets[m], offsets[m + 1], n == 1 ? "" : " of mixture " + m);
    }
    return new Mixture(components, normal, offsets.clone());
  }

  static void checkLength(double[] weights, int n) {
    if (Objects.requireNonNull(weights, "weights").length != n) {
      throw new IllegalArgumentException(
          "weights has %d elements but there are %d components".formatted(weights.length, n));
    }
  }

  /** Divides the weights in [from, to), which it checks, by their sum. */
  static void normalize(double[] weights, int from, int to, String whose) {
    double sum = 0;
    for (int i = from; i < to; i++) {
      if (!(weights[i] >= 0)) {
        throw new IllegalArgumentException(
            "weights[%d] is %s; it must be >= 0".formatted(i, weights[i]));
      }
      sum += weights[i];
    }
    if (!(Math.abs(sum - 1) <= SUM_TOLERANCE)) {
      throw new IllegalArgumentException(
          "the sum of weights%s is %s; it must be 1".formatted(whose, sum));
    }
    for (int i = from; i < to; i++) {
      weights[i] /= sum;
    }
  }

  /** {@return the number N of mixtures} */
  public int size() {
    return offsets.length - 1;
  }

  /** {@return the dimension D of all components} */
  public int dimension() {
    return components.dimension();
  }

  /** {@return the components of all mixtures} */
  public Gaussians components() {
    return components;
  }

  /** {@return the weights of {@link #components()}, a new array} */
  public double[] weights() {
    return weights.clone();
  }

  /** {@return the index of mixture m's first component, m in [0, N]; of m = N, the number of components} */
  public int offset(int m) {
    return offsets[m];
  }

  /** Returns the array of {@link #offset}, only to be read. */
  int[] offsets() {
    return offsets;
  }

  @Override
  public String toString() {
    return "Mixture[%d of %s]".formatted(size(), components);
  }
}
