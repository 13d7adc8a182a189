package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.internal.cuda.CudaLibrary;
import dev.kullback.internal.cuda.abi.KullbackCuda;
import dev.kullback.testing.Batch;
import dev.kullback.testing.ChildJvm;
import dev.kullback.testing.Emulated;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Probe;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The bridge to a device, on the emulated one: its life, its faults, its threads. */
@Tag("cuda")
@Timeout(120)
class CudaTest {
  private static final int LAUNCH_FAILURE = 719;
  private static final List<String> ACCESS = List.of("--enable-native-access=ALL-UNNAMED");

  @TempDir private Path scratch;

  @BeforeEach
  @AfterEach
  void reset() {
    Emulated.reset();
  }

  private static KlEngine engine() {
    return KlEngine.builder().backend(Backend.CUDA).build();
  }

  /** Returns what a new engine answers. */
  private static <T> T anew(Function<KlEngine, T> call) {
    try (KlEngine engine = engine()) {
      return call.apply(engine);
    }
  }

  /** Checks an answer of the device against the host's. */
  private static void near(double[] actual, double[] expected, double tolerance) {
    for (int k = 0; k < expected.length; k++) {
      if (!(Math.abs(actual[k] - expected[k]) <= tolerance * expected[k])) {
        assertThat(actual[k]).as("entry %d", k).isEqualTo(expected[k]);
      }
    }
  }

  private static double[] onHost(Gaussians q, Gaussians p) {
    try (KlEngine host = KlEngine.builder().backend(Backend.VECTOR).build()) {
      return matrix(host, q, p);
    }
  }

  private static DiagonalGaussians diagonal(boolean isDouble, int n, int d, int seed) {
    return Batch.random(isDouble, n, d, 0, new Random(seed)).gaussians();
  }

  private static FullGaussians full(boolean isDouble, int n, int d, int seed) {
    return FullBatch.random(isDouble, n, d, 10, 0, new Random(seed)).gaussians();
  }

  /** A reduction is one call, though it comes to the device for each of its blocks. */
  @Test
  void closeDuringAReduction() {
    DiagonalGaussians q = Batch.random(false, 600, 3, 0, new Random(1)).gaussians();
    KlEngine engine = Engines.on(Backend.CUDA);
    AtomicInteger rows = new AtomicInteger();
    engine.forEachTile(
        q,
        q,
        tile -> {
          engine.close();
          rows.addAndGet(tile.rows());
        });
    assertThat(rows.get()).isEqualTo(600);
    assertThatIllegalStateException().isThrownBy(() -> engine.rowMin(q, q));
  }

  @Test
  void saysThatItIsEmulated() {
    assertThat(Backend.CUDA.reason()).startsWith("cuda: available, ").contains("emulated");
    try (KlEngine engine = engine()) {
      assertThat(engine.toString()).contains("emulated");
      assertThat(engine.backend()).isEqualTo(Backend.CUDA);
    }
  }

