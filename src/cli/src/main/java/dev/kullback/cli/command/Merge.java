package dev.kullback.cli.command;

import dev.kullback.Neighbors;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.NeighborInput;
import dev.kullback.cli.output.NeighborOutput;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.OutputFiles;
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
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
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
  /** Entries of all lists in a block of rows: some 100 MB. */
  private static final int BLOCK_ENTRIES = 1 << 21;

  @Option(
      names = "-k",
      paramLabel = "K",
      description =
          "The number of values of each row, at most the columns of each list; default: the columns of the narrowest.")
  @Nullable Integer k;

  @Option(
      names = "--rows",
      description = "Put the lists of different rows of q one behind the other, as they are named.")
  boolean byRows;

  @Option(
      names = "--in-values",
      paramLabel = "V.npy",
      required = true,
      arity = "1..*",
      hideParamSyntax = true,
      description =
          "The lists' values, in one or more files; float64, or with --rows also float32.")
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

  @Mixin OutputOptions outputOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    Report report = new Report(spec);
    report.start();
    Input.rejectOptions(spec, inValues);
    Input.rejectOptions(spec, inIndices);
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
    Input.limitStdin(0, inputs);
    Map<String, Path> outputs = new LinkedHashMap<>();
    outputs.put("output", output);
    outputs.put("indices", indices);
    outputs.values().forEach(name -> Outputs.check(name, "npy", inputs));
    try (OutputFiles out = outputOptions.open(outputs.values())) {
      if (byRows) {
        concatenate(out.get(0), out.get(1), report);
      } else {
        merge(out.get(0), out.get(1), report);
      }
      out.commit();
      report.wrote(outputs);
      report.end();
      return 0;
    }
  }

  private NeighborInput open(int list) throws IOException {
    return new NeighborInput(inValues.get(list), inIndices.get(list), !byRows);
  }

  /** Merges lists of the same rows. */
  private void merge(OutputFile values, OutputFile columns, Report report) throws IOException {
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
              list.valuesFile,
              "has %d rows, but %s has %d: lists of other rows are joined with --rows"
                  .formatted(list.rows(), first.valuesFile, first.rows()));
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
      try (Progress progress = Terminal.of(spec).progress(n)) {
        copy(all.inputs, entries, wanted, out, progress);
      }
      describe(report, "merged", n, wanted, out);
    }
  }

  /** Appends the rows of lists, merged: of their {@code entries} in a row those {@code wanted}. */
  private void copy(
      List<NeighborInput> inputs, long entries, int wanted, NeighborOutput out, Progress progress) {
    long n = inputs.getFirst().rows();
    int block = (int) Math.clamp(BLOCK_ENTRIES / entries, 1, Math.max(1, n));
    for (long row = 0; row < n; row += block) {
      int rows = (int) Math.min(block, n - row);
      Neighbors[] parts = inputs.stream().map(list -> list.read(rows)).toArray(Neighbors[]::new);
      out.add(merged(wanted, inputs, parts, row));
      progress.advance(rows);
    }
  }

  private Neighbors merged(
      int wanted, List<NeighborInput> inputs, Neighbors[] parts, long firstRow) {
    if (byRows) { // whose values may be floats, equal for different divergences
      requireOnce(inputs, parts, firstRow);
      return parts[0];
    }
    try {
      return Neighbors.merge(wanted, parts);
    } catch (IllegalArgumentException e) {
      requireOnce(inputs, parts, firstRow); // tells the file and the column
      throw e;
    }
  }

  /** Puts lists of different rows, which are of one width and type, one behind the other. */
  private void concatenate(OutputFile values, OutputFile columns, Report report)
      throws IOException {
    long n = 0;
    int width;
    ValueLayout element;
    try (NeighborInput first = open(0)) {
      width = first.columns();
      element = Npy.floats(first.isDouble());
    }
    for (int l = 0; l < inValues.size(); l++) {
      try (NeighborInput list = open(l)) {
        ValueLayout other = Npy.floats(list.isDouble());
        if (list.columns() != width || !other.equals(element)) {
          throw new UserError(
              list.valuesFile,
              "has %d columns of %s, but %s has %d of %s: they must be alike"
                  .formatted(
                      list.columns(),
                      Npy.dtype(other),
                      inValues.getFirst(),
                      width,
                      Npy.dtype(element)));
        }
        n += list.rows();
      }
    }
    NeighborOutput out = new NeighborOutput(values, columns, n, width, element);
    try (Progress progress = Terminal.of(spec).progress(n)) {
      for (int l = 0; l < inValues.size(); l++) {
        try (NeighborInput list = open(l)) {
          copy(List.of(list), width, width, out, progress);
        }
      }
    }
    describe(report, "put together", n, width, out);
  }

  /** Refuses an index that a row has twice: it would be of two Gaussians, or a Gaussian would be in two parts. */
  private static void requireOnce(List<NeighborInput> inputs, Neighbors[] parts, long firstRow) {
    for (int i = 0; i < parts[0].size(); i++) {
      List<Entry> row = new ArrayList<>();
      for (int l = 0; l < parts.length; l++) {
        for (int r = 0; r < parts[l].count(i); r++) {
          row.add(new Entry(parts[l].index(i, r), inputs.get(l), r));
        }
      }
      row.sort(Comparator.comparingInt(Entry::index));
      for (int s = 1; s < row.size(); s++) {
        Entry entry = row.get(s);
        Entry before = row.get(s - 1);
        if (entry.index() == before.index()) {
          String twice = "index %d is in the row twice".formatted(entry.index());
          String overlap =
              ", of %s, too: parts overlap, or --p-first of one was wrong"
                  .formatted(before.list().indicesFile);
          throw NeighborInput.wrong(
              entry.list().indicesFile,
              firstRow + i,
              entry.column(),
              entry.list() == before.list() ? twice : twice + overlap);
        }
      }
    }
  }

  private record Entry(int index, NeighborInput list, int column) {}

  private void describe(Report report, String done, long rows, int width, NeighborOutput out) {
    report.put("lists", inValues.size()).put("by_rows", byRows).put("rows", rows).put("k", width);
    out.describe(report, "%s %d lists: %d x %d".formatted(done, inValues.size(), rows, width));
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
