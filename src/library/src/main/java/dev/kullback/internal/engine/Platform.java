package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.cuda.CudaLibrary;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.MergerBounds;
import dev.kullback.internal.formula.ScalarMergers;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.Readiness;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Factorization;
import dev.kullback.internal.numerics.Fma;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.vector.CholeskyKernel;
import dev.kullback.internal.vector.FloatPanels;
import dev.kullback.internal.vector.RangeKernel;
import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.internal.vector.full.MergerKernel;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Knows what can run in this process, and chooses; no class with vectors is loaded before vectors are known to run. */
public final class Platform {
  /** Backends that a user may ask for. */
  public enum Choice {
    AUTO,
    VECTOR,
    SCALAR,
    CUDA
  }

  /** Whether engines and indexes leave kernels to the thread in the background, unless they are told otherwise. */
  public static final boolean IS_DEFERRED = Readiness.IS_DEFERRED;

  /** System property that overrides {@link Choice#AUTO} for the whole process. */
  public static final String PROPERTY = "dev.kullback.backend";

  private static final String VECTOR_MODULE = "jdk.incubator.vector";

  private static final AtomicBoolean WARNED = new AtomicBoolean();

  /** Tells which vectors batches are made with, as they know of no engine. */
  private static final Predicate<KernelGroup> READY = Readiness.of(IS_DEFERRED);

  private Platform() {}

  /** Whether a backend can run in this process; quick, but for the first time that CUDA is asked for. */
  public static boolean isAvailable(Choice choice) {
    return switch (choice) {
      case AUTO -> autoProblem() == null;
      case VECTOR -> vectorProblem() == null;
      case SCALAR -> true;
      case CUDA -> CudaLibrary.problem() == null && CudaLibrary.ask().isAvailable();
    };
  }

  /** The backend's name, whether it can run in this process, and if not, why and what to do; one line. */
  public static String describe(Choice choice) {
    return switch (choice) {
      case AUTO -> "auto: " + describeAuto();
      case VECTOR -> {
        String problem = vectorProblem();
        String boxing = problem != null ? null : boxingProblem();
        yield problem != null
            ? "vector: unavailable, " + problem
            : "vector: available, %d-bit vectors, %d x %d float tiles; fused multiply-add recognized by %s%s"
                .formatted(
                    VectorWidth.BITS,
                    FloatPanels.MR,
                    FloatPanels.NR,
                    Fma.SOURCE,
                    VectorWidth.isCompiled()
                        ? ", compiled vectors by "
                            + VectorWidth.source()
                            + (boxing == null ? "" : "; but " + boxing)
                        : "; but plain code computes in their stead: " + notCompiled());
      }
      case SCALAR -> "scalar: available";
      case CUDA -> {
        String cuda = CudaLibrary.problem();
        yield "cuda: " + (cuda == null ? CudaLibrary.ask().text() : "unavailable, " + cuda);
      }
    };
  }

  private static String describeAuto() {
    String problem = autoProblem();
    if (problem != null) {
      return "unavailable, " + problem;
    }
    Choice forced = forced();
    if (forced != Choice.AUTO) {
      return "chooses %s, as system property %s says"
          .formatted(forced.name().toLowerCase(Locale.ROOT), PROPERTY);
    }
    if (jvmProblem() != null) {
      return "chooses scalar, as vector cannot run well";
    }
    return VectorWidth.isCompiled()
        ? "chooses vector"
        : "chooses vector, with plain code in its stead";
  }

  /** Why {@link Choice#AUTO} cannot run, as the properties ask for what cannot be had, or null. */
  private static @Nullable String autoProblem() {
    try {
      Choice forced = forced();
      checkProperties();
      return switch (forced) {
        case AUTO -> jvmProblem() != null ? null : refusal("vector", widthProblem());
        case VECTOR -> refusal("vector", vectorProblem());
        case SCALAR -> null;
        case CUDA -> refusal("cuda", CudaLibrary.problem());
      };
    } catch (IllegalArgumentException e) {
      return e.getMessage();
    }
  }

  /** VECTOR, SCALAR or CUDA, for an engine that leaves kernels to the thread in the background or does not. */
  static Choice select(Choice asked, boolean deferred) {
    Choice wanted = asked == Choice.AUTO ? forced() : asked;
    checkProperties();
    return switch (wanted) {
      case SCALAR -> Choice.SCALAR;
      case CUDA -> {
        refuse("cuda", CudaLibrary.problem());
        yield Choice.CUDA;
      }
      case VECTOR -> {
        refuse("vector", vectorProblem());
        yield vectors(deferred);
      }
      case AUTO -> {
        String problem = jvmProblem();
        if (problem != null) {
          warn(problem);
          yield Choice.SCALAR;
        }
        refuse("vector", widthProblem()); // what was asked for is not passed over
        yield vectors(deferred);
      }
    };
  }

