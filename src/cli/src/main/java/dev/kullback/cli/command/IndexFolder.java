package dev.kullback.cli.command;

import static java.util.Objects.requireNonNull;

import dev.kullback.Divergence;
import dev.kullback.IndexLockedException;
import dev.kullback.KlIndex;
import dev.kullback.ScaleKind;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.output.OutputFailure;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Supplier;
import picocli.CommandLine.Parameters;

/** The folder of an index, and what becomes of its errors. */
final class IndexFolder {
  @Parameters(paramLabel = "FOLDER", description = "The folder of the index.")
  Path path;

  /** Opens the index to change it. */
  KlIndex open() {
    requireFolder();
    return read(() -> KlIndex.open(path));
  }

  /** Opens the index to read it, whoever else has it open. */
  KlIndex openReadOnly() {
    requireFolder();
    return read(() -> KlIndex.openReadOnly(path));
  }

  private void requireFolder() {
    if (Files.notExists(path) && !Files.isSymbolicLink(path)) {
      throw new UserError(path, "no such folder: index create makes an index");
    }
  }

  /** Opens the index, to search it with threads. */
  KlIndex openReadOnly(int threads) {
    return read(() -> KlIndex.builder().threads(threads).openReadOnly(path));
  }

  /** Opens the index of a folder, or makes one. */
  KlIndex create(Path place, int dimension, boolean isFull, Divergence divergence) {
    KlIndex.Builder builder = KlIndex.builder(dimension).divergence(divergence);
    KlIndex index = read(() -> (isFull ? builder.fullCovariances() : builder).open(place));
    if (index.hasFullCovariances() != isFull) {
      index.close();
      throw new UserError(
          place, "is an index of full covariances, not of diagonal Gaussians: name another folder");
    }
    return index;
  }

  /** Reads the folder; what cannot be read is bad input. */
  <T> T read(Supplier<T> work) {
    try {
      return work.get();
    } catch (IndexLockedException e) {
      throw new UserError(
          requireNonNull(e.getCause()).getMessage()
              + "; index query, index info and index export read its last commit meanwhile");
    } catch (UncheckedIOException e) {
      throw new UserError(message(e));
    }
  }

  /** Commits what was changed, and closes nothing. */
  void commit(KlIndex index) {
    write(index::commit);
  }

  /** Writes to the folder; what cannot be written is an output that fails. */
  void write(Runnable work) {
    try {
      work.run();
    } catch (UncheckedIOException e) {
      throw new OutputFailure(message(e), e);
    }
  }

  /** Throws if a file is not what a commit wrote. */
  void check(KlIndex index) {
    read(() -> {
      index.verify();
      return index;
    });
  }

  private String message(UncheckedIOException e) {
    return String.valueOf(e.getMessage());
  }

  /** Throws unless a batch can be added to the index. */
  void requireFit(KlIndex index, BatchOptions.Files files, Layout layout) {
    requireQueries(index, files, layout);
    if (index.hasFullCovariances() && !layout.kind().isFull()) {
      throw new UserError(
          files.scale(),
          "has no matrices, but the index in %s has full covariances: give their %s or %s"
              .formatted(
                  path, files.option(ScaleKind.COVARIANCE), files.option(ScaleKind.SCALE_TRIL)));
    }
  }

  /** Throws unless the index can be searched for a batch. */
  void requireQueries(KlIndex index, BatchOptions.Files files, Layout layout) {
    files.refuseLowRank("an index", ScaleKind.COVARIANCE, "");
    if (layout.dimension() != index.dimension()) {
      throw new UserError(
          files.mean(),
          "has dimension %d, but the index in %s has %d"
              .formatted(layout.dimension(), path, index.dimension()));
    }
    Divergence divergence = index.divergence();
    if (files.arePoints() && divergence.takesSingular()) {
      throw new UserError(
          path,
          "ranks by %s, of Gaussians that may have std 0, where there is no density: points need an index of another divergence, or topk and within"
              .formatted(divergence.name()));
    }
    if (layout.kind().isFull() && !index.hasFullCovariances()) {
      throw new UserError(
          files.scale(),
          "has matrices, but the index in %s has diagonal Gaussians: give their %s"
              .formatted(path, files.option(ScaleKind.VARIANCE)));
    }
  }

  /** Reports what the index holds. */
  void describe(Report report, KlIndex index) {
    report.put("folder", path).put("dimension", index.dimension()).put("size", index.size());
    report.put("divergence", index.divergence().name());
    report.put("full_covariances", index.hasFullCovariances());
  }
}
