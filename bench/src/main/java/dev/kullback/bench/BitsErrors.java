package dev.kullback.bench;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlTile;
import dev.kullback.Mixtures;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.function.Consumer;

/** Collects the texts of errors that {@link Bits} prints, by what was wrong with the input. */
final class BitsErrors {
  private static final double NAN = Double.NaN;

  private static final double INFINITY = Double.POSITIVE_INFINITY;

  private interface Call {
    void run() throws Exception;
  }

  private interface Factory32 {
    Gaussians of(float[] mean, float[] scale, int dimension);
  }

  private interface Factory64 {
    Gaussians of(double[] mean, double[] scale, int dimension);
  }

  private final Map<String, String> texts = new LinkedHashMap<>();

  private BitsErrors() {}

  /** Returns the errors of this engine, which stays open, and of the factories, by name. */
  static Map<String, String> of(KlEngine engine) {
    BitsErrors errors = new BitsErrors();
    errors.diagonal();
    errors.full();
    errors.segments();
    errors.sizes(engine);
    errors.outputs(engine);
    errors.searches(engine);
    errors.others(engine);
    errors.closed();
    return errors.texts;
  }

  private void add(String name, Call call) {
    String text;
    try {
      call.run();
      text = "no error";
    } catch (Exception e) {
      text = e.toString();
    }
    if (texts.put(name, text) != null) {
      throw new AssertionError(name);
    }
  }

  private static Gaussians gaussians(int n, int dimension) {
    float[] ones = new float[n * dimension];
    Arrays.fill(ones, 1);
    return DiagonalGaussians.ofStd(ones, ones, dimension);
  }

  private static Gaussians fullGaussians(int n, int dimension) {
    double[] scaleTril = new double[n * dimension * dimension];
    for (int i = 0; i < n * dimension; i++) {
      scaleTril[i * dimension + i % dimension] = 1;
    }
    return FullGaussians.ofScaleTril(new double[n * dimension], scaleTril, dimension);
  }

  private static Gaussians zeros(int n, int dimension) {
    float[] zeros = new float[n * dimension];
    return Gaussians.of(ScaleKind.STD, zeros, zeros, dimension, ScalePolicy.DETERMINISTIC_IF_ZERO);
  }

  private void diagonal() {
    Map<String, Factory32> floats =
        Map.of(
            "std", DiagonalGaussians::ofStd,
            "variance", DiagonalGaussians::ofVariance,
            "logVariance", DiagonalGaussians::ofLogVariance,
            "precision", DiagonalGaussians::ofPrecision);
    Map<String, Factory64> doubles =
        Map.of(
            "std", DiagonalGaussians::ofStd,
            "variance", DiagonalGaussians::ofVariance,
            "logVariance", DiagonalGaussians::ofLogVariance,
            "precision", DiagonalGaussians::ofPrecision);
    for (String kind : new String[] {"std", "variance", "logVariance", "precision"}) {
      Factory32 of32 = floats.get(kind);
      Factory64 of64 = doubles.get(kind);
      for (double bad : new double[] {NAN, INFINITY, -INFINITY, 0, -0.0, -1.5, 1e-42}) {
        for (int at : new int[] {0, 50}) {
          double[] mean = new double[51];
          double[] scale = new double[51];
          Arrays.fill(scale, 1);
          scale[at] = bad;
          String name = kind + "[" + at + "] = " + bad;
          add(name + " float", () -> of32.of(BitsCases.floats(mean), BitsCases.floats(scale), 3));
          add(name + " double", () -> of64.of(mean, scale, 3));
          add(
              name + " float mean",
              () -> of32.of(BitsCases.floats(scale), BitsCases.floats(mean), 3));
          add(name + " double mean", () -> of64.of(scale, mean, 3));
        }
      }
      for (int[] shape : new int[][] {{6, 6, 4}, {6, 9, 3}, {0, 0, 1}, {6, 6, 0}, {6, 6, -1}}) {
        String name = "%s of %d and %d, D = %d".formatted(kind, shape[0], shape[1], shape[2]);
        add(name + " float", () -> of32.of(new float[shape[0]], new float[shape[1]], shape[2]));
        add(name + " double", () -> of64.of(new double[shape[0]], new double[shape[1]], shape[2]));
      }
      add(kind + " null mean", () -> of32.of(nullFloats(), new float[1], 1));
      add(kind + " null float", () -> of32.of(new float[1], nullFloats(), 1));
      add(kind + " null double", () -> of64.of(new double[1], nullDoubles(), 1));
    }
    for (ScalePolicy policy : ScalePolicy.values()) {
      for (float bad : new float[] {Float.NaN, 0, -1}) {
        float[] scale = {1, bad, 1};
        String name = bad + " " + policy;
        add("std " + name, () -> Gaussians.of(ScaleKind.STD, new float[3], scale, 1, policy));
        add(
            "variance " + name,
            () -> Gaussians.of(ScaleKind.VARIANCE, new float[3], scale, 1, policy));
        add(
            "logVariance " + name,
            () -> Gaussians.of(ScaleKind.LOG_VARIANCE, new float[3], scale, 1, policy));
        add(
            "precision " + name,
            () -> Gaussians.of(ScaleKind.PRECISION, new float[3], scale, 1, policy));
      }
    }
    add("std of 2^20 dimensions too many", () -> gaussians(1, 1 << 26));
  }

