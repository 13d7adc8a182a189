package dev.kullback.spark;

import dev.kullback.ScaleKind;
import java.io.Serializable;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.ImplicitCastInputTypes;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
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
          "_FUNC_(qm, qL, pm, pL) - Returns KL(q || p), in nats, of two Gaussians by their means and the lower factors L of their covariances L*L', D*D elements row by row.");

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

  /** Type of the arguments: a float array stays one; any other array that can be is cast to double. */
  private static final AbstractDataType ARRAY =
      new TypeCollection(
          seq(
              List.<AbstractDataType>of(
                  new ArrayType(DataTypes.DoubleType, true),
                  new ArrayType(DataTypes.FloatType, true))));

  private final Seq<Expression> arguments;
  private final boolean isFull;
  private transient volatile @Nullable PairFunction function;

  private KlDivergence(Seq<Expression> arguments, boolean isFull) {
    this.arguments = arguments;
    this.isFull = isFull;
  }

  KlDivergence(Gaussian q, Gaussian p, boolean isFull) {
    this(seq(List.of(q.mean(), q.std(), p.mean(), p.std())), isFull);
  }

  boolean isFull() {
    return isFull;
  }

  ScaleKind kind() {
    return isFull ? ScaleKind.SCALE_TRIL : ScaleKind.STD;
  }

  /** A Gaussian, by the expressions of its mean and its standard deviation, or its factor. */
  record Gaussian(Expression mean, Expression std) {
    /** Whether columns of the plan's output are all that it needs. */
    boolean isOf(QueryPlan<?> plan) {
      AttributeSet output = plan.outputSet();
      return mean.references().subsetOf(output) && std.references().subsetOf(output);
    }
  }

  /** Makes the expression of a call in SQL. */
  static Expression of(Seq<Expression> arguments) {
    return of(arguments, NAME, false);
  }

  /** Makes the expression of a call of the function for full covariances. */
  static Expression ofFull(Seq<Expression> arguments) {
    return of(arguments, FULL_NAME, true);
  }

  private static Expression of(Seq<Expression> arguments, String name, boolean isFull) {
    if (arguments.length() != ARGUMENTS.size()) {
      KlDivergence.<RuntimeException>raise(
          QueryCompilationErrors.wrongNumArgsError(
              name, seq(List.<Object>of(ARGUMENTS.size())), arguments.length(), "", "", ""));
    }
    if (arguments.exists(argument -> argument instanceof NamedArgumentExpression)) {
      KlDivergence.<RuntimeException>raise(QueryCompilationErrors.namedArgumentsNotSupported(name));
    }
    return new KlDivergence(arguments, isFull);
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

  /** Whether an argument is of double, so that all are taken as double. */
  boolean isDouble() {
    return arguments.exists(argument -> !JoinSide.isFloat(argument.dataType()));
  }

  @Override
  public @Nullable Object eval(@Nullable InternalRow row) {
    ArrayData[] arrays = new ArrayData[ARGUMENTS.size()];
    for (int n = 0; n < arrays.length; n++) {
      arrays[n] = (ArrayData) arguments.apply(n).eval(row);
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
        isFloat[n] = JoinSide.isFloat(arguments.apply(n).dataType());
      }
      made =
          isFull
              ? new PairFunction(FULL_NAME, FULL_ARGUMENTS, isFloat, true)
              : new PairFunction(NAME, ARGUMENTS, isFloat, false);
      function = made;
    }
    return made;
  }

  /** Generates a call for arguments of which none is null; later ones are not computed where one is. */
  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    String pair = context.addReferenceObj(NAME, function(), PairFunction.class.getName());
    List<ExprCode> values =
        CollectionConverters.asJava(arguments).stream().map(a -> a.genCode(context)).toList();
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
  private static Block block(String text, JavaCode... parts) {
    return new CodeBlock(seq(List.of(text.split("\\{}", -1))), seq(List.of(parts)));
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
    return isFull ? FULL_NAME : NAME;
  }

  @Override
  public Seq<Expression> children() {
    return arguments;
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new KlDivergence(children, isFull);
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return List.of(arguments, isFull).get(n);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KlDivergence;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof KlDivergence kl
        && isFull == kl.isFull
        && arguments.equals(kl.arguments);
  }

  @Override
  public int hashCode() {
    return arguments.hashCode();
  }
}
