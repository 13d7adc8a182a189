package dev.kullback.cli;

import java.io.IOException;

/** A file that is not a usable .npy file; the message continues the file's name. */
final class NpyException extends IOException {
  private static final long serialVersionUID = 1L;

  NpyException(String message) {
    super(message);
  }
}
