package dev.kullback.cli.command;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import dev.kullback.Verification;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
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
    name = "verify",
    description = {
      "Runs every operation of an engine on this machine until the JVM has compiled it, with KL those on mixtures, too,"
          + " and on the backend that an index takes its searches; compares each result with plain arithmetic in double."
          + " Counts what warm calls allocate. Exit status 1 if a result is wrong.",
      "Each operation is tried with each kind of batches, whatever the time; the last line of a backend says with how"
          + " many of all pairs of batches.",
      "With --json, compiled says whether warm calls ran compiled vector code: if it is false, right was found of code"
          + " that was not, and more seconds are needed; null where no vectors run or bytes are not counted.",
      "Without --backend, on each backend that can run here."
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback verify",
      "  kullback verify --seconds 60 --backend vector --json",
    })
final class VerifyCommand implements Callable<Integer> {
  private static final double MOST_SECONDS = 1e6;

  /** Bytes of a call that show boxes: several threads take some hundred, boxes 48 for each vector of the result. */
  private static final long BOXES = 1000;

  @Option(
      names = "--seconds",
      paramLabel = "N",
      description = "How long it takes, about, all backends together; default: 20.")
  double seconds = 20;

  @Mixin EngineOptions.WithDivergence engineOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() {
    if (!(seconds > 0 && seconds <= MOST_SECONDS)) {
      throw new UserError("--seconds is " + seconds + ": give more than 0, at most 1e6");
    }
    Report report = new Report(spec);
    Map<Backend, KlEngine> engines = engines(report);
    try {
      return verify(engines, report);
    } finally {
      engines.values().forEach(KlEngine::close);
    }
  }

  private int verify(Map<Backend, KlEngine> engines, Report report) {
    Duration each = Duration.ofNanos(Math.max(1, (long) (1e9 * seconds / engines.size())));
    List<String> wrong = new ArrayList<>();
    List<String> right = new ArrayList<>();
    List<Map<String, @Nullable Object>> tried = new ArrayList<>();
    engines.forEach((backend, engine) -> {
      report.line(backend.reason());
      report.print();
      Verification found = engine.verify(each);
      found.toString().lines().forEach(report::line);
      Boolean compiled = backend == Backend.VECTOR ? isCompiled(engine, found) : null;
      if (Boolean.FALSE.equals(compiled)) {
        report.line(
            engine.isReady()
                ? "calls allocate: this JVM has not yet compiled all that runs, or it boxes vectors, which makes calls slow;"
                    + " --seconds 120 tells which"
                : "this JVM has not yet compiled all vector code, so plain code was tried where it takes its place;"
                    + " --seconds 120 tries it");
      }
      report.print();
      String name = EngineOptions.name(backend);
      (found.passed() ? right : wrong).add(name);
      Map<String, @Nullable Object> facts = new LinkedHashMap<>();
      facts.put("backend", name);
      facts.put("description", backend.reason());
      facts.put("right", found.passed());
      facts.put("compiled", compiled);
      facts.put("operations", found.operations().stream().map(VerifyCommand::facts).toList());
      tried.add(facts);
    });
    report.put("right", wrong.isEmpty()).put("backends", tried);
    report.put("divergence", engineOptions.divergence().name());
    report.line(
        wrong.isEmpty()
            ? "all right: " + String.join(", ", right)
            : "WRONG: " + String.join(", ", wrong) + ": not to be used on this machine and JVM");
    report.end();
    return wrong.isEmpty() ? 0 : 1;
  }

  /**
   * Whether vectors have taken over, and no warm call boxed them, as code does that is not compiled; null if bytes were not counted.
   */
  private static @Nullable Boolean isCompiled(KlEngine engine, Verification found) {
    return !engine.isReady()
        ? (Boolean) false
        : found.operations().stream().allMatch(o -> o.allocatedBytes().isEmpty())
            ? null
            : found.operations().stream().noneMatch(VerifyCommand::isBoxed);
  }

  /** Whether it allocates more than the bookkeeping of several threads. */
  private static boolean isBoxed(Verification.Operation operation) {
    return operation.allocatedBytes().orElse(0) >= BOXES;
  }

  private static Map<String, Object> facts(Verification.Operation operation) {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("name", operation.name());
    facts.put("calls", operation.calls());
    facts.put("entries", operation.entries());
    facts.put("worst", operation.worstError());
    facts.put("bytes", operation.allocatedBytes().orElse(-1));
    facts.put("wrong", operation.failure().orElse(""));
    return facts;
  }

  private Map<Backend, KlEngine> engines(Report report) {
    Map<Backend, KlEngine> engines = new EnumMap<>(Backend.class);
    KlEngine asked =
        engineOptions.engine(); // refuses what the properties ask for and is not to be had
    if (engineOptions.backend != Backend.AUTO) {
      engines.put(engineOptions.backend, asked);
      return engines;
    }
    asked.close();
    List<String> absent = new ArrayList<>();
    for (Backend backend : List.of(Backend.VECTOR, Backend.SCALAR, Backend.CUDA)) {
      try {
        engines.put(backend, engineOptions.engine(backend));
      } catch (IllegalStateException e) { // it cannot run here, or compute this divergence
        report.line("not tried: " + backend.reason());
        absent.add(EngineOptions.name(backend));
      }
    }
    report.put("not_tried", absent);
    return engines;
  }
}
