package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.cli.batch.Batch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import picocli.CommandLine.Command;

@Command(
    name = "standard",
    description = {
      "Writes KL(q_i || N(0,I)), [N].",
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
    })
final class Standard extends RowCommand {
  @Override
  Rows compute(KlEngine engine, Batch q, Arena arena) {
    MemorySegment out = arena.allocate(Batch.element(q, q), q.size());
    return new Rows(
        engineOptions.formula("q_i", "N(0,I)"), 0, engine.toStandardNormal(q.gaussians(), out));
  }
}
