package dev.kullback.cli.command;

import dev.kullback.IndexNeighbors;
import dev.kullback.IndexStats;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Ids;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.output.NeighborOutput;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.OutputFiles;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.output.ProofOutput;
import dev.kullback.cli.output.SparseOutput;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "query",
    description = {
      "Searches an index for the Gaussians that are nearest to each q_i, or to each point.",
      "With -k the K smallest KL(q_i || p), ascending, ties to the lower id: the values to -o, [N,K], the ids to --indices."
          + " Where those left out leave fewer, id -1 and value inf stand for none.",
      "With --radius all KL(q_i || p) <= R, by row, then id: the values to -o, [P], and their (i, id) to --indices,"
          + " [P,2]; or both to an -o that ends in .npz, as a CSR matrix for scipy.sparse.load_npz.",
      "With --timeout or --approximate a row may lack some. Its values are exact all the same, and --proven tells how near"
          + " the others can be.",
    },
    customSynopsis = {
      "kullback index query FOLDER -k K --mean Q.npy --std S.npy --indices I.npy -o V.npy [...]",
      "       kullback index query FOLDER --radius R --mean Q.npy --std S.npy",
      "                            (--indices I.npy -o V.npy | -o OUT.npz) [...]",
      "       kullback index query FOLDER (-k K | --radius R) --points X.npy [--log-density]",
      "                            (--indices I.npy -o V.npy | -o OUT.npz) [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback index query FOLDER -k 10 --mean Q.npy --std S.npy --indices I.npy -o V.npy",
      "  kullback index query FOLDER --radius 0.5 --mean Q.npy --std S.npy --exclude 7 -o near.npz",
      "  kullback index query FOLDER -k 10 --mean Q.npy --std S.npy --indices I.npy -o V.npy --timeout 0.5 --proven P.npy",
      "  kullback index query FOLDER --radius 9.21 --points X.npy -o gated.npz",
    })
final class IndexSearch implements Callable<Integer> {
  /** Terms (i, p, h) from which on a block of queries is worth a report. */
  private static final long BLOCK_TERMS = 1 << 30;

  /** The size of an entry of a result: an id and a double. */
  private static final int ENTRY_BYTES = Long.BYTES + Double.BYTES;

  @Mixin IndexFolder folder;

  @Option(
      names = "-k",
      order = PairCommand.FIRST,
      paramLabel = "K",
      description = "The number of values of each row, at most the Gaussians of the index.")
  @Nullable Integer k;

  @Option(
      names = "--radius",
      order = PairCommand.FIRST,
      paramLabel = "R",
      converter = Within.Bound.class,
      description =
          "Or all within this, >= 0, with --log-density any, in the unit of the values; inf for all.")
  @Nullable Double radius;

  @Option(
      names = "--indices",
      order = PairCommand.FIRST,
      paramLabel = "I.npy",
      description = "Where the ids go, int64; not with an .npz file.")
  @Nullable Path indices;

  @Option(
      names = "--reverse-divergence",
      order = PairCommand.FIRST,
      description = "By KL(p || q_i) instead, or what the index ranks by of p and q_i.")
  boolean reverse;

  @Option(
      names = "--exclude",
      order = PairCommand.FIRST,
      paramLabel = "ID",
      split = ",",
      description = "Leave out this id, or several: --exclude 3,7.")
  List<Long> excluded = List.of();

  @Option(
      names = "--exclude-ids",
      order = PairCommand.FIRST,
      paramLabel = "J.npy",
      description =
          "Leave out of each row an id of its own, [N], such as that under which q_i is in the index.")
  @Nullable Path excludedByRow;

  @Option(
      names = "--timeout",
      order = PairCommand.FIRST,
      paramLabel = "S",
      description =
          "Stop searching after S seconds, and write what was found. A new process searches slowly at first: allow it some seconds.")
  @Nullable Double timeout;

  @Option(
      names = "--approximate",
      order = PairCommand.FIRST,
      paramLabel = "SHARE",
      description =
          "Compute the divergences of this share of the Gaussians at most, > 0 and <= 1, and of some K more in each row.")
  @Nullable Double share;

  @Option(
      names = "--proven",
      order = PairCommand.FIRST,
      paramLabel = "P.npy",
      description =
          "Of each row, 1 if it is complete and else 0, and the number below which no other Gaussian's divergence is, float64, [N,2].")
  @Nullable Path proven;

