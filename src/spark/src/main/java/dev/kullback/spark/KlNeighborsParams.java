package dev.kullback.spark;

import dev.kullback.Divergence;
import org.apache.spark.ml.param.BooleanParam;
import org.apache.spark.ml.param.IntParam;
import org.apache.spark.ml.param.Param;
import org.apache.spark.ml.param.Params;

/**
 * Parameters that {@link KlNeighborsEstimator} and {@link KlNeighborsModel} have in common. A value that is not allowed is an
 * {@link IllegalArgumentException} that names the parameter.
 *
 * @param <S> the class that has them, which setters return
 * @since 0.1.0
 */
public interface KlNeighborsParams<S extends KlNeighborsParams<S>> extends Params {
  /** {@return the parameter k, the number of neighbors, from 1 to the number of references; default 10} */
  default IntParam k() {
    return new IntParam(uid(), "k", "number of neighbors, at least 1", ModelParams.atLeast("k", 1));
  }

  /** {@return the parameter idCol, the column of ids; default id} */
  default Param<String> idCol() {
    return column("idCol", "column of ids");
  }

  /** {@return the parameter meanCol, the column of means; default mean} */
  default Param<String> meanCol() {
    return column("meanCol", "column of means");
  }

  /** {@return the parameter scaleCol, the column of scales; default std} */
  default Param<String> scaleCol() {
    return column("scaleCol", "column of scales, which scaleKind says the kind of");
  }

  /**
   * {@return the parameter scaleKind: std, variance, logVariance, precision, scaleTril or covariance, as {@link KlNeighbors} has
   * them; default std}
   */
  default Param<String> scaleKind() {
    return new Param<>(
        uid(),
        "scaleKind",
        "std, variance, logVariance or precision; of full covariances scaleTril or covariance",
        ModelParams.scaleKind("scaleKind"));
  }

  /** {@return the parameter divergence, a name of {@link Divergence#of}; default kl} */
  default Param<String> divergence() {
    return new Param<>(
        uid(),
        "divergence",
        "name of a divergence of query and reference, such as kl",
        ModelParams.divergence("divergence"));
  }

  /** {@return the parameter reverse, whether by {@code KL(p ‖ q)} instead; default false} */
  default BooleanParam reverse() {
    return new BooleanParam(uid(), "reverse", "whether by the divergence of reference and query");
  }

  /** {@return the parameter blockRows, the references of a block, or 0, the default, for as many as fit an executor} */
  default IntParam blockRows() {
    return new IntParam(
        uid(),
        "blockRows",
        "references of a block; 0: by memory",
        ModelParams.atLeast("blockRows", 0));
  }

  /** {@return the parameter broadcast, whether each executor gets all references as one block; default false} */
  default BooleanParam broadcast() {
    return new BooleanParam(
        uid(), "broadcast", "whether each executor gets all references as one block");
  }

  /** {@return the parameter outputCol, the column of neighbors that is added; default neighbors} */
  default Param<String> outputCol() {
    return column("outputCol", "column of neighbors that is added");
  }

  /** {@return the value of {@link #k()}} */
  default int getK() {
    return (Integer) getOrDefault(k());
  }

  /** {@return the value of {@link #idCol()}} */
  default String getIdCol() {
    return getOrDefault(idCol());
  }

  /** {@return the value of {@link #meanCol()}} */
  default String getMeanCol() {
    return getOrDefault(meanCol());
  }

  /** {@return the value of {@link #scaleCol()}} */
  default String getScaleCol() {
    return getOrDefault(scaleCol());
  }

  /** {@return the value of {@link #scaleKind()}} */
  default String getScaleKind() {
    return getOrDefault(scaleKind());
  }

  /** {@return the value of {@link #divergence()}} */
  default String getDivergence() {
    return getOrDefault(divergence());
  }

  /** {@return the value of {@link #reverse()}} */
  default boolean getReverse() {
    return (Boolean) getOrDefault(reverse());
  }

  /** {@return the value of {@link #blockRows()}} */
  default int getBlockRows() {
    return (Integer) getOrDefault(blockRows());
  }

  /** {@return the value of {@link #broadcast()}} */
  default boolean getBroadcast() {
    return (Boolean) getOrDefault(broadcast());
  }

  /** {@return the value of {@link #outputCol()}} */
  default String getOutputCol() {
    return getOrDefault(outputCol());
  }

  /**
   * {@return this, with {@link #k()} set}
   *
   * @param value at least 1
   */
  default S setK(int value) {
    return with(k(), value);
  }

  /**
   * {@return this, with {@link #idCol()} set}
   *
   * @param value a column's name
   */
  default S setIdCol(String value) {
    return with(idCol(), value);
  }

  /**
   * {@return this, with {@link #meanCol()} set}
   *
   * @param value a column's name
   */
  default S setMeanCol(String value) {
    return with(meanCol(), value);
  }

  /**
   * {@return this, with {@link #scaleCol()} set}
   *
   * @param value a column's name
   */
  default S setScaleCol(String value) {
    return with(scaleCol(), value);
  }

  /**
   * {@return this, with {@link #scaleKind()} set}
   *
   * @param value one of its names
   */
  default S setScaleKind(String value) {
    return with(scaleKind(), value);
  }

  /**
   * {@return this, with {@link #divergence()} set}
   *
   * @param value its name
   */
  default S setDivergence(String value) {
    return with(divergence(), value);
  }

  /**
   * {@return this, with {@link #reverse()} set}
   *
   * @param value whether by {@code KL(p ‖ q)}
   */
  default S setReverse(boolean value) {
    return with(reverse(), value);
  }

  /**
   * {@return this, with {@link #blockRows()} set}
   *
   * @param value at least 0
   */
  default S setBlockRows(int value) {
    return with(blockRows(), value);
  }

  /**
   * {@return this, with {@link #broadcast()} set}
   *
   * @param value whether references are broadcast
   */
  default S setBroadcast(boolean value) {
    return with(broadcast(), value);
  }

  /**
   * {@return this, with {@link #outputCol()} set}
   *
   * @param value a column's name
   */
  default S setOutputCol(String value) {
    return with(outputCol(), value);
  }

  @SuppressWarnings("unchecked") // the class says that it is S
  private <T> S with(Param<T> param, T value) {
    set(param, value);
    return (S) this;
  }

  private Param<String> column(String name, String doc) {
    return new Param<>(uid(), name, doc, ModelParams.column(name));
  }
}
