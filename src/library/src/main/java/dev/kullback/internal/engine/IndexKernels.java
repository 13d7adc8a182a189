package dev.kullback.internal.engine;

import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.plain.ScalarPanelScan;
import dev.kullback.internal.vector.PanelScanKernel;
import dev.kullback.internal.vector.Readiness.KernelGroup;
import org.jspecify.annotations.Nullable;

/** Kernels with which one thread searches an index: plain ones until C2 has compiled the vectors, and where there are none. */
public final class IndexKernels {
  private final PanelScan plain = new ScalarPanelScan();
  private @Nullable PanelScan vectors;

  /** Returns the scan for a block, asked for each; the first time it has vectors tried. */
  public PanelScan scan(int dimension) {
    if (vectors != null) {
      return vectors;
    }
    if (!Platform.mayHaveVectors()) {
      return plain;
    }
    if (!KernelGroup.INDEX.isCompiled()) {
      BackgroundWarmUp.begin(KernelGroup.INDEX, dimension);
      return plain;
    }
    vectors = new PanelScanKernel();
    return vectors;
  }

  /** Tells that a search has ended, so that vectors are tried beside none. */
  public static void callEnded() {
    BackgroundWarmUp.callEnded();
  }
}
