package dev.kullback.internal.rows;

import dev.kullback.KlTile;
import java.util.function.Consumer;

/** Hands every block to a consumer. */
public final class TileStream extends RowReduction {
  private final Consumer<? super KlTile> consumer;

  public TileStream(Consumer<? super KlTile> consumer) {
    this.consumer = consumer;
  }

  @Override
  public boolean isByBlock() {
    return true;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    consumer.accept(new KlTile(row0, row1 - row0, column0, column1 - column0, kl));
  }
}
