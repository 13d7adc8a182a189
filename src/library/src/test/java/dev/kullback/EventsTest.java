package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.kullback.internal.observe.CallEvent;
import dev.kullback.internal.observe.Events;
import dev.kullback.testing.Batch;
import dev.kullback.testing.ChildJvm;
import dev.kullback.testing.EventsProbe;
import dev.kullback.testing.WarmCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import jdk.jfr.EventType;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Events of JDK Flight Recorder: each with its fields, and none where nobody wants them. */
class EventsTest {
  private static final int D = 9;
  private static final int N = 21;
  private static final int M = 300;
  private static final int CALLS = 50;

  private static final Set<String> NAMES =
      Stream.of("Call", "IndexSearch", "Commit", "Merge", "Refresh", "ChangeOver", "Timeout")
          .map(name -> "dev.kullback." + name)
          .collect(Collectors.toSet());

  private final DiagonalGaussians q = Batch.random(false, N, D, 0, new Random(1)).gaussians();
  private final DiagonalGaussians p = Batch.random(false, M, D, 3, new Random(2)).gaussians();
  private final float[] mean = new float[D];
  private final float[] std = ones();

  @TempDir Path scratch;

  private static float[] ones() {
    float[] ones = new float[D];
    Arrays.fill(ones, 1);
    return ones;
  }

  /** Returns the events of a name that work makes; the others are turned off. */
  private List<RecordedEvent> record(String name, Work work) throws Exception {
    Path file = scratch.resolve("events.jfr");
    try (Recording recording = new Recording()) {
      NAMES.forEach(recording::disable);
      if (!name.isEmpty()) {
        recording.enable(name).withoutThreshold();
      }
      recording.start();
      work.run();
      recording.stop();
      recording.dump(file);
    }
    List<RecordedEvent> events = RecordingFile.readAllEvents(file);
    assertThat(events).allMatch(event -> event.getEventType().getName().equals(name));
    return events;
  }

  private interface Work {
    void run() throws Exception;
  }

  private static List<?> fields(RecordedEvent event, String... names) {
    return Stream.of(names).map(event::getValue).toList();
  }

  /** Returns these fields of each event, as text. */
  private static List<String> fields(List<RecordedEvent> events, String... names) {
    return events.stream().map(event -> fields(event, names).toString()).toList();
  }

  private static long sum(List<RecordedEvent> events, String name) {
    return events.stream().mapToLong(event -> event.getLong(name)).sum();
  }

  /** Whether survivors and bytes are those by which the statistics of an index have grown. */
  private static void sameAsCounted(
      List<RecordedEvent> events, IndexStats before, IndexStats after) {
    assertThat(sum(events, "survivors")).isEqualTo(after.survivors() - before.survivors());
    assertThat(sum(events, "bytesRead"))
        .isEqualTo(after.bytesRead() - before.bytesRead())
        .isPositive();
    assertThat(after.searchTime()).isGreaterThan(before.searchTime());
  }

  private static <E extends Exception> void fails(Class<E> type, ThrowingCallable call) {
    assertThatExceptionOfType(type).isThrownBy(call);
  }

