package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.OutputFiles;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** A command on all pairs of q and p, with one output or two. */
abstract class PairCommand implements Callable<Integer> {
  /** The order of an option that help shows before those below. */
  static final int FIRST = BatchOptions.Q.MEAN - 1;

  @Mixin final BatchOptions.Rows qOptions;
  @Mixin BatchOptions.P pOptions;
  @Mixin ResultOptions result;
  @Mixin final PolicyOptions policyOptions;
  @Mixin final EngineOptions engineOptions;
  @Spec CommandSpec spec;

  /** Makes a command on Gaussians, of any divergence. */
  PairCommand() {
    this(new PolicyOptions.WithDeterministic(), new EngineOptions.WithDivergence());
  }

  PairCommand(PolicyOptions policyOptions, EngineOptions engineOptions) {
    this(new BatchOptions.Q(), policyOptions, engineOptions);
  }

  PairCommand(
      BatchOptions.Rows qOptions, PolicyOptions policyOptions, EngineOptions engineOptions) {
    this.qOptions = qOptions;
    this.policyOptions = policyOptions;
    this.engineOptions = engineOptions;
  }

  /** Returns the option and the name of the output beside {@code -o}, or null. */
  Map.@Nullable Entry<String, Path> secondOutput() {
    return null;
  }

  /** Returns the format of {@code -o} for {@link Outputs#check}. */
  String format() {
    return "npy";
  }

  /** Returns the format of the output beside {@code -o}. */
  String secondFormat() {
    return "npy";
  }

  /** Returns what is read beside the batches. */
  List<Path> otherInputs() {
    return List.of();
  }

  /** Returns the files of p; none where p is q. */
  List<BatchOptions.Files> pFiles() {
    return pOptions.only();
  }

  /** The files of the batches, and how to load them; {@code p} is empty where it is q. */
  record Inputs(BatchOptions.Files q, List<BatchOptions.Files> p, ScalePolicy policy, Arena arena) {
    Batch loadQ() {
      return Batch.load(q, policy, arena);
    }

    /** Loads a p of at most one file. */
    Batch loadP(Batch q) {
      return q.columns(p, arena);
    }
  }

  /** Computes and writes the outputs, and adds them to the report. */
  abstract void run(
      KlEngine engine, Inputs inputs, OutputFile output, @Nullable OutputFile second, Report report)
      throws IOException;

  /** Whether the engine computes divergences of q and p, not its threads something else; asked after {@link #secondOutput}. */
  boolean asksEngine() {
    return true;
  }

  final Progress progress(long rows) {
    return Terminal.of(spec).progress(rows);
  }

  /** Reports the shapes of the batches, and the backend. */
  final void describe(Report report, KlEngine engine, Batch q, int columns) {
    report.put("rows", q.size()).put("columns", columns).put("dimension", q.dimension());
    engineOptions.describe(report, engine);
  }

  @Override
  public final Integer call() throws IOException {
    Report report = new Report(spec);
    BatchOptions.Files qFiles = qOptions.files();
    List<BatchOptions.Files> pFiles = pFiles();
    if (qFiles.arePoints() && pFiles.isEmpty()) {
      throw new UserError("points need Gaussians: give --p-mean and a scale of p");
    }
    Map.@Nullable Entry<String, Path> other = secondOutput();
    if (asksEngine()) {
      engineOptions.checkLowRank(qFiles, pFiles);
    }
    List<Path> inputs = new ArrayList<>(BatchOptions.inputs(qFiles, pFiles));
    inputs.addAll(otherInputs());
    Input.limitStdin(0, inputs);
    ScalePolicy policy = policyOptions.policy(qFiles, pFiles, engineOptions.divergence());
    report.remedy(engineOptions.remedy(policyOptions.remedy(qFiles, pFiles)));
    Outputs.check(result.output, format(), inputs);
    Map<String, Path> outputs = new LinkedHashMap<>();
    outputs.put("output", result.output);
    if (other != null) {
      Outputs.check(other.getValue(), secondFormat(), inputs);
      outputs.put(other.getKey(), other.getValue());
    }
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFiles out = result.files.open(outputs.values())) {
      Batch.describe(report, qFiles, pFiles);
      run(engine, new Inputs(qFiles, pFiles, policy, arena), out.get(0), out.second(), report);
      out.commit();
      report.wrote(outputs);
      report.end();
      return 0;
    }
  }
}
