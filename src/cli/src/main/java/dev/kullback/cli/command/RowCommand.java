package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFiles;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.output.Stats;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** A command whose result has one value for each row of q. */
abstract class RowCommand implements Callable<Integer> {
  @Mixin BatchOptions.Q qOptions;
  @Mixin ResultOptions result;
  @Mixin PolicyOptions.WithDeterministic policyOptions;
  @Mixin EngineOptions.WithDivergence engineOptions;
  @Spec CommandSpec spec;

  /**
   * A result: its formula, and a value for each row, float or double.
   *
   * @param columns how many Gaussians of p each is made of, 0 where there is no p or only that of the row
   */
  record Rows(String formula, int columns, MemorySegment values) {}

  /** Returns the files of p; none where p is q, or there is no p. */
  List<BatchOptions.Files> pFiles() {
    return List.of();
  }

  abstract Rows compute(KlEngine engine, Batch q, Arena arena);

  /** Returns the file of weights that is read beside q and p, or null. */
  @Nullable Path weights() {
    return null;
  }

  /** Whether one of the inputs may be {@code -}, standard input, and so the output. */
  boolean takesStandardStreams() {
    return true;
  }

  @Override
  public Integer call() throws IOException {
    BatchOptions.Files files = qOptions.files();
    List<BatchOptions.Files> pFiles = pFiles();
    Input.limitStdin(takesStandardStreams() ? 1 : 0, BatchOptions.inputs(files, pFiles));
    ScalePolicy policy = policyOptions.policy(files, pFiles);
    boolean toFile = !takesStandardStreams() || !Outputs.isStandard(result.output);
    if (toFile) {
      List<Path> inputs = new ArrayList<>(BatchOptions.inputs(files, pFiles));
      Stream.ofNullable(weights()).forEach(inputs::add);
      Outputs.check(result.output, "npy", inputs);
    } else if (Terminal.of(spec).outIsTerminal()) {
      throw new UserError("-: standard output is a terminal: pipe it or name a file");
    }
    CommandLine line = spec.commandLine();
    Report report = new Report(spec, toFile ? line.getOut() : line.getErr());
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFiles out = result.files.open(toFile ? List.of(result.output) : List.of())) {
      Batch q = Batch.load(files, policy, arena);
      report.start();
      Rows rows = compute(engine, q, arena);

      boolean isDouble = rows.values().byteSize() == (long) Double.BYTES * q.size();
      ValueLayout element = Npy.floats(isDouble);
      Stats stats = new Stats();
      stats.add(rows.values(), isDouble);
      byte[] header = Npy.header(element, q.size());
      int columns = rows.columns();
      report.put("rows", q.size());
      if (columns > 0) {
        report.put("columns", columns);
      }
      report.put("dimension", q.dimension());
      engineOptions.describe(report, engine);
      String size = q.size() + (columns > 0 ? " x " + columns : "");
      stats.describe(report, rows.formula() + ": " + size, q.dimension(), element);
      if (toFile) {
        out.get(0).write(header);
        out.get(0).write(rows.values());
        out.commit();
        report.wrote(Map.of("output", result.output));
      } else if (!Terminal.of(spec).write(MemorySegment.ofArray(header))
          || !Terminal.of(spec).write(rows.values())) {
        return 0; // and Terminal.end tells that it is lost
      }
      report.end();
      return 0;
    }
  }
}
