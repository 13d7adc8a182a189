package dev.kullback.internal.cuda;

import dev.kullback.CudaException;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * What one engine keeps on device 0, and its calls. Batches stay there from their first use until they are unreachable, their
 * memory is needed, or the device is closed; so do the working memory of as many calls as ran at once.
 *
 * <p>Safe for use by any number of threads; {@value #MOST_SESSIONS} calls run at once, further ones wait. A call blocks its thread, also a
 * virtual one's carrier, while it waits for the device.
 */
public final class CudaDevice implements AutoCloseable {
  /** Two keep a device busy; more hide the host's copies. */
  private static final int MOST_SESSIONS = 4;

  private final Semaphore permits = new Semaphore(MOST_SESSIONS, true);

  /** Set when the device failed for good. */
  private final AtomicReference<@Nullable String> failure = new AtomicReference<>();

  // guarded by this
  private final Map<Key, Resident> residents = new HashMap<>();
  private final ReferenceQueue<Object> unreachable = new ReferenceQueue<>();
  private final ArrayDeque<Session> idle = new ArrayDeque<>();
  private int calls;
  private long clock;
  private boolean closed;

  /** Who a resident batch belongs to, by identity. */
  private static final class Key extends WeakReference<Object> {
    private final int hash;

    Key(Object owner, @Nullable ReferenceQueue<Object> queue) {
      super(owner, queue);
      hash = System.identityHashCode(owner);
    }

    @Override
    public int hashCode() {
      return hash;
    }

    @Override
    public boolean equals(@Nullable Object other) {
      Object owner = get();
      return this == other || (owner != null && other instanceof Key key && key.refersTo(owner));
    }
  }

  /** {@code out[i·M + j] = KL(q_i ‖ p_j)}, in elements of {@code width} bytes. */
  public void pairwise(HostBatch q, HostBatch p, MemorySegment out, int width) {
    run(
        q,
        p,
        (session, a, b) ->
            session.pairwise(a, b, q.size(), p.size(), q.owner() == p.owner(), out, width));
  }

  /** {@code out[i] = KL(q_i ‖ p_i)}, in elements of {@code width} bytes. */
  public void aligned(HostBatch q, HostBatch p, MemorySegment out, int width) {
    run(
        q,
        p,
        (session, a, b) -> session.aligned(a, b, q.size(), q.owner() == p.owner(), out, width));
  }

  /** {@code out[i] = KL(q_i ‖ N(0, I))}, in elements of {@code width} bytes. */
  public void standard(HostBatch q, MemorySegment out, int width) {
    run(q, q, (session, a, b) -> session.standard(a, q.size(), out, width));
  }

  private interface Work {
    void with(Session session, Resident q, Resident p);
  }

  private void run(HostBatch q, HostBatch p, Work work) {
    enter();
    try {
      permits.acquireUninterruptibly();
      try {
        Session session = take();
        Resident a = null;
        Resident b = null;
        RuntimeException failed = null;
        try {
          a = use(q);
          b = use(p);
          a.require(q, session);
          b.require(p, session);
          work.with(session, a, b);
        } catch (RuntimeException e) {
          failed = e;
          throw e;
        } finally {
          // nothing is given back before the device is done with it
          int status = session.settle();
          if (failed == null && status != 0) {
            fail("cudaStreamSynchronize", status);
          } else if (status != 0) {
            failure.compareAndSet(null, String.valueOf(failed.getMessage()));
          }
          release(session, a, b, failed != null);
          Reference.reachabilityFence(q.owner());
          Reference.reachabilityFence(p.owner());
        }
      } finally {
        permits.release();
      }
    } finally {
      exit();
    }
  }
}
