package dev.kullback.cli.output;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.kullback.cli.terminal.UserError;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchEvent;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@EnabledOnOs({OS.LINUX, OS.MAC})
@Timeout(60)
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
  void appearsWholeOrNotAtAll() throws IOException {
    Path target = folder.resolve("a");
    try (OutputFile file = new OutputFile(target)) {
      file.write(NEW);
      assertThat(target).doesNotExist();
      file.write(NEW);
      file.commit();
      assertThat(target).hasContent("newnew");
    }
    try (OutputFile file = new OutputFile(target)) {
      file.write(NEW);
      assertThat(names()).hasSize(2);
    }
    assertThat(target).hasContent("newnew");
    assertThat(names()).containsExactly("a");
  }

  /** Where nothing is to be replaced, a file that appears before the commit stays, too. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void replacesNothing(boolean isFinished) throws IOException {
    Path target = folder.resolve("a");
    try (OutputFile file = new OutputFile(target, false)) {
      file.write(NEW);
      if (isFinished) {
        file.finish();
      }
      Files.writeString(target, "old");
      assertThatThrownBy(file::commit)
          .isInstanceOf(UserError.class)
          .hasMessageStartingWith(target + ": is there, and --no-clobber keeps it");
    }
    assertThat(target).hasContent("old");
    assertThat(names()).containsExactly("a");
    assertThatThrownBy(() -> new OutputFile(target, false)).isInstanceOf(UserError.class);
    Files.delete(target);
    try (OutputFile file = new OutputFile(target, false)) {
      file.write(NEW);
      file.commit();
    }
    assertThat(target).hasContent("new");
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

  /** Everything that may fail comes before the rename, so that two files appear together. */
  @Test
  void finishesBeforeTheCommit() throws IOException {
    Path target = Files.writeString(folder.resolve("a"), "old");
    try (OutputFile file = new OutputFile(target)) {
      file.putInt(0);
      file.finish();
      assertThat(target).hasContent("old");
      assertThatThrownBy(() -> file.write(NEW)).isInstanceOf(IllegalStateException.class);
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

  /** A link such as /dev/stdout may lead to a pipe, which has no name. */
  @Test
  void refusesPipes() throws IOException {
    Path pipe = Path.of("/proc/self/fd/0");
    assumeThat(Files.isSymbolicLink(pipe)).isTrue();
    assumeThat(Files.readSymbolicLink(pipe).toString()).startsWith("pipe:");
    assertThatThrownBy(() -> new OutputFile(pipe).close())
        .isInstanceOf(UserError.class)
        .hasMessage(pipe + ": is not a regular file: name another output");
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
          .isInstanceOf(OutputFailure.class)
          .hasMessageContaining("GB free");
    }
  }

  /** A writer of the file in a virtual machine of its own, up to where it says so; it is killed in the end. */
  private record Other(Process process) implements AutoCloseable {
    static Other writes(String umask, Path target, String step) throws Exception {
      String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
      String classes =
          String.join(
              System.getProperty("path.separator"),
              location(OutputFile.class),
              location(Writer.class),
              location(NullMarked.class));
      String line = "umask %s; exec \"$0\" -cp \"$1\" %s \"$2\" %s";
      line = line.formatted(umask, "'" + Writer.class.getName() + "'", step);
      Process process =
          new ProcessBuilder("sh", "-c", line, java, classes, target.toString())
              .redirectErrorStream(true)
              .start();
      assertThat(process.inputReader().readLine()).isEqualTo("ready");
      return new Other(process);
    }

    void commit() throws Exception {
      try (var go = process.outputWriter()) {
        go.write("commit\n");
      }
      assertThat(process.waitFor(50, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).as(process.inputReader().readAllAsString()).isZero();
    }

    @Override
    public void close() {
      process.destroyForcibly().onExit().join(); // SIGKILL
    }
  }

  private static String location(Class<?> type) throws URISyntaxException {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
  }

  /** Commits what it wrote when told to. */
  static final class Writer {
    public static void main(String[] args) throws Exception {
      Path target = Path.of(args[0]);
      if (args[1].equals("often")) {
        System.out.println("ready");
        for (int k = 0; k < 200; k++) {
          OutputFileTest.write(target);
        }
      }
      try (OutputFile file = new OutputFile(target)) {
        file.write(NEW);
        if (args[1].equals("copied")) {
          file.copyTo(OutputStream.nullOutputStream());
        } else if (args[1].equals("finished")) {
          file.finish();
        }
        System.out.println("ready");
        if (System.in.read() == 'c') {
          file.commit();
        }
      }
    }
  }

  @Test
  void isRemovedByASignal() throws Exception {
    Path target = Files.writeString(folder.resolve("a"), "old");
    try (Other other = Other.writes("022", target, "begun")) {
      assertThat(names()).hasSize(2);
      other.process.destroy(); // SIGTERM
      assertThat(other.process.waitFor(50, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(target).hasContent("old");
    assertThat(names()).containsExactly("a");
  }

  /** A process that was killed leaves its file, and the next to write the very same removes it. */
  @Test
  void leftoversAreRemoved() throws Exception {
    removesItsLeftover("\\.a\\.npy", "a.npy", "b.npy", "a", "A.npy");
    removesItsLeftover("\\.x+~[0-9a-f]{8}", "x".repeat(200), "x".repeat(199));
  }

  private void removesItsLeftover(String temporary, String name, String... others)
      throws Exception {
    Other.writes("022", folder.resolve(name), "begun").close();
    for (String other : others) {
      write(folder.resolve(other));
    }
    assertThat(names())
        .contains(others)
        .filteredOn(file -> file.startsWith("."))
        .singleElement()
        .asString()
        .matches(temporary + "\\.[0-9a-f]{16}\\.kullback-tmp");
    write(folder.resolve(name));
    assertThat(names()).contains(others).contains(name).noneMatch(file -> file.startsWith("."));
  }

  /** Whoever holds a file keeps it, from its first byte to its name. */
  @ParameterizedTest
  @ValueSource(strings = {"begun", "copied", "finished"})
  void filesInUseStay(String step) throws Exception {
    Path target = folder.resolve("a");
    try (Other other = Other.writes("022", target, step)) {
      assertThat(names()).hasSize(1);
      try (OutputFile file = new OutputFile(target)) {
        file.write("mine".getBytes(StandardCharsets.US_ASCII));
        assertThat(names()).hasSize(2);
        file.commit();
      }
      assertThat(names()).hasSize(2);
      assertThat(target).hasContent("mine");
      other.commit();
    }
    assertThat(target).hasContent("new");
    assertThat(names()).containsExactly("a");
  }

  /** A process does not look at files that it holds itself: that would release their locks, and other processes would remove them. */
  @Test
  void filesInUseByThisProcessStay() throws Exception {
    Path target = folder.resolve("a");
    try (OutputFile first = new OutputFile(target);
        OutputFile second = new OutputFile(target)) {
      first.write(NEW);
      second.write(NEW);
      second.write(NEW);
      Other.writes("022", target, "begun").commit();
      assertThat(names()).hasSize(3);
      first.commit();
      assertThat(target).hasContent("new");
      second.commit();
    }
    assertThat(target).hasContent("newnew");
    assertThat(names()).containsExactly("a");
  }

  /** Many writers of one file, in two processes, do not remove what another has only just made. */
  @Test
  void manyAtOnce() throws Exception {
    Path target = folder.resolve("a");
    Callable<Boolean> work =
        () -> {
          for (int k = 0; k < 100; k++) {
            write(target);
          }
          return true;
        };
    try (Other other = Other.writes("022", target, "often");
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      for (Future<Boolean> each : threads.invokeAll(Collections.nCopies(2, work))) {
        assertThat(each.get()).isTrue();
      }
      other.commit();
    }
    assertThat(target).hasContent("new");
    assertThat(names()).containsExactly("a");
  }

  /** No temporary name is used twice: a process that has opened the first file as a leftover would remove the second by its name. */
  @Test
  @EnabledOnOs(OS.LINUX) // where each file that comes is told
  void noNameStandsForTwoFiles() throws Exception {
    try (WatchService watch = folder.getFileSystem().newWatchService()) {
      folder.register(watch, StandardWatchEventKinds.ENTRY_CREATE);
      write(folder.resolve("a"));
      Files.createFile(folder.resolve("end"));
      List<String> created = new ArrayList<>();
      while (!created.contains("end")) {
        WatchKey key = watch.take();
        for (WatchEvent<?> event : key.pollEvents()) {
          created.addAll(Collections.nCopies(event.count(), String.valueOf(event.context())));
        }
        key.reset();
      }
      assertThat(created).doesNotHaveDuplicates().contains("a").hasSizeGreaterThan(2);
    }
  }

  @Test
  void whatIsNoLeftoverStays() throws IOException {
    String name = ".a.0123456789abcdef.kullback-tmp";
    Path precious = Files.writeString(folder.resolve("precious"), "precious");
    Files.createSymbolicLink(folder.resolve(name), precious);
    Files.createDirectory(folder.resolve(name.replace("0123", "4567")));
    for (String other :
        new String[] {
          ".a.0123456789abcde.kullback-tmp",
          ".a.0123456789ABCDEF.kullback-tmp",
          ".a.0123456789abcdef.kullback-tmp.npy",
          ".ab.0123456789abcdef.kullback-tmp",
          ".a.b.0123456789abcdef.kullback-tmp",
          "a.0123456789abcdef.kullback-tmp",
        }) {
      Files.createFile(folder.resolve(other));
    }
    List<String> before = names();
    write(folder.resolve("a"));
    assertThat(names()).containsAll(before).hasSize(before.size() + 1);
    assertThat(precious).hasContent("precious");
    Files.delete(folder.resolve(name));
    Files.createFile(folder.resolve(name));
    write(folder.resolve("a"));
    assertThat(names()).doesNotContain(name).hasSize(before.size());
  }

  @Test
  @EnabledOnOs(OS.LINUX) // elsewhere names are limited in characters
  void longNames() throws IOException {
    assumeThat(System.getProperty("sun.jnu.encoding")).isEqualTo("UTF-8");
    for (String unit : new String[] {"x", "é", "漢", "😀"}) {
      int bytes = unit.getBytes(StandardCharsets.UTF_8).length;
      for (int length : new int[] {100 / bytes, 110 / bytes, 110 / bytes + 1, 255 / bytes}) {
        Path target = folder.resolve(unit.repeat(length));
        Path alike = folder.resolve(unit.repeat(length - 1) + "z");
        try (OutputFile file = new OutputFile(target);
            OutputFile other = new OutputFile(alike)) {
          assertThat(other.hasTargetOf(file)).isFalse();
          assertThat(names())
              .filteredOn(name -> name.endsWith(".kullback-tmp"))
              .hasSize(2)
              .allSatisfy(
                  name -> assertThat(name.getBytes(StandardCharsets.UTF_8)).hasSizeLessThan(143))
              .noneMatch(name -> name.contains("\ufffd"));
          file.write(NEW);
          file.commit();
        }
        assertThat(target).hasContent("new");
        assertThat(alike).doesNotExist();
        Files.delete(target);
        assertThat(names()).isEmpty();
      }
    }
  }

  /** A new file has the usual permissions, an old one keeps its own, and before that nobody else reads it. */
  @ParameterizedTest
  @CsvSource({"022, rw-r--r--", "077, rw-------", "002, rw-rw-r--", "027, rw-r-----"})
  void isPrivateUntilItIsWhole(String umask, String usual) throws Exception {
    Path target = folder.resolve("a");
    for (String wanted : new String[] {usual, "rw-r--rw-"}) {
      try (Other other = Other.writes(umask, target, "begun")) {
        String temporary = names().getFirst();
        assertThat(temporary).endsWith(".kullback-tmp");
        assertThat(permissions(folder.resolve(temporary))).isEqualTo("rw-------");
        other.commit();
      }
      assertThat(permissions(target)).isEqualTo(wanted);
      permit(target, "rw-r--rw-");
    }
  }

  private static void permit(Path file, String permissions) throws IOException {
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
  }

  private static String permissions(Path file) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
  }

  /** A bad name is the user's error; a refusal of the file system is not. */
  @Test
  void failuresAreNoUserErrors() throws IOException {
    Path target = folder.resolve("x/a");
    assertThatThrownBy(() -> new OutputFile(target)).isInstanceOf(UserError.class);
    Path other = Files.createDirectory(folder.resolve("x"));
    try (OutputFile file = new OutputFile(target)) {
      try (Stream<Path> files = Files.list(other)) {
        Files.delete(files.findAny().orElseThrow());
      }
      assertThatThrownBy(file::commit)
          .isInstanceOf(OutputFailure.class)
          .hasMessage(target + ": cannot be written: no such file");
    }
  }

  @Test
  void missingPermissionIsAFailure() throws IOException {
    Path closed = Files.createDirectory(folder.resolve("closed"));
    Path target = Files.writeString(closed.resolve("a"), "old");
    permit(closed, "r-xr-xr-x");
    assumeThat(Files.isWritable(closed)).as("root may write anywhere").isFalse();
    assertFails(target, ": cannot be written: permission denied");
    permit(closed, "---------");
    assertFails(target, "permission denied");
    permit(closed, "rwxr-xr-x");
    permit(target, "r--r--r--");
    assertFails(target, ": is write-protected: name another output");
  }

  private static void assertFails(Path target, String message) {
    assertThatThrownBy(() -> new OutputFile(target))
        .isInstanceOf(OutputFailure.class)
        .hasMessageStartingWith(target + ": ")
        .hasMessageEndingWith(message);
  }
}
