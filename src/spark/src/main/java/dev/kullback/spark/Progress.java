package dev.kullback.spark;

import java.io.PrintWriter;
import java.util.Locale;
import java.util.function.DoubleSupplier;

/** A line on a terminal that says how many pairs are done, each second anew, until it is closed. */
final class Progress implements AutoCloseable {
  private final PrintWriter out;
  private final double pairs;
  private final DoubleSupplier done;
  private final Thread clock =
      Thread.ofPlatform().name("kullback-progress").daemon().unstarted(this::run);

  /**
   * @param pairs how many there are
   * @param done how many of them are done
   */
  Progress(PrintWriter out, double pairs, DoubleSupplier done) {
    this.out = out;
    this.pairs = pairs;
    this.done = done;
    clock.start();
  }

  /** The line: tasks that Spark repeats count again, so it ends with all at most. */
  String line() {
    double most = Math.min(done.getAsDouble(), pairs);
    double percent = pairs > 0 ? 100 * most / pairs : 100;
    return String.format(
        Locale.ROOT, "Kullback: %.3g of %.3g pairs, %.0f %%", most, pairs, Math.floor(percent));
  }

  private void run() {
    try {
      while (true) {
        Thread.sleep(1000);
        out.printf("\r%s ", line());
        out.flush();
      }
    } catch (InterruptedException e) { // closed
    }
  }

  @Override
  public void close() {
    clock.interrupt();
    out.printf("\r%s\r", " ".repeat(line().length() + 1));
    out.flush();
  }
}
