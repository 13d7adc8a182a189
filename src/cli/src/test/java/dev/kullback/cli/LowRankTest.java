package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.KlEngine;
import dev.kullback.LowRankGaussians;
import dev.kullback.MixtureReduction;
import dev.kullback.Mixtures;
import dev.kullback.ScaleKind;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Files of factors beside those of a diagonal. */
class LowRankTest extends CommandFixture {
  private static final int N = 5;
  private static final int D = 4;
  private static final int R = 2;

  private final Random random = new Random(1);
  private final double[] mean = random.doubles(N * D, -1, 1).toArray();
  private final double[] variance = random.doubles(N * D, 0.5, 2).toArray();
  private final double[] factor = random.doubles(N * D * R, -1, 1).toArray();

  @BeforeEach
  void writeFiles() throws IOException {
    save("m.npy", "<f8", N, mean);
    save("v.npy", "<f8", N, variance);
    NpyFiles.write(folder.resolve("w.npy"), "<f8", new long[] {N, D, R}, factor);
    NpyFiles.write(folder.resolve("flat.npy"), "<f8", new long[] {N, D * R}, factor);
    NpyFiles.write(folder.resolve("d.npy"), "<f8", new long[] {D}, Arrays.copyOf(variance, D));
  }

  private LowRankGaussians gaussians() {
    return LowRankGaussians.of(ScaleKind.VARIANCE, mean, factor, variance, D);
  }

  private static final String Q = " --mean m.npy --cov-diag v.npy --cov-factor w.npy";

