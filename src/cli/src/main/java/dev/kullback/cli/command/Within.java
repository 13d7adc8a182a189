package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.SparseOutput;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

@Command(
    name = "within",
    description = {
      "Writes the pairs with KL(q_i || p_j) <= R, sparse.",
      "By row, then column: the values to -o, [P], and their (i, j) to --indices, [P,2]; or both to"
          + " an -o that ends in .npz, as a CSR matrix for scipy.sparse.load_npz.",
    },
    customSynopsis = {
      "kullback within --radius R --mean Q.npy --std S.npy [--p-mean P.npy --p-std T.npy]",
      "                       (--indices I.npy -o V.npy | -o OUT.npz) [...]",
      "kullback within --radius R --points X.npy [--log-density] --p-mean P.npy --p-std T.npy",
      "                       (--indices I.npy -o V.npy | -o OUT.npz) [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback within --radius 0.5 --mean Q.npy --std S.npy --indices I.npy -o V.npy",
      "  kullback within --radius 0.5 --mean Q.npy --std S.npy -o near.npz",
      "  kullback within --radius 9.21 --points X.npy --p-mean P.npy --p-cov C.npy -o gated.npz",
    })
final class Within extends PairCommand {
  private final PointOptions points;

  Within() {
    this(new BatchOptions.QOrPoints(), new EngineOptions.WithDivergence());
  }

  private Within(BatchOptions.QOrPoints rows, EngineOptions engineOptions) {
    super(rows, new PolicyOptions.WithDeterministic(), engineOptions);
    points = new PointOptions(rows);
  }

  @Option(
      names = "--radius",
      order = FIRST,
      paramLabel = "R",
      required = true,
      converter = Bound.class,
      description = "In nats, >= 0, with --log-density any; 0 finds equal Gaussians, inf all.")
  double radius;

  @Option(
      names = "--indices",
      order = FIRST,
      paramLabel = "I.npy",
      description = "Where rows and columns go, int32; not with an .npz file.")
  @Nullable Path indices;

  @Option(
      names = "--reverse-divergence",
      order = FIRST,
      description = "Those with KL(p_j || q_i) <= R instead.")
  boolean reverse;

  /** A radius, or any bound of negative log-densities. */
  static final class Bound implements ITypeConverter<Double> {
    @Override
    public Double convert(String text) {
      try {
        double bound =
            text.equalsIgnoreCase("inf") ? Double.POSITIVE_INFINITY : Double.parseDouble(text);
        if (!Double.isNaN(bound)) {
          return bound;
        }
      } catch (NumberFormatException e) {
        // told below
      }
      throw new TypeConversionException(error(text));
    }
  }

  static String error(String text) {
    return "'" + text + "' is not a radius: give one >= 0, or inf; with --log-density any number";
  }

  @Override
  String format() {
    return Input.suffix(result.output).equals("npz") ? "npz" : "npy";
  }

  @Override
  Map.@Nullable Entry<String, Path> secondOutput() {
    points.check(reverse, engineOptions);
    points.checkRadius(radius);
    boolean npz = format().equals("npz");
    if (npz && indices != null) {
      throw new UserError(result.output, "holds the indices, too: leave out --indices");
    }
    if (!npz && indices == null) {
      throw new UserError(result.output, "give --indices I.npy, too, or -o a name ending in .npz");
    }
    return indices == null ? null : Map.entry("indices", indices);
  }

  @Override
  void run(
      KlEngine engine, Inputs inputs, OutputFile output, @Nullable OutputFile pairs, Report report)
      throws IOException {
    Batch q = inputs.loadQ();
    Batch p = inputs.loadP(q);
    describe(report, engine, q, p.size());
    points.describe(report);
    // Twice, as the engine gathers what its threads have found.
    int blockRows = RowBlocks.ofReduction(q, p, engineOptions.threads(), 2L * p.size());
    report.start();
    ValueLayout element = Batch.element(q, p);
    try (Progress progress = progress(q.size());
        SparseOutput out =
            new SparseOutput(output, pairs, q.size(), element, ValueLayout.JAVA_INT)) {
      find(engine, new RowBlocks(q, p, blockRows, progress), out);
      String what =
          "%s <= %s: %d of %d x %d"
              .formatted(
                  points.formula(reverse, engineOptions.divergence(), "p_j"),
                  Text.number(radius),
                  out.stats().count(),
                  q.size(),
                  p.size());
      report.put("radius", radius).put("reverse", reverse);
      out.stats().describe(report, what, q.dimension(), element);
    }
  }

  void find(KlEngine engine, RowBlocks blocks, SparseOutput out) {
    Query within = points.within(radius);
    Query query = reverse ? within.reverse() : within;
    blocks.forEach((_, rows, p) -> {
      Neighbors found = engine.search(rows, p, query);
      for (int i = 0; i < rows.size(); i++) {
        for (int r = 0; r < found.count(i); r++) {
          out.add(found.index(i, r), found.value(i, r));
        }
        out.endRow();
      }
    });
    out.finish(blocks.p().size());
  }
}
