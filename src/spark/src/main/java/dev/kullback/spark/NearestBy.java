package dev.kullback.spark;

import dev.kullback.spark.KlDivergence.Gaussian;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.NearestBySimilarity$;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.NearestByJoin;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_NUM$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.util.Utils;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes a nearest-by join through Catalyst: {@link Resolution} replaces Spark's node by {@link KlNearestByJoin}, which
 * {@link NearestByPushDown} optimizes and {@link Strategy} plans as {@link KlNearestByJoinExec}. Nodes are public, as Spark copies them by reflection.
 */
final class NearestBy {
  private NearestBy() {}

  /** Replaces joins by the distance of one side's Gaussians from the other's. */
  static final class Resolution extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return plan.resolveOperatorsUp(
          Rewrite.of(
              node -> node instanceof NearestByJoin join && isSearch(join) ? search(join) : null));
    }

    /** Returns the divergence by which the join ranks, nearest first, or null. */
    private static @Nullable KlDivergence divergence(NearestByJoin join) {
      Expression ranking = join.rankingExpression();
      if (join.direction() == NearestBySimilarity$.MODULE$) {
        ranking = ranking instanceof UnaryMinus minus ? minus.child() : ranking;
        return join.rankingExpression() instanceof UnaryMinus && ranking instanceof KlDivergence kl
            ? kl
            : null;
      }
      return ranking instanceof KlDivergence kl ? kl : null;
    }

    private static boolean isSearch(NearestByJoin join) {
      KlDivergence kl = join.resolved() ? divergence(join) : null;
      return kl != null
          && kl.deterministic()
          && kl.q().kind() == kl.p().kind()
          && (isBetween(kl.q(), join.left(), kl.p(), join.right())
              || isBetween(kl.q(), join.right(), kl.p(), join.left()))
          && !join.isStreaming()
          && !join.containsPattern(TreePattern.OUTER_REFERENCE());
    }

    private static boolean isBetween(Gaussian q, LogicalPlan qSide, Gaussian p, LogicalPlan pSide) {
      return q.isOf(qSide) && p.isOf(pSide);
    }

    private static LogicalPlan search(NearestByJoin join) {
      KlDivergence kl = Objects.requireNonNull(divergence(join));
      boolean forward = isBetween(kl.q(), join.left(), kl.p(), join.right());
      Side left = new Side(join.left());
      Side right = new Side(join.right());
      KlDivergence distance =
          new KlDivergence(
              (forward ? left : right).column(kl.q()), (forward ? right : left).column(kl.p()));
      return new Project(
          KlDivergence.seq(List.copyOf(CollectionConverters.asJava(join.output()))),
          new KlNearestByJoin(
              left.plan(),
              right.plan(),
              join.joinType(),
              join.numResults(),
              distance,
              KlDivergence.seq(ids(join.left(), join.right()))));
    }

    /** The columns that name rows in messages, so that they are there even if nobody selects them. */
    private static List<Attribute> ids(LogicalPlan... sides) {
      List<Attribute> ids = new ArrayList<>();
      for (LogicalPlan side : sides) {
        List<Attribute> columns = CollectionConverters.asJava(side.output());
        int id = idOrdinal(columns);
        if (id >= 0) {
          ids.add(columns.get(id));
        }
      }
      return ids;
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
      return new Gaussian(column(gaussian.mean()), column(gaussian.scale()), gaussian.kind());
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
      if (plan instanceof KlNearestByJoin join) {
        return KlDivergence.seq(List.of(planned(join, join.output())));
      }
      // Together, so that columns which only the search needs are not written.
      if (plan instanceof Project project
          && project.child() instanceof KlNearestByJoin join
          && project.projectList().forall(e -> ((Expression) e).deterministic())) {
        return KlDivergence.seq(List.of(planned(join, project.projectList())));
      }
      return KlDivergence.seq(List.of());
    }

    private KlNearestByJoinExec planned(KlNearestByJoin join, Seq<? extends NamedExpression> list) {
      Attribute kl =
          new AttributeReference(
              "kl",
              DataTypes.DoubleType,
              true,
              Metadata.empty(),
              NamedExpression.newExprId(),
              KlDivergence.seq(List.of()));
      List<NamedExpression> output = new ArrayList<>();
      for (NamedExpression expression : CollectionConverters.asJava(list)) {
        output.add((NamedExpression) withValue((Expression) expression, join.distance, kl));
      }
      return new KlNearestByJoinExec(
          planLater(join.left),
          planLater(join.right),
          join.joinType,
          join.k,
          join.distance,
          KlDivergence.seq(output),
          kl,
          "left " + size(join.left) + ", right " + size(join.right) + ", estimated");
    }

    private static String size(LogicalPlan side) {
      return Utils.bytesToString(side.stats().sizeInBytes());
    }

    /** The expression with the search's value in place of calls of the function that would compute it again. */
    private static Expression withValue(
        Expression expression, KlDivergence distance, Attribute kl) {
      return expression.transformDown(
          Rewrite.of(part -> part.semanticEquals(distance) ? kl : null));
    }
  }

  /** Returns the ordinal of the column that names rows in messages, or −1. */
  private static int idOrdinal(List<Attribute> columns) {
    for (int c = 0; c < columns.size(); c++) {
      if (columns.get(c).name().equalsIgnoreCase("id")) {
        return c;
      }
    }
    return -1;
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
    private final Seq<Attribute> ids;

    /**
     * @param joinType inner or left outer
     * @param distance between a column of left and one of right
     * @param ids columns that are needed for messages
     */
    public KlNearestByJoin(
        LogicalPlan left,
        LogicalPlan right,
        JoinType joinType,
        int k,
        KlDivergence distance,
        Seq<Attribute> ids) {
      this.left = left;
      this.right = right;
      this.joinType = joinType;
      this.k = k;
      this.distance = distance;
      this.ids = ids;
    }

    LogicalPlan left() {
      return left;
    }

    JoinType joinType() {
      return joinType;
    }

    KlNearestByJoin withLeft(LogicalPlan plan) {
      return new KlNearestByJoin(plan, right, joinType, k, distance, ids);
    }

    /** The columns of the left's Gaussians. */
    List<Expression> leftArrays() {
      Gaussian gaussian = distance.q().isOf(left) ? distance.q() : distance.p();
      return List.of(gaussian.mean(), gaussian.scale());
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
      return new KlNearestByJoin(children.apply(0), children.apply(1), joinType, k, distance, ids);
    }

    @Override
    public int productArity() {
      return 6;
    }

    @Override
    public Object productElement(int n) {
      return List.of(left, right, joinType, k, distance, ids).get(n);
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
    /** Least rows on the right for which those on the left are shuffled to be dealt to all processors. */
    private static final int MANY_REFERENCES = 4096;

    private static final String ROWS = "numOutputRows";
    private static final String PAIRS = "pairs";
    private static final String EXACT = "exactDivergences";

    private final SparkPlan left;
    private final SparkPlan right;
    private final JoinType joinType;
    private final int k;
    private final KlDivergence distance;
    private final Seq<NamedExpression> list;
    private final Attribute kl;
    private final String sizes;
    private @Nullable Map<String, SQLMetric> metrics;

    /**
     * @param joinType inner or left outer
     * @param distance between a column of left and one of right
     * @param list what is given of left's columns, right's and kl
     * @param kl stands for the divergence
     * @param sizes of both sides, for EXPLAIN
     */
    public KlNearestByJoinExec(
        SparkPlan left,
        SparkPlan right,
        JoinType joinType,
        int k,
        KlDivergence distance,
        Seq<NamedExpression> list,
        Attribute kl,
        String sizes) {
      this.left = left;
      this.right = right;
      this.joinType = joinType;
      this.k = k;
      this.distance = distance;
      this.list = list;
      this.kl = kl;
      this.sizes = sizes;
    }

    /** Numbers of pairs compared, and of divergences that were computed exactly, where the sides are not searched in blocks. */
    @Override
    public synchronized Map<String, SQLMetric> metrics() {
      Map<String, SQLMetric> made = metrics;
      if (made == null) {
        java.util.Map<String, SQLMetric> all = new LinkedHashMap<>();
        all.put(ROWS, SQLMetrics.createMetric(sparkContext(), "number of output rows"));
        all.put(PAIRS, SQLMetrics.createMetric(sparkContext(), "pairs compared"));
        all.put(EXACT, SQLMetrics.createMetric(sparkContext(), "exact divergences"));
        made = Map$.MODULE$.from(CollectionConverters.asScala(all));
        metrics = made;
      }
      return made;
    }

    @Override
    public RDD<InternalRow> doExecute() {
      boolean reverse = !distance.q().isOf(left);
      boolean outer = joinType == LeftOuter$.MODULE$;
      Gaussian q = reverse ? distance.p() : distance.q();
      Gaussian p = reverse ? distance.q() : distance.p();
      List<Attribute> input =
          new ArrayList<>(CollectionConverters.asJava(NearestBy.output(left, right)));
      input.add(kl);
      JoinSearch.Request request =
          new JoinSearch.Request(
              side("queries", left, q),
              side("references", right, p),
              k,
              reverse,
              outer,
              mostBytes(),
              new JoinSearch.Counts(
                  metrics().apply(ROWS), metrics().apply(PAIRS), metrics().apply(EXACT)),
              KlDivergence.seq(new ArrayList<Expression>(expressions(list))),
              KlDivergence.seq(input));
      RDD<InternalRow> rows = left.execute();
      RDD<InternalRow> others = right.execute();
      JavaSparkContext spark = new JavaSparkContext(sparkContext());
      RDD<InternalRow> joined = JoinSearch.ofFew(request, rows, others, spark);
      if (joined != null) { // made on the driver
        SQLMetrics.postDriverMetricUpdates(
            sparkContext(),
            sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY()),
            KlDivergence.seq(List.of(metrics().apply(ROWS))));
      }
      if (joined == null) {
        joined = JoinSearch.ofBlock(request, this::dealt, others, spark);
      }
      if (joined == null) {
        NumberedRows queries = new NumberedRows(left, q);
        NumberedRows references = new NumberedRows(right, p);
        joined =
            JoinSearch.project(
                request, queries.join(references, references.nearest(queries, k, reverse), outer));
      }
      return joined;
    }

    /** Rows on the left for a search among so many references, dealt to all processors if there is work for them. */
    private RDD<InternalRow> dealt(int references) {
      int processors = sparkContext().defaultParallelism();
      RDD<InternalRow> rows = left.execute();
      if (references < MANY_REFERENCES || rows.getNumPartitions() >= processors) {
        return rows;
      }
      Gaussian gaussian = distance.q().isOf(left) ? distance.q() : distance.p();
      return new ShuffleExchangeExec(
              new HashPartitioning(
                  KlDivergence.seq(List.of(gaussian.mean(), gaussian.scale())), 2 * processors),
              left,
              REPARTITION_BY_NUM$.MODULE$,
              Option.empty())
          .execute();
    }

    private long mostBytes() {
      String set = session().conf().get(JoinSearch.MOST_BYTES, "");
      long bytes = set.isEmpty() ? JoinSearch.GREATEST_BYTES : JavaUtils.byteStringAsBytes(set);
      return Math.min(bytes, JoinSearch.GREATEST_BYTES);
    }

    private static List<Expression> expressions(Seq<NamedExpression> list) {
      return CollectionConverters.asJava(list).stream().map(e -> (Expression) e).toList();
    }

    private JoinSide side(String name, SparkPlan plan, Gaussian gaussian) {
      List<Attribute> columns = CollectionConverters.asJava(plan.output());
      DataType[] types = columns.stream().map(Attribute::dataType).toArray(DataType[]::new);
      return new JoinSide(
          name,
          types,
          ordinal(columns, gaussian.mean()),
          ordinal(columns, gaussian.scale()),
          idOrdinal(columns),
          gaussian.kind(),
          distance.isDouble());
    }

    private static int ordinal(List<Attribute> columns, Expression column) {
      for (int c = 0; c < columns.size(); c++) {
        if (columns.get(c).semanticEquals(column)) {
          return c;
        }
      }
      throw new IllegalStateException("no column " + column);
    }

    @Override
    public Seq<Attribute> output() {
      return KlDivergence.seq(
          CollectionConverters.asJava(list).stream().map(NamedExpression::toAttribute).toList());
    }

    @Override
    public AttributeSet producedAttributes() {
      return AttributeSet$.MODULE$.apply(kl);
    }

    @Override
    public Seq<SparkPlan> children() {
      return KlDivergence.seq(List.of(left, right));
    }

    @Override
    public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
      return new KlNearestByJoinExec(
          children.apply(0), children.apply(1), joinType, k, distance, list, kl, sizes);
    }

    @Override
    public int productArity() {
      return 8;
    }

    @Override
    public Object productElement(int n) {
      return List.of(left, right, joinType, k, distance, list, kl, sizes).get(n);
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
