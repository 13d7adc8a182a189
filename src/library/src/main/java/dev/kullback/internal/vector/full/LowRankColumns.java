package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Capacitance;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;

/**
 * A batch as the columns of the low-rank product, a Gaussian in each lane: with means m relative to a centre, {@code M = I + WᵀV⁻¹W = CCᵀ} and
 * {@code B = C⁻¹WᵀV⁻¹} of p,
 *
 * <pre>
 * R  = Σ_h (v_q + ‖W_q,h‖² + m_q²) / v_p
 * X  = Σ_h [−v_q (BᵀB)_hh − 2 m_q m_p / v_p]
 * Z  = ‖B W_q‖² + ‖B m_q − B m_p‖²
 * KL = ½ (R + X − Z) + offsetQ + offsetP
 * </pre>
 *
 * <p>Its error is bounded in units of rounding. With {@code γ = min(D, 128) + D/128 + 4} of an inner product, {@code τ} and {@code η = (r + 4) r τ} of
 * {@link Capacitance}, and {@code ε = (r + 3) √(rτ)} of a column of B, by {@code ‖|C⁻¹||C|‖ ≤ √(rτ)}, and since {@code BᵀB ≤ V⁻¹} and {@code tr BVBᵀ ≤ r},
 *
 * <pre>
 * R                      (γ + r_q + 8) R
 * v_q (BᵀB)_hh           (γ + 2ε + η) R
 * m_q m_p / v_p          γ (R + S),   S = Σ_h m_p²/v_p
 * ‖B W_q‖²               (2√r (γ + ε) + η) R
 * ‖B m_q − B m_p‖²       (4√r (γ + ε) + 2η) (R + S)
 * </pre>
 *
 * half of which is {@code weight·R + noiseP}, but for r_q.
 *
 * <p>Products in float, of batches of float, add to Z what its square root errs by, {@code ‖|B||[W_q, m_q]|‖ ≤ √(r R)} times their roundings: half of it is
 * {@code t (√Z + t/2)} with {@code t = spread·√R}. Numbers up to {@link #MOST_SINGLE} neither overflow nor lose by underflow more than double rounds.
 *
 * @param factor B, {@code [b][k][h][NR]} for column panel b
 * @param single B in float, by panels of {@link #SINGLE_NR}, and empty where no product in float is expected to be within the contract
 * @param spread roundings of products in float, times √r; ∞ for a Gaussian beyond their range
 * @param sums {@code [b][3D][NR]}: {@code 1/v, −(BᵀB)_hh, −2m/v}
 * @param ofMean {@code B m}, {@code [b][k][NR]}
 * @param centre what is subtracted from all means
 * @param offset NaN for a Gaussian that is not held
 * @param tolerance relative error that batches of double are allowed
 */
