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

  private static final AtomicBoolean WARNED = new AtomicBoolean();

  /** The backend's name, whether it can run in this process, and if not, why and what to do; one line. */
  public String describe() {
    String problem = vectorProblem();
    return switch (this) {
      case AUTO ->
          "auto: " + (problem == null ? "takes vector" : "takes scalar, as vector cannot run");
      case VECTOR ->
          problem == null
              ? "vector: available, %d-bit vectors, %d x %d float tiles"
                  .formatted(VectorWidth.BITS, FloatKernels.MR, FloatKernels.NR)
              : "vector: unavailable, " + problem;
      case SCALAR -> "scalar: available";
      case CUDA -> {
        String cuda = CudaLibrary.problem();
        yield "cuda: " + (cuda == null ? CudaLibrary.describe() : "unavailable, " + cuda);
      }
    };
  }

  /** VECTOR, SCALAR or CUDA. */
  static Backend select(Backend asked) {
    Backend wanted = asked == AUTO ? forced() : asked;
    forcedBits();
    if (wanted == CUDA) {
      String problem = CudaLibrary.problem();
      if (problem != null) {
        throw new IllegalStateException("the cuda backend cannot run: " + problem);
      }
      return CUDA;
    }
    String problem = wanted == SCALAR ? null : vectorProblem();
    if (problem == null) {
      return wanted == SCALAR ? SCALAR : VECTOR;
    }
    if (wanted == VECTOR) {
      throw new IllegalStateException("the vector backend cannot run: " + problem);
    }
    if (WARNED.compareAndSet(false, true)) {
      System.getLogger("dev.kullback")
          .log(
              System.Logger.Level.WARNING,
              "Kullback computes without vectors, far slower: {0}",
              problem);
    }
    return SCALAR;
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

  /** Why {@link #VECTOR} cannot run here, or null. */
  private static @Nullable String vectorProblem() {
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

  /** Whether {@link #VECTOR} can run. */
  static boolean hasVectors() {
    return Vectors.AVAILABLE;
  }

  private static final class Vectors {
    static final boolean AVAILABLE = vectorProblem() == null;
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
