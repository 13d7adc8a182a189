package dev.kullback.testing;

import dev.kullback.DiagonalGaussians;
import dev.kullback.Gaussians;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import java.util.Arrays;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;

/**
 * The parameters of a batch as the tests know them: what the library is given, exactly. Values of a
 * float batch are floats widened to double.
 */
public record Batch(Kind kind, boolean isDouble, double[] mean, double[] scale, int dimension) {

  /** Kinds of scales, each with its conversion from a standard deviation. */
  public enum Kind {
    STD("std", s -> s),
    VARIANCE("variance", s -> s * s),
    LOG_VARIANCE("logVariance", s -> 2 * Math.log(s)),
    PRECISION("precision", s -> 1 / (s * s));

    public final String parameter;
    public final DoubleUnaryOperator fromStd;

    Kind(String parameter, DoubleUnaryOperator fromStd) {
      this.parameter = parameter;
      this.fromStd = fromStd;
    }

    /** The library's name of it. */
    public ScaleKind scaleKind() {
      return ScaleKind.valueOf(name());
    }

    public DiagonalGaussians of(float[] mean, float[] scale, int dimension, ScalePolicy policy) {
      return (DiagonalGaussians) Gaussians.of(scaleKind(), mean, scale, dimension, policy);
    }

    public DiagonalGaussians of(double[] mean, double[] scale, int dimension, ScalePolicy policy) {
      return (DiagonalGaussians) Gaussians.of(scaleKind(), mean, scale, dimension, policy);
    }

    /** By the methods that are named after the kinds. */
    public DiagonalGaussians of(float[] mean, float[] scale, int dimension) {
      return switch (this) {
        case STD -> DiagonalGaussians.ofStd(mean, scale, dimension);
        case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, dimension);
        case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, dimension);
        case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, dimension);
      };
    }

    public DiagonalGaussians of(double[] mean, double[] scale, int dimension) {
      return switch (this) {
        case STD -> DiagonalGaussians.ofStd(mean, scale, dimension);
        case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, dimension);
        case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, dimension);
        case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, dimension);
      };
    }
  }

  public Batch {
    if (!isDouble) {
      mean = widened(narrowed(mean));
      scale = widened(narrowed(scale));
    }
  }

  /** A batch of {@code kind} with these means and standard deviations, each rounded once. */
  public static Batch ofStd(
      Kind kind, boolean isDouble, double[] mean, double[] std, int dimension) {
    double[] scale = Arrays.stream(std).map(kind.fromStd).toArray();
    return new Batch(kind, isDouble, mean, scale, dimension);
  }

  /** Means uniform in [center, center + 1], standard deviations in [0.5, 1.5]. */
  public static Batch random(
      boolean isDouble, int size, int dimension, double center, Random random) {
    double[] mean = random.doubles((long) size * dimension, center, center + 1).toArray();
    double[] std = random.doubles((long) size * dimension, 0.5, 1.5).toArray();
    return new Batch(Kind.STD, isDouble, mean, std, dimension);
  }

  public int size() {
    return mean.length / dimension;
  }

  public DiagonalGaussians gaussians() {
    return isDouble
        ? kind.of(mean, scale, dimension)
        : kind.of(narrowed(mean), narrowed(scale), dimension);
  }

  public DiagonalGaussians gaussians(ScalePolicy policy) {
    return isDouble
        ? kind.of(mean, scale, dimension, policy)
        : kind.of(narrowed(mean), narrowed(scale), dimension, policy);
  }

  /** Rows {@code from} to {@code to}, the latter excluded. */
  public Batch rows(int from, int to) {
    return new Batch(
        kind,
        isDouble,
        Arrays.copyOfRange(mean, from * dimension, to * dimension),
        Arrays.copyOfRange(scale, from * dimension, to * dimension),
        dimension);
  }

  /** Copies these rows. */
  public Batch rows(int[] chosen) {
    double[] means = new double[chosen.length * dimension];
    double[] scales = new double[means.length];
    for (int i = 0; i < chosen.length; i++) {
      System.arraycopy(mean, chosen[i] * dimension, means, i * dimension, dimension);
      System.arraycopy(scale, chosen[i] * dimension, scales, i * dimension, dimension);
    }
    return new Batch(kind, isDouble, means, scales, dimension);
  }

  public static float[] narrowed(double[] values) {
    float[] result = new float[values.length];
    for (int i = 0; i < result.length; i++) {
      result[i] = (float) values[i];
    }
    return result;
  }

  public static double[] widened(float[] values) {
    double[] result = new double[values.length];
    for (int i = 0; i < result.length; i++) {
      result[i] = values[i];
    }
    return result;
  }

  /** Reads numbers with blanks between them, as a table of a test has them. */
  public static double[] numbers(String text) {
    return Arrays.stream(text.split(" ")).mapToDouble(Double::parseDouble).toArray();
  }
}
