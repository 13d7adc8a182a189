package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.cuda.CudaKernel;
import dev.kullback.internal.engine.Platform.Choice;
import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.kernel.ZeroKernel;
import dev.kullback.internal.vector.ColdKernel;
import dev.kullback.internal.vector.GradientKernel;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.vector.SmallOperands;
import dev.kullback.internal.vector.TileKernel;
import dev.kullback.internal.vector.TileOperands;
import dev.kullback.internal.vector.full.FullChernoffKernel;
import dev.kullback.internal.vector.full.FullColdChernoff;
import dev.kullback.internal.vector.full.FullColdJeffreys;
import dev.kullback.internal.vector.full.FullColdKernel;
import dev.kullback.internal.vector.full.FullColdWasserstein;
import dev.kullback.internal.vector.full.FullGradientKernel;
import dev.kullback.internal.vector.full.FullJeffreysKernel;
import dev.kullback.internal.vector.full.FullOperands;
import dev.kullback.internal.vector.full.FullPairs;
import dev.kullback.internal.vector.full.FullVectorKernel;
import dev.kullback.internal.vector.full.FullWassersteinKernel;
import dev.kullback.internal.vector.full.LowRankColdKernel;
import dev.kullback.internal.vector.full.LowRankJeffreys;
import dev.kullback.internal.vector.full.LowRankKernel;
import dev.kullback.internal.vector.full.LowRankOperands;
import dev.kullback.internal.vector.scan.CodeScanKernel;
import dev.kullback.internal.vector.scan.PanelScanKernel;
import dev.kullback.internal.vector.scan.ScalarCodeScan;
import dev.kullback.internal.vector.scan.ScalarPanelScan;
import dev.kullback.internal.vector.scan.ScalarScan;
import dev.kullback.internal.vector.scan.VectorScan;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.function.IntPredicate;

/**
 * All kernels. First come the rows for matrices: a call takes the first row that is for its backend, its divergence and its batches. Then
 * come the kernels that reductions and an index use. {@link Platform} chooses the code that checks and factors new batches. The columns are
 * methods: which batches, the operands, the ready kernel, the cold one of the same bits, and the trial.
 *
 * <p>{@link #groups} lists what C2 must compile for a row. While the first is not compiled, the cold kernel runs; the row's trial compiles
 * that group. {@link #packing} decides whether vectors pack the operands. The last ones are for entries that are recomputed, and wanted by the
 * first call that has any: {@link #toRecompute}.
 *
 * <p>This class loads no class with vectors before one is needed: what makes them returns objects, since the verifier loads a class to see
 * whether it extends another. With a lambda for each cell instead of these methods, 85 in all, the first call in a JVM took 50 ms longer;
 * it takes 170 (Zen 4).
 */
enum KernelTable {
  /** q is deterministic: every entry is 0. */
  ZERO(Choice.SCALAR, Kl.class),
  DEVICE(Choice.CUDA, Kl.class),
  SMALL(Choice.VECTOR, Kl.class, KernelGroup.SMALL),
  FLOAT(
      Choice.VECTOR,
      Kl.class,
      2,
      KernelGroup.FLOAT,
      KernelGroup.PACKING,
      KernelGroup.REFINEMENT,
      KernelGroup.DOUBLE),
  DOUBLE(Choice.VECTOR, Kl.class, KernelGroup.DOUBLE),
  FLOAT_WASSERSTEIN_2(
      Choice.VECTOR,
      Wasserstein2.class,
      1,
      KernelGroup.FLOAT_WASSERSTEIN_2,
      KernelGroup.WASSERSTEIN_2),
  FLOAT_JEFFREYS(
      Choice.VECTOR, Jeffreys.class, 1, KernelGroup.FLOAT_JEFFREYS, KernelGroup.JEFFREYS),
  FLOAT_CHERNOFF(
      Choice.VECTOR, Chernoff.class, 1, KernelGroup.FLOAT_CHERNOFF, KernelGroup.CHERNOFF),
  FLOAT_CHERNOFF_NEAR_ONE(
      Choice.VECTOR, Chernoff.class, 1, KernelGroup.FLOAT_CHERNOFF, KernelGroup.CHERNOFF_NEAR_ONE),
  WASSERSTEIN_2(Choice.VECTOR, Wasserstein2.class, KernelGroup.WASSERSTEIN_2),
  JEFFREYS(Choice.VECTOR, Jeffreys.class, KernelGroup.JEFFREYS),
  CHERNOFF(Choice.VECTOR, Chernoff.class, KernelGroup.CHERNOFF),
  CHERNOFF_NEAR_ZERO(Choice.VECTOR, Chernoff.class, KernelGroup.CHERNOFF_NEAR_ZERO),
  CHERNOFF_NEAR_ONE(Choice.VECTOR, Chernoff.class, KernelGroup.CHERNOFF_NEAR_ONE),
  FULL(
      Choice.VECTOR,
      Kl.class,
      2,
      KernelGroup.FULL,
      KernelGroup.FULL_FACTORS,
      KernelGroup.FULL_PAIRS),
  LOW_RANK(Choice.VECTOR, Kl.class, KernelGroup.LOW_RANK),
  LOW_RANK_JEFFREYS(Choice.VECTOR, Jeffreys.class, KernelGroup.LOW_RANK),
  FULL_JEFFREYS(Choice.VECTOR, Jeffreys.class, KernelGroup.FULL_JEFFREYS, KernelGroup.FULL_FACTORS),
  FULL_CHERNOFF(Choice.VECTOR, Chernoff.class, KernelGroup.FULL_CHERNOFF, KernelGroup.FULL_FACTORS),
  FULL_WASSERSTEIN_2(
      Choice.VECTOR, Wasserstein2.class, KernelGroup.FULL_WASSERSTEIN_2, KernelGroup.FULL_FACTORS),
  /** Any pairs, without vectors. */
  SCALAR(Choice.SCALAR, Formula.class),

