package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every kind of batch can be warmed up with, and nothing but time differs afterwards. */
class WarmUpTest {
  @Tag("long")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void allKinds(Backend backend) {
    Gaussians single = Batch.random(false, 3, 4, 0, new Random(1)).gaussians();
    Gaussians twice = Batch.random(true, 5, 4, 0, new Random(2)).gaussians();
    Gaussians full = FullBatch.random(false, 7, 4, 10, 0, new Random(3)).gaussians();
    Gaussians zero =
        Gaussians.of(
            ScaleKind.STD, new float[8], new float[8], 4, ScalePolicy.DETERMINISTIC_IF_ZERO);
    try (KlEngine engine = Engines.on(backend)) {
      double[] cold = engine.rowMin(single, full);
      assertThat(engine.warmUp(1, 1, 1)).isEqualTo(backend != Backend.SCALAR);
      engine.warmUp(twice, single);
      engine.warmUp(single, full);
      engine.warmUp(zero, twice);
      Check.sameBits("rowMin", 1, cold, engine.rowMin(single, full));
    }
  }

  /** A shape that is too large to make up: warmUp takes a smaller one. */
  @Tag("long")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void anyShape(Backend backend) {
    DiagonalGaussians single = Batch.random(false, 3, 4, 0, new Random(1)).gaussians();
    try (KlEngine engine = Engines.on(backend)) {
      double[] cold = engine.rowMin(single, single);
      engine.warmUp(1, Integer.MAX_VALUE, 1 << 20);
      Check.sameBits("rowMin", 1, cold, engine.rowMin(single, single));
    }
  }

  @Test
  void rejected() {
    Gaussians four = Batch.random(false, 3, 4, 0, new Random(1)).gaussians();
    Gaussians five = Batch.random(false, 3, 5, 0, new Random(1)).gaussians();
    KlEngine engine = Engines.on(Backend.AUTO);
    for (int[] shape : new int[][] {{0, 1, 1}, {1, -1, 1}, {1, 1, 0}}) {
      refused(() -> engine.warmUp(shape[0], shape[1], shape[2]), "m = " + shape[1]);
    }
    assertThatIllegalArgumentException().isThrownBy(() -> engine.warmUp(four, five));
    engine.close();
    assertThatIllegalStateException().isThrownBy(() -> engine.warmUp(1, 1, 1));
    assertThatIllegalStateException().isThrownBy(() -> engine.warmUp(four, four));
    assertThat(engine.toString()).isNotEmpty();
  }
}
