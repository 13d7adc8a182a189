package dev.kullback.internal.index;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.index.Manifest.SegmentFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
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
  /** Segments from which on adding waits for merges of any size. */
  private static final int MOST_SEGMENTS = 128;

  /** Pause after a merge that failed, in milliseconds; each one that follows doubles it. */
  private static final long PAUSE = 100;

  /** Failures, one after the other, up to which the pause is doubled. */
  private static final int MOST_FAILURES = 10;

  private final int dimension;
  private final @Nullable Folder folder;
  private final Function<List<LiveSegment>, Segment> merger;
  private final MergePolicy policy;

  private volatile Snapshot snapshot = Snapshot.EMPTY;
  private volatile boolean closed;

  /** Held while the state changes: shortly. */
  private final ReentrantLock writer = new ReentrantLock();

  /** Held by a commit throughout; taken before {@link #writer}. */
  private final ReentrantLock committer = new ReentrantLock();

  // under the writer's lock

  private Part[] parts = {};

  /** Rows added and removed since the last commit. */
  private final AtomicLong changes = new AtomicLong();

  private @Nullable Thread mergeThread;

  /** Merges that failed one after the other; until the pause ends, only such of fewer terms are made. */
  private int failures;

  private long failedTerms;
  private long pauseEnd;

  // under the committer's lock

  /** What the last commit wrote. */
  private LiveSegment[] committed = {};

  /**
   * A merge that has begun.
   *
   * @param before the state of the parts then
   */
  private record Merge(List<Part> group, List<LiveSegment> before) {
    static Merge of(List<Part> group) {
      return new Merge(group, group.stream().map(part -> part.live).toList());
    }
  }

  private Index(
      int dimension, @Nullable Folder folder, Function<List<LiveSegment>, Segment> merger) {
    this.dimension = dimension;
    this.folder = folder;
    this.merger = merger;
    policy = new MergePolicy(dimension);
  }

  /** Makes an index in memory. */
  public static Index inMemory(int dimension) {
    return new Index(dimension, null, Segment::merge);
  }

  /** Opens the index of a folder; if there is none, makes one of this dimension, unless it is 0. */
  public static Index open(Path path, int dimension) {
    return open(path, dimension, new FileOperations(), Segment::merge);
  }

  static Index open(
      Path path, int dimension, FileOperations files, Function<List<LiveSegment>, Segment> merger) {
    Folder folder = Folder.open(path, dimension, files);
    try {
      Index index = new Index(folder.dimension(), folder, merger);
      index.load(folder);
      return index;
    } catch (Throwable e) {
      folder.close();
      throw e;
    }
  }

  private void load(Folder from) {
    committed = from.read().toArray(new LiveSegment[0]);
    List<Part> read = new ArrayList<>();
    long size = 0;
    for (int s = 0; s < committed.length; s++) {
      Part part = new Part(committed[s]);
      part.file = from.segments().get(s);
      read.add(part);
      size += committed[s].live();
    }
    publish(new Part[0], committed, read, size);
  }

  // --- what others see

  public int dimension() {
    return dimension;
  }

  /** The state now. */
  public Snapshot snapshot() {
    Snapshot state = snapshot; // first, as closing empties it
    checkOpen();
    return state;
  }

  public boolean contains(long id) {
    return contains(snapshot(), id);
  }

  private static boolean contains(Snapshot state, long id) {
    for (LiveSegment part : state.segments()) {
      if (Deletions.find(part, id) >= 0) {
        return true;
      }
    }
    return false;
  }

  /** Rows added and removed since the last commit, those of a replacement twice. */
  public long changes() {
    return changes.get();
  }

  public void checkOpen() {
    if (closed) {
      throw new IllegalStateException("this KlIndex is closed");
    }
  }

  // --- changes

  /** Adds a batch under new ids. */
  public void add(long[] ids, DiagonalBatch batch) {
    Segment added = segment(ids, batch);
    lock(writer);
    try {
      checkOpen();
      for (int s = 0; s < ids.length; s++) {
        if (contains(snapshot, ids[s])) {
          throw new IllegalArgumentException(
              "ids[%d] = %d is in the index already; replace takes ids that are"
                  .formatted(s, ids[s]));
        }
      }
      change(new long[0], added);
    } finally {
      writer.unlock();
    }
  }

  /** Removes what is there under these ids, and adds the batch, in one step. */
  public void replace(long[] ids, DiagonalBatch batch) {
    Segment added = segment(ids, batch);
    lock(writer);
    try {
      checkOpen();
      change(ids, added);
    } finally {
      writer.unlock();
    }
  }

  /** Removes what is there under these ids, and tells how many were. */
  public int remove(long... ids) {
    lock(writer);
    try {
      checkOpen();
      return change(ids, null);
    } finally {
      writer.unlock();
    }
  }

  /** Makes a segment of a batch, by ascending ids. */
  private static Segment segment(long[] ids, DiagonalBatch batch) {
    long[] sorted = ids.clone();
    Arrays.sort(sorted);
    int[] rows = new int[ids.length];
    for (int s = 0; s < ids.length; s++) {
      if (s > 0 && sorted[s] == sorted[s - 1]) {
        throw duplicate(ids, sorted[s]);
      }
      rows[Arrays.binarySearch(sorted, ids[s])] = s;
    }
    return Segment.of(sorted, batch, rows);
  }

  private static IllegalArgumentException duplicate(long[] ids, long id) {
    int[] at = IntStream.range(0, ids.length).filter(s -> ids[s] == id).toArray();
    return new IllegalArgumentException(
        "ids[%d] = %d is also ids[%d]; ids must be unique".formatted(at[1], id, at[0]));
  }

  /** Deletes ids and adds a segment, in one step; nothing has changed if it fails. Returns how many ids were there. */
  private int change(long[] deleted, @Nullable Segment added) {
    Part[] before = parts;
    LiveSegment[] live = new LiveSegment[before.length];
    List<Part> after = new ArrayList<>();
    int removed = 0;
    for (int s = 0; s < before.length; s++) {
      live[s] = Deletions.without(before[s].live, deleted);
      removed += before[s].live.live() - live[s].live();
      if (live[s].live() > 0) {
        after.add(before[s]);
      }
    }
    int size = 0;
    if (added != null) {
      after.add(new Part(new LiveSegment(added)));
      size = added.size();
    }
    publish(before, live, after, snapshot.size() - removed + size);
    changes.addAndGet(removed + (long) size);
    mergeDue();
    return removed;
  }

  /** Gives some parts their new state, and publishes the state of all. Whatever may fail comes before the first change. */
  private void publish(Part[] changed, LiveSegment[] live, List<Part> after, long size) {
    Part[] next = after.toArray(new Part[0]);
    LiveSegment[] segments = new LiveSegment[next.length];
    Snapshot state = new Snapshot(segments, size);
    for (int s = 0; s < changed.length; s++) {
      changed[s].live = live[s];
    }
    for (int s = 0; s < next.length; s++) {
      segments[s] = next[s].live;
    }
    parts = next;
    snapshot = state;
  }

  // --- merges

  /** Merges what is small, or all that is due where there are too many segments; has the rest merged by a thread. */
  private void mergeDue() {
    long most = parts.length > MOST_SEGMENTS ? Long.MAX_VALUE : MergePolicy.SMALL;
    tryMerges(() -> policy.due(parts, Math.min(most, mostTerms())));
    if (mergeThread == null && policy.due(parts, mostTerms()) != null) {
      startMerging();
    }
  }

  private void startMerging() {
    Thread thread =
        Thread.ofPlatform().daemon().name("kullback-merge").unstarted(this::mergeInBackground);
    try {
      thread.start(); // waits for the lock
      mergeThread = thread;
    } catch (OutOfMemoryError e) { // there are too many threads
      pause(e, 0);
    }
  }

  /** Merges group after group on this thread until there is none. One may fail, but not what it is done for. */
  private void tryMerges(Supplier<@Nullable List<Part>> next) {
    List<Part> group = null;
    try {
      for (group = next.get(); group != null; group = next.get()) {
        Merge merge = Merge.of(group);
        exchange(merge, merger.apply(merge.before()));
      }
    } catch (Throwable e) {
      pause(e, group == null ? 0 : policy.terms(group));
    }
  }

  /** Puts a merged segment in the place of its parts, less the rows that were deleted in the meantime. */
  private void exchange(Merge merge, Segment merged) {
    LiveSegment live = new LiveSegment(merged);
    for (int s = 0; s < merge.before().size(); s++) {
      live = Deletions.carry(merge.before().get(s), merge.group().get(s).live, live);
    }
    List<Part> after = new ArrayList<>(Arrays.asList(parts));
    after.removeAll(merge.group());
    if (live.live() > 0) {
      after.add(new Part(live));
    }
    if (failures > 0 && policy.terms(merge.group()) >= failedTerms) {
      failures = 0;
    }
    publish(new Part[0], new LiveSegment[0], after, snapshot.size());
  }

  /** Merges all that is due, one after the other, and holds the lock only before and after each. */
  private void mergeInBackground() {
    Merge merge = null;
    try {
      for (merge = begin(); merge != null; merge = begin()) {
        end(merge, merger.apply(merge.before()));
      }
    } catch (Throwable e) { // its parts are as they were
      abandon(merge, e);
    }
  }

  private @Nullable Merge begin() {
    writer.lock();
    try {
      List<Part> group = closed ? null : policy.due(parts, mostTerms());
      if (group == null) {
        mergeThread = null;
        return null;
      }
      Merge merge = Merge.of(group);
      for (Part part : group) {
        part.merging = true;
      }
      return merge;
    } finally {
      writer.unlock();
    }
  }

  private void end(Merge merge, Segment merged) {
    writer.lock();
    try {
      if (!closed) {
        exchange(merge, merged);
      }
    } finally {
      writer.unlock();
    }
  }

  private void abandon(@Nullable Merge merge, Throwable e) {
    writer.lock();
    try {
      mergeThread = null;
      if (merge != null) {
        for (Part part : merge.group()) {
          part.merging = false;
        }
      }
      pause(e, merge == null ? 0 : policy.terms(merge.group()));
    } finally {
      writer.unlock();
    }
  }

  /** Puts off merges of so many terms or more after one of them failed: the index is whole, only slower. A change after the pause begins anew. */
  private void pause(Throwable e, long terms) {
    if (e
        instanceof
        CancellationException) { // its thread was interrupted, by close or by whoever called
      return;
    }
    long pause = PAUSE << failures;
    failures = Math.min(failures + 1, MOST_FAILURES);
    failedTerms = terms;
    pauseEnd = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pause);
    System.getLogger("dev.kullback")
        .log(
            System.Logger.Level.WARNING,
            "KlIndex: segments could not be merged, and those as large will not be for "
                + pause
                + " ms; nothing is lost, but searches are slower: "
                + e);
  }

  /** Terms up to which merges are made now. */
  private long mostTerms() {
    boolean pauses = failures > 0 && System.nanoTime() - pauseEnd < 0;
    return pauses ? failedTerms - 1 : Long.MAX_VALUE;
  }

  // --- files

  /**
   * Writes what has changed since the last commit, and maps what it wrote.
   *
   * @return whether there was anything to write
   */
  public boolean commit() {
    Folder to = folder("commit");
    lock(committer);
    try {
      Part[] taken;
      LiveSegment[] states;
      long counted;
      lock(writer);
      try {
        checkOpen();
        tryMerges(() -> policy.unwritten(parts, mostTerms()));
        taken = parts;
        states = snapshot.segments();
        counted = changes.get();
      } finally {
        writer.unlock();
      }
      boolean changed = !isCommitted(states);
      if (changed) {
        try {
          states = write(to, taken, states);
        } catch (Throwable e) {
          to.discard();
          throw e;
        }
      }
      settle(taken, states, counted);
      return changed;
    } finally {
      committer.unlock();
    }
  }

  private boolean isCommitted(LiveSegment[] states) {
    if (states.length != committed.length) {
      return false;
    }
    for (int s = 0; s < states.length; s++) {
      LiveSegment now = states[s];
      LiveSegment then = committed[s];
      if (now.segment() != then.segment() || now.deleted() != then.deleted()) {
        return false;
      }
    }
    return true;
  }

  /** Commits these states of parts, and returns them with the segments mapped. */
  private static LiveSegment[] write(Folder to, Part[] taken, LiveSegment[] states) {
    List<SegmentFile> files = new ArrayList<>();
    LiveSegment[] mapped = states.clone();
    for (int s = 0; s < taken.length; s++) {
      SegmentFile file = taken[s].file;
      if (file == null) {
        file = to.write(states[s].segment());
        mapped[s] = new LiveSegment(to.map(file), states[s].deleted(), states[s].live());
      }
      files.add(file);
    }
    to.commit(files, states);
    for (int s = 0; s < taken.length; s++) {
      taken[s].file = files.get(s);
    }
    return mapped;
  }

  /** Has searches read the mapped files of what was committed, whatever rows were deleted since. */
  private void settle(Part[] taken, LiveSegment[] states, long counted) {
    writer.lock(); // not to be interrupted: it has been committed
    try {
      LiveSegment[] live = new LiveSegment[taken.length];
      for (int s = 0; s < taken.length; s++) {
        LiveSegment now = taken[s].live;
        live[s] = new LiveSegment(states[s].segment(), now.deleted(), now.live());
      }
      publish(taken, live, Arrays.asList(parts), snapshot.size());
      changes.addAndGet(-counted);
      committed = states;
    } finally {
      writer.unlock();
    }
  }

  /** Reads all of the last commit's files, and throws if a checksum is wrong. */
  public void verify() {
    Folder read = folder("verify");
    lock(committer);
    try {
      checkOpen();
      read.verify();
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

  /** Drops what was not committed; a commit under way and the thread that merges end first. */
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
        snapshot = Snapshot.EMPTY;
        parts = new Part[0];
        running = mergeThread;
      } finally {
        writer.unlock();
      }
      if (running != null) {
        running.interrupt();
        join(running);
      }
      if (folder != null) {
        folder.close();
      }
    } finally {
      committer.unlock();
    }
  }

  private static void join(Thread thread) {
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
      Thread.currentThread().interrupt();
      throw new CancellationException(
          "interrupted while another thread changed the index; nothing was done");
    }
  }
}
