package dev.kullback.cli.command;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Scale;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFailure;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.picture.Heatmap;
import dev.kullback.cli.picture.Pictures;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "demo",
    description = "Compares 1797 handwritten digits by the KL of their VAE posteriors.",
    footer = {
      "",
      "Examples:",
      "  kullback demo",
      "  kullback demo --out digits",
    })
final class Demo implements Callable<Integer> {
  private static final int DIGITS = 10;

  @Option(
      names = "--data",
      paramLabel = "DIR",
      description = "The sample data; default: src/demo/data in the repository.")
  @Nullable Path data;

  @Option(
      names = "--out",
      paramLabel = "DIR",
      description = "For digits-kl.npy and digits-kl.png; default: target/demo in the repository.")
  @Nullable Path output;

  @Mixin EngineOptions engineOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    Report report = new Report(spec);
    Path from = data != null ? data : home("--data").resolve("src/demo/data");
    Path to = output != null ? output : home("--out").resolve("target/demo");
    try {
      Files.createDirectories(to);
    } catch (FileAlreadyExistsException e) {
      throw new UserError(to, "is not a folder: name another");
    } catch (AccessDeniedException e) {
      throw new OutputFailure(to, e);
    } catch (IOException e) {
      throw new UserError(to, e);
    }
    @Nullable String noPicture = Pictures.problem();
    Path matrix = to.resolve("digits-kl.npy");
    Path heatmap = to.resolve("digits-kl.png");
    List<Path> inputs;
    try (Stream<Path> files = Files.list(from)) {
      inputs = files.toList();
    } catch (IOException e) {
      throw new UserError(from, e);
    }
    Outputs.check(matrix, "npy", inputs);
    Outputs.check(heatmap, "png", inputs);
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFile npy = new OutputFile(matrix);
        OutputFile png = noPicture != null ? null : new OutputFile(heatmap)) {
      if (png != null) {
        png.requireOtherTarget(npy);
      }
      Batch batch =
          Batch.load(
              new BatchOptions.Files(
                  from.resolve("digits_mean.npy"), Scale.STD, from.resolve("digits_std.npy")),
              ScalePolicy.STRICT,
              arena);
      int[] labels = labels(from.resolve("digits_label.npy"), batch.size(), arena);
      int[] referenceRows = referenceRows(from, batch.size(), arena);
      Npy.Array reference =
          reference(from.resolve("digits_kl_rows.npy"), referenceRows.length, batch.size(), arena);
      Batch local =
          Batch.load(
              new BatchOptions.Files(
                  from.resolve("local_mean.npy"),
                  Scale.SCALE_TRIL,
                  from.resolve("local_scale_tril.npy")),
              ScalePolicy.STRICT,
              arena);
      if (local.size() != batch.size()) {
        throw new UserError(local.files().mean(), "must have " + batch.size() + " rows");
      }
      Npy.Array localReference =
          reference(from.resolve("local_kl_rows.npy"), referenceRows.length, local.size(), arena);

      Gaussians q = batch.gaussians();
      Gaussians full = local.gaussians();
      float[] kl = new float[Math.multiplyExact(q.size(), q.size())];
      double cold = seconds(engine, q, kl);
      double warm = warmSeconds(engine, q, kl, cold);
      double worst = worstError(kl, q.size(), referenceRows, reference);
      npy.write(Npy.header(ValueLayout.JAVA_FLOAT, q.size(), q.size()));
      npy.write(arena.allocateFrom(ValueLayout.JAVA_FLOAT, kl));
      if (png != null) {
        png.write(picture(kl, labels));
      }
      npy.finish();
      if (png != null) {
        png.commit();
      }
      npy.commit();

      report.line(
          text(
              "%d handwritten digits, each a Gaussian in %d dimensions (the posterior of a VAE).",
              q.size(), q.dimension()));
      report.line(
          text(
              "KL(q_i || q_j) for all %,d pairs: %.1f ms the first time, %.1f ms when warm.",
              kl.length, cold * 1e3, warm * 1e3));
      report.line(text("Largest relative error against 80-bit reference rows: %.2g.", worst));
      report.line("");
      report.put("rows", q.size()).put("dimension", q.dimension());
      engineOptions.describe(report, engine);
      report.put("seconds", cold).put("seconds_warm", warm).put("worst_error", worst);
      table(report, kl, labels);
      cold = seconds(engine, full, kl);
      warm = warmSeconds(engine, full, kl, cold);
      worst = worstError(kl, full.size(), referenceRows, localReference);
      report.line("");
      report.line(
          text(
              "%d Gaussians with full covariance in %d dimensions, each fitted to the images nearest to one:",
              full.size(), full.dimension()));
      report.line(
          text(
              "KL for all pairs: %.1f ms the first time, %.1f ms when warm; largest relative error %.2g.",
              cold * 1e3, warm * 1e3, worst));
      report.line("");
      report.put("full_dimension", full.dimension()).put("full_seconds", cold);
      report.put("full_seconds_warm", warm).put("full_worst_error", worst);
      Map<String, Path> outputs = new LinkedHashMap<>();
      outputs.put("output", npy.name());
      if (png != null) {
        outputs.put("heatmap", png.name());
      }
      report.wrote(outputs);
      if (noPicture != null) {
        report.line("no picture: " + noPicture);
      }
      report.end();
      return 0;
    }
  }

  @SuppressWarnings("AnnotateFormatMethod")
  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }

  private static Path home(String option) {
    String home = System.getProperty("kullback.home");
    if (home == null) {
      throw new UserError("give " + option + ": kullback.home, the repository, is not set");
    }
    return Path.of(home);
  }

  private static int[] labels(Path file, int size, Arena arena) {
    int[] labels = ints(file, arena);
    if (labels.length != size || IntStream.of(labels).anyMatch(d -> d < 0 || d >= DIGITS)) {
      throw new UserError(file, "must have " + size + " labels from 0 to 9");
    }
    return labels;
  }

  private static int[] ints(Path file, Arena arena) {
    try {
      Npy.Array array = Npy.readInts(file, arena);
      return array.data().toArray((ValueLayout.OfInt) array.element());
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }

  private static double seconds(KlEngine engine, Gaussians q, float[] kl) {
    long start = System.nanoTime();
    engine.pairwise(q, q, kl);
    return (System.nanoTime() - start) * 1e-9;
  }

  private static int[] referenceRows(Path from, int size, Arena arena) {
    Path file = from.resolve("digits_kl_row_index.npy");
    int[] rows = ints(file, arena);
    if (rows.length == 0 || IntStream.of(rows).anyMatch(row -> row < 0 || row >= size)) {
      throw new UserError(file, "must name rows from 0 to " + (size - 1));
    }
    return rows;
  }

  /** The least of some calls once the VM has compiled what they run. */
  private static double warmSeconds(KlEngine engine, Gaussians q, float[] kl, double cold) {
    engine.warmUp(q, q);
    double warm = cold;
    for (double spent = 0; spent < 0.5; ) {
      double once = seconds(engine, q, kl);
      spent += once;
      warm = Math.min(warm, once);
    }
    return warm;
  }

  private static Npy.Array reference(Path file, int rows, int size, Arena arena) {
    try {
      Npy.Array exact = Npy.readFloats(file, arena);
      if (!Arrays.equals(exact.shape(), new long[] {rows, size})) {
        throw new UserError(file, "must have shape (%d, %d)".formatted(rows, size));
      }
      return exact;
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }

  private static double worstError(float[] kl, int size, int[] rows, Npy.Array exact) {
    return IntStream.range(0, rows.length * size)
        .mapToDouble(i -> {
          double want = exact.value(i);
          double got = kl[rows[i / size] * size + i % size];
          return got == want ? 0 : Math.abs(got - want) / want;
        })
        .max()
        .orElseThrow();
  }

  private static byte[] picture(float[] kl, int[] labels) throws IOException {
    int n = labels.length;
    int[] order =
        IntStream.range(0, n)
            .boxed()
            .sorted(Comparator.comparingInt(i -> labels[i]))
            .mapToInt(i -> i)
            .toArray();
    Heatmap heatmap = new Heatmap(n, n);
    float[] row = new float[n];
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) {
        row[j] = kl[order[i] * n + order[j]];
      }
      heatmap.add(i, MemorySegment.ofArray(row), false);
    }
    List<Heatmap.Group> groups = new ArrayList<>();
    for (int start = 0, end = 0; start < n; start = end) {
      int digit = labels[order[start]];
      while (end < n && labels[order[end]] == digit) {
        end++;
      }
      groups.add(new Heatmap.Group(Integer.toString(digit), start, end));
    }
    return heatmap.png(
        "KL(q \u2016 p) between handwritten digits, nats",
        "q: images, by digit",
        "p: images, by digit",
        groups);
  }

  private static void table(Report report, float[] kl, int[] labels) {
    int n = labels.length;
    double[][] sum = new double[DIGITS][DIGITS];
    int[][] count = new int[DIGITS][DIGITS];
    int[] images = new int[DIGITS];
    int[] agree = new int[DIGITS];
    for (int i = 0; i < n; i++) {
      int nearest = i == 0 ? n - 1 : 0;
      for (int j = 0; j < n; j++) {
        if (j != i) {
          sum[labels[i]][labels[j]] += kl[i * n + j];
          count[labels[i]][labels[j]]++;
          nearest = kl[i * n + j] < kl[i * n + nearest] ? j : nearest;
        }
      }
      images[labels[i]]++;
      agree[labels[i]] += labels[nearest] == labels[i] ? 1 : 0;
    }
    report.line("Mean KL from a digit (row) to another (column), and its nearest other digit:");
    StringBuilder line = new StringBuilder("    p = ");
    IntStream.range(0, DIGITS).forEach(d -> line.append(text("%6d", d)));
    report.line(line + "   nearest   1-NN");
    List<List<Double>> means = new ArrayList<>();
    for (int q = 0; q < DIGITS; q++) {
      int digit = q;
      double[] mean =
          IntStream.range(0, DIGITS).mapToDouble(p -> sum[digit][p] / count[digit][p]).toArray();
      int nearest =
          IntStream.range(0, DIGITS)
              .filter(p -> p != digit)
              .boxed()
              .min(Comparator.comparingDouble(p -> mean[p]))
              .orElseThrow();
      line.setLength(0);
      line.append("q = ").append(q).append("   ");
      for (double value : mean) {
        line.append(text("%6.0f", value));
      }
      report.line(line + text("%10d%6.1f %%", nearest, 100.0 * agree[q] / images[q]));
      means.add(DoubleStream.of(mean).boxed().toList());
    }
    double all = (double) IntStream.of(agree).sum() / n;
    report.line(
        text(
            "1-NN: how often the nearest other image shows the same digit: %.1f %% in all.",
            100 * all));
    report.put("mean_by_digit", means).put("same_digit", all);
  }
}
