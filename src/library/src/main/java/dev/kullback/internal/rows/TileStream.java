package dev.kullback.internal.rows;

/** Hands over every block. */
public abstract class TileStream extends RowReduction {
  @Override
  public final boolean isByBlock() {
    return true;
  }

  @Override
  public final void block(
      int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    tile(row0, row1 - row0, column0, column1 - column0, kl);
  }

  /** Takes the block of so many rows from {@code row0} on and so many columns from {@code column0} on; {@code kl} is valid until it returns. */
  protected abstract void tile(int row0, int rows, int column0, int columns, double[] kl);
}
