package dev.kullback.bench;

import dev.kullback.DiagonalGaussians;
import java.util.Arrays;
import java.util.SplittableRandom;

/** The inputs of every contender: row-major [size, dimension] arrays, the same in each process. */
record Batch(float[] mean, float[] std, Shape shape) {
  /** The two sides of a rectangular matrix; a square one uses the first for both. */
  static final long Q_SEED = 0x5eed_0001L;

  static final long P_SEED = 0x5eed_0002L;

  private static final double[] MIXED = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6};

  /** Well separated, as a trained encoder's posteriors: means N(0, 1), log σ N(0, 0.3²). */
  static Batch ordinary(Shape shape, long seed) {
    return random(shape, 1, 0.3, seed);
  }

  /** The standard normal distribution in each row. */
  static Batch standard(Shape shape) {
    Batch batch = empty(shape);
    Arrays.fill(batch.std, 1);
    return batch;
  }

  /** About one Gaussian: means N(0, S²), log σ N(0, S²). */
  static Batch alike(Shape shape, double spread, long seed) {
    return random(shape, spread, spread, seed);
  }

  /** Repeats one row, its means and deviations perturbed by ε relative: no entry survives in float. */
  static Batch nearDuplicates(Shape shape, double epsilon, long seed) {
    return perturbed(shape, new double[] {epsilon}, seed);
  }

  /** Makes near-duplicates with ε going round 1e-2 … 1e-6 from row to row. */
  static Batch nearDuplicates(Shape shape, long seed) {
    return perturbed(shape, MIXED, seed);
  }

  /** The rows from {@code from} to before {@code to}, as a batch of their own. */
  Batch rows(int from, int to) {
    int d = shape.dimension();
    return new Batch(
        Arrays.copyOfRange(mean, from * d, to * d),
        Arrays.copyOfRange(std, from * d, to * d),
        new Shape(to - from, d));
  }

  DiagonalGaussians gaussians() {
    return DiagonalGaussians.ofStd(mean, std, shape.dimension());
  }

  private static Batch random(Shape shape, double means, double logDeviations, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    Batch batch = empty(shape);
    for (int i = 0; i < batch.mean.length; i++) {
      batch.mean[i] = (float) (means * random.nextGaussian());
      batch.std[i] = (float) Math.exp(logDeviations * random.nextGaussian());
    }
    return batch;
  }

  private static Batch perturbed(Shape shape, double[] epsilons, long seed) {
    Batch base = ordinary(new Shape(1, shape.dimension()), seed);
    SplittableRandom random = new SplittableRandom(seed + 1);
    Batch batch = empty(shape);
    for (int i = 0, at = 0; i < shape.size(); i++) {
      double epsilon = epsilons[i % epsilons.length];
      for (int h = 0; h < shape.dimension(); h++, at++) {
        batch.mean[at] = (float) (base.mean[h] * (1 + epsilon * random.nextGaussian()));
        batch.std[at] = (float) (base.std[h] * (1 + epsilon * random.nextGaussian()));
      }
    }
    return batch;
  }

  private static Batch empty(Shape shape) {
    int length = Math.multiplyExact(shape.size(), shape.dimension());
    return new Batch(new float[length], new float[length], shape);
  }
}
