package dev.kullback.internal.engine;

import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.plain.Pair;
import dev.kullback.internal.rows.BandState;
import dev.kullback.internal.rows.NearestRows;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.vector.Readiness.KernelGroup;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Job;
import dev.kullback.internal.work.Worker;
import java.util.function.IntConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Kernels, targets and working memory of one thread in a call; pooled, so that warm calls allocate nothing. */
final class Workspace extends Worker {
  /** Destination of the results of the call that it leads, and its reductions. */
  final Results results = new Results();

  final NearestRows nearest = new NearestRows();
  final RowStatistic statistic = new RowStatistic();

  final Pair pair = new Pair(this);
  final BlockTarget target = new BlockTarget();
  final Kernels kernels;
  final BandState band;
  private final Engine engine;

  Workspace(Engine engine, @Nullable Predicate<KernelGroup> ready, @Nullable CudaDevice device) {
    this.engine = engine;
    kernels = new Kernels(ready, device, this, pair);
    band = new BandState(kernels.scan(), pair);
  }

  @Override
  public void share(int parts, IntConsumer part) {
    if (engine.isAlone(parts)) {
      super.share(parts, part);
    } else {
      engine.share(
          new Job<>(
              engine,
              parts,
              this,
              (k, own) -> {
                own.pass(Checkpoint.LOOK);
                part.accept((int) k);
              }));
    }
  }

  /** Drops the caller's arrays and batches before it goes back to the pool. */
  void clear() {
    kernels.clear();
    pair.clear();
    target.clear();
    results.clear();
    nearest.clear();
    statistic.clear();
    band.trim();
    reset();
  }
}
