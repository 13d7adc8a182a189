package dev.kullback.bench;

import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/**
 * The rate of the matrix against B and against D, beside OpenBLAS's product of the same shape and what the machine can do, as a CSV
 * file that {@link Draw} makes a picture of. At each shape the contenders take turns, in one process.
 */
final class Rates {
  private static final String USAGE =
      """
      Measures rates against B and against D, in about 80 seconds, and writes them to bench/rates/NAME.csv. NAME is that of the
      instruction set, or the argument. bench/run draw makes pictures of all such files.
      """;

  static final String PREPARED = "kl-prepared";
  static final String ARRAYS = "kl";
  static final String OPENBLAS = "openblas";

  /** The column of {@link FusedMultiplyAdds}, in 10⁹ lanes a second. */
  static final String FMA = "fma";

  /** Name of the condition that {@link Draw} looks for. */
  static final String CPU = "CPU";

  static final String INSTRUCTIONS = "Instructions";
  static final String OPTIONS = "JVM options";
  static final String BLAS = "OpenBLAS";

  /** The dimension of the shapes that differ in size, and the size of those that differ in dimension. */
  static final int DIMENSION = 256;

  static final int SIZE = 1024;

  private static final int[] SIZES = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

  private static final int[] DIMENSIONS = {1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

  /** Over all shapes, so that a slow phase of the machine touches a part of a shape's rounds alone. */
  private static final int PASSES = 3;

  /** Seconds in a pass: of each contender at a shape, then of all in turn. */
  private static final double WARMUP = 0.1;

  private static final double SECONDS = 0.5;

  private Rates() {}

  public static void main(String[] args) {
    // After the folder, which bench/run gives.
    List<String> rest = List.of(args).subList(1, args.length);
    String name = Cpu.instructions().toLowerCase(Locale.ROOT).replace(' ', '-');
    int status = 0;
    try {
      if (rest.contains("--help") || rest.contains("-h")) {
        System.out.print(USAGE);
      } else if (rest.size() > 1 || !rest.stream().allMatch(n -> n.matches("\\w[\\w.-]*"))) {
        System.err.println("rates: one argument at most, a name for the file (--help)");
        status = 2;
      } else {
        System.out.println(write(Path.of(args[0]), rest.isEmpty() ? name : rest.getFirst()));
      }
    } catch (Unavailable | Agreement.Disagreement e) {
      System.err.println("rates: " + e.getMessage());
      status = 1;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    System.exit(status);
  }

  private static Path write(Path folder, String name) throws IOException {
    List<String> contenders = new ArrayList<>(List.of(PREPARED, ARRAYS, OPENBLAS, FMA));
    String openBlas;
    try {
      openBlas = OpenBlas.load().describe();
    } catch (Unavailable e) {
      openBlas = e.getMessage();
      contenders.remove(OPENBLAS);
    }
    String conditions =
        Report.conditions(
            1,
            INSTRUCTIONS + ": " + Cpu.instructions(),
            OPTIONS + ": " + options(),
            BLAS + ": " + openBlas,
            "In 10⁹ (i,j,h) a second, fma in 10⁹ lanes: medians, the columns in turn at each shape");
    StringBuilder csv = new StringBuilder(conditions.replaceAll("(?m)^-", "#"));
    csv.append("size,dimension,").append(String.join(",", contenders)).append('\n');

    List<Point> points = shapes().stream().map(shape -> new Point(shape, contenders)).toList();
    for (int pass = 1; pass <= PASSES; pass++) {
      System.err.println("pass " + pass + " of " + PASSES + " …");
      points.forEach(Point::measure);
    }
    for (Point point : points) {
      point.end();
      csv.append(point.shape.size()).append(',').append(point.shape.dimension()).append(',');
      csv.append(point.rates()).append('\n');
    }
    Path file = Files.createDirectories(folder).resolve(name + ".csv");
    Files.writeString(file, csv);
    return file;
  }

  /** Returns the options of this JVM that decide what code runs. */
  private static String options() {
    String options =
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
            .filter(option -> option.startsWith("-X") || option.startsWith("-Ddev.kullback."))
            .collect(Collectors.joining(" "));
    return options.isEmpty() ? "none" : options;
  }

  private static Set<Shape> shapes() {
    Set<Shape> shapes = new LinkedHashSet<>();
    for (int size : SIZES) {
      shapes.add(new Shape(size, DIMENSION));
    }
    for (int dimension : DIMENSIONS) {
      shapes.add(new Shape(SIZE, dimension));
    }
    return shapes;
  }

  /** A shape, the contenders that take turns at it, and their times so far. */
  private static final class Point {
    final Shape shape;
    private final List<Contender> contenders = new ArrayList<>();
    private final List<double[]> times = new ArrayList<>();

    Point(Shape shape, List<String> names) {
      this.shape = shape;
      for (String name : names) {
        contenders.add(
            name.equals(FMA) ? new FusedMultiplyAdds() : Contenders.checked(name, shape));
        times.add(new double[0]);
      }
    }

    void measure() {
      double[][] more = Ratios.interleaved(contenders, WARMUP, SECONDS);
      for (int c = 0; c < more.length; c++) {
        times.set(
            c,
            DoubleStream.concat(DoubleStream.of(times.get(c)), DoubleStream.of(more[c])).toArray());
      }
    }

    void end() {
      contenders.forEach(Contender::check);
      contenders.forEach(Contender::close);
    }

    /** Formats the rates, in 10⁹ a second. */
    String rates() {
      return IntStream.range(0, times.size())
          .mapToObj(
              c -> number(contenders.get(c).terms(shape) / quantile(times.get(c), 0.5) * 1e-9))
          .collect(Collectors.joining(","));
    }
  }
}
