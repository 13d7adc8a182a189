package dev.kullback.spark;

import dev.kullback.spark.NearestBy.KlNearestByJoin;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes below a nearest-by join what chooses rows on its left: predicates of left columns, semi- and antijoins by them, and limits. Each
 * row on the left has its neighbors whatever the other rows are, so it is the same there, and only fewer rows are searched for. On the
 * right it would change who the neighbors are.
 */
final class NearestByPushDown extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(Rewrite.of(NearestByPushDown::pushed));
  }

  private static @Nullable LogicalPlan pushed(LogicalPlan node) {
    if (node instanceof Filter filter && filter.child() instanceof KlNearestByJoin join) {
      return filtered(filter, join);
    }
    if (node instanceof Join join && join.left() instanceof KlNearestByJoin nearest) {
      return semiJoined(join, nearest);
    }
    // Columns that nothing needs above a semijoin are dropped below it.
    if (node instanceof Join join
        && join.left() instanceof Project project
        && project.child() instanceof KlNearestByJoin nearest
        && project.projectList().forall(Attribute.class::isInstance)) {
      LogicalPlan pushed = semiJoined(join, nearest);
      return pushed == null ? null : new Project(project.projectList(), pushed);
    }
    if (node instanceof LocalLimit limit && limit.child() instanceof KlNearestByJoin join) {
      KlNearestByJoin limited = limited(limit.limitExpr(), join);
      return limited == null ? null : new LocalLimit(limit.limitExpr(), limited);
    }
    if (node instanceof LocalLimit limit
        && limit.child() instanceof Project project
        && project.child() instanceof KlNearestByJoin join) {
      KlNearestByJoin limited = limited(limit.limitExpr(), join);
      return limited == null
          ? null
          : new LocalLimit(limit.limitExpr(), new Project(project.projectList(), limited));
    }
    return null;
  }

  /** What does not depend on chance, as that gives each row another answer there, nor on the right. */
  private static @Nullable LogicalPlan filtered(Filter filter, KlNearestByJoin join) {
    List<Expression> below = new ArrayList<>();
    List<Expression> above = new ArrayList<>();
    for (Expression predicate :
        CollectionConverters.asJava(filter.splitConjunctivePredicates(filter.condition()))) {
      boolean isLeft =
          predicate.deterministic() && predicate.references().subsetOf(join.left().outputSet());
      (isLeft ? below : above).add(predicate);
    }
    if (below.isEmpty()) {
      return null;
    }
    LogicalPlan pushed = join.withLeft(new Filter(all(below), join.left()));
    return above.isEmpty() ? pushed : new Filter(all(above), pushed);
  }

  private static Expression all(List<Expression> predicates) {
    return predicates.stream().reduce(And::new).orElseThrow();
  }

  private static @Nullable LogicalPlan semiJoined(Join join, KlNearestByJoin nearest) {
    if (join.joinType() != LeftSemi$.MODULE$ && join.joinType() != LeftAnti$.MODULE$) {
      return null;
    }
    Expression condition = join.condition().getOrElse(() -> Literal.TrueLiteral());
    AttributeSet sides = nearest.left().outputSet().$plus$plus(join.right().outputSet());
    if (!condition.deterministic() || !condition.references().subsetOf(sides)) {
      return null;
    }
    return nearest.withLeft(
        new Join(nearest.left(), join.right(), join.joinType(), join.condition(), join.hint()));
  }

  /**
   * Limits the left, each of whose rows is joined at least once in an outer join. In an inner one, those with both arrays are, unless
   * there is nothing at all to join them with.
   */
  private static @Nullable KlNearestByJoin limited(Expression limit, KlNearestByJoin join) {
    if (!(limit instanceof Literal literal && literal.value() instanceof Integer most)) {
      return null;
    }
    Option<Object> rows = join.left().maxRowsPerPartition();
    if (rows.isDefined() && (long) rows.get() <= most) {
      return null;
    }
    LogicalPlan left = join.left();
    if (join.joinType() == Inner$.MODULE$) {
      left =
          new Filter(
              all(join.leftArrays().stream().<Expression>map(IsNotNull::new).toList()), left);
    }
    return join.withLeft(new LocalLimit(limit, left));
  }
}
