package dev.kullback;

import dev.kullback.internal.cuda.CudaLibrary;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Which implementation computes. System property {@value #PROPERTY} overrides {@link #AUTO} for a whole process. */
public enum Backend {
  /** {@link #VECTOR} where it can run, else {@link #SCALAR} with one warning in the log that says why. */
  AUTO,

  /** Kernels on {@code jdk.incubator.vector}; needs that module, the C2 compiler and hardware FMA. */
  VECTOR,

  /** Plain Java; slower by an order of magnitude or two, as accurate, and runs everywhere. */
  SCALAR,

  /**
   * An NVIDIA device of compute capability 8.0 or later, through the native library built from {@code native/}; device 0, as
   * {@code CUDA_VISIBLE_DEVICES} numbers them. As accurate as the others. Never chosen by {@link #AUTO}: no crossover has been
   * measured yet from which on it pays, transfers included. Its first use in a process loads native code, for which Java wants
   * {@code --enable-native-access}.
   */
  CUDA;

  static final String PROPERTY = "dev.kullback.backend";
  static final String BITS_PROPERTY = "dev.kullback.vectorBits";
  private static final String VECTOR_MODULE = "jdk.incubator.vector";

  private static final String NOT_COMPILED =
      "this JVM does not compile vector code to vector instructions: is a flag in an options file, as -XX:TieredStopAtLevel, or a"
          + " compiler other than C2?";

  private static final AtomicBoolean WARNED = new AtomicBoolean();

  /** The backend's name, whether it can run in this process, and if not, why and what to do; one line. */
  public String describe() {
    return switch (this) {
      case AUTO -> "auto: " + describeAuto();
      case VECTOR -> {
        String problem = vectorProblem();
        yield problem != null
            ? "vector: unavailable, " + problem
            : "vector: available, %d-bit vectors, %d x %d float tiles%s"
                .formatted(
                    VectorWidth.BITS,
                    FloatKernels.MR,
                    FloatKernels.NR,
                    VectorWidth.isCompiled() ? "" : "; but " + NOT_COMPILED);
      }
      case SCALAR -> "scalar: available";
      case CUDA -> {
        String cuda = CudaLibrary.problem();
        yield "cuda: " + (cuda == null ? CudaLibrary.describe() : "unavailable, " + cuda);
      }
    };
  }

  private static String describeAuto() {
    String byProperty = ", as system property " + PROPERTY + " says";
    try {
      Backend forced = forced();
      if (forced != AUTO) {
        return "takes " + select(forced).name().toLowerCase(Locale.ROOT) + byProperty;
      }
    } catch (IllegalArgumentException | IllegalStateException e) {
      return "unavailable, " + e.getMessage();
    }
    return autoProblem() == null ? "takes vector" : "takes scalar, as vector cannot run well";
  }

  /** VECTOR, SCALAR or CUDA. */
  static Backend select(Backend asked) {
    Backend wanted = asked == AUTO ? forced() : asked;
    forcedBits();
    return switch (wanted) {
      case SCALAR -> SCALAR;
      case CUDA -> {
        refuse("cuda", CudaLibrary.problem());
        yield CUDA;
      }
      case VECTOR -> {
        refuse("vector", vectorProblem());
        yield VECTOR;
      }
      case AUTO -> {
        String problem = autoProblem();
        if (problem != null && jvmProblem() == null) {
          refuse("vector", widthProblem()); // what was asked for is not passed over
        }
        if (problem != null && WARNED.compareAndSet(false, true)) {
          System.getLogger("dev.kullback")
              .log(
                  System.Logger.Level.WARNING,
                  "Kullback computes without vectors, far slower: {0}",
                  problem);
        }
        yield problem == null ? VECTOR : SCALAR;
      }
    };
  }

  private static void refuse(String backend, @Nullable String problem) {
    if (problem != null) {
      throw new IllegalStateException("the %s backend cannot run: %s".formatted(backend, problem));
    }
  }

  private static Backend forced() {
    String name = System.getProperty(PROPERTY, "auto");
    try {
      return valueOf(name.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "system property %s is '%s'; it must be auto, vector, scalar or cuda"
              .formatted(PROPERTY, name),
          e);
    }
  }

  /** The vector width that a property asks for, in bits, or 0. */
  static int forcedBits() {
    String bits = System.getProperty(BITS_PROPERTY, "0");
    return switch (bits) {
      case "0", "128", "256", "512" -> Integer.parseInt(bits);
      default ->
          throw new IllegalArgumentException(
              "system property %s is '%s'; it must be 128, 256 or 512"
                  .formatted(BITS_PROPERTY, bits));
    };
  }

  /** Why this JVM as it was started cannot run {@link #VECTOR}, or null. */
  private static @Nullable String jvmProblem() {
    try {
      forcedBits();
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
    String level = stopAtLevel();
    if (!level.isEmpty() && !level.equals("4")) {
      return "this JVM runs without the C2 compiler (-XX:TieredStopAtLevel=%s)".formatted(level);
    }
    if (!hasFma()) {
      return "this JVM has no hardware fused multiply-add (-XX:+UseFMA, on a processor that has it)";
    }
    return null;
  }

  /** Of a width that is forced; to be asked only where there is no {@link #jvmProblem}. */
  private static @Nullable String widthProblem() {
    return forcedBits() <= VectorWidth.MOST_BITS
        ? null
        : "system property %s is %d, but the widest vectors here have %d bits"
            .formatted(BITS_PROPERTY, forcedBits(), VectorWidth.MOST_BITS);
  }

  /** Why {@link #VECTOR} cannot run here, or null. */
  private static @Nullable String vectorProblem() {
    String problem = jvmProblem();
    return problem != null ? problem : widthProblem();
  }

  /** Why {@link #AUTO} does not take {@link #VECTOR}, or null. */
  private static @Nullable String autoProblem() {
    String problem = vectorProblem();
    return problem != null || VectorWidth.isCompiled() ? problem : NOT_COMPILED;
  }

  /** The last TieredStopAtLevel on the command line, which the JVM tells of at level 1 only, or nothing. */
  private static String stopAtLevel() {
    Stream<String> options =
        Stream.concat(
            Stream.of(System.getenv("JAVA_TOOL_OPTIONS"), System.getenv("JDK_JAVA_OPTIONS"))
                .filter(Objects::nonNull)
                .flatMap(text -> Stream.of(text.split("\\s+"))),
            ProcessHandle.current().info().arguments().stream().flatMap(Stream::of));
    String flag = "-XX:TieredStopAtLevel=";
    return options
        .filter(option -> option.startsWith(flag))
        .map(option -> option.substring(flag.length()))
        .reduce("", (first, second) -> second);
  }

  /** Whether batches are checked and packed with vectors: where {@link #VECTOR} runs well, and the process is not to run {@link #SCALAR}. */
  static boolean hasVectors() {
    return !SCALAR.name().equalsIgnoreCase(System.getProperty(PROPERTY)) && Vectors.AVAILABLE;
  }

  private static final class Vectors {
    static final boolean AVAILABLE = autoProblem() == null;
  }

  /** Whether {@link Math#fma} is an instruction. */
  static boolean hasFma() {
    return Fma.HARDWARE;
  }

  private static final class Fma {
    /**
     * Told by its speed, for the flag can be read only through modules that need not be there: an instruction takes some 50 ns
     * in the interpreter and the BigDecimal replacement over 1 µs. The best of several trials, as others may use the processor.
     */
    static final boolean HARDWARE = probe();

    private static boolean probe() {
      double x = 1;
      long best = Long.MAX_VALUE;
      int calls = 100;
      for (int trial = 0; trial < 10; trial++) {
        long start = System.nanoTime();
        for (int i = 0; i < calls; i++) {
          x = Math.fma(x, 0.9999, 1e-9);
        }
        best = Math.min(best, System.nanoTime() - start);
      }
      return best < 400L * calls && x < 2;
    }
  }
}
