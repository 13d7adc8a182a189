package dev.kullback.cli.command;

import dev.kullback.KlIndex;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.BatchReader;
import dev.kullback.cli.batch.Ids;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.output.NeighborOutput;
import dev.kullback.cli.terminal.Progress;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Gaussians of files with their ids, on their way into an index; none of them, perhaps. */
record IndexRows(BatchOptions.Files files, Layout layout, ScalePolicy policy, Ids ids) {
  /** Blocks that rows are cut into, if these fit the memory. Of eight segments of a size, the index would make one. */
  private static final int BLOCKS = 6;

  /** Values of a block that are worth one, and at most: 16 MB to 1 GB of doubles. */
  private static final long LEAST_VALUES = 1 << 20;

  private static final long MOST_VALUES = 1 << 26;

  IndexRows {
    ids.requireRows(layout.size(), files.mean()).requireUnique();
    for (int row = 0; row < ids.values().length; row++) {
      if (ids.values()[row] == NeighborOutput.NONE) {
        throw ids.wrong(row, "stands for none in the results of queries: take another");
      }
    }
  }

  /** Reads the ids, or takes the rows' numbers, and of the Gaussians what the headers tell. */
  static IndexRows of(BatchOptions.Files files, ScalePolicy policy, @Nullable Path ids) {
    Layout layout = Layout.of(files);
    return new IndexRows(
        files,
        layout,
        policy,
        ids == null ? Ids.ofRows(files.mean(), layout.size()) : Ids.read(ids));
  }

  int size() {
    return ids.values().length;
  }

  /** Throws if an id is in the index. */
  void requireNew(KlIndex index) {
    for (int row = 0; row < size(); row++) {
      if (index.contains(ids.values()[row])) {
        throw ids.wrong(row, "is in the index already: give --replace to replace its Gaussian");
      }
    }
  }

  /**
   * Adds all, a block of rows at a time; to be committed.
   *
   * @param replace takes ids that are in the index, too
   */
  void addTo(KlIndex index, boolean replace, Progress progress) {
    int d = index.dimension();
    int values = layout.kind().isFull() ? d * (d + 1) / 2 : d; // with means half of what is read
    int block = blockRows(size(), values, Runtime.getRuntime().maxMemory());
    try (BatchReader in = new BatchReader(files, policy, layout)) {
      for (int from = 0, to; from < size(); from = to) {
        to = Math.min(size(), from + block);
        try (Arena arena = Arena.ofShared()) {
          Batch batch = in.next(from, to, arena);
          long[] some = Arrays.copyOfRange(ids.values(), from, to);
          if (replace) {
            index.replace(some, batch.gaussians());
          } else {
            index.add(some, batch.gaussians());
          }
        }
        progress.advance(to - from);
      }
    }
  }

  static int blockRows(int rows, int values, long memory) {
    long most = Math.min(MOST_VALUES, memory / 8 / (2 * Double.BYTES)) / values;
    long even = Math.max(LEAST_VALUES / values, Math.ceilDiv(rows, BLOCKS));
    return Math.clamp(Math.min(most, even), 1, Math.max(1, rows));
  }
}
