package dev.kullback.cli.command;

import dev.kullback.Divergence;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Stats;
import dev.kullback.cli.picture.Heatmap;
import dev.kullback.cli.picture.Pictures;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

@Command(
    name = "pairwise",
    description = "Writes the matrix KL(q_i || p_j), [N,M].",
    customSynopsis =
        "kullback pairwise --mean Q.npy --std S.npy [--p-mean P.npy --p-std T.npy] -o OUT.npy"
            + " [...]",
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback pairwise --mean Q.npy --std S.npy --p-mean P.npy --p-std T.npy -o kl.npy",
      "  kullback pairwise --mean Q.npy --log-variance L.npy --clamp -o kl.npy --heatmap kl.png",
    })
final class Pairwise extends PairCommand {
  private static final long MAX_BLOCK_BYTES = 1 << 26;

  @Option(names = "--heatmap", paramLabel = "PNG", description = "Draw the matrix, too.")
  @Nullable Path heatmap;

  @Override
  Map.@Nullable Entry<String, Path> secondOutput() {
    if (heatmap == null) {
      return null;
    }
    Pictures.require();
    return Map.entry("heatmap", heatmap);
  }

  @Override
  String secondFormat() {
    return "png";
  }

  @Override
  void run(KlEngine engine, Inputs inputs, OutputFile npy, @Nullable OutputFile png, Report report)
      throws IOException {
    Batch q = inputs.loadQ();
    Batch p = inputs.loadP(q);
    describe(report, engine, q, p.size());
    Heatmap image = png == null ? null : new Heatmap(q.size(), p.size());
    report.start();
    Stats stats;
    try (Progress progress = progress(q.size())) {
      int blockRows = blockRows(q, p, engineOptions.threads());
      stats = compute(new RowBlocks(q, p, blockRows, progress), npy, image, engine::pairwise);
    }
    if (png != null && image != null) {
      String columns = p == q ? "p = q" : label("p", p);
      png.write(image.png(title(), label("q", q), columns, List.of()));
    }
    stats.describe(
        report,
        engineOptions.formula("q", "p") + ": " + q.size() + " x " + p.size(),
        q.dimension(),
        Batch.element(q, p));
  }

  private String title() {
    Divergence divergence = engineOptions.divergence();
    return divergence.equals(Divergence.KL)
        ? "KL(q \u2016 p), nats"
        : engineOptions.formula("q", "p");
  }

  private static String label(String name, Batch batch) {
    return name + ": " + batch.files().mean().getFileName();
  }

  /** Computes a block of the matrix. */
  interface Block {
    void compute(Gaussians rows, Gaussians columns, MemorySegment out);
  }

  /** Computes the matrix, which may be larger than the memory, block by block in a buffer that is appended to the file. */
  static Stats compute(RowBlocks blocks, OutputFile npy, @Nullable Heatmap image, Block work) {
    int size = blocks.q().size();
    int columns = blocks.p().size();
    ValueLayout element = Batch.element(blocks.q(), blocks.p());
    boolean isDouble = element.byteSize() == Double.BYTES;
    byte[] header = Npy.header(element, size, columns);
    npy.requireSpace(header.length + Npy.bytes(size, columns, element));
    npy.write(header);

    long rowBytes = Npy.bytes(1, columns, element);
    Stats stats = new Stats();
    try (Arena arena = Arena.ofShared()) {
      MemorySegment buffer = arena.allocate(blocks.rows() * rowBytes, 64);
      blocks.forEach((first, rows, p) -> {
        MemorySegment block = buffer.asSlice(0, rows.size() * rowBytes);
        work.compute(rows, p, block);
        stats.add(block, isDouble);
        if (image != null) {
          image.add(first, block, isDouble);
        }
        npy.write(block);
      });
    }
    return stats;
  }

  /** Returns how many rows of q make a block of usual size. */
  static int blockRows(Batch q, Batch p, int threads) {
    return blockRows(
        q, p, threads, Math.min(MAX_BLOCK_BYTES, Runtime.getRuntime().maxMemory() / 8));
  }

  /** Returns how many rows of q make a block. */
  static int blockRows(Batch q, Batch p, int threads, long blockBytes) {
    return RowBlocks.ofMatrix(
        q, p, threads, Npy.bytes(1, p.size(), Batch.element(q, p)), blockBytes);
  }
}
