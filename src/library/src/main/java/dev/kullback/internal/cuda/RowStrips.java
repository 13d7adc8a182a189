package dev.kullback.internal.cuda;

import static dev.kullback.internal.cuda.CudaLibrary.check;
import static dev.kullback.internal.cuda.Session.TILE;
import static dev.kullback.internal.cuda.abi.CudaRuntime.cudaMemcpyHostToDevice;
import static dev.kullback.internal.cuda.abi.KullbackCuda.*;

import dev.kullback.internal.cuda.Session.Region;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Consumer;

/**
 * Answers row queries for a session. The matrix stays on the device, a strip of rows at a time and of that a part of the columns; what
 * is wanted of a part comes off the device while the next is computed. Answers come by strip, while the next strip is under way.
 */
final class RowStrips {
  /** Most bytes of a part of the matrix: at D = 128 some 80 µs of an H100's computing. Not tuned on a device. */
  private static final long MOST_PART = 64 << 20;

  /** A part takes the device's memory divided by this at most. */
  private static final int SHARE = 64;

  /** Least pieces of a part, each for one block of threads: four times the multiprocessors of an H100. */
  private static final int PIECES = 512;

  /** Least columns of a piece, and those of a sum's pieces always, as of the host's blocks. */
  private static final int NARROWEST = 4096;

  /** Least columns of a piece for each of the k nearest. */
  private static final int COLUMNS_EACH = 8;

  /** A search within a radius keeps one entry in {@value}; pieces with more come over whole. */
  private static final int WITHIN_SHARE = 32;

  /** Entries of each part, in turn, on the device, and what was found in it. */
  private final DeviceMemory[] matrix;

  private final DeviceMemory[] found;

  /** Limits of each strip, in turn, on the host and on the device, its answer, and the event that the answer is there. */
  private final DeviceMemory[] hostLimits;

  private final DeviceMemory[] limits;
  private final DeviceMemory[] answers;
  private final MemorySegment[] answered;

  private final DeviceMemory weights;
  private final Session session;

  /** Bytes of a part of the matrix. */
  final long partBytes;

  RowStrips(Session session) {
    this.session = session;
    partBytes = Math.min(MOST_PART, CudaLibrary.memory()[1] / SHARE);
    weights = session.onDevice();
    matrix = new DeviceMemory[] {session.onDevice(), session.onDevice()};
    found = new DeviceMemory[] {session.onDevice(), session.onDevice()};
    limits = new DeviceMemory[] {session.onDevice(), session.onDevice()};
    hostLimits = new DeviceMemory[] {session.onHost(), session.onHost()};
    answers = new DeviceMemory[] {session.onHost(), session.onHost()};
    answered = new MemorySegment[] {session.event(), session.event()};
  }

  /** Whether the device keeps as many entries of a piece as the query may want. */
  static boolean isAnswered(RowQuery query) {
    return room(query, 0) <= KULLBACK_MOST_SELECTED();
  }

  /** Returns how many entries of a piece are kept. */
  private static int room(RowQuery query, int width) {
    return query.k() > 0
        ? (int) Math.min(Integer.MAX_VALUE, query.k() + Math.max(32L, query.k() / 2))
        : Math.clamp(width / WITHIN_SHARE, 64, KULLBACK_MOST_SELECTED());
  }

