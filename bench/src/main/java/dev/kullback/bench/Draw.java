package dev.kullback.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Pictures of what {@link Rates} has measured: beside each CSV file one in SVG, the rates against B on the left and against D on the
 * right. It is written by hand, so that a picture depends on its numbers alone, and not on the fonts of the machine that draws it.
 */
final class Draw {
  private static final int WIDTH = 960;
  private static final int HEIGHT = 440;

  /** The panels' axes: of rates, from top to bottom, and where those of B and of D begin. */
  private static final int TOP = 122;

  private static final int BOTTOM = 386;
  private static final int LEFT = 44;
  private static final int RIGHT = 532;
  private static final int PANEL = 404;

  private static final int LEGEND = 70;

  /** Width of the legend: more than any of its names needs. */
  private static final int LEGEND_WIDTH = 270;

  private static final int MAX_TICKS = 7;

  private static final String TEXT = "#24292f";
  private static final String FAINT = "#57606a";
  private static final String GRID = "#e4e7ea";
  private static final String DASHES = " stroke-dasharray=\"6 4\"";

  /** A column, and how many fma an (i,j,h) takes it at least. */
  private record Curve(String column, String name, String color, int fma) {}

  private static final List<Curve> CURVES =
      List.of(
          new Curve(Rates.ARRAYS, "KL, from arrays", "#54aeff", 2),
          new Curve(Rates.PREPARED, "KL, batch prepared", "#0550ae", 2),
          new Curve(Rates.OPENBLAS, "OpenBLAS sgemm of the same shape", "#bc4c00", 1));

  /** Highest rate that the processor's fma allow, at so many for a term. */
  private record Ceiling(int fma, String name, String color) {}

  private static final List<Ceiling> CEILINGS =
      List.of(
          new Ceiling(2, "ceiling of two fma a term", "#0550ae"),
          new Ceiling(1, "ceiling of one fma a term", "#bc4c00"));

  private final Map<String, String> conditions = new HashMap<>();
  private final List<Map<String, Double>> rows = new ArrayList<>();
  private final List<Curve> curves;
  private final List<Ceiling> ceilings;

  /** Rate of fma, in 10⁹ lanes a second. */
  private final double fma;

  /** The end of the axis of rates, a little above the highest ceiling. */
  private final double most;

  private final StringBuilder svg = new StringBuilder();

  private Draw(List<String> csv) {
    List<String> columns = List.of();
    for (String line : csv) {
      if (line.startsWith("#")) {
        String[] condition = line.substring(1).split(":", 2);
        conditions.put(condition[0].strip(), condition[1].strip());
      } else if (columns.isEmpty()) {
        columns = List.of(line.split(",", -1));
      } else {
        String[] cells = line.split(",", -1);
        Map<String, Double> row = new HashMap<>();
        for (int c = 0; c < cells.length; c++) {
          row.put(columns.get(c), Double.valueOf(cells[c]));
        }
        rows.add(row);
      }
    }
    curves = CURVES.stream().filter(c -> rows.getFirst().containsKey(c.column)).toList();
    fma = Report.quantile(rows.stream().mapToDouble(row -> row.get(Rates.FMA)).toArray(), 0.5);
    ceilings =
        CEILINGS.stream()
            .filter(c -> curves.stream().anyMatch(curve -> curve.fma == c.fma))
            .toList();
    most = 1.05 * ceilings.stream().mapToDouble(c -> fma / c.fma).max().orElseThrow();
  }

  public static void main(String[] args) throws IOException {
    try (Stream<Path> files = Files.list(Path.of(args[0]))) {
      for (Path file : files.filter(f -> f.toString().endsWith(".csv")).sorted().toList()) {
        Path picture = Path.of(file.toString().replaceFirst("csv$", "svg"));
        Files.writeString(picture, new Draw(Files.readAllLines(file)).draw());
        System.out.println(picture);
      }
    }
  }

