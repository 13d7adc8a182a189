package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.rate;
import static dev.kullback.bench.Report.row;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;

/**
 * Measures how long a query takes, call by call, on one thread: the nearest of many references, all prepared. After each call a fixed piece
 * of arithmetic, which needs no memory and takes about as long, is timed alike: what its times scatter is the machine's doing.
 */
final class Latency {
  private static final String USAGE =
      """
      Times calls of nearest one by one and prints quantiles, rates and bandwidths as markdown tables.
        --references M   Gaussians to search (default 10000)
        --dimension D    (default 128)
        --queries N      Gaussians a call (default 1)
        --k K            neighbors of each (default 10)
        --seconds S      measuring time of the quantiles (default 20)
      Exit status: 0, or 1 when a figure missed its limit, or 2 for wrong usage.
      """;

  private static final double WARMUP_SECONDS = 3;

  /** Enough for a median. */
  private static final int CALIBRATION_CALLS = 101;

  /** Fewer would have no 99.9th percentile. */
  private static final int MIN_CALLS = 1000;

  private static final int MAX_CALLS = 1 << 22;

  /** Time for the rates: a hundred rounds. */
  private static final double RATE_SECONDS = 2;

  /** The matrix whose rate is the kernel's own: inputs in L2, each read many times. */
  private static final int MATRIX = 1024;

  /** Least rate that is wanted, over that of the matrix of the same shape. */
  private static final double WANTED_RATE = 0.7;

  private static final double[] QUANTILES = {0, 0.5, 0.9, 0.99, 0.999, 1};

  /** Result of {@link #work}, kept so that it is computed. */
  private static long state = 1;

  private Latency() {}

  public static void main(String[] args) {
    Map<String, Integer> defaults =
        Map.of(
            "--references", 10_000, "--dimension", 128, "--queries", 1, "--k", 10, "--seconds", 20);
    Command.run(
        "latency",
        USAGE,
        defaults,
        args,
        options ->
            run(
                new Shape(options.get("--references"), options.get("--dimension")),
                options.get("--queries"),
                options.get("--k"),
                options.get("--seconds")));
  }

  private static boolean run(Shape references, int queries, int k, int seconds) {
    System.out.println(Report.conditions(1));
    try (Contender query = ReductionContenders.query(references, queries, k, 1)) {
      boolean allocates = latencies(references, queries, k, seconds, query);
      System.out.println();
      boolean slow = rates(references, queries, query);
      return allocates || slow;
    }
  }

  /** Whether calls allocate. */
  private static boolean latencies(
      Shape references, int queries, int k, int seconds, Contender query) {
    System.err.println("latencies …");
    for (int r = 0; r < ReductionContenders.RING; r++) {
      query.call();
      query.check();
    }
    double[] calls = new double[CALIBRATION_CALLS];
    double[] pieces = new double[CALIBRATION_CALLS];
    long end = System.nanoTime() + (long) (WARMUP_SECONDS * 1e9);
    int steps = 1000;
    do {
      sample(query, steps, calls, pieces);
      steps = (int) Math.ceil(steps * quantile(calls, 0.5) / quantile(pieces, 0.5));
    } while (System.nanoTime() < end);

    double round = quantile(calls, 0.5) + quantile(pieces, 0.5);
    int count = (int) Math.clamp(seconds * 1e9 / round, MIN_CALLS, MAX_CALLS);
    calls = new double[count];
    pieces = new double[count];
    Allocation.byCaller(); // its own first use allocates
    long before = Allocation.byCaller();
    sample(query, steps, calls, pieces);
    long bytes = Allocation.byCaller() - before;
    query.check();

    header("µs", "calls", "min", "p50", "p90", "p99", "p99.9", "max");
    quantiles(
        "`nearest`, %d x %d, D = %d, k = %d"
            .formatted(queries, references.size(), references.dimension(), k),
        calls);
    quantiles("arithmetic alone: the machine's jitter", pieces);
    System.out.println();
    String allocated = "Bytes allocated by %d calls".formatted(count);
    System.out.println(allocated + ": " + bytes);
    return Bound.AT_MOST.missed(allocated, (double) bytes, 0);
  }

