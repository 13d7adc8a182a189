package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.MixtureKl;
import dev.kullback.Mixtures;
import dev.kullback.MonteCarloEstimates;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.batch.Weights;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.NpyHeader;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Stats;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntToDoubleFunction;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;

@Command(
    name = "mixture-kl",
    description = {
      "Writes an approximation of KL(q_i || p_j) of mixtures, which has no closed form, in nats, [N,M], and tells bounds on it.",
      "With --method, writes that method's numbers alone: a bound, an estimate, or an approximation that is neither.",
      "The components are the Gaussians of q and of p: those of one mixture each, or of as many as --offsets tells.",
    },
    customSynopsis = {
      "kullback mixture-kl --mean Q.npy --std S.npy [--weights C.npy] [--p-mean P.npy --p-std T.npy]",
      "                         [--p-weights V.npy] [--method NAME | --bounds B.npy] -o KL.npy [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback mixture-kl --mean Q.npy --cov C.npy --p-mean P.npy --p-cov D.npy -o kl.npy",
      "  kullback mixture-kl --mean Q.npy --std S.npy --weights C.npy --offsets O.npy --method monte-carlo"
          + " --standard-errors E.npy -o kl.npy",
    })
final class MixtureDivergence extends PairCommand {
  /** Offsets that a summary shows. */
  private static final int MOST_SHOWN = 10;

  /** The name of the numbers without {@code --method}. */
  private static final String WITHIN_BOUNDS = "variational within bounds";

  /** The methods, as the library has them. */
  enum Method {
    VARIATIONAL(Method.NEITHER),
    UPPER_BOUND("an upper bound: the divergence is not above it"),
    PRODUCT(Method.NEITHER),
    MATCHED(Method.NEITHER),
    LOWER_BOUND("a lower bound: the divergence is not below it"),
    MONTE_CARLO("an estimate");

    private static final String NEITHER =
        "an approximation, no bound and no estimate: it may be several times the divergence, or below 0";

    /** What the numbers are. */
    final String what;

