package dev.kullback.spark;

import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.FullGaussians;
import dev.kullback.KlEngine;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.spark.ml.clustering.GaussianMixture;
import org.apache.spark.ml.linalg.DenseMatrix;
import org.apache.spark.ml.linalg.Matrices;
import org.apache.spark.ml.linalg.Matrix;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.SparseMatrix;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.ml.linalg.Vectors;
import org.apache.spark.ml.stat.distribution.MultivariateGaussian;
import org.apache.spark.mllib.linalg.VectorUDT;
import org.apache.spark.mllib.util.MLUtils;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Vectors and matrices of Spark ML, and arrays of rows, in searches and in SQL; those of its older module are refused. */
class SparkMlTest {
  private static SparkSession spark;

  @TempDir private static Path folder;

  /** Of a mixture that Spark's own estimator fitted: id, mean and cov, and the divergences of all pairs as one engine finds them. */
  private static Dataset<Row> mixture;

  private static Map<List<Long>, Double> expected;

  @BeforeAll
  static void fit() {
    // LAPACK finds the machine's precision at its first call, into static fields without a lock:
    // two
    // tasks at once may find a wrong one, and its dlascl then never ends.
    new MultivariateGaussian(Vectors.dense(0, 0), DenseMatrix.eye(2)).logpdf(Vectors.dense(0, 0));
    spark = TestSpark.local();
    Random random = new Random(45);
    List<Row> points = new ArrayList<>();
    for (int i = 0; i < 400; i++) {
      double x = random.nextGaussian();
      double y = random.nextGaussian();
      int c = i % 4;
      points.add(
          RowFactory.create(
              Vectors.dense(new double[] {5 * c + x, (c - 2) * x + y, 3 * c * c - y + x / 2})));
    }
    var model =
        new GaussianMixture()
            .setK(4)
            .setSeed(1)
            .setMaxIter(20)
            .fit(
                spark.createDataFrame(
                    points, new StructType().add("features", SQLDataTypes.VectorType())));
    mixture =
        model
            .gaussiansDF()
            .coalesce(1)
            .selectExpr("monotonically_increasing_id() AS id", "mean", "cov")
            .cache();
    MultivariateGaussian[] gaussians = model.gaussians();
    int d = 3;
    double[] mean = new double[gaussians.length * d];
    double[] covariance = new double[gaussians.length * d * d];
    for (int i = 0; i < gaussians.length; i++) {
      for (int r = 0; r < d; r++) {
        mean[i * d + r] = gaussians[i].mean().apply(r);
        for (int c = 0; c < d; c++) {
          covariance[(i * d + r) * d + c] = gaussians[i].cov().apply(r, c);
        }
      }
    }
    FullGaussians batch = FullGaussians.ofCovariance(mean, covariance, d);
    expected = new TreeMap<>(Comparator.comparing(Object::toString));
    try (KlEngine engine = KlEngine.builder().build()) {
      var found = engine.search(batch, batch, Query.nearest(gaussians.length).exact());
      for (int i = 0; i < found.size(); i++) {
        for (int rank = 0; rank < found.count(i); rank++) {
          expected.put(List.of((long) i, (long) found.index(i, rank)), found.value(i, rank));
        }
      }
      double[] matrix = new double[batch.size() * batch.size()];
      engine.pairwise(batch, batch, matrix);
      expected.forEach((pair, kl) ->
          assertThat(kl)
              .isCloseTo(
                  matrix[Math.toIntExact(pair.get(0) * batch.size() + pair.get(1))],
                  within(1e-9 * (1 + kl))));
    }
  }

  /** Pairs and their divergences, of rows of id, neighbor, divergence. */
  private static Map<List<Long>, Double> pairs(Dataset<Row> rows) {
    Map<List<Long>, Double> pairs = new TreeMap<>(Comparator.comparing(Object::toString));
    for (Row row : rows.collectAsList()) {
      pairs.put(List.of(row.getLong(0), row.getLong(1)), row.getDouble(2));
    }
    return pairs;
  }

  /** Returns what a query tells of one row. */
  private static double value(String sql) {
    return spark.sql(sql).first().getDouble(0);
  }

  private static double kl(Dataset<Row> found) {
    return found.first().<Double>getAs("kl");
  }

  /** Rows of an id, a mean and a second column, of such types. */
  private static Dataset<Row> data(String name, DataType type, Object... values) {
    StructType schema =
        new StructType()
            .add("id", DataTypes.LongType)
            .add("mean", SQLDataTypes.VectorType())
            .add(name, type);
    return spark.createDataFrame(List.of(RowFactory.create(values)), schema);
  }

