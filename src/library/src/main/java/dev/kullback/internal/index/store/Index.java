package dev.kullback.internal.index.store;

import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.index.store.Manifest.SegmentFile;
import dev.kullback.internal.observe.CommitEvent;
import dev.kullback.internal.observe.Events;
import dev.kullback.internal.observe.MergeEvent;
import dev.kullback.internal.observe.RefreshEvent;
import dev.kullback.internal.observe.Tally;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What the index holds, and its changes. Searches read the {@link Snapshot}, which one volatile write replaces, and never wait. One thread
 * at a time changes it, under a lock that is held for none of the long work: not while files are written, nor while large segments are
 * merged.
 *
 * <p>Small segments are merged by the thread that added the last, others by a thread of the index that ends when there is nothing to
 * merge: {@link MergePolicy} says which.
 */
public final class Index implements AutoCloseable {
  /** Pause after a merge that failed, in milliseconds; each one that follows doubles it. */
  private static final long PAUSE = 100;

  /** Failures, one after the other, up to which the pause is doubled. */
  private static final int MOST_FAILURES = 10;

  /** Bytes of a merged segment up to which it is made in memory outside the heap, where there is a folder to make others in. */
  private static final long MOST_IN_MEMORY = 1 << 24;

  /** Bytes of the user's data in a commit, at most. */
  public static final int MOST_USER_DATA = Manifest.MOST_DATA;

  private static final long[] NONE = {};

  /** Rows of the first open segment, and the factor of those of the next, where one is full. */
  private static final int FIRST_ROWS = 16;

  private static final int MORE_ROWS = 4;

  private final int dimension;
  private final String divergence;
  private final boolean isFull;
  private final @Nullable Folder folder;
  private final BiFunction<List<LiveSegment>, Memory.Allocator, Segment> merger;
  private final Memory memory;
  private final long mostInMemory;
  private final MergePolicy policy;

  private volatile Snapshot snapshot;
  private volatile boolean closed;

  /** Held while the state changes: shortly. */
  private final ReentrantLock writer = new ReentrantLock();

  /** Told whenever a merge has ended that others went on beside. */
  private final Condition merged = writer.newCondition();

  /** Held by a commit throughout; taken before {@link #writer}. */
  private final ReentrantLock committer = new ReentrantLock();

  // under the writer's lock

  private Part[] parts = {};

  /** The part of an open segment, to which small batches are added; null if there is none. */
  private @Nullable Part open;

  /** Rows of the next open segment. */
  private int openRows = FIRST_ROWS;

  /** Rows added and removed since the last commit. */
  private final AtomicLong changes = new AtomicLong();

  private @Nullable Thread mergeThread;

  /** Merges that failed one after the other; until the pause ends, only such of fewer terms are made. */
  private int failures;

  private long failedTerms;
  private long pauseEnd;

  private volatile @Nullable Thread refreshThread;

  /** The user's data of the last commit. */
  private volatile byte[] userData = {};

  // under the committer's lock

  /** What the last commit wrote; null where one failed, as it may have been made all the same. */
  private LiveSegment @Nullable [] committed = {};

  // since the index was made or opened

  private final AtomicLong failedMerges = new AtomicLong();
  private final Tally merges = new Tally();
  private final Tally commits = new Tally();
  private final Tally refreshes = new Tally();

  /** Nanoseconds of the last commit. */
  private volatile long lastCommit;

  /**
   * A merge that has begun.
   *
   * @param before the state of the parts then
   * @param held keeps the memory of these; null if the writer's lock does
   */
  private record Merge(List<Part> group, List<LiveSegment> before, @Nullable Snapshot held) {
    static Merge of(List<Part> group, @Nullable Snapshot held) {
      return new Merge(group, group.stream().map(part -> part.live).toList(), held);
    }

    void end() {
      if (held != null) {
        held.replaced();
      }
    }
  }

  private Index(
      Wanted of,
      @Nullable Folder folder,
      BiFunction<List<LiveSegment>, Memory.Allocator, Segment> merger,
      Memory memory,
      long mostInMemory) {
    dimension = of.dimension();
    divergence = of.newDivergence();
    isFull = of.isFull();
    this.folder = folder;
    this.merger = merger;
    this.memory = memory;
    this.mostInMemory = mostInMemory;
    policy = new MergePolicy(dimension, isFull);
    snapshot = new Snapshot(new LiveSegment[0], 0, memory);
  }

