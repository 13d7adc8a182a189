package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Oracle;
import dev.kullback.testing.Regime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Exact lists of blocks of references, merged or continued, are the list of the whole. */
class MergeTest {
  private static int[][] cuts(int m) {
    return new int[][] {
      {0, m},
      {0, m / 2, m},
      IntStream.of(0, 1, 2, 7, m / 3, m / 2, m - 1, m).sorted().distinct().toArray(),
      IntStream.rangeClosed(0, m).toArray()
    };
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void valuesOfRegimes(Backend backend) {
    Regime[] regimes = {
      Regime.VAE,
      Regime.NEAR_1E_3,
      Regime.NEAR_1E_6,
      Regime.DUPLICATES,
      Regime.NEAR_ULP,
      Regime.OFFSET_1E3,
      Regime.WIDE
    };
    for (int k = 0; k < 2 * regimes.length; k++) {
      if ((backend.ordinal() + k / 2 + k % 2) % 4 == 0) {
        Regime.Case drawn = regimes[k / 2].draw(k % 2 == 1, 5, 61, 7);
        checkRounding("%s %s".formatted(backend, drawn), backend, drawn.q(), drawn.p());
      }
    }
  }

  /** Each kind of q with another of p. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void waysToStateAScale(Backend backend) {
    Batch.Kind[] kinds = Batch.Kind.values();
    for (int k = 0; k < kinds.length * kinds.length; k++) {
      Batch.Kind a = kinds[k / kinds.length];
      Batch.Kind b = kinds[k % kinds.length];
      if ((backend.ordinal() + a.ordinal() + b.ordinal()) % 4 == 0) {
        Random random = new Random(k);
        Batch q = similar(a, 3, 4, random);
        Batch p = similar(b, 40, 4, random);
        String what = "%s %s %s".formatted(backend, a, b);
        check(what, backend, q.gaussians(), p.gaussians());
        checkRounding(what, backend, q, p);
      }
    }
  }

  private static Batch similar(Batch.Kind kind, int n, int d, Random random) {
    double spread = Math.pow(10, -random.nextInt(6));
    double[] mean = random.doubles((long) n * d, 0, spread).toArray();
    double[] std = random.doubles((long) n * d, 1, 1 + spread).toArray();
    return Batch.ofStd(kind, random.nextBoolean(), mean, std, d);
  }

  /** Equal divergences of permuted dimensions and of repeated rows, in all blocks. */
  @Tag("device")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void exactTies(Backend backend) {
    int d = 6;
    int m = backend == Backend.CUDA ? 45 : 90; // a call of the emulated device takes a millisecond
    Random random = new Random(3);
    double[] values = random.doubles(2L * d, 0.5, 2).toArray();
    double[] mean = new double[m * d];
    double[] std = new double[m * d];
    for (int j = 0; j < m; j++) {
      int shift = random.nextInt(d);
      for (int h = 0; h < d; h++) {
        mean[j * d + h] = values[(h + shift) % d] + j % 3;
        std[j * d + h] = values[d + (h + shift) % d];
      }
    }
    double[] same = new double[2 * d];
    Arrays.fill(same, 0, d, 1.3);
    Arrays.fill(same, d, 2 * d, 0.7);
    for (boolean isDouble : new boolean[] {false, true}) {
      Batch q = new Batch(Batch.Kind.STD, isDouble, same, same, d);
      Batch p = new Batch(Batch.Kind.STD, isDouble, mean, std, d);
      check(backend + " ties", backend, q.gaussians(), p.gaussians());
      try (KlEngine engine = Engines.on(backend)) {
        Neighbors nearest =
            engine.search(q.gaussians(), p.gaussians(), Query.nearest(m / 3).exact());
        for (int r = 0; r < m / 3; r++) {
          assertThat(nearest.value(0, r)).isEqualTo(nearest.value(0, 0));
          assertThat(nearest.index(0, r)).isEqualTo(3 * r + nearest.index(0, 0));
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void mixedBatches(Backend backend) {
    Random random = new Random(4);
    for (boolean isDouble : new boolean[] {false, true}) {
      FullBatch.Kind kind = isDouble ? FullBatch.Kind.COVARIANCE : FullBatch.Kind.SCALE_TRIL;
      FullBatch p = FullBatch.random(isDouble, 40, 5, 30, 0, random).as(kind);
      Gaussians q = similar(Batch.Kind.LOG_VARIANCE, 3, 5, random).gaussians();
      check("%s %s".formatted(backend, kind), backend, q, p.gaussians());
    }
  }

  /** Lists of blocks, in any order of blocks, merged; and each continued by the next block. */
  private static void check(String what, Backend backend, Gaussians q, Gaussians p) {
    int m = p.size();
    try (KlEngine engine = Engines.on(backend);
        KlEngine several = Engines.on(backend, 3)) {
      for (int option = 0; option < 4; option++) {
        for (int k : new int[] {1, 3, 10, m, m + 5}) {
          Query options = options(k, option % 2 == 1, option > 1);
          Neighbors expected = engine.search(q, p, options);
          String name = "%s, %s".formatted(what, options);
          checkOrder(name, expected, q.size(), Math.min(k, option > 1 ? m - 1 : m));
          same(name + ", threads", several.search(q, p, options), expected);
          for (int[] cut : cuts(m)) {
            List<Neighbors> lists = new ArrayList<>();
            Neighbors up = null;
            Neighbors down = null;
            for (int b = 1; b < cut.length; b++) {
              lists.add(next(engine, q, p, options, null, cut[b - 1], cut[b]));
              up = next(engine, q, p, options, up, cut[b - 1], cut[b]);
              int a = cut.length - b;
              down = next(engine, q, p, options, down, cut[a - 1], cut[a]);
            }
            String blocks = name + ", " + (cut.length - 1) + " blocks";
            same(blocks + " continued downwards", down, expected);
            same(blocks + " continued", up, expected);
            same(blocks, Neighbors.merge(k, lists.toArray(Neighbors[]::new)), expected);
            same(blocks, Neighbors.merge(k, lists.reversed().toArray(Neighbors[]::new)), expected);
          }
        }
      }
    }
  }

  /** Searches a block, after an earlier list if there is one. */
  private static Neighbors next(
      KlEngine engine,
      Gaussians q,
      Gaussians p,
      Query options,
      @Nullable Neighbors earlier,
      int from,
      int to) {
    return engine.search(
        q,
        p.slice(from, to),
        earlier == null ? options.offset(from) : options.resumeAfter(earlier, from));
  }

  private static Query options(int k, boolean reverse, boolean others) {
    Query options = Query.nearest(k).exact();
    options = reverse ? options.reverse() : options;
    return others ? options.excludeSelf(2) : options;
  }

  private static void checkOrder(String what, Neighbors list, int n, int count) {
    assertThat(list.size()).isEqualTo(n);
    for (int i = 0; i < n; i++) {
      assertThat(list.count(i)).as(what).isEqualTo(count);
      for (int r = 1; r < count; r++) {
        boolean isTie = list.value(i, r - 1) == list.value(i, r);
        assertThat(
                isTie
                    ? list.index(i, r - 1) < list.index(i, r)
                    : list.value(i, r - 1) < list.value(i, r))
            .as("%s: row %d, rank %d", what, i, r)
            .isTrue();
      }
    }
  }

  private static void same(String what, Neighbors actual, Neighbors expected) {
    assertThat(actual.size()).isEqualTo(expected.size());
    assertThat(actual.indices()).as(what).isEqualTo(expected.indices());
    assertThat(actual.values()).as(what).isEqualTo(expected.values()); // bit by bit
  }

  /** All values are the exact ones rounded, but where those lie between two doubles by 2⁻³⁰ ulp; so they do not depend on the backend. */
  private static void checkRounding(String what, Backend backend, Batch q, Batch p) {
    Oracle oracle = new Oracle(q, p);
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors all = engine.search(q.gaussians(), p.gaussians(), Query.nearest(p.size()).exact());
      for (int i = 0; i < q.size(); i++) {
        for (int r = 0; r < p.size(); r++) {
          BigFloat kl = oracle.kl(i, all.index(i, r));
          double value = all.value(i, r);
          BigFloat off = BigFloat.of(value).minus(kl);
          assertThat(Math.abs(off.toDouble()))
              .as("%s: row %d, rank %d: %s", what, i, r, value)
              .isLessThanOrEqualTo(Math.ulp(value) * (0.5 + 0x1p-30));
        }
      }
    }
  }

  /** Bits that vectors and plain code share: no value is a kernel's. */
  @Test
  void backendsAgree() {
    Batch q = similar(Batch.Kind.STD, 9, 40, new Random(5));
    Batch p = similar(Batch.Kind.STD, 300, 40, new Random(5));
    FullBatch full = FullBatch.random(false, 50, 9, 30, 0, new Random(6));
    Query options = Query.nearest(20).exact();
    try (KlEngine vector = Engines.on(Backend.AUTO);
        KlEngine scalar = Engines.on(Backend.SCALAR)) {
      same(
          "diagonal",
          vector.search(q.gaussians(), p.gaussians(), options),
          scalar.search(q.gaussians(), p.gaussians(), options));
      Gaussians g = full.gaussians();
      same("full", vector.search(g, g, options), scalar.search(g, g, options));
    }
  }

  /** More columns than candidates are kept for, all nearly equal, so that they are decided on the way; several blocks and spans. */
  @Tag("device")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void manyNearTies(Backend backend) {
    int m = 12_000;
    Random random = new Random(7);
    double[] mean = random.doubles(3L * m, 1, 1 + 1e-6).toArray();
    double[] std = new double[3 * m];
    Arrays.fill(std, 1);
    for (int j = 3000; j < m; j += 3) { // exact ties across blocks
      System.arraycopy(mean, 3 * (j % 2999), mean, 3 * j, 3);
    }
    Batch p = new Batch(Batch.Kind.STD, true, mean, std, 3);
    Batch q =
        new Batch(
            Batch.Kind.STD, false, new double[9], new double[] {1, 1, 1, 2, 2, 2, 1, 2, 3}, 3);
    Query options = Query.nearest(50).exact();
    try (KlEngine one = Engines.on(backend);
        KlEngine four = Engines.on(backend, 4)) {
      Neighbors expected = one.search(q.gaussians(), p.gaussians(), options);
      Neighbors all = one.search(q.gaussians(), p.gaussians(), Query.nearest(m).exact());
      for (int i = 0; i < 3; i++) {
        assertThat(Arrays.copyOfRange(expected.indices(), 50 * i, 50 * i + 50))
            .isEqualTo(Arrays.copyOfRange(all.indices(), m * i, m * i + 50));
      }
      same("spans", four.search(q.gaussians(), p.gaussians(), options), expected);
      Neighbors last = null;
      for (int from = 0; from < m; from += 4999) {
        int to = Math.min(m, from + 4999);
        last = next(four, q.gaussians(), p.gaussians(), options, last, from, to);
      }
      same("continued", last, expected);
    }
  }

  /** Underflow and overflow: 0 of equal parameters, +∞, and what lies below the normal numbers. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void endsOfTheRange(Backend backend) {
    double[] mean = {0, 1e-160, 1e-155, 0, 1e200, 1e-162, -1e200, 3e-155, 1e-160, 1e154};
    double[] one = new double[mean.length];
    Arrays.fill(one, 1);
    Batch p = new Batch(Batch.Kind.STD, true, mean, one, 1);
    Gaussians q = p.rows(0, 5).gaussians();
    check(backend + " ends", backend, q, p.gaussians());
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors found = engine.search(q, p.gaussians(), Query.nearest(10).exact());
      assertThat(found.value(0, 0)).isZero();
      assertThat(found.index(0, 1)).isEqualTo(3);
      assertThat(found.value(0, 9)).isInfinite();
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void deterministicBatches(Backend backend) {
    float[] mean = {1, 2, 3};
    Gaussians zero =
        Gaussians.of(ScaleKind.STD, mean, new float[3], 1, ScalePolicy.DETERMINISTIC_IF_ZERO);
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors found = engine.search(zero, zero, Query.nearest(2).exact().excludeSelf());
      assertThat(found.indices()).containsExactly(1, 2, 0, 2, 0, 1);
      assertThat(found.values()).containsOnly(0);
      DiagonalGaussians other = DiagonalGaussians.ofStd(mean, mean, 1);
      Query reverse = Query.nearest(1).exact().reverse();
      assertThat(engine.search(other, zero, reverse).indices()).containsOnly(0);
      refused(() -> engine.search(zero, other, reverse), "q is deterministic");
    }
  }

  /** Without {@code exact}: the ordinary search, but for numbers and fewer columns than k. */
  @Tag("device")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void plainOptions(Backend backend) {
    DiagonalGaussians p = Batch.random(false, 300, 5, 0, new Random(8)).gaussians();
    try (KlEngine engine = Engines.on(backend)) {
      same("nearest", engine.search(p, p, Query.nearest(7)), engine.nearest(p, p, 7));
      Neighbors all = engine.search(p, p, Query.nearest(1000).excludeSelf().offset(100));
      assertThat(all.count(99)).isEqualTo(300);
      assertThat(all.count(100)).isEqualTo(299);
      assertThat(all.index(100, 0)).isBetween(101, 399);
      Neighbors other = engine.search(p, p, Query.nearest(299).excludeSelf());
      assertThat(engine.search(p, p, Query.nearest(1000).excludeSelf()).indices())
          .isEqualTo(other.indices());
    }
  }

  @Test
  void errorsOfOptions() {
    refusedAs("k must be at least 1, is 0", () -> Query.nearest(0));
    Query options = Query.nearest(2).exact();
    refusedAs("firstIndex must be at least 0, is -1", () -> options.offset(-1));
    refusedAs("firstRow must be at least 0, is -3", () -> options.excludeSelf(-3));
    assertThatNullPointerException()
        .isThrownBy(() -> options.resumeAfter(null, 0))
        .withMessage("earlier");
    DiagonalGaussians p = Batch.random(false, 4, 2, 0, new Random(9)).gaussians();
    DiagonalGaussians one = Batch.random(false, 1, 2, 0, new Random(9)).gaussians();
    try (KlEngine engine = KlEngine.builder().build()) {
      int last = Integer.MAX_VALUE - 3;
      assertThat(engine.search(p, p, options.offset(last)).index(3, 0))
          .isEqualTo(Integer.MAX_VALUE);
      refused(
          () -> engine.search(p, p, options.offset(last + 1)),
          "firstIndex is 2147483645 and p has 4 Gaussians");
      Neighbors earlier = engine.search(p, p, options);
      refused(
          () -> engine.search(one, p, options.resumeAfter(earlier, 4)),
          "earlier has 4 rows but q has 1 Gaussians");
      refused(
          () -> engine.search(p, p, options.resumeAfter(earlier, 0)),
          "which is one of p's: p has [0, 3]");
      Neighbors within = Neighbors.of(new int[] {0, 2}, new int[] {0, 1}, new double[] {2, 1});
      refused(
          () -> engine.search(one, p, options.resumeAfter(within, 4)),
          "earlier, row 0, is not ascending by value and then index at neighbor 1");
    }
  }

  @Test
  void errorsOfMerge() {
    Neighbors a = Neighbors.of(new int[] {0, 1, 3}, new int[] {5, 1, 2}, new double[] {1, 2, 2});
    Neighbors b = Neighbors.of(new int[] {0, 0, 1}, new int[] {2}, new double[] {0.5});
    Neighbors one = Neighbors.of(new int[] {0, 1}, new int[] {2}, new double[] {0.5});
    Neighbors tie = Neighbors.of(new int[] {0, 2}, new int[] {2, 1}, new double[] {0.5, 0.5});
    refused(() -> Neighbors.merge(0, a), "k must be");
    refused(() -> Neighbors.merge(1), "no lists");
    assertThatNullPointerException()
        .isThrownBy(() -> Neighbors.merge(1, a, null))
        .withMessage("lists[1]");
    refused(() -> Neighbors.merge(1, a, one), "lists[1] has 1 rows but lists[0] has 2");
    refused(() -> Neighbors.merge(1, a, b), "row 1 has index 2 twice");
    refused(() -> Neighbors.merge(1, tie), "lists[0], row 0, is not ascending");
    Neighbors c = Neighbors.of(new int[] {0, 0, 1}, new int[] {0}, new double[] {2});
    Neighbors merged = Neighbors.merge(2, a, c);
    assertThat(merged.indices()).containsExactly(5, 0, 1);
    assertThat(merged.values()).containsExactly(1, 2, 2);
    assertThat(merged.count(1)).isEqualTo(2);
  }

  @Test
  void errorsOfNeighbors() {
    int[] start = {0, 1};
    refused(() -> Neighbors.of(new int[0], new int[0], new double[0]), "start must begin with 0");
    refused(
        () -> Neighbors.of(new int[] {0, 1, 0}, new int[0], new double[0]),
        "start[2] is 0, less than start[1], which is 1");
    refused(
        () -> Neighbors.of(start, new int[2], new double[1]),
        "start ends with 1, but there are 2 indices and 1 values");
    refused(() -> Neighbors.of(start, new int[] {-1}, new double[1]), "entry 0 has index -1");
    refused(() -> Neighbors.of(start, new int[1], new double[] {Double.NaN}), "value NaN");
  }
}
