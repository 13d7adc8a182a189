package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.vector.Readiness;
import dev.kullback.internal.vector.VectorKernel;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Full covariances as a matrix product: packs the batches of a call, and leaves its blocks to {@link FullVectorKernel} or, until that is
 * compiled, to {@link FullColdKernel}.
 */
public final class FullCovarianceKernel extends BlockKernel<FullBatch> {
  /** Batches of float: the contract is 1e-5, the aim 1e-6. */
  static final double FLOAT_TOLERANCE = 1e-6;

  /** As {@link VectorKernel} does: batches up to so many doubles (4 MiB) are packed into memory of the engine's at their first use. */
  private static final int MOST_PANELS = 1 << 19;

  /**
   * For batches of double: 1e-12 times the condition number ‖L_p‖‖L_p⁻¹‖, up to where it would show. The bounds are those of the
   * worst case; errors found are below 1e-13.
   */
  static double tolerance(double condition) {
    return PairKl.DOUBLE_TOLERANCE * Math.clamp(condition, 1, 100);
  }

  private final Worker worker;
  private final FullPair pair;
  private final FullColdKernel twin;

  /** Made when it is first needed, as its classes take long to load. */
  private @Nullable FullVectorKernel vectors;

  /** The batches of a call as the product reads them. */
  private @Nullable FullRows rows;

  private @Nullable FullColumns columns;

  /** Memory for those of batches used for the first time, which may never be again; grown on demand. */
  private double[] firstRows = {};

  private double[] firstColumns = {};

  public FullCovarianceKernel(Worker worker, FullPair pair) {
    this.worker = worker;
    this.pair = pair;
    twin = new FullColdKernel(worker, pair);
  }

  /** Makes all forms that calls may read. */
  public static void prepare(FullBatch batch) {
    FullPacking.ROWS.of(batch);
    FullPacking.COLUMNS.of(batch);
  }

  @Override
  protected void prepare(FullBatch q, FullBatch p) {
    boolean firstQ = q.isFirstUse();
    boolean firstP = q == p ? firstQ : p.isFirstUse();
    int rowsLength = FullPacking.rowsLength(q);
    if (firstQ && rowsLength <= MOST_PANELS) {
      if (firstRows.length < rowsLength) {
        firstRows = new double[rowsLength];
      }
      rows = FullPacking.packRows(q, firstRows, worker);
    } else {
      rows = FullPacking.rows(q, worker);
    }
    int columnsLength = FullPacking.columnsLength(p);
    if (firstP && columnsLength <= MOST_PANELS) {
      if (firstColumns.length < columnsLength) {
        firstColumns = new double[columnsLength];
      }
      columns = FullPacking.packColumns(p, firstColumns, worker);
    } else {
      columns = FullPacking.columns(p, worker);
    }
  }

  @Override
  public void join(BlockKernel<?> lead) {
    super.join(lead);
    FullCovarianceKernel other = (FullCovarianceKernel) lead;
    rows = other.rows;
    columns = other.columns;
  }

  @Override
  public void end() {
    super.end();
    rows = null;
    columns = null;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, BlockTarget out) {
    FullBatch q = q();
    FullBatch p = p();
    FullRows a = Objects.requireNonNull(rows);
    FullColumns b = Objects.requireNonNull(columns);
    if (!Readiness.isReady(Readiness.KernelGroup.FULL)) {
      twin.block(q, p, a, b, row0, row1, column0, column1, out);
      return;
    }
    if (vectors == null) {
      vectors = new FullVectorKernel(worker, pair);
    }
    vectors.block(q, p, a, b, row0, row1, column0, column1, out);
  }
}