  /**
   * A matrix of n rows and m columns, cut into strips, parts and pieces.
   *
   * @param rows of a strip
   * @param columns of a part, a multiple of {@code width} or m
   * @param width of a piece
   * @param capacity how many entries of a piece are kept; 0 for its two numbers
   */
  private record Cut(int n, int m, int rows, int columns, int width, int capacity) {
    static Cut of(int n, int m, long part, RowQuery query) {
      int most = Math.clamp(part / Math.min(n, TILE), Math.min(NARROWEST, m), m);
      boolean lists = query.kind() == RowQuery.Kind.ENTRIES;
      long narrowest = Math.max(NARROWEST, (long) COLUMNS_EACH * query.k());
      long even = Math.ceilDiv(most, Math.ceilDiv(PIECES, Math.clamp(part / most, 1, n)));
      // sums have one order of additions, whatever the number of rows and the device's memory
      int width = (int) Math.min(most, lists ? Math.max(narrowest, even) : NARROWEST);
      int columns = most == m ? m : most / width * width;
      int capacity = lists ? Math.min(room(query, width), width) : 0;
      long found = Math.ceilDiv(m, width) * (lists ? 12L * capacity + 4 : 16); // bytes of a row
      int rows = Math.clamp(part * Double.BYTES / Math.max(8L * columns, found), 1, n);
      return new Cut(n, m, rows > TILE ? rows / TILE * TILE : rows, columns, width, capacity);
    }

    int strips() {
      return Math.ceilDiv(n, rows);
    }

    int height(int strip) {
      return Math.min(rows, n - strip * rows);
    }

    int parts() {
      return Math.ceilDiv(m, columns);
    }

    int breadth(int part) {
      return Math.min(columns, m - part * columns);
    }

    /** Pieces of a row in a part. */
    int pieces(int part) {
      return Math.ceilDiv(breadth(part), width);
    }

    long partBytes(int height, int part) {
      long cells = (long) height * pieces(part);
      return capacity == 0 ? 16 * cells : Math.ceilDiv(cells * (12L * capacity + 4), 8) * 8;
    }

    /** Offset of a part in a strip's answer. */
    long offset(int height, int part) {
      return part * partBytes(height, 0);
    }

    long stripBytes(int height) {
      return offset(height, parts() - 1) + partBytes(height, parts() - 1);
    }
  }

  /** Answers for n rows of m columns: those of {@code KL(q ‖ p)}, or its columns as rows. */
  void answer(
      Resident.Pair batches,
      int n,
      int m,
      boolean transposed,
      RowQuery query,
      Consumer<RowAnswer> consumer) {
    Cut cut = Cut.of(n, m, partBytes / Double.BYTES, query);
    for (int b = 0; b < 2; b++) {
      matrix[b].get(8L * cut.rows() * cut.columns());
      found[b].get(cut.partBytes(cut.rows(), 0));
      limits[b].get(8L * cut.rows());
      hostLimits[b].get(8L * cut.rows());
      answers[b].get(cut.stripBytes(cut.rows()));
    }
    MemorySegment logWeights = MemorySegment.NULL;
    double[] w = query.logWeights();
    if (w != null) {
      logWeights = weights.get(8L * w.length);
      session.upload(MemorySegment.ofArray(w), logWeights, 0);
    }
    for (int s = 0; s <= cut.strips(); s++) {
      if (s < cut.strips()) {
        queue(s, cut, batches, transposed, query, logWeights);
      }
      if (s > 0) {
        Session.await(answered[(s - 1) & 1]);
        consumer.accept(new Answer(cut, s - 1, answers[(s - 1) & 1].get(0)));
      }
    }
  }

