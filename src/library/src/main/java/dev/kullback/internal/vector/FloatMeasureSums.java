package dev.kullback.internal.vector;

import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.PairKl;
import java.util.Arrays;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * Computes the sums R of a tile that {@link MeasureOperands} speaks of, by {@link MeasureMicroKernels}. The build derives {@code
 * DoubleMeasureSums} from this text.
 *
 * <p>Layouts, for column panel b, row panel a, dimension h, and F fields of a {@link Summand}: μ and σ, μ, v and 1/v, or μ and v
 *
 * <pre>
 * columns [b][h][F][NR]
 * rows    [a][h][F][MR]   packed from columns block by block; v weighted
 * </pre>
 */
final class FloatMeasureSums extends TileSums<float[]> {
  private static final int MR = FloatPanels.MR;
  private static final int NR = FloatPanels.NR;
  private static final int V = Species.FLOAT.length();
  private static final int KC = PairKl.BLOCK;
  private static final int PROMOTED = PairKl.BLOCKS;

  /** A number to whose bits an exponent is added as an integer: its last place is 1. */
  private static final float EXPONENT = 1.5f * (Float.SIZE == 32 ? 0x1p23f : 0x1p52f);

  private static final VectorSpecies<Float> ROW =
      VectorSpecies.of(
          float.class, VectorShape.forBitSize(Math.min(VectorWidth.BITS, MR * Float.SIZE)));

  /** R of an entry that no error bound leaves open, put where the diagonal's would be. */
  private static final float CERTAIN = 0x1p100f;

  private final Summand summand;
  private final double alpha;
  final float[] acc = new float[Tile.CAPACITY + V];

  /** For {@link Summand#CHERNOFF} alone, as the next two: numerators, and then the products' mantissas and exponents. */
  private final float[] numerators;

  private final float[] products;
  private final float[] exponents;

  /** A block's rows, packed; grown on demand. */
  private float[] rows = {};

  private int d;
  private double[] logQ = NONE;
  private double[] logP = NONE;
  private boolean arePacked;

  FloatMeasureSums(Formula formula) {
    super(Tile.CAPACITY / Tile.ROWS / NR, NR, formula.factor());
    summand = Summand.of(formula);
    alpha = formula.alpha();
    int length = summand == Summand.CHERNOFF ? acc.length : 0;
    numerators = new float[length];
    products = new float[length];
    exponents = new float[length];
  }

  /** Begins a block, whose first row is a multiple of MR. */
  void begin(MeasureOperands operands) {
    begin(
        operands.q32(),
        operands.p32(),
        operands.rows32(operands.q()),
        operands.rows32(operands.p()),
        operands.margin32());
    d = operands.q().dimension();
    logQ = operands.rows32(operands.q()).log();
    logP = operands.rows32(operands.p()).log();
    arePacked = false;
  }

  @Override
  void end() {
    super.end();
    logQ = NONE;
    logP = NONE;
  }

  @SuppressWarnings("cast") // redundant in double
  private void packRows(Tile t) {
    float weight = (float) MeasureOperands.rowWeight(alpha);
    int fields = summand.fields();
    int needed = Math.ceilDiv(t.rows, MR) * MR * fields * d;
    if (rows.length < needed) {
      rows = new float[needed];
    }
    float[] columns = valuesQ();
    int at = 0;
    for (int a = t.row; a < t.row + t.rows; a += MR) {
      int k = (a - a % NR) * fields * d + a % NR;
      for (int h = 0; h < fields * d; h++, at += MR, k += NR) {
        for (int i = 0; i < MR; i += ROW.length()) {
          FloatVector.fromArray(ROW, columns, k + i).intoArray(rows, at + i);
        }
      }
    }
    for (int k = MR; summand == Summand.CHERNOFF && weight != 1 && k < needed; k += 2 * MR) {
      for (int i = 0; i < MR; i++) {
        rows[k + i] *= weight;
      }
    }
  }

  /** Computes R of rows [from, to) of the tile; {@code from} is a multiple of MR. */
  void compute(Tile t, int from, int to) {
    if (!arePacked) {
      packRows(t);
      arePacked = true;
    }
    int begin = from * NR;
    int end = Math.ceilDiv(to, MR) * MR * NR;
    for (int k = 0; k * NR < t.columns; k++) {
      double[] sums = r[k];
      for (int h = 0; h < d; h += PROMOTED) {
        int length = Math.min(PROMOTED, d - h);
        if (summand == Summand.CHERNOFF) {
          quotients(t, from, to, k, h, length);
        } else {
          sums(t, from, to, k, h, length);
        }
        Epilogue.promote(acc, sums, begin, end, h == 0);
      }
      if (summand == Summand.CHERNOFF) {
        double bias = EXPONENT + (double) Math.ceilDiv(d, Summand.RUN) * Float.MAX_EXPONENT;
        MeasureMicroKernels.addLogarithms(
            sums,
            products,
            exponents,
            bias,
            alpha,
            d,
            logQ,
            t.row,
            from,
            to,
            logP,
            t.column + k * NR);
      }
      for (int i = from; i < to && t.isDiagonal; i++) {
        int j = t.row + i - t.column - k * NR;
        if (j >= 0 && j < NR) {
          sums[i * NR + j] = CERTAIN;
        }
      }
    }
  }

