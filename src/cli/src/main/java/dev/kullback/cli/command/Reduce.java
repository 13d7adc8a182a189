package dev.kullback.cli.command;

import dev.kullback.Divergence;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.MixtureReduction;
import dev.kullback.Mixtures;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.batch.Weights;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.OutputFiles;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.DoubleUnaryOperator;
import java.util.function.IntFunction;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "reduce",
    description = {
      "Reduces the mixture of q's Gaussians to fewer, by merging the two that cost least.",
      "The cost is Runnalls' bound on the divergence, in nats, or another by --rule or --gate. Weight, mean and covariance of the mixture are preserved, of diagonal Gaussians the variances.",
    },
    customSynopsis = {
      "kullback reduce --mean Q.npy --cov P.npy [--weights C.npy] [--to K] [--max-cost B | --gate G]",
      "                     -o M.npy --out-scale S.npy --out-weights W.npy [--indices I.npy] [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Example:",
      "  kullback reduce --to 50 --mean Q.npy --cov P.npy --weights C.npy -o M.npy --out-scale S.npy --out-weights W.npy",
    })
final class Reduce implements Callable<Integer> {
  /** The greatest absolute mean that the library merges. */
  private static final double MOST_MEAN = 0x1p250;

  /** Which two merge, by {@code --rule}, and what their cost is measured in. */
  enum Rule {
    RUNNALLS("nats"),
    SALMOND("shares of the mixture's covariance"),
    WEST("nats"),
    WILLIAMS("shares of the mixture's squared integral");

    final String unit;

    Rule(String unit) {
      this.unit = unit;
    }
  }

  @Mixin BatchOptions.Q qOptions;
  @Mixin WeightOptions weightOptions;

  @Option(
      names = "--to",
      paramLabel = "K",
      description =
          "The number of Gaussians to keep; default: 1, where --max-cost or --gate is given.")
  @Nullable Integer to;

  @Option(
      names = "--max-cost",
      paramLabel = "B",
      description = "Stop before a merger that costs more; default: none.")
  @Nullable Double maxCost;

  @Option(
      names = "--rule",
      paramLabel = "R",
      description = {
        "Which two merge: runnalls, the default; salmond; west, the lightest and the nearest to it; williams, those that add least to the integral squared error.",
        "--max-cost is in the units of this rule. Not with --gate.",
      })
  @Nullable Rule rule;

  @Option(
      names = "--gate",
      paramLabel = "G",
      description =
          "Instead of a rule: merge those of which the lighter's mean is within this squared Mahalanobis distance of the heavier, the nearest first.")
  @Nullable Double gate;

  @Option(
      names = "--min-weight",
      paramLabel = "S",
      description =
          "Drop Gaussians of a smaller share of the weight at first, in favor of the others; default: 0.")
  double minWeight;

