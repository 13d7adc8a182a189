package dev.kullback.bench;

import dev.kullback.KlEngine;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Locale;

/** Common parts of the tables: the conditions above them, their numbers and quantiles. */
final class Report {
  private Report() {}

  /** A markdown list: the machine, what runs with so many threads, {@code lines} of the caller's, the date. */
  static String conditions(int threads, String... lines) {
    StringBuilder text = new StringBuilder();
    line(
        text,
        "CPU: %s; %d in sight"
            .formatted(Cpu.read().name(), Runtime.getRuntime().availableProcessors()));
    line(
        text,
        "Java: %s %s, %s %s"
            .formatted(
                System.getProperty("java.vm.name"),
                Runtime.version(),
                System.getProperty("os.name"),
                System.getProperty("os.version")));
    try (KlEngine engine = KlEngine.builder().threads(threads).build()) {
      line(text, "Kullback: " + engine);
    }
    for (String line : lines) {
      line(text, line);
    }
    line(text, "Date: " + Instant.now().truncatedTo(ChronoUnit.MINUTES));
    return text.toString();
  }

  private static void line(StringBuilder text, String line) {
    text.append("- ").append(line).append('\n');
  }

  /** Prints the head of a table. */
  static void header(String... cells) {
    row(cells);
    System.out.println("|" + "---|".repeat(cells.length));
  }

  /** Prints a table's row. */
  static void row(String... cells) {
    System.out.println("| " + String.join(" | ", cells) + " |");
  }

  /** Three digits. */
  static String number(double value) {
    int decimals = Math.clamp(2 - (int) Math.floor(Math.log10(value)), 0, 6);
    String text = String.format(Locale.ROOT, "%." + decimals + "f", value);
    return text.contains(".") ? text.replaceFirst("\\.?0+$", "") : text;
  }

  /** (i, j, h) triples in 10⁹ a second. */
  static String rate(double terms, double seconds) {
    return number(terms / seconds / 1e9) + " G/s";
  }

  /** Linear between the order statistics. */
  static double quantile(double[] values, double q) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    double at = q * (sorted.length - 1);
    int below = (int) at;
    int above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
  }
}
