package dev.kullback.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.when;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.Divergence;
import dev.kullback.ScaleKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.ml.Pipeline;
import org.apache.spark.ml.PipelineModel;
import org.apache.spark.ml.PipelineStage;
import org.apache.spark.ml.feature.SQLTransformer;
import org.apache.spark.ml.functions;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The estimator and the model find what {@link KlNeighbors} finds. */
class KlNeighborsModelTest {
  private static final Sample SAMPLE = Sample.twins(ScaleKind.STD, false, 120, 4, 5);
  private static final int K = 5;

  private static SparkSession spark;
  private static Dataset<Row> references;
  private static Dataset<Row> queries;
  private static List<Sample.Found> expected;

  @TempDir Path folder;

  @BeforeAll
  static void start() {
    spark = TestSpark.local();
    references = SAMPLE.first(80).dataset(spark);
    queries = SAMPLE.last(50).dataset(spark).withColumn("extra", col("id").multiply(2));
    expected = SAMPLE.last(50).nearest(SAMPLE.first(80), K, false);
  }

  private static KlNeighborsEstimator estimator() {
    return new KlNeighborsEstimator().setK(K).setBlockRows(30);
  }

  /** The lists as rows of {@link KlNeighbors#nearest}. */
  private static Dataset<Row> rows(Dataset<Row> transformed) {
    return transformed
        .selectExpr("id", "posexplode(neighbors) AS (rank, near)")
        .selectExpr("id", "rank + 1 AS rank", "near.neighbor", "near.kl");
  }

  @Test
  void listsAreThoseOfOneEngine() {
    KlNeighborsModel model = estimator().fit(references);
    Dataset<Row> result = model.transform(queries);
    assertThat(result.columns()).containsExactly("id", "mean", "std", "extra", "neighbors");
    assertThat(result.schema()).isEqualTo(model.transformSchema(queries.schema()));
    assertThat(result.where("extra = 2 * id").count()).isEqualTo(50);
    assertThat(Sample.found(rows(result))).isEqualTo(expected);
    Sample first = SAMPLE.first(80);
    Sample last = SAMPLE.last(50);
    assertThat(Sample.found(rows(model.setReverse(true).setBroadcast(true).transform(queries))))
        .isEqualTo(last.nearest(first, K, true));
    assertThat(
            Sample.found(
                rows(estimator().setDivergence("jeffreys").fit(references).transform(queries))))
        .isEqualTo(
            Sample.found(
                KlNeighbors.of(references)
                    .divergence(Divergence.JEFFREYS)
                    .blockRows(30)
                    .nearest(queries, K)));
  }

  @Test
  void factorsCovariancesAndVectors() {
    Sample full = Sample.twins(ScaleKind.SCALE_TRIL, true, 60, 3, 6);
    Dataset<Row> data = full.dataset(spark);
    assertThat(Sample.found(rows(estimator().setScaleKind("scaleTril").fit(data).transform(data))))
        .isEqualTo(full.nearest(full, K, false));
    Dataset<Row> covariances =
        data.withColumn("std", expr("transform(std, (x, i) -> IF(i % 4 = 0, x * x, 0D))"));
    KlNeighborsEstimator byCovariance = estimator().setScaleKind("covariance");
    assertThat(Sample.found(rows(byCovariance.fit(covariances).transform(covariances))))
        .isEqualTo(
            Sample.found(
                KlNeighbors.of(covariances)
                    .covariance("std")
                    .blockRows(30)
                    .nearest(covariances, K)));
    Column mean = functions.array_to_vector(col("mean"));
    Dataset<Row> vectors = references.withColumn("mean", mean);
    Dataset<Row> doubles =
        queries
            .withColumn("mean", col("mean").cast("array<double>"))
            .withColumn("std", col("std").cast("array<double>"));
    assertThat(Sample.found(rows(estimator().fit(vectors).transform(doubles))))
        .isEqualTo(Sample.found(KlNeighbors.of(vectors).nearest(doubles, K)));
  }

  @Test
  void idsComeBackAsTheyWere() {
    Dataset<Row> named = references.withColumn("id", expr("format_string('r%08d', id + 2000)"));
    Dataset<Row> result = estimator().fit(named).transform(queries);
    assertThat(
            Sample.found(
                rows(result)
                    .withColumn("neighbor", expr("cast(substr(neighbor, 2) AS bigint) - 2000"))))
        .isEqualTo(expected);
    Dataset<Row> shorts = references.withColumn("id", col("id").cast("short"));
    Dataset<Row> strings = queries.withColumn("id", col("id").cast("string"));
    Dataset<Row> other = rows(estimator().fit(shorts).transform(strings));
    assertThat(other.schema().apply("neighbor").dataType()).isEqualTo(DataTypes.ShortType);
    assertThat(
            Sample.found(
                other
                    .withColumn("id", col("id").cast("bigint"))
                    .withColumn("neighbor", col("neighbor").cast("bigint"))))
        .isEqualTo(expected);
  }

