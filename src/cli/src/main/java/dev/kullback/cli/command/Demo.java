package dev.kullback.cli.command;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFailure;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.OutputFiles;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.picture.Heatmap;
import dev.kullback.cli.picture.Pictures;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
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

  /** Seconds of calls that got no faster, after which they are warm. {@code engine.warmUp} took 13 s, as it calls all operations. */
  private static final double UNCHANGED_SECONDS = 0.5;

  private static final double GAIN = 0.9;

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

  @Mixin OutputOptions outputOptions;
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
    Map<String, Path> outputs = new LinkedHashMap<>();
    outputs.put("output", to.resolve("digits-kl.npy"));
    if (noPicture == null) {
      outputs.put("heatmap", to.resolve("digits-kl.png"));
    }
    List<Path> inputs;
    try (Stream<Path> files = Files.list(from)) {
      inputs = files.toList();
    } catch (IOException e) {
      throw new UserError(from, e);
    }
    outputs.values().forEach(name -> Outputs.check(name, Input.suffix(name), inputs));
    // An engine that is ready stays so when other kinds of batches come: hence two.
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        KlEngine fullEngine = engineOptions.engine();
        OutputFiles out = outputOptions.open(outputs.values())) {
      OutputFile npy = out.get(0);
      OutputFile png = out.second();
      Batch batch = load(from, "digits_mean.npy", ScaleKind.STD, "digits_std.npy", arena);
      int n = batch.size();
      Path labelFile = from.resolve("digits_label.npy");
      String wanted = "must have " + n + " labels from 0 to 9";
      int[] labels = ints(labelFile, DIGITS - 1, wanted, arena);
      if (labels.length != n) {
        throw new UserError(labelFile, wanted);
      }
      int[] referenceRows =
          ints(
              from.resolve("digits_kl_row_index.npy"),
              n - 1,
              "must name rows from 0 to " + (n - 1),
              arena);
      Npy.Array reference =
          reference(from.resolve("digits_kl_rows.npy"), referenceRows.length, n, arena);
      Batch local =
          load(from, "local_mean.npy", ScaleKind.SCALE_TRIL, "local_scale_tril.npy", arena);
      if (local.size() != n) {
        throw new UserError(local.files().mean(), "must have " + n + " rows");
      }
      Npy.Array localReference =
          reference(from.resolve("local_kl_rows.npy"), referenceRows.length, n, arena);

      Gaussians q = batch.gaussians();
      Gaussians full = local.gaussians();
      float[] kl = new float[Math.multiplyExact(n, n)];
      report.line(
          "%d handwritten digits, each a Gaussian in %d dimensions (the posterior of a VAE).",
          n, q.dimension());
      report.print(); // before what takes some seconds
      Measured diagonal = measure(engine, q, kl, referenceRows, reference);
      npy.write(Npy.header(ValueLayout.JAVA_FLOAT, n, n));
      npy.write(arena.allocateFrom(ValueLayout.JAVA_FLOAT, kl));
      if (png != null) {
        png.write(picture(kl, labels));
      }
      out.commit();

      report.line(
          "KL(q_i || q_j) for all %,d pairs: %.1f ms the first time, %.1f ms when warm.",
          kl.length, diagonal.cold() * 1e3, diagonal.warm() * 1e3);
      report.line("Largest relative error against 80-bit reference rows: %.2g.", diagonal.worst());
      report.line("");
      report.put("rows", n).put("dimension", q.dimension());
      engineOptions.describe(report, engine);
      report.put("seconds", diagonal.cold()).put("seconds_warm", diagonal.warm());
      report.put("worst_error", diagonal.worst());
      table(report, kl, labels);
      report.print();
      Measured measured = measure(fullEngine, full, kl, referenceRows, localReference);
      report.line("");
      report.line(
          "%d Gaussians with full covariance in %d dimensions, each fitted to the images nearest to one:",
          full.size(), full.dimension());
      report.line(
          "KL for all pairs: %.1f ms the first time, %.1f ms when warm; largest relative error %.2g.",
          measured.cold() * 1e3, measured.warm() * 1e3, measured.worst());
      report.line("");
      report.put("full_dimension", full.dimension()).put("full_seconds", measured.cold());
      report.put("full_seconds_warm", measured.warm()).put("full_worst_error", measured.worst());
      report.wrote(outputs);
      if (noPicture != null) {
        report.line("no picture: " + noPicture);
      }
      report.end();
      return 0;
    }
  }

  private static Batch load(Path from, String mean, ScaleKind kind, String scale, Arena arena) {
    return Batch.load(
        new BatchOptions.Files(from.resolve(mean), kind, from.resolve(scale)),
        ScalePolicy.STRICT,
        arena);
  }

  private static Path home(String option) {
    String home = System.getProperty("dev.kullback.home");
    if (home == null) {
      throw new UserError("give " + option + ": dev.kullback.home, the repository, is not set");
    }
    return Path.of(home);
  }

  /** Reads numbers from 0 to {@code most}; {@code wanted} says what a file must have. */
  private static int[] ints(Path file, int most, String wanted, Arena arena) {
    Npy.Array array = Npy.read(file, f -> Npy.readInts(f, arena));
    int[] ints = array.data().toArray((ValueLayout.OfInt) array.element());
    if (ints.length == 0 || IntStream.of(ints).anyMatch(i -> i < 0 || i > most)) {
      throw new UserError(file, wanted);
    }
    return ints;
  }

  private static double seconds(KlEngine engine, Gaussians q, float[] kl) {
    long start = System.nanoTime();
    engine.pairwise(q, q, kl);
    return (System.nanoTime() - start) * 1e-9;
  }

  /** The seconds of the first call and of a warm one, and the largest relative error. */
  private record Measured(double cold, double warm, double worst) {}

  private static Measured measure(
      KlEngine engine, Gaussians q, float[] kl, int[] rows, Npy.Array exact) {
    double cold = seconds(engine, q, kl);
    double warm = cold;
    for (double unchanged = 0; unchanged < UNCHANGED_SECONDS || !engine.isReady(); ) {
      double once = seconds(engine, q, kl);
      unchanged = once < GAIN * warm ? 0 : unchanged + once;
      warm = Math.min(warm, once);
    }
    return new Measured(cold, warm, worstError(kl, q.size(), rows, exact));
  }

  private static Npy.Array reference(Path file, int rows, int size, Arena arena) {
    Npy.Array exact = Npy.read(file, f -> Npy.readFloats(f, arena));
    if (!Arrays.equals(exact.shape(), new long[] {rows, size})) {
      throw new UserError(file, "must have shape (%d, %d)".formatted(rows, size));
    }
    return exact;
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
    IntStream.range(0, DIGITS).forEach(d -> line.append(Text.format("%6d", d)));
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
        line.append(Text.format("%6.0f", value));
      }
      report.line(line + Text.format("%10d%6.1f %%", nearest, 100.0 * agree[q] / images[q]));
      means.add(DoubleStream.of(mean).boxed().toList());
    }
    double all = (double) IntStream.of(agree).sum() / n;
    report.line(
        "1-NN: how often the nearest other image shows the same digit: %.1f %% in all.", 100 * all);
    report.put("mean_by_digit", means).put("same_digit", all);
  }
}
