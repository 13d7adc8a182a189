package dev.kullback.spark;

import dev.kullback.spark.KlDivergence.Gaussian;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.NearestByDistance$;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.NearestByJoin;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.jspecify.annotations.Nullable;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Takes a nearest-by join through Catalyst: {@link Resolution} replaces Spark's node by {@link KlNearestByJoin}, which
 * {@link Strategy} plans as {@link KlNearestByJoinExec}. Nodes are public, as Spark copies them by reflection.
 */
final class NearestBy {
  private NearestBy() {}

  /** Replaces joins by the distance of one side's Gaussians from the other's. */
  static final class Resolution extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return plan.resolveOperatorsUp(
          new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
            @Override
            public boolean isDefinedAt(LogicalPlan node) {
              return node instanceof NearestByJoin join && isSearch(join);
            }

            @Override
            @SuppressWarnings(
                "unchecked") // Scala has LogicalPlan as a lower bound of B, Java cannot say so
            public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> other) {
              return isDefinedAt(node) ? (B) search((NearestByJoin) node) : other.apply(node);
            }
          });
    }

    private static boolean isSearch(NearestByJoin join) {
      return join.resolved()
          && join.direction() == NearestByDistance$.MODULE$
          && join.rankingExpression() instanceof KlDivergence kl
          && kl.deterministic()
          && (isBetween(kl.q(), join.left(), kl.p(), join.right())
              || isBetween(kl.q(), join.right(), kl.p(), join.left()))
          && !join.isStreaming()
          && !join.containsPattern(TreePattern.OUTER_REFERENCE());
    }

    private static boolean isBetween(Gaussian q, LogicalPlan qSide, Gaussian p, LogicalPlan pSide) {
      return q.isOf(qSide) && p.isOf(pSide);
    }

    private static LogicalPlan search(NearestByJoin join) {
      KlDivergence kl = (KlDivergence) join.rankingExpression();
      boolean forward = isBetween(kl.q(), join.left(), kl.p(), join.right());
      Side left = new Side(join.left());
      Side right = new Side(join.right());
      KlDivergence distance =
          new KlDivergence(
              (forward ? left : right).column(kl.q()), (forward ? right : left).column(kl.p()));
      return new Project(
          KlDivergence.seq(List.copyOf(CollectionConverters.asJava(join.output()))),
          new KlNearestByJoin(
              left.plan(), right.plan(), join.joinType(), join.numResults(), distance));
    }
  }

  /** A side of a join, with a column for each array that the search needs and that is not a column yet. */
  private static final class Side {
    private final LogicalPlan plan;
    private final List<NamedExpression> columns;

    Side(LogicalPlan plan) {
      this.plan = plan;
      columns = new ArrayList<>(CollectionConverters.asJava(plan.output()));
    }

    Gaussian column(Gaussian gaussian) {
      return new Gaussian(column(gaussian.mean()), column(gaussian.std()));
    }

    private Expression column(Expression value) {
      if (value instanceof Attribute) {
        return value;
      }
      Alias alias =
          new Alias(
              value,
              value.sql(),
              NamedExpression.newExprId(),
              KlDivergence.seq(List.of()),
              Option.empty(),
              KlDivergence.seq(List.of()));
      columns.add(alias);
      return alias.toAttribute();
    }

    LogicalPlan plan() {
      return new Project(KlDivergence.seq(columns), plan);
    }
  }

  static final class Strategy extends SparkStrategy {
    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      return KlDivergence.seq(
          plan instanceof KlNearestByJoin join
              ? List.of(
                  new KlNearestByJoinExec(
                      planLater(join.left),
                      planLater(join.right),
                      join.joinType,
                      join.k,
                      join.distance))
              : List.of());
    }
  }

  /** Columns of both sides, null where there is no row of one, as {@link NearestByJoin} has them. */
  private static Seq<Attribute> output(QueryPlan<?> left, QueryPlan<?> right) {
    List<Attribute> output = new ArrayList<>();
    CollectionConverters.asJava(left.output()).forEach(a -> output.add(a.withNullability(true)));
    CollectionConverters.asJava(right.output()).forEach(a -> output.add(a.withNullability(true)));
    return KlDivergence.seq(output);
  }

  /** Rows of left, each with the k rows of right that are nearest to it. */
  public static final class KlNearestByJoin extends LogicalPlan {
    private final LogicalPlan left;
    private final LogicalPlan right;
    private final JoinType joinType;
    private final int k;
    private final KlDivergence distance;

    /**
     * @param joinType inner or left outer
     * @param distance between a column of left and one of right
     */
    public KlNearestByJoin(
        LogicalPlan left, LogicalPlan right, JoinType joinType, int k, KlDivergence distance) {
      this.left = left;
      this.right = right;
      this.joinType = joinType;
      this.k = k;
      this.distance = distance;
    }

    @Override
    public Seq<Attribute> output() {
      return NearestBy.output(left, right);
    }

    @Override
    public Seq<LogicalPlan> children() {
      return KlDivergence.seq(List.of(left, right));
    }

    @Override
    public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
      return new KlNearestByJoin(children.apply(0), children.apply(1), joinType, k, distance);
    }

    @Override
    public int productArity() {
      return 5;
    }

    @Override
    public Object productElement(int n) {
      return List.of(left, right, joinType, k, distance).get(n);
    }

    @Override
    public boolean canEqual(Object other) {
      return other instanceof KlNearestByJoin;
    }

    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof KlNearestByJoin same
          && productIterator().sameElements(same.productIterator());
    }
  }

  /** The physical plan of the join. */
  @SuppressWarnings("serial") // only the driver has it
  public static final class KlNearestByJoinExec extends SparkPlan {
    private final SparkPlan left;
    private final SparkPlan right;
    private final JoinType joinType;
    private final int k;
    private final KlDivergence distance;

    /**
     * @param joinType inner or left outer
     * @param distance between a column of left and one of right
     */
    public KlNearestByJoinExec(
        SparkPlan left, SparkPlan right, JoinType joinType, int k, KlDivergence distance) {
      this.left = left;
      this.right = right;
      this.joinType = joinType;
      this.k = k;
      this.distance = distance;
    }

    @Override
    public RDD<InternalRow> doExecute() {
      boolean reverse = !distance.q().isOf(left);
      NumberedRows queries = new NumberedRows(left, reverse ? distance.p() : distance.q());
      NumberedRows references = new NumberedRows(right, reverse ? distance.q() : distance.p());
      return queries.join(
          references, references.nearest(queries, k, reverse), joinType == LeftOuter$.MODULE$);
    }

    @Override
    public Seq<Attribute> output() {
      return NearestBy.output(left, right);
    }

    @Override
    public Seq<SparkPlan> children() {
      return KlDivergence.seq(List.of(left, right));
    }

    @Override
    public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
      return new KlNearestByJoinExec(children.apply(0), children.apply(1), joinType, k, distance);
    }

    @Override
    public int productArity() {
      return 5;
    }

    @Override
    public Object productElement(int n) {
      return List.of(left, right, joinType, k, distance).get(n);
    }

    @Override
    public boolean canEqual(Object other) {
      return other instanceof KlNearestByJoinExec;
    }

    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof KlNearestByJoinExec same
          && productIterator().sameElements(same.productIterator());
    }
  }
}
