package dev.kullback.internal.vector;

import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.plain.ScalarScan;
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
  private final long[] unsorted = new long[FEW];
  private final long[] ranks = new long[FEW];

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
        a = a.blend(x, x.compare(VectorOperators.LT, a));
        x = DoubleVector.fromArray(S, values, j + V);
        b = b.blend(x, x.compare(VectorOperators.LT, b));
        x = DoubleVector.fromArray(S, values, j + 2 * V);
        c = c.blend(x, x.compare(VectorOperators.LT, c));
        x = DoubleVector.fromArray(S, values, j + 3 * V);
        d = d.blend(x, x.compare(VectorOperators.LT, d));
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
      a = a.add(DoubleVector.fromArray(S, values, j));
      b = b.add(DoubleVector.fromArray(S, values, j + V));
      c = c.add(DoubleVector.fromArray(S, values, j + 2 * V));
      d = d.add(DoubleVector.fromArray(S, values, j + 3 * V));
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
    Arrays.fill(lanes, 0); // the sum, which C2 may box where it lives across the branch
    int j = from;
    for (; j + V <= to; j += V) {
      DoubleVector x = DoubleVector.broadcast(S, shift).sub(DoubleVector.fromArray(S, values, j));
      LongVector counts = // negative where x > NEGLIGIBLE
          (LongVector)
              DoubleVector.broadcast(S, ScalarScan.NEGLIGIBLE).sub(x).reinterpretShape(L, 0);
      if (counts.reduceLanes(VectorOperators.OR) < 0) {
        DoubleVector rounded = x.mul(ScalarScan.LOG2_E).add(ScalarScan.ROUND);
        DoubleVector k = rounded.sub(ScalarScan.ROUND);
        DoubleVector r =
            k.fma(
                DoubleVector.broadcast(S, -ScalarScan.LN2_LOW),
                k.fma(DoubleVector.broadcast(S, -ScalarScan.LN2_HIGH), x));
        DoubleVector y = DoubleVector.broadcast(S, EXP[0]);
        for (int n = 1; n < EXP.length; n++) {
          y = y.fma(r, DoubleVector.broadcast(S, EXP[n]));
        }
        DoubleVector power =
            (DoubleVector)
                ((LongVector) rounded.reinterpretShape(L, 0))
                    .add(Double.MAX_EXPONENT)
                    .lanewise(VectorOperators.LSHL, 52)
                    .reinterpretShape(S, 0);
        LongVector term =
            ((LongVector) power.mul(y).reinterpretShape(L, 0))
                .and(LongVector.zero(L).sub(counts.lanewise(VectorOperators.LSHR, 63)));
        DoubleVector.fromArray(S, lanes, 0).add(term.reinterpretShape(S, 0)).intoArray(lanes, 0);
      }
    }
    return total() + plain.sumExp(shift, values, j, to);
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
            rank.add(
                LongVector.broadcast(L, unsorted[j]).sub(x).lanewise(VectorOperators.LSHR, 63));
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
