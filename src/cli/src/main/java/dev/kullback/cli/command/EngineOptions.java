package dev.kullback.cli.command;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.util.Locale;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The options of the engine. */
final class EngineOptions {
  private static final int MAX_THREADS = 1024;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      defaultValue = "AUTO",
      description = "auto, vector, scalar or cuda; default: auto.")
  Backend backend;

  @Option(names = "--threads", paramLabel = "N", description = "Default: every core.")
  int threads = everyCore();

  @Spec(Spec.Target.MIXEE)
  CommandSpec spec;

  /** Makes the command's engine; to be called before its batches are made. */
  KlEngine engine() {
    if (backend == Backend.SCALAR && Terminal.of(spec).isProcess()) {
      // or the library would compile vector code to make batches with, for which the process has no
      // other use
      System.setProperty("dev.kullback.backend", "scalar");
    }
    try {
      return engine(backend);
    } catch (IllegalArgumentException | IllegalStateException e) { // it cannot run here
      throw new UserError("--backend " + backend + ": " + e.getMessage());
    }
  }

  /** Reports the backend and the threads. */
  void describe(Report report, KlEngine engine) {
    report.put("backend", engine.describe().replaceFirst("(?s)\\W.*", "")).put("threads", threads);
  }

  /** Throws as {@link KlEngine.Builder#build()} does where the backend cannot run. */
  KlEngine engine(Backend backend) {
    requireThreads(threads);
    return KlEngine.builder().backend(backend).threads(threads).build();
  }

  static int everyCore() {
    return Math.min(MAX_THREADS, Runtime.getRuntime().availableProcessors());
  }

  static void requireThreads(int threads) {
    if (threads < 1 || threads > MAX_THREADS) {
      throw new UserError("--threads is " + threads + ": give 1 to " + MAX_THREADS);
    }
  }

  /** Returns the name of a backend as texts write it. */
  static String name(Backend backend) {
    return backend.name().toLowerCase(Locale.ROOT);
  }
}
