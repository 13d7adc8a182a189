package dev.kullback.internal.kernel;

import dev.kullback.internal.batch.Batch;
import java.util.function.Consumer;

/** Computes rectangular blocks of a call's matrix. Used by one thread, whose working memory is all that it keeps. */
public interface BlockKernel<O extends Operands<?>> {
  /** Most rows of a block, but for a device: its blocks have any number, and are computed the faster the more they have. */
  int MOST_ROWS = 64;

  /** The first row of a block is a multiple of this, but for blocks of a device. */
  int ROW_PANEL = 8;

  /**
   * Stores {@code KL(q_i ‖ p_j)} for rows [row0, row1) and columns [column0, column1). The first row is a multiple of {@link #ROW_PANEL}
   * on the host, the first column one of {@link Batch#WIDEST_PANEL}.
   */
  void block(O operands, int row0, int row1, int column0, int column1, BlockTarget out);

  /** Computes the whole matrix at once, if it does so instead of by blocks. */
  default boolean matrix(O operands, Results out) {
    return false;
  }

  /** Answers for all rows, or if {@code transposed} all columns as rows, by strips on this thread, if it goes through rows itself. */
  default boolean answer(
      O operands, RowQuery query, boolean transposed, Consumer<RowAnswer> consumer) {
    return false;
  }

  /** Lets go of a call's batches and arrays. */
  default void clear() {}
}
