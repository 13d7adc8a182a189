package dev.kullback.internal.plain;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Results;

/** Stores 0, the divergence of a deterministic q by the convention of latent-diffusion code. */
public final class ZeroKernel extends BlockKernel<Batch> {
  @Override
  public boolean matrix(Results out) {
    out.zero((long) q().size() * p().size());
    return true;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, BlockTarget out) {
    for (int i = row0; i < row1; i++) {
      out.zero(i, column0, column1);
    }
  }
}
