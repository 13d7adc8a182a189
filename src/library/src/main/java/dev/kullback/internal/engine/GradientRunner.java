package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.GradientCall.Of;
import dev.kullback.internal.formula.GradientLoops;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.GradientKernel;
import dev.kullback.internal.vector.GradientRows;
import dev.kullback.internal.vector.full.FullGradientKernel;
import dev.kullback.internal.vector.full.FullGradientProducts;
import dev.kullback.internal.vector.full.FullOperands;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Job;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Computes gradients of one number made of the divergences of q and p, with the threads of an engine. The matrix is cut into blocks, and these
 * into rounds: no two blocks of a round have a row or a column in common, so each adds to sums that are its own, and a sum is added up in the
 * order of the rounds, whatever the threads. Of full covariances, a task has the sums of some Gaussians of one batch over all of the other, in their order. One thread's, which
 * keeps it for its next call.
 */
final class GradientRunner {
  /** Blocks across the rows, and the columns, of a small matrix, so that several threads have some of each round. */
  private static final int PARTS = 4;

  private static final int SIDE = GradientKernel.SIDE;
  private static final int W = GradientKernel.W;

  /**
   * Weights of a band of rows, 32 MiB: with 8 MiB a block of 4096 columns has 64 rows, and memory takes the gradient of logSumExp from 665 to 962 ms in float and
   * from 1029 to 1381 ms in double (4096, 128; AVX-512, Intel, CPU family 6, JDK 25.0.3, one thread).
   */
  private static final int MOST_WEIGHTS = 1 << 22;

  /** Weights of rows that are computed at once. */
  private static final int WEIGHT_ROWS = 32;

  /** Doubles that are kept for the next call, 32 MiB. */
  private static final int MOST_KEPT = 1 << 22;

  private static final double[] NONE = {};
  private static final Operands<?> NO_OPERANDS = new Operands<>();

  private final Workspace lead;
  private final Job.Task<Workspace> weigh = this::weigh;
  private final Job.Task<Workspace> add = this::add;
  private final Job.Task<Workspace> multiply = this::multiply;
  private final Job.Task<Workspace> pairs = this::pairs;
  private final Job.Task<Workspace> finish = this::finish;

  private @Nullable GradientLoops loops;

  /** What this thread computes now, of its own call or of one that it helps with. */
  private final GradientRows<DiagonalBatch> rows = new GradientRows<>();

  private final GradientRows<DiagonalBatch> columns = new GradientRows<>();
  private final GradientRows<FullBatch> fullRows = new GradientRows<>();
  private final GradientRows<FullBatch> fullColumns = new GradientRows<>();

  private @Nullable Batch q;
  private @Nullable Batch p;
  private GradientCall call = GradientCall.NONE;

  private KernelTable row = KernelTable.SCALAR;
  private Operands<?> operands = NO_OPERANDS;

  /** The operands of products, null for sums over pairs. */
  private @Nullable FullOperands products;

  /** Sums of derivatives, in the places that {@link GradientKernel#at} tells. */
  private double[] sumsQ = NONE;

  private double[] sumsP = NONE;

  /** Cotangents of the rows of a band, shares of those of the rows, row-major. */
  private double[] shares = NONE;

  /** Rows of the band, rows and columns of its blocks, and the round. */
  private int row0;

  private int row1;
  private int height;
  private int width;
  private int round;

  /** Whether the Gaussians of q are the targets of products, and not those of p. */
  private boolean isOfQ;

  GradientRunner(Workspace lead) {
    this.lead = lead;
  }

  private Batch q() {
    return Objects.requireNonNull(q);
  }

  private Batch p() {
    return Objects.requireNonNull(p);
  }

  /** Returns what computes derivatives of pairs. */
  private GradientLoops loops() {
    if (loops == null) {
      loops = new GradientLoops(Term.required(lead.kernels.formula));
    }
    return loops;
  }

