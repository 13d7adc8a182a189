package dev.kullback;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import java.util.function.IntToDoubleFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * Runs every operation of an engine until the VM has compiled it, and compares what comes out, each time, with the plain text of the
 * mathematics, {@link PairKl} and {@link FullPair}, in double. What a compiler makes of vector code depends on the processor and
 * on the VM's build, so it is known only where it was tried.
 */
final class Verify {
  /** Rows, columns, dimension: tails of the tiles of every width, several chunks; the last has several blocks of columns. */
  static final int[][] SHAPES = {
    {1, 1, 2},
    {7, 7, 33},
    {17, 6, 64},
    {1, 67, 7},
    {18, 18, 129},
    {5, 19, 3},
    {12, 12, 5},
    {9, 33, 300},
    {3, 4200, 5},
  };

  /** Terms of a small one. */
  private static final int SMALL = 6_600;

  /** Of full covariances: blocks of eight and a rest; the second, with several of their larger blocks, is the dimension of one shape. */
  private static final int FULL_DIMENSION = 12;

  private static final int LARGE_FULL_DIMENSION = 67;

  /** The second finds compiled what the first was interpreted in. */
  private static final int ROUNDS = 2;

  /** Of so many calls one has batches made anew, which are packed elsewhere than those that are kept. */
  private static final int CALLS_A_FRESH_ONE = 8;

  private static final List<Scale> SCALES = List.of(Scale.values());

  private static final int NEIGHBORS = 3;
  private static final int ROWS_A_DUPLICATE = 7;
  private static final double SPREAD = 0.3;

  /** Of the means; float's usual chunks settle some of these entries, shorter ones most. */
  private static final double ALIKE = 0.4;

  private static final double NEAR = 1e-4;

  private static final double FLOAT_CONTRACT = 1e-5;
  private static final double DOUBLE_CONTRACT = 1e-12;

  /** That of double times a condition number, which is 10 and more of those made up here. */
  private static final double FULL_CONTRACT = 1e-11;

  /** What sums and logarithms of rows may lose besides. */
  private static final double ROUNDING = 1e-12;

  /** What one operation gave. */
  private static final class Result {
    double[] values = {};
    float[] floats = {};
    int[] indices = {};

    /** Anything not written shows. */
    void clear(Expected expected) {
      if (values.length != expected.values.length) {
        values = new double[expected.values.length];
        floats = new float[values.length];
      }
      if (indices.length != expected.indices.length) {
        indices = new int[expected.indices.length];
      }
      Arrays.fill(values, Double.NaN);
      Arrays.fill(floats, Float.NaN);
      Arrays.fill(indices, -1);
    }

    void widen() {
      for (int k = 0; k < values.length; k++) {
        values[k] = floats[k];
      }
    }

    boolean isSame(Result other) {
      return Arrays.equals(values, other.values) && Arrays.equals(indices, other.indices);
    }

    void set(Neighbors found) {
      values = found.values();
      IntStream starts = IntStream.rangeClosed(0, found.size()).map(found::start);
      indices = IntStream.concat(starts, Arrays.stream(found.indices())).toArray();
    }

    void set(Result other) {
      values = other.values.clone();
      indices = other.indices.clone();
    }
  }

  /** What it should give, within absolute errors. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Expected(double[] values, double[] allowed, int[] indices) {
    private static final int[] NONE = {};

    /** Of numbers that must keep the contract. */
    static Expected of(double[] values, double contract) {
      return new Expected(values, scaled(values, contract), NONE);
    }