  @Test
  void callsOfAnEngine() throws Exception {
    try (KlEngine engine =
        KlEngine.builder()
            .backend(Backend.SCALAR)
            .threads(2)
            .divergence(Divergence.renyi(0.5))
            .build()) {
      List<RecordedEvent> events =
          record(
              "dev.kullback.Call",
              () -> {
                engine.pairwise(q, p);
                engine.aligned(q, q);
                engine.toStandardNormal(q);
                engine.pairs(q, new int[] {1, 2}, p, new int[] {3, 4}, new double[2]);
                engine.nearest(q, p, 2);
                engine.within(q, p, 1);
                engine.search(q, p, Query.nearest(2), new int[2 * N], new float[2 * N]);
                engine.rowMin(q, p);
                engine.rowSum(q, p);
                engine.logSumExp(q, p);
                engine.weightedLogSumExp(q, p, new double[M]);
                engine.forEachTile(q, p, _ -> {});
              });
      assertThat(fields(events, "operation", "m", "entries"))
          .containsExactly(
              "[pairwise, 300, 6300]",
              "[aligned, 21, 21]",
              "[toStandardNormal, 1, 21]",
              "[pairs, 300, 2]",
              "[search, 300, 6300]",
              "[search, 300, 6300]",
              "[search, 300, 6300]",
              "[rowMin, 300, 6300]",
              "[rowSum, 300, 6300]",
              "[logSumExp, 300, 6300]",
              "[weightedLogSumExp, 300, 6300]",
              "[forEachTile, 300, 6300]");
      assertThat(events)
          .allSatisfy(event -> {
            assertThat(fields(event, "divergence", "n", "dimension", "threads", "cold", "failed"))
                .isEqualTo(List.of("renyi:0.5", N, D, 2, false, false));
            assertThat(event.getDuration()).isPositive();
            assertThat(event.getThread().getJavaName()).isEqualTo(Thread.currentThread().getName());
          });
      EngineStats stats = engine.stats();
      assertThat(stats.calls()).isEqualTo(12);
      assertThat(stats.coldCalls()).isZero(); // there is nothing to compile
      assertThat(stats.entries()).isEqualTo(9L * N * M + 2 * N + 2);
      assertThat(stats.time()).isPositive();
      assertThat(stats.toString())
          .isEqualTo("EngineStats[calls=12, coldCalls=0, entries=56744, time=%s]", stats.time());
    }
  }

  /** Shares of entries that float's form leaves to the one in double, and that to those after it, by compiled vectors and without. */
  @Test
  void recomputedEntries() throws Exception {
    DiagonalGaussians equal = around(40, 0, 9);
    DiagonalGaussians alike = around(40, 0.02f, 9);
    for (boolean isDeferred : new boolean[] {true, false}) {
      for (int threads = 1; threads <= 2; threads++) {
        try (KlEngine engine =
            KlEngine.builder().threads(threads).backgroundWarmUp(isDeferred).build()) {
          List<RecordedEvent> events =
              record(
                  "dev.kullback.Call",
                  () -> {
                    engine.pairwise(q, p);
                    engine.pairwise(equal, around(700, 0, 9));
                    engine.nearest(equal, around(700, 0, 9), 2);
                    engine.pairwise(alike, around(700, 0.02f, 9));
                    engine.pairwise(equal, equal);
                  });
          assertThat(fields(events, "recomputedInDouble", "recomputedPairByPair"))
              .containsExactly(
                  "[0.0, 0.0]",
                  "[0.0, 1.0]",
                  "[0.0, 1.0]",
                  "[1.0, 0.0]",
                  "[0.0, 0.975]"); // the diagonal is 0 by itself
        }
      }
    }
  }

  /** The same of batches of double, and up to four dimensions, which are computed in double at first. */
  @Test
  void recomputedEntriesOfDouble() throws Exception {
    DiagonalGaussians small = around(32, 0, 2);
    double[] zeros = new double[32 * D];
    double[] ones = new double[32 * D];
    Arrays.fill(ones, 1);
    DiagonalGaussians wide = DiagonalGaussians.ofStd(zeros, ones, D);
    try (KlEngine engine = KlEngine.builder().threads(1).backgroundWarmUp(false).build()) {
      List<RecordedEvent> events =
          record(
              "dev.kullback.Call",
              () -> {
                engine.pairwise(wide, DiagonalGaussians.ofStd(zeros, ones, D));
                engine.pairwise(small, around(64, 0, 2));
                engine.pairwise(around(32, 3, 2), around(64, 2, 2));
              });
      assertThat(fields(events, "recomputedInDouble", "recomputedPairByPair"))
          .startsWith("[0.0, 1.0]", "[0.0, 1.0]");
      assertThat(events.getLast().getFloat("recomputedPairByPair")).isLessThan(0.1f);
    }
  }

