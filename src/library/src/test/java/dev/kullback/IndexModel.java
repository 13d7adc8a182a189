package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.testing.Batch;
import dev.kullback.testing.FullBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;

/** References as they are to be in an index: parts that were added, one of each kind and precision, less what was removed. */
final class IndexModel {
  static final int D = 5;

  /** What Gaussians are like. */
  enum Data {
    ORDINARY,
    /** Few values, so that many divergences are equal. */
    TIES,
    /** Each is nearly one of a few. */
    NEAR_TIES,
    TINY,
    /** Far from 0, of scales of many magnitudes, with outliers. */
    WILD,
    /** Dimensions in which all are alike. */
    CONSTANT,
    /** Full covariances, the first third of each part near one of them, and some of them alike. */
    FULL;

    KlIndex.Builder builder(Divergence divergence) {
      KlIndex.Builder builder = KlIndex.builder(D).divergence(divergence);
      return this == FULL ? builder.fullCovariances() : builder;
    }

    /** Some queries in each of some batches; the last but one has standard deviations of float. */
    List<Gaussians> queries() {
      Random random = new Random(99);
      if (this != FULL) {
        return List.of(
            batch(Batch.Kind.STD, false, 3, random).gaussians(),
            batch(Batch.Kind.LOG_VARIANCE, true, 3, random).gaussians());
      }
      FullBatch full = FullBatch.random(true, 2, D, 5, 0, random);
      return List.of(
          FullBatch.random(false, 2, D, 5, 0, random).gaussians(),
          full.as(FullBatch.Kind.COVARIANCE).gaussians(),
          Batch.random(false, 2, D, 0, random).gaussians(),
          ORDINARY.batch(Batch.Kind.LOG_VARIANCE, true, 2, random).gaussians());
    }

    /** Queries that kernels of matrices answer together. */
    Gaussians many(int n, boolean isDouble, Random random) {
      return this == FULL
          ? FullBatch.random(isDouble, n, D, 9, 0, random).gaussians()
          : batch(Batch.Kind.VARIANCE, isDouble, n, random).gaussians();
    }

    Batch batch(Batch.Kind kind, boolean isDouble, int n, Random random) {
      double[] mean = new double[n * D];
      double[] std = new double[n * D];
      for (int k = 0; k < n * D; k++) {
        double x = random.nextGaussian();
        double y = random.nextGaussian();
        switch (this) {
          case ORDINARY, FULL -> {
            mean[k] = x;
            std[k] = Math.exp(0.5 * y);
          }
          case TIES -> {
            mean[k] = Math.rint(x);
            std[k] = y < 0 ? 1 : 2;
          }
          case NEAR_TIES -> {
            double near = 1 + 1e-15 * random.nextInt(8);
            mean[k] = Math.rint(x) * near;
            std[k] = (y < 0 ? 1 : 2) * near;
          }
          case TINY -> {
            mean[k] = 1e-17 * x;
            std[k] = 1e-15 * Math.exp(y);
          }
          case WILD -> {
            mean[k] = 1e9 * (1 + 1e-6 * x) * (random.nextInt(200) == 0 ? 1e5 : 1);
            std[k] = Math.exp(4 * y);
          }
          case CONSTANT -> {
            mean[k] = k % D == 0 ? 0 : k % D == 1 ? 3 : x;
            std[k] = k % D < 3 ? 1 : Math.exp(y);
          }
        }
      }
      return Batch.ofStd(kind, isDouble, mean, std, D);
    }

