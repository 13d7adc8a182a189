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
import dev.kullback.internal.vector.Readiness;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.vector.VectorKernel;
import dev.kullback.internal.vector.full.FullCovarianceKernel;
import dev.kullback.internal.vector.full.FullPairs;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** One thread's kernels, and the one place where that of a call is chosen. */
final class Kernels {
  /** Of each kind made for the first call that needs it. */
  private @Nullable BlockKernel<DiagonalBatch> diagonal;

  /** For few dimensions; without vectors {@link #diagonal} does. */
  private @Nullable BlockKernel<DiagonalBatch> small;

  /** For pairs that are not both diagonal; without vectors {@link #pairs} does. */
  private @Nullable BlockKernel<FullBatch> full;

  private final BlockKernel<Batch> pairs;
  private final BlockKernel<Batch> zeros = new ZeroKernel();
  private final @Nullable BlockKernel<Batch> cuda;

  /** For what has one number a Gaussian, and for full ones once vectors are compiled, made likewise. */
  private final Pairs aligned;

  private @Nullable Pairs fullAligned;

  private final Worker worker;
  private final FullPair pair;

  /** Whether anything here uses vectors, were it a reduction alone. */
  private final boolean vectors;

  /** That of the call, if it is one for a matrix. */
  private @Nullable BlockKernel<?> chosen;

  Kernels(boolean vectors, @Nullable CudaDevice device, Worker worker, FullPair pair) {
    this.vectors = vectors;
    this.worker = worker;
    this.pair = pair;
    pairs = new FullScalarKernel(worker, pair);
    aligned = new Pairs(worker, pair);
    cuda = device != null ? new CudaKernel(device, worker) : null;
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
      return new FullCovarianceKernel(worker, pair);
    }

    static Pairs aligned(Worker worker, FullPair pair) {
      return new FullPairs(worker, pair);
    }

    static void begin(Batch q, Batch p) {
      BackgroundWarmUp.begin(q, p);
    }

    static boolean isReady(FullBatch q) {
      BackgroundWarmUp.begin(q, q);
      return Readiness.isReady(Readiness.KernelGroup.FULL);
    }
  }

  /** Chooses a kernel of {@code KL(q ‖ p)}, and begins the call with it. */
  BlockKernel<?> begin(Batch q, Batch p) {
    if (q.isDeterministic()) {
      return begin(zeros, q, p);
    }
    if (vectors && (cuda == null || q instanceof FullBatch || p instanceof FullBatch)) {
      Vectors.begin(q, p); // beside a device for what makes batches
    }
    if (cuda != null && q.getClass() == p.getClass()) {
      return begin(cuda, q, p);
    }
    if (cuda == null && q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      return begin(
          vectors && a.dimension() <= SmallKernel.MOST_DIMENSIONS ? small() : diagonal(), a, b);
    }
    if (!q.isExpandable() || !p.isExpandable()) {
      return begin(pairs, q, p);
    }
    return cuda != null
        ? begin(cuda, q.full(), p.full())
        : vectors ? begin(full(), q.full(), p.full()) : begin(pairs, q, p);
  }

  /** That for what has one number a Gaussian, of such batches. */
  Pairs aligned(Batch q) {
    if (!vectors || cuda != null || !(q instanceof FullBatch f) || !Vectors.isReady(f)) {
      return aligned;
    }
    if (fullAligned == null) {
      fullAligned = Vectors.aligned(worker, pair);
    }
    return fullAligned;
  }

  /** That for pairs of any batches. */
  Pairs pairs() {
    return aligned;
  }

  private BlockKernel<DiagonalBatch> diagonal() {
    if (diagonal == null) {
      diagonal = vectors && cuda == null ? Vectors.diagonal(worker) : new ScalarKernel(worker);
    }
    return diagonal;
  }

  private BlockKernel<DiagonalBatch> small() {
    if (small == null) {
      small = Vectors.small(worker);
    }
    return small;
  }

  private BlockKernel<FullBatch> full() {
    if (full == null) {
      full = Vectors.full(worker, pair);
    }
    return full;
  }

  private <G extends Batch> BlockKernel<G> begin(BlockKernel<G> kernel, G q, G p) {
    chosen = kernel;
    kernel.begin(q, p);
    return kernel;
  }

  /** Helps with a call that another thread's began. */
  void join(Kernels lead) {
    BlockKernel<?> theirs = lead.chosen;
    if (theirs != null && theirs == lead.diagonal) {
      diagonal();
    } else if (theirs != null && theirs == lead.small) {
      small();
    } else if (theirs != null && theirs == lead.full) {
      full();
    }
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
