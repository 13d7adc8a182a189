package dev.kullback.spark;

import static org.apache.spark.sql.functions.call_function;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.ScaleKind;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import scala.jdk.javaapi.CollectionConverters;

class KullbackExtensionsTest {
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestSpark.local();
    // No two distances are equal here, where Spark's own plan takes any.
    spark
        .range(0, 40, 1, 3)
        .selectExpr(
            "id",
            "if(id % 8 = 1, null, array(sin(id), cos(2 * id), sin(id * id))) AS mean",
            "if(id % 8 = 2, null, array(1 + cos(3 * id) / 2, 2 + sin(id), 1.5 + cos(id))) AS std")
        .createOrReplaceTempView("q");
    spark
        .range(100, 160, 1, 2)
        .selectExpr(
            "id",
            "if(id % 9 = 1, null, array(cos(id), sin(2 * id), cos(id * id))) AS mean",
            "if(id % 9 = 2, null, array(1 + sin(3 * id) / 2, 2 + cos(id), 1.5 + sin(id))) AS std")
        .createOrReplaceTempView("p");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theFunctionIsTheLibrarys(boolean isDouble) {
    Sample p = Sample.twins(ScaleKind.STD, isDouble, 40, 5, 1);
    Sample q = p.first(10);
    q.dataset(spark).createOrReplaceTempView("some");
    p.dataset(spark).createOrReplaceTempView("all");
    List<Row> rows =
        spark
            .sql(
                "SELECT some.id, all.id,"
                    + " kl_divergence(some.mean, some.std, all.mean, all.std),"
                    + " kl_divergence(some.mean, some.std, all.mean, cast(all.std AS array<double>))"
                    + " FROM some CROSS JOIN all ORDER BY 1, 3, 2")
            .collectAsList();
    assertThat(ranked(rows)).isEqualTo(q.nearest(p, 40, false));
    assertThat(rows).allSatisfy(row -> assertThat(row.get(3)).isEqualTo(row.get(2)));
  }

  @Test
  void nullIsNullWhateverTheOthers() {
    for (String arguments :
        List.of(
            "array(1D, null), array(1D, 1D), null, array(1D, 1D)",
            "null, array(1D, null), array(-1D), array(-1D)",
            "array(1D), array(-1D), array(1D), null")) {
      assertThat(spark.sql("SELECT kl_divergence(" + arguments + ")").first().isNullAt(0)).isTrue();
    }
    assertThatThrownBy(() -> spark.sql("SELECT kl_divergence(qm => mean, 1, 2, 3) FROM q"))
        .hasMessageContaining("NAMED_PARAMETERS_NOT_SUPPORTED");
  }

  /** Few rows on the left, many, and so many on the right that they do not go through the driver. */
  @ParameterizedTest
  @CsvSource({
    "false, false, 200, 1g",
    "true, true, 200, 1g",
    "false, true, 4500, 1g",
    "true, false, 4500, 1g",
    "false, false, 200, 0",
    "true, true, 200, 0"
  })
  void aJoinFindsWhatOneEngineFinds(boolean isDouble, boolean reverse, int n, String driver) {
    spark.conf().set(JoinSearch.MOST_BYTES, driver);
    try {
      findsWhatOneEngineFinds(isDouble, reverse, n);
    } finally {
      spark.conf().unset(JoinSearch.MOST_BYTES);
    }
  }

