package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.abi.CudaRuntime.*;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A caller's native memory that the device writes to by itself, for it is pinned until this is closed, or by the caller at least in part. */
final class PinnedSegment implements AutoCloseable {
  /** Bytes from which on pinning is tried: it costs some 0.1 µs a page. Not tuned on a device. */
  private static final long LEAST = 4 << 20;

  private static final int ALREADY_REGISTERED = 712;

  /** The largest that systems have by default: 64 KiB on some with ARM processors. */
  private static final long PAGE = 1 << 16;

  /**
   * What calls of this process have pinned now. A page may be pinned once, and one that another call has pinned is so no longer
   * than that.
   */
  private static final Set<PinnedSegment> PINNED = new HashSet<>();

  /** Stays reachable while it is pinned. */
  private final MemorySegment memory;

  private final long address;
  private final long bytes;
  private final boolean own;
  private final Session session;

  private PinnedSegment(MemorySegment memory, boolean own, Session session) {
    this.memory = memory;
    address = memory.address();
    bytes = memory.byteSize();
    this.own = own;
    this.session = session;
  }

  /**
   * The first bytes of a segment, which the session writes to; null if it is not to, because they are few, or not native, or a file's,
   * whose end another process may cut off, or because they cannot be pinned.
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
    return address / PAGE <= (other.address + other.bytes - 1) / PAGE
        && other.address / PAGE <= (address + bytes - 1) / PAGE;
  }

  /** Nothing writes there any more. */
  @Override
  public void close() {
    try {
      if (own) {
        session.settle();
        unpin();
      }
    } finally {
      Reference.reachabilityFence(memory);
    }
  }

  /** By its address, for the caller may have freed it. What stays pinned is not written to directly again. */
  private void unpin() {
    synchronized (PINNED) {
      if (cudaHostUnregister(MemorySegment.ofAddress(address)) == cudaSuccess()) {
        PINNED.remove(this);
      }
    }
  }
}
