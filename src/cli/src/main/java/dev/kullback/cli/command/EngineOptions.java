package dev.kullback.cli.command;

import dev.kullback.Backend;
import dev.kullback.Divergence;
import dev.kullback.KlEngine;
import dev.kullback.ScaleKind;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** The options of an engine of KL; {@link WithDivergence} has that of other divergences, too. */
sealed class EngineOptions {
  @Option(
      names = "--backend",
      paramLabel = "NAME",
      defaultValue = "AUTO",
      description = "auto, vector, scalar or cuda; default: auto.")
  Backend backend;

  @Mixin final ThreadOptions threadOptions = new ThreadOptions();

  @Spec(Spec.Target.MIXEE)
  CommandSpec spec;

  /** All names of divergences, and what they are in. */
  static final String NAMES =
      "kl, reverse-kl, jeffreys, bhattacharyya, hellinger, wasserstein-2, squared-wasserstein-2, renyi:ALPHA or"
          + " chernoff:ALPHA";

  static final String UNITS = "All but hellinger and those of Wasserstein are in nats.";

  /** The options of an engine of any divergence. */
  static final class WithDivergence extends EngineOptions {
    @Option(
        names = "--divergence",
        paramLabel = "NAME",
        defaultValue = "kl",
        converter = Name.class,
        description = NAMES + " in place of KL; default: kl. " + UNITS)
    Divergence divergence;

    @Override
    Divergence divergence() {
      return divergence;
    }
  }

  static final class Name implements ITypeConverter<Divergence> {
    @Override
    public Divergence convert(String text) {
      try {
        return Divergence.of(text);
      } catch (IllegalArgumentException e) {
        throw new TypeConversionException(String.valueOf(e.getMessage()));
      }
    }
  }

  Divergence divergence() {
    return Divergence.KL;
  }

  /**
   * Returns what may make infinite values finite. Above 1, an order of Rényi's has infinite values where q's variances are large beside p's,
   * which a clamp hardly changes.
   *
   * @param clamp what may where the divergence is another
   */
  String remedy(String clamp) {
    return divergence().alpha().orElse(0) > 1 ? "an order nearer to 1" : clamp;
  }

  /** Throws where covariances are of low rank that the engine does not take. */
  void checkLowRank(BatchOptions.Files q, List<BatchOptions.Files> p) {
    Stream.concat(Stream.of(q), p.stream())
        .forEach(files -> {
          if (q.arePoints()) {
            files.refuseLowRank("a density of points", ScaleKind.COVARIANCE, "");
          } else if (!divergence().takesLowRank()) {
            files.refuseLowRank(
                divergence().name(), ScaleKind.COVARIANCE, ", or take kl, reverse-kl or jeffreys");
          } else if (backend == Backend.CUDA) {
            files.refuseLowRank(
                "--backend cuda", ScaleKind.COVARIANCE, ", or take another backend");
          }
        });
  }

  /** Returns the divergence of q and p as summaries write it. */
  String formula(String q, String p) {
    return formula(divergence(), q, p);
  }

  /** Returns a divergence of q and p as summaries write it. */
  static String formula(Divergence divergence, String q, String p) {
    if (divergence.equals(Divergence.KL)) {
      return "KL(%s||%s)".formatted(q, p);
    }
    return divergence.equals(Divergence.REVERSE_KL)
        ? "KL(%s||%s)".formatted(p, q)
        : "%s(%s, %s)".formatted(divergence.name(), q, p);
  }

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

  /** Reports the backend, the threads and the divergence. */
  void describe(Report report, KlEngine engine) {
    report.put("backend", name(engine.backend())).put("threads", engine.threads());
    report.put("divergence", engine.divergence().name());
  }

  /** Throws as {@link KlEngine.Builder#build()} does where the backend cannot run. */
  KlEngine engine(Backend backend) {
    return KlEngine.builder().backend(backend).threads(threads()).divergence(divergence()).build();
  }

  int threads() {
    return threadOptions.threads();
  }

  /** Returns the name of a backend as texts write it. */
  static String name(Backend backend) {
    return backend.name().toLowerCase(Locale.ROOT);
  }
}
