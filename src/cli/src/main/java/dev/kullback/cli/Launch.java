package dev.kullback.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.Charset;

/**
 * Entry point of the cli jar. The {@code kullback} script hides the JVM's warning on incubator
 * modules by filtering descriptor 2, and keeps the true stderr as the descriptor that it names in
 * KULLBACK_STDERR_FD; our own messages go there, unbuffered and in order with stdout.
 */
public final class Launch {
  private Launch() {}

  public static void main(String[] args) throws Exception {
    String descriptor = System.getenv("KULLBACK_STDERR_FD");
    if (descriptor != null) {
      System.setErr(open(Integer.parseInt(descriptor)));
    }
    Main.main(args);
  }

  /**
   * Opening /dev/fd/N instead would truncate a file, and start at an offset of its own: {@code
   * >log 2>&1} would overwrite itself. The manifest opens java.io for this constructor.
   */
  private static PrintStream open(int descriptor) {
    try {
      var constructor = FileDescriptor.class.getDeclaredConstructor(int.class);
      constructor.setAccessible(true);
      var file = new FileOutputStream(constructor.newInstance(descriptor));
      return new PrintStream(file, true, Charset.forName(System.getProperty("stderr.encoding")));
    } catch (ReflectiveOperationException | RuntimeException e) {
      return System.err; // through the filter, line by line: right, only later
    }
  }
}
