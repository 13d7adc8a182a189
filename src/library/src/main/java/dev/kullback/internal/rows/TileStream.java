package dev.kullback;

import java.util.function.Consumer;

/** Hands every block to a consumer. */
final class TileStream extends RowReduction {
  private final Consumer<? super KlTile> consumer;

  TileStream(Consumer<? super KlTile> consumer) {
    this.consumer = consumer;
  }

  @Override
  boolean isByBlock() {
    return true;
  }

  @Override
  void begin(int row0, int row1, Tile t) {}

  @Override
  void block(int row0, int row1, int column0, int column1, Tile t) {
    consumer.accept(t.shown.set(row0, row1, column0, column1, t.block64()));
  }

  @Override
  void end(int row0, int row1, Tile t) {}
}
