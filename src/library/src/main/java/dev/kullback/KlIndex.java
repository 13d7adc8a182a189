package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.index.search.Gathering;
import dev.kullback.internal.index.search.NeighborIds;
import dev.kullback.internal.index.search.Searches;
import dev.kullback.internal.index.store.Index;
import dev.kullback.internal.index.store.LiveSegment;
import dev.kullback.internal.index.store.ReadBack;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.index.store.Wanted;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.rows.SearchOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Gaussians under ids, the references, which can be added, replaced and removed while any number of threads search them by KL, or another
 * {@link Divergence}. They are diagonal, or have full covariances if {@link Builder#fullCovariances} says so.
 *
 * <pre>
 * try (KlIndex index = KlIndex.builder(64).open(folder)) {
 *   index.add(ids, DiagonalGaussians.ofStd(mean, std, 64));
 *   index.commit();
 *   IndexNeighbors found = index.nearest(queries, 10);
 *   long nearest = found.id(0, 0);
 * }
 * </pre>
 *
 * <p><b>Results</b> are exact. {@link #nearest} finds, for each query x, the k smallest of {@code KL(x ‖ p)} in nats over the
 * references p, in the order of exact arithmetic and ties by the lower id. Wherever methods and pages write {@code KL(x ‖ p)}, an index of
 * another {@linkplain Builder#divergence divergence} ranks by that of x and p instead, one of full covariances by values in double, and queries that are points by {@linkplain #nearest(Gaussians, int) distance or density}. Ids and values are exactly those that
 * {@link KlEngine#search(Gaussians, Gaussians, Query)} with {@link Query#exact()} gives for one batch of the
 * same Gaussians in the order of their ids. They do not depend on the order of changes, on commits, or on the number of threads.
 * A search of diagonal Gaussians reads codes of 2 bytes for each dimension of a reference, or 8 bytes of {@code float}, which bound the divergence, and
 * computes exact values only where these bounds leave open whether a reference belongs to the result.
 *
 * <p><b>References</b> are {@link DiagonalGaussians} of float or double and of any scale, mixed as they come, or likewise {@link FullGaussians} in an index of
 * full covariances, whose queries may be of either class. Ids are any values of {@code long}, and unique. Each change is one step: a search sees all of it or nothing, and every search that begins after
 * the change has returned sees it. If a change fails, nothing has changed. What searches read is immutable, so they wait for no
 * change, and changes do not wait for searches; but one change waits for another.
 *
 * <p><b>Memory.</b> A reference of float takes {@code 18·D + 40} bytes, one of double {@code 26·D + 40}, where D is the dimension; one with a
 * full covariance {@code 4·D(D + 3) + 32}, or {@code 8·D(D + 2) + 32} where its factor was computed, as that of a covariance is. This is memory
 * outside the heap until {@link #commit}, and a mapped file after it, but for segments of up to 128 KiB, which stay in memory.
 * {@code -XX:MaxDirectMemorySize}, by default the size of the heap, limits the memory of all indexes of the process; a change that would
 * exceed it throws {@link OutOfMemoryError}. Memory and mappings that no search can reach any more are given back at once, without the
 * garbage collector, so an index is to be closed. References that are removed take their memory until their segment is merged with
 * others, which is at the latest when a third of its references are removed. A daemon thread of the index merges segments where there is
 * need; what it makes is in a file, too, if it is large and the index has a folder.
 *
 * <p><b>Files.</b> An index of a folder keeps what {@link #commit} wrote whenever and however the process ends. Nothing but a commit changes
 * a folder that has an index, except for a line in the file {@code lock} that says who has it open, and it deletes only files that an earlier commit of this index has written. One index at a time, in any
 * process, may have the folder open for changes; any number may have it {@linkplain #openReadOnly open to be read} meanwhile. Only one that
 * was opened with a folder has files; others live in memory.
 *
 * <p>An index is safe for use by any number of threads at once, virtual ones too. A method throws {@link AlreadyClosedException} if
 * the index is closed, {@link IllegalArgumentException} if an argument is not as its description says,
 * {@link CancellationException} if the calling thread is interrupted while it searches, waits or writes, and {@link UncheckedIOException} if a
 * file cannot be read or written; below it, {@link DiskFullException} where there is no room for it, {@link CorruptIndexException} where files
 * are not as they were written, and {@link IndexLockedException} where the folder is open for changes already. Its message begins with the path.
 *
 * @since 0.1.0
 */
public final class KlIndex implements AutoCloseable {
  private final Index index;
  private final Divergence divergence;
  private final Searches searches;
  private final @Nullable Gathering gathering;
  private final boolean commitOnClose;

  /** What a {@link #reader} sees; null in the index itself. */
  private final @Nullable Snapshot held;

  private volatile boolean isReaderClosed;

  /** The options of the last {@link #query(float[], int, float[], int, int, long[], float[])}. */
  private volatile SearchOptions nearest = SearchOptions.FORWARD;

  private KlIndex(Index index, Divergence divergence, Builder builder) {
    this.index = index;
    this.divergence = divergence;
    held = null;
    int threads = KlEngine.threads(builder.threads, builder.executor);
    Platform.warnOfIndex();
    searches =
        new Searches(
            divergence.formula,
            divergence.name(),
            index.isFull(),
            index.dimension(),
            threads,
            builder.executor,
            builder.backgroundWarmUp);
    gathering =
        builder.longestWait == null
            ? null
            : new Gathering(searches, TimeUnit.NANOSECONDS.convert(builder.longestWait));
    commitOnClose = builder.commitOnClose;
  }

  /** A reader of an index, which takes over the use of the snapshot. */
  private KlIndex(KlIndex of, Snapshot held) {
    index = of.index;
    divergence = of.divergence;
    searches = of.searches;
    gathering = of.gathering;
    commitOnClose = false;
    this.held = held;
  }

  /** Makes an index of one that was opened, whose manifest says the divergence; closes that if this fails. */
  private static KlIndex of(Path folder, Index opened, Builder builder) {
    try {
      return new KlIndex(opened, divergence(folder, opened.divergence()), builder);
    } catch (Throwable e) {
      opened.close();
      throw e;
    }
  }

  private static Divergence divergence(Path folder, String name) {
    try {
      Divergence found = Divergence.of(name);
      if (found.name().equals(name)) {
        return found;
      }
    } catch (IllegalArgumentException e) {
      // as of another name
    }
    String message =
        "%s: is an index of the divergence %s, which this version of Kullback does not know; take the one that wrote it"
            .formatted(folder, name);
    throw new UncheckedIOException(message, new IOException(message));
  }

  /**
   * {@return a builder of indexes; each of its methods states the default of what it sets}
   *
   * @param dimension D of all Gaussians of the index, at least 1
   * @throws IllegalArgumentException if the dimension is less than 1, or too large for a batch
   */
  public static Builder builder(int dimension) {
    if (dimension < 1 || dimension > DiagonalBatch.MOST_DIMENSIONS) {
      throw new IllegalArgumentException(
          "dimension must be in [1, %d], is %d"
              .formatted(DiagonalBatch.MOST_DIMENSIONS, dimension));
    }
    return new Builder(dimension);
  }

  /**
   * {@return a builder of indexes of folders that have one, whose dimension it learns} It opens them with more than {@link #open} does, such as with
   * {@linkplain Builder#threads threads}; a new index needs a {@linkplain #builder(int) dimension}.
   */
  public static Builder builder() {
    return new Builder(0);
  }

  /**
   * Opens the index of a folder, to search it with one thread. Reads the manifest and the head of each segment, and maps the rest.
   *
   * <p>A folder or a file system that may only be read is opened, too; {@link #commit} then fails.
   *
   * @param folder the folder of an index
   * @throws IndexLockedException if it is open for changes already, here or in another process
   * @throws CorruptIndexException if a file is missing or not as it was written, or the manifest is older than the files or of another index
   * @throws UncheckedIOException if there is no index, it is of another version of the format, or cannot be read; nothing is changed, whatever
   *     is thrown
   */
  public static KlIndex open(Path folder) {
    return builder().open(folder);
  }

  /**
   * Opens the last commit of the index of a folder, to search it with one thread, whoever else has the folder open. It stays what it is while
   * others commit, until it is {@linkplain #refresh refreshed}. Nothing in the folder is changed, nor a lock taken.
   *
   * <p>Methods that change the index, and {@link #commit}, throw {@link IllegalStateException}.
   *
   * <p>A new index is there to be opened as soon as {@link Builder#open} has returned in the process that makes it. A reader that may come
   * before has to try again.
   *
   * @param folder the folder of an index
   * @throws CorruptIndexException as of {@link #open}
   * @throws UncheckedIOException as of {@link #open}, also if there is no index yet
   */
  public static KlIndex openReadOnly(Path folder) {
    return builder().openReadOnly(folder);
  }

  /**
   * The settings of an index. A builder is not safe for use by several threads.
   *
   * @since 0.1.0
   */
  public static final class Builder {
    private final int dimension;
    private @Nullable Divergence divergence;
    private boolean hasFullCovariances;
    private int threads; // 0: not set
    private @Nullable Executor executor;
    private @Nullable Duration longestWait;
    private @Nullable Duration refreshInterval;
    private boolean commitOnClose;
    private boolean backgroundWarmUp = Platform.IS_DEFERRED;

    private Builder(int dimension) {
      this.dimension = dimension;
    }

    /**
     * Sets the divergence that the index ranks by. A new index ranks by {@link Divergence#KL} where this is not set, and one of a folder by
     * what it was made for, which its manifest says.
     *
     * <p>An index of {@link Divergence#WASSERSTEIN_2} or {@link Divergence#SQUARED_WASSERSTEIN_2} takes Gaussians of {@link ScalePolicy#SEMIDEFINITE},
     * whose σ may be 0. Searches by these two and by {@link Divergence#JEFFREYS} read codes, as those by KL do, and those by
     * {@link Divergence#REVERSE_KL} floats. By any other divergence, and by all with {@linkplain #fullCovariances full covariances}, they compute the values of all references, as
     * {@link KlEngine#nearest(Gaussians, Gaussians, int)} does with prepared ones, and keep what the kernels read on the heap while memory lasts.
     *
     * @param divergence the divergence
     * @return this builder
     */
    public Builder divergence(Divergence divergence) {
      this.divergence = Objects.requireNonNull(divergence, "divergence");
      return this;
    }

    /**
     * Has a new index take {@link FullGaussians}, Gaussians with full covariances, in the place of diagonal ones, for good; its manifest says so. Queries may
     * be of either class. Where this is not set, a new index takes {@link DiagonalGaussians}, and one of a folder what it was made for.
     *
     * @return this builder
     */
    public Builder fullCovariances() {
      hasFullCovariances = true;
      return this;
    }

    private Wanted wanted() {
      if (hasFullCovariances && dimension > FullBatch.MOST_DIMENSIONS) {
        throw new IllegalArgumentException(
            "dimension must be in [1, %d] with full covariances, is %d"
                .formatted(FullBatch.MOST_DIMENSIONS, dimension));
      }
      return new Wanted(
          dimension, divergence == null ? null : divergence.name(), hasFullCovariances);
    }

    /**
     * Sets how many threads share the work of a search, as {@link KlEngine.Builder#threads} does for a call of an engine, with the same
     * default.
     *
     * @param count the number of threads, in [1, 1024]
     * @return this builder
     * @throws IllegalArgumentException if count is not in [1, 1024]
     */
    public Builder threads(int count) {
      threads = KlEngine.checkThreads(count);
      return this;
    }

    /**
     * Runs the helpers of {@link #threads} on an executor instead of threads of the index, as
     * {@link KlEngine.Builder#executor} describes.
     *
     * @param executor where helpers run
     * @return this builder
     */
    public Builder executor(Executor executor) {
      this.executor = Objects.requireNonNull(executor, "executor");
      return this;
    }

    /**
     * Has queries that threads ask at the same time share one pass over the references, up to eight at once. It serves many callers better
     * where the references do not fit the processor's cache. By default, each query has its own pass.
     *
     * <p>A query that comes while others are answered waits until these have their answers, or eight wait, but no longer than this; any other
     * does not wait. Only searches of one diagonal query, not of a point, for the nearest, without a filter, ids that count or not, and {@link Query#approximate}, and with the same k and
     * direction, are gathered, and only where the index has not changed in between. Interruption, a timeout or a failure of one does not affect the
     * rest. A gathered {@link KlIndex#query} allocates.
     *
     * @param longestWait how long a query waits for other queries at most, not negative; some tenths of the time of a search
     * @return this builder
     * @throws IllegalArgumentException if longestWait is negative
     */
    public Builder batchQueries(Duration longestWait) {
      if (Objects.requireNonNull(longestWait, "longestWait").isNegative()) {
        throw new IllegalArgumentException("longestWait must not be negative, is " + longestWait);
      }
      this.longestWait = longestWait;
      return this;
    }

    /**
     * Sets whether searches may start the daemon thread that has the JVM compile vector code, as {@link KlEngine.Builder#backgroundWarmUp}
     * does for calls of an engine. Without it, the first search finds out whether the JVM compiles vectors at all.
     *
     * @param enabled whether searches of this index may start the thread
     * @return this builder
     */
    public Builder backgroundWarmUp(boolean enabled) {
      backgroundWarmUp = enabled;
      return this;
    }

    /**
     * Sets whether {@link KlIndex#close} commits what was not committed. By default it drops that, with a warning in the log.
     *
     * <p>An index that is closed by an exception, as at the end of a {@code try} block, is then committed with changes that are half done.
     * Where these must not be kept, leave this as it is, and call {@link KlIndex#commit} as the last line of the block.
     *
     * @param enabled whether to commit
     * @return this builder
     */
    public Builder commitOnClose(boolean enabled) {
      commitOnClose = enabled;
      return this;
    }

    /**
     * Has a daemon thread of an index that is {@linkplain #openReadOnly opened to be read} {@linkplain KlIndex#refresh refresh} it. What fails is
     * told in the log and tried again. By default, an index is refreshed when that is called.
     *
     * @param interval the time between two looks at the manifest, positive
     * @return this builder
     * @throws IllegalArgumentException if interval is not positive
     */
    public Builder refreshEvery(Duration interval) {
      if (!Objects.requireNonNull(interval, "interval").isPositive()) {
        throw new IllegalArgumentException("interval must be positive, is " + interval);
      }
      refreshInterval = interval;
      return this;
    }

    /**
     * {@return a new index in memory, which has no files}
     *
     * @throws IllegalStateException if {@link #commitOnClose} or {@link #refreshEvery} was set, which are of an index with files, or the builder has no
     *     dimension
     * @throws IllegalArgumentException if the dimension is too large for a batch of {@link #fullCovariances}
     */
    public KlIndex build() {
      if (dimension == 0) {
        throw new IllegalStateException(
            "an index in memory needs a dimension; KlIndex.builder(dimension).build() makes one");
      }
      checkUnused(refreshInterval != null, "refreshEvery", "an index in memory");
      checkUnused(commitOnClose, "commitOnClose", "an index in memory");
      Divergence ranked = Objects.requireNonNullElse(divergence, Divergence.KL);
      return new KlIndex(Index.inMemory(wanted()), ranked, this);
    }

    /**
     * Opens the index of a folder, or makes one in a folder that has none or is not there, if this builder has a dimension. Files of other programs
     * may lie in it, and are left alone.
     *
     * @param folder the folder of the index
     * @return the index, with what was committed
     * @throws IllegalArgumentException if the folder is of an index of another dimension, or of another divergence than was set, or diagonal where
     *     {@link #fullCovariances} was set
     * @throws IllegalStateException if {@link #refreshEvery} was set, which is of {@link #openReadOnly}
     * @throws IndexLockedException as of {@link KlIndex#open}
     * @throws CorruptIndexException as of {@link KlIndex#open}, or if the folder has no manifest, but files with the names of an index's
     * @throws UncheckedIOException as of {@link KlIndex#open}
     */
    public KlIndex open(Path folder) {
      checkUnused(refreshInterval != null, "refreshEvery", "an index that is changed here");
      Objects.requireNonNull(folder, "folder");
      return of(folder, Index.open(folder, wanted()), this);
    }

    /**
     * Opens the last commit of the index of a folder, as {@link KlIndex#openReadOnly} does.
     *
     * @param folder the folder of an index
     * @return the index, with what was committed
     * @throws IllegalArgumentException as of {@link #open}
     * @throws IllegalStateException if {@link #commitOnClose} was set, as there is nothing to commit
     * @throws CorruptIndexException as of {@link KlIndex#open}
     * @throws UncheckedIOException as of {@link KlIndex#open}
     */
    public KlIndex openReadOnly(Path folder) {
      Objects.requireNonNull(folder, "folder");
      checkUnused(commitOnClose, "commitOnClose", "an index that is only read");
      Index index = Index.openReadOnly(folder, wanted());
      KlIndex opened = of(folder, index, this);
      if (refreshInterval != null) {
        index.refreshEvery(refreshInterval);
      }
      return opened;
    }
  }

  private static void checkUnused(boolean isSet, String setting, String of) {
    if (isSet) {
      throw new IllegalStateException(setting + " was set, and " + of + " has no use for it");
    }
  }

  /** {@return the dimension D of all Gaussians of the index} */
  public int dimension() {
    return index.dimension();
  }

  /** {@return the divergence that the index ranks by} */
  public Divergence divergence() {
    return divergence;
  }

  /** {@return whether the references have full covariances, as {@link Builder#fullCovariances} says} */
  public boolean hasFullCovariances() {
    return index.isFull();
  }

  /** {@return the number of references} */
  public long size() {
    try (Snapshot state = acquire()) {
      return state.size();
    }
  }

  /** {@return whether there is a reference with this id} */
  public boolean contains(long id) {
    try (Snapshot state = acquire()) {
      return state.find(id) >= 0;
    }
  }

  private Snapshot acquire() {
    if (held == null) {
      return index.acquire();
    }
    index.checkOpen();
    if (isReaderClosed || !held.acquire()) {
      throw new AlreadyClosedException("this reader of a KlIndex is closed");
    }
    return held;
  }

  /** The index, which a reader does not change. */
  private Index own() {
    if (held != null) {
      throw new IllegalStateException(
          "this is a reader() of a KlIndex, which stays as it is; call the method of the index");
    }
    return index;
  }

  /**
   * {@return this index as it is now, to be searched and read by several calls, while the index itself goes on changing}
   *
   * <pre>
   * try (KlIndex now = index.reader()) {
   *   IndexNeighbors first = now.search(q, query);
   *   IndexNeighbors second = now.search(q, query.after(first)); // of the same references
   * }
   * </pre>
   *
   * <p>It shares threads and figures with the index. Methods that change an index or concern its files throw {@link IllegalStateException}. What the index
   * has removed takes its room until the reader is closed, which leaves the index open; when the index is closed, methods of the reader
   * throw {@link AlreadyClosedException}.
   */
  public KlIndex reader() {
    return new KlIndex(this, acquire());
  }

  // --- what was added

  /** {@return the ids of all references, ascending, in a new array} */
  public long[] ids() {
    try (Snapshot state = acquire()) {
      return ReadBack.ids(state);
    }
  }

  /**
   * Writes a reference to arrays, whatever its scales were given as. It allocates nothing.
   *
   * @param id the id of a reference
   * @param mean receives the D means, rounded to float; those of a reference of float are as they were given
   * @param std receives the D standard deviations σ, rounded to float: those of float to the bit, if they were given as such or as variances correctly
   *     rounded, and else within one unit in the last place. A σ of double that is beyond float becomes 0 or +∞; {@link #get(long...)} has it. Of a full
   *     covariance Σ, they are √Σ_hh, those of each dimension by itself
   * @return whether there is a reference with this id; without, the arrays stay as they are
   * @throws IllegalArgumentException if an array has fewer than D elements
   */
  public boolean get(long id, float[] mean, float[] std) {
    index.checkOpen();
    Arguments.checkLength("mean", dimension(), Objects.requireNonNull(mean, "mean").length);
    Arguments.checkLength("std", dimension(), Objects.requireNonNull(std, "std").length);
    try (Snapshot state = acquire()) {
      long place = state.find(id);
      if (place >= 0) {
        state.segment(place).readStd((int) place, mean, std);
      }
      return place >= 0;
    }
  }

  /**
   * {@return references of ids, in the order of these, to the bit as they were added} All are of one state of the index.
   *
   * <p>They are {@link DiagonalGaussians}, or {@link FullGaussians} of an {@linkplain #hasFullCovariances index of full covariances}. A diagonal batch has scales of
   * one kind, so all of them must have been given as such; {@link #forEach} sorts them by their kinds. Where some are of float and some of double, the
   * batch is of double, which holds floats exactly.
   *
   * @param ids ids of references, in any order; one may come more than once, and there may be none, but of full covariances at least one
   * @throws NoSuchElementException if one of the ids is not in the index; the message says which
   * @throws IllegalArgumentException if two references have scales of different {@linkplain Gaussians#kind kinds}, or there are more than fit a batch, or
   *     none of full covariances
   */
  public Gaussians get(long... ids) {
    Objects.requireNonNull(ids, "ids");
    try (Snapshot state = acquire()) {
      return gaussians(batch(state, ids));
    }
  }

  private Batch batch(Snapshot state, long... ids) {
    return ReadBack.batch(state, dimension(), hasFullCovariances(), ids, Platform.rangeCheck());
  }

  private static Gaussians gaussians(Batch batch) {
    return switch (batch) {
      case DiagonalBatch diagonal -> new DiagonalGaussians(diagonal);
      case FullBatch full -> FullGaussians.of(full);
      case LowRankBatch _ -> throw new AssertionError("no reference is");
    };
  }

  /**
   * Goes over all references of one state of the index: hands them on in batches, to the bit as they were added. Changes go on meanwhile, and are not
   * seen. What the index has removed takes its room until this returns.
   *
   * <p>Each batch is of one kind of scales and one precision, by ascending id, with some megabytes. All of one kind and precision follow one
   * another, so there is one ascending sequence of ids where all references were given alike. Of full covariances, given factors and those that were
   * computed come one after the other likewise.
   *
   * @param action takes ids and as many Gaussians, {@link DiagonalGaussians} or {@link FullGaussians} as of {@link #get(long...)}, which it may keep
   * @throws CancellationException if the calling thread is interrupted
   */
  public void forEach(BiConsumer<long[], Gaussians> action) {
    Objects.requireNonNull(action, "action");
    try (Snapshot state = acquire()) {
      ReadBack.forEach(
          state,
          dimension(),
          Platform.rangeCheck(),
          (ids, batch) -> action.accept(ids, gaussians(batch)));
    }
  }

  // --- changes

  /**
   * Adds references under new ids.
   *
   * @param ids {@code ids[i]} becomes the id of Gaussian i; the array is neither kept nor modified
   * @param batch as many Gaussians, of dimension D, diagonal or full as those of the index are
   * @throws IllegalArgumentException if an id is in the index already or comes twice, the lengths or dimensions differ, or the
   *     batch is deterministic, full in a diagonal index, or diagonal in one of full covariances
   */
  public void add(long[] ids, Gaussians batch) {
    own().add(ids, references(ids, batch));
  }

  /**
   * Adds references, and removes those that were there under the same ids, in one step.
   *
   * @param ids {@code ids[i]} becomes the id of Gaussian i, whether it was in the index or not; the array is neither kept nor modified
   * @param batch as many Gaussians, of dimension D, diagonal or full as those of the index are
   * @throws IllegalArgumentException if an id comes twice, or the batch is not as that of {@link #add} must be
   */
  public void replace(long[] ids, Gaussians batch) {
    own().replace(ids, references(ids, batch));
  }

  /**
   * Removes references.
   *
   * @param ids their ids; those that are not in the index, or come twice, do no harm
   * @return how many references were removed
   */
  public int remove(long... ids) {
    return own().remove(Objects.requireNonNull(ids, "ids"));
  }

  private Batch references(long[] ids, Gaussians batch) {
    Objects.requireNonNull(ids, "ids");
    Batch checked = checked(batch, "batch");
    if (checked.arePoints()) {
      checked.checkDefinite("batch"); // throws
    }
    if (hasFullCovariances() && checked instanceof DiagonalBatch && checked.size() > 0) {
      throw new IllegalArgumentException(
          "batch is diagonal, and this index has full covariances; add FullGaussians, such as of factors with σ on the diagonal");
    }
    if (ids.length != checked.size()) {
      throw new IllegalArgumentException(
          "there are %d ids but %d Gaussians; each needs its own"
              .formatted(ids.length, checked.size()));
    }
    return checked;
  }

  private Batch checked(Gaussians given, String name) {
    Batch batch = KlEngine.batch(given, name);
    if (batch instanceof LowRankBatch) {
      throw LowRankBatch.refused(name, "an index");
    }
    if (batch instanceof FullBatch && !hasFullCovariances()) {
      throw new IllegalArgumentException(
          name
              + " has full covariances, and this index diagonal Gaussians; KlIndex.builder(dimension).fullCovariances() makes one that takes them");
    }
    if (batch.dimension() != dimension()) {
      throw new IllegalArgumentException(
          "%s has dimension %d but the index has %d; they must be equal"
              .formatted(name, batch.dimension(), dimension()));
    }
    if (batch.isDeterministic()) {
      throw new IllegalArgumentException(
          name + " is deterministic (std 0); an index takes Gaussians with std > 0");
    }
    if (!divergence.takesSingular() && !batch.arePoints()) {
      batch.checkDefinite(name);
    }
    if (batch instanceof DiagonalBatch diagonal && hasFullCovariances()) {
      diagonal.checkStd(name);
    }
    return batch;
  }

  private Batch checkedQueries(Gaussians given) {
    Batch batch = checked(given, "queries");
    if (batch.arePoints()) {
      checkTakesPoints();
    }
    return batch;
  }

  private void checkTakesPoints() {
    if (divergence.takesSingular()) {
      throw new IllegalArgumentException(
          "an index of the divergence %s takes no points, as its references may have std 0, where no density is; an index of another divergence, or a KlEngine, does"
              .formatted(divergence.name()));
    }
  }

  // --- searches

  /**
   * Finds, for every query, the k references with the smallest {@code KL(x_i ‖ p)}, nearest first and ties to the lower id, or all if
   * there are fewer.
   *
   * <p>Of {@linkplain DiagonalGaussians#ofPoints(float[], int) points}, it ranks by the squared Mahalanobis distance {@code ‖L⁻¹(x_i − μ)‖²} instead, as
   * {@link KlEngine#nearest(Gaussians, Gaussians, int)} does, and so does every search by a batch; {@link Query#byLogDensity} ranks by density. An index of
   * {@link Divergence#WASSERSTEIN_2} or its square, whose references may have σ = 0, refuses points.
   *
   * @param queries N Gaussians x_i, or points, of dimension D; diagonal ones, unless the index has full covariances
   * @param k the number of references, at least 1
   * @return the references found for each query
   * @throws IllegalArgumentException if k is less than 1, the dimensions differ, the queries are deterministic, or full in a diagonal index, or the
   *     result would have more than the 2³¹ − 9 elements of an array
   */
  public IndexNeighbors nearest(Gaussians queries, int k) {
    return search(queries, Query.nearest(k));
  }

  /**
   * Finds, for every query, all references with {@code KL(x_i ‖ p) ≤ radius}, by ascending id.
   *
   * <p>Of points it is a gate: {@code within(points, 9.21)} finds all whose squared Mahalanobis distance is at most that, 99 % of two dimensions.
   *
   * @param queries N Gaussians x_i, or points, of dimension D; diagonal ones, unless the index has full covariances
   * @param radius in nats, or of squared distances, at least 0
   * @return the references found for each query
   * @throws IllegalArgumentException if the radius is negative or NaN, the dimensions differ, the queries are deterministic, or full in a diagonal
   *     index, or the result would have more than the 2³¹ − 9 elements of an array
   */
  public IndexNeighbors within(Gaussians queries, double radius) {
    return search(queries, Query.within(radius));
  }

  /**
   * Searches with options, such as {@link Query#reverse()}, {@link Query#filter} and {@link Query#timeout}. All queries of a call see the
   * same state of the index. With {@link Query#timeout} and {@link Query#approximate}, rows may be {@linkplain IndexNeighbors#isComplete incomplete}.
   *
   * @param queries N Gaussians x_i, or points, of dimension D; diagonal ones, unless the index has full covariances
   * @param query what to look for, without {@link Query#excludeSelf()}, {@link Query#offset} and {@link Query#resumeAfter}
   * @return the references found for each query
   * @throws IllegalArgumentException as of {@link #nearest} and {@link #within}, if there are more pairs than {@link Query#maxPairs}, or if
   *     the query has one of these three options, or excludes ids of another number of queries
   */
  public IndexNeighbors search(Gaussians queries, Query query) {
    try (Snapshot state = acquire()) {
      Batch batch = checkedQueries(queries);
      Objects.requireNonNull(query, "query").checkIndex(batch.size(), batch.arePoints());
      return search(state, batch, query.options);
    }
  }

  private IndexNeighbors search(Snapshot state, Batch batch, SearchOptions options) {
    long end = options.end();
    NeighborIds found =
        gathering != null
                && batch instanceof DiagonalBatch query
                && !batch.arePoints()
                && Gathering.takes(batch.size(), options)
            ? gathering.nearest(state, query, options, end)
            : searches.search(state, batch, options, end);
    return new IndexNeighbors(found);
  }

  /**
   * Finds the k references that are nearest to one of them, without that one: "more like this". Otherwise, the result is that of
   * {@link #nearest(Gaussians, int)} for its Gaussian, to the bit.
   *
   * @param id the id of a reference x
   * @param k the number of references, at least 1
   * @return the references found, in one row
   * @throws NoSuchElementException if the id is not in the index
   * @throws IllegalArgumentException if k is less than 1
   */
  public IndexNeighbors nearest(long id, int k) {
    return search(id, Query.nearest(k));
  }

  /**
   * Searches with options, as {@link #search(Gaussians, Query)}, near one of the references, which is left out. It is read and searched for
   * in one state of the index.
   *
   * @param id the id of a reference x
   * @param query what to look for, as of {@link #search(Gaussians, Query)}
   * @return the references found, in one row
   * @throws NoSuchElementException if the id is not in the index
   * @throws IllegalArgumentException as of {@link #search(Gaussians, Query)}
   */
  public IndexNeighbors search(long id, Query query) {
    try (Snapshot state = acquire()) {
      Objects.requireNonNull(query, "query").checkIndex(1, false);
      return search(state, batch(state, id), query.options.without(id));
    }
  }

  /**
   * Ranks given references for each query: finds the k of them with the smallest {@code KL(x_i ‖ p)}, nearest first and ties to the lower
   * id, or all if there are fewer. It is the second stage of an approximate index, which proposes candidates. Order and values are exact, and those
   * of {@link #search(Gaussians, Query)} with a filter that lets these ids through, at the cost of these alone.
   *
   * @param queries N Gaussians x_i, or points, of dimension D; diagonal ones, unless the index has full covariances
   * @param candidates {@code candidates[i]} are ids for query i, in any order. Those that are not in the index are left out, since another index
   *     may propose what was removed here, and one that comes twice counts once
   * @param k the number of references, at least 1
   * @return the references found for each query
   * @throws IllegalArgumentException if there are not N arrays of candidates, or as of {@link #nearest(Gaussians, int)}
   */
  public IndexNeighbors rank(Gaussians queries, long[][] candidates, int k) {
    try (Snapshot state = acquire()) {
      Batch batch = checkedQueries(queries);
      SearchOptions options = Query.nearest(k).options;
      if (Objects.requireNonNull(candidates, "candidates").length != batch.size()) {
        throw new IllegalArgumentException(
            "there are %d queries but candidates for %d; each needs its own"
                .formatted(batch.size(), candidates.length));
      }
      for (int i = 0; i < candidates.length; i++) {
        if (candidates[i] == null) {
          throw new NullPointerException("candidates[" + i + ']');
        }
      }
      NeighborIds found = searches.rank(state, batch, candidates, options);
      return new IndexNeighbors(found);
    }
  }

  /**
   * Finds the references of {@link #nearest(Gaussians, int)} for one query in arrays, and writes them to arrays. With one thread
   * and without {@link Builder#batchQueries}, a call that is warm allocates nothing for k up to 16,384; for more, working memory is not kept. By a divergence without codes, or with
   * full covariances, it allocates some kilobytes. Near duplicates whose
   * scales were given otherwise than as σ may allocate some 100 bytes a dimension, for terms in twice the precision of double.
   *
   * @param mean holds the query's means at {@code mean[meanAt … meanAt + D − 1]}
   * @param std holds its standard deviations at {@code std[stdAt … stdAt + D − 1]}, finite and positive
   * @param k the number of references, at least 1
   * @param ids receives the ids, the nearest first; at least k elements, of which those behind the last reference stay as they are
   * @param kl receives {@code kl[r] = KL(x ‖ p)} of {@code ids[r]}, rounded to float; likewise
   * @return how many references there are: k, or the size of the index if that is less
   * @throws InvalidGaussianException if a mean is not finite, or a standard deviation not finite and positive
   * @throws IllegalArgumentException if k is less than 1, or an array too short
   */
  @SuppressWarnings("TooManyParameters") // arrays, with where they begin
  public int query(
      float[] mean, int meanAt, float[] std, int stdAt, int k, long[] ids, float[] kl) {
    index.checkOpen();
    checkRange("mean", Objects.requireNonNull(mean, "mean").length, "meanAt", meanAt);
    checkRange("std", Objects.requireNonNull(std, "std").length, "stdAt", stdAt);
    if (k < 1) {
      throw new IllegalArgumentException("k must be at least 1, is " + k);
    }
    SearchOptions options = nearest;
    if (options.k() != k) { // else nothing is allocated
      options = SearchOptions.nearest(k);
      nearest = options;
    }
    return query(mean, meanAt, std, stdAt, options, ids, kl, Searches.NO_PROOF);
  }

  /**
   * Finds the references of {@link #search(Gaussians, Query)} for one query in arrays, and writes them to arrays. It allocates as
   * {@link #query(float[], int, float[], int, int, long[], float[]) query} with k does, whatever the options; a filter may allocate itself.
   *
   * @param mean holds the query's means at {@code mean[meanAt … meanAt + D − 1]}
   * @param std holds its standard deviations at {@code std[stdAt … stdAt + D − 1]}, finite and positive
   * @param query what to look for, as of {@link #search(Gaussians, Query)}
   * @param ids receives the ids, in their order; at least k elements, or as many as are within the radius
   * @param kl receives {@code kl[r] = KL(x ‖ p)} of {@code ids[r]}, rounded to float; likewise
   * @param provenUpTo receives in its first element, if it has one, what {@link IndexNeighbors#provenUpTo} tells
   * @return how many references were found, n, if that is {@linkplain IndexNeighbors#isComplete complete}, and else {@code ~n}, a negative number; only a
   *     query with {@link Query#timeout} or {@link Query#approximate} may return it
   * @throws InvalidGaussianException if a mean is not finite, or a standard deviation not finite and positive
   * @throws IllegalArgumentException as of {@link #search(Gaussians, Query)}, or if an array is too short
   */
  @SuppressWarnings("TooManyParameters") // arrays, with where they begin
  public int query(
      float[] mean,
      int meanAt,
      float[] std,
      int stdAt,
      Query query,
      long[] ids,
      float[] kl,
      double[] provenUpTo) {
    index.checkOpen();
    checkRange("mean", Objects.requireNonNull(mean, "mean").length, "meanAt", meanAt);
    checkRange("std", Objects.requireNonNull(std, "std").length, "stdAt", stdAt);
    Objects.requireNonNull(query, "query").checkIndex(1, false);
    Objects.requireNonNull(provenUpTo, "provenUpTo");
    return query(mean, meanAt, std, stdAt, query.options, ids, kl, provenUpTo);
  }

  /**
   * Finds the references of {@link #search(Gaussians, Query)} for one point in an array, by its squared Mahalanobis distances or {@link Query#byLogDensity},
   * and writes them to arrays. It allocates as {@link #query(float[], int, float[], int, Query, long[], float[], double[]) that of a Gaussian} does.
   *
   * @param point holds the point at {@code point[at … at + D − 1]}, finite
   * @param query what to look for, as of {@link #search(Gaussians, Query)}
   * @param ids receives the ids, in their order; at least k elements, or as many as are within the radius
   * @param values receives the squared distances, or negative log-densities in nats, rounded to float; likewise
   * @param provenUpTo receives in its first element, if it has one, what {@link IndexNeighbors#provenUpTo} tells
   * @return how many references were found, n, if that is {@linkplain IndexNeighbors#isComplete complete}, and else {@code ~n}, a negative number
   * @throws InvalidGaussianException if a number is not finite
   * @throws IllegalArgumentException as of {@link #search(Gaussians, Query)}, or if an array is too short
   */
  public int query(
      float[] point, int at, Query query, long[] ids, float[] values, double[] provenUpTo) {
    index.checkOpen();
    checkRange("point", Objects.requireNonNull(point, "point").length, "at", at);
    Objects.requireNonNull(query, "query").checkIndex(1, true);
    Objects.requireNonNull(provenUpTo, "provenUpTo");
    checkTakesPoints();
    checkRoom(query.options, ids, "values", values);
    try (Snapshot state = acquire()) {
      return searches.query(state, point, at, query.options, ids, values, provenUpTo);
    }
  }

  private static void checkRoom(SearchOptions options, long[] ids, String name, float[] values) {
    Arguments.checkLength("ids", options.k(), Objects.requireNonNull(ids, "ids").length);
    Arguments.checkLength(name, options.k(), Objects.requireNonNull(values, name).length);
  }

  @SuppressWarnings("TooManyParameters")
  private int query(
      float[] mean,
      int meanAt,
      float[] std,
      int stdAt,
      SearchOptions options,
      long[] ids,
      float[] kl,
      double[] provenUpTo) {
    checkRoom(options, ids, "kl", kl);
    try (Snapshot state = acquire()) {
      return gathering == null || !Gathering.takes(1, options)
          ? searches.query(state, mean, meanAt, std, stdAt, options, ids, kl, provenUpTo)
          : gathered(gathering, state, row(mean, meanAt), row(std, stdAt), options)
              .copy(options, ids, kl, provenUpTo);
    }
  }

  private float[] row(float[] values, int at) {
    return Arrays.copyOfRange(values, at, at + dimension());
  }

  private NeighborIds gathered(
      Gathering gathering, Snapshot state, float[] mean, float[] std, SearchOptions options) {
    DiagonalBatch query;
    try {
      query =
          (DiagonalBatch)
              checked(Gaussians.of(ScaleKind.STD, mean, std, mean.length, policy()), "query");
    } catch (InvalidGaussianException e) {
      // throws what a query that is not gathered does, which advises no policy
      DiagonalBatch.ofSlot(mean.length, Scale.STD, false, policy() == ScalePolicy.SEMIDEFINITE)
          .fill(mean, 0, std, 0);
      throw e;
    }
    return gathering.nearest(state, query, options, options.end());
  }

  private ScalePolicy policy() {
    return divergence.takesSingular() ? ScalePolicy.SEMIDEFINITE : ScalePolicy.STRICT;
  }

  private void checkRange(String name, int length, String start, int at) {
    if (at < 0 || at > length - dimension()) {
      throw new IllegalArgumentException(
          "%s has %d elements; %d from %s = %d on are needed"
              .formatted(name, length, dimension(), start, at));
    }
  }

  // --- files and figures

  /**
   * Writes what has changed since the last commit to the folder, and replaces the manifest in one step. When this returns, neither the
   * end of the process nor that of the machine loses what was there before the call. If it fails, the folder has what the last commit
   * wrote, or all that this one was to write.
   *
   * <p>Searches and changes go on meanwhile; a change that is made during a commit is part of the next one. Without changes, nothing is
   * written. Afterwards, searches read the new files, mapped, and memory outside the heap becomes free. Files that are no longer needed
   * are deleted, on Windows by a later commit if they are mapped yet.
   *
   * @throws IllegalStateException if the index is in memory alone, or was opened read only
   * @throws IndexLockedException if the folder could not be locked when it was opened, as it could only be read, and has been opened elsewhere
   *     since
   * @throws CorruptIndexException if a file of the last commit is missing
   * @throws DiskFullException if the disk has no room
   * @throws UncheckedIOException if a file cannot be written, or another process has committed to the folder since it was opened here, as
   *     may happen where locks do not work
   * @throws CancellationException if the calling thread is interrupted; the folder then is as before, or as it was to be
   */
  public void commit() {
    own().commit();
  }

  /**
   * Commits as {@link #commit()} does, with data that tell where the index stands, such as the offsets of a log that it was filled from. They come with the
   * commit or not at all: what {@link #userData} returns goes with the references, whenever the process ends. Other data than the last commit's are
   * written also where no reference has changed.
   *
   * @param userData at most 65,536 bytes; none, to have no data any more
   * @throws IllegalArgumentException if there are more bytes
   */
  public void commit(byte[] userData) {
    int length = Objects.requireNonNull(userData, "userData").length;
    if (length > Index.MOST_USER_DATA) {
      throw new IllegalArgumentException(
          "userData has %d bytes; a commit takes %d at most"
              .formatted(length, Index.MOST_USER_DATA));
    }
    own().commit(userData.clone());
  }

  /**
   * {@return a copy of the data that the last commit has by {@link #commit(byte[])}} A commit without data keeps those of the one before, and a
   * {@linkplain #snapshot copy} has them, too. Where the index was {@linkplain #openReadOnly opened to be read}, they are those of the commit that it shows. The
   * array is empty if there are none, and of an index in memory alone.
   */
  public byte[] userData() {
    return own().userData().clone();
  }

  /**
   * Merges the references into as few segments as there can be, one for each kind of scales and precision, without those that were removed or
   * replaced. Searches are the fastest then. It takes as long as to add all references anew; searches and changes go on meanwhile, a commit
   * waits. The next commit writes what this has made, and the folder has both until then.
   *
   * @throws IllegalStateException if the index was opened read only
   * @throws DiskFullException if the disk has no room; the index is as it was, or has some of its segments merged
   * @throws CancellationException if the calling thread is interrupted, likewise
   */
  public void compact() {
    own().compact();
  }

  /**
   * Commits so that nothing of references that were removed or replaced before this call is in any file of the folder when this returns: writes
   * each segment anew that has some, and deletes the files of earlier commits, also where searches read them yet. Whenever the process ends, the folder has the state of the last
   * commit or of this one. Changes that are made meanwhile may be part of it; what they remove, another call erases.
   *
   * <p>Copies that {@link #snapshot} has made, or anybody else, keep what they have. On the disk, blocks of deleted files are free, and what overwrites them is
   * the file system's business. References that are left keep nothing of the removed ones.
   *
   * @throws IllegalStateException if the index is in memory alone, or was opened read only
   * @throws UncheckedIOException as of {@link #commit()}, or if a file could not be deleted, as on Windows while a search or another process reads it; the
   *     message names it, and a later call deletes it
   * @throws CancellationException if the calling thread is interrupted; the folder then has the last commit or this one
   */
  public void purge() {
    own().purge();
  }

  /**
   * Takes what others have committed since, where the index was {@linkplain #openReadOnly opened to be read}: segments that are new are read or mapped, the rest
   * stays. Searches go on meanwhile, and see the last commit or the one before. If this fails, the index stays as it is.
   *
   * @return whether anything was committed since
   * @throws IllegalStateException if the index was not opened to be read
   * @throws CorruptIndexException as of {@link #open}
   * @throws UncheckedIOException if a file cannot be read, or the folder has an index of another dimension now
   */
  public boolean refresh() {
    return own().refresh();
  }

  /**
   * Makes a copy of the last commit in another folder, by hard links to its files, which nobody writes to again, or where the file system has
   * none by copies. What was not committed is not in it. Searches and changes go on; a commit waits. The folder is an index's when this returns,
   * and has nothing of it if this fails.
   *
   * @param folder a folder outside this index's own, which is made, or has no index
   * @throws IllegalStateException if the index is in memory alone, or its last commit failed
   * @throws DiskFullException if the disk has no room for a copy
   * @throws UncheckedIOException if the folder has an index already, lies in this index's own, or cannot be written
   * @throws CorruptIndexException if a file of the last commit is missing
   */
  public void snapshot(Path folder) {
    own().copyTo(Objects.requireNonNull(folder, "folder"));
  }

  /**
   * Reads all files of the last commit and compares their checksums, of which opening compares only those of manifest and heads.
   *
   * @throws IllegalStateException if the index is in memory alone
   * @throws CorruptIndexException for the first file that is missing, or not as it was written; the message names it
   * @throws UncheckedIOException if a file cannot be read
   */
  public void verify() {
    own().verify();
  }

  /**
   * Prepares a service before its first request: waits until the JVM has compiled the vector code of searches, and then searches, one at a time and by
   * {@link #query}, for the nearest of some Gaussians near the references and, where the index ranks by KL or its reverse, of points, until
   * searches stop getting faster for half a second, or for five seconds. Where it ranks diagonal Gaussians by KL or its reverse, it then searches for 32 at once likewise, as batches of
   * so many are read in another way. This takes two to eight seconds on an idle machine, and up to six times as long beside other work. Results are the same cold and warm; the figures of {@link #stats} count these searches. An index without references only waits.
   *
   * <p>Searches in reverse, within a radius, by density, with a filter or ids to leave out run other code in part: {@link #warmUpFor} is for them.
   *
   * @return whether searches use vector code that the JVM has compiled from now on; without it, they are slower, and the log says why
   * @throws CancellationException if the calling thread is interrupted
   */
  public boolean warmUp() {
    try (Snapshot state = acquire()) {
      return searches.warmUp(state, null);
    }
  }

  /**
   * Prepares a service for searches with options, as {@link #warmUp()} does for the nearest. It searches for Gaussians by this query, and in an index of KL or its reverse also for points unless
   * the query is in reverse; by density, it searches for points alone. Neither {@link Query#timeout} nor {@link Query#maxPairs} holds, and what the query finds at once takes memory as in a search; 32
   * queries at once are left out where they would find more than a million pairs. A service whose requests differ in their options calls it once for each kind, and takes requests after
   * the last: {@link #isReady()} is true after the first. An index without references only waits.
   *
   * @param query what searches look for, as of {@link #search(Gaussians, Query)}; its filter is called as in searches
   * @return as of {@link #warmUp()}
   * @throws IllegalArgumentException as of {@link #search(Gaussians, Query)} for one query
   * @throws CancellationException if the calling thread is interrupted
   * @throws AlreadyClosedException if the index is closed
   */
  public boolean warmUpFor(Query query) {
    SearchOptions options = Objects.requireNonNull(query, "query").options;
    query.checkIndex(1, options.byDensity());
    if (options.byDensity()) {
      checkTakesPoints();
    }
    try (Snapshot state = acquire()) {
      return searches.warmUp(state, options.withoutLimits());
    }
  }

  /** {@return whether searches wait for compiled vector code no longer, as {@link KlEngine#isReady} tells it of calls} */
  public boolean isReady() {
    return searches.isReady();
  }

  /**
   * Tells when the index {@linkplain #isReady is ready}. If no search was made, the JVM is made to compile the vector code of searches from now
   * on, beside the caller; {@link #warmUp()} does more.
   *
   * @return a stage that completes then, on a thread of its own; or exceptionally, by a {@link CancellationException}, if the index is closed before
   */
  public CompletionStage<Void> ready() {
    acquire().close(); // throws if it is closed
    return searches.ready(dimension());
  }

  /**
   * {@return what the index holds now, and what it has done since it was made or opened}
   *
   * @throws AlreadyClosedException if the index is closed, unlike {@link KlEngine#stats()}: it holds nothing any more
   */
  public IndexStats stats() {
    try (Snapshot state = acquire()) {
      return stats(state);
    }
  }

  private IndexStats stats(Snapshot state) {
    long deleted = 0;
    long heap = 0;
    long nativeBytes = 0;
    long mapped = 0;
    for (LiveSegment part : state.segments()) {
      deleted += part.segment().size() - part.live();
      heap += part.heapBytes();
      long bytes = part.segment().image().byteSize();
      if (part.segment().isMapped()) {
        mapped += bytes;
      } else {
        nativeBytes += bytes;
      }
    }
    return new IndexStats(
        state.segments().length,
        deleted,
        heap,
        nativeBytes,
        mapped,
        searches.queries(),
        searches.survivors(),
        searches.bytesRead(),
        index.changes(),
        index.failedMerges(),
        searches.calls().time(),
        index.commits().count(),
        index.commits().time(),
        index.lastCommit(),
        index.merges().count(),
        index.merges().time(),
        index.refreshes().count());
  }

  /**
   * Closes the index: what was not committed is dropped, and the log says how much, or with {@link Builder#commitOnClose} it is committed.
   * Searches under way finish, and so does a commit, for which this waits, as it does for a merge of segments. A second call does nothing. A
   * {@link #reader} is closed alone.
   *
   * @throws UncheckedIOException if what is to be committed cannot be; the index is closed all the same
   */
  @Override
  public void close() {
    if (held != null) {
      closeReader(held);
      return;
    }
    if (!commitOnClose || !index.hasChanges()) {
      end();
      return;
    }
    boolean isInterrupted = Thread.interrupted(); // of which nothing is to be lost
    try {
      index.commit();
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
      end();
    }
  }

  private void closeReader(Snapshot state) {
    boolean isFirst;
    synchronized (this) {
      isFirst = !isReaderClosed;
      isReaderClosed = true;
    }
    if (isFirst) {
      state.close();
    }
  }

  private void end() {
    try {
      index.close();
    } finally {
      searches.close();
    }
  }

  @Override
  public String toString() {
    return (held == null ? "KlIndex[" : "KlIndex[reader of ") + index + ']';
  }
}
