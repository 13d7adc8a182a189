package dev.kullback.spark;

import dev.kullback.ScaleKind;
import java.io.Serializable;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.ImplicitCastInputTypes;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.Block;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.JavaCode;
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

/** The functions of {@link KullbackExtensions}, {@code kl_divergence} and {@code kl_divergence_full}, as an expression of Catalyst. */
@SuppressWarnings("serial") // goes to executors that run the same classes
final class KlDivergence extends Expression implements ImplicitCastInputTypes, Serializable {
  static final String NAME = "kl_divergence";
  static final String FULL_NAME = "kl_divergence_full";

  static final ExpressionInfo INFO =
      info(
          NAME,
          "_FUNC_(qm, qs, pm, ps) - Returns KL(q || p), in nats, of two diagonal Gaussians by their means and standard deviations.");

  static final ExpressionInfo FULL_INFO =
      info(
          FULL_NAME,
          "_FUNC_(qm, qL, pm, pL) - Returns KL(q || p), in nats, of two Gaussians by their means and the lower factors L of their covariances L*L', D*D elements row by row or arrays of rows; a matrix of Spark ML in place of L is the covariance itself.");

  private static final List<String> ARGUMENTS = List.of("qm", "qs", "pm", "ps");
  private static final List<String> FULL_ARGUMENTS = List.of("qm", "qL", "pm", "pL");

  private static ExpressionInfo info(String name, String usage) {
    return new ExpressionInfo(
        KlDivergence.class.getName(),
        "",
        name,
        usage,
        "",
        "",
        "",
        "math_funcs",
        "",
        "",
        "scala_udf");
  }

  /** Types of means and standard deviations: float arrays stay what they are; any others that can be are cast to double. */
  private static final List<AbstractDataType> ARRAYS =
      List.of(array(DataTypes.DoubleType), array(DataTypes.FloatType), Elements.VECTORS);

  private static final AbstractDataType VECTOR = new TypeCollection(seq(ARRAYS));

  /** Types of factors, and of covariances. */
  private static final AbstractDataType MATRIX =
      new TypeCollection(
          seq(
              Stream.concat(
                      ARRAYS.stream(),
                      Stream.of(
                          array(array(DataTypes.DoubleType)),
                          array(array(DataTypes.FloatType)),
                          Elements.MATRICES))
                  .toList()));

  private final Seq<Expression> arguments;

  /** What scales that are arrays hold; matrices are covariances. */
  private final ScaleKind arrays;

  private transient volatile @Nullable List<Expression> elements;
  private transient volatile @Nullable PairFunction function;

  private KlDivergence(Seq<Expression> arguments, ScaleKind arrays) {
    this.arguments = arguments;
    this.arrays = arrays;
  }

  /** Makes the divergence of Gaussians of one kind, by arrays. */
  KlDivergence(Gaussian q, Gaussian p) {
    this(seq(List.of(q.mean(), q.scale(), p.mean(), p.scale())), q.kind());
  }

  private static DataType array(DataType element) {
    return new ArrayType(element, true);
  }

  /**
   * A Gaussian, by the expressions of the arrays of its mean and its scales.
   *
   * @param kind what the scales are
   */
  record Gaussian(Expression mean, Expression scale, ScaleKind kind) {
    /** Whether columns of the plan's output are all that it needs. */
    boolean isOf(QueryPlan<?> plan) {
      AttributeSet output = plan.outputSet();
      return mean.references().subsetOf(output) && scale.references().subsetOf(output);
    }
  }

  /** Makes the expression of a call in SQL. */
  static Expression of(Seq<Expression> arguments) {
    return of(arguments, NAME, ScaleKind.STD);
  }

  /** Makes the expression of a call of the function for full covariances. */
  static Expression ofFull(Seq<Expression> arguments) {
    return of(arguments, FULL_NAME, ScaleKind.SCALE_TRIL);
  }

  private static Expression of(Seq<Expression> arguments, String name, ScaleKind arrays) {
    if (arguments.length() != ARGUMENTS.size()) {
      KlDivergence.<RuntimeException>raise(
          QueryCompilationErrors.wrongNumArgsError(
              name, seq(List.<Object>of(ARGUMENTS.size())), arguments.length(), "", "", ""));
    }
    if (arguments.exists(argument -> argument instanceof NamedArgumentExpression)) {
      KlDivergence.<RuntimeException>raise(QueryCompilationErrors.namedArgumentsNotSupported(name));
    }
    return new KlDivergence(arguments, arrays);
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
    return gaussian(0);
  }

