package dev.kullback.internal.plain;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;

/**
 * Computes every entry by {@link Pair}: all of the scalar backend's, and the vector backend's where a diagonal batch is too large to be
 * written out as full factors.
 */
public final class ScalarKernel implements BlockKernel<Operands<?>> {
  private final Pair pair;

  public ScalarKernel(Pair pair) {
    this.pair = pair;
  }

  @Override
  public void block(
      Operands<?> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    pair.block(operands.q(), operands.p(), row0, row1, column0, column1, out);
  }
}
