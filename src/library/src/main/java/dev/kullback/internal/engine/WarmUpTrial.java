package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.MergerBounds;
import dev.kullback.internal.formula.NearTerm;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairGradient;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.formula.ScalarMergers;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Factorization;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.vector.CholeskyKernel;
import dev.kullback.internal.vector.ColdKernel;
import dev.kullback.internal.vector.Cotangents;
import dev.kullback.internal.vector.FloatPanels;
import dev.kullback.internal.vector.GradientKernel;
import dev.kullback.internal.vector.GradientRows;
import dev.kullback.internal.vector.RangeKernel;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.vector.TileKernel;
import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.internal.vector.full.FullGradientKernel;
import dev.kullback.internal.vector.full.FullOperands;
import dev.kullback.internal.vector.full.MergerKernel;
import dev.kullback.internal.vector.full.ProductKernels;
import dev.kullback.internal.vector.scan.CodeScanKernel;
import dev.kullback.internal.vector.scan.PanelScanKernel;
import dev.kullback.internal.vector.scan.ScalarCodeScan;
import dev.kullback.internal.vector.scan.ScalarPanelScan;
import dev.kullback.internal.vector.scan.ScalarScan;
import dev.kullback.internal.vector.scan.VectorScan;
import dev.kullback.internal.work.Worker;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Runs vector kernels and the cold ones, on batches of its own, until the vector kernels are fast, which shows that C2 has compiled them.
 */
final class WarmUpTrial {
  /** Time after which calls change over whatever the speed: C2 may be starved, or give up, and vectors are right all the same. */
  private static final long MOST_NANOS = 30_000_000_000L;

  /**
   * Multiple of the cold kernels' time up to which vectors are used. Compiled, they take 0.3 to 1.2 of it, in double with 16 registers or 128 bits the
   * most; boxed, 5 times as long as cold kernels when these had a third of their speed.
   */
  private static final int SLOWER = 2;

  /**
   * The same where hardly an entry is recomputed, in float: compiled, vectors take 0.3 of the cold kernels' time at 512 bits, 0.35 to 0.63 at 256, and
   * 0.44 to 0.78 at 128. With {@link #SLOWER} calls changed over some 0.3 s before all of it was compiled, and took 5 to 40 times as long
   * meanwhile (Zen 4, with cold kernels of a third of their speed).
   */
  private static final int NO_SLOWER = 1;

  /**
   * Multiple that tells that vectors have left the interpreter. It ends a trial in few dimensions before one in more, which then takes what C2
   * has: with {@link #SLOWER} there, too, C2 worked 3.4 s instead of 1.5 on full covariances, and 1.5 instead of 1.1 on Jeffreys' divergence
   * (Zen 4).
   */
  private static final int PAST_INTERPRETER = 30;

  /**
   * Time after which {@link Platform#isCompiled} tells whether to go on. The first trial takes 1.5 s beside one busy thread (Zen 4, two
   * processors).
   */
  private static final long PATIENCE_NANOS = 3_000_000_000L;

  /** Whole tiles and tails of all widths. What compiles a method is the number of its calls, so these are short. */
  private static final int ROWS = 12;

  /** Columns of low-rank factors. */
  private static final int LOW_RANK = 3;

  private static final int COLUMNS = FloatPanels.NR * 3 / 2 + 3;

  /**
   * Two panels of floats and a tail of half a vector. With {@link #ROWS}, a tail of one, every micro-kernel is called, and about as often.
   */
  private static final int WIDE = 2 * FloatPanels.NR + 3;

  /** Rounds before which the interpreter may still run both kernels, and be as slow without vectors. */
  private static final int LEAST_ROUNDS = 20;

  /** First, as the interpreter takes 5 µs for an operation; enough for every rung. */
  private static final int FEW_DIMENSIONS = 8;

  /** A micro-kernel's chunk and part of a second one: C2 would compile a kernel again that it had only seen store the first. */
  private static final int TWO_CHUNKS = PairKl.BLOCK + 8;