  /** Makes an index by KL in memory. */
  public static Index inMemory(int dimension) {
    return inMemory(Wanted.of(dimension));
  }

  /** Makes an index in memory. */
  public static Index inMemory(Wanted wanted) {
    return new Index(wanted, null, Segment::merge, new Memory(), MOST_IN_MEMORY);
  }

  /** Opens the index of a folder, whatever it ranks by; if there is none, makes one by KL of this dimension, unless it is 0. */
  public static Index open(Path path, int dimension) {
    return open(path, Wanted.of(dimension));
  }

  /** Opens the index of a folder; if there is none, makes one, if it has a dimension. */
  public static Index open(Path path, Wanted wanted) {
    return open(path, wanted, new FileOperations(), Segment::merge, MOST_IN_MEMORY);
  }

  /** Opens the index of a folder to search what was committed last. */
  public static Index openReadOnly(Path path, Wanted wanted) {
    Memory memory = new Memory();
    return of(
        Folder.openReadOnly(path, wanted, new FileOperations(), memory),
        Segment::merge,
        memory,
        MOST_IN_MEMORY);
  }

  static Index open(
      Path path,
      int dimension,
      FileOperations files,
      BiFunction<List<LiveSegment>, Memory.Allocator, Segment> merger) {
    return open(path, Wanted.of(dimension), files, merger, MOST_IN_MEMORY);
  }

  /**
   * Opens an index as {@link #open(Path, Wanted)} does.
   *
   * @param mostInMemory bytes of a merged segment up to which it is made in memory, where there is a folder
   */
  static Index open(
      Path path,
      Wanted wanted,
      FileOperations files,
      BiFunction<List<LiveSegment>, Memory.Allocator, Segment> merger,
      long mostInMemory) {
    Memory memory = new Memory();
    return of(Folder.open(path, wanted, files, memory), merger, memory, mostInMemory);
  }

  private static Index of(
      Folder folder,
      BiFunction<List<LiveSegment>, Memory.Allocator, Segment> merger,
      Memory memory,
      long mostInMemory) {
    try {
      Wanted found = new Wanted(folder.dimension(), folder.divergence(), folder.isFull());
      Index index = new Index(found, folder, merger, memory, mostInMemory);
      index.load(folder);
      return index;
    } catch (Throwable e) {
      memory.close();
      folder.close();
      throw e;
    }
  }

  private void load(Folder from) {
    show(from, from.read().toArray(new LiveSegment[0]));
  }

  /** Takes these for all there is, of which the caller is a user until then. */
  private void show(Folder from, LiveSegment[] live) {
    List<Part> read = new ArrayList<>();
    long size = 0;
    for (int s = 0; s < live.length; s++) {
      Part part = new Part(live[s]);
      part.file = from.segments().get(s);
      read.add(part);
      size += live[s].live();
    }
    writer.lock();
    try {
      publish(new Part[0], live, read, size);
    } finally {
      writer.unlock();
    }
    committed = live;
    userData = from.userData();
    for (LiveSegment part : live) {
      part.segment().release();
    }
  }

  // --- what others see

  public int dimension() {
    return dimension;
  }

  /** Returns the name of the divergence that it ranks by. */
  public String divergence() {
    return divergence;
  }

  /** Whether its Gaussians have full covariances. */
  public boolean isFull() {
    return isFull;
  }

  /** Returns the state now, which the caller is to close when it has read what it needs of it. */
  public Snapshot acquire() {
    Snapshot state = snapshot;
    while (!state.acquire()) { // it has just been replaced
      state = snapshot;
    }
    if (closed) {
      state.close();
      checkOpen();
    }
    return state;
  }

  public long size() {
    try (Snapshot state = acquire()) {
      return state.size();
    }
  }

  public boolean contains(long id) {
    try (Snapshot state = acquire()) {
      return state.find(id) >= 0;
    }
  }

  /** Rows added and removed since the last commit, those of a replacement twice. */
  public long changes() {
    return changes.get();
  }

  public long failedMerges() {
    return failedMerges.get();
  }

  /** Merges that did not fail. */
  public Tally merges() {
    return merges;
  }

  /** Commits that wrote something. */
  public Tally commits() {
    return commits;
  }

