package dev.kullback.cli.output;

import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Locale;

/** Minimum, mean and maximum of a result, gathered block by block. */
public final class Stats {
  private double min = Double.POSITIVE_INFINITY;
  private double max = Double.NEGATIVE_INFINITY;
  private double sum;
  private long count;
  private long infinite;

  public void add(MemorySegment block, boolean isDouble) {
    long n = block.byteSize() / (isDouble ? 8 : 4);
    for (long i = 0; i < n; i++) {
      add(
          isDouble
              ? block.getAtIndex(ValueLayout.JAVA_DOUBLE, i)
              : block.getAtIndex(ValueLayout.JAVA_FLOAT, i));
    }
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

  /** Says what a command's result is. */
  public void describe(Report report, String what, boolean isDouble, double seconds) {
    String dtype = isDouble ? "float64" : "float32";
    report.line(String.format(Locale.ROOT, "%s, %s, in %.3g s; %s", what, dtype, seconds, this));
    report
        .put("dtype", dtype)
        .put("count", count)
        .put("min", count == 0 ? null : min)
        .put("mean", count == infinite ? null : sum / (count - infinite))
        .put("max", count == 0 ? null : max)
        .put("infinite", infinite)
        .put("seconds", seconds);
  }

  @Override
  public String toString() {
    if (count == 0) {
      return "no values";
    }
    String mean = count == infinite ? "none" : Text.number(sum / (count - infinite));
    String text = "min " + Text.number(min) + ", mean " + mean + ", max " + Text.number(max);
    return infinite == 0 ? text : text + " (" + infinite + " infinite, left out of the mean)";
  }
}