  /** More than are promoted at once. */
  private static final int MOST_DIMENSIONS = 320;

  /** Panels of an index, and their dimensions: some that are left after the first look, and some that are not. */
  private static final int PANELS = 3;

  private static final int PANEL_DIMENSIONS = 40;

  /** Words of a panel of codes, which is no larger than these. */
  private static final int PANEL_WORDS = 40;

  /** Dimensions of full covariances: blocks of four and what is left, in one chunk of the product and in several. */
  private static final int FEW_FULL_DIMENSIONS = 6;

  private static final int MOST_FULL_DIMENSIONS = 32;

  /**
   * Calls of each micro-kernel in a round, beside those by the round's matrices, which go through more dimensions. Seconds until calls are as
   * fast as they get, without and with these, beside other work: KL 1.9 and 1.3, Jeffreys' divergence 2.4 and 1.9, squared Wasserstein-2 2.2
   * and 1.5, Jeffreys' of full covariances 3.3 and 2.9; on an idle machine 1.6 and 1.7, 2.5 and 2.4, 2.4 and 2.0 of the first three
   * (AVX-512, Intel, CPU family 6, two processors, two to eight JVMs each). 50 and 200 take as long; all before the first round, 0.2 s longer.
   */
  private static final int EXERCISES = 100;

  /** Distances of Gaussians from the standard one, in turn: for each rung that recomputes entries, and those that are equal. */
  private static final double[] MIXED = {1, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 0};

  private static final double[] FAR = {1};
  private static final double[] CLOSE = {0.01};
  private static final double[] NEAR = {1e-4};

  private final Formula formula;
  private final int dimension;
  private final long start = System.nanoTime();
  private final Random random = new Random(1);
  private final Engine ready = engine(Kl.FORWARD, _ -> true);
  private final Engine cold = engine(Kl.FORWARD, _ -> false);

  /** Makes batches that show C2 the check by vectors. */
  private final MadeUpGaussians two =
      MadeUpGaussians.normal(TWO_CHUNKS, false).around(2, random, FAR);

  private final RangeCheck vectorCheck = new RangeKernel();

  /** Time after which stages end with their second round. */
  private final long mostNanos;

  private boolean isAbandoned;

  /** A trial for calls that compute a divergence of some dimension. */
  WarmUpTrial(Formula formula, int dimension) {
    this(formula, dimension, MOST_NANOS);
  }

  /** The same, which changes over after another time. */
  WarmUpTrial(Formula formula, int dimension, long mostNanos) {
    this.formula = formula;
    this.dimension = dimension;
    this.mostNanos = mostNanos;
  }

  private static Engine engine(Formula formula, Predicate<KernelGroup> vectors) {
    return new Engine(formula, Platform.Choice.VECTOR, 1, null, vectors);
  }

  /** Whether it ended early, as nobody had use for it then. */
  boolean isAbandoned() {
    return isAbandoned;
  }

  boolean floats() {
    return kernels(TWO_CHUNKS) && (dimension <= PairKl.BLOCKS || kernels(MOST_DIMENSIONS));
  }

  /**
   * Tries the transposes of panels, by matrices of one row, in which they take longer than the kernel: among other work they would seem fast
   * before C2 has them. And the check of floats.
   */
  boolean packing() {
    Engine plain = engine(Kl.FORWARD, group -> group == KernelGroup.FLOAT);
    Engine vectors =
        engine(Kl.FORWARD, group -> group == KernelGroup.FLOAT || group == KernelGroup.PACKING);
    MadeUpGaussians normal = MadeUpGaussians.normal(TWO_CHUNKS, false);
    Batch q = normal.around(1, random, FAR).diagonal(Scale.STD, false);
    MadeUpGaussians p = normal.around(WIDE, random, FAR);
    float[] out = new float[WIDE];
    return tryOut(
            () -> plain.into(out).pairwise(q, p.diagonal(Scale.STD, false, RangeCheck.PLAIN)),
            () -> vectors.into(out).pairwise(q, p.diagonal(Scale.STD, false, RangeCheck.PLAIN)),
            () -> {},
            NO_SLOWER)
        && checks();
  }

