package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlGradient;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.util.Arrays;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code gradient}, against the library's. */
class GradientCommandTest extends CommandFixture {
  private static final String Q = " --mean q.npy --std s.npy ";
  private static final String P = " --p-mean p.npy --p-std t.npy ";

  private final float[][] ofQ = new float[2][N * D];
  private final float[][] ofP = new float[2][M * D];
  private final double[] g = floats(N, v -> v);
  private final DiagonalGaussians q = DiagonalGaussians.ofStd(narrow(qMean), narrow(qStd), D);
  private final DiagonalGaussians p = DiagonalGaussians.ofStd(narrow(pMean), narrow(pStd), D);

  private static float[] narrow(double[] values) {
    float[] narrow = new float[values.length];
    for (int k = 0; k < narrow.length; k++) {
      narrow[k] = (float) values[k];
    }
    return narrow;
  }

  private static double[] joined(float[][] parts) {
    return Arrays.stream(parts)
        .flatMapToDouble(part -> IntStream.range(0, part.length).mapToDouble(k -> part[k]))
        .toArray();
  }

  @ParameterizedTest
  @ValueSource(strings = {"pairwise", "rowsum", "logsumexp"})
  void losses(String loss) throws IOException {
    boolean isMatrix = loss.equals("pairwise");
    double[] cotangents = isMatrix ? floats(N * M, v -> v) : g;
    long[] shape = isMatrix ? new long[] {N, M} : new long[] {N};
    NpyFiles.write(folder.resolve("g.npy"), "<f8", shape, cotangents);
    double[] w = DoubleStream.iterate(-1, x -> x - 1).limit(M).toArray();
    NpyFiles.write(folder.resolve("w.npy"), "<f8", new long[] {M}, w);
    String weights = loss.equals("logsumexp") ? " --log-weights w.npy" : "";
    succeed(
        "gradient --loss "
            + loss
            + Q
            + P
            + "--cotangent g.npy -o o.npy --p-output x.npy"
            + weights);
    try (KlEngine engine = KlEngine.builder().build()) {
      KlGradient gradient = engine.gradient().q(ofQ[0], ofQ[1]).p(ofP[0], ofP[1]);
      switch (loss) {
        case "pairwise" -> gradient.pairwise(q, p, cotangents);
        case "rowsum" -> gradient.rowSum(q, p, cotangents);
        default -> gradient.weightedLogSumExp(q, p, w, cotangents);
      }
    }
    assertThat(values(read("o.npy", 2, N, D))).containsExactly(joined(ofQ));
    assertThat(values(read("x.npy", 2, M, D))).containsExactly(joined(ofP));
  }

  @Test
  void covariancesAreToBeFactored() throws IOException {
    NpyFiles.write(folder.resolve("c.npy"), "<f8", new long[] {1, 2, 2}, 1, 0, 0, 1);
    NpyFiles.write(folder.resolve("m.npy"), "<f8", new long[] {1, 2}, 0, 0);
    assertUserError(
        "gradient --loss standard --mean m.npy --cov c.npy -o o.npy",
        "c.npy: is given as --covariance, but a gradient is by the lower Cholesky factor L of S = L L^T: give L, [N,D,D], as --scale-tril\n");
  }

  @Test
  void standard() throws IOException {
    succeed("gradient --loss standard" + Q + "-o o.npy");
    double[] ones = new double[N];
    Arrays.fill(ones, 1);
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.gradient().q(ofQ[0], ofQ[1]).toStandardNormal(q, ones);
    }
    assertThat(values(read("o.npy", 2, N, D))).containsExactly(joined(ofQ));
  }

  /** A row has what is by a mean, and then by the factor as it was given. */
  @Test
  void factors() throws IOException {
    double[] mean = {1, 2, 3, 4};
    double[] packed = {0.1, 0.2, 0.3, -0.1, -0.2, -0.3};
    NpyFiles.write(folder.resolve("m.npy"), "<f8", new long[] {2, 2}, mean);
    NpyFiles.write(folder.resolve("l.npy"), "<f8", new long[] {2, 3}, packed);
    succeed("gradient --loss rowsum --mean m.npy --packed-tril l.npy -o o.npy");
    double[][] expected = {new double[4], new double[6]};
    FullGaussians same = FullGaussians.ofPackedScaleTril(mean, packed, 2);
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.gradient().q(expected[0], expected[1]).rowSum(same, same, new double[] {1, 1});
    }
    double[] written = values(read("o.npy", 2, 5));
    for (int i = 0; i < 2; i++) {
      assertThat(Arrays.copyOfRange(written, 5 * i, 5 * i + 2))
          .containsExactly(Arrays.copyOfRange(expected[0], 2 * i, 2 * i + 2));
      assertThat(Arrays.copyOfRange(written, 5 * i + 2, 5 * i + 5))
          .containsExactly(Arrays.copyOfRange(expected[1], 3 * i, 3 * i + 3));
    }
  }
}
