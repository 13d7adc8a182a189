package dev.kullback.cli.command;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlGradient;
import dev.kullback.ScaleKind;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.batch.Weights;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Stats;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

@Command(
    name = "gradient",
    description = {
      "Writes the gradient of a loss by q's parameters as they were given, [2,N,D]: by means, and by scales.",
      "Of K numbers of a factor, [N,D+K]: a row has the derivatives by a Gaussian's mean, then those by its factor.",
      "The loss is the sum of what another command computes, or of that times G.",
    },
    customSynopsis = {
      "kullback gradient --loss standard --mean Q.npy --std S.npy -o QG.npy [...]",
      "kullback gradient --loss aligned|pairwise|rowsum|logsumexp --mean Q.npy --std S.npy",
      "                         [--p-mean P.npy --p-std T.npy] [--cotangent G.npy] -o QG.npy",
      "                         [--p-output PG.npy] [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Example:",
      "  kullback gradient --loss logsumexp --mean Q.npy --log-variance S.npy",
      "                    --p-mean P.npy --p-log-variance T.npy -o QG.npy --p-output PG.npy",
    })
final class Gradient extends PairCommand {
  /** What is summed up. */
  enum Loss {
    STANDARD,
    ALIGNED,
    PAIRWISE,
    ROWSUM,
    LOGSUMEXP;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  @Option(
      names = "--loss",
      order = FIRST,
      paramLabel = "NAME",
      required = true,
      description = "What is summed up: ${COMPLETION-CANDIDATES}.")
  Loss loss;

  @Option(
      names = "--cotangent",
      order = FIRST,
      paramLabel = "G.npy",
      description =
          "What each number is multiplied by before it is added, [N,M] of pairwise, else [N]; default: 1.")
  @Nullable Path cotangent;

  @Option(
      names = "--log-weights",
      order = FIRST,
      paramLabel = "W.npy",
      description = "Of logsumexp: w, [M], the logarithms of p's weights; default: 0.")
  @Nullable Path logWeights;

  @Option(
      names = "--p-output",
      paramLabel = "PG.npy",
      description =
          "The gradient by p's parameters, likewise of p. If q is p, OUT has the sum of both.")
  @Nullable Path pOutput;

  Gradient() {
    super(new PolicyOptions(), new EngineOptions.WithDivergence());
  }

  @Override
  Map.@Nullable Entry<String, Path> secondOutput() {
    return pOutput == null ? null : Map.entry("p_output", pOutput);
  }

  @Override
  List<Path> otherInputs() {
    if (logWeights != null && loss != Loss.LOGSUMEXP) {
      throw new UserError("--log-weights are of --loss logsumexp");
    }
    return Stream.of(cotangent, logWeights).filter(Objects::nonNull).toList();
  }

  @Override
  List<BatchOptions.Files> pFiles() {
    List<BatchOptions.Files> files = super.pFiles();
    if (loss == Loss.STANDARD && !files.isEmpty()) {
      throw new UserError("--loss standard has no p: leave out --p-mean and its scale");
    }
    if (pOutput != null && files.isEmpty()) {
      throw new UserError("--p-output needs a p: give --p-mean and a scale of p");
    }
    check(qOptions.files());
    files.forEach(Gradient::check);
    return files;
  }

  private static void check(BatchOptions.Files files) {
    files.refuseLowRank("a gradient", ScaleKind.SCALE_TRIL, "");
    files.refuseCovariances("a gradient");
  }

