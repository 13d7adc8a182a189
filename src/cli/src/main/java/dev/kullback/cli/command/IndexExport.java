package dev.kullback.cli.command;

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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "export",
    description = {
      "Writes the Gaussians of an index to a folder, as they were given, by ascending id.",
      "mean.npy [N,D]; the scales in std.npy, variance.npy, log-variance.npy or precision.npy; ids.npy [N], int64."
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
    })
final class IndexExport implements Callable<Integer> {
  private static final List<ScaleKind> KINDS =
      List.of(ScaleKind.STD, ScaleKind.VARIANCE, ScaleKind.LOG_VARIANCE, ScaleKind.PRECISION);

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
      return new Part(batch.kind(), batch.isDouble());
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
    void begin(long rows, int d) {
      ValueLayout element = Npy.floats(isDouble);
      for (OutputFile file : files.subList(0, 2)) {
        file.requireSpace(Npy.bytes(rows, d, element));
        file.write(Npy.header(element, rows, d));
      }
      files.get(2).write(Npy.header(ValueLayout.JAVA_LONG, rows));
    }

    void add(long[] ids, Gaussians batch, double[] values) {
      for (int i = 0; i < ids.length; i++) {
        put(files.get(0), batch.mean(i, values));
        put(files.get(1), batch.scale(i, values));
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
      sizes.put(new Part(ScaleKind.STD, false), 0L);
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
      sink.begin(size.getValue(), d);
      sinks.put(part, sink);
    }
    double[] values = new double[d];
    try (Progress progress = Terminal.of(spec).progress(index.size())) {
      index.forEach((ids, batch) -> {
        Sink sink = sinks.get(Part.of(batch));
        if (sink != null) {
          sink.add(ids, batch, values);
        }
        progress.advance(ids.length);
      });
    }
  }
}
