package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import org.jspecify.annotations.Nullable;

/**
 * What a call makes of the matrix instead of storing it. Its blocks come as they are computed, in the cache, those of a band of rows in
 * the order of its columns. Where there are fewer bands than threads a band's columns are cut into spans of whole blocks: then {@link
 * #begin}, {@link #block} and {@link #end} are a span's, and {@link #merge} makes of them what the whole band would have
 * given, bit for bit, so that nothing depends on the number of threads. Shared by the threads of a call: what belongs to a band
 * is in the {@link BandState}.
 */
public abstract class RowReduction {
  /**
   * A block of a reduction, 1 MiB of doubles as the others are at most. The fewer blocks a row has, the fewer of its entries pass for near
   * before the search knows better: nearest(k = 10) over pairwise, 8192 x 8192 x 32, takes 1.24 times its time, with 64 x 2048 1.29, and k
   * = 100 2.4 and 2.9 times; at D = 256 and 512 they are level (Zen 5).
   */
  public static final int BLOCK_ROWS = 32;

  public static final int BLOCK_COLUMNS = 4096;

  /**
   * Rows of a band, for all of which a block's columns pass at once: with bands of a block's height 100,000 columns of D = 32, 26 MB, came
   * from the memory too often, at two thirds of the rate. For a kernel that wants large blocks also the rows of a block: 8 MiB come off a
   * device at once.
   */
  public static final int BAND_ROWS = 256;

  /** Whether a band's blocks need not come in order, nor to one thread; then {@link #begin} and {@link #end} are by block. */
  public boolean isByBlock() {
    return false;
  }

  /** Whether its blocks hold {@code KL(p_j ‖ q_i)} instead, at the same places. */
  public boolean isReverse() {
    return false;
  }

  /** How many rows a band has at most, a multiple of {@link BlockKernel#ROW_PANEL}. */
  public int bandRows() {
    return BAND_ROWS;
  }

  /** Into how many spans a band may be cut. */
  public int mostSpans() {
    return 1;
  }

  /** Before a call, on its caller's thread: its bands will be cut into so many spans; 1 if they are whole. */
  public void cut(int rows, int spans) {}

  /**
   * After all spans of rows [row0, row1), on the caller's thread.
   *
   * @return whether that was possible; if not, the band is to come whole
   */
  public boolean merge(int row0, int row1, BandState band) {
    return true;
  }

  /** What a kernel may answer instead of handing over blocks; null if only blocks do. */
  public @Nullable RowQuery query() {
    return null;
  }

  /**
   * Takes an answer for row i and a piece of the columns, between {@link #begin} and {@link #end} of its band.
   *
   * @return whether the answer has all; if not, the piece is to come as a block
   */
  public boolean take(RowAnswer answer, int i, int piece, BandState band) {
    throw new AssertionError("not asked for");
  }

  /** Before the first block of rows [row0, row1). */
  public abstract void begin(int row0, int row1, BandState band);

  /** {@code kl} holds {@code KL(q_i ‖ p_j)} for rows [row0, row1) and columns [column0, column1), row-major without gaps, of the band. */
  public abstract void block(
      int row0, int row1, int column0, int column1, double[] kl, BandState band);

  /** After their last block. */
  public abstract void end(int row0, int row1, BandState band);
}
