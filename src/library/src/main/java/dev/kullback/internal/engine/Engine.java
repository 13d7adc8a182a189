package dev.kullback.internal.engine;

import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.kernel.Readiness;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.observe.CallEvent;
import dev.kullback.internal.observe.Events;
import dev.kullback.internal.observe.Tally;
import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.rows.TileStream;
import dev.kullback.internal.work.Crew;
import dev.kullback.internal.work.TimeLimit;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Computes calls on batches that were checked: a call takes a {@link Workspace} from the pool, has its kernels compute blocks, and gives
 * it back. Safe for use by any number of threads.
 */
public final class Engine implements AutoCloseable {
  /** Dimension for which vectors are tried where no call has told one. */
  private static final int TYPICAL_DIMENSION = 64;

  /** What it computes. */
  final Formula formula;

  private final Platform.Choice backend;
  private final @Nullable CudaDevice device;

  /** Tells which vectors are to be used; null for none. */
  private final @Nullable Predicate<KernelGroup> ready;

  /** Workspaces, and the threads that calls share. */
  final Crew<Workspace> crew;

  /** Its share in the thread in the background; null where it leaves nothing to that, and for a trial's engines. */
  final BackgroundWarmUp.@Nullable User user;

  /** The name of the divergence in events; null for none, as of a trial's engines. */
  private @Nullable String recorded;

  private final Tally calls;
  private final LongAdder coldCalls;
  private final LongAdder entries;
  private volatile boolean closed;

  /** Engines on this one's threads for calls with points, or of gradients, made when they are first asked for; replaced, not changed. */
  private volatile Map<Formula, Engine> others = Map.of();

  /**
   * An engine.
   *
   * @param executor where helpers run; null for threads of its own, if there are to be any
   * @throws IllegalArgumentException if the backend computes no such formula
   * @throws IllegalStateException if the backend cannot run
   */
  public Engine(Formula formula, Platform.Choice asked, int threads, @Nullable Executor executor) {
    this(formula, asked, threads, executor, Platform.IS_DEFERRED, (String) null);
  }

  /**
   * An engine that leaves vectors to the thread in the background, or else uses them from its first call on.
   *
   * @param executor where helpers run; null for threads of its own, if there are to be any
   * @param recorded name of the divergence in the events of calls; null for no events
   * @throws IllegalArgumentException if the backend computes no such formula
   * @throws IllegalStateException if the backend cannot run
   */
  public Engine(
      Formula formula,
      Platform.Choice asked,
      int threads,
      @Nullable Executor executor,
      boolean deferred,
      @Nullable String recorded) {
    this(formula, asked, threads, executor, deferred, deferred, Readiness.of(deferred));
    this.recorded = recorded;
  }

  /** An engine of KL that uses the vectors that {@code ready} tells of, compiled or not. */
  public Engine(
      Platform.Choice asked,
      int threads,
      @Nullable Executor executor,
      Predicate<KernelGroup> ready) {
    this(Kl.FORWARD, asked, threads, executor, ready);
  }

  /** An engine that uses the vectors that {@code ready} tells of, compiled or not. */
  public Engine(
      Formula formula,
      Platform.Choice asked,
      int threads,
      @Nullable Executor executor,
      Predicate<KernelGroup> ready) {
    this(formula, asked, threads, executor, Platform.IS_DEFERRED, false, ready);
  }

  private Engine(
      Formula formula,
      Platform.Choice asked,
      int threads,
      @Nullable Executor executor,
      boolean deferred,
      boolean joins,
      Predicate<KernelGroup> ready) {
    this.formula = formula;
    calls = new Tally();
    coldCalls = new LongAdder();
    entries = new LongAdder();
    backend = Platform.select(asked, deferred);
    if (backend == Platform.Choice.CUDA && !formula.hasDevice()) {
      throw new IllegalArgumentException(
          "a CUDA device computes KL alone; take the backend vector or scalar");
    }
    device = backend == Platform.Choice.CUDA ? new CudaDevice() : null;
    boolean vectors =
        backend == Platform.Choice.VECTOR || (device != null && Platform.mayHaveVectors(deferred));
    this.ready = vectors ? ready : null;
    user = vectors && joins ? BackgroundWarmUp.join(formula.kernels(), threads) : null;
    crew = new Crew<>("kullback", threads, executor, this::workspace, Workspace::clear);
  }

