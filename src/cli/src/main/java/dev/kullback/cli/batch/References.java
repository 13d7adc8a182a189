package dev.kullback.cli.batch;

import dev.kullback.cli.terminal.UserError;
import java.nio.file.Path;
import java.util.List;

/**
 * The files of p, whose rows count on from one to the next. What they hold is loaded one file at a time.
 *
 * @param first the index of each file's first row, and that after the last file's last
 */
public record References(List<BatchOptions.Files> files, int[] first) {
  /** Counts the rows by the files' headers; the first has index {@code index}. */
  public static References of(List<BatchOptions.Files> files, int index) {
    int[] first = new int[files.size() + 1];
    first[0] = index;
    for (int f = 0; f < files.size(); f++) {
      int rows = Batch.rows(files.get(f));
      if (rows > Integer.MAX_VALUE - first[f]) {
        throw new UserError(
            files.get(f).mean(),
            "its %d rows would have indices up to %d: they must be below 2^31 - 1"
                .formatted(rows, (long) first[f] + rows - 1));
      }
      first[f + 1] = first[f] + rows;
    }
    return new References(files, first);
  }

  public int end() {
    return first[files.size()];
  }

  /** Returns how many rows all files have. */
  public int size() {
    return end() - first[0];
  }

  /** Returns the means of the last file. */
  public Path last() {
    return files.getLast().mean();
  }
}
