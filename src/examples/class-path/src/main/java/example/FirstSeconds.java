package example;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlIndex;
import java.util.Arrays;
import java.util.Random;

/** Fills an index, warms it up, and says how long its queries take from the first second on. */
public final class FirstSeconds {
  private static final int NEAREST = 10;
  private static final int QUERIES = 1000;

  private FirstSeconds() {}

  /** Takes the number of references, their dimension, and for how many seconds to ask. */
  public static void main(String[] args) {
    int m = args.length > 0 ? Integer.parseInt(args[0]) : 1000;
    int d = args.length > 1 ? Integer.parseInt(args[1]) : 32;
    int seconds = args.length > 2 ? Integer.parseInt(args[2]) : 2;
    var random = new Random(1);
    float[] mean = new float[(m + QUERIES) * d]; // the queries behind the references
    float[] std = new float[mean.length];
    long[] ids = new long[m];
    Arrays.setAll(ids, i -> i);
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
      std[k] = (float) Math.exp(0.3 * random.nextGaussian());
    }
    try (var index = KlIndex.builder(d).build()) {
      index.add(
          ids, DiagonalGaussians.ofStd(Arrays.copyOf(mean, m * d), Arrays.copyOf(std, m * d), d));
      long begin = System.nanoTime();
      boolean isVector = index.warmUp();
      System.out.printf(
          "%.1f s to warm up, vectors: %b%n", (System.nanoTime() - begin) / 1e9, isVector);
      long[] found = new long[NEAREST];
      float[] kl = new float[NEAREST];
      for (int second = 1; second <= seconds; second++) {
        long[] nanos = new long[1_000_000];
        int count = 0;
        long end = System.nanoTime() + 1_000_000_000;
        for (long now = System.nanoTime(); now < end && count < nanos.length; count++) {
          int at = (m + random.nextInt(QUERIES)) * d;
          index.query(mean, at, std, at, NEAREST, found, kl);
          long then = System.nanoTime();
          nanos[count] = then - now;
          now = then;
        }
        Arrays.sort(nanos, 0, count);
        System.out.printf(
            "second %d: %d queries, median %.3f ms, p99 %.3f ms, longest %.3f ms%n",
            second,
            count,
            nanos[count / 2] / 1e6,
            nanos[count * 99 / 100] / 1e6,
            nanos[count - 1] / 1e6);
      }
    }
  }
}
