package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands on points: density, responsibilities, and topk and within of points. */
@Tag("module")
class PointsTest extends CommandFixture {
  private static final String X = " --points x.npy ";
  private static final String P = " --p-mean p.npy --p-std t.npy ";

  private final double[] weights = {0.5, 0.125, 0.125, 0.25, 0};

  @BeforeEach
  void writePoints() throws IOException {
    save("x.npy", "<f4", N, qMean);
    NpyFiles.write(folder.resolve("w.npy"), "<f8", new long[] {M}, weights);
  }

  private double square(int i, int j) {
    return IntStream.range(0, D)
        .mapToDouble(h -> (qMean[i * D + h] - pMean[j * D + h]) / pStd[j * D + h])
        .map(y -> y * y)
        .sum();
  }

  private double logDensity(int i, int j) {
    double logs =
        IntStream.range(0, D)
            .mapToDouble(h -> Math.log(pStd[j * D + h]) + 0.5 * Math.log(2 * Math.PI))
            .sum();
    return -0.5 * square(i, j) - logs;
  }

  private double likelihood(int i) {
    double most = IntStream.range(0, M).mapToDouble(j -> logDensity(i, j)).max().orElseThrow();
    return most
        + Math.log(
            IntStream.range(0, M)
                .mapToDouble(j -> weights[j] * Math.exp(logDensity(i, j) - most))
                .sum());
  }

  @Test
  void density() throws IOException {
    succeed("density" + X + P + "-o l.npy");
    succeed("density --mahalanobis" + X + P + "-o r.npy");
    double[] logs = values(read("l.npy", N, M));
    double[] squares = values(read("r.npy", N, M));
    for (int at = 0; at < N * M; at++) {
      double square = square(at / M, at % M);
      double log = logDensity(at / M, at % M);
      assertThat(squares[at]).isCloseTo(square, within(1e-5 * square));
      assertThat(logs[at]).isCloseTo(log, within(1e-5 * (square + D + Math.abs(log))));
    }
  }

  @Test
  void mixtures() throws IOException {
    succeed("density --mixture --weights w.npy" + X + P + "-o l.npy");
    succeed("responsibilities --weights w.npy" + X + P + "-o r.npy");
    double[] likelihoods = values(read("l.npy", N));
    double[] shares = values(read("r.npy", N, M));
    for (int i = 0; i < N; i++) {
      double expected = likelihood(i);
      assertThat(likelihoods[i]).isCloseTo(expected, within(2e-5 * (Math.abs(expected) + 3 * D)));
      double sum = 0;
      for (int j = 0; j < M; j++) {
        double share = weights[j] * Math.exp(logDensity(i, j) - expected);
        assertThat(shares[i * M + j]).isCloseTo(share, within(1e-3));
        sum += shares[i * M + j];
      }
      assertThat(sum).isCloseTo(1, within(4 * (double) Math.ulp(1f)));
    }
    succeed("density --mixture" + X + P + "-o l.npy"); // equal weights
    assertThat(values(read("l.npy", N))).isNotEqualTo(likelihoods);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void topk(boolean isByDensity) throws IOException {
    String by = isByDensity ? " --log-density" : "";
    succeed("topk -k 3" + X + by + P + "--indices i.npy -o v.npy");
    double[] found = values(read("v.npy", N, 3));
    Npy.Array columns = Npy.readInts(folder.resolve("i.npy"), Arena.ofAuto());
    for (int at = 0; at < found.length; at++) {
      int i = at / 3;
      int[] order =
          IntStream.range(0, M)
              .boxed()
              .sorted((a, b) -> Double.compare(value(i, a, isByDensity), value(i, b, isByDensity)))
              .mapToInt(j -> j)
              .toArray();
      int j = columns.data().getAtIndex(ValueLayout.JAVA_INT, at);
      assertThat(j).isEqualTo(order[at % 3]);
      double expected = value(i, j, isByDensity);
      assertThat(found[at]).isCloseTo(expected, within(1e-5 * (Math.abs(expected) + 3 * D)));
    }
  }

  private double value(int i, int j, boolean isByDensity) {
    return isByDensity ? -logDensity(i, j) : square(i, j);
  }

  /** Blocks of p's files, which exact values join. */
  @Test
  void topkOfSeveralFiles() throws IOException {
    succeed("topk -k 3 --exact" + X + P + "--indices i.npy -o v.npy");
    succeed("topk -k 3" + X + "--p-mean p.npy p.npy --p-std t.npy t.npy --indices j.npy -o u.npy");
    double[] once = values(read("v.npy", N, 3));
    double[] twice = values(read("u.npy", N, 3));
    for (int i = 0; i < N; i++) {
      assertThat(twice[3 * i]).isEqualTo(once[3 * i]);
      assertThat(twice[3 * i + 1]).isEqualTo(once[3 * i]);
      assertThat(twice[3 * i + 2]).isEqualTo(once[3 * i + 1]);
    }
  }

  @Test
  void gate() throws IOException {
    double radius = 100;
    long expected =
        IntStream.range(0, N * M).filter(at -> square(at / M, at % M) <= radius).count();
    Map<?, ?> facts =
        (Map<?, ?>)
            JsonReader.read(
                run("within --radius 100" + X + P + "--indices i.npy -o v.npy --json").out());
    assertThat(facts.get("count")).isEqualTo((double) expected);
    assertThat(facts.get("divergence")).isEqualTo("mahalanobis");
    assertThat(Arrays.stream(values(read("v.npy", expected))).allMatch(x -> x <= radius)).isTrue();
  }

  @Test
  void withinByDensity() throws IOException {
    for (double radius : new double[] {20, -1000, 12.5}) {
      long expected =
          IntStream.range(0, N * M).filter(at -> -logDensity(at / M, at % M) <= radius).count();
      succeed("within --log-density --radius " + radius + X + P + "--indices i.npy -o v.npy");
      assertThat(values(read("v.npy", expected))).hasSize((int) expected);
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "density X P                                       | ln p_j(x_i): 7 x 5, D = 6, float32",
        "density X P --mahalanobis                         | mahalanobis(x_i, p_j)^2: 7 x 5, D = 6,",
        "density X P --mixture                             | ln p(x): 7 of 5 components, D = 6,",
        "responsibilities X P                              | w_j p_j(x_i) / p(x_i): 7 x 5, D = 6,",
        "topk -k 2 X P --indices i.npy                     | smallest mahalanobis(x_i, p_j)^2: 7 x 2 of 5,",
        "topk -k 2 X P --indices i.npy --log-density       | smallest -ln p_j(x_i): 7 x 2 of 5,",
        "within --radius inf X P --indices i.npy           | mahalanobis(x_i, p_j)^2 <= Infinity: 35 of 7 x 5,",
      })
  void summaries(String line, String summary) {
    assertThat(run(line.replace(" X", X).replace(" P", P) + " -o o.npy").out()).startsWith(summary);
  }
}
