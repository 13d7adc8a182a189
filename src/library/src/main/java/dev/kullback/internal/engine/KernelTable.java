package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.cuda.CudaKernel;
import dev.kullback.internal.engine.Platform.Choice;
import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.ScalarCodeScan;
import dev.kullback.internal.formula.ScalarPanelScan;
import dev.kullback.internal.formula.ScalarScan;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.kernel.ZeroKernel;
import dev.kullback.internal.vector.CodeScanKernel;
import dev.kullback.internal.vector.ColdKernel;
import dev.kullback.internal.vector.MeasureColdKernel;
import dev.kullback.internal.vector.MeasureKernel;
import dev.kullback.internal.vector.MeasureOperands;
import dev.kullback.internal.vector.PanelScanKernel;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.vector.SmallOperands;
import dev.kullback.internal.vector.TileOperands;
import dev.kullback.internal.vector.VectorKernel;
import dev.kullback.internal.vector.VectorScan;
import dev.kullback.internal.vector.full.FullChernoffKernel;
import dev.kullback.internal.vector.full.FullColdChernoff;
import dev.kullback.internal.vector.full.FullColdJeffreys;
import dev.kullback.internal.vector.full.FullColdKernel;
import dev.kullback.internal.vector.full.FullJeffreysKernel;
import dev.kullback.internal.vector.full.FullOperands;
import dev.kullback.internal.vector.full.FullPairs;
import dev.kullback.internal.vector.full.FullVectorKernel;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * All kernels. The rows of matrices come first: a call takes the first row that is for its backend, its divergence and its batches. Then come
 * the kernels that reductions and an index use. What batches are made with, {@link Platform} chooses.
 *
 * <p>A row has the ready kernel, the cold one of the same bits, and the groups that calls have C2 compile: the first tells which of the two
 * kernels computes, the second, if there is one, whether vectors pack the operands. Its trial compiles the first.
 *
 * <p>This class loads no class with vectors, and makes no kernel before one is needed: lambdas name the classes, and return objects,
 * since the verifier loads a class to see whether it extends another.
 */
@SuppressWarnings("ImmutableEnumChecker") // lambdas without state
enum KernelTable {
  /** KL = 0 throughout. */
  ZERO(
      Choice.SCALAR,
      Kl.class,
      (_, q, _) -> q.isDeterministic(),
      _ -> new Operands<>(),
      _ -> new ZeroKernel()),
  DEVICE(
      Choice.CUDA,
      Kl.class,
      (_, q, p) -> q.getClass() == p.getClass() || (q.isExpandable() && p.isExpandable()),
      _ -> new Operands<>(),
      k -> new CudaKernel(Objects.requireNonNull(k.device), k.worker)),

