package dev.kullback.cli.batch;

import dev.kullback.ScaleKind;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What the shapes of a batch's two files make of them. Arrays are repeated along axes of 1, as NumPy does; shapes that may be understood in
 * two ways are refused.
 *
 * @param kind that of the option, but for {@code --precision} of matrices
 * @param axes of the batch, the first of which is N; of matrices, those of the means
 * @param mean the axes of the means' file, each that of the batch or 1
 * @param scale those of the scales' file; of matrices they are N or 1, and the axes of one
 */
public record Layout(ScaleKind kind, long[] axes, long[] mean, long[] scale) {

  /** Reads the shapes from the files' headers. */
  public static Layout of(BatchOptions.Files files) {
    return of(files, Parameters.meanShape(files), Parameters.scaleShape(files));
  }

  public static Layout of(BatchOptions.Files files, long[] given, long[] scale) {
    long[] mean = means(files, given, scale);
    ScaleKind kind =
        files.kind() == ScaleKind.PRECISION && isMatrices(mean, scale)
            ? ScaleKind.PRECISION_MATRIX
            : files.kind();
    List<Layout> all = kind.isFull() ? matrices(kind, mean, scale) : scales(kind, mean, scale);
    if (all.isEmpty()) {
      throw Misfit.error(files, mean, scale);
    }
    if (all.size() > 1) {
      throw Misfit.ambiguous(files, mean, scale);
    }
    Layout layout = all.getFirst();
    if (layout.columns() == 0) {
      throw layout.empty(files);
    }
    if (layout.axes[0] > Integer.MAX_VALUE || layout.columns() > Integer.MAX_VALUE) {
      throw new UserError(
          files.mean(), "has shape " + Batch.text(given) + ": N and D must be below 2^31");
    }
    return layout;
  }

  /** Returns the shape of the means as [N, …]. */
  private static long[] means(BatchOptions.Files files, long[] shape, long[] scale) {
    if (shape.length >= 2) {
      return shape;
    }
    long n = shape.length == 0 ? 0 : shape[0];
    long last = scale.length == 0 ? 0 : scale[scale.length - 1];
    boolean isMatrix =
        files.kind().isFull() && !isPacked(files.kind()) && scale.length > 1 && n > 0;
    if (isMatrix && last == 1) {
      return new long[] {n, 1};
    }
    boolean isRow =
        !files.kind().isFull() && scale.length == 2 && n > 1 && scale[0] != n; // else also [N,1]
    if ((isMatrix || isRow) && last == n) {
      return new long[] {1, n};
    }
    throw new UserError(
        files.mean(),
        "has shape %s: a batch is [N,D]; reshape N Gaussians of one dimension to [N,1], or one of D dimensions to [1,D]"
            .formatted(Batch.text(shape)));
  }

  /** Whether precisions are matrices. Of N = D, [D,D] is [N,D]. */
  private static boolean isMatrices(long[] mean, long[] scale) {
    long d = product(mean, 1);
    long[] square = {d, d};
    return d > 1
        && (scale.length == 3
            ? !Arrays.equals(mean, scale) && Arrays.equals(square, tail(scale))
            : Arrays.equals(square, scale) && mean[0] != d && mean[0] != 1);
  }

  static boolean isPacked(ScaleKind kind) {
    return kind == ScaleKind.PACKED_SCALE_TRIL;
  }

  /** Returns the axes of one Gaussian's matrix. */
  static long[] matrix(ScaleKind kind, long d) {
    return isPacked(kind) ? new long[] {d * (d + 1) / 2} : new long[] {d, d};
  }

  private static List<Layout> matrices(ScaleKind kind, long[] mean, long[] scale) {
    long[] one = matrix(kind, product(mean, 1));
    long[] rows = Arrays.equals(one, scale) ? with(1, one) : scale;
    boolean isOne = rows.length > 0 && rows[0] == 1;
    if (rows.length == 0
        || !Arrays.equals(one, tail(rows))
        || (!isOne && mean[0] != 1 && rows[0] != mean[0])) {
      return List.of();
    }
    long[] axes = with(isOne ? mean[0] : rows[0], tail(mean));
    return List.of(new Layout(kind, axes, mean, rows));
  }