  /**
   * The vector backend, which computes by cold kernels as long as the VM is not known to compile vectors. A scalar engine would stay so,
   * and is mostly slower than these: at 1024 × 128, 186 ms instead of 67 (Zen 4).
   */
  private static Choice vectors(boolean deferred) {
    if (!deferred) {
      isCompiled(); // before kernels are compiled, for what the probe does
    } else if (!VectorWidth.isWorthTrying()) {
      warn(notCompiled());
    }
    return Choice.VECTOR;
  }

  /** Warns where an index, which has no backend to name, goes without vectors because of how the JVM was started. */
  public static void warnOfIndex() {
    String problem = isScalarForced() ? null : jvmProblem();
    if (problem != null) {
      warn(problem);
    }
  }

  private static void warn(String problem) {
    if (WARNED.compareAndSet(false, true)) {
      System.getLogger("dev.kullback")
          .log(
              System.Logger.Level.WARNING,
              "Kullback computes without vectors, far slower: {0}",
              problem);
    }
  }

  /**
   * Whether the VM compiles vector code, where it runs at all; finding out takes 0.2 s at first. Warns if not, and tells if it does then.
   */
  static boolean isCompiled() {
    boolean compiled = VectorWidth.isCompiled();
    if (!compiled) {
      warn(notCompiled());
    } else if (WARNED.getAndSet(false)) {
      System.getLogger("dev.kullback")
          .log(
              System.Logger.Level.INFO,
              "Kullback computes with vectors now: this JVM compiles them");
    }
    return compiled;
  }

  private static String notCompiled() {
    return "false".equalsIgnoreCase(System.getProperty(VectorWidth.COMPILED))
        ? "system property %s is false".formatted(VectorWidth.COMPILED)
        : ("this JVM does not compile vector code to vector instructions, or had no time to: is a flag in an options file, as"
                + " -XX:TieredStopAtLevel, or a compiler other than C2? It is tried again, every 10 minutes at last; system property"
                + " %s=true overrules what is found")
            .formatted(VectorWidth.COMPILED);
  }

  private static void refuse(String backend, @Nullable String problem) {
    String refusal = refusal(backend, problem);
    if (refusal != null) {
      throw new IllegalStateException(refusal);
    }
  }

  private static @Nullable String refusal(String backend, @Nullable String problem) {
    return problem == null ? null : "the %s backend cannot run: %s".formatted(backend, problem);
  }

  private static Choice forced() {
    String name = System.getProperty(PROPERTY, "auto");
    try {
      return Choice.valueOf(name.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "system property %s is '%s'; it must be auto, vector, scalar or cuda"
              .formatted(PROPERTY, name),
          e);
    }
  }

  /** Throws if a property has a value that it cannot have. */
  private static void checkProperties() {
    forcedBits();
    for (String property : new String[] {Fma.PROPERTY, VectorWidth.COMPILED, Readiness.PROPERTY}) {
      String value = System.getProperty(property, "true");
      if (!value.equalsIgnoreCase("true") && !value.equalsIgnoreCase("false")) {
        throw new IllegalArgumentException(
            "system property %s is '%s'; it must be true or false".formatted(property, value));
      }
    }
  }

  /** The vector width that a property asks for, in bits, or 0. */
  static int forcedBits() {
    String bits = System.getProperty(VectorWidth.PROPERTY, "0");
    return switch (bits) {
      case "0", "128", "256", "512" -> Integer.parseInt(bits);
      default ->
          throw new IllegalArgumentException(
              "system property %s is '%s'; it must be 128, 256 or 512"
                  .formatted(VectorWidth.PROPERTY, bits));
    };
  }

  /** Why this JVM as it was started cannot run {@link Choice#VECTOR}, or null. */
  private static @Nullable String jvmProblem() {
    try {
      checkProperties();
    } catch (IllegalArgumentException e) {
      return e.getMessage();
    }
    if (ModuleLayer.boot().findModule(VECTOR_MODULE).isEmpty()) {
      return "module %s is not resolved; start java with --add-modules %1$s"
          .formatted(VECTOR_MODULE);
    }
    String mode = System.getProperty("java.vm.info", "") + System.getProperty("java.vm.name", "");
    if (mode.contains("interpreted")
        || mode.contains("emulated-client")
        || mode.contains("Client VM")) {
      return "this JVM runs without the C2 compiler; start java without -Xint, -client or -XX:TieredStopAtLevel";
    }
    // the JVM itself tells of level 1 only
    String level = lastOption("-XX:TieredStopAtLevel=");
    if (!level.isEmpty() && !level.endsWith("=4")) {
      return "this JVM runs without the C2 compiler (%s)".formatted(level);
    }
    if (!Fma.IS_HARDWARE) {
      return "this JVM has no hardware fused multiply-add, recognized by %s".formatted(Fma.SOURCE)
          + (System.getProperty(Fma.PROPERTY) == null
              ? " (-XX:+UseFMA gives it, on a processor that has it)"
              : "");
    }
    return null;
  }

