package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.kullback.testing.Batch;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Batches that keep the caller's arrays, and what searches add to them. */
class OwningTest {
  private static final int N = 30_000;
  private static final int D = 32;

  @Test
  void makesTheBatchOfACopy() {
    Batch drawn = Batch.random(true, 20, 7, 0, new Random(1));
    try (KlEngine engine = KlEngine.builder().build()) {
      for (Batch.Kind kind : Batch.Kind.values()) {
        ScaleKind stated = ScaleKind.valueOf(kind.name());
        Batch doubles = Batch.ofStd(kind, true, drawn.mean(), drawn.scale(), 7);
        DiagonalGaussians owning =
            DiagonalGaussians.owning(doubles.mean(), doubles.scale(), 7, stated);
        DiagonalGaussians copy = doubles.gaussians();
        assertThat(owning.isDouble()).isTrue();
        assertThat(owning.batch.mean64()).isSameAs(doubles.mean());
        assertThat(owning.batch.scale64()).isSameAs(doubles.scale());
        assertThat(engine.pairwise(owning, copy, new double[400]))
            .isEqualTo(engine.pairwise(copy, copy, new double[400]));
        float[] mean = Batch.narrowed(doubles.mean());
        float[] scale = Batch.narrowed(doubles.scale());
        DiagonalGaussians floats = DiagonalGaussians.owning(mean, scale, 7, stated);
        assertThat(floats.batch.mean32()).isSameAs(mean);
        assertThat(floats.batch.scale32()).isSameAs(scale);
        DiagonalGaussians copies = kind.of(mean, scale, 7);
        assertThat(engine.pairwise(floats, copies)).isEqualTo(engine.pairwise(copies, copies));
        assertThat(floats.toString()).isEqualTo(copies.toString());
      }
    }
  }

  @Test
  void checksAsOthersDo() {
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> DiagonalGaussians.owning(new float[2], new float[] {1, 0}, 1, ScaleKind.VARIANCE))
        .withMessageContaining("variance[1][0]");
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> DiagonalGaussians.owning(new double[2], new double[3], 1, ScaleKind.PRECISION))
        .withMessageContaining("mean has 2 elements but precision has 3");
    assertThatNullPointerException()
        .isThrownBy(() -> DiagonalGaussians.owning(new float[1], null, 1, ScaleKind.STD))
        .withMessage("std");
    assertThatNullPointerException()
        .isThrownBy(() -> DiagonalGaussians.owning(new float[1], new float[1], 1, null))
        .withMessage("kind");
  }

  /** References of a search on random data: the values, the panels, and six doubles a row. */
  @Test
  void aSearchedBlockTakesLittleMoreThanTwiceItsValues() {
    Random random = new Random(2);
    DiagonalGaussians p = random(N, random);
    DiagonalGaussians q = random(50, random);
    try (KlEngine engine = KlEngine.builder().build()) {
      for (int call = 0; call < 3; call++) {
        engine.nearest(q, p, 10);
        engine.nearest(q, p, NearestOptions.of(10).exact());
        engine.nearest(q, p, NearestOptions.of(10).exact().reverse());
      }
    }
    assertThat(p.memoryBytes()).isLessThan((long) (2.2 * 2 * Float.BYTES * N * D));
  }

  private static DiagonalGaussians random(int n, Random random) {
    float[] mean = new float[n * D];
    float[] std = new float[n * D];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
      std[k] = (float) Math.exp(0.3 * random.nextGaussian());
    }
    return DiagonalGaussians.owning(mean, std, D, ScaleKind.STD);
  }
}
