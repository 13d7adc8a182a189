package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Near form: the divergence of nearly identical Gaussians of one {@link Scale} in float, without cancellation: {@code KL = ½ Σ_h [d²/v_p +
 * z²]} with {@code z = (s_q − s_p) α_p β_q} of the raw scales s, so weighted that {@code z² = σq²/σp² − 1 − ln(σq²/σp²)} but for
 * a relative error of second order. Nearby values subtract exactly and no term is negative, so nothing cancels: a term is good
 * to 11 roundings, and is in at most 64 sums before promotion, together 4.5e-6.
 *
 * <p>With {@code u = ln(σq²/σp²)}, z² should be {@code ½u²(1 + u/3 + u²/12 + …)}. For variances {@code (v_q − v_p)²/(v_q v_p) =
 * 4 sinh²(u/2) = u²(1 + u²/12 + …)}, and {@code (v_q/v_p)^⅓ = 1 + u/3 + u²/18 + …}, so that half their product is off by 0.056u²; for
 * precisions too, for deviations by 0.007u², and for log-variances, {@code ½u² (v_q/v_p)^⅓}, by 0.028u².
 */
final class NearKernel {
  /**
   * Largest KL of 64 dimensions for which this form holds. The computed KL tells: if it is at most LIMIT, every {@code u² ≤ 4 LIMIT}, and
   * z² is off by at most 0.9e-6 of itself. Double settles what is above 5.6e-7 in 64 dimensions.
   */
  static final double LIMIT = 0x1p-18;

  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Double> D = Species.DOUBLE;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final DoubleVector LIMITS = DoubleVector.broadcast(D, 2 * LIMIT);
  private static final LongVector ZERO = LongVector.zero(L);
  private static final int V = VectorWidth.BITS / Float.SIZE;
  private static final int NR = FloatPanels.NR;

  /** Numbers per dimension of a column: mean, 1/v, s, α. */
  static final int FIELDS = 4;

  /**
   * Batch packed for this form.
   *
   * @param columns {@code [b][h][FIELDS][V]} for Gaussians b·V to b·V + V − 1; contiguous for each vector of columns, so that a block
   *     stays in the L1 cache
   * @param rowWeights β, row-major
   */
  record Near(float[] columns, float[] rowWeights) {}

  static final DerivedForm<DiagonalBatch, Near> PACKED =
      new DerivedForm<>(
          NearKernel::pack, n -> (long) Float.BYTES * (n.columns.length + n.rowWeights.length));

  /** Twice the KL of a block of dimensions, row-major {@code [rows, NR]}. */
  private final float[] acc = new float[Tile.CAPACITY];

  /** KL, likewise; valid for {@link #rows}. */
  private final double[] kl = new double[Tile.CAPACITY];

  /** Rows of the tile that are computed, the last repeated to make up a group of four. */
  private final int[] rows = new int[Tile.ROWS + 3];

  /** Columns, as bits, whose parameters equal a column's; 0 where it is not known. */
  private final long[] same = new long[NR];

  /** Returns the least KL of which the underflow of D terms in float, at most 2⁻¹⁴⁸ each, is below 2⁻²⁴. */
  static double leastKl(int dimension) {
    return dimension * 0x1p-124;
  }