  /** Says why a width that is forced cannot be had; null if it can. Called only where there is no {@link #jvmProblem}. */
  private static @Nullable String widthProblem() {
    return forcedBits() <= VectorWidth.MOST_BITS
        ? null
        : "system property %s is %d, but the widest vectors here have %d bits"
            .formatted(VectorWidth.PROPERTY, forcedBits(), VectorWidth.MOST_BITS);
  }

  /** Why {@link Choice#VECTOR} cannot run here, or null. */
  private static @Nullable String vectorProblem() {
    String problem = jvmProblem();
    return problem != null ? problem : widthProblem();
  }

  /** Why C2 is known to box the kernels' vectors in this JVM, or null. */
  private static @Nullable String boxingProblem() {
    // a call of 512 x 128 floats allocated 129 to 282 MB and took 7 to 23 times as long; with 512
    // bits it allocated nothing (JDK 25.0.3 and 27.0.1, Zen 4)
    return VectorWidth.BITS < 512
            && lastOption("-XX:+UseTypeSpeculation", "-XX:-UseTypeSpeculation").startsWith("-XX:-")
        ? "-XX:-UseTypeSpeculation makes C2 box vectors of fewer than 512 bits, some ten times as slow: start java without it"
        : null;
  }

  /** The last option on the command line that begins with one of these, or nothing; options in files do not show. */
  private static String lastOption(String... beginnings) {
    List<String> options = new ArrayList<>();
    for (String variable : new String[] {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"}) {
      String value = System.getenv(variable);
      options.addAll(List.of(value == null ? new String[0] : value.split("\\s+", -1)));
    }
    options.addAll(List.of(ProcessHandle.current().info().arguments().orElse(new String[0])));
    String last = "";
    for (String option : options) {
      for (String beginning : beginnings) {
        last = option.startsWith(beginning) ? option : last;
      }
    }
    return last;
  }

  /**
   * Whether matrices are factored and batches packed with vectors once they are compiled: where {@link Choice#VECTOR} runs, as far as is
   * known well, and the process is not to run {@link Choice#SCALAR}.
   */
  public static boolean mayHaveVectors() {
    return mayHaveVectors(IS_DEFERRED);
  }

  /** The same where kernels are, or are not, left to the thread in the background; if not, it finds out whether vectors are compiled. */
  static boolean mayHaveVectors(boolean deferred) {
    return !isScalarForced() && Vectors.AVAILABLE && (deferred || VectorWidth.isCompiled());
  }

  private static boolean isScalarForced() {
    return Choice.SCALAR.name().equalsIgnoreCase(System.getProperty(PROPERTY));
  }

  private static final class Vectors {
    static final boolean AVAILABLE = vectorProblem() == null;
  }

  /** Returns what factors matrices for one thread: with vectors or without, to the same bits. */
  public static Factorization factorization() {
    return mayHaveVectors() && READY.test(KernelGroup.FULL_FACTORS)
        ? new CholeskyKernel()
        : new Cholesky();
  }

  /** Returns what checks floats: with vectors or without, to the same answer. */
  public static RangeCheck rangeCheck() {
    // mayHaveVectors last: batches made before the first engine do not wait for what it finds out
    return !isScalarForced() && READY.test(KernelGroup.PACKING) && mayHaveVectors()
        ? new RangeKernel()
        : RangeCheck.PLAIN;
  }

  /**
   * Returns what bounds the costs of mergers in up to {@link MergerBounds#MOST} dimensions: with vectors or without. A reducer of mixtures needs no engine, so this has
   * vectors tried where they are left to the thread in the background.
   */
  public static MergerBounds mergerBounds(int dimension) {
    if (!mayHaveVectors()) {
      return PLAIN_MERGERS;
    }
    if (IS_DEFERRED) {
      BackgroundWarmUp.begin(dimension, KernelTable.MERGERS.groups);
    }
    return READY.test(KernelGroup.MERGERS) ? VectorMergers.BOUNDS : PLAIN_MERGERS;
  }

  private static final MergerBounds PLAIN_MERGERS = new ScalarMergers();

  private static final class VectorMergers {
    static final MergerBounds BOUNDS = new MergerKernel();
  }

  /** Makes what every call of KL reads of a batch, or of points what calls with diagonal Gaussians do. */
  public static void prepare(Batch batch) {
    batch.markUsed(); // so that calls look for what is kept
    if (!mayHaveVectors()) {
      if (batch instanceof DiagonalBatch diagonal && !batch.arePoints()) {
        diagonal.precisions();
      }
    } else if (!batch.isSingular() || batch.arePoints()) {
      Formula formula = batch.arePoints() ? Density.LOG_DENSITY : Kl.FORWARD;
      KernelTable row = KernelTable.of(Choice.VECTOR, formula, batch, batch);
      boolean isReady = row.groups.length > 0 && READY.test(row.packing());
      ((Operands<?>) row.operands(formula)).prepare(batch, isReady);
    }
  }
}