  // --- other kernels

  /** {@link #FLOAT}, where entries are recomputed: cold kernels do so until then. */
  REFINEMENT(Choice.VECTOR, Formula.class, KernelGroup.REFINEMENT),
  /** What packs the operands of {@link #FLOAT}. */
  PACKING(Choice.VECTOR, Formula.class, KernelGroup.PACKING),
  /** Pairs of full covariances, and where {@link #FULL} recomputes entries. */
  FULL_PAIRS(Choice.VECTOR, Formula.class, KernelGroup.FULL_PAIRS),
  /** What factors new batches of full covariances. */
  FULL_FACTORS(Choice.VECTOR, Formula.class, KernelGroup.FULL_FACTORS),
  /** Where tiles recompute entries of batches whose scales few calls have, as {@link Formula#isOfOtherKinds} tells. */
  NEAR_KINDS(Choice.VECTOR, Kl.class, KernelGroup.NEAR_KINDS),
  JEFFREYS_NEAR_KINDS(Choice.VECTOR, Jeffreys.class, KernelGroup.JEFFREYS_NEAR_KINDS),
  CHERNOFF_NEAR_KINDS(Choice.VECTOR, Chernoff.class, KernelGroup.CHERNOFF_NEAR_KINDS),
  SCANS(Choice.VECTOR, Formula.class, KernelGroup.SCANS),
  GRADIENTS(Choice.VECTOR, Formula.class, KernelGroup.GRADIENTS),
  FULL_GRADIENTS(Choice.VECTOR, Formula.class, KernelGroup.FULL_GRADIENTS),
  /** Bounds of what merging components of mixtures costs. */
  MERGERS(Choice.VECTOR, Formula.class, KernelGroup.MERGERS),
  PANELS(Choice.VECTOR, Formula.class, KernelGroup.INDEX),
  CODES(Choice.VECTOR, Formula.class, KernelGroup.INDEX);

  private static final KernelTable[] ROWS = values();

  /** The backend that has the row's kernels; any has those of {@link Choice#SCALAR}. */
  private final Choice backend;

  private final Class<? extends Formula> formula;

  @SuppressWarnings("ImmutableEnumChecker") // nobody writes to it
  final KernelGroup[] groups;

  /** Groups that every call needs. */
  @SuppressWarnings("ImmutableEnumChecker")
  final KernelGroup[] atFirst;

  /** Groups that a call needs which recomputes entries; while the first is not compiled, cold kernels do so. */
  @SuppressWarnings("ImmutableEnumChecker")
  final KernelGroup[] toRecompute;

  KernelTable(Choice backend, Class<? extends Formula> formula, KernelGroup... groups) {
    this(backend, formula, groups.length, groups);
  }

  KernelTable(Choice backend, Class<? extends Formula> formula, int first, KernelGroup... groups) {
    this.backend = backend;
    this.formula = formula;
    this.groups = groups;
    atFirst = Arrays.copyOf(groups, first);
    toRecompute = Arrays.copyOfRange(groups, first, groups.length);
  }