  /** Computes a call, whose p is null for the standard normal distribution. */
  void run(GradientCall call, Batch q, @Nullable Batch p) {
    this.call = call;
    this.q = q;
    this.p = p;
    if (call.of() != Of.PAIRS) {
      run(q, p());
      return;
    }
    if (q instanceof FullBatch f) {
      lead.kernels.beginGradients(f);
      sumsQ = zeros(sumsQ, FullGradientKernel.sums(f));
      sumsP = zeros(sumsP, p == null ? 0 : sumsQ.length);
    }
    lead.share(Math.ceilDiv(q.size(), pairStep(q)), pairs);
  }

  /** Computes a call of all pairs. */
  private void run(Batch q, Batch p) {
    int n = q.size();
    int m = p.size();
    sumsQ = zeros(sumsQ, sums(q));
    sumsP = zeros(sumsP, sums(p));
    boolean isSoftmax = call.of() == Of.SOFTMAX;
    int band = isSoftmax ? band(n, m) : n;
    boolean isProduct =
        q instanceof FullBatch a
            && p instanceof FullBatch b
            && FullGradientProducts.isPossible(a, b)
            && (band == n || band % Batch.WIDEST_PANEL == 0);
    if (isSoftmax || isProduct) {
      row = lead.kernels.choose(q, p);
      operands = lead.kernels.pack(row, q, p);
    }
    products = isProduct ? products(q, p) : null;
    if (isSoftmax && shares.length < band * m) {
      shares = new double[band * m];
    }
    lead.kernels.beginGradients(q);
    for (row0 = 0; row0 < n; row0 = row1) {
      row1 = Math.min(n - row0, band) + row0;
      if (isSoftmax) {
        call.cotangents.setShares(shares, row0, m);
        lead.share(Math.ceilDiv(row1 - row0, WEIGHT_ROWS), weigh);
      }
      if (products != null) {
        isOfQ = true;
        shareTargets(row1 - row0);
        isOfQ = false;
        shareTargets(m);
        continue;
      }
      height = side(row1 - row0);
      width = side(m);
      int rounds = Math.max(bands(), bandsOfColumns());
      for (round = 0; round < rounds; round++) {
        lead.share(Math.min(bands(), bandsOfColumns()), add);
      }
    }
    lead.share(Math.ceilDiv(Math.max(n, m), step(q)), finish);
  }

  /** Returns how many rows of {@code m} weights are made at once, of {@code n}: an array holds them. */
  static int band(int n, int m) {
    int most = MOST_WEIGHTS / m;
    int least = Math.min(BlockKernel.ROW_PANEL, Batch.MOST_ELEMENTS / m);
    return Math.min(Math.max(most - most % WEIGHT_ROWS, least), n);
  }

  /** Returns the batches as products read them: packed for the matrix, or where its kernel reads them otherwise, without vectors. */
  private FullOperands products(Batch q, Batch p) {
    if (operands instanceof FullOperands packed) {
      return packed;
    }
    boolean isBoth = Term.of(lead.kernels.formula) == Term.JEFFREYS;
    KernelTable row = isBoth ? KernelTable.FULL_JEFFREYS : KernelTable.FULL;
    FullOperands made = (FullOperands) lead.kernels.operands(row);
    products = made; // to be cleared even if an interrupt ends the packing
    lead.kernels.pack(row, q, p);
    return made;
  }

  /** Adds up the derivatives of n Gaussians, if they are wanted. */
  private void shareTargets(int n) {
    if (isWanted(isOfQ)) {
      lead.share(Math.ceilDiv(n, FullGradientProducts.targets(n, q().dimension())), multiply);
    }
  }

  private int bands() {
    return Math.ceilDiv(row1 - row0, height);
  }

  private int bandsOfColumns() {
    return Math.ceilDiv(p().size(), width);
  }

  private static int side(int rows) {
    int side = Math.ceilDiv(rows, PARTS);
    return Math.min(Math.ceilDiv(side, 4) * 4, SIDE);
  }

  private static int sums(Batch g) {
    return g instanceof FullBatch f
        ? FullGradientKernel.sums(f)
        : GradientKernel.sums((DiagonalBatch) g);
  }

