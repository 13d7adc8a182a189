package dev.kullback.internal.verify;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.mixture.MixtureBatch;
import dev.kullback.internal.mixture.MixtureDivergences;
import dev.kullback.internal.mixture.PairSampler;
import dev.kullback.internal.mixture.ReductionOptions;
import dev.kullback.internal.mixture.ReductionWorker;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Crew;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.IntToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Mixtures of the first Gaussians of a case, and what is expected of their divergences, entropies, samples and reductions: sums of logarithms
 * and exponentials as the definitions have them, of means and covariances in double, and of KL of pairs.
 */
final class MixtureCase {
  private static final int MOST_COMPONENTS = 20;

  /**
   * The same of low-rank ones, which are written out, in more dimensions than {@link #FEW_DIMENSIONS}: mixtures of 5, 2 and 1. With 18, six cases of 129
   * dimensions took 10 of the 47 s of Java code of HotTest's process, with these 4 (Xeon with AMX, JDK 25.0.3); 17 full ones of 67 take 0.2 s a case.
   */
  private static final int MOST_WRITTEN_OUT = 8;

  private static final int FEW_DIMENSIONS = 67;

  /** Numbers of components of mixtures, in turn. */
  private static final int[] SIZES = {5, 2, 1, 3, 7};

  /** Components of a reduced mixture, at most. */
  static final int REDUCED = 2;

  static final int SAMPLES = 6;
  static final long SEED = 5;
  static final double ALPHA = 0.3;

  /** Error of logarithms of densities and determinants, relative to the magnitudes of their terms. */
  private static final double ROUNDING = 1e-11;

  /** What the upper bound's iteration may be above the least, as its documentation says. */
  private static final double ITERATION = 1e-9;

  private static final int MOST_ROUNDS = 1000;

  /** Costs below it are those of equal Gaussians, which are exactly 0. */
  private static final double NO_COST = 1e-25;

  /** Relative difference of costs that count as equal. */
  private static final double TIE = 1e-11;

  /** Relative error of a cost, of near duplicates and their covariances. */
  private static final double COST_ERROR = 1e-8;

  private static final double LN_2PI = Math.log(2 * Math.PI);

  private final Case c;
  private final Pair pair;
  private final Side q;
  private final Side p;

  /** The divergences of q's components from each other. */
  private final double[] kl;

  /** The relative error that they may have. */
  private final double contractQ;

  MixtureCase(Case c, Pair pair, Batch plainQ, Batch plainP) {
    this.c = c;
    this.pair = pair;
    q = new Side(first(plainQ), 1);
    p = new Side(first(plainP), 2);
    contractQ = c.isDoubleQ() ? c.contract : Case.FLOAT_CONTRACT;
    int n = q.batch.size();
    kl = new double[n * n];
    Arrays.setAll(kl, k -> pair.stable(q.batch, k / n, q.batch, k % n));
  }

  /** One batch of mixtures, with the covariances of its components: variances alone, of diagonal ones. */
  private static final class Side {
    final Batch batch;
    final boolean isDiagonal;
    final int d;
    final double[][] mean;
    final double[][] covariance;
    final double[] weights;
    final int[] offsets;

    /** Factors of single components, where they were asked for. */
    private final double[] @Nullable [] factors;

    Side(Batch batch, long seed) {
      this.batch = batch;
      d = batch.dimension();
      int n = batch.size();
      isDiagonal = batch instanceof DiagonalBatch;
      mean = new double[n][d];
      covariance = new double[n][];
      factors = new double[n][];
      for (int i = 0; i < n; i++) {
        batch.readMean(i, mean[i]);
        covariance[i] = covariance(batch, i);
      }
      IntStream.Builder starts = IntStream.builder();
      for (int at = 0, m = 0; at < n; at += SIZES[m++ % SIZES.length]) {
        starts.add(at);
      }
      offsets = IntStream.concat(starts.build(), IntStream.of(n)).toArray();
      weights = new SplittableRandom(seed).doubles(n, 0.1, 1).toArray();
      for (int m = 0; m < size(); m++) {
        if (end(m) - offsets[m] > 2) {
          weights[offsets[m] + 1] = 0; // which does not count
        }
        double sum = Arrays.stream(weights, offsets[m], end(m)).sum();
        for (int a = offsets[m]; a < end(m); a++) {
          weights[a] /= sum;
        }
      }
    }