  @Test
  void columnsByOtherNames() {
    Dataset<Row> nested = references.selectExpr("id AS key", "struct(mean, std) AS g");
    Dataset<Row> q = queries.selectExpr("id AS key", "struct(mean, std) AS g");
    Dataset<Row> result =
        estimator()
            .setIdCol("key")
            .setMeanCol("g.mean")
            .setScaleCol("g.std")
            .setOutputCol("near")
            .fit(nested)
            .transform(q);
    assertThat(result.columns()).containsExactly("key", "g", "near");
    assertThat(Sample.found(rows(result.toDF("id", "g", "neighbors")))).isEqualTo(expected);
    // means that are scales, too
    assertThat(Sample.found(rows(estimator().setMeanCol("std").fit(references).transform(queries))))
        .isEqualTo(Sample.found(KlNeighbors.of(references).mean("std").nearest(queries, K)));
  }

  @Test
  void queriesWithNullArraysHaveNoList() {
    long id = expected.getFirst().id();
    Column is = col("id").equalTo(id);
    Dataset<Row> some = queries.withColumn("mean", when(is, lit(null)).otherwise(col("mean")));
    Dataset<Row> result = estimator().fit(references).transform(some);
    assertThat(result.where(col("neighbors").isNull()).select("id").collectAsList())
        .extracting(row -> row.getLong(0))
        .containsExactly(id);
    assertThat(Sample.found(rows(result)))
        .isEqualTo(expected.stream().filter(found -> found.id() != id).toList());
    assertThat(estimator().fit(references).transform(queries.limit(0)).count()).isZero();
  }

