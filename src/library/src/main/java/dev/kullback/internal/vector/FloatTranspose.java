package dev.kullback.internal.vector;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorShuffle;
import jdk.incubator.vector.VectorSpecies;

/** Turns rows of a batch into lanes of panels. For one thread. The build derives {@code DoubleTranspose} from this text. */
public final class FloatTranspose {
  /** Side of the squares that are exchanged between registers of 512 bits. */
  private static final int SIDE = 512 / Float.SIZE;

  /** Whether an instruction selects lanes of two 512-bit vectors. C2 (JDK 25) has none for SVE, and boxes 3,840 B a square of doubles. */
  private static final boolean EXCHANGES = VectorWidth.BITS == 512 && VectorWidth.isX86();

  /** Side of the squares exchanged where no larger ones are: floats take 0.26 ns each, in a plain loop 0.69 (Zen 3, AVX2). */
  private static final int LEAST_SIDE = 4;

  /**
   * Whether those are exchanged. With vectors of 512 bits they would be the only doubles of 256, at which methods compiled for one class
   * trap, see VectorWidth's mix. FullSolveKernel was then boxed in 4 of 35 processes, 10 MB for 21 x 21 pairs (AVX-512, JDK 25.0.3);
   * without them in none of 35.
   */
  private static final boolean EXCHANGES_LEAST =
      Float.SIZE == 32 || VectorWidth.BITS == LEAST_SIDE * Float.SIZE;

  private final boolean vectors;
  private final float[] scratch = new float[SIDE * SIDE];

  /** Makes working memory; the lanes are the same with vectors and without. */
  public FloatTranspose(boolean vectors) {
    this.vectors = vectors;
  }

  /**
   * {@code out[to + j·outStride + i] = in[from + i·inStride + j]} for i < rows and j < columns. The lanes i from rows to the next
   * multiple of 4 or, with vectors of 512 bits, of as many as these hold, are written too: they repeat the last row.
   */
  public void toLanes(
      float[] in,
      int from,
      int inStride,
      int rows,
      int columns,
      float[] out,
      int to,
      int outStride) {
    if (vectors && EXCHANGES && columns >= SIDE) {
      for (int i = 0; i < rows; i += SIDE) {
        int first = from + i * inStride;
        int last = Math.min(SIDE, rows - i) - 1;
        for (int k = 0; k < columns; k += SIDE) {
          int j = Math.min(k, columns - SIDE); // the last square may overlap the one before
          Squares.square(
              in, first + j, inStride, last, out, to + j * outStride + i, outStride, scratch);
        }
      }
      return;
    }
    boolean squares = vectors && EXCHANGES_LEAST && columns >= LEAST_SIDE;
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
      } else {
        four(in, a, b, c, d, columns, out, to + i, outStride);
      }
    }
  }

  /** Puts four rows into lanes; apart, so that C2's code for it stays when calls change over to vectors. */
  private static void four(
      float[] in, int a, int b, int c, int d, int columns, float[] out, int to, int outStride) {
    for (int j = 0; j < columns; j++) {
      int at = to + j * outStride;
      out[at] = in[a + j];
      out[at + 1] = in[b + j];
      out[at + 2] = in[c + j];
      out[at + 3] = in[d + j];
    }
  }

  /** Squares exchanged between registers. Apart, so that nothing loads vectors before they are used. */
  private static final class Squares {
    private static final VectorSpecies<Float> S = FloatVector.SPECIES_512;

    /** Indices 0 … 31 are lanes of two vectors. */
    private static final VectorSpecies<Integer> I = IntVector.SPECIES_512;

    /** Integers of an element. */
    private static final int E = Float.SIZE / Integer.SIZE;

    private static final IntVector LOWER1 = lower(E);
    private static final IntVector LOWER2 = lower(2 * E);
    private static final IntVector LOWER4 = lower(4 * E);
    private static final IntVector LOWER8 = lower(8 * E);
    private static final IntVector UPPER1 = LOWER1.add(E);
    private static final IntVector UPPER2 = LOWER2.add(2 * E);
    private static final IntVector UPPER4 = LOWER4.add(4 * E);
    private static final IntVector UPPER8 = LOWER8.add(8 * E);

    private static final VectorSpecies<Float> F =
        VectorSpecies.of(float.class, VectorShape.forBitSize(LEAST_SIDE * Float.SIZE));
    private static final VectorShuffle<Float> NEXT = VectorShuffle.fromOp(F, i -> i ^ 1);
    private static final VectorShuffle<Float> ACROSS = VectorShuffle.fromOp(F, i -> i ^ 2);
    private static final VectorMask<Float> ODD = VectorMask.fromValues(F, false, true, false, true);
    private static final VectorMask<Float> HIGH =
        VectorMask.fromValues(F, false, false, true, true);

    /** The even groups of w lanes, the first vector's in even places and the second's in odd ones. */
    private static IntVector lower(int w) {
      int[] lanes = new int[I.length()];
      for (int i = 0; i < lanes.length; i++) {
        lanes[i] = (i & w) != 0 ? i - w + lanes.length : i;
      }
      return IntVector.fromArray(I, lanes, 0);
    }

    /**
     * SIDE x SIDE, rows beyond the last repeating it, by rounds of exchanges, two at a time: floats take 0.14 ns each where scalars take
     * 0.36, and permutes of their lanes, whose indices are floats, 0.25 (Zen 5). Doubles take three rounds, floats four.
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
        int o = to + g * outStride;
        IntVector a = load(scratch, i);
        IntVector b = load(scratch, i + 4 * SIDE);
        if (SIDE == 8) {
          store(LOWER4.selectFrom(a, b), out, o);
          store(UPPER4.selectFrom(a, b), out, o + 4 * outStride);
          continue;
        }
        IntVector c = load(scratch, i + 8 * SIDE);
        IntVector d = load(scratch, i + 12 * SIDE);
        IntVector ab = LOWER4.selectFrom(a, b);
        IntVector ba = UPPER4.selectFrom(a, b);
        IntVector cd = LOWER4.selectFrom(c, d);
        IntVector dc = UPPER4.selectFrom(c, d);
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

    /** 4 x 4, rows at a, b, c, d. */
    static void square(float[] in, int a, int b, int c, int d, float[] out, int to, int outStride) {
      FloatVector ra = FloatVector.fromArray(F, in, a);
      FloatVector rb = FloatVector.fromArray(F, in, b);
      FloatVector rc = FloatVector.fromArray(F, in, c);
      FloatVector rd = FloatVector.fromArray(F, in, d);
      FloatVector ab = ra.blend(rb.rearrange(NEXT), ODD);
      FloatVector ba = ra.rearrange(NEXT).blend(rb, ODD);
      FloatVector cd = rc.blend(rd.rearrange(NEXT), ODD);
      FloatVector dc = rc.rearrange(NEXT).blend(rd, ODD);
      ab.blend(cd.rearrange(ACROSS), HIGH).intoArray(out, to);
      ba.blend(dc.rearrange(ACROSS), HIGH).intoArray(out, to + outStride);
      ab.rearrange(ACROSS).blend(cd, HIGH).intoArray(out, to + 2 * outStride);
      ba.rearrange(ACROSS).blend(dc, HIGH).intoArray(out, to + 3 * outStride);
    }
  }
}