  /** Refreshes that found something. */
  public Tally refreshes() {
    return refreshes;
  }

  /** How long the last commit took that wrote something. */
  public Duration lastCommit() {
    return Duration.ofNanos(lastCommit);
  }

  /** Whether it is open, and has changes that a commit would write. */
  public boolean hasChanges() {
    return !closed && folder != null && !folder.isReader() && changes.get() > 0;
  }

  public void checkOpen() {
    if (closed) {
      throw Constructors.ALREADY_CLOSED.get().apply("this KlIndex is closed");
    }
  }

  // --- changes

  /** Adds a batch under new ids. */
  public void add(long[] ids, Batch batch) {
    change(ids, batch, false);
  }

  /** Removes what is there under these ids, and adds the batch, in one step. */
  public void replace(long[] ids, Batch batch) {
    change(ids, batch, true);
  }

  private void change(long[] ids, Batch batch, boolean replace) {
    checkWriter();
    if (ids.length == 0) {
      return;
    }
    if (policy.isSmall(ids.length)) {
      checkUnique(ids);
      change(ids, batch, replace, null);
      return;
    }
    Segment added = segment(ids, batch);
    try {
      change(ids, batch, replace, added);
    } finally {
      added.release(); // the snapshot keeps it
    }
  }

  /** Adds a batch as a segment of its own, or to the open one if there is no segment. */
  private void change(long[] ids, Batch batch, boolean replace, @Nullable Segment added) {
    lock(writer);
    try {
      checkOpen();
      if (!replace) {
        checkNew(ids);
      }
      long[] deleted = replace ? ids : NONE;
      if (added != null) {
        change(deleted, added, null);
      } else {
        append(deleted, ids, batch);
      }
    } finally {
      writer.unlock();
      memory.reclaim();
    }
  }

  private static void checkUnique(long[] ids) {
    for (int s = 1; s < ids.length; s++) {
      for (int before = 0; before < s; before++) {
        if (ids[before] == ids[s]) {
          throw duplicate(ids, ids[s]);
        }
      }
    }
  }

  /** Adds a batch to the open segment, or to a new one where there is none that takes it, and the one before becomes as others. */
  private void append(long[] deleted, long[] ids, Batch batch) {
    Part to = open;
    if (to != null && to.live.segment().takes(batch)) {
      change(deleted, to.live.segment().with(ids, batch), to);
      return;
    }
    if (to != null) {
      openRows = Math.min(MORE_ROWS * openRows, policy.mostOpenRows());
      closeOpen(to);
    }
    int rows = Math.max(openRows, ids.length);
    Segment made = Segment.open(memory::allocate, coordinates(), batch, rows, order());
    try {
      change(deleted, made.with(ids, batch), null);
    } finally {
      made.release(); // the snapshot keeps it
    }
  }

  /** The order of the dimensions in the largest segment, which is a good one for others. */
  private int[] order() {
    Segment largest = null;
    for (Part part : parts) {
      Segment segment = part.live.segment();
      if (largest == null || segment.size() > largest.size()) {
        largest = segment;
      }
    }
    return largest == null ? IntStream.range(0, dimension).toArray() : largest.order();
  }

  /** Makes a segment as others of the open one, or leaves it as it is where that fails. */
  private void closeOpen(Part part) {
    open = null;
    List<List<Part>> once = new ArrayList<>(List.of(List.of(part)));
    tryMerges(() -> once.isEmpty() ? null : once.removeFirst());
  }

  private void checkNew(long[] ids) {
    for (int s = 0; s < ids.length; s++) {
      if (snapshot.find(ids[s]) >= 0) {
        throw new IllegalArgumentException(
            "ids[%d] = %d is in the index already; replace takes ids that are"
                .formatted(s, ids[s]));
      }
    }
  }

  /** Removes what is there under these ids, and tells how many were. */
  public int remove(long... ids) {
    checkWriter();
    lock(writer);
    try {
      checkOpen();
      return change(ids, null, null);
    } finally {
      writer.unlock();
      memory.reclaim();
    }
  }

  private void checkWriter() {
    checkOpen();
    if (folder != null && folder.isReader()) {
      throw new IllegalStateException(
          "this KlIndex was opened read only; KlIndex.open or KlIndex.builder().open opens one that can be changed");
    }
  }

