package dev.kullback.internal.vector;

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

  /** Makes all forms that calls may read. */
  public static void prepare(DiagonalBatch batch, boolean vectors) {
    if (!batch.isDouble()) {
      FloatPanels.COLUMNS.of(batch, vectors);
      NearKernel.PACKED.of(batch);
    }
    DoublePanels.COLUMNS.of(batch, vectors);
  }

  public static boolean isWide(DiagonalBatch q, DiagonalBatch p) {
    return q.isDouble() || p.isDouble();
  }

  public void prepare(DiagonalBatch q, DiagonalBatch p, boolean vectors, Worker worker) {
    boolean wide = isWide(q, p);
    set(wide ? Kind.DOUBLE : Kind.FLOAT, q, p);
    this.vectors = vectors;
    if (wide) {
      DoublePanels.COLUMNS.of(q, vectors, worker);
      DoublePanels.COLUMNS.of(p, vectors, worker);
    } else {
      q32 = FloatPanels.COLUMNS.of(q, q.markUsed(), memoryQ, vectors, worker);
      p32 = q == p ? q32 : FloatPanels.COLUMNS.of(p, p.markUsed(), memoryP, vectors, worker);
    }
  }

  @Override
  public void clear() {
    super.clear();
    q32 = null;
    p32 = null;
  }

  boolean isWide() {
    return kind() == Kind.DOUBLE;
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
