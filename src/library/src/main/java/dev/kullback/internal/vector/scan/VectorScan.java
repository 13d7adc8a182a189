package dev.kullback.internal.vector.scan;

import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.vector.Species;
import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Scans rows by the Vector API, for one thread. Sums depend on the vectors' width in their last digits.
 *
 * <p>No method here takes or returns a vector: in a large caller C2 may not inline it any more, and then boxes the vector.
 *
 * <p>A vector that a loop carries is an argument, {@code x.add(sum)}, never the receiver of the call that makes the next one: C2 knows
 * the class of such a receiver only by the profile of {@code LongVector.add}, which every caller in the process shares, and where that
 * is missing or has met other widths, it calls, and boxes both: {@code sortFew} then allocated 225 kB a {@code nearest}.
 *
 * <p>No mask is made of a long. Where vectors have 256 bits and the processor no mask registers (AVX2), C2 of JDK 25.0.3+9 turns
 * {@code VectorMask.fromLong(S, mask.toLong())} into an empty mask: of 300,000 calls that added so, 251,636 were wrong; of those that
 * kept the mask, none. {@code ArchitectureTest} forbids it throughout.
 */
public final class VectorScan implements RowScan {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final int V = S.length();
  private static final VectorSpecies<Long> L = Species.LONG;

  private static final double[] EXP = ScalarScan.exponential();

  private final ScalarScan plain = new ScalarScan(V);
  private final double[] lanes = new double[4 * V];

  /** Values of one vector, then infinite ones. */
  private final double[] last = new double[2 * V];

  private final long[] unsorted = new long[FEW];
  private final long[] ranks = new long[FEW];

  public VectorScan() {
    Arrays.fill(last, Double.POSITIVE_INFINITY);
  }

  @Override
  public int atMost(double limit, double[] values, int from, int to, int[] at) {
    int count = 0;
    int j = from;
    for (; V > 2 && j + 4 * V <= to; j += 4 * V) { // two lanes have no masks: C2 boxes them on x86
      DoubleVector a = DoubleVector.fromArray(S, values, j);
      DoubleVector b = DoubleVector.fromArray(S, values, j + V);
      DoubleVector c = DoubleVector.fromArray(S, values, j + 2 * V);
      DoubleVector d = DoubleVector.fromArray(S, values, j + 3 * V);
      // not as masks, which C2 may box where they live across a branch
      long bits =
          a.compare(VectorOperators.LE, limit).toLong()
              | b.compare(VectorOperators.LE, limit).toLong() << V
              | c.compare(VectorOperators.LE, limit).toLong() << (2 * V)
              | d.compare(VectorOperators.LE, limit).toLong() << (3 * V);
      for (; bits != 0; bits &= bits - 1) {
        at[count++] = j - from + Long.numberOfTrailingZeros(bits);
      }
    }
    return ScalarScan.atMost(limit, values, from, j, to, at, count);
  }

  /** Compares in four chains at a time: a single chain waits six cycles for each comparison. */
  @Override
  public void leastOfGroups(double[] values, int from, int to, int groups, double[] least) {
    if (V == 2) { // no masks
      plain.leastOfGroups(values, from, to, groups, least);
      return;
    }
    for (int g = 0; g < groups; g += 4 * V) {
      int j = from + g;
      DoubleVector a = DoubleVector.fromArray(S, values, j);
      DoubleVector b = DoubleVector.fromArray(S, values, j + V);
      DoubleVector c = DoubleVector.fromArray(S, values, j + 2 * V);
      DoubleVector d = DoubleVector.fromArray(S, values, j + 3 * V);
      for (j += groups; j + 4 * V <= to; j += groups) {
        // without the care that DoubleVector.min takes of NaN and −0
        DoubleVector x = DoubleVector.fromArray(S, values, j);
        a = x.blend(a, x.compare(VectorOperators.GE, a));
        x = DoubleVector.fromArray(S, values, j + V);
        b = x.blend(b, x.compare(VectorOperators.GE, b));
        x = DoubleVector.fromArray(S, values, j + 2 * V);
        c = x.blend(c, x.compare(VectorOperators.GE, c));
        x = DoubleVector.fromArray(S, values, j + 3 * V);
        d = x.blend(d, x.compare(VectorOperators.GE, d));
      }
      a.intoArray(least, g);
      b.intoArray(least, g + V);
      c.intoArray(least, g + 2 * V);
      d.intoArray(least, g + 3 * V);
    }
  }

  @Override
  public double min(double[] values, int from, int to) {
    if (to - from < 4 * V) {
      return plain.min(values, from, to);
    }
    int whole = from + (to - from) / (4 * V) * 4 * V;
    leastOfGroups(values, from, whole, 4 * V, lanes);
    return Math.min(plain.min(lanes, 0, 4 * V), plain.min(values, whole, to));
  }

  @Override
  public double sum(double[] values, int from, int to) {
    DoubleVector a = DoubleVector.zero(S);
    DoubleVector b = a;
    DoubleVector c = a;
    DoubleVector d = a;
    int j = from;
    for (; j + 4 * V <= to; j += 4 * V) {
      a = DoubleVector.fromArray(S, values, j).add(a);
      b = DoubleVector.fromArray(S, values, j + V).add(b);
      c = DoubleVector.fromArray(S, values, j + 2 * V).add(c);
      d = DoubleVector.fromArray(S, values, j + 3 * V).add(d);
    }
    a.add(b).add(c.add(d)).intoArray(lanes, 0);
    return total() + plain.sum(values, j, to);
  }

