package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.cuda.CudaKernel;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.plain.FullScalarKernel;
import dev.kullback.internal.plain.Pairs;
import dev.kullback.internal.plain.ScalarKernel;
import dev.kullback.internal.plain.ZeroKernel;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.vector.VectorKernel;
import dev.kullback.internal.vector.full.FullPairs;
import dev.kullback.internal.vector.full.FullVectorKernel;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** One thread's kernels, and the one place where that of a call is chosen. */
final class Kernels {
  private final BlockKernel<DiagonalBatch> diagonal;

  /** For few dimensions; without vectors {@link #diagonal} does. */
  private final @Nullable BlockKernel<DiagonalBatch> small;

  /** For pairs that are not both diagonal; without vectors {@link #pairs} does. */
  private final @Nullable BlockKernel<FullBatch> full;

  private final BlockKernel<Batch> pairs;
  private final BlockKernel<Batch> zeros = new ZeroKernel();
  private final @Nullable BlockKernel<Batch> cuda;

  /** For what has one number a Gaussian. */
  final Pairs aligned;

  /** That of the call, if it is one for a matrix. */
  private @Nullable BlockKernel<?> chosen;

  Kernels(Platform.Choice backend, @Nullable CudaDevice device, Worker worker, FullPair pair) {
    boolean vectors = backend == Platform.Choice.VECTOR;
    diagonal = vectors ? Vectors.diagonal(worker) : new ScalarKernel(worker);
    small = vectors ? Vectors.small(worker) : null;
    full = vectors ? Vectors.full(worker, pair) : null;
    pairs = new FullScalarKernel(worker, pair);
    aligned = vectors ? Vectors.aligned(worker, pair) : new Pairs(worker, pair);
    cuda = device != null ? new CudaKernel(device) : null;
  }

  /** Apart, so that verifying the constructor loads no class with vectors. */
  private static final class Vectors {
    static BlockKernel<DiagonalBatch> diagonal(Worker worker) {
      return new VectorKernel(worker);
    }

    static BlockKernel<DiagonalBatch> small(Worker worker) {
      return new SmallKernel(worker);
    }

    static BlockKernel<FullBatch> full(Worker worker, FullPair pair) {
      return new FullVectorKernel(worker, pair);
    }

    static Pairs aligned(Worker worker, FullPair pair) {
      return new FullPairs(worker, pair);
    }
  }

  /** Chooses a kernel of {@code KL(q ‖ p)}, and begins the call with it. */
  BlockKernel<?> begin(Batch q, Batch p) {
    if (q.isDeterministic()) {
      return begin(zeros, q, p);
    }
    if (cuda != null && q.getClass() == p.getClass()) {
      return begin(cuda, q, p);
    }
    if (cuda == null && q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      return begin(
          small != null && a.dimension() <= SmallKernel.MOST_DIMENSIONS ? small : diagonal, a, b);
    }
    if (!q.isExpandable() || !p.isExpandable()) {
      return begin(pairs, q, p);
    }
    return cuda != null
        ? begin(cuda, q.full(), p.full())
        : full != null ? begin(full, q.full(), p.full()) : begin(pairs, q, p);
  }

  private <G extends Batch> BlockKernel<G> begin(BlockKernel<G> kernel, G q, G p) {
    chosen = kernel;
    kernel.begin(q, p);
    return kernel;
  }

  /** Helps with a call that another thread's began. */
  void join(Kernels lead) {
    BlockKernel<?> theirs = lead.chosen;
    for (BlockKernel<?> kernel : new BlockKernel<?>[] {diagonal, small, full, pairs, zeros, cuda}) {
      if (kernel != null && theirs != null && kernel.getClass() == theirs.getClass()) {
        chosen = kernel;
        kernel.join(theirs);
      }
    }
  }

  BlockKernel<?> chosen() {
    return Objects.requireNonNull(chosen);
  }

  /** After a call. */
  void end() {
    BlockKernel<?> kernel = chosen;
    if (kernel != null) {
      chosen = null;
      kernel.end();
    }
  }
}