  /** Full covariances by their factors: the function, and the search on each of its ways. */
  @ParameterizedTest
  @CsvSource({"false, 1g", "true, 1g", "true, 0"})
  void fullCovariances(boolean isDouble, String driver) {
    Sample references = Sample.twins(ScaleKind.SCALE_TRIL, isDouble, 150, 3, 8);
    Sample queries = references.first(40);
    references.dataset(spark).orderBy("id").createOrReplaceTempView("factors");
    queries.dataset(spark).createOrReplaceTempView("some");
    String text =
        "SELECT s.id, f.id, KL(s.mean, s.std, f.mean, f.std) FROM some s JOIN factors f"
            + " EXACT NEAREST 4 BY DISTANCE %sKL(s.mean, s.std, f.mean, f.std)";
    spark.conf().set(JoinSearch.MOST_BYTES, driver);
    try {
      Dataset<Row> search = spark.sql(text.formatted("").replace("KL(", "kl_divergence_full("));
      assertThat(isSearch(search)).isTrue();
      List<Sample.Found> found = ranked(ordered(search));
      assertThat(found).isEqualTo(queries.nearest(references, 4, false));
      Dataset<Row> own = spark.sql(text.formatted("0 + ").replace("KL(", "kl_divergence_full("));
      assertThat(isSearch(own)).isFalse();
      assertThat(ordered(own).stream().map(row -> row.getDouble(2)))
          .containsExactlyElementsOf(found.stream().map(Sample.Found::kl).toList());
    } finally {
      spark.conf().unset(JoinSearch.MOST_BYTES);
    }
    assertThatThrownBy(
            spark.sql(
                    "SELECT kl_divergence_full(array(0D, 0D), array(1D, 2D, 0D, 1D), array(0D, 0D), array(1D, 0D, 0D, 1D))")
                ::collect)
        .hasMessageContaining("kl_divergence_full: q: scaleTril[0][1] is 2.0");
  }

  /** What EXPLAIN and the user interface show. */
  @Test
  void plansHaveSizesAndMetrics() {
    Dataset<Row> joined =
        spark.sql(
            "SELECT q.id FROM q JOIN p EXACT NEAREST 3 BY DISTANCE kl_divergence(q.mean, q.std, p.mean, p.std)");
    assertThat(joined.queryExecution().executedPlan().toString())
        .containsPattern("KlNearestByJoin .*left [0-9.]+ K?i?B, right [0-9.]+ K?i?B, estimated");
    joined.collectAsList();
    SparkPlan plan = joined.queryExecution().executedPlan();
    while (!(plan instanceof NearestBy.KlNearestByJoinExec)) {
      plan =
          plan instanceof AdaptiveSparkPlanExec adaptive
              ? adaptive.executedPlan()
              : CollectionConverters.asJava(plan.children()).getFirst();
    }
    // of 40 and 60 rows, those that have both arrays
    assertThat(plan.metrics().apply("pairs").value()).isEqualTo(30L * 46);
    assertThat(plan.metrics().apply("numOutputRows").value()).isEqualTo(90L);
    assertThat(plan.metrics().apply("exactDivergences").value()).isGreaterThan(89);
  }

  /** Many references, for which a single partition on the left is dealt to all processors. */
  @Test
  void aPartitionIsDealt() {
    Sample references = Sample.twins(ScaleKind.STD, false, 4500, 3, 5);
    Sample queries = references.first(4200);
    Dataset<Row> p = references.dataset(spark).orderBy("id");
    Dataset<Row> q = queries.dataset(spark).coalesce(1);
    Column kl =
        call_function("kl_divergence", q.col("mean"), q.col("std"), p.col("mean"), p.col("std"));
    Dataset<Row> joined =
        q.nearestByJoin(p, kl, 2, "exact", "distance").select(q.col("id"), p.col("id"), kl);
    assertThat(joined.javaRDD().getNumPartitions()).isEqualTo(4);
    assertThat(ranked(ordered(joined))).isEqualTo(queries.nearest(references, 2, false));
  }

  /** Rows of query, neighbor, divergence, as nearest neighbors are ordered. */
  private static List<Row> ordered(Dataset<Row> joined) {
    return joined.collectAsList().stream()
        .sorted(
            Comparator.<Row>comparingLong(row -> row.getLong(0))
                .thenComparingDouble(row -> row.getDouble(2))
                .thenComparingLong(row -> row.getLong(1)))
        .toList();
  }

  private static void findsWhatOneEngineFinds(boolean isDouble, boolean reverse, int n) {
    Sample all = Sample.twins(ScaleKind.STD, isDouble, n + 300, 5, 2);
    Sample queries = all.first(n);
    Sample references = all.last(500);
    Dataset<Row> p = references.dataset(spark).orderBy("id"); // ties to the lower id
    Dataset<Row> q = queries.dataset(spark).repartition(5);
    Column kl =
        reverse
            ? call_function(
                "kl_divergence", p.col("mean"), p.col("std"), q.col("mean"), q.col("std"))
            : call_function(
                "kl_divergence", q.col("mean"), q.col("std"), p.col("mean"), p.col("std"));
    Dataset<Row> joined =
        q.nearestByJoin(p, kl, 7, "exact", "distance").select(q.col("id"), p.col("id"), kl);
    assertThat(isSearch(joined)).isTrue();
    assertThat(ranked(ordered(joined))).isEqualTo(queries.nearest(references, 7, reverse));
  }

