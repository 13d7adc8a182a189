package dev.kullback;

/**
 * Figures of a {@link KlIndex} at one time: what it holds, and what its searches have done since it was opened or made.
 *
 * @since 0.1.0
 */
public final class IndexStats {
  private final int segments;
  private final long deleted;
  private final long heapBytes;
  private final long nativeBytes;
  private final long mappedBytes;
  private final long queries;
  private final long survivors;
  private final long bytesRead;
  private final long uncommitted;
  private final long failedMerges;

  @SuppressWarnings("TooManyParameters") // figures of one place
  IndexStats(
      int segments,
      long deleted,
      long heapBytes,
      long nativeBytes,
      long mappedBytes,
      long queries,
      long survivors,
      long bytesRead,
      long uncommitted,
      long failedMerges) {
    this.segments = segments;
    this.deleted = deleted;
    this.heapBytes = heapBytes;
    this.nativeBytes = nativeBytes;
    this.mappedBytes = mappedBytes;
    this.queries = queries;
    this.survivors = survivors;
    this.bytesRead = bytesRead;
    this.uncommitted = uncommitted;
    this.failedMerges = failedMerges;
  }

  /** {@return the number of segments that hold the Gaussians} */
  public int segments() {
    return segments;
  }

  /** {@return how many removed or replaced Gaussians are still in segments; merges drop them} */
  public long deleted() {
    return deleted;
  }

  /** {@return about how many bytes of the Java heap the Gaussians take: bits of the deleted ones} */
  public long heapBytes() {
    return heapBytes;
  }

  /** {@return bytes of segments in memory outside the heap, which {@code -XX:MaxDirectMemorySize} limits} */
  public long nativeBytes() {
    return nativeBytes;
  }

  /** {@return bytes of segments in mapped files, of which the system keeps in memory what is used} */
  public long mappedBytes() {
    return mappedBytes;
  }

  /** {@return how many queries were answered, each query of a batch counted} */
  public long queries() {
    return queries;
  }

  /** {@return how many divergences were computed exactly, as their bounds did not exclude them} */
  public long survivors() {
    return survivors;
  }

  /** {@return how many bytes of segments searches have read at most: of codes, floats and given values} */
  public long bytesRead() {
    return bytesRead;
  }

  /** {@return how many Gaussians were added or removed since the last commit, replaced ones counting twice} */
  public long uncommitted() {
    return uncommitted;
  }

  /**
   * {@return how many merges of segments failed since the index was opened or made, for want of memory or of room on the disk}
   *
   * <p>The index is whole, and tries again, but searches are slower while segments are many.
   */
  public long failedMerges() {
    return failedMerges;
  }

  /** {@return every figure with its name} */
  @Override
  public String toString() {
    return "IndexStats["
        + "segments="
        + segments
        + ", deleted="
        + deleted
        + ", heapBytes="
        + heapBytes
        + ", nativeBytes="
        + nativeBytes
        + ", mappedBytes="
        + mappedBytes
        + ", queries="
        + queries
        + ", survivors="
        + survivors
        + ", bytesRead="
        + bytesRead
        + ", uncommitted="
        + uncommitted
        + ", failedMerges="
        + failedMerges
        + "]";
  }
}
