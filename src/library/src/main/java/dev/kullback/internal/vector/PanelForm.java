package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.work.Worker;
import java.util.function.IntFunction;
import java.util.function.ToIntFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * A form of batches in panels. A batch keeps its own from its second use on; at its first, which may be the last, it is packed into memory
 * of the workspace: fresh memory costs more than packing does, 45 against 30 µs at 100 x 256 (Zen 5).
 */
public final class PanelForm<B extends Batch, A, T> {
  /** Most elements of an array that a workspace holds. */
  private static final int MOST_LENGTH = 1 << 20;

  /** Packs a batch into an array that may be longer than it needs, with vectors or to the same bits without. */
  public interface Packing<B, A, T> {
    T pack(B batch, A array, boolean vectors, Worker worker);
  }

  /** Memory of a workspace for the batches of one operand; grown on demand. */
  public static final class Memory<A> {
    private @Nullable A array;
    private int length;
  }

  private final ToIntFunction<B> length;
  private final IntFunction<A> allocate;
  private final Packing<B, A, T> packing;
  private final DerivedForm<B, T> kept;

  /** Makes a form, kept in a constant, of arrays of this length, whose packed batches take these bytes of heap memory. */
  public PanelForm(
      ToIntFunction<B> length,
      IntFunction<A> allocate,
      Packing<B, A, T> packing,
      ToLongFunction<T> bytes) {
    this.length = length;
    this.allocate = allocate;
    this.packing = packing;
    kept = new DerivedForm<>(batch -> pack(batch, false, new Worker()), bytes);
  }

  private T pack(B batch, boolean vectors, Worker worker) {
    return packing.pack(batch, allocate.apply(length.applyAsInt(batch)), vectors, worker);
  }

  /** Whether the batch keeps the form. */
  public boolean isMade(B batch) {
    return kept.made(batch) != null;
  }

  /** Returns the form that the batch keeps, which this thread makes if nobody has. */
  public T of(B batch, boolean vectors) {
    T made = kept.made(batch);
    return made != null ? made : of(batch, vectors, new Worker());
  }

  /** Returns the form that the batch keeps, which all threads of the worker's call make if nobody has. */
  public T of(B batch, boolean vectors, Worker worker) {
    T made = kept.made(batch);
    return made != null ? made : kept.of(batch, b -> pack(b, vectors, worker));
  }

  /** Packs a batch into memory at its first use, and otherwise returns the form that it keeps. */
  public T of(B batch, boolean isFirstUse, Memory<A> memory, boolean vectors, Worker worker) {
    int needed = length.applyAsInt(batch);
    if (!isFirstUse || needed > MOST_LENGTH) {
      return of(batch, vectors, worker);
    }
    A array = memory.array;
    if (array == null || memory.length < needed) {
      array = allocate.apply(needed);
      memory.array = array;
      memory.length = needed;
    }
    return packing.pack(batch, array, vectors, worker);
  }
}
