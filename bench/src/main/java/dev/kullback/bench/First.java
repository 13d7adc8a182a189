package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.row;

import com.sun.management.OperatingSystemMXBean;
import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.Divergence;
import dev.kullback.FullGaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.LongStream;

/**
 * The first answer of a process that has just started, by each backend in a JVM of its own: the nearest references to one query, and the
 * matrix of two batches with full covariances. And the time until such a process is as fast as it gets, for each divergence.
 */
final class First {
  private static final String USAGE =
      """
      Starts JVMs, with the vector and the scalar backend in turn. Each makes a batch of references and asks for the nearest of one
      query, or makes two batches of covariances and asks for their matrix. The clock starts when main has made the arrays, before
      anything of the library is loaded. Further JVMs make a batch and ask for its matrix again and again, or ask an index,
      and tell from when on calls stay within 1.5 times of their time in the end. The heap is there from the start.
        --references M   Gaussians to search (default 100000)
        --dimension D    (default 64)
        --k K            neighbors (default 10)
        --rows N         Gaussians of each batch with full covariances (default 10)
        --columns M      (default 1000)
        --full D         their dimension (default 6)
        --loop S         seconds for which they do (default 10)
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
            10,
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
          System.out.println("\nUntil calls stay within 1.5 times of their time in the end\n");
          boolean vectors = runLoops(options.get("--loop"), runs);
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

  private static boolean runLoops(int seconds, int runs) {
    header(
        "median [least, most] of " + runs,
        "first call, ms",
        "until then, s",
        "wanted, s",
        "call in the end, ms");
    boolean missed = false;
    for (Loop.Kind kind : Loop.Kind.values()) {
      double[][] figures = new double[3][runs];
      for (int r = 0; r < runs; r++) {
        double[] measured = NewJvm.measure(Loop.class, kind.name(), "" + seconds);
        System.err.println(kind + ": " + number(measured[1]) + " s");
        for (int f = 0; f < figures.length; f++) {
          figures[f][r] = measured[f];
        }
      }
      missed |= Bound.AT_MOST.missed(kind.title, quantile(figures[1], 0.5), kind.wanted);
      row(
          kind.title,
          spread(figures[0]),
          "**" + spread(figures[1]) + "**",
          number(kind.wanted),
          spread(figures[2]));
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

  /** The new JVM: makes a batch and computes its matrix, or asks an index, again and again. */
  static final class Loop {
    /** What is called, and the seconds that are wanted. */
    enum Kind {
      KL("KL", Divergence.KL, false, 1.5),
      FULL_KL("full KL", Divergence.KL, true, 2.5),
      JEFFREYS("Jeffreys", Divergence.JEFFREYS, false, 2),
      WASSERSTEIN("W₂²", Divergence.SQUARED_WASSERSTEIN_2, false, 2),
      BHATTACHARYYA("Bhattacharyya", Divergence.BHATTACHARYYA, false, 2.5),
      RENYI("Rényi, α = 0.3", Divergence.renyi(0.3), false, 2.5),
      HELLINGER("Hellinger", Divergence.HELLINGER, false, 2.5),
      FULL_JEFFREYS("full Jeffreys", Divergence.JEFFREYS, true, 3),
      FULL_CHERNOFF("full Bhattacharyya", Divergence.BHATTACHARYYA, true, 3),
      INDEX("index query, 10,000 × 64", Divergence.KL, false, 2);

      private final String title;

      @SuppressWarnings("ImmutableEnumChecker") // it is immutable
      private final Divergence divergence;

      private final boolean isFull;
      private final double wanted;

      Kind(String title, Divergence divergence, boolean isFull, double wanted) {
        this.title = title;
        this.divergence = divergence;
        this.isFull = isFull;
        this.wanted = wanted;
      }
    }

    private static final Shape DIAGONAL = new Shape(100, 256);
    private static final Shape FULL = new Shape(60, 24);
    private static final Shape REFERENCES = new Shape(10_000, 64);
    private static final int K = 10;

    /** Time of the last calls, whose median is the time in the end. */
    private static final double END = 1.5;

    /** Length of the spells whose median is compared with it. */
    private static final double SPELL = 0.1;

    private static final double SLOW = 1.5;

    private Loop() {}

    public static void main(String[] args) {
      Kind kind = Kind.valueOf(args[0]);
      if (kind == Kind.INDEX) {
        try (KlIndex index = KlIndex.builder(REFERENCES.dimension()).build()) {
          measure(() -> queries(index), Double.parseDouble(args[1]));
        }
      } else {
        try (KlEngine engine = KlEngine.builder().divergence(kind.divergence).build()) {
          measure(() -> kind.isFull ? full(engine) : diagonal(engine), Double.parseDouble(args[1]));
        }
      }
    }

    private static Runnable diagonal(KlEngine engine) {
      Batch batch = Batch.ordinary(DIAGONAL, Batch.Q_SEED);
      float[] out = new float[DIAGONAL.size() * DIAGONAL.size()];
      return () -> {
        DiagonalGaussians q = batch.gaussians();
        engine.pairwise(q, q, out);
      };
    }

    private static Runnable full(KlEngine engine) {
      FullBatch batch = FullBatch.ordinary(FULL, Batch.Q_SEED);
      double[] covariances = Full.covariances(batch);
      float[] out = new float[FULL.size() * FULL.size()];
      return () -> {
        FullGaussians q = FullGaussians.ofCovariance(batch.mean(), covariances, FULL.dimension());
        engine.pairwise(q, q, out);
      };
    }

    private static Runnable queries(KlIndex index) {
      int n = REFERENCES.size();
      Batch batch = Batch.ordinary(REFERENCES, Batch.P_SEED);
      index.add(LongStream.range(0, n).toArray(), batch.gaussians());
      long[] ids = new long[K];
      float[] values = new float[K];
      int[] row = new int[1];
      return () -> {
        int at = row[0]++ % n * REFERENCES.dimension();
        index.query(
            batch.mean(),
            at,
            batch.std(),
            n * REFERENCES.dimension() - at - REFERENCES.dimension(),
            K,
            ids,
            values);
      };
    }

    private static void measure(Supplier<Runnable> make, double seconds) {
      Runnable call = make.get();
      List<Double> ends = new ArrayList<>();
      List<Double> millis = new ArrayList<>();
      long start = System.nanoTime();
      for (double end = 0; end < seconds; ends.add(end)) {
        long before = System.nanoTime();
        call.run();
        millis.add((System.nanoTime() - before) * 1e-6);
        end = (System.nanoTime() - start) * 1e-9;
      }
      int last = 0;
      while (ends.get(last) < seconds - END) {
        last++;
      }
      double inTheEnd = median(millis, last, millis.size());
      double until = 0;
      for (int from = 0, to = 0; to < ends.size(); from = to) {
        while (to < ends.size() && ends.get(to) < ends.get(from) + SPELL) {
          to++;
        }
        until = median(millis, from, to) > SLOW * inTheEnd ? ends.get(to - 1) : until;
      }
      System.out.printf("%s %s %s%n", millis.getFirst(), until, inTheEnd);
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
