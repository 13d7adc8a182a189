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

  /** Adds a block, in variables that C2 keeps in registers, unlike fields: a matrix of 64 MB takes some 30 ms instead of 130. */
  public void add(MemorySegment block, boolean isDouble) {
    int n = Math.toIntExact(block.byteSize() / (isDouble ? Double.BYTES : Float.BYTES));
    double least = min;
    double most = max;
    double total = sum;
    int finite = 0;
    for (int i = 0; i < n; i++) {
      double value = Npy.value(block, i, isDouble);
      least = Math.min(least, value);
      most = Math.max(most, value);
      if (!Double.isInfinite(value)) {
        total += value;
        finite++;
      }
    }
    min = least;
    max = most;
    sum = total;
    count += n;
    infinite += n - finite;
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
