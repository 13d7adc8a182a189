package dev.kullback.bench;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlTile;
import dev.kullback.Mixtures;
import dev.kullback.MonteCarloEstimates;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.UnaryOperator;

/** Operations that {@link Bits} calls. Outputs are longer than needed and hashed whole: elements past the result must stay. */
final class BitsOperations {
  interface Operation {
    void run(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash);
  }

  private interface Segments {
    void write(MemorySegment out);
  }

  /** Elements more than are needed. */
  private static final int SPARE = 3;

  /** Mixtures of more take too long: their lower bound compares pairs one by one. */
  private static final int MOST_COMPONENTS = 100;

  /** Most entries for which methods that return new arrays are called, too: they call the others. */
  private static final int MOST_ENTRIES = 1000;

  private BitsOperations() {}

  /** Returns the operations that two batches of these sizes allow, by name. */
  static Map<String, Operation> of(Gaussians q, Gaussians p) {
    Map<String, Operation> all = new LinkedHashMap<>();
    // First, as batches used once are packed for the call alone.
    all.put("pairwise float", (e, a, b, h) -> h.add(e.pairwise(a, b, floats(a.size() * b.size()))));
    all.put(
        "pairwise double", (e, a, b, h) -> h.add(e.pairwise(a, b, doubles(a.size() * b.size()))));
    all.put("pairwise segment", BitsOperations::pairwise);
    all.put("toStandardNormal", BitsOperations::standard);
    if (q.size() == p.size()) {
      all.put("aligned", BitsOperations::aligned);
      all.put("monteCarlo", BitsOperations::monteCarlo);
      if (q.size() > 1) {
        all.put("nearestOthers", BitsOperations::others);
        all.put("nearestOthersReverse", searches(k -> k.excludeSelf().reverse(), p.size() - 1));
      }
    }
    all.put("nearest", BitsOperations::nearest);
    all.put("nearestReverse", searches(Query::reverse, p.size()));
    all.put("within", (e, a, b, h) -> within(e, x -> x, a, b, h));
    all.put("withinReverse", (e, a, b, h) -> within(e, Query::reverse, a, b, h));
    all.put("logSumExp", (e, a, b, h) -> h.add(e.logSumExp(a, b, doubles(a.size()))));
    all.put(
        "weightedLogSumExp",
        (e, a, b, h) -> h.add(e.weightedLogSumExp(a, b, weights(b.size()), doubles(a.size()))));
    all.put("rowMin", (e, a, b, h) -> h.add(e.rowMin(a, b, doubles(a.size()))));
    all.put("rowSum", (e, a, b, h) -> h.add(e.rowSum(a, b, doubles(a.size()))));
    all.put("forEachTile", BitsOperations::tiles);
    if (q.size() <= MOST_COMPONENTS) {
      all.put("MixtureEntropy", BitsOperations::mixture);
    }
    if ((long) q.size() * p.size() <= MOST_ENTRIES) {
      all.put("new arrays", BitsOperations::newArrays);
    }
    return all;
  }

  /** Returns one operation of each kind: a matrix, one reduced by rows and one in reverse. */
  static Map<String, Operation> brief() {
    Map<String, Operation> some = new LinkedHashMap<>();
    some.put("pairwise float", (e, a, b, h) -> h.add(e.pairwise(a, b)));
    some.put("nearest", (e, a, b, h) -> add(e.nearest(a, b, 10), h));
    some.put("rowSum", (e, a, b, h) -> h.add(e.rowSum(a, b)));
    some.put("withinReverse", (e, a, b, h) -> add(e.search(a, b, Query.within(20).reverse()), h));
    return some;
  }

  private static float[] floats(int needed) {
    float[] out = new float[needed + SPARE];
    Arrays.fill(out, -1);
    return out;
  }

  private static double[] doubles(int needed) {
    double[] out = new double[needed + SPARE];
    Arrays.fill(out, -1);
    return out;
  }

  private static void newArrays(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    hash.add(engine.pairwise(q, p));
    hash.add(engine.toStandardNormal(q));
    hash.add(engine.logSumExp(q, p));
    hash.add(engine.weightedLogSumExp(q, p, weights(p.size())));
    hash.add(engine.rowMin(q, p));
    hash.add(engine.rowSum(q, p));
    if (q.size() == p.size()) {
      hash.add(engine.aligned(q, p));
    }
    hash.add(q + ", " + p);
  }

  private static void pairwise(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    segments((long) q.size() * p.size(), hash, out -> engine.pairwise(q, p, out));
  }

  private static void aligned(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    hash.add(engine.aligned(q, p, floats(q.size())));
    hash.add(engine.aligned(q, p, doubles(q.size())));
    segments(q.size(), hash, out -> engine.aligned(q, p, out));
  }

  private static void standard(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    hash.add(engine.toStandardNormal(q, floats(q.size())));
    hash.add(engine.toStandardNormal(q, doubles(q.size())));
    segments(q.size(), hash, out -> engine.toStandardNormal(q, out));
  }

