package dev.kullback.cli;

import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
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

  /** Null where there is none. */
  BatchOptions.@Nullable Files pFiles() {
    return null;
  }

  /** How many inputs may be standard input, 0 or 1. */
  int mostStdins() {
    return 1;
  }

  abstract Rows compute(KlEngine engine, Batch q, Arena arena);

  static MemorySegment allocate(Arena arena, int rows, boolean isDouble) {
    return arena.allocate(isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT, rows);
  }

  @Override
  public Integer call() throws IOException {
    BatchOptions.Files files = qOptions.files();
    BatchOptions.@Nullable Files pFiles = pFiles();
    BatchOptions.limitStdin(mostStdins(), files, pFiles);
    ScalePolicy policy = policyOptions.policy(files, pFiles);
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFile npy = new OutputFile(result.output)) {
      Batch q = Batch.load(files, policy, arena);
      long start = System.nanoTime();
      Rows rows = compute(engine, q, arena);
      double seconds = (System.nanoTime() - start) * 1e-9;

      boolean isDouble = rows.values().byteSize() == 8L * q.size();
      Stats stats = new Stats();
      stats.add(rows.values(), isDouble);
      npy.write(Npy.header(isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT, q.size()));
      npy.write(rows.values());
      npy.commit();
      spec.commandLine()
          .getOut()
          .printf(
              Locale.ROOT,
              "%s%nwrote %s%n",
              stats.summary(rows.formula() + ": " + q.size(), isDouble, seconds),
              result.output);
      return 0;
    }
  }
}
