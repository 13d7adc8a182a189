package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.CudaLibrary.check;
import static dev.kullback.internal.cuda.abi.CudaRuntime.*;
import static dev.kullback.internal.cuda.abi.KullbackCuda.*;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.cuda.abi.kullback_cuda_batch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A batch in device memory, uploaded and prepared by the first call that needs it. */
final class Resident extends WeakReference<Batch> {
  /** The structure {@code kullback_cuda_batch}. */
  final MemorySegment descriptor;

  private final CudaDevice device;

  /** Memory of the batch, empty before its upload. */
  private DeviceMemory memory;

  /** Event that passes when the batch is ready; null before it was uploaded. */
  private @Nullable MemorySegment ready;

  /** Calls that use it now. Guarded by the device. */
  int users;

  /** The two batches of a call; {@code same} if they are one, whose diagonal is zero. */
  record Pair(Resident q, Resident p, boolean same) {}

  Resident(Batch batch, CudaDevice device, ReferenceQueue<Batch> unreachable) {
    super(batch, unreachable);
    this.device = device;
    memory = DeviceMemory.device(device::spare);
    descriptor = kullback_cuda_batch.allocate(Arena.ofAuto());
    kullback_cuda_batch.size(descriptor, batch.size());
    kullback_cuda_batch.dimension(descriptor, batch.dimension());
    kullback_cuda_batch.kind(descriptor, kind(batch));
    kullback_cuda_batch.wide(descriptor, batch.isDouble() ? 1 : 0);
  }

  /** Has the session's later work wait until the batch is on the device, and brings it there if nobody has. */
  synchronized void require(Batch batch, Session session) {
    if (ready != null) {
      Session.order(session.compute, ready);
      return;
    }
    MemorySegment event = null;
    try {
      upload(batch, session);
      event = Session.newEvent();
      Session.record(event, session.compute);
      ready = event;
    } finally {
      if (ready == null) { // what was queued is not to run into the next attempt
        session.drain();
        if (event != null) {
          cudaEventDestroy(event);
        }
      }
    }
  }

  private void upload(Batch batch, Session session) {
    long bytes = kullback_cuda_batch_bytes(descriptor);
    if (bytes < 0) {
      throw new IllegalArgumentException(
          "%d Gaussians of dimension %d are too many, or of too many dimensions, for the CUDA backend"
              .formatted(batch.size(), batch.dimension()));
    }
    if (memory.size() == 0) {
      memory = device.memory(bytes);
    }
    MemorySegment data = memory.get(bytes);
    kullback_cuda_batch.data(descriptor, data);
    MemorySegment[] arrays = arrays(batch);
    long scale = kullback_cuda_scale_offset(descriptor);
    long low = scale + arrays[1].byteSize();
    session.upload(data, low + arrays[2].byteSize(), new long[] {0, scale, low}, arrays);
    check("kullback_cuda_prepare", kullback_cuda_prepare(descriptor, session.compute));
  }

  private static int kind(Batch batch) {
    return switch (batch) {
      case LowRankBatch _ -> throw LowRankBatch.refused("a batch", "a CUDA device");
      case FullBatch full when full.scaleTrilLow() == null -> KULLBACK_SCALE_TRIL();
      case FullBatch full -> KULLBACK_SCALE_TRIL_PARTS();
      case DiagonalBatch diagonal ->
          switch (diagonal.kind()) {
            case STD -> KULLBACK_STD();
            case VARIANCE -> KULLBACK_VARIANCE();
            case LOG_VARIANCE -> KULLBACK_LOG_VARIANCE();
            case PRECISION -> KULLBACK_PRECISION();
          };
    };
  }

  /** Returns means, scales or packed factors, and the low parts of factors. */
  private static MemorySegment[] arrays(Batch batch) {
    double[] none = {};
    return switch (batch) {
      case LowRankBatch _ -> throw new AssertionError("refused");
      case FullBatch full ->
          arrays(
              full.mean(),
              full.allFactors(full.scaleTril()),
              full.allFactors(Objects.requireNonNullElse(full.scaleTrilLow(), none)));
      case DiagonalBatch wide when wide.isDouble() ->
          arrays(wide.mean64(), wide.allScales64(), none);
      case DiagonalBatch narrow ->
          new MemorySegment[] {
            MemorySegment.ofArray(narrow.mean32()),
            MemorySegment.ofArray(narrow.allScales32()),
            MemorySegment.ofArray(none)
          };
    };
  }

  private static MemorySegment[] arrays(double[]... arrays) {
    return Arrays.stream(arrays).map(MemorySegment::ofArray).toArray(MemorySegment[]::new);
  }

  /** Hands over the batch's memory, when nobody uses it any more and what used it has passed on the device. */
  synchronized DeviceMemory free() {
    if (ready != null) {
      cudaEventDestroy(ready);
      ready = null;
    }
    return memory;
  }
}
