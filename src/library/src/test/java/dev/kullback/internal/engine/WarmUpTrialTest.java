package dev.kullback.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Share;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Every group's trial runs to its end: what one throws the background leaves to the callers, who would then wait for the compiler. With fewer
 * instructions or narrower vectors each stage has two rounds, in which all of it runs: waiting for C2 there took 35 to 45 s a run and finds no more.
 */
@Tag("vector")
class WarmUpTrialTest {
  /** What was abandoned is another one: the engine is closed before its own has begun. */
  @Test
  void endsAfterAnotherWasAbandoned() {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    DiagonalGaussians g =
        DiagonalGaussians.ofStd(new float[8], new float[] {1, 2, 1, 2, 1, 2, 1, 2}, 2);
    try (KlEngine engine = KlEngine.builder().backgroundWarmUp(true).build()) {
      engine.pairwise(g, g);
    }
    assertThat(BackgroundWarmUp.isAbandoned()).isFalse();
  }

  /** Takes C2 a second or two each, where it waits for it. */
  @ParameterizedTest
  @EnumSource
  void ends(KernelGroup group) {
    ends(group, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @EnumSource
  void othersEnd(KernelGroup group) {
    ends(group, Share.OTHERS);
  }

  private static void ends(KernelGroup group, Share share) {
    if (!share.has(group.ordinal())) {
      return;
    }
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    Formula formula =
        switch (group) {
          case WASSERSTEIN_2, FULL_WASSERSTEIN_2 -> Wasserstein2.DISTANCE;
          case JEFFREYS, JEFFREYS_NEAR_KINDS, FULL_JEFFREYS -> Jeffreys.FORMULA;
          case CHERNOFF, CHERNOFF_NEAR_KINDS, FULL_CHERNOFF -> Chernoff.HELLINGER;
          case CHERNOFF_NEAR_ZERO -> Chernoff.renyi(0.01);
          case CHERNOFF_NEAR_ONE -> Chernoff.renyi(0.99);
          default -> Kl.FORWARD;
        };
    WarmUpTrial trial =
        Boolean.getBoolean(Engines.NARROWER)
            ? new WarmUpTrial(formula, 8, 0)
            : new WarmUpTrial(formula, 8);
    assertThat(KernelTable.tryOut(group, trial)).isTrue();
  }
}
