package dev.kullback.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.kernel.Readiness.KernelGroup;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every group's trial runs to its end: what one throws the background leaves to the callers, who would then wait for the compiler. */
@Tag("vector")
class WarmUpTrialTest {
  @ParameterizedTest
  @EnumSource
  void ends(KernelGroup group) {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    assertThat(KernelTable.tryOut(group, new WarmUpTrial(8))).isTrue();
  }
}
