package dev.kullback.cli.batch;

import dev.kullback.ScaleKind;
import dev.kullback.cli.terminal.UserError;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Says what to do with scales whose shape does not go with the means'. */
final class Misfit {
  private Misfit() {}

  /** Makes the error of shapes that cannot be a batch. */
  static UserError error(BatchOptions.Files files, long[] mean, long[] scale) {
    boolean isFull = files.kind().isFull();
    String message =
        isFull
            ? "has shape %s, but with the means in %s, of shape %s, it must be %s%s"
            : "has shape %s, but the means in %s have %s: scales are [N,D], [D], [N,1] or one number%5$s";
    return new UserError(
        files.scale(),
        message.formatted(
            Batch.text(scale),
            files.mean(),
            Batch.text(mean),
            Batch.text(rows(files.kind(), mean[0], Layout.product(mean, 1))),
            advice(files, mean, scale)));
  }

  /** Makes the error of shapes that may be two batches. */
  static UserError ambiguous(BatchOptions.Files files, long[] mean, long[] scale) {
    String advice =
        scale.length == 2 && mean[0] == 1
            ? "one matrix (give %s of shape (1, %d, %2$d)), or scales of %2$d Gaussians with one mean (save np.broadcast_to(m, %s))"
                .formatted(files.option(matrices(files.kind())), scale[0], Batch.text(scale))
            : "one row for all (save x[None, :]), or one number for each Gaussian (save x[:, None])";
    return new UserError(
        files.scale(),
        "has shape %s, which with the means in %s, of shape %s, may be %s"
            .formatted(Batch.text(scale), files.mean(), Batch.text(mean), advice));
  }

  /** Returns what a factor may be that has an element on the wrong side of the diagonal; nothing for one on the other. */
  static String triangle(BatchOptions.Files files, ScaleKind kind, int row, int column) {
    if (kind == ScaleKind.SCALE_TRIL && column > row) {
      return "is it a covariance (%s), or an upper factor? transpose a covariance's, such as R of QR; a precision's, such as scikit-learn's precisions_cholesky_, is %s; np.tril clears what a program left above a lower one"
          .formatted(
              files.option(ScaleKind.COVARIANCE), files.option(ScaleKind.PRECISION_CHOLESKY));
    }
    return kind == ScaleKind.PRECISION_CHOLESKY && row > column
        ? "is it a covariance's lower factor (%s)? of a precision's, give L @ L.swapaxes(1, 2) as %s; np.triu clears what a program left below an upper one"
            .formatted(files.option(ScaleKind.SCALE_TRIL), files.option(ScaleKind.PRECISION))
        : "";
  }

  /** Returns what a matrix may be that is none: of as many Gaussians as dimensions, the axes may be in another order. */
  static String matrix(Layout layout) {
    return layout.size() == layout.dimension() && layout.size() > 1 && !layout.isShared()
        ? "; if the Gaussians are along the last axis, save np.moveaxis(x, -1, 0)"
        : "";
  }

  /** Returns the shape of n Gaussians' scales. */
  private static long[] rows(ScaleKind kind, long n, long d) {
    long[] one = kind.isFull() ? Layout.matrix(kind, d) : new long[] {d};
    long[] rows = new long[one.length + 1];
    rows[0] = n;
    System.arraycopy(one, 0, rows, 1, one.length);
    return rows;
  }

  /** Returns the kind of matrices in the place of scales. */
  private static ScaleKind matrices(ScaleKind kind) {
    return switch (kind) {
      case STD -> ScaleKind.SCALE_TRIL;
      case PRECISION -> ScaleKind.PRECISION;
      default -> ScaleKind.COVARIANCE;
    };
  }

  /** Returns what to do with scales of another layout or kind; nothing where that is not to be seen. */
  private static String advice(BatchOptions.Files files, long[] mean, long[] scale) {
    ScaleKind kind = files.kind();
    long n = mean[0];
    long d = Layout.product(mean, 1);
    boolean isFull = kind.isFull() || kind == ScaleKind.PRECISION;
    if (isFull && isLast(kind, scale, n, d)) {
      return "; the Gaussians are along its last axis: save np.moveaxis(x, -1, 0)";
    }
    if (mean.length == 2 && isFull && isLast(kind, scale, d, n)) {
      return "; the Gaussians are along the last axis of both: save np.moveaxis(x, -1, 0), and the means as m.T";
    }
    if (mean.length == 2 && isFull && Arrays.equals(scale, rows(matricesOf(kind), d, n))) {
      return "; the Gaussians are along the means' last axis: save those as m.T";
    }
    if (!kind.isFull() && n == 1 && scale.length == 1) {
      return "; one number for each of %d Gaussians with one mean: save x[:, None]"
          .formatted(scale[0]);
    }
    if (!kind.isFull() && Arrays.equals(scale, new long[] {d, n})) {
      return "; one of them is transposed: save the transpose of the scales, x.T, or of the means if these are [D,N]";
    }
    if (!kind.isFull()
        && kind != ScaleKind.LOG_VARIANCE
        && IntStream.of(0, 1).anyMatch(k -> isMatrices(scale, k, n, d))) {
      return "; matrices: give "
          + files.option(matrices(kind))
          + (kind == ScaleKind.STD ? " or " + files.option(ScaleKind.COVARIANCE) : "");
    }
    return kind.isFull() ? diagonal(files, mean, scale) : "";
  }

  /** Returns what to do with scales of diagonal Gaussians in the place of matrices; nothing for any others. */
  private static String diagonal(BatchOptions.Files files, long[] mean, long[] scale) {
    if (Layout.scales(ScaleKind.VARIANCE, mean, scale).isEmpty()) {
      return "";
    }
    return switch (files.kind()) {
      case COVARIANCE -> "; variances: give " + files.option(ScaleKind.VARIANCE);
      case PRECISION_CHOLESKY ->
          "; 1/std, as scikit-learn's precisions_cholesky_ of diag and spherical: give 1/x as "
              + files.option(ScaleKind.STD);
      case PACKED_SCALE_TRIL -> "";
      default -> "; standard deviations: give " + files.option(ScaleKind.STD);
    };
  }

  private static ScaleKind matricesOf(ScaleKind kind) {
    return kind == ScaleKind.PRECISION ? ScaleKind.PRECISION_MATRIX : kind;
  }

  /** Whether scales are n matrices along the last axis. */
  private static boolean isLast(ScaleKind kind, long[] scale, long n, long d) {
    long[] rows = rows(matricesOf(kind), n, d);
    return scale.length == rows.length
        && IntStream.range(0, scale.length).allMatch(k -> scale[k] == rows[(k + 1) % rows.length]);
  }

  /** Whether scales are [D,D], behind k axes of N or 1. */
  private static boolean isMatrices(long[] scale, int k, long n, long d) {
    return d > 1
        && scale.length == k + 2
        && scale[k] == d
        && scale[k + 1] == d
        && (k == 0 || scale[0] == n || scale[0] == 1);
  }
}
