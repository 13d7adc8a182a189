package dev.kullback.internal.cuda;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.Operands;

/** The batches of a call that the device computes, which stays open for it. */
public final class CudaOperands extends Operands<Batch> {
  private final CudaDevice device;
  private boolean entered;

  /** Whether blocks are part of a call that the device answers. */
  boolean answering;

  public CudaOperands(CudaDevice device) {
    this.device = device;
  }

  public void prepare(Batch q, Batch p) {
    set(Kind.DEVICE, q, p);
    device.enter();
    entered = true;
  }

  @Override
  public void clear() {
    super.clear();
    answering = false;
    if (entered) {
      entered = false;
      device.exit();
    }
  }
}
