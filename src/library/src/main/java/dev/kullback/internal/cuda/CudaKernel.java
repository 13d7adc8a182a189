package dev.kullback.internal.cuda;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.work.Worker;
import java.util.function.Consumer;

/** Matrices that the device computes, what reductions want of their rows, and blocks of them where that is more than it keeps. */
public final class CudaKernel extends BlockKernel<Batch> {
  private final CudaDevice device;
  private final Worker worker;
  private boolean entered;

  /** Whether blocks are part of a call that the device answers. */
  private boolean answering;

  public CudaKernel(CudaDevice device, Worker worker) {
    this.device = device;
    this.worker = worker;
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
    answering = false;
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
  public boolean matrix(Results out) {
    device.pairwise(
        HostBatch.of(q()),
        HostBatch.of(p()),
        out.memory(),
        out.width(),
        out.isShared() ? worker : Session.ALONE);
    return true;
  }

  @Override
  public boolean answer(RowQuery query, boolean transposed, Consumer<RowAnswer> consumer) {
    if (!RowStrips.isAnswered(query)) {
      return false;
    }
    answering = true;
    device.answer(HostBatch.of(q()), HostBatch.of(p()), transposed, query, consumer);
    return true;
  }

  @Override
  public void join(BlockKernel<?> lead) {
    super.join(lead);
    answering = ((CudaKernel) lead).answering;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, BlockTarget out) {
    device.region(
        HostBatch.of(q()), HostBatch.of(p()), row0, row1, column0, column1, out.block(), answering);
  }
}
