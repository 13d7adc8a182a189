package dev.kullback.cli.batch;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The arrays of means and scales: those of two files or, of moments, the halves of one along an axis; and of factors, if there are any. */
record Parameters(Npy.Array mean, Npy.Array scale, Npy.@Nullable Array factor) {
  Parameters(Npy.Array mean, Npy.Array scale) {
    this(mean, scale, null);
  }

  Parameters with(Npy.@Nullable Array factor) {
    return new Parameters(mean, scale, factor);
  }

  /** Points stand for their scales, too, which nobody reads. */
  static Parameters ofPoints(Npy.Array points) {
    return new Parameters(points, points);
  }

  static Parameters read(BatchOptions.Files files, Arena arena) {
    if (files.arePoints()) {
      return ofPoints(Npy.read(files.mean(), f -> Npy.readFloats(f, arena)));
    }
    Parameters both =
        files.isMoments()
            ? halves(files, to -> Npy.read(files.mean(), f -> Npy.readFloats(f, to)), arena)
            : new Parameters(
                Npy.read(files.mean(), f -> Npy.readFloats(f, arena)),
                Npy.read(files.scale(), f -> Npy.readFloats(f, arena)));
    Path factor = files.factor();
    return factor == null ? both : both.with(Npy.read(factor, f -> Npy.readFloats(f, arena)));
  }

  /** Makes two arrays of one, which {@code read} reads to temporary memory. */
  static Parameters halves(BatchOptions.Files files, Function<Arena, Npy.Array> read, Arena arena) {
    try (Arena temporary = Arena.ofConfined()) {
      Npy.Array both = read.apply(temporary);
      long[] half = half(files, both.shape());
      return new Parameters(half(both, half, 0, arena), half(both, half, 1, arena));
    }
  }

  /** Reads the shape of the means from a header. */
  static long[] meanShape(BatchOptions.Files files) {
    long[] shape = Npy.read(files.mean(), Npy::readShape);
    return files.isMoments() ? half(files, shape) : shape;
  }

  /** Reads the shape of the scales from a header. */
  static long[] scaleShape(BatchOptions.Files files) {
    return files.isMoments() || files.arePoints()
        ? meanShape(files)
        : Npy.read(files.scale(), Npy::readShape);
  }

  /** Returns the shape of a half of moments. */
  private static long[] half(BatchOptions.Files files, long[] shape) {
    int axes = shape.length;
    if (axes < 2) {
      throw new UserError(
          files.mean(),
          "has shape %s: moments are [N,2C] or [N,2C,...]".formatted(Batch.text(shape)));
    }
    int axis = BatchOptions.axis(files, files.axis(), shape);
    if (shape[axis] % 2 != 0) {
      throw new UserError(
          files.mean(),
          "has shape %s: axis %d has the odd length %d, so no half of means and half of log-variances; give their axis by --axis"
              .formatted(Batch.text(shape), axis, shape[axis]));
    }
    long[] half = shape.clone();
    half[axis] /= 2;
    return half;
  }

  /** Copies the first or the second half along the axis on which the shapes differ. */
  private static Npy.Array half(Npy.Array both, long[] shape, int which, Arena arena) {
    int axis = Arrays.mismatch(both.shape(), shape);
    MemorySegment data = arena.allocate(both.data().byteSize() / 2, 8);
    long block = both.element().byteSize(); // of a half, and no other axis interrupts it
    for (int k = Math.max(1, axis); k < shape.length; k++) {
      block *= shape[k];
    }
    for (long at = 0; at < data.byteSize(); at += block) {
      MemorySegment.copy(both.data(), 2 * at + which * block, data, at, block);
    }
    return new Npy.Array(shape, both.element(), both.type(), data);
  }
}
