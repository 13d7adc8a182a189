package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.engine.Platform.Choice;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Pairs;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.vector.GradientKernel;
import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.internal.vector.full.FullGradientKernel;
import dev.kullback.internal.work.Worker;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The kernels and operands of one thread: for each row of {@link KernelTable} operands, a ready kernel and a cold one. Each is made when
 * first used, as its classes take long to load.
 */
public final class Kernels {
  /** Partial sums of a row on the scalar backend, which has no width of vectors to follow. */
  private static final int LANES = 4;

  final Formula formula;
  final Worker worker;

  /** The scalar kernel. For the reverse of KL it computes KL; the call exchanges q and p. */
  final Pair pair;

  /** Computes divergences of any pairs of rows, one by one. */
  final Pairs pairs;

  final @Nullable CudaDevice device;

  /** The device, while a call of this thread keeps it open. */
  private @Nullable CudaDevice entered;

  private final Choice backend;

  /** Partial sums into which a plain {@link #scan} divides a row. */
  final int scanLanes;

  /** Tells which vectors are to be used; null if nothing here uses vectors, not even reductions. */
  private final @Nullable Predicate<KernelGroup> vectors;

  /** The share in the thread in the background, which is to be told what is wanted; null where vectors are not left to it. */
  private final BackgroundWarmUp.@Nullable User user;

  private final Map<KernelTable, Operands<?>> operands = new EnumMap<>(KernelTable.class);
  private final Map<KernelTable, Object> ready = new EnumMap<>(KernelTable.class);
  private final Map<KernelTable, Object> cold = new EnumMap<>(KernelTable.class);

  /** Row of the last call. */
  private KernelTable row = KernelTable.SCALAR;

  /** Operands of {@link #begin}, and whether its roles are exchanged. */
  private Operands<?> ofMatrix = new Operands<>();

  private boolean isExchanged;

  /** Whether the last call began, or began to recompute entries, while vectors that it would use were not compiled. */
  private boolean isCold;

  /** Makes the kernels of a worker; {@code vectors} tells which vectors are to be used, null for none. */
  Kernels(
      Formula formula,
      @Nullable Predicate<KernelGroup> vectors,
      BackgroundWarmUp.@Nullable User user,
      @Nullable CudaDevice device,
      Worker worker,
      Pair pair) {
    this(
        formula,
        vectors,
        user,
        device,
        worker,
        pair,
        vectors != null ? VectorWidth.BITS / Double.SIZE : LANES);
  }

  private Kernels(
      Formula formula,
      @Nullable Predicate<KernelGroup> vectors,
      BackgroundWarmUp.@Nullable User user,
      @Nullable CudaDevice device,
      Worker worker,
      Pair pair,
      int scanLanes) {
    this.formula = formula;
    this.vectors = vectors;
    this.user = user;
    this.device = device;
    this.worker = worker;
    this.scanLanes = scanLanes;
    this.pair = pair.forward();
    pairs = new Pairs(pair);
    backend = device != null ? Choice.CUDA : vectors != null ? Choice.VECTOR : Choice.SCALAR;
  }

  /** Makes the kernels of a worker that searches an index, perhaps where there is no module of vectors; it scans rows to sort only. */
  public static Kernels ofIndex(
      Formula formula, Worker worker, Pair pair, BackgroundWarmUp.@Nullable User user) {
    Predicate<KernelGroup> vectors =
        user != null
            ? g -> g.isCompiled() && Platform.mayHaveVectors(true)
            : _ -> Platform.mayHaveVectors(false);
    return new Kernels(formula, vectors, user, null, worker, pair, LANES);
  }

  /** Chooses the row of the divergence of q and p, and has its vectors compiled; of the reverse of KL, for roles exchanged by the call. */
  KernelTable choose(Batch q, Batch p) {
    return choose(backend, q, p);
  }

  private KernelTable choose(Choice backend, Batch q, Batch p) {
    row = KernelTable.of(backend, formula, q, p);
    isCold = isCold(row);
    if (user != null) {
      user.begin(q.dimension(), row.atFirst);
      if (row == KernelTable.DEVICE && (q instanceof FullBatch || p instanceof FullBatch)) {
        user.begin(q.dimension(), KernelTable.FULL_FACTORS.groups); // of new batches
      }
    }
    return row;
  }

  private boolean isCold(KernelTable row) {
    for (KernelGroup group : row.atFirst) {
      if (!isReady(group)) {
        return true;
      }
    }
    return false;
  }

