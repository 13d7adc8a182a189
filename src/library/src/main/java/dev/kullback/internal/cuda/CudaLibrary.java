package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.abi.CudaRuntime.*;
import static dev.kullback.internal.cuda.abi.KullbackCuda.*;

import dev.kullback.CudaException;
import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.cuda.abi.CudaRuntime;
import dev.kullback.internal.cuda.abi.KullbackCuda;
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
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.ToIntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Loads the native library and the CUDA runtime, once in a process, at first need.
 *
 * <p>The page on CUDA (src/docs/cuda.md) says where they are looked for. Properties {@value #LIBRARY} and {@value #RUNTIME} name them; if
 * the latter is empty, no runtime is loaded, as the library brings its own.
 */
@SuppressWarnings("restricted") // loads native code: what this class is for
public final class CudaLibrary {
  public static final String LIBRARY = "dev.kullback.cuda.library";
  public static final String RUNTIME = "dev.kullback.cuda.runtime";

  private static final String NAME = "libkullback_cuda.so";

  /** Names of the runtime, newest first. */
  private static final List<String> RUNTIME_NAMES =
      List.of("libcudart.so.13", "libcudart.so.12", "libcudart.so");

  private static final Pattern RUNTIME_VERSION = Pattern.compile("libcudart\\.so\\.\\d+");

  /** Major compute capability that the kernels are compiled for: fp64 atomics, asynchronous copies and 164 KiB of shared memory. */
  private static final int LEAST_COMPUTE_CAPABILITY = 8;

  /** More bytes than a message of the runtime has. */
  private static final int MOST_TEXT = 1 << 12;

  private CudaLibrary() {}

  /** Says in one line why there is no device to compute on, and what to do; null if there is one. */
  public static @Nullable String problem() {
    return Loaded.PROBLEM;
  }

  /** Whether the device answers, and its name and driver, or why not, in one line. */
  public record Answer(boolean isAvailable, String text) {}

  /** Asks the device. Called only where there is no {@link #problem}. */
  public static Answer ask() {
    try {
      return new Answer(true, "available, " + describe());
    } catch (CudaException e) {
      cudaGetLastError(); // and forget it, if it can be forgotten
      return new Answer(false, "unavailable, the device does not answer: " + e.getMessage());
    }
  }

  private static String describe() {
    select();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment name = arena.allocate(256);
      check("kullback_cuda_device_name", kullback_cuda_device_name(0, name, name.byteSize()));
      long[] memory = memory();
      int[] capability = computeCapability();
      return "%s, compute capability %d.%d, %.1f of %.1f GiB free, driver %s, runtime %s; library %s"
          .formatted(
              name.getString(0),
              capability[0],
              capability[1],
              memory[0] * 0x1p-30,
              memory[1] * 0x1p-30,
              driverVersion(),
              runtimeVersion(),
              text(kullback_cuda_description()));
    }
  }

  /** Returns the free bytes and all bytes of the device's memory. */
  static long[] memory() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(ValueLayout.JAVA_LONG, 2);
      check("cudaMemGetInfo", cudaMemGetInfo(bytes, bytes.asSlice(Long.BYTES)));
      return bytes.toArray(ValueLayout.JAVA_LONG);
    }
  }

  /** Makes device 0 the calling thread's, which others may have changed; a failure shows in the next call. */
  static void select() {
    cudaSetDevice(0);
  }

  /** Throws an exception for a call's status, unless that is success. */
  static void check(String call, int status) {
    if (status != cudaSuccess()) {
      throw status < 0
          ? new IllegalStateException(call + ": an argument is invalid")
          : failed(status, call + ": " + error(status));
    }
  }

  /** Makes an exception of the API. */
  static CudaException failed(int status, String message) {
    return Constructors.CUDA.get().apply(status, message);
  }

  static String error(int status) {
    return text(cudaGetErrorName(status)) + ", " + text(cudaGetErrorString(status));
  }

  private static String text(MemorySegment chars) {
    return chars.address() == 0 ? "?" : chars.reinterpret(MOST_TEXT).getString(0);
  }

  /** Returns the major and the minor number. */
  private static int[] computeCapability() {
    return IntStream.of(cudaDevAttrComputeCapabilityMajor(), cudaDevAttrComputeCapabilityMinor())
        .map(attribute ->
            integer("cudaDeviceGetAttribute", value -> cudaDeviceGetAttribute(value, attribute, 0)))
        .toArray();
  }

  private static String driverVersion() {
    return version(integer("cudaDriverGetVersion", v -> cudaDriverGetVersion(v)));
  }

  private static String runtimeVersion() {
    return version(integer("cudaRuntimeGetVersion", v -> cudaRuntimeGetVersion(v)));
  }

  private static int integer(String call, ToIntFunction<MemorySegment> get) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(ValueLayout.JAVA_INT);
      check(call, get.applyAsInt(value));
      return value.get(ValueLayout.JAVA_INT, 0);
    }
  }

  /** Formats 13020 as 13.2, and 0, the version of a driver that is absent, as none. */
  private static String version(int v) {
    return v == 0 ? "none" : v / 1000 + "." + v % 1000 / 10;
  }

  /** Holds the outcome of the one attempt to load, at first need. */
  private static final class Loaded {
    static final @Nullable String PROBLEM = problem();

    private static @Nullable String problem() {
      try {
        load();
        probe();
        return null;
      } catch (IllegalCallerException e) {
        return firstLine(e)
            + ": start java with --enable-native-access=dev.kullback, or ALL-UNNAMED";
      } catch (RuntimeException | LinkageError e) {
        return firstLine(e.getCause() != null ? e.getCause() : e);
      } catch (IOException e) {
        return "the jar's %s cannot be extracted: %s".formatted(NAME, e);
      }
    }

    private static void load() throws IOException {
      if (!System.getProperty("os.name", "").toLowerCase(Locale.ROOT).contains("linux")) {
        throw new IllegalStateException("the CUDA backend runs on Linux only");
      }
      Path library = named(LIBRARY);
      if (library == null && !isBundled()) {
        library =
            all(libraryPath(), List.of(NAME)).stream()
                .findFirst()
                .orElseThrow(() ->
                    new IllegalStateException(
                        "there is no %s: build native/ and name it in system property %s"
                            .formatted(NAME, LIBRARY)));
      }
      boolean runtimeGiven = System.getProperty(RUNTIME) != null;
      Path given = "".equals(System.getProperty(RUNTIME)) ? null : named(RUNTIME);
      List<String> failures = new ArrayList<>();
      String failure = given == null ? null : tryToLoad(given);
      if (failure != null) {
        throw new IllegalStateException(failure);
      }
      failure = tryToLoad(library);
      for (Path runtime : runtimeGiven ? List.<Path>of() : all(runtimePath(), RUNTIME_NAMES)) {
        if (isNeeded(runtime, failure)) {
          String why = tryToLoad(runtime);
          if (why == null) {
            failure = tryToLoad(library);
          } else {
            failures.add(why);
          }
        }
      }
      if (failure != null) {
        throw !failure.contains("libcudart")
            ? new IllegalStateException(failure)
            : new IllegalStateException(
                "%s: install that version of the CUDA runtime, or name it in system property %s%s"
                    .formatted(
                        failure, RUNTIME, failures.isEmpty() ? "" : "; not loaded: " + failures));
      }
      SymbolLookup symbols = SymbolLookup.loaderLookup();
      List<String> missing =
          functions().stream().filter(name -> symbols.find(name).isEmpty()).toList();
      if (!missing.isEmpty()) {
        throw new IllegalStateException(
            "%s lacks %s and %d other functions: use the library of this release, and a CUDA runtime 12 or 13"
                .formatted(
                    library == null ? "the jar's " + NAME : library,
                    missing.getFirst(),
                    missing.size() - 1));
      }
    }

    /** Returns the file that a system property names, or null if it names none. */
    private static @Nullable Path named(String property) {
      String name = System.getProperty(property);
      if (name != null && !Files.isRegularFile(Path.of(name))) {
        throw new IllegalStateException(
            "system property %s names %s, which is not a file".formatted(property, name));
      }
      return name == null ? null : Path.of(name);
    }

    /** Returns the names of all functions that are called: the bindings have a nested class for each. */
    private static List<String> functions() {
      return Stream.of(KullbackCuda.class, CudaRuntime.class)
          .flatMap(bindings -> Arrays.stream(bindings.getDeclaredClasses()))
          .map(Class::getSimpleName)
          .sorted(Comparator.reverseOrder()) // the library's own before those of the runtime
          .toList();
    }

    private static void probe() {
      int version = kullback_cuda_abi_version();
      if (version != KULLBACK_CUDA_ABI_VERSION()) {
        throw new IllegalStateException(
            "the native library has ABI version %d, this release needs %d: use the library of this release"
                .formatted(version, KULLBACK_CUDA_ABI_VERSION()));
      }
      int count;
      try {
        count = integer("there is no CUDA device", value -> cudaGetDeviceCount(value));
      } catch (CudaException e) {
        cudaGetLastError(); // and forget it
        throw new IllegalStateException(
            "%s (driver %s, runtime %s)"
                .formatted(e.getMessage(), driverVersion(), runtimeVersion()));
      }
      if (count < 1) {
        throw new IllegalStateException("there is no CUDA device");
      }
      int[] capability = computeCapability();
      if (capability[0] < LEAST_COMPUTE_CAPABILITY) {
        throw new IllegalStateException(
            "the CUDA device has compute capability %d.%d, %d.0 or later is needed"
                .formatted(capability[0], capability[1], LEAST_COMPUTE_CAPABILITY));
      }
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

    /** Loads a library, or the jar's for null; returns null, or why that failed. */
    private static @Nullable String tryToLoad(@Nullable Path library) throws IOException {
      try {
        if (library == null) {
          loadBundled();
          return null;
        }
        String problem = SharedObject.problem(library);
        if (problem == null) {
          System.load(library.toAbsolutePath().toString());
        }
        return problem;
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

    /** Loads the jar's library by way of a folder that nobody else can write to, and deletes both. */
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
      String arch = System.getProperty("os.arch").replace("amd64", "x86_64");
      folders.add(Path.of("/usr/lib/" + arch + "-linux-gnu"));
      folders.add(Path.of("/usr/lib/wsl/lib"));
      return folders;
    }
  }
}
