package dev.kullback.spark;

import java.util.Locale;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/** Numbers of blocks into which the two inputs are cut. */
record Plan(int referenceBlocks, int queryBlocks) {
  /** Most queries of a task: with 500,000 references of D = 32, a task takes some 20 s. */
  private static final int MOST_QUERIES = 16_384;

  /** Least queries that are worth a task. */
  private static final int LEAST_QUERIES = 256;

  /** Tasks planned for each processor, so that the last ones of a job leave few processors idle. */
  private static final int TASKS_PER_PROCESSOR = 4;

  /** Most elements of a batch's arrays, rounded up to the library's panels. */
  private static final long MOST_ELEMENTS = 1L << 28;

  /**
   * What a cluster has.
   *
   * @param memory bytes of an executor's heap that Spark leaves to users' objects
   * @param tasks tasks that an executor runs at once
   * @param parallelism tasks that all run at once
   * @param driver bytes of the driver's heap
   */
  record Resources(double memory, int tasks, int parallelism, double driver) {
    static Resources of(SparkContext spark) {
      return new Resources(
          Plan.memory(spark),
          tasksAtOnce(spark),
          spark.defaultParallelism(),
          Runtime.getRuntime().maxMemory());
    }
  }

  /**
   * @param references how many there are, at least 1
   * @param queries how many there are, at least 1
   * @param blockRows references of a block; 0: as many as memory allows
   * @param broadcast whether the references are one block, which the driver sends
   * @param kept bytes that a task keeps for each query besides its Gaussian
   * @throws IllegalArgumentException if a block as it is asked for does not fit, or there would be too many tasks
   */
  static Plan of(
      Resources resources,
      Input input,
      long references,
      long queries,
      long blockRows,
      boolean broadcast,
      long kept) {
    double memory = resources.memory;
    double row = rowBytes(input);
    double mostRows = MOST_ELEMENTS / (double) input.scaleLength();
    int tasks = resources.tasks;
    if (broadcast) {
      checkFits("broadcast()", references, row, memory);
      double sent = references * rawBytes(input);
      if (2 * sent > resources.driver) {
        throw new IllegalArgumentException(
            String.format(
                Locale.ROOT,
                "broadcast(): %,d references take %s on the driver, twice, of whose heap of %s; raise spark.driver.memory, or do without broadcast()",
                references,
                mebibytes(sent),
                mebibytes(resources.driver)));
      }
    } else if (blockRows > 0) {
      checkFits(
          String.format(Locale.ROOT, "blockRows(%,d)", blockRows),
          Math.min(blockRows, references),
          row,
          memory);
    }
    // The queries of all tasks that run at once take a quarter of the memory.
    double queriesFitting = Math.min(memory / 4 / tasks / (row + kept), mostRows);
    long mostQueries = Math.clamp((long) queriesFitting, 1, MOST_QUERIES);
    long leastBlocks = Math.ceilDiv(queries, mostQueries);

    // The blocks of references in use take half of the memory: where queries are few, neighboring
    // tasks are of different
    // blocks.
    long inUse = Math.ceilDiv(resources.parallelism, leastBlocks) + 1;
    long blocks = Math.clamp(inUse, 2, Math.max(2, tasks));
    double fitting = Math.min(memory / 2 / blocks / row, mostRows);
    long referenceRows =
        broadcast ? references : blockRows > 0 ? blockRows : Math.max(1, (long) fitting);
    long referenceBlocks = Math.ceilDiv(references, referenceRows);

    long wantedTasks = (long) TASKS_PER_PROCESSOR * resources.parallelism;
    long wanted =
        Math.min(Math.ceilDiv(wantedTasks, referenceBlocks), Math.ceilDiv(queries, LEAST_QUERIES));
    long queryBlocks = Math.max(wanted, leastBlocks);
    if (referenceBlocks * (double) queryBlocks > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "%d blocks of references by %d of queries are more tasks than Spark counts; give executors more memory, or a larger blockRows"
              .formatted(referenceBlocks, queryBlocks));
    }
    return new Plan((int) referenceBlocks, (int) queryBlocks);
  }

  /** Refuses a block that an executor could not hold, which would fail after the shuffle of both inputs. */
  private static void checkFits(String setting, long rows, double row, double memory) {
    if (rows * row > memory) {
      throw new IllegalArgumentException(
          String.format(
              Locale.ROOT,
              "%s: a block of %,d references takes up to %s, %d bytes each; executors have %s for it. Raise spark.executor.memory, lower spark.memory.fraction, or give blocks of %,d rows",
              setting,
              rows,
              mebibytes(rows * row),
              (long) row,
              mebibytes(memory),
              Math.max(1, (long) (memory / 4 / row))));
    }
  }

  private static String mebibytes(double bytes) {
    return String.format(Locale.ROOT, "%,d MB", (long) (bytes / (1 << 20)));
  }

  /** Returns the bytes of an executor's heap that Spark leaves to users' objects. */
  static double memory(SparkContext spark) {
    SparkConf conf = spark.getConf();
    long heap =
        spark.isLocal()
            ? Runtime.getRuntime().maxMemory()
            : conf.getSizeAsMb("spark.executor.memory", "1g") << 20;
    return heap * (1 - conf.getDouble("spark.memory.fraction", 0.6));
  }

  private static int tasksAtOnce(SparkContext spark) {
    SparkConf conf = spark.getConf();
    // The number of cores, if it is not set, is one on some clusters, and all of a worker's on
    // others.
    int executors = Math.max(1, spark.getExecutorMemoryStatus().size() - 1); // less the driver
    int cores =
        spark.isLocal()
            ? spark.defaultParallelism()
            : conf.getInt(
                "spark.executor.cores", Math.ceilDiv(spark.defaultParallelism(), executors));
    return Math.max(1, cores / conf.getInt("spark.task.cpus", 1));
  }

  /**
   * Most bytes of a prepared Gaussian and of its row while it is read. Not asked of the library, as that makes fewer forms in a driver
   * without the Vector API than in executors that have it; a test compares the two.
   */
  static double rowBytes(Input input) {
    double d = input.dimension();
    double prepared =
        input.columns().kind().isFull()
            ? 8 * d * (d + 3) + (input.isDouble() ? 8 : 4) * d * (d + 1) + 64
            : (input.isDouble() ? 40 : 56) * d + 96;
    return prepared + rawBytes(input);
  }

  /** Bytes of a row's arrays. */
  private static double rawBytes(Input input) {
    return (input.dimension() + input.scaleLength()) * (input.isDouble() ? 8.0 : 4.0);
  }
}
