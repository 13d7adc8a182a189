package dev.kullback.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** Measures what more threads gain and what near-duplicates cost, on prepared batches. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
    value = 2,
    jvmArgsAppend = {
      "--add-modules",
      "jdk.incubator.vector",
      "--enable-native-access=ALL-UNNAMED",
      "-Ddev.kullback.background=false" // vectors from the first call on
    })
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class ScalingBenchmark {
  /** Contenders with one thread and with two. */
  @State(Scope.Benchmark)
  public static class Threads extends MatrixBenchmark.Subject {
    @Param({
      "kl-prepared", // one thread
      "kl-prepared-2-threads", // the smallest count that shows what sharing costs
      "kl", // and with the preparation, which runs on the caller alone
      "kl-2-threads"
    })
    public String contender;

    @Param({"2048x256"}) // tens of milliseconds: waking a helper does not count
    public String shape;

    @Setup(Level.Trial)
    public void setup() {
      prepare(contender, shape);
    }
  }

  /** Batches whose float entries all fail the error bound, so that the double kernel runs. */
  @State(Scope.Benchmark)
  public static class NearDuplicates extends MatrixBenchmark.Subject {
    @Param({
      "kl-prepared", // an ordinary batch: nothing is flagged
      "kl-near-1e-2", // KL about 1e-2: double is enough
      "kl-near-1e-4",
      "kl-near-1e-6", // KL about 1e-10: cancellation in double too
      "kl-near-mixed" // all of them side by side
    })
    public String contender;

    @Param({
      "1024x128", // half the kernel work an entry of
      "1024x256" // so that costs an entry and costs a term tell apart
    })
    public String shape;

    @Setup(Level.Trial)
    public void setup() {
      prepare(contender, shape);
    }
  }

  /** Low-rank covariances, usual ones and near-duplicates, whose entries are computed pair by pair. */
  @State(Scope.Benchmark)
  public static class LowRank extends MatrixBenchmark.Subject {
    @Param({
      "kl-low-rank-prepared", // nothing is flagged: the product and its epilogue
      "kl-low-rank-near-1e-2", // KL about 1e-1: differences of double are enough
      "kl-low-rank-near-1e-6" // KL about 1e-9
    })
    public String contender;

    @Param({"128x512"}) // 0.3 s of near-duplicates a call
    public String shape;

    @Setup(Level.Trial)
    public void setup() {
      prepare(contender, shape);
    }
  }

  @Benchmark
  public Object lowRank(LowRank subject) {
    return subject.running.call();
  }

  @Benchmark
  public Object threads(Threads subject) {
    return subject.running.call();
  }

  @Benchmark
  public Object nearDuplicates(NearDuplicates subject) {
    return subject.running.call();
  }
}
