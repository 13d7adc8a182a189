package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.kullback.internal.verify.Finding;
import dev.kullback.internal.verify.Findings;
import dev.kullback.testing.Engines;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class VerifyTest {
  @Test
  void everyOperationIsRight() {
    try (KlEngine engine = Engines.on(Backend.AUTO, 2)) {
      Verification found = engine.verify(Duration.ofMillis(1));
      assertThat(found.passed()).as("%s", found).isTrue();
      assertThat(found.operations())
          .extracting(Verification.Operation::name)
          .contains(
              "pairwise",
              "aligned",
              "toStandardNormal",
              "nearest",
              "nearest, reverse",
              "nearest, exact",
              "pairs",
              "within",
              "within, reverse",
              "logSumExp",
              "gradient of pairwise",
              "logDensity",
              "mahalanobis",
              "nearest of points",
              "logLikelihood",
              "responsibilities",
              "index nearest",
              "index within",
              "index nearest, reverse",
              "index within, reverse",
              "index query",
              "index nearest of points",
              "index query of points",
              "mixture upper bound",
              "mixture reduction",
              "entropy lower bound")
          .doesNotHaveDuplicates();
      assertThat(found.operations())
          .allSatisfy(operation -> {
            assertThat(operation.calls()).isGreaterThanOrEqualTo(12);
            assertThat(operation.entries()).isGreaterThan(operation.calls());
            assertThat(operation.worstError()).isBetween(Double.MIN_VALUE, 1.0);
            assertThat(operation.allocatedBytes().orElse(0)).isBetween(0L, 1L << 30);
            assertThat(operation.failure()).isEmpty();
          });
      assertThat(found.operations())
          .filteredOn(operation -> operation.allocatedBytes().isEmpty())
          .extracting(Verification.Operation::name)
          .containsExactly(
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
      List<String> lines = found.toString().lines().toList();
      assertThat(lines.subList(0, lines.size() - 1))
          .hasSameSizeAs(found.operations())
          .allMatch(line -> line.endsWith(" ok"));
      assertThat(lines.getLast())
          .isEqualTo(
              "tried with 21 of 366 pairs of batches, of each kind one at least; more time tries more");
    }
  }

  @Tag("long")
  @ParameterizedTest
  @ValueSource(strings = {"jeffreys", "hellinger", "wasserstein-2", "squared-wasserstein-2"})
  void everyDivergenceIsRight(String divergence) {
    try (KlEngine engine =
        KlEngine.builder().divergence(Divergence.of(divergence)).threads(2).build()) {
      Verification found = engine.verify(Duration.ofMillis(1));
      assertThat(found.passed()).as("%s", found).isTrue();
    }
  }

  @Test
  void oneWrongOperationMakesAllWrong() {
    var right = new Finding("pairwise", 3, 9, 0.25, 0, "");
    var wrong = new Finding("logSumExp", 3, 9, 17, -1, "float, 1 x 1: entry 0 is 2 instead of 1");
    assertThat(new Verification(new Findings(List.of(right), 1, 1)).passed()).isTrue();
    Verification found = new Verification(new Findings(List.of(right, wrong), 2, 2));
    assertThat(found.passed()).isFalse();
    assertThat(found.operations().get(0).allocatedBytes()).hasValue(0);
    assertThat(found.operations().get(0).failure()).isEmpty();
    assertThat(found.operations().get(1).allocatedBytes()).isEmpty();
    assertThat(found.operations().get(1).failure())
        .contains("float, 1 x 1: entry 0 is 2 instead of 1");
    assertThat(found.operations().get(1).worstError()).isEqualTo(17);
    assertThat(found.toString())
        .contains(
            "pairwise", " 0 B a call   ok", " - B a call   WRONG", "entry 0 is 2 instead of 1")
        .endsWith("\ntried with all 2 pairs of batches");
  }

  @Test
  void arguments() {
    KlEngine engine = Engines.on(Backend.SCALAR);
    try (engine) {
      refused(() -> engine.verify(Duration.ZERO), "time");
      Thread.currentThread().interrupt();
      try {
        engine.verify(Duration.ofDays(1000_000));
        throw new AssertionError("not interrupted");
      } catch (CancellationException e) {
        assertThat(Thread.interrupted()).isTrue();
      }
    }
    assertThatIllegalStateException().isThrownBy(() -> engine.verify(Duration.ofSeconds(1)));
  }
}
