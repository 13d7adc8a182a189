package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.CudaLibrary.check;
import static dev.kullback.internal.cuda.abi.CudaRuntime.*;
import static dev.kullback.internal.cuda.abi.KullbackCuda.*;

import dev.kullback.internal.work.Worker;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.ToIntFunction;

/**
 * Streams and memory of one call at a time: a stream that computes, one that copies, two strips of the result on the device and two
 * pinned ones on the host, so that a strip is computed, another copied off the device, and a third handed to the caller at
 * once. One thread at a time uses it; memory grows on demand and stays for the next call.
 */
final class Session implements AutoCloseable {
  /** Bytes of a strip: some 0.3 ms of a PCIe 4.0 x16 link, and a matrix of a few thousand rows is several. Not tuned on a device. */
  private static final long STRIP = 8 << 20;

  /** Bytes up to which a copy goes on the stream that computes: calls of the runtime, some µs each, then take longer than the bytes. */
  private static final long SMALL = 1 << 20;

  /** Most columns of a strip, so that it has 64 rows of float at least. */
  private static final long WIDEST = 1 << 15;

  /** Bytes that a thread copies at once: some 0.1 ms. */
  private static final long COPY = 1 << 20;

  /** Rows are taken in multiples of a kernel's tile. */
  static final int TILE = 128;

  /** Copies with the calling thread alone. */
  static final Worker ALONE = new Worker();

  /** Frees device memory that can be spared. */
  private final BooleanSupplier spare;

  /** Destroys what the session has made. */
  private final List<Runnable> destroyers = new ArrayList<>();

  final MemorySegment compute;
  final MemorySegment copy;

  /** Events of each strip: the kernels that fill it have passed; the copy off or onto the device has. */
  private final MemorySegment[] computed;

  private final MemorySegment[] copied;
  private final DeviceMemory[] strips;
  private final DeviceMemory[] staging;
  private final DeviceMemory scratch;

  /** Answers row queries with this session's streams. */
  final RowStrips rowStrips;

  private int next;

  /** First status of {@link #drain} that is not success. */
  private int broken = cudaSuccess();

  /** A rectangle of the matrix. */
  record Region(long row0, long rows, long column0, long columns) {}

  /** Opens all or nothing. */
  Session(BooleanSupplier spare) {
    this.spare = spare;
    try {
      scratch = onDevice();
      strips = new DeviceMemory[] {onDevice(), onDevice()};
      staging = new DeviceMemory[] {onHost(), onHost()};
      compute = stream();
      copy = stream();
      computed = new MemorySegment[] {event(), event()};
      copied = new MemorySegment[] {event(), event()};
      rowStrips = new RowStrips(this);
    } catch (Throwable e) {
      destroy();
      throw e;
    }
  }

  /** Makes a block of device memory, which ends with the session. */
  DeviceMemory onDevice() {
    return kept(DeviceMemory.device(spare));
  }

  /** Makes a block of pinned memory, which ends with the session. */
  DeviceMemory onHost() {
    return kept(DeviceMemory.pinned());
  }

  private DeviceMemory kept(DeviceMemory memory) {
    destroyers.add(memory::close);
    return memory;
  }

  /** Makes an event, which ends with the session. */
  MemorySegment event() {
    MemorySegment event = newEvent();
    destroyers.add(() -> cudaEventDestroy(event));
    return event;
  }

  private MemorySegment stream() {
    MemorySegment stream =
        create(
            "cudaStreamCreateWithFlags",
            pointer -> cudaStreamCreateWithFlags(pointer, cudaStreamNonBlocking()));
    destroyers.add(() -> cudaStreamDestroy(stream));
    return stream;
  }

  /** Makes an event whose waiters sleep: spinning takes a processor that other threads could use. */
  static MemorySegment newEvent() {
    int flags = cudaEventDisableTiming() | cudaEventBlockingSync();
    return create("cudaEventCreateWithFlags", pointer -> cudaEventCreateWithFlags(pointer, flags));
  }