  boolean doubles() {
    return matrices(FEW_DIMENSIONS, PAST_INTERPRETER, true, FAR, MIXED, CLOSE, NEAR)
        && matrices(clamped(FEW_DIMENSIONS), SLOWER, true, FAR, MIXED, CLOSE, NEAR);
  }

  boolean refinement() {
    return matrices(FEW_DIMENSIONS, PAST_INTERPRETER, false, MIXED, CLOSE, NEAR)
        && matrices(clamped(FEW_DIMENSIONS), SLOWER, false, MIXED, CLOSE, NEAR);
  }

  boolean small() {
    int d = Math.min(dimension, SmallKernel.MOST_DIMENSIONS);
    return matrices(d, SLOWER, false, FAR, MIXED, CLOSE, NEAR)
        && matrices(d, SLOWER, true, FAR, MIXED, CLOSE, NEAR);
  }

  /**
   * Tries tiles of the divergence, which is not KL, where floats settle the entries. A few that need refinement show C2 the way to it, as in
   * {@link #kernels}.
   */
  boolean formulaOfFloats(KernelGroup group) {
    Engine vectors = engine(formula, g -> g == group);
    Engine plain = engine(formula, _ -> false);
    TileKernel tiles = tiles(formula);
    for (int d : new int[] {FEW_DIMENSIONS, clamped(TWO_CHUNKS)}) {
      MadeUpGaussians normal = MadeUpGaussians.normal(d, false);
      MadeUpGaussians q = normal.around(ROWS, random, FAR);
      MadeUpGaussians p = normal.around(COLUMNS, random, FAR);
      Batch mixedQ = normal.around(MIXED.length, random, MIXED).diagonal(Scale.STD, false);
      Batch mixedP = normal.around(COLUMNS, random, MIXED).diagonal(Scale.STD, false);
      if (!tryOut(
          () -> matrices(plain, q, p, false, RangeCheck.PLAIN),
          () -> matrices(vectors, q, p, false, RangeCheck.PLAIN),
          () -> {
            tiles.exercise(EXERCISES);
            matrices(vectors, mixedQ, mixedP);
          },
          d == FEW_DIMENSIONS ? PAST_INTERPRETER : NO_SLOWER)) {
        return false;
      }
    }
    return true;
  }

  /** Tries the other tiles of the divergence: in double, and in float where entries are recomputed in double. */
  boolean formula() {
    Engine vectors = engine(formula, _ -> true);
    Engine plain = engine(formula, _ -> false);
    for (int d : new int[] {FEW_DIMENSIONS, clamped(TWO_CHUNKS)}) {
      int slower = d == FEW_DIMENSIONS ? PAST_INTERPRETER : SLOWER;
      if (!matrices(vectors, plain, RangeCheck.PLAIN, d, slower, true, FAR, MIXED, CLOSE, NEAR)
          || !matrices(
              vectors, plain, RangeCheck.PLAIN, d, slower, false, FAR, MIXED, CLOSE, NEAR)) {
        return false;
      }
    }
    return formula.nearTerm() == null || nearFloats();
  }

  /** Tries the near form of floats, as tiles may settle all of these in double: those of Jeffreys' divergence do. */
  private boolean nearFloats() {
    MadeUpGaussians normal = MadeUpGaussians.normal(clamped(FEW_DIMENSIONS), false);
    MadeUpGaussians rows = normal.around(ROWS, random, NEAR);
    MadeUpGaussians columns = normal.around(COLUMNS, random, NEAR);
    return near(
        (DiagonalBatch) rows.diagonal(Scale.STD, false),
        (DiagonalBatch) columns.diagonal(Scale.STD, false));
  }

