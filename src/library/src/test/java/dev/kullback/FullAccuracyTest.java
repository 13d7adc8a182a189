package dev.kullback;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.FullCheck;
import dev.kullback.testing.FullCheck.Due;
import dev.kullback.testing.FullOracle;
import dev.kullback.testing.OtherCases;
import dev.kullback.testing.Share;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Full covariances against the oracle. */
@Tag("device")
@Tag("vector")
class FullAccuracyTest {
  private static final int[] DIMENSIONS = {1, 2, 3, 8, 31, 65};

  private static int size(int dimension) {
    return dimension < 30 ? 19 : 5;
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void conditions(Backend backend) {
    conditions(backend, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void otherConditions(Backend backend) {
    conditions(backend, Share.OTHERS);
  }

  private static void conditions(Backend backend, Share share) {
    for (int d : DIMENSIONS) {
      for (boolean isDouble : new boolean[] {false, true}) {
        double[] conditions =
            isDouble ? new double[] {1, 1e2, 1e4, 1e6, 1e8, 1e12} : new double[] {1, 1e2, 1e4, 1e6};
        for (int k = 0; k < conditions.length; k++) {
          if (!share.has(d + k)) {
            continue;
          }
          double condition = conditions[k];
          Random random = new Random(d);
          FullBatch q = FullBatch.random(isDouble, size(d), d, condition, 0, random);
          FullBatch p = FullBatch.random(isDouble, size(d) + 2, d, condition, 0, random);
          String what =
              "D=%d, %s, condition %.0e".formatted(d, isDouble ? "double" : "float", condition);
          FullCheck.check(backend, what, q, p, Due.AIM);
          FullCheck.check(backend, what + ", self", q, q, Due.AIM);
        }
      }
    }
  }

  /** One dimension past a power of two, entries of K in several chunks. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void largeDimension(Backend backend) {
    FullBatch q = FullBatch.random(true, 2, 129, 1e3, 0, new Random(1));
    FullBatch p = FullBatch.random(true, 3, 129, 1e3, 0, new Random(2));
    FullCheck.check(backend, "D=129", q, p, Due.AIM);
  }

  /** Batches whose Gaussians share a matrix, with themselves, with each other, and with one of another matrix. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sharedMatrices(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (FullBatch.Kind kind : List.of(FullBatch.Kind.SCALE_TRIL, FullBatch.Kind.COVARIANCE)) {
        for (int d : new int[] {1, 9}) {
          for (double condition : new double[] {10, isDouble ? 1e8 : 1e4}) {
            for (double spread : new double[] {1, isDouble ? 1e-9 : 1e-5}) {
              Random random = new Random(d);
              FullBatch drawn = FullBatch.random(isDouble, 1, d, condition, 3, random).as(kind);
              FullBatch q = sharing(drawn, 17, spread, random);
              FullBatch p = sharing(drawn, 18, spread, random);
              FullBatch other = sharing(changed(drawn, 1e-3 / condition, random), 9, 1, random);
              String what =
                  "%s, %s, condition %.0e, spread %.0e, D=%d"
                      .formatted(kind, isDouble ? "double" : "float", condition, spread, d);
              checkShared(backend, what, q, q);
              checkShared(backend, what, q, p);
              checkShared(backend, what, q, other);
              checkShared(backend, what, other, p);
            }
          }
        }
      }
    }
  }

  /** Gaussians of the only matrix of a batch, whose means lie about its mean. */
  private static FullBatch sharing(FullBatch one, int n, double spread, Random random) {
    int d = one.dimension();
    double[] mean = new double[n * d];
    Arrays.setAll(mean, k -> one.mean()[k % d] + spread * random.nextGaussian());
    double[] matrix = new double[n * one.matrix().length];
    Arrays.setAll(matrix, k -> one.matrix()[k % one.matrix().length]);
    return new FullBatch(one.kind(), one.isDouble(), mean, matrix, d);
  }

  private static void checkShared(Backend backend, String what, FullBatch q, FullBatch p) {
    Gaussians a = shared(q);
    FullCheck.check(backend, what, q, a, p, p == q ? a : shared(p), Due.AIM);
    FullCheck.check(backend, what + ", written out", q, q.gaussians(), p, shared(p), Due.AIM);
    FullCheck.check(backend, what + ", of written out", q, a, p, p.gaussians(), Due.AIM);
  }

  private static Gaussians shared(FullBatch b) {
    double[] one = Arrays.copyOf(b.matrix(), b.matrix().length / b.size());
    return b.isDouble()
        ? Gaussians.of(b.kind().scaleKind(), b.mean(), one, b.dimension())
        : Gaussians.of(
            b.kind().scaleKind(), Batch.narrowed(b.mean()), Batch.narrowed(one), b.dimension());
  }

  /** Every form of the matrices, against exact arithmetic on what it was given. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void kinds(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      double condition = isDouble ? 1e8 : 1e4; // in float, 1e6 may round to an indefinite matrix
      FullBatch q = FullBatch.random(isDouble, 9, 7, condition, 0, new Random(1));
      FullBatch p = FullBatch.random(isDouble, 10, 7, condition, 0, new Random(2));
      for (FullBatch.Kind a : FullBatch.Kind.values()) {
        FullBatch.Kind b = FullBatch.Kind.values()[(a.ordinal() + 2) % 5];
        for (FullBatch.Kind kind : new FullBatch.Kind[] {a, b}) {
          String what = "%s of %s, %s".formatted(a, kind, isDouble ? "double" : "float");
          FullCheck.check(backend, what, q.as(a), p.as(kind), Due.AIM);
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void meansFarFromZeroAndFromEachOther(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int d : new int[] {1, 3, 16}) {
        Random random = new Random(d);
        FullBatch q = FullBatch.random(isDouble, 17, d, 100, 500, random);
        FullBatch p = FullBatch.random(isDouble, 18, d, 100, 500, random);
        FullBatch far = FullBatch.random(isDouble, 18, d, 100, -500, random);
        FullCheck.check(backend, "means at 500, D=" + d, q, p, Due.AIM);
        FullCheck.check(backend, "means at 500 and -500, D=" + d, q, far, Due.AIM);
        FullBatch both = concatenate(p, far);
        FullCheck.check(backend, "clusters at 500 and -500, D=" + d, q, both, Due.AIM);
        FullBatch narrow = scaled(both, 1e-3);
        FullCheck.check(backend, "narrow clusters, D=" + d, scaled(q, 1e-3), narrow, Due.AIM);
      }
    }
  }

  /** Copies with every parameter changed by a relative {@code change}; KL down to 1e-20. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nearDuplicates(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (double change : new double[] {1e-2, 1e-5, 1e-9}) {
        for (double condition : new double[] {10, 1e6}) {
          for (int d : new int[] {1, 2, 9}) {
            Random random = new Random(d);
            FullBatch q = FullBatch.random(isDouble, 17, d, condition, 3, random);
            FullBatch p = changed(q, change, random);
            String what = "change %.0e, condition %.0e, D=%d".formatted(change, condition, d);
            FullCheck.check(backend, what, q, p, Due.AIM);
          }
        }
      }
    }
  }

  static Stream<Arguments> kindsByBackend() {
    return Engines.backends()
        .flatMap(b -> Arrays.stream(FullBatch.Kind.values()).map(kind -> Arguments.of(b, kind)));
  }

  static Stream<Arguments> diagonalKindsByBackend() {
    return Engines.backends()
        .flatMap(b -> Arrays.stream(Batch.Kind.values()).map(kind -> Arguments.of(b, kind)));
  }

  /** Relative changes that the type holds. */
  private static double[] changes(boolean isDouble) {
    return isDouble
        ? new double[] {1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13}
        : new double[] {1e-3, 1e-5, 1e-7};
  }

  /** Copies whose given numbers differ by a relative {@code change}, of every other one the matrix alone. */
  @ParameterizedTest
  @MethodSource("kindsByBackend")
  void nearDuplicatesAsGiven(Backend backend, FullBatch.Kind kind) {
    nearDuplicatesAsGiven(backend, kind, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest
  @MethodSource("kindsByBackend")
  void otherNearDuplicatesAsGiven(Backend backend, FullBatch.Kind kind) {
    nearDuplicatesAsGiven(backend, kind, Share.OTHERS);
  }

  private static void nearDuplicatesAsGiven(Backend backend, FullBatch.Kind kind, Share share) {
    for (boolean isDouble : new boolean[] {false, true}) {
      double[] changes = changes(isDouble);
      for (int k = 0; k < changes.length; k++) {
        double change = changes[k];
        for (double condition : new double[] {1, 10, 100, 1e4}) {
          if (condition * change > 0.1) {
            continue; // perhaps not positive definite
          }
          for (int d : new int[] {1, 2, 3, 9}) {
            if (!share.has(kind.ordinal() + k + (int) Math.log10(condition) + d)) {
              continue;
            }
            Random random = new Random(d);
            FullBatch drawn = FullBatch.random(isDouble, 5, d, condition, 3, random);
            FullBatch q = scaled(drawn, 1.7).as(kind);
            FullBatch p = changed(q, change, random);
            String what =
                "%s, %s, change %.0e, condition %.0e, D=%d"
                    .formatted(kind, isDouble ? "double" : "float", change, condition, d);
            FullCheck.check(backend, what, q, p, Due.CONTRACT);
            FullCheck.aligned(backend, what, q, p, Due.CONTRACT);
          }
        }
      }
    }
  }

  /** Factors, and near them what they make in another form. */
  @ParameterizedTest
  @MethodSource("kindsByBackend")
  void nearDuplicatesGivenOtherwise(Backend backend, FullBatch.Kind kind) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (double change : changes(isDouble)) {
        for (int d : new int[] {1, 2, 5}) {
          Random random = new Random(d);
          // well conditioned
          double[] tril = new double[5 * d * d];
          for (int k = 0; k < tril.length; k++) {
            int r = k / d % d;
            int c = k % d;
            tril[k] = c > r ? 0 : c < r ? random.nextInt(3) - 1 : 4 << random.nextInt(2);
          }
          double[] mean = random.doubles(5L * d).toArray();
          FullBatch q = new FullBatch(FullBatch.Kind.SCALE_TRIL, isDouble, mean, tril, d);
          FullBatch p = changed(q.as(kind), change, random);
          String what =
              "%s, %s, change %.0e, D=%d".formatted(kind, isDouble ? "double" : "float", change, d);
          FullCheck.check(backend, what, q, p, Due.CONTRACT);
          FullCheck.check(backend, what + ", reversed", p, q, Due.CONTRACT);
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("diagonalKindsByBackend")
  void nearDuplicatesOfDiagonal(Backend backend, Batch.Kind kind) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (double change : changes(isDouble)) {
        for (int d : new int[] {1, 2, 9}) {
          Random random = new Random(d);
          double[] mean = random.doubles(5L * d, 1, 2).toArray();
          double[] std = random.doubles(5L * d, 0.1, 2).toArray();
          Batch diagonal = Batch.ofStd(kind, isDouble, mean, std, d);
          FullBatch written = FullBatch.of(diagonal);
          FullBatch near = changed(written, change, random);
          String what =
              "%s, %s, change %.0e, D=%d".formatted(kind, isDouble ? "double" : "float", change, d);
          DiagonalGaussians a = diagonal.gaussians();
          FullGaussians b = near.gaussians();
          FullCheck.check(backend, what, written, a, near, b, Due.CONTRACT);
          FullCheck.check(backend, what + ", reversed", near, b, written, a, Due.CONTRACT);
        }
      }
    }
  }

  /** A diagonal batch, and a full one whose numbers are that, or the next but {@code steps}, from one end of double to the other. */
  @ParameterizedTest
  @MethodSource("diagonalKindsByBackend")
  void neighboursOfDiagonalOfAnyMagnitude(Backend backend, Batch.Kind kind) {
    // where a factor has no digits below double's least, log-variances must differ by more
    double[] scale = Arrays.stream(FullBatch.magnitudes(kind)).filter(s -> s > -1374).toArray();
    for (int steps = 0; steps < 3; steps++) {
      double[] next = scale.clone();
      for (int k = 0; k < next.length; k++) {
        for (int i = 0; i < steps; i++) {
          next[k] = Math.nextAfter(next[k], 1);
        }
      }
      double[] mean = new double[scale.length];
      Batch diagonal = new Batch(kind, true, mean, scale, 1);
      FullBatch written = FullBatch.of(diagonal);
      FullBatch near = FullBatch.of(new Batch(kind, true, mean, next, 1));
      DiagonalGaussians a = diagonal.gaussians();
      FullGaussians b = near.gaussians();
      String what = kind + ", " + steps + " steps";
      FullCheck.check(backend, what, written, a, near, b, Due.CONTRACT);
      FullCheck.check(backend, what + ", reversed", near, b, written, a, Due.CONTRACT);
    }
  }

  /** Matrices that a change of units makes tiny, huge, or both, of covariances and precisions. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void unitsOfEachDimension(Backend backend) {
    double[][] units = {
      {1e-150, 1e-150, 1e-150},
      {1e-152, 1e-153, 1e-151},
      {1, 1e-150, 1e-75},
      {1e-140, 1, 1e140},
      {1e150, 1e-150, 1},
      {1e152, 1e152, 1e152}
    };
    for (FullBatch.Kind kind :
        new FullBatch.Kind[] {FullBatch.Kind.COVARIANCE, FullBatch.Kind.PRECISION}) {
      for (int d : new int[] {2, 3}) {
        for (double[] unit : units) {
          for (double change : new double[] {1e-2, 1e-5, 1e-9, 1e-13}) {
            Random random = new Random(d);
            FullBatch drawn = FullBatch.random(true, 5, d, 10, 0, random).as(kind);
            double[] matrix = drawn.matrix().clone();
            double[] mean = new double[5 * d];
            for (int k = 0; k < matrix.length; k++) {
              matrix[k] = matrix[k] * unit[k / d % d] * unit[k % d];
            }
            FullBatch q = new FullBatch(kind, true, mean, matrix, d);
            FullBatch p = changed(q, change, random);
            String what =
                "%s, units %s, change %.0e".formatted(kind, Arrays.toString(unit), change);
            FullCheck.check(backend, what, q, p, Due.AIM);
          }
        }
      }
    }
  }

  /** A direction of almost no variance; and units from 1e-30 to 1e30. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nearlySingularAndAnyUnit(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      for (double unit : new double[] {1e-15, 1, 1e15}) {
        FullBatch q =
            scaled(
                FullBatch.random(isDouble, 9, 5, isDouble ? 1e14 : 1e10, 0, new Random(1)), unit);
        FullBatch p =
            scaled(
                FullBatch.random(isDouble, 9, 5, isDouble ? 1e14 : 1e10, 0, new Random(2)), unit);
        FullCheck.check(backend, "nearly singular, unit " + unit, q, p, Due.AIM);
        FullBatch good = scaled(FullBatch.random(isDouble, 9, 5, 10, 0, new Random(1)), unit);
        FullCheck.check(backend, "unit " + unit, good, q, Due.AIM);
        FullCheck.check(backend, "unit " + unit, q, good, Due.AIM);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("diagonalKindsByBackend")
  void mixedWithDiagonal(Backend backend, Batch.Kind kind) {
    for (boolean isDouble : new boolean[] {false, true}) {
      Random random = new Random(1);
      FullBatch full = FullBatch.random(isDouble, 11, 6, 100, 0, random);
      double[] mean = random.doubles(13 * 6, 0, 1).toArray();
      double[] std = random.doubles(13 * 6, 0.1, 2).toArray();
      Batch diagonal = Batch.ofStd(kind, isDouble, mean, std, 6);
      FullBatch written = FullBatch.of(diagonal);
      FullGaussians a = full.gaussians();
      DiagonalGaussians b = diagonal.gaussians();
      String what = kind + (isDouble ? ", double" : ", float");
      FullCheck.check(backend, "full of diagonal, " + what, full, a, written, b, Due.AIM);
      FullCheck.check(backend, "diagonal of full, " + what, written, b, full, a, Due.AIM);
    }
  }

  @Test
  void theOracleRejectsWhatIsNotPositiveDefinite() {
    FullBatch indefinite =
        new FullBatch(FullBatch.Kind.COVARIANCE, true, new double[2], new double[] {1, 2, 2, 1}, 2);
    assertThatThrownBy(() -> FullOracle.pairwise(indefinite, indefinite))
        .isInstanceOf(ArithmeticException.class);
    assertThatThrownBy(BigFloat.ZERO::ln).isInstanceOf(ArithmeticException.class);
    assertThatThrownBy(BigFloat.ONE.negate()::ln).isInstanceOf(ArithmeticException.class);
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

  /** A relative change of every number, symmetric matrices staying so; of means, in every other row. */
  private static FullBatch changed(FullBatch b, double change, Random random) {
    int d = b.dimension();
    double[] mean = b.mean().clone();
    for (int h = 0; h < mean.length; h++) {
      mean[h] *= 1 + h / d % 2 * change * random.nextGaussian();
    }
    double[] matrix = b.matrix().clone();
    for (int k = 0; k < matrix.length; k++) {
      matrix[k] *= 1 + change * (2 * random.nextDouble() - 1);
    }
    if (b.kind() == FullBatch.Kind.COVARIANCE || b.kind() == FullBatch.Kind.PRECISION) {
      for (int k = 0; k < matrix.length; k++) {
        int r = k / d % d;
        int c = k % d;
        matrix[k] = c > r ? matrix[k / (d * d) * d * d + c * d + r] : matrix[k];
      }
    }
    return new FullBatch(b.kind(), b.isDouble(), mean, matrix, d);
  }
}