  /** Returns the layouts of scales [N, …] that differ. */
  static List<Layout> scales(ScaleKind kind, long[] mean, long[] scale) {
    long n = mean[0];
    long d = product(mean, 1);
    long count = product(scale, 0);
    long[] row = tail(mean);
    long[] number = new long[row.length];
    Arrays.fill(number, 1);
    Map<List<Long>, Layout> all = new LinkedHashMap<>();
    Consumer<long[]> add =
        shape -> {
          long[] axes = with(n == 1 ? shape[0] : n, row);
          if (isRepeatable(shape, axes)) {
            all.put(
                LongStream.concat(Arrays.stream(axes), Arrays.stream(shape)).boxed().toList(),
                new Layout(kind, axes, mean, shape));
          }
        };
    if (scale.length > 1 && product(scale, 1) == d) { // whatever the axes of either
      add.accept(with(scale[0], row));
    }
    if (scale.length == 1 && count == d) {
      add.accept(with(1, row));
    }
    if (count == 1) {
      add.accept(with(1, number));
    }
    if (scale.length > 0 && scale[0] == n && product(scale, 1) == 1) { // [N], [N,1] …
      add.accept(with(n, number));
    }
    int more = mean.length - scale.length;
    if (more >= 0) { // as NumPy aligns them
      long[] aligned = new long[mean.length];
      Arrays.fill(aligned, 1);
      System.arraycopy(scale, 0, aligned, more, scale.length);
      add.accept(aligned);
    }
    if (n == 1 && isMatrix(kind, d, scale)) {
      add.accept(mean); // or it is the matrix of the one mean
    }
    return List.copyOf(all.values());
  }

  /** Whether scales may be one matrix. */
  private static boolean isMatrix(ScaleKind kind, long d, long[] scale) {
    return d > 1 && kind != ScaleKind.LOG_VARIANCE && Arrays.equals(scale, new long[] {d, d});
  }

  private static boolean isRepeatable(long[] shape, long[] axes) {
    return IntStream.range(0, axes.length).allMatch(k -> shape[k] == 1 || shape[k] == axes[k]);
  }

  static long product(long[] shape, int from) {
    return Arrays.stream(shape).skip(from).reduce(1, (a, b) -> a * b);
  }

  private static long[] tail(long[] shape) {
    return Arrays.copyOfRange(shape, 1, shape.length);
  }

  private static long[] with(long first, long[] rest) {
    return LongStream.concat(LongStream.of(first), Arrays.stream(rest)).toArray();
  }

  /** N. */
  public int size() {
    return (int) axes[0];
  }

  private long columns() {
    return product(axes, 1);
  }

  /** D. */
  public int dimension() {
    return (int) columns();
  }

  /** Makes the error of a batch without rows or columns. */
  UserError empty(BatchOptions.Files files) {
    boolean isOfMean = product(mean, 0) == 0;
    return new UserError(
        isOfMean ? files.mean() : files.scale(),
        "is an empty batch, of shape " + Batch.text(isOfMean ? mean : scale));
  }

  /** Returns the layout of rows of the batch. */
  Layout withRows(int rows) {
    return new Layout(kind, with(rows, tail(axes)), withRows(mean, rows), withRows(scale, rows));
  }

  private long[] withRows(long[] shape, int rows) {
    return isShared(shape) ? shape : with(rows, tail(shape));
  }

  /** Whether all Gaussians have the one row of an array. */
  private boolean isShared(long[] shape) {
    return shape[0] != axes[0];
  }

  /** Whether all Gaussians have the same scales. */
  boolean isShared() {
    return isShared(scale);
  }

  /** Whether all Gaussians have the one row of means, or of scales. */
  boolean isRepeated(boolean isOfMeans) {
    return isShared(isOfMeans ? mean : scale);
  }