  /** Runs with a setting, which is unset in the end. */
  private static void with(String key, Object value, Runnable work) {
    spark.conf().set(key, String.valueOf(value));
    try {
      work.run();
    } finally {
      spark.conf().unset(key);
    }
  }

  /** As Spark gives them, in types of its older module, and converted. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void covariancesOfAFittedMixture(boolean converted) {
    Dataset<Row> data =
        converted
            ? MLUtils.convertVectorColumnsToML(MLUtils.convertMatrixColumnsToML(mixture))
            : mixture;
    assertThat(data.schema().apply("cov").dataType())
        .isInstanceOf(
            converted
                ? SQLDataTypes.MatrixType().getClass()
                : org.apache.spark.mllib.linalg.MatrixUDT.class);
    assertThat(expected).hasSize(16);
    Dataset<Row> found = KlNeighbors.of(data).covariance("cov").nearest(data, 4);
    assertThat(pairs(found.select("id", "neighbor", "kl"))).isEqualTo(expected);
    data.createOrReplaceTempView("mixture");
    assertThat(
            pairs(
                spark.sql(
                    "SELECT q.id, p.id, kl_divergence_full(q.mean, q.cov, p.mean, p.cov) FROM mixture q CROSS JOIN mixture p")))
        .isEqualTo(expected);
  }

  /** A stage that was saved reads its matrices again. */
  @Test
  void aStageOfCovariances() throws Exception {
    KlNeighborsModel model =
        new KlNeighborsEstimator()
            .setK(4)
            .setScaleKind("covariance")
            .setScaleCol("cov")
            .fit(mixture);
    String path = folder.resolve("model").toString();
    model.write().save(path);
    Dataset<Row> found =
        KlNeighborsModel.load(path)
            .transform(mixture)
            .selectExpr("id", "inline(neighbors)")
            .select("id", "neighbor", "kl");
    assertThat(pairs(found)).isEqualTo(expected);
  }

  /** On each of the ways of a join, of which the first two go through the driver. */
  @ParameterizedTest
  @ValueSource(strings = {"1g", "0"})
  void joinsByCovariances(String driver) {
    mixture.createOrReplaceTempView("mixture");
    with(
        JoinSearch.MOST_BYTES,
        driver,
        () -> {
          Dataset<Row> joined =
              spark.sql(
                  "SELECT q.id, p.id, kl_divergence_full(q.mean, q.cov, p.mean, p.cov) FROM mixture q JOIN mixture p"
                      + " EXACT NEAREST 4 BY DISTANCE kl_divergence_full(q.mean, q.cov, p.mean, p.cov)");
          assertThat(isSearch(joined)).isTrue();
          assertThat(pairs(joined)).isEqualTo(expected);
        });
  }

  private static boolean isSearch(Dataset<Row> data) {
    return data.queryExecution().executedPlan().toString().contains("KlNearestByJoin");
  }

  @Test
  void aFileOfCovariancesOnTheCommandLine() {
    String input = folder.resolve("mixture.parquet").toString();
    String output = folder.resolve("nearest.parquet").toString();
    mixture.write().parquet(input);
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    String[] topk = {"topk", "--references", input, "--cov", "cov", "-k", "4", "-o", output};
    int status =
        Main.run(
            topk,
            new PrintStream(new ByteArrayOutputStream(), true, StandardCharsets.UTF_8),
            new PrintStream(err, true, StandardCharsets.UTF_8));
    assertThat(err.toString(StandardCharsets.UTF_8)).isEmpty();
    assertThat(status).isZero();
    assertThat(pairs(spark.read().parquet(output).select("id", "neighbor", "kl")))
        .isEqualTo(expected);
  }

  /** L = [[2, 0, 0], [1, 1, 0], [0, 3, 1]] in each way that Spark has of a matrix. */
  static List<Matrix> factors() {
    double[] byColumns = {2, 1, 0, 0, 1, 3, 0, 0, 1};
    DenseMatrix dense = new DenseMatrix(3, 3, byColumns, false);
    DenseMatrix byRows = new DenseMatrix(3, 3, new double[] {2, 0, 0, 1, 1, 0, 0, 3, 1}, true);
    SparseMatrix sparse =
        new SparseMatrix(
            3,
            3,
            new int[] {0, 2, 4, 5},
            new int[] {0, 1, 1, 2, 2},
            new double[] {2, 1, 1, 3, 1},
            false);
    return List.of(
        dense, byRows, sparse, sparse.toSparseRowMajor(), sparse.transpose().transpose());
  }

