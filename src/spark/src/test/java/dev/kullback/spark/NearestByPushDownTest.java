package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.spark.NearestBy.KlNearestByJoin;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import scala.jdk.javaapi.CollectionConverters;

/** What goes below a nearest-by join, and that the result stays. */
class NearestByPushDownTest {
  private static final String JOIN =
      " JOIN r EXACT NEAREST 3 BY DISTANCE KL(l.mean, l.std, r.mean, r.std)";

  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestSpark.local();
    // What is pushed below a join does not depend on how rows are computed: no plan is compiled.
    spark.conf().set("spark.sql.codegen.wholeStage", false);
    spark.conf().set("spark.sql.codegen.factoryMode", "NO_CODEGEN");
    for (String side : List.of("l", "r")) {
      spark
          .range(0, 30, 1, 2)
          .selectExpr(
              "id",
              "'text' || id AS text",
              "if(id % 8 = 1, null, array(sin(id), cos(2 * id))) AS mean",
              "if(id % 8 = 2, null, array(1 + cos(3 * id) / 2, 2 + sin(id))) AS std")
          .cache()
          .createOrReplaceTempView(side);
    }
  }

  @AfterAll
  static void free() {
    spark.conf().unset("spark.sql.codegen.wholeStage");
    spark.conf().unset("spark.sql.codegen.factoryMode");
    spark.catalog().clearCache();
  }

  private static Dataset<Row> search(String text) {
    return spark.sql(text.replace("KL(", "kl_divergence("));
  }

  private static Dataset<Row> own(String text) {
    return spark.sql(
        text.replace("DISTANCE KL(", "DISTANCE 0 + KL(").replace("KL(", "kl_divergence("));
  }

  /** The join's two sides, and all that is above it. */
  private record Parts(String left, String right, String above) {
    static Parts of(Dataset<Row> data) {
      List<String> above = new ArrayList<>();
      LogicalPlan plan = data.queryExecution().optimizedPlan();
      while (!(plan instanceof KlNearestByJoin join)) {
        above.add(plan.simpleString(1000));
        plan = CollectionConverters.asJava(plan.children()).getFirst();
      }
      return new Parts(
          join.left().toString(), join.children().apply(1).toString(), String.join("\n", above));
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          WHERE l.id = 7                                          | (id#\\d+L = 7)       |
          WHERE l.id < 20 AND r.id > 5                            | (id#\\d+L < 20)      | (id#\\d+L > 5)
          WHERE l.id + r.id < 30 AND l.text > 'text2'             | (text#\\d+ > text2)  | id#\\d+L \\+ id#\\d+L
          WHERE KL(l.mean, l.std, r.mean, r.std) < 1              |                      | < 1.0
          WHERE r.id = 7                                          |                      | (id#\\d+L = 7)
          WHERE uuid() <> l.text AND l.id < 20                    | (id#\\d+L < 20)      | uuid
          WHERE l.id IN (SELECT 2 * id FROM range(5))             | LeftSemi             |
          WHERE EXISTS (SELECT 1 FROM range(9) x WHERE x.id = l.id) | LeftSemi           |
          WHERE l.id NOT IN (SELECT 2 * id FROM range(5))         | LeftAnti             |
          WHERE r.id IN (SELECT 2 * id FROM range(5))             |                      | LeftSemi
          LEFT SEMI JOIN range(5) x ON x.id = l.id AND l.text > 'text1' | LeftSemi       |
          LEFT ANTI JOIN range(5) x ON x.id = l.id                | LeftAnti             |
          LEFT SEMI JOIN range(5) x ON x.id = l.id + r.id         |                      | LeftSemi
          """)
  void whatIsOfTheLeftGoesBelow(String condition, String below, String above) {
    for (String outer : List.of("", " LEFT OUTER")) {
      String text = "SELECT l.id, r.id, l.text FROM l" + outer + JOIN + " " + condition;
      Parts parts = Parts.of(search(text));
      assertThat(parts.right).doesNotContain("Filter", "Limit", "Semi");
      if (below == null) {
        assertThat(parts.left).doesNotContain("Filter", "LeftSemi", "LeftAnti");
      } else {
        assertThat(parts.left).containsPattern(below);
      }
      if (above == null) {
        assertThat(parts.above).doesNotContain("Filter", "LeftSemi", "LeftAnti");
      } else if (outer.isEmpty()) {
        assertThat(parts.above).containsPattern(above);
      }
      assertThat(search(text).collectAsList())
          .containsExactlyInAnyOrderElementsOf(own(text).collectAsList());
    }
  }

  @Test
  void limitsGoBelow() {
    for (String outer : List.of("", " LEFT OUTER")) {
      String text = "SELECT l.id, r.id FROM l" + outer + JOIN;
      List<Row> all = own(text).collectAsList();
      Parts parts = Parts.of(search(text + " LIMIT 4"));
      assertThat(parts.left).contains("LocalLimit 4");
      assertThat(parts.left.contains("isnotnull(mean")).isEqualTo(outer.isEmpty());
      assertThat(search(text + " LIMIT 4").collectAsList()).hasSize(4).isSubsetOf(all);
      assertThat(search(text + " LIMIT 1000").collectAsList())
          .containsExactlyInAnyOrderElementsOf(all);
      // the rows that a condition leaves are limited, not those before it
      String mixed = text + " WHERE r.id > 20 LIMIT 5";
      assertThat(Parts.of(search(mixed)).left).doesNotContain("Limit");
      assertThat(search(mixed).collectAsList()).hasSize(5).isSubsetOf(all);
    }
  }

  @Test
  void columnsThatAreNotNeededAreNotRead() {
    Parts parts = Parts.of(search("SELECT l.id FROM l" + JOIN));
    // ids are for messages on the right
    String read = "Project \\[id#\\d+L, mean#\\d+, std#\\d+\\]";
    assertThat(parts.left.lines().findFirst()).get().asString().matches(read);
    assertThat(parts.right.lines().findFirst()).get().asString().matches(read);
    String plan =
        search("SELECT l.id, r.text FROM l" + JOIN).queryExecution().executedPlan().toString();
    assertThat(plan.lines().filter(line -> line.contains("KlNearestByJoin")).findFirst())
        .get()
        .asString()
        .containsPattern("\\[id#\\d+L, text#\\d+\\]");
  }
}
