package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.FullGradientOracle;
import dev.kullback.testing.FullOracle;
import dev.kullback.testing.WarmCalls;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Gradients of full covariances against derivatives in 77 digits, whose error is relative to the sum of the magnitudes of their terms. */
@Tag("vector")
class FullGradientTest {
  private static final List<Divergence> DIVERGENCES = List.of(Divergence.KL, Divergence.JEFFREYS);

  private static final List<FullBatch.Kind> KINDS =
      List.of(FullBatch.Kind.SCALE_TRIL, FullBatch.Kind.PACKED, FullBatch.Kind.PACKED_LOG);

  private static final String[] NAMES = {"q's mean", "q's factor", "p's mean", "p's factor"};

  /** What the oracle's digits leave of a derivative that is 0. */
  private static final double ORACLE = 1e-60;

  /** Two batches of factors, from far apart to hardly different, of usual scales and of others. */
  private enum Pairs {
    FAR(10, 0, 1, 1),
    ILL_CONDITIONED(1e8, 0, 1, 1),
    ALIKE(30, 0, 1e-9, 1),
    OFFSET(10, 1000, 1e-3, 1),
    LARGE(10, 0, 1, 1e30),
    SMALL(10, 0, 1e-6, 1e-30);

    private final double condition;
    private final double center;
    private final double spread;
    private final double unit;

    Pairs(double condition, double center, double spread, double unit) {
      this.condition = condition;
      this.center = center;
      this.spread = spread;
      this.unit = unit;
    }

    /** Draws a batch whose Gaussians are apart by the spread, in the unit. */
    FullBatch draw(FullBatch.Kind kind, boolean isDouble, int size, int d, long seed) {
      Random random = new Random(d);
      FullBatch base = FullBatch.random(true, 1, d, condition, center, random);
      Random own = new Random(seed);
      double[] mean = new double[size * d];
      double[] matrix = new double[size * d * d];
      FullBatch far = FullBatch.random(true, size, d, condition, center, own);
      for (int k = 0; k < mean.length; k++) {
        double m = base.mean()[k % d];
        mean[k] = unit * (spread == 1 ? far.mean()[k] : m + spread * own.nextGaussian());
      }
      for (int k = 0; k < matrix.length; k++) {
        double x = base.matrix()[k % (d * d)];
        matrix[k] = unit * (spread == 1 ? far.matrix()[k] : x * (1 + spread * own.nextGaussian()));
      }
      FullBatch drawn = new FullBatch(FullBatch.Kind.SCALE_TRIL, true, mean, matrix, d).as(kind);
      return new FullBatch(kind, isDouble, drawn.mean(), drawn.matrix(), d);
    }
  }

  /** The gradients of a call. */
  private static double[][] arrays(FullBatch q, FullBatch p) {
    double[][] arrays = {
      new double[q.mean().length + 1],
      new double[q.matrix().length + 1],
      new double[p.mean().length + 1],
      new double[p.matrix().length + 1]
    };
    for (double[] array : arrays) {
      Arrays.fill(array, Double.NaN);
    }
    return arrays;
  }

