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
 * @param factor B, {@code [b][k][h][NR]} for column panel b
 * @param sums {@code [b][3D][NR]}: {@code 1/v, −(BᵀB)_hh, −2m/v}
 * @param ofMean {@code B m}, {@code [b][k][NR]}
 * @param centre what is subtracted from all means
 * @param offset NaN for a Gaussian that is not held
 * @param tolerance relative error that batches of double are allowed
 */
record LowRankColumns(
    double[] factor,
    double[] sums,
    double[] ofMean,
    double[] centre,
    double[] offset,
    double[] noise,
    double[] weight,
    double[] tolerance) {
  private static final int NR = FullColumns.NR;

  private static final DerivedForm<LowRankBatch, LowRankColumns> FORM =
      new DerivedForm<>(g -> pack(g, new Worker()), LowRankColumns::bytes);

  /** Returns the form that the batch keeps, which all threads of the worker's call make if nobody has. */
  static LowRankColumns of(LowRankBatch g, Worker worker) {
    LowRankColumns made = FORM.made(g);
    return made != null ? made : FORM.of(g, batch -> pack(batch, worker));
  }

  private static LowRankColumns pack(LowRankBatch g, Worker worker) {
    int d = g.dimension();
    int padded = Math.ceilDiv(g.size(), NR) * NR;
    LowRankColumns columns =
        new LowRankColumns(
            new double[padded * d * g.rank()],
            new double[padded * 3 * d],
            new double[padded * g.rank()],
            FullPacking.centre(g.size(), d, g.diagonal()::mean),
            new double[padded],
            new double[padded],
            new double[padded],
            new double[padded]);
    long terms = Checkpoint.ofPlain((long) d * (g.rank() + 1) * (g.rank() + 1));
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
      double squares = 0;
      for (int h = 0; h < d; h++) {
        DiagonalBatch diagonal = g.diagonal();
        double inverse = 1 / diagonal.kind().variance(diagonal.scale(j * d + h));
        double m = diagonal.mean(j * d + h) - centre[h];
        capacitance.solve(g.factor(), (j * d + h) * r, inverse, b);
        double leverage = 0;
        for (int k = 0; k < r; k++) {
          factor[factorAt + (k * d + h) * NR] = b[k];
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

  long bytes() {
    long numbers = 0L + factor.length + sums.length + ofMean.length + centre.length;
    return Double.BYTES * (numbers + 4L * offset.length);
  }
}
