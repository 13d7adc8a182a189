package dev.kullback.bench;

import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.rate;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Interleaved ratios. Two contenders alternate in one process, A B, B A, A B, …, after both are warm; a round gives one
 * quotient of their times, the table its median and quartiles. What slows the machine for longer than a round slows both
 * sides, and the quotient does not see it.
 */
final class Ratios {
  private static final String USAGE =
      """
      Times pairs of contenders in alternation and prints the quotients of their times as a markdown table.
        --only TEXT[,TEXT]      comparisons whose line in --list contains one of the texts
        --compare A/B[,A/B]     these contenders instead of the listed comparisons
        --shape 1024x256[,…]    at these shapes only (any, with --compare)
        --seconds S             measuring time of a comparison (default 6)
        --warmup S              warm-up of each of its contenders (default 3)
        --rounds N              exactly N rounds instead of --seconds
        --no-allocation         leave out the allocation table
        --list                  the comparisons and the contenders, then exit
      Exit status: 0, or 1 when a figure missed its limit, or 2 for wrong usage.
      """;

  /** Long enough that a timer's or an interrupt's microseconds do not count. */
  static final double SAMPLE_SECONDS = 4e-3;

  /** Quartiles of fewer quotients would say little. */
  private static final int MIN_ROUNDS = 7;

  private static final int MAX_ROUNDS = 1001;

  /** Time of a over time of b, and what it should be. */
  private record Comparison(String a, String b, Shape shape, Bound bound, double limit) {
    static Comparison of(String a, String b, String shape, Bound bound, double limit) {
      return new Comparison(a, b, Shape.parse(shape), bound, limit);
    }

    /** Makes a comparison whose limit depends on the vectors that run: 512 bits or 256 bits; others have none. */
    static Comparison of(
        String a, String b, String shape, Bound bound, double limit512, double limit256) {
      return switch (Cpu.vectorBits()) {
        case 512 -> of(a, b, shape, bound, limit512);
        case 256 -> of(a, b, shape, bound, limit256);
        default -> of(a, b, shape);
      };
    }

    static Comparison of(String a, String b, String shape) {
      return of(a, b, shape, Bound.NONE, 0);
    }

    @Override
    public String toString() {
      return a + "/" + b + " " + shape;
    }
  }

  private record Result(
      double secondsA, double secondsB, double termsA, double termsB, double[] ratios) {}

  private record Options(
      List<Comparison> comparisons,
      double seconds,
      double warmup,
      int rounds,
      boolean allocation) {}

  private Ratios() {}

