package dev.kullback.internal.cuda;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.cuda.Session.Region;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.work.Worker;
import java.util.function.Consumer;

/** Matrices by the device, what reductions want of their rows, and blocks of them where that is more than it keeps. */
public record CudaKernel(CudaDevice device, Worker worker) implements BlockKernel<Operands<Batch>> {
  @Override
  public boolean matrix(Operands<Batch> operands, Results out) {
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
      Operands<Batch> operands, RowQuery query, boolean transposed, Consumer<RowAnswer> consumer) {
    if (!RowStrips.isAnswered(query)) {
      return false;
    }
    device.answer(operands.q(), operands.p(), transposed, query, consumer);
    return true;
  }

  @Override
  public void block(
      Operands<Batch> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    Region region = new Region(row0, row1 - row0, column0, column1 - column0);
    device.region(operands.q(), operands.p(), region, out.block());
  }
}
