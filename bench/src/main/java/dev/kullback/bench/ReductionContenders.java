package dev.kullback.bench;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.Query;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * Contenders that reduce the matrix without keeping it, by name, and queries: few Gaussians against B references. Batches are
 * prepared, results go to the caller's arrays.
 */
final class ReductionContenders {
  private static final Map<String, Function<Shape, Contender>> ALL = new LinkedHashMap<>();

  private static final int K = 10;

  /** Different queries in turn: no call finds branches and candidates as the last one left them. */
  static final int RING = 16;

  static {
    ALL.put(
        "nearest-" + K,
        shape -> {
          Batch q = Batch.ordinary(shape, Batch.Q_SEED);
          return nearest(List.of(q), q, K, 1);
        });
    ALL.put(
        "row-min",
        shape ->
            statistic(
                Batch.ordinary(shape, Batch.Q_SEED),
                references(shape),
                (engine, q, p, out) -> engine.rowMin(q, p, out),
                (q, p, out) -> Agreement.rowMin("row-min", q, p, out)));
    ALL.put("row-sum", shape -> rowSum(Batch.ordinary(shape, Batch.Q_SEED), references(shape)));
    for (String spread : Contenders.SPREADS) {
      double s = Double.parseDouble(spread);
      ALL.put(
          "row-sum-alike-" + spread,
          shape ->
              rowSum(Batch.alike(shape, s, Batch.Q_SEED), Batch.alike(shape, s, Batch.P_SEED)));
    }
    ALL.put(
        "log-sum-exp",
        shape ->
            statistic(
                Batch.ordinary(shape, Batch.Q_SEED),
                references(shape),
                (engine, q, p, out) -> engine.logSumExp(q, p, out),
                (q, p, out) -> Agreement.logSumExp("log-sum-exp", q, p, out)));
    for (int queries : new int[] {1, 8, 64}) {
      String suffix = queries == 1 ? "" : "-" + queries;
      ALL.put("query" + suffix, shape -> query(shape, queries, K, 1));
      ALL.put("query-matrix" + suffix, shape -> queryMatrix(shape, queries));
    }
    ALL.put("query-2-threads", shape -> query(shape, 1, K, 2));
  }

  private ReductionContenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    return Collections.unmodifiableMap(ALL);
  }

  /** The k nearest of the references, for so many queries a call. */
  static Contender query(Shape references, int queries, int k, int threads) {
    return nearest(ring(references, queries), references(references), k, threads);
  }

  /** The matrix that {@link #query} looks for its minima in. */
  static Contender queryMatrix(Shape references, int queries) {
    return pairwise(ring(references, queries), references(references), 1);
  }

  private static Batch references(Shape shape) {
    return Batch.ordinary(shape, Batch.P_SEED);
  }

  private static List<Batch> ring(Shape references, int queries) {
    Shape all = new Shape(Math.multiplyExact(RING, queries), references.dimension());
    Batch batch = Batch.ordinary(all, Batch.Q_SEED);
    return IntStream.range(0, RING)
        .mapToObj(r -> batch.rows(r * queries, (r + 1) * queries))
        .toList();
  }

  /** The k nearest of p. Calls go round {@code ring}; batches of one size, or p itself. */
  static Contender nearest(List<Batch> ring, Batch p, int k, int threads) {
    int[] indices = new int[Math.multiplyExact(ring.getFirst().shape().size(), k)];
    float[] values = new float[indices.length];
    Query query = Query.nearest(k);
    return new Prepared(ring, p, threads) {
      @Override
      Object compute(KlEngine engine, DiagonalGaussians q, DiagonalGaussians p) {
        engine.search(q, p, query, indices, values);
        return values;
      }

      @Override
      void check(Batch q, Batch p) {
        Agreement.nearest("nearest", q, p, k, indices, values);
      }
    };
  }

  /** The matrix; {@code ring} as for {@link #nearest}. */
  static Contender pairwise(List<Batch> ring, Batch p, int threads) {
    float[] out = new float[Math.multiplyExact(ring.getFirst().shape().size(), p.shape().size())];
    return new Prepared(ring, p, threads) {
      @Override
      Object compute(KlEngine engine, DiagonalGaussians q, DiagonalGaussians p) {
        return engine.pairwise(q, p, out);
      }

      @Override
      void check(Batch q, Batch p) {
        Agreement.contract("pairwise", q, p, out);
      }
    };
  }

  private interface Statistic {
    double[] compute(KlEngine engine, DiagonalGaussians q, DiagonalGaussians p, double[] out);
  }

  private interface StatisticCheck {
    void check(Batch q, Batch p, double[] out);
  }

  private static Contender rowSum(Batch q, Batch p) {
    return statistic(
        q,
        p,
        (engine, a, b, out) -> engine.rowSum(a, b, out),
        (a, b, out) -> Agreement.rowSum("row-sum", a, b, out));
  }

  /** A number a row. Of two batches: compared with itself, each row's minimum is 0 and outweighs all else. */
  private static Contender statistic(Batch q, Batch p, Statistic statistic, StatisticCheck check) {
    double[] out = new double[q.shape().size()];
    return new Prepared(List.of(q), p, 1) {
      @Override
      Object compute(KlEngine engine, DiagonalGaussians q, DiagonalGaussians p) {
        return statistic.compute(engine, q, p, out);
      }

      @Override
      void check(Batch q, Batch p) {
        check.check(q, p, out);
      }
    };
  }

  /** Calls with prepared batches, q the next of a ring. */
  private abstract static class Prepared implements Contender {
    private final List<Batch> ring;
    private final Batch p;
    private final List<DiagonalGaussians> preparedRing = new ArrayList<>();
    private final DiagonalGaussians preparedP;
    private final KlEngine engine;
    private int last = -1;

    Prepared(List<Batch> ring, Batch p, int threads) {
      this.ring = ring;
      this.p = p;
      preparedP = p.gaussians();
      for (Batch q : ring) {
        preparedRing.add(q == p ? preparedP : q.gaussians());
      }
      engine = KlEngine.builder().threads(threads).build();
    }

    abstract Object compute(KlEngine engine, DiagonalGaussians q, DiagonalGaussians p);

    abstract void check(Batch q, Batch p);

    @Override
    public Object call() {
      last = (last + 1) % ring.size();
      return compute(engine, preparedRing.get(last), preparedP);
    }

    @Override
    public void check() {
      check(ring.get(last), p);
    }

    @Override
    public double terms(Shape shape) {
      return (double) ring.getFirst().shape().size() * p.shape().size() * p.shape().dimension();
    }

    @Override
    public void close() {
      engine.close();
    }
  }
}