  /** Adds up the lanes in their order, which {@code reduceLanes} does not promise. */
  private double total() {
    double sum = 0;
    for (int i = 0; i < V; i++) {
      sum += lanes[i];
    }
    return sum;
  }

  /** Computes exp by itself: {@code VectorOperators.EXP} gives other last digits where the VM has no code for it, as in the interpreter. */
  @Override
  public double sumExp(double shift, double[] values, int from, int to) {
    if (Double.isInfinite(shift)) {
      return plain.sumExp(shift, values, from, to); // there are differences NaN
    }
    Arrays.fill(lanes, 0);
    int j = to - (to - from) % (2 * V);
    addExp(shift, values, from, j);
    if (j + V <= to) { // one vector, beside one of terms 0
      System.arraycopy(values, j, last, 0, V);
      addExp(shift, last, 0, 2 * V);
      j += V;
    }
    return total() + plain.sumExp(shift, values, j, to);
  }

  /**
   * Adds the terms of {@code values[from…to)}, whole pairs of vectors, to {@link #lanes} in their order. In pairs a value takes 0.74 ns,
   * vector by vector 1.04 (Zen 4; with AVX2 1.56 and 1.69). The sum is in an array, as C2 may box it where it lives across the branch.
   */
  private void addExp(double shift, double[] values, int from, int to) {
    for (int j = from; j < to; j += 2 * V) {
      DoubleVector most = DoubleVector.broadcast(S, shift);
      DoubleVector least = DoubleVector.broadcast(S, ScalarScan.NEGLIGIBLE);
      DoubleVector x0 = most.sub(DoubleVector.fromArray(S, values, j));
      DoubleVector x1 = most.sub(DoubleVector.fromArray(S, values, j + V));
      LongVector counts0 = (LongVector) least.sub(x0).reinterpretShape(L, 0); // negative: it counts
      LongVector counts1 = (LongVector) least.sub(x1).reinterpretShape(L, 0);
      if (counts0.or(counts1).reduceLanes(VectorOperators.OR) >= 0) {
        continue;
      }
      DoubleVector rounded0 = x0.mul(ScalarScan.LOG2_E).add(ScalarScan.ROUND);
      DoubleVector rounded1 = x1.mul(ScalarScan.LOG2_E).add(ScalarScan.ROUND);
      DoubleVector k0 = rounded0.sub(ScalarScan.ROUND);
      DoubleVector k1 = rounded1.sub(ScalarScan.ROUND);
      DoubleVector high = DoubleVector.broadcast(S, -ScalarScan.LN2_HIGH);
      DoubleVector low = DoubleVector.broadcast(S, -ScalarScan.LN2_LOW);
      DoubleVector r0 = k0.fma(low, k0.fma(high, x0));
      DoubleVector r1 = k1.fma(low, k1.fma(high, x1));
      DoubleVector y0 = DoubleVector.broadcast(S, EXP[0]);
      DoubleVector y1 = y0;
      for (int n = 1; n < EXP.length; n++) {
        DoubleVector coefficient = DoubleVector.broadcast(S, EXP[n]);
        y0 = r0.fma(y0, coefficient);
        y1 = r1.fma(y1, coefficient);
      }
      LongVector zero = LongVector.zero(L);
      LongVector power0 = ((LongVector) rounded0.reinterpretShape(L, 0)).add(Double.MAX_EXPONENT);
      LongVector power1 = ((LongVector) rounded1.reinterpretShape(L, 0)).add(Double.MAX_EXPONENT);
      y0 = y0.mul(power0.lanewise(VectorOperators.LSHL, 52).reinterpretShape(S, 0));
      y1 = y1.mul(power1.lanewise(VectorOperators.LSHL, 52).reinterpretShape(S, 0));
      LongVector term0 =
          ((LongVector) y0.reinterpretShape(L, 0))
              .and(zero.sub(counts0.lanewise(VectorOperators.LSHR, 63)));
      LongVector term1 =
          ((LongVector) y1.reinterpretShape(L, 0))
              .and(zero.sub(counts1.lanewise(VectorOperators.LSHR, 63)));
      DoubleVector.fromArray(S, lanes, 0)
          .add(term0.reinterpretShape(S, 0))
          .add(term1.reinterpretShape(S, 0))
          .intoArray(lanes, 0);
    }
  }

  /** Counts each key's rank: n²/8 comparisons without a branch are faster than the branches of n ln n. */
  @Override
  public void sortFew(long[] keys, int from, int to) {
    int n = to - from;
    System.arraycopy(keys, from, unsorted, 0, n);
    for (int i = 0; i < n; i += V) {
      LongVector x = LongVector.fromArray(L, unsorted, i);
      LongVector rank = LongVector.zero(L);
      for (int j = 0; j < n; j++) {
        // a comparison, as no key is negative
        rank =
            LongVector.broadcast(L, unsorted[j])
                .sub(x)
                .lanewise(VectorOperators.LSHR, 63)
                .add(rank);
      }
      rank.intoArray(ranks, i);
    }
    Arrays.fill(keys, from, to, -1);
    for (int s = 0; s < n; s++) {
      keys[from + (int) ranks[s]] = unsorted[s];
    }
    for (int s = from + 1; s < to; s++) {
      keys[s] = keys[s] < 0 ? keys[s - 1] : keys[s]; // equal ones have one rank
    }
  }
}
