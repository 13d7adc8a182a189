package dev.kullback;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.vector.Readiness;
import java.util.Arrays;
import java.util.concurrent.FutureTask;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The vector kernels and their plain twins give the same bits, so that a service's results do not change when C2 has compiled the former. The twin
 * is an oracle, too: of every lane, tail and rung, to the last bit.
 */
@Tag("vector")
class TwinTest {
  /** Rows, columns, dimension: tails of the tiles of every width, chunks and groups of them, and one that has them whole. */
  private static final int[][] SHAPES = {
    {1, 1, 1},
    {3, 5, 2},
    {2, 67, 3},
    {7, 4, 5},
    {9, 33, 17},
    {16, 32, 64},
    {17, 9, 65},
    {5, 31, 129},
    {4, 19, 300},
  };

  /** What an engine makes of two batches, by the one and by the other. */
  private interface Call {
    double[] of(KlEngine engine, DiagonalGaussians q, DiagonalGaussians p);
  }

  @ParameterizedTest
  @EnumSource
  void matrix(Regime regime) {
    for (boolean isDouble : new boolean[] {false, true}) {
      if (!regime.appliesTo(isDouble)) {
        continue;
      }
      for (Regime.Pair kinds : regime.kindPairs()) {
        for (int[] shape : SHAPES) {
          Regime.Case drawn = regime.draw(kinds, isDouble, shape[0], shape[1], shape[2]);
          String what =
              "%s of %s, %s, %d x %d x %d"
                  .formatted(
                      regime, kinds, isDouble ? "double" : "float", shape[0], shape[1], shape[2]);
          check(what, drawn.q(), drawn.p(), TwinTest::pairwise);
          check(what + ", itself", drawn.p(), drawn.p(), TwinTest::pairwise);
        }
      }
    }
  }

  /** Float and double in one call. */
  @Test
  void mixedPrecisions() {
    for (Regime regime : Regime.values()) {
      if (regime.appliesTo(false)) {
        Regime.Pair kinds = regime.kindPairs().getFirst();
        Batch single = regime.draw(kinds, false, 9, 37, 33).q();
        Batch twice = regime.draw(kinds, true, 9, 37, 33).p();
        check(regime + " of float and double", single, twice, TwinTest::pairwise);
        check(regime + " of double and float", twice, single, TwinTest::pairwise);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"VAE", "ALIKE", "NEAR_1E_4", "NEAR_AND_FAR", "DUPLICATES", "EXTREME_MIX"})
  void reductions(Regime regime) {
    for (int columns : new int[] {1, 3, 4, 15, 16, 31, 32, 33, 63, 64, 100, 127, 128, 333, 2300}) {
      Regime.Case drawn = regime.draw(false, 9, columns, 5);
      String what = "%s, %d columns, ".formatted(regime, columns);
      check(what + "rowMin", drawn.q(), drawn.p(), KlEngine::rowMin);
      check(what + "rowSum", drawn.q(), drawn.p(), KlEngine::rowSum);
      check(what + "logSumExp", drawn.q(), drawn.p(), KlEngine::logSumExp);
      for (int k = 1; k <= Math.min(columns, 100); k += 33) {
        int most = k;
        check(
            what + "nearest " + k,
            drawn.q(),
            drawn.p(),
            (engine, q, p) -> nearest(engine.nearest(q, p, most)));
      }
    }
  }

  private static double[] pairwise(KlEngine engine, DiagonalGaussians q, DiagonalGaussians p) {
    double[] out = new double[q.size() * p.size()];
    return engine.pairwise(q, p, out);
  }

  private static double[] nearest(Neighbors found) {
    return DoubleStream.concat(
            Arrays.stream(found.indices()).asDoubleStream(), Arrays.stream(found.values()))
        .toArray();
  }

  private static void check(String what, Batch q, Batch p, Call call) {
    assumeTrue(Platform.hasVectors());
    double[][] found = new double[2][];
    for (int way = 0; way < 2; way++) {
      int chosen = way;
      FutureTask<double[]> task =
          new FutureTask<>(() -> {
            Readiness.Trial.use(chosen == 0);
            try (KlEngine engine = Engines.on(Backend.VECTOR)) {
              DiagonalGaussians first = q.gaussians();
              return call.of(engine, first, q == p ? first : p.gaussians());
            }
          });
      new Readiness.Trial(task, "kullback-test").start();
      found[way] = result(task);
    }
    Check.sameBits(what, found[0].length, found[0], found[1]);
  }

  private static double[] result(FutureTask<double[]> task) {
    try {
      return task.get();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }
}
