<#include "../Lanes.ftl">
<#-- Where a number a row or column of a batch is in a vector of columns. -->
<#function ofColumns array><#return load(array, "j + v")></#function>
<#-- The kernel of KL and, as the product in both directions, that of Jeffreys' divergence. -->
<#macro kernel vectors scalars isKl>
<@twins vectors scalars>
package dev.kullback.internal.vector.full;

<#if isKl && asVectors>
import dev.kullback.internal.batch.FullBatch;
import java.util.function.IntPredicate;
</#if>
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.vector.Epilogue;
import dev.kullback.internal.work.Worker;
<@imports>
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
<#if isKl>
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.work.Checkpoint;
<#else>
import dev.kullback.internal.vector.DoubleTranspose;
</#if>
</@imports>

<#if !asVectors>
/** {@link ${vectors}} without vectors: the same text, so the same bits. */
<#elseif isKl>
/**
 * Full covariances as a matrix product on the Vector API: multiplies a block group by group, turns the products into divergences, and
 * leaves the entries whose error bound exceeds the contract to {@link FullPair}.
 */
<#else>
/**
 * Jeffreys' divergence of full covariances as two matrix products, q with p and p with q, as {@link FullVectorKernel} has one. Values and
 * error bounds of both are computed alike and added, so that no bit depends on the roles.
 */
</#if>
public final class ${class} implements BlockKernel<FullOperands> {
<@species>
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
</@species>
  private static final int NR = FullColumns.NR;
  private static final int GROUP = ${twin}ProductKernels.GROUP;
<#if isKl && asVectors>

  /** Open entries of a row in a vector of columns from which on {@link FullSolveKernel} takes less time than {@link FullPair}. */
  private static final int SEVERAL = 2;
</#if>

  private final Worker worker;
  private final Pair pair;
<#if isKl && asVectors>
  private final IntPredicate arePairsReady;
  private final FullSolveKernel solve = new FullSolveKernel();
</#if>
  private final ${twin}ProductKernels products = new ${twin}ProductKernels();

  /** Share of the error bound that each row of a block has. */
  private final double[] bound = new double[MOST_ROWS];

  /** Signs of a row's columns in a panel: negative where an entry is to be recomputed. */
  private final long[] signs = new long[NR];

  /** Entries to be recomputed: a row of a block each, one bit a column of a panel. */
  private final long[] open = new long[MOST_ROWS];
<#if !isKl>

  /** Products of columns with rows, and laid out as those of rows with columns. */
  private final ${twin}ProductKernels backward = new ${twin}ProductKernels();

  private final double[] transposed = new double[MOST_ROWS * GROUP];

  /** Share of the error bound that each column of a group has as a row; before they are moved there, of some of them. */
  private final double[] boundP = new double[GROUP];

  private final double[] some = new double[MOST_ROWS];
<#if asVectors>
  private final DoubleTranspose transpose = new DoubleTranspose(true);
</#if>
</#if>

<#if isKl && asVectors>
  /** Makes a kernel of one thread, which recomputes entries one by one until pairs in lanes are ready. */
  public ${class}(Worker worker, Pair pair, IntPredicate arePairsReady) {
    this.worker = worker;
    this.pair = pair;
    this.arePairsReady = arePairsReady;
  }
<#else>
  public ${class}(Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }
</#if>

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    FullRows q = operands.rows();
    FullColumns p = operands.columns();
    FullPacking.weigh(q, row0, row1, p, bound);
    for (int column = column0; column < column1; column += GROUP) {
      int end = Math.min(column + GROUP, column1);
      products.compute(q, row0, row1, p, column, end, worker);
<#if !isKl>
      for (int j = column; j < end; j += MOST_ROWS) {
        multiplyBackward(operands, row0, row1, column, j, Math.min(j + MOST_ROWS, end));
      }
</#if>
      for (int j = column; j < end; j += NR) {
        store(operands, row0, row1, column, j, Math.min(NR, end - j), out);
        recompute(operands, row0, row1, j, out);
      }
    }
  }
<#if !isKl>

  /** Multiplies rows [j, end) of p with columns [row0, row1) of q, and moves the products to where the group has them. */
  private void multiplyBackward(
      FullOperands operands, int row0, int row1, int column, int j, int end) {
    FullRows p = operands.otherRows();
    FullColumns q = operands.otherColumns();
    FullPacking.weigh(p, j, end, q, some);
    System.arraycopy(some, 0, boundP, j - column, end - j);
    int base = row0 / NR * NR; // panels of q may begin before the block does
    backward.compute(p, j, end, q, base, row1, worker);
    for (int row = base; row < row1; row += NR) {
      int first = Math.max(row, row0);
      int count = Math.min(row + NR, row1) - first;
      for (int k = j; k < end; k += NR) {
        int from = (row - base) * MOST_ROWS + (k - j) * NR + first - row;
        int to = (k - column) * MOST_ROWS + (first - row0) * NR;
        int columns = Math.min(NR, end - k);
<#if asVectors>
        transpose.toLanes(backward.values, from, NR, columns, count, transposed, to, NR);
<#else>
        for (int i = 0; i < count; i++) {
          for (int c = 0; c < columns; c++) {
            transposed[to + i * NR + c] = backward.values[from + c * NR + i];
          }
        }
</#if>
      }
    }
  }
