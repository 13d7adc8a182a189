package dev.kullback.internal.kernel;

import dev.kullback.internal.batch.Batch;

/** Stores 0, the divergence of a deterministic q by the convention of latent-diffusion code. */
public final class ZeroKernel implements BlockKernel<Operands<Batch>> {
  @Override
  public boolean matrix(Operands<Batch> operands, Results out) {
    out.zero((long) operands.q().size() * operands.p().size());
    return true;
  }

  @Override
  public void block(
      Operands<Batch> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    for (int i = row0; i < row1; i++) {
      out.zero(i, column0, column1);
    }
  }
}
