package dev.kullback;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Full covariances against the oracle. */
@Tag("width")
class FullAccuracyTest {
  private static final int[] DIMENSIONS = {1, 2, 3, 8, 31, 65};

  /** For float the aim; for double what a condition number up to 1e8 leaves. */
  private static Check.Precision precision(boolean isDouble, double condition) {
    return isDouble
        ? new Check.Precision(
            Math.max(1e-12, Math.min(1e-12 * condition, 1e-9)), Double.MIN_NORMAL, Double.MAX_VALUE)
        : new Check.Precision(2e-6, Float.MIN_NORMAL, Double.MAX_VALUE);
  }

  static double check(
      Backend backend, String what, FullBatch q, FullBatch p, Check.Precision precision) {
    double[] expected = FullOracle.pairwise(q, p);
    try (KlEngine engine = Engines.on(backend)) {
      double[] actual = engine.pairwise(q.gaussians(), p.gaussians(), new double[expected.length]);
      double worst = Check.matrix(backend + ", " + what, p.size(), expected, actual, precision);
      if (System.getProperty("show") != null) {
        System.out.printf("%s %s: %.2g%n", backend, what, worst);
      }
      return worst;
    }
  }

  private static int size(int dimension) {
    return dimension < 30 ? 19 : 5;
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void conditions(Backend backend) {
    for (int d : DIMENSIONS) {
      for (boolean isDouble : new boolean[] {false, true}) {
        for (double condition : new double[] {1, 1e2, 1e4, 1e6, 1e8, 1e12}) {
          if (condition > (isDouble ? 1e12 : 1e6)) {
            continue;
          }
          Random random = new Random(d);
          FullBatch q = FullBatch.random(isDouble, size(d), d, condition, 0, random);
          FullBatch p = FullBatch.random(isDouble, size(d) + 2, d, condition, 0, random);
          String what =
              "D=%d, %s, condition %.0e".formatted(d, isDouble ? "double" : "float", condition);
          check(backend, what, q, p, precision(isDouble, condition));
          check(backend, what + ", self", q, q, precision(isDouble, condition));
        }
      }
    }
  }

  /** One dimension past a power of two, entries of K in several chunks. */
  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void largeDimension(Backend backend) {
    FullBatch q = FullBatch.random(true, 2, 129, 1e3, 0, new Random(1));
    FullBatch p = FullBatch.random(true, 3, 129, 1e3, 0, new Random(2));
    check(backend, "D=129", q, p, precision(true, 1e3));
  }

  /** Every form of the matrices, against exact arithmetic on what it was given. */
  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void kinds(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      double condition = isDouble ? 1e8 : 1e4; // in float, 1e6 may round to an indefinite matrix
      FullBatch q = FullBatch.random(isDouble, 9, 7, condition, 0, new Random(1));
      FullBatch p = FullBatch.random(isDouble, 10, 7, condition, 0, new Random(2));
      for (FullBatch.Kind a : FullBatch.Kind.values()) {
        FullBatch.Kind b = FullBatch.Kind.values()[(a.ordinal() + 2) % 5];
        for (FullBatch.Kind kind : new FullBatch.Kind[] {a, b}) {
          String what = "%s of %s, %s".formatted(a, kind, isDouble ? "double" : "float");
          check(backend, what, q.as(a), p.as(kind), precision(isDouble, condition));
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void meansFarFromZeroAndFromEachOther(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int d : new int[] {1, 3, 16}) {
        Random random = new Random(d);
        FullBatch q = FullBatch.random(isDouble, 17, d, 100, 500, random);
        FullBatch p = FullBatch.random(isDouble, 18, d, 100, 500, random);
        FullBatch far = FullBatch.random(isDouble, 18, d, 100, -500, random);
        check(backend, "means at 500, D=" + d, q, p, precision(isDouble, 100));
        check(backend, "means at 500 and -500, D=" + d, q, far, precision(isDouble, 100));
        FullBatch both = concatenate(p, far);
        check(backend, "clusters at 500 and -500, D=" + d, q, both, precision(isDouble, 100));
        FullBatch narrow = scaled(both, 1e-3);
        check(
            backend, "narrow clusters, D=" + d, scaled(q, 1e-3), narrow, precision(isDouble, 100));
      }
    }
  }

  /** Copies with every parameter changed by a relative {@code change}; KL down to 1e-20. */
  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void nearDuplicates(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (double change : new double[] {1e-2, 1e-5, 1e-9}) {
        for (double condition : new double[] {10, 1e6}) {
          for (int d : new int[] {1, 2, 9}) {
            Random random = new Random(d);
            FullBatch q = FullBatch.random(isDouble, 17, d, condition, 3, random);
            FullBatch p = perturbed(q, change, random);
            String what = "change %.0e, condition %.0e, D=%d".formatted(change, condition, d);
            check(backend, what, q, p, precision(isDouble, condition));
          }
        }
      }
    }
  }

  /** A direction of almost no variance; and units from 1e-30 to 1e30. */
  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void nearlySingularAndAnyUnit(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (double unit : new double[] {1e-15, 1, 1e15}) {
        FullBatch q =
            scaled(
                FullBatch.random(isDouble, 9, 5, isDouble ? 1e14 : 1e10, 0, new Random(1)), unit);
        FullBatch p =
            scaled(
                FullBatch.random(isDouble, 9, 5, isDouble ? 1e14 : 1e10, 0, new Random(2)), unit);
        check(backend, "nearly singular, unit " + unit, q, p, precision(isDouble, 1e14));
        FullBatch good = scaled(FullBatch.random(isDouble, 9, 5, 10, 0, new Random(1)), unit);
        check(backend, "unit " + unit, good, q, precision(isDouble, 10));
        check(backend, "unit " + unit, q, good, precision(isDouble, 10));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void mixedWithDiagonal(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (Batch.Kind kind : Batch.Kind.values()) {
        Random random = new Random(1);
        FullBatch full = FullBatch.random(isDouble, 11, 6, 100, 0, random);
        double[] mean = random.doubles(13 * 6, 0, 1).toArray();
        double[] std = random.doubles(13 * 6, 0.1, 2).toArray();
        Batch diagonal = Batch.ofStd(kind, isDouble, mean, std, 6);
        FullBatch written = written(diagonal);
        Check.Precision precision = precision(isDouble, 100);
        try (KlEngine engine = Engines.on(backend)) {
          double[] out = new double[11 * 13];
          double[] expected = FullOracle.pairwise(full, written);
          engine.pairwise(full.gaussians(), diagonal.gaussians(), out);
          Check.matrix("full of diagonal", 13, expected, out, precision);
          expected = FullOracle.pairwise(written, full);
          engine.pairwise(diagonal.gaussians(), full.gaussians(), out);
          Check.matrix("diagonal of full", 11, expected, out, precision);
        }
      }
    }
  }

  /** {@code aligned} and {@code toStandardNormal}. */
  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void rowFunctions(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int d : new int[] {1, 3, 12}) {
        Random random = new Random(d);
        FullBatch q = FullBatch.random(isDouble, 9, d, 100, 0, random);
        FullBatch p = perturbed(q, 0.1, random);
        double[] unit = new double[d * d];
        for (int k = 0; k < d; k++) {
          unit[k * d + k] = 1;
        }
        FullBatch standard =
            new FullBatch(FullBatch.Kind.SCALE_TRIL, isDouble, new double[d], unit, d);
        double[] matrix = FullOracle.pairwise(q, p);
        double[] expected = new double[9];
        for (int i = 0; i < 9; i++) {
          expected[i] = matrix[i * 9 + i];
        }
        try (KlEngine engine = Engines.on(backend)) {
          FullGaussians a = q.gaussians();
          double[] out = engine.aligned(a, p.gaussians(), new double[9]);
          Check.matrix("aligned", 1, expected, out, precision(isDouble, 100));
          Check.matrix("aligned", 1, expected, engine.aligned(a, p.gaussians()));
          expected = FullOracle.pairwise(q, standard);
          engine.toStandardNormal(a, out);
          Check.matrix("standard", 1, expected, out, precision(isDouble, 100));
          Check.matrix("standard", 1, expected, engine.toStandardNormal(a));
        }
      }
    }
  }

