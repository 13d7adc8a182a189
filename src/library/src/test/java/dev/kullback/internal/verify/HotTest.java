package dev.kullback.internal.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.testing.ChildJvm;
import dev.kullback.testing.Engines;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every operation with every kind of batches at every width, compared with plain arithmetic while C2 compiles it and afterwards: where
 * vector code is most often wrong, and cold tests do not look.
 */
class HotTest {
  /** Operations of {@link Verify}. */
  private static final int OPERATIONS = 40;

  /** A line that {@link HotProbe} prints of an operation. */
  private static final Pattern LINE =
      Pattern.compile(
          "^(?<name>\\w+(,? \\w+)*) +(?<calls>\\d+) calls .* (?<bytes>\\d+|-) B a call +ok$",
          Pattern.MULTILINE);

  /** Twice as many as C2 compiles a method after. */
  private static final int LEAST_CALLS = 10_000;

  private static final String ALLOCATION = "dev.kullback.AllocationTest";

  /**
   * Tests that the processes of other machines run, too, and the first of them that of this one. They find compiled what they run, or most of
   * it: 7 s of the 75 s of processor time that a process takes (Xeon with AMX, JDK 25.0.3).
   */
  private static final String[] AFTERWARDS = {
    ALLOCATION,
    "dev.kullback.internal.vector.scan.PanelScanTest",
    "dev.kullback.internal.vector.scan.CodeScanTest"
  };

  @TempDir private Path scratch;

  @Test
  void everyOperation() throws Exception {
    everyOperation(List.of(), ALLOCATION);
  }

  /**
   * C2 compiles methods after fewer calls, which have met fewer kinds of batches, and the Vector API's own methods have met vectors of other
   * widths: what it then boxes, it boxes for good.
   */
  @Tag("long")
  @Test
  void everyOperationCompiledEarlyBesideOtherWidths() throws Exception {
    everyOperationOfOneOfTwo(
        List.of("-XX:CompileThresholdScaling=0.15"), HotProbe.BESIDE_OTHER_WIDTHS);
  }

  @Tag("long")
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("dev.kullback.testing.ChildJvm#otherMachines")
  void everyOperationOfOtherMachines(List<String> flags) throws Exception {
    List<String> narrower = new ArrayList<>(flags);
    narrower.add("-D" + Engines.NARROWER + "=true");
    everyOperationOfOneOfTwo(narrower, AFTERWARDS);
  }

  /**
   * One of two processes must allocate nothing, and both be right and pass the tests. What C2 inlines depends on when it compiles, thus on
   * what else the machine does: with UseAVX=2, one of 13 processes kept boxing 480 B a {@code pairwise}; compiled early, one of 30 some in {@code nearest}.
   */
  private void everyOperationOfOneOfTwo(List<String> flags, String... arguments) throws Exception {
    try {
      everyOperation(flags, arguments);
    } catch (AssertionError e) {
      assertThat(e).hasMessageNotContaining("WRONG").hasMessageNotContaining("Failures (");
      everyOperation(flags, arguments);
    }
  }

  private void everyOperation(List<String> flags, String... arguments) throws Exception {
    Duration limit = Duration.ofMinutes(20); // which ends what hangs
    String[] main =
        Stream.concat(Stream.of(HotProbe.class.getName()), Stream.of(arguments))
            .toArray(String[]::new);
    String printed = ChildJvm.runVectors(scratch, limit, flags, main).out();
    assertThat(printed).doesNotContain("WRONG");
    assertThat(LINE.matcher(printed).results())
        .as(printed)
        .hasSize(2 * OPERATIONS)
        .filteredOn(line -> Integer.parseInt(line.group("calls")) >= LEAST_CALLS)
        .hasSize(OPERATIONS)
        .filteredOn(line -> !Operation.MAKERS.contains(line.group("name")))
        .hasSize(OPERATIONS - Operation.MAKERS.size())
        .extracting(line -> line.group("bytes"))
        .containsOnly("0");
  }
}
