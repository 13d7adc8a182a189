package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.row;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;
import java.util.stream.LongStream;
import jdk.jfr.Recording;

/**
 * Measures an index: a query beside {@code nearest} on a prepared batch, a search within a radius beside {@code within}, queries while references are replaced and committed, and the first
 * answer of a new JVM that opens it.
 */
final class Index {
  private static final String USAGE =
      """
      Measures KlIndex: a query of the k nearest over KlEngine.nearest on a prepared batch, and a search of all within a radius
      that a tenth is in over KlEngine.within, interleaved; queries and nearest while JDK Flight Recorder records each call, over calls without a recording; the quantiles of
      queries while 1000 references a second are replaced and committed each second, over those without; and a new JVM
      that opens the index and answers.
        --references M   Gaussians of the index (default 10000)
        --dimension D    (default 128)
        --k K            neighbors of a query (default 10)
        --threads T      threads of a query (default 1)
        --seconds S      time for each of the measurements (default 10)
        --kind N         data: 1 drawn at random, 2 in 100 clusters (default 1)
      Exit status: 0, or 1 when a figure missed its limit or a result is wrong, or 2 for wrong usage.
      """;

  private static final double WARMUP_SECONDS = 5;

  /** Queries that take turns. */
  private static final int RING = 64;

  /** Number of the kind of data that is drawn about centres. */
  private static final int CLUSTERED = 2;

  /** Queries whose searches within a radius take turns, and the share of references that is within. */
  private static final int WITHIN_RING = 8;

  private static final double WITHIN_SHARE = 0.1;

  /** Of 1,000,000 or more. */
  private static final double WANTED_WITHIN = 2;

  private static final int REPLACED_A_SECOND = 1000;
  private static final double WANTED_RATIO = 0.6;
  private static final double WANTED_RATIO_LARGE = 0.4;
  private static final int LARGE = 1_000_000;
  private static final double WANTED_P99 = 2;

  /** Calls of a round with a recording, or without one: each query of the ring as often. */
  private static final int RECORDED_CALLS = 8 * RING;

  private static final double WANTED_RECORDED = 1.05;
  private static final double WANTED_OPEN = 0.3;
  private static final double WANTED_HEAP = 100;

  private Index() {}

  public static void main(String[] args) {
    Map<String, Integer> defaults =
        Map.of(
            "--references",
            10_000,
            "--dimension",
            128,
            "--k",
            10,
            "--threads",
            1,
            "--seconds",
            10,
            "--kind",
            1);
    Command.run("index", USAGE, defaults, args, Index::run);
  }

