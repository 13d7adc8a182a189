package dev.kullback.internal.rows;

/** Hands every block to a consumer. */
public final class TileStream extends RowReduction {
  /** Takes a block {@code values[(i − row0)·(column1 − column0) + j − column0] = KL(q_i ‖ p_j)}. */
  public interface Consumer {
    void accept(int row0, int row1, int column0, int column1, double[] values);
  }

  private final Consumer consumer;

  public TileStream(Consumer consumer) {
    this.consumer = consumer;
  }

  @Override
  public boolean isByBlock() {
    return true;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    consumer.accept(row0, row1, column0, column1, kl);
  }
}
