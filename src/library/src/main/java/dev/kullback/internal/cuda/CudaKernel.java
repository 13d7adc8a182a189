package dev.kullback;

import dev.kullback.internal.cuda.CudaDevice;
import java.lang.foreign.MemorySegment;

/** Blocks that the device computes, for reductions on the host. */
final class CudaKernel implements BlockKernel<Gaussians> {
  private final CudaDevice device;

  CudaKernel(CudaDevice device) {
    this.device = device;
  }

  @Override
  public void begin() {
    device.enter();
  }

  @Override
  public void end() {
    device.exit();
  }

  @Override
  public void prepare(Gaussians q, Gaussians p, Tile t) {}

  @Override
  public void block(
      Gaussians q, Gaussians p, int row0, int row1, int column0, int column1, Tile t) {
    device.region(
        KlEngine.host(q),
        KlEngine.host(p),
        row0,
        row1 - row0,
        column0,
        column1 - column0,
        MemorySegment.ofArray(t.block64()),
        Double.BYTES);
  }
}
