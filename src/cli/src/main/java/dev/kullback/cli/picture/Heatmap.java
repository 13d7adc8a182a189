package dev.kullback.cli.picture;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.Text;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.FontMetrics;
import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.geom.AffineTransform;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import javax.imageio.ImageIO;

/**
 * A picture of a matrix of any size. It keeps the means of at most 1000 x 1000 blocks of entries, taken while the rows pass by. It needs
 * AWT; {@link Pictures} says whether that is here.
 */
public final class Heatmap {
  private static final int MAX_CELLS = 1000;
  private static final int MIN_PIXELS = 640;
  private static final int MAX_CELL_PIXELS = 64;

  private static final int MARGIN = 28;
  private static final int LEFT = 92;
  private static final int TOP = 96;
  private static final int BOTTOM = 76;
  private static final int BAR_GAP = 32;
  private static final int BAR = 22;
  private static final int RIGHT = BAR_GAP + BAR + 110;

  private static final Color PAPER = Color.WHITE;
  private static final Color INK = new Color(0x22252b);
  private static final Color FAINT = new Color(0x6b7280);
  private static final Color BORDER = new Color(255, 255, 255, 110);
  private static final Color INFINITE = new Color(0xc3c9d2);

  // Matplotlib's magma at tenths.
  private static final int[] MAGMA = {
    0x000004, 0x140e36, 0x3b0f70, 0x641a80, 0x8c2981, 0xb73779, 0xde4968, 0xf7705c, 0xfe9f6d,
    0xfecf92, 0xfcfdbf
  };

  /** Rows or columns {@code start} (included) to {@code end} (excluded), labelled together. */
  public record Group(String name, long start, long end) {}

  private final long rows;
  private final long columns;
  private final long rowBlock;
  private final long columnBlock;
  private final int height;
  private final int width;
  private final double[] sum; // [height, width]; infinite where an entry is
  private final long[] count;

  public Heatmap(long rows, long columns) {
    this.rows = rows;
    this.columns = columns;
    rowBlock = Math.ceilDiv(rows, MAX_CELLS);
    columnBlock = Math.ceilDiv(columns, MAX_CELLS);
    height = (int) Math.ceilDiv(rows, rowBlock);
    width = (int) Math.ceilDiv(columns, columnBlock);
    sum = new double[height * width];
    count = new long[height * width];
  }

  /** Draws a text; fails in one of several ways where there are no fonts. */
  static void drawText() {
    Graphics2D g = new BufferedImage(1, 1, BufferedImage.TYPE_INT_RGB).createGraphics();
    g.getFontMetrics(font(Font.PLAIN, 14)).stringWidth("0");
    g.dispose();
  }

  /** Takes whole rows from {@code firstRow} on. */
  public void add(long firstRow, MemorySegment block, boolean isDouble) {
    long end = firstRow + block.byteSize() / (isDouble ? 8 : 4) / columns;
    long index = 0;
    for (long row = firstRow; row < end; row++) {
      int cell = (int) (row / rowBlock) * width;
      for (long column = 0; column < columns; cell++) {
        long stop = Math.min(columns, column + columnBlock);
        double total = 0;
        count[cell] += stop - column;
        for (; column < stop; column++, index++) {
          total += Npy.value(block, index, isDouble);
        }
        sum[cell] += total;
      }
    }
  }

  /** Draws the picture; names of groups replace the indices on both axes. */
  public byte[] png(String title, String rowLabel, String columnLabel, List<Group> groups)
      throws IOException {
    double[] mean = new double[sum.length];
    Arrays.setAll(mean, i -> sum[i] / count[i]);
    ColorScale scale = ColorScale.of(mean);

    int cellWidth = cellPixels(width);
    int cellHeight = cellPixels(height);
    int plotWidth = width * cellWidth;
    int plotHeight = height * cellHeight;
    int barHeight = Math.max(plotHeight, 240);
    BufferedImage image =
        new BufferedImage(
            LEFT + Math.max(plotWidth, 420) + RIGHT,
            TOP + barHeight + BOTTOM,
            BufferedImage.TYPE_INT_RGB);
    Graphics2D g = image.createGraphics();
    g.setRenderingHint(
        RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON);
    g.setRenderingHint(RenderingHints.KEY_ANTIALIASING, RenderingHints.VALUE_ANTIALIAS_ON);
    g.setColor(PAPER);
    g.fillRect(0, 0, image.getWidth(), image.getHeight());

    drawHead(g, title, scale, image.getWidth());
    BufferedImage cells = new BufferedImage(width, height, BufferedImage.TYPE_INT_RGB);
    for (int i = 0; i < mean.length; i++) {
      cells.setRGB(i % width, i / width, scale.color(mean[i]).getRGB());
    }
    g.drawImage(cells, LEFT, TOP, plotWidth, plotHeight, null);
    g.setColor(INK);
    g.drawRect(LEFT - 1, TOP - 1, plotWidth + 1, plotHeight + 1);

    double perColumn = (double) cellWidth / columnBlock;
    double perRow = (double) cellHeight / rowBlock;
    new Axis(g, columns, perColumn, plotWidth, plotHeight, false).draw(columnLabel, groups);
    new Axis(g, rows, perRow, plotHeight, plotWidth, true).draw(rowLabel, groups);
    drawBar(g, scale, LEFT + plotWidth + BAR_GAP, barHeight, anyInfinite(mean));
    g.dispose();

    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    ImageIO.setUseCache(false); // no temporary files
    ImageIO.write(image, "png", bytes);
    return bytes.toByteArray();
  }

