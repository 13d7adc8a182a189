package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.row;

import com.sun.management.OperatingSystemMXBean;
import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.KlEngine;
import dev.kullback.Query;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;

/**
 * The first answer of a process that has just started, by each backend in a JVM of its own: the nearest references to one query, and the
 * matrix of two batches with full covariances. And the time until such a process computes with vectors.
 */
final class First {
  private static final String USAGE =
      """
      Starts JVMs, with the vector and the scalar backend in turn. Each makes a batch of references and asks for the nearest of one
      query, or makes two batches of covariances and asks for their matrix. The clock starts when main has made the arrays, before
      anything of the library is loaded. Further JVMs make a batch and ask for its matrix again and again, until vectors have come.
        --references M   Gaussians to search (default 100000)
        --dimension D    (default 64)
        --k K            neighbors (default 10)
        --rows N         Gaussians of each batch with full covariances (default 10)
        --columns M      (default 1000)
        --full D         their dimension (default 6)
        --loop N         Gaussians of the matrix that is computed again and again, of dimension 256 (default 100)
        --runs R         JVMs of each backend (default 5)
      Exit status: 0, or 1 when a figure missed its limit, or 2 for wrong usage.
      """;

  /** Most that is wanted, over the scalar backend's. */
  private static final double WANTED = 1.2;

  private static final List<Backend> BACKENDS = List.of(Backend.AUTO, Backend.SCALAR);

  /** Figures that a {@link Clock} prints. */
  private static final List<String> FIGURES =
      List.of("batches, ms", "call, ms", "first answer, ms", "CPU, ms");

  private static final int ANSWER = 2;

  private static final int LOOP_DIMENSION = 256;

  private First() {}

  public static void main(String[] args) {
    Map<String, Integer> defaults =
        Map.of(
            "--references",
            100_000,
            "--dimension",
            64,
            "--k",
            10,
            "--rows",
            10,
            "--columns",
            1000,
            "--full",
            6,
            "--loop",
            100,
            "--runs",
            5);
    Command.run(
        "first",
        USAGE,
        defaults,
        args,
        options -> {
          int runs = options.get("--runs");
          Shape references = new Shape(options.get("--references"), options.get("--dimension"));
          Shape q = new Shape(options.get("--rows"), options.get("--full"));
          Shape p = new Shape(options.get("--columns"), options.get("--full"));
          int k = options.get("--k");
          System.out.println(Report.conditions(1, "References: " + references + ", k = " + k));
          boolean nearest = run(Nearest.class, references, k, runs);
          System.out.println("\nFull covariances: the matrix of " + q + " and " + p + "\n");
          boolean full = run(Full.class, q, p, runs);
          Shape loop = new Shape(options.get("--loop"), LOOP_DIMENSION);
          System.out.println(
              "\nUntil vectors: the matrix of " + loop + " with itself, made anew\n");
          boolean vectors = runLoop(loop, runs);
          return nearest || full || vectors;
        });
  }

  private static boolean run(Class<?> answer, Object first, Object second, int runs) {
    double[][][] figures = new double[BACKENDS.size()][FIGURES.size()][runs];
    for (int r = 0; r < runs; r++) {
      for (int b = 0; b < BACKENDS.size(); b++) {
        System.err.print(BACKENDS.get(b) + " … ");
        double[] measured =
            NewJvm.measure(answer, BACKENDS.get(b).name(), first.toString(), second.toString());
        System.err.println(number(measured[ANSWER]) + " ms");
        for (int f = 0; f < FIGURES.size(); f++) {
          figures[b][f][r] = measured[f];
        }
      }
    }
    header("median [least, most] of " + runs, "auto", "scalar", "auto over scalar");
    boolean missed = false;
    for (int f = 0; f < FIGURES.size(); f++) {
      double ratio = quantile(figures[0][f], 0.5) / quantile(figures[1][f], 0.5);
      Bound bound = f == ANSWER ? Bound.AT_MOST : Bound.NONE;
      missed |= bound.missed(FIGURES.get(f) + ", auto over scalar", ratio, WANTED);
      row(
          FIGURES.get(f),
          spread(figures[0][f]),
          spread(figures[1][f]),
          "**" + number(ratio) + "**");
    }
    return missed;
  }

  private static boolean runLoop(Shape shape, int runs) {
    double[][] figures = new double[Loop.FIGURES.size()][runs];
    for (int r = 0; r < runs; r++) {
      double[] measured = NewJvm.measure(Loop.class, Backend.AUTO.name(), shape.toString());
      System.err.println("vectors after " + number(measured[1]) + " s");
      for (int f = 0; f < figures.length; f++) {
        figures[f][r] = measured[f];
      }
    }
    header("median [least, most] of " + runs, "auto");
    boolean missed = false;
    for (int f = 0; f < figures.length; f++) {
      double value = quantile(figures[f], 0.5);
      double wanted = Loop.WANTED.get(f);
      Bound bound = wanted > 0 ? Bound.AT_MOST : Bound.NONE;
      missed |= bound.missed(Loop.FIGURES.get(f), value, wanted);
      row(Loop.FIGURES.get(f), spread(figures[f]));
    }
    return missed;
  }

  private static String spread(double[] values) {
    return "%s [%s, %s]"
        .formatted(
            number(quantile(values, 0.5)),
            number(quantile(values, 0)),
            number(quantile(values, 1)));
  }

  /** Clock of the new JVM: starts when it is made, and prints a line of {@link #FIGURES}. */
  private static final class Clock {
    private final OperatingSystemMXBean process =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final long cpu = process.getProcessCpuTime();
    private final long start = System.nanoTime();
    private long made;

    void made() {
      made = System.nanoTime();
    }

