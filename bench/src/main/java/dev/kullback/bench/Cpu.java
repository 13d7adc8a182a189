package dev.kullback.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** The processor, as Linux describes it; elsewhere a name without flags. */
record Cpu(String name, Set<String> flags) {
  static Cpu read() {
    try {
      List<String> lines = Files.readAllLines(Path.of("/proc/cpuinfo"));
      String name =
          "%s, family %s model %s"
              .formatted(
                  field(lines, "model name"), field(lines, "cpu family"), field(lines, "model"));
      return new Cpu(name, new TreeSet<>(Arrays.asList(field(lines, "flags").split(" "))));
    } catch (IOException e) {
      return new Cpu(System.getProperty("os.arch"), Set.of());
    }
  }

  boolean has(String... wanted) {
    return flags.containsAll(List.of(wanted));
  }

  private static String field(List<String> lines, String key) {
    return lines.stream()
        .filter(line -> line.split(":", 2)[0].strip().equals(key))
        .map(line -> line.split(":", 2)[1].strip())
        .findFirst()
        .orElse("?");
  }
}
