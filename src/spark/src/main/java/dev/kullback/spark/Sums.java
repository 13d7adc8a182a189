package dev.kullback.spark;

import java.io.Serializable;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.stream.StreamSupport;
import org.apache.spark.sql.catalyst.InternalRow;

/** {@code ln Σ_j exp(−KL(q_i ‖ p_j))} of N queries over the references of one block. No record, as Spark's Kryo does not read those. */
final class Sums implements Serializable {
  private static final long serialVersionUID = 1;

  /** Number of the queries' block. */
  final int block;

  private final long[] queries;
  private final int referenceBlock;
  private final double[] values;

  Sums(int block, long[] queries, int referenceBlock, double[] values) {
    this.block = block;
    this.queries = queries;
    this.referenceBlock = referenceBlock;
    this.values = values;
  }

  /** The sums over all blocks, added by ascending block, as rounding depends on the order. */
  static Iterator<InternalRow> rows(Iterable<Sums> blocks) {
    List<Sums> ordered =
        StreamSupport.stream(blocks.spliterator(), false)
            .sorted(Comparator.comparingInt(sums -> sums.referenceBlock))
            .toList();
    long[] queries = ordered.getFirst().queries;
    return new Rows(
        2,
        queries.length,
        (row, i) -> {
          row.setLong(0, queries[i]);
          row.setDouble(1, sum(ordered, i));
        });
  }

  private static double sum(List<Sums> blocks, int i) {
    double largest = Double.NEGATIVE_INFINITY;
    for (Sums s : blocks) {
      largest = Math.max(largest, s.values[i]);
    }
    if (largest == Double.NEGATIVE_INFINITY) { // every divergence overflows
      return largest;
    }
    double sum = 0;
    for (Sums s : blocks) {
      sum += Math.exp(s.values[i] - largest);
    }
    return largest + Math.log(sum);
  }
}