  /** Makes a segment of a batch, by ascending ids. */
  private Segment segment(long[] ids, Batch batch) {
    long[] sorted = ids.clone();
    Arrays.sort(sorted);
    int[] rows = new int[ids.length];
    for (int s = 0; s < ids.length; s++) {
      if (s > 0 && sorted[s] == sorted[s - 1]) {
        throw duplicate(ids, sorted[s]);
      }
      rows[Arrays.binarySearch(sorted, ids[s])] = s;
    }
    return Segment.of(memory::allocate, coordinates(), sorted, batch, rows);
  }

  private Coordinates coordinates() {
    return Coordinates.of(divergence, isFull);
  }

  private static IllegalArgumentException duplicate(long[] ids, long id) {
    int[] at = IntStream.range(0, ids.length).filter(s -> ids[s] == id).toArray();
    return new IllegalArgumentException(
        "ids[%d] = %d is also ids[%d]; ids must be unique".formatted(at[1], id, at[0]));
  }

  /**
   * Deletes ids and adds a segment, in one step; nothing has changed if it fails. Returns how many ids were there.
   *
   * @param grown the part whose open segment the added one is, with more rows; null for a new part
   */
  private int change(long[] deleted, @Nullable Segment added, @Nullable Part grown) {
    Part[] before = parts;
    LiveSegment[] live = new LiveSegment[before.length];
    List<Part> after = new ArrayList<>(before.length + 1);
    int removed = 0;
    boolean isDue = (grown == null && added != null) || failures > 0;
    int size = added == null ? 0 : added.size();
    for (int s = 0; s < before.length; s++) {
      LiveSegment now = before[s].live;
      live[s] = Deletions.without(now, deleted);
      removed += now.live() - live[s].live();
      isDue |= live[s] != now && isFree(before[s]) && MergePolicy.isEmptier(live[s]);
      if (added != null && before[s] == grown) {
        size -= now.segment().size();
        live[s] = new LiveSegment(added, live[s].deleted(), live[s].live() + size);
      }
      if (live[s].live() > 0) {
        after.add(before[s]);
      }
    }
    if (added != null && grown == null) {
      after.add(new Part(new LiveSegment(added)));
    }
    publish(before, live, after, snapshot.size() - removed + size);
    if (grown == null && added != null && added.isOpen()) {
      open = after.getLast(); // before merges, which leave it alone
    } else if (open != null && open.live.live() == 0) {
      open = null;
    }
    changes.addAndGet(removed + (long) size);
    if (isDue) {
      mergeDue();
    }
    return removed;
  }

  /** Whether nothing else is to become of a part. */
  private boolean isFree(Part part) {
    return part != open && !part.merging;
  }

  /** Gives some parts their new state, and publishes the state of all. Whatever may fail comes before the first change. */
  private void publish(Part[] changed, LiveSegment[] live, List<Part> after, long size) {
    Part[] next = after.toArray(new Part[0]);
    LiveSegment[] segments = new LiveSegment[next.length];
    Snapshot state = new Snapshot(segments, size, memory);
    for (int s = 0; s < changed.length; s++) {
      changed[s].live = live[s];
    }
    for (int s = 0; s < next.length; s++) {
      segments[s] = next[s].live;
    }
    state.retainSegments();
    parts = next;
    Snapshot before = snapshot;
    snapshot = state;
    before.replaced();
  }

  // --- merges

  /** Merges what is small, and what the thread is late with; has the rest merged by it. */
  private void mergeDue() {
    tryMerges(() -> due(MergePolicy.SMALL, MergePolicy.GROUP));
    tryMerges(() -> due(Long.MAX_VALUE, MergePolicy.LATE));
    if (mergeThread == null && due(Long.MAX_VALUE, MergePolicy.GROUP) != null) {
      startMerging();
    }
  }

  private @Nullable List<Part> due(long most, int least) {
    return policy.due(parts, open, most, leastFailing(), least);
  }

