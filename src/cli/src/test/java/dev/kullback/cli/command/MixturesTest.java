package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.MixtureReduction;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The commands on mixtures. */
@Tag("module")
class MixturesTest extends CommandFixture {
  private static final String Q = " --mean q.npy --std s.npy ";
  private static final String OUT = " -o o.npy --out-scale os.npy --out-weights ow.npy ";

  private final double[] variances = DoubleStream.of(qStd).map(s -> s * s).toArray();
  private final double[] weights = {0.5, 0.125, 0.0625, 0.125, 0.0625, 0.0625, 0.0625};

  private void saveWeights(String name, double... values) throws IOException {
    NpyFiles.write(folder.resolve(name), "<f8", new long[] {values.length}, values);
  }

  private static double[] map(double[] values, DoubleUnaryOperator f) {
    return Arrays.stream(values).map(f).toArray();
  }

  // --- reduce

  private MixtureReduction expected(int size) {
    return MixtureReduction.runnalls(
        DiagonalGaussians.ofVariance(qMean, variances, D), weights, size);
  }

  @Test
  void reduce() throws IOException {
    saveWeights("c.npy", weights);
    saveWeights("l.npy", map(weights, Math::log));
    save("q.npy", "<f8", N, qMean);
    MixtureReduction expected = expected(3);
    Map<String, DoubleUnaryOperator> kinds =
        Map.of("std", Math::sqrt, "var", v -> v, "logvar", Math::log, "precision", v -> 1 / v);
    kinds.forEach((kind, of) -> {
      for (String given : new String[] {" --weights c.npy", " --log-weights l.npy"}) {
        try {
          save("k.npy", "<f8", N, map(variances, of));
          succeed("reduce --to 3 --mean q.npy --indices i.npy --" + kind + " k.npy" + given + OUT);
          assertThat(values(read("o.npy", 3, D))).containsExactly(expected.means(), within(1e-14));
          assertThat(values(read("os.npy", 3, D)))
              .containsExactly(map(expected.covariances(), of), within(1e-11));
          assertThat(values(read("ow.npy", 3))).containsExactly(expected.weights(), within(1e-15));
          Npy.Array rows = Npy.readInts(folder.resolve("i.npy"), Arena.ofAuto());
          assertThat(rows.data().toArray(ValueLayout.JAVA_INT))
              .containsExactly(expected.assignments());
        } catch (IOException e) {
          throw new AssertionError(e);
        }
      }
    });
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
    NpyFiles.write(folder.resolve("cov.npy"), "<f8", new long[] {N, D, D}, covariance);
    NpyFiles.write(folder.resolve("tril.npy"), "<f8", new long[] {N, D, D}, tril);
    double[] equal = new double[N];
    Arrays.fill(equal, 1.0 / N);
    MixtureReduction expected =
        MixtureReduction.runnalls(FullGaussians.ofCovariance(qMean, covariance, D), equal, 4);
    for (String scale : new String[] {"cov", "scale-tril"}) {
      String file = scale.equals("cov") ? "cov.npy" : "tril.npy";
      succeed("reduce --to 4 --mean q.npy --" + scale + " " + file + OUT);
      assertThat(values(read("o.npy", 4, D))).containsExactly(expected.means(), within(1e-14));
      assertThat(values(read("os.npy", 4, D, D)))
          .containsExactly(expected.covariances(), within(1e-12));
    }
  }

  @Test
  void reduceToACost() throws IOException {
    saveWeights("c.npy", weights);
    double[] costs = expected(1).costs();
    String line = "reduce --weights c.npy" + Q + OUT;
    double most = (costs[1] + costs[2]) / 2;
    succeed(line + "--max-cost " + most);
    assertThat(read("ow.npy", N - 2).isDouble()).isFalse();
    succeed(line + "--to 6 --max-cost " + most);
    read("ow.npy", 6);
    succeed(line + "--max-cost inf".replace("inf", "1e300"));
    read("ow.npy", 1);
    succeed(line + "--to 100");
    assertThat(values(read("os.npy", N, D))).containsExactly(qStd);
  }

  @Test
  void reduceTellsItsCost() throws IOException {
    saveWeights("c.npy", weights);
    String line = "reduce --to 2 --weights c.npy" + Q + OUT;
    assertThat(run(line).out())
        .matches(
            "(?s)mixture of 7 Gaussians of dimension 6 reduced to 2, float32, in \\S+ s\\R"
                + "cost \\S+ nats in all, the last merger \\S+\\R"
                + "wrote \\S+o\\.npy and \\S+os\\.npy and \\S+ow\\.npy\\R");
    Map<?, ?> facts = (Map<?, ?>) JsonReader.read(run(line + " --json").out());
    assertThat(facts.get("command")).isEqualTo("reduce");
    assertThat(facts.get("rows")).isEqualTo(7.0);
    assertThat(facts.get("components")).isEqualTo(2.0);
    assertThat((Double) facts.get("total_cost")).isCloseTo(expected(2).totalCost(), within(1e-5));
    assertThat(facts.get("out_scale")).isEqualTo(folder.resolve("os.npy").toString());
    assertThat(run(line + " --quiet")).isEqualTo(new Result(0, "", ""));
  }

  static Stream<List<String>> badReduce() {
    String good = "reduce --to 2" + Q + OUT;
    return Stream.of(
        List.of("reduce" + Q + OUT, "give --to or --max-cost, or both"),
        List.of("reduce --to 0" + Q + OUT, "--to is 0: give at least 1"),
        List.of("reduce --max-cost -1" + Q + OUT, "--max-cost is -1.0: give 0 or more"),
        List.of("reduce --max-cost NaN" + Q + OUT, "--max-cost is NaN"),
        List.of("reduce --to 2 -o o.npy --out-scale os.npy" + Q, "--out-weights"),
        List.of("reduce --to 2 -o o.npy --out-weights os.npy" + Q, "--out-scale"),
        List.of(good + "--weights c.npy --log-weights c.npy", "not both"),
        List.of(good + "--weights c.npy", "c.npy: element 2: weight is -0.25: it must be finite"),
        List.of(good + "--weights z.npy", "z.npy: the sum of weights is 0.0; it must be"),
        List.of(good + "--weights s.npy", "s.npy: has shape (7, 6), but "),
        List.of(good + "--indices os.npy", "os.npy: is the same file as the other output"),
        List.of(good + "--indices q.npy", "q.npy: is also an input"),
        List.of(good + "--indices none/i.npy", "none/i.npy: its folder"),
        List.of(good + "--indices i.csv", "i.csv: what is written is .npy"),
        List.of("reduce --to 2 --mean q.npy --var v.npy" + OUT, "v.npy: components[3] has a var"),
        List.of("reduce --to 2 --mean q.npy --cov v.npy --clamp" + OUT, "--clamp is for scales"),
        List.of(good + "--p-mean p.npy", "--p-mean"));
  }

  @ParameterizedTest
  @MethodSource
  void badReduce(List<String> lineAndMessages) throws IOException {
    saveWeights("c.npy", 0.25, 0.25, -0.25, 0.25, 0.25, 0.25, 0);
    saveWeights("z.npy", new double[N]);
    double[] tiny = variances.clone();
    tiny[3 * D] = 1e-200;
    save("v.npy", "<f8", N, tiny);
    Files.writeString(folder.resolve("ow.npy"), "precious");
    assertUserError(
        lineAndMessages.get(0),
        lineAndMessages.subList(1, lineAndMessages.size()).toArray(String[]::new));
  }
}
