package dev.kullback.internal.verify;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.jspecify.annotations.Nullable;

/** Reads the VM's count of the bytes that a thread has allocated. It comes from a module that may be missing, jdk.management. */
public final class AllocatedBytes {
  private static final @Nullable ThreadMXBean THREADS = threads();

  private AllocatedBytes() {}

  /** Returns the bytes that the calling thread has allocated, or −1 where the VM does not count them. A warm call allocates nothing. */
  public static long ofThread() {
    try {
      return THREADS == null ? -1 : THREADS.getCurrentThreadAllocatedBytes();
    } catch (UnsupportedOperationException e) {
      return -1;
    }
  }

  private static @Nullable ThreadMXBean threads() {
    try {
      return ManagementFactory.getThreadMXBean() instanceof ThreadMXBean bean ? bean : null;
    } catch (LinkageError e) { // it is missing, or java.management is, which is read through it
      return null;
    }
  }
}
