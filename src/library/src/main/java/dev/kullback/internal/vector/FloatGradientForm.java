package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Checkpoint;
import java.util.BitSet;

/**
 * A batch in panels of {@link GradientKernel#W} dimensions of all Gaussians, for sums of derivatives. The fields of a dimension are the mean, v in two parts
 * whose differences lose no digits, and 1/v. Of the Wasserstein distance, σ is in the place of v. Parts cannot tell log-variances near 0 apart: for two
 * batches that have some so near that it counts, the second part is {@code ln v} or {@code ln σ}. A Gaussian that is beyond, and what fills up a panel,
 * are standard normal.
 */
final class FloatGradientForm {
  static final int FIELDS = 4;

  private static final int W = GradientKernel.W;

  /**
   * Variances up to which, and down to whose inverse, products of a term stay in range, with cotangents up to {@link #MOST_WEIGHT}: {@code g
   * d²/v} is at most 2¹⁰¹ in float, 2¹⁰⁰¹ in double.
   */
  private static final double MOST = Float.SIZE == 32 ? 0x1p20 : 0x1p200;

  /** Means likewise. */
  private static final double MOST_MEAN = Float.SIZE == 32 ? 0x1p20 : 0x1p300;

  /** Cotangents likewise, and the least in float, with which the smallest terms are above 2⁻¹²⁶. */
  @SuppressWarnings("cast") // of the twin in double
  static final float MOST_WEIGHT = (float) (Float.SIZE == 32 ? 0x1p40 : 0x1p200);

  static final float LEAST_WEIGHT = Float.SIZE == 32 ? 0x1p-80f : 0;

  /**
   * Magnitude of log-variances from which on the parts tell any two apart: such differ by 2⁻²⁴ of themselves at least, in double by 2⁻⁵³, and parts
   * lose {@code 1.5 · 2⁻⁴⁷} of v, in double {@code 1.5 · 2⁻¹⁰⁵}; that is below 2⁻¹⁹ or 2⁻⁴³ of a difference of v, and twice that of one of σ.
   */
  private static final double NEAR_ZERO = Float.SIZE == 32 ? 0x1p-3 : 0x1p-8;

  /**
   * Sums of derivatives by 2 ln σ, over that of the cotangents, in which log-variances near 0 lose no more, although two may be nearer: the parts'
   * loss, of Jeffreys' divergence twice, is that much of it.
   */
  @SuppressWarnings("cast") // of the twin in double
  static final float LEAST_SUM = (float) (Float.SIZE == 32 ? 0x1p-27 : 0x1p-60);

  private static final DerivedForm<DiagonalBatch, FloatGradientForm> VARIANCES = form(false, false);
  private static final DerivedForm<DiagonalBatch, FloatGradientForm> LOGS = form(false, true);
  private static final DerivedForm<DiagonalBatch, FloatGradientForm> STDS = form(true, false);
  private static final DerivedForm<DiagonalBatch, FloatGradientForm> LOG_STDS = form(true, true);

  /** Of dimension h's panel and Gaussian i from {@code (h/W·N + i)·FIELDS·W} on. */
  final float[] panels;

  /** Gaussians that the panels do not hold. */
  final BitSet beyond = new BitSet();

  /** Panels that have log-variances near 0. */
  final BitSet nearZero = new BitSet();

  private FloatGradientForm(DiagonalBatch g, boolean byStd, boolean ofLogs) {
    int n = g.size();
    int d = g.dimension();
    panels = new float[(int) length(g)];
    Checkpoint checkpoint = new Checkpoint();
    Variance variance = new Variance();
    double least = g.kind().bound(1 / MOST);
    double most = g.kind().bound(MOST);
    for (int i = 0; i < n; i++) {
      boolean isHeld = true;
      for (int h = 0; h < d && isHeld; h++) {
        double s = g.scale(i * d + h);
        isHeld = s <= most && s >= least && Math.abs(g.mean(i * d + h)) <= MOST_MEAN;
      }
      beyond.set(i, !isHeld);
      for (int h = 0; h < Math.ceilDiv(d, W) * W; h++) {
        int to = (h / W * n + i) * (FIELDS * W) + h % W;
        if (isHeld && h < d) {
          double s = g.scale(i * d + h);
          put(g.kind(), g.mean(i * d + h), s, byStd, ofLogs, variance, to);
          if (g.kind() == Scale.LOG_VARIANCE && Math.abs(s) < NEAR_ZERO) {
            nearZero.set(h / W);
          }
        } else {
          panels[to + W] = 1;
          panels[to + 3 * W] = 1;
        }
      }
      checkpoint.passUninterrupted(Checkpoint.ofPlain(d));
    }
  }

  @SuppressWarnings("cast") // of the twin in double
  private void put(
      Scale kind, double mean, double s, boolean byStd, boolean ofLogs, Variance variance, int to) {
    double high = kind.variance(s);
    double low = 0;
    if (ofLogs) {
      high = byStd ? Math.sqrt(high) : high;
      low = byStd ? 0.5 * s : s;
    } else {
      switch (kind) {
        case STD -> low = Math.fma(s, s, -high);
        case VARIANCE -> {}
        case LOG_VARIANCE -> {
          variance.set(kind, s);
          high = variance.toDouble();
          low = variance.restToDouble();
        }
        case PRECISION -> low = Math.fma(-high, s, 1) / s;
      }
      if (byStd) {
        double std = kind == Scale.STD ? s : Math.sqrt(high);
        low = kind == Scale.STD ? 0 : (Math.fma(-std, std, high) + low) / (2 * std);
        high = std;
      }
    }
    panels[to] = (float) mean;
    panels[to + W] = (float) high;
    panels[to + 2 * W] = (float) (ofLogs ? low : high - (float) high + low);
    panels[to + 3 * W] = (float) (kind == Scale.PRECISION ? s : 1 / kind.variance(s));
  }

  /** Whether the panels hold Gaussians [from, to). */
  boolean holds(int from, int to) {
    int next = beyond.nextSetBit(from);
    return next < 0 || next >= to;
  }

  private static DerivedForm<DiagonalBatch, FloatGradientForm> form(boolean byStd, boolean ofLogs) {
    return new DerivedForm<>(
        g -> new FloatGradientForm(g, byStd, ofLogs), f -> (long) Float.BYTES * f.panels.length);
  }

  /** Elements of the panels of a batch. */
  private static long length(DiagonalBatch g) {
    return (long) Math.ceilDiv(g.dimension(), W) * W * FIELDS * g.size();
  }

  /** Whether the panels of a batch fit an array. */
  static boolean isPossible(DiagonalBatch g) {
    return length(g) <= Batch.MOST_ELEMENTS;
  }

  /** Returns the panels of a batch, which keeps them. */
  static FloatGradientForm of(DiagonalBatch g, boolean byStd, boolean ofLogs) {
    return (byStd ? ofLogs ? LOG_STDS : STDS : ofLogs ? LOGS : VARIANCES).of(g);
  }
}
