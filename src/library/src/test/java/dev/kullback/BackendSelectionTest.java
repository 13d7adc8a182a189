package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.testing.Check;
import dev.kullback.testing.ChildJvm;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import dev.kullback.testing.Probe;
import java.io.File;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The choice of a backend, its description, and the warning with which the scalar one steps in, also with other machines' flags. */
class BackendSelectionTest {
  private static final String FLAG = "--add-modules jdk.incubator.vector";

  @TempDir private Path scratch;

  @Test
  @Tag("vector")
  void vectorBackendRunsAtTheWidthAsked() {
    String asked = System.getProperty("dev.kullback.vectorBits");
    assertThat(Backend.VECTOR.reason())
        .doesNotContain("\n")
        .containsPattern("\\b" + (asked == null ? "(64|128|256|512)" : asked) + "\\b");
    try (KlEngine engine = Engines.on(Backend.VECTOR)) {
      assertThat(engine.backend()).isEqualTo(Backend.VECTOR);
      assertThat(engine.toString()).startsWith("vector on the calling thread; vector: available, ");
    }
    assertThat(Backend.VECTOR.isAvailable()).isTrue();
  }

  @Test
  void autoIsTheVectorBackend() {
    DiagonalGaussians q = Probe.q().gaussians();
    DiagonalGaussians p = Probe.p().gaussians();
    try (KlEngine auto = KlEngine.builder().build();
        KlEngine vector = Engines.on(Backend.VECTOR);
        KlEngine scalar = Engines.on(Backend.SCALAR)) {
      Check.sameBits("auto", p.size(), vector.pairwise(q, p), auto.pairwise(q, p));
      assertThat(auto.backend()).isEqualTo(Backend.VECTOR);
      assertThat(scalar.backend()).isEqualTo(Backend.SCALAR);
      assertThat(scalar.toString()).startsWith("scalar on the calling thread; ");
    }
    assertThat(Backend.AUTO.isAvailable()).isTrue();
    assertThat(Backend.SCALAR.isAvailable()).isTrue();
    assertThat(Backend.SCALAR.reason()).isEqualTo("scalar: available");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void withoutTheModule(boolean modular) throws Exception {
    Result result = run(modular, List.of(), "AUTO", "AUTO", "SCALAR", "INDEX", "VECTOR");
    result.assertRight("AUTO", 2);
    result.assertRight("SCALAR", 1);
    assertThat(result.lines("VECTOR throws"))
        .singleElement()
        .asString()
        .contains("IllegalStateException", FLAG);
    assertThat(result.lines("VECTOR describes")).singleElement().asString().contains(FLAG);
    assertThat(result.lines("VECTOR is available: false")).hasSize(1);
    assertThat(result.lines("AUTO is available: true")).hasSize(2);
    result.assertOneWarning(FLAG);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void withTheModule(boolean modular) throws Exception {
    List<String> flags = List.of("--add-modules", "jdk.incubator.vector");
    Result result = run(modular, flags, "AUTO", "VECTOR", "SCALAR", "INDEX");
    result.assertRight("AUTO", 1);
    result.assertRight("VECTOR", 1);
    result.assertRight("SCALAR", 1);
    assertThat(result.err).filteredOn(line -> line.contains(FLAG)).isEmpty();
  }

  /** No warning is printed when the scalar backend was asked for. */
  @Test
  void noWarningWhenScalarIsAskedFor() throws Exception {
    Result result = run(false, List.of(), "SCALAR");
    result.assertRight("SCALAR", 1);
    assertThat(result.err).filteredOn(line -> line.contains(FLAG)).isEmpty();
    result = run(false, List.of("-Ddev.kullback.backend=scalar"), "INDEX");
    assertThat(result.err).filteredOn(line -> line.contains(FLAG)).isEmpty();
  }

  /** An index has no backend to ask for, and warns by itself. */
  @Test
  void anIndexWarnsOnce() throws Exception {
    run(false, List.of(), "INDEX", "INDEX").assertOneWarning(FLAG);
  }

  /**
   * Without hardware FMA the Vector API calculates fma in BigDecimal; without C2 it boxes every
   * vector.
   */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "-XX:-UseFMA",
        "-XX:TieredStopAtLevel=0",
        "-XX:TieredStopAtLevel=1",
        "-XX:TieredStopAtLevel=3",
        "-Xint"
      })
  void virtualMachinesThatCannotRunVectorsWell(String flag) throws Exception {
    List<String> flags = List.of("--add-modules", "jdk.incubator.vector", flag);
    Result result = run(false, flags, "AUTO", "AUTO", "VECTOR");
    result.assertRight("AUTO", 2);
    assertThat(result.lines("VECTOR throws"))
        .singleElement()
        .asString()
        .contains("IllegalStateException");
    result.assertOneWarning(flag.contains("FMA") ? "flag UseFMA" : "C2");
  }

