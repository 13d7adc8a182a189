package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.Divergence;
import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Searches by other divergences than KL: in blocks as in one. */
class DivergencesTest {
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestSpark.local();
  }

  @ParameterizedTest
  @CsvSource({
    "jeffreys, STD, false, false",
    "bhattacharyya, LOG_VARIANCE, true, false",
    "wasserstein-2, STD, false, false",
    "squared-wasserstein-2, VARIANCE, true, false",
    "renyi:0.3, VARIANCE, false, true",
    "hellinger, STD, true, false"
  })
  void fiveBlocksAreOne(String name, ScaleKind kind, boolean isDouble, boolean reverse) {
    Sample references = Sample.twins(kind, isDouble, 250, 4, 6);
    Sample queries = references.first(60);
    Dataset<Row> data = references.dataset(spark);
    Divergence divergence = Divergence.of(name);
    KlNeighbors search = KlNeighbors.of(data).divergence(divergence).blockRows(50);
    search =
        switch (kind) {
          case LOG_VARIANCE -> search.logVariance("std");
          case VARIANCE -> search.variance("std");
          default -> search;
        };
    List<Sample.Found> expected = new ArrayList<>();
    Query query = Query.nearest(6).exact();
    try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
      Neighbors all =
          engine.search(queries.batch(), references.batch(), reverse ? query.reverse() : query);
      for (int i = 0; i < all.size(); i++) {
        for (int r = 0; r < 6; r++) {
          expected.add(
              new Sample.Found(
                  queries.ids()[i], r + 1, references.ids()[all.index(i, r)], all.value(i, r)));
        }
      }
    }
    assertThat(
            Sample.found((reverse ? search.reverse() : search).nearest(queries.dataset(spark), 6)))
        .isEqualTo(expected);
  }
}
