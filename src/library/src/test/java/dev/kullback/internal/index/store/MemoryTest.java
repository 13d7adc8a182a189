package dev.kullback.internal.index.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.kullback.internal.index.search.Searches;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.testing.ChildJvm;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Memory of an index goes back when no search can reach it, without the garbage collector. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MemoryTest {
  private static final int DIMENSION = 64;

  @TempDir private Path scratch;

  // --- blocks

  @Test
  void blocksGoBackWithTheirLastUser() throws IOException {
    try (Memory memory = new Memory()) {
      Memory.Block large = memory.allocate(1 << 21);
      large.retain();
      large.release();
      memory.reclaim();
      assertThat(large.segment().scope().isAlive()).isTrue();
      large.release();
      assertThat(large.segment().scope().isAlive()).isTrue(); // no user closes it
      assertThat(memory.reclaim()).isTrue();
      assertThat(large.segment().scope().isAlive()).isFalse();
      assertThat(memory.reclaim()).isFalse();
      assertThatIllegalStateException().isThrownBy(large::retain);
      Path file = Files.write(scratch.resolve("file"), new byte[] {1, 2, 3});
      try (FileChannel channel = FileChannel.open(file)) {
        Memory.Block mapped = memory.map(channel, FileChannel.MapMode.READ_ONLY, 3, null);
        assertThat(mapped.isMapped()).isTrue();
        mapped.release();
        memory.reclaimSoon();
        while (mapped.segment().scope().isAlive()) { // until the thread has come, or time is up
          Thread.onSpinWait();
        }
      }
      assertThat(file).exists();
    }
    assertThat(Thread.getAllStackTraces().keySet())
        .noneMatch(thread -> thread.getName().equals("kullback-memory"));
  }

  /** Searches meet one class of memory, mapped or not: with two, the VM throws their code away when it meets the second. */
  @Test
  void mappedFilesAreOfTheClassOfOtherMemory() throws IOException {
    try (Memory memory = new Memory()) {
      Path file = Files.write(scratch.resolve("file"), new byte[8192]);
      Memory.Block block = memory.allocate(8192);
      try (FileChannel channel = FileChannel.open(file)) {
        Memory.Block mapped = memory.map(channel, FileChannel.MapMode.READ_ONLY, 8192, null);
        assertThat(mapped.isMapped()).isTrue();
        assertThat(mapped.segment().getClass()).isEqualTo(block.segment().getClass());
        assertThat(mapped.segment().byteSize()).isEqualTo(8192);
        assertThat(mapped.segment().isReadOnly()).isTrue();
        mapped.release();
      }
      block.release();
    }
  }

  /** Small blocks serve again, empty, for blocks that are not much smaller; not too many are kept. */
  @Test
  void smallBlocksServeAgain() {
    Memory memory = new Memory();
    Memory.Block block = memory.allocate(100_000);
    MemorySegment first = block.segment().fill((byte) 1);
    block.release();
    Memory.Block smaller = memory.allocate(99_000);
    assertThat(smaller.segment().address()).isEqualTo(first.address());
    assertThat(smaller.segment().byteSize()).isEqualTo(99_000);
    assertThat(smaller.segment().mismatch(MemorySegment.ofArray(new byte[99_000]))).isEqualTo(-1);
    smaller.release();
    assertThat(memory.allocate(50_000).segment().address()).isNotEqualTo(first.address());
    assertThat(first.scope().isAlive()).isTrue();
    List<Memory.Block> many =
        LongStream.range(0, 100).mapToObj(k -> memory.allocate(100_000)).toList();
    many.forEach(Memory.Block::release);
    memory.reclaim();
    assertThat(many.stream().filter(each -> each.segment().scope().isAlive()).count())
        .isBetween(20L, 50L);
    memory.close();
    assertThat(many).noneMatch(each -> each.segment().scope().isAlive());
    Memory.Block late = memory.allocate(100);
    late.release(); // a search that outlives its index
    assertThat(late.segment().scope().isAlive()).isFalse();
  }

  /** No more than the JVM's limit of direct memory is taken, and what was refused is not counted. */
  @Test
  void theLimitOfDirectMemoryHolds() throws Exception {
    child(List.of("-XX:MaxDirectMemorySize=40m"), "limit", 0);
  }

  // --- indexes

  /** Commits one after the other leave few mappings, memory and files as they are, though nothing is ever collected. */
  @Test
  void commitsLeaveNothing() throws Exception {
    commits(300);
  }

  /** Each reference is replaced ten times: 10 kB that a commit leaves show. */
  @Test
  @Tag("long")
  void manyCommitsLeaveNothing() throws Exception {
    commits(Integer.getInteger("tests.commits", 1000));
  }

  private void commits(int n) throws Exception {
    child(List.of("-Xmn2500m", "-Xms3g", "-Xmx3g", "-XX:MaxDirectMemorySize=64m"), "commits", n);
  }

  /** Replaced rows give their memory back, beside searches too, though nothing is ever collected. */
  @Test
  void replacementsLeaveNothing() throws Exception {
    replacements(1500);
  }

  /** The rows that are replaced have several times the bytes of the limit. */
  @Test
  @Tag("long")
  void manyReplacementsLeaveNothing() throws Exception {
    replacements(6000);
  }

  private void replacements(int n) throws Exception {
    child(List.of("-Xms2g", "-Xmx2g", "-XX:MaxDirectMemorySize=100m"), "replacements", n);
  }

  /** Merges of many large segments, of more than twice the limit together, need no more memory than a few have. */
  @Test
  @Tag("long")
  void largeMergesAreMadeInFiles() throws Exception {
    child(List.of("-Xmx200m"), "merges", 40);
  }

  /** Runs a main method below, which fails if it leaves too much, in a JVM whose collector never closes anything. */
  private void child(List<String> flags, String what, int n) throws Exception {
    List<String> arguments = new ArrayList<>(flags);
    arguments.addAll(
        List.of(
            "-ea",
            "-XX:+UseSerialGC",
            "-XX:+DisableExplicitGC",
            "--add-modules",
            "jdk.incubator.vector",
            "-cp",
            System.getProperty("java.class.path"),
            Life.class.getName(),
            what,
            scratch.resolve("index").toString(),
            Integer.toString(n)));
    ChildJvm jvm = ChildJvm.run(scratch, Duration.ofMinutes(4), arguments);
    assertThat(jvm.status()).as("%s", jvm).isZero();
    System.out.println(jvm.out());
  }

  /** What the tests above run. */
  static final class Life {
    public static void main(String[] args) throws Exception {
      Path folder = Path.of(args[1]);
      int n = Integer.parseInt(args[2]);
      switch (args[0]) {
        case "commits" -> commits(folder, n);
        case "replacements" -> replacements(n);
        case "limit" -> limit();
        default -> merges(folder, n);
      }
    }

    private static void limit() {
      try (Index index = Index.inMemory(DIMENSION)) {
        int n = 0;
        try {
          for (; n < 100; n++) {
            long first = 2000L * n;
            index.add(LongStream.range(first, first + 2000).toArray(), batch(2000, n));
          }
          throw new AssertionError("no limit");
        } catch (OutOfMemoryError e) {
          System.out.println(n + " times 2000 rows: " + e.getMessage());
        }
        check(index.size() == 2000L * n && n > 8, "rows");
        check(Memory.used() <= 40 << 20, "memory");
        index.remove(LongStream.range(0, 1000L * n).toArray());
        index.add(new long[] {-1}, batch(1, 0));
      }
      check(Memory.used() == 0, "memory of a closed index");
    }

    private static void commits(Path folder, int n) throws Exception {
      long most = 0;
      long files = 0;
      long warm = 0;
      try (Index index = Index.open(folder, DIMENSION, new TestFiles(), Segment::merge)) {
        for (int k = 0; k < n; k++) {
          long first = 300L * k;
          long[] ids = LongStream.range(first, first + 300).map(id -> id * 7 % 30_000).toArray();
          index.replace(ids, batch(ids.length, k));
          index.commit();
          most = Math.max(most, mappings(folder));
          files = Math.max(files, files(folder));
          warm = k == n / 10 ? Memory.used() : warm;
        }
        long limit = warm + (8 << 20);
        // a merge under way ends, and what it made in memory has a file after the next commit
        for (int k = 0; k < 100 && Memory.used() >= limit; k++) {
          Thread.sleep(100);
          index.commit();
        }
        System.out.printf(
            "%d commits: at most %d mappings, %d files, %d bytes; %d collections%n",
            n, most, files, Memory.used(), collections());
        check(most <= 64, "mappings");
        check(files <= 64, "files"); // as the one that adds merges, too, where the thread is late
        check(Memory.used() < limit, "memory");
        check(collections() <= 2 + n / 1000, "nothing is collected"); // unless the heap is full
      }
    }

    private static void replacements(int n) throws Exception {
      AtomicBoolean stop = new AtomicBoolean();
      try (Index index = Index.inMemory(DIMENSION);
          Searches searches = new Searches(DIMENSION, 1, null);
          ExecutorService readers = Executors.newFixedThreadPool(1)) {
        long[] all = LongStream.range(0, 20_000).toArray();
        index.add(all, batch(all.length, 0));
        Future<?> reads =
            readers.submit(() -> {
              while (!stop.get()) {
                try (Snapshot state = index.acquire()) {
                  searches.search(state, batch(1, 1), SearchOptions.nearest(3), 0);
                }
              }
            });
        Random random = new Random(1);
        long most = 0;
        for (int k = 0; k < n; k++) {
          long first = random.nextInt(19_900);
          index.replace(LongStream.range(first, first + 100).toArray(), batch(100, k));
          most = Math.max(most, Memory.used());
        }
        stop.set(true);
        reads.get();
        check(index.failedMerges() == 0, "merges");
        System.out.printf(
            "%d replacements: at most %d bytes; %d collections%n", n, most, collections());
      }
    }

    private static void merges(Path folder, int n) throws Exception {
      int rows = 20_000;
      try (Index index = Index.open(folder, DIMENSION, new TestFiles(), Segment::merge)) {
        for (int k = 0; k < n; k++) {
          long first = (long) k * rows;
          index.add(LongStream.range(first, first + rows).toArray(), batch(rows, k));
          if (k % 4 == 3) {
            index.commit();
          }
        }
        while (Content.segments(index) > 20) { // until merges are done, or time is up
          Thread.sleep(100);
        }
        index.commit();
        System.out.printf(
            "%d segments, %d failures%n", Content.segments(index), index.failedMerges());
        check(index.failedMerges() == 0, "merges");
        check(index.size() == (long) n * rows, "size");
        index.verify();
      }
      try (Index index = Index.openReadOnly(folder, Wanted.of(0))) {
        check(index.size() == (long) n * rows, "size");
        index.verify();
      }
    }

    private static dev.kullback.internal.batch.DiagonalBatch batch(int n, long version) {
      return Content.batch(
          DIMENSION, false, LongStream.range(version, version + n).map(v -> v % 20).toArray());
    }

    private static long mappings(Path folder) throws IOException {
      Path maps = Path.of("/proc/self/maps");
      if (!Files.exists(maps)) {
        return 0;
      }
      try (Stream<String> lines = Files.lines(maps)) {
        return lines.filter(line -> line.contains(folder.toString())).count();
      }
    }

    private static long files(Path folder) throws IOException {
      try (Stream<Path> files = Files.list(folder)) {
        return files.count();
      }
    }

    private static long collections() {
      return ManagementFactory.getGarbageCollectorMXBeans().stream()
          .mapToLong(collector -> collector.getCollectionCount())
          .sum();
    }

    private static void check(boolean holds, String what) {
      if (!holds) {
        throw new AssertionError(what);
      }
    }
  }
}
