package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Kernels;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.ThisThread;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/**
 * Runs every operation of an engine, the searches of an index and the operations on mixtures, until the VM has compiled it, and compares each result with the plain implementation, {@link PairKl}
 * and {@link FullPair}, in double. The compiled vector code depends on the processor and on the VM's build, so it is known only where it
 * was tried.
 */
public final class Verify {
  /**
   * Rows, columns and dimension, with tails of the tiles of every width and several chunks; the last has several blocks of columns. All
   * operations take the first.
   */
  static final int[][] SHAPES = {
    {7, 7, 33},
    {1, 1, 2},
    {17, 6, 64},
    {1, 67, 7},
    {18, 18, 129},
    {5, 19, 3},
    {12, 12, 5},
    {9, 33, 300},
    {3, 4200, 5},
  };

  /**
   * The same of an index, which is read in panels of 16 rows and codes of 32, from 256 rows and 8 dimensions on: the first has codes, of
   * which a sample is read first. The last has queries enough for tiles.
   */
  private static final int[][] INDEX_SHAPES = {
    {2, 700, 24},
    {1, 1, 2},
    {1, 67, 7},
    {5, 19, 3},
    {3, 40, 33},
    {2, 50, 65},
    {7, 17, 16},
    {34, 17, 11},
  };

  /** Rounds over all kinds and shapes; the second finds compiled what the first ran interpreted. */
  private static final int ROUNDS = 2;

  /** Dimension that the vector kernels are first compiled for. */
  private static final int DIMENSION = 64;

  /** One call in {@value} has batches made anew, which are packed elsewhere than those that are kept. */
  private static final int CALLS_A_FRESH_ONE = 8;

  /**
   * Small cases after which an operation has had as many calls as it needs, all kinds in several shapes: later cases get a few. HotTest's process
   * makes 450,000 calls so, 10,600 and more of each operation, and otherwise 1,060,000 in 94 s of processor time; 370,000 took 61 (Zen 4). Mixtures of
   * low-rank components, which are written out, are small cases in few dimensions alone: 71 s instead of 121 on a busy Xeon with AMX.
   */
  private static final int CASES_OF_MANY_CALLS = 50;

  /** Shapes on which the bytes of warm calls are counted, one with tails of every width and one of few dimensions. */
  private static final int[][] WARM_SHAPES = {{18, 18, 129}, {5, 19, 3}};

  /** The same of an index, with codes. */
  private static final int[][] WARM_INDEX_SHAPES = {{2, 700, 24}};

  /** Calls between two readings of the count. */
  private static final int WINDOW = 10;

  /** Part of the time in which vectors may take over, at most. */
  private static final double WAITING = 0.5;

  /** Part of the time for warm calls. */
  private static final double WARM = 0.25;

  private final Engine engine;
  private final int[][] shapes;
  private final long least;

  /** Windows of calls whose bytes are counted, at least, where none allocated nothing. */
  private final long leastWindows;

  private final boolean hasIndex;

  private final List<Figures> figures = Operation.ALL.stream().map(Figures::new).toList();
  private final Result result = new Result();
  private final Result first = new Result();

  /** Findings about one operation. */
  private static final class Figures {
    final Operation operation;
    long calls;
    long entries;

    /** Greatest error relative to the allowed one. */
    double worst;

    /** Bytes that a warm call allocates, or −1. */
    long bytes = -1;

    /** Description of the first wrong result. */
    String wrong = "";

    Figures(Operation operation) {
      this.operation = operation;
    }

    void note(Case c, String what) {
      if (wrong.isEmpty()) {
        wrong = c + ": " + what;
      }
    }
  }

  /** Whether only the first shapes are tried whatever the time. */
  private final boolean isLimited;

  private Verify(Engine engine, int[][] shapes, long least, long leastWindows, boolean isLimited) {
    this.engine = engine;
    this.shapes = shapes;
    this.least = least;
    this.leastWindows = leastWindows;
    this.isLimited = isLimited;
    hasIndex = hasIndex(engine);
  }