    Method(String what) {
      this.what = what;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  @Option(
      names = "--method",
      order = FIRST,
      paramLabel = "NAME",
      description =
          "Bounds: lower-bound, upper-bound; an estimate: monte-carlo; approximations: variational, product, matched;"
              + " default: variational, moved to a bound where it is beyond one.")
  @Nullable String methodName;

  @Option(
      names = "--bounds",
      order = FIRST,
      paramLabel = "B.npy",
      description = "Where the lower and the upper bounds go, [2,N,M]; without --method.")
  @Nullable Path bounds;

  @Option(
      names = "--weights",
      order = FIRST,
      paramLabel = "C.npy",
      description =
          "Weights of q's Gaussians; in each mixture of sum 1 but for the rounding of their type, float16 included, and"
              + " divided by it; default: equal ones.")
  @Nullable Path weights;

  @Option(
      names = "--offsets",
      order = FIRST,
      paramLabel = "O.npy",
      description =
          "Where each mixture begins among q's Gaussians, and their number, integers, [N+1]; default: one mixture, or"
              + " several where the weights are runs of sum 1.")
  @Nullable Path offsets;

  @Option(
      names = "--p-weights",
      order = FIRST,
      paramLabel = "V.npy",
      description = "The same of p.")
  @Nullable Path pWeights;

  @Option(
      names = "--p-offsets",
      order = FIRST,
      paramLabel = "O.npy",
      description = "The same of p, [M+1].")
  @Nullable Path pOffsets;

  @Option(
      names = "--samples",
      order = FIRST,
      paramLabel = "S",
      description =
          "The number of samples of each mixture of q; with monte-carlo alone; default: 10000.")
  int samples = 10_000;

  @Option(
      names = "--seed",
      order = FIRST,
      paramLabel = "X",
      description = "The seed of the samples; with monte-carlo alone; default: 0.")
  long seed;

  @Option(
      names = "--standard-errors",
      order = FIRST,
      paramLabel = "E.npy",
      description = "Where the estimates' standard errors go, [N,M]; with monte-carlo alone.")
  @Nullable Path standardErrors;

  private Method method = Method.VARIATIONAL;

  MixtureDivergence() {
    super(new PolicyOptions(), new EngineOptions());
  }

  @Override
  Map.@Nullable Entry<String, Path> secondOutput() {
    if (methodName != null) {
      method = method(methodName);
    }
    if (bounds != null && methodName != null) {
      throw new UserError(
          "--bounds writes both bounds, --method the numbers of one method: leave out one of these options");
    }
    ParseResult given = spec.commandLine().getParseResult();
    for (String option : List.of("--samples", "--seed", "--standard-errors")) {
      if (given.hasMatchedOption(option) && method != Method.MONTE_CARLO) {
        throw new UserError(
            "%s is for --method monte-carlo, not %s: give that method, or leave out %1$s"
                .formatted(option, method));
      }
    }
    if (samples < 2) {
      throw new UserError("--samples is " + samples + ": give at least 2");
    }
    return standardErrors != null
        ? Map.entry("standard_errors", standardErrors)
        : bounds == null ? null : Map.entry("bounds", bounds);
  }

  /** Integrals of products, and samples, are of densities. */
  @Override
  boolean asksEngine() {
    return method != Method.PRODUCT && method != Method.MONTE_CARLO;
  }

  private static Method method(String name) {
    return Stream.of(Method.values())
        .filter(m -> m.toString().equalsIgnoreCase(name))
        .findFirst()
        .orElseThrow(() ->
            new UserError(
                "--method is %s: give %s"
                    .formatted(name, Arrays.toString(Method.values()).replaceAll("[\\[\\]]", ""))));
  }

  @Override
  List<Path> otherInputs() {
    return Stream.of(weights, offsets, pWeights, pOffsets).filter(Objects::nonNull).toList();
  }

  @Override
  void run(
      KlEngine engine,
      Inputs inputs,
      OutputFile output,
      @Nullable OutputFile second,
      Report report) {
    boolean same = inputs.p().isEmpty();
    if (same && (pWeights != null || pOffsets != null)) {
      throw new UserError("--p-weights and --p-offsets are of p: give --p-mean and its scale");
    }
    Batch q = inputs.loadQ();
    Batch p = inputs.loadP(q);
    Mixtures f = mixture(q, weights, offsets, report);
    Mixtures g = same ? f : mixture(p, pWeights, pOffsets, report);
    report.put("rows", f.size()).put("columns", g.size()).put("dimension", q.dimension());
    engineOptions.describe(report, engine);
    String name = methodName == null ? WITHIN_BOUNDS : method.toString();
    report.put("method", name);
    report.start();
    MixtureKl kl = MixtureKl.of(f, g);
    MonteCarloEstimates sampled =
        method == Method.MONTE_CARLO ? kl.monteCarlo(samples, seed, engine) : null;
    double[] values =
        switch (method) {
          case VARIATIONAL -> kl.variational(engine);
          case LOWER_BOUND -> kl.lowerBound(engine);
          case UPPER_BOUND -> kl.upperBound(engine);
          case PRODUCT -> kl.productOfGaussians(engine);
          case MATCHED -> kl.matchedPairs(engine);
          case MONTE_CARLO -> new double[f.size() * g.size()];
        };
    ValueLayout element = Batch.element(q, p);
    double[] lower = methodName == null ? kl.lowerBound(engine) : new double[0];
    double[] upper = methodName == null ? kl.upperBound(engine) : new double[0];
    double widest = 0;
    for (int k = 0; k < lower.length; k++) {
      values[k] = Math.max(lower[k], Math.min(upper[k], values[k]));
      widest = Math.max(widest, upper[k] - lower[k]);
    }
    Stats stats = new Stats();
    write(
        output,
        f,
        g,
        element,
        k -> {
          double value = sampled == null ? values[k] : sampled.estimate(k);
          stats.add(value);
          return value;
        });
    String what =
        "KL(q||p), %s: %d x %d mixtures, of %d and %d Gaussians in all"
            .formatted(name, f.size(), g.size(), q.size(), p.size());
    stats.describe(report, what, q.dimension(), element);
    if (methodName == null) {
      describe(report, lower, upper, widest);
      if (second != null) {
        second.write(Npy.header(element, 2, f.size(), g.size()));
        for (double[] bound : new double[][] {lower, upper}) {
          for (double value : bound) {
            second.put(value, element instanceof ValueLayout.OfDouble);
          }
        }
      }
    } else if (sampled == null) {
      report.line(method.what);
    }
    if (sampled != null) {
      double most = 0;
      for (int k = 0; k < sampled.size(); k++) {
        most = Math.max(most, sampled.standardError(k));
      }
      report.line("%d samples a row; standard errors up to %.3g", samples, most);
      report.put("samples", samples).put("seed", seed).put("max_standard_error", most);
      if (second != null) {
        write(second, f, g, element, sampled::standardError);
      }
    }
  }

  private static void describe(Report report, double[] lower, double[] upper, double widest) {
    double least = Arrays.stream(lower).min().orElseThrow();
    double most = Arrays.stream(upper).max().orElseThrow();
    report.line(
        lower.length == 1
            ? "lower bound %s, upper bound %s".formatted(Text.number(least), Text.number(most))
            : "bounds from %s to %s, at most %s apart"
                .formatted(Text.number(least), Text.number(most), Text.number(widest)));
    if (widest > 0) {
      report.line(
          "the bounds hold; the number between them is an approximation of unknown error: --method monte-carlo"
              + " estimates the divergence, with a standard error");
    }
    report.put("lower", least).put("upper", most).put("widest", widest);
  }

  private static void write(
      OutputFile file, Mixtures f, Mixtures g, ValueLayout element, IntToDoubleFunction value) {
    file.write(Npy.header(element, f.size(), g.size()));
    for (int k = 0; k < f.size() * g.size(); k++) {
      file.put(value.applyAsDouble(k), element instanceof ValueLayout.OfDouble);
    }
  }

  /** Makes the mixtures of a batch; what the library refuses is told of the file that it names. */
  private static Mixtures mixture(
      Batch batch, @Nullable Path weightFile, @Nullable Path offsetFile, Report report) {
    Weights given = weightFile == null ? null : Weights.read(weightFile, false, batch);
    int[] offsets =
        offsetFile != null
            ? offsets(offsetFile)
            : given != null ? given.runs() : new int[] {0, batch.size()};
    if (weightFile != null && offsetFile == null && offsets.length > 2) {
      String ends = Arrays.toString(Arrays.copyOf(offsets, Math.min(MOST_SHOWN, offsets.length)));
      report.line(
          "%s: %d runs of sum 1, each taken for a mixture, as by offsets %s%s",
          weightFile,
          offsets.length - 1,
          ends.replaceAll("[\\[\\]]", ""),
          offsets.length > MOST_SHOWN ? "..." : "");
    }
    if (offsetFile != null) { // with these weights, the offsets alone may be refused
      double[] ones = new double[batch.size()];
      Arrays.fill(ones, 1);
      make(offsetFile, () -> Mixtures.unnormalized(batch.gaussians(), ones, offsets));
    }
    double[] weights = given != null ? given.ofMixtures(offsets) : equal(batch, offsets);
    Path scale = batch.files().scale();
    return make(
        weightFile == null ? scale : weightFile,
        () -> Mixtures.of(batch.gaussians(), weights, offsets));
  }

  private static Mixtures make(Path file, Supplier<Mixtures> mixtures) {
    try {
      return mixtures.get();
    } catch (IllegalArgumentException e) {
      throw new UserError(file, String.valueOf(e.getMessage()));
    }
  }

  private static int[] offsets(Path file) {
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.read(file, f -> Npy.readIntegers(f, arena));
      if (!Npy.isColumn(file, array.shape())) {
        String shape = new NpyHeader("", false, array.shape()).shapeText();
        throw new UserError(file, "has shape " + shape + ": offsets have one axis, (N+1,)");
      }
      return Arrays.stream(array.data().toArray((ValueLayout.OfLong) array.element()))
          .mapToInt(
              offset -> Math.clamp(offset, Integer.MIN_VALUE, Integer.MAX_VALUE)) // to be refused
          .toArray();
    }
  }

  /** Returns weights that are equal in each mixture. */
  private static double[] equal(Batch batch, int[] offsets) {
    double[] weights = new double[batch.size()];
    for (int m = 0; m < offsets.length - 1; m++) {
      Arrays.fill(weights, offsets[m], offsets[m + 1], 1.0 / (offsets[m + 1] - offsets[m]));
    }
    return weights;
  }
}
