package dev.kullback.internal.vector;

import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorShuffle;
import jdk.incubator.vector.VectorSpecies;

/** Turns rows of a batch into lanes of panels. */
public final class Transpose {
  /** Side of the squares that are exchanged between registers, where these hold 16 floats. */
  private static final int SIDE = 16;

  public static final int SCRATCH = SIDE * SIDE;

  /** Where fewer fit, squares of four are: 0.26 ns a float, a plain loop 0.69 (Zen 3, AVX2). Not of doubles in vectors of 512 bits. */
  private static final int LEAST_SIDE = 4;

  /**
   * Whether an instruction selects lanes of two vectors of 512 bits. C2 of JDK 25 has none for SVE, and boxes: 3,840 B a square of
   * doubles.
   */
  private static final boolean EXCHANGES = VectorWidth.BITS == 512 && VectorWidth.isX86();

  private Transpose() {}

  /**
   * {@code out[to + j·outStride + i] = in[from + i·inStride + j]} for i < rows and j < columns. The lanes i from rows to the next
   * multiple of 4 or, with vectors, 16 are written too: they repeat the last row.
   *
   * @param part what the panels are for
   * @param scratch {@link #SCRATCH} elements
   */
  public static void of(
      Readiness.KernelGroup part,
      float[] in,
      int from,
      int inStride,
      int rows,
      int columns,
      float[] out,
      int to,
      int outStride,
      float[] scratch) {
    if (EXCHANGES && Readiness.isReady(part) && columns >= SIDE) {
      for (int i = 0; i < rows; i += SIDE) {
        int last = Math.min(SIDE, rows - i) - 1;
        for (int k = 0; k < columns; k += SIDE) {
          int j = Math.min(k, columns - SIDE); // the last square may overlap the one before
          Squares.square(
              in,
              from + i * inStride + j,
              inStride,
              last,
              out,
              to + j * outStride + i,
              outStride,
              scratch);
        }
      }
      return;
    }
    boolean squares = columns >= LEAST_SIDE && Readiness.isReady(part);
    for (int i = 0; i < rows; i += LEAST_SIDE) {
      int a = from + i * inStride;
      int b = from + Math.min(i + 1, rows - 1) * inStride;
      int c = from + Math.min(i + 2, rows - 1) * inStride;
      int d = from + Math.min(i + 3, rows - 1) * inStride;
      if (squares) {
        for (int k = 0; k < columns; k += LEAST_SIDE) {
          int j = Math.min(k, columns - LEAST_SIDE);
          Squares.square(in, a + j, b + j, c + j, d + j, out, to + j * outStride + i, outStride);
        }
        continue;
      }
      for (int j = 0; j < columns; j++) {
        int at = to + j * outStride + i;
        out[at] = in[a + j];
        out[at + 1] = in[b + j];
        out[at + 2] = in[c + j];
        out[at + 3] = in[d + j];
      }
    }
  }

  /** The same in double, where lanes are written to the next multiple of 4 or, with vectors, 8. */
  public static void of(
      Readiness.KernelGroup part,
      double[] in,
      int from,
      int inStride,
      int rows,
      int columns,
      double[] out,
      int to,
      int outStride,
      double[] scratch) {
    if (EXCHANGES && Readiness.isReady(part) && columns >= SIDE / 2) {
      for (int i = 0; i < rows; i += SIDE / 2) {
        int last = Math.min(SIDE / 2, rows - i) - 1;
        for (int k = 0; k < columns; k += SIDE / 2) {
          int j = Math.min(k, columns - SIDE / 2);
          Squares.square(
              in,
              from + i * inStride + j,
              inStride,
              last,
              out,
              to + j * outStride + i,
              outStride,
              scratch);
        }
      }
      return;
    }
    // With 512 bits they would be the only doubles of 256, at which methods compiled for one class
    // trap, see VectorWidth's mix. FullSolveKernel was then boxed in 4 of 35 processes, 10 MB for
    // 21 x 21 pairs (AVX-512, JDK 25.0.3); without them in none of 35.
    boolean squares = VectorWidth.BITS == 256 && columns >= LEAST_SIDE && Readiness.isReady(part);
    for (int i = 0; i < rows; i += LEAST_SIDE) {
      int a = from + i * inStride;
      int b = from + Math.min(i + 1, rows - 1) * inStride;
      int c = from + Math.min(i + 2, rows - 1) * inStride;
      int d = from + Math.min(i + 3, rows - 1) * inStride;
      if (squares) {
        for (int k = 0; k < columns; k += LEAST_SIDE) {
          int j = Math.min(k, columns - LEAST_SIDE);
          Squares.square(in, a + j, b + j, c + j, d + j, out, to + j * outStride + i, outStride);
        }
        continue;
      }
      for (int j = 0; j < columns; j++) {
        int at = to + j * outStride + i;
        out[at] = in[a + j];
        out[at + 1] = in[b + j];
        out[at + 2] = in[c + j];
        out[at + 3] = in[d + j];
      }
    }
  }

