package dev.kullback.spark;

import static org.apache.spark.sql.functions.col;

import java.util.Iterator;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.jspecify.annotations.Nullable;
import scala.Tuple2;
import scala.math.Ordering;

/**
 * An input whose rows have integers as ids: its own, or in place of ids of another type their numbers in the order of these, so that ties
 * go to the lower one.
 *
 * @param rows id, mean, scale; with numbers the id's text, too, for messages
 * @param ids number and id of each row, null where ids are the input's own
 */
record Identified(Dataset<Row> rows, @Nullable Dataset<Row> ids) {
  static Identified of(Columns.Found found, boolean asDouble, Input described) {
    Dataset<Row> rows = found.select(asDouble);
    if (found.isInteger()) {
      return new Identified(rows, null);
    }
    // What the sorting's shuffle has written is read by the search and by what gives the ids back.
    Dataset<Row> numbered = numbered(rows.orderBy(col("id")), found.idType(), described);
    return new Identified(
        numbered.select(
            col("number").as("id"),
            col("mean"),
            col("scale"),
            col("id").cast("string").as("label")),
        numbered.select(col("number"), col("id")));
  }

  private static Dataset<Row> numbered(Dataset<Row> sorted, DataType type, Input described) {
    SparkSession session = (SparkSession) sorted.sparkSession();
    JavaRDD<InternalRow> rows =
        ((org.apache.spark.sql.classic.Dataset<Row>) sorted)
            .queryExecution()
            .toRdd()
            .toJavaRDD()
            .map(InternalRow::copy);
    JavaRDD<InternalRow> numbered =
        rows.zipWithIndex().mapPartitions(part -> new Checked(part, type, described));
    StructType schema = sorted.schema().add("number", DataTypes.LongType, false);
    return session.internalCreateDataFrame(numbered.rdd(), schema, false);
  }

  /**
   * Adds the numbers, and refuses an id that is there twice: those that SQL takes for equal, maybe of other bytes, are neighbors.
   */
  private static final class Checked implements Iterator<InternalRow> {
    private final Iterator<Tuple2<InternalRow, Long>> rows;
    private final DataType type;
    private final Ordering<Object> order;
    private final Input described;
    private final JoinedRow joined = new JoinedRow();
    private final GenericInternalRow number = new GenericInternalRow(1);
    private @Nullable Object last;

    Checked(Iterator<Tuple2<InternalRow, Long>> rows, DataType type, Input described) {
      this.rows = rows;
      this.type = type;
      order = TypeUtils.getInterpretedOrdering(type);
      this.described = described;
    }

    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public InternalRow next() {
      Tuple2<InternalRow, Long> next = rows.next();
      Object id = next._1.get(Columns.ID, type);
      if (id == null) {
        throw described.nullId();
      }
      if (last != null && order.equiv(id, last)) {
        throw described.twice(String.valueOf(Labels.text(next._1, Columns.ID, type)));
      }
      last = id;
      number.update(0, next._2);
      return joined.apply(next._1, number);
    }
  }

  /** The result with the input's ids in place of the numbers in a column. */
  Dataset<Row> restored(Dataset<Row> result, String column) {
    if (ids == null) {
      return result;
    }
    Dataset<Row> known = ids.toDF("kullback_number", "kullback_id");
    return result
        .join(known, result.col(column).equalTo(known.col("kullback_number")))
        .withColumn(column, known.col("kullback_id"))
        .drop("kullback_number", "kullback_id");
  }
}
