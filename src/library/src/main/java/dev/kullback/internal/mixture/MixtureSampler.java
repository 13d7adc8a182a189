package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Samples {@code ln f_m(x) − ln g_n(x)}, x from f_m, of mixtures f_m and g_n. The samples of a row are the same for all columns. For one
 * thread.
 */
public final class MixtureSampler {
  private final Densities f;
  private final Densities g;
  private final Checkpoint checkpoint = new Checkpoint();

  /** Terms that a sample counts at the checkpoint. */
  private final long terms;

  /**
   * Makes a sampler.
   *
   * @param pi weights of f's components
   * @param fOffsets indices of the first component of each f_m, and the number of components
   * @param omega weights of g's components
   * @param gOffsets likewise
   */
  public MixtureSampler(
      Batch f, double[] pi, int[] fOffsets, Batch g, double[] omega, int[] gOffsets) {
    this.f = Densities.of(f, f, pi, fOffsets);
    this.g = Densities.of(g, f, omega, gOffsets);
    terms = Batch.terms(f, g) * (omega.length + 8);
  }

  /** Returns the estimates of a row's divergences, of which the random numbers are its own. */
  public Estimate[] sample(int m, int samples, SplittableRandom random) {
    Estimate[] estimates = new Estimate[g.size()];
    Arrays.setAll(estimates, _ -> new Estimate());
    double[] t = new double[f.dimension];
    for (long s = 1; s <= samples; s++) {
      int a = f.choose(m, random.nextDouble());
      f.sample(a, random, t);
      double logF = f.log(m, a, t);
      double rounding = Estimate.isBounded(s) ? f.rounding(m, a, t) : 0;
      for (int n = 0; n < estimates.length; n++) {
        estimates[n].addSample(logF - g.log(n, a, t));
        if (Estimate.isBounded(s)) {
          estimates[n].addRounding(rounding + g.rounding(n, a, t));
        }
      }
      checkpoint.pass(terms);
    }
    return estimates;
  }
}