  private static MemorySegment create(String call, ToIntFunction<MemorySegment> create) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocate(ValueLayout.ADDRESS);
      check(call, create.applyAsInt(pointer));
      return pointer.get(ValueLayout.ADDRESS, 0);
    }
  }

  /** Whether the device failed for good in this session. */
  boolean isBroken() {
    return broken != cudaSuccess();
  }

  /** Has the event pass when the work that is queued on the stream has. */
  static void record(MemorySegment event, MemorySegment stream) {
    check("cudaEventRecord", cudaEventRecord(event, stream));
  }

  /** Has work that is queued on the stream from now on wait for the event. */
  static void order(MemorySegment stream, MemorySegment event) {
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, event, 0));
  }

  /** Has this thread wait for the event. */
  static void await(MemorySegment event) {
    check("cudaEventSynchronize", cudaEventSynchronize(event));
  }

  /** Queues a copy between pinned memory and the device, in the direction of the kind. */
  static void queueCopy(
      MemorySegment to, MemorySegment from, long bytes, int kind, MemorySegment stream) {
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, kind, stream));
  }

  /**
   * Brings arrays to their offsets in {@code to}, before what is computed from now on: small ones with one copy.
   *
   * @param bytes up to the end of the last array
   */
  void upload(MemorySegment to, long bytes, long[] offsets, MemorySegment... arrays) {
    if (bytes > SMALL) {
      for (int k = 0; k < arrays.length; k++) {
        upload(arrays[k], to, offsets[k]);
      }
      order(compute, copied[next ^ 1]);
      return;
    }
    int b = takeStaging();
    MemorySegment block = pinned(b, bytes);
    for (int k = 0; k < arrays.length; k++) {
      MemorySegment.copy(arrays[k], 0, block, offsets[k], arrays[k].byteSize());
    }
    queueCopy(to, block, bytes, cudaMemcpyHostToDevice(), compute);
    record(copied[b], compute);
  }

  /** Copies host memory to {@code to + offset}, through the pinned blocks in turn. */
  void upload(MemorySegment from, MemorySegment to, long offset) {
    for (long at = 0; at < from.byteSize(); at += STRIP) {
      long bytes = Math.min(STRIP, from.byteSize() - at);
      int b = takeStaging();
      MemorySegment block = pinned(b, bytes);
      MemorySegment.copy(from, at, block, 0, bytes);
      queueCopy(to.asSlice(offset + at, bytes), block, bytes, cudaMemcpyHostToDevice(), copy);
      record(copied[b], copy);
    }
  }

  /** Waits until the next pinned block is free, and returns its number. */
  private int takeStaging() {
    int b = next;
    next ^= 1;
    await(copied[b]);
    return b;
  }

  /** A pinned block of a size that small copies, which do not wait for what uses it, need not enlarge. */
  private MemorySegment pinned(int b, long bytes) {
    return staging[b].get(Math.max(bytes, SMALL));
  }

  /**
   * Computes a region, whose rows follow one another in {@code out}, strip by strip: by way of pinned memory, from which the worker's
   * threads copy, or where {@code out} is native memory that is pinned, or can be, without.
   */
  void pairwise(Resident.Pair batches, Region region, MemorySegment out, int width, Worker worker) {
    long bytes = region.rows() * region.columns() * width;
    if (bytes <= SMALL) {
      MemorySegment result = strips[0].get(bytes);
      MemorySegment work = work(batches, region.rows(), region.columns());
      compute(batches, region, result, width, false, work);
      collect(result, bytes, out);
      return;
    }
    try (PinnedSegment direct = PinnedSegment.of(out, bytes, this)) {
      Strips cut = Strips.of(region, width, direct == null ? STRIP : rowStrips.partBytes);
      MemorySegment work = work(batches, cut.rows, cut.columns);
      int behind = direct == null ? 2 : 1;
      for (long s = 0; s < cut.count() + behind; s++) {
        int b = (int) (s & 1);
        if (direct == null && s >= 2) { // the strip before the last, while the last is computed
          await(copied[b]);
          deliver(staging[b].get(0), out, cut, cut.strip(s - 2), worker);
        }
        if (s < cut.count()) {
          MemorySegment strip = strips[b].get(cut.rows * cut.columns * width);
          compute(batches, cut.strip(s), strip, width, false, work);
          if (direct == null) {
            download(strip, cut.bytes(cut.strip(s)), b);
          } else {
            record(computed[b], compute);
          }
        }
        if (direct != null && s >= 1) { // the last strip, while this one is computed
          store(b ^ 1, cut, cut.strip(s - 1), out, worker);
        }
      }
    }
  }

  /**
   * Queues a region, in doubles without gaps, to device memory that the last {@link #fetch} with the same b has left; what is
   * queued on {@link #copy} from now on waits for it.
   */
  void compute(Resident.Pair batches, Region region, boolean transposed, MemorySegment out, int b) {
    MemorySegment work = work(batches, region.rows(), region.columns());
    order(compute, copied[b]);
    compute(batches, region, out, Double.BYTES, transposed, work);
    copyAfter(b);
  }

  /** Queues a region, without gaps. */
  private void compute(
      Resident.Pair batches,
      Region region,
      MemorySegment out,
      int width,
      boolean transposed,
      MemorySegment work) {
    check(
        "kullback_cuda_pairwise",
        kullback_cuda_pairwise(
            batches.q().descriptor,
            batches.p().descriptor,
            region.row0(),
            region.rows(),
            region.column0(),
            region.columns(),
            batches.same() ? 1 : 0,
            out,
            transposed ? region.rows() : region.columns(),
            width == Double.BYTES ? 1 : 0,
            transposed ? 1 : 0,
            work,
            compute));
  }

  /** Has copies that are queued from now on wait for what is queued to be computed. */
  private void copyAfter(int b) {
    record(computed[b], compute);
    order(copy, computed[b]);
  }

  /** Queues a copy to pinned memory, on {@link #copy}. */
  void fetch(MemorySegment from, MemorySegment to, long bytes, int b) {
    queueCopy(to, from, bytes, cudaMemcpyDeviceToHost(), copy);
    record(copied[b], copy);
  }

  /** Computes KL(q_i ‖ p_i) of n pairs. */
  void aligned(Resident.Pair batches, long n, MemorySegment out, int width) {
    MemorySegment work = work(batches, n, 1);
    MemorySegment result = strips[0].get(n * width);
    check(
        "kullback_cuda_aligned",
        kullback_cuda_aligned(
            batches.q().descriptor,
            batches.p().descriptor,
            batches.same() ? 1 : 0,
            result,
            width == Double.BYTES ? 1 : 0,
            work,
            compute));
    collect(result, n * width, out);
  }

  /** Computes KL(q_i ‖ N(0, I)) of n Gaussians. */
  void standard(Resident q, long n, MemorySegment out, int width) {
    MemorySegment result = strips[0].get(n * width);
    check(
        "kullback_cuda_standard",
        kullback_cuda_standard(q.descriptor, result, width == Double.BYTES ? 1 : 0, compute));
    collect(result, n * width, out);
  }

  private MemorySegment work(Resident.Pair batches, long rows, long columns) {
    long bytes =
        kullback_cuda_scratch_bytes(batches.q().descriptor, batches.p().descriptor, rows, columns);
    if (bytes < 0) {
      throw new IllegalStateException("kullback_cuda_scratch_bytes: an argument is invalid");
    }
    return bytes == 0 ? MemorySegment.NULL : scratch.get(bytes);
  }

  /** Copies a strip to its pinned block when it has been computed. */
  private void download(MemorySegment strip, long bytes, int b) {
    // what used the pinned block last, an upload perhaps, is to be done with it before it may grow
    await(copied[b]);
    copyAfter(b);
    fetch(strip, pinned(b, bytes), bytes, b);
    next = b ^ 1;
  }

  /** Copies a result that is whole on the device to the caller: a small one at once, else in pieces. */
  private void collect(MemorySegment result, long bytes, MemorySegment out) {
    if (bytes <= SMALL) {
      MemorySegment block = pinned(0, bytes); // uploads from there come first on the stream
      queueCopy(block, result, bytes, cudaMemcpyDeviceToHost(), compute);
      check("cudaStreamSynchronize", cudaStreamSynchronize(compute));
      MemorySegment.copy(block, 0, out, 0, bytes);
      return;
    }
    for (long at = 0; at < bytes; at += STRIP) {
      long piece = Math.min(STRIP, bytes - at);
      download(result.asSlice(at, piece), piece, 0);
      await(copied[0]);
      MemorySegment.copy(staging[0].get(0), 0, out, at, piece);
    }
  }

  /** Copies rows, of a strip or of a part of one, from pinned memory to {@code out}. */
  private static void deliver(
      MemorySegment block, MemorySegment out, Strips cut, Region rows, Worker worker) {
    long line = rows.columns() * cut.width;
    int lines = (int) Math.clamp(COPY / line, 1, rows.rows());
    worker.share(
        (int) Math.ceilDiv(rows.rows(), lines),
        part -> {
          long from = (long) part * lines;
          long to = Math.min(from + lines, rows.rows());
          if (rows.columns() == cut.region.columns()) {
            MemorySegment.copy(block, from * line, out, cut.offset(rows, from), (to - from) * line);
            return;
          }
          for (long i = from; i < to; i++) {
            MemorySegment.copy(block, i * line, out, cut.offset(rows, i), line);
          }
        });
  }

  /** Waits for strip b, which was queued, and has the device write it to {@code out}, which stays open meanwhile. */
  private void store(int b, Strips cut, Region rows, MemorySegment out, Worker worker) {
    long line = rows.columns() * cut.width;
    MemorySegment strip = strips[b].get(0);
    MemorySegment to = out.asSlice(cut.offset(rows, 0));
    order(copy, computed[b]);
    int status =
        kullback_cuda_download(
            to, cut.region.columns() * cut.width, strip, line, line, rows.rows(), copy);
    if (status != cudaErrorInvalidValue()) {
      check("kullback_cuda_download", status);
      return;
    }
    // Memory pinned in part has this status: it is written in pieces, by way of pinned memory.
    long most = Math.max(1, SMALL / line);
    for (long i = 0; i < rows.rows(); i += most) {
      Region piece =
          new Region(
              rows.row0() + i, Math.min(most, rows.rows() - i), rows.column0(), rows.columns());
      download(strip.asSlice(i * line, cut.bytes(piece)), cut.bytes(piece), b);
      await(copied[b]);
      deliver(staging[b].get(0), out, cut, piece, worker);
    }
  }

  /**
   * A region of elements of {@code width} bytes, cut into strips.
   *
   * @param rows of a strip at most
   * @param columns of a strip at most
   */
  private record Strips(Region region, int width, long rows, long columns) {
    static Strips of(Region region, int width, long strip) {
      long m = region.columns();
      long columns = Math.ceilDiv(m, Math.ceilDiv(m, WIDEST));
      long most = Math.max(1, strip / (columns * width));
      long rows = Math.min(region.rows(), most > TILE ? most / TILE * TILE : most);
      return new Strips(region, width, rows, columns);
    }

    private long across() {
      return Math.ceilDiv(region.columns(), columns);
    }

    long count() {
      return Math.ceilDiv(region.rows(), rows) * across();
    }

    Region strip(long s) {
      long row = s / across() * rows;
      long column = s % across() * columns;
      return new Region(
          region.row0() + row,
          Math.min(rows, region.rows() - row),
          region.column0() + column,
          Math.min(columns, region.columns() - column));
    }

    long bytes(Region strip) {
      return strip.rows() * strip.columns() * width;
    }

    /** Offset of row i of a strip in the output. */
    long offset(Region strip, long i) {
      long row = strip.row0() - region.row0() + i;
      return (row * region.columns() + strip.column0() - region.column0()) * width;
    }
  }

  /**
   * Waits for what is queued and returns the first status that is not success, of this time or an earlier one. Afterwards no work uses
   * what the session does.
   */
  int drain() {
    int first = cudaStreamSynchronize(compute);
    int second = cudaStreamSynchronize(copy);
    if (broken == cudaSuccess()) {
      broken = first != cudaSuccess() ? first : second;
    }
    return broken;
  }

  @Override
  public void close() {
    drain();
    destroy();
  }

  private void destroy() {
    destroyers.forEach(Runnable::run);
  }
}