  /** Returns Gaussians at random distances from the standard one, of the order of {@code spread}. */
  private static DiagonalGaussians around(int n, float spread, int d) {
    Random random = new Random(n);
    float[] mean = new float[n * d];
    float[] std = new float[n * d];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) (spread * random.nextGaussian());
      std[k] = (float) Math.exp(0.3 * spread * random.nextGaussian());
    }
    return DiagonalGaussians.ofStd(mean, std, d);
  }

  @Test
  void searchesOfAnIndex() throws Exception {
    for (int threads = 1; threads <= 2; threads++) {
      try (KlIndex index =
          KlIndex.builder(D).divergence(Divergence.REVERSE_KL).threads(threads).build()) {
        index.add(LongStream.range(0, M).toArray(), p);
        IndexStats before = index.stats();
        long[][] candidates = new long[N][];
        Arrays.setAll(candidates, i -> LongStream.rangeClosed(i, 2L * i + 3).toArray());
        List<RecordedEvent> events =
            record(
                "dev.kullback.IndexSearch",
                () -> {
                  index.nearest(q, 3);
                  index.within(q, 2);
                  index.rank(q, candidates, 3);
                  index.query(mean, 0, std, 0, 4, new long[4], new float[4]);
                  Query hurried = Query.nearest(2).timeout(Duration.ofNanos(1));
                  index.search(q, hurried);
                  index.query(mean, 0, std, 0, hurried, new long[4], new float[4], new double[1]);
                });
        int passes = 2; // of 16 queries, or of half of them
        assertThat(fields(events, "divergence", "k", "radius", "queries", "passes", "incomplete"))
            .containsExactly(
                "[reverse-kl, 3, Infinity, 21, %d, 0]".formatted(passes),
                "[reverse-kl, 0, 2.0, 21, %d, 0]".formatted(passes),
                "[reverse-kl, 3, Infinity, 21, 0, 0]",
                "[reverse-kl, 4, Infinity, 1, 1, 0]",
                "[reverse-kl, 2, Infinity, 21, 0, 21]",
                "[reverse-kl, 2, Infinity, 1, 0, 1]");
        IndexStats after = index.stats();
        sameAsCounted(events, before, after);
        assertThat(events.get(2).getLong("survivors")).as("of rank").isPositive();
        assertThat(events.get(2).getLong("bytesRead")).isPositive();
        int all = threads;
        assertThat(events)
            .allSatisfy(event -> {
              assertThat(event.getBoolean("failed")).isFalse();
              assertThat(event.getInt("threads")).isEqualTo(all);
              assertThat(event.getDuration("waited")).isZero();
              assertThat(event.getDuration()).isPositive();
            });
      }
    }
  }

  /** A search that failed has answered nothing, but what it did until then is counted. */
  @Test
  void failedSearches() throws Exception {
    Query broken = Query.nearest(2).filter(id -> failsAt(id, id));
    Query late = Query.within(1e9).filter(id -> failsAt(id, M - 1));
    for (int threads = 1; threads <= 2; threads++) {
      try (KlIndex index = KlIndex.builder(D).threads(threads).build()) {
        index.add(LongStream.range(0, M).toArray(), p);
        IndexStats before = index.stats();
        List<RecordedEvent> events =
            record(
                "dev.kullback.IndexSearch",
                () -> {
                  for (Query query : List.of(broken, late)) {
                    fails(IllegalStateException.class, () -> index.search(q, query));
                  }
                  fails(
                      InvalidGaussianException.class,
                      () -> index.query(mean, 0, new float[D], 0, 4, new long[4], new float[4]));
                });
        assertThat(fields(events, "k", "queries", "passes", "failed"))
            .containsExactly("[2, 0, 0, true]", "[0, 0, 0, true]", "[4, 0, 0, true]");
        IndexStats after = index.stats();
        assertThat(after.queries()).isEqualTo(before.queries());
        sameAsCounted(events, before, after); // of failed ones, too
      }
    }
  }

  private static boolean failsAt(long id, long last) {
    if (id == last) {
      throw new IllegalStateException("filter");
    }
    return true;
  }

  @Test
  void failedCalls() throws Exception {
    Query hurried = Query.nearest(2).timeout(Duration.ofNanos(5));
    try (KlEngine engine = KlEngine.builder().backend(Backend.SCALAR).build()) {
      List<RecordedEvent> events =
          record(
              "dev.kullback.Call",
              () -> {
                fails(SearchTimeoutException.class, () -> engine.search(q, p, hurried));
                engine.nearest(q, p, 2);
                fails(
                    IllegalStateException.class,
                    () -> engine.forEachTile(q, p, _ -> failsAt(0, 0)));
                engine.pairwise(q, p);
              });
      assertThat(fields(events, "operation", "failed"))
          .containsExactly(
              "[search, true]", "[search, false]", "[forEachTile, true]", "[pairwise, false]");
    }
  }

  /** Each caller has an event: of those that one pass answered, the leader's tells of the pass. */
  @Test
  void gatheredSearches() throws Exception {
    int callers = 8;
    try (KlIndex index = KlIndex.builder(D).batchQueries(Duration.ofMillis(200)).build();
        ExecutorService pool = Executors.newFixedThreadPool(callers)) {
      index.add(LongStream.range(0, M).toArray(), p);
      DiagonalGaussians one = DiagonalGaussians.ofStd(mean, std, D);
      long[] searches = new long[1];
      List<RecordedEvent> events =
          record(
              "dev.kullback.IndexSearch",
              () -> {
                // Queries are gathered while others are answered: until that has happened.
                for (int round = 0; round < 1000 && searches[0] < 1000; round++) {
                  List<Callable<Object>> asked = new ArrayList<>();
                  for (int c = 0; c < callers; c++) {
                    asked.add(() -> index.nearest(one, 3));
                  }
                  for (Future<Object> answer : pool.invokeAll(asked)) {
                    answer.get();
                  }
                  searches[0] += callers;
                }
              });
      assertThat(events).hasSize((int) searches[0]);
      List<RecordedEvent> followers =
          events.stream().filter(event -> event.getInt("passes") == 0).toList();
      List<RecordedEvent> leaders =
          events.stream().filter(event -> event.getInt("passes") == 1).toList();
      assertThat(followers).isNotEmpty().allMatch(e -> e.getInt("queries") == 1);
      assertThat(followers).allMatch(e -> e.getDuration("waited").isPositive());
      assertThat(leaders.stream().mapToInt(event -> event.getInt("queries")).sum())
          .isEqualTo((int) searches[0]);
    }
  }

  @Test
  void commitsAndRefreshes() throws Exception {
    Path folder = scratch.resolve("index");
    try (KlIndex index = KlIndex.builder(D).open(folder)) {
      index.add(LongStream.range(0, M).toArray(), p);
      long bytes = index.stats().nativeBytes();
      List<RecordedEvent> commits =
          record(
              "dev.kullback.Commit",
              () -> {
                index.commit();
                index.commit(); // which has nothing to write
              });
      assertThat(commits).hasSize(1);
      assertThat(fields(commits.getFirst(), "folder", "changes", "segments", "bytes", "failed"))
          .isEqualTo(List.of(folder.toRealPath().toString(), (long) M, 1, bytes, false));
      assertThat(index.stats().commits()).isEqualTo(1);
      assertThat(index.stats().commitTime()).isEqualTo(index.stats().lastCommitTime()).isPositive();
      try (KlIndex reader = KlIndex.openReadOnly(folder)) {
        index.remove(7);
        index.commit();
        List<RecordedEvent> refreshes =
            record(
                "dev.kullback.Refresh",
                () -> {
                  reader.refresh();
                  reader.refresh();
                });
        assertThat(fields(refreshes, "folder", "changed", "segments", "failed"))
            .containsExactly(
                "[%s, true, 1, false]".formatted(folder.toRealPath()),
                "[%s, false, 1, false]".formatted(folder.toRealPath()));
        assertThat(reader.stats().refreshes()).isEqualTo(1);
      }
      assertThat(index.stats().commits()).isEqualTo(2);
      assertThat(index.stats().commitTime()).isGreaterThan(index.stats().lastCommitTime());
    }
  }

  /** What fails is recorded as that: here somebody has taken the manifest away. */
  @Test
  void failures() throws Exception {
    Path folder = scratch.resolve("index");
    try (KlIndex index = KlIndex.builder(D).open(folder);
        KlIndex reader = KlIndex.openReadOnly(folder)) {
      index.add(LongStream.range(0, M).toArray(), p);
      Path manifest = folder.resolve("manifest");
      Path elsewhere = Files.move(manifest, scratch.resolve("manifest"));
      List<RecordedEvent> events =
          record("dev.kullback.Commit", () -> fails(UncheckedIOException.class, index::commit));
      assertThat(events).hasSize(1).allMatch(event -> event.getBoolean("failed"));
      assertThat(index.stats().commits()).isZero();
      events =
          record("dev.kullback.Refresh", () -> fails(UncheckedIOException.class, reader::refresh));
      assertThat(events).hasSize(1).allMatch(event -> event.getBoolean("failed"));
      Files.move(elsewhere, manifest);
      index.commit();
      assertThat(index.stats().commits()).isEqualTo(1);
    }
  }

  @Test
  void merges() throws Exception {
    try (KlIndex index = KlIndex.builder(D).build()) {
      List<RecordedEvent> events =
          record(
              "dev.kullback.Merge",
              () -> {
                for (int k = 0; k < 40; k++) {
                  index.add(LongStream.range(k * M, k * M + M).toArray(), p);
                }
              });
      IndexStats stats = index.stats();
      assertThat(events).isNotEmpty().hasSize((int) stats.merges());
      assertThat(stats.mergeTime()).isPositive();
      assertThat(events)
          .allSatisfy(event -> {
            int segments = event.getInt("segments");
            assertThat(segments).isGreaterThan(1);
            assertThat(event.getLong("references")).isGreaterThanOrEqualTo((long) segments * M);
            assertThat(event.getLong("bytes")).isGreaterThan(16L * D * segments * M);
            assertThat(event.getBoolean("failed")).isFalse();
          });
    }
  }

  @Test
  void timeouts() throws Exception {
    Query hurried = Query.nearest(2).timeout(Duration.ofNanos(5));
    for (int threads = 1; threads <= 2; threads++) {
      try (KlEngine engine = KlEngine.builder().threads(threads).build();
          KlIndex index = KlIndex.builder(D).threads(threads).build()) {
        index.add(LongStream.range(0, M).toArray(), p);
        List<RecordedEvent> events =
            record(
                "dev.kullback.Timeout",
                () -> {
                  fails(SearchTimeoutException.class, () -> engine.search(q, p, hurried));
                  assertThat(index.search(q, hurried).isComplete(0)).isFalse();
                  index.warmUpFor(hurried); // without the timeout
                  engine.search(q, p, Query.nearest(2).timeout(Duration.ofHours(1)));
                  engine.nearest(q, p, 2);
                  index.nearest(q, 2);
                });
        assertThat(events.stream().map(e -> e.getString("operation")))
            .containsExactly("KlEngine.search", "KlIndex.search");
        assertThat(events).allMatch(e -> e.getDuration("limit").toNanos() == 5);
      }
    }
  }

  @Test
  void everyEventIsDescribed() {
    Events.timeout("KlEngine.search", 1); // which loads the class
    assertThat(
            new Object[] {
              Events.call(),
              Events.indexSearch(),
              Events.commit(),
              Events.merge(),
              Events.refresh(),
              Events.changeOver()
            })
        .as("nothing is recorded now")
        .containsOnlyNulls();
    List<EventType> types =
        FlightRecorder.getFlightRecorder().getEventTypes().stream()
            .filter(type -> type.getName().startsWith("dev.kullback."))
            .toList();
    assertThat(types.stream().map(EventType::getName)).containsExactlyInAnyOrderElementsOf(NAMES);
    for (EventType type : types) {
      assertThat(type.getCategoryNames()).containsExactly("Kullback");
      assertThat(type.getDescription()).isNotBlank();
      assertThat(type.getLabel()).isNotBlank();
    }
  }

  /** Warm calls allocate nothing before, beside and after recordings that do not want their events. */
  @Test
  void nothingIsAllocatedForEventsThatNobodyWants() throws Exception {
    float[] out = new float[N * M];
    long[] ids = new long[4];
    float[] kl = new float[4];
    // Without vectors, which allocate until C2 has compiled them.
    try (KlEngine engine = KlEngine.builder().backend(Backend.SCALAR).build();
        KlIndex index = KlIndex.builder(D).backgroundWarmUp(true).build()) {
      index.add(LongStream.range(0, M).toArray(), p);
      Work check =
          () -> {
            WarmCalls.allocateNothing("call", CALLS, () -> engine.pairwise(q, p, out));
            WarmCalls.allocateNothing(
                "index", CALLS, () -> index.query(mean, 0, std, 0, 4, ids, kl));
          };
      check.run();
      assertThat(record("", check)).isEmpty();
      assertThat(record("dev.kullback.Call", () -> engine.pairwise(q, p))).hasSize(1);
      check.run();
    }
  }

  /** Of a new virtual machine: the trials, and the calls of the program, not those of the trials. */
  @Tag("long")
  @Test
  void changeOvers() throws Exception {
    Path file = scratch.resolve("child.jfr");
    Path settings =
        Files.writeString(
            scratch.resolve("all.jfc"),
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <configuration version="2.0">
              <event name="dev.kullback.ChangeOver"><setting name="enabled">true</setting></event>
              <event name="dev.kullback.Call">
                <setting name="enabled">true</setting>
                <setting name="threshold">0 ms</setting>
              </event>
            </configuration>
            """);
    ChildJvm jvm =
        probe(
            "true",
            "--add-modules",
            "jdk.incubator.vector",
            "-XX:StartFlightRecording:filename=%s,settings=%s".formatted(file, settings));
    assertThat(jvm.out()).contains("jdk.jfr, ");
    List<RecordedEvent> events = RecordingFile.readAllEvents(file);
    List<RecordedEvent> changeOvers = ofType(events, "ChangeOver");
    assertThat(changeOvers)
        .allSatisfy(event -> {
          assertThat(event.getThread().getJavaName()).isEqualTo("kullback-change-over");
          assertThat(event.getDuration()).isPositive();
        });
    assertThat(changeOvers.stream().filter(e -> e.getBoolean("compiled")))
        .extracting(e -> "compiled " + e.getString("group"))
        .contains("compiled small", "compiled scans")
        .containsExactlyInAnyOrderElementsOf(
            jvm.out().lines().filter(line -> line.startsWith("compiled ")).toList());
    List<RecordedEvent> calls = ofType(events, "Call");
    assertThat(calls.getFirst().getBoolean("cold")).isTrue();
    assertThat(calls.getLast().getBoolean("cold")).isFalse();
    assertThat(calls).allMatch(e -> e.getThread().getJavaName().equals("main"));
    assertThat(jvm.out()).contains("jdk.jfr, " + calls.size());
  }

  private static List<RecordedEvent> ofType(List<RecordedEvent> events, String name) {
    return events.stream().filter(e -> e.getEventType().getName().endsWith(name)).toList();
  }

  /** Without the module there are no events, and all else is as it was. */
  @Test
  void noModule() throws Exception {
    ChildJvm jvm = probe(null, "--limit-modules", "java.logging");
    assertThat(jvm.out()).contains("timeout", "no jdk.jfr, 1", "merged");
  }

  /** Without a recorder none is begun, which takes 0.1 s of a first call, nor is a class of an event loaded. */
  @Test
  void noRecorder() throws Exception {
    ChildJvm jvm = probe(null, "-Xlog:class+load");
    assertThat(jvm.out())
        .contains("jdk.jfr, 1", Events.class.getName())
        .doesNotContain("jdk.jfr.internal.MetadataRepository", CallEvent.class.getName());
  }

  private ChildJvm probe(String wait, String... flags) throws IOException, InterruptedException {
    List<String> arguments = new ArrayList<>(List.of(flags));
    arguments.addAll(List.of("-cp", System.getProperty("java.class.path")));
    arguments.add(EventsProbe.class.getName());
    arguments.add(scratch.resolve("probed").toString());
    if (wait != null) {
      arguments.add(wait);
    }
    ChildJvm jvm = ChildJvm.run(scratch, Duration.ofMinutes(2), arguments);
    assertThat(jvm.status()).as("%s", jvm).isZero();
    return jvm;
  }
}