  Gaussian p() {
    return gaussian(2);
  }

  /** The Gaussian of the arguments n and n + 1. */
  private Gaussian gaussian(int n) {
    boolean isCovariance = Elements.isMatrix(arguments.apply(n + 1).dataType());
    return new Gaussian(
        elements().get(n), elements().get(n + 1), isCovariance ? ScaleKind.COVARIANCE : arrays);
  }

  /** The arguments as arrays. */
  private List<Expression> elements() {
    List<Expression> made = elements;
    if (made == null) {
      made = CollectionConverters.asJava(arguments).stream().map(Elements::of).toList();
      elements = made;
    }
    return made;
  }

  /** Whether an argument is of double, so that all are taken as double. */
  boolean isDouble() {
    return elements().stream().anyMatch(array -> !JoinSide.isFloat(array.dataType()));
  }

  @Override
  public @Nullable Object eval(@Nullable InternalRow row) {
    ArrayData[] arrays = new ArrayData[ARGUMENTS.size()];
    for (int n = 0; n < arrays.length; n++) {
      arrays[n] = (ArrayData) elements().get(n).eval(row);
      if (arrays[n] == null) {
        return null;
      }
    }
    return function().of(arrays[0], arrays[1], arrays[2], arrays[3]);
  }

  /** What computes a value; it is made where an executor first needs it. */
  private PairFunction function() {
    PairFunction made = function;
    if (made == null) {
      boolean[] isFloat = new boolean[ARGUMENTS.size()];
      for (int n = 0; n < isFloat.length; n++) {
        isFloat[n] = JoinSide.isFloat(elements().get(n).dataType());
      }
      made = new PairFunction(prettyName(), names(), isFloat, q().kind(), p().kind());
      function = made;
    }
    return made;
  }

  /** Generates a call for arguments of which none is null; later ones are not computed where one is. */
  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    String pair = context.addReferenceObj(NAME, function(), PairFunction.class.getName());
    List<ExprCode> values = elements().stream().map(array -> array.genCode(context)).toList();
    Block call =
        block(
            "{} = false;\n{} = " + pair + ".of({}, {}, {}, {});\n",
            code.isNull(),
            code.value(),
            values.get(0).value(),
            values.get(1).value(),
            values.get(2).value(),
            values.get(3).value());
    for (ExprCode value : values.reversed()) {
      call = block("{}\nif (!{}) {\n{}}\n", value.code(), value.isNull(), call);
    }
    return code.copy(
        block("boolean {} = true;\ndouble {} = -1.0;\n{}", code.isNull(), code.value(), call),
        code.isNull(),
        code.value());
  }

  /** Java text in which each {} stands for a part that Spark made. */
  static Block block(String text, JavaCode... parts) {
    return new CodeBlock(seq(List.of(text.split("\\{}", -1))), seq(List.of(parts)));
  }

  @Override
  public Seq<AbstractDataType> inputTypes() {
    AbstractDataType scale = arrays.isFull() ? MATRIX : VECTOR;
    return seq(List.of(VECTOR, scale, VECTOR, scale));
  }

  @Override
  public TypeCheckResult checkInputDataTypes() {
    for (int n = 0; n < ARGUMENTS.size(); n++) {
      Expression argument = arguments.apply(n);
      DataType type = argument.dataType();
      if (Elements.isOld(type, arguments.apply(n | 1).dataType())) {
        String column = argument instanceof NamedExpression named ? named.name() : argument.sql();
        return new TypeCheckResult.TypeCheckFailure(
            "%s is %s; %s".formatted(column, Elements.name(type), Elements.conversion(column)));
      }
    }
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

  private List<String> names() {
    return arrays.isFull() ? FULL_ARGUMENTS : ARGUMENTS;
  }

  @Override
  public String prettyName() {
    return arrays.isFull() ? FULL_NAME : NAME;
  }

  @Override
  public Seq<Expression> children() {
    return arguments;
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new KlDivergence(children, arrays);
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return List.of(arguments, arrays).get(n);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KlDivergence;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof KlDivergence kl
        && arrays == kl.arrays
        && arguments.equals(kl.arguments);
  }

  @Override
  public int hashCode() {
    return arguments.hashCode();
  }
}
