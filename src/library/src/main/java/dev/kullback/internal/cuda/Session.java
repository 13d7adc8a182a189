package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.CudaLibrary.check;
import static dev.kullback.internal.cuda.abi.CudaRuntime.*;
import static dev.kullback.internal.cuda.abi.KullbackCuda.*;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.BooleanSupplier;

/**
 * What one call at a time works with: a stream that computes, one that copies, two strips of the result on the device and two
 * pinned ones on the host, so that a strip is computed, another copied off the device, and a third handed to the caller at
 * once. Used by one thread at a time; memory grows on demand and stays for the next call.
 */
final class Session implements AutoCloseable {
  /** Bytes of a strip: some 0.3 ms of a PCIe 4.0 x16 link, and a matrix of a few thousand rows is several. Not tuned on a device. */
  private static final long STRIP = 8 << 20;

  /** Columns of a strip at most, so that it has 64 rows of float at least. */
  private static final long WIDEST = 1 << 15;

  /** Rows are taken in multiples of a kernel's tile. */
  private static final long TILE = 128;

  private final MemorySegment compute;
  private final MemorySegment copy;

  /** By strip: the kernels that fill it have passed; the copy off or onto the device has. */
  private final MemorySegment[] computed = new MemorySegment[2];

  private final MemorySegment[] copied = new MemorySegment[2];
  private final DeviceMemory[] strips = new DeviceMemory[2];
  private final DeviceMemory[] staging = new DeviceMemory[2];
  private final DeviceMemory scratch;
  private int next;

  private boolean failed;

  /** Opens all or nothing. */
  Session(BooleanSupplier spare) {
    MemorySegment none = MemorySegment.NULL;
    scratch = DeviceMemory.device(spare);
    for (int b = 0; b < 2; b++) {
      strips[b] = DeviceMemory.device(spare);
      staging[b] = DeviceMemory.pinned();
      computed[b] = none;
      copied[b] = none;
    }
    MemorySegment first = none;
    MemorySegment second = none;
    boolean opened = false;
    try {
      first = newStream();
      second = newStream();
      for (int b = 0; b < 2; b++) {
        computed[b] = newEvent();
        copied[b] = newEvent();
      }
      opened = true;
    } finally {
      if (!opened) {
        destroy(first, second);
      }
    }
    compute = first;
    copy = second;
  }

