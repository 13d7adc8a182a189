package dev.kullback.spark;

import dev.kullback.Divergence;
import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.DoubleAccumulator;
import scala.Tuple2;

/**
 * Searches and sums of {@code KL(q_i ‖ p_j)}, in nats, between a dataset of queries q_i and one of references p_j, of any
 * size.
 *
 * <pre>
 * Dataset&lt;Row&gt; nearest = KlNeighbors.of(references).columns("id", "mean", "std").nearest(queries, 10);
 * </pre>
 *
 * <p>Both datasets have three columns of the same names: an id, which no other row of the dataset has; the mean, an array of
 * D numbers; and the scales, likewise. They are computed with as float if all four arrays are {@code array<float>}, and else as
 * double, with the accuracy that {@link dev.kullback the library} promises of each. Means and scales may be vectors of Spark
 * ML, dense or sparse, and covariances and factors its matrices, or {@code array<array<double>>}, row by row: {@code mean} and
 * {@code cov} of {@code GaussianMixtureModel.gaussiansDF} are taken as they are. Other vectors of Spark's older module,
 * {@code org.apache.spark.mllib.linalg}, are refused: convert them. Names are found as SQL finds
 * them: in letters of either case unless {@code spark.sql.caseSensitive} is set, and {@code g.mean} within a struct g; but
 * first as they stand. Queries may be the references: a Gaussian is then its own nearest, unless another one is equal to it
 * and has a lower id.
 *
 * <p>An id is {@code bigint} or a smaller integer, or of any other type that has an order and is exact: string, decimal, date,
 * timestamp, struct. Those are numbered in their order, which takes a sort of each dataset, and two joins to give the ids
 * back in the result, whose ids are bigint below. They take their texts' memory in each block, for messages.
 *
 * <p>Both inputs are cut into blocks by a hash of the id, and each pair of blocks is a task. Tasks of an executor share
 * an engine, which has as many threads for each as {@code spark.task.cpus} says, and the block of references, which is
 * read once. Blocks of references take about a quarter of what {@code spark.memory.fraction} leaves of the
 * executor's heap.
 *
 * <p>The result is a function of the rows of both datasets: the same, to the bit, whatever the order of rows, the
 * partitions, the number of executors and what Spark repeated, on processors of one kind. With {@code nearest}, it is the
 * same on any and for every size of blocks, too, and ranks are those of exact arithmetic, as
 * {@link Query#exact()} has them.
 *
 * <p>The methods that search run short Spark jobs at once, which count both datasets and bring each row to its block. The
 * search itself runs when the result is used. An input that is dear to compute should be cached. A row that is wrong (a
 * null, an array of another length, a scale that is not positive, NaN, an id that is there twice) fails the job: the
 * {@link org.apache.spark.SparkException} has an {@link IllegalArgumentException} among its causes that names the id and
 * the column.
 *
 * <p>Objects are immutable. Datasets of Spark Connect have no partitions to work on: the methods that search fail with an
 * {@link UnsupportedOperationException}, or with a {@link NoClassDefFoundError} where the client lacks Spark's own classes. Use
 * {@link KullbackExtensions} on the server instead.
 *
 * @since 0.1.0
 */
public final class KlNeighbors {
  private static final StructType NEAREST =
      schema("id", DataTypes.LongType)
          .add("rank", DataTypes.IntegerType, false)
          .add("neighbor", DataTypes.LongType, false)
          .add("kl", DataTypes.DoubleType, false);

  private static final StructType WITHIN =
      schema("id", DataTypes.LongType)
          .add("neighbor", DataTypes.LongType, false)
          .add("kl", DataTypes.DoubleType, false);

  private static final StructType LOG_SUM_EXP =
      schema("id", DataTypes.LongType).add("log_sum_exp", DataTypes.DoubleType, false);

  /** A neighbor's id and its divergence. */
  private static final long CANDIDATE_BYTES = 16;

  private final Dataset<Row> references;
  private final Columns columns;
  private final Divergence divergence;
  private final boolean reverse;
  private final int blockRows; // 0: by memory
  private final boolean broadcast;

  private KlNeighbors(
      Dataset<Row> references,
      Columns columns,
      Divergence divergence,
      boolean reverse,
      int blockRows,
      boolean broadcast) {
    this.references = references;
    this.columns = columns;
    this.divergence = divergence;
    this.reverse = reverse;
    this.blockRows = blockRows;
    this.broadcast = broadcast;
  }

  private static StructType schema(String name, DataType type) {
    return new StructType().add(name, type, false);
  }

  /**
   * {@return searches among references, in columns {@code id}, {@code mean} and {@code std} unless told otherwise}
   *
   * @param references the Gaussians p_j, at least one
   */
  public static KlNeighbors of(Dataset<Row> references) {
    return new KlNeighbors(
        Objects.requireNonNull(references, "references"),
        new Columns("id", "mean", "std", ScaleKind.STD),
        Divergence.KL,
        false,
        0,
        false);
  }

