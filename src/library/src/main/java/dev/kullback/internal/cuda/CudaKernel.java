package dev.kullback.internal.cuda;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Output;
import dev.kullback.internal.kernel.Window;
import java.lang.foreign.MemorySegment;

/** Matrices that the device computes, and blocks of them for reductions on the host. */
public final class CudaKernel extends BlockKernel<Batch> {
  private final CudaDevice device;
  private boolean entered;

  public CudaKernel(CudaDevice device) {
    this.device = device;
  }

  /** What the call uses stays open until its end. */
  @Override
  protected void prepare(Batch q, Batch p) {
    device.enter();
    entered = true;
  }

  @Override
  public void end() {
    super.end();
    if (entered) {
      entered = false;
      device.exit();
    }
  }

  @Override
  public boolean wantsLargeBlocks() {
    return true;
  }

  @Override
  public boolean matrix(Output out) {
    device.pairwise(HostBatch.of(q()), HostBatch.of(p()), out.memory(), out.width());
    return true;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, Window out) {
    device.region(
        HostBatch.of(q()),
        HostBatch.of(p()),
        row0,
        row1 - row0,
        column0,
        column1 - column0,
        MemorySegment.ofArray(out.block()),
        Double.BYTES);
  }
}