  /** An engine for some calls of another, which counts and shares its threads. A device leaves these calls to the host. */
  private Engine(Formula formula, Engine owner) {
    this.formula = formula;
    calls = owner.calls;
    coldCalls = owner.coldCalls;
    entries = owner.entries;
    device = null;
    ready = owner.ready;
    backend = ready != null ? Platform.Choice.VECTOR : Platform.Choice.SCALAR;
    Class<?> kernels = owner.formula.kernels().getClass();
    boolean isShared = owner.user == null || kernels == formula.kernels().getClass();
    user = isShared ? owner.user : BackgroundWarmUp.join(formula.kernels(), owner.threads());
    crew =
        new Crew<>(
            "kullback", owner.threads(), owner.crew.executor(), this::workspace, Workspace::clear);
    recorded =
        owner.recorded == null || !formula.isOfPoints() ? owner.recorded : formula.toString();
  }

  private Workspace workspace() {
    return new Workspace(this, ready, device);
  }

  /** Returns what it computes. */
  public Formula formula() {
    return formula;
  }

  public void checkOpen() {
    if (closed) {
      throw Constructors.ALREADY_CLOSED.get().apply("this KlEngine is closed");
    }
  }

  /** Returns the engine of this one's threads that computes densities of points; a device leaves these to the host. */
  public Engine ofPoints(Density density) {
    return other(density);
  }

  /** Returns the engine of this one's threads that computes gradients, by values to double's accuracy. */
  public Engine ofGradients() {
    return other(formula.inDouble());
  }

  private Engine other(Formula formula) {
    Engine made = others.get(formula);
    return made != null ? made : makeOther(formula);
  }

  private synchronized Engine makeOther(Formula formula) {
    checkOpen();
    Map<Formula, Engine> more = new HashMap<>(others);
    Engine engine = more.computeIfAbsent(formula, _ -> new Engine(formula, this));
    others = more;
    return engine;
  }

  /** Ends its own threads and what it has on a device; calls under way finish. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    others.values().forEach(Engine::close);
    crew.close();
    if (device != null) {
      device.close();
    }
    if (user != null) {
      user.close();
    }
  }

  /** Returns what runs: VECTOR, SCALAR or CUDA. */
  public Platform.Choice backend() {
    return backend;
  }

  public int threads() {
    return crew.threads();
  }

  /** Returns where helpers run; null if there are none. */
  public @Nullable Executor executor() {
    return crew.executor();
  }

  /** What runs, on how many threads, and why the vector backend cannot, if so. */
  public String describe() {
    if (device != null) {
      return Platform.describe(Platform.Choice.CUDA);
    }
    return "%s on %s; %s"
        .formatted(
            backend.name().toLowerCase(Locale.ROOT),
            crew.describe(),
            Platform.describe(Platform.Choice.VECTOR));
  }

  // --- workspaces and threads

  /** Takes a workspace for a call of this thread, which gives it back. */
  public Workspace begin() {
    Workspace workspace = crew.take();
    workspace.startCall();
    workspace.event = recorded == null ? null : Events.call();
    return workspace;
  }

  /** Takes a workspace whose results go to an array. The call that follows gives it back. */
  public Workspace into(float[] out) {
    Workspace workspace = begin();
    workspace.results.set(out);
    return workspace;
  }

  /** Takes a workspace whose results go to an array. The call that follows gives it back. */
  public Workspace into(double[] out) {
    Workspace workspace = begin();
    workspace.results.set(out);
    return workspace;
  }

  /** Takes a workspace whose results go to a segment, as doubles or as floats. The call that follows gives it back. */
  public Workspace into(MemorySegment out, boolean wide) {
    Workspace workspace = begin();
    workspace.results.set(out, wide);
    return workspace;
  }

