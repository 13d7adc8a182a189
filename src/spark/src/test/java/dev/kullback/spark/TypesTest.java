package dev.kullback.spark;

import static org.apache.spark.sql.functions.callUDF;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.struct;
import static org.apache.spark.sql.functions.when;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.ScaleKind;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.ml.functions;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Columns of the types and names that users of Spark have. */
class TypesTest {
  private static final Sample SAMPLE = Sample.twins(ScaleKind.STD, true, 120, 4, 3);
  private static final int K = 5;

  private static SparkSession spark;
  private static List<Sample.Found> expected;

  @BeforeAll
  static void start() {
    spark = TestSpark.local();
    spark
        .udf()
        .register("sparse", (UDF1<Vector, Vector>) Vector::toSparse, SQLDataTypes.VectorType());
    expected = SAMPLE.nearest(SAMPLE, K, false);
  }

  private static Dataset<Row> data() {
    return SAMPLE.dataset(spark);
  }

  private static List<Sample.Found> found(Dataset<Row> data) {
    return Sample.found(KlNeighbors.of(data).blockRows(50).nearest(data, K));
  }

  @Test
  void vectorsOfSparkMl() {
    Column mean = functions.array_to_vector(col("mean"));
    Column std = functions.array_to_vector(col("std"));
    assertThat(found(data().withColumn("mean", mean).withColumn("std", std))).isEqualTo(expected);
    Dataset<Row> sparse = data().withColumn("mean", callUDF("sparse", mean));
    assertThat(found(sparse)).isEqualTo(expected);
  }

  @Test
  void arraysOfDecimalsAndIntegers() {
    Dataset<Row> decimals =
        data()
            .withColumn("mean", expr("transform(mean, x -> cast(x AS decimal(20, 4)))"))
            .withColumn("std", expr("transform(std, x -> cast(ceil(x) AS int))"));
    Dataset<Row> doubles =
        decimals
            .withColumn("mean", col("mean").cast("array<double>"))
            .withColumn("std", col("std").cast("array<double>"));
    assertThat(found(decimals)).isEqualTo(found(doubles));
  }

  @Test
  void matricesByRows() {
    Sample full = Sample.twins(ScaleKind.SCALE_TRIL, false, 60, 3, 4);
    Dataset<Row> rows =
        full.dataset(spark)
            .withColumn("std", expr("transform(sequence(0, 2), i -> slice(std, 3 * i + 1, 3))"));
    assertThat(Sample.found(KlNeighbors.of(rows).scaleTril("std").blockRows(25).nearest(rows, K)))
        .isEqualTo(full.nearest(full, K, false));
    Dataset<Row> ragged =
        rows.withColumn(
            "std", expr("array(slice(std[0], 1, 2), concat(std[1], array(0f)), std[2])"));
    assertThatThrownBy(
            () -> KlNeighbors.of(ragged).scaleTril("std").nearest(rows, K).collectAsList())
        .rootCause()
        .hasMessageContaining(
            "column std has 0 elements, or not as many rows as columns; it must have 9");
    Dataset<Row> holed =
        rows.withColumn("std", expr("array(std[0], cast(null AS array<float>), std[2])"));
    assertThatThrownBy(() ->
            new KlNeighborsEstimator()
                .setK(K)
                .setScaleKind("scaleTril")
                .fit(rows)
                .transform(holed)
                .collectAsList())
        .rootCause()
        .hasMessageContaining(
            "column std has 0 elements, or not as many rows as columns; it must have 9");
    assertThatThrownBy(() -> KlNeighbors.of(rows).nearest(rows, K))
        .hasMessageEndingWith("take it apart by flatten(column)");
  }

  @Test
  void namesWithinOthersAndOfEitherCase() {
    Dataset<Row> nested = data().select(col("id"), struct(col("mean"), col("std")).as("g"));
    assertThat(
            Sample.found(
                KlNeighbors.of(nested).columns("id", "g.mean", "g.std").nearest(nested, K)))
        .isEqualTo(expected);
    KlNeighbors upper = KlNeighbors.of(data()).columns("ID", "Mean", "STD");
    assertThat(Sample.found(upper.nearest(data(), K))).isEqualTo(expected);
    spark.conf().set("spark.sql.caseSensitive", true);
    try {
      assertThatThrownBy(() -> upper.nearest(data(), K))
          .hasMessage("references: no column ID; there are id, mean, std");
    } finally {
      spark.conf().unset("spark.sql.caseSensitive");
    }
  }

