package dev.kullback;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Check.Precision;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Reference;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The question that started this library: the formula everyone writes, standard deviations clamped
 * at 1e-8, in plain Java. Where it is well conditioned the engine agrees with it.
 */
class SeedFormulaTest {
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void agreesWithTheFormulaAndItsClamp(Backend backend) {
    for (int[] shape : new int[][] {{100, 100, 256}, {37, 64, 32}, {5, 7, 1}}) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Random random = new Random(shape[2]);
        Batch q = withZeros(Batch.random(isDouble, shape[0], shape[2], 0, random), random);
        Batch p = withZeros(Batch.random(isDouble, shape[1], shape[2], 3, random), random);
        double[] expected = Reference.pairwise(q, p, 1e-8);
        DiagonalGaussians left = q.gaussians(ScalePolicy.CLAMPED);
        DiagonalGaussians right = p.gaussians(ScalePolicy.CLAMPED);
        try (KlEngine engine = Engines.on(backend)) {
          String what = "%s, %dx%d, D=%d".formatted(backend, shape[0], shape[1], shape[2]);
          Check.matrix(what, shape[1], expected, engine.pairwise(left, right));
          double[] out = engine.pairwise(left, right, new double[expected.length]);
          Check.matrix(what, shape[1], expected, out, Precision.ofDoubleResult(q, p));
        }
      }
    }
  }

  /** Every tenth row collapsed in one dimension: 0, or below the clamp. */
  private static Batch withZeros(Batch batch, Random random) {
    for (int row = 0; row < batch.size(); row += 10) {
      int h = random.nextInt(batch.dimension());
      batch.scale()[row * batch.dimension() + h] = row % 20 == 0 ? 0 : (float) 3e-9;
    }
    return batch;
  }
}
