package dev.kullback.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.kernel.Readiness;
import dev.kullback.internal.vector.VectorWidth;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Exit status and output of a virtual machine of its own, of the JDK that runs the tests. */
public record ChildJvm(int status, String out, String err) {
  /**
   * Flags for lesser instruction sets than this processor's that no execution of the tests has: AVX, where the next lesser one is AVX2. That, and the
   * least width of vectors, have one each. Vectors of 256 bits on a processor that has 512 run what AVX2's do but for masks, which those of 128 bits
   * have, too.
   */
  public static Stream<List<String>> otherMachines() {
    boolean hasThree = System.getProperty("os.arch").equals("amd64") && VectorWidth.MOST_BITS > 256;
    return hasThree ? Stream.of(List.of("-XX:UseAVX=1")) : Stream.empty();
  }

  /** The flags for vectors that this virtual machine was given. */
  public static List<String> thisMachine() {
    Stream<String> avx =
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
            .filter(argument -> argument.startsWith("-XX:UseAVX="));
    Stream<String> bits =
        Stream.ofNullable(System.getProperty(VectorWidth.PROPERTY))
            .map(width -> "-D%s=%s".formatted(VectorWidth.PROPERTY, width));
    return Stream.concat(avx, bits).toList();
  }

  /**
   * Runs a class on the tests' class path with vectors from the first call on, interpreted and compiled; fails unless it ends in time with
   * status 0.
   *
   * @param flags of the virtual machine, such as {@link #otherMachines}
   * @param main the class and its arguments
   */
  public static ChildJvm runVectors(
      Path scratch, Duration limit, List<String> flags, String... main)
      throws IOException, InterruptedException {
    List<String> arguments = new ArrayList<>();
    arguments.addAll(List.of("--add-modules", "jdk.incubator.vector", "-Xmx1g"));
    arguments.add("-D" + Readiness.PROPERTY + "=false"); // vectors while they are interpreted, too
    arguments.add("-D" + VectorWidth.COMPILED + "=true"); // no cold kernels, whatever is found
    arguments.addAll(flags);
    arguments.addAll(List.of("-cp", System.getProperty("java.class.path")));
    arguments.addAll(List.of(main));
    ChildJvm jvm = run(scratch, limit, arguments);
    assertThat(jvm.status()).as("%s", jvm).isZero();
    return jvm;
  }

  /**
   * Runs {@code java} with these arguments; fails if it has not ended in time.
   *
   * @param scratch folder of the files {@code out} and {@code err} that it prints to
   */
  public static ChildJvm run(Path scratch, Duration limit, List<String> arguments)
      throws IOException, InterruptedException {
    Path out = scratch.resolve("out");
    Path err = scratch.resolve("err");
    Process process = start(out, err, arguments);
    boolean ended = process.waitFor(limit);
    process.destroyForcibly().waitFor();
    ChildJvm result =
        new ChildJvm(process.exitValue(), Files.readString(out), Files.readString(err));
    assertThat(ended).as("ended in time: %s%n%s", arguments, result).isTrue();
    return result;
  }

  /** Starts {@code java} with these arguments, which prints to two files. */
  public static Process start(Path out, Path err, List<String> arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(arguments);
    return new ProcessBuilder(command)
        .redirectOutput(out.toFile())
        .redirectError(err.toFile())
        .start();
  }
}
