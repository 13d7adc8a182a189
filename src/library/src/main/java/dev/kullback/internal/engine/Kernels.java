package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.cuda.CudaKernel;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Pairs;
import dev.kullback.internal.formula.ScalarScan;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.kernel.ZeroKernel;
import dev.kullback.internal.vector.MeasureOperands;
import dev.kullback.internal.vector.Readiness.KernelGroup;
import dev.kullback.internal.vector.full.FullOperands;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Kernels of one thread, its operands for the calls that it makes, and the choice of the kernel that computes a matrix. */
final class Kernels {
  /** Partial sums of a row on the scalar backend, which has no width of vectors to follow. */
  private static final int LANES = 4;

  private final Formula formula;
  private final Operands<Batch> operands = new Operands<>();

  /** The device, while a call of this thread keeps it open. */
  private @Nullable CudaDevice entered;

  private final ZeroKernel zero = new ZeroKernel();

  /** The scalar kernel, of the reverse of KL with the roles that its calls exchange. */
  private final Pair pair;

  private final @Nullable CudaKernel cuda;

  /** Null if nothing here uses vectors, not even reductions. */
  private final @Nullable ReadyKernels vectors;

  /** Computes divergences of any pairs of rows, one by one. */
  final Pairs pairs;

  private final RowScan scan = new ScalarScan(LANES);

  /** Makes the kernels of a worker; {@code ready} tells which vectors are to be used, null for none. */
  Kernels(
      Formula formula,
      @Nullable Predicate<KernelGroup> ready,
      @Nullable CudaDevice device,
      Worker worker,
      Pair pair) {
    this.formula = formula;
    this.pair = pair.forward();
    pairs = new Pairs(pair);
    cuda = device != null ? new CudaKernel(device, worker) : null;
    vectors = ready != null ? new ReadyKernels(formula, pairs, worker, this.pair, ready) : null;
  }

  /** Chooses the kernel of the divergence of q and p, and packs what its blocks read; of the reverse of KL, for roles exchanged by the call. */
  Operands<?> prepare(Batch q, Batch p) {
    if (!(formula instanceof Kl)) {
      return prepareOther(q, p);
    }
    if (q.isDeterministic()) {
      return set(Operands.Kind.ZERO, q, p);
    }
    if (vectors != null && (cuda == null || q instanceof FullBatch || p instanceof FullBatch)) {
      BackgroundWarmUp.begin(formula, q, p); // with a device, vectors only make full batches
    }
    if (cuda != null && q.getClass() == p.getClass()) {
      return enter(cuda.device(), q, p);
    }
    if (cuda == null && q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      if (vectors != null) {
        return vectors.prepare(a, b);
      }
      a.precisions();
      b.precisions();
      return set(Operands.Kind.SCALAR, q, p);
    }
    if (!q.isExpandable() || !p.isExpandable() || (cuda == null && vectors == null)) {
      return set(Operands.Kind.SCALAR, q, p);
    }
    if (cuda != null) {
      return enter(cuda.device(), q.full(), p.full());
    }
    return Objects.requireNonNull(vectors).prepare(q.full(), p.full());
  }

  /** Chooses the kernel of a divergence other than KL. */
  private Operands<?> prepareOther(Batch q, Batch p) {
    if (vectors != null
        && q instanceof DiagonalBatch a
        && p instanceof DiagonalBatch b
        && MeasureOperands.has(formula)) {
      BackgroundWarmUp.begin(formula, a, b);
      return vectors.prepare(a, b);
    }
    boolean isFull = q instanceof FullBatch || p instanceof FullBatch;
    if (vectors == null
        || !isFull
        || !q.isExpandable()
        || !p.isExpandable()
        || !hasFullKernel(q.dimension())) {
      return set(Operands.Kind.SCALAR, q, p);
    }
    BackgroundWarmUp.begin(formula, q, p);
    return vectors.prepareOther(q.full(), p.full());
  }

  private boolean hasFullKernel(int dimension) {
    return switch (formula.fullKernel()) {
      case PRODUCT, TWO_PRODUCTS -> true;
      case FACTORS -> dimension <= FullOperands.MOST_CHERNOFF_DIMENSIONS;
      case NONE -> false;
    };
  }

  private Operands<Batch> enter(CudaDevice device, Batch q, Batch p) {
    device.enter();
    entered = device;
    return set(Operands.Kind.DEVICE, q, p);
  }

  private Operands<Batch> set(Operands.Kind kind, Batch q, Batch p) {
    operands.set(kind, q, p);
    return operands;
  }

  /** Returns this thread's kernel for a block, asked for each, so that a long call changes over to vectors once they are compiled. */
  @SuppressWarnings("unchecked") // kernels of a kind read the operands of the kind
  BlockKernel<Operands<?>> of(Operands<?> operands) {
    BlockKernel<?> kernel =
        switch (operands.kind()) {
          case ZERO -> zero;
          case SCALAR -> pair;
          case DEVICE -> Objects.requireNonNull(cuda);
          case SMALL, FLOAT, DOUBLE, FULL, FULL_CHERNOFF, FULL_JEFFREYS, MEASURE ->
              Objects.requireNonNull(vectors).of(operands.kind());
        };
    return (BlockKernel<Operands<?>>) kernel;
  }

  /** Returns what computes {@code KL(q_i ‖ p_i)}, and divergences of q from N(0, I). */
  Pairs pairs(Batch q) {
    return formula == Kl.FORWARD && vectors != null && cuda == null && q instanceof FullBatch f
        ? vectors.pairs(f)
        : pairs;
  }

  /** Has vectors for {@link #scan} compiled, if they are to be used. */
  void beginScans(int dimension) {
    if (vectors != null) {
      BackgroundWarmUp.begin(KernelGroup.SCANS, dimension);
    }
  }

  /** Returns what goes through the rows of a block. */
  RowScan scan() {
    return vectors != null ? vectors.scan() : scan;
  }

  /** Lets go of a call's batches and memory. */
  void clear() {
    operands.clear();
    CudaDevice device = entered;
    if (device != null) {
      entered = null;
      device.exit();
    }
    if (vectors != null) {
      vectors.clear();
    }
  }
}
