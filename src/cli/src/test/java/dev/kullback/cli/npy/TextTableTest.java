package dev.kullback.cli.npy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Numbers as text. */
class TextTableTest {
  @TempDir Path folder;

  private Path file(String name, String text) throws IOException {
    return Files.writeString(folder.resolve(name), text);
  }

  private static double[] read(Path file, long... shape) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.readFloats(file, arena);
      assertThat(array.shape()).containsExactly(shape);
      assertThat(array.type()).isEqualTo(Type.FLOAT64);
      return array.data().toArray(ValueLayout.JAVA_DOUBLE);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "0.1,-2,3e-5\n1E+2,.5,6.\n",
        "0.1,-2,3e-5\r\n1E+2,.5,6.",
        "0.1;-2;3e-5\n1E+2;.5;6.\n\n",
        "x, or y;y;z\n0.1;-2;3e-5\n1E+2;.5;6.\n",
        "0.1\t-2\t3e-5\n1E+2\t.5\t6.\n",
        "0.1 -2 3e-5\n1E+2 .5 6.\n",
        "  0.1   -2  3e-5 \n 1E+2    .5  6.  \n",
        "x,y,z\n0.1,-2,3e-5\n1E+2,.5,6.\n",
        "\ufeff\"x\",\"y, or z\",\"n\"\n \"0.1\" , -2 , 3e-5\n1E+2,.5,6.\n",
        "# of np.savetxt\n0.1 -2 3e-5\n# more\n1E+2 .5 6.\n",
        "a b c\n\n0.1 -2 3e-5\n\n1E+2 .5 6.\n",
      })
  void tables(String text) throws IOException {
    for (String name : new String[] {"a.csv", "a.tsv", "a.txt", "A.CSV"}) {
      assertThat(read(file(name, text), 2, 3)).containsExactly(0.1, -2, 3e-5, 100, 0.5, 6);
    }
  }

  @Test
  void oneColumn() throws IOException {
    assertThat(read(file("a.csv", "w\n0.25\n0.75\n"), 2, 1)).containsExactly(0.25, 0.75);
    assertThat(read(file("b.csv", "0\n1\n2\n"), 3, 1)).containsExactly(0, 1, 2);
    assertThat(read(file("c.csv", "0\n0.5\n1.5\n"), 3, 1)).containsExactly(0, 0.5, 1.5);
  }

  /** Names may be of the characters that numbers have. */
  @ParameterizedTest
  @ValueSource(strings = {"e", "E", "e1", "-", "+e.", "."})
  void namesThatLookLikeNumbers(String name) throws IOException {
    assertThat(read(file("a.csv", "a," + name + "\n.25,-.5e1\n"), 1, 2)).containsExactly(0.25, -5);
    assertThat(read(file("b.csv", name + "\n+7.\n"), 1, 1)).containsExactly(7);
    assertThatThrownBy(() -> read(file("c.csv", "1," + name + "\n"), 1, 2))
        .isInstanceOf(NpyException.class)
        .hasMessageContaining("line 1, column 2 is '" + name + "': it must be a number");
  }

  /** Of 0, 1, … in the first line it is not known whether they are pandas' numbers of columns; alone they are a row, as no table is empty. */
  @Test
  void numberedColumns() throws IOException {
    String message =
        "line 1 may be the columns' numbers, as of pandas, or a row: leave numbers out, to_csv(…, header=False, index=False), or begin a row with ";
    for (String text : new String[] {"0,1\n5,6\n7,8\n", "0,1\n0.5,1.5\n", "0 1\n2 3", "0;1\n;\n"}) {
      assertThatThrownBy(() -> Npy.readShape(file("a.csv", text)))
          .isInstanceOf(NpyException.class)
          .hasMessage(message + "0.0");
    }
    try (Arena arena = Arena.ofConfined()) {
      assertThatThrownBy(() -> Npy.readIntegers(file("a.csv", "0,1\n5,6\n"), arena))
          .hasMessage(message + "+0");
      assertThat(Npy.readIntegers(file("a.csv", "+0,1\n5,6\n"), arena).shape())
          .containsExactly(2, 2);
    }
    assertThat(read(file("a.csv", "0.0,1\n5,6\n"), 2, 2)).containsExactly(0, 1, 5, 6);
    assertThat(read(file("a.csv", "5,6\n0,1\n"), 2, 2)).containsExactly(5, 6, 0, 1);
    assertThat(read(file("a.csv", "0,1\n"), 1, 2)).containsExactly(0, 1);
  }

  /** Infinities and NaN as NumPy, pandas and R write them; what cannot be used is refused by row and column later. */
  @Test
  void numbersThatAreNotFinite() throws IOException {
    assertThat(read(file("a.csv", "nan,inf,-inf\nNaN,Inf,-Infinity\n"), 2, 3))
        .containsExactly(
            Double.NaN,
            Double.POSITIVE_INFINITY,
            Double.NEGATIVE_INFINITY,
            Double.NaN,
            Double.POSITIVE_INFINITY,
            Double.NEGATIVE_INFINITY);
  }

  /** Every double survives, and rows are those of the whole. */
  @Test
  void manyRows() throws IOException {
    Random random = new Random(2);
    int rows = 3000;
    double[] want =
        IntStream.range(0, rows * 4)
            .mapToDouble(k -> k % 2 == 0 ? random.nextGaussian() : randomBits(random))
            .toArray();
    String text =
        IntStream.range(0, rows)
            .mapToObj(i ->
                IntStream.range(4 * i, 4 * i + 4)
                    .mapToObj(k -> Double.toString(want[k]))
                    .collect(Collectors.joining(",")))
            .collect(Collectors.joining("\n"));
    Path file = file("a.csv", text);
    assertThat(read(file, rows, 4)).containsExactly(want);
    try (Arena arena = Arena.ofConfined();
        ArrayReader in = Npy.openFloats(file)) {
      Npy.Array part = in.rows(7, 9, arena);
      assertThat(part.shape()).containsExactly(2, 4);
      assertThat(part.data().toArray(ValueLayout.JAVA_DOUBLE))
          .containsExactly(java.util.Arrays.copyOfRange(want, 28, 36));
      assertThat(Npy.readShape(file)).containsExactly(rows, 4);
    }
  }

  private static double randomBits(Random random) {
    double value = Double.longBitsToDouble(random.nextLong());
    return Double.isFinite(value) ? value : Double.MIN_VALUE;
  }

  @Test
  void integers() throws IOException {
    Path file = file("ids.csv", "id\n9223372036854775807\n-1\n");
    try (Arena arena = Arena.ofConfined()) {
      assertThat(Npy.readIntegers(file, arena).data().toArray(ValueLayout.JAVA_LONG))
          .containsExactly(Long.MAX_VALUE, -1);
      assertThatThrownBy(() -> Npy.readIntegers(file("ids.csv", "1\n1.5\n"), arena))
          .hasMessage("line 2, column 1 is '1.5': it must be an integer (counted from 1)");
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "1,2\\n3,abc\\n   | line 2, column 2 is 'abc': it must be a number (counted from 1)",
        "1,2\\n3,\\n      | line 2, column 2 is empty: it must be a number (counted from 1)",
        "1,2\\n\\n,4\\n   | line 3, column 1 is empty: it must be a number",
        "1,2\\nNA,4\\n    | line 2, column 1 is 'NA': it must be a number",
        "1,x\\n3,4\\n     | line 1, column 2 is 'x': it must be a number",
        "1;2\\n0,5;1,5\\n | line 2, column 1 is '0,5': it must be a number with a decimal point",
        "1,2\\n0x3,4\\n   | line 2, column 1 is '0x3'",
        "1,2\\n3f,4\\n    | line 2, column 1 is '3f'",
        "1,2\\n--3,4\\n   | line 2, column 1 is '--3'",
        "1,2\\n3\\n       | line 2 has 1 cells, but line 1 has 2",
        "a,b\\n3,4,5\\n   | line 2 has 3 cells, but line 1 has 2",
        "1 2\\n3 4 5\\n   | line 2 has 3 cells, but line 1 has 2",
        "# nothing\\n\\n  | has no line of numbers",
        ",a,b\\n0,1.5,2.5\\n | line 1 begins with an empty name: is the first column an index, as pandas and R write it?",
        "'\"\",\"V1\"\\n\"1\",2.5\\n' | line 1 begins with an empty name",
        ",0,1\\n0,1.5,2.5\\n | line 1 begins with an empty name",
      })
  void refused(String text, String message) throws IOException {
    Path file = file("a.csv", text.strip().replace("\\n", "\n"));
    try (Arena arena = Arena.ofConfined()) {
      assertThatThrownBy(() -> Npy.readFloats(file, arena))
          .isInstanceOf(NpyException.class)
          .hasMessageContaining(message.strip());
    }
  }

  /** The line of a file without line ends takes no more memory than a limit. */
  @Test
  void endlessLine() throws IOException {
    Path file = folder.resolve("a.txt");
    Files.write(file, new byte[(1 << 26) + 10]);
    assertThatThrownBy(() -> Npy.readShape(file))
        .isInstanceOf(NpyException.class)
        .hasMessage("line 1 has more than 67108864 characters");
  }
}
