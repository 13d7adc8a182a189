package dev.kullback.internal.engine;

import dev.kullback.internal.formula.ScalarCodeScan;
import dev.kullback.internal.formula.ScalarPanelScan;
import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.vector.CodeScanKernel;
import dev.kullback.internal.vector.PanelScanKernel;
import dev.kullback.internal.vector.Readiness.KernelGroup;

/** Kernels with which one thread searches an index: plain ones until C2 has compiled the vectors, and where there are none. */
public final class IndexKernels {
  private PanelScan panels = new ScalarPanelScan();
  private CodeScan codes = new ScalarCodeScan();
  private boolean areVectors;

  /** Returns the scan of panels for a block, asked for each; the first time it has vectors tried. */
  public PanelScan panels(int dimension) {
    change(dimension);
    return panels;
  }

  /** Returns the scan of codes for a block, likewise. */
  public CodeScan codes(int dimension) {
    change(dimension);
    return codes;
  }

  private void change(int dimension) {
    if (areVectors || !Platform.mayHaveVectors()) {
      return;
    }
    if (!KernelGroup.INDEX.isCompiled()) {
      BackgroundWarmUp.begin(KernelGroup.INDEX, dimension);
      return;
    }
    panels = new PanelScanKernel();
    codes = new CodeScanKernel();
    areVectors = true;
  }

  /** Tells that a search has ended, so that vectors are tried beside none. */
  public static void callEnded() {
    BackgroundWarmUp.callEnded();
  }
}