  private boolean near(DiagonalBatch q, DiagonalBatch p) {
    TileKernel tiles = tiles(formula);
    BlockTarget spare = new BlockTarget();
    return tryOut(() -> tiles.tryNear(q, p, spare, false), () -> tiles.tryNear(q, p, spare, true));
  }

  /** Tries near forms of scales that few calls have, of those that have vectors of their own; the others are tried with the tiles. */
  boolean nearKinds() {
    MadeUpGaussians normal = MadeUpGaussians.normal(clamped(FEW_DIMENSIONS), false);
    MadeUpGaussians around = normal.around(ROWS, random, NEAR);
    MadeUpGaussians columns = normal.around(COLUMNS, random, NEAR);
    for (boolean wide : new boolean[] {true, false}) {
      DiagonalBatch p = (DiagonalBatch) columns.diagonal(Scale.LOG_VARIANCE, wide);
      for (Scale kind : new Scale[] {Scale.LOG_VARIANCE, Scale.STD}) {
        DiagonalBatch q = (DiagonalBatch) around.diagonal(kind, wide);
        if (formula.isOfOtherKinds(q, p, wide) && !near(q, p)) {
          return false;
        }
      }
    }
    return formula.nearTerm() != NearTerm.KL || smallOfTwoKinds();
  }

  /** Tries the same of few dimensions, which are no tiles. */
  private boolean smallOfTwoKinds() {
    MadeUpGaussians normal = MadeUpGaussians.normal(SmallKernel.MOST_OF_OTHER_KINDS, false);
    Batch q = normal.around(ROWS, random, NEAR).diagonal(Scale.STD, true);
    Batch p = normal.around(COLUMNS, random, NEAR).diagonal(Scale.LOG_VARIANCE, true);
    return tryOut(() -> matrices(cold, q, p), () -> matrices(ready, q, p));
  }

  private static TileKernel tiles(Formula formula) {
    Worker worker = new Worker();
    Pair pair = new Pair(formula, worker);
    ColdKernel plain = new ColdKernel(formula, worker, pair);
    return new TileKernel(formula, worker, pair, plain, _ -> true, _ -> true);
  }

  /** Tries the divergence of full covariances, with what packs its operands. */
  boolean full(KernelGroup group) {
    Engine vectors = engine(formula, g -> g == group);
    Engine plain = engine(formula, _ -> false);
    boolean hasProducts = group == KernelGroup.FULL || group == KernelGroup.FULL_JEFFREYS;
    for (int d : fullDimensions()) {
      MadeUpGaussians normal = MadeUpGaussians.normal(d, true);
      for (double[] spread : new double[][] {FAR, MIXED}) {
        MadeUpGaussians q = normal.around(ROWS, random, spread);
        MadeUpGaussians p = normal.around(COLUMNS, random, spread);
        if (!tryOut(
            () -> matrices(plain, full(q), full(p)),
            () -> matrices(vectors, full(q), full(p)),
            () -> ProductKernels.exercise(hasProducts ? EXERCISES : 0),
            d == FEW_FULL_DIMENSIONS ? PAST_INTERPRETER : spread == FAR ? NO_SLOWER : SLOWER)) {
          return false;
        }
      }
    }
    return true;
  }

  /** Tries low-rank covariances. */
  boolean lowRank() {
    Engine vectors = engine(Kl.FORWARD, group -> group == KernelGroup.LOW_RANK);
    for (int d : fullDimensions()) {
      MadeUpGaussians normal = MadeUpGaussians.normal(d, true);
      for (int n = 0; n < 3; n++) {
        boolean isDouble = n > 0;
        boolean isNear =
            n == 2; // floats and doubles have one near form, which takes each kind of scales by a
        // method of its own
        Scale[] scales = isNear ? Scale.values() : new Scale[] {Scale.STD};
        MadeUpGaussians rows = normal.around(ROWS, random, isNear ? NEAR : FAR);
        MadeUpGaussians columns = normal.around(COLUMNS, random, isNear ? NEAR : FAR);
        Batch[] q = lowRank(rows, scales, isDouble);
        Batch[] p = lowRank(columns, scales, isDouble);
        if (!tryOut(
            () -> matrices(cold, q, p),
            () -> matrices(vectors, q, p),
            () -> {},
            d == FEW_FULL_DIMENSIONS ? PAST_INTERPRETER : NO_SLOWER)) {
          return false;
        }
      }
    }
    return true;
  }

