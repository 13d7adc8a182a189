package dev.kullback.spark;

import static org.apache.spark.sql.functions.col;

import dev.kullback.ScaleKind;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;

/** Names of the columns that both inputs have, and the kind of the scales. */
record Columns(String id, String mean, String scale, ScaleKind kind) implements Serializable {
  /** Positions of the columns once they are selected: id, mean and scale, in this order, and the text of an id that is not the user's. */
  static final int ID = 0;

  static final int MEAN = 1;
  static final int SCALE = 2;
  static final int LABEL = 3;

  /** Column of an input whose integer ids are not the user's: the text that names a row in messages. */
  static final String LABEL_NAME = "kullback label";

  private static final DataType DOUBLE_ROWS =
      DataTypes.createArrayType(DataTypes.createArrayType(DataTypes.DoubleType));

  /**
   * Columns as one input has them.
   *
   * @param mean an array of numbers
   * @param scale likewise
   * @param isDouble whether one of the two is not of float
   */
  record Found(
      Dataset<Row> data, Column id, DataType idType, Column mean, Column scale, boolean isDouble) {
    /** The three columns alone, ids as they are. */
    Dataset<Row> select(boolean asDouble) {
      String type = asDouble ? "array<double>" : "array<float>";
      List<Column> columns =
          new ArrayList<>(
              List.of(
                  (isInteger() ? id.cast("bigint") : id).as("id"),
                  mean.cast(type).as("mean"),
                  scale.cast(type).as("scale")));
      if (List.of(data.columns()).contains(LABEL_NAME)) {
        columns.add(col("`" + LABEL_NAME + "`").as("label"));
      }
      return data.select(columns.toArray(Column[]::new));
    }

    /** Whether ids are integers, which searches take as they are. */
    boolean isInteger() {
      return idType instanceof IntegralType;
    }
  }

  /** Finds the columns; throws where an input lacks one or has one of another type. */
  Found in(Dataset<Row> data, String side) {
    if (data.isStreaming()) {
      throw new IllegalArgumentException(
          side + ": is a stream; take its batches, as by writeStream().foreachBatch(...)");
    }
    Column ids = column(data, id, side);
    DataType idType = type(data, ids);
    if (!(idType instanceof IntegralType) && !isId(idType)) {
      throw new IllegalArgumentException(
          "%s: column %s is %s; it must be bigint, or of another type that has an order and is exact: cast it to bigint or string"
              .formatted(side, id, idType.catalogString()));
    }
    Column means = column(data, mean, side);
    Column scales = column(data, scale, side);
    DataType meanType = type(data, means);
    DataType scaleType = type(data, scales);
    return new Found(
        data,
        ids,
        idType,
        array(means, meanType, mean, side, false, kind.isFull() ? scaleType : meanType),
        array(scales, scaleType, scale, side, kind.isFull(), scaleType),
        !isFloat(meanType) || !isFloat(scaleType));
  }

  /** Whether values of a type can be told apart and put in order; those that are rounded are better not ids. */
  private static boolean isId(DataType type) {
    return !type.equals(DataTypes.FloatType)
        && !type.equals(DataTypes.DoubleType)
        && !(type instanceof ArrayType)
        && RowOrdering.isOrderable(type);
  }

  private static DataType type(Dataset<Row> data, Column column) {
    return data.select(column).schema().apply(0).dataType();
  }

  /** Finds a column by its whole name, or as SQL does: in letters of either case where the session says so, or a field within one. */
  private static Column column(Dataset<Row> data, String name, String side) {
    List<String> names = List.of(data.schema().fieldNames());
    Column whole = col("`" + name.replace("`", "``") + "`");
    if (names.contains(name)) {
      return whole;
    }
    for (Column candidate : new Column[] {whole, sql(name)}) {
      try {
        data.select(candidate);
        return candidate;
      } catch (Exception e) {
        if (!(e instanceof AnalysisException analysis)) { // which Scala does not declare
          throw e;
        }
        if (String.valueOf(analysis.getMessage()).contains("AMBIGUOUS")) {
          throw new IllegalArgumentException(
              "%s: column %s is ambiguous; there are %s"
                  .formatted(side, name, String.join(", ", names)),
              e);
        }
      }
    }
    throw new IllegalArgumentException(
        "%s: no column %s; there are %s".formatted(side, name, String.join(", ", names)));
  }

  /** A name with its parts between dots; one that is no name in SQL stands for itself. */
  private static Column sql(String name) {
    boolean isPath = Arrays.stream(name.split("\\.", -1)).noneMatch(String::isEmpty);
    return col(isPath && name.indexOf('`') < 0 ? name : "`" + name.replace("`", "``") + "`");
  }

  /**
   * A column as an array of numbers.
   *
   * @param scales type of the scales if they are of full covariances
   */
  private static Column array(
      Column column, DataType type, String name, String side, boolean isMatrix, DataType scales) {
    if (type instanceof ArrayType a && a.elementType() instanceof NumericType) {
      return column;
    }
    boolean isVector = Elements.isVector(type) && !Elements.isOld(type, scales);
    if (isVector || (isMatrix && Elements.isMatrix(type))) {
      return elements(column, type);
    }
    if (isMatrix && Elements.isRows(type)) {
      return isFloat(type)
          ? elements(column, type)
          : elements(column.cast(DOUBLE_ROWS), DOUBLE_ROWS);
    }
    throw new IllegalArgumentException(
        "%s: column %s is %s; it must be array<float> or array<double>%s, or a vector%s of Spark ML; %s"
            .formatted(
                side,
                name,
                Elements.name(type),
                isMatrix ? ", one Gaussian's elements row by row, or array<array<double>>" : "",
                isMatrix ? " or a matrix" : "",
                advice(type, name)));
  }

  private static Column elements(Column column, DataType type) {
    return ExpressionUtils.column(Elements.of(ExpressionUtils.expression(column), type));
  }

  private static String advice(DataType type, String name) {
    if (Elements.isVector(type)) {
      return Elements.conversion(name);
    }
    if (Elements.isMatrix(type)) {
      return "name a column of matrices as that of covariances or scaleTril";
    }
    if (type instanceof StringType) {
      return "parse it, as by from_json(column, 'array<double>')";
    }
    if (Elements.isRows(type)) {
      return "take it apart by flatten(column)";
    }
    return type instanceof ArrayType
        ? "cast it, as by CAST(column AS array<double>)"
        : "make an array of it, as by array(column, …)";
  }

  private static boolean isFloat(DataType type) {
    return type instanceof ArrayType a
        && (a.elementType().equals(DataTypes.FloatType)
            || (a.elementType() instanceof ArrayType inner
                && inner.elementType().equals(DataTypes.FloatType)));
  }
}