  private void full() {
    Map<String, Factory32> floats =
        Map.of(
            "scaleTril", FullGaussians::ofScaleTril,
            "packed", (mean, l, d) -> Gaussians.of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, mean, l, d),
            "packed log", FullGaussians::ofPackedScaleTril,
            "covariance", FullGaussians::ofCovariance,
            "precision", (mean, m, d) -> Gaussians.of(ScaleKind.PRECISION_MATRIX, mean, m, d));
    Map<String, Factory64> doubles =
        Map.of(
            "scaleTril", FullGaussians::ofScaleTril,
            "packed", (mean, l, d) -> Gaussians.of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, mean, l, d),
            "packed log", FullGaussians::ofPackedScaleTril,
            "covariance", FullGaussians::ofCovariance,
            "precision", (mean, m, d) -> Gaussians.of(ScaleKind.PRECISION_MATRIX, mean, m, d));
    for (String kind :
        new String[] {"scaleTril", "packed", "packed log", "covariance", "precision"}) {
      Factory32 of32 = floats.get(kind);
      Factory64 of64 = doubles.get(kind);
      int d = 3;
      int each = kind.startsWith("packed") ? 6 : 9;
      int n = 6;
      for (double bad : new double[] {NAN, INFINITY, 0, -2, 0.5, 1.0001, 800}) {
        // off the diagonal, above it where there is, and on it; in the last Gaussian but one
        for (int at : new int[] {1, 2, each - 2, each - 1}) {
          double[] matrix = new double[n * each];
          for (int i = 0; i < n; i++) {
            for (int k = 0; k < d; k++) {
              matrix[i * each + (each == 6 ? k * (k + 3) / 2 : k * 4)] = 1;
            }
          }
          matrix[4 * each + at] = bad;
          String name = "full %s[4][%d] = %s".formatted(kind, at, bad);
          add(name + " float", () -> of32.of(new float[n * d], BitsCases.floats(matrix), d));
          add(name + " double", () -> of64.of(new double[n * d], matrix, d));
        }
      }
      add(
          "full " + kind + " mean NaN float",
          () -> of32.of(new float[] {Float.NaN}, new float[] {1}, 1));
      add(
          "full " + kind + " mean NaN",
          () -> of64.of(new double[] {1, NAN}, new double[] {1, 1}, 1));
      for (int[] shape : new int[][] {{6, 17, 3}, {6, 18, 4}, {0, 0, 1}, {6, 6, 0}, {3, 12, 3}}) {
        String name = "full %s of %d and %d, D = %d".formatted(kind, shape[0], shape[1], shape[2]);
        add(name + " float", () -> of32.of(new float[shape[0]], new float[shape[1]], shape[2]));
        add(name + " double", () -> of64.of(new double[shape[0]], new double[shape[1]], shape[2]));
      }
      add("full " + kind + " null float", () -> of32.of(new float[1], nullFloats(), 1));
      add("full " + kind + " null mean", () -> of64.of(nullDoubles(), new double[1], 1));
    }
    double[] nearly = {1, 0.5, 0.5 + 1e-9, 1, 1, 2, 2, 1};
    add("covariance nearly symmetric", () -> FullGaussians.ofCovariance(new double[4], nearly, 2));
    add(
        "covariance nearly symmetric float",
        () -> FullGaussians.ofCovariance(new float[4], BitsCases.floats(nearly), 2));
  }

  private void segments() {
    Map<String, ScaleKind> kinds =
        Map.of(
            "std", ScaleKind.STD,
            "variance", ScaleKind.VARIANCE,
            "logVariance", ScaleKind.LOG_VARIANCE,
            "precision", ScaleKind.PRECISION,
            "scaleTril", ScaleKind.SCALE_TRIL,
            "packed", ScaleKind.PACKED_SCALE_TRIL,
            "covariance", ScaleKind.COVARIANCE,
            "fullPrecision", ScaleKind.PRECISION_MATRIX);
    MemorySegment one = MemorySegment.ofArray(new float[] {1});
    MemorySegment closed;
    try (Arena arena = Arena.ofConfined()) {
      closed = arena.allocate(4);
    }
    kinds.entrySet().stream()
        .sorted(Map.Entry.comparingByKey())
        .forEach(entry -> {
          String kind = entry.getKey();
          ScaleKind of = entry.getValue();
          add(kind + " closed mean", () -> of(of, closed, one));
          add(kind + " closed scale", () -> of(of, one, closed));
          add(kind + " 3 bytes", () -> of(of, one, one.asSlice(0, 3)));
          add(kind + " empty", () -> of(of, one.asSlice(4), one.asSlice(4)));
          add(kind + " null segment", () -> of(of, one, nullSegment()));
        });
    ValueLayout element = ValueLayout.JAVA_INT;
    add(
        "std of int",
        () -> Gaussians.of(ScaleKind.STD, one, element, one, element, 1, ScalePolicy.STRICT));
    add(
        "scaleTril of int",
        () ->
            Gaussians.of(ScaleKind.SCALE_TRIL, one, element, one, element, 1, ScalePolicy.STRICT));
    add("std of another thread's", () -> ofOtherThread(s -> of(ScaleKind.STD, s, s)));
    add("scaleTril of another thread's", () -> ofOtherThread(s -> of(ScaleKind.SCALE_TRIL, s, s)));
  }

  private static Gaussians of(ScaleKind kind, MemorySegment mean, MemorySegment scale) {
    ValueLayout element = ValueLayout.JAVA_FLOAT;
    return Gaussians.of(kind, mean, element, scale, element, 1, ScalePolicy.STRICT);
  }

  /** Hands over a segment that is confined to a thread which waits. */
  private static void ofOtherThread(Consumer<MemorySegment> use) throws InterruptedException {
    RuntimeException[] thrown = new RuntimeException[1];
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment segment = arena.allocate(64);
      Thread thread =
          new Thread(() -> {
            try {
              use.accept(segment);
            } catch (RuntimeException e) {
              thrown[0] = e;
            }
          });
      thread.start();
      thread.join();
    }
    if (thrown[0] != null) {
      throw thrown[0];
    }
  }

  private void sizes(KlEngine engine) {
    Gaussians[] batches = {
      gaussians(3, 2),
      gaussians(4, 2),
      gaussians(3, 5),
      fullGaussians(3, 2),
      zeros(3, 2),
      extreme(3, 2)
    };
    String[] names = {"3x2", "4x2", "3x5", "full", "deterministic", "extreme"};
    for (int i = 0; i < batches.length; i++) {
      for (int j = 0; j < batches.length; j++) {
        Gaussians q = batches[i];
        Gaussians p = batches[j];
        String name = names[i] + " and " + names[j];
        double[] weights = new double[p.size()];
        add(name + " pairwise", () -> engine.pairwise(q, p));
        add(name + " pairwise double", () -> engine.pairwise(q, p, new double[12]));
        add(
            name + " pairwise segment",
            () -> engine.pairwise(q, p, MemorySegment.ofArray(new long[12])));
        add(name + " aligned", () -> engine.aligned(q, p));
        add(name + " monteCarlo", () -> engine.monteCarlo(q, p, 2, 1));
        add(name + " nearest", () -> engine.nearest(q, p, 1));
        add(name + " nearestOthers", () -> engine.search(q, p, Query.nearest(1).excludeSelf()));
        add(name + " nearestReverse", () -> engine.search(q, p, Query.nearest(1).reverse()));
        add(
            name + " nearestOthersReverse",
            () -> engine.search(q, p, Query.nearest(1).excludeSelf().reverse()));
        add(name + " within", () -> engine.within(q, p, 1));
        add(name + " withinReverse", () -> engine.search(q, p, Query.within(1).reverse()));
        add(name + " logSumExp", () -> engine.logSumExp(q, p));
        add(name + " weightedLogSumExp", () -> engine.weightedLogSumExp(q, p, weights));
        add(name + " rowMin", () -> engine.rowMin(q, p));
        add(name + " forEachTile", () -> engine.forEachTile(q, p, tile -> {}));
      }
    }
    Gaussians many = gaussians(50_000, 1);
    add("pairwise 50000 x 50000", () -> engine.pairwise(many, many));
    add("nearest 50000 x 50000", () -> engine.nearest(many, many, 50_000));
    Gaussians q = batches[0];
    add("null q", () -> engine.pairwise(nullGaussians(), q));
    add("null p", () -> engine.pairwise(q, nullGaussians(), new float[9]));
    add("null p aligned", () -> engine.aligned(q, nullGaussians(), new float[9]));
    add("null toStandardNormal", () -> engine.toStandardNormal(nullGaussians()));
    add("null nearest", () -> engine.nearest(nullGaussians(), q, 1));
    add("null rowMin", () -> engine.rowMin(nullGaussians(), q));
    add("null out", () -> engine.pairwise(q, q, nullFloats()));
    add("null out double", () -> engine.aligned(q, q, nullDoubles()));
    add("null out segment", () -> engine.toStandardNormal(q, nullSegment()));
    add("null values", () -> engine.search(q, q, Query.nearest(1), new int[3], nullFloats()));
    add("null weights", () -> engine.weightedLogSumExp(q, q, nullDoubles()));
  }

  private static Gaussians extreme(int n, int dimension) {
    double[] logVariance = new double[n * dimension];
    logVariance[n * dimension - 1] = 1401;
    return DiagonalGaussians.ofLogVariance(new double[n * dimension], logVariance, dimension);
  }

  private void outputs(KlEngine engine) {
    Gaussians q = gaussians(3, 2);
    add("pairwise float out", () -> engine.pairwise(q, q, new float[8]));
    add("pairwise double out", () -> engine.pairwise(q, q, new double[8]));
    add("aligned float out", () -> engine.aligned(q, q, new float[2]));
    add("aligned double out", () -> engine.aligned(q, q, new double[2]));
    add("standard float out", () -> engine.toStandardNormal(q, new float[2]));
    add("standard double out", () -> engine.toStandardNormal(q, new double[2]));
    add("logSumExp out", () -> engine.logSumExp(q, q, new double[2]));
    add(
        "weightedLogSumExp out",
        () -> engine.weightedLogSumExp(q, q, new double[3], new double[2]));
    add("rowMin out", () -> engine.rowMin(q, q, new double[2]));
    add("rowSum out", () -> engine.rowSum(q, q, new double[2]));
    add("nearest indices", () -> engine.search(q, q, Query.nearest(2), new int[5], new float[6]));
    add("nearest values", () -> engine.search(q, q, Query.nearest(2), new int[6], new float[5]));
    add(
        "nearest double values",
        () -> engine.search(q, q, Query.nearest(2), new int[6], new double[5]));
    add(
        "nearestOthers indices",
        () -> engine.search(q, q, Query.nearest(2).excludeSelf(), new int[5], new float[6]));
    add(
        "nearestOthers values",
        () -> engine.search(q, q, Query.nearest(2).excludeSelf(), new int[6], new double[5]));
    MemorySegment small = MemorySegment.ofArray(new byte[9]);
    MemorySegment closed;
    try (Arena arena = Arena.ofShared()) {
      closed = arena.allocate(100);
    }
    Map<String, MemorySegment> segments = new LinkedHashMap<>();
    segments.put("small", small);
    segments.put("read-only", MemorySegment.ofArray(new double[9]).asReadOnly());
    segments.put("closed", closed);
    Gaussians wide = fullGaussians(3, 2);
    segments.forEach((name, out) -> {
      add(name + " pairwise", () -> engine.pairwise(q, q, out));
      add(name + " pairwise full", () -> engine.pairwise(wide, wide, out));
      add(name + " aligned", () -> engine.aligned(q, q, out));
      add(name + " aligned full", () -> engine.aligned(wide, q, out));
      add(name + " standard", () -> engine.toStandardNormal(q, out));
      add(name + " standard full", () -> engine.toStandardNormal(wide, out));
    });
    add("pairwise to another thread's", () -> ofOtherThread(s -> engine.pairwise(q, q, s)));
    add("aligned to another thread's", () -> ofOtherThread(s -> engine.aligned(q, q, s)));
    add("standard to another thread's", () -> ofOtherThread(s -> engine.toStandardNormal(q, s)));
  }

  private void searches(KlEngine engine) {
    Gaussians q = gaussians(3, 2);
    Gaussians p = gaussians(4, 2);
    for (int k : new int[] {-1, 0, 5}) {
      add("nearest k = " + k, () -> engine.nearest(q, p, k));
      add(
          "nearest into k = " + k,
          () -> engine.search(q, p, Query.nearest(k), new int[99], new float[99]));
      add("nearestReverse k = " + k, () -> engine.search(q, p, Query.nearest(k).reverse()));
    }
    for (int k : new int[] {0, 3}) {
      add("nearestOthers k = " + k, () -> engine.search(q, q, Query.nearest(k).excludeSelf()));
      add(
          "nearestOthersReverse k = " + k,
          () -> engine.search(q, q, Query.nearest(k).excludeSelf().reverse()));
    }
    for (double radius : new double[] {-1, NAN}) {
      add("within " + radius, () -> engine.within(q, p, radius));
      add("withinReverse " + radius, () -> engine.search(q, p, Query.within(radius).reverse()));
    }
    for (int most : new int[] {-1, 5, Integer.MAX_VALUE}) {
      add(
          "within, pairs " + most,
          () -> engine.search(q, p, Query.within(INFINITY).maxPairs(most)));
      add(
          "withinReverse, pairs " + most,
          () -> engine.search(q, p, Query.within(INFINITY).reverse().maxPairs(most)));
    }
    for (double bad : new double[] {NAN, INFINITY}) {
      double[] weights = {0, Double.NEGATIVE_INFINITY, bad, 1};
      add("weight " + bad, () -> engine.weightedLogSumExp(q, p, weights));
    }
    double[] same = new double[4];
    add("weights as out", () -> engine.weightedLogSumExp(q, p, same, same));
    add("3 weights", () -> engine.weightedLogSumExp(q, p, new double[3]));
    Neighbors found = engine.nearest(q, p, 2);
    add("Neighbors row 3", () -> found.count(3));
    add("Neighbors start 4", () -> found.start(4));
    add("Neighbors start 3", () -> found.start(3));
    add("Neighbors index 2", () -> found.index(0, 2));
    add("Neighbors value -1", () -> found.value(2, -1));
  }

  private void others(KlEngine engine) {
    Gaussians q = gaussians(3, 2);
    add("monteCarlo of 1 sample", () -> engine.monteCarlo(q, q, 1, 0));
    add("MonteCarlo pair 3", () -> engine.monteCarlo(q, q, 2, 0).estimate(3));
    add("MonteCarlo pair -1", () -> engine.monteCarlo(q, q, 2, 0).standardError(-1));
    add("tile value", () -> engine.forEachTile(q, q, tile -> tile.value(3, 0)));
    add("tile column", () -> engine.forEachTile(q, q, tile -> tile.value(0, -1)));
    Consumer<KlTile> failing =
        tile -> {
          throw new UnsupportedOperationException("the consumer's own");
        };
    add("consumer", () -> engine.forEachTile(q, q, failing));
    add("warmUp 0", () -> engine.warmUp(0, 1, 1));
    add("warmUp of 2^30 dimensions", () -> engine.warmUp(1, 1, 1 << 30));
    add("warmUp of two dimensions", () -> engine.warmUp(q, gaussians(3, 3)));
    add("verify for no time", () -> engine.verify(Duration.ZERO));
    for (int threads : new int[] {0, 1025}) {
      add("threads " + threads, () -> KlEngine.builder().threads(threads));
    }
    add("mixture weights 2", () -> Mixtures.of(q, new double[] {0.5, 0.5}));
    add("mixture weights sum", () -> Mixtures.of(q, new double[] {0.5, 0.5, 0.1}));
    add("mixture weight < 0", () -> Mixtures.of(q, new double[] {0.5, 0.75, -0.25}));
    add("mixture weight NaN", () -> Mixtures.of(q, new double[] {0.5, 0.5, NAN}));
    add("mixture deterministic", () -> Mixtures.of(zeros(3, 2)));
    add("mixture extreme", () -> Mixtures.of(extreme(3, 2)).entropyLowerBound(0));
    add("mixture alpha", () -> Mixtures.of(q).entropyLowerBound(1.5));
    add("mixture alpha NaN", () -> Mixtures.of(q).entropyLowerBound(NAN));
    add("interrupted pairwise", () -> interrupted(() -> engine.pairwise(q, q)));
    add("interrupted nearest", () -> interrupted(() -> engine.nearest(q, q, 1)));
    add("interrupted forEachTile", () -> interrupted(() -> engine.forEachTile(q, q, t -> {})));
    add("interrupted monteCarlo", () -> interrupted(() -> engine.monteCarlo(q, q, 2, 0)));
    add("interrupted mixture", () -> interrupted(() -> Mixtures.of(q).entropyLowerBound(0.5)));
  }

  /** Passes on what the call throws; the status is to stay set. */
  private static void interrupted(Call call) throws Exception {
    Thread.currentThread().interrupt();
    try {
      call.run();
    } catch (CancellationException e) {
      if (Thread.interrupted()) {
        throw e;
      }
      throw new AssertionError("the status was cleared", e);
    }
    throw new AssertionError("was not interrupted, status " + Thread.interrupted());
  }

  private void closed() {
    KlEngine engine = KlEngine.builder().build();
    engine.close();
    Gaussians q = gaussians(3, 2);
    add("closed engine, pairwise", () -> engine.pairwise(q, q));
    add("closed engine, pairwise out", () -> engine.pairwise(q, q, new float[1]));
    add("closed engine, pairwise segment", () -> engine.pairwise(q, q, MemorySegment.NULL));
    add("closed engine, aligned", () -> engine.aligned(q, q));
    add("closed engine, toStandardNormal", () -> engine.toStandardNormal(q));
    add("closed engine, toStandardNormal out", () -> engine.toStandardNormal(q, new double[0]));
    add("closed engine, nearest", () -> engine.nearest(q, q, 9));
    add("closed engine, nearestReverse", () -> engine.search(q, q, Query.nearest(9).reverse()));
    add("closed engine, within", () -> engine.within(q, q, -1));
    add("closed engine, logSumExp", () -> engine.logSumExp(q, q));
    add("closed engine, weightedLogSumExp", () -> engine.weightedLogSumExp(q, q, new double[1]));
    add("closed engine, rowMin", () -> engine.rowMin(q, q, new double[1]));
    add("closed engine, forEachTile", () -> engine.forEachTile(q, q, tile -> {}));
    add("closed engine, monteCarlo", () -> engine.monteCarlo(q, q, 1, 1));
    add("closed engine, warmUp", () -> engine.warmUp(0, 1, 1));
    add("closed engine, warmUp batches", () -> engine.warmUp(q, q));
    add("closed engine, verify", () -> engine.verify(Duration.ZERO));
    add("closed engine, mixture", () -> Mixtures.of(q).entropyUpperBound(engine));
  }

  // What no caller should pass.

  @SuppressWarnings("NullAway")
  private static float[] nullFloats() {
    return null;
  }

  @SuppressWarnings("NullAway")
  private static double[] nullDoubles() {
    return null;
  }

  @SuppressWarnings("NullAway")
  private static MemorySegment nullSegment() {
    return null;
  }

  @SuppressWarnings("NullAway")
  private static Gaussians nullGaussians() {
    return null;
  }
}
