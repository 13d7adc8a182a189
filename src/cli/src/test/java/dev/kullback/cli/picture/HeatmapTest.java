package dev.kullback.cli.picture;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.terminal.Text;
import java.awt.image.BufferedImage;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HeatmapTest {
  private static final int LEFT = 92;
  private static final int TOP = 96;
  private static final int BLACK = 0xff000004; // the low end of the colours
  private static final int BRIGHT = 0xfffcfdbf; // the high end
  private static final int INFINITE = 0xffc3c9d2;

  private static Heatmap heatmap(int rows, int columns, DoubleBinaryOperator f) {
    Heatmap heatmap = new Heatmap(rows, columns);
    double[] row = new double[columns];
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        row[j] = f.applyAsDouble(i, j);
      }
      heatmap.add(i, MemorySegment.ofArray(row), true);
    }
    return heatmap;
  }

  private static BufferedImage image(Heatmap heatmap) throws IOException {
    return ImageIO.read(new ByteArrayInputStream(heatmap.png("title", "row", "column", List.of())));
  }

  @Test
  void cellsHaveTheColoursOfTheirValues() throws IOException {
    // 10 x 10 cells of 64 pixels
    BufferedImage image = image(heatmap(10, 10, (i, j) -> i == 3 ? 1e4 : j == 7 ? 100 : 1));
    assertThat(image.getRGB(LEFT, TOP)).isEqualTo(BLACK);
    assertThat(image.getRGB(LEFT + 63, TOP + 3 * 64 - 1)).isEqualTo(BLACK);
    assertThat(image.getRGB(LEFT, TOP + 3 * 64)).isEqualTo(BRIGHT);
    assertThat(image.getRGB(LEFT + 639, TOP + 4 * 64 - 1)).isEqualTo(BRIGHT);
    assertThat(image.getRGB(LEFT + 7 * 64 + 30, TOP + 30)).isEqualTo(0xffb73779); // the middle
  }

  @Test
  void infiniteAndZeroEntries() throws IOException {
    BufferedImage image =
        image(heatmap(10, 10, (i, j) -> i == j ? 0 : j == 2 ? Double.POSITIVE_INFINITY : i + 1));
    assertThat(image.getRGB(LEFT + 5, TOP + 5)).isEqualTo(BLACK);
    assertThat(image.getRGB(LEFT + 2 * 64 + 5, TOP + 5)).isEqualTo(INFINITE);
    assertThat(image.getRGB(LEFT + 2 * 64 + 5, TOP + 2 * 64 + 5)).isEqualTo(BLACK);
    assertThat(image.getRGB(LEFT + 5, TOP + 9 * 64 + 5)).isEqualTo(BRIGHT);
  }

  @Test
  void pixelsAreMeansOfBlocks() throws IOException {
    // 1999 = 2 * 999 + 1: the last block is smaller. Means are 2 above, 6 below.
    BufferedImage image =
        image(heatmap(1999, 1999, (i, j) -> i >= 1000 ? 6 : (i + j) % 2 == 0 ? 1 : 3));
    for (int at = 0; at < 999; at += 37) {
      assertThat(image.getRGB(LEFT + at, TOP + at / 2)).isEqualTo(0xff711f80); // at 1/3
      assertThat(image.getRGB(LEFT + at, TOP + 999 - at / 2)).isEqualTo(BRIGHT);
    }
    assertThat(image.getRGB(LEFT + 999, TOP + 999)).isEqualTo(BRIGHT);
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "1, 5000", "5000, 1", "3, 1001", "999, 1000"})
  void everyShape(int rows, int columns) throws IOException {
    BufferedImage image = image(heatmap(rows, columns, (i, j) -> 1 + i + j));
    assertThat(image.getWidth()).isBetween(600, 1600);
    assertThat(image.getHeight()).isBetween(400, 1600);
  }

  @ParameterizedTest
  @CsvSource({"0", "Infinity", "4.9e-324", "1e-30", "1", "1e30", "1.7e308"})
  void everyConstant(double value) throws IOException {
    int inside = image(heatmap(4, 4, (_, _) -> value)).getRGB(LEFT + 10, TOP + 10);
    assertThat(inside).isEqualTo(value == 0 ? BLACK : Double.isInfinite(value) ? INFINITE : BRIGHT);
  }

  @Test
  void rangesOfEveryWidth() throws IOException {
    for (double exponent : new double[] {0.5, 1, 3, 6, 20, 300, 600}) {
      Heatmap heatmap = heatmap(20, 20, (i, j) -> Math.pow(10, exponent * (i + j - 19) / 38));
      BufferedImage image = image(heatmap);
      assertThat(image.getRGB(LEFT + 639, TOP + 639)).isEqualTo(BRIGHT);
    }
  }

  @Test
  void groupsAreSeparatedByLines() throws IOException {
    byte[] png =
        heatmap(10, 10, (_, _) -> 0)
            .png(
                "t",
                "r",
                "c",
                List.of(new Heatmap.Group("a", 0, 4), new Heatmap.Group("b", 4, 10)));
    BufferedImage image = ImageIO.read(new ByteArrayInputStream(png));
    assertThat(image.getRGB(LEFT + 4 * 64, TOP + 7)).isNotEqualTo(BLACK);
    assertThat(image.getRGB(LEFT + 7, TOP + 4 * 64)).isNotEqualTo(BLACK);
    assertThat(image.getRGB(LEFT + 4 * 64 - 1, TOP + 7)).isEqualTo(BLACK);
  }

  @Test
  void longLabelsAreCut() throws IOException {
    String label = "label".repeat(1000);
    byte[] png = heatmap(5, 5, (_, _) -> 1).png(label, label, label, List.of());
    BufferedImage image = ImageIO.read(new ByteArrayInputStream(png));
    int[] lastColumn = image.getRGB(image.getWidth() - 1, 0, 1, image.getHeight(), null, 0, 1);
    assertThat(Arrays.stream(lastColumn).distinct().toArray()).containsExactly(0xffffffff);
  }

  @Test
  void numbers() {
    assertThat(
            List.of(0.0, 1.0, 1234.56, 1e5, 1e6, 2.909e8, 1.05e10, 1.5e-7, 1e-10, 1e300).stream()
                .map(Text::number))
        .containsExactly(
            "0", "1", "1235", "100000", "1e6", "2.909e8", "1.05e10", "1.5e-7", "1e-10", "1e300");
    assertThat(Text.number(Double.POSITIVE_INFINITY)).isEqualTo("Infinity");
  }
}
