package dev.kullback.cli;

import java.io.IOException;
import java.nio.file.Path;

/** An output that the file system refuses or cannot hold, told in one line; exit status 1. */
final class OutputFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  OutputFailure(Path file, String message) {
    super(UserError.of(file, message));
  }

  OutputFailure(Path file, IOException cause) {
    super(UserError.of(file, "cannot be written: " + UserError.reason(cause)), cause);
  }
}
