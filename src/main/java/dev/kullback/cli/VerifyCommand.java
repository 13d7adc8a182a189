package dev.kullback.cli;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import dev.kullback.Verification;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "verify",
    description = {
      "Runs every operation on this machine until the JVM has compiled it, and compares each result with plain"
          + " arithmetic in double. Exit status 1 if one is wrong.",
      "Without --backend, on each backend that can run here."
    },
    sortOptions = false)
final class VerifyCommand implements Callable<Integer> {
  private static final double MOST_SECONDS = 1e6;

  @Option(
      names = "--seconds",
      paramLabel = "N",
      description = "How long it takes, about, all backends together; default: 20.")
  double seconds = 20;

  @Mixin EngineOptions engineOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() {
    if (!(seconds > 0 && seconds <= MOST_SECONDS)) {
      throw new UserError("--seconds is " + seconds + ": give more than 0, at most 1e6");
    }
    PrintWriter out = spec.commandLine().getOut();
    List<KlEngine> engines = engines(out);
    boolean right = true;
    try {
      Duration each = Duration.ofNanos((long) (1e9 * seconds / engines.size()));
      for (KlEngine engine : engines) {
        out.printf("%s%n", engine.describe());
        out.flush();
        Verification found = engine.verify(each);
        out.printf("%s%n", found);
        out.flush();
        right &= found.isRight();
      }
    } finally {
      engines.forEach(KlEngine::close);
    }
    out.printf(right ? "all right%n" : "WRONG results: do not use this backend on this JVM%n");
    return right ? 0 : 1;
  }

  private List<KlEngine> engines(PrintWriter out) {
    if (engineOptions.backend != Backend.AUTO) {
      return List.of(engineOptions.engine());
    }
    List<KlEngine> engines = new ArrayList<>();
    for (Backend backend : List.of(Backend.VECTOR, Backend.SCALAR, Backend.CUDA)) {
      try {
        engines.add(engineOptions.engine(backend));
      } catch (IllegalStateException e) { // it cannot run here
        out.printf("%s%n", backend.describe());
      }
    }
    return engines;
  }
}
