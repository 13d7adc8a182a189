package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.rows.BandState;
import dev.kullback.internal.rows.RowReduction;
import dev.kullback.internal.work.Job;

/**
 * Cuts the matrix of a reduction into bands of rows and these into blocks, and shares the bands between the threads of an engine; bands
 * too few for that are cut into spans of columns, too.
 */
final class ReductionRunner {
  /** Spans for each thread, so that they end at about the same time. */
  private static final int SPANS = 4;

  /** Terms of a matrix from which on its bands are cut into spans: 70 µs. */
  private static final long LEAST_TERMS = 1 << 20;

  /** Rows of an answer that a thread takes at once, and columns of a block where the answer lacks some: 8 MiB come off a device at once. */
  private static final int ANSWERED = 64;

  private static final int ANSWERED_COLUMNS = 1 << 14;

  private final Engine engine;

  ReductionRunner(Engine engine) {
    this.engine = engine;
  }

  /** Hands the blocks of {@code KL(q_i ‖ p_j)}, or of {@code KL(p_j ‖ q_i)}, to a reduction. */
  void reduce(Batch q, Batch p, RowReduction reduction, Workspace lead) {
    boolean reverse = reduction.isReverse();
    int n = q.size();
    int m = p.size();
    int threads = engine.threads();
    // as many for each thread
    int most = Math.ceilDiv(Math.ceilDiv(n, reduction.bandRows()), threads) * threads;
    int panel = reverse ? Batch.WIDEST_PANEL : BlockKernel.ROW_PANEL;
    int height = Math.ceilDiv(Math.ceilDiv(n, most), panel) * panel;
    int bands = Math.ceilDiv(n, height);
    Operands<?> operands = lead.kernels.prepare(reverse ? p : q, reverse ? q : p);
    boolean large = lead.kernels.of(operands).wantsLargeBlocks();
    if (large && answer(operands, n, reduction, lead)) {
      return;
    }
    int spans = large ? 1 : spans(bands, q, p, reduction);
    int blocks = Math.ceilDiv(m, RowReduction.BLOCK_COLUMNS);
    int width =
        reduction.isByBlock()
            ? RowReduction.BLOCK_COLUMNS
            : spans == 1 ? m : Math.ceilDiv(blocks, spans) * RowReduction.BLOCK_COLUMNS;
    boolean cut = !reduction.isByBlock() && width < m;
    int across = Math.ceilDiv(m, width);
    reduction.cut(n, cut ? across : 1);
    long parts = (long) bands * across;
    if (engine.isAlone(parts)) {
      for (long b = 0; b < parts; b++) {
        part(operands, reduction, height, width, cut, b, lead);
      }
    } else {
      engine.share(
          new Job<>(
              engine, parts, lead, (b, w) -> part(operands, reduction, height, width, cut, b, w)));
    }
    if (cut && engine.isAlone(bands)) {
      for (int b = 0; b < bands; b++) {
        merge(operands, reduction, height, b, lead);
      }
    } else if (cut) {
      engine.share(
          new Job<>(engine, bands, lead, (b, w) -> merge(operands, reduction, height, b, w)));
    }
  }

  /** Has the kernel go through the rows itself, if it does so. */
  private boolean answer(Operands<?> operands, int rows, RowReduction reduction, Workspace lead) {
    RowQuery query = reduction.query();
    if (query == null) {
      return false;
    }
    reduction.cut(rows, 1);
    return lead.kernels
        .of(operands)
        .answer(
            operands,
            query,
            reduction.isReverse(),
            answer -> {
              int parts = Math.ceilDiv(answer.row1() - answer.row0(), ANSWERED);
              if (engine.isAlone(parts)) {
                for (int b = 0; b < parts; b++) {
                  take(operands, reduction, answer, b, lead);
                }
              } else {
                engine.share(
                    new Job<>(
                        engine,
                        parts,
                        lead,
                        (b, w) -> take(operands, reduction, answer, (int) b, w)));
              }
            });
  }

  /** Hands some rows of an answer to a reduction, and as blocks what the kernel did not keep. */
  private static void take(
      Operands<?> operands, RowReduction reduction, RowAnswer answer, int index, Workspace w) {
    int row0 = answer.row0() + index * ANSWERED;
    int row1 = Math.min(row0 + ANSWERED, answer.row1());
    w.checkInterrupt();
    w.band.begin(row0, BandState.WHOLE);
    reduction.begin(row0, row1, w.band);
    for (int piece = 0; piece < answer.pieces(); piece++) {
      int open = row0; // the first of the rows that wait to be blocks
      for (int i = row0; i <= row1; i++) {
        if (i == row1 || reduction.take(answer, i, piece, w.band)) {
          blocks(operands, reduction, open, i, answer.column(piece), answer.column(piece + 1), w);
          open = i + 1;
        }
      }
    }
    reduction.end(row0, row1, w.band);
  }

