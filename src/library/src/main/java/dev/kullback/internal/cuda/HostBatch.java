package dev.kullback.internal.cuda;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.cuda.abi.KullbackCuda;
import java.lang.foreign.MemorySegment;

/**
 * Arrays of a batch that are copied to the device.
 *
 * @param owner the batch: the device's copy is kept as long as this object lives
 * @param kind one of {@code KULLBACK_STD} … {@code KULLBACK_SCALE_TRIL}
 * @param wide whether results are to be as accurate as of double
 * @param mean {@code [N, D]}, float or double as the kind and {@code wide} have it
 * @param scale {@code [N, D]}, or factors packed by rows
 * @param scaleLow low parts of factors of kind {@code KULLBACK_SCALE_TRIL_PARTS}, else empty
 */
public record HostBatch(
    Object owner,
    int size,
    int dimension,
    int kind,
    boolean wide,
    MemorySegment mean,
    MemorySegment scale,
    MemorySegment scaleLow) {
  private static final MemorySegment NONE = MemorySegment.ofArray(new byte[0]);

  public static HostBatch of(Batch batch) {
    return switch (batch) {
      case DiagonalBatch d -> of(d);
      case FullBatch f -> of(f);
    };
  }

  private static HostBatch of(DiagonalBatch batch) {
    int code =
        switch (batch.kind()) {
          case STD -> KullbackCuda.KULLBACK_STD();
          case VARIANCE -> KullbackCuda.KULLBACK_VARIANCE();
          case LOG_VARIANCE -> KullbackCuda.KULLBACK_LOG_VARIANCE();
          case PRECISION -> KullbackCuda.KULLBACK_PRECISION();
        };
    boolean wide = batch.isDouble();
    return new HostBatch(
        batch,
        batch.size(),
        batch.dimension(),
        code,
        wide,
        wide ? MemorySegment.ofArray(batch.mean64()) : MemorySegment.ofArray(batch.mean32()),
        wide ? MemorySegment.ofArray(batch.scale64()) : MemorySegment.ofArray(batch.scale32()),
        NONE);
  }

  private static HostBatch of(FullBatch batch) {
    double[] low = batch.scaleTrilLow();
    return new HostBatch(
        batch,
        batch.size(),
        batch.dimension(),
        low == null ? KullbackCuda.KULLBACK_SCALE_TRIL() : KullbackCuda.KULLBACK_SCALE_TRIL_PARTS(),
        batch.isDouble(),
        MemorySegment.ofArray(batch.mean()),
        MemorySegment.ofArray(batch.scaleTril()),
        low == null ? NONE : MemorySegment.ofArray(low));
  }
}
