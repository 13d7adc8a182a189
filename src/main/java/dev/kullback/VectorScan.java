package dev.kullback;

import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/** On the Vector API, for one thread. Sums depend on the vectors' width in their last digits. */
final class VectorScan implements RowScan {
  private static final VectorSpecies<Double> S = VectorWidth.DOUBLE;
  private static final int V = S.length();
  private static final VectorSpecies<Long> L =
      VectorSpecies.of(long.class, VectorShape.forBitSize(VectorWidth.BITS));
  private static final LongVector ONE = LongVector.broadcast(L, 1);

  private static final double LOG2_E = 1 / Math.log(2);

  /** ln 2 = HIGH + LOW; multiples of HIGH up to 2¹¹ are exact (fdlibm's e_exp.c). */
  private static final double LN2_HIGH = 0x1.62e42feep-1;

  private static final double LN2_LOW = 0x1.a39ef35793c76p-33;

  /** Adding it rounds to an integer, which is then in the lowest bits. */
  private static final double ROUND = 0x1.8p52;

  /** Taylor's 1/n! from n = 12 down: for |r| ≤ ½ ln 2 what is left out is 2e-16. */
  private static final double[] EXP = new double[13];

  static {
    double factorial = 1;
    for (int n = 0; n <= 12; n++) {
      factorial *= Math.max(1, n);
      EXP[12 - n] = 1 / factorial;
    }
  }

  private final ScalarScan tail = new ScalarScan();
  private final double[] lanes = new double[V];
  private final long[] unsorted = new long[FEW];
  private final long[] ranks = new long[FEW];

  /** Four vectors a branch. */
  @Override
  public int atMost(double limit, double[] values, int from, int to, int[] at) {
    int count = 0;
    int j = from;
    for (; j + 4 * V <= to; j += 4 * V) {
      VectorMask<Double> a = load(values, j).compare(VectorOperators.LE, limit);
      VectorMask<Double> b = load(values, j + V).compare(VectorOperators.LE, limit);
      VectorMask<Double> c = load(values, j + 2 * V).compare(VectorOperators.LE, limit);
      VectorMask<Double> d = load(values, j + 3 * V).compare(VectorOperators.LE, limit);
      if (a.or(b).or(c.or(d)).anyTrue()) {
        long bits = a.toLong() | b.toLong() << V | c.toLong() << (2 * V) | d.toLong() << (3 * V);
        for (; bits != 0; bits &= bits - 1) {
          at[count++] = j - from + Long.numberOfTrailingZeros(bits);
        }
      }
    }
    return ScalarScan.atMost(limit, values, from, j, to, at, count);
  }

  private static DoubleVector load(double[] values, int j) {
    return DoubleVector.fromArray(S, values, j);
  }

  /** Without the care that {@link DoubleVector#min} takes of NaN and −0. */
  private static DoubleVector min(DoubleVector a, DoubleVector b) {
    return a.blend(b, b.compare(VectorOperators.LT, a));
  }

  /** Four chains of comparisons at a time: one waits six cycles for each. */
  @Override
  public void leastOfGroups(double[] values, int from, int to, int groups, double[] least) {
    for (int g = 0; g < groups; g += 4 * V) {
      int j = from + g;
      DoubleVector a = load(values, j);
      DoubleVector b = load(values, j + V);
      DoubleVector c = load(values, j + 2 * V);
      DoubleVector d = load(values, j + 3 * V);
      for (j += groups; j + 4 * V <= to; j += groups) {
        a = min(a, load(values, j));
        b = min(b, load(values, j + V));
        c = min(c, load(values, j + 2 * V));
        d = min(d, load(values, j + 3 * V));
      }
      a.intoArray(least, g);
      b.intoArray(least, g + V);
      c.intoArray(least, g + 2 * V);
      d.intoArray(least, g + 3 * V);
    }
  }

  @Override
  public double min(double[] values, int from, int to) {
    DoubleVector a = DoubleVector.broadcast(S, Double.POSITIVE_INFINITY);
    DoubleVector b = a;
    DoubleVector c = a;
    DoubleVector d = a;
    int j = from;
    for (; j + 4 * V <= to; j += 4 * V) {
      a = min(a, load(values, j));
      b = min(b, load(values, j + V));
      c = min(c, load(values, j + 2 * V));
      d = min(d, load(values, j + 3 * V));
    }
    return Math.min(
        min(min(a, b), min(c, d)).reduceLanes(VectorOperators.MIN), tail.min(values, j, to));
  }

  @Override
  public double sum(double[] values, int from, int to) {
    DoubleVector a = DoubleVector.zero(S);
    DoubleVector b = a;
    DoubleVector c = a;
    DoubleVector d = a;
    int j = from;
    for (; j + 4 * V <= to; j += 4 * V) {
      a = a.add(load(values, j));
      b = b.add(load(values, j + V));
      c = c.add(load(values, j + 2 * V));
      d = d.add(load(values, j + 3 * V));
    }
    a.add(b).add(c.add(d)).intoArray(lanes, 0);
    return total() + tail.sum(values, j, to);
  }

  /** In the lanes' order, which {@code reduceLanes} does not promise. */
  private double total() {
    double sum = 0;
    for (double lane : lanes) {
      sum += lane;
    }
    return sum;
  }

  /**
   * An exp of its own: {@code VectorOperators.EXP} is as good, but where the VM has no code for it, in the interpreter say, it gives other
   * last digits.
   */
  @Override
  public double sumExp(double shift, double[] values, int from, int to) {
    DoubleVector sum = DoubleVector.zero(S);
    int j = from;
    for (; j + V <= to; j += V) {
      DoubleVector x = DoubleVector.broadcast(S, shift).sub(load(values, j));
      VectorMask<Double> counts = x.compare(VectorOperators.GT, ScalarScan.NEGLIGIBLE);
      if (counts.anyTrue()) {
        sum = sum.add(exp(x), counts);
      }
    }
    sum.intoArray(lanes, 0);
    return total() + tail.sumExp(shift, values, j, to);
  }

  /** For x in (NEGLIGIBLE, 0], to 6e-16; else anything. */
  private static DoubleVector exp(DoubleVector x) {
    DoubleVector rounded = x.mul(LOG2_E).add(ROUND);
    DoubleVector k = rounded.sub(ROUND);
    DoubleVector r =
        k.fma(DoubleVector.broadcast(S, -LN2_LOW), k.fma(DoubleVector.broadcast(S, -LN2_HIGH), x));
    DoubleVector y = DoubleVector.broadcast(S, EXP[0]);
    for (int n = 1; n < 13; n++) {
      y = y.fma(r, DoubleVector.broadcast(S, EXP[n]));
    }
    return rounded
        .viewAsIntegralLanes()
        .add(Double.MAX_EXPONENT)
        .lanewise(VectorOperators.LSHL, 52)
        .reinterpretAsDoubles()
        .mul(y);
  }

  /** By their ranks, counted: n²/8 comparisons without a branch are faster than the branches of n ln n. */
  @Override
  public void sortFew(long[] keys, int from, int to) {
    int n = to - from;
    System.arraycopy(keys, from, unsorted, 0, n);
    for (int i = 0; i < n; i += V) {
      LongVector x = LongVector.fromArray(L, unsorted, i);
      LongVector rank = LongVector.zero(L);
      for (int j = 0; j < n; j++) {
        rank = rank.add(ONE, x.compare(VectorOperators.GT, unsorted[j]));
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
