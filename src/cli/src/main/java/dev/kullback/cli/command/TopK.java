package dev.kullback.cli.command;

import static java.util.Objects.requireNonNull;
import static java.util.Objects.requireNonNullElse;

import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.batch.References;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.batch.Shard;
import dev.kullback.cli.output.NeighborOutput;
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
      "kullback topk -k K --points X.npy [--log-density] --p-mean P.npy --p-std T.npy",
      "                     --indices I.npy -o V.npy [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --exclude-self --indices I.npy -o V.npy",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --reverse-divergence --indices I.npy -o V.npy",
      "  kullback topk -k 10 --mean Q.npy --std S.npy --shard 2/8 --p-mean P-*.npy --p-std T-*.npy"
          + " --indices I2.npy -o V2.npy",
    })
final class TopK extends PairCommand {
  private final PointOptions points;

  TopK() {
    this(new BatchOptions.QOrPoints(), new EngineOptions.WithDivergence());
  }

  private TopK(BatchOptions.QOrPoints rows, EngineOptions engineOptions) {
    super(rows, new PolicyOptions.WithDeterministic(), engineOptions);
    points = new PointOptions(rows);
  }

  @Option(
      names = "-k",
      order = FIRST,
      paramLabel = "K",
      required = true,
      description =
          "The number of values of each row, at most the rows of p; with --exclude-self one less.")
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

  @Option(names = "--reverse-divergence", order = FIRST, description = "By KL(p_j || q_i) instead.")
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
      description =
          "Take only the i-th of n parts of the rows of q, i from 1; no other rows are read.")
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
    points.check(reverse, engineOptions);
    if (points.areByDensity() && (exact || pFirst != null || files.size() > 1)) {
      throw new UserError(
          "--log-density ranks by rounded values: leave out --exact, --p-first and further files of p");
    }
    if (pFirst != null && pFirst < 0) {
      throw new UserError("--p-first is " + pFirst + ": give the index of p's first row, from 0");
    }
    if (pFirst != null && files.isEmpty()) {
      throw new UserError(
          "--p-first tells which part of a whole p is: give --p-mean and its scale");
    }
    if (policyOptions.policy(engineOptions.divergence()) == ScalePolicy.DETERMINISTIC_IF_ZERO
        && (pFirst != null || files.size() > 1 || !shard.isWhole())) {
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
        References.of(same ? List.of(inputs.q()) : inputs.p(), requireNonNullElse(pFirst, 0));
    check(inputs.q().mean(), rows, p);
    Batch all = same || shard.isWhole() ? inputs.loadQ() : null;
    Batch q =
        all == null
            ? Batch.load(inputs.q(), inputs.policy(), shard, inputs.arena())
            : shard.isWhole() ? all : all.part(shard);
    describe(report, engine, q, p.size());
    points.describe(report);
    report.start();
    NeighborOutput out;
    try (Progress progress = progress((long) q.size() * p.files().size())) {
      out =
          search(
              engine,
              new Search(q, same ? all : null, p, progress),
              values,
              requireNonNull(columns));
    }
    String what =
        "smallest %s%s: %d x %d of %d"
            .formatted(
                points.formula(reverse, engineOptions.divergence(), "p_j"),
                excludeSelf ? ", j != i" : "",
                q.size(),
                k,
                p.size());
    report.put("k", k).put("exclude_self", excludeSelf).put("reverse", reverse);
    report.put("exact", exact).put("shard", shard).put("first_row", q.first());
    report.put("p_first", p.first()[0]);
    out.describe(report, what, q.dimension());
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

  /** Returns how many a list must have: of k + 1, k are left without the row's own. Exact searches leave it out themselves. */
  private int wanted() {
    return excludeSelf && !exact ? k + 1 : k;
  }

  /** The rows of q and the files of p; {@code all} is the batch of p's only file where q is of that file, too. */
  private record Search(Batch q, @Nullable Batch all, References p, Progress progress) {}

  /** Searches the files of p, one after the other, each among all rows of q. */
  private NeighborOutput search(
      KlEngine engine, Search search, OutputFile values, OutputFile columns) {
    Map<Integer, Neighbors> lists = new HashMap<>();
    Batch q = search.q();
    References p = search.p();
    int blockRows = 0;
    for (int f = 0; ; f++) {
      try (Arena arena = Arena.ofShared()) {
        Batch part = search.all() != null ? search.all() : q.columns(p.files().get(f), arena);
        if (f == 0) {
          blockRows = RowBlocks.ofReduction(q, part, engineOptions.threads(), wanted());
        }
        ValueLayout element = exact ? ValueLayout.JAVA_DOUBLE : Batch.element(q, part);
        boolean last = f == p.files().size() - 1;
        NeighborOutput out =
            last ? new NeighborOutput(values, columns, q.size(), k, element) : null;
        RowBlocks blocks = new RowBlocks(q, part, blockRows, search.progress());
        search(engine, blocks, p.first()[f], lists, out);
        if (out != null) {
          return out;
        }
      }
    }
  }

  /**
   * Searches a file of p, whose first row has index {@code first}.
   *
   * @param lists the neighbors of each block of rows in the files before; this file's are added
   * @param out takes them instead, if this is the last file
   */
  void search(
      KlEngine engine,
      RowBlocks blocks,
      int first,
      Map<Integer, Neighbors> lists,
      @Nullable NeighborOutput out) {
    blocks.forEach((row, rows, p) -> {
      int own = blocks.q().first() + row;
      Neighbors found = engine.search(rows, p, query(own, first, lists.remove(row)));
      if (out == null) {
        lists.put(row, found);
      } else if (excludeSelf && !exact) {
        out.addOthers(found, own);
      } else {
        out.add(found);
      }
    });
  }

  private Query query(int own, int first, @Nullable Neighbors earlier) {
    Query query = points.nearest(wanted());
    query = reverse ? query.reverse() : query;
    if (!exact) {
      return query;
    }
    query = excludeSelf ? query.exact().excludeSelf(own) : query.exact();
    return earlier == null ? query.offset(first) : query.resumeAfter(earlier, first);
  }
}
