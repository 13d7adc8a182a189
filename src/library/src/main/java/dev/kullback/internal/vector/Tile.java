package dev.kullback;

import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import org.jspecify.annotations.Nullable;

/** One thread's output and working memory in a pairwise call; pooled, so that warm calls allocate nothing. */
final class Tile {
  static final int ROWS = 16;

  /** Doubles of a cache line. Line by line instead of row by row makes nearestReverse over nearest 1.42 instead of 2.19, 4096 x 4096 x 32 (Zen 3). */
  private static final int LINE = 8;

  private static final int CAPACITY = ROWS * DiagonalGaussians.WIDEST_PANEL;

  /** The tile of the call's caller, whose interruption ends the call. */
  private Tile lead = this;

  @Nullable Thread caller;

  /** Of a lead: the call has failed. */
  volatile boolean ended;

  /** {@code KL(q_i ‖ p_j)} goes to {@code out[base + i·stride + j]}, modulo 2³², of the output that is not null. */
  float @Nullable [] out32;

  double @Nullable [] out64;
  int base;
  int stride;

  /** Corner and valid extent of the tile in the matrix. */
  int row;

  int column;
  int rows;
  int columns;

  /** Accumulators of a micro-kernel. */
  final float[] acc32 = new float[CAPACITY];

  final double[] acc64 = new double[CAPACITY];

  /** The tile's S by the fast kernel, row-major, and by the one that refines it. */
  final double[] sum = new double[CAPACITY];

  final double[] refined = new double[CAPACITY];

  /** The batches of a call in float. */
  @Nullable Packed<float[]> q32;

  @Nullable Packed<float[]> p32;

  /** Panels of batches used for the first time, which may never be again, by role; grown on demand. */
  final float[][] panels32 = {{}, {}};

  /** A block's rows, packed; grown on demand. */
  float[] rows32 = {};

  double[] rows64 = {};

  /** Working memory of full covariances. */
  final FullScratch full = new FullScratch();

  final ExactKl exact = new ExactKl();

  private final Checkpoint checkpoint = new Checkpoint();

  /** Per row, one bit a column: the entries that the last judgement found within the contract, and possibly near. */
  final long[] certain = new long[ROWS];

  final long[] close = new long[ROWS];

  /** Per row, one bit a column: the entries that float settles by shorter chunks. */
  final long[] foreseen = new long[ROWS];

  /** Per row, one bit a column: the entries still to be recomputed. */
  final long[] open = new long[ROWS];

  /** Whether the last tile was near throughout, so that the next one probably is. */
  boolean near;

  /** The reductions of the calls that this tile leads, and by row of a band what they have so far. */
  final NearestRows nearest = new NearestRows();

  final RowStatistic statistic = new RowStatistic();
  final KlTile shown = new KlTile();

  /** How its vectors or none go through what a band has, and scratch for that. */
  final RowScan scan;

  final double[] least = new double[NearestRows.MOST_GROUPS];
  private int[] positions = {};

  /** First row of the band. */
  int band;

  private final Candidates.Scratch sorting;
  private Candidates[] candidates = {};

  /** Lists that the call has used. */
  private int used;

  private double[] state = {};

  /** A block on its way to a memory segment or a reduction, made on first use. */
  private float @Nullable [] block32;

  private double @Nullable [] block64;

  /** Where a block is transposed to. */
  private double[] spare = {};

  Tile(RowScan scan) {
    this.scan = scan;
    sorting = new Candidates.Scratch(scan);
  }

  void useBlock(boolean wide, int capacity) {
    out32 = null;
    out64 = null;
    if (wide) {
      if (block64 == null || block64.length < capacity) {
        block64 = new double[capacity];
      }
      out64 = block64;
    } else {
      if (block32 == null) {
        block32 = new float[capacity];
      }
      out32 = block32;
    }
  }

  /** The block that {@link #useBlock} made. */
  double[] block64() {
    return Objects.requireNonNull(block64);
  }

  /** Transposes what {@link #block64} holds, row-major {@code [rows, columns]}. */
  void transposeBlock(int rows, int columns) {
    double[] from = block64();
    if (spare.length < from.length) {
      spare = new double[from.length];
    }
    for (int first = 0; first < rows; first += LINE) {
      int end = Math.min(first + LINE, rows);
      for (int j = 0; j < columns; j++) {
        for (int i = first; i < end; i++) {
          spare[j * rows + i] = from[i * columns + j];
        }
      }
    }
    block64 = spare;
    spare = from;
  }

  /** Those of row i of a band. */
  Candidates candidates(int i) {
    if (candidates.length <= i) {
      int length = candidates.length;
      candidates = Arrays.copyOf(candidates, Math.max(i + 1, KlEngine.REDUCED_ROWS));
      for (int k = length; k < candidates.length; k++) {
        candidates[k] = new Candidates(sorting);
      }
    }
    used = Math.max(used, i + 1);
    return candidates[i];
  }

  /** Scratch for the positions of so many values. */
  int[] positions(int length) {
    if (positions.length < length) {
      positions = new int[length];
    }
    return positions;
  }

  /** At least {@code length} numbers, the same while the band is. */
  double[] state(int length) {
    if (state.length < length) {
      state = new double[length];
    }
    return state;
  }

  /** Before each block: throws if the call is to end. */
  void checkInterrupt() {
    Thread thread = lead.caller;
    if (thread != null) {
      checkInterrupt(thread);
    }
    if (lead.ended) {
      throw new CancellationException("another thread of the call failed");
    }
  }

  /** Within a block, after so many terms of the vector kernels or what takes as long: as {@link Checkpoint} says. */
  void pass(long terms) {
    if (checkpoint.isDue(terms)) {
      checkInterrupt();
      Checkpoint.yieldCarrier();
    }
  }

  static void checkInterrupt(Thread caller) {
    if (caller.isInterrupted()) {
      throw interrupted();
    }
  }

  static CancellationException interrupted() {
    return new CancellationException("interrupted; what was computed is incomplete");
  }

  void put(int i, int j, double kl) {
    int to = base + i * stride + j;
    if (out32 != null) {
      out32[to] = (float) kl;
    } else if (out64 != null) {
      out64[to] = kl;
    }
  }

  /** Takes over what the call prepared. */
  void share(Tile other) {
    lead = other;
    q32 = other.q32;
    p32 = other.p32;
    full.q = other.full.q;
    full.p = other.full.p;
  }

  /** Drops the caller's arrays and batches before the tile goes back to the pool. */
  void clear() {
    for (; used > 0; used--) {
      candidates[used - 1].trim();
    }
    sorting.trim();
    checkpoint.begin();
    lead = this;
    caller = null;
    ended = false;
    q32 = null;
    p32 = null;
    out32 = null;
    out64 = null;
    near = false;
    nearest.clear();
    statistic.clear();
    full.clear();
  }
}
