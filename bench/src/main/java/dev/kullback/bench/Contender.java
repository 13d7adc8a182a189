package dev.kullback.bench;

/** A timed call and the check of its result. */
interface Contender extends AutoCloseable {
  /** The timed part; returns what was computed so that it stays alive. */
  Object call();

  /** Throws unless the last call's result agrees with a double reference. */
  void check();

  /** Returns what the rate counts: the (i, j, h) triples of the matrix. */
  default double terms(Shape shape) {
    return shape.terms();
  }

  @Override
  default void close() {}
}
