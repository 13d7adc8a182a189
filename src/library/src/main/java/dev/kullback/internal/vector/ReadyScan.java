package dev.kullback.internal.vector;

import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.plain.ScalarScan;
import org.jspecify.annotations.Nullable;

/** {@link VectorScan} once vectors are compiled, and until then its twin, which adds up in the same order; for one thread. */
public final class ReadyScan implements RowScan {
  private final RowScan plain = new ScalarScan(VectorWidth.BITS / Double.SIZE);

  /** Made when it is first needed, as its classes take long to load. */
  private @Nullable RowScan vectors;

  private RowScan scan() {
    if (!Readiness.isReady(Readiness.KernelGroup.SCANS)) {
      return plain;
    }
    if (vectors == null) {
      vectors = new VectorScan();
    }
    return vectors;
  }

  @Override
  public int atMost(double limit, double[] values, int from, int to, int[] at) {
    return scan().atMost(limit, values, from, to, at);
  }

  @Override
  public void leastOfGroups(double[] values, int from, int to, int groups, double[] least) {
    scan().leastOfGroups(values, from, to, groups, least);
  }

  @Override
  public double min(double[] values, int from, int to) {
    return scan().min(values, from, to);
  }

  @Override
  public double sum(double[] values, int from, int to) {
    return scan().sum(values, from, to);
  }

  @Override
  public double sumExp(double shift, double[] values, int from, int to) {
    return scan().sumExp(shift, values, from, to);
  }

  @Override
  public void sortFew(long[] keys, int from, int to) {
    scan().sortFew(keys, from, to);
  }
}
