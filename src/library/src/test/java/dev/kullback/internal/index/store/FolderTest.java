package dev.kullback.internal.index.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.CorruptIndexException;
import dev.kullback.DiskFullException;
import dev.kullback.IndexLockedException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Files of an index: what is read back, what is refused, and what is left where a process ends in the middle. */
@Timeout(value = 600, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FolderTest {
  private static final long[] MANY = LongStream.range(0, 3000).map(id -> 3 * id).toArray();

  @TempDir private Path scratch;

  @Test
  void whatWasCommittedIsReadBack() throws IOException {
    Path folder = scratch.resolve("new").resolve("index");
    Map<Long, Long> committed;
    try (Index index = Index.open(folder, 1)) {
      index.add(MANY, Content.batch(MANY));
      index.add(new long[] {-1, -2}, Content.batch(1, true, 5, 6));
      index.remove(3, 300);
      assertThat(index.changes()).isEqualTo(MANY.length + 4);
      assertThat(index.commit()).isTrue();
      assertThat(index.changes()).isZero();
      committed = Content.of(index);
      assertThat(committed).hasSize(MANY.length);
      index.add(new long[] {7}, Content.batch(7)); // never committed
    }
    for (int dimension : new int[] {0, 1}) {
      try (Index index = Index.open(folder, dimension)) {
        assertThat(index.dimension()).isEqualTo(1);
        assertThat(Content.of(index)).isEqualTo(committed);
        index.verify();
        try (Snapshot state = index.acquire()) {
          for (LiveSegment part : state.segments()) { // small ones are read into memory
            assertThat(part.segment().isMapped()).isEqualTo(part.segment().size() > 2);
          }
        }
      }
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Index.open(folder, 2))
        .withMessage(folder.toRealPath() + " is an index of dimension 1, not 2");
  }

  /** A commit writes segments that are new, bits that changed, and a manifest; none of what is there already. */
  @Test
  void commitsWriteWhatChanged() throws IOException {
    List<String> written = new ArrayList<>();
    FileOperations files =
        new FileOperations() {
          @Override
          void write(Path file, MemorySegment bytes) throws IOException {
            written.add(file.getFileName().toString());
            super.write(file, bytes);
          }
        };
    try (Index index = Index.open(scratch, 1, files, Segment::merge)) {
      index.add(MANY, Content.batch(MANY));
      index.commit();
      written.clear();
      assertThat(index.commit()).isFalse();
      assertThat(written).isEmpty();
      index.remove(6);
      index.commit();
      assertThat(written).containsExactly("deleted-000002.bin.tmp", "manifest.tmp");
      written.clear();
      index.add(new long[] {6}, Content.batch(6));
      index.add(new long[] {7}, Content.batch(7));
      index.add(new long[] {-1}, Content.batch(-1));
      index.commit();
      assertThat(written)
          .containsExactly("segment-000003.bin.tmp", "deleted-000004.bin.tmp", "manifest.tmp");
      written.clear();
      index.remove(7);
      index.add(new long[] {7}, Content.batch(8));
      index.commit();
      assertThat(written).hasSize(3);
      assertThat(names()).hasSize(6);
    }
    written.clear();
    try (Index index = Index.open(scratch, 1, files, Segment::merge)) {
      assertThat(index.commit()).isFalse();
      assertThat(written).isEmpty();
      assertThat(Content.of(index)).containsEntry(7L, 8L).hasSize(MANY.length + 2);
      index.remove(LongStream.range(-1, 10_000).toArray());
      index.commit();
      assertThat(names()).containsExactlyInAnyOrder("lock", "manifest");
    }
    try (Index index = Index.open(scratch, 0)) {
      assertThat(index.size()).isZero();
    }
  }

  private Set<String> names() throws IOException {
    return names(scratch);
  }

  private static Set<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      Set<String> names = new HashSet<>();
      files.forEach(file -> names.add(file.getFileName().toString()));
      return names;
    }
  }

  // --- what is refused

  @Test
  void foldersThatAreNoIndex() throws IOException {
    refused(scratch.resolve("none"), 0, "there is no such folder");
    refused(scratch, 0, "is not the folder of an index: it has no file named manifest");
    for (Path folder : List.of(scratch.resolve("none"), scratch)) {
      assertThatThrownBy(() -> Index.openReadOnly(folder, Wanted.of(0)).close())
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageStartingWith(
              folder.equals(scratch)
                  ? scratch.toRealPath()
                      + ": is not the folder of an index: it has no file named manifest; if another"
                  : folder + ": there is no such folder; if another")
          .hasMessageEndingWith("; if another process makes the index, try again when it has");
    }
    refused(Files.writeString(scratch.resolve("letter.txt"), "Dear"), 1, "is not a folder");
    Path link = Files.createSymbolicLink(scratch.resolve("link"), Path.of("nowhere"));
    refused(link, 1, "is a link to nowhere, which is not there");
    refused(scratch.resolve("n".repeat(300)), 1, "File name too long");
    assertThat(names()).containsExactlyInAnyOrder("letter.txt", "link");
  }

  /** What systems and people put into folders is left alone; what may be of another index is not. */
  @Test
  void foldersThatAreNotEmpty() throws IOException {
    Map<String, String> others = new TreeMap<>();
    for (String name :
        List.of(
            ".DS_Store",
            ".nfs000001",
            ".gitkeep",
            "README.md",
            "segment",
            "deleted-1.txt",
            "lock")) {
      others.put(name, "of another program");
      Files.writeString(scratch.resolve(name), "of another program");
    }
    Files.createDirectories(scratch.resolve("lost+found"));
    Files.createDirectories(scratch.resolve(".snapshot/segment-000001.bin"));
    try (Index index = Index.open(scratch, 1)) {
      index.add(MANY, Content.batch(MANY));
      index.commit();
      index.remove(MANY);
      index.commit();
    }
    Index.openReadOnly(scratch, Wanted.of(0)).close();
    for (String name : others.keySet()) {
      assertThat(scratch.resolve(name)).hasContent(others.get(name));
    }
    assertThat(scratch.resolve(".snapshot/segment-000001.bin")).isDirectory();
    assertThat(scratch.resolve("lost+found")).isDirectory();
    Path orphans = Files.createDirectory(scratch.resolve("orphans"));
    Files.createFile(orphans.resolve("segment-000001.bin"));
    String lost = "has no file named manifest, but has segment-000001.bin: restore";
    corrupt(orphans, 1, lost);
    corrupt(orphans, 0, lost);
    assertThatThrownBy(() -> Index.openReadOnly(orphans, Wanted.of(0)).close())
        .isInstanceOf(CorruptIndexException.class)
        .hasMessageContaining(lost);
    Path foreign = Files.createDirectory(scratch.resolve("foreign"));
    Files.writeString(foreign.resolve("manifest.tmp"), "of another program");
    refused(foreign, 1, "manifest.tmp: is not an index's");
    assertThat(foreign.resolve("manifest.tmp")).hasContent("of another program");
  }

  @Test
  void foldersThatAreOpen() throws Exception {
    Path folder = scratch.resolve("index");
    Index index = Index.open(folder, 1);
    held(folder, 1, "is open in this process already");
    held(scratch.resolve("index/../index"), 0, "is open in this process already");
    assertThat(openElsewhere(folder))
        .contains("IndexLockedException")
        .containsPattern(
            "is open in process %d on \\S+ since \\S+; close it there first; KlIndex.openReadOnly reads the last commit meanwhile"
                .formatted(ProcessHandle.current().pid()));
    index.close();
    assertThat(openElsewhere(folder)).contains("opened");
    Index.open(folder, 1).close();
  }

  /**
   * Opens an index in a process of its own, and returns what it prints.
   *
   * @param ids to add and to commit
   */
  private static String openElsewhere(Path folder, String... ids) throws Exception {
    return openElsewhere(false, folder, ids);
  }

  /**
   * Does so.
   *
   * @param restricted whether files that others may only read are to be so for the process, be it root's
   */
  private static String openElsewhere(boolean restricted, Path folder, String... ids)
      throws Exception {
    List<String> command = new ArrayList<>();
    if (restricted && System.getProperty("user.name").equals("root")) {
      command.addAll(List.of("setpriv", "--reuid=65534", "--inh-caps=-all", "--bounding-set=-all"));
    }
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--add-modules",
            "jdk.incubator.vector",
            "-cp",
            System.getProperty("java.class.path"),
            Open.class.getName(),
            folder.toString()));
    command.addAll(List.of(ids));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
  }

  /** Opens an index in a process of its own. */
  static final class Open {
    public static void main(String[] args) {
      try (Index index = Index.open(Path.of(args[0]), 0)) {
        System.out.println("opened " + index.size());
        for (int k = 1; k < args.length; k++) {
          long id = Long.parseLong(args[k]);
          index.add(new long[] {id}, Content.batch(id));
          index.commit();
          System.out.println("committed " + id);
        }
      } catch (UncheckedIOException e) {
        System.out.println(e);
      }
    }
  }

  /** Each file, changed in each way, is refused by its name; a segment's data only by a verification. */
  @Test
  void changedFiles() throws IOException {
    try (Index index = Index.open(scratch, 1)) {
      index.add(MANY, Content.batch(MANY));
      index.remove(3);
      index.commit(new byte[] {5, 6});
    }
    String copy = "; restore the folder from a copy";
    change("manifest", bytes -> bytes[40] ^= 1, "is incomplete or was changed" + copy);
    change("manifest", bytes -> bytes[0] = 'K', "is not the manifest of an index" + copy);
    replace("manifest", text -> text.substring(0, text.length() - 1), "is incomplete or was");
    replace("manifest", text -> text.substring(0, text.indexOf("checksum")), "is incomplete");
    replace("manifest", text -> text.substring(0, 10), "is not the manifest of an index");
    replace("manifest", text -> "", "is not the manifest of an index");
    replace(
        UncheckedIOException.class,
        "manifest",
        text -> signed(text, "index 1\n", "index 3\n"),
        "manifest: has format version 3, and this version of Kullback reads 1 and 2; take the one that wrote it");
    for (String damaged : new String[] {"0", "3", "9", "11", "q", ""}) {
      replace(
          "manifest",
          text -> text.replace("index 1\n", "index " + damaged + "\n"),
          "is incomplete or was changed" + copy);
    }
    replace("manifest", text -> signed(text, "dimension 1", "dimension 0"), "invalid number 0");
    replace(
        "manifest", text -> signed(text, "dimension 1", "dimension 99999999"), "number 99999999");
    replace(
        "manifest", text -> signed(text, "next ", "next 900000000000000000"), "invalid number 9");
    replace(
        "manifest",
        text -> signed(text, segmentLine(text), segmentLine(text).repeat(2)),
        "names a segment twice");
    replace("manifest", text -> signed(text, "dimension 1", "size 1"), "unknown line \"size 1\"");
    replace(
        "manifest", text -> signed(text, "data BQY=\n", "data ?\n"), "invalid data of the user");
    String most = "A".repeat((1 << 16) / 3 * 4 + 4);
    replace("manifest", text -> signed(text, "BQY=", most), "invalid data of the user");
    replace("manifest", text -> signed(text, "data BQY=", "data BQY= 1"), "unknown line \"data");
    replace("manifest", text -> signed(text, "data BQY=", "date BQY="), "unknown line \"date");
    replace("manifest", text -> signed(text, "segment-", "../segment-"), "none of an index");
    replace("manifest", text -> signed(text, " 3000 1 ", " 3000 2 "), "checksum is wrong");
    replace("manifest", text -> signed(text, " 3000 1 ", " 2999 1 "), "checksum is wrong");
    for (String name : new String[] {"segment-000001.bin", "deleted-000002.bin"}) {
      change(name, bytes -> bytes[0] ^= 1, "");
      replace(name, text -> text.substring(1), "bytes and should have ");
      replace(name, text -> "", "has 0 bytes and should have ");
      byte[] before = Files.readAllBytes(scratch.resolve(name));
      Files.delete(scratch.resolve(name));
      corrupt(scratch, 0, name + ": is missing" + copy);
      Files.write(scratch.resolve(name), before);
    }
    for (int at : new int[] {8, 9, 10, 11, 12, 100}) { // the version is at 8
      change(
          "segment-000001.bin",
          bytes -> bytes[at] ^= 1,
          "was changed: its checksum is wrong" + copy);
    }
    byte[] other = Files.readAllBytes(scratch.resolve("segment-000001.bin"));
    byte[] first = other.clone();
    other[8] = 3;
    Files.write(scratch.resolve("segment-000001.bin"), other);
    replace(
        UncheckedIOException.class,
        "manifest",
        text -> signed(text, checksums(first), checksums(other)),
        "has version 3 of the format, but this library reads 1 and 2; use the library that wrote it");
    Files.write(scratch.resolve("segment-000001.bin"), first);
    Path segment = scratch.resolve("segment-000001.bin");
    byte[] before = Files.readAllBytes(segment);
    byte[] changed = before.clone();
    changed[changed.length / 2] ^= 1;
    Files.write(segment, changed);
    try (Index index = Index.open(scratch, 1)) {
      assertThatExceptionOfType(CorruptIndexException.class)
          .isThrownBy(index::verify)
          .withMessage(segment.toRealPath() + ": was changed: its checksum is wrong" + copy);
    }
    Files.write(segment, before);
    try (Index index = Index.open(scratch, 1)) {
      index.verify();
      assertThat(index.size()).isEqualTo(MANY.length - 1);
    }
  }

  /** Those of a segment in the manifest. */
  private static String checksums(byte[] segment) {
    return "%08x %08x\n"
        .formatted(Manifest.crc(Arrays.copyOf(segment, 4096)), Manifest.crc(segment));
  }

  private void change(String name, Consumer<byte[]> change, String message) throws IOException {
    Path file = scratch.resolve(name);
    byte[] before = Files.readAllBytes(file);
    byte[] after = before.clone();
    change.accept(after);
    Files.write(file, after);
    corrupt(scratch, 0, name + ": ", message);
    Files.write(file, before);
  }

  private void replace(String name, UnaryOperator<String> change, String message)
      throws IOException {
    replace(CorruptIndexException.class, name, change, message);
  }

  private void replace(
      Class<? extends UncheckedIOException> type,
      String name,
      UnaryOperator<String> change,
      String message)
      throws IOException {
    Path file = scratch.resolve(name);
    byte[] before = Files.readAllBytes(file);
    String after = change.apply(new String(before, StandardCharsets.ISO_8859_1));
    Files.write(file, after.getBytes(StandardCharsets.ISO_8859_1));
    refused(type, scratch, 0, message);
    Files.write(file, before);
  }

  private static String segmentLine(String text) {
    return text.lines().filter(line -> line.startsWith("segment ")).findFirst().orElseThrow()
        + "\n";
  }

  /** A manifest with another word, and with its checksum right. */
  private static String signed(String text, String word, String other) {
    assertThat(text).contains(word);
    String lines = text.substring(0, text.indexOf("checksum")).replace(word, other);
    int crc = Manifest.crc(lines.getBytes(StandardCharsets.US_ASCII));
    return lines + "checksum %08x\n".formatted(crc);
  }

  private static void refused(Path folder, int dimension, String... message) {
    refused(UncheckedIOException.class, folder, dimension, message);
  }

  private static void corrupt(Path folder, int dimension, String... message) {
    refused(CorruptIndexException.class, folder, dimension, message);
  }

  private static void held(Path folder, int dimension, String... message) {
    refused(IndexLockedException.class, folder, dimension, message);
  }

  private static void refused(
      Class<? extends UncheckedIOException> type, Path folder, int dimension, String... message) {
    assertThatThrownBy(() -> Index.open(folder, dimension).close())
        .isExactlyInstanceOf(type)
        .hasMessageContainingAll(message)
        .hasMessageStartingWith("/");
    if (type == UncheckedIOException.class) { // it is as someone wrote it
      assertThatThrownBy(() -> Index.open(folder, dimension).close())
          .hasMessageNotContaining("copy");
    }
  }

  @Test
  void anIndexInMemoryHasNoFiles() {
    try (Index index = Index.inMemory(1)) {
      assertThatIllegalStateException()
          .isThrownBy(index::commit)
          .withMessageContaining("KlIndex.builder(dimension).open(folder)");
      assertThatIllegalStateException().isThrownBy(index::verify);
    }
  }

  // --- reading changes nothing

  /** Whatever lies in a folder, opening, reading and closing leave each byte of it. */
  @Test
  void readingChangesNothing() throws IOException {
    readDamaged(40, 1);
  }

  @Test
  @Tag("long")
  void readingChangesNothingInManyFolders() throws IOException {
    readDamaged(400, 2);
  }

  private void readDamaged(int folders, long seed) throws IOException {
    Random random = new Random(seed);
    List<Map<String, String>> states = states(scratch.resolve("good"));
    int opened = 0;
    for (int k = 0; k < folders; k++) {
      Path folder = Files.createDirectory(scratch.resolve("damaged" + k));
      Map<String, String> files = new TreeMap<>(states.get(random.nextInt(states.size())));
      for (int damages = random.nextInt(3); damages >= 0; damages--) {
        damage(files, states, random);
      }
      for (String name : files.keySet()) {
        Files.writeString(folder.resolve(name), files.get(name), StandardCharsets.ISO_8859_1);
      }
      opened += reads(() -> Index.openReadOnly(folder, Wanted.of(0))) ? 1 : 0;
      assertThat(contents(folder)).as("%s", files.keySet()).isEqualTo(files);
      opened += reads(() -> Index.open(folder, 0)) ? 1 : 0;
      reads(() -> Index.open(folder, 2));
      assertThat(contents(folder)).as("%s", files.keySet()).isEqualTo(files);
    }
    assertThat(opened).isBetween(folders / 20, 2 * folders);
  }

  private static boolean reads(Supplier<Index> open) {
    try (Index index = open.get()) {
      Content.of(index);
      index.verify();
      return true;
    } catch (UncheckedIOException | IllegalArgumentException e) {
      return false;
    }
  }

  /** An index after each of some commits. */
  private static List<Map<String, String>> states(Path folder) throws IOException {
    List<Map<String, String>> states = new ArrayList<>();
    try (Index index = Index.open(folder, 1)) {
      index.add(MANY, Content.batch(MANY));
      for (int k = 0; k < 4; k++) {
        index.replace(new long[] {k, k + 3}, Content.batch(k, k));
        index.commit();
        states.add(contents(folder));
      }
    }
    return states;
  }

  /** Files and what they hold, but for who has the lock. */
  private static Map<String, String> contents(Path folder) throws IOException {
    Map<String, String> contents = new TreeMap<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        String text = Files.readString(file, StandardCharsets.ISO_8859_1);
        contents.put(file.getFileName().toString(), text.startsWith("process ") ? "" : text);
      }
    }
    return contents;
  }

  private static void damage(
      Map<String, String> files, List<Map<String, String>> states, Random random) {
    List<String> names = List.copyOf(files.keySet());
    if (names.isEmpty()) {
      return;
    }
    String name = names.get(random.nextInt(names.size()));
    String text = files.get(name);
    Map<String, String> other = states.get(random.nextInt(states.size()));
    switch (random.nextInt(8)) {
      case 0 -> files.remove(name);
      case 1 -> files.put(name, text.substring(0, random.nextInt(text.length() + 1)));
      case 2 -> {
        StringBuilder changed = new StringBuilder(text).append('x');
        changed.setCharAt(random.nextInt(changed.length()), (char) random.nextInt(256));
        files.put(name, changed.toString());
      }
      case 3 -> files.put("manifest", other.get("manifest"));
      case 4 -> files.put("manifest.tmp", other.get("manifest"));
      case 5 -> files.putAll(other);
      case 6 -> files.put("segment-%06d.bin".formatted(random.nextInt(12)), text);
      default -> files.put("deleted-%06d.bin.tmp".formatted(random.nextInt(12)), text);
    }
  }

  /** An earlier manifest, or that of another index, is refused with the reason, and deletes nothing: put back, today's opens. */
  @Test
  void manifestsThatAreNotOfTheirFiles() throws IOException {
    List<Map<String, String>> states = states(scratch);
    Map<String, String> now = contents(scratch);
    for (Map<String, String> before : states.subList(0, states.size() - 1)) {
      Files.writeString(scratch.resolve("manifest"), before.get("manifest"));
      corrupt(scratch, 1, "has ", "which its manifest does not name: that is older than the files");
      Files.writeString(scratch.resolve("manifest"), now.get("manifest"));
      assertThat(contents(scratch)).isEqualTo(now);
    }
    Path other = scratch.resolve("other");
    Index.open(other, 1).close();
    String manifest = Files.readString(other.resolve("manifest"));
    Files.delete(other.resolve("manifest"));
    Files.delete(other.resolve("lock"));
    Files.delete(other);
    Files.writeString(scratch.resolve("manifest"), manifest);
    corrupt(scratch, 1, "or of another index; restore the manifest that belongs to them");
    Files.writeString(scratch.resolve("manifest"), now.get("manifest"));
    try (Index index = Index.open(scratch, 1)) {
      index.verify();
      index.add(new long[] {-5}, Content.batch(5));
      index.commit();
    }
    assertThat(contents(scratch)).hasSizeLessThanOrEqualTo(now.size() + 1);
  }

  /** Where another writer has committed all the same, as locks do not work everywhere, a commit is refused and loses nothing. */
  @Test
  void commitsBesideAnotherWriter() throws Exception {
    try (Index index = Index.open(scratch, 1)) {
      index.add(new long[] {1}, Content.batch(1));
      index.commit();
      index.add(new long[] {2}, Content.batch(2));
      Files.delete(scratch.resolve("lock"));
      assertThat(openElsewhere(scratch, "77")).contains("opened 1").contains("committed");
      Map<String, String> before = contents(scratch);
      for (int k = 0; k < 2; k++) {
        assertThatExceptionOfType(UncheckedIOException.class)
            .isThrownBy(index::commit)
            .withMessageContaining("manifest: was replaced by another process since it was opened");
        assertThat(contents(scratch)).isEqualTo(before);
      }
    }
    try (Index index = Index.open(scratch, 1)) {
      assertThat(Content.of(index)).isEqualTo(Map.of(1L, 1L, 77L, 77L));
      index.add(new long[] {2}, Content.batch(2));
      Files.delete(scratch.resolve("manifest"));
      assertThatExceptionOfType(UncheckedIOException.class)
          .isThrownBy(index::commit)
          .withMessageContaining("manifest: was removed by another process");
    }
  }

  /** A commit that may or may not have replaced the manifest is no other writer's. */
  @Test
  void commitsAfterOneInDoubt() throws IOException {
    AtomicInteger renames = new AtomicInteger(-1);
    FileOperations files =
        new FileOperations() {
          @Override
          void rename(Path from, Path to) throws IOException {
            boolean fails = to.endsWith("manifest") && renames.get() >= 0;
            if (!fails || renames.get() == 1) {
              super.rename(from, to);
            }
            if (fails) {
              throw new IOException("made up");
            }
          }
        };
    try (Index index = Index.open(scratch, 1, files, Segment::merge)) {
      for (int doubt = 0; doubt < 2; doubt++) {
        index.replace(new long[] {1}, Content.batch(doubt));
        renames.set(doubt);
        assertThatExceptionOfType(UncheckedIOException.class).isThrownBy(index::commit);
        renames.set(-1);
        index.replace(new long[] {2}, Content.batch(doubt));
        assertThat(index.commit()).isTrue();
        assertThat(contents(scratch)).hasSize(3); // nothing is left
      }
    }
    try (Index index = Index.open(scratch, 1)) {
      assertThat(Content.of(index)).isEqualTo(Map.of(1L, 1L, 2L, 1L));
      index.verify();
    }
  }

  /** An index that must not be written to can be read and searched; to commit is an error that says so. */
  @Test
  void foldersThatMayOnlyBeRead() throws Exception {
    Path folder = scratch.resolve("index");
    try (Index index = Index.open(folder, 1)) {
      index.add(MANY, Content.batch(MANY));
      index.commit();
    }
    Map<String, String> before = contents(folder);
    Files.setPosixFilePermissions(scratch, PosixFilePermissions.fromString("rwxr-xr-x"));
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("r-xr-xr-x"));
    for (String name : before.keySet()) {
      Files.setPosixFilePermissions(
          folder.resolve(name), PosixFilePermissions.fromString("r--r--r--"));
    }
    try {
      assertThat(openElsewhere(true, folder, "7"))
          .contains("opened " + MANY.length)
          .contains(folder.toRealPath() + ": permission denied (" + folder.toRealPath() + "/lock)");
      Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("---------"));
      assertThat(openElsewhere(true, folder, "7"))
          .contains(": permission denied")
          .doesNotContain("no file named");
    } finally {
      Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
    assertThat(contents(folder)).isEqualTo(before);
  }

  /** Readers see the last commit, beside a writer too, and change nothing. */
  @Test
  void readersBesideAWriter() throws IOException {
    try (Index index = Index.open(scratch, 1)) {
      index.add(MANY, Content.batch(MANY));
      index.commit();
      Index reader = Index.openReadOnly(scratch, Wanted.of(0));
      index.remove(3);
      index.add(new long[] {1}, Content.batch(1));
      index.commit();
      try (reader;
          Index later = Index.openReadOnly(scratch, Wanted.of(0))) {
        assertThat(reader.size()).isEqualTo(MANY.length);
        reader.verify(); // though its files are deleted
        later.verify();
        assertThat(later.contains(3)).isFalse();
        assertThat(later.contains(1)).isTrue();
        for (Runnable change :
            List.<Runnable>of(
                () -> reader.add(new long[] {2}, Content.batch(2)),
                () -> reader.replace(new long[] {2}, Content.batch(2)),
                () -> reader.remove(2),
                reader::commit)) {
          assertThatIllegalStateException()
              .isThrownBy(change::run)
              .withMessageContaining("was opened read only");
        }
      }
    }
  }

  /** Commits 100 versions of all that an index has. */
  private static void replaceAgain(Index index, long[] ids) {
    for (long version = 1; version <= 100; version++) {
      long[] versions = new long[ids.length];
      Arrays.fill(versions, version);
      index.replace(ids, Content.batch(versions));
      index.commit();
    }
  }

  /** Readers that open the folder while commits replace its files see one of these commits, and never an earlier one than before. */
  @Test
  void readersWhileAWriterCommits() throws Exception {
    int group = 5000; // enough to be mapped
    long[] ids = LongStream.range(0, group).toArray();
    try (Index index = Index.open(scratch, 1);
        ExecutorService writers = Executors.newSingleThreadExecutor()) {
      index.add(ids, Content.batch(new long[group]));
      index.commit();
      Future<?> writes = writers.submit(() -> replaceAgain(index, ids));
      long last = 0;
      int seen = 0;
      while (!writes.isDone() || seen == 0) {
        try (Index reader = Index.openReadOnly(scratch, Wanted.of(0))) {
          Map<Long, Long> content = Content.of(reader);
          long version = content.get(0L);
          assertThat(content).hasSize(group);
          assertThat(content.values()).containsOnly(version);
          assertThat(version).isGreaterThanOrEqualTo(last);
          seen += version > last ? 1 : 0;
          last = version;
        }
      }
      writes.get();
      assertThat(seen).isPositive();
    }
  }

  /** A reader that is refreshed while commits replace its files sees each of them whole, and opens only what is new. */
  @Test
  void aReaderIsRefreshed() throws Exception {
    int group = 5000; // enough to be mapped
    long[] ids = LongStream.range(0, group).toArray();
    try (Index index = Index.open(scratch, 1);
        ExecutorService writers = Executors.newSingleThreadExecutor()) {
      index.add(MANY, Content.batch(MANY));
      index.commit();
      try (Index reader = Index.openReadOnly(scratch, Wanted.of(0))) {
        assertThat(reader.refresh()).isFalse();
        index.remove(MANY[3]);
        assertThat(reader.refresh()).isFalse(); // what is not committed is not seen
        index.commit();
        Segment before = segment(reader, MANY[0]);
        assertThat(reader.refresh()).isTrue();
        assertThat(reader.contains(MANY[3])).isFalse();
        assertThat(segment(reader, MANY[0])).isSameAs(before);
        assertThatIllegalStateException()
            .isThrownBy(index::refresh)
            .withMessageContaining("was opened to be changed");
      }
      index.remove(MANY);
      index.add(ids, Content.batch(new long[group]));
      index.commit();
      Future<?> writes = writers.submit(() -> replaceAgain(index, ids));
      try (Index reader = Index.openReadOnly(scratch, Wanted.of(0))) {
        long last = 0;
        int seen = 0;
        for (boolean isOver = false; !isOver; ) {
          isOver = writes.isDone(); // and one look more
          boolean isNew = reader.refresh();
          Map<Long, Long> content = Content.of(reader);
          long version = content.get(0L);
          assertThat(content).hasSize(group);
          assertThat(content.values()).containsOnly(version);
          assertThat(version > last).isEqualTo(isNew && version > 0);
          seen += isNew ? 1 : 0;
          last = version;
        }
        writes.get();
        assertThat(last).isEqualTo(100);
        assertThat(seen).isPositive();
      }
    }
  }

  private static Segment segment(Index index, long id) {
    try (Snapshot state = index.acquire()) {
      return Stream.of(state.segments())
          .filter(part -> Deletions.find(part, id) >= 0)
          .map(LiveSegment::segment)
          .findFirst()
          .orElseThrow();
    }
  }

  @Test
  void aReaderStaysAsItWasWhereItCannotBeRefreshed() throws IOException {
    try (Index index = Index.open(scratch, 1)) {
      index.add(MANY, Content.batch(MANY));
      index.commit();
      try (Index reader = Index.openReadOnly(scratch, Wanted.of(0))) {
        index.add(new long[] {1}, Content.batch(1));
        index.commit();
        Path manifest = scratch.resolve("manifest");
        byte[] text = Files.readAllBytes(manifest);
        Files.writeString(manifest, "damaged");
        for (int again = 0; again < 2; again++) {
          assertThatThrownBy(reader::refresh)
              .isInstanceOf(CorruptIndexException.class)
              .hasMessageStartingWith(manifest.toString());
          assertThat(reader.contains(1)).isFalse();
          assertThat(reader.size()).isEqualTo(MANY.length);
        }
        Files.write(manifest, text);
        assertThat(reader.refresh()).isTrue();
        assertThat(reader.contains(1)).isTrue();
      }
    }
  }

  @Test
  void aThreadRefreshes() throws Exception {
    try (Index index = Index.open(scratch, 1)) {
      Index reader = Index.openReadOnly(scratch, Wanted.of(0));
      reader.refreshEvery(Duration.ofMillis(1));
      try (reader) {
        for (long id = 0; id < 5; id++) {
          index.add(new long[] {id}, Content.batch(id));
          index.commit();
          while (!reader.contains(id)) {
            Thread.getAllStackTraces().keySet().stream() // by whoever
                .filter(thread -> thread.getName().equals("kullback-refresh"))
                .forEach(Thread::interrupt);
            Thread.sleep(1);
          }
        }
      }
      assertThat(Thread.getAllStackTraces().keySet())
          .noneMatch(thread -> thread.getName().equals("kullback-refresh"));
    }
  }

  /** Copies of a writer and of a reader whose files are gone, which have the commits that these have, and can be changed. */
  @Test
  void copiesOfACommit(@TempDir Path target) throws IOException {
    Path first = target.resolve("a/first");
    Path second = target.resolve("second");
    try (Index index = Index.open(scratch, 1);
        Index empty = Index.open(target.resolve("empty"), 1)) {
      empty.copyTo(target.resolve("none"));
      index.add(MANY, Content.batch(MANY));
      index.remove(MANY[2]);
      index.commit();
      index.add(new long[] {1}, Content.batch(1)); // is in no copy
      index.copyTo(first);
      try (Index reader = Index.openReadOnly(scratch, Wanted.of(0))) {
        index.remove(MANY);
        index.commit();
        reader.copyTo(second);
      }
      assertThatThrownBy(() -> index.copyTo(first))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessage(first.toRealPath() + ": has an index already; name another folder");
      assertThatThrownBy(() -> index.copyTo(scratch))
          .isInstanceOf(IndexLockedException.class)
          .hasMessage(
              scratch.toRealPath()
                  + ": is open in this process already; name another folder; KlIndex.openReadOnly reads the last commit meanwhile");
      Path file = Files.createFile(target.resolve("file"));
      assertThatThrownBy(() -> index.copyTo(file))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessage(file + ": is not a folder; give that of an index");
      Path link = Files.createSymbolicLink(target.resolve("link"), scratch);
      Files.createDirectory(scratch.resolve("there"));
      for (Path within :
          List.of(
              scratch.resolve("sub"),
              scratch.resolve("a/b"),
              scratch.resolve("there"),
              link.resolve("sub"))) {
        assertThatThrownBy(() -> index.copyTo(within))
            .isInstanceOf(UncheckedIOException.class)
            .hasMessage(
                "%s: is in the folder of the index itself, %s; name another"
                    .formatted(within, scratch.toRealPath()));
      }
      assertThat(scratch.resolve("sub")).doesNotExist();
      assertThat(scratch.resolve("a")).doesNotExist();
      assertThat(scratch.resolve("there")).isEmptyDirectory();
      assertThat(index.size()).isEqualTo(1);
    }
    try (Index none = Index.open(target.resolve("none"), 0)) {
      assertThat(none.size()).isZero();
    }
    for (Path copy : List.of(first, second)) {
      try (Index index = Index.open(copy, 0)) {
        index.verify();
        assertThat(index.size()).isEqualTo(MANY.length - 1);
        assertThat(index.contains(MANY[2])).isFalse();
        index.remove(MANY[0]);
        index.add(new long[] {2}, Content.batch(2));
        index.commit();
      }
      try (Index index = Index.open(copy, 0)) {
        assertThat(index.size()).isEqualTo(MANY.length - 1);
        index.verify();
      }
    }
  }

  /** Of copies to one folder at the same time, one is made, and the others do it no harm. */
  @Test
  void copiesAtTheSameTime(@TempDir Path target) throws Exception {
    try (Index index = Index.open(scratch, 1);
        ExecutorService others = Executors.newSingleThreadExecutor()) {
      index.add(MANY, Content.batch(MANY));
      index.remove(MANY[2]);
      index.commit();
      try (Index reader = Index.openReadOnly(scratch, Wanted.of(0))) {
        for (int k = 0; k < 50; k++) {
          Path copy = target.resolve("copy" + k);
          Future<Boolean> other = others.submit(() -> copies(reader, copy));
          boolean first = copies(index, copy);
          assertThat(other.get() ? !first : first).isTrue();
          try (Index made = Index.openReadOnly(copy, Wanted.of(0))) {
            made.verify();
            assertThat(made.size()).isEqualTo(MANY.length - 1);
          }
        }
      }
    }
  }

  private static boolean copies(Index index, Path folder) {
    try {
      index.copyTo(folder);
      return true;
    } catch (UncheckedIOException e) {
      return false;
    }
  }

  /** A copy that fails leaves nothing of an index. */
  @Test
  void aCopyThatFails(@TempDir Path target) throws IOException {
    try (Index index = Index.open(scratch, 1)) {
      index.add(MANY, Content.batch(MANY));
      index.remove(MANY[2]);
      index.commit();
      List<Path> files;
      try (Stream<Path> all = Files.list(scratch)) {
        files = all.filter(file -> file.getFileName().toString().endsWith(".bin")).toList();
      }
      for (Path file : files) {
        Path away = Files.move(file, target.resolve("away"));
        Path copy = target.resolve("copy");
        assertThatThrownBy(() -> index.copyTo(copy))
            .isInstanceOf(CorruptIndexException.class)
            .hasMessageStartingWith(
                scratch.toRealPath().resolve(file.getFileName()) + ": is missing");
        try (Stream<Path> left = Files.list(copy)) {
          assertThat(left).isEmpty();
        }
        Files.move(away, file);
      }
      index.copyTo(target.resolve("copy"));
    }
  }

  /** Data of the user's come with a commit, stay until another one has others, and go to readers and copies. */
  @Test
  void userData(@TempDir Path target) throws IOException {
    byte[] large = new byte[1 << 16];
    new Random(1).nextBytes(large);
    try (Index index = Index.open(scratch, 1)) {
      assertThat(index.userData()).isEmpty();
      index.add(MANY, Content.batch(MANY));
      assertThat(index.commit(large)).isTrue();
      try (Index reader = Index.openReadOnly(scratch, Wanted.of(0))) {
        assertThat(reader.userData()).isEqualTo(large);
        assertThat(index.commit(large)).isFalse();
        assertThat(reader.refresh()).isFalse();
        assertThat(index.commit(new byte[] {1})).isTrue();
        assertThat(index.userData()).containsExactly(1);
        assertThat(reader.userData()).isEqualTo(large);
        assertThat(reader.refresh()).isTrue();
        assertThat(reader.userData()).containsExactly(1);
      }
      index.remove(3);
      index.commit();
      assertThat(index.userData()).containsExactly(1);
      index.remove(6);
      index.copyTo(target.resolve("copy"));
      index.commit(new byte[0]);
      assertThat(index.userData()).isEmpty();
    }
    assertThat(Files.readString(scratch.resolve("manifest"))).doesNotContain("data");
    try (Index index = Index.open(target.resolve("copy"), 0)) {
      assertThat(index.userData()).containsExactly(1);
      assertThat(index.contains(6)).isTrue();
    }
  }

  // --- processes that end

  /** Ends at one step, before it, in its middle or after it: nothing is done from then on. */
  private static class Ending extends FileOperations {
    private final int last;
    private final int stage;
    private int step;

    Ending(int last, int stage) {
      this.last = last;
      this.stage = stage;
    }

    /** An operation on files. */
    private interface Operation {
      void run() throws IOException;
    }

    private void step(Operation whole, Operation half) throws IOException {
      step++;
      if (step == last && stage == 1) {
        half.run();
      }
      if (step < last || (step == last && stage == 2)) {
        whole.run();
      }
      if (step >= last) {
        reached();
      }
      if (step > last) {
        whole.run();
      }
    }

    void reached() throws IOException {
      throw new Ended();
    }

    @Override
    void createFolder(Path folder) throws IOException {
      step(() -> super.createFolder(folder), () -> {});
    }

    @Override
    void create(Path file) throws IOException {
      step(() -> super.create(file), () -> {});
    }

    @Override
    void fill(Path file, long bytes) throws IOException {
      step(() -> super.fill(file, bytes), () -> super.fill(file, bytes / 2));
    }

    @Override
    void force(Path file, MemorySegment mapped) throws IOException {
      step(() -> super.force(file, mapped), () -> {});
    }

    @Override
    void write(Path file, MemorySegment bytes) throws IOException {
      step(
          () -> super.write(file, bytes),
          () -> super.write(file, bytes.asSlice(0, bytes.byteSize() / 2)));
    }

    @Override
    void rename(Path from, Path to) throws IOException {
      step(() -> super.rename(from, to), () -> {});
    }

    @Override
    void delete(Path file) throws IOException {
      step(() -> super.delete(file), () -> {});
    }

    @Override
    void sync(Path folder) throws IOException {
      step(() -> super.sync(folder), () -> {});
    }
  }

  private static final class Ended extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  /** Wherever a process ends, what opens next is the last commit or the one before, and goes on from there. */
  @Test
  void everyStepMayBeTheLast() throws IOException {
    int steps = 0;
    boolean ended = true;
    while (ended) {
      steps++;
      for (int stage = 0; stage < 3; stage++) {
        ended = endAt(scratch.resolve(steps + "-" + stage), steps, stage);
      }
    }
    assertThat(steps).isBetween(20, 100);
  }

  private static boolean endAt(Path folder, int last, int stage) throws IOException {
    List<Map<Long, Long>> commits = new ArrayList<>();
    commits.add(Map.of());
    boolean ended = false;
    Index index = null;
    try {
      index = Index.open(folder, 1, new Ending(last, stage), Segment::merge);
      script(index, commits);
    } catch (Ended e) {
      ended = true;
    } finally {
      if (index != null) {
        index.close();
      }
    }
    try (Index again = Index.open(folder, 1)) {
      Map<Long, Long> content = Content.of(again);
      if (ended) {
        int n = commits.size();
        assertThat(commits.subList(Math.max(0, n - 2), n)).contains(content);
      } else {
        assertThat(content).isEqualTo(commits.getLast());
      }
      byte[] data = again.userData(); // the number of the commit
      assertThat(content).isEqualTo(commits.get(data.length == 0 ? 0 : data[0]));
      again.verify();
      again.replace(new long[] {1}, Content.batch(9));
      again.commit();
      Set<String> named = new HashSet<>();
      Files.readString(folder.resolve("manifest"))
          .lines()
          .forEach(line -> named.add(line.split(" ")[1]));
      try (Stream<Path> files = Files.list(folder)) {
        assertThat(files.map(file -> file.getFileName().toString()))
            .allMatch(name -> name.matches("lock|manifest") || named.contains(name));
      }
      Map<Long, Long> expected = new TreeMap<>(content);
      expected.put(1L, 9L);
      assertThat(Content.of(again)).isEqualTo(expected);
    }
    return ended;
  }

  /** Whatever two faults come one after the other, and whether processes end there or go on, the folder opens, with one of the last states. */
  @Test
  void twoFaultsInARow() throws IOException {
    twoFaults(15);
  }

  @Test
  @Tag("long")
  void anyTwoFaultsInARow() throws IOException {
    twoFaults(1);
  }

  /** Tries each {@code every}th pair of faults. */
  private void twoFaults(int every) throws IOException {
    int pairs = 0;
    int tried = 0;
    for (int ends = 0; ends < 4; ends++) {
      int first = 0;
      for (boolean reached = true; reached; first++) {
        int second = 0;
        for (boolean again = true; again; second++) {
          if (pairs++ % every > 0 && second > 0) {
            again = second < 60;
            continue;
          }
          Path folder = scratch.resolve("folder" + tried++);
          Fault one = new Fault(first / 3, first % 3, ends % 2 == 0);
          Fault two = new Fault(second / 3, second % 3, ends / 2 == 0);
          faulty(folder, one, two);
          reached = one.isReached;
          again = reached && two.isReached;
        }
      }
    }
    assertThat(tried).isGreaterThan(2000 / every);
  }

  private static void faulty(Path folder, Fault one, Fault two) throws IOException {
    List<Map<Long, Long>> states = new ArrayList<>();
    try (Index index = Index.open(folder, 1)) {
      index.add(new long[] {1, 2, 3, 4}, Content.batch(1, 2, 3, 4));
      index.commit();
    }
    for (Fault fault : new Fault[] {one, two}) {
      states = change(folder, fault, fault == one ? 10 : 20);
    }
    try (Index index = Index.open(folder, 1)) {
      assertThat(states).contains(Content.of(index));
      index.verify();
      index.replace(new long[] {9}, Content.batch(9));
      index.commit();
    }
    try (Index index = Index.open(folder, 1)) {
      index.verify();
      assertThat(index.contains(9)).isTrue();
    }
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).noneMatch(file -> file.toString().endsWith(".bin.tmp"));
    }
  }

  /** Changes and commits; returns the states that the folder may have then. */
  private static List<Map<Long, Long>> change(Path folder, Fault fault, long version) {
    List<Map<Long, Long>> states = new ArrayList<>();
    Index index = Index.open(folder, 1, fault, Segment::merge);
    try {
      states.add(Content.of(index));
      index.replace(new long[] {1, version}, Content.batch(version, version));
      index.remove(3);
      states.add(Content.of(index));
      index.commit();
      states.removeFirst();
    } catch (Ended | UncheckedIOException e) {
      // either state
    } finally {
      index.close();
    }
    return states;
  }

  /** Fails once, before, amid or after one step; the process ends there or goes on. */
  private static final class Fault extends Ending {
    private final boolean ends;
    boolean isReached;

    Fault(int last, int stage, boolean ends) {
      super(last + 1, stage);
      this.ends = ends;
    }

    @Override
    void reached() throws IOException {
      if (!isReached && !ends) {
        isReached = true;
        throw new IOException("made up");
      }
      if (ends) {
        isReached = true;
        super.reached();
      }
    }
  }

  /** A change that is undone after a commit of it failed, but took place, is undone by the next commit. */
  @Test
  void undoneAfterACommitInDoubt() throws IOException {
    AtomicBoolean fails = new AtomicBoolean();
    FileOperations files =
        new FileOperations() {
          @Override
          void rename(Path from, Path to) throws IOException {
            super.rename(from, to);
            if (fails.get() && to.endsWith("manifest")) {
              throw new IOException("made up");
            }
          }
        };
    try (Index index = Index.open(scratch, 1, files, Segment::merge)) {
      index.add(new long[] {1}, Content.batch(1));
      index.commit();
      index.add(new long[] {2}, Content.batch(2));
      fails.set(true);
      assertThatExceptionOfType(UncheckedIOException.class).isThrownBy(index::commit);
      fails.set(false);
      index.remove(2);
      assertThat(index.commit()).isTrue();
    }
    try (Index index = Index.open(scratch, 1)) {
      assertThat(Content.of(index)).isEqualTo(Map.of(1L, 1L));
    }
  }

  /** A large merge is made in a temporary file, which a commit names and which is gone where none does. */
  @Test
  void mergesInFiles() throws IOException {
    for (boolean isCommitted : new boolean[] {true, false}) {
      Path folder = scratch.resolve("committed " + isCommitted);
      Map<Long, Long> expected;
      try (Index index =
          Index.open(folder, Wanted.of(1), new FileOperations(), Segment::merge, 1 << 12)) {
        for (int k = 0; k < 8; k++) {
          long[] ids = LongStream.range(1000L * k, 1000L * (k + 1)).toArray();
          index.add(ids, Content.batch(ids));
        }
        assertThat(names(folder)).anyMatch(name -> name.matches("segment-[0-9]+\\.bin\\.tmp"));
        expected = Content.of(index);
        assertThat(expected).hasSize(8000);
        if (isCommitted) {
          index.commit();
          assertThat(names(folder)).hasSize(3).noneMatch(name -> name.endsWith(".tmp"));
          assertThat(Content.of(index)).isEqualTo(expected);
          index.verify();
        }
      }
      assertThat(names(folder)).hasSize(isCommitted ? 3 : 2);
      try (Index index = Index.open(folder, 1)) {
        assertThat(Content.of(index)).isEqualTo(isCommitted ? expected : Map.of());
        index.verify();
      }
    }
  }

  /** Some commits, each noted before it begins. */
  private static void script(Index index, List<Map<Long, Long>> commits) {
    index.add(new long[] {1, 2, 3, 4}, Content.batch(1, 2, 3, 4));
    commit(index, commits);
    index.replace(new long[] {2}, Content.batch(5));
    commit(index, commits);
    index.remove(1, 2, 3);
    index.add(new long[] {10, 11, 12}, Content.batch(1, true, 1, 2, 3));
    commit(index, commits);
    index.remove(4, 10, 11, 12);
    commit(index, commits);
    index.add(new long[] {1}, Content.batch(7));
    commit(index, commits);
    index.add(new long[] {20, 21, 22, 23}, Content.batch(1, 2, 3, 4));
    commit(index, commits);
    index.remove(20);
    commit(index, commits);
    index.purge();
    index.compact();
    commit(index, commits);
  }

  private static void commit(Index index, List<Map<Long, Long>> commits) {
    commits.add(Content.of(index));
    index.commit(new byte[] {(byte) (commits.size() - 1)});
  }

  /**
   * A commit that fails, as on a full disk, changes nothing and leaves the disk no fuller; the next one does. A full disk is told by its room,
   * which is to be that of the rest of a file.
   */
  @ParameterizedTest
  @CsvSource({"2, 0, false", "2, 1, true", "1, 0, true"})
  void commitsMayFail(int writtenPart, int missing, boolean isFull) throws IOException {
    class Failing extends FileOperations {
      private int left = Integer.MAX_VALUE;
      private long rest;

      @Override
      long room(Path folder) {
        return rest - missing;
      }

      @Override
      void write(Path file, MemorySegment bytes) throws IOException {
        if (left-- == 0) {
          MemorySegment part = bytes.asSlice(0, bytes.byteSize() / writtenPart);
          super.write(file, part);
          rest = bytes.byteSize() - part.byteSize();
          throw new IOException("No space left on device");
        }
        super.write(file, bytes);
      }
    }
    Failing files = new Failing();
    Map<Long, Long> expected;
    try (Index index = Index.open(scratch, 1, files, Segment::merge)) {
      index.add(MANY, Content.batch(MANY));
      index.commit();
      Set<String> before = segmentsAndDeletions();
      for (int step = 0; step < 3; step++) {
        index.replace(new long[] {6, 7}, Content.batch(step, step));
        files.left = step;
        assertThatThrownBy(index::commit)
            .isExactlyInstanceOf(isFull ? DiskFullException.class : UncheckedIOException.class)
            .hasMessageStartingWith(scratch.toRealPath().toString())
            .hasMessageEndingWith("No space left on device");
        assertThat(index.contains(7)).isTrue();
        assertThat(segmentsAndDeletions()).isEqualTo(before);
      }
      files.left = Integer.MAX_VALUE;
      expected = Content.of(index);
      assertThat(index.commit()).isTrue();
      assertThat(Content.of(index)).isEqualTo(expected);
    }
    try (Index index = Index.open(scratch, 1)) {
      assertThat(Content.of(index)).isEqualTo(expected);
      index.verify();
    }
  }

  /** A copy that finds no room leaves nothing; a file that may not be written is no full disk, however little room there is. */
  @Test
  void copiesMayFindNoRoom() throws IOException {
    class Full extends FileOperations {
      private IOException failure = new IOException("made up");

      @Override
      long room(Path folder) {
        return 0;
      }

      @Override
      void link(Path file, Path name) throws IOException {
        throw failure;
      }
    }
    Full files = new Full();
    Path target = scratch.resolveSibling(scratch.getFileName() + "-copy");
    try (Index index = Index.open(scratch, 1, files, Segment::merge)) {
      assertThat(new FileOperations().room(scratch)).isPositive();
      index.add(MANY, Content.batch(MANY));
      index.commit();
      assertThatExceptionOfType(DiskFullException.class)
          .isThrownBy(() -> index.copyTo(target))
          .withMessageContaining("segment-000001.bin: made up")
          .withCause(files.failure);
      files.failure = new AccessDeniedException("made up");
      assertThatThrownBy(() -> index.copyTo(target))
          .isExactlyInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("permission denied");
      assertThat(target).isEmptyDirectory();
    } finally {
      Files.deleteIfExists(target);
    }
  }

  private Set<String> segmentsAndDeletions() throws IOException {
    try (Stream<Path> files = Files.list(scratch)) {
      return files
          .map(file -> file.getFileName().toString())
          .filter(name -> name.contains(".bin"))
          .collect(Collectors.toSet());
    }
  }

  /** No commit names a file that something else has deleted, nor deletes what a manifest that may be in the folder names. */
  @Test
  void commitsNameOnlyWhatIsThere() throws IOException {
    class Unsynced extends FileOperations {
      private boolean fails;

      @Override
      void rename(Path from, Path to) throws IOException {
        super.rename(from, to);
        if (fails && to.endsWith("manifest")) {
          throw new IOException("made up");
        }
      }
    }
    Unsynced files = new Unsynced();
    try (Index index = Index.open(scratch, 1, files, Segment::merge)) {
      index.add(MANY, Content.batch(MANY));
      files.fails = true;
      assertThatExceptionOfType(UncheckedIOException.class).isThrownBy(index::commit);
    }
    try (Index index = Index.open(scratch, 1)) {
      index.verify();
      assertThat(index.size()).isEqualTo(MANY.length);
      Files.delete(scratch.resolve(segmentsAndDeletions().iterator().next()));
      index.add(new long[] {-1}, Content.batch(1));
      String manifest = Files.readString(scratch.resolve("manifest"));
      assertThatExceptionOfType(CorruptIndexException.class)
          .isThrownBy(index::commit)
          .withMessageContaining("segment-000001.bin: is missing; restore the folder from a copy");
      assertThat(Files.readString(scratch.resolve("manifest"))).isEqualTo(manifest);
    }
  }
}