    private Gaussians part(int kind, boolean isDouble, Random random) {
      if (this != FULL) {
        return batch(Batch.Kind.values()[kind], isDouble, size(), random).gaussians();
      }
      FullBatch all = FullBatch.random(true, size(), D, 30, 0, random);
      double[] mean = all.mean();
      double[] tril = all.matrix();
      for (int i = 0; i < size() / 3; i++) {
        for (int k = 0; k < D * D; k++) {
          tril[i * D * D + k] = tril[k] * (1 + (i % 2 == 0 ? 0 : 1e-3 * i));
        }
        for (int k = 0; k < D; k++) {
          mean[i * D + k] = mean[k] * (1 + (i % 2 == 0 ? 0 : 1e-14 * i));
        }
      }
      FullBatch.Kind its = FullBatch.Kind.values()[kind];
      FullBatch factors = new FullBatch(FullBatch.Kind.SCALE_TRIL, true, mean, tril, D);
      FullBatch given = its == FullBatch.Kind.SCALE_TRIL ? factors : factors.as(its);
      return new FullBatch(its, isDouble, given.mean(), given.matrix(), D).gaussians();
    }

    int kinds() {
      return this == FULL ? FullBatch.Kind.values().length : Batch.Kind.values().length;
    }

    /** References of a part: of diagonal ones enough that its segments have codes. */
    int size() {
      return this == FULL ? 60 : 300;
    }
  }

  /** Gaussians that were added together, under ids in no order. */
  record Part(Gaussians batch, long[] ids) {
    long[] idsOf(int... rows) {
      return Arrays.stream(rows).mapToLong(row -> ids[row]).toArray();
    }
  }

  final Data data;
  final List<Part> parts = new ArrayList<>();
  final Set<Long> removed = new TreeSet<>();

  /** Draws Gaussians; ids of different parts alternate. */
  IndexModel(Data data, int seed) {
    this.data = data;
    Random random = new Random(seed);
    int n = data.size();
    for (int part = 0; part < 2 * data.kinds(); part++) {
      Gaussians batch = data.part(part / 2, part % 2 == 1, random);
      long[] ids = new long[n];
      int first = part - 100;
      Arrays.setAll(ids, i -> 2L * data.kinds() * (i * 7 % n) + first);
      parts.add(new Part(batch, ids));
    }
  }

  /** Adds all, in several segments, some after others were under their ids, and removes some. */
  IndexModel fill(KlIndex index) {
    for (Part part : parts) {
      index.add(part.ids(), part.batch());
    }
    for (Part part : parts.reversed()) {
      long[] few = part.idsOf(5, 3, 30);
      index.remove(few);
      index.add(few, part.batch().select(3, 5, 30)); // two are exchanged
      index.replace(part.idsOf(3, 5), part.batch().select(3, 5));
    }
    for (int k = 0; k < data.size(); k += 11) {
      removed.add(parts.get(k % parts.size()).ids()[k]);
    }
    index.remove(removed.stream().mapToLong(id -> id).toArray());
    return this;
  }

  /** The values of each query and all references that a search finds, in the order of the ids, as an engine has them. */
  List<List<Map.Entry<Long, Double>>> all(KlEngine engine, Gaussians x, Query query) {
    List<Neighbors> found =
        parts.stream().map(part -> engine.search(x, part.batch(), query.exact())).toList();
    List<List<Map.Entry<Long, Double>>> all = new ArrayList<>();
    for (int i = 0; i < x.size(); i++) {
      Map<Long, Double> values = new TreeMap<>();
      for (int part = 0; part < parts.size(); part++) {
        for (Neighbor neighbor : found.get(part).row(i)) {
          values.put(parts.get(part).ids()[(int) neighbor.id()], neighbor.value());
        }
      }
      values.keySet().removeAll(removed);
      all.add(List.copyOf(values.entrySet()));
    }
    return all;
  }

  static List<Map.Entry<Long, Double>> row(IndexNeighbors found, int i) {
    return found.row(i).stream().map(n -> Map.entry(n.id(), n.value())).toList();
  }

  static List<Map.Entry<Long, Double>> nearest(List<Map.Entry<Long, Double>> all, int k) {
    Comparator<Map.Entry<Long, Double>> order = Map.Entry.comparingByValue();
    return all.stream().sorted(order.thenComparing(Map.Entry.comparingByKey())).limit(k).toList();
  }