    double[] answered() {
      long answered = System.nanoTime();
      return new double[] {
        made - start, answered - made, answered - start, process.getProcessCpuTime() - cpu
      };
    }

    static void print(double[] figures) {
      System.out.println(
          DoubleStream.of(figures)
              .mapToObj(nanos -> "" + nanos * 1e-6)
              .collect(Collectors.joining(" ")));
    }
  }

  /** The new JVM: one search, checked. */
  static final class Nearest {
    private Nearest() {}

    public static void main(String[] args) {
      Shape shape = Shape.parse(args[1]);
      Batch references = Batch.ordinary(shape, Batch.P_SEED);
      Batch query = Batch.ordinary(new Shape(1, shape.dimension()), Batch.Q_SEED);
      int[] indices = new int[Integer.parseInt(args[2])];
      float[] values = new float[indices.length];
      Clock clock = new Clock();
      DiagonalGaussians p = references.gaussians();
      DiagonalGaussians q = query.gaussians();
      clock.made();
      try (KlEngine engine = KlEngine.builder().backend(Backend.valueOf(args[0])).build()) {
        engine.search(q, p, Query.nearest(indices.length), indices, values);
      }
      double[] figures = clock.answered();
      Agreement.nearest("nearest", query, references, indices.length, indices, values);
      Clock.print(figures);
    }
  }

  /** The new JVM: computes the matrix of a batch that each call makes, for {@link #SECONDS}; then warmed up, for a warm call's time. */
  static final class Loop {
    static final List<String> FIGURES =
        List.of("first answer, ms", "vectors, s", "slow after that, s", "warm call, ms");

    /** Bounds; 0 for none. */
    static final List<Double> WANTED = List.of(0.0, 2.0, 1.0, 0.0);

    private static final double SECONDS = 6;

    /** Calls whose median counts. */
    private static final int WINDOW = 20;

    private static final int WARM_CALLS = 500;

    /** Multiple of a warm call's time from which on a call is slow. */
    private static final double SLOW = 2;

    /** Length of the spells whose median is slow or not. */
    private static final double SPELL = 0.1;

    private Loop() {}

    public static void main(String[] args) {
      Shape shape = Shape.parse(args[1]);
      Batch batch = Batch.ordinary(shape, Batch.Q_SEED);
      float[] kl = new float[shape.size() * shape.size()];
      List<Double> ends = new ArrayList<>();
      List<Double> millis = new ArrayList<>();
      long start = System.nanoTime();
      try (KlEngine engine = KlEngine.builder().backend(Backend.valueOf(args[0])).build()) {
        for (double end = 0; end < SECONDS; ) {
          millis.add(call(engine, batch, kl));
          end = (System.nanoTime() - start) * 1e-9;
          ends.add(end);
        }
        engine.warmUp(shape.size(), shape.size(), shape.dimension());
        for (int k = 0; k < WARM_CALLS; k++) {
          millis.add(call(engine, batch, kl));
        }
      }
      int calls = ends.size();
      double warm = median(millis, calls, millis.size());
      int fast = 0;
      while (fast + WINDOW < calls && median(millis, fast, fast + WINDOW) > SLOW * warm) {
        fast++;
      }
      double slow = 0;
      for (int from = fast, to = from; to < calls; from = to) {
        while (to < calls && ends.get(to) < ends.get(from) + SPELL) {
          to++;
        }
        slow += median(millis, from, to) > SLOW * warm ? SPELL : 0;
      }
      boolean came = fast + WINDOW < calls;
      double vectors = came ? ends.get(fast) : Double.POSITIVE_INFINITY;
      System.out.printf("%s %s %s %s%n", ends.getFirst() * 1e3, vectors, slow, warm);
    }

    /** Makes the batch and computes its matrix; returns the milliseconds that took. */
    private static double call(KlEngine engine, Batch batch, float[] kl) {
      long start = System.nanoTime();
      DiagonalGaussians q = batch.gaussians();
      engine.pairwise(q, q, kl);
      return (System.nanoTime() - start) * 1e-6;
    }

    private static double median(List<Double> values, int from, int to) {
      double[] some = values.subList(from, to).stream().mapToDouble(v -> v).toArray();
      return quantile(some, 0.5);
    }
  }

  /** The new JVM: one matrix of full covariances, checked. */
  static final class Full {
    private Full() {}

    public static void main(String[] args) {
      FullBatch rows = FullBatch.ordinary(Shape.parse(args[1]), Batch.Q_SEED);
      FullBatch columns = FullBatch.ordinary(Shape.parse(args[2]), Batch.P_SEED);
      int d = rows.shape().dimension();
      double[] ofRows = covariances(rows);
      double[] ofColumns = covariances(columns);
      double[] kl = new double[rows.shape().size() * columns.shape().size()];
      Clock clock = new Clock();
      FullGaussians q = FullGaussians.ofCovariance(rows.mean(), ofRows, d);
      FullGaussians p = FullGaussians.ofCovariance(columns.mean(), ofColumns, d);
      clock.made();
      try (KlEngine engine = KlEngine.builder().backend(Backend.valueOf(args[0])).build()) {
        engine.pairwise(q, p, kl);
      }
      double[] figures = clock.answered();
      Agreement.full("full covariances", rows, columns, false, kl, 1e-9);
      Clock.print(figures);
    }

    private static double[] covariances(FullBatch batch) {
      int n = batch.shape().size();
      int square = batch.shape().dimension() * batch.shape().dimension();
      double[] all = new double[n * square];
      for (int i = 0; i < n; i++) {
        System.arraycopy(batch.covariance(i), 0, all, i * square, square);
      }
      return all;
    }
  }
}
