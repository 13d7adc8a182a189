package dev.kullback.cli.batch;

import dev.kullback.Gaussians;
import dev.kullback.InvalidGaussianException;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.NpyHeader;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

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

  /** Means that are checked at a time. */
  private static final int CHECKED = 1 << 18;

  public static Batch load(BatchOptions.Files files, ScalePolicy policy, Arena arena) {
    Batch batch = loadOrNone(files, policy, arena);
    if (batch.size == 0) {
      throw empty(files, batch.mean.shape());
    }
    return batch;
  }

  /** Loads a batch that may have no rows, of which no {@link #gaussians} can be made then. */
  public static Batch loadOrNone(BatchOptions.Files files, ScalePolicy policy, Arena arena) {
    Parameters both = Parameters.read(files, arena);
    requireShapes(files, both.mean().shape(), both.scale().shape());
    return of(files, policy, 0, both);
  }

  /** Loads a shard of the rows, as if there were no others. */
  public static Batch load(BatchOptions.Files files, ScalePolicy policy, Shard shard, Arena arena) {
    int rows = rows(files);
    return load(files, policy, shard.from(rows), shard.to(rows), arena);
  }

  /** Loads the rows {@code from} (included) to {@code to} (excluded), as if there were no others. */
  public static Batch load(
      BatchOptions.Files files, ScalePolicy policy, int from, int to, Arena arena) {
    Parameters both = Parameters.read(files, from, to, arena);
    requireShapes(
        files, both.mean().shape(), both.scale().shape()); // they may not be those of before
    return of(files, policy, from, both);
  }

  /** Reads the number of rows, at least 1, from the files' headers. */
  public static int rows(BatchOptions.Files files) {
    int rows = rowsOrNone(files);
    if (rows == 0) {
      throw empty(files, Parameters.meanShape(files));
    }
    return rows;
  }

  /** Reads the number of rows, which may be 0, from the files' headers. */
  public static int rowsOrNone(BatchOptions.Files files) {
    long[] shape = Parameters.meanShape(files);
    requireShapes(files, shape, Parameters.scaleShape(files));
    return (int) shape[0];
  }

  /** Reads the dimension from the header of the means. */
  public static int dimension(BatchOptions.Files files) {
    return Math.toIntExact(dimension(Parameters.meanShape(files)));
  }

  private static void requireShapes(BatchOptions.Files files, long[] shape, long[] scaleShape) {
    if (shape.length < 2) {
      throw new UserError(
          files.mean(),
          "has shape %s: a batch is [N,D]; reshape N Gaussians of one dimension to [N,1], or one of D dimensions to [1,D]"
              .formatted(text(shape)));
    }
    long size = shape[0];
    long dimension = dimension(shape);
    boolean isFull = files.kind().isFull();
    long[] wanted =
        !isFull
            ? shape
            : files.kind() == ScaleKind.PACKED_SCALE_TRIL
                ? new long[] {size, dimension * (dimension + 1) / 2}
                : new long[] {size, dimension, dimension};
    if (!Arrays.equals(wanted, scaleShape)) {
      String message =
          isFull
              ? "has shape %s, but with the means in %s, of shape %s, it must be %s%s"
              : "has shape %s, but the means in %s have %s: both must be [N,D]%5$s";
      throw new UserError(
          files.scale(),
          message.formatted(
              text(scaleShape),
              files.mean(),
              text(shape),
              text(wanted),
              advice(files, scaleShape, shape, wanted)));
    }
    if (dimension == 0) {
      throw empty(files, shape);
    }
    if (size > Integer.MAX_VALUE || dimension > Integer.MAX_VALUE) {
      throw new UserError(
          files.mean(), "has shape " + text(shape) + ": N and D must be below 2^31");
    }
  }

  private static UserError empty(BatchOptions.Files files, long[] shape) {
    return new UserError(files.mean(), "is an empty batch, of shape " + text(shape));
  }

  /** Returns what to do with scales that are shared, or of another kind; nothing where that is not to be seen. */
  private static String advice(
      BatchOptions.Files files, long[] scaleShape, long[] shape, long[] wanted) {
    long[] matrices = {shape[0], dimension(shape), dimension(shape)};
    if (files.kind() == ScaleKind.PRECISION && Arrays.equals(scaleShape, matrices)) {
      return "; invert matrices by np.linalg.inv, and give " + files.option(ScaleKind.COVARIANCE);
    }
    String repeat = "; to repeat it, save np.broadcast_to(%s, " + text(wanted) + ")";
    if (isRepeated(scaleShape, wanted)) {
      return repeat.formatted("x");
    }
    boolean isOneEach = scaleShape.length == 1 && scaleShape[0] == shape[0];
    return isOneEach && !files.kind().isFull() ? repeat.formatted("x[:, None]") : "";
  }

  /** Whether NumPy repeats an array of a shape to one of a wanted shape. */
  private static boolean isRepeated(long[] shape, long[] wanted) {
    int more = wanted.length - shape.length;
    return more >= 0
        && IntStream.range(0, shape.length)
            .allMatch(k -> shape[k] == 1 || shape[k] == wanted[more + k]);
  }

  private static Batch of(
      BatchOptions.Files files, ScalePolicy policy, int first, Parameters both) {
    long[] shape = both.mean().shape();
    int size = (int) shape[0];
    int dimension = (int) dimension(shape);
    Batch batch = new Batch(files, policy, first, size, dimension, both.mean(), both.scale());
    batch.check();
    return batch;
  }

  private static long dimension(long[] shape) {
    return Arrays.stream(shape).skip(1).reduce(1, (a, b) -> a * b);
  }

  /**
   * Returns a batch of each row's channels: of means [N,C,...], of whose Gaussians the parameters behind C are one's, N·C of them. Rows of these
   * are no rows of the files, which were checked when this batch was made.
   */
  public Batch byChannel() {
    int channels = channels();
    int rest = dimension / channels;
    return new Batch(
        files,
        policy,
        0,
        Math.multiplyExact(size, channels),
        rest,
        mean.reshaped((long) size * channels, rest),
        scale.reshaped((long) size * channels, rest));
  }

  /** Returns the length of the means' axis 1; throws where the scales are matrices, which have no channels. */
  public int channels() {
    if (isFull()) {
      throw new UserError(files.scale(), "--per-channel is for scales, not for matrices");
    }
    return (int) mean.shape()[1];
  }

  /** Returns a shard of these rows. */
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
    return mean.isDouble() || scale.isDouble();
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

  /** Makes a batch of the rows {@code from} (included) to {@code to} (excluded). */
  public Gaussians gaussians(int from, int to) {
    return gaussians(from, to, policy);
  }

  /**
   * Makes a batch of the rows {@code from} (included) to {@code to} (excluded). Matrices are checked only here, and
   * covariances factored, which takes long.
   */
  Gaussians gaussians(int from, int to, ScalePolicy policy) {
    MemorySegment means = rows(mean, from, to);
    MemorySegment scales = rows(scale, from, to);
    try {
      return Gaussians.of(
          files.kind(), means, mean.element(), scales, scale.element(), dimension, policy);
    } catch (InvalidGaussianException e) {
      throw error(e, from);
    } catch (IllegalArgumentException e) {
      throw new UserError(files.scale(), String.valueOf(e.getMessage()));
    }
  }

  /** Names the row and the file of a Gaussian that the library rejects in a batch of the rows from {@code from} on. */
  private UserError error(InvalidGaussianException e, int from) {
    int row = from + e.gaussian();
    boolean isMean = e.argument().equals("mean");
    if (isFull() && !isMean) {
      return matrixError(e, first + row);
    }
    Npy.Array array = isMean ? mean : scale;
    int column = e.element().orElseThrow();
    long k = (long) row * dimension + column;
    String name = isMean ? "mean" : files.kind().name().toLowerCase(Locale.ROOT).replace('_', '-');
    String rule =
        Double.isFinite(array.value(k))
            ? "it must be > 0" + remedy(array.value(k))
            : "repair or drop the row";
    return new UserError(
        isMean ? files.mean() : files.scale(),
        "row %d, column %d%s: %s is %s: %s (counted from 0)"
            .formatted(
                first + row,
                column,
                !files.isMoments() ? "" : isMean ? " of the first half" : " of the second half",
                name,
                array.text(k),
                rule));
  }

  /** Names the row of the file, which is the Gaussian's number there, and within a matrix the place. */
  private UserError matrixError(InvalidGaussianException e, int number) {
    if (e.element().isEmpty()) {
      return new UserError(
          files.scale(), "%s[%d] (Gaussian %2$d) %s".formatted(e.argument(), number, e.reason()));
    }
    boolean isPacked = files.kind() == ScaleKind.PACKED_SCALE_TRIL;
    int k = e.element().getAsInt();
    int r = isPacked ? 0 : k / dimension;
    int c = isPacked ? k : k % dimension;
    while (isPacked && c > r) {
      c -= ++r;
    }
    if (files.kind() == ScaleKind.SCALE_TRIL && c > r) {
      return new UserError(
          files.scale(),
          "Gaussian %d, row %d, column %d %s; is it a covariance (%s), or an upper factor (transpose it)? if it is a lower one, above which a program left something, np.tril clears that (counted from 0)"
              .formatted(number, r, c, e.reason(), files.option(ScaleKind.COVARIANCE)));
    }
    String subscripts = isPacked ? "[%d]".formatted(k) : "[%d][%d]".formatted(r, c);
    return new UserError(
        files.scale(),
        "%s[%d]%s (Gaussian %2$d, row %d, column %d) %s"
            .formatted(e.argument(), number, subscripts, r, c, e.reason()));
  }

  /** Names the file of a Gaussian of q, of the rows from {@code from} on, or of p that does not suit the other batch. */
  public static UserError error(InvalidGaussianException e, Batch q, int from, Batch p) {
    Batch batch = e.argument().equals("q") ? q : p;
    int number = batch.first + (batch == q ? from : 0) + e.gaussian();
    return new UserError(
        batch.files.scale(),
        "%s[%d] (Gaussian %2$d, dimension %d) %s"
            .formatted(e.argument(), number, e.element().orElseThrow(), e.reason()));
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

  static String text(long[] shape) {
    return new NpyHeader("", false, shape).shapeText();
  }

  /** Checks all but what is to be factored, which is checked then: makes batches of some rows at a time. */
  private void check() {
    if (isFull() && files.kind() != ScaleKind.SCALE_TRIL) {
      return;
    }
    // some rows may be 0 throughout where not all are
    boolean mayBeZero = policy != ScalePolicy.DETERMINISTIC_IF_ZERO || isDeterministic();
    int some = (int) Math.max(1, CHECKED / dimension(scale.shape()));
    for (int from = 0, rows; from < size; from += rows) {
      rows = Math.min(size - from, some);
      gaussians(from, from + rows, mayBeZero ? policy : ScalePolicy.STRICT);
    }
  }

  private String remedy(double value) {
    if (value < 0) {
      return "; are these log-variances (" + files.option(ScaleKind.LOG_VARIANCE) + ")?";
    }
    if (files.kind() == ScaleKind.PRECISION) {
      return "; 0 is an infinite variance: give a small positive one";
    }
    return switch (policy) {
      case STRICT -> "; --clamp would raise it";
      case CLAMPED, SEMIDEFINITE -> "";
      case DETERMINISTIC_IF_ZERO -> ", or 0 everywhere for --deterministic";
    };
  }

  private boolean isDeterministic() {
    long count = (long) size * dimension;
    boolean zero =
        policy == ScalePolicy.DETERMINISTIC_IF_ZERO
            && (files.kind() == ScaleKind.STD || files.kind() == ScaleKind.VARIANCE);
    for (long i = 0; zero && i < count; i++) {
      zero = scale.value(i) == 0;
    }
    return zero;
  }
}