  /**
   * Merges all segments of a kind into one on this thread, or each by itself that has deleted rows; others change the index meanwhile, and
   * what is deleted then is deleted from what is made.
   */
  private void rewrite(boolean all) {
    List<List<Part>> groups;
    lock(writer);
    try {
      awaitMerges(part -> true);
      checkOpen();
      open = null;
      groups = policy.rewritten(parts, all);
      groups.forEach(group -> group.forEach(part -> part.merging = true));
    } finally {
      writer.unlock();
    }
    try {
      for (List<Part> group : groups) {
        Merge merge = Objects.requireNonNull(begin(() -> group));
        try {
          end(merge, merge(merge));
        } finally {
          merge.end();
          memory.reclaim();
        }
      }
    } finally {
      lockAnyway(() -> groups.forEach(group -> group.forEach(part -> part.merging = false)));
    }
  }

  private void lockAnyway(Runnable work) {
    writer.lock();
    try {
      work.run();
      merged.signalAll();
    } finally {
      writer.unlock();
    }
  }

  /** Waits until no thread merges parts of a sort, as what it makes may have rows that were deleted since it began. */
  private void awaitMerges(Predicate<Part> sort) {
    try {
      while (Arrays.stream(parts).anyMatch(part -> part.merging && sort.test(part))) {
        merged.await();
      }
    } catch (InterruptedException e) {
      throw interrupted();
    }
  }

  private void startMerging() {
    try {
      mergeThread = daemon("kullback-merge", this::mergeInBackground); // waits for the lock
    } catch (OutOfMemoryError e) { // there are too many threads
      pause(e, 0);
    }
  }

  /** Merges group after group on this thread until there is none. One may fail, but not what it is done for. */
  private void tryMerges(Supplier<@Nullable List<Part>> next) {
    List<Part> group = null;
    try {
      for (group = next.get(); group != null; group = next.get()) {
        Merge merge = Merge.of(group, null);
        exchange(merge, merge(merge));
      }
    } catch (Throwable e) {
      pause(e, group == null ? 0 : policy.terms(group));
    }
  }

  /** Makes a segment of those of a merge: in a file if it is large and there is a folder. */
  private Segment merge(Merge merge) {
    MergeEvent event = Events.merge();
    long start = System.nanoTime();
    Segment made = null;
    try {
      made =
          merger.apply(
              merge.before(),
              bytes ->
                  bytes > mostInMemory && folder != null && folder.hasScratch()
                      ? folder.scratch(bytes)
                      : memory.allocate(bytes));
      merges.addSince(start);
      return made;
    } finally {
      if (event != null) {
        int size = made == null ? 0 : made.size();
        long bytes = made == null ? 0 : made.image().byteSize();
        event.end(merge.before().size(), size, bytes, made == null);
      }
    }
  }

  /** Puts a merged segment in the place of its parts, less the rows that were deleted in the meantime. */
  private void exchange(Merge merge, Segment merged) {
    try {
      publish(merge, merged);
    } finally {
      merged.release(); // the snapshot keeps it
    }
  }

  private void publish(Merge merge, Segment merged) {
    LiveSegment live = new LiveSegment(merged);
    for (int s = 0; s < merge.before().size(); s++) {
      live = Deletions.carry(merge.before().get(s), merge.group().get(s).live, live);
    }
    List<Part> after = new ArrayList<>(Arrays.asList(parts));
    for (Part part : merge.group()) {
      boolean wasThere = after.remove(part);
      if (!wasThere && part.live.live() > 0) { // its rows are in another already
        throw new IllegalStateException("a part of a merge was replaced meanwhile");
      }
    }
    if (live.live() > 0) {
      after.add(new Part(live));
    }
    if (failures > 0 && policy.terms(merge.group()) >= failedTerms) {
      failures = 0;
    }
    publish(new Part[0], new LiveSegment[0], after, snapshot.size());
  }

  private void mergeInBackground() {
    mergeBeside(() -> {
      List<Part> group = due(Long.MAX_VALUE, MergePolicy.GROUP);
      if (group == null) {
        mergeThread = null;
      }
      return group;
    });
  }

  /** Merges group after group, and holds the lock only before and after each. One may fail, but not what it is done for. */
  private void mergeBeside(Supplier<@Nullable List<Part>> next) {
    Merge merge = null;
    try {
      for (merge = begin(next); merge != null; merge = begin(next)) {
        try {
          end(merge, merge(merge));
        } finally {
          merge.end();
          memory.reclaim();
        }
      }
    } catch (Throwable e) { // its parts are as they were
      abandon(merge, e);
    }
  }

