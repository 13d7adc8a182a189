package dev.kullback.internal.index.store;

import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.work.ThisThread;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Changes of an index, alone, beside merges and beside readers. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IndexTest {
  /** Rows that are merged by the index's thread at once, not by the one that adds: of one dimension. */
  private static final int LARGE = 1 << 14;

  @TempDir private Path scratch;

  /** Adds, replaces and removes at random, of two precisions, and compares with a map after each step. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void holdsWhatWasAdded(long seed) {
    Random random = new Random(seed);
    Map<Long, Long> expected = new TreeMap<>();
    try (Index index = Index.inMemory(1)) {
      for (int step = 0; step < 600; step++) {
        long[] ids = ids(random, random.nextInt(10) == 0 ? 300 : 1 + random.nextInt(3));
        long[] versions = random.longs(ids.length, 0, 1000).toArray();
        boolean isDouble = random.nextBoolean();
        switch (random.nextInt(3)) {
          case 0 -> {
            long[] fresh = Arrays.stream(ids).filter(id -> !expected.containsKey(id)).toArray();
            if (fresh.length > 0) {
              long[] some = Arrays.copyOf(versions, fresh.length);
              index.add(fresh, Content.batch(1, isDouble, some));
              put(expected, fresh, some);
            }
          }
          case 1 -> {
            index.replace(ids, Content.batch(1, isDouble, versions));
            put(expected, ids, versions);
          }
          default -> {
            long there = Arrays.stream(ids).filter(expected::containsKey).count();
            assertThat(index.remove(ids)).isEqualTo((int) there);
            Arrays.stream(ids).forEach(expected::remove);
          }
        }
        assertThat(Content.of(index)).isEqualTo(expected);
        assertThat(index.contains(ids[0])).isEqualTo(expected.containsKey(ids[0]));
      }
    }
  }

  /** Opens an index whose merges a test sees, holds up or stops. */
  private Index open(BiFunction<List<LiveSegment>, Memory.Allocator, Segment> merger) {
    return Index.open(scratch, 1, new TestFiles(), merger);
  }

  private static long[] ids(Random random, int n) {
    return LongStream.generate(() -> random.nextInt(1500) - 700L).distinct().limit(n).toArray();
  }

  private static void put(Map<Long, Long> content, long[] ids, long[] versions) {
    for (int s = 0; s < ids.length; s++) {
      content.put(ids[s], versions[s]);
    }
  }

  @Test
  void refusesIdsThatAreThereOrComeTwice() {
    try (Index index = Index.inMemory(1)) {
      index.add(new long[] {4, 17}, Content.batch(1, 2));
      long before = index.changes();
      refusedAs(
          "ids[3] = 17 is in the index already; replace takes ids that are",
          () -> index.add(new long[] {1, 2, 3, 17}, Content.batch(5, 6, 7, 8)));
      for (boolean replace : new boolean[] {false, true}) {
        refusedAs(
            "ids[3] = 7 is also ids[1]; ids must be unique",
            () -> {
              long[] ids = {9, 7, 8, 7};
              if (replace) {
                index.replace(ids, Content.batch(1, 2, 3, 4));
              } else {
                index.add(ids, Content.batch(1, 2, 3, 4));
              }
            });
      }
      assertThat(index.changes()).isEqualTo(before);
      assertThat(index.remove(17, 17, 5, 17)).isEqualTo(1);
      assertThat(Content.of(index)).isEqualTo(Map.of(4L, 1L));
    }
  }

  /** A query's snapshot stays what it was, whatever happens afterwards. */
  @Test
  void snapshotsDoNotChange() {
    try (Index index = Index.inMemory(1)) {
      long[] ids = LongStream.range(0, 200).toArray();
      index.add(ids, Content.batch(ids));
      try (Snapshot whole = index.acquire()) {
        Map<Long, Long> before = Content.of(whole);
        index.remove(LongStream.range(50, 150).toArray());
        try (Snapshot half = index.acquire()) {
          Map<Long, Long> after = Content.of(half);
          for (int k = 0; k < 100; k++) { // merges take the place of all segments
            index.replace(new long[] {3}, Content.batch(500));
          }
          assertThat(Content.of(whole)).isEqualTo(before).hasSize(200);
          assertThat(Content.of(half)).isEqualTo(after).hasSize(100);
          assertThat(index.size()).isEqualTo(100);
        }
      }
    }
  }

  /** Single rows end in few segments, and so do large ones after a while; none has a third of its rows removed. */
  @Test
  void mergesKeepSegmentsFew() {
    try (Index index = Index.inMemory(1)) {
      for (long id = 0; id < 5000; id++) {
        index.replace(new long[] {id % 3000}, Content.batch(id));
        assertThat(Content.segments(index)).isLessThan(45);
      }
      for (int k = 0; k < 20; k++) {
        long[] ids = LongStream.range(0, LARGE).map(id -> id * 20 + 10_000).toArray();
        for (int s = 0; s < ids.length; s++) {
          ids[s] += k;
        }
        index.add(ids, Content.batch(ids));
      }
      await(() -> Content.segments(index) < 45);
      index.remove(LongStream.range(10_000, 10_000 + 15L * LARGE).toArray());
      await(() -> {
        try (Snapshot state = index.acquire()) {
          return Arrays.stream(state.segments())
              .allMatch(part -> 3 * part.live() >= 2 * part.segment().size());
        }
      });
      assertThat(Content.of(index)).hasSize(3000 + 5 * LARGE);
    }
  }

  /** A change of one row among a million copies what lies about it, not all bits of deleted rows, which are 125 kB. */
  @Test
  void smallChangesMakeLittleGarbage() {
    try (Index index = Index.inMemory(1)) {
      long[] ids = LongStream.range(0, 1_000_000).toArray();
      index.add(ids, Content.batch(ids));
      long[] bytes = new long[1000];
      Random random = new Random(1);
      for (int k = 0; k < bytes.length; k++) {
        long[] id = {random.nextInt(ids.length)};
        DiagonalBatch batch = Content.batch(k);
        long before = ThisThread.allocatedBytes();
        index.replace(id, batch);
        bytes[k] = ThisThread.allocatedBytes() - before;
      }
      Arrays.sort(bytes);
      assertThat(bytes[bytes.length / 2]).isLessThan(2000);
    }
  }

  /** What is deleted and replaced while segments are merged stays deleted. */
  @Test
  void deletionsDuringAMergeAreCarriedOver() throws Exception {
    CountDownLatch merging = new CountDownLatch(1);
    CountDownLatch changed = new CountDownLatch(1);
    try (Index index =
        open((parts, memory) -> {
          if (parts.getFirst().segment().size() == LARGE) {
            merging.countDown();
            awaitLatch(changed);
          }
          return Segment.merge(parts, memory);
        })) {
      Map<Long, Long> expected = new TreeMap<>();
      for (int k = 0; k < 8; k++) {
        add(index, expected, false, (long) k * LARGE, LARGE);
      }
      merging.await();
      long[] removed =
          LongStream.range(LARGE / 2, 3 * LARGE).toArray(); // a whole part, and of others some
      assertThat(index.remove(removed)).isEqualTo(removed.length);
      Arrays.stream(removed).forEach(expected::remove);
      long[] replaced = LongStream.range(4 * LARGE - 5, 4 * LARGE + 5).toArray();
      index.replace(replaced, Content.batch(new long[10]));
      put(expected, replaced, new long[10]);
      index.commit(); // the parts of the merge become mapped files meanwhile
      assertThat(Content.of(index)).isEqualTo(expected);
      changed.countDown();
      await(() -> Content.segments(index) == 2);
      assertThat(Content.of(index)).isEqualTo(expected);
    }
    try (Index index = Index.open(scratch, 1)) {
      assertThat(index.size()).isEqualTo(8 * LARGE - (3 * LARGE - LARGE / 2));
    }
  }

  /**
   * While a commit merges segments, a change has those merged by the index's thread that were open when the commit began: it makes none of
   * them a segment by itself as well, and each row stays in one place.
   */
  @Test
  void aCommitWaitsForAMergeOfWhatWasOpen() throws Exception {
    int dimension = 256;
    AtomicReference<Thread> committer = new AtomicReference<>();
    CountDownLatch committing = new CountDownLatch(1);
    CountDownLatch merging = new CountDownLatch(1);
    Map<Long, Long> expected = new TreeMap<>();
    try (Index index =
        Index.open(
            scratch,
            dimension,
            new TestFiles(),
            (parts, memory) -> {
              if (isMergeThread(Thread.currentThread())) {
                assertThat(parts).anyMatch(part -> part.segment().isOpen());
                merging.countDown();
                await(() -> {
                  Thread.State state = committer.get().getState();
                  return state == Thread.State.WAITING || state == Thread.State.TERMINATED;
                });
              } else if (parts.getFirst().segment().isDouble()) {
                committing.countDown();
                await(() -> merging.getCount() == 0);
              }
              return Segment.merge(parts, memory);
            })) {
      for (int k = 0; k < 5; k++) {
        add(index, expected, false, 1000L * k, 500);
        index.commit();
      }
      for (int k = 0; k < 180; k++) {
        add(index, expected, false, 10_000 + k, 1);
      }
      add(index, expected, true, 20_000, 300);
      add(index, expected, true, 21_000, 300); // the commit merges the two
      FutureTask<Boolean> commit = new FutureTask<>(index::commit);
      committer.set(new Thread(commit));
      committer.get().start();
      committing.await();
      add(index, expected, false, 30_000, 500); // the eighth of its order of magnitude
      assertThat(commit.get()).isTrue();
      await(() -> threads() == 0);
      assertThat(Content.of(index)).isEqualTo(expected);
      assertThat(index.failedMerges()).isZero();
      index.commit();
    }
    try (Index index = Index.open(scratch, dimension)) {
      assertThat(Content.of(index)).isEqualTo(expected);
    }
  }

  /** An open segment takes the next row, whatever other segments become due when its first is added. */
  @Test
  void noMergeTakesTheOpenSegment() {
    AtomicInteger merges = new AtomicInteger();
    Map<Long, Long> expected = new TreeMap<>();
    try (Index index =
        open((parts, memory) -> {
          merges.incrementAndGet();
          return Segment.merge(parts, memory);
        })) {
      for (int k = 0; k < 7; k++) {
        add(index, expected, false, k, 1);
        index.commit();
      }
      merges.set(0);
      for (int k = 7; k < 10; k++) { // the eighth of its order of magnitude, and more
        add(index, expected, false, k, 1);
        try (Snapshot state = index.acquire()) {
          Segment last = state.segments()[state.segments().length - 1].segment();
          assertThat(last.isOpen()).isTrue();
          assertThat(last.size()).isEqualTo(k - 6);
        }
      }
      assertThat(merges).hasValue(0);
      assertThat(Content.of(index)).isEqualTo(expected);
    }
  }

  private static void add(
      Index index, Map<Long, Long> expected, boolean isDouble, long from, int rows) {
    long[] ids = LongStream.range(from, from + rows).toArray();
    index.add(ids, Content.batch(index.dimension(), isDouble, ids));
    put(expected, ids, ids);
  }

  /** A merge of parts that another has replaced in the meantime is dropped: it would have their rows twice. */
  @Test
  void noMergeReplacesPartsThatAreNotThere() {
    AtomicReference<Index> made = new AtomicReference<>();
    AtomicBoolean isFirst = new AtomicBoolean(true);
    Map<Long, Long> expected = new TreeMap<>();
    try (Index index =
        open((parts, memory) -> {
          if (isFirst.getAndSet(false)) {
            add(made.get(), expected, false, 50_000, 500); // the same parts are due
          }
          return Segment.merge(parts, memory);
        })) {
      made.set(index);
      for (int k = 0; k < 8; k++) {
        add(index, expected, false, 1000L * k, 500);
      }
      assertThat(isFirst).isFalse();
      assertThat(Content.of(index)).isEqualTo(expected);
      assertThat(index.failedMerges()).isOne();
    }
  }

  /** A merge that fails changes nothing, is tried again, and the rest of the index goes on meanwhile. */
  @Test
  void mergesMayFail() {
    AtomicInteger failures = new AtomicInteger();
    AtomicBoolean failing = new AtomicBoolean(true);
    try (Index index =
        open((parts, memory) -> {
          if (failing.get()) {
            failures.incrementAndGet();
            throw new OutOfMemoryError("made up");
          }
          return Segment.merge(parts, memory);
        })) {
      Map<Long, Long> expected = new TreeMap<>();
      for (int k = 0; k < 30; k++) {
        add(index, expected, false, (long) k * LARGE, LARGE);
        index.replace(new long[] {-k}, Content.batch(k));
        expected.put(-(long) k, (long) k);
      }
      await(() -> failures.get() > 0);
      index.commit();
      assertThat(Content.of(index)).isEqualTo(expected);
      failing.set(false);
      await(() -> {
        index.replace(new long[] {1}, Content.batch(1));
        return Content.segments(index) < 20;
      });
      expected.put(1L, 1L);
      assertThat(Content.of(index)).isEqualTo(expected);
    }
  }

  /** Where large segments cannot be merged, as memory is short, small ones are all the same. */
  @Test
  void smallMergesGoOnWhereLargeOnesFail() {
    AtomicInteger failures = new AtomicInteger();
    try (Index index =
        open((parts, memory) -> {
          if (parts.getFirst().segment().size() >= LARGE) {
            failures.incrementAndGet();
            throw new OutOfMemoryError("made up");
          }
          return Segment.merge(parts, memory);
        })) {
      for (int k = 0; k < 8; k++) {
        add(index, new TreeMap<>(), false, (long) k * LARGE, LARGE);
      }
      await(() -> failures.get() > 0);
      for (int k = 0; k < 3000; k++) {
        index.replace(new long[] {-k}, Content.batch(k));
        assertThat(Content.segments(index)).isLessThan(45);
      }
      assertThat(Content.of(index)).hasSize(8 * LARGE + 2999); // 0 was there
    }
  }

  /** Each reader sees all of a replacement or nothing, and never an earlier one than it has seen, beside merges and commits. */
  @Test
  void readersSeeWholeSteps() throws Exception {
    int group = 300;
    long[] ids = LongStream.range(0, group).map(id -> 17 * id).toArray();
    List<Long> members = Arrays.stream(ids).boxed().toList();
    AtomicBoolean stop = new AtomicBoolean();
    AtomicIntegerArray seen = new AtomicIntegerArray(3);
    try (Index index = Index.open(scratch, 1);
        ExecutorService readers = Executors.newFixedThreadPool(3)) {
      index.add(ids, Content.batch(new long[group]));
      List<Future<?>> reads = new ArrayList<>();
      for (int reader = 0; reader < seen.length(); reader++) {
        int self = reader;
        Runnable read =
            () -> {
              long last = 0;
              while (!stop.get()) {
                Map<Long, Long> content = Content.of(index);
                content.keySet().retainAll(members);
                assertThat(content).hasSize(group);
                long version = content.get(0L);
                assertThat(content.values()).containsOnly(version);
                assertThat(version).isGreaterThanOrEqualTo(last);
                if (version > last) {
                  seen.incrementAndGet(self);
                }
                last = version;
              }
            };
        reads.add(readers.submit(read));
      }
      int version = 0;
      while (version < 300 || !areAtLeast(10, seen) && reads.stream().noneMatch(Future::isDone)) {
        version++;
        long[] all = new long[group];
        Arrays.fill(all, version);
        index.replace(ids, Content.batch(all));
        index.replace(new long[] {1_000_000 + version % 100}, Content.batch(version));
        if (version % 50 == 0) {
          index.commit();
        }
      }
      stop.set(true);
      for (Future<?> read : reads) {
        read.get();
      }
      assertThat(Content.of(index)).hasSize(group + 100);
    }
  }

  private static boolean areAtLeast(int least, AtomicIntegerArray counts) {
    return IntStream.range(0, counts.length()).allMatch(k -> counts.get(k) >= least);
  }

  @Test
  void interruptedWritersDoNothing() {
    try (Index index = Index.inMemory(1)) {
      index.add(new long[] {1}, Content.batch(1));
      Thread.currentThread().interrupt();
      assertThatExceptionOfType(CancellationException.class).isThrownBy(() -> index.remove(1));
      assertThat(Thread.interrupted()).isTrue();
      assertThat(index.contains(1)).isTrue();
    }
  }

  /** A query under way goes on. */
  @Test
  void aSnapshotOutlivesItsIndex() {
    Index index = Index.inMemory(1);
    index.add(new long[] {1}, Content.batch(1));
    try (Snapshot snapshot = index.acquire()) {
      index.close();
      index.close();
      assertThat(Content.of(snapshot)).isEqualTo(Map.of(1L, 1L));
    }
    assertThatIllegalStateException()
        .isThrownBy(index::acquire)
        .withMessage("this KlIndex is closed");
  }

  /** Closing ends the thread that merges, even in the middle. */
  @Test
  void closingEndsTheThread() {
    long before = threads();
    try (Index index = Index.inMemory(64)) {
      for (int k = 0; k < 8; k++) {
        long[] ids = LongStream.range(k * 3000L, (k + 1) * 3000L).toArray();
        index.add(ids, Content.batch(64, false, ids));
      }
    }
    assertThat(threads()).isEqualTo(before);
  }

  private static long threads() {
    return Thread.getAllStackTraces().keySet().stream().filter(IndexTest::isMergeThread).count();
  }

  private static boolean isMergeThread(Thread thread) {
    return thread.getName().equals("kullback-merge");
  }

  private static void awaitLatch(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Waits until something holds, which the test's time limit bounds. */
  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      Thread.onSpinWait();
      try {
        Thread.sleep(2);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
