package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.MixtureReduction;
import dev.kullback.Mixtures;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.function.DoubleUnaryOperator;
import java.util.function.IntFunction;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What reduce writes; transcripts have the rest of the commands on mixtures. */
@Tag("module")
class MixturesTest extends CommandFixture {
  private static final String Q = " --mean q.npy --std s.npy ";
  private static final String OUT = " -o o.npy --out-scale os.npy --out-weights ow.npy ";

  private final double[] variances = DoubleStream.of(qStd).map(s -> s * s).toArray();
  private final double[] weights = {0.5, 0.125, 0.0625, 0.125, 0.0625, 0.0625, 0.0625};

  private void saveWeights(String name, double... values) throws IOException {
    save(name, "<f8", "" + values.length, values);
  }

  private static double[] map(double[] values, DoubleUnaryOperator f) {
    return Arrays.stream(values).map(f).toArray();
  }

  private static double[] means(MixtureReduction reduced) {
    Gaussians g = reduced.mixtures().components();
    return rows(g.size(), g::mean);
  }

  /** Covariances, or of diagonal components variances. */
  private static double[] covariances(MixtureReduction reduced) {
    Gaussians g = reduced.mixtures().components();
    return rows(g.size(), i -> g instanceof FullGaussians full ? full.covariance(i) : g.scale(i));
  }

  private static double[] rows(int count, IntFunction<double[]> row) {
    return IntStream.range(0, count).mapToObj(row).flatMapToDouble(Arrays::stream).toArray();
  }

  private MixtureReduction expected(int size) {
    return MixtureReduction.runnalls(
        Mixtures.of(DiagonalGaussians.ofVariance(qMean, variances, D), weights), size);
  }

  @ParameterizedTest
  @ValueSource(strings = {"std", "var", "logvar", "precision"})
  void reduce(String kind) throws IOException {
    DoubleUnaryOperator of =
        switch (kind) {
          case "std" -> Math::sqrt;
          case "var" -> v -> v;
          case "logvar" -> Math::log;
          default -> v -> 1 / v;
        };
    saveWeights("c.npy", weights);
    saveWeights("l.npy", map(weights, Math::log));
    save("q.npy", "<f8", N, qMean);
    save("k.npy", "<f8", N, map(variances, of));
    MixtureReduction expected = expected(3);
    for (String given : List.of(" --weights c.npy", " --log-weights l.npy")) {
      succeed("reduce --to 3 --mean q.npy --indices i.npy --" + kind + " k.npy" + given + OUT);
      assertThat(values(read("o.npy", 3, D))).containsExactly(means(expected), within(1e-14));
      assertThat(values(read("os.npy", 3, D)))
          .containsExactly(map(covariances(expected), of), within(1e-11));
      assertThat(values(read("ow.npy", 3)))
          .containsExactly(expected.mixtures().weights(), within(1e-15));
      assertAssignments(expected);
    }
  }

  private void assertAssignments(MixtureReduction expected) throws IOException {
    Npy.Array rows = Npy.readInts(folder.resolve("i.npy"), Arena.ofAuto());
    assertThat(rows.data().toArray(ValueLayout.JAVA_INT)).containsExactly(expected.assignments());
  }

  @Test
  void reduceMatrices() throws IOException {
    double[] covariance = new double[N * D * D];
    double[] tril = new double[N * D * D];
    for (int k = 0; k < tril.length; k++) {
      int r = k / D % D;
      int c = k % D;
      tril[k] = r == c ? 2 + k / D / D : c < r ? 0.25 * (c - r) : 0;
    }
    for (int k = 0; k < covariance.length; k++) {
      for (int m = 0; m < D; m++) {
        covariance[k] += tril[k / D * D + m] * tril[k / D / D * D * D + k % D * D + m];
      }
    }
    save("cov.npy", "<f8", "7 6 6", covariance);
    save("scale-tril.npy", "<f8", "7 6 6", tril);
    double[] equal = new double[N];
    Arrays.fill(equal, 1.0 / N);
    MixtureReduction expected =
        MixtureReduction.runnalls(
            Mixtures.of(FullGaussians.ofCovariance(qMean, covariance, D), equal), 4);
    for (String scale : new String[] {"cov", "scale-tril"}) {
      succeed("reduce --to 4 --mean q.npy --%s %1$s.npy".formatted(scale) + OUT);
      assertThat(values(read("o.npy", 4, D))).containsExactly(means(expected), within(1e-14));
      assertThat(values(read("os.npy", 4, D, D)))
          .containsExactly(covariances(expected), within(1e-12));
    }
  }