  private static MemorySegment newStream() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocate(ValueLayout.ADDRESS);
      check(
          "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(pointer, cudaStreamNonBlocking()));
      return pointer.get(ValueLayout.ADDRESS, 0);
    }
  }

  /** One whose waiters sleep: spinning takes a processor that other threads could use. */
  static MemorySegment newEvent() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocate(ValueLayout.ADDRESS);
      check(
          "cudaEventCreateWithFlags",
          cudaEventCreateWithFlags(pointer, cudaEventDisableTiming() | cudaEventBlockingSync()));
      return pointer.get(ValueLayout.ADDRESS, 0);
    }
  }

  MemorySegment compute() {
    return compute;
  }

  /** Whether the device failed for good in this session. */
  boolean isBroken() {
    return failed;
  }

  /** Copies host memory to {@code to + offset}, through the pinned blocks in turn. */
  void upload(MemorySegment from, MemorySegment to, long offset) {
    for (long at = 0; at < from.byteSize(); at += STRIP) {
      long bytes = Math.min(STRIP, from.byteSize() - at);
      int b = next;
      next ^= 1;
      check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
      MemorySegment block = staging[b].get(bytes);
      MemorySegment.copy(from, at, block, 0, bytes);
      check(
          "cudaMemcpyAsync",
          cudaMemcpyAsync(
              to.asSlice(offset + at, bytes), block, bytes, cudaMemcpyHostToDevice(), copy));
      check("cudaEventRecord", cudaEventRecord(copied[b], copy));
    }
  }

  /** What is computed from now on waits for the copies queued so far. */
  void computeAfterCopies() {
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(compute, copied[next ^ 1], 0));
  }

  /** N rows and M columns of the matrix, from [row0, column0] on, into {@code out}, strip by strip. */
  void pairwise(
      Resident q,
      Resident p,
      long row0,
      long n,
      long column0,
      long m,
      boolean same,
      MemorySegment out,
      int width) {
    long columns = Math.min(m, WIDEST);
    long most = Math.max(1, STRIP / (columns * width));
    long rows = Math.min(n, most > TILE ? most / TILE * TILE : most);
    long across = Math.ceilDiv(m, columns);
    long count = Math.ceilDiv(n, rows) * across;
    MemorySegment work =
        work(kullback_cuda_scratch_bytes(q.descriptor(), p.descriptor(), rows, columns));
    for (long s = 0; s < count + 2; s++) {
      int b = (int) (s & 1);
      if (s >= 2) { // the strip before the last, while the last is computed
        check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
        long row = (s - 2) / across * rows;
        long column = (s - 2) % across * columns;
        deliver(
            staging[b].get(0),
            out,
            row,
            Math.min(rows, n - row),
            column,
            Math.min(columns, m - column),
            m,
            width);
      }
      if (s < count) {
        long row = s / across * rows;
        long column = s % across * columns;
        long height = Math.min(rows, n - row);
        long breadth = Math.min(columns, m - column);
        MemorySegment strip = strips[b].get(rows * columns * width);
        check(
            "kullback_cuda_pairwise",
            kullback_cuda_pairwise(
                q.descriptor(),
                p.descriptor(),
                row0 + row,
                height,
                column0 + column,
                breadth,
                same ? 1 : 0,
                strip,
                breadth,
                width == Double.BYTES ? 1 : 0,
                work,
                compute));
        download(strip, height * breadth * width, b);
      }
    }
  }

  /** KL(q_i ‖ p_i) into {@code out}. */
  void aligned(Resident q, Resident p, long n, boolean same, MemorySegment out, int width) {
    MemorySegment work = work(kullback_cuda_scratch_bytes(q.descriptor(), p.descriptor(), n, 1));
    MemorySegment result = strips[0].get(n * width);
    check(
        "kullback_cuda_aligned",
        kullback_cuda_aligned(
            q.descriptor(),
            p.descriptor(),
            same ? 1 : 0,
            result,
            width == Double.BYTES ? 1 : 0,
            work,
            compute));
    collect(result, n * width, out);
  }

  /** KL(q_i ‖ N(0, I)) into {@code out}. */
  void standard(Resident q, long n, MemorySegment out, int width) {
    MemorySegment result = strips[0].get(n * width);
    check(
        "kullback_cuda_standard",
        kullback_cuda_standard(q.descriptor(), result, width == Double.BYTES ? 1 : 0, compute));
    collect(result, n * width, out);
  }

  private MemorySegment work(long bytes) {
    if (bytes < 0) {
      throw new IllegalStateException("kullback_cuda_scratch_bytes: an argument is invalid");
    }
    return bytes == 0 ? MemorySegment.NULL : scratch.get(bytes);
  }

  /** Copies a strip to its pinned block when it has been computed. */
  private void download(MemorySegment strip, long bytes, int b) {
    // what used the pinned block last, an upload perhaps, is to be done with it before it may grow
    check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
    check("cudaEventRecord", cudaEventRecord(computed[b], compute));
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(copy, computed[b], 0));
    check(
        "cudaMemcpyAsync",
        cudaMemcpyAsync(staging[b].get(bytes), strip, bytes, cudaMemcpyDeviceToHost(), copy));
    check("cudaEventRecord", cudaEventRecord(copied[b], copy));
    next = b ^ 1;
  }

  /** A result that is whole on the device, in pieces. */
  private void collect(MemorySegment result, long bytes, MemorySegment out) {
    for (long at = 0; at < bytes; at += STRIP) {
      long piece = Math.min(STRIP, bytes - at);
      download(result.asSlice(at, piece), piece, 0);
      check("cudaEventSynchronize", cudaEventSynchronize(copied[0]));
      MemorySegment.copy(staging[0].get(0), 0, out, at, piece);
    }
  }

  private static void deliver(
      MemorySegment strip,
      MemorySegment out,
      long row,
      long rows,
      long column,
      long columns,
      long m,
      int width) {
    if (columns == m) {
      MemorySegment.copy(strip, 0, out, row * m * width, rows * m * width);
      return;
    }
    for (long i = 0; i < rows; i++) {
      MemorySegment.copy(
          strip, i * columns * width, out, ((row + i) * m + column) * width, columns * width);
    }
  }

  /** Waits for what is queued; the first status that is not success. Afterwards no work uses what the session does. */
  int settle() {
    int first = cudaStreamSynchronize(compute);
    int second = cudaStreamSynchronize(copy);
    int status = first != cudaSuccess() ? first : second;
    failed |= status != cudaSuccess();
    return status;
  }

  @Override
  public void close() {
    settle();
    destroy(compute, copy);
  }

  private void destroy(MemorySegment first, MemorySegment second) {
    for (int b = 0; b < 2; b++) {
      strips[b].close();
      staging[b].close();
      destroyEvent(computed[b]);
      destroyEvent(copied[b]);
    }
    scratch.close();
    for (MemorySegment stream : new MemorySegment[] {first, second}) {
      if (stream.address() != 0) {
        cudaStreamDestroy(stream);
      }
    }
  }

  private static void destroyEvent(MemorySegment event) {
    if (event.address() != 0) {
      cudaEventDestroy(event);
    }
  }
}