  /**
   * Whether an index is tried with this engine: it knows KL alone, and takes vectors wherever they run, so an engine that was asked to go without
   * them says nothing about it.
   */
  private static boolean hasIndex(Engine engine) {
    boolean isAlike =
        switch (engine.backend()) {
          case VECTOR -> true;
          case SCALAR -> !Kernels.mayHaveVectors();
          default -> false;
        };
    return isAlike && engine.formula() == Kl.FORWARD;
  }

  /** Tries every operation with each kind of batches, twice, and then with as many more as the time allows. */
  public static Findings run(Engine engine, long nanos) {
    return new Verify(engine, SHAPES, 2, 0, true).run(nanos);
  }

  /**
   * Tries every operation on all of these shapes.
   *
   * @param least number of calls of an operation with the batches of each of the first small shapes; with larger ones it is two
   * @param windows number of windows of {@value #WINDOW} calls whose bytes are counted, where the fewest are not 0 before
   */
  static Findings run(Engine engine, int[][] shapes, long nanos, long least, long windows) {
    return new Verify(engine, shapes, least, windows, false).run(nanos);
  }

  private Findings run(long nanos) {
    long start = System.nanoTime();
    engine.awaitVectors(DIMENSION, isLimited ? (long) (WAITING * nanos) : Long.MAX_VALUE);
    List<Supplier<Case>> cases = new ArrayList<>();
    int needed = 0;
    for (int round = 0; round < ROUNDS; round++) {
      for (int turn = 0; turn < Math.max(shapes.length, INDEX_SHAPES.length); turn++) {
        for (Kind kind : Kind.ALL) {
          cases.addAll(cases(kind, shapes, INDEX_SHAPES, turn, round));
        }
        needed = isLimited && needed > 0 ? needed : cases.size();
      }
    }
    long slices = (long) cases.size() * figures.size();
    long slice = 0;
    long last = start + (long) ((1 - WARM) * nanos);
    int tried = 0;
    while (tried < needed || (tried < cases.size() && System.nanoTime() < last)) {
      try (Case c = cases.get(tried++).get()) {
        for (Figures f : figures) {
          long end = start + (long) ((1 - WARM) * nanos * ++slice / slices);
          if (f.operation.takes().test(c)) {
            tryOut(f, c, end);
          }
        }
      }
    }
    countBytes(start, nanos);
    List<Finding> found =
        figures.stream()
            .filter(f -> f.calls > 0)
            .map(
                f -> new Finding(f.operation.name(), f.calls, f.entries, f.worst, f.bytes, f.wrong))
            .toList();
    return new Findings(found, tried, cases.size());
  }

  /** Returns the cases of a kind with the shapes whose turn it is, of which there may be none. */
  private List<Supplier<Case>> cases(
      Kind kind, int[][] shapes, int[][] ofIndex, int turn, int round) {
    List<Supplier<Case>> cases = new ArrayList<>();
    boolean isLowRank = kind.isLowRank();
    boolean isTaken = engine.formula().hasLowRank() && engine.backend() != Platform.Choice.CUDA;
    if (isLowRank && !isTaken) {
      return cases;
    }
    Case.Scales scales = Case.Scales.inTurn(kind, turn + round, round);
    if (turn < shapes.length) {
      cases.add(
          () -> new Case(engine.formula(), kind, scales, shapes[turn], round % 2 == 1, round, 0));
    }
    if (turn < ofIndex.length && hasIndex && kind.isDiagonal()) {
      int threads = engine.threads();
      cases.add(() ->
          new Case(engine.formula(), kind, scales, ofIndex[turn], round % 2 == 1, round, threads));
    }
    return cases;
  }

  private void tryOut(Figures f, Case c, long end) {
    Expected expected = f.operation.expected().apply(c);
    boolean isOften = f.calls >= CASES_OF_MANY_CALLS * least;
    boolean isSmall = f.operation.isSmall(c);
    long calls = Math.min(isSmall ? isOften ? CALLS_A_FRESH_ONE : least : 2, least);
    long n = 0;
    do {
      engine.checkOpen();
      Checkpoint.checkInterrupt(Thread.currentThread());
      boolean fresh = n % CALLS_A_FRESH_ONE == CALLS_A_FRESH_ONE - 1;
      Batch q = fresh ? c.makeQ.get() : c.q;
      Batch p = c.isSelf ? q : fresh ? c.makeP.get() : c.p;
      result.clear(expected);
      f.operation.call().run(engine, q, p, c, result);
      if (n == 0) {
        compare(f, expected, c, n);
        first.set(result);
      } else if (!result.isSame(first)) {
        compare(f, expected, c, n);
        f.note(c, "call %d differs from the first".formatted(n));
      }
      n++;
      f.entries += Math.max(expected.values().length, expected.indices().length);
    } while (n < calls || (System.nanoTime() < end && f.wrong.isEmpty()));
    f.calls += n;
  }

