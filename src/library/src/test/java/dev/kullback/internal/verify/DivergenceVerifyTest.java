package dev.kullback.internal.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.Verification;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.Measure;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What {@code verify} runs, of each measure and on the kinds of batches that it has, in small shapes. */
class DivergenceVerifyTest {
  private static final int[][] SHAPES = {{7, 7, 9}, {3, 19, 5}, {5, 6, 3}};

  static Stream<Measure> measures() {
    return Stream.of(
        Measure.JEFFREYS,
        Measure.BHATTACHARYYA,
        Measure.HELLINGER,
        Measure.WASSERSTEIN_2,
        new Measure(Measure.Family.RENYI, 0.3));
  }

  @Tag("long")
  @Test
  void everyOperationOfTheReverseIsRight() {
    everyOperationIsRight(Measure.REVERSE_KL);
  }

  @ParameterizedTest
  @MethodSource("measures")
  void everyOperationIsRight(Measure measure) {
    try (Engine engine = new Engine(measure, Platform.Choice.VECTOR, 1, null)) {
      for (Verification.Operation found : Verify.run(engine, SHAPES, 1, 1)) {
        assertThat(found.wrong()).as(found.name()).isEmpty();
      }
    }
  }
}
