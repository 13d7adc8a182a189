package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.SearchOptions;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Checks what callers of an engine pass, in their terms. */
public final class Arguments {
  private Arguments() {}

  /** Batches for the divergence of q and p, or in reverse for that of p and q. */
  public static void check(Formula formula, Batch q, Batch p, boolean reverse) {
    String rows = formula.isOfPoints() ? "points" : "q";
    if (q.dimension() != p.dimension()) {
      throw new IllegalArgumentException(
          "%s has dimension %d but p has %d; they must be equal"
              .formatted(rows, q.dimension(), p.dimension()));
    }
    checkSome(q, rows);
    checkSome(p, "p");
    checkPoints(formula, q, rows);
    checkPoints(null, p, "p");
    if (q instanceof DiagonalBatch d && p instanceof FullBatch) {
      d.checkStd("q");
    } else if (q instanceof FullBatch && p instanceof DiagonalBatch d) {
      d.checkStd("p");
    }
    checkLowRank(formula, q, "q");
    checkLowRank(formula, p, "p");
    checkExpandable(q, p, "q");
    checkExpandable(p, q, "p");
    boolean exchanged = formula.isExchanged(reverse);
    if (!formula.hasDeterministic()) {
      checkStochastic(formula, q, "q");
      checkStochastic(formula, p, "p");
    } else if ((exchanged ? p : q).isDeterministic()) {
      return;
    } else if ((exchanged ? q : p).isDeterministic()) {
      throw new IllegalArgumentException(
          exchanged
              ? "q is deterministic (std 0) and p is not, so KL(p‖q) is undefined"
              : "p is deterministic (std 0) and q is not, so KL(q‖p) is undefined");
    }
    if (!formula.isOfPoints()) {
      checkDefinite(formula, q, "q");
    }
    checkDefinite(formula, p, "p");
  }

  /** A batch for the divergence from N(0, I). */
  public static void checkStandard(Formula formula, Batch q) {
    checkSome(q, "q");
    checkPoints(formula, q, "q");
    checkLowRank(formula, q, "q");
    if (formula.isReverse() && q.isDeterministic()) {
      throw new IllegalArgumentException(
          "q is deterministic (std 0), so its divergence from N(0, I) is undefined");
    }
    if (!formula.hasDeterministic()) {
      checkStochastic(formula, q, "q");
    }
    if (!q.isDeterministic()) {
      checkDefinite(formula, q, "q");
    }
  }

  private static void checkSome(Batch batch, String role) {
    if (batch.size() == 0) {
      throw new IllegalArgumentException(
          batch.arePoints()
              ? role + " has no points; give one at least"
              : role + " has no Gaussians; only a KlIndex takes an empty batch");
    }
  }

  /** Batches are points, or are not; null for a batch that may not be. */
  private static void checkPoints(@Nullable Formula formula, Batch batch, String role) {
    boolean isOfPoints = formula != null && formula.isOfPoints();
    if (!isOfPoints && batch.arePoints()) {
      batch.checkDefinite(role);
    }
    if (isOfPoints && !batch.arePoints()) {
      throw new IllegalArgumentException(
          role
              + " have variances; make points by DiagonalGaussians.ofPoints, and give them first, the Gaussians after them");
    }
  }

  /** Only some divergences take low-rank covariances. */
  private static void checkLowRank(Formula formula, Batch batch, String role) {
    if (batch instanceof LowRankBatch && !formula.hasLowRank()) {
      throw LowRankBatch.refused(
          role,
          formula.isOfPoints()
              ? "a density"
              : "a divergence other than KL, its reverse and Jeffreys'");
    }
  }

  /** Low-rank covariances are written out beside full ones. */
  private static void checkExpandable(Batch batch, Batch other, String role) {
    if (batch instanceof LowRankBatch && other instanceof FullBatch && !batch.isExpandable()) {
      throw new IllegalArgumentException(
          "%s has low-rank covariances, which are written out as full ones for the other batch: %d of dimension %d are too many; split it by rows"
              .formatted(role, batch.size(), batch.dimension()));
    }
  }

  private static void checkDefinite(Formula formula, Batch batch, String role) {
    if (formula.needsInverse()) {
      batch.checkDefinite(role);
    }
  }

  private static void checkStochastic(Formula formula, Batch batch, String role) {
    if (formula.needsInverse() && batch.isDeterministic()) {
      throw new IllegalArgumentException(
          role + " is deterministic (std 0), which only KL has a convention for");
    }
  }

