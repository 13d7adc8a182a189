package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.work.Checkpoint;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/**
 * The error bound of what kernels of diagonal batches make of their sums R: the divergence is {@code factor·R + offsetQ(q_i) +
 * offsetP(p_j)}, and its error at most {@code unit·divergence + noiseQ(q_i) + noiseP(p_j)}. If no error is known, a noise is NaN, and the
 * entry is recomputed. Each formula has its own bound, with the proof.
 */
public abstract class TileBound {
  /** Dimensions whose variances are multiplied before the product's exponent is taken apart. */
  public static final int RUN = 8;

  /** Dimensions whose quotients have one denominator. */
  public static final int RUNS = 32;

  static final double U32 = 0x1p-24;
  static final double U64 = 0x1p-53;

  /** Forms of entries, by their precision and contract. */
  public enum Precision {
    FLOAT(U32, PairKl.FLOAT_TOLERANCE),
    /** Double, for batches of float. */
    REFINED(U64, PairKl.REFINED_TOLERANCE),
    DOUBLE(U64, PairKl.DOUBLE_TOLERANCE);

    /** Unit roundoff. */
    final double u;

    final double tolerance;

    Precision(double u, double tolerance) {
      this.u = u;
      this.tolerance = tolerance;
    }

    boolean isFloat() {
      return this == FLOAT;
    }
  }

  /**
   * Offsets and noises of a batch's rows in either role, padded to whole panels.
   *
   * @param noiseQ NaN where the precision cannot hold the row's variances, like {@code noiseP}
   * @param logs Σ ln σ, of formulas that multiply variances, else empty
   */
  public record Rows(
      double[] offsetQ, double[] offsetP, double[] noiseQ, double[] noiseP, double[] logs) {
    private long bytes() {
      int arrays = offsetQ == offsetP ? 2 : 4;
      return (long) Double.BYTES * (arrays * offsetQ.length + logs.length);
    }
  }

  private final Map<Precision, DerivedForm<DiagonalBatch, Rows>> forms =
      new EnumMap<>(Precision.class);

  private final boolean isSymmetric;
  private final boolean hasLogs;

  TileBound(boolean isSymmetric, boolean hasLogs, boolean dependsOnTolerance) {
    this.isSymmetric = isSymmetric;
    this.hasLogs = hasLogs;
    for (Precision precision : Precision.values()) {
      forms.put(precision, new DerivedForm<>(g -> make(g, precision), Rows::bytes));
    }
    if (!dependsOnTolerance) {
      forms.put(Precision.REFINED, Objects.requireNonNull(forms.get(Precision.DOUBLE)));
    }
  }

  /** Returns the offsets and noises of a batch, which keeps them. */
  public final Rows rows(DiagonalBatch g, Precision precision) {
    return Objects.requireNonNull(forms.get(precision)).of(g);
  }

  private Rows make(DiagonalBatch g, Precision precision) {
    int padded = Math.ceilDiv(g.size(), Batch.WIDEST_PANEL) * Batch.WIDEST_PANEL;
    double[] offsetQ = new double[padded];
    double[] noiseQ = new double[padded];
    Rows rows =
        new Rows(
            offsetQ,
            isSymmetric ? offsetQ : new double[padded],
            noiseQ,
            isSymmetric ? noiseQ : new double[padded],
            new double[hasLogs ? padded : 0]);
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < g.size(); i++) {
      checkpoint.pass(Checkpoint.ofPlain(g.dimension()));
      boundRow(g, i, precision, rows);
      if ((precision.isFloat() ? g.beyond32() : g.beyond64()).get(i)) {
        rows.noiseQ[i] = Double.NaN;
        rows.noiseP[i] = Double.NaN;
      }
    }
    return rows;
  }

  /** Puts row i's offsets and noises; of a symmetric formula the arrays of q are those of p, too. */
  abstract void boundRow(DiagonalBatch g, int i, Precision precision, Rows to);

  /** Returns the relative error of a sum of d dimensions. */
  abstract double unit(Precision precision, int d);

  /** Returns how much of the contract is left for the noise: tolerance − unit. */
  final double margin(Precision precision, int d) {
    return precision.tolerance - unit(precision, d);
  }

  /**
   * Returns the relative error in double of a sum with {@code units} roundings in each group of chunks, which are added one after the
   * other.
   */
  static double unit64(int units, int d) {
    return (units + 3 + (double) d / PairKl.BLOCKS) * U64;
  }
}
