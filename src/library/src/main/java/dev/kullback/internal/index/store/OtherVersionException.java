package dev.kullback.internal.index.store;

/** Thrown for a file of a version of the format that this one does not read. */
final class OtherVersionException extends IllegalArgumentException {
  private static final long serialVersionUID = 1;

  OtherVersionException(String message) {
    super(message);
  }
}
