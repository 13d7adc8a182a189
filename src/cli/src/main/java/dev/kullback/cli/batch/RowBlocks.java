package dev.kullback.cli.batch;

import dev.kullback.Gaussians;
import dev.kullback.InvalidGaussianException;
import dev.kullback.cli.terminal.Progress;
import java.util.ArrayList;
import java.util.List;

/** Blocks of rows of q against all of p, which is prepared once: neither the prepared q nor the result need fit the memory. */
public record RowBlocks(Batch q, Batch p, int rows, Progress progress) {
  /** Terms (i, j, h) from which on a block is worth a report: 20 ms with vectors, seconds without. */
  private static final long BLOCK_TERMS = 1 << 30;

  /** The engine's threads each take 64 rows at a time: of a matrix 2048 columns, else all. */
  private static final int TILE_ROWS = 64;

  private static final int TILE_COLUMNS = 2048;

  /** Tiles of each thread in a block of a reduction: a thread may be alone with the last. */
  private static final int TILES = 16;

  /** The size of an entry of a reduction's result: a column and a double. */
  private static final int ENTRY_BYTES = Integer.BYTES + Double.BYTES;

  /** The size up to which the engine writes a diagonal q out as full factors, which makes it faster by far. */
  private static final long MAX_EXPANDED_BYTES = 1 << 27;

  /** The size of a block's parameters, far below the library's limit on a batch. */
  private static final long MAX_BYTES = 1L << 31;

  /** Takes a block: the rows of q from {@code first} on. */
  public interface Work {
    void compute(int first, Gaussians rows, Gaussians columns);
  }

  /** Goes through all blocks. Full covariances are checked before: an error in the last row is told at once. */
  public void forEach(Work work) {
    Gaussians columns = p.gaussians();
    List<Gaussians> made = p == q ? List.of() : checked();
    for (int first = 0, count; first < q.size(); first += count) {
      count = Math.min(rows, q.size() - first);
      Gaussians some =
          p == q && count == q.size()
              ? columns
              : first / rows < made.size()
                  ? made.get(first / rows)
                  : q.gaussians(first, first + count);
      try {
        work.compute(first, some, columns);
      } catch (InvalidGaussianException e) {
        throw Batch.error(e, q, first, p);
      }
      progress.advance(count);
    }
  }

  /** Checks all blocks of a full q, and returns as many as an eighth of the heap holds. */
  private List<Gaussians> checked() {
    List<Gaussians> made = new ArrayList<>();
    if (q.isFull()) {
      long bytes = Double.BYTES * terms(q.dimension(), true);
      long most = Math.max(rows, Runtime.getRuntime().maxMemory() / 8 / bytes);
      for (int row = 0, count; row < q.size(); row += count) {
        count = Math.min(rows, q.size() - row);
        Gaussians some = q.gaussians(row, row + count);
        if (row + count <= most) {
          made.add(some);
        }
      }
    }
    return made;
  }

  /** Returns how many rows of a matrix make a block. */
  public static int ofMatrix(Batch q, Batch p, int threads, long rowBytes, long blockBytes) {
    long across = Math.ceilDiv(p.size(), TILE_COLUMNS);
    return rows(q, p, blockBytes / rowBytes, Math.ceilDiv(2L * threads, across));
  }

  /** Returns how many rows make a block where a row's result has at most so many entries. */
  public static int ofReduction(Batch q, Batch p, int threads, long entries) {
    long most = Runtime.getRuntime().maxMemory() / 4 / ENTRY_BYTES;
    return rows(q, p, Math.min(most, Integer.MAX_VALUE - 8) / entries, (long) TILES * threads);
  }

  /** Returns at most {@code most} rows: as many as {@code tiles} take, or as are worth a report. */
  private static int rows(Batch q, Batch p, long most, long tiles) {
    boolean full = q.isFull() || p.isFull();
    long terms = terms(q.dimension(), full) * Math.max(q.columns(), p.columns());
    long rows = most;
    // A covariance takes as long to factor as 160 KLs at D = 8, 900 at D = 384, and the blocks of a
    // q that is p are factored again.
    if (p != q || !q.isFactored()) {
      long worth = Math.ceilDiv(BLOCK_TERMS / p.size() / terms, TILE_ROWS);
      rows = Math.min(rows, TILE_ROWS * Math.max(worth, tiles));
    }
    if (p != q || rows < q.size()) {
      long bytes = Math.min(Runtime.getRuntime().maxMemory() / 8, MAX_BYTES);
      rows =
          Math.min(rows, (full && !q.isFull() ? MAX_EXPANDED_BYTES : bytes) / Double.BYTES / terms);
    }
    return Math.clamp(rows, 1, q.size());
  }

  /** The numbers that hold a Gaussian, each a term of a KL. */
  private static long terms(long dimension, boolean full) {
    return full ? dimension * (dimension + 3) / 2 : dimension;
  }
}