  private @Nullable Merge begin(Supplier<@Nullable List<Part>> next) {
    writer.lock();
    try {
      List<Part> group = closed ? null : next.get();
      if (group == null) {
        return null;
      }
      Merge merge = Merge.of(group, acquire());
      for (Part part : group) {
        part.merging = true;
      }
      return merge;
    } finally {
      writer.unlock();
    }
  }

  private void end(Merge merge, Segment made) {
    lockAnyway(() -> {
      if (closed) {
        made.release();
      } else {
        exchange(merge, made);
      }
    });
  }

  private void abandon(@Nullable Merge merge, Throwable e) {
    lockAnyway(() -> {
      if (Thread.currentThread() == mergeThread) {
        mergeThread = null;
      }
      if (merge != null) {
        for (Part part : merge.group()) {
          part.merging = false;
        }
      }
      pause(e, merge == null ? 0 : policy.terms(merge.group()));
    });
  }

  /**
   * Puts off merges of {@code terms} terms or more after one of them failed: the index is whole, only slower. A change after the pause
   * begins anew.
   */
  private void pause(Throwable e, long terms) {
    if (e
        instanceof
        CancellationException) { // its thread was interrupted, by close or by whoever called
      return;
    }
    failedMerges.incrementAndGet();
    long pause = PAUSE << failures;
    failures = Math.min(failures + 1, MOST_FAILURES);
    failedTerms = terms;
    pauseEnd = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pause);
    String message =
        "KlIndex: segments could not be merged, and those as large will not be for "
            + pause
            + " ms; nothing is lost, but searches are slower: "
            + e;
    warn(message);
  }

  private static void warn(String message) {
    try {
      System.getLogger("dev.kullback").log(System.Logger.Level.WARNING, message);
    } catch (Throwable ignored) {
      // a handler's failure is none of what was done
    }
  }

  /** Terms from which on no merges are made now, as one failed. */
  private long leastFailing() {
    boolean pauses = failures > 0 && System.nanoTime() - pauseEnd < 0;
    return pauses ? failedTerms : Long.MAX_VALUE;
  }

  // --- files

  /** Makes one segment of all that can be merged, without deleted rows. */
  public void compact() {
    checkWriter();
    lock(committer);
    try {
      rewrite(true);
    } finally {
      committer.unlock();
    }
  }

  /** Commits, and leaves no file in the folder that has a row which was deleted before. */
  public void purge() {
    Folder in = folder("purge");
    checkWriter();
    lock(committer);
    try {
      List<Memory.Scratch> before = in.scratches();
      rewrite(false);
      commit();
      in.purge(before);
    } finally {
      committer.unlock();
    }
  }

  /**
   * Writes what has changed since the last commit, and maps what it wrote.
   *
   * @return whether there was anything to write
   */
  public boolean commit() {
    return commit(null);
  }

  /** Returns the user's data of the last commit, which are not to be changed; empty if there are none. */
  public byte[] userData() {
    checkOpen();
    return userData;
  }

  /**
   * Commits with data of the user's.
   *
   * @param userData not to be changed any more; null for those of the last commit
   */
  public boolean commit(byte @Nullable [] userData) {
    Folder to = folder("commit");
    checkWriter();
    lock(committer);
    try {
      Part[] taken;
      Snapshot state;
      long counted;
      lock(writer);
      try {
        checkOpen();
        open = null;
        openRows = FIRST_ROWS;
      } finally {
        writer.unlock();
      }
      mergeBeside(() -> unwritten(MergePolicy.SMALL_COMMIT, MergePolicy.MOST_COMMIT));
      lock(writer);
      try {
        awaitMerges(Index::isUnsorted); // a change may have had it taken meanwhile
        checkOpen();
        open = null;
        tryMerges(() -> unwritten(0, MergePolicy.SMALL_COMMIT));
        sortAll();
        taken = parts;
        state = acquire();
        counted = changes.get();
      } finally {
        writer.unlock();
      }
      try {
        boolean changed =
            !isCommitted(state.segments())
                || (userData != null && !Arrays.equals(userData, this.userData));
        if (changed) {
          commit(to, taken, state.segments(), counted, userData);
        }
        changes.addAndGet(-counted);
        return changed;
      } finally {
        state.replaced();
      }
    } finally {
      committer.unlock();
      memory.reclaim();
    }
  }

  private @Nullable List<Part> unwritten(long least, long most) {
    return policy.unwritten(parts, open, least, Math.min(most, leastFailing()));
  }

  private static boolean isUnsorted(Part part) {
    return part.live.segment().isOpen();
  }

  /** Makes segments as others of those that were open, and could not be merged; no thread merges them now. */
  private void sortAll() {
    for (Part part : parts) {
      if (isUnsorted(part)) {
        Merge merge = Merge.of(List.of(part), null);
        exchange(merge, Segment.merge(merge.before(), memory::allocate));
      }
    }
  }

  private void commit(
      Folder to, Part[] taken, LiveSegment[] states, long counted, byte @Nullable [] userData) {
    CommitEvent event = Events.commit();
    long start = System.nanoTime();
    int written = 0;
    long bytes = 0;
    for (int s = 0; s < taken.length; s++) {
      if (taken[s].file == null) {
        written++;
        bytes += states[s].segment().image().byteSize();
      }
    }
    boolean isDone = false;
    try {
      to.checkWritable();
      committed = null;
      byte[] data = userData == null ? to.userData() : userData;
      settle(taken, write(to, taken, states, data));
      this.userData = data;
      isDone = true;
      lastCommit = commits.addSince(start);
    } finally {
      if (event != null) {
        event.end(to.path().toString(), counted, written, bytes, !isDone);
      }
    }
  }

  private boolean isCommitted(LiveSegment[] states) {
    LiveSegment[] last = committed;
    if (last == null || states.length != last.length) {
      return false;
    }
    for (int s = 0; s < states.length; s++) {
      LiveSegment now = states[s];
      LiveSegment then = last[s];
      if (now.segment() != then.segment() || now.deleted() != then.deleted()) {
        return false;
      }
    }
    return true;
  }

  /** Commits these states of parts, and returns them with large segments mapped, which the caller is to release. */
  private static List<LiveSegment> write(
      Folder to, Part[] taken, LiveSegment[] states, byte[] userData) {
    List<SegmentFile> files = new ArrayList<>();
    try {
      for (int s = 0; s < taken.length; s++) {
        SegmentFile file = taken[s].file;
        files.add(file == null ? to.write(states[s].segment()) : file);
      }
      to.commit(files, states, userData);
    } catch (Throwable e) {
      to.discard();
      throw e;
    }
    List<LiveSegment> mapped = new ArrayList<>();
    for (int s = 0; s < taken.length; s++) {
      Segment segment = taken[s].file == null ? to.mapped(files.get(s), states[s].segment()) : null;
      taken[s].file = files.get(s);
      if (segment == null) {
        segment = states[s].segment();
        segment.retain();
      }
      mapped.add(new LiveSegment(segment, states[s].deleted(), states[s].live()));
    }
    return mapped;
  }

  /** Has searches read the mapped files of what was committed, whatever rows were deleted since. */
  private void settle(Part[] taken, List<LiveSegment> states) {
    writer.lock(); // not to be interrupted: it has been committed
    try {
      LiveSegment[] live = new LiveSegment[taken.length];
      for (int s = 0; s < taken.length; s++) {
        LiveSegment now = taken[s].live;
        live[s] = new LiveSegment(states.get(s).segment(), now.deleted(), now.live());
      }
      publish(taken, live, Arrays.asList(parts), snapshot.size());
      committed = states.toArray(new LiveSegment[0]);
    } finally {
      writer.unlock();
      states.forEach(part -> part.segment().release());
    }
  }

  /**
   * Takes what others have committed since, where this was opened to be read.
   *
   * @return whether there was anything
   */
  public boolean refresh() {
    Folder from = folder("refresh");
    if (!from.isReader()) {
      throw new IllegalStateException(
          "this KlIndex was opened to be changed, and sees its own changes; one that openReadOnly opens is refreshed");
    }
    lock(committer);
    try {
      checkOpen();
      return refresh(from);
    } finally {
      committer.unlock();
      memory.reclaim();
    }
  }

  private boolean refresh(Folder from) {
    RefreshEvent event = Events.refresh();
    long start = System.nanoTime();
    boolean isNew = false;
    boolean isDone = false;
    try {
      List<LiveSegment> read = from.refresh(this::find);
      isNew = read != null;
      if (read != null) {
        show(from, read.toArray(new LiveSegment[0]));
        refreshes.addSince(start);
      }
      isDone = true;
      return isNew;
    } finally {
      if (event != null) {
        event.end(from.path().toString(), isNew && isDone, parts.length, !isDone);
      }
    }
  }

  private @Nullable Segment find(SegmentFile file) {
    for (Part part : parts) {
      if (file.equals(part.file)) {
        return part.live.segment();
      }
    }
    return null;
  }

  /** Makes a folder of what was committed last. */
  public void copyTo(Path target) {
    Folder from = folder("copy");
    lock(committer);
    try {
      checkOpen();
      if (committed == null) {
        throw new IllegalStateException("the last commit failed; commit again, and then copy");
      }
      from.copyTo(target, committed);
    } finally {
      committer.unlock();
    }
  }

  /** Reads all of the last commit's files, and throws if a checksum is wrong. */
  public void verify() {
    Folder read = folder("verify");
    lock(committer);
    try (Snapshot state = acquire()) {
      read.verify(state.segments());
    } finally {
      committer.unlock();
    }
  }

  private Folder folder(String method) {
    checkOpen();
    if (folder == null) {
      throw new IllegalStateException(
          "this KlIndex is in memory alone and has nothing to %s; KlIndex.builder(dimension).open(folder) makes one with files"
              .formatted(method));
    }
    return folder;
  }

  /** Has a thread refresh this again and again until it is closed. */
  public void refreshEvery(Duration interval) {
    folder("refresh");
    refreshThread =
        daemon("kullback-refresh", () -> refreshAgain(TimeUnit.NANOSECONDS.convert(interval)));
  }

  /** Starts a thread that holds nothing of its maker. */
  private static Thread daemon(String name, Runnable work) {
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .name(name)
            .inheritInheritableThreadLocals(false)
            .unstarted(work);
    thread.setContextClassLoader(null);
    thread.start();
    return thread;
  }

  private void refreshAgain(long nanos) {
    String last = "";
    while (!closed) {
      LockSupport.parkNanos(nanos);
      try {
        if (!closed) {
          refresh();
          last = "";
        }
      } catch (CancellationException e) { // by close, or by somebody whom it does not concern
        Thread.interrupted();
      } catch (Throwable e) {
        String failure = e.toString();
        if (!closed && !failure.equals(last)) { // else it has been said
          warn("KlIndex: it could not be refreshed, and stays as it was: " + failure);
        }
        last = failure;
      }
    }
  }

  /** Drops what was not committed; a commit under way and the threads that merge and refresh end first. */
  @Override
  public void close() {
    committer.lock();
    try {
      Thread running;
      writer.lock();
      try {
        if (closed) {
          return;
        }
        closed = true;
        long dropped = changes.get();
        if (folder != null && dropped > 0) {
          warn(
              "KlIndex: %s is closed with %d %s not committed, now lost"
                  .formatted(folder.path(), dropped, dropped == 1 ? "change" : "changes"));
        }
        Snapshot last = snapshot;
        snapshot = new Snapshot(new LiveSegment[0], 0, memory);
        last.replaced();
        parts = new Part[0];
        running = mergeThread;
      } finally {
        writer.unlock();
      }
      for (Thread thread : new Thread[] {running, refreshThread}) {
        if (thread != null) {
          thread.interrupt();
          join(thread);
        }
      }
      try {
        memory.close();
      } finally {
        if (folder != null) {
          folder.close();
        }
      }
    } finally {
      committer.unlock();
    }
  }

  /** Returns figures and, where there is one, the folder. */
  @Override
  public String toString() {
    Snapshot state = snapshot;
    return "%s, %s%s%s%s"
        .formatted(
            closed ? "closed, dimension " + dimension : state.size() + " x " + dimension,
            isFull ? "full covariances, " : "",
            divergence.equals(Manifest.KL) ? "" : divergence + ", ",
            folder == null ? "in memory" : folder.path(),
            folder != null && folder.isReader() ? ", read only" : "");
  }

  static void join(Thread thread) {
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static void lock(ReentrantLock lock) {
    try {
      lock.lockInterruptibly();
    } catch (InterruptedException e) {
      throw interrupted();
    }
  }

  private static CancellationException interrupted() {
    Thread.currentThread().interrupt();
    return new CancellationException(
        "interrupted while another thread changed the index; nothing was done");
  }
}