  private static List<Comparison> figures() {
    List<Comparison> list = new ArrayList<>();
    // The project's figures: arrays in to matrix out over the best matrix product.
    list.add(Comparison.of("kl", "openblas", "100x256", Bound.AT_MOST, 2.6, 2.8));
    for (String shape : new String[] {"1024x128", "1024x256", "2048x64"}) {
      list.add(Comparison.of("kl", "openblas", shape, Bound.AT_MOST, 2.2, 2.65));
    }
    list.add(Comparison.of("kl", "openblas", "1024x64"));
    list.add(Comparison.of("kl", "openblas", "4096x256"));
    // The same without preparation, and with a second batch for the columns.
    list.add(Comparison.of("kl-prepared", "openblas", "100x256"));
    for (String shape : new String[] {"1024x128", "1024x256", "2048x64"}) {
      list.add(Comparison.of("kl-prepared", "openblas", shape, Bound.AT_MOST, 2.1, 2.5));
    }
    for (String shape : new String[] {"100x256", "1024x128", "1024x256", "2048x64"}) {
      list.add(Comparison.of("kl-rect", "openblas-rect", shape));
      list.add(Comparison.of("kl-rect-prepared", "openblas-rect", shape));
    }
    // Against what users run today.
    list.add(Comparison.of("kl", "torch-product", "1024x256", Bound.BELOW, 1));
    list.add(Comparison.of("kl", "torch-product-kl", "1024x256"));
    list.add(Comparison.of("torch-broadcast-kl", "kl", "1024x256", Bound.AT_LEAST, 300));
    list.add(Comparison.of("plain-broadcast-kl", "kl", "1024x256"));
    list.add(Comparison.of("plain-product", "kl", "1024x256"));
    list.add(Comparison.of("vectorblas", "kl", "1024x256"));
    list.add(Comparison.of("ejml", "kl", "1024x256"));
    // Few dimensions, over the loop that they leave little to improve in.
    list.add(Comparison.of("kl-prepared", "plain-hoisted-kl", "1500x1", Bound.AT_MOST, 0.6));
    list.add(Comparison.of("kl-prepared", "plain-hoisted-kl", "1500x2", Bound.AT_MOST, 0.5));
    list.add(Comparison.of("kl-prepared", "plain-hoisted-kl", "1500x3", Bound.AT_MOST, 0.4));
    list.add(Comparison.of("kl-prepared", "plain-hoisted-kl", "1500x8"));
    // One thread over two.
    list.add(
        Comparison.of("kl-prepared", "kl-prepared-2-threads", "2048x256", Bound.AT_LEAST, 1.85));
    list.add(Comparison.of("kl", "kl-2-threads", "2048x256", Bound.AT_LEAST, 1.9));
    list.add(Comparison.of("query", "query-2-threads", "100000x64", Bound.AT_LEAST, 1.7));
    // Full covariance, in double.
    list.add(Comparison.of("torch-full", "kl-full", "256x32", Bound.AT_LEAST, 100));
    list.add(Comparison.of("kl-full", "openblas-dgemm", "256x32", Bound.AT_MOST, 2));
    list.add(
        Comparison.of("kl-full-prepared", "openblas-dgemm", "256x32", Bound.AT_MOST, 0.9, 1.2));
    list.add(Comparison.of("torch-low-rank", "kl-low-rank-prepared", "256x512"));
    list.add(
        Comparison.of(
            "torch-low-rank-double", "kl-low-rank-prepared", "256x512", Bound.AT_LEAST, 30));
    list.add(
        Comparison.of(
            "kl-low-rank-prepared", "openblas-low-rank-dgemm", "256x512", Bound.AT_MOST, 1.3));
    for (String shape : new String[] {"1000x3", "1000x4", "1000x6", "1000x8"}) {
      list.add(Comparison.of("ejml-full-hoisted", "kl-full", shape));
    }
    list.add(Comparison.of("torch-full-aligned", "kl-full-aligned", "5x3"));
    list.add(
        Comparison.of("torch-full-aligned", "kl-full-aligned", "256x32", Bound.AT_LEAST, 6, 5));
    // Other divergences: over the matrix product, KL, and what libtorch's users write.
    for (String name : DivergenceContenders.NAMES) {
      list.add(Comparison.of(name + "-prepared", "openblas-rect", "1024x256"));
      list.add(Comparison.of("torch-" + name, name + "-prepared", "1024x256"));
      list.add(Comparison.of(name + "-full-prepared", "openblas-dgemm", "256x32"));
      boolean isFigure = name.equals("bhattacharyya");
      list.add(
          Comparison.of(
              "torch-" + name + "-full",
              name + "-full-prepared",
              "256x32",
              isFigure ? Bound.AT_LEAST : Bound.NONE,
              isFigure ? 50 : 0));
    }
    list.add(
        Comparison.of("jeffreys-prepared", "kl-rect-prepared", "1024x256", Bound.AT_MOST, 1.5));
    list.add(
        Comparison.of(
            "squared-wasserstein-2-prepared", "kl-rect-prepared", "1024x256", Bound.AT_MOST, 1.1));
    list.add(
        Comparison.of("bhattacharyya-prepared", "kl-rect-prepared", "1024x256", Bound.AT_MOST, 4));
    list.add(
        Comparison.of("jeffreys-full-prepared", "kl-full-prepared", "256x32", Bound.AT_MOST, 2.2));
    // Reductions over the matrix of the same batches.
    list.add(Comparison.of("nearest-10", "kl-prepared", "4096x128", Bound.AT_MOST, 1.15));
    list.add(Comparison.of("nearest-10", "kl-prepared", "1024x256"));
    list.add(Comparison.of("nearest-10", "kl-prepared", "10000x32"));
    for (String shape : new String[] {"4096x128", "1024x256", "10000x32"}) {
      list.add(Comparison.of("row-min", "kl-rect-prepared", shape));
      list.add(Comparison.of("log-sum-exp", "kl-rect-prepared", shape));
    }
    // Gradients over the values.
    list.add(Comparison.of("gradient-aligned", "aligned", "4096x256", Bound.AT_MOST, 4));
    list.add(Comparison.of("gradient-standard", "standard", "4096x256", Bound.AT_MOST, 4));
    list.add(Comparison.of("gradient", "kl-rect-prepared", "1024x256", Bound.AT_MOST, 4));
    list.add(Comparison.of("torch-gradient", "gradient", "512x256", Bound.AT_LEAST, 50));
    // Log-densities of points over KL's matrix, and of a loop and of libtorch over theirs.
    list.add(Comparison.of("log-density", "kl-rect-prepared", "4096x64", Bound.AT_MOST, 0.8));
    list.add(Comparison.of("plain-log-density", "log-density", "1024x64", Bound.AT_LEAST, 10));
    list.add(Comparison.of("torch-log-density", "log-density", "1024x64", Bound.AT_LEAST, 100));
    // Of the same entries, so the query's rate over the matrix's.
    list.add(Comparison.of("query-matrix", "query", "10000x128", Bound.AT_LEAST, 0.7));
    list.add(Comparison.of("query-matrix-8", "query-8", "10000x128"));
    list.add(Comparison.of("query-matrix-64", "query-64", "10000x128"));
    // Alike and nearly equal Gaussians, whose entries are computed twice, over usual ones. Last:
    // they change the profiles of the code
    // they share.
    for (String spread : Contenders.SPREADS) {
      for (String shape : new String[] {"1024x8", "1024x16", "1024x64", "1024x256"}) {
        list.add(Comparison.of("kl-alike-" + spread, "kl-prepared", shape, Bound.AT_MOST, 4));
      }
      list.add(Comparison.of("row-sum-alike-" + spread, "row-sum", "1024x8", Bound.AT_MOST, 4));
    }
    for (String shape : new String[] {"1024x128", "1024x256"}) {
      for (String e : new String[] {"1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "mixed"}) {
        list.add(Comparison.of("kl-near-" + e, "kl-prepared", shape, Bound.AT_MOST, 4));
      }
    }
    return list;
  }

  public static void main(String[] args) {
    Options options;
    try {
      options = parse(List.of(args));
    } catch (IllegalArgumentException e) {
      System.err.println("ratios: " + e.getMessage());
      System.exit(2);
      return;
    }
    if (options == null) {
      return;
    }
    boolean missed = run(options);
    // Also ends what a native library may have started.
    System.exit(missed ? 1 : 0);
  }

  private static boolean run(Options options) {
    boolean missed = false;
    // Line by line: an interrupted run keeps its rows.
    System.out.println(conditions(options));
    System.out.println("| A / B | shape | A | B | A over B [quartiles] | rounds |");
    System.out.println("|---|---|---|---|---|---|");
    for (Comparison comparison : options.comparisons) {
      System.err.print(comparison + " … ");
      String row;
      try {
        Result result = measure(comparison, options);
        double median = quantile(result.ratios, 0.5);
        row = row(comparison, result, median);
        System.err.println(number(median));
        missed |= comparison.bound.missed(comparison.toString(), median, comparison.limit);
      } catch (Unavailable | Agreement.Disagreement e) {
        // One peer's absence or fault does not cost the other rows.
        missed |= e instanceof Agreement.Disagreement;
        row =
            "| %s / %s | %s | | | not timed: %s | |"
                .formatted(comparison.a, comparison.b, comparison.shape, e.getMessage());
        System.err.println(e.getMessage());
      }
      System.out.println(row);
    }
    if (options.allocation) {
      System.err.println("allocation …");
      System.out.println();
      System.out.print(Allocation.table(Allocation.CONTENDERS, Allocation.SHAPES, options.warmup));
    }
    return missed;
  }

  private static Result measure(Comparison comparison, Options options) {
    try (Contender a = Contenders.checked(comparison.a, comparison.shape);
        Contender b = Contenders.checked(comparison.b, comparison.shape)) {
      double[] warm = warm(a, b, options.warmup);
      int callsA = (int) Math.ceil(SAMPLE_SECONDS / warm[0]);
      int callsB = (int) Math.ceil(SAMPLE_SECONDS / warm[1]);
      double round = callsA * warm[0] + callsB * warm[1];
      int rounds =
          options.rounds > 0
              ? options.rounds
              : (int) Math.clamp(options.seconds / round, MIN_ROUNDS, MAX_ROUNDS);
      double[] timesA = new double[rounds];
      double[] timesB = new double[rounds];
      double[] ratios = new double[rounds];
      for (int r = 0; r < rounds; r++) {
        // The order alternates too, so that neither side always runs in the other's wake.
        if (r % 2 == 0) {
          timesA[r] = time(a, callsA);
          timesB[r] = time(b, callsB);
        } else {
          timesB[r] = time(b, callsB);
          timesA[r] = time(a, callsA);
        }
        ratios[r] = timesA[r] / timesB[r];
      }
      a.check();
      b.check();
      return new Result(
          quantile(timesA, 0.5),
          quantile(timesB, 0.5),
          a.terms(comparison.shape),
          b.terms(comparison.shape),
          ratios);
    }
  }

  /** Alternates as the measurement will, until each has run for that long; their times then. */
  private static double[] warm(Contender a, Contender b, double seconds) {
    double spentA = 0;
    double spentB = 0;
    double a1 = 0;
    double b1 = 0;
    do {
      // The sides' calls differ in length by up to 1000: each is warmed by time, not by turns.
      if (spentA <= spentB) {
        a1 = time(a, 1);
        spentA += a1;
      } else {
        b1 = time(b, 1);
        spentB += b1;
      }
    } while (Math.min(spentA, spentB) < seconds);
    return new double[] {Math.min(a1, time(a, 1)), Math.min(b1, time(b, 1))};
  }

  /** Seconds a call, of each contender in each round, in turn after each has run for {@code warmup} seconds. */
  static double[][] interleaved(List<Contender> contenders, double warmup, double seconds) {
    int n = contenders.size();
    int[] calls = new int[n];
    double round = 0;
    for (int c = 0; c < n; c++) {
      double least = Double.POSITIVE_INFINITY;
      long end = System.nanoTime() + (long) (warmup * 1e9);
      do {
        least = Math.min(least, time(contenders.get(c), 1));
      } while (System.nanoTime() < end);
      calls[c] = (int) Math.ceil(SAMPLE_SECONDS / least);
      round += calls[c] * least;
    }
    int rounds = (int) Math.clamp(seconds / round, 3, MAX_ROUNDS);
    double[][] times = new double[n][rounds];
    for (int r = 0; r < rounds; r++) {
      for (int i = 0; i < n; i++) {
        int c = (r + i) % n; // none is always the first
        times[c][r] = time(contenders.get(c), calls[c]);
      }
    }
    return times;
  }

  /** Takes results, so that no call is compiled away. */
  @SuppressWarnings("UnusedVariable")
  private static volatile Object sink;

  /** Seconds a call. */
  static double time(Contender contender, int calls) {
    long start = System.nanoTime();
    for (int i = 0; i < calls; i++) {
      sink = contender.call();
    }
    return (System.nanoTime() - start) * 1e-9 / calls;
  }

  private static String row(Comparison comparison, Result result, double median) {
    return "| %s / %s | %s | %s | %s | **%s** [%s, %s] | %d |"
        .formatted(
            comparison.a,
            comparison.b,
            comparison.shape,
            duration(result.secondsA, result.termsA),
            duration(result.secondsB, result.termsB),
            number(median),
            number(quantile(result.ratios, 0.25)),
            number(quantile(result.ratios, 0.75)),
            result.ratios.length);
  }

  /** The time and, to compare shapes, the (i, j, h) triples in 10⁹ a second. */
  private static String duration(double seconds, double terms) {
    return "%s ms (%s)".formatted(number(seconds * 1e3), rate(terms, seconds));
  }

  private static String conditions(Options options) {
    return Report.conditions(
        1,
        "OpenBLAS: " + describeIf(options, "openblas", () -> OpenBlas.load().describe()),
        "libtorch: " + describeIf(options, "torch", () -> Torch.load().describe()),
        "Threads: 1, unless the name says otherwise");
  }

  private interface Description {
    String get();
  }

  private static String describeIf(Options options, String prefix, Description description) {
    if (options.comparisons.stream()
        .noneMatch(c -> c.a.startsWith(prefix) || c.b.startsWith(prefix))) {
      return "not compared";
    }
    try {
      return description.get();
    } catch (Unavailable e) {
      return e.getMessage();
    }
  }

  /** Null when the question has been answered already. */
  private static Options parse(List<String> args) {
    List<Comparison> comparisons = figures();
    List<String> only = List.of();
    List<Shape> shapes = List.of();
    List<String> pairs = List.of();
    double seconds = 6;
    double warmup = 3;
    int rounds = 0;
    boolean allocation = true;
    for (int i = 0; i < args.size(); i++) {
      String option = args.get(i);
      switch (option) {
        case "--help", "-h" -> {
          System.out.print(USAGE);
          return null;
        }
        case "--list" -> {
          comparisons.forEach(System.out::println);
          System.out.println("contenders: " + String.join(", ", Contenders.all().keySet()));
          return null;
        }
        case "--no-allocation" -> allocation = false;
        default -> {
          if (i + 1 == args.size()) {
            throw new IllegalArgumentException(
                "unknown option or missing value: " + option + " (--help lists the options)");
          }
          String value = args.get(++i);
          switch (option) {
            case "--only" -> only = List.of(value.split(","));
            case "--shape" -> shapes = Stream.of(value.split(",")).map(Shape::parse).toList();
            case "--compare" -> pairs = List.of(value.split(","));
            case "--seconds" -> seconds = positive(option, value);
            case "--warmup" -> warmup = positive(option, value);
            case "--rounds" -> rounds = (int) positive(option, value);
            default ->
                throw new IllegalArgumentException(
                    "unknown option " + option + " (--help lists the options)");
          }
        }
      }
    }
    if (!pairs.isEmpty()) {
      comparisons = custom(pairs, shapes.isEmpty() ? List.of(new Shape(1024, 256)) : shapes);
    }
    List<String> texts = only;
    List<Shape> wanted = shapes;
    comparisons =
        comparisons.stream()
            .filter(c -> wanted.isEmpty() || wanted.contains(c.shape))
            .filter(c -> texts.isEmpty() || texts.stream().anyMatch(c.toString()::contains))
            .toList();
    if (comparisons.isEmpty()) {
      throw new IllegalArgumentException("no comparison matches; --list shows them");
    }
    return new Options(comparisons, seconds, warmup, rounds, allocation);
  }

  private static List<Comparison> custom(List<String> pairs, List<Shape> shapes) {
    List<Comparison> comparisons = new ArrayList<>();
    for (String pair : pairs) {
      String[] names = pair.split("/", -1);
      if (names.length != 2 || !Contenders.all().keySet().containsAll(List.of(names))) {
        throw new IllegalArgumentException(
            "--compare '" + pair + "': write it as A/B, two of the contenders of --list");
      }
      for (Shape shape : shapes) {
        comparisons.add(new Comparison(names[0], names[1], shape, Bound.NONE, 0));
      }
    }
    return comparisons;
  }

  private static double positive(String option, String value) {
    try {
      double number = Double.parseDouble(value);
      if (number > 0 && number < 1e6) {
        return number;
      }
    } catch (NumberFormatException e) {
      // reported below
    }
    throw new IllegalArgumentException(option + " '" + value + "': a positive number");
  }
}
