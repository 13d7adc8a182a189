package dev.kullback;

/**
 * What a {@link KlIndex} holds, and what its searches have done since it was opened or made.
 *
 * @param size the number of Gaussians
 * @param segments the number of segments that hold them
 * @param deleted how many removed or replaced Gaussians are still in segments; merges drop them
 * @param heapBytes about how many bytes of the Java heap the Gaussians take: bits of the deleted ones
 * @param nativeBytes bytes of segments in memory outside the heap, which {@code -XX:MaxDirectMemorySize} limits
 * @param mappedBytes bytes of segments in mapped files, of which the system keeps in memory what is used
 * @param queries how many queries were answered, those of a batch one by one
 * @param survivors how many divergences were computed exactly, as their bounds did not exclude them
 * @param bytesRead how many bytes of segments searches have read at most: of codes, floats and given values
 * @param uncommitted how many Gaussians were added or removed since the last commit, replaced ones counting twice
 * @param failedMerges how many merges of segments failed since the index was opened or made, for want of memory or of room on the disk; the
 *     index is whole, and tries again, but searches are slower while segments are many
 * @since 0.1.0
 */
public record IndexStats(
    long size,
    int segments,
    long deleted,
    long heapBytes,
    long nativeBytes,
    long mappedBytes,
    long queries,
    long survivors,
    long bytesRead,
    long uncommitted,
    long failedMerges) {}
