package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.rows.BandState;
import dev.kullback.internal.rows.RowReduction;
import dev.kullback.internal.work.Crew;
import dev.kullback.internal.work.Job;

/**
 * Cuts the matrix of a call's reduction into bands of rows and these into blocks, and shares the bands between the threads of an engine;
 * bands too few for that are cut into spans of columns, too. The call's workspace keeps it for its next call.
 */
final class ReductionRunner implements Job.Task<Workspace> {
  /** Spans for each thread, so that they end at about the same time. */
  private static final int SPANS = 4;

  /** Terms of a matrix from which on its bands are cut into spans: 70 µs. */
  private static final long LEAST_TERMS = 1 << 20;

  /** Rows of an answer that a thread takes at once, and columns of a block where the answer lacks some: 8 MiB come off a device at once. */
  private static final int ANSWERED = 64;

  private static final int ANSWERED_COLUMNS = 1 << 14;

  private final Crew<Workspace> crew;
  private final Workspace lead;

  private KernelTable row = KernelTable.SCALAR;
  private Operands<?> operands = new Operands<>();

  /** The call's reduction, and between calls one that holds nothing. */
  private RowReduction reduction;

  /** Rows and columns of the matrix, and of a task: a band, its span or its block. */
  private int n;

  private int m;
  private int height;
  private int width;

  /** Whether rows are the kernel's columns, as its operands have the roles exchanged. */
  private boolean exchanged;

  /** Whether bands are cut into spans. */
  private boolean cut;

  ReductionRunner(Crew<Workspace> crew, Workspace lead) {
    this.crew = crew;
    this.lead = lead;
    reduction = lead.statistic;
  }

  /** Hands the blocks of the kernel's {@code KL(q_i ‖ p_j)}, or exchanged {@code KL(p_j ‖ q_i)}, to a reduction. */
  void reduce(Batch q, Batch p, boolean exchanged, RowReduction reduction) {
    this.reduction = reduction;
    this.exchanged = exchanged;
    n = q.size();
    m = p.size();
    int threads = crew.threads();
    // as many for each thread
    int most = Math.ceilDiv(Math.ceilDiv(n, reduction.bandRows()), threads) * threads;
    int panel = exchanged ? Batch.WIDEST_PANEL : BlockKernel.ROW_PANEL;
    height = Math.ceilDiv(Math.ceilDiv(n, most), panel) * panel;
    int bands = Math.ceilDiv(n, height);
    row = lead.kernels.choose(exchanged ? p : q, exchanged ? q : p);
    operands = lead.kernels.pack(row, exchanged ? p : q, exchanged ? q : p);
    boolean large = row == KernelTable.DEVICE;
    if (large && answer()) {
      return;
    }
    int spans = large ? 1 : spans(bands, (long) n * m * q.dimension());
    int blocks = Math.ceilDiv(m, RowReduction.BLOCK_COLUMNS);
    width =
        reduction.isByBlock()
            ? RowReduction.BLOCK_COLUMNS
            : spans == 1 ? m : Math.ceilDiv(blocks, spans) * RowReduction.BLOCK_COLUMNS;
    cut = !reduction.isByBlock() && width < m;
    int across = Math.ceilDiv(m, width);
    reduction.cut(n, cut ? across : 1);
    crew.share((long) bands * across, lead, this);
    if (cut) {
      crew.share(bands, lead, this::merge);
    }
  }

  /** Lets go of the call's reduction. */
  void clear() {
    reduction = lead.statistic;
  }

  /** Into how many spans of columns each band is to be cut. */
  private int spans(int bands, long terms) {
    int threads = crew.threads();
    return crew.isAlone(threads) || 2 * bands > threads || terms < LEAST_TERMS
        ? 1
        : Math.min(reduction.mostSpans(), Math.ceilDiv(SPANS * threads, bands));
  }

  /** Has the kernel go through the rows itself, if it does so. */
  private boolean answer() {
    RowQuery query = reduction.query();
    if (query == null) {
      return false;
    }
    reduction.cut(n, 1);
    return lead.kernels
        .of(row)
        .answer(
            operands,
            query,
            exchanged,
            answer ->
                crew.share(
                    Math.ceilDiv(answer.row1() - answer.row0(), ANSWERED),
                    lead,
                    (index, w) -> take(answer, (int) index, w)));
  }

  /** Hands some rows of an answer to the reduction, and as blocks what the kernel did not keep. */
  private void take(RowAnswer answer, int index, Workspace w) {
    int row0 = answer.row0() + index * ANSWERED;
    int row1 = Math.min(row0 + ANSWERED, answer.row1());
    w.checkInterrupt();
    w.band.begin(row0, BandState.WHOLE, exchanged);
    reduction.begin(row0, row1, w.band);
    for (int piece = 0; piece < answer.pieces(); piece++) {
      int pending = row0; // the first of the rows that wait to be blocks
      for (int i = row0; i <= row1; i++) {
        if (i == row1 || reduction.take(answer, i, piece, w.band)) {
          int to = pending < i ? answer.column(piece + 1) : 0;
          for (int column = answer.column(piece); column < to; column += ANSWERED_COLUMNS) {
            block(pending, i, column, Math.min(column + ANSWERED_COLUMNS, to), w);
          }
          pending = i + 1;
        }
      }
    }
    reduction.end(row0, row1, w.band);
  }

  /** Reduces a band of rows, or its blocks of {@link #width} columns. */
  @Override
  public void run(long index, Workspace w) {
    int across = Math.ceilDiv(m, width);
    int span = (int) (index % across);
    int from = span * width;
    int to = Math.min(m - from, width) + from;
    band((int) (index / across), cut ? span : BandState.WHOLE, from, to, w);
  }

  /** Merges the spans of a band, or reduces the band again as a whole where they kept too little for that. */
  private void merge(long band, Workspace w) {
    int row0 = (int) band * height;
    w.checkInterrupt();
    w.band.begin(row0, BandState.WHOLE, exchanged);
    if (!reduction.merge(row0, Math.min(row0 + height, n), w.band)) {
      band((int) band, BandState.WHOLE, 0, m, w);
    }
  }

  /** Reduces columns [from, to) of a band. */
  private void band(int band, int span, int from, int to, Workspace w) {
    int row0 = band * height;
    int row1 = Math.min(row0 + height, n);
    boolean large = row == KernelTable.DEVICE && !exchanged;
    int rows = Math.min(height, large ? RowReduction.BAND_ROWS : RowReduction.BLOCK_ROWS);
    w.band.begin(row0, span, exchanged);
    reduction.begin(row0, row1, w.band);
    for (int column0 = from; column0 < to; column0 += RowReduction.BLOCK_COLUMNS) {
      int column1 = Math.min(column0 + RowReduction.BLOCK_COLUMNS, to);
      for (int first = row0; first < row1; first += rows) {
        block(first, Math.min(first + rows, row1), column0, column1, w);
      }
    }
    reduction.end(row0, row1, w.band);
  }

  private void block(int row0, int row1, int column0, int column1, Workspace w) {
    w.checkInterrupt();
    int width = column1 - column0;
    w.target.useBlock(true, (row1 - row0) * width, row0, column0, width);
    w.kernels.block(row, operands, exchanged, row0, row1, column0, column1, w.target);
    w.band.use(w.kernels.scan());
    reduction.block(row0, row1, column0, column1, w.target.block(), w.band);
  }
}
