package dev.kullback.cli.batch;

import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.Type;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The weights of a batch's Gaussians, from a file of them or of their logarithms. */
public final class Weights {
  /** The greatest distance of a sum from 1 that is taken for rounding, however many weights there are. */
  private static final double MOST_ROUNDING = 0.5;

  /** The distance of a sum from 1 that the library accepts. */
  private static final double SUM_TOLERANCE = 1e-5;

  /** The greatest absolute logarithm of a sum that a mixture to be reduced may have, just below 500 ln 2. */
  private static final double MOST_LOG_SUM = 346.5;

  /** Where they are from; null for equal ones. */
  private final @Nullable Path file;

  private final double[] given;
  private final boolean isLog;

  /** Of the file. */
  private final Type type;

  private Weights(@Nullable Path file, double[] given, boolean isLog, Type type) {
    this.file = file;
    this.given = given;
    this.isLog = isLog;
    this.type = type;
  }

  /** Makes n equal weights of sum 1. */
  public static Weights equal(int n) {
    double[] weights = new double[n];
    Arrays.fill(weights, 1.0 / n);
    return new Weights(null, weights, false, Type.FLOAT64);
  }

  /** Reads the weights of a batch's Gaussians, or their logarithms. */
  public static Weights read(Path file, boolean isLog, Batch batch) {
    Input.limitStdin(0, List.of(file));
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.read(file, f -> Npy.readFloats(f, arena));
      int n = batch.size();
      if (!Npy.isColumn(file, array.shape()) || Layout.product(array.shape(), 0) != n) {
        throw new UserError(
            file,
            "has shape %s, but %s has %d rows: it must be %s"
                .formatted(
                    Batch.text(array.shape()),
                    batch.files().mean(),
                    n,
                    (Npy.isTable(file) ? "(%d, 1) or (1, %1$d)" : "(%d,)").formatted(n)));
      }
      double[] given = new double[n];
      for (int i = 0; i < n; i++) {
        double weight = array.value(i);
        if (!(weight < Double.POSITIVE_INFINITY && (isLog || weight >= 0))) {
          throw new UserError(
              file,
              "element %d: %s is %s: it must be %s (counted from 0)"
                  .formatted(
                      i,
                      isLog ? "log-weight" : "weight",
                      weight,
                      isLog ? "finite or -Infinity" : "finite and >= 0"));
        }
        given[i] = weight;
      }
      return new Weights(file, given, isLog, array.type());
    }
  }

  /** Returns the numbers of the file, which may be logarithms; a new array. */
  public double[] given() {
    return given.clone();
  }

  private double[] values() {
    return isLog ? Arrays.stream(given).map(Math::exp).toArray() : given();
  }

  /** Returns the logarithm of the sum of weights, which double may not hold; −∞ where all are 0. */
  public double logSum() {
    return logSum(0, given.length);
  }

  private double logSum(int from, int to) {
    double[] some = Arrays.copyOfRange(given, from, to);
    double most = Arrays.stream(some).reduce(isLog ? Double.NEGATIVE_INFINITY : 0, Math::max);
    double log = isLog ? most : Math.log(most);
    return Double.isInfinite(log) ? log : log + Math.log(sumOver(some, most));
  }

  private double sumOver(double[] some, double most) {
    return Arrays.stream(some).map(w -> over(w, most)).sum();
  }

  /** Returns the quotient of a weight by another, given as the file has them. */
  private double over(double weight, double other) {
    return isLog ? Math.exp(weight - other) : weight / other;
  }

  /** Whether {@link #ofReduction} has the sum 1, which the file's has not. */
  public boolean isScaled() {
    return !(Math.abs(logSum()) <= MOST_LOG_SUM);
  }

  /**
   * Returns the weights for a mixture that is reduced: as they are given or, where their sum is so large or small that only their proportions
   * can be told, of sum 1. Of float16 or bfloat16, they are divided by their sum as {@link #ofMixtures} does.
   */
  public double[] ofReduction() {
    if (Double.isInfinite(logSum())) {
      throw new UserError(
          Objects.requireNonNull(file),
          "every %s: the mixture has no component"
              .formatted(isLog ? "log-weight is -Infinity" : "weight is 0"));
    }
    if (!isScaled()) {
      return rounded(0, given.length);
    }
    double most = Arrays.stream(given).max().orElseThrow();
    double sum = sumOver(given, most);
    return Arrays.stream(given).map(w -> over(w, most) / sum).toArray();
  }

  /**
   * Returns the weights for mixtures, whose sums are 1 to float's rounding. Those of float16 or bfloat16 are divided by their sum where its rounding
   * explains its distance from 1.
   *
   * @param offsets where each mixture begins, and the end
   * @return a new array
   * @throws UserError if a sum is another; the library would advise a program
   */
  public double[] ofMixtures(int... offsets) {
    int runs = offsets.length == 2 ? countRuns() : 1;
    if (runs > 1) {
      throw new UserError(
          Objects.requireNonNull(file),
          "has %d runs of sum 1: are these %1$d mixtures? give one at a time, its weights and its Gaussians"
              .formatted(runs));
    }
    for (int m = 0; isLog && m < offsets.length - 1; m++) {
      double log = logSum(offsets[m], offsets[m + 1]);
      if (!(Math.abs(Math.expm1(log)) <= (type.isHalf() ? MOST_ROUNDING : SUM_TOLERANCE))) {
        throw new UserError(
            Objects.requireNonNull(file),
            "the sum of weights is exp(%s); it must be 1%s"
                .formatted(
                    log,
                    Double.isInfinite(log)
                        ? ""
                        : ": subtract that exponent, their logsumexp, from the log-weights"));
      }
    }
    double[] weights = rounded(offsets);
    for (int m = 0; !isLog && m < offsets.length - 1; m++) {
      double sum = sum(weights, offsets[m], offsets[m + 1]);
      if (!(Math.abs(sum - 1) <= SUM_TOLERANCE)) {
        throw new UserError(
            Objects.requireNonNull(file),
            "the sum of weights%s is %s; it must be 1%s"
                .formatted(
                    offsets.length == 2 ? "" : " of mixture " + m,
                    sum,
                    sum > 0 && sum <= Double.MAX_VALUE ? ": divide them by it" : ""));
      }
    }
    return weights;
  }

  /**
   * Finds where mixtures begin whose weights follow one another: each is a run of sum 1. Weights of 0, which count for nothing, go with any.
   *
   * @return where each begins, and the number of weights; only 0 and that where they are of one mixture, or could be cut otherwise
   */
  public int[] runs() {
    double[] weights = values();
    int n = given.length;
    int[] one = {0, n};
    IntStream.Builder offsets = IntStream.builder().add(0);
    double sum = 0;
    double rounding = 0;
    boolean isWhole = false; // whether the sum is 1, so that the next weight begins another run
    int runs = 0;
    for (int i = 0; i < n; i++) {
      if (weights[i] == 0) {
        continue;
      }
      double more = rounding(given[i], weights[i]);
      if (isWhole) {
        if (isOne(sum + weights[i], rounding + more)) {
          return one;
        }
        offsets.add(i);
        sum = 0;
        rounding = 0;
      }
      sum += weights[i];
      rounding += more;
      isWhole = isOne(sum, rounding);
      runs += isWhole ? 1 : 0;
      if (!isWhole && sum > 1) {
        return one;
      }
    }
    return isWhole && runs > 1 ? offsets.add(n).build().toArray() : one;
  }

  /** Counts the mixtures that {@link #runs} finds. */
  public int countRuns() {
    return runs().length - 1;
  }

  private boolean isOne(double sum, double rounding) {
    return Math.abs(sum - 1) <= (type.isHalf() ? Math.min(rounding, MOST_ROUNDING) : SUM_TOLERANCE);
  }

  private static double sum(double[] weights, int from, int to) {
    double sum = 0;
    for (int i = from; i < to; i++) {
      sum += weights[i];
    }
    return sum;
  }

  /** Returns the weights, those of float16 or bfloat16 divided by the sum of each mixture if their rounding explains it. */
  private double[] rounded(int... offsets) {
    double[] weights = values();
    for (int m = 0; type.isHalf() && m < offsets.length - 1; m++) {
      int from = offsets[m];
      int to = offsets[m + 1];
      double sum = sum(weights, from, to);
      double rounding = 0;
      for (int i = from; i < to; i++) {
        rounding += rounding(given[i], weights[i]);
      }
      if (Math.abs(sum - 1) <= Math.min(rounding, MOST_ROUNDING)) {
        for (int i = from; i < to; i++) {
          weights[i] /= sum;
        }
      }
    }
    return weights;
  }

  /** Returns how far rounding to the file's type may have moved a weight; an exact 0 is taken for one. */
  private double rounding(double half, double weight) {
    if (half == 0 || weight == 0) {
      return 0;
    }
    double rounding = Math.max(type.relativeRounding() * Math.abs(half), type.absoluteRounding());
    return isLog ? weight * rounding : rounding;
  }
}
