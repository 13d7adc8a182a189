package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.row;

import dev.kullback.IndexStats;
import dev.kullback.KlIndex;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/** What an index of some size takes: queries a second of one thread, and memory, also while all references are replaced and merged. */
final class Sizing {
  private static final String USAGE =
      """
      Fills indexes of several sizes in a temporary folder, and measures for each the queries of the 10 nearest that one
      thread answers in a second, the memory of the index, and the most that it takes while every reference is replaced
      once, with a commit each 10,000, and segments are merged.
        --seconds S      time for the queries of each size (default 5)
        --elements E     most references times dimensions (default 40000000; 1 GB of memory and disk)
      Exit status: 0, or 2 for wrong usage.
      """;

  private static final int[] REFERENCES = {10_000, 100_000, 1_000_000};
  private static final int[] DIMENSIONS = {32, 128, 512};

  /** References that are added at once, or replaced before a commit. */
  private static final int BLOCK = 10_000;

  private static final int K = 10;
  private static final int RING = 64;
  private static final double MB = 1e6;

  private Sizing() {}

  public static void main(String[] args) {
    Command.run(
        "sizing",
        USAGE,
        Map.of("--seconds", 5, "--elements", 40_000_000),
        args,
        options -> {
          System.out.println(Report.conditions(1, "k = " + K));
          header(
              "references",
              "D",
              "queries a second and thread",
              "MB in files",
              "MB of them and outside the heap, at most, while all are replaced",
              "MB on the heap then");
          for (int references : REFERENCES) {
            for (int dimension : DIMENSIONS) {
              if ((long) references * dimension <= options.get("--elements")) {
                measure(new Shape(references, dimension), options.get("--seconds"));
              }
            }
          }
          return false;
        });
  }

  private static void measure(Shape shape, int seconds) {
    try {
      measure(shape, seconds, TempFolder.create("sizing").resolve("index"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void measure(Shape shape, int seconds, Path folder) {
    try (KlIndex index = KlIndex.builder(shape.dimension()).open(folder)) {
      for (int from = 0; from < shape.size(); from += BLOCK) {
        index.add(ids(from), block(shape, from, Batch.P_SEED).gaussians());
      }
      index.commit();
      index.warmUp();
      double rate = rate(index, shape.dimension(), seconds);
      double files = index.stats().mappedBytes() / MB;
      AtomicLong heap = new AtomicLong();
      AtomicLong most = new AtomicLong();
      AtomicBoolean end = new AtomicBoolean();
      Thread watch =
          Thread.ofPlatform()
              .daemon()
              .start(() -> {
                while (!end.get()) {
                  IndexStats stats = index.stats();
                  most.accumulateAndGet(
                      Math.max(stats.mappedBytes(), mapped(folder)) + stats.nativeBytes(),
                      Math::max);
                  heap.accumulateAndGet(stats.heapBytes(), Math::max);
                  LockSupport.parkNanos(1_000_000);
                }
              });
      for (int from = 0; from < shape.size(); from += BLOCK) {
        index.replace(ids(from), block(shape, from, Batch.Q_SEED).gaussians());
        index.commit();
      }
      end.set(true);
      watch.join();
      row(
          "" + shape.size(),
          "" + shape.dimension(),
          number(rate),
          number(files),
          number(most.get() / MB),
          number(heap.get() / MB));
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Bytes of a folder's files that are mapped, by searches and merges that are not done with them, too; 0 where the system does not tell. */
  private static long mapped(Path folder) {
    Path maps = Path.of("/proc/self/maps");
    if (!Files.exists(maps)) {
      return 0;
    }
    try (Stream<String> lines = Files.lines(maps)) {
      return lines.filter(line -> line.contains(folder.toString())).mapToLong(Sizing::length).sum();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Bytes of a line's range, such as {@code 7f00-7f10}. */
  private static long length(String line) {
    int dash = line.indexOf('-');
    int to = line.indexOf(' ');
    return Long.parseUnsignedLong(line, dash + 1, to, 16)
        - Long.parseUnsignedLong(line, 0, dash, 16);
  }

  private static long[] ids(int from) {
    return LongStream.range(from, from + BLOCK).toArray();
  }

  private static Batch block(Shape shape, int from, long seed) {
    return Batch.ordinary(new Shape(BLOCK, shape.dimension()), seed + from);
  }

  private static double rate(KlIndex index, int dimension, int seconds) {
    Batch queries = Batch.ordinary(new Shape(RING, dimension), Batch.Q_SEED);
    long[] ids = new long[K];
    float[] values = new float[K];
    long start = System.nanoTime();
    int done = 0;
    double spent = 0;
    while (spent < seconds) {
      int at = done % RING * dimension;
      index.query(queries.mean(), at, queries.std(), at, K, ids, values);
      done++;
      spent = (System.nanoTime() - start) * 1e-9;
    }
    return done / spent;
  }
}