  /** Ids of other types, in whose order ties go, come back as they were. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "format_string('%08d', id + 2000)",
        "cast(id AS decimal(20, 3)) / 8",
        "date_add(DATE'2020-01-01', cast(id AS int))",
        "timestamp_seconds(id)",
        "struct(cast(floor(id / 50) AS string) AS a, id AS b)"
      })
  void idsOfOtherTypes(String id) {
    // an order of numbers that is that of the ids, as ties show it
    Dataset<Row> data = data().withColumn("key", expr(id));
    List<Row> byKey = data.orderBy("key").select("key", "id").collectAsList();
    Dataset<Row> result =
        KlNeighbors.of(data.drop("id")).id("key").blockRows(50).nearest(data.drop("id"), K);
    assertThat(result.columns()).containsExactly("id", "rank", "neighbor", "kl");
    assertThat(result.schema().apply("id").dataType())
        .isEqualTo(data.schema().apply("key").dataType())
        .isEqualTo(result.schema().apply("neighbor").dataType());
    Map<Object, Long> numbers =
        byKey.stream().collect(Collectors.toMap(row -> row.get(0), row -> row.getLong(1)));
    List<Object> order = byKey.stream().map(row -> row.get(0)).toList();
    Map<Long, Integer> rank = new HashMap<>();
    for (int i = 0; i < order.size(); i++) {
      rank.put(numbers.get(order.get(i)), i);
    }
    Sample renumbered = SAMPLE.renumbered(i -> (long) rank.get(i));
    List<Sample.Found> oracle = renumbered.nearest(renumbered, K, false);
    List<Sample.Found> found =
        result.collectAsList().stream()
            .map(row ->
                new Sample.Found(
                    rank.get(numbers.get(row.get(0))),
                    row.getInt(1),
                    rank.get(numbers.get(row.get(2))),
                    row.getDouble(3)))
            .sorted(Comparator.comparingLong(Sample.Found::id).thenComparingInt(Sample.Found::rank))
            .toList();
    assertThat(found).isEqualTo(oracle);
  }

  @Test
  void wrongRowsAreNamedByTheirOwnIds() {
    Dataset<Row> data = data().withColumn("id", expr("concat('row ', id)"));
    String id = data.orderBy("id").first().getString(0);
    Column is = col("id").equalTo(id);
    Dataset<Row> bad =
        data.withColumn("std", when(is, expr("array(1D, 1D, 0D, 1D)")).otherwise(col("std")));
    assertThatThrownBy(() -> KlNeighbors.of(bad).nearest(data, 1).collectAsList())
        .rootCause()
        .hasMessageContaining("references: id " + id + ": column std: std[2] is 0.0");
    Dataset<Row> cut = data.withColumn("mean", when(is, expr("array(1D)")).otherwise(col("mean")));
    assertThatThrownBy(() -> KlNeighbors.of(data).nearest(cut, 1).collectAsList())
        .rootCause()
        .hasMessageContaining("queries: id " + id + ": column mean has 1 elements");
    assertThatThrownBy(
            () -> KlNeighbors.of(data.union(data.where(is))).nearest(data, 1).collectAsList())
        .rootCause()
        .hasMessage("references: id " + id + ": is there more than once, in column id");
    Dataset<Row> none = data.withColumn("id", when(is, lit(null)).otherwise(col("id")));
    assertThatThrownBy(() -> KlNeighbors.of(none).nearest(data, 1).collectAsList())
        .rootCause()
        .hasMessage("references: an id is null, in column id");
  }

  /** Sums and pairs have their ids back, too. */
  @Test
  void sumsAndPairs() {
    Dataset<Row> data = data().withColumn("id", col("id").cast("string"));
    KlNeighbors search = KlNeighbors.of(data);
    List<Row> sums = KlNeighbors.of(data()).logSumExp(data()).orderBy("id").collectAsList();
    List<Row> named =
        search
            .logSumExp(data)
            .withColumn("id", col("id").cast("bigint"))
            .orderBy("id")
            .collectAsList();
    assertThat(named).hasSameSizeAs(sums);
    for (int i = 0; i < sums.size(); i++) {
      assertThat(named.get(i).get(0)).isEqualTo(sums.get(i).get(0));
      assertThat(named.get(i).getDouble(1)).isCloseTo(sums.get(i).getDouble(1), within(1e-13));
    }
    assertThat(
            search
                .within(data, 0.3)
                .selectExpr("cast(id AS bigint)", "cast(neighbor AS bigint)", "kl")
                .collectAsList())
        .isNotEmpty()
        .containsExactlyInAnyOrderElementsOf(
            KlNeighbors.of(data()).within(data(), 0.3).collectAsList());
  }
}
