package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Blocks by the memory of executors that are made up. */
class PlanTest {
  private static final Input D32 =
      new Input("references", new Columns("id", "mean", "std", ScaleKind.STD), false, 32, "");

  /** Executors of 512 MB, of which Spark leaves 0.4. */
  private static final Plan.Resources SMALL = new Plan.Resources(0.4 * (512 << 20), 1, 2, 1L << 30);

  @Test
  void blocksThatDoNotFitAreRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Plan.of(SMALL, D32, 1_000_000, 1000, 400_000, false, 160))
        .withMessageStartingWith(
            "blockRows(400,000): a block of 400,000 references takes up to 817 MB, 2144 bytes each; executors have 204 MB for it. Raise spark.executor.memory, ")
        .withMessageEndingWith(" or give blocks of 25,040 rows");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Plan.of(SMALL, D32, 300_000, 1000, 0, true, 160))
        .withMessageStartingWith("broadcast(): a block of 300,000 references takes up to ");
    Plan.Resources driver = new Plan.Resources(1L << 40, 1, 2, 1L << 30);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Plan.of(driver, D32, 3_000_000, 1000, 0, true, 160))
        .withMessageContaining("raise spark.driver.memory");
  }

  /** The library holds no more than is planned for, whatever its kernels have made. */
  @ParameterizedTest
  @CsvSource({
    "STD, false, 32",
    "STD, true, 5",
    "LOG_VARIANCE, false, 70",
    "SCALE_TRIL, false, 12",
    "SCALE_TRIL, true, 9"
  })
  void rowsTakeNoMoreThanPlanned(ScaleKind kind, boolean isDouble, int dimension) {
    Sample sample = Sample.twins(kind, isDouble, 512, dimension, 1);
    Input input =
        new Input("references", new Columns("id", "mean", "std", kind), isDouble, dimension, "");
    try (KlEngine engine = KlEngine.builder().build()) {
      Gaussians batch = sample.batch();
      engine.search(batch, batch, Query.nearest(3).exact());
      batch.prepare();
      double raw = (double) (dimension + input.scaleLength()) * (isDouble ? 8 : 4);
      assertThat((double) batch.memoryBytes() / 512)
          .isLessThanOrEqualTo(Plan.rowBytes(input) - raw)
          .isGreaterThan(raw / 2);
    }
  }

  @Test
  void blocksThatFitAreAsAskedFor() {
    assertThat(Plan.of(SMALL, D32, 1_000_000, 1000, 90_000, false, 160).referenceBlocks())
        .isEqualTo(12);
    assertThat(Plan.of(SMALL, D32, 90_000, 1000, 400_000, false, 160).referenceBlocks())
        .isEqualTo(1);
    assertThat(Plan.of(SMALL, D32, 90_000, 1000, 0, true, 160).referenceBlocks()).isEqualTo(1);
    assertThat(Plan.of(SMALL, D32, 1_000_000, 100_000, 0, false, 160).referenceBlocks())
        .isGreaterThan(30);
  }
}
