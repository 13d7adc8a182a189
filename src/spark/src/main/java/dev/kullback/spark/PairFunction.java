package dev.kullback.spark;

import dev.kullback.Divergence;
import dev.kullback.ExactDivergence;
import dev.kullback.Gaussians;
import dev.kullback.InvalidGaussianException;
import dev.kullback.KlEngine;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.util.ArrayData;

/**
 * The divergence of two Gaussians by their arrays: what a call of a function in SQL computes. Public for the code that Spark
 * generates and compiles; of no use to others. Safe for use by any number of threads.
 *
 * @since 0.1.0
 */
public final class PairFunction implements Serializable {
  private static final long serialVersionUID = 1;

  private static final ThreadLocal<Memory> MEMORY = ThreadLocal.withInitial(Memory::new);

  /** Names of the function and of its arguments. */
  private final String name;

  private final String[] arguments;

  /** Which arguments are arrays of float; the others are of double. */
  private final boolean[] isFloat;

  private final ScaleKind qKind;
  private final ScaleKind pKind;

  /**
   * @param qKind what the scales of q are, of a full kind if those of p are
   * @param pKind what the scales of p are
   */
  PairFunction(
      String name, List<String> arguments, boolean[] isFloat, ScaleKind qKind, ScaleKind pKind) {
    this.qKind = qKind;
    this.pKind = pKind;
    this.name = name;
    this.arguments = arguments.toArray(String[]::new);
    this.isFloat = isFloat.clone();
  }

  /** A thread's working memory. */
  private static final class Memory {
    final ExactDivergence kl = ExactDivergence.of(Divergence.KL, ScaleKind.STD);
    final float[][] floats = new float[4][0];
    final double[][] doubles = new double[4][0];

    float[] floats(int n, int length) {
      if (floats[n].length != length) {
        floats[n] = new float[length];
      }
      return floats[n];
    }

    double[] doubles(int n, int length) {
      if (doubles[n].length != length) {
        doubles[n] = new double[length];
      }
      return doubles[n];
    }
  }

  /**
   * Computes {@code KL(q ‖ p)}.
   *
   * @param qm the mean of q
   * @param qs its standard deviations, or its factor or covariance
   * @param pm the mean of p
   * @param ps its standard deviations, or its factor or covariance
   * @throws IllegalArgumentException if an element is null, or the arrays are not those of Gaussians of one dimension
   */
  public double of(ArrayData qm, ArrayData qs, ArrayData pm, ArrayData ps) {
    Memory memory = MEMORY.get();
    try {
      if (qKind.isFull()) {
        return Full.kl(full(memory, 0, qKind, qm, qs, "q"), full(memory, 2, pKind, pm, ps, "p"));
      }
      if (isFloat[0] && isFloat[1] && isFloat[2] && isFloat[3]) {
        return memory.kl.of(
            floats(memory, 0, qm),
            floats(memory, 1, qs),
            floats(memory, 2, pm),
            floats(memory, 3, ps));
      }
      return memory.kl.of(
          doubles(memory, 0, qm),
          doubles(memory, 1, qs),
          doubles(memory, 2, pm),
          doubles(memory, 3, ps));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("%s: %s".formatted(name, e.getMessage()), e);
    }
  }

  /** Holds an engine that the first call with full covariances makes. It computes on the calling thread. */
  private static final class Full {
    private static final KlEngine ENGINE = Shared.build(KlEngine.builder());
    private static final Query EXACT = Query.nearest(1).exact();

    static double kl(Gaussians q, Gaussians p) {
      return ENGINE.search(q, p, EXACT).value(0, 0);
    }
  }

  /** Makes a batch of one Gaussian of the arguments n and n + 1. */
  private Gaussians full(
      Memory memory, int n, ScaleKind kind, ArrayData mean, ArrayData matrix, String role) {
    double[] m = doubles(memory, n, mean);
    double[] values = doubles(memory, n + 1, matrix);
    try {
      return Gaussians.of(kind, m, values, m.length);
    } catch (InvalidGaussianException e) {
      throw new IllegalArgumentException(role + ": " + Input.description(e, kind, m.length), e);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(role + ": " + e.getMessage(), e);
    }
  }

  private float[] floats(Memory memory, int n, ArrayData array) {
    checkNulls(n, array);
    float[] values = memory.floats(n, array.numElements());
    ArrayReader.copyFloats(array, values, 0);
    return values;
  }

  private double[] doubles(Memory memory, int n, ArrayData array) {
    checkNulls(n, array);
    double[] values = memory.doubles(n, array.numElements());
    ArrayReader.copyDoubles(array, isFloat[n], values, 0);
    return values;
  }

  private void checkNulls(int n, ArrayData array) {
    int h = ArrayReader.firstNull(array);
    if (h >= 0) {
      throw new IllegalArgumentException("%s: element %d is null".formatted(arguments[n], h));
    }
  }
}
