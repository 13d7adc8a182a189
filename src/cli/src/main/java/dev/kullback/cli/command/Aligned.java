package dev.kullback.cli.command;

import dev.kullback.Gaussians;
import dev.kullback.InvalidGaussianException;
import dev.kullback.KlEngine;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

@Command(
    name = "aligned",
    description = {
      "Writes KL(q_i || p_i), [N], or with --per-channel [N,C].",
      "One of the inputs may be -, standard input. With -o - the result goes to standard output, and the summary to"
          + " stderr.",
    },
    customSynopsis =
        "kullback aligned --mean Q.npy --std S.npy --p-mean P.npy --p-std T.npy -o OUT.npy [...]",
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback aligned --mean Q.npy --std S.npy --p-mean P.npy --p-variance V.npy -o kl.npy",
      "  kullback aligned --mean Q.npy --cov C.npy --p-mean P.npy --p-cov D.npy -o - | program",
    })
final class Aligned extends RowCommand {
  @Mixin BatchOptions.P pOptions;
  @Mixin Channels channels;

  @Override
  List<BatchOptions.Files> pFiles() {
    List<BatchOptions.Files> files = pOptions.only();
    if (files.isEmpty()) {
      throw new UserError(
          "aligned needs p: give --p-mean and a scale of p; without them every KL(q_i||q_i) is 0");
    }
    return files;
  }

  @Override
  Rows compute(KlEngine engine, Batch q, Arena arena) {
    Batch p = q.columns(pFiles(), arena);
    if (p.size() != q.size()) {
      throw new UserError(
          p.files().mean(),
          "has %d rows, but %s has %d: aligned pairs row with row"
              .formatted(p.size(), q.files().mean(), q.size()));
    }
    int count = channels.count(q, p);
    try {
      Gaussians left = channels.gaussians(q, p, arena);
      Gaussians right = channels.gaussians(p, q, arena);
      MemorySegment out = arena.allocate(Batch.element(q, p), left.size());
      return new Rows(
          engineOptions.formula("q_i", "p_i"), 0, count, p, engine.aligned(left, right, out));
    } catch (InvalidGaussianException e) {
      throw Batch.error(e, q, 0, p);
    }
  }
}