    private static double[] covariance(Batch batch, int i) {
      if (!(batch instanceof DiagonalBatch diagonal)) {
        return batch.covariance(i);
      }
      int d = batch.dimension();
      double[] variances = new double[d];
      Arrays.setAll(variances, h -> diagonal.kind().variance(diagonal.scale(i * d + h)));
      return variances;
    }

    int size() {
      return offsets.length - 1;
    }

    int end(int m) {
      return offsets[m + 1];
    }

    MixtureBatch of(Batch batch) {
      return new MixtureBatch(first(batch), weights, offsets);
    }

    /** Returns the factor of Σ_i. */
    private double[] factor(int i) {
      double[] known = factors[i];
      if (known == null) {
        known = factor(i, 1, this, i, 0);
        factors[i] = known;
      }
      return known;
    }

    /** Returns a factor of {@code w Σ_i + v Σ'_j}; of diagonal ones its diagonal. */
    double[] factor(int i, double w, Side other, int j, double v) {
      if (isDiagonal && other.isDiagonal) {
        double[] std = new double[d];
        Arrays.setAll(std, h -> Math.sqrt(w * covariance[i][h] + v * other.covariance[j][h]));
        return std;
      }
      double[] sum = new double[d * d];
      add(sum, i, w);
      other.add(sum, j, v);
      return cholesky(sum, d);
    }

    private void add(double[] sum, int i, double w) {
      for (int k = 0; k < covariance[i].length; k++) {
        sum[isDiagonal ? k * (d + 1) : k] += w * covariance[i][k];
      }
    }

    /** Returns {@code ½ (μ_i − μ'_j)ᵀ Σ⁻¹ (μ_i − μ'_j)}. */
    double squares(int i, Side other, int j, double[] factor) {
      double[] x = new double[d];
      Arrays.setAll(x, h -> mean[i][h] - other.mean[j][h]);
      return 0.5 * squares(x, factor);
    }

    static double squares(double[] x, double[] factor) {
      int d = x.length;
      double sum = 0;
      double[] y = new double[d];
      for (int r = 0; r < d; r++) {
        double t = x[r];
        for (int k = 0; k < r && factor.length > d; k++) {
          t -= factor[r * d + k] * y[k];
        }
        y[r] = t / factor[factor.length > d ? r * (d + 1) : r];
        sum += y[r] * y[r];
      }
      return sum;
    }

    double logDet(double[] factor) {
      return IntStream.range(0, d)
          .mapToDouble(h -> Math.log(factor[factor.length > d ? h * (d + 1) : h]))
          .sum();
    }

    /** Returns {@code ½ ln det Σ_i}. */
    double logDet(int i) {
      return logDet(factor(i));
    }

    /** Returns {@code ln N_i(x)}, with a magnitude of its terms. */
    Term logDensity(int i, double[] x) {
      double[] shift = new double[d];
      Arrays.setAll(shift, h -> x[h] - mean[i][h]);
      double[] factor = factor(i);
      double squares = 0.5 * squares(shift, factor);
      double log = -squares - logDet(factor) - 0.5 * d * LN_2PI;
      return new Term(log, ROUNDING * (squares + d + Math.abs(logDet(factor))));
    }

    /** Returns the logarithm of mixture m's density at x. */
    Term logDensityOf(int m, double[] x) {
      return logSum(m, a -> logDensity(a, x));
    }

    /** Returns {@code ln Σ_a w_a exp(x_a)} over mixture m's components. */
    Term logSum(int m, TermOf x) {
      List<Term> terms = new ArrayList<>();
      for (int a = offsets[m]; a < end(m); a++) {
        if (weights[a] > 0) {
          terms.add(x.of(a).plus(Math.log(weights[a])));
        }
      }
      double most = terms.stream().mapToDouble(Term::value).max().orElseThrow();
      double sum = terms.stream().mapToDouble(t -> Math.exp(t.value - most)).sum();
      double error =
          terms.stream().mapToDouble(t -> Math.exp(t.value - most) / sum * t.allowed).sum();
      return new Term(most + Math.log(sum), error + ROUNDING * (1 + Math.abs(most)));
    }

    /** Returns {@code Σ_a w_a x_a} over mixture m's components. */
    Term mean(int m, TermOf x) {
      Term sum = new Term(0, 0);
      for (int a = offsets[m]; a < end(m); a++) {
        if (weights[a] > 0) {
          Term t = x.of(a);
          sum = new Term(sum.value + weights[a] * t.value, sum.allowed + weights[a] * t.allowed);
        }
      }
      return sum;
    }
  }