  private String draw() {
    svg.append(
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %1$s %2$s" width="%1$s" height="%2$s"
          font-family="sans-serif" font-size="13">
        <rect width="100%%" height="100%%" fill="#ffffff"/>
        """
            .formatted(WIDTH, HEIGHT));
    String cpu = conditions.get(Rates.CPU).split(";", 2)[0];
    String options = conditions.get(Rates.OPTIONS);
    svg.append("<g font-size=\"16\">\n");
    text(
        LEFT,
        24,
        "start",
        TEXT,
        "Rate of the KL matrix, one thread: %s, %s%s"
            .formatted(
                cpu,
                conditions.get(Rates.INSTRUCTIONS),
                options.equals("none") ? "" : " by " + options));
    svg.append("</g>\n");
    String blas = conditions.get(Rates.BLAS);
    text(LEFT, 44, "start", FAINT, "10⁹ (i,j,h) a second; OpenBLAS " + blas);
    for (int i = 0; i < curves.size(); i++) {
      int x = LEFT + i * LEGEND_WIDTH;
      line(x, LEGEND, x + 26, LEGEND, curves.get(i).color, 2, "");
      dot(x + 13, LEGEND, curves.get(i).color);
      text(x + 34, LEGEND + 4, "start", TEXT, curves.get(i).name);
    }
    for (int i = 0; i < ceilings.size(); i++) {
      int x = LEFT + i * LEGEND_WIDTH;
      int y = LEGEND + 22;
      Ceiling ceiling = ceilings.get(i);
      line(x, y, x + 26, y, ceiling.color, 1.2, DASHES);
      String rate = Report.number(fma / ceiling.fma);
      text(x + 34, y + 4, "start", TEXT, "%s: %s".formatted(ceiling.name, rate));
    }
    panel(LEFT, "size", "dimension", Rates.DIMENSION, "B, at D = " + Rates.DIMENSION);
    panel(RIGHT, "dimension", "size", Rates.SIZE, "D, at B = " + Rates.SIZE);
    return svg.append("</svg>\n").toString();
  }

  /** The rates of the shapes in which {@code other} is {@code fixed}, against {@code variable}. */
  private void panel(int left, String variable, String other, int fixed, String title) {
    List<Map<String, Double>> shown =
        rows.stream()
            .filter(row -> row.get(other) == fixed)
            .sorted(Comparator.comparingDouble(row -> row.get(variable)))
            .toList();
    double first = Math.log(shown.getFirst().get(variable));
    double last = Math.log(shown.getLast().get(variable));
    double[] at =
        shown.stream()
            .mapToDouble(
                row -> left + PANEL * (Math.log(row.get(variable)) - first) / (last - first))
            .toArray();

    double step = step();
    for (int t = 0; t * step <= most; t++) {
      double rate = t * step;
      line(left, y(rate), left + PANEL, y(rate), t == 0 ? FAINT : GRID, 1, "");
      text(left - 8, y(rate) + 4, "end", FAINT, Report.number(rate));
    }
    for (int i = 0; i < at.length; i++) {
      int value = shown.get(i).get(variable).intValue();
      if (Integer.bitCount(value) == 1) { // labels of all would touch
        text(at[i], BOTTOM + 20, "middle", FAINT, "" + value);
      }
    }
    text(left + PANEL / 2.0, BOTTOM + 44, "middle", TEXT, title);

    for (Curve curve : curves) {
      String points =
          IntStream.range(0, at.length)
              .mapToObj(i -> tenths(at[i]) + "," + tenths(y(shown.get(i).get(curve.column))))
              .collect(Collectors.joining(" "));
      svg.append(
          "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n"
              .formatted(points, curve.color));
      for (int i = 0; i < at.length; i++) {
        dot(at[i], y(shown.get(i).get(curve.column)), curve.color);
      }
    }
    for (Ceiling ceiling : ceilings) {
      double y = y(fma / ceiling.fma);
      line(left, y, left + PANEL, y, ceiling.color, 1.2, DASHES);
    }
  }

  private double y(double rate) {
    return BOTTOM - (BOTTOM - TOP) * rate / most;
  }

  /** Returns the step of the axis of rates: 1, 2 or 5 times a power of ten. */
  private double step() {
    double power = Math.pow(10, Math.floor(Math.log10(most / MAX_TICKS)));
    return DoubleStream.of(1, 2, 5, 10)
        .map(factor -> factor * power)
        .filter(step -> step * MAX_TICKS >= most)
        .findFirst()
        .orElseThrow();
  }

  private void text(double x, double y, String anchor, String color, String text) {
    String escaped = text.replace("&", "&amp;").replace("<", "&lt;");
    svg.append(
        "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n"
            .formatted(tenths(x), tenths(y), anchor, color, escaped));
  }

  private void line(
      double x1, double y1, double x2, double y2, String color, double width, String more) {
    svg.append(
        "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" stroke=\"%s\" stroke-width=\"%s\"%s/>\n"
            .formatted(tenths(x1), tenths(y1), tenths(x2), tenths(y2), color, width, more));
  }

  private void dot(double x, double y, String color) {
    svg.append(
        "<circle cx=\"%s\" cy=\"%s\" r=\"3\" fill=\"%s\"/>\n"
            .formatted(tenths(x), tenths(y), color));
  }

  /** Rounds a coordinate to tenths of a pixel. */
  private static double tenths(double coordinate) {
    return Math.round(10 * coordinate) / 10.0;
  }
}
