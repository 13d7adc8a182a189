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
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Bounds and approximations of the divergences of mixtures, and estimates by sampling: row-major matrices of q's mixtures and p's. What the
 * methods compute is described where callers see it, in {@code MixtureKl} and {@code Mixtures}. The engines that they take compute KL, but for
 * transport.
 */
public final class MixtureDivergences {
  /** Divergences of components in a block, those within q's mixtures included, unless a row of them, or a pair of mixtures, has more. */
  private static final int BLOCK = 1 << 16;

  /** Divergences of components that are worth a block, whose two calls of the engine take 0.2 ms. */
  private static final int LEAST_BLOCK = 1 << 15;

  /** The same where plain code takes 0.1 µs for each, or more. */
  private static final int LEAST_PLAIN_BLOCK = 1 << 10;

  /**
   * Divergences of a mixture of q from the columns of a block, where weights are coupled, unless a pair of mixtures has more. As full
   * covariances are computed relative to a centre of their batch, bits depend on it, and it is the same for any number of threads.
   */
  private static final int COUPLED = 1 << 13;

  /** Blocks for each thread, if there is as much, so that the last one to be done keeps few threads waiting. */
  private static final int SHARE = 8;

  /** Components of a mixture that is cut into blocks are cut by multiples of it, for the engine's kernels. */
  private static final int ROWS = 8;

  private final MixtureBatch q;
  private final MixtureBatch p;
  private final double[] pi;
  private final double[] omega;
  private final double[] logPi;
  private final double[] logOmega;

  public MixtureDivergences(MixtureBatch q, MixtureBatch p) {
    this.q = q;
    this.p = p;
    pi = q.weights;
    omega = p.weights;
    logPi = logs(pi);
    logOmega = logs(omega);
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
        sums(
            engine,
            LEAST_PLAIN_BLOCK,
            (from, to, out) -> {
              double[] within = within(engine, from, to);
              Overlap own = Overlap.of(q.components, q.components);
              double[] entropies = new double[to - from];
              double half = 0.5 * q.components.dimension() * (1 - Math.log(2));
              // of ∫ q_a² = exp(½ D (1 − ln 2) − H), also where det Σ overflows
              Arrays.setAll(entropies, a -> half - own.log(from + a, from + a));
              setQuotients(
                  from, to, (k, a, _) -> -within[k] - entropies[a - from], overlaps(), out);
            });
    Arrays.setAll(bounds, k -> Math.max(0, bounds[k]));
    return bounds;
  }

  public double[] variational(Engine engine) {
    check(engine, p);
    check(engine, q);
    Batch all = rows();
    return sums(
        engine,
        LEAST_BLOCK,
        (from, to, out) -> {
          double[] across = across(engine, all, from, to, p.components);
          double[] within = within(engine, from, to);
          setQuotients(from, to, (k, _, _) -> -within[k], (k, _, _) -> -across[k], out);
        });
  }

  /** Returns the approximation by products, made by the threads of an engine, or if there is none by this one. */
  public double[] productOfGaussians(@Nullable Engine engine) {
    return sums(
        engine,
        LEAST_PLAIN_BLOCK,
        (from, to, out) -> {
          Overlap own = Overlap.of(q.components, q.components);
          setQuotients(from, to, (_, a, b) -> own.log(a, b), overlaps(), out);
        });
  }

  /** Returns the logarithms of the integrals of q's components and p's, for one thread. */
  private Exponents overlaps() {
    Overlap other = Overlap.of(q.components, p.components);
    return (_, a, b) -> other.log(a, b);
  }

  public double[] matchedPairs(Engine engine) {
    check(engine, p);
    Batch all = rows();
    return sums(
        engine,
        LEAST_BLOCK,
        (from, to, out) -> {
          double[] across = across(engine, all, from, to, p.components);
          Checkpoint checkpoint = new Checkpoint();
          for (int a = from; a < to; a++) {
            checkpoint.pass(Checkpoint.ofPlain(8L * omega.length));
            setMatches(a, across, (a - from) * omega.length, out, (a - from) * p.size());
          }
        });
  }