  /** A number, and the error that it may have. */
  private record Term(double value, double allowed) {
    Term plus(double x) {
      return new Term(value + x, allowed + ROUNDING * Math.abs(x));
    }

    Term minus(Term other) {
      return new Term(value - other.value, allowed + other.allowed);
    }

    Term negated() {
      return new Term(-value, allowed);
    }
  }

  private interface TermOf {
    Term of(int i);
  }

  /** Returns the first rows of a batch. */
  private static Batch first(Batch batch) {
    boolean isLong = batch instanceof LowRankBatch && batch.dimension() > FEW_DIMENSIONS;
    int most = isLong ? MOST_WRITTEN_OUT : MOST_COMPONENTS;
    return batch.size() <= most
        ? batch
        : MixtureBatch.part(batch, new int[] {0, most, batch.size()}, 0);
  }

  // --- calls

  MixtureDivergences divergences(Batch q, Batch p) {
    return new MixtureDivergences(this.q.of(q), this.p.of(p));
  }

  MixtureBatch rows(Batch q) {
    return this.q.of(q);
  }

  void monteCarlo(Batch q, Batch p, Result r) {
    double[] estimates = new double[this.q.size() * this.p.size()];
    double[] errors = new double[estimates.length];
    divergences(q, p).monteCarlo(null, SAMPLES, SEED, estimates, errors);
    r.set(estimates, errors);
  }

  void monteCarloOfPairs(Batch q, Batch p, Result r) {
    double[] estimates = new double[this.q.batch.size()];
    double[] errors = new double[estimates.length];
    PairSampler.sample(first(q), first(p), SAMPLES, SEED, estimates, errors);
    r.set(estimates, errors);
  }

  void reduce(Batch q, Result r) {
    ReductionWorker reduced = new ReductionWorker();
    reduced.reduce(
        new Crew<>("verify", 1, null, ReductionWorker::new, ReductionWorker::clear),
        LowRankBatch.writtenOut(first(q)),
        this.q.weights,
        this.q.offsets,
        new ReductionOptions(REDUCED),
        true);
    int n = reduced.size();
    r.set(
        reduced.costs(),
        reduced.weights(new double[n]),
        reduced.means(new double[n * q.dimension()]),
        reduced.scales(new double[n * reduced.scaleLength()]));
    r.indices = reduced.assignments();
  }

  // --- what is expected

  private Term kl(int i, Side to, int j) {
    double value = to == p ? c.kl[i * c.m + j] : kl[i * q.batch.size() + j];
    return new Term(value, 2 * (to == p ? c.contract : contractQ) * value + Double.MIN_NORMAL);
  }

  /** Returns {@code ln ∫ q_i x_j}. */
  private Term overlap(int i, Side x, int j) {
    double[] factor = q.factor(i, 1, x, j, 1);
    double squares = q.squares(i, x, j, factor);
    double logs = q.logDet(factor) + 0.5 * q.d * LN_2PI;
    return new Term(-squares - logs, ROUNDING * (squares + Math.abs(logs) + q.d));
  }

  private Term entropy(int i) {
    double rest = 0.5 * q.d * (1 + LN_2PI);
    double log = q.logDet(i);
    return new Term(rest + log, ROUNDING * (rest + Math.abs(log)));
  }

  private interface EntryOf {
    Term of(int m, int n);
  }

  private Expected matrix(EntryOf entry) {
    int columns = p.size();
    return expected(
        IntStream.range(0, q.size() * columns).mapToObj(k -> entry.of(k / columns, k % columns)));
  }

  private Expected rows(TermOf entry) {
    return expected(IntStream.range(0, q.size()).mapToObj(entry::of));
  }

  private static Expected expected(Stream<Term> terms) {
    List<Term> all = terms.toList();
    return new Expected(
        all.stream().mapToDouble(Term::value).toArray(),
        all.stream().mapToDouble(Term::allowed).toArray(),
        Expected.NONE);
  }

  private Term alike(int m, int a) {
    return q.logSum(m, b -> kl(a, q, b).negated());
  }

