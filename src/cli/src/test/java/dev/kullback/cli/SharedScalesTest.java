package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
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

  private void write(String descr, String axes, double... values) throws IOException {
    NpyFiles.write(folder.resolve("x.npy"), descr, shape(axes), values);
  }

  private static long[] shape(String axes) {
    return Stream.of(axes.split(" "))
        .filter(axis -> !axis.equals("-"))
        .mapToLong(Long::parseLong)
        .toArray();
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
      write(types.substring(6), axes, scales);
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

  @Test
  void oneMean() throws IOException {
    save("m.npy", "<f8", 1, 1, 2);
    save("x.npy", "<f8", 3, 1, 1, 4, 4, .25, .25);
    succeed("standard --mean m.npy --var x.npy -o a.npy");
    assertThat(run("standard --mean m.npy --var x.npy -o a.npy").out())
        .startsWith("q: 1 mean for 3 Gaussians\nKL(q_i||N(0,I)): 3, D = 2, float64,");
    save("x.npy", "<f8", 3, 1, 4, .25); // and one number for each
    succeed("standard --mean m.npy --var x.npy -o b.npy");
    write("<f8", "3 2 2", 1, 0, 0, 1, 4, 0, 0, 4, .25, 0, 0, .25);
    succeed("standard --mean m.npy --cov x.npy -o c.npy");
    for (String file : List.of("a.npy", "b.npy", "c.npy")) { // ½(2v + 5 − 2 − 2 ln v)
      assertThat(values(read(file, 3)))
          .usingComparatorWithPrecision(1e-14)
          .containsExactly(2.5, 5.5 - Math.log(4), 1.75 + Math.log(4));
    }
    write("<f8", "2 2", 1, 1, 4, 4); // of two, or a matrix of the one
    assertUserError(
        "standard --mean m.npy --var x.npy -o o.npy",
        "x.npy: has shape (2, 2), which with the means in ",
        "of shape (1, 2), may be one matrix (give --covariance of shape (1, 2, 2)), or scales of 2 Gaussians with one mean"
            + " (save np.broadcast_to(m, (2, 2)))\n");
    assertUserError(
        "pairwise --mean q.npy --std s.npy --p-mean m.npy --p-precision x.npy -o o.npy",
        "(give --p-precision of shape (1, 2, 2))");
    succeed("standard --mean m.npy --logvar x.npy -o o.npy");
    write("<f8", "3", 1, 4, .25); // which may be taken for a row that is too long
    assertUserError(
        "standard --mean m.npy --var x.npy -o o.npy",
        "x.npy: has shape (3,), but the means in ",
        "have (1, 2): scales are [N,D], [D], [N,1] or one number; one number for each of 3 Gaussians with one mean: save x[:, None]\n");
    save("x.npy", "<f8", 3, 1, 4, .25); // as it says
    succeed("standard --mean m.npy --var x.npy -o o.npy");
  }

  /** Where N = D, a square is [N,D], and of one axis it is not known what it is. */
  @Test
  void asManyMeansAsDimensions() throws IOException {
    save("m.npy", "<f8", 2, 0, 0, 1, 2);
    write("<f8", "2 2", 2, .5, .5, 1);
    String standard = "standard --mean m.npy --%s x.npy -o o.npy";
    for (String option : List.of("var", "precision")) {
      succeed(standard.formatted(option));
      assertThat(run(standard.formatted(option)).out())
          .startsWith("KL(q_i||N(0,I)): 2, D = 2, float64,");
    }
    succeed(standard.formatted("var"));
    assertThat(values(read("o.npy", 2))) // ½ Σ (v + μ² − 1 − ln v)
        .usingComparatorWithPrecision(1e-14)
        .containsExactly(.25, 2.25 + .5 * Math.log(2));
    assertMatrix("pairwise --mean m.npy --cov x.npy", 1e-14, 0, 2, 2, 0);
    assertThat(run(standard.formatted("cov")).out()).startsWith("q: 1 covariance for 2 Gaussians");
    write("<f8", "2", 2, 1);
    String either =
        " may be one row for all (save x[None, :]), or one number for each Gaussian (save x[:, None])\n";
    assertUserError(
        standard.formatted("var"), "x.npy: has shape (2,), which with the means", either);
    write("<f8", "1 2", 2, 1);
    succeed(standard.formatted("var"));
    double[] row = values(read("o.npy", 2));
    write("<f8", "2 1", 2, 1);
    succeed(standard.formatted("var"));
    double[] each = values(read("o.npy", 2));
    assertThat(row[1]).isCloseTo(2.5 + .5 - .5 * Math.log(2), within(1e-14));
    assertThat(each[1]).isEqualTo(2.5);
  }

  @Test
  void oneDimension() throws IOException {
    save("m.npy", "<f8", 3, 1, 2, 3);
    for (String axes : List.of("-", "1", "1 1")) {
      write("<f8", axes, 1);
      succeed("standard --mean m.npy --std x.npy -o o.npy");
      assertThat(values(read("o.npy", 3))).containsExactly(.5, 2, 4.5);
    }
    for (String axes : List.of("1 1", "1 1 1")) {
      write("<f8", axes, 1);
      for (String option : List.of("cov", "scale-tril", "precision", "precision-cholesky")) {
        succeed("standard --mean m.npy --%s x.npy -o o.npy".formatted(option));
        assertThat(values(read("o.npy", 3))).containsExactly(.5, 2, 4.5);
      }
    }
    for (String axes : List.of("3", "3 1", "3 1 1")) { // each its own
      write("<f8", axes, 1, 1, 1);
      succeed("standard --mean m.npy --var x.npy -o o.npy");
      assertThat(run("standard --mean m.npy --var x.npy -o o.npy").out()).startsWith("KL(q_i||");
    }
  }

  /** N Gaussians of one dimension, or one of N, are told apart by matrices and by other numbers of scales alone. */
  @Test
  void meansOfOneAxis() throws IOException {
    NpyFiles.write(folder.resolve("m.npy"), "<f8", new long[] {3}, 1, 2, 3);
    write("<f8", "3", 1, 1, 1);
    String refused =
        "m.npy: has shape (3,): a batch is [N,D]; reshape N Gaussians of one dimension to [N,1], or one of D dimensions to [1,D]\n";
    assertUserError("standard --mean m.npy --std x.npy -o o.npy", refused);
    for (String axes : List.of("3 1", "3 3", "1", "-", "2 2")) {
      write(
          "<f8", axes, Arrays.copyOf(new double[] {1, 1, 1, 1, 1, 1, 1, 1, 1}, (int) count(axes)));
      assertUserError("standard --mean m.npy --std x.npy -o o.npy", refused);
    }
    write("<f8", "1 3", 1, 1, 1);
    succeed("standard --mean m.npy --std x.npy -o o.npy");
    assertThat(values(read("o.npy", 1))).containsExactly(7);
    write("<f8", "2 3", 1, 1, 1, 1, 1, 1);
    succeed("standard --mean m.npy --std x.npy -o o.npy");
    assertThat(values(read("o.npy", 2))).containsExactly(7, 7);
    double[] unit = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    for (String axes : List.of("3 3", "1 3 3")) {
      write("<f8", axes, unit);
      succeed("standard --mean m.npy --cov x.npy -o o.npy");
      assertThat(values(read("o.npy", 1))).containsExactly(7);
    }
    for (String axes : List.of("3 1 1", "1 1", "1 1 1")) {
      write("<f8", axes, Arrays.copyOf(new double[] {1, 1, 1}, (int) count(axes)));
      succeed("standard --mean m.npy --cov x.npy -o o.npy");
      assertThat(values(read("o.npy", 3))).containsExactly(.5, 2, 4.5);
    }
  }

  private static long count(String axes) {
    return Arrays.stream(shape(axes)).reduce(1, (a, b) -> a * b);
  }

  /** Axes behind the first may differ, and are repeated as NumPy does. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "3 2 2 2 | 3 8     |",
        "3 8     | 3 2 2 2 |",
        "3 2 4   | 3 4 2   |",
        "3 2 2 2 | 8       | 1 row of standard deviations for 3 Gaussians",
        "3 2 2 2 | 1 8     | 1 row of standard deviations for 3 Gaussians",
        "3 2 2 2 | 2 2 2   | 1 row of standard deviations for 3 Gaussians",
        "3 2 2 2 | 3       | 1 standard deviation for each of 3 Gaussians",
        "3 2 2 2 | 3 1 1 1 | 1 standard deviation for each of 3 Gaussians",
        "3 2 2 2 | 3 2 1 1 | 6 standard deviations for 3 Gaussians",
        "3 2 2 2 | 2 1 1   | 2 standard deviations for 3 Gaussians",
        "3 2 2 2 | -       | 1 standard deviation for 3 Gaussians",
        "1 2 2 2 | 3 8     | 1 mean for 3 Gaussians",
        "1 8     | 3 2 2 2 | 1 mean for 3 Gaussians",
      })
  void furtherAxes(String mean, String std, @Nullable String summary) throws IOException {
    long[] axes = shape(mean);
    NpyFiles.write(folder.resolve("m.npy"), "<f4", axes, new double[(int) count(mean)]);
    double[] values = new double[(int) count(std)];
    Arrays.setAll(values, k -> 1 + k);
    write("<f4", std, values);
    Result result = run("standard --mean m.npy --std x.npy -o o.npy");
    assertThat(result.err()).isEmpty();
    assertThat(result.out())
        .startsWith((summary == null ? "" : "q: " + summary + "\n") + "KL(q_i||N(0,I)): 3, D = 8,");
    double[] kl = values(read("o.npy", 3));
    for (int i = 0; i < 3; i++) {
      double expected = 0;
      for (int h = 0; h < 8; h++) {
        double s =
            switch (std) {
              case "3 8", "3 2 2 2", "3 4 2" -> 1 + 8 * i + h;
              case "8", "1 8", "2 2 2" -> 1 + h;
              case "3", "3 1 1 1" -> 1 + i;
              case "3 2 1 1" -> 1 + 2 * i + h / 4;
              case "2 1 1" -> 1 + h / 4;
              default -> 1;
            };
        expected += .5 * (s * s - 1) - Math.log(s);
      }
      assertThat(kl[i]).isCloseTo(expected, within(1e-5 * expected));
    }
  }

  /** Every command takes shared scales, of q and of p, and has the results of scales that are written out. */
  @Test
  void everyCommandTakesThem() throws IOException {
    double[] row = floats(D, Math::exp);
    save("row.npy", "<f4", 1, row);
    double[] all = new double[N * D];
    Arrays.setAll(all, k -> row[k % D]);
    save("all.npy", "<f4", N, all);
    save("few.npy", "<f4", M, Arrays.copyOf(all, M * D));
    double[] numbers = floats(N, Math::exp);
    save("number.npy", "<f4", N, numbers);
    save("few-number.npy", "<f4", M, Arrays.copyOf(numbers, M));
    double[] spread = new double[N * D];
    Arrays.setAll(spread, k -> numbers[k / D]);
    save("spread.npy", "<f4", N, spread);
    save("few-spread.npy", "<f4", M, Arrays.copyOf(spread, M * D));
    double[] matrix = new double[D * D];
    Arrays.setAll(matrix, k -> k / D == k % D ? 2 + k / D : .25);
    NpyFiles.write(folder.resolve("tied.npy"), "<f4", new long[] {D, D}, matrix);
    double[] matrices = new double[N * D * D];
    Arrays.setAll(matrices, k -> matrix[k % (D * D)]);
    NpyFiles.write(folder.resolve("each.npy"), "<f4", new long[] {N, D, D}, matrices);
    NpyFiles.write(
        folder.resolve("some.npy"),
        "<f4",
        new long[] {M, D, D},
        Arrays.copyOf(matrices, M * D * D));
    NpyFiles.write(folder.resolve("c.npy"), "<f8", new long[] {N}, .1, .2, .1, .2, .1, .2, .1);
    for (String line :
        List.of(
            "standard Q",
            "aligned Q --p-mean q.npy --p-SCALE all.npy",
            "pairwise Q P",
            "pairwise Q",
            "topk -k 2 Q P --indices i.npy",
            "topk -k 2 Q P --indices i.npy --shard 2/3",
            "topk -k 6 Q --p-mean p.npy q.npy --p-SCALE few.npy all.npy --indices i.npy",
            "within --radius 9 Q P --indices i.npy",
            "logsumexp Q P",
            "mixture-kl Q P --weights c.npy --method upper-bound",
            "entropy Q --weights c.npy",
            "reduce --to 2 Q --weights c.npy --out-scale i.npy --out-weights w.npy")) {
      for (String shared : List.of("row", "number", "tied")) {
        boolean isFull = shared.equals("tied");
        boolean isNumber = shared.equals("number");
        String kind = isFull ? "cov" : "std";
        String own =
            line.replace("Q", "--mean q.npy --SCALE all.npy")
                .replace("P", "--p-mean p.npy --p-SCALE few.npy")
                .replace("--p-mean P.npy", "--p-mean p.npy")
                .replace("SCALE", kind);
        if (isFull) {
          own = own.replace("all.npy", "each.npy").replace("few.npy", "some.npy");
        } else if (isNumber) {
          own = own.replace("all.npy", "spread.npy").replace("few.npy", "few-spread.npy");
        }
        String one =
            own.replaceAll("(all|few)\\.npy", "row.npy")
                .replaceAll("(each|some)\\.npy", "tied.npy")
                .replace("spread.npy", "number.npy");
        succeed(own + " -o own.npy");
        boolean hasIndices = own.contains("i.npy");
        byte[] indices = hasIndices ? Files.readAllBytes(folder.resolve("i.npy")) : new byte[0];
        succeed(one + " -o one.npy");
        assertThat(folder.resolve("one.npy"))
            .as(one)
            .hasSameBinaryContentAs(folder.resolve("own.npy"));
        if (hasIndices) {
          assertThat(Files.readAllBytes(folder.resolve("i.npy"))).as(one).isEqualTo(indices);
        }
        assertThat(run(one + " -o one.npy").out())
            .contains(
                isFull
                    ? "q: 1 covariance for 7 "
                    : isNumber
                        ? "q: 1 standard deviation for each of 7 "
                        : "q: 1 row of standard deviations for 7 ");
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"row.npy", "number.npy", "each.npy"})
  void indexes(String scale) throws IOException {
    String index = folder.resolve("index").toString();
    String other = folder.resolve("other").toString();
    save("row.npy", "<f4", 1, 1, 2, 3, 4, 5, 6);
    NpyFiles.write(folder.resolve("number.npy"), "<f4", new long[0], 2);
    NpyFiles.write(folder.resolve("each.npy"), "<f4", new long[] {N}, 1, 2, 3, 4, 5, 6, 7);
    double[] all = new double[N * D];
    Arrays.setAll(
        all,
        k ->
            switch (scale) {
              case "row.npy" -> 1 + k % D;
              case "number.npy" -> 2;
              default -> 1 + k / D;
            });
    save("all.npy", "<f4", N, all);
    NpyFiles.write(folder.resolve("ids.npy"), "<i8", new long[] {N}, 7, 8, 9, 10, 11, 12, 13);
    for (String add : List.of("create %s --mean q.npy", "add %s --ids ids.npy --mean q.npy")) {
      Result result = run("index " + add.formatted(index) + " --std " + scale);
      assertThat(result.err()).isEmpty();
      assertThat(result.out())
          .contains("for 7 Gaussians\n".replace("for 7", scale.startsWith("e") ? "of 7" : "for 7"));
      assertThat(run("index " + add.formatted(other) + " --std all.npy").status()).isZero();
    }
    String query = "index query %s -k 4 --mean q.npy --std %s --indices %s.npy -o o%2$s";
    assertThat(run(query.formatted(index, scale, "i")).err()).isEmpty();
    assertThat(run(query.formatted(other, "all.npy", "j")).err()).isEmpty();
    assertThat(folder.resolve("o" + scale)).hasSameBinaryContentAs(folder.resolve("oall.npy"));
    assertThat(folder.resolve("i.npy")).hasSameBinaryContentAs(folder.resolve("j.npy"));
    double[] unit = new double[D * D];
    Arrays.setAll(unit, k -> k / D == k % D ? 1 : 0);
    NpyFiles.write(folder.resolve("x.npy"), "<f4", new long[] {1, D, D}, unit);
    for (String line :
        List.of(
            "index query " + index + " -k 1 --indices i.npy -o o.npy",
            "index add " + index + " --ids ids.npy")) {
      Result result = run(line + " --mean q.npy --precision x.npy");
      assertThat(result.err())
          .isEqualTo(
              "kullback: %s: has matrices, but the index in %s has diagonal Gaussians: give their --variance%n"
                  .formatted(folder.resolve("x.npy"), index));
      assertThat(result.status()).isEqualTo(2);
    }
    Result shared =
        run("index create %s --mean q.npy --precision x.npy".formatted(folder.resolve("new")));
    assertThat(shared.out()).contains("of full covariances", "1 precision matrix for 7 Gaussians");
  }

  /** Of no Gaussians, shared scales are none. */
  @Test
  void noRows() throws IOException {
    NpyFiles.write(folder.resolve("m.npy"), "<f4", new long[] {0, 2});
    for (String axes : List.of("2", "1 2", "0 2", "-", "0", "0 1")) {
      write("<f4", axes, Arrays.copyOf(new double[] {1, 1}, (int) count(axes)));
      assertUserError(
          "standard --mean m.npy --std x.npy -o o.npy",
          "m.npy: is an empty batch, of shape (0, 2)");
      String index = folder.resolve("index" + axes.replace(" ", "")).toString();
      assertThat(run("index create " + index + " --mean m.npy --std x.npy").out())
          .contains("created " + index + ": 0 Gaussians of dimension 2");
    }
    write("<f4", "-", 1); // nothing is made of a shape that a header alone states
    NpyFiles.write(folder.resolve("h.npy"), "<f8", new long[] {0, Integer.MAX_VALUE});
    assertUserError("standard --mean h.npy --std x.npy -o o.npy", "h.npy: is an empty batch");
    write("<f4", "2 2", 1, 0, 0, 1);
    assertUserError(
        "standard --mean m.npy --cov x.npy -o o.npy", "m.npy: is an empty batch, of shape (0, 2)");
    NpyFiles.write(folder.resolve("m.npy"), "<f4", new long[] {1, 2}, 1, 2);
    NpyFiles.write(folder.resolve("x.npy"), "<f4", new long[] {0, 2});
    assertUserError(
        "standard --mean m.npy --std x.npy -o o.npy", "x.npy: is an empty batch, of shape (0, 2)");
  }

  /** Precisions of [N,D,D], and factors of them: U = [[2,1],[0,½]], Λ = UUᵀ, μ = (1,0): 4.125, where UᵀU gives 3.625. */
  @ParameterizedTest
  @ValueSource(strings = {"<f8", "<f4"})
  void precisionMatrices(String descr) throws IOException {
    NpyFiles.write(folder.resolve("z.npy"), descr, new long[] {1, 2}, 0, 0);
    NpyFiles.write(folder.resolve("i.npy"), descr, new long[] {1, 2}, 1, 1);
    NpyFiles.write(folder.resolve("m.npy"), descr, new long[] {1, 2}, 1, 0);
    NpyFiles.write(folder.resolve("u.npy"), descr, new long[] {1, 2, 2}, 2, 1, 0, .5);
    NpyFiles.write(folder.resolve("v.npy"), descr, new long[] {1, 2, 2}, 2, -1, 0, -.5);
    NpyFiles.write(folder.resolve("w.npy"), descr, new long[] {1, 2, 2}, 5, .5, .5, .25);
    for (String p : List.of("precision w", "precision-cholesky u", "precision-cholesky v")) {
      String line = "%s --mean z.npy --std i.npy --p-mean m.npy --p-" + p + ".npy -o o.npy";
      succeed(line.formatted("aligned"));
      assertThat(values(read("o.npy", 1))).containsExactly(4.125);
      succeed(line.formatted("pairwise"));
      assertThat(values(read("o.npy", 1, 1))).containsExactly(4.125);
      // q and p exchanged: ½(tr Σ + |μ|² − 2 + ln det Λ), Σ = [[¼, −½], [−½, 5]]
      succeed("standard --mean m.npy --" + p + ".npy -o o.npy");
      assertThat(values(read("o.npy", 1))).containsExactly(2.125);
    }
  }

  /** L = [[−2,0],[1,−½]], μ = (1,1): 2.625. */
  @ParameterizedTest
  @ValueSource(strings = {"<f8", "<f4", ">f4"})
  void factorsWithANegativeDiagonal(String descr) throws IOException {
    NpyFiles.write(folder.resolve("m.npy"), descr, new long[] {1, 2}, 1, 1);
    NpyFiles.write(folder.resolve("z.npy"), descr, new long[] {1, 2}, 0, 0);
    NpyFiles.write(folder.resolve("i.npy"), descr, new long[] {1, 2}, 1, 1);
    write(descr, "1 2 2", -2, 0, 1, -.5);
    succeed("standard --mean m.npy --scale-tril x.npy -o o.npy");
    assertThat(values(read("o.npy", 1))).containsExactly(2.625);
    // ½(tr Σ⁻¹ + |L⁻¹μ|² − 2), Σ⁻¹ = [[1.25, 2], [2, 4]]
    succeed("aligned --mean z.npy --std i.npy --p-mean m.npy --p-scale-tril x.npy -o o.npy");
    assertThat(values(read("o.npy", 1))).containsExactly(6.25);
  }
}
