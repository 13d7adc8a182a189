package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.kernel.Readiness;
import dev.kullback.testing.BackgroundWarmUpProbe;
import dev.kullback.testing.ChildJvm;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The thread that has vectors compiled: what starts it, that it ends, and that no result shows it. */
class BackgroundWarmUpTest {
  @TempDir private Path scratch;

  @Tag("long")
  @Test
  void resultsDoNotShowIt() throws Exception {
    assertThat(run("true", Integer.MAX_VALUE))
        .containsExactly(
            "describe: no thread",
            "scalar: no thread",
            "engine: no thread",
            "call: under way",
            "same",
            "warmUp: no thread",
            "same");
  }

  @Tag("long") // readiness() tells the same of another engine
  @Test
  void warmUpWaitsForIt() throws Exception {
    assertThat(run("true", 1))
        .containsSubsequence("call: under way", "same", "warmUp: no thread", "same");
  }

  @Test
  void thereNeedBeNone() throws Exception {
    assertThat(run("false", 100))
        .containsSubsequence("call: no thread", "same", "warmUp: no thread", "same");
  }

  /** Whatever the property says. */
  @Tag("long")
  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void buildersDecide(String property) throws Exception {
    assertThat(run(property, 1, "BUILDERS"))
        .containsExactly(
            "vectors",
            "engine without: no thread",
            "index without: no thread",
            "first batch: no boxes",
            "first batch in reverse: no boxes",
            "first batch by density: no boxes",
            "same",
            "engine with: under way");
  }

  @Tag("long")
  @Test
  void anEngineWaitsForItsOwnVectorsAlone() throws Exception {
    assertThat(run("true", 1, "WASSERSTEIN_2"))
        .containsExactly("FLOAT_WASSERSTEIN_2", "FULL_FACTORS", "SCANS", "WASSERSTEIN_2");
  }

  /** Ready is one who waits for nothing any more; the stage, the flag and the line in the log tell the same. */
  @Test
  void readiness() throws Exception {
    ChildJvm jvm = jvm("true", 1, "READY");
    assertThat(jvm.out().lines())
        .containsExactly(
            "scalar: ready",
            "without the thread: ready",
            "engine: waits",
            "index: waits",
            "engine after its stage: ready",
            "index after its stage: ready",
            "while another warms up: waits",
            "warmed up: ready",
            "closed engine: waits",
            "closed index: waits",
            "closed: CancellationException",
            "ready() of a closed one: AlreadyClosedException");
    assertThat(jvm.err())
        .containsPattern(
            "INFO: Kullback computes with compiled vectors now, [0-9.]+ s after .*float")
        .contains("index");
  }

  /**
   * Vectors that no trial has shown to C2 are not used: boxed, those of log-variances in double and of two kinds of scales allocated 15,000 to
   * 20,000 bytes an entry, in six calls of up to 0.5 s. Short methods may still box some.
   */
  @Tag("long")
  @Test
  void firstCallsOfNearGaussiansBoxNoKernel() throws Exception {
    assertThat(run("true", 1, "NEAR"))
        .hasSize(3)
        .allSatisfy(bytes -> assertThat(Integer.parseInt(bytes)).isLessThan(5000));
  }

  private List<String> run(String background, int calls, String... more) throws Exception {
    ChildJvm jvm = jvm(background, calls, more);
    assertThat(jvm.err().lines().filter(line -> line.startsWith("WARNING")))
        .as("%s", jvm)
        .hasSize(1); // of the incubator module
    return jvm.out().lines().toList();
  }

  private ChildJvm jvm(String background, int calls, String... more) throws Exception {
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "--add-modules",
                "jdk.incubator.vector",
                "-D%s=%s".formatted(Readiness.PROPERTY, background),
                "-cp",
                System.getProperty("java.class.path"),
                BackgroundWarmUpProbe.class.getName(),
                Integer.toString(calls)));
    arguments.addAll(List.of(more));
    ChildJvm jvm = ChildJvm.run(scratch, Duration.ofSeconds(250), arguments);
    assertThat(jvm.status()).as("%s", jvm).isZero();
    return jvm;
  }
}
