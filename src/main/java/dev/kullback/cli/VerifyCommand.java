package dev.kullback.cli;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import dev.kullback.Verification;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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
    Map<Backend, KlEngine> engines = engines();
    try {
      return verify(engines);
    } finally {
      engines.values().forEach(KlEngine::close);
    }
  }

  private int verify(Map<Backend, KlEngine> engines) {
    PrintWriter out = spec.commandLine().getOut();
    Duration each = Duration.ofNanos(Math.max(1, (long) (1e9 * seconds / engines.size())));
    List<String> wrong = new ArrayList<>();
    List<String> right = new ArrayList<>();
    engines.forEach((backend, engine) -> {
      out.printf("%s%n", backend.describe());
      out.flush();
      Verification found = engine.verify(each);
      out.printf("%s%n", found);
      out.flush();
      (found.isRight() ? right : wrong).add(backend.name().toLowerCase(Locale.ROOT));
    });
    if (!wrong.isEmpty()) {
      out.printf("WRONG: %s: not to be used on this machine and JVM%n", String.join(", ", wrong));
      return 1;
    }
    out.printf("all right: %s%n", String.join(", ", right));
    return 0;
  }

  private Map<Backend, KlEngine> engines() {
    Map<Backend, KlEngine> engines = new EnumMap<>(Backend.class);
    KlEngine asked =
        engineOptions.engine(); // refuses what the properties ask for and is not to be had
    if (engineOptions.backend != Backend.AUTO) {
      engines.put(engineOptions.backend, asked);
      return engines;
    }
    asked.close();
    PrintWriter out = spec.commandLine().getOut();
    for (Backend backend : List.of(Backend.VECTOR, Backend.SCALAR, Backend.CUDA)) {
      try {
        engines.put(backend, engineOptions.engine(backend));
      } catch (IllegalStateException e) { // it cannot run here
        out.printf("not tried: %s%n", backend.describe());
      }
    }
    return engines;
  }
}
