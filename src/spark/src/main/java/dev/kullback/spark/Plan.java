package dev.kullback.spark;

import dev.kullback.Gaussians;
import java.lang.reflect.Array;
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

  private static final int SAMPLE_ELEMENTS = 1 << 20;

  /** Most elements of a batch's arrays, rounded up to the library's panels. */
  private static final long MOST_ELEMENTS = 1L << 28;

  /**
   * @param references how many there are, at least 1
   * @param queries how many there are, at least 1
   * @param blockRows references of a block; 0: as many as memory allows
   * @param kept bytes that a task keeps for each query besides its Gaussian
   */
  static Plan of(
      SparkContext spark, Input input, long references, long queries, long blockRows, long kept) {
    double memory = memory(spark);
    double row = rowBytes(input);
    double mostRows = MOST_ELEMENTS / (double) input.scaleLength();
    int tasks = tasksAtOnce(spark);
    // The queries of all tasks that run at once take a quarter of the memory.
    double queriesFitting = Math.min(memory / 4 / tasks / (row + kept), mostRows);
    long mostQueries = Math.clamp((long) queriesFitting, 1, MOST_QUERIES);
    long leastBlocks = Math.ceilDiv(queries, mostQueries);

    // The blocks of references in use take half of the memory: where queries are few, neighboring
    // tasks are of different
    // blocks.
    long inUse = Math.ceilDiv(spark.defaultParallelism(), leastBlocks) + 1;
    long blocks = Math.clamp(inUse, 2, Math.max(2, tasks));
    double fitting = Math.min(memory / 2 / blocks / row, mostRows);
    long referenceRows = blockRows > 0 ? blockRows : Math.max(1, (long) fitting);
    long referenceBlocks = Math.ceilDiv(references, referenceRows);

    long wantedTasks = (long) TASKS_PER_PROCESSOR * spark.defaultParallelism();
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

  /** Bytes of a prepared Gaussian and of its row while it is read: the library says it of a sample. */
  static double rowBytes(Input input) {
    int rows = Math.clamp(SAMPLE_ELEMENTS / input.scaleLength(), 1, 256);
    Object mean = input.array(rows * input.dimension());
    Object scale = input.array(rows * input.scaleLength());
    for (int i = 0; i < rows; i++) {
      for (int h = 0; h < input.dimension(); h++) {
        int at =
            i * input.scaleLength()
                + (input.scaleLength() == input.dimension() ? h : h * (input.dimension() + 1));
        Array.setFloat(scale, at, 1);
      }
    }
    Gaussians sample = input.batch(mean, scale);
    sample.prepare();
    double raw = (input.dimension() + input.scaleLength()) * (input.isDouble() ? 8.0 : 4.0);
    return (double) sample.memoryBytes() / rows + raw;
  }
}