  /** Ends the call that a workspace leads, of so many entries. */
  void end(Workspace lead, String operation, int n, int m, int dimension, long asked) {
    CallEvent event = lead.event;
    boolean isCold = lead.kernels.isCold();
    boolean hasFailed = !lead.succeeded;
    TimeLimit exceeded = lead.exceeded();
    long inDouble = event == null ? 0 : lead.inDouble();
    long pairByPair = event == null ? 0 : lead.afterDouble();
    calls.addSince(lead.started());
    entries.add(asked);
    if (isCold) {
      coldCalls.increment();
    }
    crew.giveBack(lead);
    if (user != null) {
      BackgroundWarmUp.callEnded();
    }
    if (event != null && recorded != null) {
      event.end(
          operation,
          recorded,
          n,
          m,
          dimension,
          asked,
          inDouble,
          pairByPair,
          threads(),
          isCold,
          hasFailed);
    }
    if (exceeded != null) {
      Events.timeout("KlEngine." + operation, exceeded.nanos());
    }
  }

  // --- figures

  public Tally calls() {
    return calls;
  }

  /** Returns how many calls began without compiled vectors that they would use. */
  public long coldCalls() {
    return coldCalls.sum();
  }

  /** Returns how many divergences the calls were to compute. */
  public long entries() {
    return entries.sum();
  }

  // --- reductions to results of their own

  /** Finds the columns of each row that the options say, or all if they are fewer. */
  public NeighborLists search(Batch q, Batch p, SearchOptions options) {
    return begin().search(q, p, options);
  }

  /** Hands over every block of the matrix, once, in no order. */
  public void forEachTile(Batch q, Batch p, TileStream consumer) {
    begin().reduce("forEachTile", q, p, consumer);
  }

  // --- before the first request

  /** Waits until all calls use vectors, if they are to, but not longer than this. */
  public void awaitVectors(int dimension, long nanos) {
    if (user != null) {
      Batch small = diagonal(1);
      Batch full =
          MadeUpGaussians.normal(1, true).full(MatrixForm.SCALE_TRIL, false, Cholesky::new);
      EnumSet<KernelGroup> groups = groups(diagonal(dimension));
      groups.addAll(
          groups(MadeUpGaussians.normal(dimension, false).diagonal(Scale.LOG_VARIANCE, true)));
      groups.addAll(groups(small));
      groups.addAll(groups(full));
      user.await(groups, dimension, nanos);
    }
  }

  private static Batch diagonal(int dimension) {
    return MadeUpGaussians.normal(dimension, false).diagonal(Scale.STD, false);
  }

  private EnumSet<KernelGroup> groups(Batch batch) {
    return KernelTable.groups(formula, batch, batch);
  }

  /** Calls with made-up batches of this shape until the VM has compiled what they run; returns whether it has compiled vectors. */
  public boolean warmUp(int n, int m, int dimension) {
    int most = Math.min(dimension, WarmUp.MOST_DIMENSIONS);
    Batch like = diagonal(most);
    return warmUp(like, like, () -> WarmUp.run(this, n, m, dimension));
  }

  /**
   * Calls with the caller's batches, which keep what the calls make of them, until the VM has compiled what they run; returns whether it has
   * compiled vectors.
   */
  public boolean warmUp(Batch q, Batch p) {
    return warmUp(q, p, () -> warmUpWith(q, p));
  }

  private boolean warmUp(Batch q, Batch p, Runnable run) {
    EnumSet<KernelGroup> groups = KernelTable.groups(formula, q, p);
    BooleanSupplier isFast =
        () -> {
          run.run();
          return device != null || (ready != null && groups.stream().allMatch(ready));
        };
    return user == null ? isFast.getAsBoolean() : user.warmUp(groups, q.dimension(), isFast);
  }

  private void warmUpWith(Batch q, Batch p) {
    if (q instanceof DiagonalBatch
        && p instanceof DiagonalBatch
        && !q.isDouble()
        && !p.isDouble()) {
      WarmUp.run(this, q.size(), p.size(), p.dimension());
    }
    WarmUp.run(this, q, p);
  }

  /** Whether calls wait for vectors no longer: they are compiled, found not to be, or none of the thread's business. */
  public boolean isReady() {
    return user == null ? !closed : user.isReady();
  }

  /** Returns a stage that is completed when {@link #isReady}. Without calls, vectors for diagonal batches of float are tried. */
  public CompletionStage<Void> ready() {
    return user == null
        ? CompletableFuture.completedStage(null)
        : user.ready(groups(diagonal(TYPICAL_DIMENSION)), TYPICAL_DIMENSION);
  }
}
