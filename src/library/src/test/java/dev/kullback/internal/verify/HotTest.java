package dev.kullback.internal.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.testing.ChildJvm;
import dev.kullback.testing.Engines;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every operation with every kind of batches at every width, compared with plain arithmetic while C2 compiles it and afterwards: where
 * vector code is most often wrong, and cold tests do not look. It is the first class of its process, as what C2 boxes depends on what ran
 * before.
 */
@Order(1)
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

  /** Tests that the process of another machine runs, too, as it has no other tests: they find compiled what they run. */
  private static final String[] AFTERWARDS = {
    ALLOCATION,
    "dev.kullback.internal.vector.scan.PanelScanTest",
    "dev.kullback.internal.vector.scan.CodeScanTest"
  };

  @TempDir private Path scratch;

  /** What a process prints. */
  private interface Process {
    String run() throws Exception;
  }

  /** In this process, whose other classes then find compiled what they call. */
  @Tag("vector")
  @Test
  void everyOperation() throws Exception {
    Process here =
        () -> {
          String found = HotProbe.run(1);
          StringWriter printed = new StringWriter();
          int status = HotProbe.runTests(new PrintWriter(printed), ALLOCATION);
          assertThat(status).as("%s%n%s", found, printed).isZero();
          return found;
        };
    if (Boolean.getBoolean(Engines.NARROWER)) {
      check(here, () -> child(narrower(ChildJvm.thisMachine()), ALLOCATION), 1);
    } else {
      check(here.run(), 1);
    }
  }

  /**
   * C2 compiles methods after fewer calls, which have met fewer kinds of batches, and the Vector API's own methods have met vectors of other
   * widths: what it then boxes, it boxes for good.
   */
  @Tag("long")
  @Test
  void everyOperationCompiledEarlyBesideOtherWidths() throws Exception {
    Process child =
        () ->
            child(
                List.of("-XX:CompileThresholdScaling=" + HotProbe.EARLY),
                HotProbe.BESIDE_OTHER_WIDTHS);
    check(child, child, HotProbe.EARLY);
  }

  @Tag("long")
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("dev.kullback.testing.ChildJvm#otherMachines")
  void everyOperationOfOtherMachines(List<String> flags) throws Exception {
    Process child = () -> child(narrower(flags), AFTERWARDS);
    check(child, child, 1);
  }

  private static List<String> narrower(List<String> flags) {
    List<String> all = new ArrayList<>(flags);
    all.add("-D" + Engines.NARROWER + "=true");
    return all;
  }

  private String child(List<String> flags, String... arguments) throws Exception {
    Duration limit = Duration.ofMinutes(20); // which ends what hangs
    String[] main =
        Stream.concat(Stream.of(HotProbe.class.getName()), Stream.of(arguments))
            .toArray(String[]::new);
    return ChildJvm.runVectors(scratch, limit, flags, main).out();
  }

  /**
   * One of two processes must allocate nothing, and both be right and pass the tests. What C2 inlines depends on when it compiles, thus on
   * what else the machine does: with UseAVX=2, one of 13 processes kept boxing 480 B a {@code pairwise}; compiled early, one of 30 some in {@code nearest}.
   */
  private static void check(Process first, Process second, double part) throws Exception {
    try {
      check(first.run(), part);
    } catch (AssertionError e) {
      assertThat(e).hasMessageNotContaining("WRONG").hasMessageNotContaining("Failures (");
      check(second.run(), part);
    }
  }

  private static void check(String printed, double part) {
    assertThat(printed).doesNotContain("WRONG");
    assertThat(LINE.matcher(printed).results())
        .as(printed)
        .hasSize(2 * OPERATIONS)
        .filteredOn(line -> Integer.parseInt(line.group("calls")) >= part * LEAST_CALLS)
        .hasSize(OPERATIONS)
        .filteredOn(line -> !Operation.MAKERS.contains(line.group("name")))
        .hasSize(OPERATIONS - Operation.MAKERS.size())
        .extracting(line -> line.group("bytes"))
        .containsOnly("0");
  }
}