  private boolean isFor(Formula formula, Batch q, Batch p) {
    return switch (this) {
      case ZERO -> q.isDeterministic();
      case DEVICE -> q.getClass() == p.getClass() || areFull(q, p) || areLowRank(q, p);
      case SMALL ->
          areDiagonal(q, p)
              && q.dimension()
                  <= (((DiagonalBatch) q).kind() == ((DiagonalBatch) p).kind()
                      ? SmallKernel.MOST_DIMENSIONS
                      : SmallKernel.MOST_OF_OTHER_KINDS)
              && !formula.isOfPoints();
      case FLOAT, FLOAT_WASSERSTEIN_2, FLOAT_JEFFREYS, FLOAT_CHERNOFF, FLOAT_CHERNOFF_NEAR_ONE ->
          areDiagonal(q, p)
              && isOfOrder(formula)
              && formula.hasTiles()
              && !formula.needsDouble() // as of gradients, whose tiles are those of doubles
              && !q.isDouble()
              && !p.isDouble();
      case DOUBLE, WASSERSTEIN_2, JEFFREYS, CHERNOFF, CHERNOFF_NEAR_ZERO, CHERNOFF_NEAR_ONE ->
          areDiagonal(q, p) && isOfOrder(formula) && formula.hasTiles();
      case FULL, FULL_JEFFREYS -> areFull(q, p);
      case LOW_RANK, LOW_RANK_JEFFREYS -> areLowRank(q, p);
      case FULL_CHERNOFF -> areFull(q, p) && q.dimension() <= FullOperands.MOST_CHERNOFF_DIMENSIONS;
      case FULL_WASSERSTEIN_2 -> areFull(q, p) && FullOperands.hasWasserstein(q.dimension());
      case SCALAR -> true;
      case REFINEMENT,
          PACKING,
          FULL_PAIRS,
          FULL_FACTORS,
          NEAR_KINDS,
          JEFFREYS_NEAR_KINDS,
          CHERNOFF_NEAR_KINDS,
          SCANS,
          GRADIENTS,
          FULL_GRADIENTS,
          MERGERS,
          PANELS,
          CODES ->
          false;
    };
  }

  /** Whether a row has the tiles that a formula's order takes: those of double alone where floats settle nothing. */
  private boolean isOfOrder(Formula formula) {
    if (!(formula.kernels() instanceof Chernoff f)) {
      return true;
    }
    return switch (this) {
      case CHERNOFF_NEAR_ZERO -> f.isNearZero();
      case CHERNOFF_NEAR_ONE -> f.isNearOne();
      case FLOAT_CHERNOFF_NEAR_ONE -> f.isNearOne();
      default -> !f.isNearZero() && !f.isNearOne();
    };
  }

  /** Makes a thread's {@link Operands}. */
  Object operands(Formula formula) {
    return switch (this) {
      case SMALL -> new SmallOperands();
      case FLOAT,
          DOUBLE,
          FLOAT_WASSERSTEIN_2,
          FLOAT_JEFFREYS,
          FLOAT_CHERNOFF,
          FLOAT_CHERNOFF_NEAR_ONE,
          WASSERSTEIN_2,
          JEFFREYS,
          CHERNOFF,
          CHERNOFF_NEAR_ZERO,
          CHERNOFF_NEAR_ONE ->
          new TileOperands(formula);
      case FULL -> new FullOperands(formula, FullOperands.Roles.ONE);
      case LOW_RANK -> new LowRankOperands(false);
      case LOW_RANK_JEFFREYS -> new LowRankOperands(true);
      case FULL_JEFFREYS -> new FullOperands(formula, FullOperands.Roles.BOTH);
      case FULL_CHERNOFF -> new FullOperands(formula, FullOperands.Roles.BOTH_AND_CORRELATIONS);
      case FULL_WASSERSTEIN_2 -> new FullOperands(formula, FullOperands.Roles.NONE);
      default -> plainOperands(); // an object, so that all of these are objects to the verifier
    };
  }

  private static Object plainOperands() {
    return new Operands<>();
  }

