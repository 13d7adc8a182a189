package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
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
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Exact lists of blocks of references, merged or continued, are the list of the whole. */
class MergeTest {
  /** References that can be cut into blocks. */
  private interface Rows {
    Gaussians of(int from, int to);
  }

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
  void diagonalBatches(Backend backend) {
    Regime[] regimes = {
      Regime.VAE,
      Regime.NEAR_1E_3,
      Regime.NEAR_1E_6,
      Regime.DUPLICATES,
      Regime.NEAR_ULP,
      Regime.OFFSET_1E3,
      Regime.WIDE
    };
    for (int k = 0; k < regimes.length; k++) {
      for (boolean isDouble : new boolean[] {false, true}) {
        if ((backend.ordinal() + k + (isDouble ? 1 : 0)) % 4 != 0) {
          continue;
        }
        Regime regime = regimes[k];
        Regime.Case drawn = regime.draw(isDouble, 5, 61, 7);
        Batch q = drawn.q();
        Batch p = drawn.p();
        String what = "%s %s %s".formatted(backend, regime, isDouble ? "double" : "float");
        check(what, backend, q.gaussians(), (from, to) -> p.rows(from, to).gaussians(), 61);
        checkRounding(what, backend, q, p);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void waysToStateAScale(Backend backend) {
    for (Batch.Kind a : Batch.Kind.values()) {
      for (Batch.Kind b : Batch.Kind.values()) {
        if ((backend.ordinal() + a.ordinal() + b.ordinal()) % 4 != 0) {
          continue; // each kind of q with another of p
        }
        Random random = new Random(4 * a.ordinal() + b.ordinal());
        Batch q = similar(a, 3, 4, random);
        Batch p = similar(b, 40, 4, random);
        String what = "%s %s %s".formatted(backend, a, b);
        check(what, backend, q.gaussians(), (from, to) -> p.rows(from, to).gaussians(), 40);
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
      check(
          backend + " ties", backend, q.gaussians(), (from, to) -> p.rows(from, to).gaussians(), m);
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
  void fullAndMixedBatches(Backend backend) {
    Random random = new Random(4);
    for (boolean isDouble : new boolean[] {false, true}) {
      FullBatch.Kind kind = isDouble ? FullBatch.Kind.COVARIANCE : FullBatch.Kind.SCALE_TRIL;
      FullBatch p = FullBatch.random(isDouble, 40, 5, 30, 0, random).as(kind);
      FullBatch q = p.rows(11, 14);
      Batch scales = similar(Batch.Kind.LOG_VARIANCE, 33, 5, random);
      String what = "%s %s %s".formatted(backend, kind, isDouble);
      check(what, backend, q.gaussians(), (from, to) -> p.rows(from, to).gaussians(), 40);
      check(
          what + " mixed",
          backend,
          q.gaussians(),
          (from, to) -> scales.rows(from, to).gaussians(),
          33);
      Gaussians diagonal = scales.rows(3, 6).gaussians();
      check(what + " mixed", backend, diagonal, (from, to) -> p.rows(from, to).gaussians(), 40);
    }
  }

  /** Lists of blocks, in any order of blocks, merged; and each continued by the next block. */
  private static void check(String what, Backend backend, Gaussians q, Rows p, int m) {
    Gaussians whole = p.of(0, m);
    try (KlEngine engine = Engines.on(backend);
        KlEngine several = Engines.on(backend, 3)) {
      for (boolean reverse : new boolean[] {false, true}) {
        for (boolean others : new boolean[] {false, true}) {
          for (int k : new int[] {1, 3, 10, m, m + 5}) {
            Query options = options(k, reverse, others);
            Neighbors expected = engine.search(q, whole, options);
            String name =
                "%s, k = %d%s%s"
                    .formatted(what, k, reverse ? ", reverse" : "", others ? ", others" : "");
            checkOrder(name, expected, q.size(), Math.min(k, others ? m - 1 : m));
            same(name + ", threads", several.search(q, whole, options), expected);
            for (int[] cut : cuts(m)) {
              List<Neighbors> lists = new ArrayList<>();
              Neighbors last = null;
              for (int b = 1; b < cut.length; b++) {
                Gaussians block = p.of(cut[b - 1], cut[b]);
                lists.add(engine.search(q, block, options.offset(cut[b - 1])));
                last =
                    engine.search(
                        q, block, last == null ? options : options.resumeAfter(last, cut[b - 1]));
              }
              Neighbors descending = null;
              for (int b = cut.length - 1; b > 0; b--) {
                Gaussians block = p.of(cut[b - 1], cut[b]);
                Query from = options.offset(cut[b - 1]);
                descending =
                    engine.search(
                        q,
                        block,
                        descending == null ? from : options.resumeAfter(descending, cut[b - 1]));
              }
              String blocks = name + ", " + (cut.length - 1) + " blocks";
              same(blocks + " continued downwards", descending, expected);
              same(blocks + " continued", last, expected);
              same(blocks, Neighbors.merge(k, lists.toArray(Neighbors[]::new)), expected);
              same(
                  blocks, Neighbors.merge(k, lists.reversed().toArray(Neighbors[]::new)), expected);
            }
          }
        }
      }
    }
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
    Neighbors[] found = new Neighbors[2];
    Neighbors[] fullFound = new Neighbors[2];
    Backend[] backends = {Backend.AUTO, Backend.SCALAR};
    for (int b = 0; b < 2; b++) {
      try (KlEngine engine = Engines.on(backends[b])) {
        found[b] = engine.search(q.gaussians(), p.gaussians(), Query.nearest(20).exact());
        fullFound[b] = engine.search(full.gaussians(), full.gaussians(), Query.nearest(20).exact());
      }
    }
    same("diagonal", found[0], found[1]);
    same("full", fullFound[0], fullFound[1]);
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
        Gaussians block = p.rows(from, Math.min(m, from + 4999)).gaussians();
        last =
            four.search(
                q.gaussians(), block, last == null ? options : options.resumeAfter(last, from));
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
    check(backend + " ends", backend, q, (from, to) -> p.rows(from, to).gaussians(), mean.length);
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
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.search(zero, other, reverse))
          .withMessageContaining("q is deterministic");
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
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Query.nearest(0))
        .withMessage("k must be at least 1, is 0");
    Query options = Query.nearest(2).exact();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> options.offset(-1))
        .withMessage("firstIndex must be at least 0, is -1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> options.excludeSelf(-3))
        .withMessage("firstRow must be at least 0, is -3");
    assertThatNullPointerException()
        .isThrownBy(() -> options.resumeAfter(null, 0))
        .withMessage("earlier");
    DiagonalGaussians p = Batch.random(false, 4, 2, 0, new Random(9)).gaussians();
    DiagonalGaussians one = Batch.random(false, 1, 2, 0, new Random(9)).gaussians();
    try (KlEngine engine = KlEngine.builder().build()) {
      int last = Integer.MAX_VALUE - 3;
      assertThat(engine.search(p, p, options.offset(last)).index(3, 0))
          .isEqualTo(Integer.MAX_VALUE);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.search(p, p, options.offset(last + 1)))
          .withMessageContaining("firstIndex is 2147483645 and p has 4 Gaussians");
      Neighbors earlier = engine.search(p, p, options);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.search(one, p, options.resumeAfter(earlier, 4)))
          .withMessageContaining("earlier has 4 rows but q has 1 Gaussians");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.search(p, p, options.resumeAfter(earlier, 0)))
          .withMessageContaining("which is one of p's: p has [0, 3]");
      Neighbors within = Neighbors.of(new int[] {0, 2}, new int[] {0, 1}, new double[] {2, 1});
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.search(one, p, options.resumeAfter(within, 4)))
          .withMessageContaining(
              "earlier, row 0, is not ascending by value and then index at neighbor 1");
    }
  }

