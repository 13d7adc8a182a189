package dev.kullback;

import java.time.Duration;

/**
 * Figures of a {@link KlIndex} at one time: what it holds, and what it has done since it was opened or made.
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
  private final Duration searchTime;
  private final long commits;
  private final Duration commitTime;
  private final Duration lastCommitTime;
  private final long merges;
  private final Duration mergeTime;
  private final long refreshes;

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
      long failedMerges,
      Duration searchTime,
      long commits,
      Duration commitTime,
      Duration lastCommitTime,
      long merges,
      Duration mergeTime,
      long refreshes) {
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
    this.searchTime = searchTime;
    this.commits = commits;
    this.commitTime = commitTime;
    this.lastCommitTime = lastCommitTime;
    this.merges = merges;
    this.mergeTime = mergeTime;
    this.refreshes = refreshes;
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

  /**
   * {@return the time of all searches together, of which several may have run at once; {@link #queries} were answered in it}
   *
   * <p>Searches that failed, such as those that were interrupted, count here and in {@link #survivors} and {@link #bytesRead}, but not in
   * {@link #queries}. What gathered queries wait for each other is not in it; see {@link KlIndex.Builder#batchQueries}.
   */
  public Duration searchTime() {
    return searchTime;
  }

  /** {@return how many commits have written something} */
  public long commits() {
    return commits;
  }

  /** {@return the time of these commits together} */
  public Duration commitTime() {
    return commitTime;
  }

  /** {@return how long the last of these commits took; 0 if there was none} */
  public Duration lastCommitTime() {
    return lastCommitTime;
  }

  /** {@return how many times segments were merged into one} */
  public long merges() {
    return merges;
  }

  /** {@return the time of these merges together, whether a thread of the index made them or one that changed or committed it} */
  public Duration mergeTime() {
    return mergeTime;
  }

  /** {@return how many times {@link KlIndex#refresh} found a new commit} */
  public long refreshes() {
    return refreshes;
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
        + ", searchTime="
        + searchTime
        + ", commits="
        + commits
        + ", commitTime="
        + commitTime
        + ", lastCommitTime="
        + lastCommitTime
        + ", merges="
        + merges
        + ", mergeTime="
        + mergeTime
        + ", refreshes="
        + refreshes
        + "]";
  }
}
