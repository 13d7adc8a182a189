package dev.kullback.internal.kernel;

import dev.kullback.internal.batch.Batch;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The batches of a call, with the forms of them that its kernels read. The thread that makes the call fills it before the blocks are
 * shared, and every thread of the call reads it. It serves the next call, too, so that none allocates.
 */
public class Operands<G extends Batch> {
  /** Kinds of kernels; a thread that helps with a call uses its own kernel of the call's kind. */
  public enum Kind {
    /** KL = 0 throughout. */
    ZERO,
    /** Any pairs, without vectors. */
    SCALAR,
    /** Diagonal pairs of few dimensions. */
    SMALL,
    /** Diagonal batches of float, in tiles. */
    FLOAT,
    /** Diagonal batches of which one is of double, in tiles. */
    DOUBLE,
    /** Full covariances, as a matrix product. */
    FULL,
    /** Chernoff's divergence of full covariances, by a factorization a pair. */
    FULL_CHERNOFF,
    /** Jeffreys' divergence of full covariances, as two matrix products. */
    FULL_JEFFREYS,
    /** Whatever the device computes. */
    DEVICE,
    /** Diagonal pairs, in tiles, of a measure other than KL. */
    MEASURE
  }

  private Kind kind = Kind.ZERO;
  private @Nullable G q;
  private @Nullable G p;

  public final void set(Kind kind, G q, G p) {
    this.kind = kind;
    this.q = q;
    this.p = p;
  }

  public void clear() {
    q = null;
    p = null;
  }

  public final Kind kind() {
    return kind;
  }

  public final G q() {
    return Objects.requireNonNull(q);
  }

  public final G p() {
    return Objects.requireNonNull(p);
  }
}
