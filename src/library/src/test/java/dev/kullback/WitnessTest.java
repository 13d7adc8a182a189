package dev.kullback;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Check.Precision;
import dev.kullback.testing.Engines;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The library against {@code witness.txt}, which {@code src/test/witness/witness.py} made of definitions, in 120 digits and without anything
 * of the library or its oracles.
 */
@Tag("device")
@Tag("vector")
class WitnessTest {
  /** Lines of a case, by their names. */
  private record Case(Map<String, String> lines) {
    String text(String name) {
      return lines.get(name);
    }

    boolean has(String name) {
      return lines.containsKey(name);
    }

    boolean isDouble() {
      return text("inputs").equals("double");
    }

    double[] values(String name) {
      return Stream.of(text(name).replace("inf", "Infinity").split(" "))
          .mapToDouble(Double::parseDouble)
          .toArray();
    }

    Gaussians batch(String name) {
      ScaleKind kind = ScaleKind.valueOf(text(name + ".kind"));
      int d = Integer.parseInt(text("dimension"));
      double[] mean = values(name + ".mean");
      double[] scale = values(name + ".scale");
      if (has(name + ".factor")) {
        double[] factor = values(name + ".factor");
        return isDouble()
            ? LowRankGaussians.of(kind, mean, factor, scale, d)
            : LowRankGaussians.of(
                kind, Batch.narrowed(mean), Batch.narrowed(factor), Batch.narrowed(scale), d);
      }
      return isDouble()
          ? Gaussians.of(kind, mean, scale, d)
          : Gaussians.of(kind, Batch.narrowed(mean), Batch.narrowed(scale), d);
    }

    DiagonalGaussians points() {
      double[] mean = values("q.mean");
      int d = Integer.parseInt(text("dimension"));
      return isDouble()
          ? DiagonalGaussians.ofPoints(mean, d)
          : DiagonalGaussians.ofPoints(Batch.narrowed(mean), d);
    }

    /** Returns the contract of a divergence: of batches of double by a power of the condition number. */
    double contract(String of) {
      double condition = Double.parseDouble(text("condition"));
      return isDouble()
          ? 1e-12 * Math.pow(condition, of.contains("wasserstein") ? 2 : 1)
          : Check.FLOAT_CONTRACT;
    }

    void check(String of, double[] found) {
      double[] expected = values(of);
      int columns = values("p.mean").length / Integer.parseInt(text("dimension"));
      Precision range = isDouble() ? Precision.DOUBLE : Precision.WIDENED;
      Check.matrix(
          this + ", " + of,
          columns,
          expected,
          found,
          new Precision(contract(of), range.smallest(), range.largest()));
    }

    /** Numbers whose errors are relative to others. */
    void check(String of, double[] found, double[] sizes) {
      double[] expected = values(of);
      assertThat(found).as("%s, %s", this, of).hasSameSizeAs(expected);
      for (int k = 0; k < expected.length; k++) {
        assertThat(found[k])
            .as("%s, %s %d", this, of, k)
            .isCloseTo(expected[k], within(contract(of) * sizes[k] + 1e-290));
      }
    }

    @Override
    public String toString() {
      return text("case") + ", " + text("inputs") + ", " + text("q.kind") + ", " + text("p.kind");
    }
  }

  private static final List<Case> CASES = read();

