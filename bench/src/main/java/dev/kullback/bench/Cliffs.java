package dev.kullback.bench;

import dev.kullback.DiagonalGaussians;
import dev.kullback.Divergence;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.ScaleKind;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** How much longer Gaussians take that are alike: each divergence, in each precision, of rows some standard deviations apart. */
final class Cliffs {
  private static final List<String> DIVERGENCES =
      List.of(
          "kl",
          "jeffreys",
          "bhattacharyya",
          "hellinger",
          "renyi:0.3",
          "renyi:0.999999",
          "chernoff:0.01",
          "squared-wasserstein-2",
          "wasserstein-2");

  /** Standard deviations between rows; the first is what the others are compared with. */
  private static final double[] NEARNESS = {
    1, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-20, 0, 1e-2, 1e-5, 1e-9
  };

  /** Nearness below which Gaussians have means about 0 and σ = 1, which all kinds state alike. */
  private static final double NEAR_NORMAL = 1e-8;

  /** The first of these whose batches state their scales in different ways. */
  private static final int MIXED = NEARNESS.length - 3;

  private static final int SIZE = 128;

  /** Dimensions at which KL has another kernel. */
  private static final int[] FEW = {2, 4};

  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private static final String USAGE =
      """
      bench/run cliffs [--dimension 64] [--warm-up 20] [--seconds 4]
        A pair's time, and how many times as long pairs take that are so many standard deviations apart;
        last where one batch has log-variances. KL of 2 and of 4 dimensions, too.
        Thread CPU time, medians of interleaved calls; each line warms up by itself.
      """;

  private Cliffs() {}

  public static void main(String[] args) {
    Map<String, Integer> defaults = Map.of("--dimension", 64, "--warm-up", 20, "--seconds", 4);
    Command.run("cliffs", USAGE, defaults, args, Cliffs::run);
  }

  private static boolean run(Map<String, Integer> options) {
    System.out.print("| divergence | D | | ns a pair |");
    for (int k = 1; k < NEARNESS.length; k++) {
      System.out.printf(" %s%s |", NEARNESS[k], k < MIXED ? "" : ", σ and ln σ²");
    }
    System.out.println("\n|---|---|---|---|" + "---|".repeat(NEARNESS.length - 1));
    for (String name : DIVERGENCES) {
      print(name, options.get("--dimension"), options);
    }
    for (int d : FEW) {
      print("kl", d, options);
    }
    return false;
  }

  /** Prints the lines of both precisions. */
  private static void print(String name, int d, Map<String, Integer> options) {
    for (boolean wide : new boolean[] {false, true}) {
      double[] nanos = measure(name, wide, d, options.get("--warm-up"), options.get("--seconds"));
      System.out.printf("| %s | %d | %s | %.2f |", name, d, wide ? "double" : "float", nanos[0]);
      for (int k = 1; k < nanos.length; k++) {
        System.out.printf(" %.1f |", nanos[k] / nanos[0]);
      }
      System.out.println();
    }
  }

  /** Returns the nanoseconds of a pair, by nearness. */
  private static double[] measure(String name, boolean wide, int d, int warmUp, int seconds) {
    DiagonalGaussians[] q = new DiagonalGaussians[NEARNESS.length];
    DiagonalGaussians[] p = new DiagonalGaussians[NEARNESS.length];
    for (int k = 0; k < NEARNESS.length; k++) {
      SplittableRandom random = new SplittableRandom(1);
      double[] center = random.doubles(2L * d, -1, 1).toArray();
      if (NEARNESS[k] > 0 && NEARNESS[k] < NEAR_NORMAL) {
        Arrays.fill(center, 0);
      }
      q[k] = around(center, NEARNESS[k], wide, false, random);
      p[k] = around(center, NEARNESS[k], wide, k >= MIXED, random);
    }
    int rounds = 0;
    double[][] times = new double[NEARNESS.length][1 << 16];
    try (KlEngine engine = KlEngine.builder().divergence(Divergence.of(name)).build()) {
      float[] floats = new float[SIZE * SIZE];
      double[] doubles = new double[SIZE * SIZE];
      long start = System.nanoTime() + warmUp * 1_000_000_000L;
      long end = start + seconds * 1_000_000_000L;
      while (rounds < 5 || (System.nanoTime() < end && rounds < times[0].length)) {
        boolean isWarm = System.nanoTime() > start;
        for (int k = 0; k < NEARNESS.length; k++) {
          long before = THREADS.getCurrentThreadCpuTime();
          if (wide) {
            engine.pairwise(q[k], p[k], doubles);
          } else {
            engine.pairwise(q[k], p[k], floats);
          }
          times[k][rounds] = THREADS.getCurrentThreadCpuTime() - before;
        }
        rounds += isWarm ? 1 : 0;
      }
    }
    double[] medians = new double[NEARNESS.length];
    for (int k = 0; k < NEARNESS.length; k++) {
      Arrays.sort(times[k], 0, rounds);
      medians[k] = times[k][rounds / 2] / ((double) SIZE * SIZE);
    }
    return medians;
  }

  /** Makes rows so many standard deviations from a center, its means and then its log-deviations. */
  private static DiagonalGaussians around(
      double[] center, double nearness, boolean wide, boolean isLog, SplittableRandom random) {
    int d = center.length / 2;
    double[] mean = new double[SIZE * d];
    double[] scale = new double[SIZE * d];
    for (int k = 0; k < mean.length; k++) {
      double std = Math.exp(center[d + k % d]);
      mean[k] = center[k % d] + nearness * std * random.nextGaussian();
      double ofScale = nearness < NEAR_NORMAL ? 0 : nearness / Math.sqrt(2);
      double logStd = center[d + k % d] + ofScale * random.nextGaussian();
      scale[k] = isLog ? 2 * logStd : Math.exp(logStd);
    }
    ScaleKind kind = isLog ? ScaleKind.LOG_VARIANCE : ScaleKind.STD;
    if (wide) {
      return (DiagonalGaussians) Gaussians.of(kind, mean, scale, d);
    }
    float[] mean32 = new float[mean.length];
    float[] scale32 = new float[scale.length];
    for (int k = 0; k < mean.length; k++) {
      mean32[k] = (float) mean[k];
      scale32[k] = (float) scale[k];
    }
    return (DiagonalGaussians) Gaussians.of(kind, mean32, scale32, d);
  }
}
