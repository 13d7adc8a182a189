package dev.kullback.cli.batch;

import dev.kullback.DiagonalGaussians;
import dev.kullback.Gaussians;
import dev.kullback.InvalidGaussianException;
import dev.kullback.LowRankGaussians;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.NpyHeader;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The checked parameters of a batch, means of [size, dimension].
 *
 * @param layout of all rows of the files
 * @param first the row of the files that is row 0 of these
 * @param scale the scales of each row, which may be one number, or the row or matrix that all share
 * @param factor of low-rank covariances W, [size, D, r]
 */
public record Batch(
    BatchOptions.Files files,
    ScalePolicy policy,
    Layout layout,
    int first,
    int size,
    Npy.Array mean,
    Npy.Array scale,
    Npy.@Nullable Array factor) {

  public Batch(
      BatchOptions.Files files,
      ScalePolicy policy,
      Layout layout,
      int first,
      int size,
      Npy.Array mean,
      Npy.Array scale) {
    this(files, policy, layout, first, size, mean, scale, null);
  }

  /** Means that are checked at a time. */
  private static final int CHECKED = 1 << 18;

  public static Batch load(BatchOptions.Files files, ScalePolicy policy, Arena arena) {
    Batch batch = loadOrNone(files, policy, arena);
    if (batch.size == 0) {
      throw batch.layout.empty(files);
    }
    return batch;
  }

  /** Loads a batch that may have no rows, of which no {@link #gaussians} can be made then. */
  public static Batch loadOrNone(BatchOptions.Files files, ScalePolicy policy, Arena arena) {
    Parameters both = Parameters.read(files, arena);
    Layout layout = Layout.of(files, both.mean().shape(), both.scale().shape());
    return of(files, policy, layout, 0, both, layout, arena);
  }

  /** Loads a shard of the rows, as if there were no others. */
  public static Batch load(BatchOptions.Files files, ScalePolicy policy, Shard shard, Arena arena) {
    int rows = rows(files);
    return load(files, policy, shard.from(rows), shard.to(rows), arena);
  }

  /** Loads the rows {@code from} (included) to {@code to} (excluded), as if there were no others. */
  public static Batch load(
      BatchOptions.Files files, ScalePolicy policy, int from, int to, Arena arena) {
    try (BatchReader in = new BatchReader(files, policy, Layout.of(files))) {
      Batch batch = in.next(from, to, arena);
      in.readToEnd();
      return batch;
    }
  }

  static Batch of(
      BatchOptions.Files files,
      ScalePolicy policy,
      Layout layout,
      int first,
      Parameters both,
      Layout part,
      Arena arena) {
    Npy.Array mean = part.means(files.mean(), both.mean(), arena);
    Npy.Array scale = part.scales(files.scale(), both.scale(), arena);
    Npy.Array factor = both.factor();
    if (factor != null) {
      checkFactor(files, part, factor);
    }
    Batch batch = new Batch(files, policy, layout, first, part.size(), mean, scale, factor);
    batch.check();
    return batch;
  }

  private static void checkFactor(BatchOptions.Files files, Layout layout, Npy.Array factor) {
    long[] shape = factor.shape();
    int last = shape.length - 1;
    boolean fits =
        last >= 2
            && shape[0] == layout.size()
            && Layout.product(shape, 1) == layout.dimension() * shape[last];
    if (!fits) {
      throw new UserError(
          files.matrices(),
          "has shape %s, but with the means in %s it must be [N,D,r], (%d, %d, r)"
              .formatted(text(shape), files.mean(), layout.size(), layout.dimension()));
    }
  }

  /** Numbers that a Gaussian has for each dimension, beside its mean, or 1 for matrices. */
  long columns() {
    Npy.Array array = factor;
    return array == null ? 1 : 1 + array.shape()[array.shape().length - 1];
  }

  /** Reads the number of rows, at least 1, from the files' headers. */
  public static int rows(BatchOptions.Files files) {
    Layout layout = Layout.of(files);
    if (layout.size() == 0) {
      throw layout.empty(files);
    }
    return layout.size();
  }

  /** Whether the files' headers, if they are not standard input, tell of matrices. */
  static boolean isFull(BatchOptions.Files files) {
    boolean isKnown =
        files.kind() != ScaleKind.PRECISION
            || Stream.of(files.mean(), files.scale()).anyMatch(Input.STDIN::equals);
    return (isKnown ? files.kind() : Layout.of(files).kind()).isFull();
  }

  /** Adds to a summary what the Gaussians of q or p share, by the files' headers. */
  public static void describe(Report report, BatchOptions.Files q, List<BatchOptions.Files> p) {
    Layout.describe(report, "q", List.of(Layout.of(q)));
    if (!p.isEmpty()) {
      Layout.describe(report, "p", p.stream().map(Layout::of).toList());
    }
  }

  /** Adds to a summary what the Gaussians of this batch share. */
  public void describe(Report report, String role) {
    Layout.describe(report, role, List.of(layout));
  }

  /** D. */
  public int dimension() {
    return layout.dimension();
  }

  /** Numbers that state the scale of a Gaussian. */
  public int scaleLength() {
    return isFull()
        ? Math.toIntExact(Layout.product(Layout.matrix(kind(), dimension()), 0))
        : dimension();
  }

  /** What the scales are. */
  public ScaleKind kind() {
    return layout.kind();
  }

  /**
   * Returns a batch of each row's channels, N·C Gaussians of all parameters that have the same place on the channels' axis. Rows of this batch
   * are no rows of the files, which were checked when this batch was made.
   *
   * @param axis of the channels, or below 0 counted from the last
   */
  public Batch byChannel(int axis, Arena arena) {
    int count = channels(axis);
    int rows = Math.multiplyExact(size, count);
    long[] shape = {rows, dimension() / count};
    Layout channels = new Layout(kind(), shape, shape, shape);
    int at = channelAxis(axis);
    Npy.Array means = mean.withSecondAxis(at, arena).reshaped(shape);
    Npy.Array scales =
        layout.withRows(size).writtenOut(scale, arena).withSecondAxis(at, arena).reshaped(shape);
    return new Batch(files, policy, channels, 0, rows, means, scales);
  }

  /** Returns the length of an axis of the means; throws where the scales are matrices, which have no channels. */
  public int channels(int axis) {
    if (isFull() || factor != null) {
      throw new UserError(files.matrices(), "--per-channel is for scales, not for matrices");
    }
    return (int) mean.shape()[channelAxis(axis)];
  }

  private int channelAxis(int axis) {
    return BatchOptions.axis(files, axis, mean.shape());
  }

  /** Returns a shard of these rows. */
  public Batch part(Shard shard) {
    int from = shard.from(size);
    int to = shard.to(size);
    return new Batch(
        files,
        policy,
        layout,
        first + from,
        to - from,
        mean.withRows(from, to),
        isShared(scale) ? scale : scale.withRows(from, to),
        factor == null ? null : factor.withRows(from, to));
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
    return mean.isDouble() || scale.isDouble() || (factor != null && factor.isDouble());
  }

  /** The type of what is computed of both. */
  public static ValueLayout element(Batch q, Batch p) {
    return q.isDouble() || p.isDouble() ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT;
  }

  public boolean isFull() {
    return kind().isFull();
  }

  /** Whether the rows must be factored, or inverted, which takes longer than many KLs. */
  boolean isFactored() {
    return switch (kind()) {
      case COVARIANCE, PRECISION_MATRIX, PRECISION_CHOLESKY -> true;
      default -> false;
    };
  }

  private boolean isShared(Npy.Array array) {
    return array.shape()[0] != size;
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
    MemorySegment scales = scales(from, to);
    try {
      if (files.arePoints()) {
        return DiagonalGaussians.ofPoints(means, mean.element(), dimension());
      }
      if (factor != null) {
        return LowRankGaussians.of(
            kind(),
            means,
            mean.element(),
            rows(factor, from, to),
            factor.element(),
            scales,
            scale.element(),
            dimension(),
            policy);
      }
      return Gaussians.of(
          kind(), means, mean.element(), scales, scale.element(), dimension(), policy);
    } catch (InvalidGaussianException e) {
      throw error(e, from);
    } catch (IllegalArgumentException e) {
      throw new UserError(files.scale(), String.valueOf(e.getMessage()));
    }
  }

  /** Names the row and the file of a Gaussian that the library rejects in a batch of the rows from {@code from} on. */
  private UserError error(InvalidGaussianException e, int from) {
    int row = from + e.gaussian();
    boolean isMean = files.arePoints() || e.argument().equals("mean");
    if (e.argument().equals("factor")) {
      String place = e.element().isPresent() ? ", dimension " + e.element().getAsInt() : "";
      return new UserError(
          files.matrices(),
          "factor of Gaussian %d%s %s (counted from 0)".formatted(first + row, place, e.reason()));
    }
    if (isFull() && !isMean) {
      return matrixError(e, layout.isShared() ? 0 : first + row);
    }
    Npy.Array array = isMean ? mean : scale;
    int column = e.element().orElseThrow();
    long each = Layout.product(array.shape(), 1);
    long k = (isShared(array) ? 0 : row * each) + (each == 1 ? 0 : column);
    int number = layout.isRepeated(isMean) ? 0 : first + row;
    String name =
        files.arePoints()
            ? "point"
            : isMean ? "mean" : kind().name().toLowerCase(Locale.ROOT).replace('_', '-');
    String rule =
        Double.isFinite(array.value(k))
            ? "it must be > 0" + remedy(array.value(k))
            : "repair or drop the row";
    return new UserError(
        isMean ? files.mean() : files.scale(),
        "row %d, column %d%s: %s is %s: %s (counted from 0)"
            .formatted(
                number,
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
          files.scale(),
          "%s[%d] (Gaussian %2$d) %s%s"
              .formatted(e.argument(), number, e.reason(), Misfit.matrix(layout)));
    }
    boolean isPacked = Layout.isPacked(kind());
    int k = e.element().getAsInt();
    int r = isPacked ? 0 : k / dimension();
    int c = isPacked ? k : k % dimension();
    while (isPacked && c > r) {
      c -= ++r;
    }
    String advice = Misfit.triangle(files, kind(), r, c);
    if (!advice.isEmpty()) {
      return new UserError(
          files.scale(),
          "Gaussian %d, row %d, column %d %s; %s (counted from 0)"
              .formatted(number, r, c, e.reason(), advice));
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
    if (isShared(array)) {
      return array.data();
    }
    long rowBytes = array.data().byteSize() / size;
    return array.data().asSlice(from * rowBytes, (to - from) * rowBytes);
  }

  /** Returns the scales of rows, written out where the library takes no other: of N = D, one number for each may be a row for all. */
  private MemorySegment scales(int from, int to) {
    long numbers = Layout.product(scale.shape(), 0);
    if (isFull() || to - from != dimension() || numbers == (long) size * dimension()) {
      return rows(scale, from, to);
    }
    Npy.Array some = isShared(scale) ? scale : scale.withRows(from, to);
    return layout.withRows(to - from).writtenOut(some, Arena.ofAuto()).data();
  }

  private void requireFit(Batch q) {
    if (dimension() != q.dimension()) {
      throw new UserError(
          files.mean(),
          "has dimension %d, but %s has %d".formatted(dimension(), q.files.mean(), q.dimension()));
    }
    if (isDeterministic() && !q.isDeterministic()) {
      throw new UserError(
          files.scale(),
          "is 0 everywhere but %s is not: KL(q||p) is undefined".formatted(q.files.scale()));
    }
  }

  /** Returns a shape as messages write it. */
  public static String text(long[] shape) {
    return new NpyHeader("", false, shape).shapeText();
  }

  /** Checks all but what is to be factored, which is checked then: makes batches of some rows at a time. */
  private void check() {
    if (isFull() && kind() != ScaleKind.SCALE_TRIL) {
      return;
    }
    // some rows may be 0 throughout where not all are
    boolean mayBeZero = policy != ScalePolicy.DETERMINISTIC_IF_ZERO || isDeterministic();
    long each = Math.max(dimension(), Layout.product(scale.shape(), 1));
    int some = (int) Math.max(1, CHECKED / each);
    for (int from = 0, rows; from < size; from += rows) {
      rows = Math.min(size - from, some);
      gaussians(from, from + rows, mayBeZero ? policy : ScalePolicy.STRICT);
    }
  }

  private String remedy(double value) {
    if (isSymmetric()) {
      return kind() == ScaleKind.PRECISION
          ? "; a symmetric matrix: as a precision matrix of all Gaussians, give it the shape (1, %d, %1$d)"
              .formatted(dimension())
          : "; a symmetric matrix: as a covariance of all Gaussians, give it as "
              + files.option(ScaleKind.COVARIANCE);
    }
    if (value < 0) {
      return "; are these log-variances (" + files.option(ScaleKind.LOG_VARIANCE) + ")?";
    }
    if (kind() == ScaleKind.PRECISION) {
      return "; 0 is an infinite variance: give a small positive one";
    }
    return switch (policy) {
      case STRICT -> "; --clamp would raise it";
      case CLAMPED, SEMIDEFINITE -> "";
      case DETERMINISTIC_IF_ZERO -> ", or 0 everywhere for --deterministic";
    };
  }

  /** Whether the scales, of as many Gaussians as dimensions, are a symmetric matrix with a positive diagonal, and so hardly rows of scales. */
  private boolean isSymmetric() {
    int n = size;
    return n > 1
        && Arrays.equals(layout.scale(), new long[] {n, n})
        && IntStream.range(0, n)
            .allMatch(i ->
                scale.value((long) i * n + i) > 0
                    && IntStream.range(0, i)
                        .allMatch(
                            j -> scale.value((long) i * n + j) == scale.value((long) j * n + i)));
  }

  private boolean isDeterministic() {
    long count = Layout.product(scale.shape(), 0);
    boolean zero =
        policy == ScalePolicy.DETERMINISTIC_IF_ZERO
            && (kind() == ScaleKind.STD || kind() == ScaleKind.VARIANCE);
    for (long i = 0; zero && i < count; i++) {
      zero = scale.value(i) == 0;
    }
    return zero;
  }
}