  private static FullBatch concatenate(FullBatch a, FullBatch b) {
    return new FullBatch(
        a.kind(),
        a.isDouble(),
        join(a.mean(), b.mean()),
        join(a.matrix(), b.matrix()),
        a.dimension());
  }

  private static double[] join(double[] a, double[] b) {
    return DoubleStream.concat(Arrays.stream(a), Arrays.stream(b)).toArray();
  }

  private static FullBatch scaled(FullBatch b, double unit) {
    return new FullBatch(
        b.kind(),
        b.isDouble(),
        Arrays.stream(b.mean()).map(x -> x * unit).toArray(),
        Arrays.stream(b.matrix()).map(x -> x * unit).toArray(),
        b.dimension());
  }

  private static FullBatch perturbed(FullBatch b, double change, Random random) {
    return new FullBatch(
        b.kind(),
        b.isDouble(),
        Arrays.stream(b.mean()).map(x -> x * (1 + change * random.nextGaussian())).toArray(),
        Arrays.stream(b.matrix()).map(x -> x * (1 + change * random.nextDouble())).toArray(),
        b.dimension());
  }

  /** A diagonal batch as factors; logarithms and roots round in double. */
  private static FullBatch written(Batch b) {
    int d = b.dimension();
    double[] tril = new double[b.size() * d * d];
    for (int h = 0; h < b.mean().length; h++) {
      double s = b.scale()[h];
      tril[h * d + h % d] =
          switch (b.kind()) {
            case STD -> s;
            case VARIANCE -> Math.sqrt(s);
            case LOG_VARIANCE -> Math.exp(0.5 * s);
            case PRECISION -> 1 / Math.sqrt(s);
          };
    }
    return new FullBatch(FullBatch.Kind.SCALE_TRIL, true, b.mean(), tril, d);
  }
}
