package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.KlEngine;
import dev.kullback.ScaleKind;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Two executors of their own JVMs, started from Spark's jars. */
class ClusterTest {
  private static final int K = 10;

  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestSpark.cluster();
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  @Test
  void twoExecutorsFindWhatOneEngineFinds() {
    Sample references = Sample.twins(ScaleKind.STD, false, 2000, 8, 1);
    Sample queries = references.first(600);
    assertThat(
            Sample.found(
                KlNeighbors.of(references.dataset(spark))
                    .blockRows(286)
                    .nearest(queries.dataset(spark), K)))
        .isEqualTo(queries.nearest(references, K, false));
  }

  /** Searches and sums whose objects Kryo moves give what one engine gives. */
  @Test
  void broadcastsAndSums() {
    Sample references = Sample.twins(ScaleKind.STD, false, 500, 8, 3);
    Sample queries = references.first(100);
    KlNeighbors search = KlNeighbors.of(references.dataset(spark));
    assertThat(Sample.found(search.broadcast().nearest(queries.dataset(spark), K)))
        .isEqualTo(queries.nearest(references, K, false));
    List<Row> sums =
        search.blockRows(70).logSumExp(queries.dataset(spark)).orderBy("id").collectAsList();
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] expected = engine.logSumExp(queries.batch(), references.batch());
      assertThat(sums).hasSize(expected.length);
      for (int i = 0; i < expected.length; i++) {
        assertThat(sums.get(i).getDouble(1)).isCloseTo(expected[i], within(1e-5));
      }
    }
  }

  @Test
  void aKilledExecutorChangesNothing() {
    Sample references = Sample.twins(ScaleKind.STD, true, 2000, 8, 2);
    Sample queries = references.first(600);
    KlNeighbors search = KlNeighbors.of(references.dataset(spark)).blockRows(100);
    var result = search.nearest(queries.dataset(spark), K); // its inputs are in blocks now
    Killer killer = new Killer();
    spark.sparkContext().addSparkListener(killer);
    List<Sample.Found> found = Sample.found(result);
    assertThat(killer.killed.get()).isEqualTo(1);
    assertThat(killer.removedInTime()).isTrue();
    assertThat(found).isEqualTo(queries.nearest(references, K, false));
  }

  /** Kills an executor when the fourth task has ended. */
  private static final class Killer extends SparkListener {
    final AtomicInteger ended = new AtomicInteger();
    final AtomicInteger killed = new AtomicInteger();
    private final CountDownLatch removed = new CountDownLatch(1);

    boolean removedInTime() {
      try {
        return removed.await(20, TimeUnit.SECONDS); // Spark notices it by itself
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd task) {
      if (ended.incrementAndGet() == 4) {
        ProcessHandle.current()
            .descendants()
            .filter(process ->
                process.info().commandLine().orElse("").contains("CoarseGrainedExecutorBackend"))
            .limit(1)
            .filter(ProcessHandle::destroyForcibly)
            .forEach(_ -> killed.incrementAndGet());
      }
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved executor) {
      removed.countDown();
    }
  }
}