  private static Batch[] lowRank(MadeUpGaussians g, Scale[] scales, boolean isDouble) {
    return Arrays.stream(scales)
        .map(scale -> g.lowRank(LOW_RANK, scale, isDouble))
        .toArray(Batch[]::new);
  }

  /** Tries pairs of full covariances in lanes. */
  boolean fullPairs() {
    for (int d : fullDimensions()) {
      MadeUpGaussians normal = MadeUpGaussians.normal(d, true);
      for (double[] spread : new double[][] {FAR, MIXED, NEAR}) {
        Batch q = full(normal.around(ROWS, random, spread));
        Batch p = full(normal.around(COLUMNS, random, spread));
        Batch others = full(normal.around(COLUMNS, random, spread));
        if (!tryOut(() -> pairs(cold, q, p, others), () -> pairs(ready, q, p, others))) {
          return false;
        }
      }
    }
    return true;
  }

  /** Tries the factors of new batches of full covariances. */
  boolean fullFactors() {
    for (int d : fullDimensions()) {
      MadeUpGaussians p = MadeUpGaussians.normal(d, true).around(COLUMNS, random, FAR);
      if (!tryOut(() -> factors(p, Cholesky::new), () -> factors(p, CholeskyKernel::new))) {
        return false;
      }
    }
    return true;
  }

  private int[] fullDimensions() {
    return new int[] {
      FEW_FULL_DIMENSIONS, Math.clamp(dimension, FEW_FULL_DIMENSIONS, MOST_FULL_DIMENSIONS)
    };
  }

  private static Batch full(MadeUpGaussians g) {
    return g.full(MatrixForm.SCALE_TRIL, true, Cholesky::new);
  }

  private static void pairs(Engine engine, Batch q, Batch p, Batch others) {
    matrices(engine, q, p);
    double[] out = new double[p.size()];
    engine.into(out).aligned(p, others);
    engine.into(out).toStandardNormal(p);
  }

  private static void factors(MadeUpGaussians g, Supplier<Factorization> how) {
    g.full(MatrixForm.COVARIANCE, true, how);
    g.full(MatrixForm.PRECISION, true, how);
  }

  boolean scans() {
    double[] values = random.doubles(160, 0, 3).toArray();
    long[] keys = random.longs(RowScan.FEW, 0, Long.MAX_VALUE).toArray();
    RowScan plain = new ScalarScan(VectorWidth.BITS / Double.SIZE);
    RowScan vectors = new VectorScan();
    return tryOut(() -> scan(plain, values, keys), () -> scan(vectors, values, keys));
  }

  /**
   * Tries the sums of derivatives: each divergence's, of batches of either precision, by logarithms and not. The blocks are small, as the
   * interpreter takes 5 µs for an operation of each of the 13 loops.
   */
  boolean gradients() {
    MadeUpGaussians normal = MadeUpGaussians.normal(GradientKernel.W + FEW_DIMENSIONS, false);
    MadeUpGaussians around = normal.around(ROWS, random, FAR);
    for (PairGradient.Term term : PairGradient.Term.values()) {
      for (Scale kind : Scale.values()) {
        for (boolean wide : new boolean[] {false, true}) {
          DiagonalBatch g = (DiagonalBatch) around.diagonal(kind, wide, RangeCheck.PLAIN);
          GradientKernel plain = new GradientKernel(false);
          GradientKernel vectors = new GradientKernel(true);
          PairGradient pair = new PairGradient(term);
          double[] sums = new double[GradientKernel.sums(g)];
          if (!tryOut(() -> add(plain, pair, g, sums), () -> add(vectors, pair, g, sums))) {
            return false;
          }
        }
      }
    }
    return true;
  }

