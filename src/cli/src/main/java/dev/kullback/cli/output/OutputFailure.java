package dev.kullback.cli.output;

import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.nio.file.Path;

/** An output that the file system refuses or cannot hold, told in one line; exit status 1. */
public final class OutputFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public OutputFailure(Path file, String message) {
    super(UserError.of(file, message));
  }

  /** Makes a failure whose message names the file. */
  public OutputFailure(String message, Throwable cause) {
    super(message, cause);
  }

  public OutputFailure(Path file, IOException cause) {
    super(UserError.of(file, "cannot be written: " + UserError.reason(cause)), cause);
  }
}