  @Test
  void wrongRowsAreNamed() {
    KlNeighborsModel model = estimator().fit(references);
    Dataset<Row> none = queries.withColumn("id", lit(null).cast("bigint"));
    assertThatThrownBy(() -> model.transform(none).collectAsList())
        .rootCause()
        .hasMessage("queries: an id is null, in column id");
    Dataset<Row> twice = references.union(references.limit(1));
    assertThatThrownBy(() -> estimator().fit(twice).transform(queries).collectAsList())
        .rootCause()
        .hasMessageMatching("references: id -?\\d+: is there more than once, in column id");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> model.copy(ParamMap.empty()).setK(81).transform(queries))
        .withMessage("k must be in [1, 80], the number of references, is 81");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> model.transform(queries.drop("std")))
        .withMessage("queries: no column std; there are id, mean, extra");
    Dataset<Row> stream =
        spark
            .readStream()
            .format("rate")
            .load()
            .selectExpr("value AS id", "array(0) AS mean", "array(1) AS std");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> model.transform(stream))
        .withMessage(
            "queries: is a stream; take its batches, as by writeStream().foreachBatch(...)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator().fit(stream))
        .withMessageStartingWith("references: is a stream; ");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator().setIdCol("x").fit(references))
        .withMessage("references: no column x; there are id, mean, std");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator().setOutputCol("MEAN").fit(references))
        .withMessage("outputCol: there is a column MEAN already; give another name");
  }

  /** Lists come back by ids that SQL takes for equal, whatever their bytes are. */
  @ParameterizedTest
  @ValueSource(
      strings = {"cast('twin' AS binary)", "collate(IF(id % 2 = 0, 'twin', 'TWIN'), 'UTF8_LCASE')"})
  void idsOfQueriesThatAreEqualAreRefused(String id) {
    KlNeighborsModel model = estimator().fit(references);
    Dataset<Row> twins =
        queries.where("id % 2 = 0").limit(1).union(queries.where("id % 2 <> 0").limit(1));
    assertThat(twins.count()).isEqualTo(2);
    assertThatThrownBy(() -> model.transform(twins.withColumn("id", expr(id))).collectAsList())
        .rootCause()
        .hasMessageContaining("is there more than once, in column id");
  }

  @Test
  void parametersAreChecked() {
    KlNeighborsEstimator estimator = new KlNeighborsEstimator();
    assertThat(estimator.explainParams())
        .contains("k: number of neighbors, at least 1 (default: 10)");
    assertThat(Arrays.stream(estimator.params()).map(param -> param.name()))
        .containsExactly(
            "blockRows",
            "broadcast",
            "divergence",
            "idCol",
            "k",
            "meanCol",
            "outputCol",
            "reverse",
            "scaleCol",
            "scaleKind");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator.setK(0))
        .withMessage("k must be at least 1, is 0");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator.setBlockRows(-1))
        .withMessage("blockRows must be at least 0, is -1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator.setMeanCol(""))
        .withMessage("meanCol must be a column's name, is empty");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator.setScaleKind("sigma"))
        .withMessage(
            "scaleKind must be one of std, variance, logVariance, precision, scaleTril, covariance, is sigma");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> estimator.set(estimator.divergence(), "chernoff:2"))
        .withMessage("divergence: alpha must be in (0, 1), but is 2.0");
  }

  @Test
  void copiesHaveTheirOwnParameters() {
    KlNeighborsEstimator estimator = estimator();
    KlNeighborsEstimator copy = estimator.copy(new ParamMap().put(estimator.k().w(3)));
    assertThat(copy.getK()).isEqualTo(3);
    assertThat(copy.getBlockRows()).isEqualTo(30);
    assertThat(estimator.getK()).isEqualTo(K);
    KlNeighborsModel model = copy.fit(references);
    assertThat(model.getK()).isEqualTo(3);
    assertThat(model.parent()).isSameAs(copy);
    KlNeighborsModel other = model.copy(ParamMap.empty());
    assertThat(other.setK(2).uid()).isEqualTo(model.uid()).isEqualTo(estimator.uid());
    assertThat(model.getK()).isEqualTo(3);
    assertThat(other.parent()).isSameAs(copy);
  }

  @Test
  void savesAndLoads() throws IOException {
    String path = folder.resolve("model").toString();
    String other = folder.resolve("other").toString();
    KlNeighborsModel model = estimator().setIdCol("ID").setOutputCol("near").fit(references);
    model.save(path);
    assertThatThrownBy(() -> model.save(path))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("already exists");
    KlNeighborsModel loaded = KlNeighborsModel.load(path);
    assertThat(loaded.uid()).isEqualTo(model.uid());
    assertThat(loaded.extractParamMap()).hasToString(model.extractParamMap().toString());
    assertThat(Sample.found(rows(loaded.transform(queries).withColumnRenamed("near", "neighbors"))))
        .isEqualTo(expected);
    // it reads its references there
    assertThatIllegalArgumentException()
        .isThrownBy(() -> loaded.write().overwrite().save(path))
        .withMessage(path + ": holds the references of this model; save it to another folder");
    loaded.references().cache(); // has no files in its plan, and reads them still
    assertThatIllegalArgumentException()
        .isThrownBy(() -> loaded.write().overwrite().save(path))
        .withMessageEndingWith("save it to another folder");
    loaded.references().unpersist();
    assertThat(Files.exists(Path.of(path, "data", "_SUCCESS"))).isTrue();
    loaded.setK(2).save(other);
    model.write().overwrite().save(other);
    assertThat(KlNeighborsModel.load(other).getK()).isEqualTo(K);

    KlNeighborsEstimator estimator = estimator().setReverse(true).setScaleKind("variance");
    estimator.save(folder.resolve("estimator").toString());
    KlNeighborsEstimator same = KlNeighborsEstimator.load(folder.resolve("estimator").toString());
    assertThat(same.extractParamMap()).hasToString(estimator.extractParamMap().toString());
  }

  @Test
  void stagesOfAPipeline() throws IOException {
    SQLTransformer scaled =
        new SQLTransformer()
            .setStatement("SELECT *, transform(std, x -> x * x) AS variance FROM __THIS__");
    KlNeighborsEstimator byVariance = estimator().setScaleCol("variance").setScaleKind("variance");
    Pipeline pipeline = new Pipeline().setStages(new PipelineStage[] {scaled, byVariance});
    PipelineModel model = pipeline.fit(references);
    List<Sample.Found> found = Sample.found(rows(model.transform(queries)));
    Dataset<Row> r = scaled.transform(references);
    Dataset<Row> q = scaled.transform(queries);
    assertThat(found).isEqualTo(Sample.found(KlNeighbors.of(r).variance("variance").nearest(q, K)));
    String path = folder.resolve("pipeline").toString();
    model.save(path);
    assertThat(Sample.found(rows(PipelineModel.load(path).transform(queries)))).isEqualTo(found);
    pipeline.write().overwrite().save(path);
    assertThat(Sample.found(rows(Pipeline.load(path).fit(references).transform(queries))))
        .isEqualTo(found);
  }
}
