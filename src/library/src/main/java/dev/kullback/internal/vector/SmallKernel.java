package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.AlikeTerm;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.function.IntPredicate;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * The Vector API backend up to {@value #MOST_DIMENSIONS} dimensions, where a float kernel's entries would mostly be recomputed: in double
 * at once, from the differences to the store without a tile between them. An entry is {@link PairKl#of}, to the bit.
 *
 * <p>{@link SmallOperands} tells how columns are laid out. Rows:
 *
 * <pre>
 * rows    [8]                    offsetQ, noiseQ of four rows
 *         [D][3][4]              μ, v, s
 * </pre>
 *
 * Gaussians whose variances or means might overflow here are left to PairKl: their offset is −∞, their other numbers are zero. So an entry
 * is finite or −∞, and the sign of a difference is a comparison, as in {@link Epilogue}.
 */
public final class SmallKernel implements BlockKernel<SmallOperands> {
  /** This kernel takes 1.9 to 2.3 ns an entry at 4, {@link TileKernel} 3.4 at 5, 2.7 at 6 and 2.2 at 8 (Zen 3, AVX2). */
  public static final int MOST_DIMENSIONS = 4;

  /**
   * The same of batches that state their scales differently. At 3 and 4, near-duplicates of float take {@link TileKernel} 1.3 and 1.5 ns a pair, and
   * usual pairs as long as here; at 1 and 2, most usual pairs of float would be recomputed there, in 17 and 5 ns instead of .4 and .5 (Intel with
   * AVX-512, CPU family 6, JDK 25.0.3).
   */
  public static final int MOST_OF_OTHER_KINDS = 2;

  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final int V = S.length();
  private static final DoubleVector HALVES = DoubleVector.broadcast(S, 0.5);
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final LongVector ZERO = LongVector.zero(L);

  /** Rows that share what is read of the columns: two took 1.18 of the time at D = 1, 1.13 at D = 3 (Zen 3, AVX2). */
  static final int ROWS = 4;

  /** Columns at a time, whose values stay in the L1 or L2 cache for all rows of a block. */
  private static final int STRIP = 1024;

  private final Worker worker;
  private final Pair pair;
  private final IntPredicate areOtherKindsReady;
  private final double[] rows = new double[2 * ROWS + 3 * ROWS * MOST_DIMENSIONS];

  /** Tolerance − unit of a block's entries, see {@link PairKl#isCertain}. */
  private double margin;

  /** First columns of the strip's vectors that are looked at again. */
  private final int[] vectors = new int[STRIP / V];

  /** Indices in {@link #vectors} of those with uncertain entries. */
  private final int[] uncertain = new int[STRIP / V];

  /** Lanes of the uncertain vectors: 1 where an entry is still open. */
  private final long[] open = new long[STRIP];

  /** KL of {@link #vectors}, by the difference form. */
  private final double[] sums = new double[STRIP];

  /** KL of the {@link #uncertain} ones, by the stable form. */
  private final double[] stable = new double[STRIP];

  /** Σ s² of the same. */
  private final double[] squares = new double[STRIP];

  /** Rows of a strip on their way to floats. */
  private final double[] strip = new double[ROWS * STRIP];

  /** Makes a kernel of one thread. What it recomputes of batches of two kinds of scales goes pair by pair until vectors for that are ready. */
  public SmallKernel(Worker worker, Pair pair, IntPredicate areOtherKindsReady) {
    this.worker = worker;
    this.pair = pair;
    this.areOtherKindsReady = areOtherKindsReady;
  }

  @Override
  public void block(
      SmallOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    int d = operands.q().dimension();
    margin = PairKl.tolerance(operands.q(), operands.p()) - PairKl.unit64(d);
    for (int column = column0; column < column1; column += STRIP) {
      int end = Math.min(column + STRIP, column1);
      for (int row = row0; row < row1; row += ROWS) {
        worker.pass((long) ROWS * (end - column) * d);
        rows(operands, row, Math.min(row + ROWS, row1), column, end, out);
      }
    }
  }

  /** Stores some rows of a strip. */
  private void rows(
      SmallOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    SmallOperands.Columns columns = operands.columns();
    double noise = packRows(operands.q(), row0, row1) + columns.mostNoise();
    double least = noise / margin * (1 + 0x1p-50); // an entry as large is certain
    int whole = column0 + (column1 - column0) / V * V;
    int count =
        SmallMicroKernel.store(
            operands.q().dimension(),
            rows,
            columns.values(),
            column0,
            whole,
            least,
            out.wide ? out.out64 : strip,
            out.wide ? out.at(row0, 0) : -column0,
            out.wide ? out.stride : STRIP,
            row1 - row0,
            vectors);
    for (int i = row0; i < row1 && !out.wide; i++) {
      narrow(strip, (i - row0) * STRIP, whole - column0, out.out32, out.at(i, column0));
    }
    if (whole < column1) {
      vectors[count++] = whole;
    }
    for (int i = row0; i < row1 && count > 0; i++) {
      double[] stored = out.wide ? out.out64 : strip;
      refine(
          operands,
          i,
          i - row0,
          count,
          column1,
          stored,
          out.wide ? out.at(i, 0) : (i - row0) * STRIP - column0);
      store(i, count, column1, out);
    }
  }

  /** Stores the vectors of row i that were looked at again, up to column {@code end}. */
  private void store(int i, int count, int end, BlockTarget out) {
    double[] sums = this.sums;
    int[] vectors = this.vectors;
    int at = out.at(i, 0);
    int whole = vectors[count - 1] + V > end ? count - 1 : count;
    for (int n = 0; n < whole; n++) {
      DoubleVector kl = DoubleVector.fromArray(S, sums, n * V);
      if (out.wide) {
        kl.intoArray(out.out64, at + vectors[n]);
      } else {
        ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0))
            .intoArray(out.out32, at + vectors[n]);
      }
    }
    for (int k = 0; whole < count && k < end - vectors[whole]; k++) {
      out.put(i, vectors[whole] + k, sums[whole * V + k]);
    }
  }

  /** Packs some rows, the last one in the place of missing ones, and returns the largest noise of a row. */
  private double packRows(DiagonalBatch q, int row0, int row1) {
    int d = q.dimension();
    double unit = PairKl.unit64(d);
    double most = 0;
    for (int i = 0; i < ROWS; i++) {
      int row = Math.min(row0 + i, row1 - 1);
      boolean held = SmallOperands.isHeld(q, row);
      rows[i] = held ? PairKl.offsetQ(q, row) : Double.NEGATIVE_INFINITY;
      rows[ROWS + i] = held ? PairKl.noiseQ(q, row, unit) : 0;
      most = Math.max(most, rows[ROWS + i]);
      for (int h = 0, to = 2 * ROWS + i; h < d; h++, to += 3 * ROWS) {
        rows[to] = held ? q.mean(row * d + h) : 0;
        rows[to + ROWS] = held ? 1 / q.precision(row * d + h) : 0;
        rows[to + 2 * ROWS] = q.scale(row * d + h);
      }
    }
    return most;
  }

  /** Rounds n values, whole vectors, to float; apart from {@link SmallMicroKernel}, in which C2 sometimes boxed what it converted. */
  private static void narrow(double[] values, int from, int n, float[] out, int to) {
    for (int j = 0; j < n; j += V) {
      ((FloatVector)
              DoubleVector.fromArray(S, values, from + j)
                  .convertShape(VectorOperators.D2F, HALF, 0))
          .intoArray(out, to + j);
    }
  }

  /**
   * Computes the entries of row i in {@link #vectors}, each certain now, to {@link #sums}.
   *
   * @param index the row's place in {@link #rows}
   * @param end behind the last column that counts
   * @param stored from {@code at} on, the row's KL by the difference form; it lacks a last vector that is not whole
   */
  private void refine(
      SmallOperands operands, int i, int index, int listed, int end, double[] stored, int at) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    int d = q.dimension();
    worker.pass((long) V * listed * d);
    int whole = vectors[listed - 1] + V > end ? listed - 1 : listed;
    if (whole < listed) {
      compute(operands, index, whole);
    }
    int count = judge(operands, index, whole, listed, stored, at);
    if (count == 0) {
      return;
    }
    boolean same = q.kind() == p.kind();
    boolean lanes = same || areVariancesKept(q, p, count * V);
    boolean all = false;
    if (!lanes || (q == p && count == 1)) { // perhaps all but the diagonal is certain
      Arrays.fill(squares, 0, count * V, Double.POSITIVE_INFINITY);
      all = choose(operands, i, index, count, end);
    }
    int again = 0;
    if (!all && lanes) {
      again = count * V - Math.max(0, vectors[uncertain[count - 1]] + V - end);
      worker.pass(Checkpoint.ofPlain((long) V * count * d));
      SmallAlike.store(operands, i, rows, index, vectors, uncertain, count, stable, squares);
      all = choose(operands, i, index, count, end);
    }
    for (int k = 0; k < count * V && !all; k++) {
      if (open[k] != 0) {
        int n = uncertain[k / V];
        again += lanes ? 0 : 1;
        if (!lanes) {
          q.countPair();
          p.countPair();
        }
        sums[n * V + k % V] = pair.of(q, i, p, vectors[n] + k % V);
      }
    }
    worker.countAgain(0, again);
  }

  /** Whether batches of two kinds have their variances in two parts, or are to, as so many entries or those before are worth it. */
  private boolean areVariancesKept(DiagonalBatch q, DiagonalBatch p, int open) {
    return areOtherKindsReady.test(q.dimension())
        && SmallOperands.areVariancesKept(q, open)
        && SmallOperands.areVariancesKept(p, open);
  }

  /** Computes KL of the nth vector by the difference form. */
  private void compute(SmallOperands operands, int index, int n) {
    int d = operands.q().dimension();
    double[] columns = operands.columns().values();
    int k = vectors[n] * (2 * d + 1);
    DoubleVector sum = DoubleVector.zero(S);
    for (int r = 2 * ROWS + index; r < 2 * ROWS + 3 * ROWS * d; r += 3 * ROWS, k += 2 * V) {
      DoubleVector x =
          DoubleVector.broadcast(S, rows[r]).sub(DoubleVector.fromArray(S, columns, k));
      sum =
          x.fma(x, DoubleVector.broadcast(S, rows[r + ROWS]))
              .fma(DoubleVector.fromArray(S, columns, k + V), sum);
    }
    DoubleVector offsets = DoubleVector.fromArray(S, columns, k).add(rows[index]);
    HALVES.fma(sum, offsets).intoArray(sums, n * V);
  }

  /** Gathers KL in {@link #sums}, lists the vectors with an uncertain entry, and returns their number. */
  private int judge(
      SmallOperands operands, int index, int whole, int count, double[] stored, int at) {
    double[] columns = operands.columns().values();
    int noises = SmallOperands.noises(operands.p());
    double margin = this.margin;
    int found = 0;
    for (int n = 0; n < count; n++) {
      int j = vectors[n];
      DoubleVector noise = DoubleVector.fromArray(S, columns, noises + j).add(rows[ROWS + index]);
      DoubleVector kl =
          DoubleVector.fromArray(S, n < whole ? stored : sums, n < whole ? at + j : n * V);
      kl.intoArray(sums, n * V);
      uncertain[found] = n;
      LongVector signs = (LongVector) kl.mul(margin).sub(noise).reinterpretShape(L, 0);
      found +=
          (V > 2
                  ? signs.compare(VectorOperators.LT, 0).anyTrue()
                  : signs.reduceLanes(VectorOperators.OR) < 0)
              ? 1
              : 0;
    }
    return found;
  }

  /** Takes the stable form where scales are alike, and 0 at the diagonal of KL(q ‖ q); returns whether no entry is left {@link #open}. */
  private boolean choose(SmallOperands operands, int i, int index, int count, int end) {
    boolean any = settle(operands, index, count);
    for (int n = 0; n < count && operands.q() == operands.p(); n++) {
      int lane = i - vectors[uncertain[n]];
      if (lane >= 0 && lane < V) {
        sums[uncertain[n] * V + lane] = 0;
        open[n * V + lane] = 0;
      }
    }
    int valid = Math.min(V, end - vectors[uncertain[count - 1]]);
    Arrays.fill(open, (count - 1) * V + valid, count * V, 0);
    long left = 0;
    for (int k = 0; k < count * V && any; k++) {
      left |= open[k];
    }
    return left == 0;
  }

  /** Settles uncertain lanes whose Σ s² is small; leaves the other uncertain ones open, and returns whether any are. */
  private boolean settle(SmallOperands operands, int index, int count) {
    double[] columns = operands.columns().values();
    int noises = SmallOperands.noises(operands.p());
    double margin = this.margin;
    double noise = rows[ROWS + index];
    Scale kind = operands.q().kind();
    boolean areLogs = kind == Scale.LOG_VARIANCE && kind == operands.p().kind();
    double alike = areLogs ? AlikeTerm.ALIKE_LOG : AlikeTerm.ALIKE;
    LongVector any = LongVector.zero(L);
    for (int n = 0; n < count; n++) {
      int j = vectors[uncertain[n]];
      DoubleVector kl = DoubleVector.fromArray(S, sums, uncertain[n] * V);
      // NaN, and so open, where the entry is left to PairKl
      DoubleVector sum = kl.fma(DoubleVector.zero(S), DoubleVector.fromArray(S, stable, n * V));
      LongVector isUncertain =
          (LongVector)
              kl.mul(margin)
                  .sub(DoubleVector.fromArray(S, columns, noises + j).add(noise))
                  .reinterpretShape(L, 0);
      LongVector isAlike =
          (LongVector)
              DoubleVector.fromArray(S, squares, n * V).sub(alike * alike).reinterpretShape(L, 0);
      LongVector bits = (LongVector) sum.reinterpretShape(L, 0);
      LongVector left =
          isAlike
              .not()
              .or(bits)
              .or(bits.add(Epilogue.UP_TO_INFINITY))
              .and(isUncertain)
              .lanewise(VectorOperators.LSHR, 63);
      left.intoArray(open, n * V);
      any = left.or(any);
      LongVector settled = isUncertain.lanewise(VectorOperators.LSHR, 63).sub(left);
      ((DoubleVector)
              ((LongVector) kl.reinterpretShape(L, 0))
                  .bitwiseBlend(bits, ZERO.sub(settled))
                  .reinterpretShape(S, 0))
          .intoArray(sums, uncertain[n] * V);
    }
    return any.reduceLanes(VectorOperators.OR) != 0;
  }
}
