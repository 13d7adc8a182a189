package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.FullBatch;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/** Checks what callers of an engine pass, in their terms. */
public final class Arguments {
  /** As many pairs as an array holds. */
  public static final int MOST_PAIRS = Integer.MAX_VALUE - 8;

  private Arguments() {}

  /** Batches for {@code KL(q ‖ p)}. */
  public static void check(Batch q, Batch p) {
    check(q, p, false);
  }

  /** Batches for {@code KL(q ‖ p)}, or in reverse for {@code KL(p ‖ q)}. */
  public static void check(Batch q, Batch p, boolean reverse) {
    if (q.dimension() != p.dimension()) {
      throw new IllegalArgumentException(
          "q has dimension %d but p has %d; they must be equal"
              .formatted(q.dimension(), p.dimension()));
    }
    if (q instanceof DiagonalBatch d && p instanceof FullBatch) {
      d.checkStd("q");
    } else if (q instanceof FullBatch && p instanceof DiagonalBatch d) {
      d.checkStd("p");
    }
    if ((reverse ? q : p).isDeterministic() && !(reverse ? p : q).isDeterministic()) {
      throw new IllegalArgumentException(
          reverse
              ? "q is deterministic (std 0) and p is not, so KL(p‖q) is undefined"
              : "p is deterministic (std 0) and q is not, so KL(q‖p) is undefined");
    }
  }

  public static void checkAligned(Batch q, Batch p) {
    check(q, p);
    if (q.size() != p.size()) {
      throw new IllegalArgumentException(
          "q has %d Gaussians but p has %d; aligned needs as many of each"
              .formatted(q.size(), p.size()));
    }
  }

  /** Elements of the matrix, which must fit an array. */
  public static int arrayLength(Batch q, Batch p) {
    check(q, p);
    long n = (long) q.size() * p.size();
    if (n > MOST_PAIRS) {
      throw new IllegalArgumentException(
          "%d x %d = %d entries do not fit an array; write to a MemorySegment"
              .formatted(q.size(), p.size(), n));
    }
    return (int) n;
  }

  public static void checkNearest(Batch q, Batch p, int k, boolean others, boolean reverse) {
    check(q, p, reverse);
    if (others && q.size() != p.size()) {
      throw new IllegalArgumentException(
          "q has %d Gaussians but p has %d; nearestOthers needs as many of each"
              .formatted(q.size(), p.size()));
    }
    int most = others ? p.size() - 1 : p.size();
    if (k < 1 || k > most) {
      throw new IllegalArgumentException(
          "k must be in [1, %d], the %sGaussians of p, is %d"
              .formatted(most, others ? "other " : "", k));
    }
    if ((long) q.size() * k > MOST_PAIRS) {
      throw new IllegalArgumentException(
          "%d x %d neighbors do not fit an array; split q by rows".formatted(q.size(), k));
    }
  }

  public static void checkWithin(Batch q, Batch p, boolean reverse, double radius, int maxPairs) {
    check(q, p, reverse);
    if (!(radius >= 0)) {
      throw new IllegalArgumentException("radius must be >= 0, is " + radius);
    }
    if (maxPairs < 0 || maxPairs > MOST_PAIRS) {
      throw new IllegalArgumentException(
          "maxPairs must be in [0, %d], is %d".formatted(MOST_PAIRS, maxPairs));
    }
  }

  /** Of the M columns. */
  public static void checkLogWeights(Batch p, double[] logWeights, double[] out) {
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

  /** A segment that n values go to. */
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
