<#include "../Lanes.ftl">
<#-- Adds sums of a block to those of the blocks before it. -->
<#macro addTo sums>
    if (first) {
<#list sums as sum, to>
      ${store(sum, to, "v")};
</#list>
    } else {
<#list sums as sum, to>
      ${store(add(sum, load(to, "v")), to, "v")};
</#list>
    }
</#macro>
<@twins "LowRankVectorSums" "LowRankColdSums">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.formula.LowRankSums;
import java.util.Arrays;
<@imports/>

<#if asVectors>
/**
 * {@link LowRankSums} on the Vector API, by dimensions, a column of the factors in each lane: a block's products are a matrix product,
 *
 * <pre>
 * [U, G]ᵀ [V⁻¹G, cW_q] = [ P      UᵀcW_q ]
 *                        [ Q      GᵀcW_q ]
 * </pre>
 *
 * <p>whose right half has the sum {@code W_qᵀcW_q}, and {@code tr M⁻¹GᵀcW_q = tr M⁻¹(Q_c + P_c)}. What it multiplies stays in the L1 cache.
 */
<#else>
/** {@link LowRankVectorSums} without vectors: the same text, so the same bits. */
</#if>
public final class ${class} extends LowRankSums {
<@species/>
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  /** r rounded up to whole panels of rows, and the number of column panels. */
  private int padded;

  private int panels;

  /** U and UM⁻¹ of p, and W of q, {@code [D][padded]}, 0 in columns that are not theirs. */
  private double[] u = {};

  private double[] solvedU = {};
  private double[] w = {};

  /** M⁻¹, a row padded. */
  private double[] m = {};

  /** U and W where they are read, which is where the batch has them if these need no padding. */
  private double[] fromU = u;

  private double[] fromW = w;
  private int atU;
  private int atW;

  /** A block of the product's rows, {@code [a][BLOCK][MR]}, and columns, {@code [b][BLOCK][NR]}, and the product, {@code [b][row][NR]}. */
  private double[] rows = {};

  private double[] columns = {};
  private double[] products = {};

  /** By column: sums of d/v_p u, of c g times UM⁻¹, of xc u times UM⁻¹, of |c| u² and of |c| g². */
  private double[] ofD = {};

  private double[] ofSolvedG = {};
  private double[] ofSolvedU = {};
  private double[] ofSizeU = {};
  private double[] ofSizeG = {};

  @Override
  protected void clear() {
    super.clear();
    fromU = u;
    fromW = w;
  }

  @Override
  protected void makeRoom() {
    padded = Math.ceilDiv(rank, MR) * MR;
    panels = Math.ceilDiv(2 * padded, NR);
    int length = blocks * BLOCK * padded;
    if (u.length < length) {
      solvedU = new double[length];
      w = new double[length];
      u = new double[length];
    }
    if (ofD.length < padded) {
      m = new double[padded * padded];
      rows = new double[2 * padded * BLOCK];
      columns = new double[panels * NR * BLOCK];
      products = new double[panels * NR * 2 * padded];
      ofSolvedG = new double[padded];
      ofSolvedU = new double[padded];
      ofSizeU = new double[padded];
      ofSizeG = new double[padded];
      ofD = new double[padded];
    }
  }

  /** Copies W of a Gaussian to where its columns are padded. */
  private void pad(LowRankBatch batch, int i, double[] to) {
    int d = batch.dimension();
    int r = batch.rank();
    int from = i * d * r;
    for (int h = 0; h < d; h++) {
      int at = h * padded;
      for (int k = 0; k < r; k++) {
        to[at + k] = batch.factor()[from + h * r + k];
      }
      Arrays.fill(to, at + r, at + padded, 0);
    }
  }

  @Override
  protected void takeP(LowRankBatch p, int j) {
    int d = p.dimension();
    boolean isPadded = p.rank() != padded;
    if (isPadded) {
      pad(p, j, u);
    }
    fromU = isPadded ? u : p.factor();
    atU = isPadded ? 0 : j * d * padded;
    for (int k = 0; k < rank; k++) {
      System.arraycopy(inverse, k * rank, m, k * padded, rank);
      Arrays.fill(m, k * padded + rank, (k + 1) * padded, 0);
    }
    for (int h = 0; h < d; h++) {
      solve(h * padded);
    }
  }

  /** Computes uM⁻¹ of a row of U. */
  private void solve(int at) {
    double[] m = this.m;
    double[] u = fromU;
    double[] solvedU = this.solvedU;
    int from = atU + at;
    for (int v = 0; v < padded; v += V) {
      ${vector} sum = ${zero()};
      for (int k = 0; k < rank; k++) {
        ${vector} x = ${load("m", "k * padded + v")};
        ${vector} y = ${broadcast("u[from + k]")};
        sum = ${fma("x", "y", "sum")};
      }
      ${store("sum", "solvedU", "at + v")};
    }
  }