  /** Into memory that all threads may write to, that of the caller alone, and an array of bytes, not aligned. */
  private static void segments(long n, Bits.Hash hash, Segments segments) {
    long bytes = 8 * (n + SPARE);
    try (Arena shared = Arena.ofShared();
        Arena confined = Arena.ofConfined()) {
      MemorySegment array = MemorySegment.ofArray(new byte[(int) bytes + 1]).asSlice(1);
      for (MemorySegment out :
          new MemorySegment[] {shared.allocate(bytes), confined.allocate(bytes), array}) {
        out.fill((byte) 0x5a);
        segments.write(out);
        for (long at = 0; at < bytes; at += 8) {
          hash.add(out.get(ValueLayout.JAVA_LONG_UNALIGNED, at));
        }
      }
    }
  }

  private static void nearest(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    searches(x -> x, p.size()).run(engine, q, p, hash);
    int k = Math.min(10, p.size());
    intoArrays(engine, q, p, k, Query.nearest(k), hash);
  }

  private static void others(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    searches(Query::excludeSelf, p.size() - 1).run(engine, q, p, hash);
    int k = Math.min(5, p.size() - 1);
    intoArrays(engine, q, p, k, Query.nearest(k).excludeSelf(), hash);
  }

  private static void intoArrays(
      KlEngine engine, Gaussians q, Gaussians p, int k, Query query, Bits.Hash hash) {
    int[] indices = new int[q.size() * k + SPARE];
    float[] floats = floats(q.size() * k);
    engine.search(q, p, query, indices, floats);
    hash.add(indices);
    hash.add(floats);
    double[] doubles = doubles(q.size() * k);
    engine.search(q, p, query, indices, doubles);
    hash.add(indices);
    hash.add(doubles);
  }

  private static Operation searches(UnaryOperator<Query> options, int most) {
    return (engine, q, p, hash) -> {
      for (int k : new int[] {1, Math.min(7, most), Math.min(150, most)}) {
        add(engine.search(q, p, options.apply(Query.nearest(k))), hash);
      }
    };
  }

  /** Searches within radii between the entries, at one, 0 and infinite. */
  private static void within(
      KlEngine engine, UnaryOperator<Query> options, Gaussians q, Gaussians p, Bits.Hash hash) {
    Neighbors near = engine.nearest(q, p, Math.min(3, p.size()));
    double entry = near.value(0, near.count(0) - 1);
    double between = 0.5 * engine.rowSum(q, p)[q.size() / 2] / p.size();
    for (double radius : new double[] {entry, between, 0}) {
      add(engine.search(q, p, options.apply(Query.within(radius))), hash);
    }
    if ((long) q.size() * p.size() < 1_000_000) {
      add(engine.search(q, p, options.apply(Query.within(Double.POSITIVE_INFINITY))), hash);
    }
  }

  private static void add(Neighbors found, Bits.Hash hash) {
    for (int i = 0; i <= found.size(); i++) {
      hash.add((long) found.start(i));
    }
    hash.add(found.indices());
    hash.add(found.values());
    hash.add(found.toString());
  }

  private static double[] weights(int n) {
    double[] logWeights = new double[n];
    for (int j = 0; j < n; j++) {
      logWeights[j] = j % 11 == 7 ? Double.NEGATIVE_INFINITY : -0.37 * (j % 5) - 1;
    }
    return logWeights;
  }

  /** Hashes tiles, which come in no order, entry by entry, and adds the hashes up. */
  private static void tiles(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    LongAdder sum = new LongAdder();
    LongAdder entries = new LongAdder();
    engine.forEachTile(
        q,
        p,
        tile -> {
          sum.add(entries(tile));
          entries.add((long) tile.rows() * tile.columns());
        });
    hash.add(sum.sum());
    hash.add(entries.sum());
  }

  private static long entries(KlTile tile) {
    long sum = 0;
    for (int i = 0; i < tile.rows(); i++) {
      for (int j = 0; j < tile.columns(); j++) {
        long at = ((long) (tile.rowOffset() + i) << 32) + tile.columnOffset() + j;
        long bits = Double.doubleToRawLongBits(tile.value(i, j));
        sum += Bits.Hash.mix(bits ^ Bits.Hash.mix(at));
      }
    }
    return sum;
  }

  private static void monteCarlo(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    MonteCarloEstimates result = engine.monteCarlo(q, p, 3, 42);
    for (int i = 0; i < result.size(); i++) {
      hash.add(result.estimate(i));
      hash.add(result.standardError(i));
    }
  }

  private static void mixture(KlEngine engine, Gaussians q, Gaussians p, Bits.Hash hash) {
    add(Mixtures.of(q), engine, hash);
    double[] weights = new double[q.size()];
    Arrays.setAll(weights, i -> i % 7 == 3 ? 0 : 1 + i % 4);
    double sum = Arrays.stream(weights).sum();
    Arrays.setAll(weights, i -> weights[i] / sum);
    add(Mixtures.of(q, weights), engine, hash);
  }

  private static void add(Mixtures mixture, KlEngine engine, Bits.Hash hash) {
    hash.add(mixture.componentEntropies());
    hash.add(mixture.entropyLowerBound(0));
    hash.add(mixture.entropyUpperBound(engine));
    hash.add(mixture.entropyLowerBound(0.5));
    hash.add(mixture.entropyLowerBound(0.3));
    hash.add(mixture.entropyLowerBound(1));
  }
}