  private static Near pack(DiagonalBatch g) {
    int n = g.size();
    int d = g.dimension();
    float[] mean = g.mean32();
    float[] scale = g.scale32();
    float[] columns = new float[Math.ceilDiv(n, NR) * NR * FIELDS * d];
    float[] rowWeights = new float[n * d];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < n; j++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      int to = j / V * V * FIELDS * d + j % V;
      for (int k = j * d; k < (j + 1) * d; k++, to += FIELDS * V) {
        double rowWeight = rowWeight(g.kind(), scale[k]);
        columns[to] = mean[k];
        columns[to + V] = (float) (1 / g.kind().variance(scale[k]));
        columns[to + 2 * V] = scale[k];
        columns[to + 3 * V] = (float) (weight(g.kind(), scale[k]) / rowWeight);
        rowWeights[k] = (float) rowWeight;
      }
    }
    return new Near(columns, rowWeights);
  }

  /** Returns β, which makes z² grow with σq²/σp² as it should. */
  private static double rowWeight(Scale kind, double s) {
    return switch (kind) {
      case STD -> 1 / Math.cbrt(Math.sqrt(s));
      case VARIANCE -> 1 / Math.cbrt(s);
      case LOG_VARIANCE -> Math.exp(s / 6);
      case PRECISION -> 1 / Math.cbrt(s * s);
    };
  }

  /** Returns αβ of one Gaussian, the derivative of {@code √½ ln σ²}. */
  private static double weight(Scale kind, double s) {
    return switch (kind) {
      case STD -> Math.sqrt(2) / s;
      case VARIANCE, PRECISION -> Math.sqrt(0.5) / s;
      case LOG_VARIANCE -> Math.sqrt(0.5);
    };
  }

  /** Computes {@link #kl} of the first {@code count} of {@link #rows}, NaN where 64 dimensions have more than {@link #LIMIT}. */
  private void compute(Tile t, DiagonalBatch q, DiagonalBatch p, int count) {
    int d = q.dimension();
    float[] rowWeights = PACKED.of(q).rowWeights;
    float[] columns = PACKED.of(p).columns;
    Arrays.fill(rows, count, count + 3, rows[count - 1]);
    Arrays.fill(same, 0);
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      for (int c = 0; c < t.columns; c += V) {
        // a block of dimensions stays in the L1 cache for all rows
        int at = ((t.column + c) / V * d + h) * FIELDS * V;
        for (int k = 0; k < count; k += 4) {
          NearMicroKernel.tile4x1(
              q.mean32(),
              q.scale32(),
              rowWeights,
              t.row * d + h,
              d,
              rows[k],
              rows[k + 1],
              rows[k + 2],
              rows[k + 3],
              columns,
              at,
              length,
              acc,
              c);
        }
      }
      promote(t.rows * NR, h == 0);
    }
  }

  /** Adds a block of dimensions to {@link #kl}, NaN where it has more than {@link #LIMIT}. */
  private void promote(int n, boolean first) {
    for (int i = 0; i < n; i += D.length()) {
      DoubleVector part =
          (DoubleVector)
              FloatVector.fromArray(HALF, acc, i).convertShape(VectorOperators.F2D, D, 0);
      LongVector beyond =
          ZERO.sub(
              ((LongVector) LIMITS.sub(part).reinterpretShape(L, 0))
                  .lanewise(VectorOperators.LSHR, 63));
      part =
          (DoubleVector)
              ((LongVector) part.reinterpretShape(L, 0)).or(beyond).reinterpretShape(D, 0);
      part = part.mul(0.5);
      (first ? part : part.add(DoubleVector.fromArray(D, kl, i))).intoArray(kl, i);
    }
  }

  /** Stores the KL of a tile as wide as a panel; whether this form settles every entry, and neither float nor double any. */
  boolean store(Tile t, DiagonalBatch q, DiagonalBatch p, TileSums<?> floats, TileSums<?> doubles) {
    Arrays.setAll(rows, i -> i);
    compute(t, q, p, t.rows);
    double least = leastKl(q.dimension());
    int stored = Epilogue.storeNear(t, kl, floats, doubles, least);
    return stored > 0 || (stored == 0 && areLowEqual(t, q, p, least));
  }

  /** Whether the entries below {@code least} are those of equal parameters. */
  private boolean areLowEqual(Tile t, DiagonalBatch q, DiagonalBatch p, double least) {
    for (int i = 0; i < t.rows; i++) {
      long zeros = 0;
      for (int j = 0; j < NR; j++) {
        double value = kl[i * NR + j];
        if (value == 0) {
          zeros |= 1L << j;
        } else if (value < least) {
          return false;
        }
      }
      if (equal(t, q, p, i, zeros) != zeros) {
        return false;
      }
    }
    return true;
  }

  /** Settles the open entries that this form is right for, and those of equal parameters; how many stay open. */
  int settle(Tile t, DiagonalBatch q, DiagonalBatch p) {
    int count = 0;
    for (int i = 0; i < t.rows; i++) {
      if (t.hasOpen(i)) {
        rows[count++] = i;
      }
    }
    compute(t, q, p, count);
    int open = 0;
    for (int k = 0; k < count; k++) {
      int i = rows[k];
      long zeros = 0;
      for (int j = 0; j < t.columns; j++) {
        double value = kl[i * NR + j];
        if (!t.isOpen(i, j)) {
          continue;
        }
        if (value == 0) {
          zeros |= 1L << j;
        } else if (isRight(value, q, t.row + i, p, t.column + j)) {
          t.settle(i, j, value);
        } else {
          open++;
        }
      }
      long equal = equal(t, q, p, i, zeros);
      open += Long.bitCount(zeros ^ equal);
      for (; equal != 0; equal &= equal - 1) {
        t.settle(i, Long.numberOfTrailingZeros(equal), 0);
      }
    }
    return open;
  }

  /** Returns those of some columns, given as bits, that have row i's parameters; equal columns are compared with it once. */
  private long equal(Tile t, DiagonalBatch q, DiagonalBatch p, int i, long columns) {
    long equal = 0;
    for (long bits = columns & (-1L >>> -t.columns); bits != 0; ) {
      int j = Long.numberOfTrailingZeros(bits);
      if (same[j] == 0) {
        for (int k = 0; k < t.columns; k++) {
          same[j] |= p.isEqual(t.column + j, p, t.column + k) ? 1L << k : 0;
        }
      }
      if (q.isEqual(t.row + i, p, t.column + j)) {
        equal |= bits & same[j];
      }
      bits &= ~same[j];
    }
    return equal;
  }

  /** Computes the KL of one entry without vectors, to the bits of {@link #compute}; NaN where this form does not hold. */
  static double kl(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    float[] mean = q.mean32();
    float[] scale = q.scale32();
    float[] weights = PACKED.of(q).rowWeights;
    float[] columns = PACKED.of(p).columns;
    float[] acc = new float[1];
    double sum = 0;
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      int at = (j / V * d + h) * FIELDS * V + j % V;
      ScalarNearMicroKernel.tile1x1(
          mean, scale, weights, i * d + h, d, 0, columns, at, length, acc, 0);
      sum += acc[0] > 2 * LIMIT ? Double.POSITIVE_INFINITY : acc[0];
    }
    double kl = 0.5 * sum;
    boolean right = kl == 0 ? q.isEqual(i, p, j) : isRight(kl, q, i, p, j);
    return right ? kl : Double.NaN;
  }

  /** Whether a KL other than 0 is within the contract: float holds the scales, and neither underflow nor {@link #LIMIT} shows. */
  private static boolean isRight(double kl, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return kl >= leastKl(q.dimension())
        && kl < Double.POSITIVE_INFINITY
        && !q.beyond32().get(i)
        && !p.beyond32().get(j);
  }
}