  /** Whether a call began, or began to recompute entries, while vectors that it would use were not compiled. */
  boolean isCold() {
    return isCold;
  }

  /** Returns the operands of a row, made when they are first asked for. */
  Operands<?> operands(KernelTable row) {
    Operands<?> own = operands.get(row);
    if (own == null) {
      own = (Operands<?>) row.operands(formula);
      operands.put(row, own);
    }
    return own;
  }

  /** Packs what a row's kernels read of a call's batches. */
  Operands<?> pack(KernelTable row, Batch q, Batch p) {
    Operands<?> own = operands(row);
    if (row == KernelTable.DEVICE) {
      if (q instanceof LowRankBatch || p instanceof LowRankBatch) {
        throw LowRankBatch.refused(q instanceof LowRankBatch ? "q" : "p", "a CUDA device");
      }
      CudaDevice device = Objects.requireNonNull(this.device);
      device.enter();
      entered = device;
      boolean isMixed = q.getClass() != p.getClass();
      own.pack(isMixed ? q.full() : q, isMixed ? p.full() : p, false, worker);
    } else {
      if (row == KernelTable.SCALAR
          && formula instanceof Kl
          && q instanceof DiagonalBatch a
          && p instanceof DiagonalBatch b) {
        a.precisions();
        b.precisions();
      }
      own.pack(q, p, row.groups.length > 0 && isReady(row.packing()), worker);
    }
    return own;
  }

  /** Whether vectors are to recompute entries, asked where there are some; has them tried. The first of the groups tells. */
  boolean isReadyToRecompute(KernelGroup[] groups, int dimension) {
    if (user != null) {
      user.begin(dimension, groups);
    }
    boolean isReady = isReady(groups[0]);
    isCold |= !isReady;
    return isReady;
  }

  /** Whether vectors of a group are to be used. */
  boolean isReady(KernelGroup group) {
    return vectors != null && vectors.test(group);
  }

  /** Returns this thread's kernel for a block, asked for each, so that a long call changes over to vectors once they are compiled. */
  @SuppressWarnings("unchecked") // kernels of a row read the operands of the row
  BlockKernel<Operands<?>> of(KernelTable row) {
    this.row = row;
    return (BlockKernel<Operands<?>>) kernel(row);
  }

  /**
   * Puts the divergences of rows [row0, row1) of a matrix and columns [column0, column1) into the target's block: {@code KL(q_i ‖ p_j)}, or
   * {@code exchanged} {@code KL(p_j ‖ q_i)}, whose rows are columns of the kernel, and begin at a multiple of {@link Batch#WIDEST_PANEL}.
   */
  void block(
      KernelTable row,
      Operands<?> operands,
      boolean exchanged,
      int row0,
      int row1,
      int column0,
      int column1,
      BlockTarget target) {
    if (exchanged) {
      int height =
          row == KernelTable.DEVICE
              ? column1 - column0
              : MatrixRunner.blockRows(operands.q().dimension());
      MatrixRunner.transpose(of(row), operands, height, row0, row1, column0, column1, target);
    } else {
      of(row).block(operands, row0, row1, column0, column1, target);
    }
  }

  /** Begins a matrix that this thread alone computes block by block: of q and p, or {@code exchanged} of p and q. */
  public void begin(Batch q, Batch p, boolean exchanged) {
    isExchanged = exchanged;
    Choice choice =
        backend == Choice.VECTOR && Platform.mayHaveVectors(user != null) ? backend : Choice.SCALAR;
    Batch a = exchanged ? p : q;
    Batch b = exchanged ? q : p;
    KernelTable last = row;
    KernelTable next = choose(choice, a, b);
    if (last != next) {
      clear(last);
    }
    ofMatrix = pack(next, a, b);
  }

  /** Puts a block of {@link #begin}'s matrix; the first row is a multiple of {@link Batch#WIDEST_PANEL}. */
  public void block(int row0, int row1, int column0, int column1, BlockTarget target) {
    int width = column1 - column0;
    target.useBlock(true, (row1 - row0) * width, row0, column0, width);
    block(row, ofMatrix, isExchanged, row0, row1, column0, column1, target);
  }

