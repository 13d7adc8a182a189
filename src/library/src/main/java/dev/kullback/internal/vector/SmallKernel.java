package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Form;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Window;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/**
 * The Vector API backend up to {@value #MOST_DIMENSIONS} dimensions, where a float kernel's entries would mostly be recomputed: in double
 * at once, from the differences to the store without a tile between them. An entry is {@link PairKl#of}, to the bit.
 *
 * <p>Layouts, for vector b of V columns, dimension h:
 *
 * <pre>
 * columns [b][D][2][V], [b][V]   μ, 1/v; then offsetP, the last of a vector's 2 D + 1
 *         [N]                    noiseP, behind all of these
 * scales  [b][D][2][V]           the raw scale s and what divides a difference, or for precisions and log-variances multiplies it
 * rows    [8]                    offsetQ, noiseQ of four rows
 *         [D][3][4]              μ, v, s
 * </pre>
 *
 * An offset is NaN where the entry is left to PairKl: for variances and means that might overflow here. So what is not NaN is finite.
 */
public final class SmallKernel extends BlockKernel<DiagonalBatch> {
  /** Of the batches that it is for. */
  public static final int MOST_DIMENSIONS = 4;

  private static final VectorSpecies<Double> S = VectorWidth.DOUBLE;
  private static final VectorSpecies<Float> HALF = VectorWidth.HALF_FLOAT;
  private static final int V = S.length();
  private static final long ALL_LANES = -1L >>> -V;
  private static final DoubleVector HALVES = DoubleVector.broadcast(S, 0.5);

  private static final double[] LESS_LOG = PairKl.lessLogCoefficients();
  private static final double[] LESS_EXP = PairKl.lessExpCoefficients();

  /** Rows that share what is read of the columns: two took 1.16 of the time at D = 1, 1.12 at D = 3 (Zen 3). */
  private static final int ROWS = 4;

  /** Columns whose values stay in the L1 or L2 cache for all rows of a block. */
  private static final int STRIP = 1024;

  /** Means up to which, with variances in 2^±500, no sum overflows. */
  private static final double MOST_MEAN = 0x1p250;

  /** What a term counts at a {@link Checkpoint}, one that is packed, and one looked at again. */
  private static final int COUNTED = 6;

  private static final int PACKING = 64;

  private static final int REFINED = 40;

  /** As {@code VectorKernel.MOST_PANELS}, in doubles. */
  private static final int MOST_KEPT = 1 << 19;

  /** A batch as columns. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Columns(double[] values, double mostNoise) {}

  private static final Form<DiagonalBatch, Columns> COLUMNS =
      new Form<>(g -> pack(g, new double[length(g)]), c -> (long) Double.BYTES * c.values().length);

  /** Of a batch as columns, read where entries are recomputed. */
  private static final Form<DiagonalBatch, double[]> SCALES =
      new Form<>(SmallKernel::packScales, s -> (long) Double.BYTES * s.length);

  private final Worker worker;
  private final double[] rows = new double[2 * ROWS + 3 * ROWS * MOST_DIMENSIONS];

  /** Vectors of a strip that are to be looked at again, and then lanes of each that are still to be computed. */
  private final int[] vectors = new int[STRIP / V];

  private final long[] open = new long[STRIP / V];

  /** Of the vector that ends a row. */
  private final double[] last = new double[V];

  private final int[] lastVector = new int[1];

  /** Those of p. */
  private @Nullable Columns columns;

  private double @Nullable [] scales;

  /** Of a batch used for the first time, which may never be again; grown on demand. */
  private double[] values = {};

  public SmallKernel(Worker worker) {
    this.worker = worker;
  }

  /** Makes all forms that calls may read. */
  public static void prepare(DiagonalBatch batch) {
    COLUMNS.of(batch);
    SCALES.of(batch);
  }

  @Override
  protected void prepare(DiagonalBatch q, DiagonalBatch p) {
    int length = length(p);
    if (length > MOST_KEPT || !p.isFirstUse()) {
      columns = COLUMNS.of(p);
      return;
    }
    if (values.length < length) {
      values = new double[length];
    }
    columns = pack(p, values);
  }

  @Override
  public void join(BlockKernel<?> lead) {
    super.join(lead);
    columns = ((SmallKernel) lead).columns;
  }

  @Override
  public void end() {
    super.end();
    columns = null;
    scales = null;
  }