  /** Queries in one direction, and the values of all references and of those within a radius, for all indexes of the same references. */
  record Asked(
      Gaussians x,
      boolean reverse,
      List<List<Map.Entry<Long, Double>>> all,
      Query within,
      List<List<Map.Entry<Long, Double>>> near) {
    static List<Asked> of(Divergence divergence, IndexModel model) {
      List<Asked> asked = new ArrayList<>();
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        for (Gaussians x : model.data.queries()) {
          for (boolean reverse : new boolean[] {false, true}) {
            Query every = directed(Query.within(Double.POSITIVE_INFINITY), reverse);
            List<List<Map.Entry<Long, Double>>> all = model.all(engine, x, every);
            // just what has the value, too
            double radius = nearest(all.getFirst(), 25).getLast().getValue();
            Query within = directed(Query.within(radius), reverse);
            asked.add(new Asked(x, reverse, all, within, model.all(engine, x, within)));
          }
        }
      }
      return asked;
    }

    private static Query directed(Query query, boolean reverse) {
      return reverse ? query.reverse() : query;
    }

    void check(KlIndex index) {
      for (int k : new int[] {1, 10, 700}) {
        IndexNeighbors found = index.search(x, directed(Query.nearest(k), reverse));
        for (int i = 0; i < x.size(); i++) {
          assertThat(row(found, i)).isEqualTo(nearest(all.get(i), k));
          assertThat(found.isComplete(i)).isTrue();
        }
      }
      IndexNeighbors found = index.search(x, within);
      for (int i = 0; i < x.size(); i++) {
        assertThat(row(found, i)).isEqualTo(near.get(i));
      }
    }
  }

  /** Checks that an index gives back what is in it: by ids, one by one, and all. */
  void checkGivenBack(KlIndex index) {
    List<Long> all = new ArrayList<>();
    float[] mean = new float[D];
    float[] std = new float[D];
    for (Part part : parts) {
      int[] rows =
          IntStream.range(0, data.size()).filter(k -> !removed.contains(part.ids()[k])).toArray();
      assertSame(index.get(part.idsOf(rows)), part.batch().select(rows));
      assertSame(index.get(part.idsOf(7, 8, 7)), part.batch().select(7, 8, 7));
      for (int row : rows) {
        all.add(part.ids()[row]);
        assertThat(index.get(part.ids()[row], mean, std)).isTrue();
        double[] covariance = part.batch().covariance(row);
        for (int h = 0; h < D; h++) {
          assertThat(mean[h]).isEqualTo((float) part.batch().mean(row)[h]);
          float expected = (float) Math.sqrt(covariance[h * (D + 1)]);
          assertThat(std[h]).isBetween(Math.nextDown(expected), Math.nextUp(expected));
        }
      }
    }
    assertThat(index.ids()).isEqualTo(all.stream().mapToLong(id -> id).sorted().toArray());
    List<Long> seen = new ArrayList<>();
    List<String> kinds = new ArrayList<>();
    index.forEach((ids, batch) -> {
      assertThat(ids).isSorted();
      assertSame(batch, index.get(ids));
      kinds.add(kind(batch));
      Arrays.stream(ids).forEach(seen::add);
    });
    assertThat(kinds).isEqualTo(parts.stream().map(part -> kind(part.batch())).distinct().toList());
    assertThat(seen).containsExactlyInAnyOrderElementsOf(all);
  }

  /** Kind and precision; of full covariances whether factors were given or computed. */
  private static String kind(Gaussians batch) {
    Object kind = batch instanceof FullGaussians full ? full.hasComputedFactors() : batch.kind();
    return kind + ", " + batch.isDouble();
  }

  static void assertSame(Gaussians found, Gaussians expected) {
    assertThat(found).isInstanceOf(expected.getClass());
    assertThat(found.size()).isEqualTo(expected.size());
    assertThat(kind(found)).isEqualTo(kind(expected));
    for (int i = 0; i < found.size(); i++) {
      assertThat(found.mean(i)).isEqualTo(expected.mean(i));
      assertThat(found.scale(i)).isEqualTo(expected.scale(i));
      assertThat(found.covariance(i)).isEqualTo(expected.covariance(i)); // by what rounding took
    }
  }
}
