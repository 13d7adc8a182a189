package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Commands with all that they print, in {@code src/test/transcripts}: after {@code $ kullback …} come the lines of standard output, those of standard
 * error behind {@code !}, and the status in brackets, if it is not 0. Files are those of {@link CommandFixture} and what lines behind {@code +} make:
 * {@code NAME DESCR SHAPE VALUES} an array, whose values may be of another ({@code q.npy}), repeated ({@code 1*20}) or put in a place ({@code @3=NaN}),
 * and whose last fills the rest; {@code NAME text TEXT} a text; {@code NAME folder}; {@code NAME none} nothing; and {@code NAME} alone what the fixture
 * has there. An error leaves all files as they were. {@code -Dtranscripts.write=true} writes the transcripts anew.
 */
class TranscriptTest extends CommandFixture {
  private static final Path TRANSCRIPTS =
      Path.of(System.getProperty("basedir", "."), "src/test/transcripts");

  private static final String PROMPT = "$ kullback ";

  static Stream<Path> transcripts() throws IOException {
    try (Stream<Path> files = Files.list(TRANSCRIPTS)) {
      return files.sorted().toList().stream();
    }
  }

  @ParameterizedTest
  @MethodSource("transcripts")
  void isAsItWas(Path transcript) throws IOException {
    Files.writeString(folder.resolve("o.npy"), "precious");
    List<String> expected = Files.readAllLines(transcript);
    StringBuilder seen = new StringBuilder();
    String last = "";
    Set<String> since = new HashSet<>(); // files were made
    for (String line : expected) {
      if (line.startsWith("#") || line.startsWith("+ ")) {
        boolean isFirst = seen.isEmpty() || last.equals(line.substring(0, 1));
        seen.append(isFirst ? "" : "\n").append(line).append('\n');
        if (line.startsWith("+")) {
          make(line.substring(2).split(" "));
          since.clear();
        }
        last = line.substring(0, 1);
      } else if (line.startsWith(PROMPT)) {
        assertThat(since.add(line)).as("%s, once more with the same files", line).isTrue();
        seen.append('\n').append(line).append('\n').append(printed(line));
        last = "$";
      }
    }
    if (Boolean.getBoolean("transcripts.write")) {
      Files.writeString(transcript, seen);
    }
    assertThat(seen.toString().lines()).containsExactlyElementsOf(expected);
  }

  private void make(String[] words) throws IOException {
    Path file = folder.resolve(words[0]);
    if (words.length == 1) {
      boolean isMean = words[0].matches("[qp].npy");
      boolean isOfQ = words[0].matches("[qs].npy");
      double[] values = isOfQ ? isMean ? qMean : qStd : isMean ? pMean : pStd;
      save(words[0], "<f4", isOfQ ? N : M, values);
    } else if (words[1].equals("none")) {
      Files.delete(file);
    } else if (words[1].equals("folder")) {
      Files.createDirectory(file);
    } else if (words[1].equals("text")) {
      Files.writeString(file, String.join(" ", Arrays.asList(words).subList(2, words.length)));
    } else {
      long[] shape =
          Stream.of(words[2].replaceAll("[()]", "").split(","))
              .filter(axis -> !axis.isEmpty())
              .mapToLong(Long::parseLong)
              .toArray();
      int count = (int) Arrays.stream(shape).reduce(1, (a, b) -> a * b);
      NpyFiles.write(
          file, words[1], shape, values(count, Arrays.asList(words).subList(3, words.length)));
    }
  }

  private double[] values(int count, List<String> words) throws IOException {
    double[] values = {};
    for (String word : words) {
      if (word.startsWith("@")) {
        String[] place = word.substring(1).split("=");
        values[Integer.parseInt(place[0])] = Double.parseDouble(place[1]);
        continue;
      }
      String[] parts = word.split("\\*");
      double[] more =
          word.endsWith(".npy")
              ? switch (word) {
                case "q.npy" -> qMean;
                case "s.npy" -> qStd;
                case "p.npy" -> pMean;
                default -> pStd;
              }
              : new double[] {Double.parseDouble(parts[0])};
      int times = parts.length > 1 ? Integer.parseInt(parts[1]) : 1;
      for (int i = 0; i < times; i++) {
        values = DoubleStream.concat(Arrays.stream(values), Arrays.stream(more)).toArray();
      }
    }
    int given = values.length;
    values = Arrays.copyOf(values, count);
    if (given > 0 && given < count) {
      Arrays.fill(values, given, count, values[given - 1]);
    }
    return values;
  }

  private String printed(String line) throws IOException {
    List<String> before = contents();
    Result result = run(line.substring(PROMPT.length()));
    StringBuilder printed = new StringBuilder();
    readable(result.out()).forEach(text -> printed.append(text).append('\n'));
    readable(result.err()).forEach(text -> printed.append("! ").append(text).append('\n'));
    if (result.status() != 0) {
      printed.append('[').append(result.status()).append("]\n");
      assertThat(contents()).as(line).isEqualTo(before);
    }
    return printed.toString();
  }

  /** Leaves out the folder and the time that something took. */
  private Stream<String> readable(String text) {
    return text.replace(folder + "/", "").replaceAll(" in \\S+ s\\b", " in … s").lines();
  }
}
