package dev.kullback.cli.command;

import dev.kullback.Gaussians;
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
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A command whose result has one value for each row of q. */
abstract class RowCommand implements Callable<Integer> {
  @Mixin BatchOptions.Q qOptions;
  @Mixin ResultOptions result;
  @Mixin PolicyOptions.WithDeterministic policyOptions;
  @Mixin EngineOptions.WithDivergence engineOptions;
  @Spec CommandSpec spec;

  /**
   * A result: its formula, and a value for each row, or for each channel of each, float or double.
   *
   * @param columns how many Gaussians of p each is made of, 0 where there is no p or only that of the row
   * @param channels how many values a row has; 0 where it is not asked for channels, and has one
   * @param p null where there is none, or it is q
   */
  record Rows(String formula, int columns, int channels, @Nullable Batch p, MemorySegment values) {}

  /** The option of a value for each channel of a row. */
  static final class Channels {
    @Option(
        names = "--per-channel",
        description =
            "A value for each channel, [N,C]: all axes of means [N,C,...] but N and C are summed, as free bits need it."
                + " Channels are axis 1, or that of --axis.")
    boolean perChannel;

    /** Returns the length of the axis of channels, which q and p must share; 0 where the option is not given. */
    int count(Batch q, Batch p) {
      if (!perChannel) {
        return 0;
      }
      int axis = q.files().channelAxis(p.files());
      int count = q.channels(axis);
      if (p.channels(axis) != count) {
        throw new UserError(
            p.files().mean(),
            "has %d channels, but %s has %d".formatted(p.channels(axis), q.files().mean(), count));
      }
      return count;
    }

    /** Makes the Gaussians of all rows, or of all channels of these, which are on one axis of this batch and the other. */
    Gaussians gaussians(Batch batch, Batch other, Arena arena) {
      int axis = batch.files().channelAxis(other.files());
      return (perChannel ? batch.byChannel(axis, arena) : batch).gaussians();
    }
  }

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
    engineOptions.checkLowRank(files, pFiles);
    Input.limitStdin(takesStandardStreams() ? 1 : 0, BatchOptions.inputs(files, pFiles));
    ScalePolicy policy = policyOptions.policy(files, pFiles, engineOptions.divergence());
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
    report.remedy(engineOptions.remedy(policyOptions.remedy(files, pFiles)));
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFiles out = result.files.open(toFile ? List.of(result.output) : List.of())) {
      Batch q = Batch.load(files, policy, arena);
      report.start();
      Rows rows = compute(engine, q, arena);

      int channels = rows.channels();
      long count = (long) q.size() * Math.max(1, channels);
      boolean isDouble = rows.values().byteSize() == Double.BYTES * count;
      ValueLayout element = Npy.floats(isDouble);
      Stats stats = new Stats();
      stats.add(rows.values(), isDouble);
      byte[] header =
          channels == 0 ? Npy.header(element, q.size()) : Npy.header(element, q.size(), channels);
      int columns = rows.columns();
      report.put("rows", q.size());
      if (columns > 0) {
        report.put("columns", columns);
      }
      report.put("dimension", q.dimension());
      q.describe(report, "q");
      if (rows.p() != null) {
        rows.p().describe(report, "p");
      }
      engineOptions.describe(report, engine);
      if (channels > 0) {
        report.put("channels", channels);
      }
      String size =
          q.size()
              + (columns > 0
                  ? " x " + columns
                  : channels > 0 ? " x " + channels + " channels" : "");
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
