package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.abi.CudaRuntime.*;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A caller's native memory that the device writes to directly: it is pinned until this is closed, or the caller has pinned it, at least in
 * part.
 */
final class PinnedSegment implements AutoCloseable {
  /** Least bytes for which pinning is tried: it costs some 0.1 µs a page. Not tuned on a device. */
  private static final long LEAST = 4 << 20;

  private static final int ALREADY_REGISTERED = 712;

  /** Largest page that systems have by default: 64 KiB on some with ARM processors. */
  private static final long PAGE = 1 << 16;

  /**
   * Memory that calls of this process have pinned. A page may be pinned once, and another call's page stays pinned only until that call
   * ends.
   */
  private static final Set<PinnedSegment> PINNED = new HashSet<>();

  /** The caller's memory, which is to stay reachable while it is pinned. */
  private final MemorySegment memory;

  private final long firstPage;
  private final long lastPage;
  private final boolean own;
  private final Session session;

  private PinnedSegment(MemorySegment memory, boolean own, Session session) {
    this.memory = memory;
    firstPage = memory.address() / PAGE;
    lastPage = (memory.address() + memory.byteSize() - 1) / PAGE;
    this.own = own;
    this.session = session;
  }

  /**
   * Pins the first bytes of a segment for the session; returns null if they are few, or not native, or a file's, whose end another
   * process may cut off, or cannot be pinned.
   */
  static @Nullable PinnedSegment of(MemorySegment segment, long bytes, Session session) {
    if (!segment.isNative() || segment.isMapped() || bytes < LEAST) {
      return null;
    }
    MemorySegment memory = segment.asSlice(0, bytes);
    synchronized (PINNED) {
      PinnedSegment pinned = new PinnedSegment(memory, true, session);
      if (PINNED.stream().anyMatch(pinned::sharesPage)) {
        return null;
      }
      int status = cudaHostRegister(memory, bytes, cudaHostRegisterDefault());
      if (status == cudaSuccess()) {
        PINNED.add(pinned);
        return pinned;
      }
      cudaGetLastError(); // and forget it
      return status == ALREADY_REGISTERED ? new PinnedSegment(memory, false, session) : null;
    }
  }

  private boolean sharesPage(PinnedSegment other) {
    return firstPage <= other.lastPage && other.firstPage <= lastPage;
  }

  /** Waits until nothing writes there any more. */
  @Override
  public void close() {
    try {
      if (own) {
        session.drain();
        synchronized (PINNED) {
          // by the address, for the caller may have freed the memory
          if (cudaHostUnregister(MemorySegment.ofAddress(memory.address())) == cudaSuccess()) {
            PINNED.remove(this); // else it is not written to directly again
          }
        }
      }
    } finally {
      Reference.reachabilityFence(memory);
    }
  }
}
