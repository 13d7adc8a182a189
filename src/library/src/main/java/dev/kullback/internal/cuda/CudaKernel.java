package dev.kullback.internal.cuda;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.work.Worker;
import java.util.function.Consumer;

/** Matrices by the device, what reductions want of their rows, and blocks of them where that is more than it keeps. */
public final class CudaKernel implements BlockKernel<CudaOperands> {
  private final CudaDevice device;
  private final Worker worker;

  public CudaKernel(CudaDevice device, Worker worker) {
    this.device = device;
    this.worker = worker;
  }

  @Override
  public boolean wantsLargeBlocks() {
    return true;
  }

  @Override
  public boolean matrix(CudaOperands operands, Results out) {
    device.pairwise(
        operands.q(),
        operands.p(),
        out.memory(),
        out.width(),
        out.isShared() ? worker : Session.ALONE);
    return true;
  }

  @Override
  public boolean answer(
      CudaOperands operands, RowQuery query, boolean transposed, Consumer<RowAnswer> consumer) {
    if (!RowStrips.isAnswered(query)) {
      return false;
    }
    operands.answering = true;
    device.answer(operands.q(), operands.p(), transposed, query, consumer);
    return true;
  }

  @Override
  public void block(
      CudaOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    device.region(
        operands.q(), operands.p(), row0, row1, column0, column1, out.block(), operands.answering);
  }
}
