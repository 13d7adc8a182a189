package dev.kullback.bench;

import dev.kullback.Backend;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import jdk.incubator.vector.VectorShape;

/** The processor, as Linux describes it; elsewhere a name without flags. And how much of it the JVM lets the library use. */
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

  /** Returns the bits of the library's vectors, which {@code -XX:UseAVX} and its own property narrow; 0 where it has none. */
  static int vectorBits() {
    if (!Backend.VECTOR.isAvailable()) {
      return 0;
    }
    int preferred = Math.clamp(VectorShape.preferredShape().vectorBitSize(), 128, 512);
    return Integer.getInteger("dev.kullback.vectorBits", preferred);
  }

  /** The instruction set that has vectors so wide. */
  static String instructions() {
    return switch (vectorBits()) {
      case 512 -> "AVX-512";
      case 256 -> "AVX2";
      default -> vectorBits() + " bits";
    };
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