  /** Makes a thread's kernel with vectors. */
  Object ready(Kernels k) {
    return switch (this) {
      case SMALL -> small(k);
      case FLOAT, FLOAT_WASSERSTEIN_2, FLOAT_JEFFREYS, FLOAT_CHERNOFF, FLOAT_CHERNOFF_NEAR_ONE ->
          tiles(k, dimension -> k.isReadyToRecompute(toRecompute, dimension));
      case DOUBLE, WASSERSTEIN_2, JEFFREYS, CHERNOFF, CHERNOFF_NEAR_ZERO, CHERNOFF_NEAR_ONE ->
          tiles(k, _ -> true);
      case FULL ->
          new FullVectorKernel(
              k.worker,
              k.pair,
              k.formula.isOfPoints()
                  ? _ -> false
                  : dimension -> k.isReadyToRecompute(toRecompute, dimension));
      case LOW_RANK -> new LowRankKernel(k.worker);
      case LOW_RANK_JEFFREYS -> new LowRankJeffreys(new LowRankKernel(k.worker));
      case FULL_JEFFREYS -> new FullJeffreysKernel(k.worker, k.pair);
      case FULL_CHERNOFF -> new FullChernoffKernel(k.formula, k.worker, k.pair);
      case FULL_WASSERSTEIN_2 ->
          new FullWassersteinKernel((Wasserstein2) k.formula, k.worker, k.pair);
      case FULL_PAIRS -> new FullPairs(k.pair, k.worker);
      case SCANS -> new VectorScan();
      case GRADIENTS -> new GradientKernel(true);
      case FULL_GRADIENTS -> fullGradients(k, true);
      case PANELS -> new PanelScanKernel();
      case CODES -> new CodeScanKernel();
      case ZERO,
          DEVICE,
          SCALAR,
          REFINEMENT,
          PACKING,
          FULL_FACTORS,
          NEAR_KINDS,
          JEFFREYS_NEAR_KINDS,
          CHERNOFF_NEAR_KINDS,
          MERGERS ->
          throw new AssertionError(this);
    };
  }

  private Object small(Kernels k) {
    KernelGroup[] nearKinds = nearKinds();
    return new SmallKernel(
        k.worker, k.pair, dimension -> k.isReadyToRecompute(nearKinds, dimension));
  }

  private Object tiles(Kernels k, IntPredicate isRefinementReady) {
    KernelGroup[] nearKinds = nearKinds();
    return new TileKernel(
        k.formula,
        k.worker,
        k.pair,
        new ColdKernel(k.formula, k.worker, k.pair),
        isRefinementReady,
        dimension -> k.isReadyToRecompute(nearKinds, dimension));
  }

  private KernelGroup[] nearKinds() {
    return switch (this) {
      case SMALL, FLOAT, DOUBLE -> NEAR_KINDS.groups;
      case FLOAT_JEFFREYS, JEFFREYS -> JEFFREYS_NEAR_KINDS.groups;
      case FLOAT_CHERNOFF,
          FLOAT_CHERNOFF_NEAR_ONE,
          CHERNOFF,
          CHERNOFF_NEAR_ZERO,
          CHERNOFF_NEAR_ONE ->
          CHERNOFF_NEAR_KINDS.groups;
      default -> ZERO.groups; // none
    };
  }

  private static Object fullGradients(Kernels k, boolean vectors) {
    return new FullGradientKernel(Term.required(k.formula), vectors, k.worker);
  }

  /** Makes a thread's kernel until C2 has compiled the other, and where there is none. */
  Object cold(Kernels k) {
    return switch (this) {
      case ZERO -> new ZeroKernel();
      case DEVICE -> new CudaKernel(Objects.requireNonNull(k.device), k.worker);
      case SMALL, SCALAR -> k.pair;
      case FLOAT,
          DOUBLE,
          FLOAT_WASSERSTEIN_2,
          FLOAT_JEFFREYS,
          FLOAT_CHERNOFF,
          FLOAT_CHERNOFF_NEAR_ONE,
          WASSERSTEIN_2,
          JEFFREYS,
          CHERNOFF,
          CHERNOFF_NEAR_ZERO,
          CHERNOFF_NEAR_ONE ->
          new ColdKernel(k.formula, k.worker, k.pair);
      case FULL -> new FullColdKernel(k.worker, k.pair);
      case LOW_RANK -> new LowRankColdKernel(k.worker);
      case LOW_RANK_JEFFREYS -> new LowRankJeffreys(new LowRankColdKernel(k.worker));
      case FULL_JEFFREYS -> new FullColdJeffreys(k.worker, k.pair);
      case FULL_CHERNOFF -> new FullColdChernoff(k.formula, k.worker, k.pair);
      case FULL_WASSERSTEIN_2 ->
          new FullColdWasserstein((Wasserstein2) k.formula, k.worker, k.pair);
      case FULL_PAIRS -> k.pairs;
      case SCANS -> new ScalarScan(k.scanLanes);
      case GRADIENTS -> new GradientKernel(false);
      case FULL_GRADIENTS -> fullGradients(k, false);
      case PANELS -> new ScalarPanelScan();
      case CODES -> new ScalarCodeScan();
      case REFINEMENT,
          PACKING,
          FULL_FACTORS,
          NEAR_KINDS,
          JEFFREYS_NEAR_KINDS,
          CHERNOFF_NEAR_KINDS,
          MERGERS ->
          throw new AssertionError(this);
    };
  }