  /** Rows of query, neighbor, divergence, by query and rank. */
  private static List<Sample.Found> ranked(List<Row> rows) {
    int k = (int) (rows.size() / rows.stream().map(row -> row.getLong(0)).distinct().count());
    return IntStream.range(0, rows.size())
        .mapToObj(i ->
            new Sample.Found(
                rows.get(i).getLong(0),
                i % k + 1,
                rows.get(i).getLong(1),
                rows.get(i).getDouble(2)))
        .toList();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "SELECT q.*, p.* FROM q JOIN p EXACT NEAREST 3 BY DISTANCE KL(q.mean, q.std, p.mean, p.std)",
        // by similarity
        "SELECT q.*, p.* FROM q JOIN p EXACT NEAREST 3 BY SIMILARITY -KL(q.mean, q.std, p.mean, p.std)",
        // with the divergence, and what is made of it
        "SELECT q.id, p.id, KL(q.mean, q.std, p.mean, p.std) AS kl, exp(-KL(q.mean, q.std, p.mean, p.std)), rand() < 2"
            + " FROM q LEFT OUTER JOIN p EXACT NEAREST 2 BY DISTANCE KL(q.mean, q.std, p.mean, p.std)",
        // fewer references than k, in the other direction
        "SELECT * FROM q LEFT OUTER JOIN (SELECT * FROM p WHERE id < 103) r"
            + " APPROX NEAREST 5 BY DISTANCE KL(r.mean, r.std, q.mean, q.std)",
        "SELECT * FROM q LEFT OUTER JOIN (SELECT * FROM p WHERE mean IS NULL) r"
            + " EXACT NEAREST 2 BY DISTANCE KL(q.mean, q.std, r.mean, r.std)",
        // of itself, with an array that is computed, in a subquery
        "SELECT id, (SELECT sum(a.id * b.id) FROM q a JOIN q b EXACT NEAREST 2 BY DISTANCE"
            + " KL(a.mean, transform(a.std, s -> 2 * s), b.mean, b.std) WHERE a.id != b.id) FROM range(3)",
      })
  void aJoinIsWhatSparkMakesOfIt(String text) {
    Dataset<Row> search = spark.sql(text.replace("KL(", "kl_divergence("));
    Dataset<Row> own =
        spark.sql(
            text.replace("DISTANCE KL(", "DISTANCE 0 + KL(")
                .replace("SIMILARITY -KL(", "SIMILARITY 0 - KL(")
                .replace("KL(", "kl_divergence("));
    assertThat(isSearch(search)).isTrue();
    assertThat(isSearch(own)).isFalse();
    assertThat(search.schema()).isEqualTo(own.schema());
    assertThat(search.collectAsList())
        .isNotEmpty()
        .containsExactlyInAnyOrderElementsOf(own.collectAsList());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "SELECT * FROM q JOIN p EXACT NEAREST 1 BY SIMILARITY kl_divergence(q.mean, q.std, p.mean, p.std)",
        "SELECT * FROM q JOIN p EXACT NEAREST 1 BY DISTANCE -kl_divergence(q.mean, q.std, p.mean, p.std)",
        "SELECT * FROM q JOIN p EXACT NEAREST 1 BY DISTANCE kl_divergence(q.mean, p.std, p.mean, q.std)",
        "SELECT * FROM q, LATERAL (SELECT r.id FROM (SELECT 1) l JOIN p r EXACT NEAREST 1 BY DISTANCE kl_divergence(q.mean, q.std, r.mean, r.std))"
      })
  void otherJoinsAreLeftToSpark(String text) {
    assertThat(isSearch(spark.sql(text))).isFalse();
  }

  private static boolean isSearch(Dataset<Row> data) {
    return data.queryExecution().executedPlan().toString().contains("KlNearestByJoin");
  }

  @Test
  void equalJoinsAreComputedOnceIfCached() {
    String text =
        "SELECT * FROM q JOIN p EXACT NEAREST 4 BY DISTANCE kl_divergence(q.mean, q.std, p.mean, p.std)";
    Dataset<Row> cached = spark.sql(text).cache();
    try {
      assertThat(spark.sql(text).queryExecution().withCachedData().toString())
          .startsWith("InMemoryRelation");
      assertThat(spark.sql(text.replace("4", "5")).queryExecution().withCachedData().toString())
          .doesNotContain("InMemoryRelation");
    } finally {
      cached.unpersist();
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          array(1.0), array(1.0), array(2.0)                      | requires 4 parameters
          array(1.0), array(1.0), array(2.0), 1.0                 | The 4th parameter requires the ("ARRAY<DOUBLE>" or "ARRAY<FLOAT>" or "VECTOR") type
          array(1.0), array(1.0), array('x'), array(2.0)          | The third parameter requires
          array(1.0), array(null), array(2.0), array(2.0)         | kl_divergence: qs: element 0 is null
          array(1.0, 2), array(1.0), array(2.0), array(2.0)       | kl_divergence: q: mean has 2 elements but std has 1
          array(1.0), array(1.0), array(2.0, 1), array(2.0, 1)    | kl_divergence: q has dimension 1 but p has 2
          array(1.0), array(1.0), array(2.0), array(0.0)          | kl_divergence: p: std[0] is 0.0; it must be finite and > 0
          array(), array(), array(), array()                      | kl_divergence: q: mean is empty
          """)
  void wrongArgumentsAreNamed(String arguments, String message) {
    assertThatThrownBy(() -> spark.sql("SELECT kl_divergence(%s)".formatted(arguments)).collect())
        .hasMessageContaining(message);
  }

  @Test
  void aWrongRowIsNamed() {
    Dataset<Row> joined =
        spark.sql(
            "SELECT * FROM q JOIN p EXACT NEAREST 1 BY DISTANCE"
                + " kl_divergence(q.mean, q.std, p.mean, transform(p.std, s -> s + double('NaN')))");
    assertThat(isSearch(joined)).isTrue();
    // rows 0 and 1 have a null
    assertThatThrownBy(joined::collect)
        .rootCause()
        .isInstanceOf(IllegalArgumentException.class)
        // of each partition, the first row that has both arrays
        .message()
        .containsPattern("references: id (102|130): column std: std\\[0] is NaN");
    assertThatThrownBy(
            spark.sql(
                    "SELECT q.* FROM (SELECT mean AS m, array(1D, 1D, 0D) AS s FROM q) q JOIN p"
                        + " EXACT NEAREST 1 BY DISTANCE kl_divergence(m, s, p.mean, p.std)")
                ::collect)
        .hasMessageContaining("queries: id 0: column std: std[2] is 0.0");
    assertThatThrownBy( // by an id that is not selected
            spark.sql(
                    "SELECT p.id FROM q JOIN p EXACT NEAREST 1 BY DISTANCE"
                        + " kl_divergence(q.mean, transform(q.std, s -> s * if(q.id = 37, 0, 1)), p.mean, p.std)")
                ::collect)
        .hasMessageContaining("queries: id 37: column std: std[0] is 0.0");
    spark.conf().set(JoinSearch.MOST_BYTES, "0");
    try { // in blocks, too
      assertThatThrownBy(
              spark.sql(
                      "SELECT * FROM q JOIN p EXACT NEAREST 1 BY DISTANCE"
                          + " kl_divergence(q.mean, q.std, p.mean, transform(p.std, s -> s * if(p.id = 150, 0, 1)))")
                  ::collect)
          .rootCause()
          .hasMessageContaining("references: id 150: column std: std[0] is 0.0");
    } finally {
      spark.conf().unset(JoinSearch.MOST_BYTES);
    }
  }

  @Test
  void theFunctionOfNullIsNull() {
    assertThat(
            spark
                .sql("SELECT kl_divergence(null, array(1.0), array(1.0), array(1.0))")
                .collectAsList()
                .getFirst()
                .isNullAt(0))
        .isTrue();
  }
}
