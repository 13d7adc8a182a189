package dev.kullback.spark;

import static org.apache.spark.sql.functions.array;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.when;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import java.io.PrintWriter;
import java.io.Writer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class KlNeighborsTest {
  private static final int K = 7;

  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestSpark.local();
  }

  @ParameterizedTest
  @CsvSource({
    "STD, false, 6",
    "STD, true, 3",
    "VARIANCE, false, 6",
    "LOG_VARIANCE, true, 6",
    "SCALE_TRIL, false, 4",
    "SCALE_TRIL, true, 4"
  })
  void sevenBlocksAreOne(ScaleKind kind, boolean isDouble, int dimension) {
    Sample references = Sample.twins(kind, isDouble, 700, dimension, 1);
    Sample queries = references.first(300);
    KlNeighbors search = of(kind, references.dataset(spark)).blockRows(100);
    for (boolean reverse : new boolean[] {false, true}) {
      assertThat(
              Sample.found(
                  (reverse ? search.reverse() : search).nearest(queries.dataset(spark), K)))
          .isEqualTo(queries.nearest(references, K, reverse));
    }
  }

  @Test
  void oneBlockIsTheSame() {
    Sample references = Sample.twins(ScaleKind.STD, false, 700, 5, 13);
    Sample queries = references.first(300);
    List<Sample.Found> expected = queries.nearest(references, K, false);
    KlNeighbors search = KlNeighbors.of(references.dataset(spark));
    Dataset<Row> data = queries.dataset(spark);
    assertThat(Sample.found(search.nearest(data, K))).isEqualTo(expected);
    assertThat(Sample.found(search.broadcast().nearest(data, K))).isEqualTo(expected);
  }

  private static KlNeighbors of(ScaleKind kind, Dataset<Row> references) {
    KlNeighbors search = KlNeighbors.of(references);
    return switch (kind) {
      case STD -> search.columns("id", "mean", "std");
      case VARIANCE -> search.variance("std");
      case LOG_VARIANCE -> search.logVariance("std");
      case PRECISION -> search.precision("std");
      case SCALE_TRIL -> search.scaleTril("std");
      case COVARIANCE -> search.covariance("std");
      default -> throw new IllegalArgumentException(kind + " is no column of KlNeighbors");
    };
  }

  @Test
  void partitionsAndOrderDoNotMatter() {
    Sample references = Sample.twins(ScaleKind.STD, false, 900, 5, 2);
    Sample queries = Sample.twins(ScaleKind.STD, false, 300, 5, 3);
    List<Sample.Found> expected = queries.nearest(references, K, false);
    Dataset<Row> p = references.dataset(spark);
    Dataset<Row> q = queries.dataset(spark);
    List<Dataset<Row>> layouts =
        List.of(
            p.orderBy(col("id").desc()),
            p.coalesce(1),
            p.repartition(11),
            // nine of ten rows in one partition, and most partitions empty
            p.repartition(40, when(col("id").mod(10).equalTo(0), col("id")).otherwise(lit(0))),
            p.where("id > 1000").union(p.where("false")).union(p.where("id <= 1000")));
    double[] sums = null;
    for (Dataset<Row> layout : layouts) {
      KlNeighbors search = KlNeighbors.of(layout).blockRows(130);
      assertThat(Sample.found(search.nearest(q.repartition(3), K))).isEqualTo(expected);
      double[] again =
          search.logSumExp(q).collectAsList().stream()
              .sorted(Comparator.comparingLong(row -> row.getLong(0)))
              .mapToDouble(row -> row.getDouble(1))
              .toArray();
      assertThat(again).isEqualTo(sums == null ? again : sums);
      sums = again;
    }
  }

  @Test
  void logSumExpIsThatOfOneEngine() {
    Sample references = Sample.twins(ScaleKind.STD, true, 700, 4, 4);
    Sample queries = references.first(50);
    List<Row> sums =
        KlNeighbors.of(references.dataset(spark))
            .blockRows(100)
            .logSumExp(queries.dataset(spark))
            .orderBy("id")
            .collectAsList();
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] expected = engine.logSumExp(queries.batch(), references.batch());
      assertThat(sums).hasSize(expected.length);
      for (int i = 0; i < expected.length; i++) {
        assertThat(sums.get(i).getLong(0)).isEqualTo(queries.ids()[i]);
        assertThat(sums.get(i).getDouble(1)).isCloseTo(expected[i], within(1e-13));
      }
    }
    assertThatThrownBy(() ->
            KlNeighbors.of(references.dataset(spark)).reverse().logSumExp(queries.dataset(spark)))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void withinIsThatOfOneEngine() {
    Sample references = Sample.twins(ScaleKind.STD, false, 700, 4, 5);
    Sample queries = references.first(50);
    for (boolean reverse : new boolean[] {false, true}) {
      KlNeighbors search = KlNeighbors.of(references.dataset(spark)).blockRows(100);
      List<List<Object>> found =
          (reverse ? search.reverse() : search)
                  .within(queries.dataset(spark), 0.5)
                  .orderBy("id", "neighbor")
                  .collectAsList()
                  .stream()
                  .map(row -> List.of(row.get(0), row.get(1), row.get(2)))
                  .toList();
      List<List<Object>> expected = new ArrayList<>();
      try (KlEngine engine = KlEngine.builder().build()) {
        Query within = Query.within(0.5);
        Neighbors all =
            engine.search(queries.batch(), references.batch(), reverse ? within.reverse() : within);
        for (int i = 0; i < all.size(); i++) {
          for (int r = 0; r < all.count(i); r++) {
            expected.add(
                List.of(queries.ids()[i], references.ids()[all.index(i, r)], all.value(i, r)));
          }
        }
      }
      assertThat(expected).hasSizeGreaterThan(50);
      assertThat(found).isEqualTo(expected);
    }
  }

  /** Jobs and stages say what they do. */
  @Test
  void jobsAreDescribed() throws InterruptedException {
    Dataset<Row> data = Sample.twins(ScaleKind.STD, false, 100, 3, 14).dataset(spark);
    Set<String> names = ConcurrentHashMap.newKeySet();
    SparkListener listener =
        new SparkListener() {
          @Override
          public void onStageSubmitted(SparkListenerStageSubmitted stage) {
            names.add(stage.stageInfo().name());
            names.add(String.valueOf(stage.properties().get("spark.job.description")));
          }
        };
    spark.sparkContext().addSparkListener(listener);
    try {
      KlNeighbors.Prepared search = KlNeighbors.of(data).blockRows(34).search(data, 2);
      assertThat(search.description()).startsWith("Kullback: search, ").endsWith(" × 34");
      assertThat(search.result().count()).isEqualTo(200);
      assertThat(search.done().sum()).isEqualTo(search.pairs()).isEqualTo(10_000);
      try (Progress progress =
          new Progress(new PrintWriter(Writer.nullWriter()), 20_000, search.done()::sum)) {
        assertThat(progress.line()).isEqualTo("Kullback: 1.00e+04 of 2.00e+04 pairs, 50 %");
      }
      long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
      while (!names.contains(search.description()) && System.nanoTime() < end) {
        Thread.sleep(20);
      }
      assertThat(names).contains(search.description(), "Kullback: counting rows");
      assertThat(spark.sparkContext().getLocalProperty("spark.job.description")).isNull();
    } finally {
      spark.sparkContext().removeSparkListener(listener);
    }
  }

  @Test
  void oneRowAndNone() {
    Sample one = Sample.twins(ScaleKind.STD, false, 1, 3, 6);
    Dataset<Row> data = one.dataset(spark);
    long id = one.ids()[0];
    assertThat(Sample.found(KlNeighbors.of(data).nearest(data, 1)))
        .containsExactly(new Sample.Found(id, 1, id, 0));
    // more blocks than rows
    Sample few = Sample.twins(ScaleKind.STD, false, 9, 3, 7);
    assertThat(Sample.found(KlNeighbors.of(few.dataset(spark)).blockRows(1).nearest(data, 9)))
        .isEqualTo(one.nearest(few, 9, false));
    assertThat(KlNeighbors.of(data).nearest(data.where("false"), 1).collectAsList()).isEmpty();
    assertThat(KlNeighbors.of(data).logSumExp(data.where("false")).collectAsList()).isEmpty();
    assertThatThrownBy(() -> KlNeighbors.of(data.where("false")).nearest(data, 1))
        .hasMessage("references: there are no rows");
    assertThatThrownBy(() -> KlNeighbors.of(data).nearest(data, 2))
        .hasMessage("k must be in [1, 1], the number of references, is 2");
  }

  @Test
  void floatMeetsDouble() {
    Sample references = Sample.twins(ScaleKind.STD, false, 60, 3, 8);
    Sample queries = references.first(20);
    Dataset<Row> asDouble =
        queries.dataset(spark).withColumn("mean", col("mean").cast("array<double>"));
    List<Sample.Found> found =
        Sample.found(KlNeighbors.of(references.dataset(spark)).nearest(asDouble, 3));
    // values of float are values of double, and exact divergences are the same
    assertThat(found).isEqualTo(queries.nearest(references, 3, false));
  }

  @Test
  void badRowsAreNamed() {
    Dataset<Row> good = Sample.twins(ScaleKind.STD, false, 50, 3, 9).dataset(spark).cache();
    long id = good.orderBy("id").collectAsList().get(20).getLong(0);
    String at = "references: id " + id + ": column ";
    Column is = col("id").equalTo(id);
    assertBad(
        good,
        "std",
        when(is, expr("array(1f, -2f, 1f)")),
        at
            + "std: std[1] is -2.0; it must be finite and > 0; are these log-variances (logVariance)?");
    assertBad(good, "std", when(is, expr("array(1f, 1f, 0f)")), at + "std: std[2] is 0.0; ");
    assertBad(
        good, "mean", when(is, expr("array(float('NaN'), 1f, 0f)")), at + "mean: mean[0] is NaN; ");
    assertBad(good, "mean", when(is, lit(null)), at + "mean is null");
    assertBad(good, "std", when(is, expr("array(1f, null, 1f)")), at + "std: element 1 is null");
    assertBad(
        good,
        "mean",
        when(is, array(lit(1f))),
        at + "mean has 1 elements; it must have 3, as dimension 3 needs, that of id ");
    assertBad(good, "id", when(is, lit(null)), "references: an id is null, in column id");
    Dataset<Row> twice = good.unionAll(good.where(is));
    assertCause(
        () -> KlNeighbors.of(twice).blockRows(10).nearest(good, 1).collectAsList(),
        "references: id " + id + ": is there more than once, in column id");
    assertCause(
        () -> KlNeighbors.of(good).blockRows(10).nearest(twice, 1).collectAsList(),
        "queries: id " + id + ": is there more than once, in column id");
    assertCause(
        () ->
            KlNeighbors.of(good.withColumn("std", when(is, lit(null)).otherwise(col("std"))))
                .broadcast()
                .nearest(good, 1),
        at + "std is null");
  }

  @Test
  void aFactorIsLowerTriangular() {
    Dataset<Row> good = Sample.twins(ScaleKind.SCALE_TRIL, true, 9, 2, 9).dataset(spark);
    long id = good.first().getLong(0);
    Dataset<Row> bad =
        good.withColumn(
            "std",
            when(col("id").equalTo(id), expr("array(2d, 0.5d, 0.5d, 1d)")).otherwise(col("std")));
    assertCause(
        () -> KlNeighbors.of(good).scaleTril("std").nearest(bad, 1).collectAsList(),
        "queries: id "
            + id
            + ": column std: scaleTril[0][1] is 0.5: not lower triangular; is it a covariance, or an upper factor");
    Dataset<Row> unit = good.withColumn("std", expr("array(1d, 0.5d, 0.5d, 1d)"));
    assertThat(KlNeighbors.of(unit).covariance("std").nearest(unit, 1).count()).isEqualTo(9);
    Dataset<Row> rounded = good.withColumn("std", expr("array(1d, 0.5d, 0.50000003d, 1d)"));
    assertThat(KlNeighbors.of(rounded).covariance("std").nearest(rounded, 1).count()).isEqualTo(9);
    Dataset<Row> uneven =
        unit.withColumn(
            "std",
            when(col("id").equalTo(id), expr("array(0.8d, 0.2d, 0.1d, 1.4d)"))
                .otherwise(col("std")));
    assertCause(
        () -> KlNeighbors.of(uneven).covariance("std").nearest(unit, 1).collectAsList(),
        "references: id "
            + id
            + ": column std: covariance is not symmetric: [1][0] is 0.1 but [0][1] is 0.2, a difference of 0.09449"
            + " √([1][1]·[0][0]); up to 1e-06 passes for rounding: if it is that, give (C + Cᵀ)/2");
    Dataset<Row> indefinite =
        unit.withColumn(
            "std",
            when(col("id").equalTo(id), expr("array(1d, 2d, 2d, 1d)")).otherwise(col("std")));
    assertCause(
        () -> KlNeighbors.of(indefinite).covariance("std").nearest(unit, 1).collectAsList(),
        "references: id " + id + ": column std: covariance is not positive definite");
  }

  private static void assertBad(Dataset<Row> good, String column, Column bad, String message) {
    Dataset<Row> references = good.withColumn(column, bad.otherwise(col(column)));
    assertCause(
        () -> KlNeighbors.of(references).blockRows(10).nearest(good, 1).collectAsList(), message);
  }

  private static void assertCause(ThrowingCallable search, String message) {
    assertThatThrownBy(search)
        .hasRootCauseInstanceOf(IllegalArgumentException.class)
        .rootCause()
        .hasMessageStartingWith(message);
  }

  @Test
  void badColumnsAreNamed() {
    Dataset<Row> data = Sample.twins(ScaleKind.STD, false, 5, 3, 10).dataset(spark);
    assertThatThrownBy(() -> KlNeighbors.of(data).columns("id", "mu", "std").nearest(data, 1))
        .hasMessage("references: no column mu; there are id, mean, std");
    assertThatThrownBy(() -> KlNeighbors.of(data).nearest(data.drop("std"), 1))
        .hasMessage("queries: no column std; there are id, mean");
    assertThatThrownBy(() -> KlNeighbors.of(data).id("mean").nearest(data, 1))
        .hasMessageStartingWith("references: column mean is array<float>; it must be bigint, or ");
    assertThatThrownBy(() -> KlNeighbors.of(data).mean("id").nearest(data, 1))
        .hasMessage(
            "references: column id is bigint; it must be array<float> or array<double>, or a vector of Spark ML; make an array of it, as by array(column, …)");
    assertThatThrownBy(
            () -> KlNeighbors.of(data.withColumn("std", lit("[1, 2, 3]"))).nearest(data, 1))
        .hasMessageContaining("column std is string; ")
        .hasMessageEndingWith("parse it, as by from_json(column, 'array<double>')");
    assertThatThrownBy(() -> KlNeighbors.of(data.withColumn("id", lit(1.5))).nearest(data, 1))
        .hasMessageContaining("column id is ")
        .hasMessageEndingWith("cast it to bigint or string");
    assertThatThrownBy(() -> KlNeighbors.of(data).blockRows(0))
        .hasMessage("blockRows must be at least 1, is 0");
    assertThatThrownBy(() -> KlNeighbors.of(data).within(data, Double.NaN))
        .hasMessage("radius must be at least 0, is NaN");
  }

  @Test
  void columnsMayHaveAnyName() {
    Sample sample = Sample.twins(ScaleKind.STD, false, 20, 3, 11);
    Dataset<Row> data =
        sample
            .dataset(spark)
            .toDF("key.of `row`", "μ", "σ")
            .withColumn("key.of `row`", expr("cast(`key.of ``row``` as int)"));
    assertThat(
            Sample.found(KlNeighbors.of(data).columns("key.of `row`", "μ", "σ").nearest(data, 4)))
        .isEqualTo(sample.nearest(sample, 4, false));
  }

  @Test
  void blocksAreLetGo() throws InterruptedException {
    Dataset<Row> data = Sample.twins(ScaleKind.STD, false, 100, 3, 12).dataset(spark);
    KlNeighbors.of(data).blockRows(20).nearest(data, 2).collectAsList();
    assertThat(Shared.blocks()).isLessThanOrEqualTo(2);
    long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
    while (Shared.blocks() > 0 && System.nanoTime() < end) {
      Thread.sleep(100);
    }
    assertThat(Shared.blocks()).isZero();
  }
}
