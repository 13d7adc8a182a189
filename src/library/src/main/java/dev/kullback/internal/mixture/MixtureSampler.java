package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.work.Crew;
import dev.kullback.internal.work.Job;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Samples {@code ln f_m(x) − ln g_n(x)}, x from f_m, of mixtures f_m and g_n. The samples of a row are the same for all columns. What one thread computes
 * with: the samples are drawn by the one that leads, some at a time, and their densities may be shared.
 */
final class MixtureSampler extends Worker {
  /** Numbers of the samples that are drawn at a time, 2 MiB, and how many these are at most. */
  private static final int NUMBERS = 1 << 18;

  private static final int MOST_SAMPLES = 1 << 14;

  /** Samples of a task, which the threads share: plain code takes 1 µs for a sample, or more. */
  private static final int TASK = 64;

  /** Time of a normal number relative to a component's term. */
  private static final int DRAW = 8;

  private final Densities f;
  private final Densities g;

  /** Terms of a component's density, and components whose densities a sample has beside those of its mixture. */
  private final long terms;

  private final int others;

  /** Components that samples are drawn of, their distances from the means, and what is estimated the mean of. */
  private int[] components = {};

  private double[][] distances = {};
  private double[] values = {};

  MixtureSampler(MixtureBatch f, MixtureBatch g) {
    this.f = Densities.of(f.components, f.components, f.weights, f.offsets);
    this.g = Densities.of(g.components, f.components, g.weights, g.offsets);
    terms = Batch.terms(f.components, g.components);
    others = g.weights.length;
  }

  /**
   * Estimates a row's divergences.
   *
   * @param random the row's own
   * @param crew shares the samples; null for this thread alone
   */
  void sample(
      int m,
      int samples,
      SplittableRandom random,
      @Nullable Crew<MixtureSampler> crew,
      double[] estimates,
      double[] errors) {
    int columns = g.size();
    int most = Math.min(samples, Math.clamp(NUMBERS / (f.dimension + columns), 1, MOST_SAMPLES));
    if (components.length < most) {
      components = new int[most];
      distances = new double[most][f.dimension];
      values = new double[most * columns];
    }
    Estimate[] row = new Estimate[columns];
    Arrays.setAll(row, _ -> new Estimate());
    for (int done = 0, count; done < samples; done += count) {
      count = Math.min(samples - done, most);
      for (int s = 0; s < count; s++) {
        components[s] = f.choose(m, random.nextDouble());
        f.sample(components[s], random, distances[s]);
        pass(DRAW * terms);
      }
      int end = count;
      Job.Task<MixtureSampler> task =
          (k, sampler) ->
              sampler.compute(this, m, (int) k * TASK, Math.min(end - (int) k * TASK, TASK));
      int tasks = Math.ceilDiv(count, TASK);
      if (crew == null) {
        Job.alone(tasks, this, task);
      } else {
        crew.share(tasks, this, task);
      }
      for (int s = 0; s < count; s++) {
        add(m, done + 1L + s, s, row);
      }
    }
    for (int n = 0; n < columns; n++) {
      estimates[m * columns + n] = row[n].mean();
      errors[m * columns + n] = row[n].standardError();
    }
  }

  /** Computes some values of the thread that leads. */
  private void compute(MixtureSampler lead, int m, int from, int count) {
    checkInterrupt();
    for (int s = from, k = s * g.size(); s < from + count; s++) {
      int a = lead.components[s];
      double[] t = lead.distances[s];
      double logF = f.log(m, a, t);
      for (int n = 0; n < g.size(); n++) {
        lead.values[k++] = logF - g.log(n, a, t);
      }
      pass(terms * (f.count(m) + others));
    }
  }

  /** Adds a sample to the estimates, and a bound on its rounding to those of some. */
  private void add(int m, long number, int s, Estimate[] row) {
    boolean isBounded = Estimate.isBounded(number);
    int a = components[s];
    double rounding = isBounded ? f.rounding(m, a, distances[s]) : 0;
    for (int n = 0; n < row.length; n++) {
      row[n].addSample(values[s * row.length + n]);
      if (isBounded) {
        row[n].addRounding(rounding + g.rounding(n, a, distances[s]));
      }
    }
  }
}