  /** Makes rows [N, D] of an array of means, each its own. */
  Npy.Array means(Path file, Npy.Array array, Arena arena) {
    return repeated(checked(file, array, mean), mean, axes, arena);
  }

  /** Makes rows of an array of scales; a row or matrix that all share stays the only one, and one number of a Gaussian stays one. */
  Npy.Array scales(Path file, Npy.Array array, Arena arena) {
    long[] kept = scale;
    if (!kind.isFull() && product(scale, 1) == 1) {
      kept = with(axes[0], tail(scale));
    } else if (!kind.isFull() && !(isShared() && product(scale, 0) == columns())) {
      kept = axes;
    }
    return repeated(checked(file, array, scale), scale, kept, arena);
  }

  /** Returns scales that {@link #scales} made as rows of D. */
  Npy.Array writtenOut(Npy.Array scales, Arena arena) {
    return repeated(scales, scales.shape(), axes, arena);
  }

  private static Npy.Array checked(Path file, Npy.Array array, long[] shape) {
    if (product(array.shape(), 0) != product(shape, 0)) { // which the header had
      throw new UserError(file, "has changed its shape meanwhile: run the command again");
    }
    return array;
  }

  /** Writes out an array along axes of 1, the last first. */
  private static Npy.Array repeated(Npy.Array array, long[] shape, long[] axes, Arena arena) {
    if (axes[0] == 0) { // the others are what a header says
      return new Npy.Array(axes, array.element(), array.type(), MemorySegment.NULL);
    }
    MemorySegment data = array.data();
    long block = array.element().byteSize();
    for (int k = axes.length - 1; k >= 0; k--) {
      if (shape[k] != axes[k]) {
        data = repeated(data, block, axes[k], arena);
      }
      block *= axes[k];
    }
    return new Npy.Array(axes, array.element(), array.type(), data);
  }

  /** Writes each block as often as {@code times} says, one after the other. */
  private static MemorySegment repeated(MemorySegment data, long block, long times, Arena arena) {
    long row = block * times;
    MemorySegment out = arena.allocate(data.byteSize() * times, Long.BYTES);
    for (long from = 0, to = 0; from < data.byteSize(); from += block, to += row) {
      MemorySegment.copy(data, from, out, to, block);
      for (long done = block; done < row; done *= 2) { // what is there doubles
        MemorySegment.copy(out, to, out, to + done, Math.min(done, row - done));
      }
    }
    return out;
  }

  /** Adds to a summary what the Gaussians of q, or of all files of p, share. */
  public static void describe(Report report, String role, List<Layout> layouts) {
    List<String> shared =
        layouts.stream().flatMap(Layout::shared).filter(Objects::nonNull).distinct().toList();
    shared.forEach(text -> report.line(role + ": " + text));
    report.put(role + "_shared", shared);
  }

  private Stream<@Nullable String> shared() {
    String gaussians = axes[0] + (axes[0] == 1 ? " Gaussian" : " Gaussians");
    return Stream.of(
        product(mean, 0) == product(axes, 0) ? null : "1 mean for " + gaussians,
        isAllOwn() ? null : text() + gaussians);
  }

  private boolean isAllOwn() {
    return kind.isFull() ? !isShared() : product(scale, 0) == product(axes, 0);
  }

  /** Says how many scales there are. */
  private String text() {
    String name =
        switch (kind) {
          case STD -> "standard deviation";
          case VARIANCE -> "variance";
          case LOG_VARIANCE -> "log-variance";
          case PRECISION -> "precision";
          case COVARIANCE -> "covariance";
          case PRECISION_MATRIX -> "precision matrix";
          case PRECISION_CHOLESKY -> "factor of a precision";
          default -> "factor of a covariance";
        };
    long count = kind.isFull() ? 1 : product(scale, 0);
    if (count == 1) {
      return "1 " + name + " for ";
    }
    if (isShared() && count == columns()) {
      return "1 row of " + name + "s for ";
    }
    return count == axes[0] && scale[0] == count
        ? "1 " + name + " for each of "
        : count + " " + name + "s for ";
  }
}