    static double[] scaled(double[] values, double factor) {
      return Arrays.stream(values).map(x -> Math.abs(x) * factor).toArray();
    }
  }

  private interface Call {
    void run(KlEngine engine, Gaussians q, Gaussians p, Case c, Result r);
  }

  /** One method of the engine; some take batches of one size only. */
  private record Operation(
      String name, boolean isSquare, Call call, Function<Case, Expected> expected) {}

  private static final List<Operation> OPERATIONS =
      List.of(
          new Operation(
              "pairwise",
              false,
              (engine, q, p, _, r) -> {
                engine.pairwise(q, p, r.floats);
                r.widen();
              },
              c -> Expected.of(c.kl, FLOAT_CONTRACT)),
          new Operation(
              "pairwise to double",
              false,
              (engine, q, p, _, r) -> engine.pairwise(q, p, r.values),
              c -> Expected.of(c.kl, c.contract)),
          new Operation(
              "aligned",
              true,
              (engine, q, p, _, r) -> engine.aligned(q, p, r.values),
              c -> Expected.of(c.rows(i -> c.kl[i * c.m + i]), c.contract)),
          new Operation(
              "toStandardNormal",
              false,
              (engine, q, _, _, r) -> engine.toStandardNormal(q, r.values),
              c -> Expected.of(c.toStandardNormal(), c.contract)),
          new Operation(
              "nearest",
              false,
              (engine, q, p, c, r) -> engine.nearest(q, p, c.k(0), r.indices, r.values),
              c -> c.nearest(false)),
          new Operation(
              "nearestOthers",
              true,
              (engine, q, p, c, r) -> engine.nearestOthers(q, p, c.k(1), r.indices, r.values),
              c -> c.nearest(true)),
          new Operation(
              "within",
              false,
              (engine, q, p, c, r) -> r.set(engine.within(q, p, c.radius)),
              c -> c.within(false)),
          new Operation(
              "nearestReverse",
              false,
              (engine, q, p, c, r) -> {
                Neighbors found = engine.nearestReverse(p, q, Math.min(NEIGHBORS, c.n));
                r.values = found.values();
                r.indices = found.indices();
              },
              Case::nearestReverse),
          new Operation(
              "withinReverse",
              false,
              (engine, q, p, c, r) -> r.set(engine.withinReverse(p, q, c.radius)),
              c -> c.within(true)),
          new Operation(
              "logSumExp",
              false,
              (engine, q, p, _, r) -> engine.logSumExp(q, p, r.values),
              c -> c.logSumExp(new double[c.m])),
          new Operation(
              "weightedLogSumExp",
              false,
              (engine, q, p, c, r) -> engine.weightedLogSumExp(q, p, c.logWeights, r.values),
              c -> c.logSumExp(c.logWeights)),
          new Operation(
              "rowMin",
              false,
              (engine, q, p, _, r) -> engine.rowMin(q, p, r.values),
              c ->
                  Expected.of(
                      c.rows(i -> Arrays.stream(c.row(i)).min().orElseThrow()), c.contract)),
          new Operation(
              "rowSum",
              false,
              (engine, q, p, _, r) -> engine.rowSum(q, p, r.values),
              c -> Expected.of(c.rows(i -> Arrays.stream(c.row(i)).sum()), c.contract + ROUNDING)),
          new Operation(
              "rowMean",
              false,
              (engine, q, p, _, r) -> engine.rowMean(q, p, r.values),
              c ->
                  Expected.of(
                      c.rows(i -> Arrays.stream(c.row(i)).sum() / c.m), c.contract + ROUNDING)),
          new Operation(
              "forEachTile",
              false,
              (engine, q, p, c, r) ->
                  engine.forEachTile(
                      q,
                      p,
                      tile -> {
                        for (int i = 0; i < tile.rows(); i++) {
                          System.arraycopy(
                              tile.values(),
                              i * tile.columns(),
                              r.values,
                              (tile.row0() + i) * c.m + tile.column0(),
                              tile.columns());
                        }
                      }),
              c -> Expected.of(c.kl, c.contract)));

  /** Every kind of batches has code of its own somewhere; the diagonal ones state their scales in turn in each way. */
  private enum Kind {
    FLOAT("float", false),
    ALIKE_FLOAT("float alike", false),
    NEAR_FLOAT("float near-duplicates", false),
    DOUBLE("double", true),
    NEAR_DOUBLE("double near-duplicates", true),
    MIXED("float and double", true),
    FULL("full float", false),
    COVARIANCE("full double covariances", true),
    NEAR_FULL("full double near-duplicates", true),
    DIAGONAL_FULL("float diagonal and full", false),
    FULL_DIAGONAL("float full and diagonal", false);

    final String title;
    final boolean isDouble;

    Kind(String title, boolean isDouble) {
      this.title = title;
      this.isDouble = isDouble;
    }

    boolean isNear() {
      return this == NEAR_FLOAT || this == NEAR_DOUBLE || this == NEAR_FULL;
    }

    boolean isFull(boolean asQ) {
      return switch (this) {
        case FULL, COVARIANCE, NEAR_FULL -> true;
        case DIAGONAL_FULL -> !asQ;
        case FULL_DIAGONAL -> asQ;
        default -> false;
      };
    }
  }

  /** Batches of one kind and shape, and what the plain text makes of them. */
  private static final class Case {
    final Kind kind;
    final Scale scaleQ;
    final Scale scaleP;
    final int n;
    final int m;
    final int d;
    final boolean isSelf;
    final Supplier<Gaussians> makeQ;
    final Supplier<Gaussians> makeP;
    final Gaussians q;
    final Gaussians p;
    final double contract;
    final double[] kl;
    final double[] logWeights;
    final double radius;

    private final FullPair pair = new FullPair();

    /** Batches that the engine's preparation has no part in. */
    private final Gaussians plainQ;

    Case(Kind kind, int[] shape, int turn, int round) {
      this.kind = kind;
      scaleQ = SCALES.get(turn % SCALES.size());
      scaleP = kind == Kind.MIXED ? SCALES.get((turn + 1 + round) % SCALES.size()) : scaleQ;
      n = shape[0];
      m = shape[1];
      boolean full = kind.isFull(true) || kind.isFull(false);
      d =
          full
              ? (shape[2] == 64 ? LARGE_FULL_DIMENSION : Math.min(shape[2], FULL_DIMENSION))
              : shape[2];
      isSelf =
          n == m && round % 2 == 1 && kind != Kind.MIXED && kind.isFull(true) == kind.isFull(false);
      SplittableRandom random = new SplittableRandom(100L * round + d);
      Parameters normal = Parameters.normal(d);
      Parameters center = kind.isNear() ? normal.around(1, 1, random) : normal;
      double spread = kind.isNear() ? NEAR : kind == Kind.ALIKE_FLOAT ? ALIKE : 1;
      Parameters a = center.around(n, spread, random);
      Parameters b = isSelf ? a : center.around(m, spread, random);
      makeQ = a.maker(kind, kind.isDouble && kind != Kind.MIXED, kind.isFull(true), scaleQ);
      makeP = isSelf ? makeQ : b.maker(kind, kind.isDouble, kind.isFull(false), scaleP);
      q = makeQ.get();
      p = isSelf ? q : makeP.get();
      contract = !kind.isDouble ? FLOAT_CONTRACT : full ? FULL_CONTRACT : DOUBLE_CONTRACT;
      plainQ = plain(q, a);
      Gaussians plainP = isSelf ? plainQ : plain(p, b);
      kl = new double[n * m];
      for (int at = 0; at < kl.length; at++) {
        kl[at] = exact(plainQ, at / m, plainP, at % m);
      }
      logWeights = random.doubles(m, -3, 0).toArray();
      if (m > 1) {
        logWeights[m / 2] = Double.NEGATIVE_INFINITY;
      }
      double[] sorted = kl.clone();
      Arrays.sort(sorted);
      double low = sorted[sorted.length / 3];
      double high = Arrays.stream(sorted).filter(x -> x > 1.001 * low).findFirst().orElse(2 * low);
      radius = 0.5 * (low + high);
    }

    /** A covariance's factor is the one it was made of. */
    private Gaussians plain(Gaussians batch, Parameters parameters) {
      return kind == Kind.COVARIANCE
          ? FullGaussians.ofScaleTril(parameters.mean, parameters.scaleTril(), d)
          : batch;
    }

    /** By forms that use neither log-determinants nor anything else prepared. */
    private double exact(Gaussians q, int i, Gaussians p, int j) {
      return q instanceof DiagonalGaussians a && p instanceof DiagonalGaussians b
          ? PairKl.stable(a, i, b, j)
          : pair.kl(q, i, p, j);
    }

    /** Whether a call takes no more than some microseconds. */
    boolean isSmall() {
      return n * m * d <= SMALL;
    }

    int k(int excluded) {
      return Math.min(NEIGHBORS, m - excluded);
    }

    double[] row(int i) {
      return Arrays.copyOfRange(kl, i * m, (i + 1) * m);
    }

    double[] rows(IntToDoubleFunction f) {
      return IntStream.range(0, n).mapToDouble(f).toArray();
    }

    double[] toStandardNormal() {
      Parameters one = Parameters.normal(d);
      Gaussians normal = DiagonalGaussians.ofStd(one.mean, one.std, d);
      return rows(i -> exact(plainQ, i, normal, 0));
    }

    Expected nearest(boolean others) {
      return nearest(kl, n, m, k(others ? 1 : 0), others);
    }

    /** Of p's rows by q's, whose divergences are the same matrix transposed. */
    Expected nearestReverse() {
      return nearest(transposed(), m, n, Math.min(NEIGHBORS, n), false);
    }

    private Expected nearest(double[] kl, int n, int m, int k, boolean others) {
      int[] indices = new int[n * k];
      double[] values = new double[n * k];
      for (int i = 0; i < n; i++) {
        int row = i;
        int[] nearest =
            IntStream.range(0, m)
                .filter(j -> !others || j != row)
                .boxed()
                .sorted((x, y) -> Double.compare(kl[row * m + x], kl[row * m + y])) // stable
                .limit(k)
                .mapToInt(j -> j)
                .toArray();
        for (int r = 0; r < k; r++) {
          indices[i * k + r] = nearest[r];
          values[i * k + r] = kl[i * m + nearest[r]];
        }
      }
      return new Expected(values, Expected.scaled(values, contract), indices);
    }

    Expected within(boolean reverse) {
      return reverse ? within(transposed(), m, n) : within(kl, n, m);
    }

    private Expected within(double[] kl, int n, int m) {
      int[] at = IntStream.range(0, n * m).filter(s -> kl[s] <= radius).toArray();
      double[] values = Arrays.stream(at).mapToDouble(s -> kl[s]).toArray();
      IntStream starts =
          IntStream.rangeClosed(0, n)
              .map(i -> (int) Arrays.stream(at).filter(s -> s < i * m).count());
      int[] indices = IntStream.concat(starts, Arrays.stream(at).map(s -> s % m)).toArray();
      return new Expected(values, Expected.scaled(values, contract), indices);
    }

    private double[] transposed() {
      return IntStream.range(0, n * m).mapToDouble(s -> kl[s % n * m + s / n]).toArray();
    }

    /** Allowed is the contract's error of each term's KL, by the term's share. */
    Expected logSumExp(double[] w) {
      double[] values = new double[n];
      double[] allowed = new double[n];
      for (int i = 0; i < n; i++) {
        double most = Double.NEGATIVE_INFINITY;
        for (int j = 0; j < m; j++) {
          most = Math.max(most, w[j] - kl[i * m + j]);
        }
        double sum = 0;
        double weighted = 0;
        for (int j = 0; j < m; j++) {
          double term = Math.exp(w[j] - kl[i * m + j] - most);
          sum += term;
          weighted += term * kl[i * m + j];
        }
        values[i] = most + Math.log(sum);
        allowed[i] = 2 * contract * weighted / sum + ROUNDING * Math.max(1, Math.abs(most));
      }
      return new Expected(values, allowed, Expected.NONE);
    }

    @Override
    public String toString() {
      return "%s (%s), %d x %d, D = %d%s"
          .formatted(kind.title, scaleQ.argument, n, m, d, isSelf ? ", q = p" : "");
    }
  }

  /** Means, standard deviations, and for full covariances what lies below a factor's diagonal. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Parameters(int dimension, double[] mean, double[] std, double[] below) {
    /** N(0, I). */
    static Parameters normal(int d) {
      double[] ones = new double[d];
      Arrays.fill(ones, 1);
      return new Parameters(d, new double[d], ones, new double[d * d]);
    }

    /** So many about this one, some of them alike. */
    Parameters around(int rows, double spread, SplittableRandom random) {
      int d = dimension;
      double[] mean = new double[rows * d];
      double[] std = new double[mean.length];
      double[] below = new double[mean.length * d];
      for (int k = 0; k < mean.length; k++) {
        mean[k] = this.mean[k % d] + spread * random.nextGaussian();
        std[k] = this.std[k % d] * Math.exp(SPREAD * spread * random.nextGaussian());
      }
      for (int k = 0; k < below.length; k++) {
        below[k] = this.below[k % (d * d)] + SPREAD * spread / Math.sqrt(d) * random.nextGaussian();
      }
      for (int i = ROWS_A_DUPLICATE - 1; i < rows; i += ROWS_A_DUPLICATE) {
        System.arraycopy(mean, 0, mean, i * d, d);
        System.arraycopy(std, 0, std, i * d, d);
        System.arraycopy(below, 0, below, i * d * d, d * d);
      }
      return new Parameters(d, mean, std, below);
    }

    Supplier<Gaussians> maker(Kind kind, boolean isDouble, boolean full, Scale scale) {
      int d = dimension;
      if (full) {
        double[] scaleTril = scaleTril();
        if (kind == Kind.COVARIANCE) {
          double[] covariance = covariance(scaleTril);
          return () -> FullGaussians.ofCovariance(mean, covariance, d);
        }
        return isDouble
            ? () -> FullGaussians.ofScaleTril(mean, scaleTril, d)
            : () -> FullGaussians.ofScaleTril(narrow(mean), narrow(scaleTril), d);
      }
      double[] s = Arrays.stream(std).map(x -> scale(scale, x)).toArray();
      return isDouble
          ? () -> DiagonalGaussians.of(mean, s, d, scale, ScalePolicy.STRICT)
          : () -> DiagonalGaussians.of(narrow(mean), narrow(s), d, scale, ScalePolicy.STRICT);
    }

    private static double scale(Scale scale, double std) {
      return switch (scale) {
        case STD -> std;
        case VARIANCE -> std * std;
        case LOG_VARIANCE -> 2 * Math.log(std);
        case PRECISION -> 1 / (std * std);
      };
    }

    double[] scaleTril() {
      int d = dimension;
      double[] l = new double[below.length];
      for (int k = 0; k < l.length; k++) {
        int r = k / d % d;
        int c = k % d;
        l[k] = c < r ? below[k] : c == r ? std[k / d] : 0;
      }
      return l;
    }

    private double[] covariance(double[] l) {
      int d = dimension;
      double[] product = new double[l.length];
      for (int k = 0; k < l.length; k++) {
        int r = k / d * d;
        int c = (k / (d * d) * d + k % d) * d;
        for (int h = 0; h < d; h++) {
          product[k] += l[r + h] * l[c + h];
        }
      }
      return product;
    }

    private static float[] narrow(double[] values) {
      float[] result = new float[values.length];
      for (int k = 0; k < result.length; k++) {
        result[k] = (float) values[k];
      }
      return result;
    }
  }

  private final KlEngine engine;
  private final int[][] shapes;
  private final long least;

  // by operation
  private final long[] calls = new long[OPERATIONS.size()];
  private final long[] entries = new long[OPERATIONS.size()];
  private final double[] worst = new double[OPERATIONS.size()];
  private final String[] wrong = new String[OPERATIONS.size()];

  private final Result result = new Result();
  private final Result first = new Result();

  private Verify(KlEngine engine, int[][] shapes, long least) {
    this.engine = engine;
    this.shapes = shapes;
    this.least = least;
    Arrays.fill(wrong, "");
  }

  /** Tries everything for about so long, and twice at least. */
  static Verification run(KlEngine engine, long nanos) {
    return run(engine, SHAPES, nanos, 2);
  }

  /**
   * Tries everything on these shapes.
   *
   * @param least calls of an operation with the batches of a small shape; two of a larger one
   */
  static Verification run(KlEngine engine, int[][] shapes, long nanos, long least) {
    return new Verify(engine, shapes, least).run(nanos);
  }

  private Verification run(long nanos) {
    long start = System.nanoTime();
    int slices = ROUNDS * Kind.values().length * shapes.length * OPERATIONS.size();
    int slice = 0;
    for (int round = 0; round < ROUNDS; round++) {
      for (Kind kind : Kind.values()) {
        for (int turn = 0; turn < shapes.length; turn++) {
          Case c = new Case(kind, shapes[turn], turn + round, round);
          for (int o = 0; o < OPERATIONS.size(); o++) {
            long end = start + (long) ((double) nanos * ++slice / slices);
            Operation operation = OPERATIONS.get(o);
            if (!operation.isSquare || (c.n == c.m && c.n > 1)) {
              tryOut(o, operation, c, end);
            }
          }
        }
      }
    }
    return new Verification(
        IntStream.range(0, OPERATIONS.size())
            .mapToObj(o ->
                new Verification.Operation(
                    OPERATIONS.get(o).name, calls[o], entries[o], worst[o], wrong[o]))
            .toList());
  }

  private void tryOut(int o, Operation operation, Case c, long end) {
    Expected expected = operation.expected.apply(c);
    long calls = c.isSmall() ? least : Math.min(2, least);
    long n = 0;
    do {
      Tile.checkInterrupt(Thread.currentThread());
      boolean fresh = n % CALLS_A_FRESH_ONE == CALLS_A_FRESH_ONE - 1;
      Gaussians q = fresh ? c.makeQ.get() : c.q;
      Gaussians p = c.isSelf ? q : fresh ? c.makeP.get() : c.p;
      result.clear(expected);
      operation.call.run(engine, q, p, c, result);
      if (n == 0) {
        compare(o, expected, c, n);
        first.set(result);
      } else if (!result.isSame(first)) {
        compare(o, expected, c, n);
        note(o, "call %d differs from the first".formatted(n), c);
      }
      n++;
      entries[o] += Math.max(expected.values.length, expected.indices.length);
    } while (n < calls || (System.nanoTime() < end && wrong[o].isEmpty()));
    this.calls[o] += n;
  }

  private void compare(int o, Expected expected, Case c, long call) {
    if (result.values.length != expected.values.length
        || !Arrays.equals(result.indices, expected.indices)) {
      worst[o] = Double.POSITIVE_INFINITY;
      int at = Arrays.mismatch(result.indices, expected.indices);
      note(o, "call %d: index %d differs".formatted(call, at), c);
      return;
    }
    for (int k = 0; k < expected.values.length; k++) {
      double error = Math.abs(result.values[k] - expected.values[k]);
      double ratio =
          result.values[k] == expected.values[k]
              ? 0
              : Double.isNaN(error) ? Double.POSITIVE_INFINITY : error / expected.allowed[k];
      worst[o] = Math.max(worst[o], ratio);
      if (ratio > 1) {
        note(
            o,
            "call %d: entry %d is %s instead of %s"
                .formatted(call, k, result.values[k], expected.values[k]),
            c);
      }
    }
  }

  /** Only the first is kept. */
  private void note(int o, String what, Case c) {
    if (wrong[o].isEmpty()) {
      wrong[o] = c + ": " + what;
    }
  }
}