  Expected lowerBound() {
    return matrix((m, n) -> {
      Term bound =
          q.mean(m, a -> alike(m, a).minus(p.logSum(n, b -> overlap(a, p, b))).minus(entropy(a)));
      return new Term(Math.max(0, bound.value), bound.allowed);
    });
  }

  Expected variational() {
    return matrix(
        (m, n) -> q.mean(m, a -> alike(m, a).minus(p.logSum(n, b -> kl(a, p, b).negated()))));
  }

  Expected productOfGaussians() {
    return matrix((m, n) ->
        q.mean(
            m, a -> q.logSum(m, b -> overlap(a, q, b)).minus(p.logSum(n, b -> overlap(a, p, b)))));
  }

  Expected matchedPairs() {
    return matrix((m, n) -> q.mean(m, a -> least(a, n).plus(Math.log(q.weights[a]))));
  }

  private Term least(int a, int n) {
    Term least = new Term(Double.POSITIVE_INFINITY, 0);
    for (int b = p.offsets[n]; b < p.end(n); b++) {
      Term t = kl(a, p, b).plus(-Math.log(p.weights[b]));
      least = t.value < least.value ? t : least;
    }
    return least;
  }

  Expected upperBound() {
    return matrix(this::upperBound);
  }

  /**
   * Returns the least bound by alternating between φ and ψ, as Hershey and Olsen do, and as allowed error what is left of it: of {@code
   * F(ψ) = Σ_a π_a ln(π_a / S_a)}, {@code S_a = Σ_b ψ_ab exp(−KL_ab)}, which is convex, that is at most {@code Σ_b ω_b max_a (π_a exp(−KL_ab) /
   * S_a) − 1}.
   */
  private Term upperBound(int m, int n) {
    int[] rows = counted(q, m);
    int[] columns = counted(p, n);
    double[][] d = new double[rows.length][columns.length];
    double[][] e = new double[rows.length][columns.length];
    double[][] psi = new double[rows.length][columns.length];
    double[] shift = new double[rows.length];
    for (int a = 0; a < rows.length; a++) {
      for (int b = 0; b < columns.length; b++) {
        d[a][b] = kl(rows[a], p, columns[b]).value;
        psi[a][b] = q.weights[rows[a]] * p.weights[columns[b]];
      }
      shift[a] = Arrays.stream(d[a]).min().orElseThrow();
      for (int b = 0; b < columns.length; b++) {
        e[a][b] = Math.exp(shift[a] - d[a][b]);
      }
    }
    double gap = Double.POSITIVE_INFINITY;
    double bound = 0;
    double weighted = 0;
    for (int round = 0; round < MOST_ROUNDS && gap > ITERATION; round++) {
      double[] perColumn = new double[columns.length];
      double[] most = new double[columns.length];
      bound = 0;
      weighted = 0;
      for (int a = 0; a < rows.length; a++) {
        double w = q.weights[rows[a]];
        double sum = 0;
        for (int b = 0; b < columns.length; b++) {
          sum += psi[a][b] * e[a][b];
        }
        bound += w * (Math.log(w / sum) + shift[a]);
        for (int b = 0; b < columns.length; b++) {
          most[b] = Math.max(most[b], w * e[a][b] / sum);
          psi[a][b] *= w * e[a][b] / sum; // φ
          perColumn[b] += psi[a][b];
          weighted += psi[a][b] * d[a][b];
        }
      }
      gap = -1;
      for (int b = 0; b < columns.length; b++) {
        double w = p.weights[columns[b]];
        gap += w * most[b];
        for (int a = 0; a < rows.length; a++) {
          psi[a][b] *= perColumn[b] > 0 ? w / perColumn[b] : 0;
        }
      }
    }
    return new Term(bound, gap + 2 * ITERATION * Math.max(1, bound) + 2 * c.contract * weighted);
  }

  private static int[] counted(Side side, int m) {
    return IntStream.range(side.offsets[m], side.end(m)).filter(i -> side.weights[i] > 0).toArray();
  }

  Expected componentEntropies() {
    return expected(IntStream.range(0, q.batch.size()).mapToObj(this::entropy));
  }

  Expected entropyUpperBound() {
    return rows(m -> q.mean(m, a -> entropy(a).minus(alike(m, a))));
  }

  Expected entropyLowerBound() {
    return rows(m -> q.mean(m, a -> entropy(a).minus(q.logSum(m, b -> chernoff(a, b).negated()))));
  }

