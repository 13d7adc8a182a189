package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The batches of a call in the panels that {@link VectorKernel} and {@link ColdKernel} read: of double if a batch is, else of float. */
public final class TileOperands extends Operands<DiagonalBatch> {
  private final PanelForm.Memory<float[]> memoryQ = new PanelForm.Memory<>();
  private final PanelForm.Memory<float[]> memoryP = new PanelForm.Memory<>();
  private @Nullable Packed<float[]> q32;
  private @Nullable Packed<float[]> p32;

  /** Whether batches are packed with vectors. */
  private boolean vectors;

  @Override
  public void prepare(Batch g, boolean vectors) {
    DiagonalBatch batch = (DiagonalBatch) g;
    if (!batch.isDouble()) {
      FloatPanels.COLUMNS.of(batch, vectors);
      NearKernel.PACKED.of(batch);
    }
    DoublePanels.COLUMNS.of(batch, vectors);
  }

  @Override
  public void pack(Batch q, Batch p, boolean vectors, Worker worker) {
    DiagonalBatch a = (DiagonalBatch) q;
    DiagonalBatch b = (DiagonalBatch) p;
    hold(a, b);
    this.vectors = vectors;
    if (isWide()) {
      DoublePanels.COLUMNS.of(a, vectors, worker);
      DoublePanels.COLUMNS.of(b, vectors, worker);
    } else {
      q32 = FloatPanels.COLUMNS.of(a, a.markUsed(), memoryQ, vectors, worker);
      p32 = a == b ? q32 : FloatPanels.COLUMNS.of(b, b.markUsed(), memoryP, vectors, worker);
    }
  }

  @Override
  public void clear() {
    super.clear();
    q32 = null;
    p32 = null;
  }

  boolean isWide() {
    return q().isDouble() || p().isDouble();
  }

  Packed<float[]> q32() {
    return Objects.requireNonNull(q32);
  }

  Packed<float[]> p32() {
    return Objects.requireNonNull(p32);
  }

  /** Returns panels of double that the batch keeps; for a batch of float the first thread that needs them makes them. */
  Packed<double[]> q64() {
    return DoublePanels.COLUMNS.of(q(), vectors);
  }

  Packed<double[]> p64() {
    return DoublePanels.COLUMNS.of(p(), vectors);
  }
}
