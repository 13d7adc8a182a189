package dev.kullback.cli.command;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.cli.batch.Batch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

@Command(
    name = "standard",
    description = {
      "Writes KL(q_i || N(0,I)), [N], or with --per-channel [N,C].",
      "One of the inputs may be -, standard input. With -o - the result goes to standard output, and the summary to"
          + " stderr.",
    },
    customSynopsis = "kullback standard --mean Q.npy --std S.npy -o OUT.npy [...]",
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback standard --mean Q.npy --std S.npy -o kl.npy",
      "  kullback standard --mean Q.npy --log-variance L.npy -o - | program",
      "  kullback standard --moments E.npy --clamp --per-channel -o kl.npy",
    })
final class Standard extends RowCommand {
  @Mixin Channels channels;

  @Override
  Rows compute(KlEngine engine, Batch q, Arena arena) {
    int count = channels.count(q, q);
    Gaussians gaussians = channels.gaussians(q, q, arena);
    MemorySegment out = arena.allocate(Batch.element(q, q), gaussians.size());
    return new Rows(
        engineOptions.formula("q_i", "N(0,I)"),
        0,
        count,
        null,
        engine.toStandardNormal(gaussians, out));
  }
}
