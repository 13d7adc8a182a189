package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFile;
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

/** A command whose result has one value a row of q. */
abstract class RowCommand implements Callable<Integer> {
  @Mixin BatchOptions.Q qOptions;
  @Mixin ResultOptions result;
  @Mixin PolicyOptions policyOptions;
  @Mixin EngineOptions engineOptions;
  @Spec CommandSpec spec;

  /** The formula, then for each row its value, in float or double elements. */
  record Rows(String formula, MemorySegment values) {}

  /** Empty where p is q, or there is none. */
  List<BatchOptions.Files> pFiles() {
    return List.of();
  }

  abstract Rows compute(KlEngine engine, Batch q, Arena arena);

  static MemorySegment allocate(Arena arena, int rows, boolean isDouble) {
    return arena.allocate(isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT, rows);
  }

  /** What is read beside q and p; null where nothing is. */
  @Nullable Path weights() {
    return null;
  }

  /** Whether {@code -} is standard input, of one of the files, and with {@code -o} standard output. */
  boolean takesStandardStreams() {
    return true;
  }

  @Override
  public Integer call() throws IOException {
    BatchOptions.Files files = qOptions.files();
    List<BatchOptions.Files> pFiles = pFiles();
    BatchOptions.limitStdin(takesStandardStreams() ? 1 : 0, files, pFiles);
    ScalePolicy policy = policyOptions.policy(files, pFiles);
    boolean toFile = !takesStandardStreams() || !Outputs.isStandard(result.output);
    if (toFile) {
      List<Path> inputs = new ArrayList<>(BatchOptions.inputs(files, pFiles));
      Stream.ofNullable(weights()).forEach(inputs::add);
      Outputs.check(result.output, "npy", inputs);
    } else if (Terminal.of(spec).isSeen()) {
      throw new UserError("-: standard output is a terminal: pipe it or name a file");
    }
    CommandLine line = spec.commandLine();
    Report report = new Report(spec, toFile ? line.getOut() : line.getErr());
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFile npy = toFile ? new OutputFile(result.output) : null) {
      Batch q = Batch.load(files, policy, arena);
      long start = System.nanoTime();
      Rows rows = compute(engine, q, arena);
      double seconds = (System.nanoTime() - start) * 1e-9;

      boolean isDouble = rows.values().byteSize() == 8L * q.size();
      Stats stats = new Stats();
      stats.add(rows.values(), isDouble);
      byte[] header =
          Npy.header(isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT, q.size());
      report.put("rows", q.size()).put("dimension", q.dimension());
      engineOptions.describe(report, engine);
      stats.describe(report, rows.formula() + ": " + q.size(), isDouble, seconds);
      if (npy != null) {
        npy.write(header);
        npy.write(rows.values());
        npy.commit();
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
