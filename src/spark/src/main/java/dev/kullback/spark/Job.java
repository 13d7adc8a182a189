package dev.kullback.spark;

import static org.apache.spark.sql.functions.col;

import dev.kullback.Divergence;
import dev.kullback.KlEngine;
import java.io.Serializable;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.DoubleAccumulator;

/**
 * A search: both inputs in blocks, and a task for each pair of blocks.
 *
 * <p>Tasks are those of {@code cartesian}, in the order of the blocks of references, which moves no rows by itself: a task
 * reads its block of queries, and its block of references if its executor has not got it. A hash of the id says in which
 * block a row is, so blocks do not depend on partitions, and equal ids meet.
 */
final class Job {
  private final SparkSession session;
  private final JavaSparkContext spark;
  private final Dataset<Row> references;
  private final Dataset<Row> queries;
  private final String divergence;
  private final DoubleAccumulator done;
  private final Identified referenceIds;
  private final Identified queryIds;
  private final Input referenceInput;
  private final Input queryInput;
  private final long referenceCount;
  private final long queryCount;

  /**
   * Reads what both inputs have in common.
   *
   * @throws IllegalArgumentException if there are no references, or an input lacks a column or has one of another type
   */
  Job(Dataset<Row> references, Dataset<Row> queries, Columns columns, Divergence divergence) {
    this.divergence = divergence.name();
    String side = queries == references ? "references" : "queries";
    Columns.Found p = columns.in(references, "references");
    Columns.Found q = queries == references ? p : columns.in(queries, side);
    boolean isDouble = p.isDouble() || q.isDouble();
    spark = new JavaSparkContext(queries.sparkSession().sparkContext());
    session = (SparkSession) queries.sparkSession();
    referenceIds = Identified.of(p, isDouble, new Input("references", columns, isDouble, 0, ""));
    queryIds =
        queries == references
            ? referenceIds
            : Identified.of(q, isDouble, new Input(side, columns, isDouble, 0, ""));
    this.references = referenceIds.rows();
    this.queries = queryIds.rows();
    done = spark.sc().doubleAccumulator("Kullback: pairs done");
    try (var _ = new Described(spark, "Kullback: counting rows")) {
      referenceCount = this.references.count();
      if (referenceCount == 0) {
        throw new IllegalArgumentException("references: there are no rows");
      }
      queryCount = queries == references ? referenceCount : this.queries.count();
      Row first = firstOf(this.references, columns);
      int dimension = first.getInt(1);
      String measured = Input.label(first.getString(0)) + " of the references";
      referenceInput = new Input("references", columns, isDouble, dimension, measured);
      queryInput = new Input(side, columns, isDouble, dimension, measured);
    }
  }

  /** The id's text and the dimension of some row of the references. */
  private static Row firstOf(Dataset<Row> references, Columns columns) {
    boolean isLabeled = references.columns().length > Columns.LABEL;
    List<Row> rows =
        references
            .where(col("id").isNotNull().and(col("mean").isNotNull()))
            .select(col(isLabeled ? "label" : "id").cast("string"), functions.size(col("mean")))
            .limit(1)
            .collectAsList();
    if (rows.isEmpty()) {
      throw new IllegalArgumentException(
          "references: no row has an id and a mean, in columns %s and %s"
              .formatted(columns.id(), columns.mean()));
    }
    Row first = rows.getFirst();
    if (first.getInt(1) == 0) {
      throw new IllegalArgumentException(
          "references: id %s: column %s is an empty array"
              .formatted(first.getString(0), columns.mean()));
    }
    return first;
  }

  long referenceCount() {
    return referenceCount;
  }

  /** Searches a block of references for a block of queries, neither of them empty: one task's work. */
  interface Search<R> extends Serializable {
    Iterator<R> of(KlEngine engine, Shared.Loaded q, Shared.Loaded p);
  }

