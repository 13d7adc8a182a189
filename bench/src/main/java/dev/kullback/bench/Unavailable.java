package dev.kullback.bench;

/** A peer that cannot run here; the message says why and is all that a user sees. */
final class Unavailable extends RuntimeException {
  private static final long serialVersionUID = 1;

  Unavailable(String message) {
    super(message);
  }

  Unavailable(String message, Throwable cause) {
    super(message + ": " + cause, cause);
  }

  /** The native peers come as linux-x86_64 binaries (see pom.xml). */
  static void unlessLinuxX64(String what) {
    String os = System.getProperty("os.name");
    String arch = System.getProperty("os.arch");
    if (!os.equals("Linux") || !(arch.equals("amd64") || arch.equals("x86_64"))) {
      throw new Unavailable(
          what
              + ": the benchmark has its binaries for linux-x86_64 only, this is "
              + os
              + " "
              + arch);
    }
  }
}
