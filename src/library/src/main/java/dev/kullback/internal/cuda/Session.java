package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.CudaLibrary.check;
import static dev.kullback.internal.cuda.abi.CudaRuntime.*;
import static dev.kullback.internal.cuda.abi.KullbackCuda.*;

import dev.kullback.internal.work.Worker;
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

  /** Bytes up to which a copy goes on the stream that computes: calls of the runtime, some µs each, then take longer than the bytes. */
  private static final long SMALL = 1 << 20;

  /** Columns of a strip at most, so that it has 64 rows of float at least. */
  private static final long WIDEST = 1 << 15;

  /** Bytes that a thread copies at once: some 0.1 ms. */
  private static final long COPY = 1 << 20;

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
  private final RowStrips rowStrips;
  private int next;

  /** The first status of {@link #settle} that is not success. */
  private int broken = cudaSuccess();

  /** Copies with the calling thread alone. */
  static final Worker ALONE = new Worker();

  /** Opens all or nothing. */
  Session(BooleanSupplier spare) {
    MemorySegment none = MemorySegment.NULL;
    scratch = DeviceMemory.device(spare);
    rowStrips = new RowStrips(this, spare);
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

  MemorySegment copy() {
    return copy;
  }

  /** What answers row queries. */
  RowStrips rowStrips() {
    return rowStrips;
  }

  /** Whether the device failed for good in this session. */
  boolean isBroken() {
    return broken != cudaSuccess();
  }

  /**
   * Brings pieces of host memory to their offsets in {@code to}, of so many bytes up to the last one's end, before what is computed from
   * now on: small ones with one copy.
   */
  void upload(MemorySegment to, long bytes, long[] offsets, MemorySegment... pieces) {
    if (bytes > SMALL) {
      for (int k = 0; k < pieces.length; k++) {
        upload(pieces[k], to, offsets[k]);
      }
      check("cudaStreamWaitEvent", cudaStreamWaitEvent(compute, copied[next ^ 1], 0));
      return;
    }
    int b = next;
    next ^= 1;
    check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
    MemorySegment block = pinned(b, bytes);
    for (int k = 0; k < pieces.length; k++) {
      MemorySegment.copy(pieces[k], 0, block, offsets[k], pieces[k].byteSize());
    }
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, block, bytes, cudaMemcpyHostToDevice(), compute));
    check("cudaEventRecord", cudaEventRecord(copied[b], compute));
  }

  /** Copies host memory to {@code to + offset}, through the pinned blocks in turn. */
  void upload(MemorySegment from, MemorySegment to, long offset) {
    for (long at = 0; at < from.byteSize(); at += STRIP) {
      long bytes = Math.min(STRIP, from.byteSize() - at);
      int b = next;
      next ^= 1;
      check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
      MemorySegment block = pinned(b, bytes);
      MemorySegment.copy(from, at, block, 0, bytes);
      check(
          "cudaMemcpyAsync",
          cudaMemcpyAsync(
              to.asSlice(offset + at, bytes), block, bytes, cudaMemcpyHostToDevice(), copy));
      check("cudaEventRecord", cudaEventRecord(copied[b], copy));
    }
  }

  /**
   * Rows and columns of the matrix from [row0, column0] on, {@code out} having their numbers n and m, strip by strip: by way of pinned
   * memory, from which the worker's threads copy, or where {@code out} is native memory that is pinned, or can be, without.
   */
  void pairwise(
      Resident q,
      Resident p,
      long row0,
      long n,
      long column0,
      long m,
      boolean same,
      MemorySegment out,
      int width,
      Worker worker) {
    long bytes = n * m * width;
    if (bytes <= SMALL) {
      MemorySegment result = strips[0].get(bytes);
      compute(q, p, row0, n, column0, m, same, result, width, false, work(q, p, n, m));
      collect(result, bytes, out);
      return;
    }
    try (PinnedSegment direct = PinnedSegment.of(out, bytes, this)) {
      Strips cut = new Strips(n, m, width, direct == null ? STRIP : rowStrips.partBytes());
      MemorySegment work = work(q, p, cut.rows, cut.columns);
      int behind = direct == null ? 2 : 1;
      for (long s = 0; s < cut.count() + behind; s++) {
        int b = (int) (s & 1);
        if (direct == null && s >= 2) { // the strip before the last, while the last is computed
          check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
          deliver(staging[b].get(0), out, s - 2, 0, cut.height(s - 2), cut, worker);
        }
        if (s < cut.count()) {
          MemorySegment strip = strips[b].get(cut.rows * cut.columns * width);
          long row = row0 + cut.row(s);
          long column = column0 + cut.column(s);
          compute(
              q, p, row, cut.height(s), column, cut.breadth(s), same, strip, width, false, work);
          if (direct == null) {
            download(strip, cut.bytes(s), b);
          } else {
            check("cudaEventRecord", cudaEventRecord(computed[b], compute));
          }
        }
        if (direct != null && s >= 1) { // the last strip, while this one is computed
          store(s - 1, cut, out, worker);
        }
      }
    }
  }

  /**
   * Queues a region of the matrix, in doubles without gaps, to device memory that what was fetched with the same b has left; what is
   * queued on {@link #copy} from now on waits for it.
   */
  void compute(
      Resident q,
      Resident p,
      long row0,
      long rows,
      long column0,
      long columns,
      boolean same,
      boolean transposed,
      MemorySegment out,
      int b) {
    MemorySegment work = work(q, p, rows, columns);
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(compute, copied[b], 0));
    compute(q, p, row0, rows, column0, columns, same, out, Double.BYTES, transposed, work);
    copyAfter(b);
  }

  /** Queues a region of the matrix, without gaps. */
  private void compute(
      Resident q,
      Resident p,
      long row0,
      long rows,
      long column0,
      long columns,
      boolean same,
      MemorySegment out,
      int width,
      boolean transposed,
      MemorySegment work) {
    check(
        "kullback_cuda_pairwise",
        kullback_cuda_pairwise(
            q.descriptor(),
            p.descriptor(),
            row0,
            rows,
            column0,
            columns,
            same ? 1 : 0,
            out,
            transposed ? rows : columns,
            width == Double.BYTES ? 1 : 0,
            transposed ? 1 : 0,
            work,
            compute));
  }

  /** What is copied from now on waits for what is queued to be computed. */
  private void copyAfter(int b) {
    check("cudaEventRecord", cudaEventRecord(computed[b], compute));
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(copy, computed[b], 0));
  }

  /** Queues a copy to pinned memory. */
  void fetch(MemorySegment from, MemorySegment to, long bytes, int b) {
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost(), copy));
    check("cudaEventRecord", cudaEventRecord(copied[b], copy));
  }

  /** KL(q_i ‖ p_i) into {@code out}. */
  void aligned(Resident q, Resident p, long n, boolean same, MemorySegment out, int width) {
    MemorySegment work = work(q, p, n, 1);
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

  private MemorySegment work(Resident q, Resident p, long rows, long columns) {
    long bytes = kullback_cuda_scratch_bytes(q.descriptor(), p.descriptor(), rows, columns);
    if (bytes < 0) {
      throw new IllegalStateException("kullback_cuda_scratch_bytes: an argument is invalid");
    }
    return bytes == 0 ? MemorySegment.NULL : scratch.get(bytes);
  }

  /** A pinned block: one that small copies, which do not wait for what uses it, need not enlarge. */
  private MemorySegment pinned(int b, long bytes) {
    return staging[b].get(Math.max(bytes, SMALL));
  }

  /** Copies a strip to its pinned block when it has been computed. */
  private void download(MemorySegment strip, long bytes, int b) {
    // what used the pinned block last, an upload perhaps, is to be done with it before it may grow
    check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
    copyAfter(b);
    fetch(strip, pinned(b, bytes), bytes, b);
    next = b ^ 1;
  }

  /** A result that is whole on the device: small at once, else in pieces. */
  private void collect(MemorySegment result, long bytes, MemorySegment out) {
    if (bytes <= SMALL) {
      MemorySegment block = pinned(0, bytes); // uploads from there come first on the stream
      check(
          "cudaMemcpyAsync",
          cudaMemcpyAsync(block, result, bytes, cudaMemcpyDeviceToHost(), compute));
      check("cudaStreamSynchronize", cudaStreamSynchronize(compute));
      MemorySegment.copy(block, 0, out, 0, bytes);
      return;
    }
    for (long at = 0; at < bytes; at += STRIP) {
      long piece = Math.min(STRIP, bytes - at);
      download(result.asSlice(at, piece), piece, 0);
      check("cudaEventSynchronize", cudaEventSynchronize(copied[0]));
      MemorySegment.copy(staging[0].get(0), 0, out, at, piece);
    }
  }

  /** Copies rows of a strip, from the first one on, from pinned memory to {@code out}. */
  private static void deliver(
      MemorySegment block,
      MemorySegment out,
      long s,
      long first,
      long rows,
      Strips cut,
      Worker worker) {
    long line = cut.breadth(s) * cut.width;
    int lines = (int) Math.clamp(COPY / line, 1, rows);
    worker.share(
        (int) Math.ceilDiv(rows, lines),
        part -> {
          long from = (long) part * lines;
          long to = Math.min(from + lines, rows);
          if (cut.breadth(s) == cut.m) {
            MemorySegment.copy(
                block, from * line, out, cut.at(s, first + from), (to - from) * line);
            return;
          }
          for (long i = from; i < to; i++) {
            MemorySegment.copy(block, i * line, out, cut.at(s, first + i), line);
          }
        });
  }

  /** Waits for a strip that was queued, and has the device write it to {@code out}, which stays open meanwhile. */
  private void store(long s, Strips cut, MemorySegment out, Worker worker) {
    int b = (int) (s & 1);
    long line = cut.breadth(s) * cut.width;
    MemorySegment strip = strips[b].get(0);
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(copy, computed[b], 0));
    int status =
        kullback_cuda_download(
            out.asSlice(cut.at(s, 0)), cut.m * cut.width, strip, line, line, cut.height(s), copy);
    if (status != cudaErrorInvalidValue()) {
      check("kullback_cuda_download", status);
      return;
    }
    // As of memory that is pinned in part: by way of pinned memory, in pieces.
    long most = Math.max(1, SMALL / line);
    for (long i = 0; i < cut.height(s); i += most) {
      long rows = Math.min(most, cut.height(s) - i);
      download(strip.asSlice(i * line, rows * line), rows * line, b);
      check("cudaEventSynchronize", cudaEventSynchronize(copied[b]));
      deliver(staging[b].get(0), out, s, i, rows, cut, worker);
    }
  }

  /** How a matrix of n rows and m columns, of elements of so many bytes, is cut into strips. */
  private static final class Strips {
    final long n;
    final long m;
    final int width;

    /** Of a strip at most. */
    final long rows;

    final long columns;

    Strips(long n, long m, int width, long strip) {
      this.n = n;
      this.m = m;
      this.width = width;
      columns = Math.ceilDiv(m, Math.ceilDiv(m, WIDEST));
      long most = Math.max(1, strip / (columns * width));
      rows = Math.min(n, most > TILE ? most / TILE * TILE : most);
    }

    private long across() {
      return Math.ceilDiv(m, columns);
    }

    long count() {
      return Math.ceilDiv(n, rows) * across();
    }

    long row(long s) {
      return s / across() * rows;
    }

    long column(long s) {
      return s % across() * columns;
    }

    long height(long s) {
      return Math.min(rows, n - row(s));
    }

    long breadth(long s) {
      return Math.min(columns, m - column(s));
    }

    long bytes(long s) {
      return height(s) * breadth(s) * width;
    }

    /** Where row i of a strip goes. */
    long at(long s, long i) {
      return ((row(s) + i) * m + column(s)) * width;
    }
  }

  /**
   * Waits for what is queued; the first status that is not success, of an earlier time, too. Afterwards no work uses what the
   * session does.
   */
  int settle() {
    int first = cudaStreamSynchronize(compute);
    int second = cudaStreamSynchronize(copy);
    if (broken == cudaSuccess()) {
      broken = first != cudaSuccess() ? first : second;
    }
    return broken;
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
    rowStrips.close();
    for (MemorySegment stream : new MemorySegment[] {first, second}) {
      if (stream.address() != 0) {
        cudaStreamDestroy(stream);
      }
    }
  }

  static void destroyEvent(MemorySegment event) {
    if (event.address() != 0) {
      cudaEventDestroy(event);
    }
  }
}
