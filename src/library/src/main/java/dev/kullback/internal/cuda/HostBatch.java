package dev.kullback.internal.cuda;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A batch as it is copied to the device.
 *
 * @param owner whom the device's copy is for: it is kept as long as this object lives
 * @param kind one of {@code KULLBACK_STD} … {@code KULLBACK_SCALE_TRIL}
 * @param wide whether the contract is that of double
 * @param mean {@code [N, D]}, float or double as the kind and {@code wide} have it
 * @param scale {@code [N, D]}, or factors packed by rows
 * @param scaleLow the low parts of factors of kind {@code KULLBACK_SCALE_TRIL_PARTS}
 */
public record HostBatch(
    Object owner,
    int size,
    int dimension,
    int kind,
    boolean wide,
    MemorySegment mean,
    MemorySegment scale,
    @Nullable MemorySegment scaleLow) {}
