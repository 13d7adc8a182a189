package dev.kullback.spark;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.NearestOptions;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.ImplicitCastInputTypes;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.TypeCollection;
import org.jspecify.annotations.Nullable;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The function {@code kl_divergence(qm, qs, pm, ps)} of {@link KullbackExtensions}, as an expression of Catalyst. */
@SuppressWarnings("serial") // goes to executors that run the same classes
final class KlDivergence extends Expression
    implements ImplicitCastInputTypes, CodegenFallback, Serializable {
  static final String NAME = "kl_divergence";

  static final ExpressionInfo INFO =
      new ExpressionInfo(
          KlDivergence.class.getName(),
          "",
          NAME,
          "_FUNC_(qm, qs, pm, ps) - Returns KL(q || p), in nats, of two diagonal Gaussians by their means and standard deviations.",
          "",
          "",
          "",
          "math_funcs",
          "",
          "",
          "scala_udf");

  private static final List<String> ARGUMENTS = List.of("qm", "qs", "pm", "ps");
  private static final NearestOptions EXACT = NearestOptions.of(1).exact();

  /** Holds an engine that the first call makes, not the session. It computes on the calling thread. */
  private static final class Engine {
    static final KlEngine INSTANCE = Shared.build(KlEngine.builder());
  }

  /** Type of the arguments: a float array stays one; any other array that can be is cast to double. */
  private static final AbstractDataType ARRAY =
      new TypeCollection(
          seq(
              List.<AbstractDataType>of(
                  new ArrayType(DataTypes.DoubleType, true),
                  new ArrayType(DataTypes.FloatType, true))));

  private final Seq<Expression> arguments;

  private KlDivergence(Seq<Expression> arguments) {
    this.arguments = arguments;
  }

  KlDivergence(Gaussian q, Gaussian p) {
    this(seq(List.of(q.mean(), q.std(), p.mean(), p.std())));
  }

  /** A Gaussian, by the expressions of its mean and its standard deviation. */
  record Gaussian(Expression mean, Expression std) {
    /** Whether columns of the plan's output are all that it needs. */
    boolean isOf(QueryPlan<?> plan) {
      AttributeSet output = plan.outputSet();
      return mean.references().subsetOf(output) && std.references().subsetOf(output);
    }
  }

  /** Makes the expression of a call in SQL. */
  static Expression of(Seq<Expression> arguments) {
    if (arguments.length() != ARGUMENTS.size()) {
      KlDivergence.<RuntimeException>raise(
          QueryCompilationErrors.wrongNumArgsError(
              NAME, seq(List.<Object>of(ARGUMENTS.size())), arguments.length(), "", "", ""));
    }
    if (arguments.exists(argument -> argument instanceof NamedArgumentExpression)) {
      KlDivergence.<RuntimeException>raise(QueryCompilationErrors.namedArgumentsNotSupported(NAME));
    }
    return new KlDivergence(arguments);
  }

  /** Spark's AnalysisException is checked in Java, and not declared where Spark expects it. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void raise(Throwable e) throws E {
    throw (E) e;
  }

  static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  Gaussian q() {
    return new Gaussian(arguments.apply(0), arguments.apply(1));
  }

  Gaussian p() {
    return new Gaussian(arguments.apply(2), arguments.apply(3));
  }

  @Override
  public @Nullable Object eval(@Nullable InternalRow row) {
    ArrayData[] arrays = new ArrayData[ARGUMENTS.size()];
    for (int n = 0; n < arrays.length; n++) {
      Object value = arguments.apply(n).eval(row);
      if (value == null) {
        return null;
      }
      arrays[n] = (ArrayData) value;
    }
    double[][] values = new double[arrays.length][];
    Arrays.setAll(values, n -> values(n, arrays[n]));
    try {
      return Engine.INSTANCE
          .nearest(gaussian("q", values[0], values[1]), gaussian("p", values[2], values[3]), EXACT)
          .value(0, 0);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("%s: %s".formatted(NAME, e.getMessage()), e);
    }
  }

  private double[] values(int n, ArrayData array) {
    for (int h = 0; h < array.numElements(); h++) {
      if (array.isNullAt(h)) {
        throw new IllegalArgumentException(
            "%s: %s: element %d is null".formatted(NAME, ARGUMENTS.get(n), h));
      }
    }
    ArrayType type = (ArrayType) arguments.apply(n).dataType();
    if (type.elementType().equals(DataTypes.DoubleType)) {
      return array.toDoubleArray();
    }
    float[] floats = array.toFloatArray();
    double[] values = new double[floats.length];
    Arrays.setAll(values, h -> floats[h]);
    return values;
  }

  private static DiagonalGaussians gaussian(String name, double[] mean, double[] std) {
    try {
      return DiagonalGaussians.ofStd(mean, std, mean.length);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(name + ": " + e.getMessage(), e);
    }
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
  }

  @Override
  public Seq<AbstractDataType> inputTypes() {
    return seq(Collections.nCopies(ARGUMENTS.size(), ARRAY));
  }

  @Override
  public TypeCheckResult checkInputDataTypes() {
    return ImplicitCastInputTypes.super.checkInputDataTypes();
  }

  @Override
  public DataType dataType() {
    return DataTypes.DoubleType;
  }

  @Override
  public boolean nullable() {
    return arguments.exists(Expression::nullable);
  }

  @Override
  public boolean foldable() {
    return arguments.forall(Expression::foldable);
  }

  @Override
  public String prettyName() {
    return NAME;
  }

  @Override
  public Seq<Expression> children() {
    return arguments;
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new KlDivergence(children);
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int n) {
    return List.of(arguments).get(n);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KlDivergence;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof KlDivergence kl && arguments.equals(kl.arguments);
  }

  @Override
  public int hashCode() {
    return arguments.hashCode();
  }
}
