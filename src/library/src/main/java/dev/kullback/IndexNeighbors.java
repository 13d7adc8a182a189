package dev.kullback;

/**
 * The references that a {@link KlIndex} found for each query, by the ids that they were added under.
 *
 * <p>A divergence is that of exact arithmetic rounded to double, as {@link Query#exact()} describes.
 *
 * @since 0.1.0
 */
public final class IndexNeighbors extends SearchResult {
  private final long[] ids;

  IndexNeighbors(int[] start, long[] ids, double[] values) {
    super(start, values);
    this.ids = ids;
  }

  /** {@return the ids of all rows, as this object's own array} */
  public long[] ids() {
    return ids;
  }

  @Override
  long idAt(int entry) {
    return ids[entry];
  }
}
