package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.MixtureKl;
import dev.kullback.MixtureReduction;
import dev.kullback.Mixtures;
import dev.kullback.MonteCarloEstimates;
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

/** The commands on mixtures. */
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

  // --- reduce

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

  @Test
  void reduceToACost() throws IOException {
    saveWeights("c.npy", weights);
    double[] costs = expected(1).costs();
    String line = "reduce --weights c.npy" + Q + OUT;
    double most = (costs[1] + costs[2]) / 2;
    succeed(line + "--max-cost " + most);
    read("ow.npy", N - 2);
    succeed(line + "--to 6 --max-cost " + most);
    read("ow.npy", 6);
    succeed(line + "--max-cost inf".replace("inf", "1e300"));
    read("ow.npy", 1);
    succeed(line + "--to 100");
    assertThat(values(read("os.npy", N, D))).containsExactly(qStd, within(1e-14));
  }

  @Test
  void reduceByOtherRules() throws IOException {
    saveWeights("c.npy", weights);
    Mixtures mixture = Mixtures.of(DiagonalGaussians.ofVariance(qMean, variances, D), weights);
    String line = "reduce --weights c.npy" + Q + OUT;
    for (String rule : new String[] {"salmond", "west", "williams"}) {
      MixtureReduction.Reducer reducer = MixtureReduction.reducer(3);
      reducer =
          switch (rule) {
            case "salmond" -> reducer.salmond();
            case "west" -> reducer.west();
            default -> reducer.williams();
          };
      succeed(line + "--to 3 --rule " + rule);
      assertThat(values(read("o.npy", 3, D))).containsExactly(means(reducer.reduce(mixture)));
    }
    succeed(line + "--to 3 --gate 4 --min-weight 0.1 --cap --indices i.npy");
    MixtureReduction expected =
        MixtureReduction.reducer(3).gate(4).minWeight(0.1).cap().reduce(mixture);
    int left = expected.mixtures().components().size();
    assertThat(values(read("ow.npy", left))).containsExactly(expected.mixtures().weights());
    assertThat(expected.assignments()).contains(-1);
    assertAssignments(expected);
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

  /** Weights whose sum float16's rounding keeps from 1 are divided by it, so that entropy takes what reduce writes. */
  @ParameterizedTest
  @ValueSource(strings = {"--weights", "--log-weights"})
  void reduceWeightsOfFloat16(String option) throws IOException {
    double[] thirds = new double[N];
    Arrays.fill(thirds, option.equals("--weights") ? 1.0 / N : -Math.log(N));
    save("c.npy", "<f2", "7", thirds);
    succeed("reduce --to 3" + Q + OUT + option + " c.npy");
    assertThat(Arrays.stream(values(read("ow.npy", 3))).sum()).isCloseTo(1, within(1e-15));
    assertThat(run("entropy --mean o.npy --std os.npy --weights ow.npy").status()).isZero();
  }

  // --- mixture-kl

  private double[][] expected(Mixtures f, Mixtures g) {
    try (KlEngine engine = KlEngine.builder().build()) {
      MixtureKl kl = MixtureKl.of(f, g);
      MonteCarloEstimates sampled = kl.monteCarlo(50, 3);
      return new double[][] {
        kl.variational(engine),
        kl.upperBound(engine),
        kl.productOfGaussians(),
        kl.matchedPairs(engine),
        kl.lowerBound(engine),
        IntStream.range(0, sampled.size()).mapToDouble(sampled::estimate).toArray(),
        IntStream.range(0, sampled.size()).mapToDouble(sampled::standardError).toArray()
      };
    }
  }

  @Test
  void mixtureKl() throws IOException {
    saveWeights("c.npy", weights);
    save("q.npy", "<f8", N, qMean);
    String line = "mixture-kl -o o.npy --weights c.npy --p-mean p.npy --p-std t.npy" + Q;
    double[] equal = {0.2, 0.2, 0.2, 0.2, 0.2};
    Mixtures f = Mixtures.of(DiagonalGaussians.ofStd(qMean, qStd, D), weights);
    Mixtures g = Mixtures.of(DiagonalGaussians.ofStd(pMean, pStd, D), equal);
    double[][] expected = expected(f, g);
    succeed(line);
    assertThat(values(read("o.npy", 1, 1))).containsExactly(expected[0], within(1e-11));
    String[] methods = {
      "variational", "upper-bound", "product", "matched", "lower-bound", "monte-carlo"
    };
    for (int m = 0; m < methods.length; m++) {
      String sampled = methods[m].equals("monte-carlo") ? " --samples 50 --seed 3" : "";
      succeed(line + "--method " + methods[m] + sampled);
      assertThat(values(read("o.npy", 1, 1))).containsExactly(expected[m], within(1e-11));
    }
    succeed(line + "--samples 50 --seed 3 --method monte-carlo --standard-errors e.npy");
    assertThat(values(read("e.npy", 1, 1))).containsExactly(expected[6], within(1e-11));
  }

  @Test
  void mixtureKlOfBatches() throws IOException {
    double[] w = {0.5, 0.25, 0.25, 1, 0.5, 0.25, 0.25};
    saveWeights("w.npy", w);
    save("f.npy", "<i8", "4", 0, 3, 4, 7);
    save("g.npy", "<i4", "3", 0, 2, 5);
    double[] v = {0.5, 0.5, 1 / 3.0, 1 / 3.0, 1 / 3.0};
    save("q.npy", "<f8", N, qMean);
    Mixtures f = Mixtures.of(DiagonalGaussians.ofStd(qMean, qStd, D), w, new int[] {0, 3, 4, 7});
    Mixtures g = Mixtures.of(DiagonalGaussians.ofStd(pMean, pStd, D), v, new int[] {0, 2, 5});
    String line = "mixture-kl --weights w.npy --offsets f.npy" + Q + "-o o.npy ";
    succeed(line + "--p-mean p.npy --p-std t.npy --p-offsets g.npy --method upper-bound");
    assertThat(values(read("o.npy", 3, 2))).containsExactly(expected(f, g)[1], within(1e-10));
    succeed(line);
    assertThat(values(read("o.npy", 3, 3))).containsExactly(expected(f, f)[0], within(1e-10));
    assertThat(run(line).out()).contains(": 3 x 3 mixtures, of 7 and 7 Gaussians in all, D = 6,");
  }

  /** Commands on one mixture do not take several for one unnoticed. */
  @ParameterizedTest
  @ValueSource(strings = {"--weights", "--log-weights"})
  void mixturesWhereOneIsWanted(String option) throws IOException {
    DoubleUnaryOperator as = option.equals("--weights") ? w -> w : Math::log;
    saveWeights("w.npy", map(new double[] {0.5, 0.25, 0.25, 1, 0.5, 0.5, 0}, as));
    assertUserError(
        "entropy " + option + " w.npy" + Q,
        "w.npy: has 3 runs of sum 1: are these 3 mixtures? give one at a time");
    String line = "reduce --to 2 " + option + " w.npy" + Q + OUT;
    assertThat(run(line).out())
        .contains(
            "\nthe weights have 3 runs of sum 1, which were reduced as one mixture; if they are 3 mixtures, give one at a time\n");
    saveWeights("w.npy", map(new double[] {0.5, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5}, as));
    assertThat(run(line).out()).contains("3 runs of sum 1");
    saveWeights("w.npy", map(new double[] {0.5, 0.25, 0.25, 0.5, 0.5, 0.5, 0.25}, as));
    assertThat(run(line).out()).doesNotContain("runs");
    assertThat(run("entropy " + option + " w.npy" + Q).err())
        .contains("the sum of weights is ")
        .doesNotContain("runs");
    saveWeights("w.npy", map(weights, as));
    assertThat(run(line).out()).contains("reduced to 2").doesNotContain("runs");
  }

  /** Weights of float16 are further from sum 1 than the library accepts, and are divided by it. */
  @ParameterizedTest
  @ValueSource(strings = {"<f2", ">f2"})
  void weightsOfFloat16(String descr) throws IOException {
    double[] w = {1 / 3.0, 1 / 3.0, 1 / 3.0, 1, 0.7, 0.1, 0.2};
    save("w.npy", descr, "7", w);
    save("f.npy", "<i4", "4", 0, 3, 4, 7);
    save("q.npy", "<f8", N, qMean);
    double[] halves = values(read("w.npy", N));
    double[] normal = halves.clone();
    int[] offsets = {0, 3, 4, 7};
    for (int m = 0; m < 3; m++) {
      double sum = Arrays.stream(halves, offsets[m], offsets[m + 1]).sum();
      assertThat(Math.abs(sum - 1) > 1e-5).isEqualTo(m != 1);
      for (int i = offsets[m]; i < offsets[m + 1]; i++) {
        normal[i] /= sum;
      }
    }
    Mixtures f = Mixtures.of(DiagonalGaussians.ofStd(qMean, qStd, D), normal, offsets);
    String line = "mixture-kl --weights w.npy --offsets f.npy" + Q + "-o o.npy ";
    succeed(line);
    assertThat(values(read("o.npy", 3, 3))).containsExactly(expected(f, f)[0], within(1e-10));
    succeed(line + "--p-mean q.npy --p-std s.npy --p-weights w.npy --p-offsets f.npy");
    assertThat(values(read("o.npy", 3, 3))).containsExactly(expected(f, f)[0], within(1e-10));

    saveWeights("w.npy", halves); // in a type that would have held a sum of 1
    assertUserError(line, "w.npy: the sum of weights of mixture 0 is 0.9997", "it must be 1");
    w[0] -= 0.003;
    save("w.npy", descr, "7", w);
    assertUserError(line, "w.npy: the sum of weights of mixture 0 is 0.996", "it must be 1");
  }
}