record LowRankColumns(
    double[] factor,
    float[] single,
    double[] spread,
    double[] sums,
    double[] ofMean,
    double[] centre,
    double[] offset,
    double[] noise,
    double[] weight,
    double[] tolerance) {
  private static final int NR = FullColumns.NR;

  /** Columns of a panel of floats: a multiple of those of doubles. */
  static final int SINGLE_NR = SingleProductMicroKernels.NR;

  /** Dimensions that products in float add up before these sums are added: of 128, twice as many roundings count. */
  static final int SINGLE_KC = 64;

  /** Greatest number that products in float take. */
  static final double MOST_SINGLE = 0x1p56;

  /**
   * Roundings times r over √D up to which products in float are tried: the share of the contract that they take of usual Gaussians grows with it, a third at 28
   * (r = 8, D = 512).
   */
  private static final double MOST_ROUNDINGS = 48;

  /** Unit of rounding of float, with what first-order bounds leave out. */
  private static final double SINGLE_UNIT = 0x1p29 * FullPacking.UNIT;

  private static final DerivedForm<LowRankBatch, LowRankColumns> FORM =
      new DerivedForm<>(g -> pack(g, new Worker()), LowRankColumns::bytes);

  /** Returns the form that the batch keeps, which all threads of the worker's call make if nobody has. */
  static LowRankColumns of(LowRankBatch g, Worker worker) {
    LowRankColumns made = FORM.made(g);
    return made != null ? made : FORM.of(g, batch -> pack(batch, worker));
  }

  private static LowRankColumns pack(LowRankBatch g, Worker worker) {
    int d = g.dimension();
    int padded = Math.ceilDiv(g.size(), SINGLE_NR) * SINGLE_NR;
    int r = g.rank();
    double roundings = Math.min(SINGLE_KC, d) + (double) d / SINGLE_KC + 6;
    boolean hasSingle = r > 0 && !g.isDouble() && roundings * r <= MOST_ROUNDINGS * Math.sqrt(d);
    double[] spread = new double[hasSingle ? padded : 0];
    Arrays.fill(spread, SINGLE_UNIT * roundings * Math.sqrt(r));
    LowRankColumns columns =
        new LowRankColumns(
            new double[padded * d * r],
            new float[hasSingle ? padded * d * r : 0],
            spread,
            new double[padded * 3 * d],
            new double[padded * r],
            FullPacking.centre(g.size(), d, g.diagonal()::mean),
            new double[padded],
            new double[padded],
            new double[padded],
            new double[padded]);
    long terms = Checkpoint.ofPlain((long) d * (r + 1) * (r + 1));
    worker.share(g.size(), NR, terms, (from, to) -> columns.fill(g, from, to));
    return columns;
  }

  private void fill(LowRankBatch g, int from, int to) {
    int d = g.dimension();
    int r = g.rank();
    Capacitance capacitance = new Capacitance();
    double[] b = new double[r];
    double[] product = new double[r];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = from; j < to; j++) {
      checkpoint.pass(Checkpoint.ofPlain((long) d * (r + 1) * (r + 1)));
      capacitance.set(g, j, r);
      Arrays.fill(product, 0);
      int lane = j % NR;
      int sumAt = j / NR * 3 * d * NR + lane;
      int factorAt = j / NR * r * d * NR + lane;
      int singleAt = j / SINGLE_NR * r * d * SINGLE_NR + j % SINGLE_NR;
      double squares = 0;
      for (int h = 0; h < d; h++) {
        DiagonalBatch diagonal = g.diagonal();
        double inverse = 1 / diagonal.kind().variance(diagonal.scale(j * d + h));
        double m = diagonal.mean(j * d + h) - centre[h];
        capacitance.solve(g.factor(), j * r * d + h, d, inverse, b);
        double leverage = 0;
        for (int k = 0; k < r; k++) {
          factor[factorAt + (k * d + h) * NR] = b[k];
          if (hasSingle()) {
            single[singleAt + (k * d + h) * SINGLE_NR] = (float) b[k];
            if (!(Math.abs(b[k]) <= MOST_SINGLE)) {
              spread[j] = Double.POSITIVE_INFINITY;
            }
          }
          leverage += b[k] * b[k];
          product[k] += b[k] * m;
        }
        sums[sumAt + h * NR] = inverse;
        sums[sumAt + (d + h) * NR] = -leverage;
        sums[sumAt + (2 * d + h) * NR] = -2 * m * inverse;
        squares += m * inverse * m;
      }
      for (int k = 0; k < r; k++) {
        ofMean[(j / NR * r + k) * NR + lane] = product[k];
      }
      double unit = FullPacking.UNIT;
      // the products with p's mean are summed plainly: D roundings at most
      double units = Math.min(ProductKernels.KC, d) + (double) d / ProductKernels.KC + 4;
      double spread = Math.sqrt(r * capacitance.spread());
      double solved = (r + 3) * spread;
      double error = capacitance.error() / 0x1p-53;
      double ofProducts = units + solved;
      double root = Math.sqrt(r);
      offset[j] = g.logDet(j) + 0.5 * (squares - d);
      weight[j] = 0.5 * unit * (3 * units + 2 * solved + 6 * root * ofProducts + 4 * error + 8);
      double plain =
          g.logDetBound(j)
              + 4 * unit * (Math.abs(g.logDet(j)) + d + squares)
              + 0.5 * unit * squares * (units + 4 * root * (ofProducts + d) + 2 * error + d);
      noise[j] =
          g.diagonal().beyond64().get(j)
              ? Double.POSITIVE_INFINITY // v_q/v_p may be lost
              : plain;
      tolerance[j] = PairKl.DOUBLE_TOLERANCE * Math.clamp(capacitance.condition(), 1, 100);
    }
  }

  /** Whether products in float are worth to be tried. */
  boolean hasSingle() {
    return single.length > 0;
  }

  long bytes() {
    long numbers =
        0L
            + factor.length
            + single.length / 2
            + spread.length
            + sums.length
            + ofMean.length
            + centre.length;
    return Double.BYTES * (numbers + 4L * offset.length);
  }
}
