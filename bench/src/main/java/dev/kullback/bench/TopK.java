package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.rate;
import static dev.kullback.bench.Report.row;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;

/** The nearest neighbors of a whole batch whose matrix no memory would hold: time, memory, and the rate beside that of a matrix. */
final class TopK {
  private static final String USAGE =
      """
      Computes the nearest of each of N Gaussians among all of them and prints time, rate and memory as a markdown table.
        --size N         Gaussians (default 100000)
        --dimension D    (default 32)
        --k K            neighbors of each (default 10)
        --threads T      (default 2)
        --heap SIZE      of the JVM, as -Xmx takes it (default 512m; of bench/run)
      Exit status: 0, or 1 when a figure missed its limit, or 2 for wrong usage.
      """;

  /** Least rate that is wanted, over the matrix's. */
  private static final double WANTED_RATE = 0.8;

  /** Below, in GiB. */
  private static final double WANTED_MEMORY = 1;

  /** The matrix to compare with, 256 MiB: beyond the caches, as the whole would be. */
  private static final int MATRIX_ROWS = 4096;

  private static final int MATRIX_COLUMNS = 16384;

  /** Calls of the matrix each time: about half a second. */
  private static final int MATRIX_CALLS = 20;

  private TopK() {}

  public static void main(String[] args) {
    Map<String, Integer> defaults =
        Map.of("--size", 100_000, "--dimension", 32, "--k", 10, "--threads", 2);
    Command.run(
        "topk",
        USAGE,
        defaults,
        args,
        options ->
            run(
                new Shape(options.get("--size"), options.get("--dimension")),
                options.get("--k"),
                options.get("--threads")));
  }

  private static boolean run(Shape shape, int k, int threads) {
    Batch batch = Batch.ordinary(shape, Batch.Q_SEED);
    long heap = Runtime.getRuntime().maxMemory() >> 20;
    System.out.println(Report.conditions(threads, "Heap: at most " + heap + " MiB"));
    try (Contender nearest = ReductionContenders.nearest(List.of(batch), batch, k, threads)) {
      System.err.println("nearest, the first call …");
      double first = Ratios.time(nearest, 1);
      double peak = peakGib(); // before there is any matrix
      nearest.check();

      int rows = Math.min(MATRIX_ROWS, shape.size());
      int columns = Math.min(MATRIX_COLUMNS, shape.size());
      Batch q = batch.rows(0, rows);
      Batch p = batch.rows(shape.size() - columns, shape.size());
      try (Contender matrix = ReductionContenders.pairwise(List.of(q), p, threads)) {
        System.err.println("a matrix, nearest again, the matrix …");
        times(matrix); // warms up
        matrix.check();
        double[] before = times(matrix);
        double again = Ratios.time(nearest, 1);
        double[] after = times(matrix);
        nearest.check();
        matrix.check();
        double part =
            quantile(
                DoubleStream.concat(Arrays.stream(before), Arrays.stream(after)).toArray(), 0.5);
        double quotient = nearest.terms(shape) / again / (matrix.terms(shape) / part);

        header(
            "`nearest`, %d x %d, D = %d, k = %d, threads: %d"
                .formatted(shape.size(), shape.size(), shape.dimension(), k, threads),
            "");
        row("first call", time(first, nearest.terms(shape)));
        row("second call", time(again, nearest.terms(shape)));
        row("`pairwise`, %d x %d".formatted(rows, columns), time(part, matrix.terms(shape)));
        String rate = "the second call's rate over `pairwise`'s";
        row(rate, "**%s**".formatted(number(quotient)));
        String memory = "peak of resident memory, first call";
        row(memory, "**%s GiB**".formatted(number(peak)));
        row("the same at the end, `pairwise`'s matrix included", number(peakGib()) + " GiB");
        row(
            "the whole matrix would take",
            number(4.0 * shape.size() * shape.size() / (1 << 30)) + " GiB");
        boolean missed = Bound.AT_LEAST.missed(rate, quotient, WANTED_RATE);
        missed |= Bound.BELOW.missed(memory, peak, WANTED_MEMORY);
        return missed;
      }
    }
  }

  private static String time(double seconds, double terms) {
    return "%s s (%s)".formatted(number(seconds), rate(terms, seconds));
  }

  /** Returns this process's most resident memory so far, as Linux counts it. */
  private static double peakGib() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
      return lines
              .filter(line -> line.startsWith("VmHWM:")) // VmHWM:   214500 kB
              .mapToDouble(line -> Double.parseDouble(line.replaceAll("\\D", "")))
              .findFirst()
              .orElseThrow()
          / (1 << 20);
    } catch (IOException e) {
      throw new Unavailable("the peak of resident memory is read from Linux's /proc", e);
    }
  }

  private static double[] times(Contender contender) {
    return DoubleStream.generate(() -> Ratios.time(contender, 1)).limit(MATRIX_CALLS).toArray();
  }
}
