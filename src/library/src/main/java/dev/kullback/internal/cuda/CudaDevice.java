package dev.kullback.internal.cuda;

import dev.kullback.CudaException;
import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.cuda.Session.Region;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.work.Worker;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Runs an engine's calls on device 0, and keeps its batches there from their first use until they are unreachable, their memory is
 * needed, or the device is closed, and the working memory of as many calls as ran at once.
 *
 * <p>Safe for use by any number of threads; {@value #MOST_SESSIONS} calls run at once, and as many blocks of searches that the device does
 * not finish; further ones wait. A call blocks its thread, also a virtual one's carrier, while it waits for the device.
 */
public final class CudaDevice implements AutoCloseable {
  /** Two keep a device busy; more hide the host's copies. */
  private static final int MOST_SESSIONS = 4;

  /** Most blocks of memory that batches have left and the next ones get: cudaMalloc and cudaFree may wait for all that the device is at. */
  private static final int MOST_LEFT = 16;

  /** Most bytes of these blocks. */
  private static final long MOST_LEFT_BYTES = 64 << 20;

  private final Semaphore permits = new Semaphore(MOST_SESSIONS, true);

  /** Permits of regions, which wait for nothing else: a call with a permit of the others may ask for one. */
  private final Semaphore innerPermits = new Semaphore(MOST_SESSIONS, true);

  /** Set when the device failed for good. */
  private final AtomicReference<@Nullable CudaException> failure = new AtomicReference<>();

  /** Sessions that no call uses, the one used last in front. */
  private final ConcurrentLinkedDeque<Session> idle = new ConcurrentLinkedDeque<>();

  // guarded by this

  /** Residents of batches, by identity: a batch defines no equals. */
  private final Map<Batch, Resident> residents = new WeakHashMap<>();

  /** All residents, the one used last at the end; also those of unreachable batches, until their memory is left to others. */
  private final LinkedHashSet<Resident> byUse = new LinkedHashSet<>();

  private final ReferenceQueue<Batch> unreachable = new ReferenceQueue<>();
  private final ArrayDeque<DeviceMemory> left = new ArrayDeque<>();
  private int calls;
  private boolean closed;

  /** Computes {@code out[i·M + j] = KL(q_i ‖ p_j)}, in elements of {@code width} bytes. */
  void pairwise(Batch q, Batch p, MemorySegment out, int width, Worker worker) {
    Region all = new Region(0, q.size(), 0, p.size());
    run(q, p, (session, batches) -> session.pairwise(batches, all, out, width, worker));
  }

  /** Computes a region of that matrix, without gaps. A consumer of answers may call this. */
  void region(Batch q, Batch p, Region region, double[] out) {
    MemorySegment to = MemorySegment.ofArray(out);
    Work work =
        (session, batches) -> session.pairwise(batches, region, to, Double.BYTES, Session.ALONE);
    run(innerPermits, q, p, work, () -> true);
  }

  /** Answers for all rows of the matrix, or for its columns as rows, a strip at a time, on this thread. */
  void answer(Batch q, Batch p, boolean transposed, RowQuery query, Consumer<RowAnswer> consumer) {
    int n = transposed ? p.size() : q.size();
    int m = transposed ? q.size() : p.size();
    AtomicBoolean begun = new AtomicBoolean();
    Consumer<RowAnswer> noting =
        answer -> {
          begun.set(true);
          consumer.accept(answer);
        };
    Work work =
        (session, batches) -> session.rowStrips.answer(batches, n, m, transposed, query, noting);
    run(permits, q, p, work, () -> !begun.get());
  }

  /** Computes {@code out[i] = KL(q_i ‖ p_i)}, in elements of {@code width} bytes. */
  public void aligned(Batch q, Batch p, MemorySegment out, int width) {
    run(q, p, (session, batches) -> session.aligned(batches, q.size(), out, width));
  }

  /** Computes {@code out[i] = KL(q_i ‖ N(0, I))}, in elements of {@code width} bytes. */
  public void standard(Batch q, MemorySegment out, int width) {
    run(q, q, (session, batches) -> session.standard(batches.q(), q.size(), out, width));
  }

  private interface Work {
    void run(Session session, Resident.Pair batches);
  }

  private void run(Batch q, Batch p, Work work) {
    run(permits, q, p, work, () -> true);
  }

  /** Does the work, and a second time where memory was short and could be spared, if it may be repeated then. */
  private void run(Semaphore permits, Batch q, Batch p, Work work, BooleanSupplier repeatable) {
    enter();
    try {
      permits.acquireUninterruptibly();
      try {
        CudaLibrary.select();
        try {
          run(take(), q, p, work);
        } catch (CudaException e) {
          // cudaMalloc has made room already, but other calls need memory of the device, too
          if (!e.isOutOfMemory()
              || failure.get() != null
              || !repeatable.getAsBoolean()
              || !spareAll()) {
            throw e;
          }
          run(take(), q, p, work);
        }
      } finally {
        permits.release();
      }
    } finally {
      exit();
    }
  }

  private void run(Session session, Batch q, Batch p, Work work) {
    Resident a = null;
    Resident b = null;
    CudaException failed = null;
    try {
      a = use(q);
      b = use(p);
      a.require(q, session);
      b.require(p, session);
      work.run(session, new Resident.Pair(a, b, a == b));
    } catch (CudaException e) {
      failed = e;
      throw e;
    } finally {
      try { // nothing is given back before the device is done with it
        int status = session.drain();
        if (status != 0) {
          failed =
              failed != null
                  ? failed
                  : CudaLibrary.failed(
                      status, "cudaStreamSynchronize: " + CudaLibrary.error(status));
          failure.compareAndSet(null, failed);
        }
      } finally {
        release(session, a, b);
        Reference.reachabilityFence(q);
        Reference.reachabilityFence(p);
      }
    }
    if (failed != null) {
      throw failed;
    }
  }

  /** Begins a call, which may consist of several: until its {@link #exit} a close frees nothing. */
  public synchronized void enter() {
    if (closed && calls == 0) {
      throw Constructors.ALREADY_CLOSED.get().apply("this KlEngine is closed");
    }
    CudaException failed = failure.get();
    if (failed != null) {
      throw CudaLibrary.failed(
          failed.code(),
          "the device failed in an earlier call, which threw '%s'; close this engine, and if a new one fails as well, restart the process"
              .formatted(failed.getMessage()));
    }
    calls++;
  }

  /** Ends what {@link #enter} began. */
  public synchronized void exit() {
    calls--;
    if (closed && calls == 0) {
      free();
    }
  }

  private Session take() {
    Session session = idle.poll();
    return session != null ? session : new Session(this::spare);
  }

  private synchronized Resident use(Batch batch) {
    for (Reference<?> gone = unreachable.poll(); gone != null; gone = unreachable.poll()) {
      if (byUse.remove(gone)) {
        leave(((Resident) gone).free());
      }
    }
    Resident resident = residents.computeIfAbsent(batch, b -> new Resident(b, this, unreachable));
    byUse.addLast(resident); // moves it there
    resident.users++;
    return resident;
  }

  /** Returns memory for a batch of {@code bytes} bytes: a block that another left, or an empty one. */
  synchronized DeviceMemory memory(long bytes) {
    for (DeviceMemory block : left) {
      if (bytes <= block.size() && block.size() / 2 <= bytes) {
        left.remove(block);
        return block;
      }
    }
    return DeviceMemory.device(this::spare);
  }

  /** Keeps a block for the next batches, up to the limits. */
  private void leave(DeviceMemory block) {
    if (block.size() > MOST_LEFT_BYTES) {
      block.close();
    } else if (block.size() > 0) {
      left.push(block);
      long bytes = left.stream().mapToLong(DeviceMemory::size).sum();
      while (left.size() > MOST_LEFT || bytes > MOST_LEFT_BYTES) {
        DeviceMemory oldest = left.removeLast();
        bytes -= oldest.size();
        oldest.close();
      }
    }
  }

  private synchronized void release(Session session, @Nullable Resident a, @Nullable Resident b) {
    if (a != null) {
      a.users--;
    }
    if (b != null) {
      b.users--;
    }
    if (session.isBroken()) {
      session.close();
    } else {
      idle.push(session);
    }
  }

  /**
   * Frees what batches have left, or the batch that nobody has used for longest, or an idle session; returns whether there was something.
   */
  synchronized boolean spare() {
    if (!left.isEmpty()) {
      left.forEach(DeviceMemory::close);
      left.clear();
      return true;
    }
    for (Resident resident : byUse) {
      if (resident.users == 0) {
        byUse.remove(resident);
        residents.remove(resident.get());
        resident.free().close();
        return true;
      }
    }
    Session session = idle.poll();
    if (session != null) {
      session.close();
    }
    return session != null;
  }

  private boolean spareAll() {
    boolean spared = false;
    while (spare()) {
      spared = true;
    }
    return spared;
  }

  /** Ends the use of the device: at once, or when the calls under way have finished. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      if (calls == 0) {
        free();
      }
    }
  }

  private void free() {
    CudaLibrary.select();
    idle.forEach(Session::close);
    idle.clear();
    byUse.forEach(resident -> resident.free().close());
    byUse.clear();
    residents.clear();
    left.forEach(DeviceMemory::close);
    left.clear();
  }
}
