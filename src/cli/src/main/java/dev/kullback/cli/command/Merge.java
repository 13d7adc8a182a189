package dev.kullback.cli.command;

import dev.kullback.Neighbors;
import dev.kullback.cli.neighbors.NeighborInput;
import dev.kullback.cli.neighbors.NeighborOutput;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "merge",
    description = {
      "Joins what several runs of topk wrote, [N,K].",
      "Of the same rows of q among different parts of p, it takes the K smallest of each row, ties to the lower j: what"
          + " topk --exact finds in the whole p. With --rows it puts lists of different rows of q one behind the other.",
    },
    customSynopsis = {
      "kullback merge [-k K | --rows] --in-values V1.npy V2.npy... --in-indices I1.npy I2.npy...",
      "                      --indices I.npy -o V.npy [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback merge --in-values V-*.npy --in-indices I-*.npy --indices I.npy -o V.npy",
      "  kullback merge --rows --in-values V?.npy --in-indices I?.npy --indices I.npy -o V.npy",
    })
final class Merge implements Callable<Integer> {
  /** Of a block of rows, of all lists: some 100 MB. */
  private static final int BLOCK_ENTRIES = 1 << 21;

  @Option(
      names = "-k",
      paramLabel = "K",
      description = "How many, at most the columns of each list; default: those of the narrowest.")
  @Nullable Integer k;

  @Option(
      names = "--rows",
      description = "The lists are of different rows of q, the first of the first rows.")
  boolean byRows;

  @Option(
      names = "--in-values",
      paramLabel = "V.npy",
      required = true,
      arity = "1..*",
      hideParamSyntax = true,
      description = "The lists' values, a file or more; float64, but of --rows float32, too.")
  List<Path> inValues;

  @Option(
      names = "--in-indices",
      paramLabel = "I.npy",
      required = true,
      arity = "1..*",
      hideParamSyntax = true,
      description = "Their columns, int32, of the lists in the same order.")
  List<Path> inIndices;

