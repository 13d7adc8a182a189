package dev.kullback.cli;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
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
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFile npy = new OutputFile(result.output);
        OutputFile png = heatmap == null ? null : new OutputFile(heatmap)) {
      if (png != null && png.hasTargetOf(npy)) {
        throw new UserError(result.output, "is the name of the matrix and of the heatmap");
      }
      Batch q = Batch.load(qFiles, result.policy(), arena);
      Batch p = pFiles == null ? q : Batch.load(pFiles, result.policy(), arena);
      p.requireFit(q);
      Heatmap image = png == null ? null : new Heatmap(q.size(), p.size());

      long start = System.nanoTime();
      Stats stats;
      try (Progress progress = new Progress(spec.commandLine().getErr(), q.size())) {
        long blockBytes = Math.min(MAX_BLOCK_BYTES, Runtime.getRuntime().maxMemory() / 8);
        stats = compute(engine, q, p, npy, image, blockBytes, progress);
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
   * that is then appended to the file. p is prepared once.
   */
  static Stats compute(
      KlEngine engine,
      Batch q,
      Batch p,
      OutputFile npy,
      @Nullable Heatmap image,
      long blockBytes,
      Progress progress) {
    boolean isDouble = q.isDouble() || p.isDouble();
    ValueLayout element = isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT;
    byte[] header = Npy.header(element, q.size(), p.size());
    npy.requireSpace(header.length + bytes(q.size(), p.size(), element));
    npy.write(header);

    long rowBytes = bytes(1, p.size(), element);
    long rows64 = Math.ceilDiv(BLOCK_TERMS / p.size() / p.dimension(), 64) * 64; // whole tiles
    int blockRows = Math.clamp(Math.min(blockBytes / rowBytes, Math.max(64, rows64)), 1, q.size());
    Stats stats = new Stats();
    Gaussians columns = p.gaussians();
    try (Arena arena = Arena.ofShared()) {
      MemorySegment buffer = arena.allocate(blockRows * rowBytes, 64);
      for (int row = 0, rows; row < q.size(); row += rows) {
        int first = row;
        rows = Math.min(blockRows, q.size() - first);
        Gaussians some = p == q && rows == q.size() ? columns : q.gaussians(first, first + rows);
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
