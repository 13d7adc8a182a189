package dev.kullback.internal.numerics;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Compares what is found of fused multiply-add with the VM's flag. */
@Tag("vector")
class FmaTest {
  @Test
  void speedTellsWhatTheFlagSays() {
    assertThat(Fma.flag()).isNotNull().isEqualTo(Fma.isFast()).isEqualTo(Fma.IS_HARDWARE);
  }

  @Test
  void roundsOnceWhereItIsAnInstruction() {
    double x = 1 + 0x1p-30;
    assertThat(Fma.of(x, x, -1 - 0x1p-29)).isEqualTo(Fma.IS_HARDWARE ? 0x1p-60 : 0);
  }
}