  @Test
  void isNeverChosenByItself() {
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(engine.backend()).isEqualTo(Backend.VECTOR);
      assertThat(Backend.AUTO.reason()).contains("chooses vector");
      engine.pairwise(diagonal(false, 9, 5, 1), diagonal(false, 7, 5, 2));
      assertThat(Emulated.live()).isEmpty();
    }
  }

  /** The header, the bindings and the library have the same functions. */
  @Test
  void headerBindingsAndLibraryAgree() throws IOException {
    Path header =
        Path.of(System.getProperty("basedir", "."), "../../native/include/kullback_cuda.h");
    Matcher matcher =
        Pattern.compile("KULLBACK_API\\s[^;(]*?(kullback_\\w+)\\(")
            .matcher(Files.readString(header));
    Set<String> declared = new TreeSet<>();
    while (matcher.find()) {
      declared.add(matcher.group(1));
    }
    Set<String> bound =
        Arrays.stream(KullbackCuda.class.getMethods())
            .map(Method::getName)
            .filter(name -> name.startsWith("kullback_") && !name.contains("$"))
            .collect(Collectors.toCollection(TreeSet::new));
    assertThat(declared).hasSizeGreaterThan(5).isEqualTo(bound);
    assertThat(declared).allMatch(Emulated::exports);
  }

  @Test
  void everythingIsReleased() {
    KlEngine engine = engine();
    DiagonalGaussians q = diagonal(false, 70, 9, 1);
    DiagonalGaussians p = diagonal(true, 70, 9, 2);
    FullGaussians f = full(true, 70, 9, 3);
    engine.pairwise(q, p);
    engine.pairwise(q, f);
    engine.aligned(q, p);
    engine.aligned(f, f);
    engine.toStandardNormal(f);
    assertThat(Emulated.live()).isNotEmpty();
    engine.close();
    assertThat(Emulated.live()).isEmpty();
    engine.close();
    assertThatThrownBy(() -> engine.pairwise(q, p))
        .isInstanceOf(AlreadyClosedException.class)
        .hasMessage("this KlEngine is closed");
  }

  /** A batch goes to the device once. */
  @Test
  void batchesStay() {
    DiagonalGaussians q = diagonal(false, 70, 9, 1);
    DiagonalGaussians p = diagonal(false, 50, 9, 2);
    float[] out = new float[70 * 50];
    try (KlEngine engine = engine()) {
      engine.pairwise(q, p, out);
      engine.pairwise(q, p, out);
      long before = Emulated.live("allocations");
      Emulated.fail("cudaMalloc", 1, Emulated.OUT_OF_MEMORY); // is not called
      float[] again = engine.pairwise(q, p);
      assertThat(again).isEqualTo(out);
      assertThat(Emulated.live("allocations")).isEqualTo(before);
      Emulated.fail("cudaMalloc", 1, 0);
    }
  }

  @Test
  void nothingLeaksInTenThousandCalls() throws InterruptedException {
    DiagonalGaussians kept = diagonal(false, 8, 3, 1);
    float[] out = new float[64];
    try (KlEngine engine = engine()) {
      engine.pairwise(kept, kept, out);
      engine.pairwise(kept, diagonal(false, 8, 3, 2), out);
      long pinned = Emulated.live("pinned");
      long streams = Emulated.live("streams");
      for (int i = 0; i < 10_000; i++) {
        engine.pairwise(kept, i % 4 == 0 ? diagonal(false, 8, 3, i) : kept, out);
      }
      assertThat(Emulated.live("pinned")).isEqualTo(pinned);
      assertThat(Emulated.live("streams")).isEqualTo(streams);
      // batches that are unreachable leave the device with a later call, but for the blocks of some
      for (int i = 0; i < 100 && Emulated.live("allocations") > 24; i++) {
        System.gc();
        Thread.sleep(20);
        engine.pairwise(kept, kept, out);
      }
      assertThat(Emulated.live("allocations")).isLessThanOrEqualTo(24);
    }
    assertThat(Emulated.live()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMatrixLargerThanTheDevice(boolean isDouble) {
    Emulated.set("memory", 24L << 20);
    int n = 3500;
    int m = 2900;
    DiagonalGaussians q = diagonal(isDouble, n, 3, 1);
    DiagonalGaussians p = diagonal(isDouble, m, 3, 2);
    try (KlEngine engine = engine();
        Arena arena = Arena.ofConfined()) {
      int width = isDouble ? 8 : 4;
      assertThat((long) n * m * width).isGreaterThan(24 << 20);
      MemorySegment out = arena.allocate((long) n * m * width, 8);
      engine.pairwise(q, p, out);
      double[] got =
          isDouble
              ? out.toArray(ValueLayout.JAVA_DOUBLE)
              : Batch.widened(out.toArray(ValueLayout.JAVA_FLOAT));
      near(got, onHost(q, p), isDouble ? 2e-12 : 1e-5);
    }
  }

  /** More columns than a strip has: several strips side by side, the last of them narrow. */
  @Test
  void strips() {
    int m = (1 << 15) + 77;
    DiagonalGaussians q = diagonal(false, 140, 2, 1);
    Batch columns = Batch.random(false, m, 2, 0, new Random(2));
    float[] out = new float[140 * m];
    float[] last = new float[140 * 77];
    try (KlEngine engine = engine()) {
      engine.pairwise(q, columns.gaussians(), out);
      engine.pairwise(q, columns.rows(m - 77, m).gaussians(), last);
    }
    for (int i = 0; i < 140; i++) {
      assertThat(Arrays.copyOfRange(out, (i + 1) * m - 77, (i + 1) * m))
          .isEqualTo(Arrays.copyOfRange(last, i * 77, (i + 1) * 77));
    }
  }

  /** Matrices just small enough not to be cut into strips, with one column more, and of three strips, in both kinds of memory. */
  @ParameterizedTest
  @CsvSource({"8, 32768", "8, 32769", "5, 65537"})
  void wide(int n, int m) {
    DiagonalGaussians q = diagonal(false, n, 1, 1);
    DiagonalGaussians p = diagonal(false, m, 1, 2);
    float[] out = new float[n * m];
    Arrays.fill(out, -1);
    try (KlEngine engine = engine();
        Arena arena = Arena.ofShared()) {
      engine.pairwise(q, p, out);
      near(Batch.widened(out), onHost(q, p), 3e-5);
      MemorySegment segment = arena.allocate(4L * n * m, 4);
      engine.pairwise(q, p, segment);
      assertThat(segment.toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(out);
    }
  }

  @Test
  void batchesThatNobodyUsesMakeRoom() {
    Emulated.set("memory", 12L << 20);
    try (KlEngine engine = engine()) {
      List<DiagonalGaussians> batches = new ArrayList<>();
      for (int i = 0; i < 12; i++) {
        batches.add(diagonal(false, 1000, 64, i)); // some 1.3 MiB each
      }
      float[] first = engine.aligned(batches.get(0), batches.get(1));
      for (DiagonalGaussians batch : batches) {
        engine.aligned(batch, batches.get(0));
      }
      assertThat(engine.aligned(batches.get(0), batches.get(1))).isEqualTo(first);
    }
    assertThat(Emulated.live()).isEmpty();
  }

  @Test
  void outOfMemory() {
    Emulated.set("memory", 2L << 20);
    DiagonalGaussians small = diagonal(false, 10, 8, 1);
    DiagonalGaussians large = diagonal(false, 20_000, 64, 2);
    try (KlEngine engine = engine()) {
      float[] before = engine.pairwise(small, small);
      assertThatThrownBy(() ->
              engine.aligned(large, large.equals(small) ? small : diagonal(false, 20_000, 64, 3)))
          .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.isOutOfMemory()).isTrue())
          .hasMessageContaining("MiB do not fit the device's memory");
      assertThat(engine.pairwise(small, small)).isEqualTo(before);
    }
    assertThat(Emulated.live()).isEmpty();
  }

  /** A matrix, and reductions, two of which take several strips and parts. */
  private static List<Integer> everyWay(
      KlEngine engine, DiagonalGaussians q, FullGaussians f, DiagonalGaussians many) {
    return List.of(
        Arrays.hashCode(engine.pairwise(q, f)),
        Arrays.hashCode(engine.nearest(q, f, 3).indices()),
        Arrays.hashCode(engine.nearest(many, many, 2).indices()),
        Arrays.hashCode(engine.within(many, many, 1e-3).indices()),
        Arrays.hashCode(engine.weightedLogSumExp(q, q, new double[q.size()])));
  }

  /** Faults while a matrix is computed in strips, by way of pinned memory and straight to native memory. */
  @ParameterizedTest
  @ValueSource(strings = {"cudaMemcpyAsync", "cudaEventRecord", "cudaEventSynchronize", "launch"})
  void faultsOfALargeMatrix(String call) {
    DiagonalGaussians q = diagonal(false, 1100, 1, 1);
    float[] expected = anew(engine -> engine.pairwise(q, q));
    int failures = 0;
    for (int after : new int[] {2, 4, 6}) {
      try (KlEngine engine = engine();
          Arena arena = Arena.ofConfined()) {
        MemorySegment out = arena.allocate(4L * expected.length, 4);
        Emulated.fail(call, after, 400);
        try {
          assertThat(engine.pairwise(q, q)).isEqualTo(expected);
          engine.pairwise(q, q, out);
        } catch (CudaException e) {
          failures++;
          assertThat(e.code()).isEqualTo(400);
        }
        Emulated.fail(call, 1, 0);
        engine.pairwise(q, q, out);
        assertThat(out.toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
      }
      assertThat(Emulated.live()).isEmpty();
    }
    assertThat(failures).isPositive();
  }

  /** Each call of the runtime fails in turn: an exception that names it, and nothing lost. */
  @ParameterizedTest
  @CsvSource({
    "cudaMalloc, 2",
    "cudaMalloc, 999",
    "cudaHostAlloc, 2",
    "cudaMemcpyAsync, 1",
    "cudaStreamCreateWithFlags, 2",
    "cudaEventCreateWithFlags, 2",
    "cudaEventRecord, 400",
    "cudaStreamWaitEvent, 400",
    "cudaEventSynchronize, 400",
    "cudaMemGetInfo, 999",
    "launch, 701"
  })
  void faults(String call, int error) {
    DiagonalGaussians q = diagonal(false, 33, 5, 1);
    FullGaussians f = full(false, 33, 5, 2);
    Emulated.set("memory", 4L << 20); // a 64th is 128 rows of 64 columns
    DiagonalGaussians many = diagonal(false, 150, 1, 4);
    List<Integer> expected = anew(engine -> everyWay(engine, q, f, many));
    int failures = 0;
    for (int after = 1; ; after++) {
      try (KlEngine engine = engine()) {
        Emulated.fail(call, after, error);
        boolean failed = false;
        try {
          assertThat(everyWay(engine, q, f, many)).isEqualTo(expected);
        } catch (CudaException e) {
          failed = true;
          failures++;
          assertThat(e.code()).isEqualTo(error);
          assertThat(e).hasMessageContaining(call.equals("launch") ? "kullback_cuda_" : call);
        }
        Emulated.fail(call, 1, 0);
        assertThat(Arrays.hashCode(engine.pairwise(q, f)))
            .as("afterwards")
            .isEqualTo(expected.getFirst());
        boolean mended = error == Emulated.OUT_OF_MEMORY && after < 24; // by making room
        if (!failed && !mended) {
          break;
        }
      }
      assertThat(Emulated.live()).isEmpty();
    }
    assertThat(failures)
        .as("failures")
        .matches(count -> error == Emulated.OUT_OF_MEMORY || count > 0);
    assertThat(Emulated.live()).isEmpty();
  }

  /** Two threads want a batch that the first fails to prepare, with its work under way. */
  @ParameterizedTest
  @CsvSource({"launch, 1, 701", "launch, 5, 701", "cudaEventRecord, 3, 400"})
  void aBatchThatFailsWhileAnotherThreadWaitsForIt(String call, int after, int error)
      throws Exception {
    FullGaussians g = full(true, 90, 12, 1);
    double[] expected = anew(engine -> matrix(engine, g, g));
    Emulated.set("delay_us", 300);
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      for (int round = 0; round < 30; round++) {
        try (KlEngine engine = engine()) {
          engine.pairwise(diagonal(false, 5, 12, 1), diagonal(false, 5, 12, 2)); // opens a session
          Emulated.fail(call, after, error);
          List<Future<double[]>> done = new ArrayList<>();
          for (int t = 0; t < 2; t++) {
            done.add(threads.submit(() -> matrix(engine, g, g)));
          }
          for (Future<double[]> future : done) {
            try {
              assertThat(future.get()).isEqualTo(expected);
            } catch (ExecutionException e) {
              assertThat(e).hasCauseInstanceOf(CudaException.class);
            }
          }
          Emulated.fail(call, 1, 0);
          assertThat(matrix(engine, g, g)).isEqualTo(expected);
        }
        assertThat(Emulated.live()).isEmpty();
      }
    }
  }

  /** Small batches first, whose blocks of pinned memory grow while their uploads may be under way. */
  @Test
  void pinnedMemoryIsKeptUntilItsCopiesHavePassed() {
    Emulated.set("delay_us", 500);
    for (int round = 0; round < 20; round++) {
      DiagonalGaussians q = diagonal(false, 300, 2, round);
      near(anew(engine -> matrix(engine, q, q)), onHost(q, q), 1e-5);
    }
  }

  @Test
  void roomIsMadeForWhateverNeedsIt() {
    DiagonalGaussians q = diagonal(false, 33, 5, 1);
    try (KlEngine engine = engine()) {
      float[] expected = engine.pairwise(q, diagonal(false, 33, 5, 2));
      long before = Emulated.live("allocations");
      Emulated.fail("launch", 1, Emulated.OUT_OF_MEMORY);
      assertThat(engine.pairwise(q, q)).hasSize(33 * 33);
      assertThat(Emulated.live("allocations")).isLessThan(before);
      assertThat(engine.pairwise(q, diagonal(false, 33, 5, 2))).isEqualTo(expected);
    }
  }

  @Test
  void describesADeviceThatDoesNotAnswer() {
    Emulated.fail("cudaMemGetInfo", 1, Emulated.OUT_OF_MEMORY);
    assertThat(Backend.CUDA.isAvailable()).isFalse();
    assertThat(Backend.CUDA.isAvailable()).isTrue();
    Emulated.fail("cudaMemGetInfo", 1, Emulated.OUT_OF_MEMORY);
    assertThat(Backend.CUDA.reason())
        .startsWith("cuda: unavailable, the device does not answer: cudaMemGetInfo: ");
    assertThat(Backend.CUDA.reason()).startsWith("cuda: available");
  }

  @Test
  void aDeviceThatFailsForGood() {
    DiagonalGaussians q = diagonal(false, 33, 5, 1);
    KlEngine engine = engine();
    engine.pairwise(q, q);
    Emulated.fail("kernel", 1, LAUNCH_FAILURE);
    assertThatThrownBy(() -> engine.pairwise(q, diagonal(false, 33, 5, 2)))
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> {
              assertThat(e.code()).isEqualTo(LAUNCH_FAILURE);
              assertThat(e.isOutOfMemory()).isFalse();
            });
    assertThatThrownBy(() -> engine.pairwise(q, q))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("failed in an earlier call")
        .hasMessageContaining("restart the process");
    engine.close();
    engine.close();
    Emulated.reset();
    try (KlEngine next = engine()) {
      assertThat(next.pairwise(q, q)).hasSize(33 * 33);
    }
  }

  @Test
  void eightThreads() throws Exception {
    List<Gaussians> batches =
        List.of(
            diagonal(false, 90, 6, 1),
            diagonal(true, 70, 6, 2),
            full(false, 60, 6, 3),
            full(true, 65, 6, 4));
    Emulated.set("delay_us", 50);
    try (KlEngine engine = engine();
        ExecutorService threads = Executors.newFixedThreadPool(8)) {
      double[][] expected = new double[16][];
      Arrays.setAll(
          expected, k -> anew(alone -> matrix(alone, batches.get(k / 4), batches.get(k % 4))));
      List<Future<?>> done = new ArrayList<>();
      for (int t = 0; t < 8; t++) {
        int start = t;
        done.add(
            threads.submit(() -> {
              for (int i = 0; i < 48; i++) {
                int k = (start * 5 + i) % 16;
                assertThat(matrix(engine, batches.get(k / 4), batches.get(k % 4)))
                    .isEqualTo(expected[k]);
              }
            }));
      }
      for (Future<?> future : done) {
        future.get();
      }
    }
    assertThat(Emulated.live()).isEmpty();
  }

  private static double[] matrix(KlEngine engine, Gaussians q, Gaussians p) {
    return engine.pairwise(q, p, new double[q.size() * p.size()]);
  }

  @Test
  void virtualThreads() throws Exception {
    DiagonalGaussians q = diagonal(false, 40, 6, 1);
    try (KlEngine engine = engine();
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      float[] expected = engine.pairwise(q, q);
      List<Future<float[]>> done = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        done.add(threads.submit(() -> engine.pairwise(q, q)));
      }
      for (Future<float[]> future : done) {
        assertThat(future.get()).isEqualTo(expected);
      }
    }
    assertThat(Emulated.live()).isEmpty();
  }

  @Test
  void closeDuringACall() throws Exception {
    DiagonalGaussians q = diagonal(false, 3000, 4, 1);
    DiagonalGaussians p = diagonal(false, 3000, 4, 2);
    float[] expected = anew(engine -> engine.pairwise(q, p));
    Emulated.set("delay_us", 50_000);
    KlEngine engine = engine();
    CountDownLatch begun = new CountDownLatch(1);
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<float[]> call =
          thread.submit(() -> {
            begun.countDown();
            return engine.pairwise(q, p);
          });
      begun.await();
      while (Emulated.live("streams") == 0) {
        Thread.onSpinWait();
      }
      engine.close();
      assertThat(call.isDone()).isFalse();
      assertThatThrownBy(() -> engine.pairwise(q, p)).isInstanceOf(IllegalStateException.class);
      assertThat(call.get()).isEqualTo(expected);
    }
    assertThat(Emulated.live()).isEmpty();
  }

  /** The reason why there is no device is told in one line when the library is loaded, and AUTO goes on without. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "abi | 7 | the native library has ABI version 7",
        "devices | 0 | there is no CUDA device: cudaErrorNoDevice",
        "driver | 0 | there is no CUDA device: cudaErrorInsufficientDriver",
        "compute_major | 7 | the CUDA device has compute capability 7"
      })
  void reasons(String what, int value, String reason) throws Exception {
    List<String> lines = run(ACCESS, Emulated.class.getName(), what, String.valueOf(value));
    assertThat(lines).hasSize(4);
    assertThat(lines.get(0)).startsWith("cuda: unavailable, " + reason);
    assertThat(lines.get(1)).isEqualTo("auto: chooses vector");
    assertThat(lines.get(2)).startsWith("vector on the calling thread");
    assertThat(lines.get(3)).startsWith("the cuda backend cannot run: " + reason);
  }

  /** The library is loaded from a folder of the class path, by way of a temporary file that is gone afterwards. */
  @Test
  void theLibraryOfTheClassPath(@TempDir Path folder) throws Exception {
    Path resource =
        folder.resolve(
            "classes/META-INF/native/linux-%s/libkullback_cuda.so"
                .formatted(System.getProperty("os.arch")));
    Files.createDirectories(resource.getParent());
    Files.copy(Path.of(System.getProperty(CudaLibrary.LIBRARY)), resource);
    Path temporary = Files.createDirectory(folder.resolve("tmp"));
    List<String> lines =
        java(
            ACCESS,
            "-Djava.io.tmpdir=" + temporary,
            "-D" + CudaLibrary.RUNTIME + "=",
            "-cp",
            folder.resolve("classes") + ":" + System.getProperty("java.class.path"),
            Probe.class.getName(),
            "CUDA");
    assertThat(lines)
        .anyMatch(line -> line.matches("CUDA describes cuda: available, .*emulated.*"))
        .anyMatch(line -> line.startsWith("CUDA returns "));
    try (Stream<Path> left = Files.list(temporary)) {
      assertThat(left.filter(path -> path.getFileName().toString().startsWith("kullback")))
          .isEmpty();
    }
  }

  /** Properties that name no file, or a library that is something else. */
  @Test
  void librariesThatAreNone(@TempDir Path folder) throws Exception {
    assertThat(cuda(CudaLibrary.LIBRARY, "/no/such.so"))
        .isEqualTo(
            "cuda: unavailable, system property %s names /no/such.so, which is not a file"
                .formatted(CudaLibrary.LIBRARY));
    Path text = Files.writeString(folder.resolve("text.so"), "not a library");
    assertThat(cuda(CudaLibrary.LIBRARY, text.toString()))
        .isEqualTo(
            "cuda: unavailable, %s is no shared object: it does not begin as an ELF file"
                .formatted(text));
    byte[] whole = Files.readAllBytes(Path.of(System.getProperty(CudaLibrary.LIBRARY)));
    for (int length : new int[] {4, 63, 100, 4096, whole.length / 2, whole.length - 1}) {
      Path part = folder.resolve(length + ".so");
      Files.write(part, Arrays.copyOf(whole, length));
      assertThat(cuda(CudaLibrary.LIBRARY, part.toString()))
          .isEqualTo(
              "cuda: unavailable, %s is truncated: it has %d bytes, its headers tell of more; copy or build it again"
                  .formatted(part, length));
    }
    assertThat(cuda(CudaLibrary.RUNTIME, "/no/such.so"))
        .contains(CudaLibrary.RUNTIME + " names /no/such.so, which is not a file");
  }

  @Test
  void nativeAccessDenied() throws Exception {
    List<String> lines =
        run(
            List.of("--illegal-native-access=deny", "--enable-native-access=java.desktop"),
            Probe.class.getName(),
            "CUDA");
    assertThat(lines)
        .anyMatch(
            line -> line.matches("CUDA describes cuda: unavailable, .*--enable-native-access.*"));
  }

  private String cuda(String property, String value) throws Exception {
    List<String> command = new ArrayList<>();
    if (!property.equals(CudaLibrary.LIBRARY)) {
      command.add("-D" + CudaLibrary.LIBRARY + "=" + System.getProperty(CudaLibrary.LIBRARY));
    } else {
      command.add("-D" + CudaLibrary.RUNTIME + "=");
    }
    command.add("-D" + property + "=" + value);
    command.addAll(
        List.of("-cp", System.getProperty("java.class.path"), Probe.class.getName(), "CUDA"));
    return java(ACCESS, command.toArray(String[]::new)).stream()
        .filter(line -> line.startsWith("CUDA describes "))
        .map(line -> line.substring("CUDA describes ".length()))
        .findFirst()
        .orElse("");
  }

  private List<String> run(List<String> options, String... mainAndArguments) throws Exception {
    List<String> command =
        new ArrayList<>(
            List.of(
                "-D" + CudaLibrary.LIBRARY + "=" + System.getProperty(CudaLibrary.LIBRARY),
                "-D" + CudaLibrary.RUNTIME + "=" + System.getProperty(CudaLibrary.RUNTIME),
                "-cp",
                System.getProperty("java.class.path")));
    command.addAll(List.of(mainAndArguments));
    return java(options, command.toArray(String[]::new));
  }

  private List<String> java(List<String> options, String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of("--add-modules", "jdk.incubator.vector"));
    command.addAll(options);
    command.addAll(List.of(arguments));
    return ChildJvm.run(scratch, Duration.ofMinutes(1), command).out().lines().toList();
  }
}
