package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.cuda.abi.CudaRuntime;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Emulated;
import dev.kullback.testing.FullBatch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Reductions on a device, on the emulated one, against the host's: shapes that take several strips, parts and pieces. */
@Tag("cuda")
@Timeout(120)
class CudaReductionsTest {
  private final KlEngine cuda = KlEngine.builder().backend(Backend.CUDA).threads(2).build();
  private final KlEngine host = KlEngine.builder().backend(Backend.VECTOR).threads(2).build();

  /** A 64th of its memory, 2 MiB, is what a device computes of a matrix at a time. */
  @BeforeEach
  void reset() {
    Emulated.reset();
    Emulated.set("memory", 128L << 20);
  }

  @AfterEach
  void everythingIsReleased() {
    cuda.close();
    host.close();
    assertThat(Emulated.live()).isEmpty();
    Emulated.reset();
  }

  private static DiagonalGaussians random(boolean isDouble, int n, int d, int seed) {
    return Batch.random(isDouble, n, d, 0, new Random(seed)).gaussians();
  }

  private static float[] ones(int n) {
    float[] std = new float[n];
    Arrays.fill(std, 1);
    return std;
  }

  private void same(Function<KlEngine, Neighbors> search) {
    Neighbors actual = search.apply(cuda);
    Neighbors expected = search.apply(host);
    assertThat(actual.size()).isEqualTo(expected.size());
    for (int i = 0; i < expected.size(); i++) {
      assertThat(actual.count(i)).as("row %d", i).isEqualTo(expected.count(i));
    }
    assertThat(actual.indices()).isEqualTo(expected.indices());
    near(actual.values(), expected.values());
  }

