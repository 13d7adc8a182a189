package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.vector.PanelForm;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The batches of a call as the kernels of full covariances read them, vector and cold. */
public final class FullOperands extends Operands<Batch> {
  /** Tolerance of batches of float: the contract is 1e-5, the aim 1e-6. */
  static final double FLOAT_TOLERANCE = 1e-6;

  /** D up to which Chernoff's divergence is computed in lanes: a vector of factors is 8 MiB, and the product of 512 mantissas within range. */
  public static final int MOST_CHERNOFF_DIMENSIONS = 512;

  /** D up to which the Wasserstein distance is computed in lanes, and above two, which have a closed form. */
  private static final int MOST_WASSERSTEIN_DIMENSIONS = 128;

  /** The forms of each batch that a kernel reads. */
  public enum Roles {
    /** None: what the batches have themselves. */
    NONE,
    /** Rows of q, columns of p. */
    ONE,
    /** Rows and columns of both. */
    BOTH,
    /** These, and what {@link FullCorrelations} has of both. */
    BOTH_AND_CORRELATIONS
  }

  private static final double[] NONE = {};

  private final PanelForm.Memory<double[]> memoryQ = new PanelForm.Memory<>();
  private final PanelForm.Memory<double[]> memoryP = new PanelForm.Memory<>();
  private final PanelForm.Memory<double[]> otherMemoryQ = new PanelForm.Memory<>();
  private final PanelForm.Memory<double[]> otherMemoryP = new PanelForm.Memory<>();
  private final FullCorrelations ownQ = new FullCorrelations();
  private final FullCorrelations ownP = new FullCorrelations();
  private double[] correlationsQ = NONE;
  private double[] correlationsP = NONE;
  private final Whitening whitenedQ = new Whitening();
  private final Whitening whitenedP = new Whitening();
  private @Nullable FullPair factors;

  /** Whether q and p share a factor, the same one or one of the same elements. */
  private boolean areFactorsAlike;

  private @Nullable FullRows rows;
  private @Nullable FullColumns columns;
  private @Nullable FullRows otherRows;
  private @Nullable FullColumns otherColumns;

  private final Formula formula;
  private final Roles roles;

  public FullOperands(Formula formula, Roles roles) {
    this.formula = formula;
    this.roles = roles;
  }

  /** Whether the Wasserstein distance is computed in lanes. */
  public static boolean hasWasserstein(int dimension) {
    return dimension > 2 && dimension <= MOST_WASSERSTEIN_DIMENSIONS;
  }

  @Override
  public void prepare(Batch batch, boolean vectors) {
    if (roles == Roles.NONE) {
      return;
    }
    FullBatch g = (FullBatch) batch;
    if (g.isShared() && roles != Roles.BOTH_AND_CORRELATIONS) {
      Whitening.of(g, vectors, new Worker());
      return;
    }
    FullPacking.ROWS.of(g, vectors);
    FullPacking.COLUMNS.of(g, vectors);
  }

  /** {@inheritDoc} Writes diagonal batches out. */
  @Override
  public void pack(Batch g, Batch h, boolean vectors, Worker worker) {
    FullBatch p = h.full();
    if (formula instanceof Density density) {
      hold(g, p);
      FullColumns kl;
      if (p.isShared()) {
        Whitening.Form form = Whitening.of(p, vectors, worker);
        kl = form.columns;
        rows = whitenedQ.of(g, p, form.centre, density.factor(), 0, vectors, worker);
      } else {
        kl = FullPacking.COLUMNS.of(p, vectors, worker);
        rows = FullPacking.POINTS.of((DiagonalBatch) g, vectors, worker);
      }
      columns = FullDensity.of(density, p, !isDouble(), kl);
      return;
    }
    FullBatch q = g.full();
    hold(q, p);
    if (roles == Roles.NONE) {
      return;
    }
    if (q.isShared() && p.isShared() && roles != Roles.BOTH_AND_CORRELATIONS) {
      whiten(q, p, vectors, worker);
      return;
    }
    boolean firstQ = q.markUsed();
    boolean firstP = q == p ? firstQ : p.markUsed();
    rows = FullPacking.ROWS.of(q, firstQ, memoryQ, vectors, worker);
    columns = FullPacking.COLUMNS.of(p, firstP, memoryP, vectors, worker);
    if (roles == Roles.ONE) {
      return;
    }
    otherRows = q == p ? rows : FullPacking.ROWS.of(p, firstP, otherMemoryP, vectors, worker);
    otherColumns =
        q == p ? columns : FullPacking.COLUMNS.of(q, firstQ, otherMemoryQ, vectors, worker);
    if (roles == Roles.BOTH_AND_CORRELATIONS) {
      correlationsP = ownP.of(p, columns, firstP);
      correlationsQ = q == p ? correlationsP : ownQ.of(q, otherColumns, firstQ);
    }
  }

  /** Packs two batches of which each has one factor for all. */
  private void whiten(FullBatch q, FullBatch p, boolean vectors, Worker worker) {
    Whitening.Form ofP = Whitening.of(p, vectors, worker);
    columns = ofP.columns;
    areFactorsAlike = q == p;
    if (q == p) {
      rows = otherRows = ofP.rows;
      otherColumns = columns;
      return;
    }
    double more = ofFactors(q, p, worker);
    areFactorsAlike = more == 0;
    rows = whitenedQ.of(q, p, ofP.centre, 0.5, more, vectors, worker);
    if (roles == Roles.BOTH) {
      Whitening.Form ofQ = Whitening.of(q, vectors, worker);
      more = ofFactors(p, q, worker);
      otherRows = whitenedP.of(p, q, ofQ.centre, 0.5, more, vectors, worker);
      otherColumns = ofQ.columns;
    }
  }

  private double ofFactors(FullBatch q, FullBatch p, Worker worker) {
    FullPair pair = factors == null ? new FullPair(worker) : factors;
    factors = pair;
    return pair.ofFactors(q, p);
  }

  @Override
  public void clear() {
    super.clear();
    whitenedQ.clear();
    whitenedP.clear();
    if (factors != null) {
      factors.clear();
    }
    areFactorsAlike = false;
    rows = null;
    columns = null;
    otherRows = null;
    otherColumns = null;
    correlationsQ = NONE;
    correlationsP = NONE;
  }

  boolean areFactorsAlike() {
    return areFactorsAlike;
  }

  FullRows rows() {
    return Objects.requireNonNull(rows);
  }

  FullColumns columns() {
    return Objects.requireNonNull(columns);
  }

  /** Returns p as rows. */
  FullRows otherRows() {
    return Objects.requireNonNull(otherRows);
  }

  /** Returns q as columns. */
  FullColumns otherColumns() {
    return Objects.requireNonNull(otherColumns);
  }

  /** Returns the bounds of {@link FullCorrelations} for each Gaussian of q. */
  double[] correlationsQ() {
    return correlationsQ;
  }

  /** Returns the bounds of {@link FullCorrelations} for each Gaussian of p. */
  double[] correlationsP() {
    return correlationsP;
  }

  /** Returns the addend of batches of float to the tolerance of the columns, which those for points have already. */
  double moreTolerance() {
    return isDouble() || formula.isOfPoints() ? 0 : FLOAT_TOLERANCE;
  }

  private boolean isDouble() {
    return q().isDouble() || p().isDouble();
  }

  /** Returns what products are multiplied by. */
  double factor() {
    return formula.isOfPoints() ? formula.factor() : 0.5;
  }
}
