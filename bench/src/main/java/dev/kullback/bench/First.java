package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.row;

import com.sun.management.OperatingSystemMXBean;
import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;

/** The first answer of a process that has just started: the nearest references to one query, by each backend in a JVM of its own. */
final class First {
  private static final String USAGE =
      """
      Starts JVMs, with the vector and the scalar backend in turn. Each makes a batch of references and asks for the nearest of one
      query. The clock starts when main has made the arrays, before anything of the library is loaded.
        --references M   Gaussians to search (default 100000)
        --dimension D    (default 64)
        --k K            neighbors (default 10)
        --runs R         JVMs of each backend (default 5)
      Exit status: 0, or 1 when a figure was missed, or 2 for wrong usage.
      """;

  /** At most, over the scalar backend's. */
  private static final double WANTED = 1.2;

  private static final List<Backend> BACKENDS = List.of(Backend.AUTO, Backend.SCALAR);

  /** What an {@link Answer} prints of itself. */
  private static final List<String> FIGURES =
      List.of("batch, ms", "nearest, ms", "first answer, ms", "CPU, ms");

  private static final int ANSWER = 2;

  private First() {}

  public static void main(String[] args) {
    Map<String, Integer> defaults =
        Map.of("--references", 100_000, "--dimension", 64, "--k", 10, "--runs", 5);
    Command.run(
        "first",
        USAGE,
        defaults,
        args,
        options ->
            run(
                new Shape(options.get("--references"), options.get("--dimension")),
                options.get("--k"),
                options.get("--runs")));
  }

  private static boolean run(Shape references, int k, int runs) {
    System.out.println(Report.conditions(1, "References: " + references + ", k = " + k));
    double[][][] figures = new double[BACKENDS.size()][FIGURES.size()][runs];
    for (int r = 0; r < runs; r++) {
      for (int b = 0; b < BACKENDS.size(); b++) {
        System.err.print(BACKENDS.get(b) + " … ");
        double[] measured = measure(BACKENDS.get(b), references, k);
        System.err.println(number(measured[ANSWER]) + " ms");
        for (int f = 0; f < FIGURES.size(); f++) {
          figures[b][f][r] = measured[f];
        }
      }
    }
    header("median [least, most] of " + runs, "auto", "scalar", "auto over scalar", "wanted");
    boolean missed = false;
    for (int f = 0; f < FIGURES.size(); f++) {
      double ratio = quantile(figures[0][f], 0.5) / quantile(figures[1][f], 0.5);
      Bound bound = f == ANSWER ? Bound.AT_MOST : Bound.NONE;
      missed |= !bound.met(ratio, WANTED);
      row(
          FIGURES.get(f),
          spread(figures[0][f]),
          spread(figures[1][f]),
          "**" + number(ratio) + "**",
          bound.verdict(ratio, WANTED));
    }
    return missed;
  }

  private static String spread(double[] values) {
    return "%s [%s, %s]"
        .formatted(
            number(quantile(values, 0.5)),
            number(quantile(values, 0)),
            number(quantile(values, 1)));
  }

  /** In a new JVM with this one's options. */
  private static double[] measure(Backend backend, Shape references, int k) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    command.addAll(
        List.of(
            "-cp",
            System.getProperty("java.class.path"),
            Answer.class.getName(),
            backend.name(),
            references.toString(),
            "" + k));
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      List<String> lines = process.inputReader().readAllLines(); // warnings of the JVM's come first
      if (process.waitFor() != 0) {
        throw new Unavailable("a JVM of the " + backend + " backend: " + String.join("; ", lines));
      }
      return Stream.of(lines.getLast().split(" ")).mapToDouble(Double::parseDouble).toArray();
    } catch (IOException e) {
      throw new Unavailable("no JVM starts", e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** The new JVM: one answer, checked, and a line of {@link #FIGURES}. */
  static final class Answer {
    private Answer() {}

    public static void main(String[] args) {
      Shape shape = Shape.parse(args[1]);
      Batch references = Batch.ordinary(shape, Batch.P_SEED);
      int d = shape.dimension();
      Batch query = Batch.ordinary(new Shape(1, d), Batch.Q_SEED);
      int[] indices = new int[Integer.parseInt(args[2])];
      float[] values = new float[indices.length];
      OperatingSystemMXBean process =
          (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
      long cpu = process.getProcessCpuTime();
      long start = System.nanoTime();
      DiagonalGaussians p = DiagonalGaussians.ofStd(references.mean(), references.std(), d);
      DiagonalGaussians q = DiagonalGaussians.ofStd(query.mean(), query.std(), d);
      long made = System.nanoTime();
      try (KlEngine engine = KlEngine.builder().backend(Backend.valueOf(args[0])).build()) {
        engine.nearest(q, p, indices.length, indices, values);
      }
      long answered = System.nanoTime();
      cpu = process.getProcessCpuTime() - cpu;
      Agreement.nearest("nearest", query, references, indices.length, indices, values);
      double[] figures = {made - start, answered - made, answered - start, cpu};
      System.out.println(
          DoubleStream.of(figures)
              .mapToObj(nanos -> "" + nanos * 1e-6)
              .collect(Collectors.joining(" ")));
    }
  }
}
