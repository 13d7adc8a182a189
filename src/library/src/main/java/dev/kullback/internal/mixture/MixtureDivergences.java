package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;

/**
 * Bounds and approximations of the divergences of mixtures, and estimates by sampling: row-major matrices of q's mixtures and p's. What the
 * methods compute is described where callers see it, in {@code MixtureKl} and {@code Mixtures}. The engines that they take compute KL, but for
 * transport.
 */
public final class MixtureDivergences {
  private final MixtureBatch q;
  private final MixtureBatch p;
  private final double[] pi;
  private final double[] omega;

  public MixtureDivergences(MixtureBatch q, MixtureBatch p) {
    this.q = q;
    this.p = p;
    pi = q.weights;
    omega = p.weights;
  }

  /** Throws if so many divergences do not fit an array. */
  public static void requireArray(long length, String what) {
    if (length > Batch.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "%d divergences %s do not fit an array; give fewer at once".formatted(length, what));
    }
  }

  public double[] lowerBound(Engine engine) {
    double[] within = within(engine);
    Overlap own = Overlap.of(q.components, q.components);
    Overlap other = Overlap.of(q.components, p.components);
    int[] rows = pairs(true);
    int width = omega.length;
    double[] entropies =
        new double[pi.length]; // of ∫ q_a² = exp(½ D (1 − ln 2) − H), also where det Σ overflows
    Arrays.setAll(
        entropies, a -> 0.5 * q.components.dimension() * (1 - Math.log(2)) - own.log(a, a));
    double[] out =
        quotients(k -> -within[k] - entropies[rows[k]], k -> other.log(k / width, k % width));
    Arrays.setAll(out, k -> Math.max(0, out[k]));
    return out;
  }

  public double[] variational(Engine engine) {
    double[] across = across(engine);
    double[] within = within(engine);
    return quotients(k -> -within[k], k -> -across[k]);
  }

  public double[] productOfGaussians() {
    Overlap own = Overlap.of(q.components, q.components);
    Overlap other = Overlap.of(q.components, p.components);
    int[] rows = pairs(true);
    int[] columns = pairs(false);
    int width = omega.length;
    return quotients(k -> own.log(rows[k], columns[k]), k -> other.log(k / width, k % width));
  }

  public double[] matchedPairs(Engine engine) {
    double[] across = across(engine);
    double[] out = new double[q.size() * p.size()];
    Checkpoint checkpoint = new Checkpoint();
    for (int a = 0, m = 0; a < pi.length; a++) {
      checkpoint.pass(Checkpoint.ofPlain(8L * omega.length));
      m += a == q.offsets[m + 1] ? 1 : 0;
      for (int n = 0; n < p.size() && pi[a] > 0; n++) {
        double least = Double.POSITIVE_INFINITY;
        for (int b = p.offsets[n]; b < p.offsets[n + 1]; b++) {
          least = Math.min(least, across[a * omega.length + b] - Math.log(omega[b]));
        }
        out[m * p.size() + n] += pi[a] * (least + Math.log(pi[a]));
      }
    }
    return out;
  }

  public double[] upperBound(Engine engine) {
    return coupled(engine, (a, b, d) -> new VariationalBound(a, b, d).compute());
  }

  /** Returns the least means of divergences over couplings of weights, of an engine of any divergence. */
  public double[] transport(Engine engine) {
    return coupled(engine, (a, b, d) -> new Transport(a, b, d).compute());
  }

  /** What is computed of two mixtures' weights above 0 and the divergences of those components. */
  private interface Coupling {
    double of(double[] a, double[] b, double[] divergences);
  }

  private double[] coupled(Engine engine, Coupling coupling) {
    double[] across = across(engine);
    double[] out = new double[q.size() * p.size()];
    for (int m = 0; m < q.size(); m++) {
      int[] a = counted(pi, q.offsets[m], q.offsets[m + 1]);
      for (int n = 0; n < p.size(); n++) {
        int[] b = counted(omega, p.offsets[n], p.offsets[n + 1]);
        double[] d = new double[a.length * b.length];
        Arrays.setAll(d, k -> across[a[k / b.length] * omega.length + b[k % b.length]]);
        double[] rows = Arrays.stream(a).mapToDouble(i -> pi[i]).toArray();
        double[] columns = Arrays.stream(b).mapToDouble(i -> omega[i]).toArray();
        out[m * p.size() + n] = coupling.of(rows, columns, d);
      }
    }
    return out;
  }

  /** Returns the indices in [from, to) of weights above 0. */
  private static int[] counted(double[] weights, int from, int to) {
    return IntStream.range(from, to).filter(i -> weights[i] > 0).toArray();
  }

  /** Estimates all divergences by samples whose random numbers are of a seed. */
  public void monteCarlo(int samples, long seed, double[] estimates, double[] errors) {
    MixtureSampler sampler =
        new MixtureSampler(q.components, pi, q.offsets, p.components, omega, p.offsets);
    SplittableRandom seeds = new SplittableRandom(seed);
    for (int m = 0, k = 0; m < q.size(); m++) {
      for (Estimate estimate : sampler.sample(m, samples, seeds.split())) {
        estimates[k] = estimate.mean();
        errors[k++] = estimate.standardError();
      }
    }
  }

  /** Returns the divergences of all components of q from all of p. */
  private double[] across(Engine engine) {
    check(engine, p);
    requireArray((long) pi.length * omega.length, "of q's components from p's");
    double[] out = new double[pi.length * omega.length];
    engine.into(out).pairwise(q.components, p.components);
    return out;
  }

  /** Returns the divergences of each q_m's components from each other, one mixture behind the other. */
  private double[] within(Engine engine) {
    check(engine, q);
    int[] rows = pairs(true);
    double[] out = new double[rows.length];
    if (q.size() == 1) {
      engine.into(out).pairwise(q.components, q.components);
    } else {
      engine.into(out).pairs(q.components, rows, q.components, pairs(false));
    }
    return out;
  }

  private void check(Engine engine, MixtureBatch from) {
    engine.checkOpen();
    Arguments.check(engine.formula(), q.components, from.components, false);
  }

  /** Returns the first or the second of each two components of one q_m, by m, row and column. */
  private int[] pairs(boolean first) {
    long length = 0;
    for (int m = 0; m < q.size(); m++) {
      int count = q.offsets[m + 1] - q.offsets[m];
      length += (long) count * count;
    }
    requireArray(length, "of q's components from each other");
    int[] pairs = new int[(int) length];
    for (int m = 0, k = 0; m < q.size(); m++) {
      for (int a = q.offsets[m]; a < q.offsets[m + 1]; a++) {
        for (int b = q.offsets[m]; b < q.offsets[m + 1]; b++) {
          pairs[k++] = first ? a : b;
        }
      }
    }
    return pairs;
  }

  /**
   * Returns {@code Σ_a π_a ln( Σ_a' π_a' exp(own) / Σ_b ω_b exp(other) )}.
   *
   * @param own takes the number of a pair of {@link #pairs}
   * @param other takes the number of an entry of the components' matrix
   */
  private double[] quotients(IntToDoubleFunction own, IntToDoubleFunction other) {
    double[] out = new double[q.size() * p.size()];
    Checkpoint checkpoint = new Checkpoint();
    for (int m = 0, k = 0; m < q.size(); m++) {
      for (int a = q.offsets[m]; a < q.offsets[m + 1]; a++) {
        int count = q.offsets[m + 1] - q.offsets[m];
        checkpoint.pass(Checkpoint.ofPlain(16L * (count + omega.length)));
        double numerator =
            pi[a] == 0 ? 0 : sum(pi, q.offsets[m], q.offsets[m + 1], own, k - q.offsets[m]);
        k += count;
        for (int n = 0; n < p.size() && pi[a] > 0; n++) {
          double denominator = sum(omega, p.offsets[n], p.offsets[n + 1], other, a * omega.length);
          out[m * p.size() + n] += pi[a] * (numerator - denominator);
        }
      }
    }
    return out;
  }

  /** Returns {@code ln Σ_i w_i exp(x_(at + i))} for i in [from, to). */
  private static double sum(double[] weights, int from, int to, IntToDoubleFunction x, int at) {
    double[] terms = new double[to - from];
    double most = Double.NEGATIVE_INFINITY;
    for (int i = from; i < to; i++) {
      terms[i - from] =
          weights[i] == 0
              ? Double.NEGATIVE_INFINITY
              : Math.log(weights[i]) + x.applyAsDouble(at + i);
      most = Math.max(most, terms[i - from]);
    }
    return LogSumExp.of(terms, 0, terms.length, most);
  }
}
