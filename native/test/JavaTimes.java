import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;

/**
 * Median microseconds from the call in Java to its result. With "cpu": of the KL matrix (1024,128) on one thread of the CPU, arrays in,
 * array out. With "cuda": rows of a table for the CUDA backend, among them a service's queries, each with new arrays. With "cuda small":
 * the same rows with little data, to try this.
 */
class JavaTimes {
  private static final Random RANDOM = new Random(42);

  public static void main(String[] args) {
    if (args[0].equals("cpu")) {
      try (KlEngine engine = KlEngine.builder().backend(Backend.VECTOR).build()) {
        System.out.printf(Locale.ROOT, "%.1f%n", query(engine, 1024, 1024, 128, 200, 501));
      }
      return;
    }
    boolean small = args.length > 1;
    try (KlEngine engine =
            KlEngine.builder()
                .backend(Backend.CUDA)
                .threads(Runtime.getRuntime().availableProcessors())
                .build();
        Arena arena = Arena.ofConfined()) {
      int m = small ? 64 : 4096;
      for (int n : new int[] {1, 16, 100}) {
        row("pairwise, new q", n, m, 64, query(engine, n, m, 64, 20, 201));
      }
      int many = small ? 500 : 100_000;
      row("nearest 10, new q", 1, many, 64, nearest(engine, 1, many, 64, 201));
      row("nearest 10, new q", 100, many, 64, nearest(engine, 100, many, 64, 101));

      int b = small ? 80 : 4096;
      DiagonalGaussians g = random(b, 256);
      float[] array = new float[b * b];
      row("pairwise to an array", b, b, 256, median(5, 21, () -> engine.pairwise(g, g, array)));
      MemorySegment out = arena.allocate(4L * b * b, 64);
      row("pairwise to native memory", b, b, 256, median(5, 21, () -> engine.pairwise(g, g, out)));

      int all = small ? 100 : 16_384;
      DiagonalGaussians h = random(all, 128);
      int[] indices = new int[10 * all];
      float[] values = new float[10 * all];
      double[] sums = new double[all];
      row("nearest 10", all, all, 128, median(5, 11, () -> engine.nearest(h, h, 10, indices, values)));
      row("logSumExp", all, all, 128, median(5, 11, () -> engine.logSumExp(h, h, sums)));
    }
  }

  private static double query(KlEngine engine, int n, int m, int d, int warm, int calls) {
    float[] mean = mean(n, d);
    float[] std = std(n, d);
    DiagonalGaussians p = n == m ? null : random(m, d);
    float[] out = new float[n * m];
    return median(
        warm,
        calls,
        () -> {
          DiagonalGaussians q = DiagonalGaussians.ofStd(mean, std, d);
          engine.pairwise(q, p == null ? q : p, out);
        });
  }

  private static double nearest(KlEngine engine, int n, int m, int d, int calls) {
    float[] mean = mean(n, d);
    float[] std = std(n, d);
    DiagonalGaussians p = random(m, d);
    int[] indices = new int[10 * n];
    float[] values = new float[10 * n];
    return median(
        20,
        calls,
        () -> engine.nearest(DiagonalGaussians.ofStd(mean, std, d), p, 10, indices, values));
  }

  private static double median(int warm, int calls, Runnable call) {
    double[] seconds = new double[calls];
    for (int k = -warm; k < calls; k++) {
      long start = System.nanoTime();
      call.run();
      seconds[Math.max(k, 0)] = (System.nanoTime() - start) * 1e-9;
    }
    Arrays.sort(seconds);
    return seconds[calls / 2] * 1e6;
  }

  private static void row(String what, int n, int m, int d, double microseconds) {
    System.out.printf(Locale.ROOT, "| %s | %d x %d x %d | %.1f |%n", what, n, m, d, microseconds);
  }

  private static DiagonalGaussians random(int n, int d) {
    return DiagonalGaussians.ofStd(mean(n, d), std(n, d), d);
  }

  private static float[] mean(int n, int d) {
    float[] mean = new float[n * d];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) RANDOM.nextGaussian();
    }
    return mean;
  }

  private static float[] std(int n, int d) {
    float[] std = new float[n * d];
    for (int k = 0; k < std.length; k++) {
      std[k] = (float) (0.5 * Math.exp(0.5 * RANDOM.nextGaussian()));
    }
    return std;
  }
}