  private static void add(
      GradientKernel kernel, PairGradient pair, DiagonalBatch g, double[] sums) {
    double[] ones = new double[g.size()];
    Arrays.fill(ones, 1);
    Cotangents cotangents = new Cotangents();
    cotangents.set(ones);
    GradientRows<DiagonalBatch> rows = new GradientRows<DiagonalBatch>().set(g, 0, g.size(), sums);
    kernel.add(pair, cotangents, rows, rows, new Worker());
  }

  /** Tries those of full covariances. */
  boolean fullGradients() {
    for (int d : fullDimensions()) {
      MadeUpGaussians normal = MadeUpGaussians.normal(d, true);
      FullBatch g = (FullBatch) full(normal.around(COLUMNS, random, MIXED));
      Worker worker = new Worker();
      FullGradientKernel plain = new FullGradientKernel(PairGradient.Term.KL, false, worker);
      FullGradientKernel vectors = new FullGradientKernel(PairGradient.Term.KL, true, worker);
      FullOperands operands = new FullOperands(Kl.FORWARD, FullOperands.Roles.ONE);
      operands.pack(g, g, false, worker);
      double[] sums = new double[FullGradientKernel.sums(g)];
      if (!tryOut(
          () -> add(plain, operands, g, sums, worker),
          () -> add(vectors, operands, g, sums, worker))) {
        return false;
      }
    }
    return true;
  }

  private static void add(
      FullGradientKernel kernel, FullOperands operands, FullBatch g, double[] sums, Worker worker) {
    double[] weights = new double[GradientKernel.SIDE * g.size()];
    Arrays.fill(weights, 1);
    for (int ofQ = 0; ofQ <= 1; ofQ++) {
      kernel.products().begin(operands, ofQ == 1, 0, g.size(), 0, g.size());
      kernel.products().add(weights, 0, g.size(), worker);
      kernel.products().finish(sums, worker);
    }
    GradientRows<FullBatch> rows = new GradientRows<FullBatch>().set(g, 0, g.size(), sums);
    kernel.add(weights, rows, rows, worker);
    kernel.addPairs(weights, rows, rows, worker);
  }

  /** Tries bounds of mergers in each number of dimensions, as each has loops of its own. */
  boolean mergers() {
    double[] panel = new double[MergerBounds.STRIDE * MergerBounds.rows(MergerBounds.MOST)];
    double[] bounds = new double[MergerBounds.STRIDE];
    int[] places = new int[MergerBounds.STRIDE];
    Arrays.setAll(places, p -> p);
    Arrays.fill(panel, 1);
    MergerBounds plain = new ScalarMergers();
    MergerBounds vectors = new MergerKernel();
    for (int d = 1; d <= MergerBounds.MOST; d++) {
      int dimension = d;
      double[] own = new double[MergerBounds.rows(d)];
      Arrays.fill(own, 1);
      if (!tryOut(
          () -> bounds(plain, dimension, own, panel, places, bounds),
          () -> bounds(vectors, dimension, own, panel, places, bounds))) {
        return false;
      }
    }
    return true;
  }

  private static void bounds(
      MergerBounds mergers,
      int dimension,
      double[] own,
      double[] panel,
      int[] places,
      double[] bounds) {
    for (int from = 0; from < ROWS; from++) {
      int to = from + 2 * VectorWidth.BITS / Double.SIZE;
      mergers.set(dimension, own, panel, from, to, places, bounds);
    }
  }

  boolean panels() {
    MemorySegment panels = randomPanels();
    PanelScan plain = new ScalarPanelScan();
    PanelScan vectors = new PanelScanKernel();
    return tryOut(() -> scan(plain, panels), () -> scan(vectors, panels));
  }

  boolean codes() {
    MemorySegment panels = randomPanels();
    CodeScan plain = new ScalarCodeScan();
    CodeScan vectors = new CodeScanKernel();
    return tryOut(() -> scanCodes(plain, panels), () -> scanCodes(vectors, panels));
  }

