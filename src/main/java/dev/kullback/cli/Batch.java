package dev.kullback.cli;

import dev.kullback.Gaussians;
import dev.kullback.ScalePolicy;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;

/** The checked parameters of a batch, means of [size, dimension]. */
record Batch(
    BatchOptions.Files files,
    ScalePolicy policy,
    int size,
    int dimension,
    Npy.Array mean,
    Npy.Array scale) {

  static Batch load(BatchOptions.Files files, ScalePolicy policy, Arena arena) {
    Npy.Array mean = read(files.mean(), arena);
    Npy.Array scale = read(files.scale(), arena);
    long[] shape = mean.shape();
    if (shape.length < 2) {
      throw new UserError(
          files.mean(),
          "has " + shape.length + " axes: a batch is [N,D]; reshape one Gaussian to [1,D]");
    }
    long size = shape[0];
    long dimension = Arrays.stream(shape).skip(1).reduce(1, (a, b) -> a * b);
    if (!files.kind().isFull() && !Arrays.equals(shape, scale.shape())) {
      throw new UserError(
          files.scale(),
          "has shape %s, but the means in %s have %s: both must be [N,D]"
              .formatted(text(scale.shape()), files.mean(), text(shape)));
    }
    if (files.kind().isFull()) {
      long[] wanted = files.kind().shape(size, dimension);
      if (!Arrays.equals(wanted, scale.shape())) {
        throw new UserError(
            files.scale(),
            "has shape %s, but with the means in %s, of shape %s, it must be %s"
                .formatted(text(scale.shape()), files.mean(), text(shape), text(wanted)));
      }
      if (policy != ScalePolicy.STRICT) {
        throw new UserError("--clamp and --deterministic are for scales, not for matrices");
      }
    }
    if (size == 0 || dimension == 0) {
      throw new UserError(files.mean(), "is an empty batch, of shape " + text(shape));
    }
    if (size > Integer.MAX_VALUE || dimension > Integer.MAX_VALUE) {
      throw new UserError(
          files.mean(), "has shape " + text(shape) + ": N and D must be below 2^31");
    }
    if (!mean.element().equals(scale.element())) { // as doubles both keep their values
      mean = toDouble(mean, arena);
      scale = toDouble(scale, arena);
    }
    Batch batch = new Batch(files, policy, (int) size, (int) dimension, mean, scale);
    batch.check();
    return batch;
  }

  boolean isDouble() {
    return mean.element().byteSize() == 8;
  }

  Gaussians gaussians() {
    return gaussians(0, size);
  }

  /** The Gaussians {@code from} (included) to {@code to} (excluded). */
  Gaussians gaussians(int from, int to) {
    MemorySegment means = rows(mean, from, to);
    MemorySegment scales = rows(scale, from, to);
    try {
      return files.kind().gaussians(means, scales, dimension, mean.element(), policy);
    } catch (IllegalArgumentException e) {
      throw new UserError(files.scale(), String.valueOf(e.getMessage()));
    }
  }

  private MemorySegment rows(Npy.Array array, int from, int to) {
    long rowBytes = array.data().byteSize() / size;
    return array.data().asSlice(from * rowBytes, (to - from) * rowBytes);
  }

  void requireFit(Batch q) {
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

  private static Npy.Array read(Path file, Arena arena) {
    try {
      return Npy.readFloats(file, arena);
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }

  private static String text(long[] shape) {
    return new NpyHeader("", false, shape).shapeText();
  }

  private static Npy.Array toDouble(Npy.Array from, Arena arena) {
    long count = from.data().byteSize() / from.element().byteSize();
    MemorySegment to = arena.allocate(ValueLayout.JAVA_DOUBLE, count);
    for (long i = 0; i < count; i++) {
      to.setAtIndex(ValueLayout.JAVA_DOUBLE, i, from.value(i));
    }
    return new Npy.Array(from.shape(), ValueLayout.JAVA_DOUBLE, to);
  }

  private void check() {
    long count = (long) size * dimension;
    for (long i = 0; i < count; i++) {
      double value = mean.value(i);
      if (!Double.isFinite(value)) {
        throw wrong(files.mean(), i, "mean is " + value + ": repair or drop the row");
      }
    }
    if (files.kind().isFull()) {
      gaussians(); // the library's checks name the Gaussian, the row and the column
      return;
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
            files.scale(), i, files.kind().text + " is " + value + ": it must be > 0" + remedy());
      }
    }
  }

  private String remedy() {
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
            .formatted(index / dimension, index % dimension, what));
  }
}
