package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs({OS.LINUX, OS.MAC})
class OutputFileTest {
  private static final byte[] NEW = "new".getBytes(StandardCharsets.US_ASCII);

  @TempDir Path folder;

  private List<String> names() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(f -> f.getFileName().toString()).sorted().toList();
    }
  }

  private static void write(Path path) throws IOException {
    try (OutputFile file = new OutputFile(path)) {
      file.write(NEW);
      file.commit();
    }
  }

  @Test
  void appearsWhole() throws IOException {
    Path target = folder.resolve("a");
    try (OutputFile file = new OutputFile(target)) {
      file.write(NEW);
      assertThat(target).doesNotExist();
      file.write(NEW);
      file.commit();
      assertThat(target).hasContent("newnew");
    }
    assertThat(names()).containsExactly("a");
    Path plain = Files.createFile(folder.resolve("plain"));
    assertThat(Files.getPosixFilePermissions(target))
        .isEqualTo(Files.getPosixFilePermissions(plain));
  }

  @Test
  void orNotAtAll() throws IOException {
    Path target = Files.writeString(folder.resolve("a"), "old");
    try (OutputFile file = new OutputFile(target)) {
      file.write(NEW);
      assertThat(names()).hasSize(2);
    }
    assertThat(target).hasContent("old");
    assertThat(names()).containsExactly("a");
  }

  /** Single values, whole segments, a stream and a header come in the order of the calls. */
  @Test
  void putsInOrder() throws IOException {
    ByteBuffer expected = ByteBuffer.allocate(1 << 20).order(ByteOrder.nativeOrder());
    expected.put("header".getBytes(StandardCharsets.US_ASCII));
    ByteArrayOutputStream copy = new ByteArrayOutputStream();
    try (OutputFile file = new OutputFile(folder.resolve("a"))) {
      file.write("HEADER".getBytes(StandardCharsets.US_ASCII));
      for (int k = 0; k < 10_000; k++) { // more than the buffer holds
        file.putInt(k);
        assertThat(file.put(k + 0.1, true)).isEqualTo(k + 0.1);
        assertThat(file.put(k + 0.1, false)).isEqualTo((float) (k + 0.1));
        file.putLong(-k);
        expected.putInt(k).putDouble(k + 0.1).putFloat((float) (k + 0.1)).putLong(-k);
      }
      file.write(NEW);
      try (OutputStream stream = file.stream()) {
        stream.write('x');
        stream.write(NEW, 1, 2);
      }
      file.putInt(7);
      file.replaceHeader("header".getBytes(StandardCharsets.US_ASCII));
      file.putInt(8);
      expected.put(NEW).put("xew".getBytes(StandardCharsets.US_ASCII)).putInt(7).putInt(8);
      file.copyTo(copy);
      file.commit();
    }
    byte[] bytes = Arrays.copyOf(expected.array(), expected.position());
    assertThat(folder.resolve("a")).hasBinaryContent(bytes);
    assertThat(copy.toByteArray()).isEqualTo(bytes);
  }

  /** So that two files appear together, what may fail comes before either is renamed. */
  @Test
  void finishesBeforeTheCommit() throws IOException {
    Path target = Files.writeString(folder.resolve("a"), "old");
    try (OutputFile file = new OutputFile(target)) {
      file.putInt(0);
      file.finish();
      assertThat(target).hasContent("old");
      assertThatThrownBy(() -> file.write(NEW)).isInstanceOf(UserError.class); // it is closed
      file.commit();
      assertThat(target).hasBinaryContent(new byte[4]);
    }
    try (OutputFile file = new OutputFile(target)) {
      file.finish();
    }
    assertThat(target).hasBinaryContent(new byte[4]);
    assertThat(names()).containsExactly("a");
  }

  @Test
  void keepsPermissions() throws IOException {
    Path target = Files.writeString(folder.resolve("a"), "old");
    Files.setPosixFilePermissions(target, PosixFilePermissions.fromString("rw-r-x-w-"));
    write(target);
    assertThat(target).hasContent("new");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(target)))
        .isEqualTo("rw-r-x-w-");
  }

  @Test
  void writesThroughLinks() throws IOException {
    Path other = Files.createDirectory(folder.resolve("other"));
    Path target = Files.writeString(other.resolve("a"), "old");
    Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("other/a"));
    Path second = Files.createSymbolicLink(folder.resolve("second"), link);
    write(second);
    assertThat(target).hasContent("new");
    assertThat(link).isSymbolicLink();
    assertThat(second).isSymbolicLink();

    Path dangling = Files.createSymbolicLink(folder.resolve("dangling"), other.resolve("b"));
    write(dangling);
    assertThat(other.resolve("b")).hasContent("new");

    Path loop = Files.createSymbolicLink(folder.resolve("loop"), Path.of("loop"));
    assertThatThrownBy(() -> new OutputFile(loop))
        .isInstanceOf(UserError.class)
        .hasMessageContaining("symbolic links");
  }

  @Test
  void knowsItsTarget() throws IOException {
    Files.createSymbolicLink(folder.resolve("link"), Path.of("a"));
    Files.createDirectory(folder.resolve("x"));
    try (OutputFile a = new OutputFile(folder.resolve("a"));
        OutputFile link = new OutputFile(folder.resolve("link"));
        OutputFile dots = new OutputFile(folder.resolve("./x/../a"));
        OutputFile b = new OutputFile(folder.resolve("b"))) {
      assertThat(a.hasTargetOf(link)).isTrue();
      assertThat(a.hasTargetOf(b)).isFalse();
      assertThat(a.hasTargetOf(dots)).isTrue();
    }
  }

  @Test
  void needsSpace() throws IOException {
    try (OutputFile file = new OutputFile(folder.resolve("a"))) {
      file.requireSpace(1);
      assertThatThrownBy(() -> file.requireSpace(Long.MAX_VALUE))
          .isInstanceOf(UserError.class)
          .hasMessageContaining("GB free");
    }
  }

  @Test
  @Timeout(60)
  void isRemovedByASignal() throws Exception {
    Path target = Files.writeString(folder.resolve("a"), "old");
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                String.join(
                    System.getProperty("path.separator"),
                    location(OutputFile.class),
                    location(Sleeper.class),
                    location(NullMarked.class)),
                Sleeper.class.getName(),
                target.toString())
            .redirectErrorStream(true)
            .start();
    try {
      assertThat(process.inputReader().readLine()).isEqualTo("ready");
      assertThat(names()).hasSize(2);
      process.destroy(); // SIGTERM
      assertThat(process.waitFor(50, TimeUnit.SECONDS)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    assertThat(target).hasContent("old");
    assertThat(names()).containsExactly("a");
  }

  private static String location(Class<?> type) throws URISyntaxException {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
  }

  /** Writes and never commits. */
  static final class Sleeper {
    public static void main(String[] args) throws Exception {
      try (OutputFile file = new OutputFile(Path.of(args[0]))) {
        file.write(NEW);
        System.out.println("ready");
        Thread.sleep(60_000);
      }
    }
  }
}