  /**
   * {@return these searches with the columns of both datasets by name}
   *
   * @param id the column of ids
   * @param mean the column of means μ
   * @param std the column of standard deviations σ
   */
  public KlNeighbors columns(String id, String mean, String std) {
    return id(id).mean(mean).std(std);
  }

  /**
   * {@return these searches with the column of ids by name}
   *
   * @param column its name in both datasets
   */
  public KlNeighbors id(String column) {
    Objects.requireNonNull(column, "column");
    return with(new Columns(column, columns.mean(), columns.scale(), columns.kind()));
  }

  /**
   * {@return these searches with the column of means μ by name}
   *
   * @param column its name in both datasets
   */
  public KlNeighbors mean(String column) {
    Objects.requireNonNull(column, "column");
    return with(new Columns(columns.id(), column, columns.scale(), columns.kind()));
  }

  /**
   * {@return these searches for diagonal Gaussians by standard deviations σ > 0}
   *
   * @param column the column that has them, D elements
   */
  public KlNeighbors std(String column) {
    return scale(column, ScaleKind.STD);
  }

  /**
   * {@return these searches for diagonal Gaussians by variances σ² > 0}
   *
   * @param column the column that has them, D elements
   */
  public KlNeighbors variance(String column) {
    return scale(column, ScaleKind.VARIANCE);
  }

  /**
   * {@return these searches for diagonal Gaussians by log-variances ln σ²}
   *
   * @param column the column that has them, D elements
   */
  public KlNeighbors logVariance(String column) {
    return scale(column, ScaleKind.LOG_VARIANCE);
  }

  /**
   * {@return these searches for diagonal Gaussians by precisions 1/σ² > 0}
   *
   * @param column the column that has them, D elements
   */
  public KlNeighbors precision(String column) {
    return scale(column, ScaleKind.PRECISION);
  }

  /**
   * {@return these searches for Gaussians of full covariance {@code Σ = LLᵀ} by their lower factors L}
   *
   * @param column the column that has them, D·D elements row by row, with 0 above the diagonal
   */
  public KlNeighbors scaleTril(String column) {
    return scale(column, ScaleKind.SCALE_TRIL);
  }

  /**
   * {@return these searches for Gaussians of full covariance Σ}
   *
   * @param column the column that has them, D·D elements row by row
   */
  public KlNeighbors covariance(String column) {
    return scale(column, ScaleKind.COVARIANCE);
  }

  KlNeighbors scale(String column, ScaleKind kind) {
    Objects.requireNonNull(column, "column");
    return with(new Columns(columns.id(), columns.mean(), column, kind));
  }

  private KlNeighbors with(Columns c) {
    return new KlNeighbors(references, c, divergence, reverse, blockRows, broadcast);
  }

  /**
   * {@return these searches by another divergence of q_i and p_j instead of KL} The column kl has it. Results are exact as
   * with KL, across blocks, too.
   *
   * @param d the divergence, in its own unit
   */
  public KlNeighbors divergence(Divergence d) {
    return new KlNeighbors(
        references,
        columns,
        Objects.requireNonNull(d, "divergence"),
        reverse,
        blockRows,
        broadcast);
  }

  /** {@return searches by {@code KL(p_j ‖ q_i)} instead; results are still for each query} */
  public KlNeighbors reverse() {
    return new KlNeighbors(references, columns, divergence, true, blockRows, broadcast);
  }

  /**
   * {@return these searches with blocks of about so many references, instead of as many as fit an executor}
   *
   * @param n references of a block, at least 1
   * @throws IllegalArgumentException if n is less than 1
   */
  public KlNeighbors blockRows(int n) {
    if (n < 1) {
      throw new IllegalArgumentException("blockRows must be at least 1, is " + n);
    }
    return new KlNeighbors(references, columns, divergence, reverse, n, broadcast);
  }

  /**
   * {@return these searches with all references as one broadcast block} They pass through the driver, whose memory and
   * {@code spark.driver.maxResultSize} must hold them, and every executor holds them. No list of candidates is
   * moved. It pays where many executors search few references.
   */
  public KlNeighbors broadcast() {
    return new KlNeighbors(references, columns, divergence, reverse, blockRows, true);
  }

  /**
   * Finds the k references with the smallest {@code KL(q_i ‖ p_j)} for each query, ties to the lower id.
   *
   * @param queries the Gaussians q_i
   * @param k the number of neighbors, from 1 to the number of references
   * @return {@code id bigint, rank int, neighbor bigint, kl double}, ids of their own type: a query's id, 1 to k, the reference's id, and the
   *     divergence
   * @throws IllegalArgumentException if k is not in its range, there are no references, or a dataset lacks a column or has
   *     one of another type
   */
  public Dataset<Row> nearest(Dataset<Row> queries, int k) {
    return search(queries, k).result();
  }

