package dev.kullback;

/**
 * A batch as the kernels of one precision read it. With {@code S + D} from a kernel, {@code KL(q_i ‖ p_j) = ½(S + D) +
 * offsetQ[i] + offsetP[j]}, and its error is at most {@code unit·KL + noiseQ[i] + noiseP[j]}.
 *
 * @param values panels, in a layout of {@code FloatKernels}
 * @param offsetQ by row, padded to whole panels, like the others; NaN where this precision cannot hold the row's variances
 */
@SuppressWarnings("ArrayRecordComponent") // shared, read-only, and never compared
record Packed<A>(A values, double[] offsetQ, double[] offsetP, double[] noiseQ, double[] noiseP) {
  /** Bytes of the arrays other than the values. */
  long rowBytes() {
    return 4L * Double.BYTES * offsetQ.length;
  }
}