  private static void near(double[] actual, double[] expected) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int k = 0; k < actual.length; k++) {
      if (!(Math.abs(actual[k] - expected[k]) <= 2e-5 * Math.abs(expected[k]))) {
        assertThat(actual[k]).as("value %d", k).isEqualTo(expected[k]);
      }
    }
  }

  /** One row in pieces; parts of columns; two of these with several pieces each; strips of rows; and a row more than a thread takes. */
  @ParameterizedTest
  @CsvSource({
    "1, 20000, 2",
    "300, 5000, 1",
    "10, 30000, 1",
    "1300, 350, 2",
    "65, 130, 7",
    "9000, 1, 2"
  })
  void sameAsOnTheHost(int n, int m, int d) {
    DiagonalGaussians q = random(false, n, d, 1);
    DiagonalGaussians p = random(n % 2 == 0, m, d, 2);
    same(engine -> engine.nearest(q, p, Math.min(m, 3)));
    same(engine -> engine.within(q, p, host.rowMin(q, p)[0] * 1.5));
    near(cuda.rowMin(q, p), host.rowMin(q, p));
    near(cuda.logSumExp(q, p), host.logSumExp(q, p));
    double[] logWeights = new Random(3).doubles(m, -5, 5).toArray();
    logWeights[0] = Double.NEGATIVE_INFINITY;
    near(cuda.weightedLogSumExp(q, p, logWeights), host.weightedLogSumExp(q, p, logWeights));
  }

  @ParameterizedTest
  @CsvSource({"5000, 300", "350, 1300"})
  void inReverse(int n, int m) {
    DiagonalGaussians q = random(false, n, 1, 1);
    DiagonalGaussians p = random(false, m, 1, 2);
    same(engine -> engine.search(q, p, Query.nearest(2).reverse()));
    same(engine -> engine.search(q, p, Query.within(1e-4).reverse()));
  }

  @Test
  void others() {
    DiagonalGaussians g = random(false, 700, 3, 1);
    same(engine -> engine.search(g, g, Query.nearest(4).excludeSelf()));
    same(engine -> engine.search(g, g, Query.nearest(4).excludeSelf().reverse()));
  }

  /** The column that a row leaves out is in the first part of the columns or the second. */
  @Test
  void othersInSeveralParts() {
    Batch all = Batch.random(false, 5000, 1, 0, new Random(1));
    DiagonalGaussians p = all.gaussians();
    DiagonalGaussians q = all.rows(4000, 4150).gaussians();
    Query options = Query.nearest(4).excludeSelf(4000);
    same(engine -> engine.search(q, p, options));
    same(engine -> engine.search(q, p, options.reverse()));
  }

  /** Rows 200 to 300 of a set against its blocks, each without the row itself, one after the other. */
  @Test
  void blocks() {
    Batch all = Batch.random(false, 700, 3, 0, new Random(1));
    DiagonalGaussians q = all.rows(200, 300).gaussians();
    DiagonalGaussians first = all.rows(0, 250).gaussians();
    DiagonalGaussians second = all.rows(250, 700).gaussians();
    Query options = Query.nearest(4).excludeSelf(200).exact();
    for (Query asked : new Query[] {options, options.reverse()}) {
      Neighbors whole = host.search(q, all.gaussians(), asked);
      Neighbors a = cuda.search(q, first, asked);
      Neighbors b = cuda.search(q, second, asked.resumeAfter(a, 250));
      assertThat(b.indices()).isEqualTo(whole.indices());
      assertThat(b.values()).isEqualTo(whole.values());
    }
  }

  /** A search must not be begun anew when some of its rows were already counted. */
  @Test
  void memoryThatIsShortInTheMiddle() {
    DiagonalGaussians q = random(false, 1300, 1, 1);
    DiagonalGaussians p = random(false, 350, 1, 2);
    int pairs = host.within(q, p, 1e-4).indices().length;
    int failures = 0;
    for (int after = 1; after < 14; after++) {
      Emulated.fail("launch", after, Emulated.OUT_OF_MEMORY);
      try {
        assertThat(cuda.search(q, p, Query.within(1e-4).maxPairs(pairs)).indices()).hasSize(pairs);
      } catch (CudaException e) {
        assertThat(e.isOutOfMemory()).isTrue();
        failures++;
      }
      Emulated.fail("launch", 1, 0);
      assertThat(cuda.search(q, p, Query.within(1e-4).maxPairs(pairs)).indices()).hasSize(pairs);
    }
    assertThat(failures).isPositive();
  }

  /** The sum of a row does not depend on how many rows there are, nor on the device's memory. */
  @Test
  void bitsOfSums() {
    Batch rows = Batch.random(false, 130, 1, 0, new Random(1));
    DiagonalGaussians p = random(false, 9000, 1, 2);
    double[] all = cuda.rowSum(rows.gaussians(), p);
    for (int i = 0; i < 8; i++) {
      assertThat(cuda.rowSum(rows.rows(i, i + 1).gaussians(), p)).containsExactly(all[i]);
    }
    cuda.close();
    Emulated.set("memory", 32L << 20);
    try (KlEngine small = KlEngine.builder().backend(Backend.CUDA).build()) {
      assertThat(small.rowSum(rows.gaussians(), p)).isEqualTo(all);
    }
  }

  @Test
  void fullAndMixed() {
    FullGaussians f = FullBatch.random(false, 150, 3, 10, 0, new Random(1)).gaussians();
    DiagonalGaussians g = random(false, 90, 3, 2);
    same(engine -> engine.nearest(f, f, 5));
    same(engine -> engine.nearest(g, f, 5));
    same(engine -> engine.search(f, g, Query.nearest(5).reverse()));
    near(cuda.rowSum(f, g), host.rowSum(f, g));
  }

  /** Finds as many neighbors as the device keeps, and more, which come as blocks. */
  @ParameterizedTest
  @ValueSource(ints = {1, 100, 1365, 1366, 2000})
  void manyNeighbors(int k) {
    DiagonalGaussians q = random(false, 70, 2, 1);
    DiagonalGaussians p = random(false, 2000, 2, 2);
    same(engine -> engine.nearest(q, p, k));
  }

  /** Ties beyond what the device keeps of a piece: these come as blocks, and the first win. */
  @Test
  void ties() {
    int m = 9000;
    float[] mean = new float[m];
    for (int j = 0; j < m; j++) {
      mean[j] = j % 3 == 0 ? 1 : 1 + j;
    }
    DiagonalGaussians p = DiagonalGaussians.ofStd(mean, ones(m), 1);
    DiagonalGaussians q = random(false, 130, 1, 3);
    same(engine -> engine.nearest(q, p, 10));
    same(engine -> engine.search(q, p, Query.nearest(10).exact()));
    same(engine -> engine.within(q, p, 2));
    same(engine -> engine.search(q, p, Query.nearest(10).reverse()));
    same(engine -> engine.search(q, p, Query.within(2).reverse()));
    assertThat(
            cuda.nearest(DiagonalGaussians.ofStd(new float[] {1}, new float[] {1}, 1), p, 3)
                .indices())
        .containsExactly(0, 3, 6);
  }

  /** Ties are as many as the device lists for k = 10, and one more. */
  @ParameterizedTest
  @ValueSource(ints = {42, 43})
  void tiesThatFillAList(int ties) {
    float[] mean = new float[5000];
    for (int j = 0; j < mean.length; j++) {
      mean[j] = j % 50 == 7 && j / 50 < ties ? 1 : 10 + j;
    }
    DiagonalGaussians p = DiagonalGaussians.ofStd(mean, ones(mean.length), 1);
    DiagonalGaussians q = random(false, 70, 1, 3);
    same(engine -> engine.nearest(q, p, 10));
    same(engine -> engine.search(q, p, Query.nearest(10).reverse()));
  }

  /** A device of more memory takes pieces wider than a host's blocks, and wider blocks of the rows that it does not list. */
  @Test
  void tiesOnALargeDevice() {
    Emulated.set("memory", 4L << 30);
    DiagonalGaussians q = random(false, 512, 1, 1);
    DiagonalGaussians p = DiagonalGaussians.ofStd(new float[5000], ones(5000), 1);
    same(engine -> engine.nearest(q, p, 400));
    same(engine -> engine.search(q, p, Query.nearest(400).reverse()));
  }

  @Test
  void onlyListsAndNumbersLeaveTheDevice() {
    int n = 400;
    int m = 9000;
    DiagonalGaussians q = random(false, n, 2, 1);
    DiagonalGaussians p = random(false, m, 2, 2);
    double most = 0.1 * n * m * Double.BYTES;
    cuda.nearest(q, p, 10);
    assertThat(Emulated.live("downloaded")).isPositive().isLessThan((long) most);
    cuda.search(q, p, Query.nearest(10).reverse());
    cuda.logSumExp(q, p);
    cuda.rowMin(q, p);
    assertThat(Emulated.live("downloaded")).isLessThan((long) most);
    cuda.forEachTile(q, p, tile -> {});
    assertThat(Emulated.live("downloaded")).isGreaterThan((long) n * m * Double.BYTES);
  }

  /** Native memory is pinned for the call and filled by the device; where it cannot be, by way of the session's. */
  @ParameterizedTest
  @CsvSource({"3000, 700, false", "70, 33000, false", "3000, 700, true"})
  void nativeMemory(int n, int m, boolean refused) {
    DiagonalGaussians q = random(false, n, 2, 1);
    DiagonalGaussians p = random(false, m, 2, 2);
    float[] expected = cuda.pairwise(q, p);
    if (refused) {
      Emulated.fail("cudaHostRegister", 1, 1);
    }
    try (Arena arena = Arena.ofShared()) {
      MemorySegment out = arena.allocate(4L * n * m + 4, 4).fill((byte) 7);
      cuda.pairwise(q, p, out.asSlice(0, 4L * n * m));
      assertThat(out.asSlice(0, 4L * n * m).toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
      assertThat(out.get(ValueLayout.JAVA_INT, 4L * n * m)).isEqualTo(0x07070707);
    }
    assertThat(Emulated.live("registrations")).isEqualTo(refused ? 0 : 1);
    assertThat(Emulated.live("registered")).isZero();
  }

  /** Memory that the caller has pinned is filled directly, and stays pinned. */
  @Test
  void pinnedMemory() {
    DiagonalGaussians g = random(false, 1100, 2, 1);
    float[] expected = cuda.pairwise(g, g);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(4L * expected.length, 64);
      assertThat(CudaRuntime.cudaHostRegister(out, out.byteSize(), 0)).isZero();
      cuda.pairwise(g, g, out);
      assertThat(out.toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
      assertThat(Emulated.live("registered")).isEqualTo(1);
      assertThat(CudaRuntime.cudaHostUnregister(out)).isZero();
    }
  }

  /** Memory that the caller has pinned in part is filled by way of the session's: a copy must not span pinned and other memory. */
  @ParameterizedTest
  @CsvSource({
    "1100, 1100, 0, 4096",
    "1100, 1100, 1000000, 2000000",
    "1100, 1100, 4800000, 40000",
    "70, 33000, 4000000, 5000000"
  })
  void memoryPinnedInPart(int n, int m, long from, long bytes) {
    DiagonalGaussians q = random(false, n, 2, 1);
    DiagonalGaussians p = random(false, m, 2, 2);
    float[] expected = cuda.pairwise(q, p);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(4L * expected.length, 64);
      MemorySegment part = out.asSlice(from, bytes);
      assertThat(CudaRuntime.cudaHostRegister(part, bytes, 0)).isZero();
      cuda.pairwise(q, p, out);
      assertThat(out.toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
      assertThat(CudaRuntime.cudaHostUnregister(part)).isZero();
    }
    assertThat(Emulated.live("registered")).isZero();
  }

  /** The memory cannot be freed while the device writes there; before or after, the call says that it is. */
  @Test
  void memoryThatIsClosedDuringACall() throws InterruptedException {
    Emulated.set("delay_us", 300);
    DiagonalGaussians g = random(false, 1100, 1, 1);
    int refused = 0;
    for (int round = 0; round < 10; round++) {
      Arena arena = Arena.ofShared();
      MemorySegment out = arena.allocate(4L * 1100 * 1100, 64);
      int wait = round;
      Thread closer =
          Thread.ofPlatform()
              .start(() -> {
                LockSupport.parkNanos(wait * 20_000_000L);
                while (arena.scope().isAlive()) {
                  try {
                    arena.close();
                  } catch (IllegalStateException e) {
                    Thread.onSpinWait(); // in use
                  }
                }
              });
      if (round == 0) {
        closer.join(); // on a busy machine it might be late in each round
      }
      try {
        cuda.pairwise(g, g, out);
      } catch (IllegalStateException e) {
        refused++;
      }
      closer.join();
    }
    assertThat(refused).isPositive();
    assertThat(Emulated.live("registered")).isZero();
  }
}
