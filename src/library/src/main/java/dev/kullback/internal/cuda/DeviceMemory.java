package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.CudaLibrary.check;
import static dev.kullback.internal.cuda.abi.CudaRuntime.*;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.BooleanSupplier;

/** A block of device memory or of pinned host memory, until closed. Growing loses the contents. */
@SuppressWarnings("restricted") // sizes what cudaMalloc returned
final class DeviceMemory implements AutoCloseable {
  private final boolean pinned;

  /** Frees device memory that can be spared, and returns whether there was some. */
  private final BooleanSupplier spare;

  private MemorySegment segment = MemorySegment.NULL;

  private DeviceMemory(boolean pinned, BooleanSupplier spare) {
    this.pinned = pinned;
    this.spare = spare;
  }

  static DeviceMemory device(BooleanSupplier spare) {
    return new DeviceMemory(false, spare);
  }

  static DeviceMemory pinned() {
    return new DeviceMemory(true, () -> false);
  }

  /** Returns at least {@code bytes} bytes. Device memory has an address here and is not read or written. */
  MemorySegment get(long bytes) {
    if (segment.byteSize() < bytes) {
      close();
      segment = allocate(bytes).reinterpret(bytes);
    }
    return segment;
  }

  long size() {
    return segment.byteSize();
  }

  private MemorySegment allocate(long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocate(ValueLayout.ADDRESS);
      int status;
      do {
        status =
            pinned
                ? cudaHostAlloc(pointer, bytes, cudaHostAllocDefault())
                : cudaMalloc(pointer, bytes);
        if (status != cudaSuccess()) {
          cudaGetLastError(); // and forget it, if it can be forgotten
        }
      } while (status == cudaErrorMemoryAllocation() && spare.getAsBoolean());
      if (status == cudaErrorMemoryAllocation() && !pinned) {
        throw CudaLibrary.failed(
            status,
            "cudaMalloc: %d MiB do not fit the device's memory beside what is in use; use smaller batches, fewer threads, or Backend.VECTOR"
                .formatted(Math.ceilDiv(bytes, 1 << 20)));
      }
      check(pinned ? "cudaHostAlloc" : "cudaMalloc", status);
      return pointer.get(ValueLayout.ADDRESS, 0);
    }
  }

  /** Frees the memory. A device that failed cannot: there is nothing to do about it. */
  @Override
  public void close() {
    if (segment.address() != 0) {
      if (pinned) {
        cudaFreeHost(segment);
      } else {
        cudaFree(segment);
      }
      segment = MemorySegment.NULL;
    }
  }
}