  @Option(
      names = "--indices",
      paramLabel = "I.npy",
      required = true,
      description = "Where the columns go, int32.")
  Path indices;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT.npy",
      required = true,
      description = "The values, of the type that those of the lists have.")
  Path output;

  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    Report report = new Report(spec);
    Input.rejectOptions(inValues);
    Input.rejectOptions(inIndices);
    if (inValues.size() != inIndices.size()) {
      throw new UserError(
          "--in-values names %d files but --in-indices %d: they go in pairs"
              .formatted(inValues.size(), inIndices.size()));
    }
    if (byRows && k != null) {
      throw new UserError("give -k or --rows, which leaves all columns, not both");
    }
    List<Path> inputs = new ArrayList<>(inValues);
    inputs.addAll(inIndices);
    Input.limitStdin(0, inputs.toArray(Path[]::new));
    Map<String, Path> outputs = new LinkedHashMap<>();
    outputs.put("output", output);
    outputs.put("indices", indices);
    outputs.values().forEach(name -> Outputs.check(name, "npy", inputs));
    try (OutputFile values = new OutputFile(output);
        OutputFile columns = new OutputFile(indices)) {
      values.requireOtherTarget(columns);
      if (byRows) {
        concatenate(values, columns, report);
      } else {
        merge(values, columns, report);
      }
      values.finish(); // what may fail but the renaming does so before either is there
      columns.commit();
      values.commit();
      report.wrote(outputs);
      report.end();
      return 0;
    }
  }

  private NeighborInput open(int list) throws IOException {
    return new NeighborInput(inValues.get(list), inIndices.get(list), !byRows);
  }

  /** Lists of the same rows. */
  private void merge(OutputFile values, OutputFile columns, Report report) throws IOException {
    long start = System.nanoTime();
    try (Lists all = new Lists(new ArrayList<>())) {
      for (int l = 0; l < inValues.size(); l++) {
        all.inputs.add(open(l));
      }
      NeighborInput first = all.inputs.getFirst();
      int most = first.columns();
      long entries = 0;
      for (NeighborInput list : all.inputs) {
        if (list.rows() != first.rows()) {
          throw new UserError(
              list.valuesFile(),
              "has %d rows, but %s has %d: lists of other rows are joined with --rows"
                  .formatted(list.rows(), first.valuesFile(), first.rows()));
        }
        most = Math.min(most, list.columns());
        entries += list.columns();
      }
      int wanted = k == null ? most : k;
      if (wanted < 1 || wanted > most) {
        throw new UserError(
            "-k is %d: give 1 to %d, the columns of the list that has fewest"
                .formatted(wanted, most));
      }
      long n = first.rows();
      NeighborOutput out = new NeighborOutput(values, columns, n, wanted, ValueLayout.JAVA_DOUBLE);
      int block = blockRows(n, entries);
      try (Progress progress = Terminal.of(spec).progress(n)) {
        for (long row = 0; row < n; row += block) {
          int rows = (int) Math.min(block, n - row);
          Neighbors[] parts = all.inputs.stream().map(i -> i.read(rows)).toArray(Neighbors[]::new);
          out.add(merged(wanted, all.inputs, parts, row));
          progress.advance(rows);
        }
      }
      describe(report, "merged", n, wanted, out, start);
    }
  }

  /** What the library refuses, an index that a row has twice, is told by its file. */
  private static Neighbors merged(
      int wanted, List<NeighborInput> inputs, Neighbors[] parts, long firstRow) {
    try {
      return Neighbors.merge(wanted, parts);
    } catch (IllegalArgumentException e) {
      requireOnce(inputs, parts, firstRow);
      throw e;
    }
  }

  /** Lists of different rows, which are of one width and type. */
  private void concatenate(OutputFile values, OutputFile columns, Report report)
      throws IOException {
    long start = System.nanoTime();
    long n = 0;
    int width;
    boolean isDouble;
    try (NeighborInput first = open(0)) {
      width = first.columns();
      isDouble = first.isDouble();
    }
    for (int l = 0; l < inValues.size(); l++) {
      try (NeighborInput list = open(l)) {
        if (list.columns() != width || list.isDouble() != isDouble) {
          throw new UserError(
              list.valuesFile(),
              "has %d columns of %s, but %s has %d of %s: they must be alike"
                  .formatted(
                      list.columns(),
                      dtype(list.isDouble()),
                      inValues.getFirst(),
                      width,
                      dtype(isDouble)));
        }
        n += list.rows();
      }
    }
    ValueLayout element = isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT;
    NeighborOutput out = new NeighborOutput(values, columns, n, width, element);
    try (Progress progress = Terminal.of(spec).progress(n)) {
      for (int l = 0; l < inValues.size(); l++) {
        try (NeighborInput list = open(l)) {
          int block = blockRows(list.rows(), width);
          for (long row = 0; row < list.rows(); row += block) {
            int rows = (int) Math.min(block, list.rows() - row);
            Neighbors part = list.read(rows);
            requireOnce(List.of(list), new Neighbors[] {part}, row);
            out.add(part);
            progress.advance(rows);
          }
        }
      }
    }
    describe(report, "put together", n, width, out, start);
  }

  private static String dtype(boolean isDouble) {
    return isDouble ? "float64" : "float32";
  }

  private static int blockRows(long rows, long entries) {
    return (int) Math.clamp(BLOCK_ENTRIES / entries, 1, Math.max(1, rows));
  }

  /** No row has an index twice: it would be of two Gaussians, or a Gaussian would be in two parts. */
  private static void requireOnce(List<NeighborInput> inputs, Neighbors[] parts, long firstRow) {
    for (int i = 0; i < parts[0].size(); i++) {
      int row = i;
      // an index, and then which it is of all
      long[] all = new long[Arrays.stream(parts).mapToInt(part -> part.count(row)).sum()];
      int at = 0;
      for (Neighbors part : parts) {
        for (int r = 0; r < part.count(i); r++, at++) {
          all[at] = (long) part.index(i, r) << Integer.SIZE | at;
        }
      }
      Arrays.sort(all);
      for (int s = 1; s < all.length; s++) {
        if (all[s] >> Integer.SIZE == all[s - 1] >> Integer.SIZE) {
          throw twice(inputs, parts, i, firstRow, (int) all[s - 1], (int) all[s]);
        }
      }
    }
  }

  private static UserError twice(
      List<NeighborInput> inputs, Neighbors[] parts, int i, long firstRow, int before, int at) {
    int list = 0;
    int other = 0;
    for (int column = before; column >= parts[other].count(i); other++) {
      column -= parts[other].count(i);
    }
    int column = at;
    for (; column >= parts[list].count(i); list++) {
      column -= parts[list].count(i);
    }
    return NeighborInput.wrong(
        inputs.get(list).indicesFile(),
        firstRow + i,
        column,
        "index %d is in the row twice%s"
            .formatted(
                parts[list].index(i, column),
                list == other
                    ? ""
                    : ", of %s, too: parts overlap, or --p-first of one was wrong"
                        .formatted(inputs.get(other).indicesFile())));
  }

  private void describe(
      Report report, String done, long rows, int width, NeighborOutput out, long start) {
    report.put("lists", inValues.size()).put("by_rows", byRows).put("rows", rows).put("k", width);
    String what = "%s %d lists: %d x %d".formatted(done, inValues.size(), rows, width);
    out.describe(report, what, (System.nanoTime() - start) * 1e-9);
  }

  private record Lists(List<NeighborInput> inputs) implements Closeable {
    @Override
    public void close() throws IOException {
      for (NeighborInput input : inputs) {
        input.close();
      }
    }
  }
}
