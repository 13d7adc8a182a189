package dev.kullback.internal.index.store;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** Operations on files that a test sees and stops. What they write reaches the disk when the system likes: tests end processes, no machine. */
class TestFiles extends FileOperations {
  /** An operation, or its first half. */
  interface Operation {
    void run() throws IOException;
  }

  /** Opens or makes an index of one dimension. */
  static Index open(Path folder) {
    return open(folder, new TestFiles());
  }

  /** Opens or makes one that uses these files. */
  static Index open(Path folder, FileOperations files) {
    return Index.open(folder, 1, files, Segment::merge);
  }

  /**
   * Does one operation.
   *
   * @param name of the method below
   * @param file that is made, changed, deleted, or replaced
   */
  void step(String name, Path file, Operation whole, Operation half) throws IOException {
    whole.run();
  }

  /** Whether an operation replaces the manifest. */
  static boolean commits(String name, Path file) {
    return name.equals("rename") && file.endsWith("manifest");
  }

  private void step(String name, Path file, Operation whole) throws IOException {
    step(name, file, whole, () -> {});
  }

  @Override
  void force(FileChannel channel) {
    // it would take most of a test's time
  }

  @Override
  void createFolder(Path folder) throws IOException {
    step("createFolder", folder, () -> super.createFolder(folder));
  }

  @Override
  void create(Path file) throws IOException {
    step("create", file, () -> super.create(file));
  }

  @Override
  void fill(Path file, long bytes) throws IOException {
    step("fill", file, () -> super.fill(file, bytes), () -> super.fill(file, bytes / 2));
  }

  @Override
  void force(Path file, MemorySegment mapped) throws IOException {
    step("force", file, () -> {});
  }

  @Override
  void write(Path file, MemorySegment bytes) throws IOException {
    step(
        "write",
        file,
        () -> super.write(file, bytes),
        () -> super.write(file, bytes.asSlice(0, bytes.byteSize() / 2)));
  }

  @Override
  void rename(Path from, Path to) throws IOException {
    step("rename", to, () -> super.rename(from, to));
  }

  @Override
  void delete(Path file) throws IOException {
    step("delete", file, () -> super.delete(file));
  }

  @Override
  void sync(Path folder) throws IOException {
    step("sync", folder, () -> super.sync(folder));
  }
}