  /** Alternates calls with pieces of arithmetic and times each, in nanoseconds. */
  private static void sample(Contender query, int steps, double[] calls, double[] pieces) {
    for (int i = 0; i < calls.length; i++) {
      long start = System.nanoTime();
      query.call();
      long called = System.nanoTime();
      state = work(state, steps);
      long worked = System.nanoTime();
      calls[i] = called - start;
      pieces[i] = worked - called;
    }
  }

  /** Marsaglia's xorshift: each step waits for the one before, and no compiler folds two. */
  private static long work(long x, int steps) {
    for (int s = 0; s < steps; s++) {
      x ^= x << 13;
      x ^= x >>> 7;
      x ^= x << 17;
    }
    return x;
  }

  private static void quantiles(String name, double[] nanos) {
    Stream<String> values =
        DoubleStream.of(QUANTILES).mapToObj(q -> number(quantile(nanos, q) / 1e3));
    row(Stream.concat(Stream.of(name, "" + nanos.length), values).toArray(String[]::new));
  }

  /** Whether the rate is missed. */
  private static boolean rates(Shape references, int queries, Contender query) {
    System.err.println("rates …");
    Shape square = new Shape(MATRIX, references.dimension());
    // μ and 1/v of each reference: what any kernel must read
    int floats = Math.multiplyExact(2 * references.size(), references.dimension());
    double bytes = 4.0 * floats;
    try (Contender queryMatrix = ReductionContenders.queryMatrix(references, queries);
        Contender matrix = Contenders.checked("kl-rect-prepared", square);
        Contender read = new MemoryRead(floats)) {
      List<Contender> contenders = List.of(query, queryMatrix, matrix, read);
      double[][] times = Ratios.interleaved(contenders, WARMUP_SECONDS, RATE_SECONDS);
      contenders.forEach(Contender::check);
      double[] seconds = Arrays.stream(times).mapToDouble(t -> quantile(t, 0.5)).toArray();
      String same = "`pairwise`, %d x %d".formatted(queries, references.size());
      String kernel = "`pairwise`, %d x %d".formatted(MATRIX, MATRIX);
      double terms = query.terms(references);
      double kernelTerms = matrix.terms(square);
      header("median", "ms", "(i, j, h)", "bandwidth");
      row("`nearest`", ms(seconds[0]), rate(terms, seconds[0]), bandwidth(bytes, seconds[0]));
      row(same, ms(seconds[1]), rate(terms, seconds[1]), bandwidth(bytes, seconds[1]));
      row(kernel, ms(seconds[2]), rate(kernelTerms, seconds[2]), "");
      String reading = "reading %s MB".formatted(number(bytes / 1e6));
      row(reading, ms(seconds[3]), "", bandwidth(bytes, seconds[3]));
      System.out.println();

      double overSame = ratio(times[1], times[0]);
      double overKernel = ratio(times[2], times[0]) * terms / kernelTerms;
      double overReading = ratio(times[3], times[0]);
      header("`nearest` over", "");
      row(same + ": rate", "**" + number(overSame) + "**");
      row(kernel + ": rate", "**" + number(overKernel) + "**");
      row(reading + ": bandwidth", "**" + number(overReading) + "**");
      return Bound.AT_LEAST.missed("`nearest` over " + same + ": rate", overSame, WANTED_RATE);
    }
  }

  private static String ms(double seconds) {
    return number(seconds * 1e3);
  }

  private static String bandwidth(double bytes, double seconds) {
    return number(bytes / seconds / 1e9) + " GB/s";
  }

  /** The median quotient of a round, which slow phases of the machine leave as it is. */
  private static double ratio(double[] a, double[] b) {
    double[] ratios = new double[a.length];
    Arrays.setAll(ratios, r -> a[r] / b[r]);
    return quantile(ratios, 0.5);
  }
}