  private boolean tryOut(WarmUpTrial t) {
    return switch (this) {
      case SMALL -> t.small();
      case FLOAT -> t.floats();
      case REFINEMENT -> t.refinement();
      case PACKING -> t.packing();
      case DOUBLE -> t.doubles();
      case FLOAT_WASSERSTEIN_2, FLOAT_JEFFREYS, FLOAT_CHERNOFF -> t.formulaOfFloats(groups[0]);
      case WASSERSTEIN_2, JEFFREYS, CHERNOFF, CHERNOFF_NEAR_ZERO, CHERNOFF_NEAR_ONE -> t.formula();
      case FULL, FULL_JEFFREYS, FULL_CHERNOFF, FULL_WASSERSTEIN_2 -> t.full(groups[0]);
      case LOW_RANK -> t.lowRank();
      case FULL_PAIRS -> t.fullPairs();
      case FULL_FACTORS -> t.fullFactors();
      case NEAR_KINDS, JEFFREYS_NEAR_KINDS, CHERNOFF_NEAR_KINDS -> t.nearKinds();
      case SCANS -> t.scans();
      case GRADIENTS -> t.gradients();
      case FULL_GRADIENTS -> t.fullGradients();
      case MERGERS -> t.mergers();
      case PANELS -> t.panels();
      case CODES -> t.codes();
      case FLOAT_CHERNOFF_NEAR_ONE, LOW_RANK_JEFFREYS -> true; // by the other row of the group
      case ZERO, DEVICE, SCALAR -> true;
    };
  }

  private static boolean areDiagonal(Batch q, Batch p) {
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch;
  }

  /** Whether one has full covariances and the other has them or can be written out with them. */
  private static boolean areFull(Batch q, Batch p) {
    return hasFull(q, p) && q.isExpandable() && p.isExpandable();
  }

  /** Whether one has low-rank covariances and neither has full ones. */
  private static boolean areLowRank(Batch q, Batch p) {
    return !areDiagonal(q, p) && !hasFull(q, p);
  }

  private static boolean hasFull(Batch q, Batch p) {
    return q instanceof FullBatch || p instanceof FullBatch;
  }

  /** Chooses the row of a call. */
  static KernelTable of(Choice backend, Formula formula, Batch q, Batch p) {
    for (KernelTable row : ROWS) {
      if ((row.backend == backend || row.backend == Choice.SCALAR)
          && row.formula.isInstance(formula.kernels())
          && row.isFor(formula, q, p)) {
        return row;
      }
    }
    throw new AssertionError(formula);
  }

  /** Returns the group whose vectors pack operands. */
  KernelGroup packing() {
    return switch (this) {
      case FLOAT -> groups[1];
      default -> groups[0];
    };
  }

  /** Returns the groups that a call needs with vectors, and those with which full batches like these are made. */
  static EnumSet<KernelGroup> groups(Formula formula, Batch q, Batch p) {
    EnumSet<KernelGroup> groups = EnumSet.noneOf(KernelGroup.class);
    KernelTable row = of(Choice.VECTOR, formula, q, p);
    groups.addAll(List.of(row.groups));
    if (q instanceof DiagonalBatch a
        && p instanceof DiagonalBatch b
        && (row != SMALL || a.kind() != b.kind()) // it has all others of one kind
        && formula.isOfOtherKinds(a, b, a.isDouble() || b.isDouble() || formula.needsDouble())) {
      groups.addAll(List.of(row.nearKinds()));
    }
    if (hasFull(q, p)) {
      groups.add(KernelGroup.FULL_FACTORS);
    }
    return groups;
  }

  /** Runs the trials of a group, and returns whether they end with compiled vectors. */
  static boolean tryOut(KernelGroup group, WarmUpTrial trial) {
    boolean isCompiled = true;
    for (KernelTable row : ROWS) {
      if (row.groups.length > 0 && row.groups[0] == group) {
        isCompiled = isCompiled && row.tryOut(trial);
      }
    }
    return isCompiled;
  }
}
