package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.kernel.Readiness;
import dev.kullback.testing.ChildJvm;
import dev.kullback.testing.LateVectorsProbe;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A virtual machine whose compilers stand still in its first seconds, as on a busy machine, and then do not. */
@Tag("long")
class LateVectorsTest {
  @TempDir private Path scratch;

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aBusyStartDoesNotLast(boolean background) throws Exception {
    Path boot = scratch.resolve("boot");
    String whiteBox = "jdk/test/whitebox/WhiteBox.class";
    Files.createDirectories(boot.resolve(whiteBox).getParent());
    try (InputStream in = getClass().getClassLoader().getResourceAsStream(whiteBox)) {
      Files.copy(in, boot.resolve(whiteBox));
    }
    List<String> arguments =
        List.of(
            "-Duser.language=en",
            "-D%s=%s".formatted(Readiness.PROPERTY, background),
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+WhiteBoxAPI",
            "-Xbootclasspath/a:" + boot,
            "--add-modules",
            "jdk.incubator.vector",
            "-cp",
            System.getProperty("java.class.path"),
            LateVectorsProbe.class.getName());
    ChildJvm jvm = ChildJvm.run(scratch, Duration.ofSeconds(120), arguments);
    assertThat(jvm.status()).as("%s", jvm).isZero();
    List<String> said = jvm.out().lines().filter(line -> !line.startsWith("Warning: ")).toList();
    assertThat(said).as("%s", jvm).hasSize(4);
    assertThat(said.get(0)).startsWith("vector ").contains("plain code", "not compile");
    assertThat(said.get(1)).isEqualTo(background ? "call: under way" : "call: no thread");
    assertThat(said.get(2)).isEqualTo("same");
    assertThat(said.get(3)).startsWith("vector ").contains("compiled vectors by their speed");
    assertThat(logged(jvm, "WARNING: Kullback computes without vectors")).isEqualTo(1);
    assertThat(logged(jvm, "INFO: Kullback computes with vectors now")).isEqualTo(1);
  }

  private static long logged(ChildJvm jvm, String start) {
    return jvm.err().lines().filter(line -> line.startsWith(start)).count();
  }
}
