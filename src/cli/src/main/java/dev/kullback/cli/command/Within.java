package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFailure;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Stats;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.Map;
import java.util.stream.LongStream;
import java.util.zip.Deflater;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

@Command(
    name = "within",
    description = {
      "Writes the pairs with KL(q_i || p_j) <= R, sparse.",
      "By row, then column: the values to -o, [P], and their (i, j) to --indices, [P,2]; or both to"
          + " an -o that ends in .npz, as a CSR matrix for scipy.sparse.load_npz.",
    },
    customSynopsis = {
      "kullback within --radius R --mean Q.npy --std S.npy [--p-mean P.npy --p-std T.npy]",
      "                       (--indices I.npy -o V.npy | -o OUT.npz) [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback within --radius 0.5 --mean Q.npy --std S.npy --indices I.npy -o V.npy",
      "  kullback within --radius 0.5 --mean Q.npy --std S.npy -o near.npz",
    })
final class Within extends PairCommand {
  @Option(
      names = "--radius",
      order = FIRST,
      paramLabel = "R",
      required = true,
      converter = Radius.class,
      description = "In nats, >= 0; 0 finds equal Gaussians, inf all.")
  double radius;

  @Option(
      names = "--indices",
      order = FIRST,
      paramLabel = "I.npy",
      description = "Where rows and columns go, int32; not with an .npz file.")
  @Nullable Path indices;

  @Option(
      names = "--reverse",
      order = FIRST,
      description = "Those with KL(p_j || q_i) <= R instead.")
  boolean reverse;

  static final class Radius implements ITypeConverter<Double> {
    @Override
    public Double convert(String text) {
      try {
        double radius =
            text.equalsIgnoreCase("inf") ? Double.POSITIVE_INFINITY : Double.parseDouble(text);
        if (radius >= 0) {
          return radius;
        }
      } catch (NumberFormatException e) {
        // told below
      }
      throw new TypeConversionException("'" + text + "' is not a radius: give one >= 0, or inf");
    }
  }

  @Override
  String format() {
    return Input.suffix(result.output).equals("npz") ? "npz" : "npy";
  }

  @Override
  Map.@Nullable Entry<String, Path> secondOutput() {
    boolean npz = format().equals("npz");
    if (npz && indices != null) {
      throw new UserError(result.output, "holds the indices, too: leave out --indices");
    }
    if (!npz && indices == null) {
      throw new UserError(result.output, "give --indices I.npy, too, or -o a name ending in .npz");
    }
    return indices == null ? null : Map.entry("indices", indices);
  }

  @Override
  void run(
      KlEngine engine,
      Inputs inputs,
      OutputFile output,
      @Nullable OutputFile pairs,
      Report report) {
    Batch q = inputs.loadQ();
    Batch p = inputs.loadP(q);
    describe(report, engine, q, p.size());
    // Twice, as the engine gathers what its threads have found.
    int blockRows = RowBlocks.ofReduction(q, p, engineOptions.threads, 2L * p.size());
    report.start();
    Stats stats;
    try (Progress progress = progress(q.size())) {
      RowBlocks blocks = new RowBlocks(q, p, blockRows, progress);
      stats =
          pairs == null
              ? sparse(engine, blocks, output)
              : coordinates(engine, blocks, output, pairs);
    }
    String what =
        "%s <= %s: %d of %d x %d"
            .formatted(
                reverse ? "KL(p_j||q_i)" : "KL(q_i||p_j)",
                Text.number(radius),
                stats.count(),
                q.size(),
                p.size());
    report.put("radius", radius).put("reverse", reverse);
    stats.describe(report, what, Batch.element(q, p));
  }

  Stats coordinates(KlEngine engine, RowBlocks blocks, OutputFile values, OutputFile pairs) {
    Stats stats = new Stats();
    ValueLayout element = Batch.element(blocks.q(), blocks.p());
    values.write(Npy.header(element, 0)); // of the length that a header with any number has
    pairs.write(Npy.header(ValueLayout.JAVA_INT, 0, 2));
    find(engine, blocks, stats, values, pairs, true);
    values.replaceHeader(Npy.header(element, stats.count()));
    pairs.replaceHeader(Npy.header(ValueLayout.JAVA_INT, stats.count(), 2));
    return stats;
  }

  /** Writes a CSR matrix. An archive holds one array after the other, so they wait in files that are never committed. */
  Stats sparse(KlEngine engine, RowBlocks blocks, OutputFile npz) {
    Stats stats = new Stats();
    Batch q = blocks.q();
    Batch p = blocks.p();
    Path name = npz.name();
    try (OutputFile values = new OutputFile(name);
        OutputFile columns = new OutputFile(name);
        OutputFile starts = new OutputFile(name);
        ZipOutputStream zip = new ZipOutputStream(npz.stream())) {
      long[] start = find(engine, blocks, stats, values, columns, false);
      boolean fits = stats.count() <= Integer.MAX_VALUE; // SciPy wants indices and indptr alike
      LongStream.of(start).forEach(fits ? s -> starts.putInt((int) s) : starts::putLong);
      zip.setLevel(Deflater.BEST_SPEED);
      array(zip, "indices", Npy.header(ValueLayout.JAVA_INT, stats.count()));
      columns.copyTo(zip);
      ValueLayout startElement = fits ? ValueLayout.JAVA_INT : ValueLayout.JAVA_LONG;
      array(zip, "indptr", Npy.header(startElement, start.length));
      starts.copyTo(zip);
      array(zip, "format", Npy.header("|S3"));
      zip.write("csr".getBytes(StandardCharsets.US_ASCII));
      array(zip, "shape", Npy.header(ValueLayout.JAVA_LONG, 2));
      ByteBuffer shape = ByteBuffer.allocate(2 * Long.BYTES).order(ByteOrder.nativeOrder());
      zip.write(shape.putLong(q.size()).putLong(p.size()).array());
      zip.setLevel(Deflater.NO_COMPRESSION); // divergences would shrink by 14 % at 50 MB a second
      array(zip, "data", Npy.header(Batch.element(q, p), stats.count()));
      values.copyTo(zip);
    } catch (IOException e) {
      throw new OutputFailure(name, e);
    }
    return stats;
  }

  /** Begins an array; its time is a constant, so that the same matrix makes the same file. */
  private static void array(ZipOutputStream zip, String name, byte[] header) throws IOException {
    ZipEntry entry = new ZipEntry(name + ".npy");
    entry.setTimeLocal(LocalDateTime.of(1980, 2, 1, 0, 0));
    zip.putNextEntry(entry);
    zip.write(header);
  }

  /** Appends values and columns, with {@code withRows} each after its row; returns where the rows begin, and the last one ends. */
  private long[] find(
      KlEngine engine,
      RowBlocks blocks,
      Stats stats,
      OutputFile values,
      OutputFile columns,
      boolean withRows) {
    boolean isDouble = Batch.element(blocks.q(), blocks.p()).byteSize() == Double.BYTES;
    long[] start = new long[blocks.q().size() + 1];
    blocks.forEach((first, rows, p) -> {
      Neighbors found =
          reverse ? engine.withinReverse(rows, p, radius) : engine.within(rows, p, radius);
      for (int i = 0; i < rows.size(); i++) {
        for (int r = 0; r < found.count(i); r++) {
          if (withRows) {
            columns.putInt(first + i);
          }
          columns.putInt(found.index(i, r));
          stats.add(values.put(found.value(i, r), isDouble));
        }
        start[first + i + 1] = stats.count();
      }
    });
    return start;
  }
}
