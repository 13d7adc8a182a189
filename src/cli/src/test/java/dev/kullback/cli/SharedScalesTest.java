package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files of scales or means that all Gaussians share, and what is not to be seen from shapes. */
class SharedScalesTest extends CommandFixture {
  private static final double[] MEANS = {0, 0, 1, 2, 3, -1};

  /** ½ dᵀΣ⁻¹d of Σ = [[2, ½], [½, 1]]. */
  private static final double[] TIED = {0, 2, 4, 2, 0, 8, 4, 8, 0};

  /** ½(2 v_q/v_p + |d|²/v_p − 2 + 2 ln(v_p/v_q)) of v = 1, 4, ¼; 30 digits by mpmath. */
  private static final double[] SPHERICAL = {
    0,
    1.26129436111989062,
    21.6137056388801094,
    4.11370563888010938,
    0,
    38.2274112777602188,
    5.63629436111989062,
    3.46008872223978124,
    0
  };

  /** ½ (d₀²/2 + d₁²) of variances (2, 1). */
  private static final double[] ROW = {0, 2.25, 2.75, 2.25, 0, 5.5, 2.75, 5.5, 0};

  /** |d|²/4 of variances 2. */
  private static final double[] NUMBER = {0, 1.25, 2.5, 1.25, 0, 3.25, 2.5, 3.25, 0};

  @BeforeEach
  void writeMeans() throws IOException {
    save("m.npy", "<f8", 3, MEANS);
    save("f.npy", "<f4", 3, MEANS);
  }

  /** Returns the summary. */
  private String assertMatrix(String line, double tolerance, double... expected)
      throws IOException {
    Result result = run(line + " -o o.npy");
    assertThat(result.err()).isEmpty();
    int n = (int) Math.sqrt(expected.length);
    assertThat(values(read("o.npy", n, n)))
        .as(line)
        .usingComparatorWithPrecision(tolerance)
        .containsExactly(expected);
    return result.out();
  }

