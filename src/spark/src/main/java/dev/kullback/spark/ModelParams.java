package dev.kullback.spark;

import dev.kullback.Divergence;
import dev.kullback.ScaleKind;
import java.io.Serializable;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Function1;

/** Allowed and default values of {@link KlNeighborsParams}, and their meanings. */
final class ModelParams {
  private static final Map<String, ScaleKind> KINDS = new LinkedHashMap<>();

  static {
    KINDS.put("std", ScaleKind.STD);
    KINDS.put("variance", ScaleKind.VARIANCE);
    KINDS.put("logVariance", ScaleKind.LOG_VARIANCE);
    KINDS.put("precision", ScaleKind.PRECISION);
    KINDS.put("scaleTril", ScaleKind.SCALE_TRIL);
    KINDS.put("covariance", ScaleKind.COVARIANCE);
  }

  private ModelParams() {}

  /** Returns what a kind of scales is called here, and how a column without a name of its own is named in messages. */
  static String name(ScaleKind kind) {
    return KINDS.entrySet().stream()
        .filter(entry -> entry.getValue() == kind)
        .map(Map.Entry::getKey)
        .findFirst()
        .orElseThrow();
  }

  /** Says whether a value is allowed. Parameters go where their stages go. */
  @FunctionalInterface
  private interface Test<T> extends Serializable {
    boolean of(T value);
  }

  private static <T> Function1<T, Object> valid(String name, Test<T> test, String what) {
    return (Function1<T, Object> & Serializable)
        value -> {
          if (value == null || !test.of(value)) {
            throw new IllegalArgumentException(
                "%s must be %s, is %s".formatted(name, what, "".equals(value) ? "empty" : value));
          }
          return true;
        };
  }

  static Function1<Object, Object> atLeast(String name, int least) {
    return valid(name, value -> (Integer) value >= least, "at least " + least);
  }

  static Function1<String, Object> column(String name) {
    return valid(name, value -> !value.isEmpty(), "a column's name");
  }

  static Function1<String, Object> scaleKind(String name) {
    return valid(name, KINDS::containsKey, "one of " + String.join(", ", KINDS.keySet()));
  }

  static Function1<String, Object> divergence(String name) {
    return valid(name, value -> isDivergence(name, value), "the name of a divergence");
  }

  private static boolean isDivergence(String param, String value) {
    try {
      return Divergence.of(value) != null;
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(param + ": " + e.getMessage(), e);
    }
  }

  static void setDefaults(KlNeighborsParams<?> params) {
    params.setDefault(params.k(), 10);
    params.setDefault(params.idCol(), "id");
    params.setDefault(params.meanCol(), "mean");
    params.setDefault(params.scaleCol(), "std");
    params.setDefault(params.scaleKind(), "std");
    params.setDefault(params.divergence(), "kl");
    params.setDefault(params.reverse(), false);
    params.setDefault(params.blockRows(), 0);
    params.setDefault(params.broadcast(), false);
    params.setDefault(params.outputCol(), "neighbors");
  }

  static Columns columns(KlNeighborsParams<?> params) {
    return new Columns(params.getIdCol(), params.getMeanCol(), params.getScaleCol(), kind(params));
  }

  private static ScaleKind kind(KlNeighborsParams<?> params) {
    return Objects.requireNonNull(KINDS.get(params.getScaleKind())); // as scaleKind() has checked
  }

  static KlNeighbors search(KlNeighborsParams<?> params, Dataset<Row> references) {
    KlNeighbors search =
        KlNeighbors.of(references)
            .id(params.getIdCol())
            .mean(params.getMeanCol())
            .scale(params.getScaleCol(), kind(params))
            .divergence(Divergence.of(params.getDivergence()));
    search = params.getReverse() ? search.reverse() : search;
    search = params.getBlockRows() > 0 ? search.blockRows(params.getBlockRows()) : search;
    return params.getBroadcast() ? search.broadcast() : search;
  }

  /** Finds the columns in rows of a schema. */
  static Columns.Found found(
      KlNeighborsParams<?> params, StructType schema, String side, SparkSession spark) {
    return columns(params).in(spark.createDataFrame(List.of(), schema), side);
  }

  /** A schema with the column of neighbors, whose ids are of a type. */
  static StructType withNeighbors(KlNeighborsParams<?> params, StructType schema, DataType id) {
    String name = params.getOutputCol();
    if (Arrays.stream(schema.fieldNames()).anyMatch(name::equalsIgnoreCase)) {
      throw new IllegalArgumentException(
          "outputCol: there is a column %s already; give another name".formatted(name));
    }
    StructType neighbor = new StructType().add("neighbor", id).add("kl", DataTypes.DoubleType);
    return schema.add(name, DataTypes.createArrayType(neighbor));
  }
}