  private Term chernoff(int a, int b) {
    double[] factor = q.factor(a, 1 - ALPHA, q, b, ALPHA);
    double squares = ALPHA * (1 - ALPHA) * q.squares(a, q, b, factor);
    double logs = q.logDet(factor) - (1 - ALPHA) * q.logDet(a) - ALPHA * q.logDet(b);
    double value = squares + logs;
    return new Term(value, 2 * contractQ * value + ROUNDING * (squares + q.d));
  }

  /** Means of samples, and their standard errors, of mixtures. */
  Expected monteCarlo() {
    List<Term> means = new ArrayList<>();
    List<Term> errors = new ArrayList<>();
    SplittableRandom seeds = new SplittableRandom(SEED);
    for (int m = 0; m < q.size(); m++) {
      int row = m;
      SplittableRandom random = seeds.split();
      double[][] x = new double[SAMPLES][];
      Arrays.setAll(x, _ -> sample(chosen(row, random.nextDouble()), random));
      for (int n = 0; n < p.size(); n++) {
        int column = n;
        addEstimate(
            k -> q.logDensityOf(row, x[k]).minus(p.logDensityOf(column, x[k])), means, errors);
      }
    }
    return expected(Stream.concat(means.stream(), errors.stream()));
  }

  /** The same of pairs of Gaussians. */
  Expected monteCarloOfPairs() {
    List<Term> means = new ArrayList<>();
    List<Term> errors = new ArrayList<>();
    SplittableRandom seeds = new SplittableRandom(SEED);
    for (int i = 0; i < q.batch.size(); i++) {
      int row = i;
      SplittableRandom random = seeds.split();
      double[][] x = new double[SAMPLES][];
      Arrays.setAll(x, _ -> sample(row, random));
      addEstimate(k -> q.logDensity(row, x[k]).minus(p.logDensity(row, x[k])), means, errors);
    }
    return expected(Stream.concat(means.stream(), errors.stream()));
  }

  private static void addEstimate(TermOf sample, List<Term> means, List<Term> errors) {
    List<Term> samples = IntStream.range(0, SAMPLES).mapToObj(sample::of).toList();
    double mean = samples.stream().mapToDouble(Term::value).sum() / SAMPLES;
    double allowed = samples.stream().mapToDouble(Term::allowed).max().orElseThrow();
    double squares = samples.stream().mapToDouble(t -> (t.value - mean) * (t.value - mean)).sum();
    means.add(new Term(mean, allowed));
    errors.add(new Term(Math.sqrt(squares / (SAMPLES - 1) / SAMPLES), allowed));
  }

  private int chosen(int m, double u) {
    int a = q.offsets[m];
    for (double sum = q.weights[a]; u >= sum && a < q.end(m) - 1; sum += q.weights[a]) {
      a++;
    }
    return a;
  }

  private double[] sample(int a, SplittableRandom random) {
    double[] z = new double[q.d];
    Arrays.setAll(z, _ -> random.nextGaussian());
    double[] factor = q.factor(a);
    double[] x = q.mean[a].clone();
    for (int r = 0; r < q.d; r++) {
      for (int k = q.isDiagonal ? r : 0; k <= r; k++) {
        x[r] += factor[q.isDiagonal ? r : r * q.d + k] * z[k];
      }
    }
    return x;
  }

  /** Costs, and the components that are left, by going through all pairs again for each merger. */
  Expected reduction() {
    List<Term> costs = new ArrayList<>();
    List<Merged> left = new ArrayList<>();
    int[] assignments = new int[q.batch.size()];
    for (int m = 0; m < q.size(); m++) {
      List<Merged> parts =
          IntStream.range(q.offsets[m], q.end(m))
              .mapToObj(i -> new Merged(new int[] {i}))
              .collect(Collectors.toCollection(ArrayList::new));
      Map<List<Merged>, Double> known = new HashMap<>();
      while (parts.size() > REDUCED) {
        costs.add(mergeCheapest(parts, known));
      }
      for (Merged part : parts) {
        Arrays.stream(part.members).forEach(i -> assignments[i] = left.size());
        left.add(part);
      }
    }
    Expected numbers =
        expected(
            Stream.of(
                    costs.stream(),
                    left.stream().map(part -> moment(part.weight)),
                    left.stream().flatMap(part -> moments(part.mean)),
                    left.stream().flatMap(part -> moments(part.scale())))
                .flatMap(x -> x));
    return new Expected(numbers.values(), numbers.allowed(), assignments);
  }