  private double @Nullable [] scales(String values) {
    return switch (values) {
      case "tied" -> new double[] {2, .5, .5, 1};
      case "factor" -> new double[] {Math.sqrt(2), 0, .5 / Math.sqrt(2), Math.sqrt(1 - .125)};
      case "packed" -> new double[] {.5 * Math.log(2), .5 / Math.sqrt(2), .5 * Math.log(1 - .125)};
      case "inverse" -> new double[] {1 / 1.75, -.5 / 1.75, -.5 / 1.75, 2 / 1.75};
      case "upper" -> // of the inverse, U of UUᵀ
          new double[] {Math.sqrt(.5), -.5 / 1.75 / Math.sqrt(2 / 1.75), 0, Math.sqrt(2 / 1.75)};
      default -> Stream.of(values.split(" ")).mapToDouble(Double::parseDouble).toArray();
    };
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "cov                | 2 2   | tied     | 1 covariance for 3 Gaussians",
        "cov                | 1 2 2 | tied     | 1 covariance for 3 Gaussians",
        "scale-tril         | 2 2   | factor   | 1 factor of a covariance for 3 Gaussians",
        "scale-tril         | 1 2 2 | factor   | 1 factor of a covariance for 3 Gaussians",
        "packed-tril        | 3     | packed   | 1 factor of a covariance for 3 Gaussians",
        "packed-tril        | 1 3   | packed   | 1 factor of a covariance for 3 Gaussians",
        "precision          | 2 2   | inverse  | 1 precision matrix for 3 Gaussians",
        "precision          | 1 2 2 | inverse  | 1 precision matrix for 3 Gaussians",
        "precision-cholesky | 2 2   | upper    | 1 factor of a precision for 3 Gaussians",
        "precision-cholesky | 1 2 2 | upper    | 1 factor of a precision for 3 Gaussians",
        "var                | 3     | 1 4 0.25 | 1 variance for each of 3 Gaussians",
        "var                | 3 1   | 1 4 0.25 | 1 variance for each of 3 Gaussians",
        "std                | 3     | 1 2 0.5  | 1 standard deviation for each of 3 Gaussians",
        "precision          | 3 1   | 1 0.25 4 | 1 precision for each of 3 Gaussians",
        "var                | 2     | 2 1      | 1 row of variances for 3 Gaussians",
        "var                | 1 2   | 2 1      | 1 row of variances for 3 Gaussians",
        "precision          | 1 2   | 0.5 1    | 1 row of precisions for 3 Gaussians",
        "var                | -     | 2        | 1 variance for 3 Gaussians",
        "var                | 1     | 2        | 1 variance for 3 Gaussians",
        "precision          | 1 1   | 0.5      | 1 precision for 3 Gaussians",
      })
  void scalesForThreeMeans(String option, String axes, String values, String summary)
      throws IOException {
    double[] scales = scales(values);
    double[] expected =
        !Character.isDigit(values.charAt(0))
            ? TIED
            : scales.length == 3 ? SPHERICAL : scales.length == 2 ? ROW : NUMBER;
    for (String types : List.of("m.npy <f8", "m.npy <f4", "m.npy >f8", "f.npy <f8")) {
      String mean = types.substring(0, 5);
      save("x.npy", types.substring(6), axes, scales);
      double tolerance = types.equals("m.npy <f8") || types.equals("m.npy >f8") ? 1e-12 : 1e-5;
      String q = "pairwise --mean %s --%s x.npy".formatted(mean, option);
      String p = " --p-mean %s --p-%s x.npy".formatted(mean, option);
      assertThat(assertMatrix(q, tolerance, expected)).contains("q: " + summary + "\n");
      assertThat(assertMatrix(q + p, tolerance, expected))
          .contains("q: " + summary + "\n", "p: " + summary + "\n", "3 x 3, D = 2,");
    }
    String line =
        "pairwise --mean m.npy --%1$s x.npy --p-mean m.npy --p-%1$s x.npy -o o.npy --json";
    Map<?, ?> facts = (Map<?, ?>) JsonReader.read(run(line.formatted(option)).out().strip());
    assertThat(facts.get("q_shared")).isEqualTo(List.of(summary));
    assertThat(facts.get("p_shared")).isEqualTo(List.of(summary));
  }

  /** Every command takes shared scales, of q and of p, and has the results of scales that are written out. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "standard Q",
        "aligned Q --p-mean q.npy --p-SCALE Q-scale.npy",
        "pairwise Q P",
        "pairwise Q",
        "topk -k 2 Q P --indices i.npy",
        "topk -k 2 Q P --indices i.npy --shard 2/3",
        "topk -k 6 Q --p-mean p.npy q.npy --p-SCALE P-scale.npy Q-scale.npy --indices i.npy",
        "within --radius 9 Q P --indices i.npy",
        "logsumexp Q P",
        "mixture-kl Q P --weights c.npy --method upper-bound",
        "entropy Q --weights c.npy",
        "reduce --to 2 Q --weights c.npy --out-scale i.npy --out-weights w.npy"
      })
  void everyCommandTakesThem(String line) throws IOException {
    save("c.npy", "<f8", "7", .1, .2, .1, .2, .1, .2, .1);
    double[] of = floats(D * D, Math::exp);
    for (String shared :
        List.of("row of standard deviations", "standard deviation for each", "covariance")) {
      boolean isFull = shared.equals("covariance");
      boolean isRow = shared.startsWith("row");
      int size = isFull ? D * D : D;
      double[] given = isFull ? matrix() : Arrays.copyOf(of, isRow ? D : N);
      double[] all = new double[N * size];
      Arrays.setAll(all, k -> given[isFull || isRow ? k % size : k / size]);
      String axes = isFull ? " 6 6" : " 6";
      save("q-all.npy", "<f4", N + axes, all);
      save("p-all.npy", "<f4", M + axes, Arrays.copyOf(all, M * size));
      save("q-one.npy", "<f4", isFull ? "6 6" : isRow ? "1 6" : "7 1", given);
      save(
          "p-one.npy",
          "<f4",
          isFull ? "6 6" : isRow ? "1 6" : "5 1",
          isFull || isRow ? given : Arrays.copyOf(given, M));
      String own =
          line.replaceAll("\\bQ\\b(?!-)", "--mean q.npy --SCALE q-all.npy")
              .replaceAll("\\bP\\b(?!-)", "--p-mean p.npy --p-SCALE p-all.npy")
              .replaceAll("([QP])-scale", "$1-all")
              .replace("Q-", "q-")
              .replace("P-", "p-")
              .replace("SCALE", isFull ? "cov" : "std");
      succeed(own + " -o own.npy");
      byte[] indices = own.contains("i.npy") ? bytes("i.npy") : new byte[0];
      String one = own.replace("-all", "-one");
      assertThat(run(one + " -o one.npy").out()).contains("q: 1 " + shared);
      assertSame("one.npy", "own.npy");
      assertThat(own.contains("i.npy") ? bytes("i.npy") : new byte[0]).as(one).isEqualTo(indices);
    }
  }

  private static double[] matrix() {
    double[] matrix = new double[D * D];
    Arrays.setAll(matrix, k -> k / D == k % D ? 2 + k / D : .25);
    return matrix;
  }
}