  private static KlGradient gradient(KlEngine engine, double[][] to) {
    return engine.gradient().q(to[0], to[1]).p(to[2], to[3]);
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void againstDigits(Backend backend) {
    int number = 0;
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        for (Pairs pairs : Pairs.values()) {
          for (int d : new int[] {1, 2, 3, 9}) {
            for (boolean isDouble : new boolean[] {false, true}) {
              FullBatch.Kind kind = KINDS.get(number % 3);
              FullBatch q = pairs.draw(kind, isDouble, 3, d, 1);
              FullBatch p = pairs.draw(KINDS.get(number++ / 2 % 3), isDouble, 5, d, 2);
              checkAll(engine, "%s, %s, %d".formatted(divergence.name(), pairs, d), q, p);
            }
          }
        }
      }
    }
  }

  private static void checkAll(KlEngine engine, String what, FullBatch q, FullBatch p) {
    int n = q.size();
    int m = p.size();
    Random random = new Random(7);
    double[] g = random.doubles((long) n * m, -1, 1).toArray();
    g[1] = 0;
    double[][] out = arrays(q, p);
    gradient(engine, out).pairwise(q.gaussians(), p.gaussians(), g);
    check(what, engine.divergence(), q, p, g, out, 4);

    double[] rows = random.doubles(n, -1, 1).toArray();
    for (int k = 0; k < g.length; k++) {
      g[k] = rows[k / m];
    }
    gradient(engine, out).rowSum(q.gaussians(), p.gaussians(), rows);
    check(what + ", rowSum", engine.divergence(), q, p, g, out, 4);

    FullBatch first = p.rows(0, n);
    double[] diagonal = new double[n * n];
    for (int i = 0; i < n; i++) {
      diagonal[i * n + i] = rows[i];
    }
    double[][] aligned = arrays(q, first);
    gradient(engine, aligned).aligned(q.gaussians(), first.gaussians(), rows);
    check(what + ", aligned", engine.divergence(), q, first, diagonal, aligned, 4);

    int d = q.dimension();
    double[] identity = new double[d * d];
    for (int h = 0; h < d; h++) {
      identity[h * (d + 1)] = 1;
    }
    FullBatch normal =
        new FullBatch(FullBatch.Kind.SCALE_TRIL, q.isDouble(), new double[d], identity, d);
    double[][] standard = arrays(q, normal);
    engine.gradient().q(standard[0], standard[1]).toStandardNormal(q.gaussians(), rows);
    check(what + ", standard", engine.divergence(), q, normal, rows, standard, 2);
  }

  private static void check(
      String what,
      Divergence divergence,
      FullBatch q,
      FullBatch p,
      double[] g,
      double[][] out,
      int parts) {
    boolean wide = q.isDouble() || p.isDouble();
    FullGradientOracle expected = FullGradientOracle.of(divergence, q, p, g, wide);
    for (int k = 0; k < parts; k++) {
      for (int at = 0; at < expected.values[k].length; at++) {
        double most = (wide ? 1e-12 : 1e-5) * expected.magnitudes[k][at] + ORACLE;
        double error = Math.abs(out[k][at] - expected.values[k][at]);
        assertThat(error)
            .as("%s, %s [%d]: %s", what, NAMES[k], at, expected.values[k][at])
            .isLessThanOrEqualTo(most);
      }
      assertThat(out[k][out[k].length - 1]).as("what is behind").isNaN();
    }
  }

  /** The oracle's derivatives are those of the oracle of KL. */
  @ParameterizedTest
  @EnumSource(names = {"SCALE_TRIL", "PACKED", "PACKED_LOG"})
  void differences(FullBatch.Kind kind) {
    FullBatch q = Pairs.FAR.draw(kind, true, 1, 3, 1);
    FullBatch p = Pairs.FAR.draw(kind, true, 1, 3, 2);
    double[][] exact = FullGradientOracle.of(Divergence.KL, q, p, new double[] {1}, true).values;
    double[][] parameters = {q.mean(), q.matrix(), p.mean(), p.matrix()};
    for (int part = 0; part < 4; part++) {
      for (int at = 0; at < parameters[part].length; at++) {
        double x = parameters[part][at];
        if (x != 0) { // above the diagonal
          parameters[part][at] = x + 0x1p-20;
          BigFloat above = new FullOracle(q, p).kl(0, 0);
          parameters[part][at] = x - 0x1p-20;
          double difference = above.minus(new FullOracle(q, p).kl(0, 0)).toDouble();
          parameters[part][at] = x;
          assertThat(difference * 0x1p19)
              .isCloseTo(exact[part][at], Percentage.withPercentage(1e-4));
        }
      }
    }
  }

  /** More columns than a chunk of products has, of which some are rows of q. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void chunks(Backend backend) {
    for (Pairs pairs : List.of(Pairs.FAR, Pairs.OFFSET)) {
      FullBatch q = pairs.draw(FullBatch.Kind.PACKED_LOG, false, 17, 3, 1);
      FullBatch p = pairs.draw(FullBatch.Kind.PACKED_LOG, false, 70, 3, 2);
      System.arraycopy(q.mean(), 0, p.mean(), 60 * 3, 8 * 3);
      System.arraycopy(q.matrix(), 0, p.matrix(), 60 * 6, 8 * 6);
      double[] g = new Random(4).doubles(17 * 70, -1, 1).toArray();
      Arrays.fill(g, 0, 60, 0); // row 0 counts where it equals a column
      Arrays.fill(g, 61, 70, 0);
      for (Divergence divergence : DIVERGENCES) {
        try (KlEngine engine =
            KlEngine.builder().divergence(divergence).backend(backend).threads(3).build()) {
          double[][] out = arrays(q, p);
          gradient(engine, out).pairwise(q.gaussians(), p.gaussians(), g);
          check(divergence.name() + pairs, divergence, q, p, g, out, 4);
          assertThat(Arrays.copyOf(out[1], 6)).containsOnly(0);
        }
      }
    }
  }

  /** The weights are those of the exact divergences. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void logSumExp(Backend backend) {
    FullBatch q = Pairs.FAR.draw(FullBatch.Kind.PACKED_LOG, false, 5, 3, 1);
    FullBatch p = Pairs.FAR.draw(FullBatch.Kind.SCALE_TRIL, false, 11, 3, 2);
    double[] exact = FullOracle.pairwise(q, p);
    double[] rows = new Random(5).doubles(5, -1, 1).toArray();
    double[] w = new Random(6).doubles(11, -3, 0).toArray();
    w[4] = Double.NEGATIVE_INFINITY;
    double[] g = new double[exact.length];
    for (int i = 0; i < 5; i++) {
      double sum = 0;
      for (int k = i * 11; k < (i + 1) * 11; k++) {
        g[k] = Math.exp(w[k % 11] - exact[k]);
        sum += g[k];
      }
      for (int k = i * 11; k < (i + 1) * 11; k++) {
        g[k] *= -rows[i] / sum;
      }
    }
    try (KlEngine engine = Engines.on(backend)) {
      double[][] out = arrays(q, p);
      gradient(engine, out).weightedLogSumExp(q.gaussians(), p.gaussians(), w, rows);
      check("logSumExp", Divergence.KL, q, p, g, out, 4);
    }
  }

  /** A gradient of equal Gaussians is exactly 0, and that of q and itself the sum of both. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void equalGaussiansAndOneBatch(Backend backend) {
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        for (FullBatch.Kind kind : KINDS) {
          FullBatch one = Pairs.FAR.draw(kind, true, 1, 5, 1);
          double[][] zero = arrays(one, one);
          KlGradient gradient = gradient(engine, zero);
          gradient.pairwise(one.gaussians(), one.gaussians(), new double[] {-3});
          assertZero(zero);
          gradient.aligned(one.gaussians(), one.gaussians(), new double[] {2});
          assertZero(zero);
        }
        FullBatch q = Pairs.FAR.draw(FullBatch.Kind.PACKED, true, 9, 3, 1);
        double[] g = new Random(1).doubles(81, -1, 1).toArray();
        double[][] apart = arrays(q, q);
        gradient(engine, apart).pairwise(q.gaussians(), q.gaussians(), g);
        double[][] sum = arrays(q, q);
        FullGaussians same = q.gaussians();
        engine.gradient().q(sum[0], sum[1]).pairwise(same, same, g);
        for (int part = 0; part < 2; part++) {
          for (int k = 0; k < sum[part].length - 1; k++) {
            assertThat(sum[part][k]).isEqualTo(apart[part][k] + apart[part + 2][k]);
          }
        }
      }
    }
  }

  private static void assertZero(double[][] parts) {
    for (double[] part : parts) {
      assertThat(Arrays.copyOf(part, part.length - 1)).containsOnly(0); // nor −0
    }
  }

  /** Bits do not depend on threads or on the backend, nor on whether the other gradient is stored. */
  @Test
  void bits() {
    FullBatch q = Pairs.FAR.draw(FullBatch.Kind.PACKED_LOG, true, 70, 5, 1);
    FullBatch p = Pairs.FAR.draw(FullBatch.Kind.PACKED_LOG, true, 45, 5, 2);
    FullGaussians a = q.gaussians();
    FullGaussians b = p.gaussians();
    double[] g = new Random(1).doubles(70 * 45, -1, 1).toArray();
    for (Divergence divergence : DIVERGENCES) {
      double[][] first = null;
      for (Backend backend : Engines.backends().toList()) {
        for (int threads : Engines.threadCounts(backend)) {
          try (KlEngine engine =
              KlEngine.builder().divergence(divergence).backend(backend).threads(threads).build()) {
            double[][] out = arrays(q, p);
            gradient(engine, out).pairwise(a, b, g);
            double[][] apart = arrays(q, p);
            engine.gradient().q(apart[0], apart[1]).pairwise(a, b, g);
            engine.gradient().p(apart[2], apart[3]).pairwise(a, b, g);
            for (int k = 0; k < 4; k++) { // without what is behind
              out[k] = Arrays.copyOf(out[k], out[k].length - 1);
              apart[k] = Arrays.copyOf(apart[k], out[k].length);
            }
            first = first == null ? out : first;
            assertThat(out).as("%s, %d threads", backend, threads).isDeepEqualTo(first);
            assertThat(apart).isDeepEqualTo(first);
          }
        }
      }
    }
  }

  /** Of a factor with a negative diagonal, and of one for all Gaussians: derivatives by what was given. */
  @Test
  void factorsAsGiven() {
    double[] mean = {1, 2, 3, 4};
    double[] given = {-2, 0, 0.5, 1.5};
    double[] turned = {2, 0, -0.5, 1.5};
    double[] other = {1, 0, 0.25, 3};
    FullGaussians p = FullGaussians.ofScaleTril(new double[4], concat(other, other), 2);
    double[] g = {1, 2};
    try (KlEngine engine = KlEngine.builder().build()) {
      double[][] shared = new double[2][8];
      double[][] expected = new double[2][8];
      engine
          .gradient()
          .q(shared[0], shared[1])
          .aligned(FullGaussians.ofScaleTril(mean, given, 2), p, g);
      engine
          .gradient()
          .q(expected[0], expected[1])
          .aligned(FullGaussians.ofScaleTril(mean, concat(turned, turned), 2), p, g);
      for (int k : new int[] {0, 2, 4, 6}) {
        expected[1][k] *= -1;
      }
      assertThat(shared).isDeepEqualTo(expected);
      assertThat(expected[1][0]).isNotZero();
      Gaussians rows = FullGaussians.ofScaleTril(mean, given, 2).slice(1, 2);
      double[][] row = new double[2][4];
      engine.gradient().q(row[0], row[1]).aligned(rows, p.slice(1, 2), new double[] {2});
      assertThat(row[1]).isEqualTo(Arrays.copyOfRange(expected[1], 4, 8));
    }
  }

  private static double[] concat(double[] a, double[] b) {
    double[] both = Arrays.copyOf(a, a.length + b.length);
    System.arraycopy(b, 0, both, a.length, b.length);
    return both;
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmCallsAllocateNothing(Backend backend) {
    FullBatch drawn = Pairs.FAR.draw(FullBatch.Kind.PACKED_LOG, false, 21, 5, 1);
    FullGaussians q = drawn.gaussians();
    FullBatch others = Pairs.FAR.draw(FullBatch.Kind.PACKED_LOG, false, 21, 5, 2);
    FullGaussians p = others.gaussians();
    double[] matrix = new double[21 * 21];
    double[] g = new double[21];
    Arrays.fill(matrix, 1);
    Arrays.fill(g, 1);
    try (KlEngine engine = Engines.on(backend)) {
      KlGradient gradient = gradient(engine, arrays(drawn, others));
      WarmCalls.allocateNothing("pairwise", 50, () -> gradient.pairwise(q, p, matrix));
      WarmCalls.allocateNothing("logSumExp", 50, () -> gradient.logSumExp(q, p, g));
      WarmCalls.allocateNothing("standard", 50, () -> gradient.toStandardNormal(q, g));
      WarmCalls.allocateNothing("aligned", 50, () -> gradient.aligned(q, p, g));
    }
  }

  /** A pair whose divergence is +∞ has no gradient, unless it does not count. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void beyondDouble(Backend backend) {
    double[] factors = {1e-200, 0, 0, 1, 1, 0, 0, 1};
    FullGaussians p = FullGaussians.ofScaleTril(new double[] {0, 0, 1e150, 2}, factors, 2);
    FullGaussians q =
        FullGaussians.ofScaleTril(new double[] {1e150, 2}, new double[] {1, 0, 0, 2}, 2);
    double[][] to = new double[2][4];
    try (KlEngine engine = Engines.on(backend)) {
      KlGradient gradient = engine.gradient().q(to[0], to[1]);
      assertRejected(
          () -> gradient.pairwise(q, p, new double[] {1, 1}),
          "the gradient of the divergence of Gaussians 0 and 0 is beyond double's range");
      gradient.pairwise(q, p, new double[] {0, 1});
      assertThat(to[0]).containsOnly(0);
      assertThat(to[1]).containsExactly(0, 0, 0, 1.5);
      gradient.logSumExp(q, p, new double[] {-1});
      assertThat(to[0]).containsOnly(0);
      assertThat(to[1]).containsExactly(0, 0, 0, 1.5);
    }
  }

  /** The same of a divergence whose derivative by one batch alone is finite, whichever is wanted. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void infiniteDivergence(Backend backend) {
    FullGaussians p = FullGaussians.ofScaleTril(new double[] {1, 2}, new double[] {1, 3}, 1);
    FullGaussians far = FullGaussians.ofScaleTril(new double[] {1e200}, new double[] {1}, 1);
    FullGaussians large = FullGaussians.ofScaleTril(new double[1], new double[] {1e170}, 1);
    double[][] to = new double[2][2];
    try (KlEngine engine = Engines.on(backend)) {
      for (FullGaussians q : List.of(far, large)) {
        KlGradient byQ = engine.gradient().q(new double[1], new double[1]);
        KlGradient byP = engine.gradient().p(to[0], to[1]);
        for (KlGradient gradient : List.of(byQ, byP)) {
          assertRejected(
              () -> gradient.pairwise(q, p, new double[] {1, 1}),
              "the gradient of the divergence of Gaussians 0 and 0 is beyond double's range");
        }
      }
    }
  }

  /** The same where the inverse of a factor's diagonal is; of equal Gaussians it is 0 all the same. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void subnormalFactors(Backend backend) {
    FullGaussians one = FullGaussians.ofScaleTril(new double[2], new double[] {1, 0, 0, 2}, 2);
    double[] factors = {1e-310, 0, 0, 1, 1, 0, 0, 1};
    FullGaussians two = FullGaussians.ofScaleTril(new double[4], factors, 2);
    FullGaussians same = FullGaussians.ofScaleTril(new double[4], factors, 2);
    FullGaussians others =
        FullGaussians.ofScaleTril(new double[4], new double[] {2e-310, 0, 0, 1, 1, 0, 0, 1}, 2);
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        double[][] to = {new double[4], new double[8], new double[2], new double[4]};
        KlGradient gradient = engine.gradient().q(to[0], to[1]).p(to[2], to[3]);
        gradient.pairwise(two, one, new double[] {0, 1});
        assertThat(Arrays.copyOf(to[1], 7)).containsOnly(0);
        assertThat(to[1][7]).isNotZero();
        gradient = engine.gradient().q(to[2], to[3]).p(to[0], to[1]);
        gradient.pairwise(one, two, new double[] {0, 1});
        assertThat(Arrays.copyOf(to[1], 7)).containsOnly(0);
        assertThat(to[1][7]).isNotZero();
        gradient = engine.gradient().q(to[0], to[1]);
        gradient.toStandardNormal(two, new double[] {0, 1});
        assertThat(to[1]).containsOnly(0);
        gradient.aligned(two, same, new double[] {1, 1});
        assertThat(to[1]).containsOnly(0);
        KlGradient all = gradient;
        assertRejected(
            () -> all.aligned(two, others, new double[] {1, 1}),
            "Gaussians 0 and 0 is beyond double's range");
      }
    }
  }

  @Test
  void errors() {
    FullGaussians q = Pairs.FAR.draw(FullBatch.Kind.SCALE_TRIL, true, 2, 2, 1).gaussians();
    FullGaussians covariances =
        Pairs.FAR.draw(FullBatch.Kind.COVARIANCE, true, 2, 2, 1).gaussians();
    DiagonalGaussians diagonal = DiagonalGaussians.ofStd(new float[4], new float[] {1, 1, 1, 1}, 2);
    double[] g = {1, 1, 1, 1};
    try (KlEngine engine = KlEngine.builder().build()) {
      KlGradient gradient = engine.gradient().q(new double[4], new double[8]);
      assertRejected(() -> gradient.pairwise(q, covariances, g), "p was not made of factors L");
      assertRejected(() -> gradient.pairwise(diagonal, q, g), "p has full covariances and q has");
      assertRejected(() -> gradient.pairwise(q, diagonal, g), "q has full covariances and p has");
      assertRejected(
          () -> engine.gradient().q(new double[4], new double[7]).pairwise(q, q, g),
          "q's gradient by scales has 7 elements but 8");
      assertRejected(
          () -> gradient.pairwise(q, q, new double[] {1, 1, Double.NaN, 1}),
          "cotangent, row 1, column 0, is NaN; it must be finite");
    }
    try (KlEngine engine =
        KlEngine.builder().divergence(Divergence.SQUARED_WASSERSTEIN_2).build()) {
      assertRejected(
          () -> engine.gradient().pairwise(q, q, g), "q has full covariances, whose gradients");
    }
  }

  private static void assertRejected(ThrowingCallable call, String message) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  /** An engine's threads are used again, and a gradient for many calls. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void holdsNothingOfAnInterruptedCall(Backend backend) throws InterruptedException {
    try (KlEngine engine = Engines.on(backend)) {
      KlGradient gradient = engine.gradient();
      List<WeakReference<Object>> held = interrupted(gradient);
      for (int i = 0; i < 20 && held.stream().anyMatch(one -> one.get() != null); i++) {
        System.gc();
        Thread.sleep(20);
      }
      assertThat(held).extracting(WeakReference::get).containsOnlyNulls();
      Reference.reachabilityFence(gradient);
    }
  }

  private static List<WeakReference<Object>> interrupted(KlGradient gradient) {
    int n = 40;
    int d = 8;
    FullGaussians q = FullBatch.random(true, n, d, 10, 0, new Random(1)).gaussians();
    float[] mean = new float[n * d];
    double[] cotangent = new double[n * n];
    gradient.q(mean, new float[n * d * d]);
    gradient.q(new double[n * d], new double[n * d * d]); // in place of those
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> gradient.pairwise(q, q, cotangent))
        .isInstanceOf(CancellationException.class);
    assertThat(Thread.interrupted()).isTrue();
    return Stream.of(q.batch, mean, cotangent).map(WeakReference<Object>::new).toList();
  }
}