  /** Pairs of a task: of full covariances, whole vectors of them. */
  private static int pairStep(Batch q) {
    return q instanceof FullBatch
        ? Checkpoint.taskRows(Checkpoint.ofSolve(q.dimension()), BlockKernel.ROW_PANEL)
        : step(q);
  }

  private static int step(Batch q) {
    return Checkpoint.taskRows(Checkpoint.ofPlain(4L * q.dimension()), 1);
  }

  private static double[] zeros(double[] array, int length) {
    if (array.length < length) {
      return new double[length];
    }
    Arrays.fill(array, 0, length, 0);
    return array;
  }

  /** Makes the cotangents of the divergences of some rows of the band. */
  private void weigh(long index, Workspace w) {
    int from = row0 + (int) index * WEIGHT_ROWS;
    int to = Math.min(row1 - from, WEIGHT_ROWS) + from;
    int m = p().size();
    double[] values = w.rows(row, operands, from, to, m);
    double[] logWeights = call.logWeights();
    double[] cotangents = call.cotangents.ofRows();
    for (int i = from; i < to; i++) {
      w.pass(Checkpoint.ofPlain(m));
      int at = (i - from) * m;
      for (int j = 0; j < m && logWeights != null; j++) {
        values[at + j] -= logWeights[j];
      }
      w.kernels.gradients().weigh(values, at, m, -cotangents[i], shares, (i - row0) * m);
    }
  }

  /** Whether derivatives by q, or by p, go anywhere; where q is p, as q's. */
  private boolean isWanted(boolean ofQ) {
    return call.isSent(ofQ || q == p);
  }

  private double @Nullable [] wanted(boolean ofQ) {
    return isWanted(ofQ) ? ofQ ? sumsQ : sumsP : null;
  }

  /** Adds a block of the round. */
  private void add(long index, Workspace w) {
    boolean isTall = bands() >= bandsOfColumns(); // then each column has a block in each round
    int across = isTall ? (int) index : (round + (int) index) % bandsOfColumns();
    int down = isTall ? (round + (int) index) % bands() : (int) index;
    int from = row0 + down * height;
    int to = Math.min(row1 - from, height) + from;
    int column = across * width;
    int end = Math.min(p().size() - column, width) + column;
    w.checkInterrupt();
    GradientRunner own = w.gradients();
    if (q instanceof FullBatch a && p instanceof FullBatch b) {
      FullGradientKernel kernel = w.kernels.fullGradients();
      own.fullRows.set(a, from, to, wanted(true));
      own.fullColumns.set(b, column, end, wanted(false));
      readCotangents(own, kernel.weights);
      kernel.add(kernel.weights, own.fullRows, own.fullColumns, w);
    } else {
      own.rows.set((DiagonalBatch) q(), from, to, sumsQ);
      own.columns.set((DiagonalBatch) p(), column, end, sumsP);
      GradientKernel kernel = w.kernels.gradients();
      kernel.add(own.loops().pair(), call.cotangents, own.rows, own.columns, w);
    }
  }

  /** Reads those of a thread's block of full covariances. */
  private void readCotangents(GradientRunner of, double[] block) {
    int first = of.fullRows.from;
    int column = of.fullColumns.from;
    int end = of.fullColumns.to;
    for (int i = first; i < of.fullRows.to; i++) {
      int at = (i - first) * SIDE;
      call.cotangents.read(i, column, end, block, at, 0, Double.POSITIVE_INFINITY);
    }
  }