  @Override
  void run(
      KlEngine engine,
      Inputs inputs,
      OutputFile output,
      @Nullable OutputFile second,
      Report report) {
    Batch q = inputs.loadQ();
    Batch p = inputs.loadP(q);
    describe(report, engine, q, p.size());
    report.put("loss", loss);
    double[] g = cotangents(q, p);
    double[] weights =
        logWeights == null ? new double[p.size()] : Weights.read(logWeights, true, p).given();
    report.start();
    Gaussians rows = q.gaussians();
    Gaussians columns = p == q ? rows : p.gaussians();
    double[][] ofQ = arrays(q, q.size());
    double[][] ofP = arrays(p, second == null ? 0 : p.size());
    KlGradient gradient = engine.gradient().q(ofQ[0], ofQ[1]);
    if (second != null) {
      gradient.p(ofP[0], ofP[1]);
    }
    switch (loss) {
      case STANDARD -> gradient.toStandardNormal(rows, g);
      case ALIGNED -> gradient.aligned(rows, columns, g);
      case PAIRWISE -> gradient.pairwise(rows, columns, g);
      case ROWSUM -> gradient.rowSum(rows, columns, g);
      case LOGSUMEXP -> gradient.weightedLogSumExp(rows, columns, weights, g);
    }
    ValueLayout element = Batch.element(q, p);
    Stats stats = write(output, ofQ, q, element);
    if (second != null) {
      write(second, ofP, p, element);
    }
    String size = "gradient of %s by q: %s%d".formatted(loss, q.isFull() ? "" : "2 x ", q.size());
    stats.describe(report, size, q.dimension() + (q.isFull() ? q.scaleLength() : 0), element);
  }

  /** Makes arrays for the derivatives by means and by scales. */
  private static double[][] arrays(Batch batch, int rows) {
    long length = (long) rows * batch.scaleLength();
    if (length > Integer.MAX_VALUE - 8) {
      throw new UserError(
          "a gradient by %d x %d numbers does not fit an array: split the batch by rows"
              .formatted(rows, batch.scaleLength()));
    }
    return new double[][] {new double[rows * batch.dimension()], new double[(int) length]};
  }

  private static Stats write(
      OutputFile file, double[][] gradient, Batch batch, ValueLayout element) {
    int n = batch.size();
    int d = batch.dimension();
    Stats stats = new Stats();
    if (!batch.isFull()) {
      file.write(Npy.header(element, 2, n, d));
      write(file, gradient[0], 0, n * d, element, stats);
      write(file, gradient[1], 0, n * d, element, stats);
      return stats;
    }
    int each = batch.scaleLength();
    file.write(Npy.header(element, n, d + each));
    for (int i = 0; i < n; i++) {
      write(file, gradient[0], i * d, d, element, stats);
      write(file, gradient[1], i * each, each, element, stats);
    }
    return stats;
  }

  private static void write(
      OutputFile file, double[] from, int at, int n, ValueLayout element, Stats stats) {
    for (int k = at; k < at + n; k++) {
      stats.add(file.put(from[k], element.byteSize() == Double.BYTES));
    }
  }

  /** Reads the cotangents, or makes ones. */
  private double[] cotangents(Batch q, Batch p) {
    long[] shape = loss == Loss.PAIRWISE ? new long[] {q.size(), p.size()} : new long[] {q.size()};
    long count = Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    if (count > Integer.MAX_VALUE - 8) {
      throw new UserError(
          "%d x %d cotangents do not fit an array: split q by rows".formatted(shape[0], shape[1]));
    }
    double[] g = new double[(int) count];
    Path file = cotangent;
    if (file == null) {
      Arrays.fill(g, 1);
      return g;
    }
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.read(file, f -> Npy.readFloats(f, arena));
      if (!Arrays.equals(array.shape(), shape)) {
        throw new UserError(
            file,
            "has shape %s: of --loss %s it must be %s"
                .formatted(Batch.text(array.shape()), loss, Batch.text(shape)));
      }
      for (int k = 0; k < g.length; k++) {
        g[k] = array.value(k);
        if (!(Math.abs(g[k]) <= Double.MAX_VALUE)) {
          throw new UserError(
              file, "element %d is %s: it must be finite (counted from 0)".formatted(k, g[k]));
        }
      }
    }
    return g;
  }
}
