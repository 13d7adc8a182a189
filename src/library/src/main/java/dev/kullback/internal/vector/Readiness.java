package dev.kullback.internal.vector;

import dev.kullback.internal.formula.Formula;

/**
 * Whether the vector kernels are compiled. Before C2 has them they take 10 to 10,000 times as long, 30 ns an operation by C1 and 5 µs
 * in the interpreter; until then cold kernels compute, by the same operations in the same order, so to the same bits.
 */
public final class Readiness {
  /** {@code false} has vectors used as soon as they are known to be compiled at all, and no thread started to try kernels out. */
  public static final String PROPERTY = "dev.kullback.background";

  /** Whether anything is left to a thread in the background. */
  public static final boolean IS_DEFERRED =
      Boolean.parseBoolean(System.getProperty(PROPERTY, "true"));

  private Readiness() {}

  /** Kernel groups that become ready independently, each what calls on one kind of batches need; in the order of their trials. */
  public enum KernelGroup {
    /** {@link VectorKernel} of floats, where its first form settles a tile. */
    FLOAT,
    /** Transposes of {@link FloatPanels}: what panels gain by vectors is less than what kernels do, so these come first. */
    PACKING,
    /** {@link VectorKernel} of doubles. */
    DOUBLE,
    /** {@link SmallKernel}. */
    SMALL,
    /** Full covariances: their factors, the kernel, pairs in lanes. */
    FULL,
    /** Full covariances: the kernel of Chernoff's divergence. */
    FULL_CHERNOFF,
    /** Full covariances: the kernel of Jeffreys' divergence. */
    FULL_JEFFREYS,
    /** {@link VectorScan}. */
    SCANS,
    /** {@link VectorKernel} of floats, where entries are recomputed. */
    REFINEMENT,
    /** {@link MeasureKernel} of the squared Wasserstein distance, of Jeffreys' divergence, and of what is made of Chernoff's. */
    WASSERSTEIN_2,
    JEFFREYS,
    CHERNOFF,
    /** {@link PanelScanKernel} and {@link CodeScanKernel}, which an index alone asks for. */
    INDEX;

    /** Returns the group of a formula that {@link MeasureKernel} computes. */
    public static KernelGroup of(Formula formula) {
      return switch (Summand.of(formula)) {
        case WASSERSTEIN_2 -> WASSERSTEIN_2;
        case JEFFREYS -> JEFFREYS;
        case CHERNOFF -> CHERNOFF;
      };
    }

    @SuppressWarnings("ImmutableEnumChecker") // once a process, as what C2 has compiled
    private volatile boolean isCompiled;

    /** Whether calls are to use these vectors. */
    public boolean isCompiled() {
      return isCompiled;
    }

    /** Has calls use these vectors from now on, or the cold kernels again. */
    public void setCompiled(boolean compiled) {
      isCompiled = compiled;
    }
  }
}