  @Mixin BatchOptions.QOrPoints q;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT.npy",
      required = true,
      description =
          "The values, float64: KL in nats, or what the index ranks by; of points squared Mahalanobis distances, or negative log-densities.")
  Path output;

  @Mixin OutputOptions outputOptions;
  @Mixin PolicyOptions policyOptions;
  @Mixin ThreadOptions threadOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    Report report = new Report(spec);
    BatchOptions.Files files = q.files();
    PointOptions points = new PointOptions(q);
    points.check(reverse);
    if (radius != null) {
      points.checkRadius(radius);
    }
    report.remedy(policyOptions.remedy(files, List.of()));
    boolean npz = isArchive();
    Map<String, Path> outputs = new LinkedHashMap<>();
    outputs.put("output", output);
    if (indices != null) {
      outputs.put("indices", indices);
    }
    if (proven != null) {
      outputs.put("proven", proven);
    }
    List<Path> inputs = new ArrayList<>(BatchOptions.inputs(files, List.of()));
    Stream.ofNullable(excludedByRow).forEach(inputs::add);
    Input.limitStdin(0, inputs);
    check(outputs, npz, inputs);
    try (KlIndex index = open(files);
        Arena arena = Arena.ofShared();
        OutputFiles out = outputOptions.open(outputs.values())) {
      OutputFile values = out.get(0);
      OutputFile ids = indices == null ? null : out.second();
      Batch queries =
          Batch.loadOrNone(
              files, policyOptions.policy(files, List.of(), index.divergence()), arena);
      long[] own = excludedByRow == null ? null : own(excludedByRow, queries);
      folder.describe(report, index);
      report
          .put("rows", queries.size())
          .put("threads", threadOptions.threads())
          .put("reverse", reverse);
      queries.describe(report, "q");
      report.start();
      OutputFile proofs = proven == null ? null : out.get(out.size() - 1);
      points.describe(report);
      Search search =
          new Search(index, queries, points, own, new ProofOutput(proofs, queries.size()));
      if (k != null && ids != null) {
        nearest(search, k, values, ids, report);
      } else if (radius != null) {
        within(search, radius, values, ids, report);
      }
      search.proof().describe(report);
      IndexStats stats = index.stats();
      report.put("survivors", stats.survivors()).put("bytes_read", stats.bytesRead());
      out.commit();
      report.wrote(outputs);
      report.end();
      return 0;
    }
  }

  private static long[] own(Path file, Batch queries) {
    return Ids.read(file).requireRows(queries.size(), queries.files().mean()).values();
  }

  /** Checks which options are given; returns whether the output is an archive. */
  private boolean isArchive() {
    if ((k == null) == (radius == null)) {
      throw new UserError("give -k or --radius" + (k == null ? "" : ", not both"));
    }
    if (k != null && k < 1) {
      throw new UserError("-k is " + k + ": give at least 1");
    }
    if (timeout != null && !(timeout > 0)) {
      throw new UserError("--timeout is %s: give seconds, more than 0".formatted(timeout));
    }
    if (share != null && !(share > 0 && share <= 1)) {
      throw new UserError(
          "--approximate is %s: give a share of the Gaussians, more than 0 and at most 1"
              .formatted(share));
    }
    boolean npz = radius != null && Input.suffix(output).equals("npz");
    if (npz && indices != null) {
      throw new UserError(output, "holds the ids, too: leave out --indices");
    }
    if (!npz && indices == null) {
      throw new UserError(
          output,
          "give --indices I.npy, too" + (radius == null ? "" : ", or -o a name ending in .npz"));
    }
    return npz;
  }

  /** Checks the names of outputs; none may be in the index's folder. */
  private void check(Map<String, Path> outputs, boolean npz, List<Path> inputs) {
    for (Path name : outputs.values()) {
      Outputs.check(name, npz && name.equals(output) ? "npz" : "npy", inputs);
      Outputs.checkOutside(name, folder.path);
    }
  }

  /** Opens the index, which must be there, to be searched by several threads. */
  private KlIndex open(BatchOptions.Files files) {
    Layout layout = Layout.of(files);
    try (KlIndex index = folder.openReadOnly()) {
      folder.requireQueries(index, files, layout);
      if (k != null && k > index.size()) {
        throw new UserError(
            folder.path,
            index.size() == 0
                ? "has no Gaussians: index add adds some"
                : "has %d Gaussians, but -k is %d: give 1 to %1$d".formatted(index.size(), k));
      }
    }
    return folder.openReadOnly(threadOptions.threads());
  }

  /** What is searched, for which queries; {@code own} has the id that each leaves out. */
  private record Search(
      KlIndex index,
      Batch queries,
      PointOptions points,
      long @Nullable [] own,
      ProofOutput proof) {}

  private interface Take {
    /** Takes what the next queries have found. */
    void accept(IndexNeighbors found);
  }

  /** Searches a block of queries at a time. */
  private void run(Search search, Query query, long entries, Take take) {
    Batch queries = search.queries();
    int block = blockRows(search, entries);
    long begin = System.nanoTime();
    try (Progress progress = Terminal.of(spec).progress(queries.size())) {
      for (int from = 0, to; from < queries.size(); from = to) {
        to = Math.min(queries.size(), from + block);
        Query its = limited(without(query, search.own(), from, to), begin);
        IndexNeighbors found = search.index().search(queries.gaussians(from, to), its);
        take.accept(found);
        search.proof().add(found);
        progress.advance(to - from);
      }
    }
  }

  /** Returns how many queries make a block where each finds at most so many. */
  private static int blockRows(Search search, long entries) {
    long memory = Runtime.getRuntime().maxMemory();
    int d = search.queries().dimension();
    int values = search.queries().kind().isFull() ? d * (d + 1) / 2 : d;
    long most = Math.min(memory / 4 / ENTRY_BYTES, Integer.MAX_VALUE - 8) / Math.max(1, entries);
    long held = memory / 8 / (2 * Double.BYTES) / values;
    long worth = Math.ceilDiv(BLOCK_TERMS / d, Math.max(1, search.index().size()));
    return Math.clamp(
        Math.min(Math.min(most, held), worth), 1, Math.max(1, search.queries().size()));
  }

  /** Leaves out of each row its own id. */
  private static Query without(Query query, long @Nullable [] own, int from, int to) {
    if (own == null) {
      return query;
    }
    long[][] rows = new long[to - from][];
    Arrays.setAll(rows, i -> new long[] {own[from + i]});
    return query.excluding(rows);
  }

  /** Gives a query the time that is left. */
  private Query limited(Query query, long begin) {
    if (timeout == null) {
      return query;
    }
    double nanos = 1e9 * timeout - (System.nanoTime() - begin);
    return query.timeout(Duration.ofNanos(Math.max(1, (long) nanos)));
  }

  private Query options(Query query) {
    Query directed = reverse ? query.reverse() : query;
    Query shared = share == null ? directed : directed.approximate(share);
    return shared.excluding(excluded.stream().mapToLong(Long::longValue).toArray());
  }

  private void nearest(
      Search search, int wanted, OutputFile values, OutputFile ids, Report report) {
    int rows = search.queries().size();
    long size = search.index().size();
    NeighborOutput out = NeighborOutput.ofIds(values, ids, rows, wanted);
    run(search, options(search.points().nearest(wanted)), wanted, out::add);
    report.put("k", wanted);
    String what = "smallest %s: %d x %d of %d".formatted(formula(search), rows, wanted, size);
    out.describe(report, what, search.queries().dimension());
  }

  private void within(
      Search search, double most, OutputFile values, @Nullable OutputFile ids, Report report)
      throws IOException {
    int rows = search.queries().size();
    long size = search.index().size();
    ValueLayout element = ValueLayout.JAVA_DOUBLE;
    try (SparseOutput out = new SparseOutput(values, ids, rows, element, ValueLayout.JAVA_LONG)) {
      long[] columns = {0};
      run(
          search,
          options(search.points().within(most)),
          2 * size, // as the index gathers what it has found
          found -> columns[0] = Math.max(columns[0], copy(found, out)));
      out.finish(columns[0]);
      String what =
          "%s <= %s: %d of %d x %d"
              .formatted(formula(search), Text.number(most), out.stats().count(), rows, size);
      report.put("radius", most);
      out.stats().describe(report, what, search.queries().dimension(), element);
    }
  }

  /** Appends rows; returns how many columns a matrix of these ids has. */
  private long copy(IndexNeighbors found, SparseOutput out) {
    long columns = 0;
    for (int i = 0; i < found.size(); i++) {
      for (int r = 0; r < found.count(i); r++) {
        long id = found.id(i, r);
        if (indices == null && (id < 0 || id == Long.MAX_VALUE)) {
          throw new UserError(
              output, "id %d cannot be a column of a matrix: give --indices".formatted(id));
        }
        out.add(id, found.value(i, r));
        columns = Math.max(columns, id + 1);
      }
      out.endRow();
    }
    return columns;
  }

  private String formula(Search search) {
    return search.points().formula(reverse, search.index().divergence(), "p");
  }
}
