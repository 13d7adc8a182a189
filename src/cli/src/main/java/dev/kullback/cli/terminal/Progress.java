package dev.kullback.cli.terminal;

import java.io.PrintStream;
import me.tongfei.progressbar.DelegatingProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/** Shows a bar on a terminal once the work has lasted a second, and erases it at the end. */
public final class Progress implements AutoCloseable {
  private static final int WIDTH = 79;

  private final long start = System.nanoTime();
  private final PrintStream err;
  private final boolean terminal;
  private final long total;
  private long done;
  private @Nullable ProgressBar bar;

  public Progress(PrintStream err, long total) {
    this.err = err;
    this.total = total;
    // Java can tell whether stdin and stdout are terminals, not stderr: the launcher tells.
    terminal = "1".equals(System.getenv("KULLBACK_STDERR_TTY"));
  }

  /** Counts rows as done. */
  public void advance(long rows) {
    done += rows;
    if (bar == null && terminal && System.nanoTime() - start > 1_000_000_000) {
      bar =
          new ProgressBarBuilder()
              .setTaskName("kullback")
              .setInitialMax(total)
              .setUnit(" rows", 1)
              .setStyle(ProgressBarStyle.ASCII)
              .setConsumer(new DelegatingProgressBarConsumer(this::print, WIDTH))
              .build();
    }
    if (bar != null) {
      bar.stepTo(done);
    }
  }

  private void print(String line) {
    err.print("\r" + line);
    err.flush();
  }

  @Override
  public void close() {
    if (bar != null) {
      bar.close();
      print(" ".repeat(WIDTH) + "\r");
    }
  }
}
