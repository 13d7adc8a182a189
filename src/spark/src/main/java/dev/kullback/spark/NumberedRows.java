package dev.kullback.spark;

import dev.kullback.spark.KlDivergence.Gaussian;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.LogicalRDD$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.Function2;
import scala.Option;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * Rows of one side of a join, each with a number: the rows as they are for the join, and their Gaussians for the
 * search.
 *
 * <p>Rows are shuffled by their numbers before they are used. Both uses read what the shuffle has written, so they agree on
 * the numbers, also where an input that is computed again has its rows in another order.
 */
final class NumberedRows {
  private static final int ROW_BITS = 33;

  private final Gaussian gaussian;
  private final List<Attribute> columns;
  private final Attribute number;
  private final Dataset<Row> rows;

  NumberedRows(SparkPlan plan, Gaussian gaussian) {
    this.gaussian = gaussian;
    columns = List.copyOf(CollectionConverters.asJava(plan.output()));
    number =
        new AttributeReference(
            "number",
            DataTypes.LongType,
            false,
            Metadata.empty(),
            NamedExpression.newExprId(),
            KlDivergence.seq(List.of()));
    List<Attribute> all = new ArrayList<>(columns);
    all.add(number);
    LogicalRDD numbered =
        new LogicalRDD(
            KlDivergence.seq(all),
            numbered(plan.execute()),
            new UnknownPartitioning(0),
            KlDivergence.seq(List.of()),
            false,
            Option.empty(),
            plan.session(),
            Option.empty(),
            Option.empty());
    Dataset<Row> shuffled =
        Dataset.ofRows(plan.session(), numbered).repartition(ExpressionUtils.column(number));
    RDD<InternalRow> stored = shuffled.queryExecution().toRdd();
    rows = Dataset.ofRows(plan.session(), LogicalRDD$.MODULE$.fromDataset(stored, shuffled, false));
  }

  private static RDD<InternalRow> numbered(RDD<InternalRow> rows) {
    // Order-sensitive: should a part of the shuffle be lost and the order have been by chance,
    // Spark repeats all of it.
    return rows.mapPartitionsWithIndex(
        new Numbering(), false, true, ClassTag$.MODULE$.apply(InternalRow.class));
  }

  /** Returns the number that {@code monotonically_increasing_id()} gives to a row of a partition. */
  static long number(int partition, int row) {
    return ((long) partition << ROW_BITS) + row;
  }

  /** Numbers as {@code monotonically_increasing_id()} has them, ascending with the rows. */
  @SuppressWarnings("serial") // goes to executors that run the same classes
  private static final class Numbering
      implements Function2<Object, Iterator<InternalRow>, Iterator<InternalRow>>, Serializable {
    @Override
    public Iterator<InternalRow> apply(Object partition, Iterator<InternalRow> rows) {
      GenericInternalRow number = new GenericInternalRow(1);
      JoinedRow joined = new JoinedRow();
      long[] next = {number((int) partition, 0)};
      return rows.map(row -> {
        number.update(0, next[0]++);
        return joined.apply(row, number);
      });
    }
  }

  /** The numbers of the k of these rows that are nearest to each query. */
  org.apache.spark.sql.Dataset<Row> nearest(NumberedRows queries, int k, boolean reverse) {
    Dataset<Row> gaussians = gaussians();
    long count = gaussians.count();
    if (count == 0) {
      return rows.sparkSession().range(0).selectExpr("id", "id AS neighbor", "0D AS kl");
    }
    KlNeighbors search = KlNeighbors.of(gaussians).scale("std", gaussian.kind());
    return (reverse ? search.reverse() : search)
        .nearest(queries.gaussians(), (int) Math.min(k, count));
  }

  private Dataset<Row> gaussians() {
    List<Column> selected =
        new ArrayList<>(
            List.of(
                ExpressionUtils.column(number).as("id"),
                ExpressionUtils.column(gaussian.mean()).as("mean"),
                ExpressionUtils.column(gaussian.scale()).as("std")));
    columns.stream()
        .filter(column -> column.name().equalsIgnoreCase("id"))
        .findFirst()
        .map(column -> ExpressionUtils.column(column).cast("string").as(Columns.LABEL_NAME))
        .ifPresent(selected::add);
    return rows.select(selected.toArray(Column[]::new))
        .where("mean IS NOT NULL AND std IS NOT NULL");
  }

  /** Joins these rows with those of the others that were found for them: their columns, the others' and the divergence. */
  RDD<InternalRow> join(
      NumberedRows others, org.apache.spark.sql.Dataset<Row> found, boolean outer) {
    String type = outer ? "left_outer" : "inner";
    Column[] output =
        Stream.concat(
                Stream.concat(columns.stream(), others.columns.stream())
                    .map(ExpressionUtils::column),
                Stream.of(found.col("kl")))
            .toArray(Column[]::new);
    return rows.join(found, ExpressionUtils.column(number).equalTo(found.col("id")), type)
        .join(
            others.rows, found.col("neighbor").equalTo(ExpressionUtils.column(others.number)), type)
        .select(output)
        .queryExecution()
        .toRdd();
  }
}
