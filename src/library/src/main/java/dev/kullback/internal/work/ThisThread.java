package dev.kullback.internal.work;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.jspecify.annotations.Nullable;

/** Reads the VM's figures of the calling thread. They come from a module that may be missing, jdk.management. */
public final class ThisThread {
  private static final @Nullable ThreadMXBean THREADS = threads();

  private ThisThread() {}

  /** Returns the bytes that the thread has allocated, or −1 where the VM does not count them. A warm call allocates nothing. */
  public static long allocatedBytes() {
    try {
      return THREADS == null ? -1 : THREADS.getCurrentThreadAllocatedBytes();
    } catch (UnsupportedOperationException e) {
      return -1;
    }
  }

  /** Returns the processor time that the thread has had, in ns, or −1 where the VM does not tell it, as of a virtual thread. */
  public static long processorNanos() {
    try {
      return THREADS == null ? -1 : THREADS.getCurrentThreadCpuTime();
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