  private static int cellPixels(int cells) {
    return Math.clamp(Math.ceilDiv(MIN_PIXELS, cells), 1, MAX_CELL_PIXELS);
  }

  private static boolean anyInfinite(double[] mean) {
    return Arrays.stream(mean).anyMatch(v -> !Double.isFinite(v));
  }

  private static Font font(int style, int size) {
    return new Font(Font.SANS_SERIF, style, size);
  }

  private void drawHead(Graphics2D g, String title, ColorScale scale, int imageWidth) {
    int room = imageWidth - LEFT - MARGIN;
    g.setColor(INK);
    g.setFont(font(Font.BOLD, 22));
    g.drawString(fit(g, title, room), LEFT, 42);
    g.setColor(FAINT);
    g.setFont(font(Font.PLAIN, 14));
    String cell =
        rowBlock == 1 && columnBlock == 1
            ? ""
            : ", a pixel is the mean of " + rowBlock + " \u00d7 " + columnBlock;
    String note = rows + " \u00d7 " + columns + " entries" + cell + scale.note();
    g.drawString(fit(g, note, room), LEFT, 68);
  }

  private static String fit(Graphics2D g, String text, int room) {
    FontMetrics metrics = g.getFontMetrics();
    String fitting = text;
    while (metrics.stringWidth(fitting) > room && fitting.length() > 2) {
      fitting = fitting.substring(0, fitting.length() - 2) + "\u2026";
    }
    return fitting;
  }

  /**
   * An axis: that of the columns below the plot, or that of the rows on its left, turned.
   *
   * @param pixels the size of an entry
   * @param length the size of the plot along the axis
   * @param across its size across the axis
   */
  private record Axis(
      Graphics2D g, long entries, double pixels, int length, int across, boolean isRow) {
    void draw(String label, List<Group> groups) {
      g.setFont(font(Font.PLAIN, 14));
      g.setColor(INK);
      if (groups.isEmpty()) {
        long step = niceStep(entries, length / (isRow ? 40 : 80));
        for (long i = 0; i < entries; i += step) {
          drawTick(Long.toString(i), (i + 0.5) * pixels);
        }
      }
      for (Group group : groups) {
        drawTick(group.name(), (group.start() + group.end()) * 0.5 * pixels);
        int at = (int) Math.round(group.start() * pixels);
        if (at > 0) {
          g.setColor(BORDER);
          g.fillRect(
              LEFT + (isRow ? 0 : at),
              TOP + (isRow ? at : 0),
              isRow ? across : 1,
              isRow ? 1 : across);
          g.setColor(INK);
        }
      }
      g.setFont(font(Font.PLAIN, 15));
      String fitting = fit(g, label, Math.max(length, 200));
      int textWidth = g.getFontMetrics().stringWidth(fitting);
      if (isRow) {
        AffineTransform upright = g.getTransform();
        g.rotate(-Math.PI / 2);
        g.drawString(fitting, -TOP - Math.max((length + textWidth) / 2, textWidth), MARGIN);
        g.setTransform(upright);
      } else {
        g.drawString(fitting, LEFT + Math.max(0, (length - textWidth) / 2), TOP + across + 54);
      }
    }

    private void drawTick(String text, double at) {
      int position = (int) Math.round(at);
      int textWidth = g.getFontMetrics().stringWidth(text);
      if (isRow) {
        g.drawLine(LEFT - 6, TOP + position, LEFT - 2, TOP + position);
        g.drawString(text, LEFT - 11 - textWidth, TOP + position + 5);
      } else {
        g.drawLine(LEFT + position, TOP + across + 2, LEFT + position, TOP + across + 6);
        g.drawString(text, LEFT + position - textWidth / 2, TOP + across + 23);
      }
    }
  }