  SMALL(
      Kl.class,
      (_, q, p) -> areDiagonal(q, p) && q.dimension() <= SmallKernel.MOST_DIMENSIONS,
      _ -> new SmallOperands(),
      k -> new SmallKernel(k.worker),
      k -> k.pair,
      WarmUpTrial::small,
      KernelGroup.SMALL),
  FLOAT(
      Kl.class,
      (_, q, p) -> areDiagonal(q, p) && !q.isDouble() && !p.isDouble(),
      _ -> new TileOperands(),
      KernelTable::tiles,
      k -> new ColdKernel(k.worker),
      WarmUpTrial::floats,
      KernelGroup.FLOAT,
      KernelGroup.PACKING,
      KernelGroup.REFINEMENT,
      KernelGroup.DOUBLE),
  DOUBLE(
      Kl.class,
      (_, q, p) -> areDiagonal(q, p),
      _ -> new TileOperands(),
      KernelTable::tiles,
      k -> new ColdKernel(k.worker),
      WarmUpTrial::doubles,
      KernelGroup.DOUBLE),
  WASSERSTEIN_2(
      Wasserstein2.class,
      (_, q, p) -> areDiagonal(q, p),
      f -> new MeasureOperands(f),
      k -> new MeasureKernel(k.formula, k.worker, k.pair),
      k -> new MeasureColdKernel(k.worker, k.pair),
      t -> t.formulas(Wasserstein2.SQUARED),
      KernelGroup.WASSERSTEIN_2),
  JEFFREYS(
      Jeffreys.class,
      (_, q, p) -> areDiagonal(q, p),
      f -> new MeasureOperands(f),
      k -> new MeasureKernel(k.formula, k.worker, k.pair),
      k -> new MeasureColdKernel(k.worker, k.pair),
      t -> t.formulas(Jeffreys.FORMULA),
      KernelGroup.JEFFREYS),
  CHERNOFF(
      Chernoff.class,
      (f, q, p) -> areDiagonal(q, p) && MeasureOperands.hasOrder(f.alpha()),
      f -> new MeasureOperands(f),
      k -> new MeasureKernel(k.formula, k.worker, k.pair),
      k -> new MeasureColdKernel(k.worker, k.pair),
      t -> t.formulas(Chernoff.BHATTACHARYYA, Chernoff.HELLINGER, Chernoff.renyi(0.25)),
      KernelGroup.CHERNOFF),
  FULL(
      Kl.class,
      (_, q, p) -> areFull(q, p),
      _ -> new FullOperands(FullOperands.Roles.ONE),
      k -> new FullVectorKernel(k.worker, k.pair),
      k -> new FullColdKernel(k.worker, k.pair),
      t -> t.full(Kl.FORWARD),
      KernelGroup.FULL),
  FULL_JEFFREYS(
      Jeffreys.class,
      (_, q, p) -> areFull(q, p),
      _ -> new FullOperands(FullOperands.Roles.BOTH),
      k -> new FullJeffreysKernel(k.worker, k.pair),
      k -> new FullColdJeffreys(k.worker, k.pair),
      t -> t.full(Jeffreys.FORMULA),
      KernelGroup.FULL_JEFFREYS,
      KernelGroup.FULL),
  FULL_CHERNOFF(
      Chernoff.class,
      (_, q, p) -> areFull(q, p) && q.dimension() <= FullOperands.MOST_CHERNOFF_DIMENSIONS,
      _ -> new FullOperands(FullOperands.Roles.BOTH_AND_CORRELATIONS),
      k -> new FullChernoffKernel(k.formula, k.worker, k.pair),
      k -> new FullColdChernoff(k.formula, k.worker, k.pair),
      t -> t.full(Chernoff.BHATTACHARYYA),
      KernelGroup.FULL_CHERNOFF,
      KernelGroup.FULL),
  /** Any pairs, without vectors. */
  SCALAR(Choice.SCALAR, Formula.class, (_, _, _) -> true, _ -> new Operands<>(), k -> k.pair),

  // --- other kernels

  /** {@link #FLOAT} where entries are recomputed, which cold kernels do until then; and what panels gain by vectors. */
  REFINEMENT(KernelGroup.REFINEMENT, WarmUpTrial::refinement),
  PACKING(KernelGroup.PACKING, WarmUpTrial::packing),
  /** Pairs of full covariances; the trial of {@link #FULL} runs them, too. */
  FULL_PAIRS(KernelGroup.FULL, k -> new FullPairs(k.pair, k.worker), k -> k.pairs, _ -> true),
  SCANS(
      KernelGroup.SCANS,
      _ -> new VectorScan(),
      k -> new ScalarScan(k.scanLanes()),
      WarmUpTrial::scans),
  PANELS(
      KernelGroup.INDEX,
      _ -> new PanelScanKernel(),
      _ -> new ScalarPanelScan(),
      WarmUpTrial::panels),
  CODES(
      KernelGroup.INDEX, _ -> new CodeScanKernel(), _ -> new ScalarCodeScan(), WarmUpTrial::codes);

  /** Says of a divergence whether a row is for these batches. */
  private interface Batches {
    boolean areFor(Formula formula, Batch q, Batch p);
  }

  private static final KernelTable[] ROWS = values();

  /** The backend that has the row's kernels; any has those of {@link Choice#SCALAR}. */
  private final Choice backend;