  public static void checkAligned(Formula formula, Batch q, Batch p) {
    check(formula, q, p, false);
    if (q.size() != p.size()) {
      throw new IllegalArgumentException(
          "q has %d Gaussians but p has %d; aligned needs as many of each"
              .formatted(q.size(), p.size()));
    }
  }

  /** Elements of the matrix, which must fit an array. */
  public static int arrayLength(Formula formula, Batch q, Batch p) {
    check(formula, q, p, false);
    long n = (long) q.size() * p.size();
    if (n > Batch.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "%d x %d = %d entries do not fit an array; write to a MemorySegment"
              .formatted(q.size(), p.size(), n));
    }
    return (int) n;
  }

  /** Batches of a search, and what its options say about their rows. */
  public static void checkSearch(Formula formula, Batch q, Batch p, SearchOptions options) {
    if (formula.isOfPoints() && options.reverse()) {
      throw new IllegalArgumentException(
          "points have no density to search in: Query.reverse is for Gaussians");
    }
    check(formula, q, p, options.reverse());
    int first = options.firstColumn();
    checkIndices("firstIndex", first, "p", p.size());
    if (options.excludesSelf()) {
      checkIndices("firstRow", options.firstRow(), "q", q.size());
    }
    NeighborLists earlier = options.earlier();
    if (earlier != null) {
      checkEarlier(earlier, q, first, first + (p.size() - 1));
    }
  }

  /** Neighbors of every row among all columns. */
  public static void checkNeighbors(int k, int columns) {
    if (k < 1 || k > columns) {
      throw new IllegalArgumentException(
          "k must be in [1, %d], the Gaussians of p, is %d".formatted(columns, k));
    }
  }

  /** Neighbors of every row, of which each has as many. */
  public static void checkEvery(SearchOptions options, int least, int columns) {
    if (options.k() > least) {
      throw new IllegalArgumentException(
          "k must be in [1, %d], the %sGaussians of p%s, is %d"
              .formatted(
                  least,
                  least == columns || options.earlier() != null
                      ? ""
                      : options.takesAll() ? "other " : "accepted ",
                  options.earlier() == null ? "" : " and of the earlier list",
                  options.k()));
    }
  }

  /** Neighbors of every row of N, which are to fit an array. */
  public static void checkEntries(Batch q, SearchOptions options) {
    if (options.isWithin()) {
      throw new IllegalArgumentException(
          "a search within a radius finds different numbers for each row, which arrays cannot tell; take the search that returns Neighbors");
    }
    if ((long) q.size() * options.k() > Batch.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "%d x %d neighbors do not fit an array; split q by rows"
              .formatted(q.size(), options.k()));
    }
    options.checkPairs((long) q.size() * options.k());
  }

  /** Lists of q's rows and other indices than p's, first to last. */
  private static void checkEarlier(NeighborLists earlier, Batch q, int first, int last) {
    if (earlier.size() != q.size()) {
      throw new IllegalArgumentException(
          "earlier has %d rows but q has %d Gaussians; they must be those of the same q"
              .formatted(earlier.size(), q.size()));
    }
    checkOrder("earlier", earlier);
    for (int i = 0; i < earlier.size(); i++) {
      for (int s = earlier.start()[i]; s < earlier.start()[i + 1]; s++) {
        int j = earlier.indices()[s];
        if (j >= first && j <= last) {
          throw new IllegalArgumentException(
              "earlier, row %d, has index %d, which is one of p's: p has [%d, %d]"
                  .formatted(i, j, first, last));
        }
      }
    }
  }

  private static void checkIndices(String argument, int first, String batch, int size) {
    if (first > Integer.MAX_VALUE - (size - 1)) {
      throw new IllegalArgumentException(
          "%s is %d and %s has %d Gaussians; the index of the last one is more than 2^31 - 1"
              .formatted(argument, first, batch, size));
    }
  }

  /** An index of a Gaussian, or of another thing of which there are as many. */
  public static void checkIndex(String argument, int index, int size) {
    if (index < 0 || index >= size) {
      throw new IndexOutOfBoundsException(
          "%s is %d; it must be in [0, %d)".formatted(argument, index, size));
    }
  }

  /** Indices of Gaussians. */
  public static void checkIndices(String argument, int[] indices, int size) {
    Objects.requireNonNull(indices, argument);
    for (int r = 0; r < indices.length; r++) {
      if (indices[r] < 0 || indices[r] >= size) {
        checkIndex("%s[%d]".formatted(argument, r), indices[r], size);
      }
    }
  }

  /** A range of Gaussians. */
  public static void checkRange(int from, int to, int size) {
    if (from < 0 || from > size) {
      throw new IndexOutOfBoundsException(
          "from is %d; it must be in [0, %d]".formatted(from, size));
    }
    if (to < from || to > size) {
      throw new IndexOutOfBoundsException(
          "to is %d; it must be in [from, size] = [%d, %d]".formatted(to, from, size));
    }
  }

  /** Lists whose rows are ascending, as those of exact searches are. */
  public static void checkOrder(String argument, NeighborLists lists) {
    for (int i = 0; i < lists.size(); i++) {
      int s = lists.disorder(i);
      if (s >= 0) {
        throw new IllegalArgumentException(
            "%s, row %d, is not ascending by value and then index at neighbor %d; take lists of nearest"
                .formatted(argument, i, s - lists.start()[i]));
      }
    }
  }

  /** Lists of blocks that do not overlap, whose first k of each row fit an array. */
  public static void checkMerge(int k, NeighborLists... lists) {
    long length = 0;
    for (int i = 0; i < lists[0].size(); i++) {
      int twice = NeighborLists.duplicate(i, lists);
      if (twice >= 0) {
        throw new IllegalArgumentException(
            "row %d has index %d twice; blocks overlap, or firstIndex is wrong for one of them"
                .formatted(i, twice));
      }
      length += NeighborLists.count(i, k, lists);
    }
    SearchOptions.nearest(k).checkPairs(length);
  }

  /** Pairs of rows, each of which must be one. */
  public static void checkPairs(Formula formula, Batch q, int[] rows, Batch p, int[] columns) {
    check(formula, q, p, false);
    Objects.requireNonNull(rows, "rows");
    Objects.requireNonNull(columns, "columns");
    if (rows.length != columns.length) {
      throw new IllegalArgumentException(
          "rows has %d indices but columns has %d; pairs need as many of each"
              .formatted(rows.length, columns.length));
    }
    checkIndices("rows", rows, "q", q.size());
    checkIndices("columns", columns, "p", p.size());
  }

  private static void checkIndices(String argument, int[] indices, String batch, int size) {
    for (int r = 0; r < indices.length; r++) {
      if (indices[r] < 0 || indices[r] >= size) {
        throw new IllegalArgumentException(
            "%s[%d] is %d; it must be in [0, %d), the Gaussians of %s"
                .formatted(argument, r, indices[r], size, batch));
      }
    }
  }

  /** Weights of the M columns. */
  public static void checkLogWeights(Batch p, double[] logWeights, double @Nullable [] out) {
    Objects.requireNonNull(logWeights, "logWeights");
    if (logWeights.length != p.size()) {
      throw new IllegalArgumentException(
          "logWeights has %d elements but p has %d Gaussians"
              .formatted(logWeights.length, p.size()));
    }
    if (logWeights == out) {
      throw new IllegalArgumentException(
          "logWeights and out are the same array; weights are read until all rows are done");
    }
    for (int j = 0; j < logWeights.length; j++) {
      if (!(logWeights[j] < Double.POSITIVE_INFINITY)) {
        throw new IllegalArgumentException(
            "logWeights[%d] is %s; it must be finite or -Infinity".formatted(j, logWeights[j]));
      }
    }
  }

  public static void checkOut(int needed, float[] out) {
    checkLength("out", needed, Objects.requireNonNull(out, "out").length);
  }

  public static void checkOut(int needed, double[] out) {
    checkLength("out", needed, Objects.requireNonNull(out, "out").length);
  }

  public static void checkLength(String array, int needed, int length) {
    if (length < needed) {
      throw new IllegalArgumentException(
          "%s has %d elements but %d are needed".formatted(array, length, needed));
    }
  }

  /** A segment for n values. */
  public static void checkSegment(long n, boolean wide, MemorySegment out) {
    Objects.requireNonNull(out, "out");
    long bytes = n * (wide ? 8 : 4); // n < 2^62/8: sizes of batches held in arrays
    if (out.byteSize() < bytes) {
      throw new IllegalArgumentException(
          "out has %d bytes but %d are needed, %d %s values"
              .formatted(out.byteSize(), bytes, n, wide ? "double" : "float"));
    }
    if (out.isReadOnly()) {
      throw new IllegalArgumentException("out is a read-only segment");
    }
    Elements.checkAccessible(out, "out");
  }
}