  @Override
  protected void sumProducts(LowRankBatch q, int i) {
    int d = q.dimension();
    boolean isPadded = q.rank() != padded;
    if (isPadded) {
      pad(q, i, w);
    }
    fromW = isPadded ? w : q.factor();
    atW = isPadded ? 0 : i * d * padded;
    int height = 2 * padded;
    int width = isShared ? padded : 2 * padded;
    for (int b = 0; b < blocks; b++) {
      int length = Math.min(BLOCK, d - b * BLOCK);
      for (int v = 0; v < padded; v += V) {
        int at = b * BLOCK * padded + v;
        pack(at, inverses[b], length, v);
        if (isShared) {
          addDifferences(at, differences[b], length, v, b == 0);
        } else {
          change(at, changes[b], length, v);
          addDifferences(at, differences[b], length, v, b == 0);
          addChanges(at, b, length, v);
        }
      }
      for (int c = 0; c < width; c += NR) {
        ${twin}ProductMicroKernels.multiply(
            rows, 0, BLOCK, height, columns, c * BLOCK, length, width - c, products, c * height, b == 0);
      }
    }
    finish(height);
  }

  /** Packs U, G and V⁻¹G of some columns in a block. */
  private void pack(int at, double[] inverses, int length, int v) {
    double[] u = fromU;
    double[] w = fromW;
    double[] rows = this.rows;
    double[] columns = this.columns;
    int row = v / MR * BLOCK * MR + v % MR;
    int below = (padded + v) / MR * BLOCK * MR + v % MR;
    int column = v / NR * BLOCK * NR + v % NR;
    for (int t = 0; t < length; t++) {
      ${vector} x = ${load("u", "atU + at + t * padded")};
      ${vector} y = ${load("w", "atW + at + t * padded")};
      ${vector} g = ${sub("y", "x")};
      ${store("x", "rows", "row + t * MR")};
      ${store("g", "rows", "below + t * MR")};
      ${vector} weighed = ${mul("g", "inverses[t]")};
      ${store("weighed", "columns", "column + t * NR")};
    }
  }

  /** Packs cW_q. */
  private void change(int at, double[] changes, int length, int v) {
    double[] w = fromW;
    double[] columns = this.columns;
    int from = padded + v;
    int column = from / NR * BLOCK * NR + from % NR;
    for (int t = 0; t < length; t++) {
      ${vector} x = ${load("w", "atW + at + t * padded")};
      ${vector} changed = ${mul("x", "changes[t]")};
      ${store("changed", "columns", "column + t * NR")};
    }
  }

  private void addDifferences(int at, double[] differences, int length, int v, boolean first) {
    double[] u = fromU;
    ${vector} sum = ${zero()};
    for (int t = 0; t < length; t++) {
      ${vector} x = ${load("u", "atU + at + t * padded")};
      ${vector} y = ${broadcast("differences[t]")};
      sum = ${fma("x", "y", "sum")};
    }
<@addTo {"sum": "ofD"}/>
  }

  /** Adds what c weighs of some columns in a block. */
  private void addChanges(int at, int b, int length, int v) {
    double[] u = fromU;
    double[] solvedU = this.solvedU;
    double[] rows = this.rows;
    double[] changes = this.changes[b];
    double[] excesses = this.excesses[b];
    int below = (padded + v) / MR * BLOCK * MR + v % MR;
    ${vector} ofG = ${zero()};
    ${vector} ofU = ${zero()};
    ${vector} sizeU = ${zero()};
    ${vector} sizeG = ${zero()};
    for (int t = 0; t < length; t++) {
      ${vector} x = ${load("u", "atU + at + t * padded")};
      ${vector} solved = ${load("solvedU", "at + t * padded")};
      ${vector} g = ${load("rows", "below + t * MR")};
      ${vector} c = ${broadcast("changes[t]")};
      ${vector} xc = ${broadcast("excesses[t]")};
      ${vector} y = ${mul("c", "g")};
      ofG = ${fma("y", "solved", "ofG")};
      ${vector} z = ${mul("xc", "x")};
      ofU = ${fma("z", "solved", "ofU")};
      ${vector} size = ${abs("c")};
      ${vector} s = ${mul("size", "x")};
      sizeU = ${fma("s", "x", "sizeU")};
      ${vector} r = ${mul("size", "g")};
      sizeG = ${fma("r", "g", "sizeG")};
    }
    boolean first = b == 0;
<@addTo {"ofG": "ofSolvedG", "ofU": "ofSolvedU", "sizeU": "ofSizeU", "sizeG": "ofSizeG"}/>
  }

  /** Takes the sums from where they were added up. */
  private void finish(int height) {
    traceOfG = 0;
    traceOfU = 0;
    for (int k = 0; k < rank; k++) {
      ud[k] = ofD[k];
      for (int l = 0; l < rank; l++) {
        int at = l / NR * height * NR + l % NR;
        ofUG[k * rank + l] = products[at + k * NR];
        ofGG[k * rank + l] = products[at + (padded + k) * NR];
      }
    }
    if (isShared) {
      Arrays.fill(ofWW, 0);
      Arrays.fill(sizeU, 0);
      Arrays.fill(sizeG, 0);
      return;
    }
    for (int k = 0; k < rank; k++) {
      traceOfG += ofSolvedG[k];
      traceOfU += ofSolvedU[k];
      sizeU[k] = ofSizeU[k];
      sizeG[k] = ofSizeG[k];
      for (int l = 0; l < rank; l++) {
        int c = padded + l;
        int at = c / NR * height * NR + c % NR;
        double ofG = products[at + (padded + k) * NR];
        ofWW[k * rank + l] = products[at + k * NR] + ofG;
        traceOfG += inverse[k * rank + l] * ofG;
      }
    }
  }
}
</@twins>
