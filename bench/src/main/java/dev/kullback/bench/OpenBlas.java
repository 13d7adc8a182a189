package dev.kullback.bench;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * OpenBLAS through java.lang.foreign, on one thread, with the kernels this processor deserves.
 *
 * <p>OpenBLAS reads {@code OPENBLAS_CORETYPE} while it is loaded, and on processors it does not know it falls back to AVX2
 * kernels, which halves its speed. So the core is forced first: Cooperlake with AVX-512 BF16, else SkylakeX with AVX-512. If the
 * library is kept to narrower vectors, OpenBLAS is, too: Haswell for 256 bits on a processor with AVX-512, Nehalem for 128. Else
 * nothing is forced and the caller sees in {@link #core} what OpenBLAS picked. The system property {@code
 * kullback.bench.openblas.core} forces another one, or none when it is {@code auto}.
 */
final class OpenBlas {
  private static final String CORE_PROPERTY = "dev.kullback.bench.openblas.core";
  private static final String AUTO = "auto";

  /** libopenblas last: what it needs is found among the libraries loaded already. */
  private static final String[] LIBRARIES = {
    "libgcc_s.so.1", "libquadmath.so.0", "libgfortran.so.5", "libopenblas.so.0"
  };

  private static final int ROW_MAJOR = 101;
  private static final int NO_TRANS = 111;
  private static final int TRANS = 112;

  private static OpenBlas loaded;

  private final MethodHandle sgemm;
  private final MethodHandle dgemm;
  private final String config;
  private final String core;
  private final boolean forced;

  /** The one copy of this process. */
  static synchronized OpenBlas load() {
    if (loaded == null) {
      Unavailable.unlessLinuxX64("OpenBLAS");
      try {
        loaded = new OpenBlas();
      } catch (Unavailable | Error e) {
        throw e;
      } catch (Throwable e) {
        throw new Unavailable("OpenBLAS does not load", e);
      }
    }
    return loaded;
  }

  @SuppressWarnings("restricted") // a benchmark of native code; run with --enable-native-access
  private OpenBlas() throws Throwable {
    Linker linker = Linker.nativeLinker();
    String wanted = System.getProperty(CORE_PROPERTY, bestCore(Cpu.read()));
    forced = !wanted.equals(AUTO);
    // Whatever the shell had set, a slower core included, is replaced.
    NativeEnvironment.unset("OPENBLAS_CORETYPE");
    NativeEnvironment.unset("OPENBLAS_L2_SIZE");
    NativeEnvironment.unset("OPENBLAS_BLOCK_FACTOR");
    NativeEnvironment.set("OPENBLAS_NUM_THREADS", "1");
    if (forced) {
      NativeEnvironment.set("OPENBLAS_CORETYPE", wanted);
    }

    SymbolLookup library = open();
    MethodHandle setThreads =
        linker.downcallHandle(
            library.findOrThrow("openblas_set_num_threads"), FunctionDescriptor.ofVoid(JAVA_INT));
    setThreads.invokeExact(1);
    MethodHandle getThreads =
        linker.downcallHandle(
            library.findOrThrow("openblas_get_num_threads"), FunctionDescriptor.of(JAVA_INT));
    int threads = (int) getThreads.invokeExact();
    if (threads != 1) {
      throw new Unavailable("OpenBLAS keeps " + threads + " threads, the comparison wants 1");
    }
    core = text(linker, library, "openblas_get_corename");
    config = text(linker, library, "openblas_get_config");
    if (forced && !core.equalsIgnoreCase(wanted)) {
      throw new Unavailable(
          "OpenBLAS runs its " + core + " kernels, not " + wanted + "; set -D" + CORE_PROPERTY);
    }
    sgemm = gemm(linker, library, "cblas_sgemm", JAVA_FLOAT);
    dgemm = gemm(linker, library, "cblas_dgemm", JAVA_DOUBLE);
  }

  /** void (order, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) */
  @SuppressWarnings("restricted")
  private static MethodHandle gemm(
      Linker linker, SymbolLookup library, String function, MemoryLayout scalar) {
    MemoryLayout[] parameters = new MemoryLayout[14];
    Arrays.fill(parameters, JAVA_INT);
    parameters[6] = scalar;
    parameters[7] = ADDRESS;
    parameters[9] = ADDRESS;
    parameters[11] = scalar;
    parameters[12] = ADDRESS;
    return linker.downcallHandle(
        library.findOrThrow(function),
        FunctionDescriptor.ofVoid(parameters),
        // critical(true): it reads the Java arrays in place, as the library does; no copy is timed.
        Linker.Option.critical(true));
  }

  /** c [n, n] = a [n, d] · b [n, d]ᵀ, row-major. */
  void multiplyTransposed(MemorySegment a, MemorySegment b, MemorySegment c, Shape shape) {
    int n = shape.size();
    int d = shape.dimension();
    try {
      sgemm.invokeExact(ROW_MAJOR, NO_TRANS, TRANS, n, n, d, 1f, a, d, b, d, 0f, c, n);
    } catch (Throwable e) {
      throw new AssertionError("a downcall does not throw", e);
    }
  }

  /** Multiplies in double, like {@link #multiplyTransposed}. */
  void multiplyTransposedDouble(MemorySegment a, MemorySegment b, MemorySegment c, Shape shape) {
    multiplyTransposedDouble(a, b, c, shape.size(), shape.size(), shape.dimension());
  }

  /** c [m, n] = a [m, d] · b [n, d]ᵀ, row-major, in double. */
  void multiplyTransposedDouble(
      MemorySegment a, MemorySegment b, MemorySegment c, int m, int n, int d) {
    try {
      dgemm.invokeExact(ROW_MAJOR, NO_TRANS, TRANS, m, n, d, 1.0, a, d, b, d, 0.0, c, n);
    } catch (Throwable e) {
      throw new AssertionError("a downcall does not throw", e);
    }
  }

  /** The name of the kernels that run. */
  String core() {
    return core;
  }

  /** Describes the library for the results' conditions. */
  String describe() {
    String version = config.split(" ", -1)[1]; // "OpenBLAS 0.3.31 DYNAMIC_ARCH …"
    return version + ", core " + core + (forced ? " (forced)" : " (its own choice)") + ", 1 thread";
  }

  private static String bestCore(Cpu cpu) {
    boolean avx512 = cpu.has("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl");
    return switch (Cpu.vectorBits()) {
      case 128 -> "Nehalem";
      case 256 -> avx512 ? "Haswell" : AUTO;
      default -> !avx512 ? AUTO : cpu.has("avx512_bf16") ? "Cooperlake" : "SkylakeX";
    };
  }

  @SuppressWarnings("restricted")
  private static SymbolLookup open() throws IOException {
    Path folder = TempFolder.create("openblas");
    SymbolLookup last = null;
    for (String name : LIBRARIES) {
      String resource = "/org/bytedeco/openblas/linux-x86_64/" + name;
      Path file = folder.resolve(name);
      try (InputStream in = OpenBlas.class.getResourceAsStream(resource)) {
        if (in == null) {
          throw new Unavailable("OpenBLAS: no " + resource + " on the class path");
        }
        Files.copy(in, file);
      }
      last = SymbolLookup.libraryLookup(file, Arena.global());
    }
    return last;
  }

  @SuppressWarnings("restricted")
  private static String text(Linker linker, SymbolLookup library, String function)
      throws Throwable {
    MethodHandle handle =
        linker.downcallHandle(library.findOrThrow(function), FunctionDescriptor.of(ADDRESS));
    return ((MemorySegment) handle.invokeExact()).reinterpret(Long.MAX_VALUE).getString(0).strip();
  }
}
