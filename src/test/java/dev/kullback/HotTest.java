package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every operation with every kind of batches at every width, compared with plain arithmetic while C2 compiles it and afterwards: where
 * vector code is most often wrong, and cold tests do not look.
 */
class HotTest {
  /** Operations of {@link Verify}. */
  private static final int OPERATIONS = 13;

  private static final int LEAST_CALLS = 20_000;

  @TempDir private Path scratch;

  /** Instruction sets and widths that this processor has, each once; other processors' by doing without. */
  static Stream<List<String>> machines() {
    int most = VectorWidth.MOST_BITS;
    Stream.Builder<List<String>> machines = Stream.builder();
    machines.add(List.of());
    if (System.getProperty("os.arch").equals("amd64")) {
      if (most > 256) {
        machines.add(List.of("-XX:UseAVX=2")); // without mask registers
      }
      machines.add(List.of("-XX:UseAVX=1"));
    }
    for (int bits = 128; bits < most; bits *= 2) {
      machines.add(List.of("-D" + Backend.BITS_PROPERTY + "=" + bits));
    }
    return machines.build();
  }

  @ParameterizedTest
  @MethodSource("machines")
  void everyOperation(List<String> flags) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("--add-modules", "jdk.incubator.vector", "-Xmx1g"));
    command.addAll(flags);
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.add(HotProbe.class.getName());
    Path file = scratch.resolve("printed");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(file.toFile()).start();
    boolean ended = process.waitFor(10, TimeUnit.MINUTES);
    process.destroyForcibly().waitFor();
    String printed = Files.readString(file);
    assertThat(ended).as(printed).isTrue();
    assertThat(process.exitValue()).as(printed).isZero();
    assertThat(printed).doesNotContain("WRONG");
    assertThat(
            Pattern.compile(" (\\d+) calls .* ok$", Pattern.MULTILINE).matcher(printed).results())
        .as(printed)
        .hasSize(2 * OPERATIONS)
        .filteredOn(line -> Integer.parseInt(line.group(1)) >= LEAST_CALLS)
        .hasSize(OPERATIONS);
  }
}