  /** What was float32 and what is beyond it is written as it was computed, in double. */
  @ParameterizedTest
  @CsvSource({
    "--var, 1e30, 1, 0.5, 2.5e59",
    "--precision, 1e30, 1, 0.5, 4e-60",
    "--scale-tril, 1e-25, 1e-25, 0.5, 1.25e-50",
    "--std, 1, 1, 1e-60, 1.118033988749895",
    "--std, 1, 1, 1e60, 1.118033988749895"
  })
  void reduceWritesDouble(String kind, double far, double scale, double weight, double merged)
      throws IOException {
    boolean isFull = kind.equals("--scale-tril");
    saveWeights("c.npy", weight, weight);
    for (String mean : List.of("<f2", "<f4", "<f8")) {
      if (mean.equals("<f2") && far != 1) {
        continue;
      }
      save("m.npy", mean, "2 1", 0, far);
      save("k.npy", "<f4", isFull ? "2 1 1" : "2 1", scale, scale);
      succeed("reduce --to 1 --weights c.npy --mean m.npy " + kind + " k.npy" + OUT);
      Npy.Array got = isFull ? read("os.npy", 1, 1, 1) : read("os.npy", 1, 1);
      assertThat(got.isDouble()).isTrue();
      assertThat(got.value(0)).isCloseTo(merged, withinPercentage(1e-4)); // inputs are floats
      assertThat(read("o.npy", 1, 1).isDouble()).isTrue();
      assertThat(values(read("ow.npy", 1))).containsExactly(2 * weight);
    }
  }

  /** Two far components of float32: their covariance is singular in float, and so is not rounded to it. */
  @ParameterizedTest
  @ValueSource(strings = {"cov", "scale-tril"})
  void reduceFarComponents(String kind) throws IOException {
    save("m.npy", "<f4", "2 2", -1e4, -1e4, 1e4, 1e4);
    save("k.npy", "<f4", "2 2 2", 1, 0, 0, 1, 1, 0, 0, 1);
    succeed("reduce --to 1 --mean m.npy --" + kind + " k.npy" + OUT);
    assertThat(values(read("o.npy", 1, 2))).containsExactly(0, 0);
    assertThat(values(read("os.npy", 1, 2, 2))).containsExactly(100000001, 1e8, 1e8, 100000001);
    String reduced = " --mean o.npy --cov os.npy ";
    succeed("standard" + reduced + "-o x.npy");
    assertThat(values(read("x.npy", 1))[0]) // ½ (tr P − 2 − ln det P)
        .isCloseTo(0.5 * (200000002.0 - 2 - Math.log(200000001)), withinPercentage(1e-10));
    assertThat(run("entropy --weights ow.npy" + reduced).status()).isZero();
    succeed(
        "reduce --to 1 --weights ow.npy -o x.npy --out-scale y.npy --out-weights z.npy" + reduced);
    assertThat(values(read("y.npy", 1, 2, 2)))
        .containsExactly(values(read("os.npy", 1, 2, 2)), within(1e-6));
  }

  /** Only proportions matter: an unnormalized filter's logarithms, and weights of any magnitude. */
  @ParameterizedTest
  @CsvSource({
    "--log-weights, <f8, -5000",
    "--log-weights, <f4, -5000",
    "--log-weights, <f8, 800",
    "--log-weights, <f8, 1e15",
    "--weights, <f8, 1e-300",
    "--weights, <f8, 1e308"
  })
  void reduceScalesWeights(String option, String type, double most) throws IOException {
    boolean isLog = option.equals("--log-weights");
    double[] given = new double[N];
    for (int i = 0; i < N; i++) {
      given[i] = isLog ? most - i : most / N * (N - i);
    }
    given[N - 1] =
        isLog ? most - 1000 : most * 1e-20; // too small to matter, even too small for double
    given[N - 2] = isLog ? Double.NEGATIVE_INFINITY : 0;
    save("c.npy", type, "7", given);
    String line = "reduce --to 3" + Q + OUT + option + " c.npy";
    String summary = run(line).out();
    assertThat(summary)
        .containsPattern("the weights, whose sum is exp\\(\\S+\\), were scaled to the sum 1");
    double[] proportions =
        IntStream.range(0, N)
            .mapToDouble(i -> isLog ? Math.exp(given[i] - most) : given[i] / most)
            .toArray();
    double sum = Arrays.stream(proportions).sum();
    MixtureReduction expected =
        MixtureReduction.runnalls(
            Mixtures.of(
                DiagonalGaussians.ofVariance(qMean, variances, D), map(proportions, w -> w / sum)),
            3);
    double[] weights = values(read("ow.npy", 3));
    assertThat(weights).containsExactly(expected.mixtures().weights(), within(1e-15));
    assertThat(values(read("o.npy", 3, D))).containsExactly(means(expected), within(1e-13));
    assertThat(run("entropy --mean o.npy --std os.npy --weights ow.npy").status()).isZero();
  }

  /** A weight that float32 cannot hold beside others is one like them; sums that double can hold are preserved. */
  @Test
  void reduceKeepsSums() throws IOException {
    double[] logs = {0, 1, -200, -700, -800, Double.NEGATIVE_INFINITY, 2};
    saveWeights("l.npy", logs);
    succeed("reduce --to 7 --log-weights l.npy" + Q + OUT);
    assertThat(values(read("ow.npy", N))).containsExactly(map(logs, Math::exp));
    saveWeights("l.npy", map(logs, w -> w - 300));
    assertThat(run("reduce --to 7 --log-weights l.npy" + Q + OUT).out()).doesNotContain("scaled");
    assertThat(values(read("ow.npy", N))).containsExactly(map(logs, w -> Math.exp(w - 300)));
  }
}
