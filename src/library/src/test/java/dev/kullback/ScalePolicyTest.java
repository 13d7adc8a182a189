package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The opt-in treatments of scales that are zero or extreme. */
class ScalePolicyTest {
  private static final int DIMENSION = 5;

  /** A clamped batch is the batch of clamped scales, up to the rounding of the clamp. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void clampsToTheNamedLimits(Backend backend) {
    checkClamp(backend, Kind.STD, new double[] {0, -1, 1e-9, 1, 0.5}, s -> Math.max(s, 1e-8));
    checkClamp(
        backend, Kind.VARIANCE, new double[] {0, -0.0, 1e-20, 2, 3}, v -> Math.max(v, 1e-16));
    checkClamp(
        backend,
        Kind.LOG_VARIANCE,
        new double[] {-1000, -30.5, 0, 20.25, 1000},
        l -> Math.clamp(l, -30.0, 20.0));
    checkClamp(
        backend, Kind.PRECISION, new double[] {1e-3, 1, 1e15, 1e17, 1e30}, w -> Math.min(w, 1e16));
  }

  private static void checkClamp(
      Backend backend, Kind kind, double[] scale, DoubleUnaryOperator clamp) {
    Random random = new Random(1);
    double[] mean = random.doubles(DIMENSION, -1, 1).toArray();
    double[] clamped = new double[DIMENSION];
    for (int i = 0; i < DIMENSION; i++) {
      clamped[i] = clamp.applyAsDouble(scale[i]);
    }
    Batch other = Batch.random(true, 3, DIMENSION, 0, random);
    for (boolean isDouble : new boolean[] {false, true}) {
      Batch q = new Batch(kind, isDouble, mean, scale, DIMENSION);
      Batch exact = new Batch(kind, true, q.mean(), clamped, DIMENSION);
      Batch p = new Batch(Kind.STD, isDouble, other.mean(), other.scale(), DIMENSION);
      DiagonalGaussians asked = q.gaussians(ScalePolicy.CLAMPED);
      try (KlEngine engine = Engines.on(backend)) {
        String what = backend + " " + kind + (isDouble ? " double" : " float");
        float[] row = engine.pairwise(asked, p.gaussians());
        Check.matrix(what + " as q", 3, Oracle.pairwise(exact, p), row);
        float[] column = engine.pairwise(p.gaussians(), asked);
        Check.matrix(what + " as p", 1, Oracle.pairwise(p, exact), column);
        if (isDouble) {
          double[] twice = engine.pairwise(p.gaussians(), asked, new double[3]);
          double[] expected = Oracle.pairwise(p, exact);
          Check.matrix(what + " as p", 1, expected, twice, Check.Precision.DOUBLE);
        }
        assertThat(engine.pairwise(asked, asked)).containsExactly(0f);
      }
    }
  }

  /** Clamping is of what is too small or large, not of what is no number. */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void clampedStillRejectsNonFinite(Kind kind) {
    for (float bad : new float[] {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> kind.of(new float[] {0}, new float[] {bad}, 1, ScalePolicy.CLAMPED));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> kind.of(new float[] {bad}, new float[] {1}, 1, ScalePolicy.CLAMPED));
    }
  }

  @Test
  void clampedPrecisionMustBePositive() {
    for (float bad : new float[] {0, -1}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() ->
              Gaussians.of(
                  ScaleKind.PRECISION, new float[] {0}, new float[] {bad}, 1, ScalePolicy.CLAMPED));
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void clampedLeavesOrdinaryScalesAlone(Backend backend) {
    Batch batch = Batch.random(false, 7, DIMENSION, 0, new Random(2));
    try (KlEngine engine = Engines.on(backend)) {
      float[] expected = engine.pairwise(batch.gaussians(), batch.gaussians());
      for (ScalePolicy policy : ScalePolicy.values()) {
        DiagonalGaussians q = batch.gaussians(policy);
        Check.sameBits(policy.name(), 7, expected, engine.pairwise(q, q));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void deterministicRowsHaveNoDivergence(Backend backend) {
    Batch ordinary = Batch.random(false, 4, DIMENSION, 0, new Random(3));
    for (Kind kind : new Kind[] {Kind.STD, Kind.VARIANCE}) {
      for (boolean isDouble : new boolean[] {false, true}) {
        double[] mean = new Random(4).doubles(3 * DIMENSION, -5, 5).toArray();
        double[] zeros = new double[mean.length];
        zeros[1] = -0.0;
        Batch certain = new Batch(kind, isDouble, mean, zeros, DIMENSION);
        DiagonalGaussians q = certain.gaussians(ScalePolicy.DETERMINISTIC_IF_ZERO);
        DiagonalGaussians p = ordinary.gaussians();
        try (KlEngine engine = Engines.on(backend, 2)) {
          assertThat(engine.pairwise(q, p)).hasSize(12).containsOnly(0f);
          double[] twice = new double[13];
          twice[12] = 7;
          engine.pairwise(q, p, twice);
          assertThat(twice).startsWith(new double[12]).endsWith(7.0);
          assertThat(engine.pairwise(q, q)).hasSize(9).containsOnly(0f);
          assertThat(engine.aligned(q, q)).hasSize(3).containsOnly(0f);
          assertThat(engine.toStandardNormal(q)).hasSize(3).containsOnly(0f);
          refused(() -> engine.pairwise(p, q), "deterministic");
          assertThatIllegalArgumentException().isThrownBy(() -> engine.aligned(ones(3), q));
          assertThatIllegalArgumentException()
              .as("shapes still matter")
              .isThrownBy(() ->
                  engine.pairwise(q, DiagonalGaussians.ofStd(new float[] {1}, new float[] {1}, 1)));
        }
      }
    }
  }

  @Test
  void deterministicMeansEveryScale() {
    for (float[] std : new float[][] {{0, 1, 0, 0}, {1, 1, 1, 0}, {0, 0, 1, 1}, {0, 0, 0, -1}}) {
      for (Kind kind : new Kind[] {Kind.STD, Kind.VARIANCE}) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> kind.of(new float[4], std, 2, ScalePolicy.DETERMINISTIC_IF_ZERO));
      }
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() ->
            Gaussians.of(
                ScaleKind.STD,
                new float[] {Float.NaN},
                new float[1],
                1,
                ScalePolicy.DETERMINISTIC_IF_ZERO));
  }

  private static DiagonalGaussians ones(int size) {
    return Batch.random(false, size, DIMENSION, 0, new Random(5)).gaussians();
  }
}
