package dev.kullback.testing;

import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.Divergence;
import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.kernel.Readiness;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.work.ThisThread;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;

/** Calls engines from the first call until vectors are compiled; BackgroundWarmUpTest runs it in virtual machines of its own. */
public final class BackgroundWarmUpProbe {
  private BackgroundWarmUpProbe() {}

  private static boolean isUnderWay() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.isDaemon() && thread.getName().equals("kullback-change-over"));
  }

  static void say(String what) {
    System.out.println(what + (isUnderWay() ? ": under way" : ": no thread"));
  }

  /** Has an engine and an index without the thread compute, and then an engine with it; prints whether the thread is there. */
  private static void build(DiagonalGaussians q, DiagonalGaussians p) {
    float[] matrix;
    try (KlEngine engine =
            KlEngine.builder().backend(Backend.VECTOR).backgroundWarmUp(false).build();
        KlIndex index = KlIndex.builder(p.dimension()).backgroundWarmUp(false).build()) {
      System.out.println(Readiness.isProven() ? "vectors" : "no vectors");
      matrix = engine.pairwise(q, p);
      engine.logSumExp(q, p);
      engine.warmUp(1, 1, p.dimension());
      say("engine without");
      index.add(LongStream.range(0, p.size()).toArray(), p);
      index.nearest(q, 3);
      say("index without");
    }
    firstBatch();
    try (KlEngine engine =
        KlEngine.builder().backend(Backend.VECTOR).backgroundWarmUp(true).build()) {
      System.out.println(Arrays.equals(matrix, engine.pairwise(q, p)) ? "same" : "different");
      say("engine with");
    }
  }

  /** Prints whether the first queries that share tiles box vectors after {@code warmUp} of an index without the thread. */
  private static void firstBatch() {
    int d = 64;
    int n = 4096;
    double[] means = new Random(2).doubles((long) n * d).toArray();
    double[] ones = new double[n * d];
    Arrays.fill(ones, 1);
    DiagonalGaussians references = DiagonalGaussians.ofStd(means, ones, d);
    DiagonalGaussians many =
        DiagonalGaussians.ofStd(Arrays.copyOf(means, 64 * d), Arrays.copyOf(ones, 64 * d), d);
    try (KlIndex index = KlIndex.builder(d).backgroundWarmUp(false).threads(1).build()) {
      index.add(LongStream.range(0, n).toArray(), references);
      index.warmUp();
      // boxed without the warm-up: 437 and 383 MB (AVX-512, CPU family 26)
      firstBatch("first batch", index, many, Query.nearest(3));
      Query reverse = Query.nearest(3).reverse();
      index.warmUpFor(reverse);
      firstBatch("first batch in reverse", index, many, reverse);
      Query dense = Query.nearest(3).byLogDensity();
      index.warmUpFor(dense);
      DiagonalGaussians points = DiagonalGaussians.ofPoints(Arrays.copyOf(means, 64 * d), d);
      firstBatch("first batch by density", index, points, dense);
    }
  }

  private static void firstBatch(
      String name, KlIndex index, DiagonalGaussians queries, Query query) {
    long before = ThisThread.allocatedBytes();
    index.search(queries, query);
    long bytes = ThisThread.allocatedBytes() - before;
    boolean isBoxed = before < 0 || bytes > 1 << 21;
    System.out.println(name + ": " + (isBoxed ? bytes + " bytes" : "no boxes"));
  }

  private static void say(String what, boolean isReady) {
    System.out.println(what + (isReady ? ": ready" : ": waits"));
  }

  /** Prints when engines and indexes are ready. */
  private static void ready(DiagonalGaussians q, DiagonalGaussians p) throws Exception {
    try (KlEngine scalar = Engines.on(Backend.SCALAR);
        KlEngine without = KlEngine.builder().backgroundWarmUp(false).build()) {
      scalar.ready().toCompletableFuture().get(0, TimeUnit.SECONDS);
      say("scalar", scalar.isReady());
      say("without the thread", without.isReady());
    }
    CompletableFuture<Void> never;
    KlIndex index = KlIndex.builder(p.dimension()).build();
    try (KlEngine engine = Engines.on(Backend.VECTOR);
        index) {
      say("engine", engine.isReady());
      say("index", index.isReady());
      DiagonalGaussians small = DiagonalGaussians.ofStd(new float[2], new float[] {1, 2}, 1);
      engine.pairwise(small, small); // whose vectors are compiled soonest
      engine.ready().toCompletableFuture().get();
      say("engine after its stage", engine.isReady());
      index.ready().toCompletableFuture().get();
      say("index after its stage", index.isReady());
    }
    KlEngine closed = KlEngine.builder().divergence(Divergence.JEFFREYS).build();
    try (closed) {
      Thread warming = Thread.ofPlatform().start(() -> closed.warmUp(q, p));
      while (warming.getState() != Thread.State.WAITING) { // for vectors
        Thread.onSpinWait();
      }
      say("while another warms up", closed.isReady());
      warming.join();
      say("warmed up", closed.isReady());
      try (KlEngine other = KlEngine.builder().divergence(Divergence.BHATTACHARYYA).build()) {
        never = other.ready().toCompletableFuture();
      }
    }
    say("closed engine", closed.isReady());
    say("closed index", index.isReady());
    Throwable cause = never.handle((_, e) -> e).join().getCause();
    System.out.println("closed: " + cause.getClass().getSimpleName());
    try {
      closed.ready();
    } catch (IllegalStateException e) {
      System.out.println("ready() of a closed one: " + e.getClass().getSimpleName());
    }
  }

  /**
   * Prints the most bytes an entry that the first calls of alike Gaussians allocate after ordinary ones have found an engine ready, whatever
   * states their scales.
   */
  private static void near() throws Exception {
    int d = 64;
    int n = 64;
    double[] mean = new double[n * d];
    double[] ones = new double[n * d];
    double[] near = new double[n * d];
    double[] logs = new double[n * d];
    Random random = new Random(1);
    for (int k = 0; k < n * d; k++) {
      mean[k] = random.nextGaussian();
      ones[k] = 1;
      near[k] = 1e-4 * random.nextGaussian();
      logs[k] = 1e-4 * random.nextGaussian();
    }
    DiagonalGaussians ordinary = DiagonalGaussians.ofStd(mean, ones, d);
    DiagonalGaussians q = DiagonalGaussians.ofStd(near, ones, d);
    DiagonalGaussians p = DiagonalGaussians.ofLogVariance(near, logs, d);
    DiagonalGaussians other = DiagonalGaussians.ofLogVariance(logs, near, d);
    double[] out = new double[n * n];
    for (Divergence divergence :
        new Divergence[] {Divergence.KL, Divergence.JEFFREYS, Divergence.BHATTACHARYYA}) {
      try (KlEngine engine =
          KlEngine.builder().backend(Backend.VECTOR).divergence(divergence).threads(1).build()) {
        engine.pairwise(ordinary, ordinary, out);
        engine.ready().toCompletableFuture().get();
        engine.pairwise(ordinary, ordinary, out);
        long most = 0;
        for (DiagonalGaussians first : new DiagonalGaussians[] {other, q}) {
          for (int call = 0; call < 5; call++) {
            long before = ThisThread.allocatedBytes();
            engine.pairwise(first, p, out);
            most = Math.max(most, ThisThread.allocatedBytes() - before);
          }
        }
        System.out.println(most / (n * n));
      }
    }
  }

  /**
   * Prints whether the thread is there, and whether results stay the same; or, given a second argument, what builders do, or what an engine of
   * the Wasserstein distance has waited for.
   */
  public static void main(String[] arguments) throws Exception {
    DiagonalGaussians q = Batch.random(false, 21, 33, 0, new Random(1)).gaussians();
    DiagonalGaussians p = Batch.random(false, 300, 33, 3, new Random(2)).gaussians();
    if (arguments.length > 1 && arguments[1].equals("BUILDERS")) {
      build(q, p);
      return;
    }
    if (arguments.length > 1 && arguments[1].equals("NEAR")) {
      near();
      return;
    }
    if (arguments.length > 1 && arguments[1].equals("READY")) {
      ready(q, p);
      return;
    }
    if (arguments.length > 1) {
      try (Engine engine = new Engine(Wasserstein2.SQUARED, Platform.Choice.VECTOR, 1, null)) {
        engine.awaitVectors(8, Long.MAX_VALUE);
      }
      Arrays.stream(KernelGroup.values())
          .filter(KernelGroup::isCompiled)
          .forEach(System.out::println);
      return;
    }
    Backend.AUTO.reason();
    say("describe");
    try (KlEngine scalar = Engines.on(Backend.SCALAR)) {
      scalar.pairwise(q, p);
      say("scalar");
    }
    try (KlEngine engine = Engines.on(Backend.VECTOR)) {
      say("engine");
      float[] matrix = engine.pairwise(q, p);
      double[] sums = engine.logSumExp(q, p);
      say("call");
      BooleanSupplier same =
          () ->
              Arrays.equals(matrix, engine.pairwise(q, p))
                  & Arrays.equals(sums, engine.logSumExp(q, p));
      boolean always = true;
      boolean last;
      int calls = 0;
      do {
        last = isUnderWay();
        always &= same.getAsBoolean();
        calls++;
      } while (last && calls < Integer.parseInt(arguments[0]));
      System.out.println(always ? "same" : "different");
      engine.warmUp(1, 1, 33);
      say("warmUp");
      System.out.println(same.getAsBoolean() ? "same" : "different");
    }
  }
}