  private Term mergeCheapest(List<Merged> parts, Map<List<Merged>, Double> known) {
    double least = Double.POSITIVE_INFINITY;
    Merged first = parts.get(0);
    Merged second = parts.get(1);
    for (Merged a : parts) {
      for (Merged b : parts.subList(parts.indexOf(a) + 1, parts.size())) {
        double cost = known.computeIfAbsent(List.of(a, b), _ -> cost(a, b));
        if (cost < least * (1 - TIE) && least > NO_COST) { // ties are the first's
          least = cost;
          first = a;
          second = b;
        }
      }
    }
    parts.set(parts.indexOf(first), new Merged(first, second));
    parts.remove(second);
    return new Term(least, COST_ERROR * least + NO_COST);
  }

  private static Stream<Term> moments(double[] x) {
    return Arrays.stream(x).mapToObj(MixtureCase::moment);
  }

  private static Term moment(double x) {
    return new Term(x, ROUNDING * (1 + Math.abs(x)));
  }

  /** Returns the cost as the divergences of both from what they become. */
  private double cost(Merged a, Merged b) {
    if (a.weight == 0 || b.weight == 0) {
      return 0;
    }
    Batch both = new Merged(a, b).batch();
    return a.weight * pair.stable(a.batch(), 0, both, 0)
        + b.weight * pair.stable(b.batch(), 0, both, 0);
  }

  /** A Gaussian with the weight and the moments of some components. */
  private final class Merged {
    final int[] members;
    final double weight;
    final double[] mean;
    final double[] covariance;
    private @Nullable Batch batch;

    Merged(Merged a, Merged b) {
      this(IntStream.concat(Arrays.stream(a.members), Arrays.stream(b.members)).sorted().toArray());
    }

    Merged(int[] members) {
      this.members = members;
      weight = Arrays.stream(members).mapToDouble(i -> q.weights[i]).sum();
      int first = members[0];
      if (weight == 0 || members.length == 1) {
        mean = q.mean[first];
        covariance = q.covariance[first];
        return;
      }
      mean = new double[q.d];
      Arrays.setAll(mean, h -> q.mean[first][h] + mean(i -> q.mean[i][h] - q.mean[first][h]));
      covariance = new double[q.covariance[first].length];
      Arrays.setAll(
          covariance,
          k -> {
            int r = q.isDiagonal ? k : k / q.d;
            int s = q.isDiagonal ? k : k % q.d;
            return q.covariance[first][k]
                + mean(i ->
                    q.covariance[i][k]
                        - q.covariance[first][k]
                        + (q.mean[i][r] - mean[r]) * (q.mean[i][s] - mean[s]));
          });
    }

    private double mean(IntToDoubleFunction x) {
      return Arrays.stream(members)
          .mapToDouble(i -> q.weights[i] / weight * x.applyAsDouble(i))
          .sum();
    }

    /** Variances, or the packed factor. */
    double[] scale() {
      if (q.isDiagonal) {
        return covariance;
      }
      double[] factor = cholesky(covariance.clone(), q.d);
      return IntStream.range(0, q.d)
          .boxed()
          .flatMapToDouble(r -> Arrays.stream(factor, r * q.d, r * q.d + r + 1))
          .toArray();
    }

    /** Made once, as the cost of each pair asks for it. */
    Batch batch() {
      Batch made = batch;
      if (made == null) {
        Elements means = Elements.of(mean, "mean");
        Elements scales = Elements.of(covariance, "covariance");
        made =
            q.isDiagonal
                ? DiagonalBatch.of(
                    means, scales, q.d, Scale.VARIANCE, ScalePolicy.STRICT, Platform.rangeCheck())
                : Factors.of(
                    means,
                    scales,
                    q.d,
                    MatrixForm.COVARIANCE,
                    ScalePolicy.STRICT,
                    Platform::factorization);
        batch = made;
      }
      return made;
    }
  }

  /** Replaces the lower triangle of a matrix, row-major, by that of its factor, and returns it. */
  private static double[] cholesky(double[] a, int d) {
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double sum = a[r * d + c];
        for (int k = 0; k < c; k++) {
          sum -= a[r * d + k] * a[c * d + k];
        }
        a[r * d + c] = c == r ? Math.sqrt(sum) : sum / a[c * (d + 1)];
      }
    }
    return a;
  }
}
