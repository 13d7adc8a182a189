package dev.kullback.cli.command;

import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.KlIndex;
import dev.kullback.ScaleKind;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.OutputFiles;
import dev.kullback.cli.output.OutputFolder;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "export",
    description = {
      "Writes the Gaussians of an index to a folder, as they were given, by ascending id.",
      "mean.npy [N,D]; the scales in std.npy, variance.npy, log-variance.npy or precision.npy, or the full covariances in scale-tril.npy"
          + " if factors were given, and else in covariance.npy, [N,D,D]; ids.npy [N], int64."
          + " Where scales were given in several ways, or values as float32 and float64, each has files of its own, with"
          + " names such as std-float32-mean.npy.",
    },
    customSynopsis = "kullback index export FOLDER -o OUT [...]",
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback index export FOLDER -o OUT",
      "  kullback index create COPY --mean OUT/mean.npy --std OUT/std.npy --ids OUT/ids.npy",
      "  kullback index create COPY --mean OUT/mean.npy --covariance OUT/covariance.npy --ids OUT/ids.npy",
    })
final class IndexExport implements Callable<Integer> {
  private static final List<ScaleKind> KINDS =
      List.of(
          ScaleKind.STD,
          ScaleKind.VARIANCE,
          ScaleKind.LOG_VARIANCE,
          ScaleKind.PRECISION,
          ScaleKind.SCALE_TRIL,
          ScaleKind.COVARIANCE);

  private static final String IDS = "ids";
  private static final String MEAN = "mean";

