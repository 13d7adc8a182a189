package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.rows.NearestQuery;
import dev.kullback.internal.rows.RowStatistic;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Function;

/** One method of the engine, which may take batches of equal size only, and its expected results. */
record Operation(String name, boolean isSquare, Call call, Function<Case, Expected> expected) {
  /** Operations that return new objects, or hand them to a consumer; the others write to the caller's memory. */
  static final Set<String> MAKERS =
      Set.of("exact nearest", "within", "withinReverse", "forEachTile");

  /** Whether even a warm call allocates. */
  boolean isMaker() {
    return MAKERS.contains(name);
  }

  interface Call {
    void run(Engine engine, Batch q, Batch p, Case c, Result r);
  }

  static final List<Operation> ALL =
      List.of(
          new Operation(
              "pairwise",
              false,
              (engine, q, p, _, r) -> {
                engine.pairwise(q, p, r.floats);
                r.widen();
              },
              c -> Expected.of(c.kl, Case.FLOAT_CONTRACT)),
          new Operation(
              "pairwise to double",
              false,
              (engine, q, p, _, r) -> engine.pairwise(q, p, r.values),
              c -> Expected.of(c.kl, c.contract)),
          new Operation(
              "aligned",
              true,
              (engine, q, p, _, r) -> engine.aligned(q, p, r.values),
              c -> Expected.of(c.rows(i -> c.kl[i * c.m + i]), c.contract)),
          new Operation(
              "pairs",
              true,
              (engine, q, p, c, r) -> engine.pairs(q, c.ascending, p, c.descending, r.values),
              c -> Expected.of(c.rows(i -> c.kl[i * c.m + c.n - 1 - i]), c.contract)),
          new Operation(
              "toStandardNormal",
              false,
              (engine, q, _, _, r) -> engine.toStandardNormal(q, r.values),
              c -> Expected.of(c.toStandardNormal(), c.contract)),
          new Operation(
              "nearest",
              false,
              (engine, q, p, c, r) ->
                  engine.nearest(q, p, c.k(0), NearestQuery.ALL, r.indices, r.values),
              c -> c.nearest(false)),
          new Operation(
              "nearestOthers",
              true,
              (engine, q, p, c, r) ->
                  engine.nearest(q, p, c.k(1), NearestQuery.OTHERS, r.indices, r.values),
              c -> c.nearest(true)),
          new Operation(
              "exact nearest",
              false,
              (engine, q, p, c, r) ->
                  r.setRows(
                      engine.nearest(
                          q, p, c.k(0), new NearestQuery(false, true, false, 0, 0, null))),
              c -> c.nearest(false)),
          new Operation(
              "within",
              false,
              (engine, q, p, c, r) ->
                  r.set(engine.within(q, p, false, c.radius, Arguments.MOST_PAIRS)),
              c -> c.within(false)),
          new Operation(
              "nearestReverse",
              false,
              (engine, q, p, c, r) ->
                  engine.nearest(
                      p,
                      q,
                      Math.min(Case.NEIGHBORS, c.n),
                      NearestQuery.ALL_REVERSE,
                      r.indices,
                      r.values),
              Case::nearestReverse),
          new Operation(
              "withinReverse",
              false,
              (engine, q, p, c, r) ->
                  r.set(engine.within(p, q, true, c.radius, Arguments.MOST_PAIRS)),
              c -> c.within(true)),
          new Operation(
              "logSumExp",
              false,
              (engine, q, p, _, r) ->
                  engine.statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, null, r.values),
              c -> c.logSumExp(new double[c.m])),
          new Operation(
              "weightedLogSumExp",
              false,
              (engine, q, p, c, r) ->
                  engine.statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, c.logWeights, r.values),
              c -> c.logSumExp(c.logWeights)),
          new Operation(
              "rowMin",
              false,
              (engine, q, p, _, r) -> engine.statistic(RowStatistic.Kind.MIN, q, p, null, r.values),
              c ->
                  Expected.of(
                      c.rows(i -> Arrays.stream(c.row(i)).min().orElseThrow()), c.contract)),
          new Operation(
              "rowSum",
              false,
              (engine, q, p, _, r) -> engine.statistic(RowStatistic.Kind.SUM, q, p, null, r.values),
              c ->
                  Expected.of(
                      c.rows(i -> Arrays.stream(c.row(i)).sum()), c.contract + Case.ROUNDING)),
          new Operation(
              "rowMean",
              false,
              (engine, q, p, _, r) ->
                  engine.statistic(RowStatistic.Kind.MEAN, q, p, null, r.values),
              c ->
                  Expected.of(
                      c.rows(i -> Arrays.stream(c.row(i)).sum() / c.m),
                      c.contract + Case.ROUNDING)),
          new Operation(
              "forEachTile",
              false,
              (engine, q, p, c, r) ->
                  engine.forEachTile(
                      q,
                      p,
                      (row0, row1, column0, column1, values) -> {
                        int width = column1 - column0;
                        for (int i = row0; i < row1; i++) {
                          System.arraycopy(
                              values, (i - row0) * width, r.values, i * c.m + column0, width);
                        }
                      }),
              c -> Expected.of(c.kl, c.contract)));
}
