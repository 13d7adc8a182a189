package dev.kullback.internal.engine;

import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.rows.BandState;
import dev.kullback.internal.rows.ExactOrder;
import dev.kullback.internal.rows.NearestRows;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.work.Job;
import dev.kullback.internal.work.Worker;
import java.lang.foreign.MemorySegment;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/** What one thread computes a call with; pooled, so that warm calls allocate nothing. */
public final class Workspace extends Worker {
  /** Where the results of the call that it leads go, and its reductions. */
  final Results output = new Results();

  final NearestRows nearest = new NearestRows();
  final RowStatistic statistic = new RowStatistic();

  final FullPair pair = new FullPair();
  final BlockTarget window = new BlockTarget();
  final Kernels kernels;
  final BandState band;
  private final Engine engine;

  Workspace(Engine engine, boolean vectors, @Nullable CudaDevice device, RowScan scan) {
    this.engine = engine;
    kernels = new Kernels(vectors, device, this, pair);
    band = new BandState(scan, new ExactOrder(this, pair));
  }

  /** Sends the call's results to an array. */
  public Workspace to(float[] out) {
    output.set(out);
    return this;
  }

  /** Sends the call's results to an array. */
  public Workspace to(double[] out) {
    output.set(out);
    return this;
  }

  /** Sends the call's results to a segment of doubles, if it is wide, or of floats. */
  public Workspace to(MemorySegment out, boolean wide) {
    output.set(out, wide);
    return this;
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
                own.checkInterrupt();
                own.pass(PART);
                part.accept((int) k);
              }));
    }
  }

  /** Drops the caller's arrays and batches before it goes back to the pool. */
  void clear() {
    kernels.end();
    pair.clear();
    window.clear();
    output.clear();
    nearest.clear();
    statistic.clear();
    band.trim();
    rest();
  }
}
