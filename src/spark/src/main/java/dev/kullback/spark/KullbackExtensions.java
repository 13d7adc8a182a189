package dev.kullback.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import scala.Function1;
import scala.Tuple3;
import scala.runtime.BoxedUnit;

/**
 * Kullback in Spark SQL: give {@code spark.sql.extensions=dev.kullback.spark.KullbackExtensions} when the session is
 * made, or the server of Spark Connect started. It works for PySpark and Spark Connect, too, as all of it is SQL.
 *
 * <p>{@code kl_divergence(qm, qs, pm, ps)} is {@code KL(q ‖ p)}, in nats, of two diagonal Gaussians by their means and
 * standard deviations, each an {@code array<float>} or {@code array<double>} of D elements, or a vector of Spark ML, dense or sparse. It is a {@code double}, exact
 * to the last bit or so as {@link dev.kullback.Query#exact()} has it, and null where an argument is null. An
 * array with a null element, of another length, or with a value that is not allowed (σ ≤ 0, NaN) fails the query with an
 * {@link IllegalArgumentException}.
 *
 * <p>{@code kl_divergence_full(qm, qL, pm, pL)} is the same of Gaussians with full covariances, by their lower factors L, arrays
 * of D·D elements row by row, or arrays of rows. Matrices of Spark ML in their place are the covariances themselves, such as {@code cov}
 * of {@code GaussianMixtureModel.gaussiansDF}. Its error grows with the condition numbers.
 *
 * <p>A nearest-by join whose distance is one of these functions of both sides becomes a search of {@link KlNeighbors}, where Spark
 * would compute all pairs one by one:
 *
 * <pre>
 * SELECT q.id, p.id FROM queries q JOIN refs p
 *   EXACT NEAREST 10 BY DISTANCE kl_divergence(q.mean, q.std, p.mean, p.std)
 * </pre>
 *
 * <p>Its result is that of Spark's own plan, {@code LEFT OUTER}, {@code APPROX}, and {@code kl_divergence} of the right
 * side and the left included: rows where an array is null are near to nothing. Of references at equal distances, those
 * whose rows come first are taken, where rows have an order. {@code EXPLAIN} shows such a search as
 * {@code KlNearestByJoin}. {@code BY SIMILARITY -kl_divergence(…)} is the same; other rankings, streams and correlated
 * subqueries are left to Spark. Predicates, semijoins and limits of the left side are carried out before the search.
 *
 * <p>The search runs short jobs before its own, when the result is used. Messages about rows call the left side queries
 * and the right one references. They name a row by its column {@code id}, or else by its
 * {@code monotonically_increasing_id()}.
 *
 * @since 0.1.0
 */
public final class KullbackExtensions implements Function1<SparkSessionExtensions, BoxedUnit> {
  /** Called by Spark. */
  public KullbackExtensions() {}

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectFunction(
        new Tuple3<>(
            new FunctionIdentifier(KlDivergence.NAME), KlDivergence.INFO, KlDivergence::of));
    extensions.injectFunction(
        new Tuple3<>(
            new FunctionIdentifier(KlDivergence.FULL_NAME),
            KlDivergence.FULL_INFO,
            KlDivergence::ofFull));
    // The optimizer's first batch replaces nearest-by joins, and rules injected there come later.
    extensions.injectPostHocResolutionRule(_ -> new NearestBy.Resolution());
    extensions.injectOptimizerRule(_ -> new NearestByPushDown());
    extensions.injectPlannerStrategy(_ -> new NearestBy.Strategy());
    return BoxedUnit.UNIT;
  }
}