  /**
   * A search that is prepared.
   *
   * @param result lists, which are searched for when they are used
   * @param description says what that does
   * @param pairs how many it compares
   * @param done counts those whose comparison is done
   */
  record Prepared(Dataset<Row> result, String description, double pairs, DoubleAccumulator done) {}

  Prepared search(Dataset<Row> queries, int k) {
    if (k < 1) {
      throw new IllegalArgumentException("k must be at least 1, is " + k);
    }
    Job job = job(queries);
    if (k > job.referenceCount()) {
      throw new IllegalArgumentException(
          "k must be in [1, %d], the number of references, is %d"
              .formatted(job.referenceCount(), k));
    }
    Plan plan = job.plan(blockRows, broadcast, k * CANDIDATE_BYTES);
    boolean backward = reverse;
    return job.described(
        plan,
        "search",
        () -> {
          JavaPairRDD<Integer, Candidates> lists =
              job.search(
                      plan,
                      broadcast,
                      (engine, q, p) -> one(Candidates.of(engine, q, p, k, backward)))
                  .mapToPair(list -> new Tuple2<>(list.block, list));
          if (plan.referenceBlocks() > 1) {
            lists =
                lists.reduceByKey(
                    new HashPartitioner(plan.queryBlocks()), (a, b) -> Candidates.merge(k, a, b));
          }
          return job.result(lists.values().flatMap(Candidates::rows), NEAREST);
        });
  }

  private Job job(Dataset<Row> queries) {
    return new Job(references, queries, columns, divergence);
  }

  /**
   * Finds all pairs with {@code KL(q_i ‖ p_j) ≤ radius}, by the decision of exact arithmetic. A task holds the pairs of its
   * two blocks, 40 bytes each; where there are too many, give a smaller {@link #blockRows}.
   *
   * @param queries the Gaussians q_i
   * @param radius in nats, ≥ 0
   * @return {@code id bigint, neighbor bigint, kl double}, in no order: a query's id, the reference's id, and the
   *     divergence
   * @throws IllegalArgumentException if the radius is negative or NaN, there are no references, or a dataset lacks a column
   *     or has one of another type
   */
  public Dataset<Row> within(Dataset<Row> queries, double radius) {
    if (!(radius >= 0)) {
      throw new IllegalArgumentException("radius must be at least 0, is " + radius);
    }
    Job job = job(queries);
    boolean backward = reverse;
    Plan plan = job.plan(blockRows, broadcast, 0);
    return job.described(
            plan,
            "pairs within " + radius,
            () ->
                job.result(
                    job.search(
                        plan, broadcast, (engine, q, p) -> pairs(engine, q, p, radius, backward)),
                    WITHIN))
        .result();
  }

  private static Iterator<InternalRow> pairs(
      KlEngine engine, Shared.Loaded q, Shared.Loaded p, double radius, boolean reverse) {
    Query within = Query.within(radius);
    Neighbors found = engine.search(q.batch(), p.batch(), reverse ? within.reverse() : within);
    int[] query = {0}; // of the next pair
    return new Rows(
        3,
        found.indices().length,
        (row, at) -> {
          while (at == found.start(query[0] + 1)) {
            query[0]++;
          }
          row.setLong(0, q.ids()[query[0]]);
          row.setLong(1, p.ids()[found.indices()[at]]);
          row.setDouble(2, found.values()[at]);
        });
  }

  /**
   * Computes {@code ln Σ_j exp(−KL(q_i ‖ p_j))} over all references for each query. Sums are rounded block by block, so
   * their last digits depend on the size of the blocks.
   *
   * @param queries the Gaussians q_i
   * @return {@code id bigint, log_sum_exp double}
   * @throws IllegalStateException after {@link #reverse()}, as the library sums in the other direction alone
   * @throws IllegalArgumentException if there are no references, or a dataset lacks a column or has one of another type
   */
  public Dataset<Row> logSumExp(Dataset<Row> queries) {
    if (reverse) {
      throw new IllegalStateException("logSumExp has no reverse form");
    }
    Job job = job(queries);
    Plan plan = job.plan(blockRows, broadcast, Double.BYTES);
    return job.described(plan, "sums", () -> job.result(sums(job, plan), LOG_SUM_EXP)).result();
  }

  private JavaRDD<InternalRow> sums(Job job, Plan plan) {
    return job.search(
            plan,
            broadcast,
            (engine, q, p) ->
                one(
                    new Sums(
                        q.index(), q.ids(), p.index(), engine.logSumExp(q.batch(), p.batch()))))
        .mapToPair(sums -> new Tuple2<>(sums.block, sums))
        .groupByKey(new HashPartitioner(plan.queryBlocks()))
        .values()
        .flatMap(Sums::rows);
  }

  private static <T> Iterator<T> one(T value) {
    return List.of(value).iterator();
  }
}