  @Test
  void errorsOfMerge() {
    Neighbors a = Neighbors.of(new int[] {0, 1, 3}, new int[] {5, 1, 2}, new double[] {1, 2, 2});
    Neighbors b = Neighbors.of(new int[] {0, 0, 1}, new int[] {2}, new double[] {0.5});
    Neighbors one = Neighbors.of(new int[] {0, 1}, new int[] {2}, new double[] {0.5});
    Neighbors tie = Neighbors.of(new int[] {0, 2}, new int[] {2, 1}, new double[] {0.5, 0.5});
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.merge(0, a))
        .withMessageContaining("k must be");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.merge(1))
        .withMessageContaining("no lists");
    assertThatNullPointerException()
        .isThrownBy(() -> Neighbors.merge(1, a, null))
        .withMessage("lists[1]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.merge(1, a, one))
        .withMessageContaining("lists[1] has 1 rows but lists[0] has 2");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.merge(1, a, b))
        .withMessageContaining("row 1 has index 2 twice");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.merge(1, tie))
        .withMessageContaining("lists[0], row 0, is not ascending");
    Neighbors c = Neighbors.of(new int[] {0, 0, 1}, new int[] {0}, new double[] {2});
    Neighbors merged = Neighbors.merge(2, a, c);
    assertThat(merged.indices()).containsExactly(5, 0, 1);
    assertThat(merged.values()).containsExactly(1, 2, 2);
    assertThat(merged.count(1)).isEqualTo(2);
  }

  @Test
  void errorsOfNeighbors() {
    int[] start = {0, 1};
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.of(new int[0], new int[0], new double[0]))
        .withMessageContaining("start must begin with 0");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.of(new int[] {0, 1, 0}, new int[0], new double[0]))
        .withMessageContaining("start[2] is 0, less than start[1], which is 1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.of(start, new int[2], new double[1]))
        .withMessageContaining("start ends with 1, but there are 2 indices and 1 values");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.of(start, new int[] {-1}, new double[1]))
        .withMessageContaining("entry 0 has index -1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Neighbors.of(start, new int[1], new double[] {Double.NaN}))
        .withMessageContaining("value NaN");
  }
}
