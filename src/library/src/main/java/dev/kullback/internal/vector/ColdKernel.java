package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.NearTerm;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import org.jspecify.annotations.Nullable;

/**
 * {@link TileKernel} without vectors: the same sums by the same text, and so the same bits, some columns at a time in loops that C2 makes
 * vectors of by itself: a third of compiled vectors' rate, where four columns in variables had a tenth (float, AVX-512, Zen 4, JDK 25.0.3).
 */
public final class ColdKernel implements BlockKernel<TileOperands> {
  private static final int COLUMNS = BlockSums.Scalar.COLUMNS;

  /** Columns that are summed in double where one is to be. */
  private static final int REFINED = Batch.WIDEST_PANEL;

  private final Worker worker;
  private final Pair pair;
  private final Formula.LastStep lastStep;
  private final boolean hasDifferenceForm;
  private final BlockSums.Scalar<float[]> floats;

  /** Sums of the form in double; of batches of float, started at a block's first need. */
  private final BlockSums.Scalar<double[]> doubles;

  private final double[] value = new double[1];

  private final @Nullable FloatNearForm near32;
  private final @Nullable DoubleNearForm near64;

  public ColdKernel(Formula formula, Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
    lastStep = formula.lastStep();
    hasDifferenceForm = formula.hasDifferenceForm();
    NearTerm term = formula.nearTerm();
    near32 = term != null ? new FloatNearForm(formula, term) : null;
    near64 = term != null ? new DoubleNearForm(formula, term) : null;
    floats = FloatSums.scalar(formula);
    doubles = DoubleSums.scalar(formula);
  }

  /** Drops a call's batches. */
  @Override
  public void clear() {
    floats.dropBatches();
    doubles.dropBatches();
  }

  @Override
  public void block(
      TileOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    operands.countEntries(row1 - row0, column1 - column0);
    BlockSums.Scalar<?> sums = operands.isWide() ? doubles : floats;
    doubles.dropBatches();
    sums.startBlock(operands, row0, row1);
    for (int column = column0; column < column1; column += COLUMNS) {
      int end = Math.min(column + COLUMNS, column1);
      sums.compute(worker, 0, row1 - row0, column, end - column);
      for (int i = row0; i < row1; i++) {
        row(operands, sums, row0, row1, i, column, end, out);
      }
    }
  }

  /**
   * Puts some columns of a row. As loops of {@link #block}, which a new process runs in the interpreter for long, this came to C2 later and took it longer: 415 instead of 469
   * matrices of 100 × 256 in the first second, and the same time once warm (medians of six; AVX-512, CPU family 26, JDK 25.0.3).
   */
  @SuppressWarnings("TooManyParameters") // what block has
  private void row(
      TileOperands operands,
      BlockSums.Scalar<?> sums,
      int row0,
      int row1,
      int i,
      int column,
      int end,
      BlockTarget out) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    int d = q.dimension();
    boolean wide = sums == doubles;
    double[] r = sums.r[i - row0];
    int refined = -1; // first of the columns that have sums in double
    for (int j = column; j < end; j++) {
      double value = q == p && i == j ? 0 : certain(sums, r[j - column], i, j);
      if (Double.isNaN(value)) {
        worker.pass(Checkpoint.ofPlain(d));
        if (hasDifferenceForm && !wide) {
          value = PairKl.certain(PairKl.REFINED_TOLERANCE, q, i, p, j);
        } else if (!wide) {
          if (!doubles.isStarted()) {
            doubles.startBlock(operands, row0, row1);
          }
          int first = j - j % REFINED;
          if (refined != first) {
            int count = Math.min(REFINED, end - first);
            doubles.compute(worker, i - row0, i - row0 + 1, first, count);
            refined = first;
          }
          value = certain(doubles, doubles.r[0][j - first], i, j);
        }
        boolean isOpen = Double.isNaN(value);
        worker.countAgain(isOpen ? 0 : 1, isOpen ? 1 : 0);
        if (isOpen) {
          if (wide) {
            value = near64 != null ? near64.value(q, i, p, j) : value;
          } else if (near32 != null) {
            value = near32.value(q, i, p, j);
          }
        }
      }
      out.put(i, j, Double.isNaN(value) ? stable(pair, q, i, p, j) : finish(value));
    }
  }

  /** Returns an entry by its R, or NaN where its error bound exceeds the tolerance. */
  private static double certain(BlockSums.Scalar<?> sums, double r, int i, int j) {
    double value = Math.fma(r, sums.factor, sums.offsetP[j] + sums.offsetQ[i]);
    double noise = sums.noiseP[j] + sums.noiseQ[i];
    return PairKl.isCertain(value, noise, sums.margin) ? value : Double.NaN;
  }

  @Nullable FloatNearForm near32() {
    return near32;
  }

  @Nullable DoubleNearForm near64() {
    return near64;
  }

  private double finish(double sum) {
    if (lastStep == Formula.LastStep.NONE || sum == 0) {
      return sum;
    }
    value[0] = sum;
    if (lastStep == Formula.LastStep.ROOT) {
      ScalarElementary.toRoots(value, 1);
    } else {
      ScalarElementary.toHellinger(value, 1);
    }
    return value[0];
  }

  /** Returns the divergence of a pair by its stable form, and 0 of equal parameters in the time of comparing them. */
  private static double stable(Pair pair, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return q.isEqual(i, p, j) ? 0 : pair.stable(q, i, p, j);
  }
}
