package dev.kullback.cli;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "pairwise",
    description = "Writes the matrix KL(q_i || p_j), [N,M].",
    customSynopsis =
        "kullback pairwise --mean Q.npy --std S.npy [--p-mean P.npy --p-std T.npy] -o OUT.npy"
            + " [...]",
    sortOptions = false)
final class Pairwise implements Callable<Integer> {
  private static final long MAX_BLOCK_BYTES = 1 << 26;

  /** Terms (i, j, h) from which on a block is worth a report: 20 ms with vectors, seconds without. */
  private static final long BLOCK_TERMS = 1 << 30;

  /** The engine's threads each take 64 rows times 2048 columns at a time. */
  private static final int TILE_ROWS = 64;

  private static final int TILE_COLUMNS = 2048;

  /** Up to which the engine writes a diagonal q out for a full p, to be faster by far. */
  private static final long MAX_EXPANDED_BYTES = 1 << 27;

  /** Of a block's factors, far below the library's limit on a batch. */
  private static final long MAX_FULL_BYTES = 1L << 31;

  @Mixin BatchOptions.Q qOptions;
  @Mixin BatchOptions.P pOptions;
  @Mixin ResultOptions result;
  @Mixin EngineOptions engineOptions;

  @Option(names = "--heatmap", paramLabel = "PNG", description = "Draw the matrix, too.")
  @Nullable Path heatmap;

  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    BatchOptions.Files qFiles = qOptions.files();
    BatchOptions.@Nullable Files pFiles = pOptions.files();
    ScalePolicy policy = result.policy(qFiles, pFiles);
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFile npy = new OutputFile(result.output);
        OutputFile png = heatmap == null ? null : new OutputFile(heatmap)) {
      if (png != null && png.hasTargetOf(npy)) {
        throw new UserError(result.output, "is the name of the matrix and of the heatmap");
      }
      Batch q = Batch.load(qFiles, policy, arena);
      Batch p = pFiles == null ? q : Batch.load(pFiles, policy, arena);
      p.requireFit(q);
      Heatmap image = png == null ? null : new Heatmap(q.size(), p.size());

      long start = System.nanoTime();
      Stats stats;
      try (Progress progress = new Progress(spec.commandLine().getErr(), q.size())) {
        long blockBytes = Math.min(MAX_BLOCK_BYTES, Runtime.getRuntime().maxMemory() / 8);
        stats = compute(engine, engineOptions.threads, q, p, npy, image, blockBytes, progress);
      }
      double seconds = (System.nanoTime() - start) * 1e-9;

      if (png != null && image != null) {
        png.write(image.png("KL(q \u2016 p), nats", label("q", qFiles), label("p", pFiles)));
      }
      npy.commit();
      if (png != null) {
        png.commit();
      }
      spec.commandLine()
          .getOut()
          .printf(
              Locale.ROOT,
              "KL(q||p): %d x %d, %s, in %.3g s; %s%nwrote %s%n",
              q.size(),
              p.size(),
              q.isDouble() || p.isDouble() ? "float64" : "float32",
              seconds,
              stats,
              heatmap == null ? result.output : result.output + " and " + heatmap);
      return 0;
    }
  }

  private static String label(String name, BatchOptions.@Nullable Files files) {
    return files == null ? name + " = q" : name + ": " + files.mean().getFileName();
  }

  /*
   * The matrix may be larger than the memory: it is computed in blocks of whole rows, in a buffer
   * that is then appended to the file. p is prepared once. Full covariances are all checked before
   * the first block: what is wrong in the last row is told at once.
   */
  static Stats compute(
      KlEngine engine,
      int threads,
      Batch q,
      Batch p,
      OutputFile npy,
      @Nullable Heatmap image,
      long blockBytes,
      Progress progress) {
    boolean isDouble = q.isDouble() || p.isDouble();
    ValueLayout element = element(q, p);
    byte[] header = Npy.header(element, q.size(), p.size());
    npy.requireSpace(header.length + bytes(q.size(), p.size(), element));
    int blockRows = blockRows(q, p, threads, blockBytes);
    Gaussians columns = p.gaussians();
    List<Gaussians> made = p == q ? List.of() : checked(q, blockRows);
    npy.write(header);

    long rowBytes = bytes(1, p.size(), element);
    Stats stats = new Stats();
    try (Arena arena = Arena.ofShared()) {
      MemorySegment buffer = arena.allocate(blockRows * rowBytes, 64);
      for (int row = 0, rows; row < q.size(); row += rows) {
        int first = row;
        rows = Math.min(blockRows, q.size() - first);
        Gaussians some =
            p == q && rows == q.size()
                ? columns
                : first / blockRows < made.size()
                    ? made.get(first / blockRows)
                    : q.gaussians(first, first + rows);
        MemorySegment block = buffer.asSlice(0, rows * rowBytes);
        engine.pairwise(some, columns, block);
        stats.add(block, isDouble);
        if (image != null) {
          image.add(first, block, isDouble);
        }
        npy.write(block);
        progress.rowsDone((long) first + rows);
      }
    }
    return stats;
  }

  /** How many rows of q make a block. */
  static int blockRows(Batch q, Batch p, int threads, long blockBytes) {
    boolean full = q.isFull() || p.isFull();
    long terms = terms(q.dimension(), full);
    long rows = blockBytes / bytes(1, p.size(), element(q, p));
    // A covariance takes as long to factor as 160 KLs at D = 8, 900 at D = 384, and the blocks of a
    // q that is p are factored again.
    if (p != q || q.files().kind() != Scale.COVARIANCE) {
      long across = Math.ceilDiv(p.size(), TILE_COLUMNS);
      long down = Math.ceilDiv(BLOCK_TERMS / p.size() / terms, TILE_ROWS);
      rows = Math.min(rows, TILE_ROWS * Math.max(down, Math.ceilDiv(2L * threads, across)));
    }
    if (full && (p != q || rows < q.size())) {
      long most = Math.min(Runtime.getRuntime().maxMemory() / 8, MAX_FULL_BYTES);
      rows = Math.min(rows, (q.isFull() ? most : MAX_EXPANDED_BYTES) / Double.BYTES / terms);
    }
    return Math.clamp(rows, 1, q.size());
  }

  /** The numbers that hold a Gaussian, each a term of a KL. */
  private static long terms(long dimension, boolean full) {
    return full ? dimension * (dimension + 3) / 2 : dimension;
  }

  /** The blocks of a full q, as many as an eighth of the heap holds; all are checked. */
  private static List<Gaussians> checked(Batch q, int blockRows) {
    List<Gaussians> made = new ArrayList<>();
    if (q.isFull()) {
      long bytes = Double.BYTES * terms(q.dimension(), true);
      long most = Math.max(blockRows, Runtime.getRuntime().maxMemory() / 8 / bytes);
      for (int row = 0, rows; row < q.size(); row += rows) {
        rows = Math.min(blockRows, q.size() - row);
        Gaussians some = q.gaussians(row, row + rows);
        if (row + rows <= most) {
          made.add(some);
        }
      }
    }
    return made;
  }

  /** Of the result. */
  private static ValueLayout element(Batch q, Batch p) {
    return q.isDouble() || p.isDouble() ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT;
  }

  /** The size of the matrix, which a long may not hold. */
  static long bytes(long rows, long columns, ValueLayout element) {
    try {
      return Math.multiplyExact(Math.multiplyExact(rows, columns), element.byteSize());
    } catch (ArithmeticException e) {
      throw new UserError(
          "a matrix of " + rows + " x " + columns + " entries fits in no file: split q");
    }
  }
}
