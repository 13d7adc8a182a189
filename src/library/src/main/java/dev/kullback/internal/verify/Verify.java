package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Runs every operation of an engine until the VM has compiled it, and compares what comes out, each time, with the plain text of the
 * mathematics, {@link PairKl} and {@link FullPair}, in double. What a compiler makes of vector code depends on the processor and
 * on the VM's build, so it is known only where it was tried.
 */
public final class Verify {
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

  /** The second finds compiled what the first was interpreted in. */
  private static final int ROUNDS = 2;

  /** Of what the vector kernels are first compiled for. */
  private static final int DIMENSION = 64;

  /** Of so many calls one has batches made anew, which are packed elsewhere than those that are kept. */
  private static final int CALLS_A_FRESH_ONE = 8;

  /** Shapes on which warm calls are asked what they allocate: with tails of every width, and of few dimensions. */
  private static final int[][] WARM_SHAPES = {{18, 18, 129}, {5, 19, 3}};

  /** Calls between two readings of the count. */
  private static final int WINDOW = 10;

  /** The part of the time that is left to warm calls. */
  private static final double WARM = 0.25;

  /** What becomes of an operation's figures. */
  public interface Report<T> {
    T of(String name, long calls, long entries, double worst, long bytes, String wrong);
  }

  private final Engine engine;
  private final int[][] shapes;
  private final long least;

  // by operation
  private final long[] calls = new long[Operation.ALL.size()];
  private final long[] entries = new long[Operation.ALL.size()];
  private final double[] worst = new double[Operation.ALL.size()];
  private final long[] bytes = new long[Operation.ALL.size()];
  private final String[] wrong = new String[Operation.ALL.size()];

  private final Result result = new Result();
  private final Result first = new Result();

  private Verify(Engine engine, int[][] shapes, long least) {
    this.engine = engine;
    this.shapes = shapes;
    this.least = least;
    Arrays.fill(wrong, "");
  }

  /** Tries everything for about so long, and twice at least. */
  public static <T> List<T> run(Engine engine, long nanos, Report<T> report) {
    return run(engine, SHAPES, nanos, 2, report);
  }

  /**
   * Tries everything on these shapes.
   *
   * @param least calls of an operation with the batches of a small shape; two of a larger one
   */
  static <T> List<T> run(Engine engine, int[][] shapes, long nanos, long least, Report<T> report) {
    return new Verify(engine, shapes, least).run(nanos, report);
  }

  private <T> List<T> run(long nanos, Report<T> report) {
    engine.awaitVectors(DIMENSION);
    long start = System.nanoTime();
    int slices = ROUNDS * Kind.values().length * shapes.length * Operation.ALL.size();
    int slice = 0;
    for (int round = 0; round < ROUNDS; round++) {
      for (Kind kind : Kind.values()) {
        for (int turn = 0; turn < shapes.length; turn++) {
          Case c = new Case(kind, shapes[turn], turn + round, round);
          for (int o = 0; o < Operation.ALL.size(); o++) {
            long end = start + (long) ((1 - WARM) * nanos * ++slice / slices);
            Operation operation = Operation.ALL.get(o);
            if (!operation.isSquare() || (c.n == c.m && c.n > 1)) {
              tryOut(o, operation, c, end);
            }
          }
        }
      }
    }
    countBytes(start, nanos);
    return IntStream.range(0, Operation.ALL.size())
        .mapToObj(o ->
            report.of(
                Operation.ALL.get(o).name(), calls[o], entries[o], worst[o], bytes[o], wrong[o]))
        .toList();
  }