  @Test
  void matrixIsTheLibrarys() throws IOException {
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] expected = engine.pairwise(gaussians(), gaussians(), new double[N * N]);
      succeed("pairwise" + Q + " -o o.npy");
      assertThat(values(read("o.npy", N, N))).containsExactly(expected);
      succeed("pairwise" + Q + " --p-mean m.npy --p-cov-diag v.npy --p-cov-factor w.npy -o o.npy");
      assertThat(values(read("o.npy", N, N))).containsExactly(expected);
      LowRankGaussians shared =
          LowRankGaussians.of(ScaleKind.VARIANCE, mean, factor, Arrays.copyOf(variance, D), D);
      succeed("pairwise --mean m.npy --var d.npy --cov-factor w.npy -o o.npy");
      assertThat(values(read("o.npy", N, N)))
          .containsExactly(engine.pairwise(shared, shared, new double[N * N]));
      succeed("standard" + Q + " -o s.npy");
      assertThat(values(read("s.npy", N)))
          .containsExactly(engine.toStandardNormal(gaussians(), new double[N]));
      succeed("topk -k 2" + Q + " -o t.npy --indices i.npy");
      succeed("logsumexp" + Q + " -o l.npy");
    }
  }

  /** A diagonal of one number for each Gaussian, as of probabilistic principal components, or of one for all, needs no option: shapes tell. */
  @Test
  void sphericalDiagonals() throws IOException {
    double[] numbers = Arrays.copyOf(variance, N);
    NpyFiles.write(folder.resolve("each.npy"), "<f8", new long[] {N}, numbers);
    NpyFiles.write(folder.resolve("all.npy"), "<f8", new long[] {1}, new double[] {numbers[0]});
    double[] each = new double[N * D];
    Arrays.setAll(each, k -> numbers[k / D]);
    double[] all = new double[N * D];
    Arrays.fill(all, numbers[0]);
    try (KlEngine engine = KlEngine.builder().build()) {
      for (double[] written : new double[][] {each, all}) {
        LowRankGaussians g = LowRankGaussians.of(ScaleKind.VARIANCE, mean, factor, written, D);
        String file = written == each ? "each.npy" : "all.npy";
        succeed("pairwise --mean m.npy --cov-factor w.npy --cov-diag " + file + " -o o.npy");
        assertThat(values(read("o.npy", N, N)))
            .containsExactly(engine.pairwise(g, g, new double[N * N]));
      }
    }
  }

  @Test
  void besideADiagonalBatch() throws IOException {
    succeed("pairwise" + Q + " --p-mean m.npy --p-var v.npy -o o.npy");
    assertThat(values(read("o.npy", N, N))).doesNotContain(0);
  }

  @Test
  void whatDoesNotTakeThemSaysWhatToType() throws IOException {
    String p = " --p-mean m.npy --p-cov-diag v.npy --p-cov-factor w.npy -o o.npy";
    String advice = ": give diag(v) + W W^T, [N,D,D], as --";
    for (String command : List.of("pairwise", "standard", "topk -k 2 --indices i.npy")) {
      assertUserError(
          command + Q + " --divergence hellinger -o o.npy",
          "w.npy: is given as --cov-factor, but hellinger takes no low-rank covariances"
              + advice
              + "covariance, or take kl, reverse-kl or jeffreys\n");
    }
    for (String command :
        List.of("density", "density --mixture", "responsibilities", "topk -k 2 --indices i.npy")) {
      assertUserError(
          command + " --points m.npy" + p,
          "w.npy: is given as --p-cov-factor, but a density of points takes no low-rank covariances"
              + advice
              + "p-covariance\n");
    }
    assertUserError(
        "gradient --loss standard" + Q + " -o o.npy",
        "but a gradient takes no low-rank covariances: give the lower Cholesky factor of diag(v) + W W^T, [N,D,D], as --scale-tril\n");
    assertUserError(
        "index create " + folder.resolve("index") + Q,
        "but an index takes no low-rank covariances" + advice + "covariance\n");
  }

  /** A device computes no divergences of them; integrals of products and samples are of densities, and need it for none. */
  @Test
  void devicesAreAskedForDivergencesAlone() throws IOException {
    String refused =
        "w.npy: is given as --cov-factor, but --backend cuda takes no low-rank covariances";
    for (String command :
        List.of(
            "entropy",
            "mixture-kl -o k.npy",
            "mixture-kl -o k.npy --method variational",
            "mixture-kl -o k.npy --method lower-bound",
            "mixture-kl -o k.npy --method upper-bound",
            "mixture-kl -o k.npy --method matched")) {
      assertUserError(command + Q + " --backend cuda", refused);
    }
    for (String method : List.of("product", "monte-carlo --samples 9")) {
      String command = "mixture-kl -o k.npy" + Q + " --backend cuda --method " + method;
      assertThat(run(command).err()).as(method).doesNotContain(refused);
    }
  }

  /** Where no low-rank covariances are taken, help does not offer them. */
  @Test
  void helpOffersThemWhereTheyAreTaken() {
    for (String command :
        List.of("density", "responsibilities", "gradient", "index create", "index query")) {
      assertThat(run(command + " --help").out()).as(command).doesNotContain("cov-factor");
    }
    assertThat(run("pairwise --help").out()).contains("--cov-factor", "--p-cov-factor");
    assertThat(run("topk --help").out()).contains("--cov-factor", "--p-cov-factor");
  }

  /** Reduced mixtures have full covariances. */
  @Test
  void mixtures() throws IOException {
    Mixtures mixture = Mixtures.of(gaussians());
    MixtureReduction reduced = MixtureReduction.runnalls(mixture, 2);
    succeed("reduce --to 2" + Q + " -o o.npy --out-scale s.npy --out-weights u.npy");
    assertThat(values(read("o.npy", 2, D))).startsWith(reduced.mixtures().components().mean(0));
    assertThat(values(read("s.npy", 2, D, D)))
        .startsWith(reduced.mixtures().components().covariance(0));
    succeed("entropy" + Q + " -o h.npy");
    assertThat(values(read("h.npy", 2))).startsWith(mixture.entropyLowerBound(0.5)[0]);
    succeed("mixture-kl" + Q + " -o k.npy");
  }
}
