package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.TileBound;
import dev.kullback.internal.formula.TileBound.Precision;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The batches of a call in the panels that {@link TileKernel} and {@link ColdKernel} read: of double if a batch is, or if the formula needs
 * it, else of float; and the error bounds of what these make of them.
 */
public final class TileOperands extends Operands<DiagonalBatch> {
  private final Formula formula;
  private final PanelForm<DiagonalBatch, float[], float[]> panels32;
  private final PanelForm<DiagonalBatch, double[], double[]> panels64;
  private final PanelForm.Memory<float[]> memoryQ = new PanelForm.Memory<>();
  private final PanelForm.Memory<float[]> memoryP = new PanelForm.Memory<>();
  private float @Nullable [] q32;
  private float @Nullable [] p32;

  /** Whether batches are packed with vectors. */
  private boolean vectors;

  public TileOperands(Formula formula) {
    this.formula = formula;
    panels32 = FloatPanels.of(formula);
    panels64 = DoublePanels.of(formula);
  }

  @Override
  public void prepare(Batch g, boolean vectors) {
    DiagonalBatch batch = (DiagonalBatch) g;
    boolean wide = batch.isDouble() || formula.needsDouble();
    if (wide) {
      panels64.of(batch, vectors);
    } else {
      panels32.of(batch, vectors);
    }
    rows(batch, wide ? Precision.DOUBLE : Precision.FLOAT);
  }

  @Override
  public void pack(Batch q, Batch p, boolean vectors, Worker worker) {
    DiagonalBatch a = (DiagonalBatch) q;
    DiagonalBatch b = (DiagonalBatch) p;
    hold(a, b);
    this.vectors = vectors;
    if (isWide()) {
      panels64.of(a, vectors, worker);
      panels64.of(b, vectors, worker);
    } else {
      q32 = panels32.of(a, a.markUsed(), memoryQ, vectors, worker);
      p32 = a == b ? q32 : panels32.of(b, b.markUsed(), memoryP, vectors, worker);
    }
  }

  @Override
  public void clear() {
    super.clear();
    q32 = null;
    p32 = null;
  }

  /** Whether the first form is in double. */
  boolean isWide() {
    return isDouble() || formula.needsDouble();
  }

  float[] q32() {
    return Objects.requireNonNull(q32);
  }

  float[] p32() {
    return Objects.requireNonNull(p32);
  }

  /** Returns panels of double that the batch keeps; for a batch of float the first thread that needs them makes them. */
  double[] q64() {
    return panels64.of(q(), vectors);
  }

  double[] p64() {
    return panels64.of(p(), vectors);
  }

  /** Whether both batches have panels of double. */
  boolean hasPanels64() {
    return panels64.isMade(q()) && panels64.isMade(p());
  }

  /** Whether they have, or are to have them for a tile with so many open entries, rather than that these are computed one by one. */
  boolean isWorthPanels64(int open) {
    return hasPanels64() || (q().isWorthForms(open) && p().isWorthForms(open));
  }

  /** Counts the entries of a block. */
  void countEntries(int rows, int columns) {
    long entries = (long) rows * columns;
    q().countEntries(entries);
    if (p() != q()) {
      p().countEntries(entries);
    }
  }

  Precision precision32() {
    return Precision.FLOAT;
  }

  /** Returns the precision of the form in double. */
  Precision precision64() {
    return isDouble() ? Precision.DOUBLE : Precision.REFINED;
  }

  private boolean isDouble() {
    return q().isDouble() || p().isDouble();
  }

  TileBound.Rows rows(DiagonalBatch g, Precision precision) {
    return sums(precision).bound().rows(g, precision);
  }

  double margin(Precision precision) {
    return sums(precision).margin(precision, q().dimension());
  }

  private Formula sums(Precision precision) {
    return precision == Precision.FLOAT ? formula.sums32() : formula.sums64();
  }
}
