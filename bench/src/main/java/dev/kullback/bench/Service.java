package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.row;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.Query;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Measures what a service sees besides a query's own time: memory held by calls that are done, the first query that needs more, other virtual
 * threads.
 */
final class Service {
  private static final String USAGE =
      """
      Measures memory held by finished calls while a helper is busy, the first query near a reference after prepare(), and how
      long a trivial virtual thread waits beside a long call on each carrier.
        --references M   Gaussians to search (default 100000)
        --dimension D    (default 64)
      Exit status: 0, or 1 when a figure missed its limit, or 2 for wrong usage.
      """;

  private static final int CALLS = 60;

  /** Its matrix has 8 MiB. */
  private static final Shape SQUARE = new Shape(1448, 16);

  private static final double WANTED_HELD = 30;
  private static final double WANTED_GROWTH = 3;
  private static final double WANTED_RATIO = 2;
  private static final double WANTED_WAIT = 100;
  private static final int K = 10;
  private static final Query NEAREST = Query.nearest(K);
  private static final int QUERIES = 200;
  private static final int FIRSTS = 5;

  private Service() {}

  public static void main(String[] args) {
    Map<String, Integer> defaults = Map.of("--references", 100_000, "--dimension", 64);
    Command.run(
        "service",
        USAGE,
        defaults,
        args,
        options -> run(new Shape(options.get("--references"), options.get("--dimension"))));
  }

  private static boolean run(Shape shape) {
    System.out.println(Report.conditions(2));
    header("", "");
    Batch references = Batch.ordinary(shape, Batch.P_SEED);
    try {
      boolean missed = held();
      missed |= firstNear(references);
      missed |= waits(references);
      return missed;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static boolean report(String what, String unit, double value, double limit) {
    row(what, number(Math.max(value, 1e-3)) + unit);
    return Bound.AT_MOST.missed(what, value, limit);
  }

  /** Returns the heap's use after collections, in MB. */
  @SuppressWarnings("SystemGc")
  private static double used() throws InterruptedException {
    for (int k = 0; k < 3; k++) {
      System.gc();
      Thread.sleep(50);
    }
    Runtime runtime = Runtime.getRuntime();
    return (runtime.totalMemory() - runtime.freeMemory()) * 1e-6;
  }

  private static boolean held() throws InterruptedException {
    try (KlEngine engine = KlEngine.builder().threads(2).build()) {
      DiagonalGaussians q = Batch.ordinary(new Shape(64, 16), 1).gaussians();
      DiagonalGaussians p = Batch.ordinary(new Shape(8192, 16), 2).gaussians();
      CountDownLatch busy = new CountDownLatch(2); // caller and helper
      CountDownLatch end = new CountDownLatch(1);
      Thread holder =
          Thread.ofPlatform()
              .start(() ->
                  engine.forEachTile(
                      q,
                      p,
                      _ -> {
                        busy.countDown();
                        try {
                          end.await();
                        } catch (InterruptedException e) {
                          throw new CancellationException();
                        }
                      }));
      busy.await();
      DiagonalGaussians square = Batch.ordinary(SQUARE, 3).gaussians();
      engine.pairwise(square, square); // its own panels and scratch
      double before = used();
      for (int k = 0; k < CALLS; k++) {
        engine.pairwise(square, Batch.ordinary(SQUARE, k).gaussians());
      }
      double held = used() - before;
      end.countDown();
      holder.join();
      return report(
          "heap held by %d finished calls of 8 MiB".formatted(CALLS), " MB", held, WANTED_HELD);
    }
  }

  private static boolean firstNear(Batch batch) throws InterruptedException {
    int d = batch.shape().dimension();
    DiagonalGaussians references = batch.gaussians();
    references.prepare();
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.warmUp(1, batch.shape().size(), d);
      int[] indices = new int[K];
      float[] values = new float[K];
      double[] usual = new double[QUERIES];
      Batch queries = Batch.ordinary(new Shape(QUERIES, d), Batch.Q_SEED);
      for (int k = 0; k < QUERIES; k++) {
        usual[k] = seconds(engine, queries.rows(k, k + 1).gaussians(), references, indices, values);
      }
      boolean missed = false;
      for (int k = 0; k < FIRSTS; k++) {
        Batch one = batch.rows(k, k + 1);
        for (int h = 0; h < d; h++) {
          one.mean()[h] *= 1 + 1e-4f;
        }
        DiagonalGaussians query = one.gaussians();
        double before = used();
        double near = seconds(engine, query, references, indices, values);
        double growth = used() - before;
        if (indices[0] != k) {
          throw new Agreement.Disagreement("the nearest to reference " + k + " is " + indices[0]);
        }
        String which = k == 0 ? "first query near a reference" : "another";
        missed |= k == 0 && report(which + ": heap grown", " MB", growth, WANTED_GROWTH);
        double ratio = near / quantile(usual, 0.5);
        String what =
            "%s: %s ms over the usual %s"
                .formatted(which, number(near * 1e3), number(quantile(usual, 0.5) * 1e3));
        if (k == 0) {
          missed |= report(what, "", ratio, WANTED_RATIO);
        } else {
          row(what, number(ratio));
        }
      }
      return missed;
    }
  }

  private static double seconds(
      KlEngine engine, DiagonalGaussians q, DiagonalGaussians p, int[] indices, float[] values) {
    long start = System.nanoTime();
    engine.search(q, p, NEAREST, indices, values);
    return (System.nanoTime() - start) * 1e-9;
  }

  /** Runs one long call on each carrier, as long as the references' search among themselves, cut after some seconds. */
  private static boolean waits(Batch batch) throws InterruptedException {
    DiagonalGaussians references = batch.gaussians();
    int carriers = Runtime.getRuntime().availableProcessors();
    try (KlEngine engine = KlEngine.builder().build()) {
      AtomicInteger live = new AtomicInteger(carriers);
      List<Thread> calls = new ArrayList<>();
      for (int k = 0; k < carriers; k++) {
        calls.add(
            Thread.ofVirtual()
                .start(() -> {
                  try {
                    engine.nearest(references, references, K);
                  } catch (CancellationException e) {
                    live.decrementAndGet(); // cut
                  }
                }));
      }
      double most = 0;
      int tasks = 0;
      long end = System.nanoTime() + 10_000_000_000L;
      while (System.nanoTime() < end) {
        long start = System.nanoTime();
        Thread.ofVirtual().start(() -> {}).join();
        most = Math.max(most, (System.nanoTime() - start) * 1e-6);
        tasks++;
        Thread.sleep(2);
      }
      for (Thread call : calls) {
        call.interrupt();
        call.join();
      }
      if (live.get() != 0) {
        throw new Agreement.Disagreement("calls ended before the time; take more references");
      }
      return report(
          "longest wait of %d trivial virtual threads beside %d long calls"
              .formatted(tasks, carriers),
          " ms",
          most,
          WANTED_WAIT);
    }
  }
}