  /** Queues strip s. */
  private void queue(
      int s,
      Cut cut,
      Resident.Pair batches,
      boolean transposed,
      RowQuery query,
      MemorySegment logWeights) {
    int height = cut.height(s);
    int row0 = s * cut.rows();
    MemorySegment limit = limits[s & 1].get(0);
    if (cut.capacity() > 0) {
      MemorySegment onHost = hostLimits[s & 1].get(0);
      for (int i = 0; i < height; i++) {
        onHost.setAtIndex(ValueLayout.JAVA_DOUBLE, i, query.limit().applyAsDouble(row0 + i));
      }
      Session.queueCopy(limit, onHost, 8L * height, cudaMemcpyHostToDevice(), session.copy);
    }
    MemorySegment answer = answers[s & 1].get(0);
    for (int part = 0; part < cut.parts(); part++) {
      int b = (s * cut.parts() + part) & 1;
      int column0 = part * cut.columns();
      int breadth = cut.breadth(part);
      Region region =
          transposed
              ? new Region(column0, breadth, row0, height)
              : new Region(row0, height, column0, breadth);
      MemorySegment entries = matrix[b].get(0);
      session.compute(batches, region, transposed, entries, b);
      MemorySegment to = found[b].get(0);
      if (cut.capacity() > 0) {
        long kept = (long) height * cut.pieces(part) * cut.capacity();
        check(
            "kullback_cuda_select",
            kullback_cuda_select(
                entries,
                height,
                breadth,
                breadth,
                cut.width(),
                query.skip() + row0 - column0,
                query.k(),
                query.slack(),
                limit,
                cut.capacity(),
                to.asSlice(12 * kept),
                to.asSlice(8 * kept),
                to,
                session.copy));
      } else {
        check(
            "kullback_cuda_fold",
            kullback_cuda_fold(
                code(query.kind()),
                entries,
                height,
                breadth,
                breadth,
                cut.width(),
                logWeights.address() == 0 ? logWeights : logWeights.asSlice(8L * column0),
                to,
                session.copy));
      }
      session.fetch(to, answer.asSlice(cut.offset(height, part)), cut.partBytes(height, part), b);
    }
    Session.record(answered[s & 1], session.copy);
  }

  private static int code(RowQuery.Kind kind) {
    return switch (kind) {
      case MIN -> KULLBACK_MIN();
      case SUM -> KULLBACK_SUM();
      case LOG_SUM_EXP -> KULLBACK_LOG_SUM_EXP();
      case ENTRIES -> throw new AssertionError(kind);
    };
  }

  /** A strip's answer in pinned memory: of each part the values, the columns and the counts, or the numbers. */
  private record Answer(Cut cut, int strip, MemorySegment memory) implements RowAnswer {
    @Override
    public int row0() {
      return strip * cut.rows();
    }

    @Override
    public int row1() {
      return row0() + cut.height(strip);
    }

    @Override
    public int pieces() {
      return Math.ceilDiv(cut.m(), cut.width());
    }

    @Override
    public int column(int piece) {
      return (int) Math.min((long) piece * cut.width(), cut.m());
    }

    @Override
    public int count(int i, int piece) {
      int count =
          memory.get(
              ValueLayout.JAVA_INT,
              start(piece) + 12L * cells(piece) * cut.capacity() + 4 * cell(i, piece));
      return count > cut.capacity() ? -1 : count;
    }

    @Override
    public void copy(int i, int piece, int[] index, double[] value) {
      int count = count(i, piece);
      long start = start(piece);
      long at = cell(i, piece) * cut.capacity();
      long columns = start + 8L * cells(piece) * cut.capacity();
      MemorySegment.copy(memory, ValueLayout.JAVA_DOUBLE, start + 8 * at, value, 0, count);
      MemorySegment.copy(memory, ValueLayout.JAVA_INT, columns + 4 * at, index, 0, count);
      int first = first(piece);
      for (int s = 0; first != 0 && s < count; s++) {
        index[s] += first;
      }
    }

    @Override
    public double number(int i, int piece, int which) {
      return memory.get(ValueLayout.JAVA_DOUBLE, start(piece) + 8 * (2 * cell(i, piece) + which));
    }

    private int part(int piece) {
      return column(piece) / cut.columns();
    }

    /** Returns the first column of a piece's part. */
    private int first(int piece) {
      return part(piece) * cut.columns();
    }

    private long start(int piece) {
      return cut.offset(cut.height(strip), part(piece));
    }

    private long cells(int piece) {
      return (long) cut.height(strip) * cut.pieces(part(piece));
    }

    private long cell(int i, int piece) {
      int pieces = cut.pieces(part(piece));
      return (long) (i - row0()) * pieces + (piece - first(piece) / cut.width());
    }
  }
}
