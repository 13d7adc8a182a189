package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The page on other libraries: its commands, run on the arrays that it saves, write the numbers that it says. */
class OtherLibrariesPageTest extends CommandFixture {
  private static final Pattern SAVED = Pattern.compile("np\\.save\\(\"(\\w+\\.npy)\", (\\[.*])\\)");
  private static final Pattern COMMAND = Pattern.compile(" {4}\\./kullback (.*\\S) +# (\\[.*])");

  /** An array of NumPy, from nested lists. */
  private record Array(long[] shape, double[] values) {
    static Array of(String text) {
      List<Long> shape = new ArrayList<>();
      List<Double> values = new ArrayList<>();
      Object list = JsonReader.read(text);
      for (Object part = list; part instanceof List<?> parts; part = parts.getFirst()) {
        shape.add((long) parts.size());
      }
      collect(list, values);
      return new Array(
          shape.stream().mapToLong(n -> n).toArray(),
          values.stream().mapToDouble(v -> v).toArray());
    }

    private static void collect(Object part, List<Double> values) {
      if (part instanceof List<?> parts) {
        parts.forEach(p -> collect(p, values));
      } else {
        values.add((Double) part);
      }
    }
  }

  @Test
  void commandsWriteWhatThePageSays() throws IOException {
    int commands = 0;
    for (String line :
        Files.readAllLines(
            Path.of(System.getProperty("basedir", "."), "../docs/other-libraries.md"))) {
      Matcher saved = SAVED.matcher(line);
      if (saved.matches()) {
        Array array = Array.of(saved.group(2));
        NpyFiles.write(folder.resolve(saved.group(1)), "<f8", array.shape(), array.values());
      }
      Matcher command = COMMAND.matcher(line);
      if (command.matches()) {
        commands++;
        succeed(command.group(1));
        Array expected = Array.of(command.group(2));
        Npy.Array written = Npy.readFloats(folder.resolve("kl.npy"), Arena.ofAuto());
        assertThat(written.shape()).as(line).containsExactly(expected.shape());
        assertThat(values(written))
            .as(line)
            .usingComparatorWithPrecision(5e-10)
            .containsExactly(expected.values());
      }
    }
    assertThat(commands).isEqualTo(5);
  }
}
