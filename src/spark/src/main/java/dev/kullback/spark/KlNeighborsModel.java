package dev.kullback.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.collect_list;
import static org.apache.spark.sql.functions.sort_array;
import static org.apache.spark.sql.functions.struct;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.ml.Model;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.DefaultParamsReader;
import org.apache.spark.ml.util.DefaultParamsWriter;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWritable;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * References of {@link KlNeighborsEstimator}, among which {@link #transform} finds the nearest.
 *
 * <p>A model has its references as the dataset that it was fitted to, not as a copy. {@link #save} writes them as Parquet, and a model
 * that was loaded reads them from there: that folder must stay. The model refuses to be saved over it; a pipeline that has the model deletes
 * the folder first, so save it elsewhere.
 *
 * @since 0.1.0
 */
public final class KlNeighborsModel extends Model<KlNeighborsModel>
    implements KlNeighborsParams<KlNeighborsModel>, MLWritable {
  private static final long serialVersionUID = 1;

  private static final String QUERY = "kullback query";
  private static final String LIST = "kullback list";

  private final String uid;
  private final Dataset<Row> references;

  /**
   * @param references with columns id, mean and scale
   */
  KlNeighborsModel(String uid, Dataset<Row> references) {
    this.uid = uid;
    this.references = references;
    ModelParams.setDefaults(this);
  }

  @Override
  public String uid() {
    return uid;
  }

  /** {@return the references: id, mean, scale} Cache them if they are dear to compute. */
  public Dataset<Row> references() {
    return references;
  }

  /**
   * Adds the k nearest references of each query, the lists of {@link KlNeighbors#nearest}. It runs short jobs at once, as that does; the
   * search runs when the result is used.
   *
   * @param queries rows with the columns idCol, meanCol and scaleCol; ids are not null and all different
   * @return the queries, in no order, and outputCol {@code array<struct<neighbor, kl double>>}: ids of references, of their type, and
   *     divergences, nearest first; null for a query whose mean or scales are null
   * @throws IllegalArgumentException if k is greater than the number of references, there are none, or a column is not there or is of
   *     another type
   */
  @Override
  public Dataset<Row> transform(Dataset<?> queries) {
    Dataset<Row> rows = queries.toDF();
    StructType schema = transformSchema(rows.schema());
    DataType type = schema.apply(schema.length() - 1).dataType();
    Columns.Found found = ModelParams.columns(this).in(rows, "queries");
    Column isGaussian = found.mean().isNotNull().and(found.scale().isNotNull());
    Dataset<Row> lists =
        ModelParams.search(this, named())
            .nearest(rows.where(isGaussian), getK())
            .groupBy("id")
            .agg(sort_array(collect_list(struct(col("rank"), col("neighbor"), col("kl")))))
            .toDF(QUERY, LIST);
    Column neighbors =
        functions
            .transform(col(LIST), near -> struct(near.getField("neighbor"), near.getField("kl")))
            .cast(type);
    return rows.join(lists, found.id().equalTo(col(QUERY)).and(isGaussian), "left_outer")
        .withColumn(getOutputCol(), neighbors)
        .drop(QUERY, LIST);
  }

  /** The references with the names of the parameters; one column may be means and scales. */
  private Dataset<Row> named() {
    return getMeanCol().equals(getScaleCol())
        ? references.select("id", "mean").toDF(getIdCol(), getMeanCol())
        : references.toDF(getIdCol(), getMeanCol(), getScaleCol());
  }

  @Override
  public StructType transformSchema(StructType schema) {
    ModelParams.found(this, schema, "queries", references.sparkSession());
    return ModelParams.withNeighbors(this, schema, references.schema().apply("id").dataType());
  }

  @Override
  public KlNeighborsModel copy(ParamMap extra) {
    return copyValues(new KlNeighborsModel(uid, references), extra).setParent(parent());
  }

  /** {@return a writer of this model: references as Parquet, parameters as JSON} */
  @Override
  public MLWriter write() {
    return new MLWriter() {
      @Override
      public void save(String path) throws IOException {
        var hadoop = sparkSession().sparkContext().hadoopConfiguration();
        if (shouldOverwrite() && new OutputFolder(path, true, hadoop).holdsFilesOf(references)) {
          throw new IllegalArgumentException(
              path + ": holds the references of this model; save it to another folder");
        }
        super.save(path);
      }

      @Override
      public void saveImpl(String path) {
        DefaultParamsWriter.saveMetadata(KlNeighborsModel.this, path, sparkSession());
        references.write().parquet(data(path));
      }
    };
  }

  private static String data(String path) {
    return new Path(path, "data").toString();
  }

  /** {@return a reader of models that were saved} */
  public static MLReader<KlNeighborsModel> read() {
    return new MLReader<>() {
      @Override
      public KlNeighborsModel load(String path) {
        DefaultParamsReader.Metadata metadata =
            DefaultParamsReader.loadMetadata(
                path, sparkSession(), KlNeighborsModel.class.getName());
        KlNeighborsModel model =
            new KlNeighborsModel(metadata.uid(), sparkSession().read().parquet(data(path)));
        metadata.getAndSetParams(model, Option.empty());
        return model;
      }
    };
  }

  /**
   * {@return a model that was saved}
   *
   * @param path its folder
   */
  public static KlNeighborsModel load(String path) {
    return read().load(path);
  }
}
