package dev.kullback.cli;

import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** A command on all pairs of q and p, with one output or two. */
abstract class PairCommand implements Callable<Integer> {
  /** The order of an option that help shows before those below: theirs is -1. */
  static final int FIRST = -2;

  @Mixin BatchOptions.Q qOptions;
  @Mixin BatchOptions.P pOptions;
  @Mixin ResultOptions result;
  @Mixin PolicyOptions policyOptions;
  @Mixin EngineOptions engineOptions;
  @Spec CommandSpec spec;

  /** The output beside {@code -o}, null where there is none; throws what is wrong with the two. */
  abstract @Nullable Path secondOutput();

  /** Writes the outputs, and returns what to say of them. */
  abstract String run(
      KlEngine engine, Batch q, Batch p, OutputFile output, @Nullable OutputFile second)
      throws IOException;

  final Progress progress(Batch q) {
    return new Progress(spec.commandLine().getErr(), q.size());
  }

  @Override
  public final Integer call() throws IOException {
    BatchOptions.Files qFiles = qOptions.files();
    BatchOptions.@Nullable Files pFiles = pOptions.files();
    BatchOptions.limitStdin(0, qFiles, pFiles);
    ScalePolicy policy = policyOptions.policy(qFiles, pFiles);
    @Nullable Path other = secondOutput();
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFile output = new OutputFile(result.output);
        OutputFile second = other == null ? null : new OutputFile(other)) {
      if (second != null && second.hasTargetOf(output)) {
        throw new UserError(result.output, "is the name of both outputs");
      }
      Batch q = Batch.load(qFiles, policy, arena);
      Batch p = q.columns(pFiles, arena);
      String summary = run(engine, q, p, output, second);
      if (second != null) {
        output.finish(); // what may fail but the renaming does so before either is there
        second.commit();
      }
      output.commit();
      spec.commandLine()
          .getOut()
          .printf(
              "%s%nwrote %s%n",
              summary, other == null ? result.output : result.output + " and " + other);
      return 0;
    }
  }
}
