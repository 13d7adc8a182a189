package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
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
        ScaleKind stated = kind.scaleKind();
        Batch doubles = Batch.ofStd(kind, true, drawn.mean(), drawn.scale(), 7);
        DiagonalGaussians owning =
            (DiagonalGaussians) Gaussians.owning(stated, doubles.mean(), doubles.scale(), 7);
        DiagonalGaussians copy = doubles.gaussians();
        assertThat(owning.isDouble()).isTrue();
        assertThat(owning.batch.mean64()).isSameAs(doubles.mean());
        assertThat(owning.batch.scale64()).isSameAs(doubles.scale());
        assertThat(engine.pairwise(owning, copy, new double[400]))
            .isEqualTo(engine.pairwise(copy, copy, new double[400]));
        float[] mean = Batch.narrowed(doubles.mean());
        float[] scale = Batch.narrowed(doubles.scale());
        DiagonalGaussians floats = (DiagonalGaussians) Gaussians.owning(stated, mean, scale, 7);
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
    refused(
        () -> Gaussians.owning(ScaleKind.VARIANCE, new float[2], new float[] {1, 0}, 1),
        "variance[1][0]");
    refused(
        () -> Gaussians.owning(ScaleKind.PRECISION, new double[2], new double[3], 1),
        "mean has 2 elements but precision has 3");
    assertThatNullPointerException()
        .isThrownBy(() -> Gaussians.owning(ScaleKind.STD, new float[1], null, 1))
        .withMessage("std");
    assertThatNullPointerException()
        .isThrownBy(() -> Gaussians.owning(null, new float[1], new float[1], 1))
        .withMessage("kind");
  }

  @Test
  void matricesCannotBeOwned() {
    for (ScaleKind kind : ScaleKind.values()) {
      if (kind.isFull()) {
        String message =
            "a batch of kind "
                + kind
                + " cannot take arrays over: it holds factors, in an array of its own; take Gaussians.of";
        refusedAs(message, () -> Gaussians.owning(kind, new float[1], new float[] {1}, 1));
        refusedAs(message, () -> Gaussians.owning(kind, new double[1], new double[] {1}, 1));
      }
    }
  }

  /** References of a search on random data: the values, the panels, and six doubles a row. */
  @Test
  void aSearchedBlockTakesLittleMoreThanTwiceItsValues() {
    Random random = new Random(2);
    Gaussians p = random(N, random);
    Gaussians q = random(50, random);
    try (KlEngine engine = KlEngine.builder().build()) {
      for (int call = 0; call < 3; call++) {
        engine.nearest(q, p, 10);
        engine.search(q, p, Query.nearest(10).exact());
        engine.search(q, p, Query.nearest(10).exact().reverse());
      }
    }
    assertThat(p.memoryBytes()).isLessThan((long) (2.2 * 2 * Float.BYTES * N * D));
  }

  private static Gaussians random(int n, Random random) {
    float[] mean = new float[n * D];
    float[] std = new float[n * D];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
      std[k] = (float) Math.exp(0.3 * random.nextGaussian());
    }
    return Gaussians.owning(ScaleKind.STD, mean, std, D);
  }
}
