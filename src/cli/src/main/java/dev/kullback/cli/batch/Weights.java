package dev.kullback.cli.batch;

import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** The weights of a batch's Gaussians, from a file of them or of their logarithms. */
public final class Weights {
  /** The relative error of a float16 that is the quotient by a sum, where both were rounded. */
  private static final double HALF_RELATIVE = 0x1p-10;

  /** The error of a float16 below 2⁻¹⁴. */
  private static final double HALF_ABSOLUTE = 0x1p-25;

  /** The greatest distance of a sum from 1 that is taken for rounding, however many weights there are. */
  private static final double MOST_ROUNDING = 0.5;

  private final double[] given;
  private final boolean isLog;
  private final boolean isHalf;

  private Weights(double[] given, boolean isLog, boolean isHalf) {
    this.given = given;
    this.isLog = isLog;
    this.isHalf = isHalf;
  }

  /** Makes n equal weights of sum 1. */
  public static Weights equal(int n) {
    double[] weights = new double[n];
    Arrays.fill(weights, 1.0 / n);
    return new Weights(weights, false, false);
  }

  /** Reads the weights of a batch's Gaussians, or their logarithms. */
  public static Weights read(Path file, boolean isLog, Batch batch) {
    Input.limitStdin(0, List.of(file));
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.read(file, f -> Npy.readFloats(f, arena));
      int n = batch.size();
      if (!Arrays.equals(array.shape(), new long[] {n})) {
        throw new UserError(
            file,
            "has shape %s, but %s has %d rows: it must be (%3$d,)"
                .formatted(Batch.text(array.shape()), batch.files().mean(), n));
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
      return new Weights(given, isLog, array.isHalf());
    }
  }

  /** Returns the numbers of the file, which may be logarithms; a new array. */
  public double[] given() {
    return given.clone();
  }

  /** Returns the weights, of any sum, a new array. */
  public double[] values() {
    return isLog ? Arrays.stream(given).map(Math::exp).toArray() : given();
  }

  /**
   * Returns the weights for mixtures whose sum the library accepts to float's rounding. Those of float16 are divided by their sum where
   * float16's rounding explains its distance from 1.
   *
   * @param offsets where each mixture begins, and the end; such as are none are refused later
   * @return a new array
   */
  public double[] ofMixtures(int... offsets) {
    double[] weights = values();
    for (int m = 0; isHalf && m < offsets.length - 1; m++) {
      int from = Math.clamp(offsets[m], 0, weights.length);
      int to = Math.clamp(offsets[m + 1], from, weights.length);
      double sum = 0;
      double rounding = 0;
      for (int i = from; i < to; i++) {
        sum += weights[i];
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

  /** Returns how far rounding to float16 may have moved a weight; an exact 0 is taken for one. */
  private double rounding(double half, double weight) {
    if (half == 0 || weight == 0) {
      return 0;
    }
    double rounding = Math.max(HALF_RELATIVE * Math.abs(half), HALF_ABSOLUTE);
    return isLog ? weight * rounding : rounding;
  }
}