  private MemorySegment randomPanels() {
    float[] panels = new float[2 * PanelScan.LANES * PANELS * PANEL_DIMENSIONS];
    for (int k = 0; k < panels.length; k++) {
      panels[k] = 1 + random.nextFloat();
    }
    MemorySegment segment = Arena.ofAuto().allocate((long) Float.BYTES * panels.length);
    MemorySegment.copy(panels, 0, segment, ValueLayout.JAVA_FLOAT, 0, panels.length);
    return segment;
  }

  private int clamped(int least) {
    return Math.clamp(dimension, least, MOST_DIMENSIONS);
  }

  /**
   * Tries the float kernel alone, on batches that are packed already and hardly need refinement, which cold kernels do here. Most
   * calls wait for it alone. A few entries that need it show C2 the way to it, so that no method is thrown away when refinement is tried.
   */
  private boolean kernels(int d) {
    Engine floats = engine(Kl.FORWARD, group -> group == KernelGroup.FLOAT);
    MadeUpGaussians normal = MadeUpGaussians.normal(d, false);
    Batch q = normal.around(ROWS, random, FAR).diagonal(Scale.STD, false);
    Batch p = normal.around(WIDE, random, FAR).diagonal(Scale.STD, false);
    Batch nearQ = normal.around(4, random, NEAR).diagonal(Scale.STD, false);
    Batch nearP = normal.around(COLUMNS, random, NEAR).diagonal(Scale.STD, false);
    float[] out = new float[q.size() * p.size()];
    TileKernel tiles = tiles(Kl.FORWARD);
    return tryOut(
        () -> cold.into(out).pairwise(q, p),
        () -> floats.into(out).pairwise(q, p),
        () -> {
          tiles.exercise(EXERCISES);
          matrices(floats, q, p);
          floats.into(out).pairwise(p, q); // a tail of one vector
          floats.into(out).pairwise(nearQ, nearP);
        },
        NO_SLOWER);
  }

  private boolean matrices(int d, int slower, boolean wide, double[]... spreads) {
    return matrices(ready, cold, vectorCheck, d, slower, wide, spreads);
  }

  private boolean matrices(
      Engine ready,
      Engine cold,
      RangeCheck floats,
      int d,
      int slower,
      boolean wide,
      double[]... spreads) {
    MadeUpGaussians normal = MadeUpGaussians.normal(d, false);
    for (double[] spread : spreads) {
      MadeUpGaussians q = normal.around(ROWS, random, spread);
      MadeUpGaussians p = normal.around(COLUMNS, random, spread);
      if (!tryOut(
          () -> matrices(cold, q, p, wide, RangeCheck.PLAIN),
          () -> matrices(ready, q, p, wide, floats),
          () -> {},
          slower)) {
        return false;
      }
    }
    return true;
  }

  private static void matrices(
      Engine engine, MadeUpGaussians q, MadeUpGaussians p, boolean wide, RangeCheck floats) {
    matrices(engine, q.diagonal(Scale.STD, wide, floats), p.diagonal(Scale.STD, wide, floats));
  }

  /** Tries the check of floats alone, on as many as a batch has checked at once: it is a small part of the time of a matrix. */
  private boolean checks() {
    float[] values = new float[4096];
    return tryOut(() -> check(RangeCheck.PLAIN, values), () -> check(vectorCheck, values));
  }

  private static void check(RangeCheck floats, float[] values) {
    for (int i = 0; i < ROWS; i++) {
      floats.contains(-1, 1, values, i, values.length);
    }
  }

  private static void matrices(Engine engine, Batch[] q, Batch[] p) {
    for (int k = 0; k < q.length; k++) {
      matrices(engine, q[k], p[k]);
    }
  }

  private static void matrices(Engine engine, Batch q, Batch p) {
    engine.into(new float[q.size() * p.size()]).pairwise(q, p);
    engine.into(new double[q.size() * p.size()]).pairwise(q, p);
    engine.into(new float[q.size() * q.size()]).pairwise(q, q);
  }