  private static List<Case> read() {
    try (InputStream in = WitnessTest.class.getResourceAsStream("/witness.txt")) {
      return Stream.of(new String(in.readAllBytes(), UTF_8).split("\n\n"))
          .map(text -> {
            Map<String, String> lines = new LinkedHashMap<>();
            text.lines().map(line -> line.split(": ")).forEach(l -> lines.put(l[0], l[1]));
            return new Case(lines);
          })
          .toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  static Stream<Arguments> cases() {
    return Engines.backends()
        .flatMap(backend ->
            CASES.stream()
                .filter(c -> backend != Backend.CUDA || !c.has("q.factor"))
                .map(c -> Arguments.of(backend, c)));
  }

  static Stream<Arguments> casesOfPoints() {
    return cases().filter(arguments -> ((Case) arguments.get()[1]).has("mahalanobis"));
  }

  static Stream<Arguments> casesOfGradients() {
    // a device has no gradients
    return cases()
        .filter(arguments -> arguments.get()[0] != Backend.CUDA)
        .filter(arguments -> ((Case) arguments.get()[1]).has("cotangent"));
  }

  static Stream<Arguments> casesOfMixtures() {
    return cases().filter(arguments -> ((Case) arguments.get()[1]).has("weights"));
  }

  private static KlEngine engine(Backend backend, Divergence divergence) {
    // a device has KL alone
    Backend having =
        backend == Backend.CUDA && !divergence.equals(Divergence.KL) ? Backend.AUTO : backend;
    return KlEngine.builder().backend(having).divergence(divergence).build();
  }

  @ParameterizedTest
  @MethodSource("cases")
  void divergences(Backend backend, Case c) {
    Gaussians q = c.batch("q");
    Gaussians p = c.batch("p");
    for (String name : c.lines.keySet()) {
      if (!isDivergence(name)) {
        continue;
      }
      try (KlEngine engine = engine(backend, Divergence.of(name))) {
        double[] expected = c.values(name);
        c.check(name, engine.pairwise(q, p, new double[expected.length]));
        double contract = Math.max(c.contract(name), Check.FLOAT_CONTRACT);
        Precision ofFloat = new Precision(contract, Float.MIN_NORMAL, Float.MAX_VALUE);
        float[] floats = engine.pairwise(q, p);
        Check.matrix(c + ", " + name, p.size(), expected, Batch.widened(floats), ofFloat);
      }
    }
    try (KlEngine engine = engine(backend, Divergence.KL)) {
      c.check("standard", engine.toStandardNormal(q, new double[q.size()]));
    }
  }

  private static boolean isDivergence(String name) {
    return Divergence.NAMED.stream().anyMatch(divergence -> divergence.name().equals(name))
        || name.startsWith("renyi")
        || name.startsWith("chernoff");
  }

  @ParameterizedTest
  @MethodSource("casesOfPoints")
  void points(Backend backend, Case c) {
    DiagonalGaussians points = c.points();
    Gaussians p = c.batch("p");
    double[] squares = c.values("mahalanobis");
    double[] logs = c.values("logDensity");
    try (KlEngine engine = engine(backend, Divergence.KL)) {
      c.check("mahalanobis", engine.mahalanobis(points, p, new double[logs.length]));
      int d = p.dimension();
      double[] sizes = new double[logs.length];
      for (int k = 0; k < logs.length; k++) {
        double logDet = logs[k] + 0.5 * squares[k] + 0.5 * d * Math.log(2 * Math.PI);
        sizes[k] = 0.5 * squares[k] + Math.abs(logDet) + d;
      }
      c.check("logDensity", engine.logDensity(points, p, new double[logs.length]), sizes);
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("casesOfGradients")
  void gradients(Backend backend, Case c) {
    double[][] found =
        Stream.of("q.mean", "q.scale", "p.mean", "p.scale")
            .map(of -> new double[c.values(of).length])
            .toArray(double[][]::new);
    try (KlEngine engine = engine(backend, Divergence.KL)) {
      engine
          .gradient()
          .q(found[0], found[1])
          .p(found[2], found[3])
          .pairwise(c.batch("q"), c.batch("p"), c.values("cotangent"));
    }
    c.check("gradient.q.mean", found[0], c.values("size.q.mean"));
    c.check("gradient.q.scale", found[1], c.values("size.q.scale"));
    c.check("gradient.p.mean", found[2], c.values("size.p.mean"));
    c.check("gradient.p.scale", found[3], c.values("size.p.scale"));
  }

  @ParameterizedTest
  @MethodSource("casesOfMixtures")
  void mixtures(Backend backend, Case c) {
    Mixtures q = Mixtures.of(c.batch("q"), c.values("weights"), new int[] {0, 2, 4});
    Mixtures p = Mixtures.of(c.batch("p"), c.values("weights"), new int[] {0, 2, 4});
    MixtureKl kl = MixtureKl.of(q, p);
    try (KlEngine engine = engine(backend, Divergence.KL)) {
      checkLogs(c, "componentEntropies", q.componentEntropies());
      checkLogs(c, "entropyUpperBound", q.entropyUpperBound(engine));
      checkLogs(c, "entropyLowerBound:0.3", q.entropyLowerBound(0.3));
      checkLogs(c, "variational", kl.variational(engine));
      checkLogs(c, "productOfGaussians", kl.productOfGaussians());
      checkLogs(c, "lowerBound", kl.lowerBound(engine));
      checkLogs(c, "matchedPairs", kl.matchedPairs(engine));
      checkLogs(c, "transport", q.transport(p, engine));
      checkLogs(c, "logLikelihood", engine.logLikelihood(c.points(), p));
      checkLogs(c, "responsibilities", engine.responsibilities(c.points(), p, new double[16]));
      double[] bounds = kl.upperBound(engine);
      double[] least = c.values("mixture.upperBound");
      for (int k = 0; k < least.length; k++) {
        assertThat(bounds[k])
            .as("%s, upper bound %d", c, k)
            .isBetween(least[k] - 1e-12, least[k] + 1e-9 * Math.max(1, least[k]));
      }
    }
    for (Divergence divergence : List.of(Divergence.KL, Divergence.REVERSE_KL)) {
      Gaussians found = q.barycenters(divergence);
      String name = "barycenter:" + divergence + ".";
      checkLogs(c, name + "mean", parts(found, false));
      checkLogs(c, name + "covariance", parts(found, true));
    }
    checkLogs(c, "runnalls", MixtureReduction.runnalls(q, 1).costs());
    MixtureReduction.Reducer williams = MixtureReduction.reducer(1).williams();
    checkLogs(c, "williams", williams.reduce(q).costs());
    Mixtures all = Mixtures.unnormalized(c.batch("q"), c.values("weights"));
    checkLogs(c, "williams:4", williams.reduce(all).costs());
  }

  /** Numbers whose errors are relative to terms of about 1. */
  private static void checkLogs(Case c, String of, double[] found) {
    double[] sizes = c.values("mixture." + of);
    Arrays.setAll(sizes, k -> Math.max(1, Math.abs(sizes[k])));
    c.check("mixture." + of, found, sizes);
  }

  private static double[] parts(Gaussians batch, boolean areCovariances) {
    return IntStream.range(0, batch.size())
        .mapToObj(i -> areCovariances ? batch.covariance(i) : batch.mean(i))
        .flatMapToDouble(Arrays::stream)
        .toArray();
  }
}
