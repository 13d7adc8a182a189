package dev.kullback.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.jspecify.annotations.Nullable;
import scala.Option;

/** Texts of values for messages. */
final class Labels {
  private Labels() {}

  /** Returns the text that SQL has for a column of a row, or null if that is null. */
  static @Nullable String text(InternalRow row, int column, DataType type) {
    Cast cast =
        Cast$.MODULE$.apply(
            new BoundReference(column, type, true),
            DataTypes.StringType,
            Option.apply("UTC"),
            false);
    Object text = cast.eval(row);
    return text == null ? null : text.toString();
  }
}
