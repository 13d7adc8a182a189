package dev.kullback.internal.index.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What an index holds is merged into one segment, and what it has removed leaves its files. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PurgeTest {
  private static final int D = 8;

  @TempDir private Path scratch;

  /** Gaussians of random bits, each by its seed, that nothing else in a file has by chance. */
  private static DiagonalBatch batch(long... seeds) {
    float[] mean = new float[seeds.length * D];
    float[] variance = new float[seeds.length * D];
    for (int s = 0; s < seeds.length; s++) {
      float[] numbers = numbers(seeds[s]);
      System.arraycopy(numbers, 0, mean, s * D, D);
      System.arraycopy(numbers, D, variance, s * D, D);
    }
    return DiagonalBatch.of(
        Elements.of(mean, "mean"),
        Elements.of(variance, "variance"),
        D,
        Scale.VARIANCE,
        ScalePolicy.STRICT,
        RangeCheck.PLAIN);
  }

  /** Ids, which are also seeds, that no length or offset equals. */
  private static long[] ids(long from, int n) {
    return LongStream.range(from, from + n).map(id -> id * 0x9E37_79B9_7F4A_7C15L).toArray();
  }

  /** The folder's files. */
  private final class Search {
    /** Of what is wanted, the last bits: most bytes of a file are nothing of it. */
    private final BitSet bits = new BitSet(1 << 24);

    private final Set<Long> wanted = new HashSet<>();
    private final Set<Long> found = new HashSet<>();

    /** Looks for the ids, means and variances of some Gaussians at each byte. */
    Search(long... seeds) throws IOException {
      for (long seed : seeds) {
        wanted.add(seed);
        wanted.addAll(words(seed));
      }
      wanted.forEach(number -> bits.set(lastBits(number)));
      try (Stream<Path> files = Files.list(scratch)) {
        for (Path file : files.toList()) {
          ByteBuffer bytes =
              ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
          for (int at = 0; at + Integer.BYTES <= bytes.limit(); at++) {
            look(bytes.getInt(at));
          }
          for (int at = 0; at + Long.BYTES <= bytes.limit(); at++) {
            look(bytes.getLong(at));
          }
        }
      }
    }

    private void look(long number) {
      if (bits.get(lastBits(number)) && wanted.contains(number)) {
        found.add(number);
      }
    }

    private static int lastBits(long number) {
      return (int) number & 0xFFFFFF;
    }

    /** Counts the Gaussians of which most numbers are there. */
    long count(long[] seeds) {
      return LongStream.of(seeds)
          .filter(seed -> words(seed).stream().filter(found::contains).count() > D)
          .count();
    }

    boolean hasId(long id) {
      return found.contains(id);
    }
  }

  /** A mean and its variance. */
  private static float[] numbers(long seed) {
    Random random = new Random(seed);
    float[] numbers = new float[2 * D];
    for (int k = 0; k < 2 * D; k++) {
      numbers[k] = 1 + random.nextFloat();
    }
    return numbers;
  }

  private static List<Long> words(long seed) {
    List<Long> words = new ArrayList<>();
    for (float number : numbers(seed)) {
      words.add((long) Float.floatToRawIntBits(number));
    }
    return words;
  }

  private static void add(Index index, long[] ids) {
    index.add(ids, batch(ids));
  }

  private Index open(FileOperations files) {
    return Index.open(scratch, D, files, Segment::merge);
  }

  private static long[] join(long[]... parts) {
    return Stream.of(parts).flatMapToLong(LongStream::of).toArray();
  }

  /** From a mapped segment, small ones, one that was never committed, and a file that a process left. */
  @Test
  void removedRowsLeaveTheFiles() throws IOException {
    long[] stay = ids(1, 3000);
    long[] go = ids(5000, 300);
    long[] replaced = ids(6000, 20);
    long[] few = ids(7000, 10);
    long[] late = ids(8000, 5);
    try (Index index = Index.open(scratch, D)) {
      add(index, join(stay, go, replaced));
      index.commit();
      add(index, few);
      index.commit();
      add(index, late);
      Files.copy(scratch.resolve("segment-000001.bin"), scratch.resolve("segment-000777.bin.tmp"));
      Map<Long, Long> before = Content.of(index);
      try (Snapshot held = index.acquire()) {
        index.remove(join(go, few, late));
        index.replace(replaced, batch(ids(9000, replaced.length)));
        index.commit();
        long[] others = ids(9000, replaced.length);
        long[] all = join(stay, go, replaced, few, late, others);
        Search search = new Search(all);
        assertThat(search.count(stay)).isEqualTo(stay.length);
        assertThat(search.count(join(go, replaced))).isEqualTo(go.length + replaced.length);
        assertThat(search.hasId(go[7])).isTrue();
        index.purge();
        search = new Search(all);
        assertThat(search.count(stay)).isEqualTo(stay.length);
        assertThat(search.count(others)).isEqualTo(others.length);
        assertThat(search.count(join(go, replaced, few, late))).isZero();
        assertThat(LongStream.of(join(go, few, late)).filter(search::hasId)).isEmpty();
        assertThat(Content.of(held)).isEqualTo(before); // searches go on
      }
      assertThat(index.changes()).isZero();
      assertThat(index.size()).isEqualTo(stay.length + replaced.length);
    }
    try (Index index = Index.open(scratch, D)) {
      index.verify();
      assertThat(index.size()).isEqualTo(stay.length + replaced.length);
      index.remove(stay);
      index.purge();
      assertThat(new Search(stay).count(stay)).isZero();
      index.remove(replaced);
      index.purge(); // what is left is nothing
      assertThat(new Search(replaced).hasId(replaced[0])).isFalse();
    }
  }

  /** A merge that began before rows were removed has them, and writes them to a file: a purge comes after it. */
  @Test
  void rowsThatAreRemovedDuringAMergeLeaveTheFiles() throws Exception {
    CountDownLatch merging = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    AtomicBoolean isFirst = new AtomicBoolean(true);
    try (ExecutorService other = Executors.newSingleThreadExecutor();
        Index index =
            Index.open(
                scratch,
                Wanted.of(D),
                new TestFiles(),
                (parts, memory) -> {
                  Segment made = Segment.merge(parts, memory);
                  if (isFirst.getAndSet(false)) {
                    merging.countDown();
                    await(goOn);
                  }
                  return made;
                },
                0)) {
      long[] all = ids(1, 9600);
      for (int part = 0; part < 8; part++) {
        add(index, ids(1 + 1200 * part, 1200));
      }
      await(merging);
      assertThat(new Search(all).count(ids(1, 50))).isEqualTo(50); // the merge's file has them
      index.remove(ids(1, 50));
      Future<?> purge = other.submit(index::purge);
      goOn.countDown();
      purge.get();
      Search search = new Search(all);
      assertThat(search.count(ids(1, 50))).isZero();
      assertThat(search.count(all)).isEqualTo(all.length - 50);
      assertThat(index.size()).isEqualTo(all.length - 50);
      index.verify();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Where a file cannot be deleted, as on Windows while it is read, a purge says so, and the next one deletes it. */
  @Test
  void filesThatCannotBeDeleted() throws IOException {
    AtomicBoolean fails = new AtomicBoolean();
    TestFiles files =
        new TestFiles() {
          @Override
          void delete(Path file) throws IOException {
            if (fails.get()) {
              throw new IOException("made up");
            }
            super.delete(file);
          }
        };
    try (Index index = open(files)) {
      add(index, ids(1, 100));
      index.commit();
      index.remove(ids(1, 10));
      fails.set(true);
      assertThatThrownBy(index::purge)
          .isInstanceOf(UncheckedIOException.class)
          .hasMessage(
              scratch.toRealPath()
                  + ": has segment-000001.bin yet, which could not be deleted, as a search or another process reads it; purge again later");
      fails.set(false);
      index.purge();
      assertThat(new Search(ids(1, 100)).count(ids(1, 10))).isZero();
      index.verify();
    }
  }

  /** No power failure brings back a file that a purge has deleted, obsolete or unfinished. */
  @Test
  void whatIsDeletedStaysDeleted() throws IOException {
    List<String> deletedLast = new ArrayList<>(); // since the folder was synced
    List<String> deleted = new ArrayList<>();
    TestFiles files =
        new TestFiles() {
          @Override
          void step(String name, Path file, Operation whole, Operation half) throws IOException {
            if (name.equals("delete") && Files.exists(file)) {
              deletedLast.add(file.getFileName().toString());
            }
            whole.run();
            if (name.equals("sync")) {
              deleted.addAll(deletedLast);
              deletedLast.clear();
            }
          }
        };
    try (Index index = open(files)) {
      add(index, ids(1, 100));
      index.commit();
      Files.write(scratch.resolve("segment-000777.bin.tmp"), new byte[1]);
      index.remove(ids(1, 10));
      index.purge();
      assertThat(deletedLast).isEmpty();
      assertThat(deleted).contains("segment-000001.bin", "segment-000777.bin.tmp");
      index.remove(ids(11, 90));
      index.purge();
      assertThat(deletedLast).isEmpty();
    }
  }

  /** What is listed may be gone when it is looked at. */
  @Test
  void filesThatAreGoneMeanwhile() throws IOException {
    Path[] left = {
      scratch.resolve("segment-000777.bin.tmp"), scratch.resolve("segment-000778.bin.tmp")
    };
    TestFiles files =
        new TestFiles() {
          @Override
          void delete(Path file) throws IOException {
            super.delete(file);
            if (file.getFileName().toString().startsWith("segment-00077")) {
              for (Path each : left) {
                super.delete(each);
              }
            }
          }
        };
    try (Index index = open(files)) {
      add(index, ids(1, 100));
      index.commit();
      for (Path file : left) {
        Files.write(file, new byte[1]);
      }
      index.purge();
      assertThat(left[0]).doesNotExist();
      assertThat(left[1]).doesNotExist();
    }
  }

  /** Files that merges make and delete at any time are none that a purge could not delete. */
  @Test
  void purgesBesideFilesOfMerges() throws Exception {
    AtomicBoolean stop = new AtomicBoolean();
    try (ExecutorService other = Executors.newSingleThreadExecutor();
        Memory memory = new Memory();
        Folder folder = Folder.open(scratch, Wanted.of(D), new TestFiles(), memory)) {
      Future<?> merges =
          other.submit(() -> {
            while (!stop.get()) {
              folder.scratch(64).release();
              memory.reclaim();
            }
          });
      try {
        for (int k = 0; k < 3000; k++) {
          folder.purge(List.of());
        }
      } finally {
        stop.set(true);
      }
      merges.get();
    }
  }

  /** All of a kind becomes one segment, in memory and in a folder, whether it was committed or not. */
  @Test
  void compactsToOneSegmentOfAKind() {
    for (boolean isInMemory : new boolean[] {true, false}) {
      try (Index index = isInMemory ? Index.inMemory(1) : Index.open(scratch, 1)) {
        for (long part = 0; part < 5; part++) {
          long[] ids = LongStream.range(1000 * part, 1000 * part + 500).toArray();
          index.add(ids, Content.batch(1, part == 4, ids));
          index.add(new long[] {-1 - part}, Content.batch(part));
          index.remove(1000 * part);
          if (!isInMemory && part < 3) {
            index.commit();
          }
        }
        Map<Long, Long> content = Content.of(index);
        assertThat(Content.segments(index)).isGreaterThan(4);
        index.compact();
        assertThat(Content.segments(index)).isEqualTo(2);
        assertThat(Content.of(index)).isEqualTo(content);
        try (Snapshot state = index.acquire()) {
          assertThat(state.segments()).allMatch(part -> part.deleted() == null);
        }
        index.compact();
        if (!isInMemory) {
          index.commit();
          index.verify();
          assertThat(scratch).isDirectoryContaining("glob:**/segment-*.bin");
        }
        index.replace(new long[] {5}, Content.batch(6));
        content.put(5L, 6L);
        assertThat(Content.of(index)).isEqualTo(content);
      }
    }
    try (Index index = Index.open(scratch, 1)) {
      assertThat(Content.segments(index)).isEqualTo(2);
    }
  }
}
