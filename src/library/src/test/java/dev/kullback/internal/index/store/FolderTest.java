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
import org.junit.jupiter.params.provider.ValueSource;

/** Files of an index: what is read back, what is refused, and what is left where a process ends in the middle. */
@Timeout(value = 600, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FolderTest {
  private static final long[] MANY = LongStream.range(0, 3000).map(id -> 3 * id).toArray();
  private static final long REMOVED = MANY[2];

  @TempDir private Path scratch;

  /** Opens or makes an index in the test's folder. */
  private Index open() {
    return TestFiles.open(scratch);
  }

  private static Index read(Path folder) {
    return Index.openReadOnly(folder, Wanted.of(0));
  }

  /** Adds Gaussians whose ids are their versions. */
  private static void add(Index index, long... ids) {
    index.add(ids, Content.batch(ids));
  }

  /** Makes an index of many, one of them removed. */
  private Index filled() {
    Index index = open();
    add(index, MANY);
    index.remove(REMOVED);
    index.commit();
    return index;
  }

  /** Opens an index from its files alone, and checks what it holds. */
  private static void holds(Path folder, Map<Long, Long> content) {
    try (Index index = TestFiles.open(folder)) {
      assertThat(Content.of(index)).isEqualTo(content);
      index.verify();
    }
  }

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

  /** A commit writes segments that are new, bits that changed, and then a manifest; none of what is there already. */
  @Test
  void commitsWriteWhatChanged() throws IOException {
    List<String> written = new ArrayList<>();
    TestFiles files =
        new TestFiles() {
          private boolean isSynced = true;

          @Override
          void step(String name, Path file, Operation whole, Operation half) throws IOException {
            if (name.equals("write")) {
              written.add(file.getFileName().toString());
            }
            if (commits(name, file)) { // no manifest is durable before the names of what it names
              assertThat(isSynced).isTrue();
            } else if (name.equals("rename") || name.equals("sync")) {
              isSynced = name.equals("sync");
            }
            whole.run();
          }
        };
    try (Index index = TestFiles.open(scratch, files)) {
      add(index, MANY);
      index.commit();
      written.clear();
      assertThat(index.commit()).isFalse();
      assertThat(written).isEmpty();
      index.remove(6);
      index.commit();
      assertThat(written).containsExactly("deleted-000002.bin.tmp", "manifest.tmp");
      written.clear();
      add(index, 6);
      add(index, 7);
      add(index, -1);
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
    try (Index index = TestFiles.open(scratch, files)) {
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
      assertThatThrownBy(() -> read(folder).close())
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageMatching(
              "/.*(: there is no such folder|no file named manifest); if another process makes the index, try again when it has");
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
    String text = "of another program";
    List<String> others =
        List.of(
            ".DS_Store", ".nfs000001", ".gitkeep", "README.md", "segment", "deleted-1.txt", "lock");
    for (String name : others) {
      Files.writeString(scratch.resolve(name), text);
    }
    Files.createDirectories(scratch.resolve("lost+found"));
    Files.createDirectories(scratch.resolve(".snapshot/segment-000001.bin"));
    try (Index index = filled()) {
      index.remove(MANY);
      index.commit();
    }
    read(scratch).close();
    for (String name : others) {
      assertThat(scratch.resolve(name)).hasContent(text);
    }
    assertThat(scratch.resolve(".snapshot/segment-000001.bin")).isDirectory();
    assertThat(scratch.resolve("lost+found")).isDirectory();
    Path orphans = Files.createDirectory(scratch.resolve("orphans"));
    Files.createFile(orphans.resolve("segment-000001.bin"));
    String lost = "has no file named manifest, but has segment-000001.bin: restore";
    corrupt(orphans, 1, lost);
    corrupt(orphans, 0, lost);
    assertThatThrownBy(() -> read(orphans).close())
        .isInstanceOf(CorruptIndexException.class)
        .hasMessageContaining(lost);
    Path foreign = Files.createDirectory(scratch.resolve("foreign"));
    Files.writeString(foreign.resolve("manifest.tmp"), text);
    refused(foreign, 1, "manifest.tmp: is not an index's");
    assertThat(foreign.resolve("manifest.tmp")).hasContent(text);
  }

  @Test
  void foldersThatAreOpen() throws Exception {
    Path folder = scratch.resolve("index");
    Index index = Index.open(folder, 1);
    for (Path path : List.of(folder, scratch.resolve("index/../index"))) {
      refused(IndexLockedException.class, path, 1, "is open in this process already");
    }
    assertThat(openElsewhere(folder))
        .contains("IndexLockedException")
        .containsPattern(
            "is open in process %d on \\S+ since \\S+; close it there first; KlIndex.openReadOnly reads the last commit meanwhile"
                .formatted(ProcessHandle.current().pid()));
    index.close();
    assertThat(openElsewhere(folder)).contains("opened");
    Index.open(folder, 1).close();
  }

  /** Opens an index in a process of its own, adds and commits ids, and returns what it prints. */
  private static String openElsewhere(Path folder, String... ids) throws Exception {
    return openElsewhere(List.of(), folder, ids);
  }

  private static String openElsewhere(List<String> command, Path folder, String... ids)
      throws Exception {
    List<String> all = new ArrayList<>(command);
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String classes = System.getProperty("java.class.path");
    all.addAll(List.of(java, "--add-modules", "jdk.incubator.vector", "-cp", classes));
    all.addAll(List.of(Open.class.getName(), folder.toString()));
    all.addAll(List.of(ids));
    Process process = new ProcessBuilder(all).redirectErrorStream(true).start();
    return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
  }

  /** Opens an index in a process of its own. */
  static final class Open {
    public static void main(String[] args) {
      try (Index index = Index.open(Path.of(args[0]), 0)) {
        System.out.println("opened " + index.size());
        for (int k = 1; k < args.length; k++) {
          long id = Long.parseLong(args[k]);
          add(index, id);
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
    try (Index index = open()) {
      add(index, MANY);
      index.remove(3);
      index.commit(new byte[] {5, 6});
    }
    String copy = "; restore the folder from a copy";
    change("manifest", bytes -> bytes[40] ^= 1, "is incomplete or was changed" + copy);
    change("manifest", bytes -> bytes[0] = 'K', "is not the manifest of an index" + copy);
    String manifest = Files.readString(scratch.resolve("manifest"));
    for (int length : new int[] {manifest.length() - 1, manifest.indexOf("checksum")}) {
      replace("manifest", text -> text.substring(0, length), "is incomplete or was changed");
    }
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
    String line = manifest.lines().filter(l -> l.startsWith("segment ")).findFirst().orElseThrow();
    String[][] lies = {
      {"dimension 1", "dimension 0", "invalid number 0"},
      {"dimension 1", "dimension 99999999", "number 99999999"},
      {"next ", "next 900000000000000000", "invalid number 9"},
      {line, line + "\n" + line, "names a segment twice"},
      {"dimension 1", "size 1", "unknown line \"size 1\""},
      {"data BQY=\n", "data ?\n", "invalid data of the user"},
      {"BQY=", "A".repeat((1 << 16) / 3 * 4 + 4), "invalid data of the user"},
      {"data BQY=", "data BQY= 1", "unknown line \"data"},
      {"data BQY=", "date BQY=", "unknown line \"date"},
      {"segment-", "../segment-", "none of an index"},
      {" 3000 1 ", " 3000 2 ", "checksum is wrong"},
      {" 3000 1 ", " 2999 1 ", "checksum is wrong"}
    };
    for (String[] lie : lies) {
      replace("manifest", text -> signed(text, lie[0], lie[1]), lie[2]);
    }
    for (String name : new String[] {"segment-000001.bin", "deleted-000002.bin"}) {
      change(name, bytes -> bytes[0] ^= 1, "");
      replace(name, text -> text.substring(1), "bytes and should have ");
      replace(name, text -> "", "has 0 bytes and should have ");
      Path away = Files.move(scratch.resolve(name), scratch.resolve("away"));
      corrupt(scratch, 0, name + ": is missing" + copy);
      Files.move(away, scratch.resolve(name));
    }
    String wrong = "was changed: its checksum is wrong" + copy;
    for (int at : new int[] {8, 9, 10, 11, 12, 100}) { // the version is at 8
      change("segment-000001.bin", bytes -> bytes[at] ^= 1, wrong);
    }
    Path segment = scratch.resolve("segment-000001.bin");
    byte[] first = Files.readAllBytes(segment);
    byte[] other = first.clone();
    other[8] = 3;
    Files.write(segment, other);
    replace(
        UncheckedIOException.class,
        "manifest",
        text -> signed(text, checksums(first), checksums(other)),
        "has version 3 of the format, but this library reads 1 and 2; use the library that wrote it");
    other[8] = first[8];
    other[other.length / 2] ^= 1;
    Files.write(segment, other);
    try (Index index = open()) {
      assertThatExceptionOfType(CorruptIndexException.class)
          .isThrownBy(index::verify)
          .withMessage(segment.toRealPath() + ": " + wrong);
    }
    Files.write(segment, first);
    try (Index index = open()) {
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
    replace(
        name,
        text -> {
          byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
          change.accept(bytes);
          return new String(bytes, StandardCharsets.ISO_8859_1);
        },
        name + ": ",
        message);
  }

  private void replace(String name, UnaryOperator<String> change, String... message)
      throws IOException {
    replace(CorruptIndexException.class, name, change, message);
  }

  private void replace(
      Class<? extends UncheckedIOException> type,
      String name,
      UnaryOperator<String> change,
      String... message)
      throws IOException {
    Path file = scratch.resolve(name);
    String before = Files.readString(file, StandardCharsets.ISO_8859_1);
    Files.writeString(file, change.apply(before), StandardCharsets.ISO_8859_1);
    refused(type, scratch, 0, message);
    Files.writeString(file, before, StandardCharsets.ISO_8859_1);
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
      restore(folder, files);
      opened += reads(() -> read(folder)) ? 1 : 0;
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
    try (Index index = TestFiles.open(folder)) {
      add(index, MANY);
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
    try (Index index = open()) {
      index.verify();
      add(index, -5);
      index.commit();
    }
    assertThat(contents(scratch)).hasSizeLessThanOrEqualTo(now.size() + 1);
  }

  /** Where another writer has committed all the same, as locks do not work everywhere, a commit is refused and loses nothing. */
  @Test
  void commitsBesideAnotherWriter() throws Exception {
    try (Index index = open()) {
      add(index, 1);
      index.commit();
      add(index, 2);
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
    try (Index index = open()) {
      assertThat(Content.of(index)).isEqualTo(Map.of(1L, 1L, 77L, 77L));
      add(index, 2);
      Files.delete(scratch.resolve("manifest"));
      assertThatExceptionOfType(UncheckedIOException.class)
          .isThrownBy(index::commit)
          .withMessageContaining("manifest: was removed by another process");
    }
  }

  /** Fails to replace the manifest, though it may have done it, while it is told to. */
  private static final class Doubt extends TestFiles {
    private boolean fails;
    private boolean replaces;

    @Override
    void step(String name, Path file, Operation whole, Operation half) throws IOException {
      boolean isDoubtful = fails && commits(name, file);
      if (!isDoubtful || replaces) {
        whole.run();
      }
      if (isDoubtful) {
        throw new IOException("made up");
      }
    }

    void commit(Index index, boolean replaces) {
      fails = true;
      this.replaces = replaces;
      assertThatExceptionOfType(UncheckedIOException.class).isThrownBy(index::commit);
      fails = false;
    }
  }

  /** A commit that may or may not have replaced the manifest is no other writer's, and what is undone after it is. */
  @Test
  void commitsAfterOneInDoubt() throws IOException {
    Doubt files = new Doubt();
    try (Index index = TestFiles.open(scratch, files)) {
      for (int doubt = 0; doubt < 2; doubt++) {
        index.replace(new long[] {1}, Content.batch(doubt));
        files.commit(index, doubt == 1);
        index.replace(new long[] {2}, Content.batch(doubt));
        assertThat(index.commit()).isTrue();
        assertThat(contents(scratch)).hasSize(3); // nothing is left
      }
      add(index, 3);
      files.commit(index, true);
      index.remove(3);
      assertThat(index.commit()).isTrue();
    }
    holds(scratch, Map.of(1L, 1L, 2L, 1L));
  }

  /** No commit names a file that something else has deleted, nor deletes what a manifest that may be in the folder names. */
  @Test
  void commitsNameOnlyWhatIsThere() throws IOException {
    Doubt files = new Doubt();
    try (Index index = TestFiles.open(scratch, files)) {
      add(index, MANY);
      files.commit(index, true);
    }
    try (Index index = open()) {
      index.verify();
      assertThat(index.size()).isEqualTo(MANY.length);
      Files.delete(scratch.resolve(segmentsAndDeletions().iterator().next()));
      add(index, -1);
      String manifest = Files.readString(scratch.resolve("manifest"));
      assertThatExceptionOfType(CorruptIndexException.class)
          .isThrownBy(index::commit)
          .withMessageContaining("segment-000001.bin: is missing; restore the folder from a copy");
      assertThat(Files.readString(scratch.resolve("manifest"))).isEqualTo(manifest);
    }
  }

  /** An index that must not be written to can be read and searched; to commit is an error that says so. */
  @Test
  void foldersThatMayOnlyBeRead() throws Exception {
    Path folder = scratch.resolve("index");
    try (Index index = TestFiles.open(folder)) {
      add(index, MANY);
      index.commit();
    }
    Map<String, String> before = contents(folder);
    permit(scratch, "rwxr-xr-x");
    permit(folder, "r-xr-xr-x");
    for (String name : before.keySet()) {
      permit(folder.resolve(name), "r--r--r--");
    }
    List<String> command = // root may write whatever others may only read
        System.getProperty("user.name").equals("root")
            ? List.of("setpriv", "--reuid=65534", "--inh-caps=-all", "--bounding-set=-all")
            : List.of();
    try {
      assertThat(openElsewhere(command, folder, "7"))
          .contains("opened " + MANY.length)
          .contains(folder.toRealPath() + ": permission denied (" + folder.toRealPath() + "/lock)");
      permit(folder, "---------");
      assertThat(openElsewhere(command, folder, "7"))
          .contains(": permission denied")
          .doesNotContain("no file named");
    } finally {
      permit(folder, "rwxr-xr-x");
    }
    assertThat(contents(folder)).isEqualTo(before);
  }

  private static void permit(Path path, String permissions) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions));
  }

  /** Readers see the last commit, beside a writer too, and change nothing; refreshed, they open only what is new. */
  @Test
  void readersBesideAWriter() throws IOException {
    try (Index index = filled();
        Index reader = read(scratch)) {
      assertThat(reader.refresh()).isFalse();
      index.remove(MANY[3]);
      add(index, 1);
      assertThat(reader.refresh()).isFalse(); // what is not committed is not seen
      index.commit();
      try (Index later = read(scratch)) {
        assertThat(reader.size()).isEqualTo(MANY.length - 1);
        reader.verify(); // though its files are deleted
        later.verify();
        assertThat(later.contains(MANY[3])).isFalse();
        assertThat(later.contains(1)).isTrue();
      }
      for (Runnable change :
          List.<Runnable>of(
              () -> add(reader, 2),
              () -> reader.replace(new long[] {2}, Content.batch(2)),
              () -> reader.remove(2),
              reader::commit)) {
        assertThatIllegalStateException()
            .isThrownBy(change::run)
            .withMessageContaining("was opened read only");
      }
      Segment before = segment(reader, MANY[0]);
      assertThat(reader.refresh()).isTrue();
      assertThat(reader.contains(MANY[3])).isFalse();
      assertThat(segment(reader, MANY[0])).isSameAs(before);
      assertThatIllegalStateException()
          .isThrownBy(index::refresh)
          .withMessageContaining("was opened to be changed");
    }
  }

  /** A reader whose folder was deleted is told so when it is refreshed, and shows what it did. */
  @Test
  void readersOfAFolderThatIsGone() throws IOException {
    filled().close();
    try (Index reader = read(scratch)) {
      long size = reader.size();
      for (String name : names()) {
        Files.delete(scratch.resolve(name));
      }
      assertThatThrownBy(reader::refresh)
          .isExactlyInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("no file named manifest");
      Path folder = scratch.toRealPath();
      Files.delete(scratch);
      assertThatThrownBy(reader::refresh)
          .isExactlyInstanceOf(UncheckedIOException.class)
          .hasMessage(folder + ": is not there any more");
      assertThat(reader.size()).isEqualTo(size);
    }
  }

  /** Readers that open the folder, or are refreshed, while commits replace its files see each of these whole, and never an earlier one than before. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void readersWhileAWriterCommits(boolean isRefreshed) throws Exception {
    long[] ids = LongStream.range(0, 5000).toArray(); // enough to be mapped
    try (Index index = open();
        ExecutorService writers = Executors.newSingleThreadExecutor()) {
      index.add(ids, Content.batch(new long[ids.length]));
      index.commit();
      Future<?> writes =
          writers.submit(() -> {
            for (long version = 1; version <= 100; version++) {
              long[] versions = new long[ids.length];
              Arrays.fill(versions, version);
              index.replace(ids, Content.batch(versions));
              index.commit();
            }
          });
      Index reader = read(scratch);
      try {
        long last = 0;
        for (boolean isOver = false; !isOver; ) {
          isOver = writes.isDone(); // and one look more
          boolean isNew = true;
          if (isRefreshed) {
            isNew = reader.refresh();
          } else {
            reader.close();
            reader = read(scratch);
          }
          Map<Long, Long> content = Content.of(reader);
          long version = content.get(0L);
          assertThat(content).hasSize(ids.length);
          assertThat(content.values()).containsOnly(version);
          assertThat(version).isGreaterThanOrEqualTo(last);
          if (isRefreshed) {
            assertThat(version > last).isEqualTo(isNew && version > 0);
          }
          last = version;
        }
        writes.get();
        assertThat(last).isEqualTo(100);
      } finally {
        reader.close();
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
    try (Index index = filled()) {
      try (Index reader = read(scratch)) {
        add(index, 1);
        index.commit();
        Path manifest = scratch.resolve("manifest");
        byte[] text = Files.readAllBytes(manifest);
        Files.writeString(manifest, "damaged");
        for (int again = 0; again < 2; again++) {
          assertThatThrownBy(reader::refresh)
              .isInstanceOf(CorruptIndexException.class)
              .hasMessageStartingWith(manifest.toString());
          assertThat(reader.contains(1)).isFalse();
          assertThat(reader.size()).isEqualTo(MANY.length - 1);
        }
        Files.write(manifest, text);
        assertThat(reader.refresh()).isTrue();
        assertThat(reader.contains(1)).isTrue();
      }
    }
  }

  @Test
  void aThreadRefreshes() throws Exception {
    try (Index index = open()) {
      Index reader = read(scratch);
      reader.refreshEvery(Duration.ofMillis(1));
      try (reader) {
        for (long id = 0; id < 5; id++) {
          add(index, id);
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
    try (Index index = filled();
        Index empty = TestFiles.open(target.resolve("empty"))) {
      empty.copyTo(target.resolve("none"));
      add(index, 1); // is in no copy
      index.copyTo(first);
      try (Index reader = read(scratch)) {
        index.remove(MANY);
        index.commit();
        reader.copyTo(second);
      }
      String folder = scratch.toRealPath().toString();
      noCopy(index, first, "has an index already; name another folder");
      noCopy(
          index,
          scratch,
          "is open in this process already; name another folder; KlIndex.openReadOnly reads the last commit meanwhile");
      noCopy(
          index,
          Files.createFile(target.resolve("file")),
          "is not a folder; give that of an index");
      Path link = Files.createSymbolicLink(target.resolve("link"), scratch);
      Files.createDirectory(scratch.resolve("there"));
      for (Path within :
          List.of(
              scratch.resolve("sub"),
              scratch.resolve("a/b"),
              scratch.resolve("there"),
              link.resolve("sub"))) {
        noCopy(index, within, "is in the folder of the index itself, " + folder + "; name another");
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
      try (Index index = TestFiles.open(copy)) {
        index.verify();
        assertThat(index.size()).isEqualTo(MANY.length - 1);
        assertThat(index.contains(REMOVED)).isFalse();
        index.remove(MANY[0]);
        add(index, 2);
        index.commit();
      }
      try (Index index = TestFiles.open(copy)) {
        assertThat(index.size()).isEqualTo(MANY.length - 1);
        index.verify();
      }
    }
  }

  private static void noCopy(Index index, Path to, String message) {
    assertThatThrownBy(() -> index.copyTo(to))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage(to + ": " + message);
  }

  /** Of copies to one folder at the same time, one is made, and the others do it no harm. */
  @Test
  void copiesAtTheSameTime(@TempDir Path target) throws Exception {
    try (Index index = filled();
        ExecutorService others = Executors.newSingleThreadExecutor()) {
      try (Index reader = read(scratch)) {
        for (int k = 0; k < 50; k++) {
          Path copy = target.resolve("copy" + k);
          Future<Boolean> other = others.submit(() -> copies(reader, copy));
          boolean first = copies(index, copy);
          assertThat(other.get() ? !first : first).isTrue();
          try (Index made = read(copy)) {
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
    try (Index index = filled()) {
      for (String name : segmentsAndDeletions()) {
        Path file = scratch.resolve(name);
        Path away = Files.move(file, target.resolve("away"));
        Path copy = target.resolve("copy");
        assertThatThrownBy(() -> index.copyTo(copy))
            .isInstanceOf(CorruptIndexException.class)
            .hasMessageStartingWith(scratch.toRealPath().resolve(name) + ": is missing");
        assertThat(copy).isEmptyDirectory();
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
    try (Index index = open()) {
      assertThat(index.userData()).isEmpty();
      add(index, MANY);
      assertThat(index.commit(large)).isTrue();
      try (Index reader = read(scratch)) {
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
  private static class Ending extends TestFiles {
    private final int last;
    private final int stage;
    private int step;

    Ending(int last, int stage) {
      this.last = last;
      this.stage = stage;
    }

    @Override
    void step(String name, Path file, Operation whole, Operation half) throws IOException {
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
      index = TestFiles.open(folder, new Ending(last, stage));
      script(index, commits);
    } catch (Ended e) {
      ended = true;
    } finally {
      if (index != null) {
        index.close();
      }
    }
    try (Index again = TestFiles.open(folder)) {
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
      assertThat(names(folder))
          .allMatch(name -> name.matches("lock|manifest") || named.contains(name));
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

  /** Tries each {@code every}th pair of faults; what the first leaves serves for each second. */
  private void twoFaults(int every) throws IOException {
    int pairs = 0;
    int tried = 0;
    Path folder = scratch.resolve("folder");
    try (Index index = TestFiles.open(folder)) {
      add(index, 1, 2, 3, 4);
      index.commit();
    }
    Map<String, String> whole = contents(folder);
    for (int ends = 0; ends < 4; ends++) {
      boolean reached = true;
      for (int first = 0; reached; first++) {
        Fault one = new Fault(first / 3, first % 3, ends % 2 == 0);
        restore(folder, whole);
        change(folder, one, 10);
        reached = one.isReached;
        Map<String, String> left = contents(folder);
        boolean again = reached;
        for (int second = 0; again; second++) {
          if (pairs++ % every > 0 && second > 0) {
            again = second < 60;
            continue;
          }
          tried++;
          Fault two = new Fault(second / 3, second % 3, ends / 2 == 0);
          restore(folder, left);
          List<Map<Long, Long>> states = change(folder, two, 20);
          again = two.isReached;
          check(folder, states);
        }
      }
    }
    assertThat(tried).isGreaterThan(2000 / every);
  }

  private static void restore(Path folder, Map<String, String> files) throws IOException {
    for (String name : names(folder)) {
      Files.delete(folder.resolve(name));
    }
    for (String name : files.keySet()) {
      Files.writeString(folder.resolve(name), files.get(name), StandardCharsets.ISO_8859_1);
    }
  }

  private static void check(Path folder, List<Map<Long, Long>> states) throws IOException {
    try (Index index = TestFiles.open(folder)) {
      assertThat(states).contains(Content.of(index));
      index.verify();
      index.replace(new long[] {9}, Content.batch(9));
      index.commit();
    }
    try (Index index = TestFiles.open(folder)) {
      index.verify();
      assertThat(index.contains(9)).isTrue();
    }
    assertThat(names(folder)).noneMatch(name -> name.endsWith(".bin.tmp"));
  }

  /** Changes and commits; returns the states that the folder may have then. */
  private static List<Map<Long, Long>> change(Path folder, Fault fault, long version) {
    List<Map<Long, Long>> states = new ArrayList<>();
    Index index = TestFiles.open(folder, fault);
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

  /** A large merge is made in a temporary file, which a commit names and which is gone where none does. */
  @Test
  void mergesInFiles() throws IOException {
    for (boolean isCommitted : new boolean[] {true, false}) {
      Path folder = scratch.resolve("committed " + isCommitted);
      Map<Long, Long> expected;
      try (Index index =
          Index.open(folder, Wanted.of(1), new TestFiles(), Segment::merge, 1 << 12)) {
        for (int k = 0; k < 8; k++) {
          add(index, LongStream.range(1000L * k, 1000L * (k + 1)).toArray());
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
      holds(folder, isCommitted ? expected : Map.of());
    }
  }

  /** Some commits, each noted before it begins. */
  private static void script(Index index, List<Map<Long, Long>> commits) {
    add(index, 1, 2, 3, 4);
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
    class Failing extends TestFiles {
      private int left = Integer.MAX_VALUE;
      private long rest;

      @Override
      long room(Path folder) {
        return rest - missing;
      }

      @Override
      void write(Path file, MemorySegment bytes) throws IOException {
        boolean fails = left-- == 0;
        long size = fails ? bytes.byteSize() / writtenPart : bytes.byteSize();
        rest = bytes.byteSize() - size;
        super.write(file, bytes.asSlice(0, size));
        if (fails) {
          throw new IOException("No space left on device");
        }
      }
    }
    Failing files = new Failing();
    Map<Long, Long> expected;
    try (Index index = TestFiles.open(scratch, files)) {
      add(index, MANY);
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
    holds(scratch, expected);
  }

  /** A copy that finds no room leaves nothing; a file that may not be written is no full disk, however little room there is. */
  @Test
  void copiesMayFindNoRoom() throws IOException {
    class Full extends TestFiles {
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
    try (Index index = TestFiles.open(scratch, files)) {
      assertThat(new FileOperations().room(scratch)).isPositive();
      add(index, MANY);
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
    return names().stream().filter(name -> name.contains(".bin")).collect(Collectors.toSet());
  }
}
