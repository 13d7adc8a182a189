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
          LeastSquares.square(
              in, a + j, b + j, c + j, d + j, out, to + j * outStride + i, outStride);
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
     *
     * <p>Loads and stores are written out. With methods for them, this had 316 bytecodes, and C2, which inlines up to 325, put it up to six times into
     * FullSolveKernel.pack. In some processes that reached C2's limit of nodes, and the last squares boxed their vectors: up to 3,840 B each
     * (AVX-512, JDK 25.0.3; HotTest shows it with {@code -XX:CompileThresholdScaling=0.2}).
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
        IntVector a =
            (IntVector)
                FloatVector.fromArray(S, in, from + Math.min(g, last) * inStride)
                    .reinterpretShape(I, 0);
        IntVector b =
            (IntVector)
                FloatVector.fromArray(S, in, from + Math.min(g + 1, last) * inStride)
                    .reinterpretShape(I, 0);
        IntVector c =
            (IntVector)
                FloatVector.fromArray(S, in, from + Math.min(g + 2, last) * inStride)
                    .reinterpretShape(I, 0);
        IntVector d =
            (IntVector)
                FloatVector.fromArray(S, in, from + Math.min(g + 3, last) * inStride)
                    .reinterpretShape(I, 0);
        IntVector ab = LOWER1.selectFrom(a, b);
        IntVector ba = UPPER1.selectFrom(a, b);
        IntVector cd = LOWER1.selectFrom(c, d);
        IntVector dc = UPPER1.selectFrom(c, d);
        ((FloatVector) LOWER2.selectFrom(ab, cd).reinterpretShape(S, 0))
            .intoArray(scratch, g * SIDE);
        ((FloatVector) LOWER2.selectFrom(ba, dc).reinterpretShape(S, 0))
            .intoArray(scratch, (g + 1) * SIDE);
        ((FloatVector) UPPER2.selectFrom(ab, cd).reinterpretShape(S, 0))
            .intoArray(scratch, (g + 2) * SIDE);
        ((FloatVector) UPPER2.selectFrom(ba, dc).reinterpretShape(S, 0))
            .intoArray(scratch, (g + 3) * SIDE);
      }
      for (int g = 0; g < 4; g++) {
        int i = g * SIDE;
        int o = to + g * outStride;
        IntVector a = (IntVector) FloatVector.fromArray(S, scratch, i).reinterpretShape(I, 0);
        IntVector b =
            (IntVector) FloatVector.fromArray(S, scratch, i + 4 * SIDE).reinterpretShape(I, 0);
        if (SIDE == 8) {
          ((FloatVector) LOWER4.selectFrom(a, b).reinterpretShape(S, 0)).intoArray(out, o);
          ((FloatVector) UPPER4.selectFrom(a, b).reinterpretShape(S, 0))
              .intoArray(out, o + 4 * outStride);
          continue;
        }
        IntVector c =
            (IntVector) FloatVector.fromArray(S, scratch, i + 8 * SIDE).reinterpretShape(I, 0);
        IntVector d =
            (IntVector) FloatVector.fromArray(S, scratch, i + 12 * SIDE).reinterpretShape(I, 0);
        IntVector ab = LOWER4.selectFrom(a, b);
        IntVector ba = UPPER4.selectFrom(a, b);
        IntVector cd = LOWER4.selectFrom(c, d);
        IntVector dc = UPPER4.selectFrom(c, d);
        ((FloatVector) LOWER8.selectFrom(ab, cd).reinterpretShape(S, 0)).intoArray(out, o);
        ((FloatVector) LOWER8.selectFrom(ba, dc).reinterpretShape(S, 0))
            .intoArray(out, o + 4 * outStride);
        ((FloatVector) UPPER8.selectFrom(ab, cd).reinterpretShape(S, 0))
            .intoArray(out, o + 8 * outStride);
        ((FloatVector) UPPER8.selectFrom(ba, dc).reinterpretShape(S, 0))
            .intoArray(out, o + 12 * outStride);
      }
    }
  }

  /**
   * Squares of {@link #LEAST_SIDE}. Initialized only where they are used: to make these masks in doubles of 256 bits beside vectors of 512
   * trapped four times in {@code DoubleSpecies.dummyVector} if C2 had compiled it by then, which counts 4 for each load of a kernel, and
   * {@code FullSolveKernel.four} boxed 21,760 B a call. HotTest shows it with {@code -XX:CompileThresholdScaling=0.15} (AVX-512, JDK 25.0.3).
   */
  private static final class LeastSquares {
    private static final VectorSpecies<Float> F =
        VectorSpecies.of(float.class, VectorShape.forBitSize(LEAST_SIDE * Float.SIZE));
    private static final VectorShuffle<Float> NEXT = VectorShuffle.fromOp(F, i -> i ^ 1);
    private static final VectorShuffle<Float> ACROSS = VectorShuffle.fromOp(F, i -> i ^ 2);
    private static final VectorMask<Float> ODD = VectorMask.fromValues(F, false, true, false, true);
    private static final VectorMask<Float> HIGH =
        VectorMask.fromValues(F, false, false, true, true);

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
