package dev.kullback.internal.kernel;

import dev.kullback.internal.batch.Batch;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Computes rectangular blocks of a call's matrix. One thread's, with the working memory that it needs; the threads of a call have one
 * each, of one class.
 */
public abstract class BlockKernel<G extends Batch> {
  /** Rows of a block at most, but for a kernel that {@link #wantsLargeBlocks}. */
  public static final int MOST_ROWS = 64;

  /** What the starts of rows are multiples of. */
  public static final int ROW_PANEL = 8;

  private @Nullable G q;
  private @Nullable G p;

  /** Begins a call, on its caller's thread: makes what blocks read of the batches. */
  public final void begin(G q, G p) {
    this.q = q;
    this.p = p;
    prepare(q, p);
  }

  /** Helps with a call that another kernel, of the same class, began on its caller's thread. */
  @SuppressWarnings("unchecked") // of the same class
  public void join(BlockKernel<?> lead) {
    q = (G) lead.q;
    p = (G) lead.p;
  }

  /** Lets go of the batches. */
  public void end() {
    q = null;
    p = null;
  }

  /** What {@link #begin} makes. */
  protected void prepare(G q, G p) {}

  /**
   * {@code KL(q_i ‖ p_j)} for rows [row0, row1) and columns [column0, column1). The first row is a multiple of {@link #ROW_PANEL}, the
   * first column one of {@link Batch#WIDEST_PANEL}.
   */
  public abstract void block(int row0, int row1, int column0, int column1, BlockTarget out);

  /** Computes the whole matrix at once, if it does so instead of by blocks. */
  public boolean matrix(Results out) {
    return false;
  }

  /**
   * Answers for all rows, or with {@code transposed} for all columns as rows, a strip of them at a time on this thread, if it goes
   * through rows itself.
   */
  public boolean answer(RowQuery query, boolean transposed, Consumer<RowAnswer> consumer) {
    return false;
  }

  /** Whether blocks may have any number of rows, and are computed the faster the more they have. */
  public boolean wantsLargeBlocks() {
    return false;
  }

  public final G q() {
    return Objects.requireNonNull(q);
  }

  public final G p() {
    return Objects.requireNonNull(p);
  }
}
