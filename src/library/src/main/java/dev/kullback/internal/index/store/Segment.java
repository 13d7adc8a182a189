package dev.kullback.internal.index.store;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.SoftReference;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Gaussians of one form and precision under ascending ids, never changed. All of it is one image, which is also the file's
 * content: little endian, each section at a multiple of 64 bytes. A segment that is {@linkplain #open open} has room for more rows, under
 * ids in the order in which they came, and is no file's: one that has some rows more shares its image.
 *
 * <pre>
 * header      magic, version, D, n, form, whether of double; the least number p̂, in float; whether there are codes; their coordinates
 * order       int[D], the dimensions in the order of the panels
 * ids         long[n], ascending
 * logDet      double[n], Σ_h ln σ_h
 * bound       double[n], its absolute error
 * slack       float[n], ‖m − m̂‖ in the metric p̂, rounded up; negative, −0 too, if the row is beyond
 * length      float[n], ‖m̂‖ in the metric p̂, rounded up
 * means       float or double [n, D], as given
 * scales      the same; of full covariances double [n, D(D+1)/2] or [n, 2, D(D+1)/2], as {@link Form} says, and their means in double
 * panels      {@link PanelScan}: [⌈n/16⌉][D][2][16] floats, m̂ and p̂; zeros behind the last row; for KL alone
 * codes       {@link Codes}, of segments that are large enough
 * </pre>
 *
 * <p>Panels begin with the dimensions that add most to a divergence of two Gaussians like these, so that a scan can leave a panel early: on
 * the 1797 posteriors of digits it reads 55 % of the terms, and 93 % in the given order.
 *
 * <p>m̂ is m rounded to float, at most its greatest number. p̂ is the precision rounded down, so p̂ ≤ p: at most float's greatest number,
 * and 0 if it is too small. A row is beyond where a precision is not in
 * [2⁻⁹⁹, 2⁹⁹], or a mean beyond float: else they are within 2⁻²³ of the numbers they stand for.
 *
 * <p>In an index of another divergence than KL, slacks say no more than whether rows are beyond, and lengths are 0. Those of full covariances
 * are both 0, and the order is that of the dimensions.
 */
public final class Segment {
  static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfDouble DOUBLE =
      ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  public static final int LANES = PanelScan.LANES;

  /** Bytes that memory has on the way to the cache at once: most processors fetch lines of 64 bytes in pairs. */
  private static final int CACHE_LINES = 128;

  /** What is behind, the processor fetches by itself while the first lines are read. */
  private static final int MOST_TOUCHED = 512;

  /** "KLSEGMNT" in the order of bytes. */
  private static final long MAGIC = 0x544E_4D47_4553_4C4BL;

  private static final int VERSION = 1;

  /** The version of segments with other coordinates than KL's, which the first cannot have, nor full covariances. */
  private static final int VERSION_OF_OTHERS = 2;

  /** The forms by their number in a file. */
  private static final List<Form> FORMS = List.of(Form.values());

  /** The coordinates by their number in a file. */
  private static final List<Coordinates> ALL_COORDINATES = List.of(Coordinates.values());

  private static final long HEADER = Memory.ALIGNMENT;
  private static final long LEAST = 28;
  private static final long CODED = 32;
  private static final long COORDINATES = 36;

  /** Elements of a batch's means, 1 MiB of floats with the scales; and rows. */
  private static final int MOST_OF_BATCH = 1 << 17;

  private static final int MOST_ROWS_OF_BATCH = 4096;

  /** A batch's memory with what kernels make of it, by that of its rows, and which part of the heap it may take. */
  private static final long COPIES = 3;

  private static final int SHARE_OF_HEAP = 8;

  /** Rows that decide the order of the dimensions, at most. */
  private static final int MOST_SAMPLED = 4096;

  private final Memory.Block block;
  private final MemorySegment image;
  private final int size;

  /** Rows that the image has room for. */
  private final int capacity;

  private final boolean isOpen;
  private final int dimension;
  private final Form form;
  private final boolean isDouble;

  /** Bytes of a row's means, and of its scales, as they were given. */
  private final long meanBytes;

  private final long scaleBytes;
  private final Coordinates coordinates;

  /** The dimensions in the order of the panels. */
  private final int[] order;

  // where sections begin
  private final long ids;
  private final long logDets;
  private final long bounds;
  private final long slacks;
  private final long lengths;
  private final long means;
  private final long scales;
  private final long panels;
  private final @Nullable Codes codes;

  /** The row of the least log-determinant, found when it is first asked for, by any thread to the same number; −1 before. */
  private int narrowest = -1;

  /** Batches of the rows, of which one is made when it is first asked for. */
  private volatile @Nullable AtomicReferenceArray<@Nullable SoftReference<Batch>> batches;

  /** A segment of an image that is there, or of one to be filled. */
  private Segment(
      Memory.Allocator memory,
      int size,
      int dimension,
      Form form,
      boolean isDouble,
      Coordinates coordinates,
      boolean isCoded) {
    this.size = size;
    capacity = size;
    isOpen = false;
    this.dimension = dimension;
    this.form = form;
    this.isDouble = isDouble;
    int element = isDouble || form.isFull() ? Double.BYTES : Float.BYTES;
    meanBytes = (long) element * dimension;
    scaleBytes = element * form.length(dimension);
    this.coordinates = coordinates;
    ids = HEADER + aligned((long) Integer.BYTES * dimension);
    logDets = ids + aligned((long) Long.BYTES * size);
    bounds = logDets + aligned((long) Double.BYTES * size);
    slacks = bounds + aligned((long) Double.BYTES * size);
    lengths = slacks + aligned((long) Float.BYTES * size);
    means = lengths + aligned((long) Float.BYTES * size);
    scales = means + aligned(size * meanBytes);
    panels = scales + aligned(size * scaleBytes);
    long panelsEnd = panels + (hasPanels() ? panels() * panelBytes() : 0);
    long end = panelsEnd + (isCoded ? Codes.bytes(size, coordinates, dimension) : 0);
    order = new int[dimension];
    block = memory.allocate(end);
    image = block.segment();
    if (image.byteSize() != end) {
      throw new IllegalArgumentException(
          "has %d bytes where %d Gaussians of dimension %d have %d; it is cut off or damaged"
              .formatted(image.byteSize(), size, dimension, end));
    }
    MemorySegment.copy(image, INT, HEADER, order, 0, dimension);
    codes = isCoded ? new Codes(image, panelsEnd, coordinates, dimension) : null;
  }

  /** A segment to be filled. */
  private Segment(
      Memory.Allocator memory,
      int size,
      int dimension,
      Form form,
      boolean isDouble,
      Coordinates coordinates) {
    this(
        memory,
        size,
        dimension,
        form,
        isDouble,
        coordinates,
        Codes.areWorthwhile(size, coordinates, dimension));
  }

  /** The first rows of an image with room for more. */
  private Segment(Segment whole, int size, int[] order) {
    this.size = size;
    capacity = whole.capacity;
    isOpen = true;
    dimension = whole.dimension;
    form = whole.form;
    isDouble = whole.isDouble;
    meanBytes = whole.meanBytes;
    scaleBytes = whole.scaleBytes;
    coordinates = whole.coordinates;
    ids = whole.ids;
    logDets = whole.logDets;
    bounds = whole.bounds;
    slacks = whole.slacks;
    lengths = whole.lengths;
    means = whole.means;
    scales = whole.scales;
    panels = whole.panels;
    this.order = order;
    block = whole.block;
    image = whole.image;
    codes = null;
  }

  /**
   * Makes an open segment without rows, for such as a batch has, which the caller is to {@link #release}.
   *
   * @param order of the panels' dimensions; it is not copied
   */
  static Segment open(
      Memory.Allocator memory, Coordinates coordinates, Batch like, int capacity, int[] order) {
    int d = like.dimension();
    Segment whole =
        new Segment(memory, capacity, d, Form.of(like), like.isDouble(), coordinates, false);
    whole.image.set(FLOAT, LEAST, Float.POSITIVE_INFINITY);
    return new Segment(whole, 0, order);
  }

  /** Whether an open segment has room for the rows of a batch. */
  boolean takes(Batch batch) {
    return isOpen
        && form == Form.of(batch)
        && isDouble == batch.isDouble()
        && batch.size() <= capacity - size;
  }

  /**
   * Writes rows behind those of an open segment, where no search reads, and returns it with these. The image is the same: the user of one is the user of
   * the other.
   *
   * @param ids of the batch's rows
   */
  Segment with(long[] ids, Batch batch) {
    for (int s = 0; s < ids.length; s++) {
      copyRow(size + s, ids[s], batch, s);
      deriveRow(size + s);
    }
    return new Segment(this, size + ids.length, order);
  }

  static long aligned(long bytes) {
    return Math.ceilDiv(bytes, Memory.ALIGNMENT) * Memory.ALIGNMENT;
  }

  /**
   * Makes a segment of rows of a batch, which the caller is to {@link #release}.
   *
   * @param ids ascending and unique
   * @param rows {@code ids[s]} is the id of row {@code rows[s]}
   */
  public static Segment of(
      Memory.Allocator memory, Coordinates coordinates, long[] ids, Batch batch, int[] rows) {
    Segment made =
        new Segment(
            memory, ids.length, batch.dimension(), Form.of(batch), batch.isDouble(), coordinates);
    return made.filled(() -> made.copyRows(ids, batch, rows));
  }

  /** Fills the image, whose memory is given back if that fails. */
  private Segment filled(Runnable fill) {
    try {
      fill.run();
      derive();
      return this;
    } catch (Throwable e) {
      release();
      throw e;
    }
  }

  private void copyRows(long[] ids, Batch batch, int[] rows) {
    for (int s = 0; s < ids.length; s++) {
      copyRow(s, ids[s], batch, rows[s]);
    }
  }

  private void copyRow(int row, long id, Batch batch, int other) {
    putId(row, id, batch.logDet(other), batch.logDetBound(other));
    switch (batch) {
      case DiagonalBatch diagonal -> copyValues(row, diagonal, other);
      case FullBatch full -> copyValues(row, full, other);
      case LowRankBatch _ -> throw new AssertionError("refused by KlIndex");
    }
  }

  private void copyValues(int row, DiagonalBatch batch, int other) {
    int d = dimension;
    int from = other * d;
    long at = meanAt(row);
    long scaleAt = scaleAt(row);
    int scales = batch.scaleFrom(other);
    int length = batch.rawLength();
    if (isDouble) {
      MemorySegment.copy(batch.mean64(), from, image, DOUBLE, at, d);
      for (int h = 0; h < d; h += length) {
        MemorySegment.copy(
            batch.scale64(), scales, image, DOUBLE, scaleAt + (long) h * Double.BYTES, length);
      }
    } else {
      MemorySegment.copy(batch.mean32(), from, image, FLOAT, at, d);
      for (int h = 0; h < d; h += length) {
        MemorySegment.copy(
            batch.scale32(), scales, image, FLOAT, scaleAt + (long) h * Float.BYTES, length);
      }
    }
  }

  private void copyValues(int row, FullBatch batch, int other) {
    int length = Cholesky.packedLength(dimension);
    int from = batch.factorFrom(other);
    long at = scaleAt(row);
    MemorySegment.copy(batch.mean(), other * dimension, image, DOUBLE, meanAt(row), dimension);
    MemorySegment.copy(batch.scaleTril(), from, image, DOUBLE, at, length);
    double[] low = batch.scaleTrilLow();
    if (low != null) {
      MemorySegment.copy(low, from, image, DOUBLE, at + (long) Double.BYTES * length, length);
    }
  }

  /**
   * Makes one segment of the live rows of several, which the caller is to {@link #release}.
   *
   * @param parts at least one, all of one dimension, form, precision and index, without an id that is live in two
   */
  public static Segment merge(List<LiveSegment> parts, Memory.Allocator memory) {
    Segment first = parts.getFirst().segment();
    int live = Math.toIntExact(parts.stream().mapToLong(LiveSegment::live).sum());
    Segment made =
        new Segment(memory, live, first.dimension, first.form, first.isDouble, first.coordinates);
    return made.filled(() -> made.copyLive(parts));
  }

  private void copyLive(List<LiveSegment> parts) {
    LiveRows rows = new LiveRows(parts);
    Checkpoint checkpoint = new Checkpoint();
    for (int s = 0; rows.advance(); s++) {
      copyRow(s, rows.segment(), rows.row());
      checkpoint.pass(Checkpoint.ofPlain(dimension));
    }
  }

  /**
   * Reads a segment, which remains in the block, and whose user the caller remains.
   *
   * @throws IllegalArgumentException if it is none, or has not the length that it tells
   * @throws OtherVersionException if it is of another version
   */
  static Segment read(Memory.Block block) {
    MemorySegment image = block.segment();
    if (image.byteSize() < HEADER || image.get(LONG, 0) != MAGIC) {
      throw new IllegalArgumentException("is no segment of an index");
    }
    int version = image.get(INT, 8);
    if (version != VERSION && version != VERSION_OF_OTHERS) {
      throw new OtherVersionException(
          "has version %d of the format, but this library reads %d and %d; use the library that wrote it"
              .formatted(version, VERSION, VERSION_OF_OTHERS));
    }
    int dimension = image.get(INT, 12);
    int size = image.get(INT, 16);
    int number = image.get(INT, 20);
    int wide = image.get(INT, 24);
    int coded = image.get(INT, CODED);
    int others = image.get(INT, COORDINATES);
    if (dimension < 1
        || size < 0
        || number < 0
        || number >= FORMS.size()
        || (wide & 1) != wide
        || (coded & 1) != coded
        || others < 0
        || others >= ALL_COORDINATES.size()
        || others > 0 != (version == VERSION_OF_OTHERS)
        || (coded == 1 && ALL_COORDINATES.get(others) == Coordinates.NONE)
        || !isPossible(FORMS.get(number), dimension, ALL_COORDINATES.get(others))
        || size * FORMS.get(number).length(dimension) > image.byteSize()) {
      throw new IllegalArgumentException("has a damaged header");
    }
    Segment read =
        new Segment(
            bytes -> block,
            size,
            dimension,
            FORMS.get(number),
            wide == 1,
            ALL_COORDINATES.get(others),
            coded == 1);
    if (!Arrays.equals(
        Arrays.stream(read.order).sorted().toArray(), IntStream.range(0, dimension).toArray())) {
      throw new IllegalArgumentException("has a damaged order of dimensions");
    }
    return read;
  }

  private static boolean isPossible(Form form, int dimension, Coordinates coordinates) {
    return !form.isFull()
        || (dimension <= FullBatch.MOST_DIMENSIONS && coordinates == Coordinates.NONE);
  }

  private void putId(int row, long id, double logDet, double bound) {
    image.set(LONG, ids + (long) Long.BYTES * row, id);
    image.set(DOUBLE, logDets + (long) Double.BYTES * row, logDet);
    image.set(DOUBLE, bounds + (long) Double.BYTES * row, bound);
  }

  private void copyRow(int row, Segment from, int other) {
    putId(row, from.id(other), from.logDet(other), from.logDetBound(other));
    MemorySegment.copy(from.image, from.meanAt(other), image, meanAt(row), meanBytes);
    MemorySegment.copy(from.image, from.scaleAt(other), image, scaleAt(row), scaleBytes);
  }

  /** Writes what follows from the given values: the header, panels, slacks, lengths and codes. */
  private void derive() {
    image.set(LONG, 0, MAGIC);
    image.set(INT, 8, coordinates == Coordinates.KL ? VERSION : VERSION_OF_OTHERS);
    image.set(INT, 12, dimension);
    image.set(INT, 16, size);
    image.set(INT, 20, FORMS.indexOf(form));
    image.set(INT, 24, isDouble ? 1 : 0);
    image.set(FLOAT, LEAST, Float.POSITIVE_INFINITY);
    image.set(INT, CODED, codes == null ? 0 : 1);
    image.set(INT, COORDINATES, ALL_COORDINATES.indexOf(coordinates));
    int[] chosen = form.isFull() ? IntStream.range(0, dimension).toArray() : chooseOrder();
    System.arraycopy(chosen, 0, order, 0, dimension);
    MemorySegment.copy(order, 0, image, INT, HEADER, dimension);
    Checkpoint checkpoint = new Checkpoint();
    for (int row = 0; row < size; row++) {
      deriveRow(row);
      checkpoint.pass(Checkpoint.ofPlain(dimension));
    }
    if (codes != null) {
      codes.make(this);
    }
  }

  /** Tells of a row whether it is beyond, where there are no panels. */
  private void tellBeyond(int row) {
    boolean beyond = false;
    for (int k = 0; k < dimension; k++) {
      beyond |= !Rounding.isOrdinary(precision(row, k)) || Math.abs(mean(row, k)) > Float.MAX_VALUE;
    }
    image.set(FLOAT, slacks + (long) Float.BYTES * row, beyond ? -0f : 0f);
    image.set(FLOAT, lengths + (long) Float.BYTES * row, 0);
  }

  /**
   * Orders dimensions by their mean terms of two rows, {@code (2 Var m + E σ²) E 1/σ²}, the greatest first; of the Wasserstein distance, whose
   * weights are 1, by the variances of mean and σ.
   */
  private int[] chooseOrder() {
    double[] terms = new double[dimension];
    int n = Math.min(size, MOST_SAMPLED);
    for (int h = 0; h < dimension; h++) {
      double sum = 0;
      double squares = 0;
      double variances = 0;
      double precisions = 0;
      double stds = 0;
      double shift = n == 0 ? 0 : value(means, 0, h);
      for (int k = 0; k < n; k++) {
        int row = (int) ((long) size * k / n);
        double m = value(means, row, h) - shift;
        double v = kind().variance(value(scales, row, h));
        sum += m;
        squares += m * m;
        variances += v;
        precisions += 1 / v;
        stds += Math.sqrt(v);
      }
      terms[h] = (2 * (squares - sum * sum / n) + variances) * precisions;
      if (coordinates == Coordinates.WASSERSTEIN_2) {
        terms[h] = squares - sum * sum / n + variances - stds * stds / n;
      }
    }
    return IntStream.range(0, dimension)
        .boxed()
        .sorted(Comparator.comparingDouble((Integer h) -> terms[h]).reversed())
        .mapToInt(Integer::intValue)
        .toArray();
  }

  /** Writes what follows from a row of the image. */
  private void deriveRow(int row) {
    if (!hasPanels()) {
      if (!form.isFull()) {
        tellBeyond(row);
      }
      return;
    }
    long lane = panelAt(row / LANES) + (long) Float.BYTES * (row % LANES);
    long precisions = lane + (long) Float.BYTES * LANES;
    boolean beyond = false;
    float least = leastPrecision();
    // precisions first: with both in one loop, C2 of JDK 27 does not end, and compiles nothing from
    // then on
    for (int k = 0; k < dimension; k++) {
      double p = precision(row, k);
      float precision = Rounding.down(p);
      beyond |= !Rounding.isOrdinary(p);
      least = Math.min(least, precision);
      image.set(FLOAT, precisions + 2L * Float.BYTES * LANES * k, precision);
    }
    double slack = 0;
    double length = 0;
    for (int k = 0; k < dimension; k++) {
      double m = mean(row, k);
      float mean = (float) Math.clamp(m, -Float.MAX_VALUE, Float.MAX_VALUE);
      float precision = image.get(FLOAT, precisions + 2L * Float.BYTES * LANES * k);
      beyond |= Math.abs(m) > Float.MAX_VALUE;
      slack += (m - mean) * (m - mean) * precision;
      length += (double) mean * mean * precision;
      image.set(FLOAT, lane + 2L * Float.BYTES * LANES * k, mean);
    }
    image.set(FLOAT, LEAST, least);
    float up = Rounding.up(Math.sqrt(slack) * Rounding.more(dimension));
    image.set(FLOAT, slacks + (long) Float.BYTES * row, beyond ? -up : up);
    image.set(
        FLOAT,
        lengths + (long) Float.BYTES * row,
        Rounding.up(Math.sqrt(length) * Rounding.more(dimension)));
  }

  /** Returns a mean, of a dimension in the order of the panels. */
  double mean(int row, int k) {
    return value(means, row, order[k]);
  }

  /** Returns the precision of a scale, of a dimension in the order of the panels. */
  double precision(int row, int k) {
    double s = value(scales, row, order[k]);
    return form == Form.PRECISION ? s : 1 / kind().variance(s);
  }

  /** Returns a coordinate, of the dimensions in the order of the panels. */
  double coordinate(int row, int c) {
    int k = coordinates.dimension(c);
    return coordinates.isMean(c)
        ? mean(row, k)
        : coordinates.ofScale(kind(), value(scales, row, order[k]));
  }

  /** Returns the weight of a coordinate. */
  double weight(int row, int c) {
    if (coordinates == Coordinates.KL) {
      return precision(row, c);
    }
    return coordinates == Coordinates.JEFFREYS && coordinates.isMean(c)
        ? 1 / kind().std(value(scales, row, order[coordinates.dimension(c)]))
        : 1;
  }

  private double value(long section, int row, int h) {
    long at = (long) row * dimension + h;
    return isDouble
        ? image.get(DOUBLE, section + Double.BYTES * at)
        : image.get(FLOAT, section + Float.BYTES * at);
  }

  /** The content, also of the file. */
  public MemorySegment image() {
    return image;
  }

  /** Whether the image is a mapped file. */
  public boolean isMapped() {
    return block.isMapped();
  }

  /** The memory of the image. */
  Memory.Block block() {
    return block;
  }

  /** Becomes a user of the memory; see {@link Memory.Block#retain}. */
  void retain() {
    block.retain();
  }

  /** Ends a use of the memory, be it that of whoever made this. */
  void release() {
    block.release();
  }

  public int size() {
    return size;
  }

  /** Rows that bits for deleted ones are to be of. */
  int capacity() {
    return capacity;
  }

  /** Whether it can have more rows, and has not its rows by ascending ids. */
  public boolean isOpen() {
    return isOpen;
  }

  /** Returns the rows by ascending ids, and of one id as they came; null where that is how they are. */
  int @Nullable [] byId() {
    return isOpen
        ? IntStream.range(0, size)
            .boxed()
            .sorted(Comparator.comparingLong(this::id))
            .mapToInt(Integer::intValue)
            .toArray()
        : null;
  }

  public int dimension() {
    return dimension;
  }

  /** Tells what the scales are. */
  public Form form() {
    return form;
  }

  /** Tells what scales that are diagonal are. */
  public Scale kind() {
    return form.scale();
  }

  public boolean isDouble() {
    return isDouble;
  }

  public long id(int row) {
    return image.get(LONG, ids + (long) Long.BYTES * row);
  }

  /** Returns the row of an id, or −1; of rows that an open segment has of it, the last, as the others are deleted. */
  public int find(long id) {
    return isOpen ? findLast(id) : search(id);
  }

  private int findLast(long id) {
    int row = size - 1;
    while (row >= 0 && id(row) != id) {
      row--;
    }
    return row;
  }

  private int search(long id) {
    int low = 0;
    int high = size - 1;
    while (low <= high) {
      int middle = (low + high) >>> 1;
      long found = id(middle);
      if (found == id) {
        return middle;
      }
      if (found < id) {
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    return -1;
  }

  public double logDet(int row) {
    return image.get(DOUBLE, logDets + (long) Double.BYTES * row);
  }

  public double logDetBound(int row) {
    return image.get(DOUBLE, bounds + (long) Double.BYTES * row);
  }

  /** Returns the row of the least {@link #logDet}, of one row at least, be it live or not. */
  int narrowest() {
    int found = narrowest;
    if (found < 0) {
      found = 0;
      double least = logDet(0);
      for (int row = 1; row < size; row++) {
        double log = logDet(row);
        if (log < least) {
          least = log;
          found = row;
        }
      }
      narrowest = found;
    }
    return found;
  }

  /** What the codes are of. */
  public Coordinates coordinates() {
    return coordinates;
  }

  /** Whether there are panels of floats. */
  public boolean hasPanels() {
    return coordinates == Coordinates.KL;
  }

  /** Returns the codes, or null. */
  public @Nullable Codes codes() {
    return codes;
  }

  /** The dimensions in the order of the panels; not to be changed. */
  public int[] order() {
    return order;
  }

  public float leastPrecision() {
    return image.get(FLOAT, LEAST);
  }

  /** Copies the two numbers of each dimension to the order of the panels. */
  public void order(float[] given, float[] ordered) {
    for (int k = 0; k < dimension; k++) {
      ordered[2 * k] = given[2 * order[k]];
      ordered[2 * k + 1] = given[2 * order[k] + 1];
    }
  }

  /** Reads Σ ln σ, its error, slack and length of n rows from one on. */
  public void readNumbers(
      long row, int n, double[] logDet, double[] bound, float[] slack, float[] length) {
    MemorySegment.copy(image, DOUBLE, logDets + Double.BYTES * row, logDet, 0, n);
    MemorySegment.copy(image, DOUBLE, bounds + Double.BYTES * row, bound, 0, n);
    MemorySegment.copy(image, FLOAT, slacks + Float.BYTES * row, slack, 0, n);
    MemorySegment.copy(image, FLOAT, lengths + Float.BYTES * row, length, 0, n);
  }

  /** Reads the last number of a panel, which a file that was cut off has no more. */
  public float lastOfPanel(int panel) {
    return image.get(FLOAT, panelAt(panel + 1) - Float.BYTES);
  }

  /**
   * Makes a batch of one row that {@link #fill} fills.
   *
   * @param takesZero whether a σ may be 0
   */
  public Batch newSlot(boolean takesZero) {
    return form.isFull()
        ? FullBatch.ofSlot(dimension, isDouble, form == Form.COMPUTED_FACTOR)
        : DiagonalBatch.ofSlot(dimension, kind(), isDouble, takesZero);
  }

  /** Fills a slot of the segment's form and precision with a row. */
  public void fill(Batch slot, int row) {
    switch (slot) {
      case DiagonalBatch diagonal -> {
        if (isDouble) {
          read(row, diagonal.mean64(), diagonal.scale64(), 0);
        } else {
          read(row, diagonal.mean32(), diagonal.scale32(), 0);
        }
        diagonal.takeRow(logDet(row), logDetBound(row), !isBeyond(row));
      }
      case FullBatch full -> {
        read(row, full.mean(), full.scaleTril(), full.scaleTrilLow(), 0);
        full.takeRow(logDet(row), logDetBound(row));
      }
      case LowRankBatch _ -> throw new AssertionError("no slot");
    }
  }

  private boolean isBeyond(int row) {
    return Float.floatToRawIntBits(image.get(FLOAT, slacks + (long) Float.BYTES * row)) < 0;
  }

  /** Rows of a batch of {@link #kept}, and of others that are made of a segment to be read once: whole panels of any kernel. */
  public int rowsOfBatch() {
    return Math.clamp(MOST_OF_BATCH / rowTerms(), Batch.WIDEST_PANEL, MOST_ROWS_OF_BATCH)
        / Batch.WIDEST_PANEL
        * Batch.WIDEST_PANEL;
  }

  /** Whether the heap has room for batches, with what kernels make of them: those of full covariances have some rows at least, however large. */
  public boolean hasRoomForBatches() {
    return COPIES * rowsOfBatch() * rowBytes() <= Runtime.getRuntime().maxMemory() / SHARE_OF_HEAP;
  }

  /**
   * Returns a batch of rows that is kept while memory lasts, and with it what kernels make of it.
   *
   * @param number of the batch, each of {@link #rowsOfBatch}
   */
  public Batch kept(int number, boolean takesZero) {
    AtomicReferenceArray<@Nullable SoftReference<Batch>> all = batches;
    int rows = rowsOfBatch();
    if (all == null) {
      synchronized (this) {
        all = batches;
        if (all == null) {
          all = new AtomicReferenceArray<>(Math.ceilDiv(size, rows));
          batches = all;
        }
      }
    }
    SoftReference<Batch> reference = all.get(number);
    Batch batch = reference == null ? null : reference.get();
    if (batch == null) { // perhaps by several threads
      int from = number * rows;
      batch = batch(from, Math.min(size - from, rows), null, takesZero);
      all.set(number, new SoftReference<>(batch));
    }
    return batch;
  }

  /**
   * Returns a batch of n rows from one on.
   *
   * @param spare is filled with them if it is diagonal, and of their number, kind and precision; it is used by this thread alone
   * @param takesZero whether a σ may be 0
   */
  public Batch batch(int from, int n, @Nullable Batch spare, boolean takesZero) {
    if (form.isFull()) {
      return fullBatch(from, n);
    }
    DiagonalBatch batch;
    if (spare instanceof DiagonalBatch given
        && given.size() == n
        && given.kind() == kind()
        && given.isDouble() == isDouble) {
      batch = given;
      batch.refill();
    } else {
      batch = DiagonalBatch.ofTaken(n, dimension, kind(), isDouble, takesZero);
    }
    if (isDouble) {
      MemorySegment.copy(image, DOUBLE, meanAt(from), batch.mean64(), 0, n * dimension);
      MemorySegment.copy(image, DOUBLE, scaleAt(from), batch.scale64(), 0, n * dimension);
    } else {
      MemorySegment.copy(image, FLOAT, meanAt(from), batch.mean32(), 0, n * dimension);
      MemorySegment.copy(image, FLOAT, scaleAt(from), batch.scale32(), 0, n * dimension);
    }
    for (int i = 0; i < n; i++) {
      batch.takeRow(i, logDet(from + i), logDetBound(from + i), !isBeyond(from + i));
    }
    return batch;
  }

  private FullBatch fullBatch(int from, int n) {
    ReadBack.FullRows rows =
        new ReadBack.FullRows(n, dimension, isDouble, form == Form.COMPUTED_FACTOR);
    for (int i = 0; i < n; i++) {
      rows.put(i, this, from + i);
    }
    return rows.batch(RangeCheck.PLAIN);
  }

  /** Copies what was given of a row of a segment of float to two arrays, from one place in both on. */
  void read(int row, float[] mean, float[] scale, int to) {
    MemorySegment.copy(image, FLOAT, meanAt(row), mean, to, dimension);
    MemorySegment.copy(image, FLOAT, scaleAt(row), scale, to, dimension);
  }

  /** Reads some numbers of a row, one for each pair of cache lines, so that {@link #fill} finds it in the cache; returns them in one. */
  public int touch(int row) {
    return touch(meanAt(row), meanBytes) ^ touch(scaleAt(row), scaleBytes);
  }

  private int touch(long at, long bytes) {
    int all = 0;
    for (int k = 0; k < Math.min(bytes, MOST_TOUCHED); k += CACHE_LINES) {
      all ^= image.get(INT, at + k);
    }
    return all;
  }

  /** The same as double, of a segment of either precision. */
  void read(int row, double[] mean, double[] scale, int to) {
    if (isDouble) {
      MemorySegment.copy(image, DOUBLE, meanAt(row), mean, to, dimension);
      MemorySegment.copy(image, DOUBLE, scaleAt(row), scale, to, dimension);
      return;
    }
    for (int h = 0; h < dimension; h++) {
      mean[to + h] = value(means, row, h);
      scale[to + h] = value(scales, row, h);
    }
  }

  /**
   * Copies a row of full covariances to be row {@code to} of a batch.
   *
   * @param low takes the parts that rounding took from L, 0 where it was given
   */
  void read(int row, double[] mean, double[] scaleTril, double @Nullable [] low, int to) {
    int length = Cholesky.packedLength(dimension);
    MemorySegment.copy(image, DOUBLE, meanAt(row), mean, to * dimension, dimension);
    MemorySegment.copy(image, DOUBLE, scaleAt(row), scaleTril, to * length, length);
    if (low != null && form == Form.COMPUTED_FACTOR) {
      long at = scaleAt(row) + (long) Double.BYTES * length;
      MemorySegment.copy(image, DOUBLE, at, low, to * length, length);
    } else if (low != null) {
      Arrays.fill(low, to * length, (to + 1) * length, 0);
    }
  }

  /** Reads the means and standard deviations of a row, rounded to float; of a full covariance, those of each dimension by itself. */
  public void readStd(int row, float[] mean, float[] std) {
    long at = scaleAt(row);
    for (int h = 0; h < dimension; h++) {
      if (form.isFull()) {
        double variance = 0;
        for (int c = 0; c <= h; c++, at += Double.BYTES) {
          double l = image.get(DOUBLE, at);
          variance += l * l;
        }
        mean[h] = (float) image.get(DOUBLE, meanAt(row) + (long) Double.BYTES * h);
        std[h] = (float) Math.sqrt(variance);
      } else {
        mean[h] = (float) value(means, row, h);
        std[h] = (float) kind().std(value(scales, row, h));
      }
    }
  }

  /** Bytes of the values of a row, as they were given. */
  public long rowBytes() {
    return meanBytes + scaleBytes;
  }

  private long meanAt(int row) {
    return means + row * meanBytes;
  }

  private long scaleAt(int row) {
    return scales + row * scaleBytes;
  }

  /** Bytes of a panel, or of what stands for its rows where there are none. */
  public long panelBytes() {
    return form.isFull() ? LANES * rowBytes() : 2L * Float.BYTES * LANES * dimension;
  }

  /** Counts the terms of a scan of a panel, by which threads share it. */
  public long panelTerms() {
    return (long) LANES * rowTerms();
  }

  private int rowTerms() {
    return form.isFull() ? dimension + Cholesky.packedLength(dimension) : dimension;
  }

  public int panels() {
    return Math.ceilDiv(size, LANES);
  }

  public long panelAt(int panel) {
    return panels + panel * panelBytes();
  }
}
