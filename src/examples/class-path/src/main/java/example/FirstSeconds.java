package example;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlIndex;
import java.util.Arrays;
import java.util.Random;

/** Fills an index, warms it up, and says how long its queries take from the first second on. */
public final class FirstSeconds {
  private static final int NEAREST = 10;

  private FirstSeconds() {}

  /** Takes the number of references, their dimension, and for how many seconds to ask. */
  public static void main(String[] args) {
    int m = args.length > 0 ? Integer.parseInt(args[0]) : 1000;
    int d = args.length > 1 ? Integer.parseInt(args[1]) : 32;
    int seconds = args.length > 2 ? Integer.parseInt(args[2]) : 2;
    var random = new Random(1);
    float[] mean = new float[m * d];
    float[] std = new float[m * d];
    long[] ids = new long[m];
    Arrays.setAll(ids, i -> i);
    for (int k = 0; k < m * d; k++) {
      mean[k] = (float) random.nextGaussian();
      std[k] = (float) Math.exp(0.3 * random.nextGaussian());
    }
    try (var index = KlIndex.builder(d).build()) {
      index.add(ids, DiagonalGaussians.ofStd(mean, std, d));
      long begin = System.nanoTime();
      boolean isVector = index.warmUp();
      System.out.printf(
          "%.1f s to warm up, vectors: %b%n", (System.nanoTime() - begin) / 1e9, isVector);
      long[] found = new long[NEAREST];
      float[] kl = new float[NEAREST];
      for (int second = 1; second <= seconds; second++) {
        long[] nanos = new long[10_000_000 / m + 100_000];
        int count = 0;
        long end = System.nanoTime() + 1_000_000_000;
        for (long now = System.nanoTime(); now < end && count < nanos.length; count++) {
          int row = random.nextInt(m);
          index.query(mean, row * d, std, random.nextInt(m) * d, NEAREST, found, kl);
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