  @Option(
      names = "--cap",
      description =
          "Drop the lightest at last, in favor of the others, where more than K are left.")
  boolean isCapped;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "M.npy",
      required = true,
      description = "Where the means go, [K,D]. All numbers are float64, as they are computed.")
  Path output;

  @Option(
      names = "--out-scale",
      paramLabel = "S.npy",
      required = true,
      description =
          "Where the scales go, [K,D], of the kind that q has; for matrices covariances, [K,D,D].")
  Path outScale;

  @Option(
      names = "--out-weights",
      paramLabel = "W.npy",
      required = true,
      description = "Where the weights go, [K].")
  Path outWeights;

  @Option(
      names = "--indices",
      paramLabel = "I.npy",
      description =
          "Where the number of the row that each row of q was merged into goes, int32 [N]; -1 where it was dropped.")
  @Nullable Path indices;

  @Mixin OutputOptions outputOptions;
  @Mixin PolicyOptions policyOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    BatchOptions.Files files = qOptions.files();
    List<Path> inputs = new ArrayList<>(BatchOptions.inputs(files, List.of()));
    inputs.addAll(weightOptions.files());
    Input.limitStdin(0, inputs);
    ScalePolicy policy = policyOptions.policy(files, List.of(), Divergence.KL);
    checkOptions();
    Map<String, Path> outputs = new LinkedHashMap<>();
    outputs.put("output", output);
    outputs.put("out_scale", outScale);
    outputs.put("out_weights", outWeights);
    if (indices != null) {
      outputs.put("indices", indices);
    }
    outputs.values().forEach(name -> Outputs.check(name, "npy", inputs));
    Report report = new Report(spec);
    try (Arena arena = Arena.ofShared();
        OutputFiles out = outputOptions.open(outputs.values())) {
      Batch q = Batch.load(files, policy, arena);
      report.start();
      Weights weights = weightOptions.read(q);
      MixtureReduction reduced = reduce(q, weights);
      write(reduced, q, out);
      out.commit();
      describe(report, reduced, q, weights);
      q.describe(report, "q");
      report.wrote(outputs);
      report.end();
      return 0;
    }
  }

  private void checkOptions() {
    if (to == null && maxCost == null && gate == null) {
      throw new UserError("give --to, --max-cost or --gate");
    }
    if (gate != null && !(gate >= 0)) {
      throw new UserError("--gate is " + gate + ": give 0 or more");
    }
    if (gate != null && (rule != null || maxCost != null)) {
      throw new UserError(
          "--gate is a rule with its own limit: leave out "
              + (rule != null
                  ? "--rule" + (maxCost != null ? " and --max-cost" : "")
                  : "--max-cost"));
    }
    if (!(minWeight >= 0 && minWeight <= 1)) {
      throw new UserError("--min-weight is " + minWeight + ": give a share, from 0 to 1");
    }
    if (isCapped && to == null) {
      throw new UserError("--cap drops the lightest of more than K: give K by --to");
    }
    if (to != null && to < 1) {
      throw new UserError("--to is " + to + ": give at least 1");
    }
    if (maxCost != null && !(maxCost >= 0)) {
      throw new UserError("--max-cost is " + maxCost + ": give 0 or more");
    }
  }

  /** Reduces the mixture; what the library refuses is told of the file of means if one is out of range, or of scales. */
  private MixtureReduction reduce(Batch q, Weights given) {
    int size = to == null ? 1 : to;
    double most = maxCost == null ? Double.POSITIVE_INFINITY : maxCost;
    Mixtures mixture;
    try {
      mixture = Mixtures.unnormalized(q.gaussians(), given.ofReduction());
    } catch (IllegalArgumentException e) {
      List<Path> files = weightOptions.files();
      throw new UserError(
          files.isEmpty() ? q.files().scale() : files.getFirst(), String.valueOf(e.getMessage()));
    }
    try (Progress progress = Terminal.of(spec).progress(Math.max(0, q.size() - size))) {
      return reducer(size, most)
          .progress(left -> progress.advance(left < q.size() ? 1 : 0))
          .reduce(mixture);
    } catch (IllegalArgumentException e) {
      Path file = isFar(q) ? q.files().mean() : q.files().scale();
      throw new UserError(file, String.valueOf(e.getMessage()));
    }
  }

  private MixtureReduction.Reducer reducer(int size, double most) {
    MixtureReduction.Reducer plain = MixtureReduction.reducer(size).minWeight(minWeight);
    MixtureReduction.Reducer merging =
        gate != null
            ? plain.gate(gate)
            : switch (rule()) {
              case RUNNALLS -> plain.maxCost(most);
              case SALMOND -> plain.salmond().maxCost(most);
              case WEST -> plain.west().maxCost(most);
              case WILLIAMS -> plain.williams().maxCost(most);
            };
    return isCapped ? merging.cap() : merging;
  }

  private Rule rule() {
    return rule == null ? Rule.RUNNALLS : rule;
  }

  /** Whether a mean is beyond the range in which Gaussians can be merged. */
  private static boolean isFar(Batch q) {
    return LongStream.range(0, (long) q.size() * q.dimension())
        .anyMatch(i -> Math.abs(q.mean().value(i)) > MOST_MEAN);
  }

  private void write(MixtureReduction reduced, Batch q, OutputFiles out) {
    double[] weights = reduced.mixtures().weights();
    int k = weights.length;
    int d = q.dimension();
    ValueLayout element = ValueLayout.JAVA_DOUBLE; // rounded to float, a covariance may be none
    Gaussians components = reduced.mixtures().components();
    boolean isFull = components instanceof FullGaussians;
    put(out.get(0), Npy.header(element, k, d), rows(k, components::mean));
    put(
        out.get(1),
        isFull ? Npy.header(element, k, d, d) : Npy.header(element, k, d),
        isFull
            ? rows(k, components::covariance)
            : rows(k, components::scale).map(fromVariance(q.kind())));
    put(out.get(2), Npy.header(element, k), Arrays.stream(weights));
    if (out.size() > 3) {
      out.get(3).write(Npy.header(ValueLayout.JAVA_INT, q.size()));
      for (int row : reduced.assignments()) {
        out.get(3).putInt(row);
      }
    }
  }

  private static DoubleStream rows(int count, IntFunction<double[]> row) {
    return IntStream.range(0, count).mapToObj(row).flatMapToDouble(Arrays::stream);
  }

  private static void put(OutputFile file, byte[] header, DoubleStream values) {
    file.write(header);
    values.forEach(value -> file.put(value, true));
  }

  private static DoubleUnaryOperator fromVariance(ScaleKind kind) {
    return switch (kind) {
      case STD -> Math::sqrt;
      case LOG_VARIANCE -> Math::log;
      case PRECISION -> v -> 1 / v;
      default -> v -> v;
    };
  }

  private void describe(Report report, MixtureReduction reduced, Batch q, Weights weights) {
    int size = reduced.mixtures().components().size();
    double[] costs = reduced.costs();
    double last = costs.length == 0 ? 0 : costs[costs.length - 1];
    double seconds = report.seconds();
    String dtype = Npy.dtype(ValueLayout.JAVA_DOUBLE);
    report.line(
        "mixture of %d Gaussians of dimension %d reduced to %d, %s, in %.3g s",
        q.size(), q.dimension(), size, dtype, seconds);
    String name = gate != null ? "gate" : rule().name().toLowerCase(Locale.ROOT);
    String unit = gate != null ? "squared Mahalanobis distances" : rule().unit;
    long dropped = Arrays.stream(reduced.assignments()).filter(row -> row < 0).count();
    if (costs.length == 0) {
      report.line("nothing was merged");
    } else {
      report.line(
          "cost %.7g %s in all by %s, the last of %d mergers %.7g",
          reduced.totalCost(), unit, name, costs.length, last);
    }
    boolean isLimited = size > (to == null ? 1 : to);
    if (isLimited) {
      report.line(
          gate != null
              ? "no two of them are within the gate"
              : "the next merger would cost more than " + maxCost);
    }
    if (dropped > 0) {
      report.line(
          "%d of the %d Gaussians were dropped; the others have their weight", dropped, q.size());
    }
    if (reduced.raised() > 0) {
      report.line(
          "%d covariances of components far apart, which float64 rounds to singular ones: variances were raised by some 1e-15 of themselves",
          reduced.raised());
    }
    if (weights.isScaled()) {
      report.line(
          "the weights, whose sum is exp(%.9g), were scaled to the sum 1", weights.logSum());
    }
    int runs = weights.countRuns();
    if (runs > 1) {
      report.line(
          "the weights have %d runs of sum 1, which were reduced as one mixture; if they are %1$d mixtures, give one at a time",
          runs);
    }
    report.put("rows", q.size()).put("dimension", q.dimension()).put("dtype", dtype);
    report.put("to", to == null ? 1 : to).put("max_cost", maxCost).put("gate", gate);
    report.put("min_weight", minWeight).put("cap", isCapped);
    report.put("components", size).put("total_cost", reduced.totalCost());
    report.put("rule", name).put("cost_unit", unit).put("mergers", costs.length);
    report.put("dropped", dropped).put("limited", isLimited);
    report.put("raised", reduced.raised());
    report.put("last_cost", costs.length == 0 ? null : last).put("seconds", seconds);
    report.put("scaled_log_sum", weights.isScaled() ? weights.logSum() : null);
  }
}
