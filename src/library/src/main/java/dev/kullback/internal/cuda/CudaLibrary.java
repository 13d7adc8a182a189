package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.abi.CudaRuntime.*;
import static dev.kullback.internal.cuda.abi.KullbackCuda.*;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The native library and the CUDA runtime, loaded once in a process, at first need.
 *
 * <p>The library is what property {@value #LIBRARY} names, else {@code libkullback_cuda.so} of {@code META-INF/native} on the class
 * path, else the first on {@code java.library.path}. The runtime is what property {@value #RUNTIME} names (nothing, if it is empty:
 * the library then brings its own), else what the library's own RUNPATH finds, else the first {@code libcudart.so} of the version that it
 * needs, and that loads, in {@code CUDA_HOME}, {@code CUDA_PATH}, on {@code java.library.path}, and in the usual places.
 */
@SuppressWarnings("restricted") // loads native code: what this class is for
public final class CudaLibrary {
  public static final String LIBRARY = "dev.kullback.cuda.library";
  public static final String RUNTIME = "dev.kullback.cuda.runtime";

  private static final String NAME = "libkullback_cuda.so";

  /** Newest first. */
  private static final List<String> RUNTIME_NAMES =
      List.of("libcudart.so.13", "libcudart.so.12", "libcudart.so");

  private static final Pattern RUNTIME_VERSION = Pattern.compile("libcudart\\.so\\.\\d+");

  /** fp64 atomics, asynchronous copies and 164 KiB of shared memory: what the kernels are compiled for. */
  private static final int LEAST_COMPUTE_CAPABILITY = 8;

  private static final List<String> FUNCTIONS =
      List.of(
          "kullback_cuda_abi_version",
          "kullback_cuda_description",
          "kullback_cuda_device_name",
          "kullback_cuda_batch_bytes",
          "kullback_cuda_scale_offset",
          "kullback_cuda_prepare",
          "kullback_cuda_scratch_bytes",
          "kullback_cuda_pairwise",
          "kullback_cuda_aligned",
          "kullback_cuda_standard",
          "kullback_cuda_select",
          "kullback_cuda_fold",
          "kullback_cuda_download",
          "cudaSetDevice",
          "cudaGetDeviceCount",
          "cudaDeviceGetAttribute",
          "cudaRuntimeGetVersion",
          "cudaDriverGetVersion",
          "cudaMemGetInfo",
          "cudaMalloc",
          "cudaFree",
          "cudaHostAlloc",
          "cudaFreeHost",
          "cudaHostRegister",
          "cudaHostUnregister",
          "cudaMemcpyAsync",
          "cudaStreamCreateWithFlags",
          "cudaStreamDestroy",
          "cudaStreamSynchronize",
          "cudaStreamWaitEvent",
          "cudaEventCreateWithFlags",
          "cudaEventDestroy",
          "cudaEventRecord",
          "cudaEventSynchronize",
          "cudaGetLastError",
          "cudaGetErrorName",
          "cudaGetErrorString");

  /** Messages of the runtime are shorter. */
  private static final int MOST_TEXT = 1 << 12;

  private CudaLibrary() {}

  /** Why there is no device to compute on, in one line that says what to do, or null. */
  public static @Nullable String problem() {
    return Loaded.PROBLEM;
  }

  /** The device and what drives it, in one line. Only where there is no {@link #problem}. */
  public static String describe() {
    select();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment name = arena.allocate(256);
      check("kullback_cuda_device_name", kullback_cuda_device_name(0, name, name.byteSize()));
      long[] memory = memory(arena);
      return "available, %s, compute capability %d.%d, %.1f of %.1f GiB free, driver %s, runtime %s; library %s"
          .formatted(
              name.getString(0),
              attribute(arena, cudaDevAttrComputeCapabilityMajor()),
              attribute(arena, cudaDevAttrComputeCapabilityMinor()),
              memory[0] * 0x1p-30,
              memory[1] * 0x1p-30,
              driverVersion(arena),
              runtimeVersion(arena),
              text(kullback_cuda_description()));
    } catch (CudaFailure e) {
      cudaGetLastError(); // and forget it, if it can be forgotten
      return "unavailable, the device does not answer: " + e.getMessage();
    }
  }

  /** Bytes of the device's memory, in use or not. */
  static long memory() {
    try (Arena arena = Arena.ofConfined()) {
      return memory(arena)[1];
    }
  }

  /** How many are free, and all. */
  private static long[] memory(Arena arena) {
    MemorySegment free = arena.allocate(ValueLayout.JAVA_LONG);
    MemorySegment total = arena.allocate(ValueLayout.JAVA_LONG);
    check("cudaMemGetInfo", cudaMemGetInfo(free, total));
    return new long[] {free.get(ValueLayout.JAVA_LONG, 0), total.get(ValueLayout.JAVA_LONG, 0)};
  }

  /** Makes device 0 that of the calling thread, whatever others made of it; a failure shows in the next call. */
  static void select() {
    cudaSetDevice(0);
  }

  /** Throws what a call's status means, unless it is success. */
  static void check(String call, int status) {
    if (status != cudaSuccess()) {
      throw status < 0
          ? new IllegalStateException(call + ": an argument is invalid")
          : new CudaFailure(status, call + ": " + error(status));
    }
  }

  static String error(int status) {
    return text(cudaGetErrorName(status)) + ", " + text(cudaGetErrorString(status));
  }

  private static String text(MemorySegment chars) {
    return chars.address() == 0 ? "?" : chars.reinterpret(MOST_TEXT).getString(0);
  }

  private static int attribute(Arena arena, int attribute) {
    MemorySegment value = arena.allocate(ValueLayout.JAVA_INT);
    check("cudaDeviceGetAttribute", cudaDeviceGetAttribute(value, attribute, 0));
    return value.get(ValueLayout.JAVA_INT, 0);
  }

  private static String driverVersion(Arena arena) {
    MemorySegment version = arena.allocate(ValueLayout.JAVA_INT);
    check("cudaDriverGetVersion", cudaDriverGetVersion(version));
    return version(version.get(ValueLayout.JAVA_INT, 0));
  }

  private static String runtimeVersion(Arena arena) {
    MemorySegment version = arena.allocate(ValueLayout.JAVA_INT);
    check("cudaRuntimeGetVersion", cudaRuntimeGetVersion(version));
    return version(version.get(ValueLayout.JAVA_INT, 0));
  }

  /** 13020 is 13.2; 0 is what there is without a driver. */
  private static String version(int v) {
    return v == 0 ? "none" : v / 1000 + "." + v % 1000 / 10;
  }

  /** The one attempt to load, at first need. */
  private static final class Loaded {
    static final @Nullable String PROBLEM = problem();

    private static @Nullable String problem() {
      try {
        String problem = load();
        return problem != null ? problem : probe();
      } catch (IllegalCallerException e) {
        return firstLine(e)
            + ": start java with --enable-native-access=dev.kullback, or ALL-UNNAMED";
      } catch (RuntimeException | LinkageError e) {
        return firstLine(e.getCause() != null ? e.getCause() : e);
      } catch (IOException e) {
        return "the jar's %s cannot be extracted: %s".formatted(NAME, e);
      }
    }

    private static @Nullable String load() throws IOException {
      if (!System.getProperty("os.name", "").toLowerCase(Locale.ROOT).contains("linux")) {
        return "the CUDA backend runs on Linux only";
      }
      String given = System.getProperty(LIBRARY);
      if (given != null && !Files.isRegularFile(Path.of(given))) {
        return "system property %s names %s, which is not a file".formatted(LIBRARY, given);
      }
      boolean bundled = given == null && isBundled();
      Path library =
          given != null
              ? Path.of(given)
              : bundled
                  ? null
                  : all(libraryPath(), List.of(NAME)).stream().findFirst().orElse(null);
      if (library == null && !bundled) {
        return "there is no %s: build native/ and name it in system property %s"
            .formatted(NAME, LIBRARY);
      }
      String runtimeGiven = System.getProperty(RUNTIME);
      if (runtimeGiven != null
          && !runtimeGiven.isEmpty()
          && !Files.isRegularFile(Path.of(runtimeGiven))) {
        return "system property %s names %s, which is not a file".formatted(RUNTIME, runtimeGiven);
      }
      List<String> failures = new ArrayList<>();
      if (runtimeGiven != null
          && !runtimeGiven.isEmpty()
          && !isLoaded(Path.of(runtimeGiven), failures)) {
        return failures.getFirst();
      }
      String failure = loadLibrary(library);
      if (runtimeGiven == null) {
        for (Path runtime : all(runtimePath(), RUNTIME_NAMES)) {
          if (isNeeded(runtime, failure) && isLoaded(runtime, failures)) {
            failure = loadLibrary(library);
          }
        }
      }
      if (failure != null) {
        return !failure.contains("libcudart")
            ? failure
            : "%s: install that version of the CUDA runtime, or name it in system property %s%s"
                .formatted(failure, RUNTIME, failures.isEmpty() ? "" : "; not loaded: " + failures);
      }
      SymbolLookup symbols = SymbolLookup.loaderLookup();
      List<String> missing =
          FUNCTIONS.stream().filter(name -> symbols.find(name).isEmpty()).toList();
      if (!missing.isEmpty()) {
        return "%s lacks %s and %d other functions: use the library of this release, and a CUDA runtime 12 or 13"
            .formatted(
                bundled ? "the jar's " + NAME : library, missing.getFirst(), missing.size() - 1);
      }
      return null;
    }

    /** Looks for a device. */
    private static @Nullable String probe() {
      int version = kullback_cuda_abi_version();
      if (version != KULLBACK_CUDA_ABI_VERSION()) {
        return "the native library has ABI version %d, this release needs %d: use the library of this release"
            .formatted(version, KULLBACK_CUDA_ABI_VERSION());
      }
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
        int status = cudaGetDeviceCount(count);
        if (status != cudaSuccess()) {
          cudaGetLastError(); // and forget it
          return "there is no CUDA device: %s (driver %s, runtime %s)"
              .formatted(error(status), driverVersion(arena), runtimeVersion(arena));
        }
        if (count.get(ValueLayout.JAVA_INT, 0) < 1) {
          return "there is no CUDA device";
        }
        int major = attribute(arena, cudaDevAttrComputeCapabilityMajor());
        if (major < LEAST_COMPUTE_CAPABILITY) {
          return "the CUDA device has compute capability %d.%d, %d.0 or later is needed"
              .formatted(
                  major,
                  attribute(arena, cudaDevAttrComputeCapabilityMinor()),
                  LEAST_COMPUTE_CAPABILITY);
        }
      }
      return null;
    }

    private static String firstLine(Throwable e) {
      return String.valueOf(e.getMessage()).lines().findFirst().orElse(e.toString());
    }

    private static String resource() {
      return "META-INF/native/linux-%s/%s".formatted(System.getProperty("os.arch"), NAME);
    }

    private static boolean isBundled() {
      return CudaLibrary.class.getClassLoader().getResource(resource()) != null;
    }

    /** Loads it, or the jar's for null; why it cannot be, or null. */
    private static @Nullable String loadLibrary(@Nullable Path library) throws IOException {
      try {
        if (library == null) {
          loadBundled();
        } else {
          System.load(library.toAbsolutePath().toString());
        }
        return null;
      } catch (UnsatisfiedLinkError e) {
        return firstLine(e);
      }
    }

    /** Whether the library failed to load for want of that runtime; one of another version would stay for nothing. */
    private static boolean isNeeded(Path runtime, @Nullable String failure) throws IOException {
      Matcher missing = RUNTIME_VERSION.matcher(failure == null ? "" : failure);
      // libcudart.so is a link to the file that is named by its whole version
      return missing.find()
          && (runtime.toRealPath().getFileName() + ".").startsWith(missing.group() + ".");
    }

    /** By way of a folder that nobody else can write to; the file is gone again when it is loaded. */
    private static void loadBundled() throws IOException {
      Path folder =
          Files.createTempDirectory(
              "kullback",
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      Path file = folder.resolve(NAME);
      try (InputStream in = CudaLibrary.class.getClassLoader().getResourceAsStream(resource())) {
        if (in == null) {
          throw new IOException("it is gone");
        }
        Files.copy(in, file);
        System.load(file.toString());
      } finally {
        Files.deleteIfExists(file);
        Files.deleteIfExists(folder);
      }
    }

    private static List<Path> all(List<Path> folders, List<String> names) {
      return folders.stream()
          .flatMap(folder -> names.stream().map(folder::resolve))
          .filter(Files::isRegularFile)
          .toList();
    }

    private static boolean isLoaded(Path library, List<String> failures) {
      try {
        System.load(library.toAbsolutePath().toString());
        return true;
      } catch (UnsatisfiedLinkError e) {
        failures.add(firstLine(e));
        return false;
      }
    }

    private static List<Path> libraryPath() {
      return Stream.of(System.getProperty("java.library.path", "").split(":"))
          .filter(folder -> !folder.isEmpty())
          .map(Path::of)
          .toList();
    }

    private static List<Path> runtimePath() {
      List<Path> folders = new ArrayList<>();
      for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
        String home = System.getenv(variable);
        if (home != null && !home.isEmpty()) {
          folders.add(Path.of(home, "lib64"));
          folders.add(Path.of(home, "lib"));
        }
      }
      folders.addAll(libraryPath());
      folders.add(Path.of("/usr/local/cuda/lib64"));
      folders.add(
          Path.of(
              "/usr/lib/"
                  + System.getProperty("os.arch").replace("amd64", "x86_64")
                  + "-linux-gnu"));
      folders.add(Path.of("/usr/lib/wsl/lib"));
      return folders;
    }
  }
}