  /** Squares exchanged between registers. Apart, so that nothing loads vectors before they are used. */
  private static final class Squares {
    private static final VectorSpecies<Float> S = FloatVector.SPECIES_512;
    private static final VectorSpecies<Double> WIDE = DoubleVector.SPECIES_512;

    /** Of 0 … 31, the lanes of two vectors. */
    private static final VectorSpecies<Integer> I = IntVector.SPECIES_512;

    private static final IntVector LOWER1 = lower(1);
    private static final IntVector LOWER2 = lower(2);
    private static final IntVector LOWER4 = lower(4);
    private static final IntVector LOWER8 = lower(8);
    private static final IntVector UPPER1 = LOWER1.add(1);
    private static final IntVector UPPER2 = LOWER2.add(2);
    private static final IntVector UPPER4 = LOWER4.add(4);
    private static final IntVector UPPER8 = LOWER8.add(8);

    private static final VectorSpecies<Float> F = FloatVector.SPECIES_128;
    private static final VectorShuffle<Float> F_NEXT = VectorShuffle.fromOp(F, i -> i ^ 1);
    private static final VectorShuffle<Float> F_ACROSS = VectorShuffle.fromOp(F, i -> i ^ 2);
    private static final VectorMask<Float> F_ODD =
        VectorMask.fromValues(F, false, true, false, true);
    private static final VectorMask<Float> F_HIGH =
        VectorMask.fromValues(F, false, false, true, true);

    private static final VectorSpecies<Double> D = DoubleVector.SPECIES_256;
    private static final VectorShuffle<Double> D_NEXT = VectorShuffle.fromOp(D, i -> i ^ 1);
    private static final VectorShuffle<Double> D_ACROSS = VectorShuffle.fromOp(D, i -> i ^ 2);
    private static final VectorMask<Double> D_ODD =
        VectorMask.fromValues(D, false, true, false, true);
    private static final VectorMask<Double> D_HIGH =
        VectorMask.fromValues(D, false, false, true, true);

    /** The even groups of w lanes, the first vector's in even places and the second's in odd ones. */
    private static IntVector lower(int w) {
      int[] lanes = new int[SIDE];
      for (int i = 0; i < SIDE; i++) {
        lanes[i] = (i & w) != 0 ? i - w + SIDE : i;
      }
      return IntVector.fromArray(I, lanes, 0);
    }

    /**
     * 16 x 16, rows beyond the last repeating it, by four rounds of exchanges, two at a time: 0.14 ns an element where scalars take 0.36,
     * and permutes of float lanes, whose indices are floats, 0.25 (Zen 5).
     */
    static void square(
        float[] in,
        int from,
        int inStride,
        int last,
        float[] out,
        int to,
        int outStride,
        float[] scratch) {
      for (int g = 0; g < SIDE; g += 4) {
        IntVector a = load(in, from + Math.min(g, last) * inStride);
        IntVector b = load(in, from + Math.min(g + 1, last) * inStride);
        IntVector c = load(in, from + Math.min(g + 2, last) * inStride);
        IntVector d = load(in, from + Math.min(g + 3, last) * inStride);
        IntVector ab = LOWER1.selectFrom(a, b);
        IntVector ba = UPPER1.selectFrom(a, b);
        IntVector cd = LOWER1.selectFrom(c, d);
        IntVector dc = UPPER1.selectFrom(c, d);
        store(LOWER2.selectFrom(ab, cd), scratch, g * SIDE);
        store(LOWER2.selectFrom(ba, dc), scratch, (g + 1) * SIDE);
        store(UPPER2.selectFrom(ab, cd), scratch, (g + 2) * SIDE);
        store(UPPER2.selectFrom(ba, dc), scratch, (g + 3) * SIDE);
      }
      for (int g = 0; g < 4; g++) {
        int i = g * SIDE;
        IntVector a = load(scratch, i);
        IntVector b = load(scratch, i + 4 * SIDE);
        IntVector c = load(scratch, i + 8 * SIDE);
        IntVector d = load(scratch, i + 12 * SIDE);
        IntVector ab = LOWER4.selectFrom(a, b);
        IntVector ba = UPPER4.selectFrom(a, b);
        IntVector cd = LOWER4.selectFrom(c, d);
        IntVector dc = UPPER4.selectFrom(c, d);
        int o = to + g * outStride;
        store(LOWER8.selectFrom(ab, cd), out, o);
        store(LOWER8.selectFrom(ba, dc), out, o + 4 * outStride);
        store(UPPER8.selectFrom(ab, cd), out, o + 8 * outStride);
        store(UPPER8.selectFrom(ba, dc), out, o + 12 * outStride);
      }
    }