  /**
   * KL(N(0, I) ‖ N(μ, LLᵀ)) with μ = (2, 3, 7): ½ (tr Σ⁻¹ + μᵀΣ⁻¹μ − 3 + ln det Σ), where L⁻¹ = [[½, 0, 0], [−½, 1, 0], [3/2, −3, 1]]
   * has squares of sum 13¾, L⁻¹μ = (1, 2, 1) and det Σ = 4.
   */
  private static final double OF_FACTOR = (13.75 + 6 - 3 + Math.log(4)) / 2;

  @ParameterizedTest
  @MethodSource("factors")
  void matricesOfEachKind(Matrix factor) {
    Matrix covariance =
        factor.multiply(new DenseMatrix(3, 3, factor.transpose().toArray(), false)); // of columns
    Matrix wanted =
        factor instanceof DenseMatrix ? covariance : ((DenseMatrix) covariance).toSparseColMajor();
    DataType type = SQLDataTypes.MatrixType();
    Dataset<Row> q = data("matrix", type, 7L, Vectors.zeros(3), Matrices.eye(3));
    Vector mean = Vectors.dense(2, new double[] {3, 7});
    Dataset<Row> p = data("matrix", type, 8L, mean, factor);
    assertThat(kl(KlNeighbors.of(p).scaleTril("matrix").nearest(q, 1)))
        .isCloseTo(OF_FACTOR, within(1e-14));
    Dataset<Row> c = data("matrix", type, 8L, mean, wanted);
    assertThat(kl(KlNeighbors.of(c).covariance("matrix").nearest(q, 1)))
        .isCloseTo(OF_FACTOR, within(1e-13));
    q.createOrReplaceTempView("one");
    c.createOrReplaceTempView("other");
    // matrices are covariances in SQL, and arrays are factors; one of each is no search
    String factors = "array(2, 0, 0, 1, 1, 0, 0, 3, 1)";
    for (String text :
        List.of(
            "kl_divergence_full(q.mean, q.matrix, p.mean, p.matrix)",
            "kl_divergence_full(q.mean, q.matrix, p.mean, " + factors + ")",
            "kl_divergence_full(q.mean, array(1, 0, 0, 0, 1, 0, 0, 0, 1), p.mean, p.matrix)")) {
      for (String join :
          List.of("CROSS JOIN other p", "JOIN other p EXACT NEAREST 1 BY DISTANCE " + text)) {
        Dataset<Row> rows = spark.sql("SELECT " + text + " FROM one q " + join);
        assertThat(rows.first().getDouble(0)).as(text).isCloseTo(OF_FACTOR, within(1e-13));
        assertThat(isSearch(rows)).isEqualTo(!join.startsWith("CROSS") && !text.contains("array"));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"true, CODEGEN_ONLY", "false, NO_CODEGEN"})
  void vectorsInSql(boolean wholeStage, String factory) {
    vectors(Vectors.sparse(2, new int[0], new double[0]), Vectors.dense(1, new double[] {1}))
        .createOrReplaceTempView("q");
    vectors(
            Vectors.sparse(2, new int[] {0}, new double[] {1}),
            Vectors.sparse(2, new int[] {0, 1}, new double[] {2, 1}))
        .createOrReplaceTempView("p");
    with(
        "spark.sql.codegen.wholeStage",
        wholeStage,
        () -> with("spark.sql.codegen.factoryMode", factory, SparkMlTest::checkVectors));
  }

  private static void checkVectors() {
    double expected = 0.44314718055994531; // ½ (¼ + ¼ − 1 + ln 4)
    for (String arguments :
        List.of(
            "q.mean, q.std, p.mean, p.std",
            "q.mean, array(1.0, 1), p.mean, p.std",
            "array(0, 0), q.std, array(1F, 0F), p.std")) {
      String text = "kl_divergence(" + arguments + ")";
      assertThat(value("SELECT " + text + " FROM q CROSS JOIN p")).isEqualTo(expected);
    }
    Dataset<Row> joined =
        spark.sql(
            "SELECT kl_divergence(q.mean, q.std, p.mean, p.std) FROM q JOIN p EXACT NEAREST 1 BY DISTANCE kl_divergence(q.mean, q.std, p.mean, p.std)");
    assertThat(isSearch(joined)).isTrue();
    assertThat(joined.first().getDouble(0)).isEqualTo(expected);
    assertThat(joined.columns()).containsExactly("kl_divergence(mean, std, mean, std)");
    String none = "SELECT kl_divergence(q.mean, q.std, if(q.id > 0, null, q.mean), q.std) FROM q";
    assertThat(spark.sql(none).first().isNullAt(0)).isTrue();
  }

  /** One row of id 17. */
  private static Dataset<Row> vectors(Vector mean, Vector std) {
    return data("std", SQLDataTypes.VectorType(), 17L, mean, std);
  }

  @Test
  void aZeroOfASparseVectorIsNamed() {
    Vector sparse = Vectors.sparse(3, new int[] {0, 2}, new double[] {1, 1});
    Dataset<Row> bad = vectors(Vectors.zeros(3), sparse);
    Dataset<Row> good = vectors(Vectors.zeros(3), Vectors.dense(1, new double[] {1, 1}));
    String zero = "std[1] is 0.0; it must be finite and > 0";
    assertThatThrownBy(KlNeighbors.of(bad).nearest(good, 1)::collect)
        .rootCause()
        .hasMessage("references: id 17: column std: " + zero);
    bad.createOrReplaceTempView("bad");
    good.createOrReplaceTempView("good");
    assertThatThrownBy(spark.sql("SELECT kl_divergence(mean, std, mean, std) FROM bad")::collect)
        .hasMessageContaining("kl_divergence: q: " + zero);
    assertThatThrownBy(
            spark.sql(
                    "SELECT p.id FROM bad q JOIN good p EXACT NEAREST 1 BY DISTANCE kl_divergence(q.mean, q.std, p.mean, p.std)")
                ::collect)
        .hasMessage("queries: id 17: column std: " + zero);
  }

  @Test
  void matricesThatAreNoneAreNamed() {
    DataType type = SQLDataTypes.MatrixType();
    Matrix upper = new DenseMatrix(2, 2, new double[] {1, 0, 2, 1}, false);
    Dataset<Row> bad = data("cov", type, 17L, Vectors.zeros(2), upper);
    assertThatThrownBy(KlNeighbors.of(bad).covariance("cov").nearest(bad, 1)::collect)
        .rootCause()
        .hasMessageContaining(
            "references: id 17: column cov: covariance is not symmetric: [1][0] is 0.0 but [0][1] is 2.0");
    assertThatThrownBy(KlNeighbors.of(bad).scaleTril("cov").nearest(bad, 1)::collect)
        .rootCause()
        .hasMessageContaining("references: id 17: column cov: scaleTril[0][1] is 2.0");
    bad.createOrReplaceTempView("bad");
    assertThatThrownBy(
            spark.sql("SELECT kl_divergence_full(mean, cov, mean, cov) FROM bad")::collect)
        .hasMessageContaining(
            "kl_divergence_full: q: covariance is not symmetric: [1][0] is 0.0 but [0][1] is 2.0");
    Matrix wide = new DenseMatrix(2, 8, new double[16], false);
    Dataset<Row> oblong = data("cov", type, 17L, Vectors.zeros(4), wide);
    assertThatThrownBy(KlNeighbors.of(oblong).covariance("cov").nearest(oblong, 1)::collect)
        .rootCause()
        .hasMessageContaining(
            "column cov has 0 elements, or not as many rows as columns; it must have 16");
    assertThatThrownBy(() -> KlNeighbors.of(bad).std("cov").nearest(bad, 1))
        .hasMessage(
            "references: column cov is org.apache.spark.ml.linalg.MatrixUDT; it must be array<float> or array<double>,"
                + " or a vector of Spark ML; name a column of matrices as that of covariances or scaleTril");
    assertThatThrownBy(() -> spark.sql("SELECT kl_divergence(mean, cov, mean, cov) FROM bad"))
        .hasMessageContaining(
            "The second parameter requires the (\"ARRAY<DOUBLE>\" or \"ARRAY<FLOAT>\" or \"VECTOR\") type");
  }

  /** But beside a matrix, as {@link #covariancesOfAFittedMixture} has them. */
  @Test
  void oldVectorsAreRefusedByName() {
    Dataset<Row> old =
        spark.createDataFrame(
            List.of(
                RowFactory.create(
                    1L, org.apache.spark.mllib.linalg.Vectors.dense(1, new double[] {2}))),
            new StructType().add("id", DataTypes.LongType).add("v", new VectorUDT()));
    String name = "org.apache.spark.mllib.linalg.VectorUDT";
    String conversion =
        "convert it to Spark ML's, by org.apache.spark.mllib.util.MLUtils.convertVectorColumnsToML(data, \"v\")";
    assertThatThrownBy(() -> KlNeighbors.of(old).mean("v").std("v").nearest(old, 1))
        .hasMessage(
            "references: column v is %s; it must be array<float> or array<double>, or a vector of Spark ML; %s"
                .formatted(name, conversion));
    old.createOrReplaceTempView("old");
    for (String call :
        List.of(
            "kl_divergence(v, v, v, v)",
            "kl_divergence(array(1, 2), array(1, 2), array(1, 2), v)",
            "kl_divergence_full(array(1, 2), array(1, 0, 0, 1), v, array(1, 0, 0, 1))")) {
      assertThatThrownBy(() -> spark.sql("SELECT " + call + " FROM old"))
          .hasMessageContaining("due to data type mismatch: v is " + name + "; " + conversion);
    }
    Dataset<Row> vectors = MLUtils.convertVectorColumnsToML(old, "v");
    assertThat(kl(KlNeighbors.of(vectors).mean("v").std("v").nearest(vectors, 1))).isZero();
  }

  /** Literals are decimals, integers and longs, of which arrays of rows are made, too. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void literals(boolean ansi) {
    with("spark.sql.ansi.enabled", ansi, SparkMlTest::checkLiterals);
  }

  private static void checkLiterals() {
    for (String call :
        List.of(
            "kl_divergence(array(0.0, 0.0), array(1.0, 1.0), array(1, 0), array(2.0, 1.0))",
            "kl_divergence(array(0L, 0L), array(1.0, 1), array(1F, 0F), array(2, 1))",
            // as factors of the same
            "kl_divergence_full(array(0, 0), array(array(1, 0), array(0, 1)), array(1.0, 0), array(array(2.0, 0), array(0, 1.0)))",
            "kl_divergence_full(array(0, 0), array(1, 0, 0, 1), array(1L, 0), array(array(2F, 0F), array(0F, 1F)))")) {
      assertThat(value("SELECT " + call)).as(call).isCloseTo(0.44314718055994531, within(1e-16));
    }
    for (String call :
        List.of(
            "kl_divergence(array(0.0), array(1.0), null, null)",
            "kl_divergence_full(array(0.0), array(array(1.0)), null, null)",
            "kl_divergence_full(array(0.0), null, array(0), array(array(1.0)))")) {
      assertThat(spark.sql("SELECT " + call).first().isNullAt(0)).as(call).isTrue();
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          array(array(1D, 0D), array(1D))             | q: mean has 2 elements
          array(array(1D, null), array(0D, 1D))       | qL: element 1 is null
          array(array(1F, 0F), array(null, 1F))       | qL: element 2 is null
          array(array(1D, 0D), null)                  | q: mean has 2 elements
          array(array(1D, 2D), array(0D, 1D))         | q: scaleTril[0][1] is 2.0
          """)
  void rowsThatAreNoMatrix(String rows, String message) {
    assertThatThrownBy(
            spark.sql(
                    "SELECT kl_divergence_full(m, %s, m, array(1D, 0D, 0D, 1D)) FROM (SELECT array(id, id) AS m FROM range(1))"
                        .formatted(rows))
                ::collect)
        .hasMessageContaining("kl_divergence_full: " + message);
  }

  /** Rows of arrays are searched as arrays of all elements are. */
  @ParameterizedTest
  @ValueSource(strings = {"float", "double", "decimal(20, 15)"})
  void rowsInSql(String type) {
    Sample sample = Sample.twins(ScaleKind.SCALE_TRIL, false, 40, 3, 4);
    String cast = "cast(std AS array<" + type + ">)";
    sample
        .dataset(spark)
        .coalesce(1)
        .selectExpr("id", "mean", cast + " AS std")
        .createOrReplaceTempView("flat");
    spark
        .table("flat")
        .withColumn("rows", expr("transform(sequence(0, 2), i -> slice(std, 3 * i + 1, 3))"))
        .createOrReplaceTempView("rows");
    String join =
        "SELECT q.id, p.id, kl_divergence_full(q.mean, q.SCALE, p.mean, p.SCALE) FROM rows q JOIN rows p"
            + " EXACT NEAREST 3 BY DISTANCE kl_divergence_full(q.mean, q.SCALE, p.mean, p.SCALE)";
    Dataset<Row> rows = spark.sql(join.replace("SCALE", "rows"));
    assertThat(isSearch(rows)).isTrue();
    assertThat(pairs(rows)).hasSize(120).isEqualTo(pairs(spark.sql(join.replace("SCALE", "std"))));
  }
}