  private void tryOut(int o, Operation operation, Case c, long end) {
    Expected expected = operation.expected().apply(c);
    long calls = c.isSmall() ? least : Math.min(2, least);
    long n = 0;
    do {
      engine.checkOpen();
      Checkpoint.checkInterrupt(Thread.currentThread());
      boolean fresh = n % CALLS_A_FRESH_ONE == CALLS_A_FRESH_ONE - 1;
      Batch q = fresh ? c.makeQ.get() : c.q;
      Batch p = c.isSelf ? q : fresh ? c.makeP.get() : c.p;
      result.clear(expected);
      operation.call().run(engine, q, p, c, result);
      if (n == 0) {
        compare(o, expected, c, n);
        first.set(result);
      } else if (!result.isSame(first)) {
        compare(o, expected, c, n);
        note(o, "call %d differs from the first".formatted(n), c);
      }
      n++;
      entries[o] += Math.max(expected.values().length, expected.indices().length);
    } while (n < calls || (System.nanoTime() < end && wrong[o].isEmpty()));
    this.calls[o] += n;
  }

  /**
   * Counts what calls allocate that need not, on each kind of batches: again and again, until none does, or until the time is up. C2 may box vectors that it could keep in registers: no result tells of it, but the bytes do.
   */
  private void countBytes(long start, long nanos) {
    Arrays.fill(bytes, -1);
    if (AllocatedBytes.ofThread() < 0) {
      return;
    }
    List<Warm> all = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      for (int turn = 0; turn < WARM_SHAPES.length; turn++) {
        Case c = new Case(kind, WARM_SHAPES[turn], turn, 0);
        for (int o = 0; o < Operation.ALL.size(); o++) {
          Operation operation = Operation.ALL.get(o);
          if (!operation.isMaker() && (!operation.isSquare() || c.n == c.m)) {
            all.add(new Warm(o, c));
          }
        }
      }
    }
    Deque<Warm> turns = new ArrayDeque<>(all);
    while (!turns.isEmpty()) {
      Warm next = turns.remove();
      if (next.windows > 1 + least / WINDOW && System.nanoTime() - start >= nanos) {
        break;
      }
      next.run();
      if (next.fewest > 0) {
        turns.add(next);
      }
    }
    for (Warm warm : all) {
      bytes[warm.o] = Math.max(bytes[warm.o], warm.fewest);
    }
  }

  /** One operation on one pair of batches, and the fewest bytes that a call has allocated. */
  private final class Warm {
    final int o;
    final Case c;
    final Expected expected;
    long fewest = Long.MAX_VALUE;
    int windows;

    Warm(int o, Case c) {
      this.o = o;
      this.c = c;
      expected = operation().expected().apply(c);
    }

    Operation operation() {
      return Operation.ALL.get(o);
    }

    /**
     * Counts over some calls; at first over one, which packs the batches, and then over another, as these may be interpreted, boxing all
     * vectors.
     */
    void run() {
      engine.checkOpen();
      Checkpoint.checkInterrupt(Thread.currentThread());
      result.clear(expected);
      int calls = windows++ < 2 ? 1 : WINDOW;
      long before = AllocatedBytes.ofThread();
      for (int i = 0; i < calls; i++) {
        operation().call().run(engine, c.q, c.p, c, result);
      }
      fewest = Math.min(fewest, (AllocatedBytes.ofThread() - before) / calls);
    }
  }

  private void compare(int o, Expected expected, Case c, long call) {
    if (result.values.length != expected.values().length
        || !Arrays.equals(result.indices, expected.indices())) {
      worst[o] = Double.POSITIVE_INFINITY;
      int at = Arrays.mismatch(result.indices, expected.indices());
      note(o, "call %d: index %d differs".formatted(call, at), c);
      return;
    }
    for (int k = 0; k < expected.values().length; k++) {
      double error = Math.abs(result.values[k] - expected.values()[k]);
      double ratio =
          result.values[k] == expected.values()[k]
              ? 0
              : Double.isNaN(error) ? Double.POSITIVE_INFINITY : error / expected.allowed()[k];
      worst[o] = Math.max(worst[o], ratio);
      if (ratio > 1) {
        note(
            o,
            "call %d: entry %d is %s instead of %s"
                .formatted(call, k, result.values[k], expected.values()[k]),
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