  @Mixin IndexFolder folder;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT",
      required = true,
      description = "The folder of the files, which is made if it is not there.")
  Path output;

  @Mixin OutputOptions outputOptions;
  @Spec CommandSpec spec;

  /** Gaussians whose scales are of one kind, and whose values are of one type. */
  private record Part(ScaleKind kind, boolean isDouble) {
    static Part of(Gaussians batch) {
      return batch instanceof FullGaussians full && full.hasComputedFactors()
          ? new Part(ScaleKind.COVARIANCE, full.isDouble() || !areFloats(full))
          : new Part(batch.kind(), batch.isDouble());
    }

    /** Whether covariances are floats exactly, as they are where they were given as such, but hardly where they were computed of something else. */
    private static boolean areFloats(FullGaussians batch) {
      return IntStream.range(0, batch.size())
          .allMatch(i -> Arrays.stream(batch.covariance(i)).allMatch(x -> (float) x == x));
    }

    String kindName() {
      return kind.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** Returns the names of its arrays; {@code isOnly} if there is no other part. */
    List<String> names(boolean isOnly) {
      String prefix = isOnly ? "" : kindName() + '-' + Npy.dtype(Npy.floats(isDouble)) + '-';
      return List.of(prefix + MEAN, prefix + kindName(), prefix + IDS);
    }
  }

  /** The files of a part: means, scales and ids. */
  private record Sink(List<OutputFile> files, boolean isDouble) {
    void begin(ScaleKind kind, long rows, int d) {
      ValueLayout element = Npy.floats(isDouble);
      files.get(0).requireSpace(Npy.bytes(rows, d, element));
      files.get(0).write(Npy.header(element, rows, d));
      files.get(1).requireSpace(Npy.bytes(rows, kind.isFull() ? (long) d * d : d, element));
      files
          .get(1)
          .write(kind.isFull() ? Npy.header(element, rows, d, d) : Npy.header(element, rows, d));
      files.get(2).write(Npy.header(ValueLayout.JAVA_LONG, rows));
    }

    void add(ScaleKind kind, long[] ids, Gaussians batch, double[] mean, double[] scale) {
      for (int i = 0; i < ids.length; i++) {
        put(files.get(0), batch.mean(i, mean));
        put(
            files.get(1),
            kind == ScaleKind.COVARIANCE ? batch.covariance(i) : batch.scale(i, scale));
        files.get(2).putLong(ids[i]);
      }
    }

    private void put(OutputFile file, double[] values) {
      for (double value : values) {
        file.put(value, isDouble);
      }
    }
  }

  @Override
  public Integer call() throws IOException {
    Report report = new Report(spec);
    report.start();
    try (KlIndex index = folder.openReadOnly()) {
      Map<Part, Long> sizes = sizes(index);
      Map<String, Path> outputs = outputs(sizes);
      try (OutputFolder made = new OutputFolder(output);
          OutputFiles out = outputOptions.open(outputs.values())) {
        write(index, sizes, out);
        out.commit();
        made.keep();
      }
      report.line(
          "exported %s: %d Gaussians of dimension %d, in %.3g s",
          folder.path, index.size(), index.dimension(), report.seconds());
      if (sizes.size() > 1) {
        report.line(
            "they were given in %d ways: index create takes the files of one, and index add those of the others",
            sizes.size());
      }
      folder.describe(report, index);
      report.wrote(outputs);
      report.put("seconds", report.seconds());
      report.end();
      return 0;
    }
  }

  /** Counts the Gaussians of each part, in the order in which the index hands them on. */
  private static Map<Part, Long> sizes(KlIndex index) {
    Map<Part, Long> sizes = new LinkedHashMap<>();
    index.forEach((ids, batch) -> sizes.merge(Part.of(batch), (long) ids.length, Long::sum));
    if (sizes.isEmpty()) {
      sizes.put(
          new Part(index.hasFullCovariances() ? ScaleKind.SCALE_TRIL : ScaleKind.STD, false), 0L);
    }
    return sizes;
  }

  /** Names the outputs by what they hold, and refuses a folder that has other ones, which would seem to belong to them. */
  private Map<String, Path> outputs(Map<Part, Long> sizes) {
    Outputs.checkFolder(output);
    Outputs.checkOutside(output, folder.path);
    Map<String, Path> outputs = new LinkedHashMap<>();
    for (Part part : sizes.keySet()) {
      part.names(sizes.size() == 1)
          .forEach(name -> outputs.put(name.replace('-', '_'), file(name)));
    }
    for (Path file : outputs.values()) { // any may be a link
      Outputs.checkOutside(file, folder.path);
    }
    for (String name : allNames()) {
      if (!outputs.containsValue(file(name)) && Files.exists(file(name))) {
        throw new UserError(
            file(name), "is left of another export: remove it, or name another folder");
      }
    }
    return outputs;
  }

  private Path file(String name) {
    return output.resolve(name + ".npy");
  }

  private static List<String> allNames() {
    List<String> names = new ArrayList<>();
    for (ScaleKind kind : KINDS) {
      for (boolean isDouble : new boolean[] {false, true}) {
        names.addAll(new Part(kind, isDouble).names(false));
      }
      names.addAll(new Part(kind, false).names(true));
    }
    return names;
  }

  private void write(KlIndex index, Map<Part, Long> sizes, OutputFiles out) {
    Map<Part, Sink> sinks = new LinkedHashMap<>();
    int d = index.dimension();
    for (Map.Entry<Part, Long> size : sizes.entrySet()) {
      int first = 3 * sinks.size();
      Part part = size.getKey();
      Sink sink =
          new Sink(
              List.of(out.get(first), out.get(first + 1), out.get(first + 2)), part.isDouble());
      sink.begin(part.kind(), size.getValue(), d);
      sinks.put(part, sink);
    }
    double[] mean = new double[d];
    double[] scale = new double[index.hasFullCovariances() ? d * d : d];
    try (Progress progress = Terminal.of(spec).progress(index.size())) {
      index.forEach((ids, batch) -> {
        Part part = Part.of(batch);
        Sink sink = sinks.get(part);
        if (sink != null) {
          sink.add(part.kind(), ids, batch, mean, scale);
        }
        progress.advance(ids.length);
      });
    }
  }
}
