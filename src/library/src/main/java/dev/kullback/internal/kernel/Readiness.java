package dev.kullback.internal.kernel;

import java.util.function.Predicate;

/**
 * Whether the vector kernels are compiled. Before C2 has them they take 10 to 10,000 times as long, 30 ns an operation by C1 and 5 µs
 * in the interpreter; until then cold kernels compute, by the same operations in the same order, so to the same bits.
 */
public final class Readiness {
  /** The property that sets {@link #IS_DEFERRED}. */
  public static final String PROPERTY = "dev.kullback.background";

  /**
   * Whether kernels are left to a thread in the background, which tries them out, where an engine or index is not told: the default. If
   * not, vectors are used as soon as they are known to be compiled at all.
   */
  public static final boolean IS_DEFERRED =
      Boolean.parseBoolean(System.getProperty(PROPERTY, "true"));

  private static volatile boolean isProven;

  private Readiness() {}

  /** Whether the VM is known to compile vectors at all. */
  public static boolean isProven() {
    return isProven;
  }

  /** Has the VM known to compile vectors, from now on. */
  public static void setProven() {
    isProven = true;
  }

  /** Returns what tells which vectors are to be used where kernels are, or are not, left to the thread in the background. */
  public static Predicate<KernelGroup> of(boolean deferred) {
    return deferred ? KernelGroup::isCompiled : _ -> isProven;
  }

  /** Kernel groups that become ready independently, each what calls on one kind of batches need; in the order of their trials. */
  public enum KernelGroup {
    /** Tiles of floats, where their first form settles an entry: of KL, and of the divergences below. */
    FLOAT,
    FLOAT_WASSERSTEIN_2,
    FLOAT_JEFFREYS,
    FLOAT_CHERNOFF,
    /** Transposes of panels and checks of floats: what panels gain by vectors is less than what kernels do, so these come first. */
    PACKING,
    /** Tiles of doubles. */
    DOUBLE,
    /** Few dimensions. */
    SMALL,
    /** Full covariances: Chernoff's divergence, before what only new batches need. */
    FULL_CHERNOFF,
    /** Full covariances: Jeffreys' divergence. */
    FULL_JEFFREYS,
    /** Full covariances: the Wasserstein distance and its square. */
    FULL_WASSERSTEIN_2,
    /** Full covariances: the product of KL. */
    FULL,
    /** Low-rank covariances. */
    LOW_RANK,
    /** Full covariances: factors of new batches. */
    FULL_FACTORS,
    /** Operations of reductions on rows. */
    SCANS,
    /** Tiles of floats, where entries are recomputed. */
    REFINEMENT,
    /** Full covariances: pairs in lanes. */
    FULL_PAIRS,
    /**
     * Tiles of doubles, and of floats where entries are recomputed, of the Wasserstein distance and its square, of Jeffreys' divergence, and of
     * divergences made of Chernoff's.
     */
    WASSERSTEIN_2,
    JEFFREYS,
    CHERNOFF,
    /** The same of orders near 0 and 1, whose tiles are classes of their own. */
    CHERNOFF_NEAR_ZERO,
    CHERNOFF_NEAR_ONE,
    /** Near forms of scales of two kinds, of KL also in few dimensions, and in double of log-variances: of KL, Jeffreys' divergence, and those made of Chernoff's. */
    NEAR_KINDS,
    JEFFREYS_NEAR_KINDS,
    CHERNOFF_NEAR_KINDS,
    /** Sums of derivatives, of all divergences that have a gradient. */
    GRADIENTS,
    /** Full covariances: the same. */
    FULL_GRADIENTS,
    /** Full covariances: bounds of mergers, which reductions of mixtures alone ask for. */
    MERGERS,
    /** Scans of panels and codes, which an index alone asks for. */
    INDEX;

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
