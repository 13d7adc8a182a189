package dev.kullback.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** Private folders for extracted native libraries, deleted when the JVM exits. */
final class TempFolder {
  private TempFolder() {}

  static Path create(String name) throws IOException {
    Path folder = Files.createTempDirectory("kullback-bench-" + name + "-");
    Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder)));
    return folder;
  }

  private static void delete(Path folder) {
    try (Stream<Path> paths = Files.walk(folder)) {
      for (Path path : (Iterable<Path>) paths.sorted(Comparator.reverseOrder())::iterator) {
        Files.delete(path);
      }
    } catch (IOException e) {
      System.err.println("left behind: " + e.getMessage());
    }
  }
}