  private static boolean run(Map<String, Integer> options) {
    int k = options.get("--k");
    int threads = options.get("--threads");
    int seconds = options.get("--seconds");
    Shape shape = new Shape(options.get("--references"), options.get("--dimension"));
    int kind = options.get("--kind");
    Batch batch = kind == CLUSTERED ? clustered(shape, 1) : Batch.ordinary(shape, Batch.P_SEED);
    Batch queries = queries(shape.dimension(), kind);
    System.out.println(Report.conditions(threads, "References: " + shape + ", k = " + k));
    try {
      Path folder = TempFolder.create("index").resolve("index");
      boolean missed;
      try (KlIndex index = KlIndex.builder(shape.dimension()).threads(threads).open(folder)) {
        long start = System.nanoTime();
        index.add(LongStream.range(0, shape.size()).toArray(), batch.gaussians());
        double added = (System.nanoTime() - start) * 1e-9;
        start = System.nanoTime();
        index.commit();
        System.err.println(
            "added in %s s, committed in %s s"
                .formatted(number(added), number((System.nanoTime() - start) * 1e-9)));
        header("", "");
        missed = ratio(index, batch, queries, threads, k, seconds);
        missed |= replaced(index, batch, queries, k, seconds);
        System.err.println(index.stats());
      }
      missed |= opened(folder, shape.dimension(), kind, k);
      return missed;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static Batch queries(int dimension, int kind) {
    Shape ring = new Shape(RING, dimension);
    return kind == CLUSTERED ? clustered(ring, 2) : Batch.ordinary(ring, Batch.Q_SEED);
  }

  /** Gaussians about 100 centres, as embeddings of classes are. */
  private static Batch clustered(Shape shape, long seed) {
    int d = shape.dimension();
    Batch centres = Batch.ordinary(new Shape(100, d), 7);
    Batch near = Batch.alike(shape, 0.3, seed);
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < shape.size(); i++) {
      int centre = random.nextInt(centres.shape().size());
      for (int h = 0; h < d; h++) {
        near.mean()[i * d + h] += centres.mean()[centre * d + h];
        near.std()[i * d + h] *= centres.std()[centre * d + h];
      }
    }
    return near;
  }

  private static boolean report(String what, String unit, double value, double limit) {
    row(what, "**" + number(value) + unit + "**");
    return Bound.AT_MOST.missed(what, value, limit);
  }

  /** A query, over nearest on a prepared batch, and the bytes it allocates. */
  private static boolean ratio(
      KlIndex index, Batch batch, Batch queries, int threads, int k, int seconds) {
    DiagonalGaussians references = batch.gaussians();
    references.prepare();
    try (KlEngine engine = KlEngine.builder().threads(threads).build()) {
      DiagonalGaussians[] single = new DiagonalGaussians[RING];
      Arrays.setAll(single, i -> queries.rows(i, i + 1).gaussians());
      long[] ids = new long[k];
      float[] values = new float[k];
      int[] indices = new int[k];
      Query nearest = Query.nearest(k);
      for (int i = 0; i < RING; i++) {
        query(index, queries, i, k, ids, values);
        engine.search(single[i], references, nearest, indices, values);
        if (!Arrays.equals(ids, Arrays.stream(indices).asLongStream().toArray())) {
          throw new Agreement.Disagreement(
              "query %d: the index finds %s, the engine %s"
                  .formatted(i, Arrays.toString(ids), Arrays.toString(indices)));
        }
      }
      warm(index, queries, k);
      Times times =
          Times.of(
              RING,
              seconds,
              i -> query(index, queries, i, k, ids, values),
              i -> engine.search(single[i], references, nearest, indices, values));
      long before = Allocation.byCaller();
      for (int i = 0; i < RING; i++) {
        query(index, queries, i, k, ids, values);
      }
      long bytes = Allocation.byCaller() - before;
      boolean missed = report("bytes allocated by " + RING + " queries", "", (double) bytes, 0);
      missed |= recorded("query", seconds, i -> query(index, queries, i, k, ids, values));
      missed |=
          recorded(
              "nearest",
              seconds,
              i -> engine.search(single[i], references, nearest, indices, values));
      Shape shape = batch.shape();
      missed |=
          report(
              "query: %s µs, over nearest: %s µs"
                  .formatted(number(times.first()), number(times.second())),
              "",
              times.ratio(),
              shape.size() >= LARGE ? WANTED_RATIO_LARGE : WANTED_RATIO);
      missed |= within(index, engine, references, single, seconds);
      return missed;
    }
  }

  /** A search of all within a radius, over within on the prepared batch. */
  private static boolean within(
      KlIndex index,
      KlEngine engine,
      DiagonalGaussians references,
      DiagonalGaussians[] queries,
      int seconds) {
    int count = Math.max(1, (int) (WITHIN_SHARE * references.size()));
    Query[] within = new Query[WITHIN_RING];
    for (int i = 0; i < WITHIN_RING; i++) {
      float[] all = engine.pairwise(queries[i], references);
      Arrays.sort(all);
      within[i] = Query.within(0.5 * ((double) all[count - 1] + all[count]));
      long[] ids = index.search(queries[i], within[i]).ids();
      int[] indices = engine.search(queries[i], references, within[i]).indices();
      if (!Arrays.equals(ids, Arrays.stream(indices).asLongStream().toArray())) {
        throw new Agreement.Disagreement(
            "query %d: the index finds %d within, the engine %d, or others"
                .formatted(i, ids.length, indices.length));
      }
    }
    IntConsumer ofIndex = i -> index.search(queries[i], within[i]);
    IntConsumer ofEngine = i -> engine.search(queries[i], references, within[i]);
    Times.of(WITHIN_RING, WARMUP_SECONDS, ofIndex, ofEngine);
    Times times = Times.of(WITHIN_RING, seconds, ofIndex, ofEngine);
    return report(
        "within, %d found: %s µs, over within: %s µs"
            .formatted(count, number(times.first()), number(times.second())),
        "",
        times.ratio(),
        references.size() >= LARGE ? WANTED_WITHIN : Double.POSITIVE_INFINITY);
  }

  /** Median times of two calls that alternate, in µs, and the median of the quotients of their rounds. */
  private record Times(double first, double second, double ratio) {
    static Times of(int ring, double seconds, IntConsumer first, IntConsumer second) {
      double end = System.nanoTime() + seconds * 1e9;
      List<Double> ratios = new ArrayList<>();
      List<Double> firsts = new ArrayList<>();
      List<Double> others = new ArrayList<>();
      while (System.nanoTime() < end || ratios.size() < 3) {
        long a = System.nanoTime();
        for (int i = 0; i < ring; i++) {
          first.accept(i);
        }
        long b = System.nanoTime();
        for (int i = 0; i < ring; i++) {
          second.accept(i);
        }
        long c = System.nanoTime();
        ratios.add((double) (b - a) / (c - b));
        firsts.add((b - a) * 1e-3 / ring);
        others.add((c - b) * 1e-3 / ring);
      }
      return new Times(median(firsts), median(others), median(ratios));
    }
  }

  /** Calls while Flight Recorder records each of them, over calls without a recording. */
  private static boolean recorded(String what, int seconds, IntConsumer call) {
    List<Double> ratios = new ArrayList<>();
    double end = System.nanoTime() + seconds * 1e9;
    while (System.nanoTime() < end || ratios.size() < 3) {
      double off = round(call);
      try (Recording recording = new Recording()) {
        recording.enable("dev.kullback.Call").withoutThreshold();
        recording.enable("dev.kullback.IndexSearch").withoutThreshold();
        recording.start();
        ratios.add(round(call) / off);
      }
    }
    return report(
        what + " recorded by JFR, over not recorded", "", median(ratios), WANTED_RECORDED);
  }

  /** The median time of a call, after some that get over what starting or ending a recording left. */
  private static double round(IntConsumer call) {
    double[] times = new double[RECORDED_CALLS];
    for (int i = -RECORDED_CALLS; i < RECORDED_CALLS; i++) {
      long start = System.nanoTime();
      call.accept(Math.floorMod(i, RING));
      times[Math.max(0, i)] = System.nanoTime() - start;
    }
    return quantile(times, 0.5);
  }

  private static double median(List<Double> values) {
    return quantile(values.stream().mapToDouble(v -> v).toArray(), 0.5);
  }

  private static void warm(KlIndex index, Batch queries, int k) {
    long[] ids = new long[k];
    float[] values = new float[k];
    double end = System.nanoTime() + WARMUP_SECONDS * 1e9;
    for (int i = 0; System.nanoTime() < end; i = (i + 1) % RING) {
      query(index, queries, i, k, ids, values);
    }
  }

  private static void query(
      KlIndex index, Batch queries, int i, int k, long[] ids, float[] values) {
    int at = i * queries.shape().dimension();
    index.query(queries.mean(), at, queries.std(), at, k, ids, values);
  }

  /** The 99th percentile while references are replaced one by one and committed each second, over that without. */
  private static boolean replaced(KlIndex index, Batch batch, Batch queries, int k, int seconds)
      throws InterruptedException {
    double[] without = latencies(index, queries, k, seconds);
    AtomicBoolean end = new AtomicBoolean();
    int[] done = new int[2];
    Thread writer = Thread.ofPlatform().name("writer").start(() -> write(index, batch, end, done));
    double[] with;
    try {
      with = latencies(index, queries, k, seconds);
    } finally {
      end.set(true);
      writer.join();
    }
    System.err.println("replaced %d, committed %d times".formatted(done[0], done[1]));
    return report(
        "p99 while %d a second are replaced: %s µs, over without: %s µs (p50: %s, %s)"
            .formatted(
                done[0] / seconds,
                number(quantile(with, 0.99)),
                number(quantile(without, 0.99)),
                number(quantile(with, 0.5)),
                number(quantile(without, 0.5))),
        "",
        quantile(with, 0.99) / quantile(without, 0.99),
        WANTED_P99);
  }

  private static double[] latencies(KlIndex index, Batch queries, int k, int seconds) {
    List<Double> times = new ArrayList<>();
    long[] ids = new long[k];
    float[] values = new float[k];
    double end = System.nanoTime() + seconds * 1e9;
    for (int i = 0; System.nanoTime() < end; i = (i + 1) % RING) {
      long start = System.nanoTime();
      query(index, queries, i, k, ids, values);
      times.add((System.nanoTime() - start) * 1e-3);
    }
    return times.stream().mapToDouble(t -> t).toArray();
  }

  /** Replaces single references in the rhythm wanted, and commits each second. */
  private static void write(KlIndex index, Batch batch, AtomicBoolean end, int[] done) {
    SplittableRandom random = new SplittableRandom(3);
    long start = System.nanoTime();
    while (!end.get()) {
      int j = random.nextInt(batch.shape().size());
      int like = random.nextInt(batch.shape().size());
      index.replace(new long[] {j}, batch.rows(like, like + 1).gaussians());
      done[0]++;
      if (done[0] % REPLACED_A_SECOND == 0) {
        index.commit();
        done[1]++;
      }
      long due = start + done[0] * 1_000_000_000L / REPLACED_A_SECOND;
      while (System.nanoTime() < due && !end.get()) {
        LockSupport.parkNanos(
            due - System.nanoTime()); // waiting busily takes half of a core's threads
      }
    }
  }

  /** The first answer of new JVMs, and their heap. */
  private static boolean opened(Path folder, int dimension, int kind, int k) {
    double[] seconds = new double[5];
    double[] heap = new double[5];
    for (int r = 0; r < seconds.length; r++) {
      double[] figures =
          NewJvm.measure(Opened.class, folder.toString(), "" + dimension, "" + kind, "" + k);
      seconds[r] = figures[0];
      heap[r] = figures[1];
    }
    boolean missed =
        report("open to first answer in a new JVM", " s", quantile(seconds, 0.5), WANTED_OPEN);
    missed |= report("heap of an opened index", " MB", quantile(heap, 0.5), WANTED_HEAP);
    return missed;
  }

  /** A new JVM: prints the seconds from opening to the first answer, and the heap in MB. */
  static final class Opened {
    private Opened() {}

    @SuppressWarnings("SystemGc")
    public static void main(String[] args) {
      Batch query = queries(Integer.parseInt(args[1]), Integer.parseInt(args[2]));
      int k = Integer.parseInt(args[3]);
      long[] ids = new long[k];
      float[] values = new float[k];
      long start = System.nanoTime();
      try (KlIndex index = KlIndex.open(Path.of(args[0]))) {
        query(index, query, 0, k, ids, values);
        double seconds = (System.nanoTime() - start) * 1e-9;
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        double heap = (runtime.totalMemory() - runtime.freeMemory()) * 1e-6;
        System.out.println(seconds + " " + heap);
      }
    }
  }
}