  private static void blocks(
      Operands<?> operands,
      RowReduction reduction,
      int row0,
      int row1,
      int from,
      int to,
      Workspace w) {
    for (int column0 = from; row0 < row1 && column0 < to; column0 += ANSWERED_COLUMNS) {
      w.checkInterrupt();
      int column1 = Math.min(column0 + ANSWERED_COLUMNS, to);
      block(operands, reduction, row0, row1, column0, column1, w);
    }
  }

  /** Makes one of the spans of a band, or computes it whole where they do not tell. */
  private static void merge(
      Operands<?> operands, RowReduction reduction, int height, long index, Workspace w) {
    boolean reverse = reduction.isReverse();
    int n = (reverse ? operands.p() : operands.q()).size();
    int m = (reverse ? operands.q() : operands.p()).size();
    int row0 = (int) index * height;
    w.checkInterrupt();
    w.band.begin(row0, BandState.WHOLE);
    if (!reduction.merge(row0, Math.min(row0 + height, n), w.band)) {
      part(operands, reduction, height, m, false, index, w);
    }
  }

  /** Into how many spans of columns each band is to be cut. */
  private int spans(int bands, Batch q, Batch p, RowReduction reduction) {
    int threads = engine.threads();
    long terms = (long) q.size() * p.size() * q.dimension();
    return engine.isAlone(threads) || 2 * bands > threads || terms < LEAST_TERMS
        ? 1
        : Math.min(reduction.mostSpans(), Math.ceilDiv(SPANS * threads, bands));
  }

  /** Part {@code index} of the work: a band of rows, or its blocks of {@code width} columns. */
  private static void part(
      Operands<?> operands,
      RowReduction reduction,
      int height,
      int width,
      boolean cut,
      long index,
      Workspace w) {
    boolean reverse = reduction.isReverse();
    int n = (reverse ? operands.p() : operands.q()).size();
    int m = (reverse ? operands.q() : operands.p()).size();
    int most = RowReduction.BLOCK_COLUMNS;
    int across = Math.ceilDiv(m, width);
    int row0 = (int) (index / across) * height;
    int row1 = Math.min(row0 + height, n);
    int from = (int) (index % across) * width;
    int to = Math.min(m - from, width) + from;
    boolean large = w.kernels.of(operands).wantsLargeBlocks() && !reverse;
    int rows = Math.min(height, large ? RowReduction.BAND_ROWS : RowReduction.BLOCK_ROWS);
    w.band.begin(row0, cut ? (int) (index % across) : BandState.WHOLE);
    reduction.begin(row0, row1, w.band);
    for (int column0 = from; column0 < to; column0 += most) {
      int column1 = Math.min(column0 + most, to);
      for (int row = row0; row < row1; row += rows) {
        int end = Math.min(row + rows, row1);
        w.checkInterrupt();
        block(operands, reduction, row, end, column0, column1, w);
      }
    }
    reduction.end(row0, row1, w.band);
  }

  private static void block(
      Operands<?> operands,
      RowReduction reduction,
      int row0,
      int row1,
      int column0,
      int column1,
      Workspace w) {
    int width = column1 - column0;
    w.target.useBlock(true, (row1 - row0) * width, row0, column0, width);
    if (reduction.isReverse()) {
      reverse(operands, row0, row1, column0, column1, w);
    } else {
      w.kernels.of(operands).block(operands, row0, row1, column0, column1, w.target);
    }
    w.band.use(w.kernels.scan());
    reduction.block(row0, row1, column0, column1, w.target.block(), w.band);
  }

  /**
   * Puts {@code KL(p_j ‖ q_i)} at row i, column j: a block of the kernel of {@code KL(p ‖ q)}, transposed in the cache. As its columns
   * the rows begin at a multiple of {@link Batch#WIDEST_PANEL}.
   */
  private static void reverse(
      Operands<?> operands, int row0, int row1, int column0, int column1, Workspace w) {
    BlockKernel<Operands<?>> kernel = w.kernels.of(operands);
    int n = row1 - row0;
    int height =
        kernel.wantsLargeBlocks() ? column1 - column0 : Engine.blockRows(operands.q().dimension());
    w.target.aim(column0, row0, n);
    for (int j = column0; j < column1; j += height) {
      kernel.block(operands, j, Math.min(j + height, column1), row0, row1, w.target);
    }
    w.target.transposeBlock(column1 - column0, n);
  }
}
