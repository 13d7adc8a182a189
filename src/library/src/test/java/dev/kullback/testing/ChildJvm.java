package dev.kullback.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.vector.VectorWidth;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** What a virtual machine of its own, of the JDK that runs the tests, printed and ended with. */
public record ChildJvm(int status, String out, String err) {
  /**
   * Flags for lesser instruction sets than this processor's, each at its own width, and for lesser widths of vectors; none on one that has
   * nothing less, such as NEON.
   */
  public static Stream<List<String>> otherMachines() {
    int most = VectorWidth.MOST_BITS;
    Stream.Builder<List<String>> machines = Stream.builder();
    if (System.getProperty("os.arch").equals("amd64")) {
      if (most > 256) {
        machines.add(List.of("-XX:UseAVX=2")); // without mask registers
      }
      machines.add(List.of("-XX:UseAVX=1"));
    }
    for (int bits = most / 2; bits >= 128; bits /= 2) {
      machines.add(List.of("-D%s=%d".formatted(VectorWidth.PROPERTY, bits)));
    }
    return machines.build();
  }

  /**
   * Fails if it has not ended in time.
   *
   * @param scratch where it prints, to files {@code out} and {@code err}
   * @param arguments what follows {@code java}
   */
  public static ChildJvm run(Path scratch, Duration limit, List<String> arguments)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(arguments);
    Path out = scratch.resolve("out");
    Path err = scratch.resolve("err");
    Process process =
        new ProcessBuilder(command)
            .redirectOutput(out.toFile())
            .redirectError(err.toFile())
            .start();
    boolean ended = process.waitFor(limit);
    process.destroyForcibly().waitFor();
    ChildJvm result =
        new ChildJvm(process.exitValue(), Files.readString(out), Files.readString(err));
    assertThat(ended).as("ended in time: %s%n%s", command, result).isTrue();
    return result;
  }
}
