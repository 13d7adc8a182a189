package dev.kullback.internal.engine;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Pairs;
import dev.kullback.internal.formula.ScalarScan;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.vector.ColdKernel;
import dev.kullback.internal.vector.MeasureColdKernel;
import dev.kullback.internal.vector.MeasureKernel;
import dev.kullback.internal.vector.MeasureOperands;
import dev.kullback.internal.vector.Readiness.KernelGroup;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.vector.SmallOperands;
import dev.kullback.internal.vector.TileOperands;
import dev.kullback.internal.vector.VectorKernel;
import dev.kullback.internal.vector.VectorScan;
import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.internal.vector.full.FullChernoffKernel;
import dev.kullback.internal.vector.full.FullColdChernoff;
import dev.kullback.internal.vector.full.FullColdJeffreys;
import dev.kullback.internal.vector.full.FullColdKernel;
import dev.kullback.internal.vector.full.FullJeffreysKernel;
import dev.kullback.internal.vector.full.FullOperands;
import dev.kullback.internal.vector.full.FullPairs;
import dev.kullback.internal.vector.full.FullVectorKernel;
import dev.kullback.internal.work.Worker;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Vector kernels of one thread, and the cold ones that give the same bits until C2 has compiled the former. Apart from {@link Kernels}, so
 * that verifying that loads no class with vectors; and each kernel is created on first use, as its classes take long to load.
 */
final class ReadyKernels {
  private final Formula formula;
  private final Worker worker;

  private final Pair pair;

  /** Tells of each group whether its vectors are to be used. */
  private final Predicate<KernelGroup> ready;

  private final TileOperands tileOperands = new TileOperands();
  private final SmallOperands smallOperands = new SmallOperands();
  private final FullOperands fullOperands = new FullOperands();

  private final ColdKernel cold;
  private final Pairs coldPairs;
  private final RowScan coldScan = new ScalarScan(VectorWidth.BITS / Double.SIZE);

  private @Nullable MeasureOperands measureOperands;
  private @Nullable MeasureColdKernel coldMeasure;
  private @Nullable MeasureKernel measureTiles;
  private @Nullable FullColdKernel coldFull;
  private @Nullable VectorKernel tiles;
  private @Nullable SmallKernel small;
  private @Nullable FullVectorKernel full;
  private @Nullable BlockKernel<FullOperands> otherFull;
  private @Nullable BlockKernel<FullOperands> coldOtherFull;
  private @Nullable FullPairs pairs;
  private @Nullable VectorScan scan;

  ReadyKernels(
      Formula formula, Pairs coldPairs, Worker worker, Pair pair, Predicate<KernelGroup> ready) {
    this.formula = formula;
    this.pair = pair;
    this.coldPairs = coldPairs;
    this.worker = worker;
    this.ready = ready;
    cold = new ColdKernel(worker);
  }

  Operands<?> prepare(DiagonalBatch q, DiagonalBatch p) {
    if (!(formula instanceof Kl)) {
      if (measureOperands == null) {
        measureOperands = new MeasureOperands(formula);
      }
      measureOperands.prepare(q, p, ready.test(KernelGroup.of(formula)), worker);
      return measureOperands;
    }
    if (q.dimension() <= SmallKernel.MOST_DIMENSIONS) {
      smallOperands.prepare(q, p, worker);
      return smallOperands;
    }
    KernelGroup group = TileOperands.isWide(q, p) ? KernelGroup.DOUBLE : KernelGroup.PACKING;
    tileOperands.prepare(q, p, ready.test(group), worker);
    return tileOperands;
  }

  Operands<?> prepare(FullBatch q, FullBatch p) {
    fullOperands.prepare(q, p, ready.test(KernelGroup.FULL), worker);
    return fullOperands;
  }

  /** Prepares for the kernel of a divergence other than KL. */
  Operands<?> prepareOther(FullBatch q, FullBatch p) {
    Operands.Kind kind =
        formula.fullKernel() == Formula.FullKernel.TWO_PRODUCTS
            ? Operands.Kind.FULL_JEFFREYS
            : Operands.Kind.FULL_CHERNOFF;
    fullOperands.prepare(kind, q, p, ready.test(KernelGroup.FULL), worker);
    return fullOperands;
  }

  /** Returns a kernel for a block, ready or cold. */
  BlockKernel<?> of(Operands.Kind kind) {
    return switch (kind) {
      case SMALL -> ready.test(KernelGroup.SMALL) ? small() : pair;
      case FLOAT -> ready.test(KernelGroup.FLOAT) ? tiles() : cold;
      case DOUBLE -> ready.test(KernelGroup.DOUBLE) ? tiles() : cold;
      case FULL -> ready.test(KernelGroup.FULL) ? full() : coldFull();
      case FULL_CHERNOFF, FULL_JEFFREYS -> otherFull(kind);
      case MEASURE -> ready.test(KernelGroup.of(formula)) ? measureTiles() : coldMeasure();
      case ZERO, SCALAR, DEVICE -> throw new IllegalArgumentException(kind.name());
    };
  }

  Pairs pairs(FullBatch q) {
    BackgroundWarmUp.begin(KernelGroup.FULL, q.dimension());
    if (!ready.test(KernelGroup.FULL)) {
      return coldPairs;
    }
    if (pairs == null) {
      pairs = new FullPairs(pair, worker);
    }
    return pairs;
  }

  RowScan scan() {
    if (!ready.test(KernelGroup.SCANS)) {
      return coldScan;
    }
    if (scan == null) {
      scan = new VectorScan();
    }
    return scan;
  }

  private VectorKernel tiles() {
    if (tiles == null) {
      tiles = new VectorKernel(worker, cold, () -> ready.test(KernelGroup.REFINEMENT));
    }
    return tiles;
  }

  private SmallKernel small() {
    if (small == null) {
      small = new SmallKernel(worker);
    }
    return small;
  }

  private FullVectorKernel full() {
    if (full == null) {
      full = new FullVectorKernel(worker, pair);
    }
    return full;
  }

  private FullColdKernel coldFull() {
    if (coldFull == null) {
      coldFull = new FullColdKernel(worker, pair);
    }
    return coldFull;
  }

  private BlockKernel<FullOperands> otherFull(Operands.Kind kind) {
    boolean isJeffreys = kind == Operands.Kind.FULL_JEFFREYS;
    if (ready.test(isJeffreys ? KernelGroup.FULL_JEFFREYS : KernelGroup.FULL_CHERNOFF)) {
      if (otherFull == null) {
        otherFull =
            isJeffreys
                ? new FullJeffreysKernel(worker, pair)
                : new FullChernoffKernel(formula, worker, pair);
      }
      return otherFull;
    }
    if (coldOtherFull == null) {
      coldOtherFull =
          isJeffreys
              ? new FullColdJeffreys(worker, pair)
              : new FullColdChernoff(formula, worker, pair);
    }
    return coldOtherFull;
  }

  private MeasureKernel measureTiles() {
    if (measureTiles == null) {
      measureTiles = new MeasureKernel(formula, worker, pair);
    }
    return measureTiles;
  }

  private MeasureColdKernel coldMeasure() {
    if (coldMeasure == null) {
      coldMeasure = new MeasureColdKernel(worker, pair);
    }
    return coldMeasure;
  }

  void clear() {
    if (measureOperands != null) {
      measureOperands.clear();
    }
    if (measureTiles != null) {
      measureTiles.clear();
    }
    tileOperands.clear();
    smallOperands.clear();
    fullOperands.clear();
    if (tiles != null) {
      tiles.clear();
    }
  }
}