  /** Computes with both until vectors take at most {@link #SLOWER} times as long, as only compiled ones do; or returns false. */
  private boolean tryOut(Runnable plain, Runnable vectors) {
    return tryOut(plain, vectors, () -> {}, SLOWER);
  }

  /** Computes with both until vectors take at most {@code slower} times as long; runs the rest in each round without timing it. */
  private boolean tryOut(Runnable plain, Runnable vectors, Runnable rest, int slower) {
    int rounds = 0;
    long least = Long.MAX_VALUE;
    long vector = Long.MAX_VALUE;
    while (true) {
      VectorWidth.mix();
      // C2 is to know both checks of a batch before it compiles what makes one: where it knew the
      // plain one alone, batches took 10 times as long for 0.1 s once vectors had taken over
      two.diagonal(Scale.STD, false, vectorCheck);
      least = Math.min(least, time(plain));
      vector = Math.min(vector, time(vectors));
      if (++rounds >= LEAST_ROUNDS && vector <= slower * least) {
        return true;
      }
      rest.run();
      if (BackgroundWarmUp.isAbandoned()) {
        isAbandoned = true;
        return false;
      }
      long spent = System.nanoTime() - start;
      if (spent > PATIENCE_NANOS && !Platform.isCompiled()) {
        return false;
      }
      if (spent > mostNanos && rounds > 1) {
        return true;
      }
    }
  }

  private static long time(Runnable round) {
    long start = System.nanoTime();
    round.run();
    return System.nanoTime() - start;
  }

  /** Runs the operations of reductions on rows. */
  private static void scan(RowScan scan, double[] values, long[] keys) {
    double[] least = new double[values.length];
    int[] at = new int[values.length];
    for (int i = 0; i < ROWS; i++) {
      scan.sumExp(0, values, i, i + 47); // at every width pairs, one vector and a tail
      scan.sum(values, i, values.length);
      scan.min(values, i, values.length);
      scan.atMost(1, values, i, values.length, at);
      scan.leastOfGroups(values, 0, values.length, 32, least);
      scan.sortFew(keys.clone(), i, keys.length);
    }
  }

  /** Scans floats as if they were codes, of panels of which every second one is left at the first look. */
  private static void scanCodes(CodeScan scan, MemorySegment panels) {
    float[] terms = new float[2 * CodeScan.TERMS * PANEL_WORDS];
    Arrays.fill(terms, 1);
    CodeScan.Limit limit = new CodeScan.Limit();
    float[] most = new float[CodeScan.LANES];
    for (int i = 0; i < ROWS; i++) {
      limit.more = i % 2 == 0 ? 0 : Float.MAX_VALUE;
      scan.sums(terms, PANEL_WORDS - i, limit, panels, 0, 1, most, most.clone(), new int[1]);
    }
  }

  /** Scans panels both ways, of which the first is left at the first look. */
  private static void scan(PanelScan scan, MemorySegment panels) {
    float[] query = new float[2 * PANEL_DIMENSIONS];
    float[] most = new float[PANELS * PanelScan.LANES];
    float[] queries = new float[PanelScan.GROUP * query.length];
    Arrays.fill(query, 1);
    Arrays.fill(queries, 1);
    Arrays.fill(most, PanelScan.LANES, most.length, Float.POSITIVE_INFINITY);
    for (int i = 0; i < ROWS; i++) {
      boolean reverse = i % 2 == 1;
      int d = PANEL_DIMENSIONS - i;
      scan.sums(query, reverse, d, panels, 0, PANELS, most, most.clone(), new int[PANELS]);
      int stride = PANELS * PanelScan.LANES;
      float[] sums = new float[PanelScan.GROUP * stride];
      scan.sumsOfAll(queries, 0, 1, reverse, d, panels, 0, PANELS, sums, stride);
      scan.keep(sums, 0, most, 0, PANELS, i, new int[PANELS]);
    }
  }
}
