package dev.kullback.internal.verify;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/** Reads the VM's count of the bytes that a thread has allocated. It comes from a module that may be missing, jdk.management. */
public final class AllocatedBytes {
  /** {@code com.sun.management.ThreadMXBean.getCurrentThreadAllocatedBytes()}, or null. */
  private static final @Nullable MethodHandle COUNTER = counter();

  private AllocatedBytes() {}

  /**
   * Returns the bytes that the calling thread has allocated, or −1 where the VM does not count them. The call allocates nothing, except
   * that the VM compiles the method handle anew after some 130 calls, which takes 32 kB once.
   */
  public static long ofThread() {
    if (COUNTER == null) {
      return -1;
    }
    try {
      return (long) COUNTER.invokeExact();
    } catch (Throwable e) { // counting is switched off, or not supported
      return -1;
    }
  }

  private static @Nullable MethodHandle counter() {
    try {
      Class<?> factory = Class.forName("java.lang.management.ManagementFactory");
      Class<?> type = Class.forName("com.sun.management.ThreadMXBean");
      Object bean = factory.getMethod("getThreadMXBean").invoke(null);
      return MethodHandles.publicLookup()
          .findVirtual(type, "getCurrentThreadAllocatedBytes", MethodType.methodType(long.class))
          .bindTo(bean);
    } catch (ReflectiveOperationException | RuntimeException e) {
      return null;
    }
  }
}
