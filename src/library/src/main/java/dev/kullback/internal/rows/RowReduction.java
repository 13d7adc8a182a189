package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import org.jspecify.annotations.Nullable;

/**
 * Reduces the matrix's rows while its blocks are in the cache, so that the matrix is not stored. The blocks of a band of rows come in the
 * order of their columns. Where there are at most half as many bands as threads, a band's columns may be cut into spans of whole blocks.
 * {@link #begin}, {@link #block} and {@link #end} are then called for a span, and {@link #merge} makes of the spans what the whole band
 * would give, to the bit, so that no result depends on the number of threads. The threads of a call share the reduction; the state of a
 * band is in the {@link BandState}.
 */
public abstract class RowReduction {
  /**
   * Rows of a block, which has 1 MiB of doubles. The fewer blocks a row has, the fewer of its entries become candidates before the search
   * has its bound: nearest(k = 10) of 8192 x 8192 x 32 takes 1.24 times as long as pairwise, with blocks of 64 x 2048 1.29 times; with k =
   * 100 2.4 and 2.9 times. At D = 256 and 512 they are level (Zen 5).
   */
  public static final int BLOCK_ROWS = 32;

  public static final int BLOCK_COLUMNS = 4096;

  /**
   * Rows of a band, which all meet a block's columns before the next ones come: with bands of a block's height, 100,000 columns of D = 32,
   * 26 MB, were read from memory too often, at two thirds of the rate. A block has as many rows for a kernel that wants large blocks: 8
   * MiB come off a device at once.
   */
  public static final int BAND_ROWS = 256;

  /** Whether a band's blocks may come in any order and to any thread; then {@link #begin} and {@link #end} are called for each block. */
  public boolean isByBlock() {
    return false;
  }

  /** Greatest number of rows of a band, a multiple of {@link BlockKernel#ROW_PANEL}. */
  public int bandRows() {
    return BAND_ROWS;
  }

  /** Greatest number of spans that a band may be cut into. */
  public int mostSpans() {
    return 1;
  }

  /** Prepares for bands that are cut into that many spans, 1 if they are whole; called first, on the caller's thread. */
  public void cut(int rows, int spans) {}

  /**
   * Merges the spans of rows [row0, row1).
   *
   * @return whether that was possible; if not, the band is reduced again, whole
   */
  public boolean merge(int row0, int row1, BandState band) {
    return true;
  }

  /** The query that a kernel may answer instead of handing over blocks; null if there is none. */
  public @Nullable RowQuery query() {
    return null;
  }

  /**
   * Takes an answer for row i and a piece of the columns, between {@link #begin} and {@link #end} of its band.
   *
   * @return whether the answer has all entries; if not, the piece comes as a block
   */
  public boolean take(RowAnswer answer, int i, int piece, BandState band) {
    throw new AssertionError("not asked for");
  }

  /** Begins rows [row0, row1), before their first block. */
  public void begin(int row0, int row1, BandState band) {}

  /** Takes {@code KL(q_i ‖ p_j)} for rows [row0, row1) and columns [column0, column1) of the band, row-major without gaps. */
  public abstract void block(
      int row0, int row1, int column0, int column1, double[] kl, BandState band);

  /** Ends rows [row0, row1), after their last block. */
  public void end(int row0, int row1, BandState band) {}
}
