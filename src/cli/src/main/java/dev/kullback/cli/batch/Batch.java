package dev.kullback.cli.batch;

import dev.kullback.Gaussians;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.NpyHeader;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

/**
 * The checked parameters of a batch, means of [size, dimension].
 *
 * @param first the row of the files that is row 0 of these
 */
public record Batch(
    BatchOptions.Files files,
    ScalePolicy policy,
    int first,
    int size,
    int dimension,
    Npy.Array mean,
    Npy.Array scale) {

  /** Asymmetry that passes for rounding in a float file, relative to √(Σ_rr Σ_cc), as in the library. */
  private static final double ASYMMETRY32 = 1e-5;

  /** How the library's messages name a Gaussian: twice. */
  private static final Pattern GAUSSIAN =
      Pattern.compile("^(\\w+)\\[(\\d+)\\](.*\\(Gaussian )\\2\\b");

  public static Batch load(BatchOptions.Files files, ScalePolicy policy, Arena arena) {
    Npy.Array mean = read(files.mean(), file -> Npy.readFloats(file, arena));
    Npy.Array scale = read(files.scale(), file -> Npy.readFloats(file, arena));
    requireShapes(files, mean.shape(), scale.shape());
    return of(files, policy, 0, mean, scale, arena);
  }

  /** A shard of its rows, as if there were no others. */
  public static Batch load(BatchOptions.Files files, ScalePolicy policy, Shard shard, Arena arena) {
    int rows = rows(files);
    int from = shard.from(rows);
    int to = shard.to(rows);
    Npy.Array mean = read(files.mean(), file -> Npy.readFloats(file, from, to, arena));
    Npy.Array scale = read(files.scale(), file -> Npy.readFloats(file, from, to, arena));
    requireShapes(files, mean.shape(), scale.shape()); // they may not be those of before
    return of(files, policy, from, mean, scale, arena);
  }

  /** How many there are, by the files' headers. */
  public static int rows(BatchOptions.Files files) {
    long[] shape = read(files.mean(), Npy::readShape);
    requireShapes(files, shape, read(files.scale(), Npy::readShape));
    return (int) shape[0];
  }

  private static void requireShapes(BatchOptions.Files files, long[] shape, long[] scaleShape) {
    if (shape.length < 2) {
      throw new UserError(
          files.mean(),
          "has " + shape.length + " axes: a batch is [N,D]; reshape one Gaussian to [1,D]");
    }
    long size = shape[0];
    long dimension = dimension(shape);
    if (!files.kind().isFull() && !Arrays.equals(shape, scaleShape)) {
      throw new UserError(
          files.scale(),
          "has shape %s, but the means in %s have %s: both must be [N,D]"
              .formatted(text(scaleShape), files.mean(), text(shape)));
    }
    if (files.kind().isFull()) {
      long[] wanted = files.kind().shape(size, dimension);
      if (!Arrays.equals(wanted, scaleShape)) {
        throw new UserError(
            files.scale(),
            "has shape %s, but with the means in %s, of shape %s, it must be %s"
                .formatted(text(scaleShape), files.mean(), text(shape), text(wanted)));
      }
    }
    if (size == 0 || dimension == 0) {
      throw new UserError(files.mean(), "is an empty batch, of shape " + text(shape));
    }
    if (size > Integer.MAX_VALUE || dimension > Integer.MAX_VALUE) {
      throw new UserError(
          files.mean(), "has shape " + text(shape) + ": N and D must be below 2^31");
    }
  }

  private static Batch of(
      BatchOptions.Files files,
      ScalePolicy policy,
      int first,
      Npy.Array mean,
      Npy.Array scale,
      Arena arena) {
    int size = (int) mean.shape()[0];
    int dimension = (int) dimension(mean.shape());
    if (!mean.element().equals(scale.element())) { // in the wider of the two both keep their values
      boolean isDouble = mean.isDouble() || scale.isDouble();
      if (files.kind() == Scale.COVARIANCE && isDouble && !scale.isDouble()) {
        symmetrise(files.scale(), scale, first, dimension);
      }
      ValueLayout element = isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT;
      mean = mean.to(element, arena);
      scale = scale.to(element, arena);
    }
    Batch batch = new Batch(files, policy, first, size, dimension, mean, scale);
    batch.check();
    return batch;
  }

  private static long dimension(long[] shape) {
    return Arrays.stream(shape).skip(1).reduce(1, (a, b) -> a * b);
  }

  /** Some of these rows. */
  public Batch part(Shard shard) {
    int from = shard.from(size);
    int to = shard.to(size);
    return new Batch(
        files,
        policy,
        first + from,
        to - from,
        dimension,
        mean.withRows(from, to),
        scale.withRows(from, to));
  }

  /** The p of one file that this q is compared with: itself where p has no file. */
  public Batch columns(List<BatchOptions.Files> pFiles, Arena arena) {
    return pFiles.isEmpty() ? this : columns(pFiles.getFirst(), arena);
  }

  /** The p of a file that this q is compared with. */
  public Batch columns(BatchOptions.Files pFiles, Arena arena) {
    Batch p = load(pFiles, policy, arena);
    p.requireFit(this);
    return p;
  }

  public boolean isDouble() {
    return mean.isDouble();
  }

  /** The type of what is computed of both. */
  public static ValueLayout element(Batch q, Batch p) {
    return q.isDouble() || p.isDouble() ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT;
  }

  boolean isFull() {
    return files.kind().isFull();
  }

  public Gaussians gaussians() {
    return gaussians(0, size);
  }

  /**
   * The Gaussians {@code from} (included) to {@code to} (excluded). Matrices are checked only here, and
   * covariances factored, which takes long.
   */
  public Gaussians gaussians(int from, int to) {
    MemorySegment means = rows(mean, from, to);
    MemorySegment scales = rows(scale, from, to);
    try {
      return files.kind().gaussians(means, scales, dimension, mean.element(), policy);
    } catch (IllegalArgumentException e) {
      throw new UserError(files.scale(), renumbered(String.valueOf(e.getMessage()), first + from));
    }
  }

  private static String renumbered(String message, int from) {
    return GAUSSIAN
        .matcher(message)
        .replaceFirst(m -> {
          int i = from + Integer.parseInt(m.group(2));
          return m.group(1) + "[" + i + "]" + m.group(3) + i;
        });
  }

  private MemorySegment rows(Npy.Array array, int from, int to) {
    long rowBytes = array.data().byteSize() / size;
    return array.data().asSlice(from * rowBytes, (to - from) * rowBytes);
  }

  private void requireFit(Batch q) {
    if (dimension != q.dimension) {
      throw new UserError(
          files.mean(),
          "has dimension %d, but %s has %d".formatted(dimension, q.files.mean(), q.dimension));
    }
    if (isDeterministic() && !q.isDeterministic()) {
      throw new UserError(
          files.scale(),
          "is 0 everywhere but %s is not: KL(q||p) is undefined".formatted(q.files.scale()));
    }
  }

  /** The weights of its Gaussians, or their logarithms, from a file. */
  public double[] weights(Path file, boolean log) {
    Input.limitStdin(0, file);
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = read(file, f -> Npy.readFloats(f, arena));
      if (!Arrays.equals(array.shape(), new long[] {size})) {
        throw new UserError(
            file,
            "has shape %s, but %s has %d rows: it must be (%3$d,)"
                .formatted(text(array.shape()), files.mean(), size));
      }
      double[] weights = new double[size];
      for (int i = 0; i < size; i++) {
        double weight = array.value(i);
        if (!(weight < Double.POSITIVE_INFINITY && (log || weight >= 0))) {
          throw new UserError(
              file,
              "element %d: %s is %s: it must be %s (counted from 0)"
                  .formatted(
                      i,
                      log ? "log-weight" : "weight",
                      weight,
                      log ? "finite or -Infinity" : "finite and >= 0"));
        }
        weights[i] = weight;
      }
      return weights;
    }
  }

  private interface Reader<T> {
    T read(Path file) throws IOException;
  }

  private static <T> T read(Path file, Reader<T> reader) {
    try {
      return reader.read(file);
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }

  private static String text(long[] shape) {
    return new NpyHeader("", false, shape).shapeText();
  }

  /**
   * Makes float covariances, [N, D, D], exactly symmetric, as the library wants those of a double
   * batch to be; what is not finite is left for it to name.
   */
  private static void symmetrise(Path file, Npy.Array covariance, int firstRow, long d) {
    ValueLayout.OfFloat element = (ValueLayout.OfFloat) covariance.element();
    for (long i = 0; i < covariance.shape()[0]; i++) {
      long first = i * d * d;
      for (long r = 0; r < d; r++) {
        for (long c = 0; c < r; c++) {
          double lower = covariance.value(first + r * d + c);
          double upper = covariance.value(first + c * d + r);
          if (lower == upper || !Double.isFinite(lower) || !Double.isFinite(upper)) {
            continue;
          }
          double square = covariance.value(first + r * d + r) * covariance.value(first + c * d + c);
          if (!(Math.abs(lower - upper) <= ASYMMETRY32 * Math.sqrt(Math.abs(square)))) {
            throw new UserError(
                file,
                "covariance[%1$d] (Gaussian %1$d) is not symmetric: [%2$d][%3$d] is %4$s but [%3$d][%2$d] is %5$s"
                    .formatted(firstRow + i, r, c, (float) lower, (float) upper));
          }
          covariance.data().setAtIndex(element, first + c * d + r, (float) lower);
        }
      }
    }
  }

  private void check() {
    long count = (long) size * dimension;
    for (long i = 0; i < count; i++) {
      double value = mean.value(i);
      if (!Double.isFinite(value)) {
        throw wrong(files.mean(), i, "mean is " + value + ": repair or drop the row");
      }
    }
    if (isFull()) {
      if (files.kind() == Scale.SCALE_TRIL) {
        checkTriangular();
      }
      return; // the library's checks name the Gaussian, the row and the column
    }
    boolean deterministic = isDeterministic();
    // Clamping repairs a std or variance that is too small, but no precision makes sense at or
    // below 0.
    boolean positive =
        switch (files.kind()) {
          case STD, VARIANCE -> policy != ScalePolicy.CLAMPED && !deterministic;
          case LOG_VARIANCE, SCALE_TRIL, PACKED_TRIL, COVARIANCE -> false;
          case PRECISION -> true;
        };
    for (long i = 0; i < count; i++) {
      double value = scale.value(i);
      if (!Double.isFinite(value)) {
        throw wrong(
            files.scale(), i, files.kind().text + " is " + value + ": repair or drop the row");
      }
      if (positive && value <= 0) {
        throw wrong(
            files.scale(),
            i,
            files.kind().text + " is " + scale.text(i) + ": it must be > 0" + remedy(value));
      }
    }
  }

  /** The library does not read what lies above the diagonal: covariances would pass for factors. */
  private void checkTriangular() {
    long d = dimension;
    long width = scale.element().byteSize();
    MemorySegment zeros = MemorySegment.ofArray(new double[dimension]);
    for (long row = 0; row < size * d; row++) {
      long begin = row * d + row % d + 1;
      long end = (row + 1) * d;
      long bytes = (end - begin) * width;
      if (MemorySegment.mismatch(scale.data(), begin * width, end * width, zeros, 0, bytes) < 0) {
        continue;
      }
      for (long k = begin; k < end; k++) {
        if (scale.value(k) != 0) { // a -0 is 0
          throw new UserError(
              files.scale(),
              "Gaussian %d, row %d, column %d is %s: not lower triangular; did you mean %s? (counted from 0)"
                  .formatted(
                      first + row / d,
                      row % d,
                      k % d,
                      scale.text(k),
                      files.option(Scale.COVARIANCE)));
        }
      }
    }
  }

  private String remedy(double value) {
    if (value < 0) {
      return "; are these log-variances (" + files.option(Scale.LOG_VARIANCE) + ")?";
    }
    return switch (policy) {
      case STRICT -> files.kind() == Scale.PRECISION ? "" : "; --clamp would raise it";
      case CLAMPED -> "";
      case DETERMINISTIC_IF_ZERO -> ", or 0 everywhere for --deterministic";
    };
  }

  private boolean isDeterministic() {
    long count = (long) size * dimension;
    boolean zero =
        policy == ScalePolicy.DETERMINISTIC_IF_ZERO
            && (files.kind() == Scale.STD || files.kind() == Scale.VARIANCE);
    for (long i = 0; zero && i < count; i++) {
      zero = scale.value(i) == 0;
    }
    return zero;
  }

  private UserError wrong(Path file, long index, String what) {
    return new UserError(
        file,
        "row %d, column %d: %s (counted from 0)"
            .formatted(first + index / dimension, index % dimension, what));
  }
}