  /** Adds the derivatives of some targets, and by pairs those that products do not settle. */
  private void multiply(long index, Workspace w) {
    FullBatch a = (FullBatch) q();
    FullBatch b = (FullBatch) p();
    int n = isOfQ ? row1 - row0 : b.size();
    int step = FullGradientProducts.targets(n, a.dimension());
    int skipped = isOfQ ? row0 : 0;
    int from = (int) index * step + skipped;
    int to = Math.min(n + skipped - from, step) + from;
    int first = isOfQ ? 0 : row0;
    int last = isOfQ ? b.size() : row1;
    GradientRunner own = w.gradients();
    GradientRows<FullBatch> targets = isOfQ ? own.fullRows : own.fullColumns;
    GradientRows<FullBatch> others = isOfQ ? own.fullColumns : own.fullRows;
    double[] sums = isOfQ ? sumsQ : sumsP;
    targets.set(isOfQ ? a : b, from, to, sums);
    FullGradientKernel kernel = w.kernels.fullGradients();
    FullGradientProducts of = kernel.products();
    double[] block = kernel.weights;
    of.begin(Objects.requireNonNull(products), isOfQ, from, to, first, last);
    for (int o = first; o < last; o += SIDE) {
      w.checkInterrupt();
      int end = Math.min(last - o, SIDE) + o;
      others.set(isOfQ ? b : a, o, end, null);
      readCotangents(own, block);
      of.add(block, o, end, w);
    }
    if (!of.finish(sums, w)) {
      return;
    }
    for (int o = first; o < last; o += SIDE) {
      int end = Math.min(last - o, SIDE) + o;
      others.set(isOfQ ? b : a, o, end, null);
      readCotangents(own, block);
      for (int t = 0; t < to - from; t++) {
        for (int k = 0; k < end - o && !of.isOpen(t); k++) {
          block[isOfQ ? t * SIDE + k : k * SIDE + t] = 0;
        }
      }
      kernel.add(block, own.fullRows, own.fullColumns, w);
    }
  }

  /** Computes the gradients of some pairs of rows. */
  private void pairs(long index, Workspace w) {
    int step = pairStep(q());
    int from = (int) index * step;
    int to = Math.min(q().size() - from, step) + from;
    GradientRunner own = w.gradients();
    if (q instanceof FullBatch a) {
      FullBatch b = (FullBatch) p;
      own.fullRows.set(a, from, to, wanted(true));
      w.kernels
          .fullGradients()
          .addPairs(
              call.cotangents.ofRows(),
              own.fullRows,
              b == null ? null : own.fullColumns.set(b, from, to, wanted(false)),
              w);
      put(a, from, to, b, from, to, w);
    } else {
      pairs((DiagonalBatch) q(), (DiagonalBatch) p, from, to, own.loops(), w);
    }
  }

  private void pairs(
      DiagonalBatch q,
      @Nullable DiagonalBatch p,
      int first,
      int last,
      GradientLoops loops,
      Workspace w) {
    double[] cotangents = call.cotangents.ofRows();
    int d = q.dimension();
    int end = last * d;
    for (int at = first * d; at < end; at += GradientLoops.LENGTH) {
      int n = Math.min(end - at, GradientLoops.LENGTH);
      w.pass(Checkpoint.ofPlain(n));
      for (int k = 0; k < n; ) {
        int i = (at + k) / d;
        int to = Math.min((i + 1) * d - at, n);
        Arrays.fill(loops.weights, k, to, cotangents[i]);
        k = to;
      }
      loops.set(q, p, at, n);
      put(true, q, loops, at, n);
      if (p != null && p != q) {
        for (int k = 0; k < n; k++) {
          loops.mean[k] = 0 - loops.mean[k];
        }
        put(false, p, loops, at, n);
      }
    }
  }

  /** Stores the gradients of some rows, of q and of p. */
  private void finish(long index, Workspace w) {
    int step = step(q());
    int from = (int) index * step;
    int to = Math.min(Math.max(q().size(), p().size()) - from, step) + from;
    if (q instanceof FullBatch a && p instanceof FullBatch b) {
      put(a, from, Math.min(to, a.size()), b, from, Math.min(to, b.size()), w);
    } else {
      put(true, (DiagonalBatch) q(), from, to, w.gradients().loops(), w);
      if (q != p) {
        put(false, (DiagonalBatch) p(), from, to, w.gradients().loops(), w);
      }
    }
  }

