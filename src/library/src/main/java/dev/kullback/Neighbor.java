package dev.kullback;

/**
 * A reference that a search found for a query, as {@link SearchResult#row} gives it. Two of the same id and value are equal.
 *
 * @since 0.1.0
 */
public final class Neighbor {
  private final long id;
  private final double value;

  Neighbor(long id, double value) {
    this.id = id;
    this.value = value;
  }

  /** {@return the reference's id: in an index the one that it was added under, in an engine its column} */
  public long id() {
    return id;
  }

  /** {@return the divergence, in nats} */
  public double value() {
    return value;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Neighbor n
        && n.id == id
        && Double.doubleToLongBits(n.value) == Double.doubleToLongBits(value);
  }

  @Override
  public int hashCode() {
    return 31 * Long.hashCode(id) + Double.hashCode(value);
  }

  @Override
  public String toString() {
    return id + ": " + value;
  }
}
