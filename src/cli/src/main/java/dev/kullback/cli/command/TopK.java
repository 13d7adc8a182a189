package dev.kullback.cli.command;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.NearestOptions;
import dev.kullback.Neighbors;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.References;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.batch.Shard;
import dev.kullback.cli.neighbors.NeighborOutput;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
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
      "p may be in several files, as in --p-mean P1.npy P2.npy --p-std T1.npy T2.npy: its rows count on from one to the"
          + " next, and one file at a time is in memory.",
    },
    customSynopsis = {
      "kullback topk -k K --mean Q.npy --std S.npy [--p-mean P.npy... --p-std T.npy...]",
      "                     --indices I.npy -o V.npy [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --exclude-self --indices I.npy -o V.npy",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --p-mean P.npy --p-std T.npy --reverse"
          + " --indices I.npy -o V.npy",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --shard 2/8 --p-mean P-*.npy --p-std T-*.npy"
          + " --indices I2.npy -o V2.npy",
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

  @Option(
      names = "--exact",
      order = FIRST,
      description =
          "Values as float64 that depend on the two Gaussians alone, for merge. With several files of p always.")
  boolean exact;

  @Option(
      names = "--shard",
      order = FIRST,
      paramLabel = "i/n",
      converter = Shard.Converter.class,
      description = "Only the i-th, from 1, of n parts of the rows of q, which are read alone.")
  Shard shard = Shard.WHOLE;

  @Option(
      names = "--p-first",
      order = FIRST,
      paramLabel = "J",
      description =
          "p is a part of a whole, in which its first row has index J, from 0. Implies --exact. Where p has fewer than K"
              + " rows, index -1 stands for none.")
  @Nullable Integer pFirst;

  @Override
  Map.Entry<String, Path> secondOutput() {
    return Map.entry("indices", indices);
  }

  @Override
  List<BatchOptions.Files> pFiles() {
    List<BatchOptions.Files> files = pOptions.files();
    if (pFirst != null && pFirst < 0) {
      throw new UserError("--p-first is " + pFirst + ": give the index of p's first row, from 0");
    }
    if (pFirst != null && files.isEmpty()) {
      throw new UserError(
          "--p-first tells which part of a whole p is: give --p-mean and its scale");
    }
    if (policyOptions.deterministic && (pFirst != null || files.size() > 1 || !shard.isWhole())) {
      throw new UserError(
          "--deterministic looks at a whole batch: leave out --shard, --p-first and further files of p");
    }
    return files;
  }

  @Override
  void run(
      KlEngine engine,
      Inputs inputs,
      OutputFile values,
      @Nullable OutputFile columns,
      Report report) {
    exact |= pFirst != null || inputs.p().size() > 1;
    int rows = Batch.rows(inputs.q());
    shard.requireRows(rows, inputs.q().mean());
    boolean same = inputs.p().isEmpty();
    References p =
        References.of(
            same ? List.of(inputs.q()) : inputs.p(), Objects.requireNonNullElse(pFirst, 0));
    check(inputs.q().mean(), rows, p);
    Batch all = same || shard.isWhole() ? inputs.loadQ() : null;
    Batch q =
        all == null
            ? Batch.load(inputs.q(), inputs.policy(), shard, inputs.arena())
            : shard.isWhole() ? all : all.part(shard);
    describe(report, engine, q, p.size());
    long start = System.nanoTime();
    NeighborOutput out;
    try (Progress progress = progress((long) q.size() * p.files().size())) {
      out =
          search(
              engine, q, same ? all : null, p, values, Objects.requireNonNull(columns), progress);
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
    report.put("exact", exact).put("shard", shard).put("first_row", q.first());
    report.put("p_first", p.first()[0]);
    out.describe(report, what, seconds);
  }

  private void check(Path qFile, int qRows, References p) {
    Path file = p.last();
    if (excludeSelf && (pFirst == null ? p.size() != qRows : p.end() > qRows)) {
      throw new UserError(
          file,
          "%s %d rows, but %s has %d: --exclude-self pairs row with row"
              .formatted(
                  pFirst != null ? "ends after" : p.files().size() > 1 ? "is the last of" : "has",
                  p.end(),
                  qFile,
                  qRows));
    }
    if (pFirst != null) {
      if (k < 1) {
        throw new UserError("-k is " + k + ": give at least 1");
      }
      return; // other parts may have more
    }
    int most = excludeSelf ? p.size() - 1 : p.size();
    if (most == 0) {
      throw new UserError(file, "has one row: --exclude-self leaves none");
    }
    if (k < 1 || k > most) {
      throw new UserError(
          "-k is %d: give 1 to %d, the rows of %s%s%s"
              .formatted(
                  k,
                  most,
                  file,
                  p.files().size() > 1 ? " and the files before it" : "",
                  excludeSelf ? " but a row's own" : ""));
    }
  }

  /** A row's k + 1 without its own, or else the last, are the k of the others; exact lists are without it. */
  private int wanted() {
    return excludeSelf && !exact ? k + 1 : k;
  }

  /** Goes through the files of p, each among all rows of q; {@code all} is the only one's batch where q is of it, too. */
  private NeighborOutput search(
      KlEngine engine,
      Batch q,
      @Nullable Batch all,
      References p,
      OutputFile values,
      OutputFile columns,
      Progress progress) {
    Map<Integer, Neighbors> lists = new HashMap<>();
    int blockRows = 0;
    for (int f = 0; ; f++) {
      try (Arena arena = Arena.ofShared()) {
        Batch part = all != null ? all : q.columns(p.files().get(f), arena);
        if (f == 0) {
          blockRows = RowBlocks.ofReduction(q, part, engineOptions.threads, wanted());
        }
        RowBlocks blocks = new RowBlocks(q, part, blockRows, progress);
        if (f == p.files().size() - 1) {
          ValueLayout element = exact ? ValueLayout.JAVA_DOUBLE : Batch.element(q, part);
          NeighborOutput out = new NeighborOutput(values, columns, q.size(), k, element);
          search(engine, blocks, p.first()[f], lists, out);
          return out;
        }
        search(engine, blocks, p.first()[f], lists, null);
      }
    }
  }

  /**
   * Searches a file of p, whose first row has index {@code first}.
   *
   * @param lists of each block of rows the neighbors in the files before, and then in this one, too
   * @param out where they go instead if this is the last
   */
  void search(
      KlEngine engine,
      RowBlocks blocks,
      int first,
      Map<Integer, Neighbors> lists,
      @Nullable NeighborOutput out) {
    blocks.forEach((row, rows, p) -> {
      int own = blocks.q().first() + row;
      Neighbors found = find(engine, rows, p, own, first, lists.remove(row));
      if (out == null) {
        lists.put(row, found);
      } else if (excludeSelf && !exact) {
        out.addOthers(found, own);
      } else {
        out.add(found);
      }
    });
  }

  private Neighbors find(
      KlEngine engine,
      Gaussians rows,
      Gaussians p,
      int own,
      int first,
      @Nullable Neighbors earlier) {
    if (!exact) {
      return reverse ? engine.nearestReverse(rows, p, wanted()) : engine.nearest(rows, p, wanted());
    }
    NearestOptions options = NearestOptions.of(k).exact();
    options = reverse ? options.reverse() : options;
    options = excludeSelf ? options.others(own) : options;
    return engine.nearest(
        rows, p, earlier == null ? options.from(first) : options.after(earlier, first));
  }
}
