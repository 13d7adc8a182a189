package dev.kullback.spark;

import org.apache.spark.ml.Estimator;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.DefaultParamsReader;
import org.apache.spark.ml.util.DefaultParamsWritable;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;

/**
 * Searches by {@link KlNeighbors} as a stage of MLlib: {@code fit(references)} gives a {@link KlNeighborsModel}, which adds to each query
 * its nearest references.
 *
 * <pre>
 * KlNeighborsModel model = new KlNeighborsEstimator().setK(5).fit(references);
 * Dataset&lt;Row&gt; nearest = model.transform(queries); // with the column neighbors
 * </pre>
 *
 * <p>Fitting finds the columns and computes nothing: rows are read, and wrong ones found, where the model is used.
 *
 * @since 0.1.0
 */
public final class KlNeighborsEstimator extends Estimator<KlNeighborsModel>
    implements KlNeighborsParams<KlNeighborsEstimator>, DefaultParamsWritable {
  private static final long serialVersionUID = 1;

  private final String uid;

  /** Makes an estimator with the default of each parameter. */
  public KlNeighborsEstimator() {
    this(Identifiable$.MODULE$.randomUID("klNeighbors"));
  }

  /**
   * Makes an estimator under an id.
   *
   * @param uid the id, of which MLlib wants no two alike
   */
  public KlNeighborsEstimator(String uid) {
    this.uid = uid;
    ModelParams.setDefaults(this);
  }

  @Override
  public String uid() {
    return uid;
  }

  /**
   * {@return a model of references}
   *
   * @param references rows with the columns idCol, meanCol and scaleCol, of any type that {@link KlNeighbors} takes
   * @throws IllegalArgumentException if a column is not there or is of another type
   */
  @Override
  public KlNeighborsModel fit(Dataset<?> references) {
    transformSchema(references.schema());
    Dataset<Row> rows = references.toDF();
    Columns.Found found = ModelParams.columns(this).in(rows, "references");
    Dataset<Row> columns =
        rows.select(found.id().as("id"), found.mean().as("mean"), found.scale().as("scale"));
    return copyValues(new KlNeighborsModel(uid, columns), ParamMap.empty()).setParent(this);
  }

  @Override
  public StructType transformSchema(StructType schema) {
    Columns.Found found = ModelParams.found(this, schema, "references", SparkSession.active());
    return ModelParams.withNeighbors(this, schema, found.idType());
  }

  @Override
  public KlNeighborsEstimator copy(ParamMap extra) {
    return defaultCopy(extra);
  }

  /** {@return a reader of estimators that were saved} */
  public static MLReader<KlNeighborsEstimator> read() {
    return new DefaultParamsReader<>();
  }

  /**
   * {@return an estimator that was saved}
   *
   * @param path its folder
   */
  public static KlNeighborsEstimator load(String path) {
    return read().load(path);
  }
}
