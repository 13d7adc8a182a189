package dev.kullback.internal.kernel;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The batches of a call, with the forms of them that its kernels read. The thread that makes the call packs them before the blocks are
 * shared, and every thread of the call reads them. Operands serve the next call, too, so that none allocates.
 */
public class Operands<G extends Batch> {
  private @Nullable G q;
  private @Nullable G p;

  /** Takes the batches of a call and makes what its kernels read: with vectors, or to the same bits without. */
  @SuppressWarnings("unchecked") // the table of kernels says which batches are for which operands
  public void pack(Batch q, Batch p, boolean vectors, Worker worker) {
    hold((G) q, (G) p);
  }

  /** Makes the forms of a batch that every call reads, for the batch to keep; not those that only some entries are computed again from. */
  public void prepare(Batch batch, boolean vectors) {}

  protected final void hold(G q, G p) {
    this.q = q;
    this.p = p;
  }

  public void clear() {
    q = null;
    p = null;
  }

  public final G q() {
    return Objects.requireNonNull(q);
  }

  public final G p() {
    return Objects.requireNonNull(p);
  }
}
