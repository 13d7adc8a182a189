package dev.kullback.internal.verify;

import java.util.Locale;

/**
 * Findings about one operation, on all kinds of batches.
 *
 * @param calls how many of its calls were compared
 * @param entries how many numbers of these calls were compared
 * @param worst the greatest ratio of an error to the error that is allowed
 * @param bytes how many bytes a warm call allocates, or −1 if that was not counted
 * @param wrong the first result that is wrong; empty if there is none
 */
public record Finding(
    String name, long calls, long entries, double worst, long bytes, String wrong) {
  /** A line, and after a wrong result a second one. */
  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%-22s %9d calls %12d entries   worst error / contract %-8.2g %9s B a call   %s",
        name,
        calls,
        entries,
        worst,
        bytes < 0 ? "-" : bytes,
        wrong.isEmpty() ? "ok" : "WRONG\n  " + wrong);
  }
}