  /** Returns 1, 2 or 5 times a power of ten, for at most {@code ticks} ticks. */
  private static long niceStep(long entries, int ticks) {
    for (long power = 1; ; power *= 10) {
      for (long factor : new long[] {1, 2, 5}) {
        if (Math.ceilDiv(entries, factor * power) <= Math.max(1, ticks)) {
          return factor * power;
        }
      }
    }
  }

  private static void drawBar(Graphics2D g, ColorScale scale, int x, int height, boolean infinite) {
    int top = TOP + (infinite ? 44 : 0);
    int length = height - (top - TOP);
    for (int y = 0; y < length; y++) {
      g.setColor(scale.colorAt(1 - (y + 0.5) / length));
      g.fillRect(x, top + y, BAR, 1);
    }
    g.setColor(INK);
    g.setStroke(new BasicStroke(1));
    g.drawRect(x - 1, top - 1, BAR + 1, length + 1);
    g.setFont(font(Font.PLAIN, 14));
    for (double value : scale.ticks()) {
      int y = top + (int) Math.round((1 - scale.position(value)) * (length - 1));
      g.drawLine(x + BAR + 1, y, x + BAR + 5, y);
      g.drawString(Text.number(value), x + BAR + 11, y + 5);
    }
    if (infinite) {
      g.setColor(INFINITE);
      g.fillRect(x, TOP, BAR, BAR);
      g.setColor(INK);
      g.drawRect(x - 1, TOP - 1, BAR + 1, BAR + 1);
      g.drawString("infinite", x + BAR + 11, TOP + 16);
    }
  }

  /** A scale of colours, logarithmic where values span more than a factor of 20, without the outliers. */
  private record ColorScale(double low, double high, boolean logarithmic, boolean clipped) {

    static ColorScale of(double[] mean) {
      double[] values =
          Arrays.stream(mean).filter(v -> v > 0 && Double.isFinite(v)).sorted().toArray();
      if (values.length == 0) {
        return new ColorScale(0, 1, false, false);
      }
      // A few outliers must not take all the colours.
      double low = values[(int) (0.01 * (values.length - 1))];
      double high = values[(int) Math.ceil(0.99 * (values.length - 1))];
      boolean clipped = low > values[0] || high < values[values.length - 1];
      return high / low > 20
          ? new ColorScale(low, high, true, clipped)
          : new ColorScale(0, high, false, high < values[values.length - 1]);
    }

    String note() {
      return logarithmic
          ? ", logarithmic colours" + (clipped ? " for the middle 98 %" : "")
          : clipped ? ", colours up to the 99th percentile" : "";
    }

    /** Returns 0 at low, 1 at high. */
    double position(double value) {
      double position =
          logarithmic
              ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low))
              : value / high;
      return Math.clamp(position, 0.0, 1.0);
    }

    Color color(double value) {
      return Double.isFinite(value) ? colorAt(position(value)) : INFINITE;
    }

    Color colorAt(double position) {
      double at = position * (MAGMA.length - 1);
      int below = Math.min((int) at, MAGMA.length - 2);
      double part = at - below;
      int rgb = 0;
      for (int shift = 16; shift >= 0; shift -= 8) {
        int a = MAGMA[below] >> shift & 0xff;
        int b = MAGMA[below + 1] >> shift & 0xff;
        rgb |= (int) Math.round(a + part * (b - a)) << shift;
      }
      return new Color(rgb);
    }

    double[] ticks() {
      if (!logarithmic) {
        double power = Math.pow(10, Math.floor(Math.log10(high)));
        double step = high / power < 2 ? power / 5 : high / power < 5 ? power / 2 : power;
        return IntStream.rangeClosed(0, 10)
            .mapToDouble(i -> i * step)
            .filter(v -> v <= high)
            .distinct() // steps of the smallest doubles are 0
            .toArray();
      }
      double decades = Math.log10(high) - Math.log10(low);
      double[] factors = decades > 3 ? new double[] {1} : new double[] {1, 2, 5};
      int skip = (int) Math.ceil(decades / 12);
      int first = (int) Math.floor(Math.log10(low));
      DoubleStream.Builder ticks = DoubleStream.builder();
      for (int power = first; Math.pow(10, power) <= high; power += Math.max(1, skip)) {
        for (double factor : factors) {
          double value = Double.parseDouble(factor + "E" + power);
          if (value >= low && value <= high) {
            ticks.add(value);
          }
        }
      }
      return ticks.build().toArray();
    }
  }
}