    private static IntVector load(float[] from, int i) {
      return (IntVector) FloatVector.fromArray(S, from, i).reinterpretShape(I, 0);
    }

    private static void store(IntVector v, float[] to, int i) {
      ((FloatVector) v.reinterpretShape(S, 0)).intoArray(to, i);
    }

    /** 8 x 8 of pairs of 32 bits. */
    static void square(
        double[] in,
        int from,
        int inStride,
        int last,
        double[] out,
        int to,
        int outStride,
        double[] scratch) {
      int side = SIDE / 2;
      for (int g = 0; g < side; g += 4) {
        IntVector a = load(in, from + Math.min(g, last) * inStride);
        IntVector b = load(in, from + Math.min(g + 1, last) * inStride);
        IntVector c = load(in, from + Math.min(g + 2, last) * inStride);
        IntVector d = load(in, from + Math.min(g + 3, last) * inStride);
        IntVector ab = LOWER2.selectFrom(a, b);
        IntVector ba = UPPER2.selectFrom(a, b);
        IntVector cd = LOWER2.selectFrom(c, d);
        IntVector dc = UPPER2.selectFrom(c, d);
        store(LOWER4.selectFrom(ab, cd), scratch, g * side);
        store(LOWER4.selectFrom(ba, dc), scratch, (g + 1) * side);
        store(UPPER4.selectFrom(ab, cd), scratch, (g + 2) * side);
        store(UPPER4.selectFrom(ba, dc), scratch, (g + 3) * side);
      }
      for (int g = 0; g < 4; g++) {
        IntVector a = load(scratch, g * side);
        IntVector b = load(scratch, (g + 4) * side);
        store(LOWER8.selectFrom(a, b), out, to + g * outStride);
        store(UPPER8.selectFrom(a, b), out, to + (g + 4) * outStride);
      }
    }

    private static IntVector load(double[] from, int i) {
      return (IntVector) DoubleVector.fromArray(WIDE, from, i).reinterpretShape(I, 0);
    }

    private static void store(IntVector v, double[] to, int i) {
      ((DoubleVector) v.reinterpretShape(WIDE, 0)).intoArray(to, i);
    }

    /** 4 x 4, rows at a, b, c, d. */
    static void square(float[] in, int a, int b, int c, int d, float[] out, int to, int outStride) {
      FloatVector ra = FloatVector.fromArray(F, in, a);
      FloatVector rb = FloatVector.fromArray(F, in, b);
      FloatVector rc = FloatVector.fromArray(F, in, c);
      FloatVector rd = FloatVector.fromArray(F, in, d);
      FloatVector ab = ra.blend(rb.rearrange(F_NEXT), F_ODD);
      FloatVector ba = ra.rearrange(F_NEXT).blend(rb, F_ODD);
      FloatVector cd = rc.blend(rd.rearrange(F_NEXT), F_ODD);
      FloatVector dc = rc.rearrange(F_NEXT).blend(rd, F_ODD);
      ab.blend(cd.rearrange(F_ACROSS), F_HIGH).intoArray(out, to);
      ba.blend(dc.rearrange(F_ACROSS), F_HIGH).intoArray(out, to + outStride);
      ab.rearrange(F_ACROSS).blend(cd, F_HIGH).intoArray(out, to + 2 * outStride);
      ba.rearrange(F_ACROSS).blend(dc, F_HIGH).intoArray(out, to + 3 * outStride);
    }

    static void square(
        double[] in, int a, int b, int c, int d, double[] out, int to, int outStride) {
      DoubleVector ra = DoubleVector.fromArray(D, in, a);
      DoubleVector rb = DoubleVector.fromArray(D, in, b);
      DoubleVector rc = DoubleVector.fromArray(D, in, c);
      DoubleVector rd = DoubleVector.fromArray(D, in, d);
      DoubleVector ab = ra.blend(rb.rearrange(D_NEXT), D_ODD);
      DoubleVector ba = ra.rearrange(D_NEXT).blend(rb, D_ODD);
      DoubleVector cd = rc.blend(rd.rearrange(D_NEXT), D_ODD);
      DoubleVector dc = rc.rearrange(D_NEXT).blend(rd, D_ODD);
      ab.blend(cd.rearrange(D_ACROSS), D_HIGH).intoArray(out, to);
      ba.blend(dc.rearrange(D_ACROSS), D_HIGH).intoArray(out, to + outStride);
      ab.rearrange(D_ACROSS).blend(cd, D_HIGH).intoArray(out, to + 2 * outStride);
      ba.rearrange(D_ACROSS).blend(dc, D_HIGH).intoArray(out, to + 3 * outStride);
    }
  }
}
