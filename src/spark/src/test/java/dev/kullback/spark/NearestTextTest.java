package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.ScaleKind;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The texts that {@code kullback.py} makes, as its own test compares them, find what one engine finds. */
class NearestTextTest {
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestSpark.local();
  }

  private static Dataset<Row> nearest(String file, Dataset<Row> queries, Dataset<Row> references)
      throws IOException {
    queries.createOrReplaceTempView("queries");
    references.createOrReplaceTempView("refs");
    try (InputStream text =
        Objects.requireNonNull(NearestTextTest.class.getResourceAsStream(file), file)) {
      Dataset<Row> result = spark.sql(new String(text.readAllBytes(), StandardCharsets.UTF_8));
      assertThat(result.columns()).containsExactly("id", "rank", "neighbor", "kl");
      assertThat(result.queryExecution().executedPlan().toString()).contains("KlNearestByJoin");
      return result;
    }
  }

  @Test
  void standardDeviations() throws Exception {
    Sample p = Sample.twins(ScaleKind.STD, false, 90, 4, 8);
    // in the order of ids, as ties go by that of rows
    Dataset<Row> references = p.dataset(spark).repartition(1).sortWithinPartitions("id");
    assertThat(Sample.found(nearest("nearest.sql", p.first(30).dataset(spark), references)))
        .isEqualTo(p.first(30).nearest(p, 5, false));
    assertThat(spark.catalog().functionExists("kl_divergence")).isTrue();
    assertThat(spark.catalog().functionExists("kl_divergence_full")).isTrue();
  }

  @Test
  void factorsAndOddNames() throws Exception {
    Sample p = Sample.twins(ScaleKind.SCALE_TRIL, true, 60, 3, 9);
    String[] columns = {"id AS `a.key`", "struct(mean) AS g", "std AS `{L}```"};
    Dataset<Row> references = p.dataset(spark).repartition(1).sortWithinPartitions("id");
    assertThat(
            Sample.found(
                nearest(
                    "nearest-full.sql",
                    p.first(20).dataset(spark).selectExpr(columns),
                    references.selectExpr(columns))))
        .isEqualTo(p.first(20).nearest(p, 3, true));
  }
}