  /** Columns with those that fill the last vector. */
  private static int padded(DiagonalBatch g) {
    return Math.ceilDiv(g.size(), V) * V;
  }

  private static int length(DiagonalBatch g) {
    return padded(g) * (2 * g.dimension() + 2);
  }

  private static Columns pack(DiagonalBatch g, double[] values) {
    int d = g.dimension();
    int padded = padded(g);
    int noises = padded * (2 * d + 1);
    double unit = PairKl.unit64(d);
    double most = 0;
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < padded; j++) {
      checkpoint.pass((long) PACKING * d);
      int i = Math.min(j, g.size() - 1); // what fills a vector must not look uncertain
      int to = j / V * V * (2 * d + 1) + j % V;
      for (int h = 0; h < d; h++, to += 2 * V) {
        values[to] = g.mean(i * d + h);
        values[to + V] = precision(g, i * d + h);
      }
      double noise = PairKl.noiseP(g, i, unit);
      values[noises + j] = noise;
      values[to] = isHeld(g, i) ? PairKl.offsetP(g, i) : Double.NaN;
      most = isHeld(g, i) ? Math.max(most, noise) : most;
    }
    return new Columns(values, most);
  }

  /** Just as {@link PairKl} has it. */
  private static double precision(DiagonalBatch g, int k) {
    return g.kind() == Scale.PRECISION ? g.scale(k) : 1 / g.kind().variance(g.scale(k));
  }

  private static boolean isHeld(DiagonalBatch g, int i) {
    int d = g.dimension();
    boolean held = !g.isBeyond64(i);
    for (int k = i * d; k < (i + 1) * d; k++) {
      held &= Math.abs(g.mean(k)) <= MOST_MEAN;
    }
    return held;
  }

  private static double[] packScales(DiagonalBatch g) {
    int d = g.dimension();
    double[] scales = new double[padded(g) * 2 * d];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < g.size(); j++) {
      checkpoint.pass((long) PACKING * d);
      int to = j / V * V * 2 * d + j % V;
      for (int h = 0; h < d; h++, to += 2 * V) {
        double s = g.scale(j * d + h);
        scales[to] = s;
        scales[to + V] =
            switch (g.kind()) {
              case STD -> s;
              case VARIANCE, PRECISION -> Math.sqrt(s);
              case LOG_VARIANCE -> Math.exp(-0.25 * s); // once more, as Scale.standardize has it
            };
      }
    }
    return scales;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, Window out) {
    int d = q().dimension();
    for (int column = column0; column < column1; column += STRIP) {
      int end = Math.min(column + STRIP, column1);
      for (int row = row0; row < row1; row += ROWS) {
        worker.pass((long) COUNTED * ROWS * (end - column) * d);
        rows(row, Math.min(row + ROWS, row1), column, end, out);
      }
    }
  }

  /** Some rows of a strip. */
  private void rows(int row0, int row1, int column0, int column1, Window out) {
    int d = q().dimension();
    double margin = tolerance() - PairKl.unit64(d);
    double[] columns = columns().values();
    double noise = packRows(row0, row1) + columns().mostNoise();
    int whole = column0 + (column1 - column0) / V * V;
    int count = 0;
    if (row1 - row0 == ROWS) {
      // by monotony whoever is as large is certain
      double least = noise / margin * (1 + 0x1p-50);
      int at = out.at(row0, 0);
      count =
          store(
              d,
              rows,
              columns,
              column0,
              whole,
              least,
              out.out32,
              out.out64,
              at,
              out.stride,
              vectors);
    } else {
      for (int j = column0; j < whole; j += V) {
        vectors[count++] = j;
      }
    }
    for (int i = row0; i < row1 && count > 0; i++) {
      refine(i, i - row0, vectors, count, margin, out.out32, out.out64, out.at(i, 0), ALL_LANES);
    }
    for (int i = row0; i < row1 && whole < column1; i++) { // the vector that is not whole
      lastVector[0] = whole;
      refine(i, i - row0, lastVector, 1, margin, null, last, -whole, ~(-1L << (column1 - whole)));
      for (int j = whole; j < column1; j++) {
        out.put(i, j, last[j - whole]);
      }
    }
  }

  private Columns columns() {
    return Objects.requireNonNull(columns);
  }

  private double tolerance() {
    return q().isDouble() || p().isDouble() ? PairKl.DOUBLE_TOLERANCE : PairKl.REFINED_TOLERANCE;
  }

  /** Packs some rows, the last again in the place of those that are missing, and tells the most noise of one. */
  private double packRows(int row0, int row1) {
    DiagonalBatch q = q();
    int d = q.dimension();
    double unit = PairKl.unit64(d);
    double most = 0;
    for (int i = 0; i < ROWS; i++) {
      int row = Math.min(row0 + i, row1 - 1);
      rows[i] = isHeld(q, row) ? PairKl.offsetQ(q, row) : Double.NaN;
      rows[ROWS + i] = PairKl.noiseQ(q, row, unit);
      most = Math.max(most, rows[ROWS + i]);
      for (int h = 0, to = 2 * ROWS + i; h < d; h++, to += 3 * ROWS) {
        rows[to] = q.mean(row * d + h);
        rows[to + ROWS] = 1 / precision(q, row * d + h);
        rows[to + 2 * ROWS] = q.scale(row * d + h);
      }
    }
    return most;
  }

  /**
   * Stores four rows of KL by the difference form, and lists the vectors where one is below {@code least} or NaN.
   *
   * @param at where column 0 of the first row goes
   * @return how many there are
   */
  private static int store(
      int d,
      double[] rows,
      double[] columns,
      int from,
      int to,
      double least,
      float @Nullable [] out32,
      double @Nullable [] out64,
      int at,
      int stride,
      int[] vectors) {
    // one text for every D: what is constant in a loop is well foretold, and costs no more than 1.2
    // times the time of a text without the branches at D = 1, and nothing at 4 (Zen 3, AVX2)
    int width = 2 * d + 1;
    int count = 0;
    for (int j = from; j < to; j += V) {
      int k = j * width;
      DoubleVector m = DoubleVector.fromArray(S, columns, k);
      DoubleVector p = DoubleVector.fromArray(S, columns, k + V);
      DoubleVector x;
      x = DoubleVector.broadcast(S, rows[8]).sub(m);
      DoubleVector a0 = x.fma(x, DoubleVector.broadcast(S, rows[12])).mul(p);
      x = DoubleVector.broadcast(S, rows[9]).sub(m);
      DoubleVector a1 = x.fma(x, DoubleVector.broadcast(S, rows[13])).mul(p);
      x = DoubleVector.broadcast(S, rows[10]).sub(m);
      DoubleVector a2 = x.fma(x, DoubleVector.broadcast(S, rows[14])).mul(p);
      x = DoubleVector.broadcast(S, rows[11]).sub(m);
      DoubleVector a3 = x.fma(x, DoubleVector.broadcast(S, rows[15])).mul(p);
      if (d > 1) {
        m = DoubleVector.fromArray(S, columns, k + 2 * V);
        p = DoubleVector.fromArray(S, columns, k + 3 * V);
        x = DoubleVector.broadcast(S, rows[20]).sub(m);
        a0 = x.fma(x, DoubleVector.broadcast(S, rows[24])).fma(p, a0);
        x = DoubleVector.broadcast(S, rows[21]).sub(m);
        a1 = x.fma(x, DoubleVector.broadcast(S, rows[25])).fma(p, a1);
        x = DoubleVector.broadcast(S, rows[22]).sub(m);
        a2 = x.fma(x, DoubleVector.broadcast(S, rows[26])).fma(p, a2);
        x = DoubleVector.broadcast(S, rows[23]).sub(m);
        a3 = x.fma(x, DoubleVector.broadcast(S, rows[27])).fma(p, a3);
      }
      if (d > 2) {
        m = DoubleVector.fromArray(S, columns, k + 4 * V);
        p = DoubleVector.fromArray(S, columns, k + 5 * V);
        x = DoubleVector.broadcast(S, rows[32]).sub(m);
        a0 = x.fma(x, DoubleVector.broadcast(S, rows[36])).fma(p, a0);
        x = DoubleVector.broadcast(S, rows[33]).sub(m);
        a1 = x.fma(x, DoubleVector.broadcast(S, rows[37])).fma(p, a1);
        x = DoubleVector.broadcast(S, rows[34]).sub(m);
        a2 = x.fma(x, DoubleVector.broadcast(S, rows[38])).fma(p, a2);
        x = DoubleVector.broadcast(S, rows[35]).sub(m);
        a3 = x.fma(x, DoubleVector.broadcast(S, rows[39])).fma(p, a3);
      }
      if (d > 3) {
        m = DoubleVector.fromArray(S, columns, k + 6 * V);
        p = DoubleVector.fromArray(S, columns, k + 7 * V);
        x = DoubleVector.broadcast(S, rows[44]).sub(m);
        a0 = x.fma(x, DoubleVector.broadcast(S, rows[48])).fma(p, a0);
        x = DoubleVector.broadcast(S, rows[45]).sub(m);
        a1 = x.fma(x, DoubleVector.broadcast(S, rows[49])).fma(p, a1);
        x = DoubleVector.broadcast(S, rows[46]).sub(m);
        a2 = x.fma(x, DoubleVector.broadcast(S, rows[50])).fma(p, a2);
        x = DoubleVector.broadcast(S, rows[47]).sub(m);
        a3 = x.fma(x, DoubleVector.broadcast(S, rows[51])).fma(p, a3);
      }
      DoubleVector offsets = DoubleVector.fromArray(S, columns, k + (width - 1) * V);
      a0 = a0.fma(HALVES, offsets.add(rows[0]));
      a1 = a1.fma(HALVES, offsets.add(rows[1]));
      a2 = a2.fma(HALVES, offsets.add(rows[2]));
      a3 = a3.fma(HALVES, offsets.add(rows[3]));
      if (out32 != null) {
        ((FloatVector) a0.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, at + j);
        ((FloatVector) a1.convertShape(VectorOperators.D2F, HALF, 0))
            .intoArray(out32, at + stride + j);
        ((FloatVector) a2.convertShape(VectorOperators.D2F, HALF, 0))
            .intoArray(out32, at + 2 * stride + j);
        ((FloatVector) a3.convertShape(VectorOperators.D2F, HALF, 0))
            .intoArray(out32, at + 3 * stride + j);
      } else if (out64 != null) {
        a0.intoArray(out64, at + j);
        a1.intoArray(out64, at + stride + j);
        a2.intoArray(out64, at + 2 * stride + j);
        a3.intoArray(out64, at + 3 * stride + j);
      }
      VectorMask<Double> certain =
          a0.compare(VectorOperators.GE, least)
              .and(a1.compare(VectorOperators.GE, least))
              .and(a2.compare(VectorOperators.GE, least))
              .and(a3.compare(VectorOperators.GE, least));
      vectors[count] = j;
      count += certain.allTrue() ? 0 : 1;
    }
    return count;
  }

  /**
   * Stores the entries of some vectors of row i, the {@code index}-th in {@code rows}.
   *
   * @param at where column 0 goes
   * @param valid the lanes that count
   */
  private void refine(
      int i,
      int index,
      int[] vectors,
      int count,
      double margin,
      float @Nullable [] out32,
      double @Nullable [] out64,
      int at,
      long valid) {
    DiagonalBatch q = q();
    DiagonalBatch p = p();
    worker.pass((long) REFINED * V * count * q.dimension());
    int diagonal = q == p ? i : -1;
    boolean all = settle(index, vectors, count, margin, out32, out64, at, valid, diagonal);
    if (!all && scales == null && q.kind() == p.kind()) {
      scales = SCALES.of(p);
      all = settle(index, vectors, count, margin, out32, out64, at, valid, diagonal);
    }
    for (int n = 0; n < count && !all; n++) {
      for (long bits = open[n]; bits != 0; bits &= bits - 1) {
        int j = vectors[n] + Long.numberOfTrailingZeros(bits);
        worker.pass((long) Checkpoint.PLAIN * q.dimension());
        put(out32, out64, at + j, PairKl.of(q, i, p, j));
      }
    }
  }

  private boolean settle(
      int index,
      int[] vectors,
      int count,
      double margin,
      float @Nullable [] out32,
      double @Nullable [] out64,
      int at,
      long valid,
      int diagonal) {
    long left = 0;
    settle(
        q().kind(),
        q().dimension(),
        rows,
        index,
        columns().values(),
        padded(p()) * (2 * p().dimension() + 1),
        scales,
        vectors,
        count,
        margin,
        out32,
        out64,
        at,
        open);
    for (int n = 0; n < count; n++) {
      long bits = open[n] & valid;
      int lane = diagonal - vectors[n];
      if (lane >= 0 && lane < V) {
        put(out32, out64, at + diagonal, 0);
        bits &= ~(1L << lane);
      }
      open[n] = bits;
      left |= bits;
    }
    return left == 0;
  }

  private static void put(float @Nullable [] out32, double @Nullable [] out64, int at, double kl) {
    if (out32 != null) {
      out32[at] = (float) kl;
    } else if (out64 != null) {
      out64[at] = kl;
    }
  }

  /**
   * Stores the entries of some vectors of a row, by {@link PairKl#stable} those that the difference form leaves uncertain. Sets in {@code
   * open} the lanes where that takes more than a polynomial, or is none of this kernel's.
   *
   * @param noises where these begin in columns
   * @param scales null to leave all uncertain lanes open
   */
  private static void settle(
      Scale kind,
      int d,
      double[] rows,
      int index,
      double[] columns,
      int noises,
      double @Nullable [] scales,
      int[] vectors,
      int count,
      double margin,
      float @Nullable [] out32,
      double @Nullable [] out64,
      int at,
      long[] open) {
    for (int n = 0; n < count; n++) {
      int j = vectors[n];
      int k = j * (2 * d + 1);
      DoubleVector kl = DoubleVector.zero(S);
      for (int h = 0, r = 2 * ROWS + index; h < d; h++, r += 3 * ROWS, k += 2 * V) {
        DoubleVector x =
            DoubleVector.broadcast(S, rows[r]).sub(DoubleVector.fromArray(S, columns, k));
        kl =
            x.fma(x, DoubleVector.broadcast(S, rows[r + ROWS]))
                .fma(DoubleVector.fromArray(S, columns, k + V), kl);
      }
      kl = kl.fma(HALVES, DoubleVector.fromArray(S, columns, k).add(rows[index]));
      DoubleVector rest =
          kl.mul(margin)
              .sub(DoubleVector.fromArray(S, columns, noises + j).add(rows[ROWS + index]));
      long settled = rest.compare(VectorOperators.GE, 0).toLong();
      if (settled != ALL_LANES && scales != null) {
        DoubleVector stable = DoubleVector.zero(S);
        DoubleVector far = DoubleVector.zero(S); // Σ x², below NEAR² only if each |x| is below NEAR
        for (int h = 0; h < d; h++) {
          int r = 2 * ROWS + index + h * 3 * ROWS;
          int c = (j * d + h * V) * 2;
          DoubleVector difference =
              DoubleVector.broadcast(S, rows[r])
                  .sub(DoubleVector.fromArray(S, columns, j * (2 * d + 1) + 2 * h * V));
          DoubleVector sq = DoubleVector.broadcast(S, rows[r + 2 * ROWS]);
          DoubleVector sp = DoubleVector.fromArray(S, scales, c);
          DoubleVector w = DoubleVector.fromArray(S, scales, c + V);
          DoubleVector x;
          DoubleVector y;
          DoubleVector less;
          if (kind == Scale.LOG_VARIANCE) {
            x = sq.sub(sp);
            y = difference.mul(w).mul(w);
            less = DoubleVector.broadcast(S, LESS_EXP[0]);
            for (int i = 1; i < LESS_EXP.length; i++) {
              less = less.mul(x).add(LESS_EXP[i]);
            }
            less = x.mul(x).mul(less);
          } else {
            if (kind == Scale.PRECISION) {
              x = sp.sub(sq).div(sq);
              y = difference.mul(w);
            } else {
              x = sq.sub(sp).div(sp);
              x = kind == Scale.STD ? x.mul(x.add(2)) : x;
              y = difference.div(w);
            }
            DoubleVector s = x.div(x.add(2));
            DoubleVector t = s.mul(s);
            less = DoubleVector.broadcast(S, LESS_LOG[0]);
            for (int i = 1; i < LESS_LOG.length; i++) {
              less = less.mul(t).add(LESS_LOG[i]);
            }
            less = s.mul(x.sub(t.mul(2).mul(less)));
          }
          stable = stable.add(less.mul(0.5).add(y.mul(0.5).mul(y)));
          far = x.fma(x, far);
        }
        settled |=
            stable
                .compare(VectorOperators.LT, Double.POSITIVE_INFINITY)
                .and(far.compare(VectorOperators.LT, PairKl.NEAR * PairKl.NEAR))
                .and(kl.compare(VectorOperators.EQ, kl))
                .toLong();
        kl = stable.blend(kl, rest.compare(VectorOperators.GE, 0));
      }
      if (out32 != null) {
        ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, at + j);
      } else if (out64 != null) {
        kl.intoArray(out64, at + j);
      }
      open[n] = ~settled & ALL_LANES;
    }
  }
}
