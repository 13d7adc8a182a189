package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.batch.Weights;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Terminal;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "logsumexp",
    description = "Writes ln sum_j exp(w_j - KL(q_i || p_j)), [N].",
    customSynopsis = {
      "kullback logsumexp --mean Q.npy --std S.npy [--p-mean P.npy --p-std T.npy]",
      "                          [--log-weights W.npy] -o OUT.npy [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Example:",
      "  kullback logsumexp --mean Q.npy --std S.npy --p-mean P.npy --p-std T.npy -o L.npy",
    })
final class LogSumExp extends RowCommand {
  @Mixin BatchOptions.P pOptions;

  @Option(
      names = "--log-weights",
      paramLabel = "W.npy",
      description = "w, [M], the logarithms of p's weights, -inf for none; default: 0.")
  @Nullable Path logWeights;

  @Override
  List<BatchOptions.Files> pFiles() {
    return pOptions.only();
  }

  @Override
  @Nullable Path weights() {
    return logWeights;
  }

  @Override
  boolean takesStandardStreams() {
    return false;
  }

  @Override
  Rows compute(KlEngine engine, Batch q, Arena arena) {
    Batch p = q.columns(pFiles(), arena);
    double @Nullable [] weights =
        logWeights == null ? null : Weights.read(logWeights, true, p).given();
    try (Progress progress = Terminal.of(spec).progress(q.size())) {
      int blockRows = RowBlocks.ofReduction(q, p, engineOptions.threads(), 1);
      String formula =
          "ln sum_j exp(%s%s)"
              .formatted(weights == null ? "-" : "w_j - ", engineOptions.formula("q_i", "p_j"));
      return new Rows(
          formula,
          p.size(),
          0,
          p == q ? null : p,
          compute(engine, new RowBlocks(q, p, blockRows, progress), weights, arena));
    }
  }

  static MemorySegment compute(
      KlEngine engine, RowBlocks blocks, double @Nullable [] weights, Arena arena) {
    ValueLayout element = Batch.element(blocks.q(), blocks.p());
    MemorySegment all = arena.allocate(element, blocks.q().size());
    double[] sums = new double[blocks.rows()];
    blocks.forEach((first, rows, p) -> {
      if (weights == null) {
        engine.logSumExp(rows, p, sums);
      } else {
        engine.weightedLogSumExp(rows, p, weights, sums);
      }
      for (int i = 0; i < rows.size(); i++) {
        if (element instanceof ValueLayout.OfFloat f) {
          all.setAtIndex(f, first + i, (float) sums[i]);
        } else {
          all.setAtIndex(ValueLayout.JAVA_DOUBLE, first + i, sums[i]);
        }
      }
    });
    return all;
  }
}
