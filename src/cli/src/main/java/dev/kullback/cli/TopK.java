package dev.kullback.cli;

import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

@Command(
    name = "topk",
    description = {
      "Writes the K smallest KL(q_i || p_j) of each row i, [N,K].",
      "Ascending, ties to the lower j: the values to -o, their columns j to --indices.",
    },
    customSynopsis = {
      "kullback topk -k K --mean Q.npy --std S.npy [--p-mean P.npy --p-std T.npy]",
      "                     --indices I.npy -o V.npy [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --exclude-self --indices I.npy -o V.npy",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --p-mean P.npy --p-std T.npy --reverse"
          + " --indices I.npy -o V.npy",
    })
final class TopK extends PairCommand {
  @Option(
      names = "-k",
      order = FIRST,
      paramLabel = "K",
      required = true,
      description = "How many, at most the rows of p; with --exclude-self one less.")
  int k;

  @Option(
      names = "--indices",
      order = FIRST,
      paramLabel = "I.npy",
      required = true,
      description = "Where the columns go, int32.")
  Path indices;

  @Option(
      names = "--exclude-self",
      order = FIRST,
      description = "Leave out j = i; p must have as many rows as q.")
  boolean excludeSelf;

  @Option(names = "--reverse", order = FIRST, description = "By KL(p_j || q_i) instead.")
  boolean reverse;

  @Override
  Map.Entry<String, Path> secondOutput() {
    return Map.entry("indices", indices);
  }

  @Override
  void run(
      KlEngine engine,
      Batch q,
      Batch p,
      OutputFile values,
      @Nullable OutputFile columns,
      Report report) {
    check(q, p);
    int blockRows = RowBlocks.ofReduction(q, p, engineOptions.threads, wanted());
    long start = System.nanoTime();
    Stats stats;
    try (Progress progress = progress(q)) {
      RowBlocks blocks = new RowBlocks(q, p, blockRows, progress);
      stats = compute(engine, blocks, values, Objects.requireNonNull(columns));
    }
    double seconds = (System.nanoTime() - start) * 1e-9;
    String what =
        "smallest %s%s: %d x %d"
            .formatted(
                reverse ? "KL(p_j||q_i)" : "KL(q_i||p_j)",
                excludeSelf ? ", j != i" : "",
                q.size(),
                k);
    report.put("k", k).put("exclude_self", excludeSelf).put("reverse", reverse);
    stats.describe(report, what, Batch.element(q, p).byteSize() == 8, seconds);
  }

  private void check(Batch q, Batch p) {
    Path file = p.files().mean();
    if (excludeSelf && p.size() != q.size()) {
      throw new UserError(
          file,
          "has %d rows, but %s has %d: --exclude-self pairs row with row"
              .formatted(p.size(), q.files().mean(), q.size()));
    }
    int most = excludeSelf ? p.size() - 1 : p.size();
    if (most == 0) {
      throw new UserError(file, "has one row: --exclude-self leaves none");
    }
    if (k < 1 || k > most) {
      throw new UserError(
          "-k is %d: give 1 to %d, the rows of %s%s"
              .formatted(k, most, file, excludeSelf ? " but a row's own" : ""));
    }
  }

  /** A row's k + 1 without its own, or else the last, are the k of the others. */
  private int wanted() {
    return excludeSelf ? k + 1 : k;
  }

  Stats compute(KlEngine engine, RowBlocks blocks, OutputFile values, OutputFile columns) {
    int n = blocks.q().size();
    ValueLayout element = Batch.element(blocks.q(), blocks.p());
    values.requireSpace(Pairwise.bytes(n, k, element));
    columns.requireSpace(Pairwise.bytes(n, k, ValueLayout.JAVA_INT));
    values.write(Npy.header(element, n, k));
    columns.write(Npy.header(ValueLayout.JAVA_INT, n, k));

    int wanted = wanted();
    Stats stats = new Stats();
    blocks.forEach((first, rows, p) -> {
      Neighbors found =
          reverse ? engine.nearestReverse(rows, p, wanted) : engine.nearest(rows, p, wanted);
      for (int i = 0; i < rows.size(); i++) {
        for (int r = 0, left = k; left > 0; r++) {
          if (!excludeSelf || found.index(i, r) != first + i) {
            columns.putInt(found.index(i, r));
            stats.add(values.put(found.value(i, r), element.byteSize() == 8));
            left--;
          }
        }
      }
    });
    return stats;
  }
}
