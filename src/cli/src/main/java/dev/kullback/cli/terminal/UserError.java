package dev.kullback.cli.terminal;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Objects;

/** Wrong usage or bad input, told in one line that says what to do; exit status 2. */
public final class UserError extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public UserError(String message) {
    super(message);
  }

  public UserError(Path file, String message) {
    super(of(file, message));
  }

  public UserError(Path file, IOException cause) {
    super(of(file, reason(cause)), cause);
  }

  public static String of(Path file, String message) {
    return file + ": " + message;
  }

  public static String reason(IOException e) {
    return switch (e) {
      case NoSuchFileException _ -> "no such file";
      case AccessDeniedException _ -> "permission denied";
      case FileSystemException f when f.getReason() != null -> String.valueOf(f.getReason());
      default -> Objects.requireNonNullElseGet(e.getMessage(), e::toString);
    };
  }
}