  /** Stores those of rows of q, or of p, of the sums. */
  private void put(
      boolean ofQ, DiagonalBatch g, int from, int to, GradientLoops loops, Workspace w) {
    Term term = loops.pair().term();
    double[] scale = ofQ ? loops.scaleQ : loops.scaleP;
    int d = g.dimension();
    for (int i = from; i < Math.min(to, g.size()); i++) {
      w.pass(Checkpoint.ofPlain(2L * d));
      for (int h = 0; h < d; h += GradientLoops.LENGTH) {
        int n = Math.min(d - h, GradientLoops.LENGTH);
        g.read(i * d + h, n, loops.mean, ofQ ? loops.givenQ : loops.givenP);
        for (int k = 0; k < n; k++) {
          int at = GradientKernel.at(g, i, h + k);
          loops.mean[k] = term.byMean(sum(ofQ, at));
          scale[k] = sum(ofQ, at + W);
        }
        put(ofQ, g, loops, i * d + h, n);
      }
    }
  }

  /** Returns q's sum, or p's, whose negated ones were added up; where q is p, both, and 0 of equal infinities. */
  private double sum(boolean ofQ, int at) {
    double ofP = ofQ && q != p ? 0 : sumsP[at];
    double sum = ofQ ? sumsQ[at] : 0;
    return sum == ofP ? 0 : sum - ofP;
  }

  /** Stores the gradients by n elements from an index on, of their sums. */
  private void put(boolean ofQ, DiagonalBatch batch, GradientLoops loops, int at, int n) {
    if (!call.isSent(ofQ)) {
      return;
    }
    double[] scale = ofQ ? loops.scaleQ : loops.scaleP;
    loops.toGiven(batch, at, n, ofQ ? loops.givenQ : loops.givenP, scale);
    call.target(ofQ).means.write(at, n, loops.mean, 0);
    call.target(ofQ).scales.write(at, n, scale, 0);
  }

  /** Stores the gradients of rows [i0, i1) of q and [j0, j1) of p, of full covariances. */
  private void put(
      FullBatch q, int i0, int i1, @Nullable FullBatch p, int j0, int j1, Workspace w) {
    int n = FullGradientKernel.sums(q.dimension());
    for (int i = i0; i < i1; i++) {
      w.pass(Checkpoint.ofPlain(n));
      for (int k = i * n; k < (i + 1) * n && q == p; k++) {
        sumsQ[k] += sumsP[k];
      }
      put(true, q, i, sumsQ);
    }
    for (int j = j0; j < j1 && p != null && q != p; j++) {
      w.pass(Checkpoint.ofPlain(n));
      put(false, p, j, sumsP);
    }
  }

  private void put(boolean ofQ, FullBatch batch, int i, double[] sums) {
    if (!call.isSent(ofQ)) {
      return;
    }
    int d = batch.dimension();
    int at = i * FullGradientKernel.sums(d);
    FullGradientKernel.toGiven(batch, i, sums, at, ofQ ? "q" : "p");
    call.target(ofQ).means.write((long) i * d, d, sums, at);
    Results scales = call.target(ofQ).scales;
    at += d;
    if (batch.given().isPacked()) {
      int length = Cholesky.packedLength(d);
      scales.write((long) i * length, length, sums, at);
      return;
    }
    for (int r = 0; r < d; at += ++r) {
      int to = (i * d + r) * d;
      scales.write(to, r + 1, sums, at);
      for (int c = r + 1; c < d; c++) {
        scales.put(to + c, 0);
      }
    }
  }

  /** Drops the caller's arrays and batches, and much memory. */
  void clear() {
    rows.clear();
    columns.clear();
    fullRows.clear();
    fullColumns.clear();
    q = null;
    p = null;
    call = GradientCall.NONE;
    operands = NO_OPERANDS;
    if (products != null) {
      products.clear();
      products = null;
    }
    sumsQ = sumsQ.length > MOST_KEPT ? NONE : sumsQ;
    sumsP = sumsP.length > MOST_KEPT ? NONE : sumsP;
    shares = shares.length > MOST_KEPT ? NONE : shares;
  }
}
