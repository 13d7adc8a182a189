package dev.kullback.internal.batch;

import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A batch of Gaussians: checked values, and what was made of them for kernels. Immutable as far as anybody can tell. */
public abstract sealed class Batch permits DiagonalBatch, FullBatch {
  /** Columns of the widest panel; a packed batch must fit a Java array. */
  public static final int WIDEST_PANEL = 32;

  private static final Kept<?, ?>[] NONE = {};

  private final int size;
  private final int dimension;
  private final boolean isDouble;
  private final AtomicBoolean used = new AtomicBoolean();

  /** Few, so that looking through them is the fastest; replaced, never changed. */
  private volatile Kept<?, ?>[] kept = NONE;

  private record Kept<B extends Batch, T>(DerivedForm<B, T> form, Lazy<B, T> value) {
    long bytes() {
      return value.bytes(form.bytes());
    }
  }

  Batch(int size, int dimension, boolean isDouble) {
    this.size = size;
    this.dimension = dimension;
    this.isDouble = isDouble;
  }

  /** N. */
  public final int size() {
    return size;
  }

  /** D. */
  public final int dimension() {
    return dimension;
  }

  /** Whether it was made of doubles: decides the accuracy contract. */
  public final boolean isDouble() {
    return isDouble;
  }

  /** Whether σ = 0 throughout, and the caller asked for KL = 0 then. */
  public abstract boolean isDeterministic();

  /** {@code ln det L_i = Σ_h ln σ_ih}. */
  public abstract double logDet(int i);

  /** Whether it can be written out as full factors: {@link #full}. */
  public abstract boolean isExpandable();

  /** A diagonal batch as one of diagonal factors; a full one as it is. */
  public abstract FullBatch full();

  /** Bytes of the values. */
  abstract long valueBytes();

  /** Bytes on the heap, of the values and all that was made of them. */
  public final long memoryBytes() {
    return valueBytes() + Arrays.stream(kept).mapToLong(Kept::bytes).sum();
  }

  /** Makes what plain kernels need; those with vectors have more. */
  public void prepare() {
    used.set(true); // so that calls look for what is kept
  }

  /** Whether nobody asked before: a batch used once need not keep its panels. */
  public final boolean isFirstUse() {
    return !used.get() && used.compareAndSet(false, true);
  }

  /** What a KL that is computed by itself counts at a {@link Checkpoint}. */
  public static long terms(Batch q, Batch p) {
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch
        ? (long) Checkpoint.PLAIN * q.dimension
        : Checkpoint.ofSolve(q.dimension);
  }

  final <B extends Batch, T> Lazy<B, T> kept(DerivedForm<B, T> form) {
    Lazy<B, T> value = find(form);
    return value != null ? value : keep(form);
  }

  @SuppressWarnings("unchecked") // the form's types are the entry's
  private <B extends Batch, T> @Nullable Lazy<B, T> find(DerivedForm<B, T> form) {
    for (Kept<?, ?> entry : kept) {
      if (entry.form == form) {
        return (Lazy<B, T>) entry.value;
      }
    }
    return null;
  }

  private synchronized <B extends Batch, T> Lazy<B, T> keep(DerivedForm<B, T> form) {
    Lazy<B, T> value = find(form);
    if (value == null) {
      value = new Lazy<>();
      Kept<?, ?>[] more = Arrays.copyOf(kept, kept.length + 1);
      more[kept.length] = new Kept<>(form, value);
      kept = more;
    }
    return value;
  }
}
