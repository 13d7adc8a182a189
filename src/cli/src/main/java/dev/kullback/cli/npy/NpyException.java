package dev.kullback.cli.npy;

import java.io.IOException;

/** A file that is not a usable .npy file; the message continues the file's name. */
public final class NpyException extends IOException {
  private static final long serialVersionUID = 1L;

  public NpyException(String message) {
    super(message);
  }
}