  private void setMatches(int a, double[] across, int at, double[] out, int to) {
    for (int n = 0; n < p.size() && pi[a] > 0; n++) {
      double least = Double.POSITIVE_INFINITY;
      for (int b = p.offsets[n]; b < p.offsets[n + 1]; b++) {
        least = Math.min(least, across[at + b] - logOmega[b]);
      }
      out[to + n] = pi[a] * (least + logPi[a]);
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

  /** Computes pairs of mixtures, some rows and columns at a time. */
  private double[] coupled(Engine engine, Coupling coupling) {
    check(engine, p);
    long most = most(engine, LEAST_PLAIN_BLOCK, (long) pi.length * omega.length);
    int[] columns = groups(p.offsets, COUPLED / widest(q.offsets, q.size()));
    int[] ends = ends(p.offsets, columns);
    int[] rows = groups(q.offsets, most / widest(ends, ends.length - 1));
    Batch all = rows();
    Batch[] parts = new Batch[columns.length - 1];
    Arrays.setAll(parts, k -> MixtureBatch.part(p.components, ends, k));
    double[] out = new double[q.size() * p.size()];
    share(
        engine,
        (long) (rows.length - 1) * parts.length,
        task -> {
          int row = (int) (task / parts.length);
          int column = (int) (task % parts.length);
          int from = q.offsets[rows[row]];
          int width = ends[column + 1] - ends[column];
          double[] across = across(engine, all, from, q.offsets[rows[row + 1]], parts[column]);
          for (int m = rows[row]; m < rows[row + 1]; m++) {
            int[] a = counted(pi, q.offsets[m], q.offsets[m + 1]);
            double[] piA = Arrays.stream(a).mapToDouble(i -> pi[i]).toArray();
            for (int n = columns[column]; n < columns[column + 1]; n++) {
              int[] b = counted(omega, p.offsets[n], p.offsets[n + 1]);
              double[] omegaB = Arrays.stream(b).mapToDouble(i -> omega[i]).toArray();
              out[m * p.size() + n] =
                  coupling.of(piA, omegaB, chosen(across, width, a, from, b, ends[column]));
            }
          }
        });
    return out;
  }

  /** Returns rows and columns of a matrix whose first ones are those of the components {@code from} and {@code column}; itself if these are all. */
  private static double[] chosen(
      double[] matrix, int width, int[] rows, int from, int[] columns, int column) {
    if (rows.length * (long) columns.length == matrix.length) {
      return matrix;
    }
    double[] some = new double[rows.length * columns.length];
    for (int i = 0, k = 0; i < rows.length; i++) {
      int at = (rows[i] - from) * width - column;
      for (int j = 0; j < columns.length; j++) {
        some[k++] = matrix[at + columns[j]];
      }
    }
    return some;
  }

  /** Returns the first mixture of each group, of {@code most} components at most or one mixture, and the number of mixtures. */
  private static int[] groups(int[] offsets, long most) {
    IntStream.Builder first = IntStream.builder().add(0);
    for (int m = 1, begin = 0; m < offsets.length - 1; m++) {
      if (offsets[m + 1] - offsets[begin] > most) {
        begin = m;
        first.add(m);
      }
    }
    return first.add(offsets.length - 1).build().toArray();
  }

  /** Returns the first component of each group, and the number of components. */
  private static int[] ends(int[] offsets, int[] groups) {
    return Arrays.stream(groups).map(m -> offsets[m]).toArray();
  }

  private static int widest(int[] ends, int count) {
    return IntStream.range(0, count).map(k -> ends[k + 1] - ends[k]).max().orElseThrow();
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
    Crew<MixtureSampler> crew = crew(engine, () -> new MixtureSampler(q, p));
    MixtureSampler lead = crew.take();
    lead.startCall();
    if (q.size() >= SHARE * crew.threads()) {
      crew.share(
          q.size(),
          lead,
          (m, sampler) ->
              sampler.sample((int) m, samples, random[(int) m], null, estimates, errors));
    } else {
      for (int m = 0; m < random.length; m++) {
        lead.sample(m, samples, random[m], crew, estimates, errors);
      }
    }
  }

  /** Computes terms of q's components [from, to), {@code [to − from, M]}, whose sums are the elements of their mixtures' rows. */
  private interface Terms {
    void compute(int from, int to, double[] out);
  }

  /** A mixture that is in several blocks, whose terms are added in the components' order: those of a block wait for the ones before. */
  private final class Cut {
    private final Map<Integer, double[]> waiting = new HashMap<>();
    private int next;

    Cut(int first) {
      next = first;
    }

    /** Takes the terms of components from one on; returns the component before which all were added. */
    synchronized int add(int from, double[] some, double[] out) {
      waiting.put(from, some);
      for (double[] terms; (terms = waiting.remove(next)) != null; ) {
        MixtureDivergences.this.add(next, terms, out);
        next += terms.length / p.size();
      }
      return next;
    }
  }

  /**
   * Adds up the terms of all components, block by block, by the threads of an engine, or if there is none by this one. The order of a sum
   * is that of the components, whatever the blocks are.
   *
   * @param least as many divergences of components as are worth a block
   */
  private double[] sums(@Nullable Engine engine, int least, Terms terms) {
    double[] out = new double[q.size() * p.size()];
    int[] ends = blocks(engine, least);
    Map<Integer, Cut> cuts = new ConcurrentHashMap<>();
    share(
        engine,
        ends.length - 1,
        task -> {
          int from = ends[(int) task];
          int to = ends[(int) task + 1];
          double[] some = new double[(to - from) * p.size()];
          terms.compute(from, to, some);
          int m = mixture(from);
          if (q.offsets[m] == from && q.offsets[m + 1] <= to) {
            add(from, some, out);
          } else if (cuts.computeIfAbsent(m, _ -> new Cut(q.offsets[m])).add(from, some, out)
              == q.offsets[m + 1]) {
            cuts.remove(m);
          }
        });
    return out;
  }

  /** Returns the mixture of a component of q. */
  private int mixture(int a) {
    int found = Arrays.binarySearch(q.offsets, a);
    return found < 0 ? -found - 2 : found;
  }

  /** Adds the terms of q's components from one on to a matrix. */
  private void add(int from, double[] terms, double[] out) {
    int m = mixture(from);
    for (int a = from, k = 0; k < terms.length; a++) {
      m += a == q.offsets[m + 1] ? 1 : 0;
      for (int n = 0; n < p.size(); n++) {
        out[m * p.size() + n] += terms[k++];
      }
    }
  }

  private static <W extends Worker> Crew<W> crew(@Nullable Engine engine, Supplier<W> make) {
    if (engine != null) {
      engine.checkOpen();
    }
    return new Crew<>(
        "kullback",
        engine == null ? 1 : engine.threads(),
        engine == null ? null : engine.executor(),
        make,
        _ -> {});
  }

  /** Does tasks, by the threads of an engine, or if there is none by this one. */
  private static void share(@Nullable Engine engine, long tasks, LongConsumer task) {
    Crew<Worker> crew = crew(engine, Worker::new);
    Worker lead = crew.take();
    lead.startCall();
    crew.share(
        tasks,
        lead,
        (k, worker) -> {
          worker.checkInterrupt();
          task.accept(k);
        });
  }

  /** Returns how many divergences of components a block has, of so many in all. */
  private static long most(@Nullable Engine engine, int least, long total) {
    int threads = engine == null ? 1 : engine.threads();
    return threads == 1 ? BLOCK : Math.clamp(total / ((long) SHARE * threads), least, BLOCK);
  }

  /** Returns the first component of each block, and their number. A block has whole mixtures, or some components of one. */
  private int[] blocks(@Nullable Engine engine, int least) {
    long most =
        most(engine, least, IntStream.range(0, q.size()).mapToLong(this::divergences).sum());
    IntStream.Builder first = IntStream.builder();
    long length = most;
    for (int m = 0; m < q.size(); m++) {
      long own = divergences(m);
      length += own;
      if (length > most) {
        first.add(q.offsets[m]);
        length = own;
      }
      int count = q.componentCount(m);
      int rows =
          own <= most
              ? count
              : (int) Math.min(count, Math.max(1, most * count / own / ROWS) * ROWS);
      for (int a = q.offsets[m] + rows; a < q.offsets[m + 1]; a += rows) {
        first.add(a);
      }
    }
    return first.add(pi.length).build().toArray();
  }

  /** Returns how many divergences of components a row may need: from all of p, and from each other. */
  private long divergences(int m) {
    long count = q.componentCount(m);
    return count * omega.length + count * count;
  }

  /** Returns q's components as {@link #across} takes them, written out once if they are to be, not each part in each call. */
  private Batch rows() {
    return p.components instanceof FullBatch ? LowRankBatch.writtenOut(q.components) : q.components;
  }

  /** Returns the divergences of q's components [from, to) from all of a batch. */
  private double[] across(Engine engine, Batch all, int from, int to, Batch columns) {
    requireArray((long) (to - from) * columns.size(), "of q's components from p's");
    double[] out = new double[(to - from) * columns.size()];
    engine.into(out).pairwise(part(all, from, to), columns);
    return out;
  }

  private static Batch part(Batch all, int from, int to) {
    int n = all.size();
    return to - from == n ? all : MixtureBatch.part(all, new int[] {from, to, n}, 0);
  }

  /** Returns the divergences of q's components [from, to) from those of their mixtures. */
  private double[] within(Engine engine, int from, int to) {
    if (q.size() == 1) {
      return across(engine, q.components, from, to, q.components);
    }
    long length = 0;
    for (int m = mixture(from); m < q.size() && q.offsets[m] < to; m++) {
      length += (long) inside(m, from, to) * q.componentCount(m);
    }
    int[] rows = new int[Math.toIntExact(length)];
    int[] columns = new int[rows.length];
    int k = 0;
    for (int m = mixture(from); m < q.size() && q.offsets[m] < to; m++) {
      for (int a = Math.max(from, q.offsets[m]); a < Math.min(to, q.offsets[m + 1]); a++) {
        for (int b = q.offsets[m]; b < q.offsets[m + 1]; b++) {
          rows[k] = a;
          columns[k++] = b;
        }
      }
    }
    double[] out = new double[rows.length];
    engine.into(out).pairs(q.components, rows, q.components, columns);
    return out;
  }

  /** Returns how many of a mixture's components are in [from, to). */
  private int inside(int m, int from, int to) {
    return Math.min(to, q.offsets[m + 1]) - Math.max(from, q.offsets[m]);
  }

  private void check(Engine engine, MixtureBatch from) {
    engine.checkOpen();
    Arguments.check(engine.formula(), q.components, from.components, false);
  }

  /** The logarithms, but for weights, of what a component a of q has of a component b, of its own mixture or of p, the block's k-th of these. */
  private interface Exponents {
    double of(int k, int a, int b);
  }

  /** Sets terms to {@code π_a ln( Σ_a' π_a' exp(own) / Σ_b ω_b exp(other) )} of q's components [from, to). */
  private void setQuotients(int from, int to, Exponents own, Exponents other, double[] out) {
    Checkpoint checkpoint = new Checkpoint();
    int most = Math.max(widest(q.offsets, q.size()), widest(p.offsets, p.size()));
    double[] terms = new double[most];
    int k = 0;
    int m = mixture(from);
    for (int a = from; a < to; a++) {
      m += a == q.offsets[m + 1] ? 1 : 0;
      int begin = q.offsets[m];
      int end = q.offsets[m + 1];
      checkpoint.pass(Checkpoint.ofPlain(16L * (end - begin + omega.length)));
      if (pi[a] > 0) {
        double numerator = sum(logPi, begin, end, own, k, a, terms);
        for (int n = 0; n < p.size(); n++) {
          int first = p.offsets[n];
          int at = (a - from) * omega.length + first;
          double denominator = sum(logOmega, first, p.offsets[n + 1], other, at, a, terms);
          out[(a - from) * p.size() + n] = pi[a] * (numerator - denominator);
        }
      }
      k += end - begin;
    }
  }

  /** Returns {@code ln Σ_b w_b exp(x_b)} for b in [from, to), of which the first is the block's k-th. */
  private static double sum(
      double[] logWeights, int from, int to, Exponents x, int k, int a, double[] terms) {
    double most = Double.NEGATIVE_INFINITY;
    for (int b = from; b < to; b++) {
      double term =
          logWeights[b] == Double.NEGATIVE_INFINITY
              ? Double.NEGATIVE_INFINITY
              : logWeights[b] + x.of(k + b - from, a, b);
      terms[b - from] = term;
      most = Math.max(most, term);
    }
    return LogSumExp.of(terms, 0, to - from, most);
  }

  private static double[] logs(double[] weights) {
    return Arrays.stream(weights).map(Math::log).toArray();
  }
}
