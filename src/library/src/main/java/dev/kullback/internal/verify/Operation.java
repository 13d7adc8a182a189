package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.rows.TileStream;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;

/**
 * One method of the engine, of an index or of mixtures, the cases that it takes, the batches by whose rows its results can be cut, and its expected
 * results.
 */
record Operation(
    String name, Predicate<Case> takes, Rows rows, Call call, Function<Case, Expected> expected) {
  /** Operations that allocate even in warm calls, as they return new objects or hand them to a consumer. */
  static final Set<String> MAKERS =
      Set.of(
          "nearest, exact",
          "within",
          "within, reverse",
          "forEachTile",
          "index nearest",
          "index within",
          "index nearest, reverse",
          "index within, reverse",
          "index nearest of points",
          "monteCarlo",
          "mixture lower bound",
          "mixture upper bound",
          "mixture variational",
          "mixture product",
          "mixture matched pairs",
          "mixture monteCarlo",
          "component entropies",
          "entropy upper bound",
          "entropy lower bound",
          "mixture reduction");

  private static final Predicate<Case> WITH_MIXTURES = Case::hasMixtures;

  /** What a result has a row for, which no other row changes: each Gaussian of q or of p, each pair of their rows, or nothing. */
  enum Rows {
    OF_Q,
    OF_P,
    OF_BOTH,
    NONE
  }

  interface Call {
    void run(Engine engine, Batch q, Batch p, Case c, Result r);
  }

  static final List<Operation> ALL =
      List.of(
          of(
              "pairwise",
              (engine, q, p, _, r) -> {
                r.floatsInto(engine).pairwise(q, p);
                r.widen();
              },
              c -> Expected.of(c.kl, Case.FLOAT_CONTRACT)),
          of(
              "pairwise to double",
              (engine, q, p, _, r) -> r.into(engine).pairwise(q, p),
              c -> Expected.of(c.kl, c.contract)),
          square(
              "aligned",
              Rows.OF_BOTH,
              (engine, q, p, _, r) -> r.into(engine).aligned(q, p),
              c -> Expected.of(c.rows(i -> c.kl[i * c.m + i]), c.contract)),
          square(
              "pairs",
              Rows.NONE,
              (engine, q, p, c, r) -> r.into(engine).pairs(q, c.ascending, p, c.descending),
              c -> Expected.of(c.rows(i -> c.kl[i * c.m + c.n - 1 - i]), c.contract)),
          of(
              "toStandardNormal",
              (engine, q, _, _, r) -> r.into(engine).toStandardNormal(q),
              c -> Expected.of(c.toStandardNormal(), c.contract)),
          of(
              "nearest",
              (engine, q, p, c, r) -> r.into(engine).nearest(q, p, c.nearest, r.indices),
              c -> c.nearest(false)),
          square(
              "nearest, excludeSelf",
              Rows.NONE,
              (engine, q, p, c, r) ->
                  r.into(engine).nearest(q, p, c.nearestExcludingSelf, r.indices),
              c -> c.nearest(true)),
          of(
              "nearest, exact",
              (engine, q, p, c, r) -> r.setRows(engine.search(q, p, c.nearest.exactly())),
              c -> c.nearest(false)),
          of(
              "within",
              (engine, q, p, c, r) -> r.set(engine.search(q, p, SearchOptions.within(c.radius))),
              c -> c.within(false)),
          of(
              "nearest, reverse",
              Rows.OF_P,
              (engine, q, p, c, r) -> r.into(engine).nearest(p, q, c.nearestReverse, r.indices),
              Case::nearestReverse),
          of(
              "within, reverse",
              Rows.OF_P,
              (engine, q, p, c, r) ->
                  r.set(engine.search(p, q, SearchOptions.within(c.radius).reversed())),
              c -> c.within(true)),
          of(
              "logSumExp",
              (engine, q, p, _, r) ->
                  engine.begin().statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, null, r.values),
              c -> c.logSumExp(new double[c.m])),
          of(
              "weightedLogSumExp",
              (engine, q, p, c, r) ->
                  engine
                      .begin()
                      .statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, c.logWeights, r.values),
              c -> c.logSumExp(c.logWeights)),
          statistic(
              "rowMin", RowStatistic.Kind.MIN, row -> Arrays.stream(row).min().orElseThrow(), 0),
          statistic(
              "rowSum", RowStatistic.Kind.SUM, row -> Arrays.stream(row).sum(), Case.ROUNDING),
          of(
              "forEachTile",
              (engine, q, p, c, r) ->
                  engine.forEachTile(
                      q,
                      p,
                      new TileStream() {
                        @Override
                        protected void tile(
                            int row0, int rows, int column0, int columns, double[] kl) {
                          for (int i = 0; i < rows; i++) {
                            System.arraycopy(
                                kl, i * columns, r.values, (row0 + i) * c.m + column0, columns);
                          }
                        }
                      }),
              c -> Expected.of(c.kl, c.contract)),
          new Operation(
              "gradient of pairwise",
              Case::hasGradient,
              Rows.NONE,
              (engine, q, p, c, r) -> c.gradients().run(engine, q, p, r),
              Case::expectedGradients),
          points(
              "logDensity",
              (engine, x, p, _, r) -> r.into(engine.ofPoints(Density.LOG_DENSITY)).pairwise(x, p),
              PointCase::logDensity),
          points(
              "mahalanobis",
              (engine, x, p, _, r) -> r.into(engine.ofPoints(Density.MAHALANOBIS)).pairwise(x, p),
              PointCase::mahalanobis),
          points(
              "nearest of points",
              (engine, x, p, c, r) ->
                  r.into(engine.ofPoints(Density.MAHALANOBIS)).nearest(x, p, c.nearest, r.indices),
              PointCase::nearest),
          points(
              "logLikelihood",
              (engine, x, p, c, r) -> {
                engine
                    .ofPoints(Density.EXCESS)
                    .begin()
                    .logLikelihood(x, p, c.logWeights, c.points().offsets, r.values);
                double shift = Density.EXCESS.shift(p);
                for (int i = 0; i < c.n; i++) {
                  r.values[i] -= shift;
                }
              },
              PointCase::logLikelihood),
          points(
              "responsibilities",
              (engine, x, p, c, r) ->
                  r.into(engine.ofPoints(Density.LOG_DENSITY))
                      .responsibilities(x, p, c.points().weights, c.points().offsets),
              PointCase::responsibilities),
          index("index nearest", c -> c.nearest, c -> c.nearest(false)),
          index("index within", c -> c.within, c -> c.within(false)),
          index("index nearest, reverse", c -> c.nearest.reversed(), Case::nearestInIndexReverse),
          index("index within, reverse", c -> c.withinReverse, Case::withinInIndexReverse),
          new Operation(
              "index query",
              c -> c.index != null && !c.isDoubleQ(),
              Rows.OF_Q,
              (_, q, _, c, r) -> index(c).query((DiagonalBatch) q, r),
              c -> c.nearest(false).within(Case.FLOAT_CONTRACT)),
          new Operation(
              "index nearest of points",
              c -> c.index != null,
              Rows.OF_Q,
              (_, q, _, c, r) -> index(c).search(c.points().of(q), c.nearest, r),
              c -> c.points().nearest()),
          new Operation(
              "index query of points",
              c -> c.index != null && !c.isDoubleQ(),
              Rows.OF_Q,
              (_, q, _, c, r) -> index(c).densest(c.points().of(q), r),
              c -> c.points().densest()),
          new Operation(
              "monteCarlo",
              c -> c.hasMixtures() && c.n == c.m,
              Rows.NONE,
              (_, q, p, c, r) -> c.mixtures().monteCarloOfPairs(q, p, r),
              c -> c.mixtures().monteCarloOfPairs()),
          mixtures(
              "mixture lower bound",
              (engine, q, p, c, r) -> r.set(c.mixtures().divergences(q, p).lowerBound(engine)),
              MixtureCase::lowerBound),
          mixtures(
              "mixture upper bound",
              (engine, q, p, c, r) -> r.set(c.mixtures().divergences(q, p).upperBound(engine)),
              MixtureCase::upperBound),
          mixtures(
              "mixture variational",
              (engine, q, p, c, r) -> r.set(c.mixtures().divergences(q, p).variational(engine)),
              MixtureCase::variational),
          mixtures(
              "mixture product",
              (_, q, p, c, r) -> r.set(c.mixtures().divergences(q, p).productOfGaussians(null)),
              MixtureCase::productOfGaussians),
          mixtures(
              "mixture matched pairs",
              (engine, q, p, c, r) -> r.set(c.mixtures().divergences(q, p).matchedPairs(engine)),
              MixtureCase::matchedPairs),
          mixtures(
              "mixture monteCarlo",
              (_, q, p, c, r) -> c.mixtures().monteCarlo(q, p, r),
              MixtureCase::monteCarlo),
          mixtures(
              "component entropies",
              (_, q, _, c, r) -> r.set(c.mixtures().rows(q).componentEntropies()),
              MixtureCase::componentEntropies),
          mixtures(
              "entropy upper bound",
              (engine, q, _, c, r) -> r.set(c.mixtures().rows(q).entropyUpperBound(engine)),
              MixtureCase::entropyUpperBound),
          mixtures(
              "entropy lower bound",
              (_, q, _, c, r) -> r.set(c.mixtures().rows(q).entropyLowerBound(MixtureCase.ALPHA)),
              MixtureCase::entropyLowerBound),
          mixtures(
              "mixture reduction",
              (_, q, _, c, r) -> c.mixtures().reduce(q, r),
              MixtureCase::reduction));

  /** Whether it takes so little time on a case that it can be called often. */
  boolean isSmall(Case c) {
    return takes == WITH_MIXTURES ? c.hasSmallMixtures() : c.isSmall();
  }

  /** An operation on mixtures of a case's Gaussians. */
  private static Operation mixtures(
      String name, Call call, Function<MixtureCase, Expected> expected) {
    return new Operation(name, WITH_MIXTURES, Rows.NONE, call, c -> expected.apply(c.mixtures()));
  }

  /** An operation on the means of a case's q. */
  private static Operation points(String name, Call call, Function<PointCase, Expected> expected) {
    return new Operation(
        name,
        Case::hasPoints,
        Rows.OF_Q,
        (engine, q, p, c, r) -> call.run(engine, c.points().of(q), p, c, r),
        c -> expected.apply(c.points()));
  }

  private static Operation of(String name, Call call, Function<Case, Expected> expected) {
    return of(name, Rows.OF_Q, call, expected);
  }

  private static Operation of(
      String name, Rows rows, Call call, Function<Case, Expected> expected) {
    return new Operation(name, c -> c.index == null, rows, call, expected);
  }

  private static Operation square(
      String name, Rows rows, Call call, Function<Case, Expected> expected) {
    return new Operation(name, c -> c.index == null && c.n == c.m && c.n > 1, rows, call, expected);
  }

  private static Operation index(
      String name, Function<Case, SearchOptions> options, Function<Case, Expected> expected) {
    return new Operation(
        name,
        c -> c.index != null,
        Rows.OF_Q,
        (_, q, _, c, r) -> index(c).search((DiagonalBatch) q, options.apply(c), r),
        expected);
  }

  private static Indexed index(Case c) {
    return Objects.requireNonNull(c.index);
  }

  private static Operation statistic(
      String name, RowStatistic.Kind kind, ToDoubleFunction<double[]> ofRow, double rounding) {
    return of(
        name,
        (engine, q, p, _, r) -> engine.begin().statistic(kind, q, p, null, r.values),
        c -> Expected.of(c.rows(i -> ofRow.applyAsDouble(c.row(i))), c.contract + rounding));
  }
}
