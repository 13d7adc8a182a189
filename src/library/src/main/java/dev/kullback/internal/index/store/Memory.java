package dev.kullback.internal.index.store;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The memory of an index's segments outside the heap. Each block is given back when its last user has released it, whatever the garbage
 * collector does.
 *
 * <p>To close an arena takes 20 to 140 µs, and stops all threads for a moment: closed without a pause, arenas leave a reader a third of its
 * speed (Zen 4, JDK 25.0.3). So small blocks are kept for others of their size, and no search of an open index closes an arena: whoever
 * changes the index calls {@link #reclaim}, and where a search is the last user, a thread does, {@value #INTERVAL_MILLIS} ms later at most.
 *
 * <p>The JVM does not count this memory against its limit of direct memory, since it is not the collector's to free: this class does, for all
 * indexes together.
 *
 * <p>Safe for use by any number of threads.
 */
final class Memory implements AutoCloseable {
  /** Makes the memory of a segment. */
  interface Allocator {
    /** Returns a block of this many bytes, all 0. */
    Block allocate(long bytes);
  }

  static final long ALIGNMENT = 64;

  /** Bytes of a block that is kept for others, at most; to fill a larger one takes as long as to close its arena. */
  private static final long MOST_KEPT_BLOCK = 1 << 20;

  /** Bytes of all blocks that are kept. */
  private static final long MOST_KEPT = 1 << 22;

  /** A kept block serves for less than its bytes by one of this many parts, and a page. */
  private static final int PARTS = 8;

  private static final long PAGE = 4096;

  private static final long INTERVAL_MILLIS = 10;

  /** Intervals without work after which the thread ends. */
  private static final int IDLE_INTERVALS = 100;

  /** {@code -XX:MaxDirectMemorySize}, or the size of the heap. */
  private static final long LIMIT = limit();

  /** Bytes of all indexes' blocks, of those that are kept, too, but not of mapped files. */
  private static final AtomicLong USED = new AtomicLong();

  /** Its thread ends when there is nothing to map for 2 s: one for each mapping would each take a new thread's share of the young generation. */
  private static final ThreadPoolExecutor MAPPER = mapper();

  /** Those of indexes that are open, whose kept blocks are dropped where one of them lacks memory. */
  private static final Set<Memory> ALL = Collections.newSetFromMap(new WeakHashMap<>());

  // under this object's lock

  /** Kept blocks, the oldest first. */
  private final Deque<Block> kept = new ArrayDeque<>();

  private long keptBytes;

  /** Blocks that nobody uses and that are to be closed. */
  private List<Block> retired = new ArrayList<>();

  private @Nullable Thread thread;
  private boolean closed;

  Memory() {
    synchronized (ALL) {
      ALL.add(this);
    }
  }

  /** A file that is deleted when its memory is given back, unless a commit has named it. */
  static final class Scratch {
    private final Path file;
    private final FileOperations files;
    private final Set<Scratch> all;
    private volatile boolean isKept;

    /**
     * A file that is to be made.
     *
     * @param all has this until it is kept or deleted
     */
    Scratch(Path file, FileOperations files, Set<Scratch> all) {
      this.file = file;
      this.files = files;
      this.all = all;
      all.add(this);
    }

    Path file() {
      return file;
    }

    synchronized void keep() {
      isKept = true;
      all.remove(this);
    }

    /** Deletes the file, unless it is kept; whoever closes the folder waits for that, as others may use the name then. */
    synchronized void delete() {
      if (!isKept) {
        isKept = true;
        try {
          files.delete(file);
        } catch (IOException e) {
          // a later commit deletes it
        } finally {
          all.remove(this); // no sooner, or it would be nobody's while it is there
        }
      }
    }
  }

  /** A piece of memory, or a mapped file, with the number of its users: one when it is made. */
  static final class Block {
    private final Memory memory;
    private final Arena arena;
    private final MemorySegment whole;
    private final MemorySegment segment;
    private final @Nullable Scratch scratch;
    private final AtomicInteger users = new AtomicInteger(1);

    private Block(
        Memory memory, Arena arena, MemorySegment whole, long bytes, @Nullable Scratch scratch) {
      this.memory = memory;
      this.arena = arena;
      this.whole = whole;
      segment = plain(whole).asSlice(0, bytes);
      this.scratch = scratch;
    }

    /**
     * Returns a mapped file as a segment of the class that memory without a file has: the VM compiles searches for the class that they meet, and would
     * throw that code away at the first change of an index that was opened. A buffer of ints does not know that it is mapped (JDK 25); it is none of
     * more than 2³¹ − 1 bytes.
     */
    private static MemorySegment plain(MemorySegment whole) {
      return whole.isMapped()
              && whole.byteSize() <= Integer.MAX_VALUE
              && whole.byteSize() % Integer.BYTES == 0
          ? MemorySegment.ofBuffer(whole.asByteBuffer().asIntBuffer())
          : whole;
    }

    private Block cleared() {
      segment.fill((byte) 0);
      return this;
    }

    MemorySegment segment() {
      return segment;
    }

    /** Whether this is a file's. */
    boolean isMapped() {
      return whole.isMapped();
    }

    /** Makes durable what was put into the file that this is the memory of. */
    void force(FileOperations files, Path file) throws IOException {
      files.force(file, whole);
    }

    /** Returns the file that this is the memory of, if a commit is to name it yet. */
    @Nullable Scratch scratch() {
      return scratch == null || scratch.isKept ? null : scratch;
    }

    /** Adds a user. The caller is one, or knows of one that does not release it meanwhile. */
    void retain() {
      if (users.getAndIncrement() < 1) {
        throw new IllegalStateException("the memory was given back");
      }
    }

    void release() {
      if (users.decrementAndGet() == 0) {
        memory.retire(this);
      }
    }

    private void close() {
      arena.close();
      if (!whole.isMapped()) {
        USED.addAndGet(-whole.byteSize());
      }
      if (scratch != null) {
        scratch.delete();
      }
    }
  }

  /**
   * Returns memory outside the heap, all 0.
   *
   * @throws OutOfMemoryError if the limit of such memory is reached
   */
  Block allocate(long bytes) {
    Block block = bytes > MOST_KEPT_BLOCK ? null : takeKept(bytes);
    if (block != null) {
      return block;
    }
    try {
      return allocateNew(bytes);
    } catch (OutOfMemoryError e) {
      for (Memory memory : openMemories()) {
        memory.dropKept();
        memory.reclaim();
      }
      return allocateNew(bytes);
    }
  }

  private static List<Memory> openMemories() {
    synchronized (ALL) {
      return List.copyOf(ALL);
    }
  }

  private Block allocateNew(long bytes) {
    reserve(bytes);
    try {
      Arena arena = Arena.ofShared();
      try {
        return new Block(this, arena, arena.allocate(bytes, ALIGNMENT), bytes, null);
      } catch (Throwable e) {
        arena.close();
        throw e;
      }
    } catch (Throwable e) {
      USED.addAndGet(-bytes);
      throw e;
    }
  }

  private static void reserve(long bytes) {
    for (long used = USED.get(); ; used = USED.get()) {
      if (bytes > LIMIT - used) {
        throw new OutOfMemoryError(
            "the memory of indexes outside the heap would have %d bytes, but its limit is %d: raise -XX:MaxDirectMemorySize, or commit, where there is a folder, before more is added"
                .formatted(used + bytes, LIMIT));
      }
      if (USED.compareAndSet(used, used + bytes)) {
        return;
      }
    }
  }

  /** Reads the JVM's limit of direct memory. It comes from a module that may be missing, jdk.management; 0 stands for the default. */
  private static long limit() {
    long limit = 0;
    try {
      HotSpotDiagnosticMXBean vm =
          ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
      limit = vm == null ? 0 : Long.parseLong(vm.getVMOption("MaxDirectMemorySize").getValue());
    } catch (LinkageError | IllegalArgumentException e) { // no HotSpot
      limit = 0;
    }
    return limit > 0 ? limit : Runtime.getRuntime().maxMemory();
  }

  /** Returns the bytes of all indexes' blocks but mapped ones, and of blocks that are kept for others. */
  static long used() {
    return USED.get();
  }

  private @Nullable Block takeKept(long bytes) {
    MemorySegment found = null;
    Arena arena = null;
    synchronized (this) {
      for (Iterator<Block> blocks = kept.descendingIterator();
          blocks.hasNext() && found == null; ) {
        Block block = blocks.next();
        long size = block.whole.byteSize();
        if (size >= bytes && size <= bytes + bytes / PARTS + PAGE) {
          blocks.remove();
          keptBytes -= size;
          found = block.whole;
          arena = block.arena;
        }
      }
    }
    return found == null || arena == null
        ? null
        : new Block(this, arena, found, bytes, null).cleared();
  }

  /**
   * Maps a file.
   *
   * @param scratch what to delete when the memory is given back; null for a file that stays
   */
  Block map(FileChannel channel, FileChannel.MapMode mode, long bytes, @Nullable Scratch scratch)
      throws IOException {
    Arena arena = Arena.ofShared();
    try {
      MemorySegment mapped = uninterrupted(() -> channel.map(mode, 0, bytes, arena));
      return new Block(this, arena, mapped, bytes, scratch);
    } catch (Throwable e) {
      arena.close();
      throw e;
    }
  }

  /** Maps on a thread that nobody interrupts: of one that is interrupted meanwhile, the JDK forgets what it has mapped (25.0.3). */
  private static MemorySegment uninterrupted(Callable<MemorySegment> map) throws IOException {
    Future<MemorySegment> task = MAPPER.submit(map);
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return task.get();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw new IOException(e.getCause());
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static ThreadPoolExecutor mapper() {
    ThreadPoolExecutor mapper =
        new ThreadPoolExecutor(
            1,
            1,
            2,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            Thread.ofPlatform().daemon().name("kullback-map").factory());
    mapper.allowCoreThreadTimeOut(true);
    return mapper;
  }

  private void retire(Block block) {
    long bytes = block.whole.byteSize();
    boolean now;
    synchronized (this) {
      now = closed;
      if (!now && bytes <= MOST_KEPT_BLOCK && !block.whole.isMapped()) {
        kept.addLast(block);
        keptBytes += bytes;
        while (keptBytes > MOST_KEPT) {
          Block oldest = kept.removeFirst();
          keptBytes -= oldest.whole.byteSize();
          retired.add(oldest);
        }
      } else if (!now) {
        retired.add(block);
      }
    }
    if (now) {
      block.close();
    }
  }

  private synchronized void dropKept() {
    retired.addAll(kept);
    kept.clear();
    keptBytes = 0;
  }

  /** Gives back what nobody uses; returns whether there was anything. */
  boolean reclaim() {
    List<Block> blocks;
    synchronized (this) {
      if (retired.isEmpty()) {
        return false;
      }
      blocks = retired;
      retired = new ArrayList<>();
    }
    closeAll(blocks, 0);
    return true;
  }

  /** Closes each from one on, whatever becomes of others. */
  private static void closeAll(List<Block> blocks, int from) {
    for (int k = from; k < blocks.size(); k++) {
      try {
        blocks.get(k).close();
      } catch (Throwable e) {
        closeAll(blocks, k + 1);
        throw e;
      }
    }
  }

  /** Has a thread call {@link #reclaim} soon, if there is need. */
  void reclaimSoon() {
    synchronized (this) {
      if (retired.isEmpty() || thread != null || closed) {
        return;
      }
      try {
        thread = Thread.ofPlatform().daemon().name("kullback-memory").start(this::work);
        return;
      } catch (OutOfMemoryError e) { // there are too many threads
        thread = null;
      }
    }
    reclaim();
  }

  private void work() {
    try {
      for (int idle = 0; !mayEnd(idle); ) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(INTERVAL_MILLIS));
        idle = reclaim() ? 0 : idle + 1;
      }
    } finally {
      forgetThread(); // also where it fails
    }
  }

  /** Whether the thread ends after {@code idle} intervals without work; then whoever needs one starts another. */
  private synchronized boolean mayEnd(int idle) {
    boolean ends = closed || (idle > IDLE_INTERVALS && retired.isEmpty());
    if (ends) {
      thread = null;
    }
    return ends;
  }

  private synchronized void forgetThread() {
    if (thread == Thread.currentThread()) { // not one that was started since
      thread = null;
    }
  }

  /** Gives back all that nobody uses, and from then on each block at once when its last user releases it. */
  @Override
  public void close() {
    Thread running;
    synchronized (ALL) {
      ALL.remove(this);
    }
    synchronized (this) {
      closed = true;
      running = thread;
      dropKept();
    }
    if (running != null) {
      LockSupport.unpark(running);
      Index.join(running);
    }
    reclaim();
  }
}
