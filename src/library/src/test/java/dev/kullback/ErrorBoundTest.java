package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.formula.PairKl;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The float kernels keep the contract whatever the order of the terms and the roundings. */
@Tag("device")
class ErrorBoundTest {
  private static final double U = 0x1p-24;

  /** λ of its derivation, at {@code PairKl.UNITS32}. */
  private static final double SHARE = 0.17;

  /**
   * The derivation at {@code PairKl.UNITS32}: {@code a t − c (t − 1 − ln t)} is greatest at {@code t = c/(c − a)}, where it is {@code
   * −c ln(1 − a/c)}.
   */
  @Test
  void noTermsExceedTheContract() {
    double contract = Check.FLOAT_CONTRACT - U; // the result is rounded once more
    double c = SHARE * contract / U;
    for (int dimension = 1; dimension <= PairKl.BLOCKS; dimension++) {
      double allowed = PairKl.unit32(dimension) / U;
      if (units(0, dimension) <= allowed) {
        continue; // for every term
      }
      double sum = 0;
      for (int h = 0; h < dimension; h++) {
        double a = units(h, dimension) - (1 - SHARE) * allowed;
        sum += a < c ? -c * Math.log1p(-a / c) : Double.POSITIVE_INFINITY;
      }
      assertThat(sum).as("D = %d", dimension).isLessThanOrEqualTo(0);
    }
    // what is stored has UNITS·u·A ≤ τ·KL of the computed A and KL, which are off by as much again
    assertThat(PairKl.FLOAT_TOLERANCE * (1 + 73 * U)).isLessThanOrEqualTo(contract);
  }

  /** Roundings of a group of chunks that term h takes part in. */
  private static double units(int h, int dimension) {
    int chunk = h / PairKl.BLOCK;
    int last = (dimension - 1) / PairKl.BLOCK;
    int length = Math.min(PairKl.BLOCK, dimension - chunk * PairKl.BLOCK);
    int additions = last - Math.max(0, chunk - 1);
    return 6 + (length - h % PairKl.BLOCK) + (last == 0 ? 0 : additions);
  }

  /**
   * Variances of q over those of p that fall from 3.6 to 1.5, so that a float sum comes to just above 64, and stay below 1 from then on,
   * each so chosen that its addition loses, or gains, the most: the sum is off by far more than by roundings that vary, and the
   * log-determinants cancel most of it.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void roundingsOfOneSign(Backend backend) {
    roundingsOfOneSign(backend, Batch.Kind.STD);
    roundingsOfOneSign(backend, Batch.Kind.VARIANCE);
  }

  private static void roundingsOfOneSign(Backend backend, Batch.Kind kind) {
    int dimension = 256;
    List<double[]> rows = new ArrayList<>();
    Random random = new Random(1);
    for (int sign = -1; sign <= 1; sign += 2) {
      for (double tail = 0.66; tail < 0.8; tail += 0.005) {
        rows.add(greedy(kind, sign, tail, random));
      }
    }
    int n = rows.size();
    double[] scale = new double[n * dimension];
    for (int k = 0; k < scale.length; k++) {
      scale[k] = rows.get(k / dimension)[k % PairKl.BLOCK];
    }
    double[] ones = new double[dimension];
    Arrays.fill(ones, 1);
    Batch q = new Batch(kind, false, new double[scale.length], scale, dimension);
    Batch p = new Batch(kind, false, new double[dimension], ones, dimension);
    double[] expected = new Oracle(q, p).pairwise();
    try (KlEngine engine = Engines.on(backend)) {
      Check.matrix(
          "roundings of one sign, " + kind,
          1,
          expected,
          engine.pairwise(q.gaussians(), p.gaussians()));
    }
  }

  /** A chunk of scales, each the best of many near its place on the way down. */
  private static double[] greedy(Batch.Kind kind, int sign, double tail, Random random) {
    int large = 26;
    double[] result = new double[PairKl.BLOCK];
    float sum = 0;
    for (int h = 0; h < result.length; h++) {
      double target =
          h < large
              ? 3.6 - 2.1 * h / (large - 1)
              : tail - 0.1 + 0.2 * (h - large) / (result.length - large - 1);
      double best = Double.NEGATIVE_INFINITY;
      float bestSum = 0;
      for (int trial = 0; trial < 2000; trial++) {
        double v = target * (1 + 0.02 * (random.nextDouble() - 0.5));
        float scale = (float) (kind == Batch.Kind.STD ? Math.sqrt(v) : v);
        float inverse = 1 / (kind == Batch.Kind.STD ? scale * scale : scale);
        double exact = kind == Batch.Kind.STD ? (double) scale * scale : scale;
        float next = sum + 1 / inverse;
        double gain = sign * (next - sum - exact);
        if (gain > best) {
          best = gain;
          bestSum = next;
          result[h] = scale;
        }
      }
      sum = bestSum;
    }
    return result;
  }
}
