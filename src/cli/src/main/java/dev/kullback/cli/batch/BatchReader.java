package dev.kullback.cli.batch;

import dev.kullback.ScalePolicy;
import dev.kullback.cli.npy.ArrayReader;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** The opened files of a batch, of which blocks of rows are read one after the other: each byte once, where a file cannot seek. */
public final class BatchReader implements Closeable {
  private final BatchOptions.Files files;
  private final ScalePolicy policy;
  private final Layout layout;

  /** Of the means, or of moments; null where all Gaussians share one row, which each block reads. */
  private final @Nullable ArrayReader mean;

  private final @Nullable ArrayReader scale;
  private final @Nullable ArrayReader factor;

  /**
   * Opens the files.
   *
   * @param layout that their headers have
   */
  public BatchReader(BatchOptions.Files files, ScalePolicy policy, Layout layout) {
    this.files = files;
    this.policy = policy;
    this.layout = layout;
    mean = layout.isRepeated(true) ? null : Npy.read(files.mean(), Npy::openFloats);
    try {
      boolean hasOwn = !files.isMoments() && !files.arePoints() && !layout.isRepeated(false);
      scale = hasOwn ? Npy.read(files.scale(), Npy::openFloats) : null;
    } catch (UserError e) {
      close(files.mean(), mean);
      throw e;
    }
    try {
      Path path = files.factor();
      factor = path == null ? null : Npy.read(path, Npy::openFloats);
    } catch (UserError e) {
      close(files.mean(), mean);
      close(files.scale(), scale);
      throw e;
    }
  }

  /** Reads the rows {@code from} (included) to {@code to} (excluded), none of them before those of the last call. */
  public Batch next(int from, int to, Arena arena) {
    Parameters both =
        files.isMoments()
            ? Parameters.halves(files, into -> rows(files.mean(), mean, from, to, into), arena)
            : files.arePoints()
                ? Parameters.ofPoints(rows(files.mean(), mean, from, to, arena))
                : new Parameters(
                    rows(files.mean(), mean, from, to, arena),
                    rows(files.scale(), scale, from, to, arena));
    Path path = files.factor();
    Parameters all = path == null ? both : both.with(rows(path, factor, from, to, arena));
    return Batch.of(files, policy, layout, from, all, layout.withRows(to - from), arena);
  }

  private static Npy.Array rows(
      Path file, @Nullable ArrayReader in, int from, int to, Arena arena) {
    return Npy.read(file, f -> in == null ? Npy.readFloats(f, arena) : in.rows(from, to, arena));
  }

  /** Reads what is left of files that cannot seek: what is wrong there makes the whole file doubtful. */
  void readToEnd() {
    readToEnd(files.mean(), mean);
    readToEnd(files.scale(), scale);
    readToEnd(files.matrices(), factor);
  }

  private static void readToEnd(Path file, @Nullable ArrayReader in) {
    try {
      if (in != null) {
        in.readToEnd();
      }
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }

  @Override
  public void close() {
    close(files.mean(), mean);
    close(files.scale(), scale);
    close(files.matrices(), factor);
  }

  private static void close(Path file, @Nullable ArrayReader in) {
    try {
      if (in != null) {
        in.close();
      }
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }
}
