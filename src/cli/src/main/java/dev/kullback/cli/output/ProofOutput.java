package dev.kullback.cli.output;

import dev.kullback.IndexNeighbors;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.Report;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/** Writes of each row whether it is complete, and what is proven of the references that it lacks, to a file of {@code [N,2]} doubles, if there is one. */
public final class ProofOutput {
  private final @Nullable OutputFile file;
  private long rows;
  private long complete;

  /** The least number that is proven of a row that is not complete. */
  private double least = Double.POSITIVE_INFINITY;

  /** Begins the file. */
  public ProofOutput(@Nullable OutputFile file, long rows) {
    this.file = file;
    if (file != null) {
      file.requireSpace(Npy.bytes(rows, 2, ValueLayout.JAVA_DOUBLE));
      file.write(Npy.header(ValueLayout.JAVA_DOUBLE, rows, 2));
    }
  }

  /** Appends rows. */
  public void add(IndexNeighbors found) {
    for (int i = 0; i < found.size(); i++) {
      boolean isComplete = found.isComplete(i);
      double x = found.provenUpTo(i);
      if (file != null) {
        file.put(isComplete ? 1 : 0, true);
        file.put(x, true);
      }
      rows++;
      complete += isComplete ? 1 : 0;
      least = isComplete ? least : Math.min(least, x);
    }
  }

  /** Reports how many rows are complete, and of the others what is proven of all. */
  public void describe(Report report) {
    if (complete < rows) {
      report.line(
          least != 0 // negative log-densities may be less
              ? "%d of %d rows are not complete: the Gaussians that they lack have values of at least %.4g"
              : "%d of %d rows are not complete, and of some nothing is known: give a longer --timeout, or a larger --approximate",
          rows - complete,
          rows,
          least);
      report.put("proven_up_to", least);
    }
    report.put("complete", complete);
  }
}