  /**
   * Prepares a search under a name that Spark's user interface shows for the jobs and the stages that it makes.
   *
   * @param what the search does
   */
  KlNeighbors.Prepared described(Plan plan, String what, Supplier<Dataset<Row>> search) {
    String text =
        String.format(
            Locale.ROOT,
            "Kullback: %s, %d × %d blocks of %,d × %,d",
            what,
            plan.queryBlocks(),
            plan.referenceBlocks(),
            Math.ceilDiv(queryCount, plan.queryBlocks()),
            Math.ceilDiv(referenceCount, plan.referenceBlocks()));
    try (var _ = new Described(spark, text)) {
      return new KlNeighbors.Prepared(
          search.get(), text, (double) queryCount * referenceCount, done);
    }
  }

  /** Returns what the search finds for each pair of blocks of the plan. */
  <R> JavaRDD<R> search(Plan plan, boolean broadcast, Search<R> search) {
    JavaRDD<BlockReader> q = blocks(queries, queryInput, queryCount, plan.queryBlocks());
    JavaRDD<BlockReader> p =
        blocks(references, referenceInput, referenceCount, plan.referenceBlocks());
    Task task = new Task(UUID.randomUUID().toString(), divergence, done);
    if (broadcast) {
      Broadcast<Object[]> block = spark.broadcast(p.map(reader -> reader.read().arrays()).first());
      Input input = referenceInput;
      return q.flatMap(reader -> task.of(search, reader, 0, () -> Block.of(input, block.value())));
    }
    return p.cartesian(q).flatMap(pair -> task.of(search, pair._2, pair._1.index(), pair._1::read));
  }

  /**
   * What all tasks of a search have in common.
   *
   * @param search its name
   * @param divergence its name
   * @param done counts pairs
   */
  private record Task(String search, String divergence, DoubleAccumulator done)
      implements Serializable {
    /** Searches a block of references for one of queries, and counts its pairs. */
    <R> Iterator<R> of(Search<R> work, BlockReader queries, int block, Supplier<Block> references) {
      TaskContext task = TaskContext.get();
      Shared.Loaded q = Shared.Loaded.of(queries.read(), search);
      if (q.isEmpty()) {
        return Collections.emptyIterator();
      }
      Shared.Loaded p =
          Shared.block(
              new Shared.Key(search, block),
              () -> Shared.Loaded.of(references.get(), search),
              task);
      if (p.isEmpty()) {
        return Collections.emptyIterator();
      }
      Iterator<R> found = work.of(Shared.engine(task, divergence), q, p);
      done.add((double) q.ids().length * p.ids().length);
      return found;
    }
  }

  /** A reader of each block; the rows are shuffled to it at once. */
  private static JavaRDD<BlockReader> blocks(Dataset<Row> rows, Input input, long count, int n) {
    double mean = (double) count / n;
    int expected =
        (int) Math.min((double) count, mean + 4 * Math.sqrt(mean)); // as a hash fills them
    return rows.repartition(n, col("id"))
        .sortWithinPartitions("id")
        .queryExecution()
        .toRdd()
        .toJavaRDD()
        .mapPartitionsWithIndex(
            (index, partition) ->
                List.of(new BlockReader(input, index, partition, expected)).iterator(),
            true);
  }

  /** Plans the blocks of both inputs; see {@link Plan#of}. */
  Plan plan(int blockRows, boolean broadcast, long kept) {
    return Plan.of(
        Plan.Resources.of(spark.sc()),
        referenceInput,
        referenceCount,
        Math.max(1, queryCount),
        blockRows,
        broadcast,
        kept);
  }

  /** The result as a dataset, with ids of queries in the column id and of references in the column neighbor. */
  Dataset<Row> result(JavaRDD<InternalRow> rows, StructType schema) {
    Dataset<Row> result =
        queryIds.restored(session.internalCreateDataFrame(rows.rdd(), schema, false), "id");
    return List.of(schema.fieldNames()).contains("neighbor")
        ? referenceIds.restored(result, "neighbor")
        : result;
  }
}
