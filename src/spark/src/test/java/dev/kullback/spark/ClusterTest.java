package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
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
    Sample references = Sample.twins(Scale.STD, false, 2000, 8, 1);
    Sample queries = references.first(600);
    assertThat(
            Sample.found(
                KlNeighbors.of(references.dataset(spark))
                    .blockRows(286)
                    .nearest(queries.dataset(spark), K)))
        .isEqualTo(queries.nearest(references, K, false));
  }

  @Test
  void aKilledExecutorChangesNothing() {
    Sample references = Sample.twins(Scale.STD, true, 2000, 8, 2);
    Sample queries = references.first(600);
    KlNeighbors search = KlNeighbors.of(references.dataset(spark)).blockRows(100);
    var result = search.nearest(queries.dataset(spark), K); // its inputs are in blocks now
    Killer killer = new Killer();
    spark.sparkContext().addSparkListener(killer);
    List<Sample.Found> found = Sample.found(result);
    assertThat(killer.killed.get()).isEqualTo(1);
    assertThat(killer.removed.get()).isEqualTo(1);
    assertThat(found).isEqualTo(queries.nearest(references, K, false));
  }

  /** Kills an executor when the fourth task has ended. */
  private static final class Killer extends SparkListener {
    final AtomicInteger ended = new AtomicInteger();
    final AtomicInteger killed = new AtomicInteger();
    final AtomicInteger removed = new AtomicInteger();

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
      removed.incrementAndGet();
    }
  }
}