  private final Class<? extends Formula> formula;
  private final Batches batches;

  /** Makes a thread's operands. */
  final Function<Formula, ?> operands;

  /** Make a thread's kernels, ready and cold. */
  final Function<Kernels, ?> ready;

  final Function<Kernels, ?> cold;
  private final Predicate<WarmUpTrial> trial;
  final KernelGroup[] groups;

  /** Makes a row without vectors. */
  KernelTable(
      Choice backend,
      Class<? extends Formula> formula,
      Batches batches,
      Function<Formula, ?> operands,
      Function<Kernels, ?> kernel) {
    this(backend, formula, batches, operands, kernel, kernel, _ -> true);
  }

  /** Makes a row of matrices. */
  KernelTable(
      Class<? extends Formula> formula,
      Batches batches,
      Function<Formula, ?> operands,
      Function<Kernels, ?> ready,
      Function<Kernels, ?> cold,
      Predicate<WarmUpTrial> trial,
      KernelGroup... groups) {
    this(Choice.VECTOR, formula, batches, operands, ready, cold, trial, groups);
  }

  /** Makes a row that no matrix takes. */
  KernelTable(
      KernelGroup group,
      Function<Kernels, ?> ready,
      Function<Kernels, ?> cold,
      Predicate<WarmUpTrial> trial) {
    this(Formula.class, (_, _, _) -> false, _ -> new Operands<>(), ready, cold, trial, group);
  }

  /** Makes a row that has a part in another's kernels. */
  KernelTable(KernelGroup group, Predicate<WarmUpTrial> trial) {
    this(group, k -> k, k -> k, trial);
  }

  KernelTable(
      Choice backend,
      Class<? extends Formula> formula,
      Batches batches,
      Function<Formula, ?> operands,
      Function<Kernels, ?> ready,
      Function<Kernels, ?> cold,
      Predicate<WarmUpTrial> trial,
      KernelGroup... groups) {
    this.backend = backend;
    this.formula = formula;
    this.batches = batches;
    this.operands = operands;
    this.ready = ready;
    this.cold = cold;
    this.trial = trial;
    this.groups = groups;
  }

  private static boolean areDiagonal(Batch q, Batch p) {
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch;
  }

  /** Whether one has full covariances and the other has them or can be written out with them. */
  private static boolean areFull(Batch q, Batch p) {
    return !areDiagonal(q, p) && q.isExpandable() && p.isExpandable();
  }

  private static Object tiles(Kernels k) {
    return new VectorKernel(
        k.worker, new ColdKernel(k.worker), () -> k.isReady(KernelGroup.REFINEMENT));
  }

  /** Chooses the row of a call. */
  static KernelTable of(Choice backend, Formula formula, Batch q, Batch p) {
    for (KernelTable row : ROWS) {
      if ((row.backend == backend || row.backend == Choice.SCALAR)
          && row.formula.isInstance(formula)
          && row.batches.areFor(formula, q, p)) {
        return row;
      }
    }
    throw new AssertionError(formula);
  }

  /** Returns the group whose vectors pack operands. */
  KernelGroup packing() {
    return groups[groups.length > 1 ? 1 : 0];
  }

  /** Returns the groups that a call needs with vectors, and those with which full batches like these are made. */
  static EnumSet<KernelGroup> groups(Formula formula, Batch q, Batch p) {
    EnumSet<KernelGroup> groups = EnumSet.noneOf(KernelGroup.class);
    groups.addAll(List.of(of(Choice.VECTOR, formula, q, p).groups));
    if (!areDiagonal(q, p)) {
      groups.add(KernelGroup.FULL);
    }
    return groups;
  }

  /** Runs the trials of a group, and returns whether they end with compiled vectors. */
  static boolean tryOut(KernelGroup group, WarmUpTrial trial) {
    boolean isCompiled = true;
    for (KernelTable row : ROWS) {
      if (row.groups.length > 0 && row.groups[0] == group) {
        isCompiled = isCompiled && row.trial.test(trial);
      }
    }
    return isCompiled;
  }
}
