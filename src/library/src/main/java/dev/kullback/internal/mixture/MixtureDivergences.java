package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Crew;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Bounds and approximations of the divergences of mixtures, and estimates by sampling: row-major matrices of q's mixtures and p's. What the
 * methods compute is described where callers see it, in {@code MixtureKl} and {@code Mixtures}. The engines that they take compute KL, but for
 * transport.
 */
public final class MixtureDivergences {
  /** Divergences of components in a block of rows, those within q's mixtures included, unless one row alone has more. */
  private static final int BLOCK = 1 << 16;

  /** Divergences of components that are worth a block, whose two calls of the engine take 0.2 ms. */
  private static final int LEAST_BLOCK = 1 << 15;

  /** The same where plain code takes 0.1 µs for each, or more. */
  private static final int LEAST_PLAIN_BLOCK = 1 << 10;

  /** Blocks for each thread, if there are as many rows, so that the last one to be done keeps few threads waiting. */
  private static final int SHARE = 8;

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
    check(engine, q);
    double[] bounds =
        matrix(
            engine,
            LEAST_PLAIN_BLOCK,
            (first, last, out) -> {
              int[] rows = pairs(first, last, true);
              double[] within = within(engine, first, last, rows);
              Overlap own = Overlap.of(q.components, q.components);
              int from = q.offsets[first];
              double[] entropies = new double[q.offsets[last] - from];
              double half = 0.5 * q.components.dimension() * (1 - Math.log(2));
              // of ∫ q_a² = exp(½ D (1 − ln 2) − H), also where det Σ overflows
              Arrays.setAll(entropies, a -> half - own.log(from + a, from + a));
              addQuotients(
                  first, last, k -> -within[k] - entropies[rows[k] - from], overlaps(first), out);
            });
    Arrays.setAll(bounds, k -> Math.max(0, bounds[k]));
    return bounds;
  }

  public double[] variational(Engine engine) {
    check(engine, p);
    check(engine, q);
    return matrix(
        engine,
        LEAST_BLOCK,
        (first, last, out) -> {
          double[] across = across(engine, first, last);
          double[] within = within(engine, first, last, pairs(first, last, true));
          addQuotients(first, last, k -> -within[k], k -> -across[k], out);
        });
  }

  /** Returns the approximation by products, made by the threads of an engine, or if there is none by this one. */
  public double[] productOfGaussians(@Nullable Engine engine) {
    return matrix(
        engine,
        LEAST_PLAIN_BLOCK,
        (first, last, out) -> {
          int[] rows = pairs(first, last, true);
          int[] columns = pairs(first, last, false);
          Overlap own = Overlap.of(q.components, q.components);
          addQuotients(first, last, k -> own.log(rows[k], columns[k]), overlaps(first), out);
        });
  }

  /** Returns the logarithms of the integrals of a block's components and p's, for one thread. */
  private IntToDoubleFunction overlaps(int first) {
    Overlap other = Overlap.of(q.components, p.components);
    int width = omega.length;
    return k -> other.log(q.offsets[first] + k / width, k % width);
  }

  public double[] matchedPairs(Engine engine) {
    check(engine, p);
    return matrix(
        engine,
        LEAST_BLOCK,
        (first, last, out) -> {
          double[] across = across(engine, first, last);
          Checkpoint checkpoint = new Checkpoint();
          for (int m = first; m < last; m++) {
            for (int a = q.offsets[m]; a < q.offsets[m + 1]; a++) {
              checkpoint.pass(Checkpoint.ofPlain(8L * omega.length));
              addMatches(m, a, across, (a - q.offsets[first]) * omega.length, out);
            }
          }
        });
  }

  private void addMatches(int m, int a, double[] across, int at, double[] out) {
    for (int n = 0; n < p.size() && pi[a] > 0; n++) {
      double least = Double.POSITIVE_INFINITY;
      for (int b = p.offsets[n]; b < p.offsets[n + 1]; b++) {
        least = Math.min(least, across[at + b] - Math.log(omega[b]));
      }
      out[m * p.size() + n] += pi[a] * (least + Math.log(pi[a]));
    }
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
    check(engine, p);
    return matrix(
        engine,
        LEAST_PLAIN_BLOCK,
        (first, last, out) -> {
          double[] across = across(engine, first, last);
          int from = q.offsets[first];
          for (int m = first; m < last; m++) {
            int[] a = counted(pi, q.offsets[m], q.offsets[m + 1]);
            double[] rows = Arrays.stream(a).mapToDouble(i -> pi[i]).toArray();
            for (int n = 0; n < p.size(); n++) {
              int[] b = counted(omega, p.offsets[n], p.offsets[n + 1]);
              double[] d = new double[a.length * b.length];
              Arrays.setAll(
                  d, k -> across[(a[k / b.length] - from) * omega.length + b[k % b.length]]);
              double[] columns = Arrays.stream(b).mapToDouble(i -> omega[i]).toArray();
              out[m * p.size() + n] = coupling.of(rows, columns, d);
            }
          }
        });
  }

  /** Returns the indices in [from, to) of weights above 0. */
  private static int[] counted(double[] weights, int from, int to) {
    return IntStream.range(from, to).filter(i -> weights[i] > 0).toArray();
  }

  /**
   * Estimates all divergences by samples whose random numbers are of a seed, by the threads of an engine, or if there is none by this one.
   */
  public void monteCarlo(
      @Nullable Engine engine, int samples, long seed, double[] estimates, double[] errors) {
    SplittableRandom seeds = new SplittableRandom(seed);
    SplittableRandom[] random = new SplittableRandom[q.size()];
    Arrays.setAll(random, _ -> seeds.split());
    share(
        engine,
        Math.ceilDiv(LEAST_PLAIN_BLOCK, samples),
        estimates,
        (first, last, out) -> {
          MixtureSampler sampler =
              new MixtureSampler(q.components, pi, q.offsets, p.components, omega, p.offsets);
          for (int m = first, k = m * p.size(); m < last; m++) {
            for (Estimate estimate : sampler.sample(m, samples, random[m])) {
              out[k] = estimate.mean();
              errors[k++] = estimate.standardError();
            }
          }
        });
  }

  /** Computes the rows [first, last) of a matrix. */
  private interface Rows {
    void compute(int first, int last, double[] out);
  }

  private double[] matrix(@Nullable Engine engine, int least, Rows rows) {
    double[] out = new double[q.size() * p.size()];
    share(engine, least, out, rows);
    return out;
  }

  /**
   * Computes all rows, block by block, by the threads of an engine, or if there is none by this one.
   *
   * @param least as many divergences of components as are worth a block
   */
  private void share(@Nullable Engine engine, int least, double[] out, Rows rows) {
    if (engine != null) {
      engine.checkOpen();
    }
    Crew<Worker> crew =
        new Crew<>(
            "kullback",
            engine == null ? 1 : engine.threads(),
            engine == null ? null : engine.executor(),
            Worker::new,
            _ -> {});
    int[] ends = blocks(crew.threads(), least);
    Worker lead = crew.take();
    lead.startCall();
    crew.share(
        ends.length - 1,
        lead,
        (k, worker) -> {
          worker.checkInterrupt();
          rows.compute(ends[(int) k], ends[(int) k + 1], out);
        });
  }

  /** Returns the first row of each block, and the number of rows. */
  private int[] blocks(int threads, int least) {
    long total = IntStream.range(0, q.size()).mapToLong(this::divergences).sum();
    long most = threads == 1 ? BLOCK : Math.clamp(total / ((long) SHARE * threads), least, BLOCK);
    int[] ends = new int[q.size() + 1];
    int count = 0;
    long length = 0;
    for (int m = 0; m < q.size(); m++) {
      length += divergences(m);
      if (length > most && m > ends[count]) {
        ends[++count] = m;
        length = divergences(m);
      }
    }
    ends[++count] = q.size();
    return Arrays.copyOf(ends, count + 1);
  }

  /** Returns how many divergences of components a row may need: from all of p, and from each other. */
  private long divergences(int m) {
    int count = q.offsets[m + 1] - q.offsets[m];
    return (long) count * omega.length + (long) count * count;
  }

  /** Returns the divergences of the components of q's mixtures [first, last) from all of p. */
  private double[] across(Engine engine, int first, int last) {
    int from = q.offsets[first];
    int to = q.offsets[last];
    requireArray((long) (to - from) * omega.length, "of q's components from p's");
    Batch all = // written out once, not each part in each call
        p.components instanceof FullBatch ? LowRankBatch.writtenOut(q.components) : q.components;
    Batch part =
        to - from == pi.length ? all : MixtureBatch.part(all, new int[] {from, to, pi.length}, 0);
    double[] out = new double[(to - from) * omega.length];
    engine.into(out).pairwise(part, p.components);
    return out;
  }

  /** Returns the divergences of each q_m's components from each other, of {@link #pairs}, whose first ones are given. */
  private double[] within(Engine engine, int first, int last, int[] rows) {
    double[] out = new double[rows.length];
    if (q.size() == 1) {
      engine.into(out).pairwise(q.components, q.components);
    } else {
      engine.into(out).pairs(q.components, rows, q.components, pairs(first, last, false));
    }
    return out;
  }

  private void check(Engine engine, MixtureBatch from) {
    engine.checkOpen();
    Arguments.check(engine.formula(), q.components, from.components, false);
  }

  /** Returns the first or the second of each two components of one q_m, by m in [begin, end), row and column. */
  private int[] pairs(int begin, int end, boolean first) {
    long length = 0;
    for (int m = begin; m < end; m++) {
      int count = q.offsets[m + 1] - q.offsets[m];
      length += (long) count * count;
    }
    requireArray(length, "of q's components from each other");
    int[] pairs = new int[(int) length];
    for (int m = begin, k = 0; m < end; m++) {
      for (int a = q.offsets[m]; a < q.offsets[m + 1]; a++) {
        for (int b = q.offsets[m]; b < q.offsets[m + 1]; b++) {
          pairs[k++] = first ? a : b;
        }
      }
    }
    return pairs;
  }

  /**
   * Adds {@code Σ_a π_a ln( Σ_a' π_a' exp(own) / Σ_b ω_b exp(other) )} to the rows [first, last).
   *
   * @param own takes the number of a pair of {@link #pairs}
   * @param other takes the number of an entry of the components' matrix, as {@link #across} has it
   */
  private void addQuotients(
      int first, int last, IntToDoubleFunction own, IntToDoubleFunction other, double[] out) {
    Checkpoint checkpoint = new Checkpoint();
    int from = q.offsets[first];
    for (int m = first, k = 0; m < last; m++) {
      for (int a = q.offsets[m]; a < q.offsets[m + 1]; a++) {
        int count = q.offsets[m + 1] - q.offsets[m];
        checkpoint.pass(Checkpoint.ofPlain(16L * (count + omega.length)));
        double numerator =
            pi[a] == 0 ? 0 : sum(pi, q.offsets[m], q.offsets[m + 1], own, k - q.offsets[m]);
        k += count;
        for (int n = 0; n < p.size() && pi[a] > 0; n++) {
          int at = (a - from) * omega.length;
          double denominator = sum(omega, p.offsets[n], p.offsets[n + 1], other, at);
          out[m * p.size() + n] += pi[a] * (numerator - denominator);
        }
      }
    }
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