  /**
   * Counts what warm calls allocate, on each kind of batches, until none allocates or the time is up. C2 may box vectors that it could keep
   * in registers: no result tells of it, but the bytes do. A small method that few kinds of batches reach waits for C2 longest, and its
   * vectors are boxed until then: {@code FullSolveKernel.addLow} for more than 230 calls in a quarter of all processes.
   */
  private void countBytes(long start, long nanos) {
    if (ThisThread.allocatedBytes() < 0) {
      return;
    }
    List<Case> cases = new ArrayList<>();
    try {
      for (Kind kind : Kind.ALL) {
        for (int turn = 0; turn < WARM_SHAPES.length; turn++) {
          for (Supplier<Case> made : cases(kind, WARM_SHAPES, WARM_INDEX_SHAPES, turn, 0)) {
            cases.add(made.get());
          }
        }
      }
      countBytes(cases, start, nanos);
    } finally {
      cases.forEach(Case::close);
    }
  }

  private void countBytes(List<Case> cases, long start, long nanos) {
    List<Warm> all = new ArrayList<>();
    for (Case c : cases) {
      for (Figures f : figures) {
        if (!Operation.MAKERS.contains(f.operation.name()) && f.operation.takes().test(c)) {
          all.add(new Warm(f, c));
        }
      }
    }
    Deque<Warm> turns = new ArrayDeque<>(all);
    while (!turns.isEmpty()) {
      Warm next = turns.remove();
      if (next.windows > leastWindows && System.nanoTime() - start >= nanos) {
        break;
      }
      next.run();
      if (next.fewest > 0) {
        turns.add(next);
      }
    }
    for (Warm warm : all) {
      warm.figures.bytes = Math.max(warm.figures.bytes, warm.fewest);
    }
  }

  /** One operation on one pair of batches, and the fewest bytes that a call has allocated. */
  private final class Warm {
    final Figures figures;
    final Case c;
    final Expected expected;
    long fewest = Long.MAX_VALUE;
    int windows;

    Warm(Figures figures, Case c) {
      this.figures = figures;
      this.c = c;
      expected = figures.operation.expected().apply(c);
    }

    /**
     * Counts the bytes of some calls, and compares the result of the last, which compiled code gives where none are counted. The first window has one call, which packs the batches, and so has the second, in which the code may
     * still be interpreted and box all vectors.
     */
    void run() {
      engine.checkOpen();
      Checkpoint.checkInterrupt(Thread.currentThread());
      result.clear(expected);
      int calls = windows++ < 2 ? 1 : WINDOW;
      long before = ThisThread.allocatedBytes();
      for (int i = 0; i < calls; i++) {
        figures.operation.call().run(engine, c.q, c.p, c, result);
      }
      fewest = Math.min(fewest, (ThisThread.allocatedBytes() - before) / calls);
      compare(figures, expected, c, figures.calls);
      figures.calls++;
      figures.entries += Math.max(expected.values().length, expected.indices().length);
    }
  }

  private void compare(Figures f, Expected expected, Case c, long call) {
    if (result.values.length != expected.values().length
        || !Arrays.equals(result.indices, expected.indices())) {
      f.worst = Double.POSITIVE_INFINITY;
      int at = Arrays.mismatch(result.indices, expected.indices());
      f.note(c, "call %d: index %d differs".formatted(call, at));
      return;
    }
    for (int k = 0; k < expected.values().length; k++) {
      double ratio = expected.error(result, k);
      f.worst = Math.max(f.worst, ratio);
      if (ratio > 1) {
        f.note(
            c,
            "call %d: entry %d is %s instead of %s"
                .formatted(call, k, result.values[k], expected.values()[k]));
      }
    }
  }
}