  /** Whether the sums of a tile as wide as a panel can be left in {@link #acc}. */
  boolean isWhole(Tile t) {
    return summand != Summand.CHERNOFF && d <= PROMOTED && t.columns == NR;
  }

  /** Computes such a tile. */
  void computeWhole(Tile t) {
    if (!arePacked) {
      packRows(t);
      arePacked = true;
    }
    sums(t, 0, t.rows, 0, 0, d);
    int end = t.isDiagonal ? t.rows : 0;
    for (int i = Math.max(0, t.column - t.row); i < end && t.row + i < t.column + NR; i++) {
      acc[i * NR + t.row + i - t.column] = CERTAIN;
    }
  }

  /** Promotes such a tile. */
  void promote(Tile t) {
    Epilogue.promote(acc, r[0], 0, t.rows * NR, true);
  }

  /** Sums the terms of up to PROMOTED dimensions from h on. */
  private void sums(Tile t, int from, int to, int k, int h, int length) {
    int fields = summand.fields();
    int columns = Math.min(NR, t.columns - k * NR);
    for (int g = h; g < h + length; g += KC) {
      int c = ((t.column + k * NR) * d + g * NR) * fields;
      int chunk = Math.min(KC, h + length - g);
      for (int i = from; i < to; i += MR) {
        int at = (i * d + g * MR) * fields;
        if (summand == Summand.JEFFREYS) {
          for (int j = 0; j < columns; ) {
            j += jeffreys(at, c + j, columns - j, chunk, i * NR + j, g == h);
          }
        } else {
          for (int j = 0; j < columns; j += 2 * V) {
            wasserstein(at, c + j, columns - j, chunk, i * NR + j, g == h);
          }
        }
      }
    }
  }

  private void wasserstein(int r, int c, int count, int length, int to, boolean first) {
    float[] columns = valuesP();
    if (MR == 4 && count > V) {
      MeasureMicroKernels.wasserstein4x2(rows, r, columns, c, length, acc, to, first);
    } else if (MR == 4) {
      MeasureMicroKernels.wasserstein4x1(rows, r, columns, c, length, acc, to, first);
    } else if (count > V) {
      MeasureMicroKernels.wasserstein8x2(rows, r, columns, c, length, acc, to, first);
    } else {
      MeasureMicroKernels.wasserstein8x1(rows, r, columns, c, length, acc, to, first);
    }
  }

  /** Returns how many columns it has computed. */
  private int jeffreys(int r, int c, int count, int length, int to, boolean first) {
    float[] columns = valuesP();
    if (MR == 4 && count > V) {
      MeasureMicroKernels.jeffreys2x2(rows, r, columns, c, length, acc, to, first);
      MeasureMicroKernels.jeffreys2x2(rows, r + 2, columns, c, length, acc, to + 2 * NR, first);
      return 2 * V;
    }
    if (MR == 4) {
      MeasureMicroKernels.jeffreys4x1(rows, r, columns, c, length, acc, to, first);
      return V;
    }
    if (count > V) {
      MeasureMicroKernels.jeffreys8x2(rows, r, columns, c, length, acc, to, first);
      return 2 * V;
    }
    MeasureMicroKernels.jeffreys8x1(rows, r, columns, c, length, acc, to, first);
    return V;
  }

  /** Sums the quotients of up to PROMOTED dimensions from h on, and multiplies by their variances. */
  private void quotients(Tile t, int from, int to, int k, int h, int length) {
    int columns = Math.min(NR, t.columns - k * NR);
    int end = Math.ceilDiv(to, MR) * MR;
    Arrays.fill(acc, from * NR, end * NR, 0);
    if (h == 0) {
      Arrays.fill(numerators, from * NR, end * NR, 0);
      Arrays.fill(products, from * NR, end * NR, 1);
      Arrays.fill(exponents, from * NR, end * NR, EXPONENT);
    }
    for (int g = h; g < h + length; g += Summand.RUNS) {
      int last = Math.min(h + length, g + Summand.RUNS);
      for (int i = from; i < end; i += 4) {
        for (int j = 0; j < columns; j += 2 * V) {
          for (int run = g; run < last; run += Summand.RUN) {
            int r = ((i - i % MR) * d + run * MR) * 2 + i % MR;
            int c = ((t.column + k * NR) * d + run * NR) * 2 + j;
            chernoff(r, c, columns - j, Math.min(Summand.RUN, last - run), i * NR + j);
          }
        }
      }
      MeasureMicroKernels.divide(numerators, products, acc, from * NR, end * NR);
    }
  }

  private void chernoff(int r, int c, int count, int length, int to) {
    float[] columns = valuesP();
    if (MR == 4) {
      MeasureMicroKernels.chernoff4x1(
          rows, r, columns, c, length, numerators, to, products, exponents);
      if (count > V) {
        MeasureMicroKernels.chernoff4x1(
            rows, r, columns, c + V, length, numerators, to + V, products, exponents);
      }
    } else if (count > V) {
      MeasureMicroKernels.chernoff4x2(
          rows, r, columns, c, length, numerators, to, products, exponents);
    } else {
      MeasureMicroKernels.chernoff4x1(
          rows, r, columns, c, length, numerators, to, products, exponents);
    }
  }
}
