package dev.kullback.cli.output;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The minimum, mean and maximum of a result, gathered block by block. */
public final class Stats {
  private double min = Double.POSITIVE_INFINITY;
  private double max = Double.NEGATIVE_INFINITY;
  private double sum;
  private long count;
  private long infinite;

  /** Adds a block, by way of an object that C2 keeps in registers, which with an int's loop halves a large block's time. */
  public void add(MemorySegment block, boolean isDouble) {
    Stats local = new Stats();
    local.set(this);
    int n = Math.toIntExact(block.byteSize() / (isDouble ? Double.BYTES : Float.BYTES));
    for (int i = 0; i < n; i++) {
      local.add(Npy.value(block, i, isDouble));
    }
    set(local);
  }

  private void set(Stats other) {
    min = other.min;
    max = other.max;
    sum = other.sum;
    count = other.count;
    infinite = other.infinite;
  }

  public void add(double value) {
    min = Math.min(min, value);
    max = Math.max(max, value);
    if (Double.isInfinite(value)) {
      infinite++;
    } else {
      sum += value;
    }
    count++;
  }

  public long count() {
    return count;
  }

  /**
   * Reports a result, and the time since the report's start.
   *
   * @param what its formula and the numbers of Gaussians
   * @param dimension theirs
   */
  public void describe(Report report, String what, int dimension, ValueLayout element) {
    describe(report, what + ", D = " + dimension, element);
  }

  /** Reports a result of which no dimension is known. */
  void describe(Report report, String what, ValueLayout element) {
    String dtype = Npy.dtype(element);
    double seconds = report.seconds();
    report.line("%s, %s, in %.3g s; %s", what, dtype, seconds, text(report.remedy(), element));
    report
        .put("dtype", dtype)
        .put("count", count)
        .put("min", count == 0 ? null : min)
        .put("mean", count == infinite ? null : sum / (count - infinite))
        .put("max", count == 0 ? null : max)
        .put("infinite", infinite)
        .put("seconds", seconds);
  }

  private String text(String remedy, ValueLayout element) {
    if (count == 0) {
      return "no values";
    }
    String mean = count == infinite ? "none" : Text.number(sum / (count - infinite));
    String text = "min " + Text.number(min) + ", mean " + mean + ", max " + Text.number(max);
    if (infinite == 0) {
      return text;
    }
    String wider = element instanceof ValueLayout.OfFloat ? "inputs of float64" : "";
    String what = remedy + (remedy.isEmpty() || wider.isEmpty() ? "" : " or ") + wider;
    return "%s (%d infinite, left out of the mean%s)"
        .formatted(text, infinite, what.isEmpty() ? "" : "; " + what + " may make them finite");
  }
}
