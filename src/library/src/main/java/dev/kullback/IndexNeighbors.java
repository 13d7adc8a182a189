package dev.kullback;

import dev.kullback.internal.index.search.NeighborIds;
import java.util.Objects;

/**
 * The references that a {@link KlIndex} found for each query, by the ids that they were added under.
 *
 * <p>A divergence is that of exact arithmetic rounded to double, as {@link Query#exact()} describes, also in a row that is not
 * {@linkplain #isComplete complete}: one whose search ended before it had found all, by its {@link Query#timeout} or {@link Query#approximate}. Such a
 * row has what was found, in its order, and {@link #provenUpTo} tells how near the references that it lacks can be.
 *
 * @since 0.1.0
 */
public final class IndexNeighbors extends SearchResult {
  private final NeighborIds found;

  IndexNeighbors(NeighborIds found) {
    super(found.start(), found.values());
    this.found = found;
  }

  /** {@return the ids of all rows, as this object's own array} */
  public long[] ids() {
    return found.ids();
  }

  /**
   * {@return whether row i is all that its query asks for: the k nearest references, or all within the radius} A search without
   * {@link Query#timeout} and {@link Query#approximate} finds all.
   *
   * @param i the row, in [0, N)
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public boolean isComplete(int i) {
    return found.isComplete()[Objects.checkIndex(i, size())];
  }

  /**
   * {@return a number x, in nats, for which it is certain that each reference that is not in row i has a divergence of at least x, or for points what
   * they rank by} References that the
   * query's filter or ids leave out do not count.
   *
   * <p>Of a complete row, x is the k-th value, or the radius, or +∞ if all references of the index are in the row. Of another one, it is the least lower bound of the
   * references that were left, whose rounding is counted, or the last value of k if that is less; 0, or by density the least negative log-density that there can be, where the search had not gone over all references. Entries
   * of a row of the nearest that are less than x are the nearest ones of all.
   *
   * @param i the row, in [0, N)
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public double provenUpTo(int i) {
    return found.proven()[Objects.checkIndex(i, size())];
  }

  @Override
  long idAt(int entry) {
    return found.ids()[entry];
  }
}
