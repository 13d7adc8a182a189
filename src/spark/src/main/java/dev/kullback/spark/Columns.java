package dev.kullback.spark;

import static org.apache.spark.sql.functions.col;

import dev.kullback.ScaleKind;
import java.io.Serializable;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StructType;

/** Names of the columns that both inputs have, and the kind of the scales. */
record Columns(String id, String mean, String scale, ScaleKind kind) implements Serializable {
  /** Positions of the columns once they are selected: id, mean and scale, in this order. */
  static final int ID = 0;

  static final int MEAN = 1;
  static final int SCALE = 2;

  /** Whether an input is of double; throws where it lacks a column or has one of another type. */
  boolean isDouble(Dataset<Row> data, String side) {
    StructType schema = data.schema();
    for (String name : List.of(id, mean, scale)) {
      if (!List.of(schema.fieldNames()).contains(name)) {
        throw new IllegalArgumentException(
            "%s: no column %s; there are %s"
                .formatted(side, name, String.join(", ", schema.fieldNames())));
      }
    }
    DataType ids = schema.apply(id).dataType();
    if (!(ids instanceof IntegralType)) {
      throw new IllegalArgumentException(
          "%s: column %s is %s; it must be bigint".formatted(side, id, ids.catalogString()));
    }
    for (String name : List.of(mean, scale)) {
      DataType type = schema.apply(name).dataType();
      if (!(type instanceof ArrayType a)
          || !(a.elementType().equals(DataTypes.FloatType)
              || a.elementType().equals(DataTypes.DoubleType))) {
        throw new IllegalArgumentException(
            "%s: column %s is %s; it must be array<float> or array<double>%s"
                .formatted(
                    side,
                    name,
                    type.catalogString(),
                    type instanceof ArrayType ? ", one Gaussian's elements row by row" : ""));
      }
    }
    return Stream.of(mean, scale)
        .map(name -> (ArrayType) schema.apply(name).dataType())
        .anyMatch(type -> type.elementType().equals(DataTypes.DoubleType));
  }

  /** The three columns alone, as {@link BlockReader} takes them. */
  Dataset<Row> select(Dataset<Row> data, boolean asDouble) {
    String array = asDouble ? "array<double>" : "array<float>";
    return data.select(
        column(id).cast("bigint").as("id"),
        column(mean).cast(array).as("mean"),
        column(scale).cast(array).as("scale"));
  }

  /** Quotes a name, whatever characters are in it. */
  private static Column column(String name) {
    return col("`" + name.replace("`", "``") + "`");
  }
}