  private Object kernel(KernelTable row) {
    boolean isReady = row.groups.length > 0 && isReady(row.groups[0]);
    Map<KernelTable, Object> made = isReady ? ready : cold;
    Object kernel = made.get(row);
    if (kernel == null) {
      kernel = isReady ? row.ready(this) : row.cold(this);
      made.put(row, kernel);
    }
    return kernel;
  }

  /** Returns what computes {@code KL(q_i ‖ p_i)}, and divergences of q from N(0, I). */
  Pairs pairs(Batch q) {
    if (formula != Kl.FORWARD || backend != Choice.VECTOR || !(q instanceof FullBatch)) {
      return pairs;
    }
    isCold = isCold(KernelTable.FULL_PAIRS);
    if (user != null) {
      user.begin(q.dimension(), KernelTable.FULL_PAIRS.groups);
    }
    return (Pairs) kernel(KernelTable.FULL_PAIRS);
  }

  /** Has vectors for {@link #scan} compiled, if they are to be used. */
  void beginScans(int dimension) {
    if (user != null) {
      user.begin(dimension, KernelTable.SCANS.groups);
    }
  }

  /** Returns what goes through the rows of a block. */
  public RowScan scan() {
    return (RowScan) kernel(KernelTable.SCANS);
  }

  /** Has vectors for {@link #gradients} or {@link #fullGradients} compiled, if they are to be used. */
  void beginGradients(Batch q) {
    KernelTable row = q instanceof FullBatch ? KernelTable.FULL_GRADIENTS : KernelTable.GRADIENTS;
    isCold |= !isReady(row.groups[0]);
    if (user != null) {
      user.begin(q.dimension(), row.groups);
    }
  }

  /** Returns what sums up the derivatives of a block. */
  GradientKernel gradients() {
    return (GradientKernel) kernel(KernelTable.GRADIENTS);
  }

  /** Returns what sums up those of full covariances. */
  FullGradientKernel fullGradients() {
    return (FullGradientKernel) kernel(KernelTable.FULL_GRADIENTS);
  }

  /** Returns the scan of an index's panels for a block, asked for each; the first time it has vectors tried. */
  public PanelScan panels(int dimension) {
    beginIndex(dimension);
    return (PanelScan) kernel(KernelTable.PANELS);
  }

  /** Returns the scan of an index's codes for a block, likewise. */
  public CodeScan codes(int dimension) {
    beginIndex(dimension);
    return (CodeScan) kernel(KernelTable.CODES);
  }

  private void beginIndex(int dimension) {
    if (user != null
        && !(KernelGroup.INDEX.isCompiled() && user.hasAsked(KernelGroup.INDEX))
        && Platform.mayHaveVectors(true)) {
      user.begin(dimension, KernelTable.CODES.groups);
    }
  }

  /** Whether searches of an index that leaves vectors to the thread in the background are to use them. */
  public static boolean mayHaveVectors() {
    return Platform.mayHaveVectors(true);
  }

  /** Returns the groups whose vectors searches of an index use: of codes, or where it has none those of matrices of diagonal floats, or of full covariances. */
  public static Set<KernelGroup> indexGroups(
      Formula formula, boolean isCoded, boolean isFull, int dimension) {
    if (isCoded) {
      return EnumSet.of(KernelGroup.INDEX);
    }
    Batch like =
        isFull
            ? new FullBatch(new double[0], new double[0], null, dimension, true, true)
            : DiagonalBatch.ofSlot(dimension, Scale.STD, false);
    return KernelTable.groups(formula, like, like);
  }

  /** Whether searches of an index that has these groups use vectors now. */
  public static boolean isIndexFast(Set<KernelGroup> groups, boolean deferred) {
    return Platform.mayHaveVectors(deferred)
        && (!deferred || groups.stream().allMatch(KernelGroup::isCompiled));
  }

  /** Tells that a search of an index has ended, so that vectors are tried beside none. */
  public static void callEnded() {
    BackgroundWarmUp.callEnded();
  }

  /** Lets go of a call's batches and memory. */
  public void clear() {
    isCold = false;
    clear(row);
    if (entered != null) {
      CudaDevice device = entered;
      entered = null;
      device.exit();
    }
  }

  private void clear(KernelTable row) {
    Operands<?> own = operands.get(row);
    if (own != null) {
      own.clear();
    }
    clear(ready.get(row));
    clear(cold.get(row));
  }

  private static void clear(@Nullable Object kernel) {
    if (kernel instanceof BlockKernel<?> blocks) {
      blocks.clear();
    }
  }
}
