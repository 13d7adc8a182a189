package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import java.util.BitSet;

/**
 * Batch in panels of one precision. With R from a kernel, {@code KL(q_i ‖ p_j) = ½R + offsetQ[i] + offsetP[j]}, and its error is at
 * most {@code unit·KL + noiseQ[i] + noiseP[j]}.
 *
 * @param values panels, in a layout of {@code FloatKernels}
 * @param offsetQ by row, padded to whole panels, like the others
 * @param noiseQ NaN where this precision cannot hold the row's variances, like {@code noiseP}
 */
record Packed<A>(
    A values, double unit, double[] offsetQ, double[] offsetP, double[] noiseQ, double[] noiseP) {
  /** Adds the offsets and noises that the epilogue needs of each row. */
  static <A> Packed<A> of(DiagonalBatch g, A values, int width, double unit, BitSet beyond) {
    int padded = Math.ceilDiv(g.size(), width) * width;
    double[] offsetQ = new double[padded];
    double[] offsetP = new double[padded];
    double[] noiseQ = new double[padded];
    double[] noiseP = new double[padded];
    for (int i = 0; i < g.size(); i++) {
      offsetQ[i] = PairKl.offsetQ(g, i);
      offsetP[i] = PairKl.offsetP(g, i);
      noiseQ[i] = beyond.get(i) ? Double.NaN : PairKl.noiseQ(g, i, unit);
      noiseP[i] = beyond.get(i) ? Double.NaN : PairKl.noiseP(g, i, unit);
    }
    return new Packed<>(values, unit, offsetQ, offsetP, noiseQ, noiseP);
  }

  /** Bytes of the arrays other than the values. */
  long rowBytes() {
    return 4L * Double.BYTES * offsetQ.length;
  }
}
