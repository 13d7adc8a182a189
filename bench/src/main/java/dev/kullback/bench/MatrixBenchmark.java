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
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * The whole matrix, and its gradients, one contender at a time. For quotients of two contenders use {@link Ratios}: forks minutes apart see
 * different clocks and neighbours.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
// Two forks: C2's choices differ from one process to the next, and the spread should show.
// 5 s of warm-up: hundreds of calls, where C2 is done with the kernels after some tens.
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
public class MatrixBenchmark {
  /** Contenders whose cost compares with a matrix product's. */
  @State(Scope.Benchmark)
  public static class Fast extends Subject {
    @Param({
      "kl", // arrays in, matrix out: what a service pays
      "kl-prepared", // the batch is reused: the kernel and its epilogue alone
      "kl-rect", // q ≠ p: two batches to prepare, no work shared between the two directions
      "kl-rect-prepared",
      "openblas", // the best matrix product of the same inputs
      "torch-product", // the product users compare with, mu @ mu.T
      "torch-product-kl", // what they rewrite the formula to, at the price of its accuracy
      "vectorblas", // matrix products in Java with the Vector API
      "ejml" // and without
    })
    public String contender;

    @Param({
      "100x256", // a small batch of a wide model: preparation and call overhead weigh most
      "1024x64", // few dimensions: the epilogue weighs most
      "1024x128", // a common VAE
      "1024x256", // the question that started the project
      "2048x64", // few dimensions, a matrix (16 MB) beyond L2
      "4096x256" // inputs (4 MB) and matrix (64 MB) beyond L2
    })
    public String shape;

    @Setup(Level.Trial)
    public void setup() {
      prepare(contender, shape);
    }
  }

  /** Gradients, and the pairs of rows that two of them are of. */
  @State(Scope.Benchmark)
  public static class Gradients extends Subject {
    @Param({
      "aligned",
      "gradient-aligned",
      "standard", // a VAE's regularizer
      "gradient-standard",
      "gradient" // of the matrix, over kl-rect-prepared
    })
    public String contender;

    @Param({
      "1024x256", // in the caches but for the matrix
      "4096x256" // inputs and gradients (16 MB) beyond L2
    })
    public String shape;

    @Setup(Level.Trial)
    public void setup() {
      prepare(contender, shape);
    }
  }

  /** Contenders that materialize [B, B, H], or walk it without registers: seconds a call. */
  @State(Scope.Benchmark)
  public static class Slow extends Subject {
    @Param({
      "plain-product", // (mu[:,None] * mu[None]).sum(-1) in plain Java
      "plain-broadcast-kl", // the formula in plain Java
      "torch-broadcast-kl" // the formula in libtorch
    })
    public String contender;

    @Param({
      "100x256", // temporaries that nearly fit the caches: broadcasting at its best
      "1024x64",
      "1024x128",
      "1024x256" // 1 GB a temporary; 4096x256 would need 17 GB each
    })
    public String shape;

    @Setup(Level.Trial)
    public void setup() {
      prepare(contender, shape);
    }
  }

  @Benchmark
  public Object fast(Fast subject) {
    return subject.running.call();
  }

  @Benchmark
  public Object gradients(Gradients subject) {
    return subject.running.call();
  }

  @Benchmark
  public Object slow(Slow subject) {
    return subject.running.call();
  }

  /** A contender whose result has been checked before it is timed. */
  public abstract static class Subject {
    Contender running;

    void prepare(String contender, String shape) {
      running = Contenders.checked(contender, Shape.parse(shape));
    }

    @TearDown(Level.Trial)
    public void close() {
      running.close();
    }
  }
}