</#if>

  /** Stores the divergences of one column panel of a group, and marks in {@code open} those whose error bound exceeds the tolerance. */
  private void store(
      FullOperands operands, int row0, int row1, int column, int j, int columns, BlockTarget out) {
    int panel = (j - column) * MOST_ROWS;
    FullRows q = operands.rows();
    FullColumns p = operands.columns();
    double[] product = products.values;
    double[] bound = this.bound;
    long[] open = this.open;
    long[] signs = this.signs;
    double[] offset = q.offset();
    double[] noise = q.noise();
<#if !isKl>
    FullRows pRows = operands.otherRows();
    FullColumns qColumns = operands.otherColumns();
    double[] transposed = this.transposed;
</#if>
<#if isKl>
    double factor = operands.factor();
</#if>
    double more = operands.moreTolerance(); // not a choice of vectors, which C2 may box
<#if asVectors>
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
</#if>
    for (int i = row0; i < row1; i++) {
      ${type("Long")} any = ${zero("Long")};
      for (int v = 0; v < columns; v += V) {
        int at = panel + (i - row0) * NR + v;
        ${vector} sum = ${load("product", "at")};
        ${vector} offsets = ${add(ofColumns("p.offset()"), "offset[i]")};
        ${vector} value = ${add(mul("sum", isKl?then("factor", "0.5")), "offsets")};
        ${vector} noises = ${add(ofColumns("p.noise()"), "noise[i]")};
        ${vector} error = ${fma(ofColumns("p.inverseError()"), "sum", "noises")};
        error = ${fma(ofColumns("p.weight()"), broadcast("bound[i - row0]"), "error")};
<#if isKl>
        ${vector} tolerance = ${add(ofColumns("p.tolerance()"), "more")};
<#else>
        ${vector} back = ${load("transposed", "at")};
        offsets = ${add(ofColumns("pRows.offset()"), "qColumns.offset()[i]")};
        value = ${add("value", add(mul("back", "0.5"), "offsets"))};
        noises = ${add(ofColumns("pRows.noise()"), "qColumns.noise()[i]")};
        ${vector} backError = ${fma(broadcast("qColumns.inverseError()[i]"), "back", "noises")};
        ${vector} boundsP = ${load("boundP", "j - column + v")};
        error = ${add("error", fma(broadcast("qColumns.weight()[i]"), "boundsP", "backError"))};
        ${vector} tolerance = ${add(max(ofColumns("p.tolerance()"), "qColumns.tolerance()[i]"), "more")};
</#if>
        ${vector} room = ${sub(mul("value", "tolerance"), "error")};
        ${type("Long")} rest = ${bits("room")};
        rest = ${or("rest", add("rest", "Epilogue.UP_TO_INFINITY"))};
        ${store("rest", "signs", "v")};
        any = ${or("rest", "any")};
<#if asVectors>
        int to = out.at(i, j + v);
        if (v + V > columns) { // by way of where the sums were
          value.intoArray(product, at);
          for (int l = 0; l < columns - v; l++) {
            out.put(i, j + v + l, product[at + l]);
          }
        } else if (wide) {
          value.intoArray(out64, to);
        } else {
          ((FloatVector) value.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        }
<#else>
        out.put(i, j + v, value);
</#if>
      }
      long bits = 0;
      if (${isAnyNegative("any")}) {
        for (int v = 0; v < columns; v++) {
          bits |= signs[v] >>> 63 << v;
        }
      }
      open[i - row0] = bits;
    }
  }

  /** Recomputes the open entries of a column panel<#if isKl && asVectors>: where a row has several in a vector of columns, these at once</#if>. */
  private void recompute(FullOperands operands, int row0, int row1, int j, BlockTarget out) {
<#if isKl && asVectors>
    for (int v = 0; v < NR; v += V) {
      boolean packed = false;
      for (int i = row0; i < row1; i++) {
        long bits = (open[i - row0] >>> v) & (-1L >>> -V);
        if (Long.bitCount(bits) < SEVERAL
            || !arePairsReady.test(operands.p().dimension())) {
          continue;
        }
        FullBatch q = (FullBatch) operands.q();
        FullBatch p = (FullBatch) operands.p();
        if (!packed) {
          solve.pack(q, p, j + v, operands.areFactorsAlike());
          packed = true;
        }
        worker.pass(Checkpoint.ofSolve(q.dimension()));
        double[] kl = solve.row(q, i);
        for (; bits != 0; bits &= bits - 1) {
          int lane = Long.numberOfTrailingZeros(bits);
          if (kl[lane] < Double.POSITIVE_INFINITY) {
            out.put(i, j + v + lane, kl[lane]);
            open[i - row0] &= ~(1L << (v + lane));
          }
        }
      }
    }
</#if>
    for (int i = row0; i < row1; i++) {
      for (long bits = open[i - row0]; bits != 0; bits &= bits - 1) {
        int column = j + Long.numberOfTrailingZeros(bits);
        out.put(i, column, pair.of(operands.q(), i, operands.p(), column));
      }
    }
  }
}
</@twins>
</#macro>
<@kernel "FullVectorKernel" "FullColdKernel" true/>
<@kernel "FullJeffreysKernel" "FullColdJeffreys" false/>
