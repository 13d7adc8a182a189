package dev.kullback.cli.batch;

import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.NpyHeader;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/** The ids of Gaussians, in the order of a file's rows. */
public record Ids(Path file, long[] values) {

  /** Makes the ids 0, 1, … of the rows of a file. */
  public static Ids ofRows(Path file, int rows) {
    return new Ids(file, LongStream.range(0, rows).toArray());
  }

  /** Reads integers of any type, as one axis or one column, or one row of text. */
  public static Ids read(Path file) {
    Input.limitStdin(0, List.of(file));
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.read(file, f -> Npy.readIntegers(f, arena));
      if (!Npy.isColumn(file, array.shape())) {
        throw new UserError(
            file,
            (Npy.isTable(file)
                    ? "has shape %s: ids are one column of text, or one row"
                    : "has shape %s: ids have one axis, (N,); of an array x that index query wrote, np.unique(x[x != -1]) are those found")
                .formatted(new NpyHeader("", false, array.shape()).shapeText()));
      }
      if (Layout.product(array.shape(), 0) > Integer.MAX_VALUE - 8) {
        throw new UserError(file, "has 2^31 ids or about as many: split the rows");
      }
      return new Ids(file, array.data().toArray((ValueLayout.OfLong) array.element()));
    }
  }

  /** Throws unless there is one for each of so many rows of a file. */
  public Ids requireRows(int rows, Path of) {
    if (values.length != rows) {
      throw new UserError(
          file,
          "has %d ids, but %s has %d rows: give one for each".formatted(values.length, of, rows));
    }
    return this;
  }

  /** Throws if two are the same. */
  public Ids requireUnique() {
    long[] sorted = values.clone();
    Arrays.sort(sorted);
    for (int s = 1; s < sorted.length; s++) {
      if (sorted[s] == sorted[s - 1]) {
        int first = next(sorted[s], 0);
        throw wrong(next(sorted[s], first + 1), "is also that of row %d".formatted(first));
      }
    }
    return this;
  }

  private int next(long id, int from) {
    int row = from;
    while (values[row] != id) {
      row++;
    }
    return row;
  }

  /** Makes an error about the id of a row. */
  public UserError wrong(int row, String what) {
    return new UserError(
        file, "row %d: id %d %s (counted from 0)".formatted(row, values[row], what));
  }
}