  /** A hidden flag disables FMA: it is read from the VM, or found by speed where no module can read it. */
  @Test
  void noFusedMultiplyAddByAHiddenFlag() throws Exception {
    Path file = Files.writeString(scratch.resolve("options"), "-XX:-UseFMA");
    String module = "jdk.incubator.vector";
    List<String> flags = new ArrayList<>(List.of("--add-modules", module, "@" + file));
    Result result = run(false, flags, "AUTO");
    result.assertRight("AUTO", 1);
    result.assertOneWarning("flag UseFMA");
    flags.addAll(List.of("--limit-modules", "java.logging," + module));
    result = run(false, flags, "AUTO");
    result.assertRight("AUTO", 1);
    result.assertOneWarning("recognized by its speed");
  }

  /** Bytes are counted by jdk.management: without it, with or without java.management, none are, and all else is verified. */
  @Tag("long")
  @ParameterizedTest
  @CsvSource({
    "'java.management,', BYTES, BYTES of this thread: -1",
    "'', VERIFY, 'VERIFY passed: true, bytes counted of 0'"
  })
  void noModuleThatCountsBytes(String management, String what, String said) throws Exception {
    String module = "jdk.incubator.vector";
    String limits = "java.logging," + management + module + ",dev.kullback";
    Result result = run(true, List.of("--add-modules", module, "--limit-modules", limits), what);
    assertThat(result.lines(what)).containsExactly(said);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "-Ddev.kullback.fma=TRUE", "-Ddev.kullback.fma=false"})
  void aPropertyOverrulesWhatIsFoundOfFusedMultiplyAdd(String property) throws Exception {
    List<String> flags = new ArrayList<>(List.of("--add-modules", "jdk.incubator.vector"));
    if (!property.isEmpty()) {
      flags.add(property);
    }
    Result result = run(false, flags, "AUTO", "VECTOR");
    result.assertRight("AUTO", 1);
    String source =
        property.isEmpty() ? "recognized by its speed" : "recognized by system property";
    assertThat(result.lines("VECTOR describes")).singleElement().asString().contains(source);
    if (property.endsWith("false")) {
      assertThat(result.lines("AUTO describes")).singleElement().asString().contains("scalar");
      assertThat(result.lines("VECTOR throws")).singleElement().asString().contains(source);
    } else {
      assertThat(result.lines("AUTO describes"))
          .singleElement()
          .asString()
          .contains("chooses vector");
      result.assertRight("VECTOR", 1);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "-XX:-UseTypeSpeculation, true",
    "-XX:-UseTypeSpeculation -XX:+UseTypeSpeculation, false",
  })
  void virtualMachinesThatBox(String options, boolean box) throws Exception {
    List<String> flags =
        new ArrayList<>(
            List.of("--add-modules", "jdk.incubator.vector", "-Ddev.kullback.vectorBits=128"));
    flags.addAll(List.of(options.split(" ")));
    String described = run(false, flags, "VECTOR").lines("VECTOR describes").getFirst();
    assertThat(described.contains("-XX:-UseTypeSpeculation makes C2 box"))
        .as(described)
        .isEqualTo(box);
  }

  /** {@link Math#fma} goes through BigDecimal then, to the same bits. */
  @Test
  void whatIsWronglyTakenForFusedMultiplyAddIsRight() throws Exception {
    List<String> flags = new ArrayList<>(List.of("--add-modules", "jdk.incubator.vector"));
    flags.addAll(List.of("-Ddev.kullback.fma=true", "-Ddev.kullback.compiled=false"));
    List<String> right = run(false, flags, "AUTO").lines("AUTO returns");
    flags.add("-XX:-UseFMA");
    Result result = run(false, flags, "AUTO");
    result.assertRight("AUTO", 1);
    assertThat(result.lines("AUTO returns")).isEqualTo(right);
  }

  /**
   * Vectors that C2 does not compile are detected by speed: the flags are not on the command line, or the VM boxes vectors whatever its
   * flags.
   */
  @Tag("long")
  @ParameterizedTest
  @ValueSource(
      strings = {
        "-XX:TieredStopAtLevel=2",
        "-XX:+UnlockDiagnosticVMOptions -XX:DisableIntrinsic=_VectorTernaryOp"
      })
  void virtualMachinesThatDoNotCompileVectors(String options) throws Exception {
    Path file = Files.writeString(scratch.resolve("options"), options);
    List<String> flags = List.of("--add-modules", "jdk.incubator.vector", "@" + file);
    Result result = run(false, flags, "AUTO", "AUTO", "VECTOR");
    result.assertRight("AUTO", 2);
    result.assertRight("VECTOR", 1); // slowly
    assertThat(result.lines("AUTO describes")).first().asString().contains("vector", "plain code");
    assertThat(result.lines("VECTOR describes")).first().asString().contains("not compile");
    result.assertOneWarning("not compile");
  }

  @Tag("long")
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aPropertyOverrulesWhetherVectorsAreCompiled(boolean background) throws Exception {
    List<String> flags =
        new ArrayList<>(
            List.of(
                "--add-modules",
                "jdk.incubator.vector",
                "-Ddev.kullback.background=" + background,
                "-Ddev.kullback.compiled=false"));
    Result result = run(false, flags, "AUTO", "VECTOR");
    result.assertRight("AUTO", 1);
    result.assertRight("VECTOR", 1);
    assertThat(result.lines("VECTOR describes"))
        .singleElement()
        .asString()
        .contains("plain code", "property dev.kullback.compiled is false");
    result.assertOneWarning("property dev.kullback.compiled is false");

    flags.set(3, "-Ddev.kullback.compiled=true");
    flags.addAll(
        List.of("-XX:+UnlockDiagnosticVMOptions", "-XX:DisableIntrinsic=_VectorTernaryOp"));
    result = run(false, flags, "AUTO", "VECTOR");
    result.assertRight("AUTO", 1);
    result.assertRight("VECTOR", 1);
    assertThat(result.lines("VECTOR describes"))
        .singleElement()
        .asString()
        .contains("compiled vectors by system property dev.kullback.compiled");
    assertThat(result.err).noneMatch(line -> line.contains("not compile"));
  }

  /** A width may be forced on any x86: a processor that has vectors of 512 bits can be told to do without. */
  @ParameterizedTest
  @ValueSource(strings = {"128", "256", "512"})
  void forcedWidths(String bits) throws Exception {
    List<String> flags =
        List.of(
            "--add-modules",
            "jdk.incubator.vector",
            "-XX:+IgnoreUnrecognizedVMOptions",
            "-XX:UseAVX=2",
            "-Ddev.kullback.vectorBits=" + bits);
    Result result = run(false, flags, "VECTOR", "AUTO");
    if (Integer.parseInt(bits) <= Math.min(256, VectorWidth.MOST_BITS)) {
      result.assertRight("VECTOR", 1);
      result.assertRight("AUTO", 1);
      assertThat(result.lines("VECTOR describes")).singleElement().asString().contains(bits);
    } else {
      assertThat(result.lines("VECTOR throws")).singleElement().asString().contains(bits);
      assertThat(result.lines("AUTO throws")).singleElement().asString().contains(bits);
    }
  }

  /** No vector class is loaded, neither by kernels nor where batches are made; of the scans, their scalar twins alone. */
  @Test
  void forcedScalarRunsNoVectorCode() throws Exception {
    Path log = scratch.resolve("classes");
    List<String> flags =
        List.of(
            "--add-modules",
            "jdk.incubator.vector",
            "-Ddev.kullback.backend=Scalar",
            "-Xlog:class+load:file=" + log);
    Result result = run(false, flags, "AUTO");
    result.assertRight("AUTO", 1);
    assertThat(result.lines("AUTO describes"))
        .singleElement()
        .asString()
        .contains("scalar", "dev.kullback.backend");
    assertThat(Files.readAllLines(log))
        .anyMatch(line -> line.contains(" dev.kullback.internal.formula.Pair "))
        .noneMatch(line -> line.contains(" jdk.incubator.vector."))
        .filteredOn(line -> line.contains(" dev.kullback.internal.vector."))
        .allMatch(line -> line.contains(" dev.kullback.internal.vector.scan.Scalar"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"vector", "scalar", "cuda", "gpu"})
  void autoSaysWhatThePropertyMakesOfIt(String property) throws Exception {
    Result result = run(false, List.of("-Ddev.kullback.backend=" + property), "AUTO");
    String said = String.join("", result.lines("AUTO describes"));
    if (property.equals("scalar")) {
      assertThat(said).contains("chooses scalar", "dev.kullback.backend");
    } else { // no such backend, no module for it, no library
      assertThat(said).contains("unavailable", property.equals("gpu") ? "'gpu'" : property);
      assertThat(result.lines("AUTO is available: false")).hasSize(1);
      assertThat(result.lines("AUTO throws")).hasSize(1);
    }
  }

  @ParameterizedTest
  @CsvSource({"vectorBits, 100", "fma, 1", "compiled, yes", "background, off"})
  void unknownValuesOfProperties(String name, String value) throws Exception {
    String property = "dev.kullback." + name;
    List<String> flags =
        List.of("--add-modules", "jdk.incubator.vector", "-D%s=%s".formatted(property, value));
    Result result = run(false, flags, "AUTO", "VECTOR", "SCALAR", "INDEX");
    for (String backend : List.of("AUTO", "VECTOR", "SCALAR")) {
      assertThat(result.lines(backend + " throws"))
          .singleElement()
          .asString()
          .contains("IllegalArgumentException", property, "'" + value + "'");
    }
    assertThat(result.lines("AUTO describes"))
        .singleElement()
        .asString()
        .contains("unavailable", property);
    assertThat(result.lines("VECTOR describes"))
        .singleElement()
        .asString()
        .contains("unavailable", property);
  }

  /** Runs {@link Probe} with these flags on the class path or the module path. */
  private Result run(boolean modular, List<String> flags, String... backends) throws Exception {
    String main = root(KlEngine.class);
    String test = root(Probe.class);
    List<String> arguments = new ArrayList<>();
    arguments.add("-Duser.language=en");
    arguments.addAll(flags);
    if (modular) {
      arguments.addAll(List.of("--module-path", main, "--patch-module", "dev.kullback=" + test));
      arguments.addAll(List.of("--module", "dev.kullback/" + Probe.class.getName()));
    } else {
      arguments.addAll(List.of("--class-path", main + File.pathSeparator + test));
      arguments.add(Probe.class.getName());
    }
    arguments.addAll(Arrays.asList(backends));
    ChildJvm jvm = ChildJvm.run(scratch, Duration.ofMinutes(4), arguments);
    assertThat(jvm.status()).as("%s%n%s", arguments, jvm).isZero();
    return new Result(jvm.out().lines().toList(), jvm.err().lines().toList());
  }

  /**
   * The folder or archive a class was loaded from; a patched module would name the module's own.
   */
  private static String root(Class<?> type) throws URISyntaxException {
    String name = type.getName().replace('.', '/') + ".class";
    URI place = type.getResource(type.getSimpleName() + ".class").toURI();
    String path = place.toString();
    if (path.startsWith("jar:")) {
      return Path.of(URI.create(path.substring(4, path.indexOf("!/")))).toString();
    }
    return Path.of(URI.create(path.substring(0, path.length() - name.length()))).toString();
  }

  private record Result(List<String> out, List<String> err) {
    List<String> lines(String start) {
      return out.stream().filter(line -> line.startsWith(start)).toList();
    }

    void assertRight(String backend, int times) {
      double[] expected = Oracle.pairwise(Probe.q(), Probe.p());
      List<String> lines = lines(backend + " returns ");
      assertThat(lines).as("%s", this).hasSize(times);
      for (String line : lines) {
        double[] actual =
            Arrays.stream(line.split(" ")).skip(2).mapToDouble(Double::parseDouble).toArray();
        Check.matrix(backend, Probe.p().size(), expected, actual, Check.Precision.FLOAT);
      }
    }

    void assertOneWarning(String reason) {
      assertThat(err)
          .as("%s", this)
          .filteredOn(line -> line.startsWith("WARNING: ") && line.contains(reason))
          .hasSize(1);
    }
  }
}
