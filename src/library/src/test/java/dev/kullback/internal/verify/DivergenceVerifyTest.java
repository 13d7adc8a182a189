package dev.kullback.internal.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.RenyiAboveOne;
import dev.kullback.internal.formula.Wasserstein2;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What {@code verify} runs, of each formula and on the kinds of batches that it has, in small shapes. */
class DivergenceVerifyTest {
  private static final int[][] SHAPES = {{7, 7, 9}, {3, 19, 5}, {5, 6, 3}};

  static Stream<Formula> formulas() {
    return Stream.of(
        Jeffreys.FORMULA,
        Chernoff.BHATTACHARYYA,
        Chernoff.HELLINGER,
        Wasserstein2.SQUARED,
        Wasserstein2.DISTANCE,
        Chernoff.renyi(0.3),
        new RenyiAboveOne(1.5));
  }

  @Tag("long")
  @Test
  void everyOperationOfTheReverseIsRight() {
    everyOperationIsRight(Kl.REVERSE);
  }

  @ParameterizedTest
  @MethodSource("formulas")
  void everyOperationIsRight(Formula formula) {
    try (Engine engine = new Engine(formula, Platform.Choice.VECTOR, 1, null)) {
      for (Finding found : Verify.run(engine, SHAPES, 1, 1, 1).operations()) {
        assertThat(found.wrong()).as(found.name()).isEmpty();
      }
    }
  }
}
