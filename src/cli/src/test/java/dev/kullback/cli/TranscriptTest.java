package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Commands with all that they print, in {@code src/test/transcripts}: after {@code $ kullback …} come the lines of standard output, those of standard
 * error behind {@code !}, and the status in brackets, if it is not 0, nor 2 after an error. Files are those of {@link CommandFixture} and what lines
 * behind {@code +} make: {@code NAME DESCR SHAPE VALUES} an array, in Fortran order where the shape ends with F, whose values may be of another ({@code q.npy}), repeated ({@code 1*20}) or put in a
 * place ({@code @3=NaN}), and whose last fills the rest; {@code NAME text TEXT} a text; {@code NAME zip} or {@code stored MEMBER=FILE} an archive; {@code NAME folder}; {@code NAME none} nothing; {@code NAME copy}
 * or {@code link} or {@code hard OTHER} a copy of another or a link to it; and {@code NAME} alone what the fixture has there. Lines behind {@code =} tell
 * what is in a file, or in a folder, or by {@code NAME as OTHER} that two have the same bytes. Words that begin with {@code ./} are in the folder of the files. An error leaves all files as they were, and an
 * output named o.npy is there from the beginning. {@code -Dtranscripts.write=true} writes the transcripts anew.
 */
class TranscriptTest extends CommandFixture {
  private static final Path TRANSCRIPTS =
      Path.of(System.getProperty("basedir", "."), "src/test/transcripts");

  private static final String PROMPT = "$ kullback ";

  /** More digits than are told to a person: those of float64 that follow differ between processors. */
  private static final Pattern DIGITS = Pattern.compile("\\d\\.\\d{9,}(E-?\\d+)?");

  /** A time, which is more than 0. */
  private static final String POSITIVE = "(?=[\\d.]*[1-9])\\d+(?:\\.\\d+)?(?:[Ee]-?\\d+)?";

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
    char last = '$';
    Set<String> since = new HashSet<>(); // a file changed
    for (String line : expected) {
      char first = line.isEmpty() ? ' ' : line.charAt(0);
      if ("#+=$".indexOf(first) < 0) {
        continue;
      }
      // a blank line before a heading, and before files and the commands on them
      boolean isApart = first == '#' ? last != '#' : first == '+' && "$=".indexOf(last) >= 0;
      seen.append(isApart && !seen.isEmpty() ? "\n" : "");
      switch (first) {
        case '+' -> make(line.substring(2).split(" "));
        case '=' -> line = "= " + contents(line.substring(2).split(" "));
        case '$' ->
            assertThat(since.add(line)).as("%s, once more with the same files", line).isTrue();
        default -> {}
      }
      String printed = first == '$' ? printed(line) : "";
      if (first == '+' || first == '$' && !printed.contains("! kullback: ")) {
        since.clear();
      }
      seen.append(line).append('\n').append(printed);
      last = first;
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
      return;
    }
    switch (words[1]) {
      case "none" -> Files.delete(file);
      case "folder" -> Files.createDirectories(file);
      case "copy" -> Files.copy(folder.resolve(words[2]), file);
      case "link" -> Files.createSymbolicLink(file, Path.of(words[2]));
      case "hard" -> Files.createLink(file, folder.resolve(words[2]));
      case "zip", "stored" ->
          zip(words[0], words[1].equals("stored"), Arrays.copyOfRange(words, 2, words.length));
      case "text" -> {
        String text = String.join(" ", Arrays.asList(words).subList(2, words.length));
        Files.writeString(file, text.translateEscapes());
      }
      default -> {
        long[] shape = axes(words[2]);
        int count = (int) Arrays.stream(shape).reduce(1, (a, b) -> a * b);
        double[] values = values(count, Arrays.asList(words).subList(3, words.length));
        String dict = NpyFiles.dict(words[1], words[2].endsWith("F"), shape);
        NpyFiles.write(file, NpyFiles.bytes(1, dict, NpyFiles.data(words[1], values)));
      }
    }
  }

  /** Returns what a line behind = tells: an array as a line behind + makes it, to seven digits, or names, or a text. */
  private String contents(String... words) throws IOException {
    String name = words[0];
    Path file = folder.resolve(name);
    if (words.length == 3 && words[1].matches("as|unlike")) {
      boolean isSame = Files.mismatch(file, folder.resolve(words[2])) < 0;
      return name + (isSame ? " as " : " unlike ") + words[2];
    }
    if (Files.isDirectory(file)) {
      try (Stream<Path> files = Files.list(file)) {
        Stream<String> names = files.map(one -> one.getFileName().toString()).sorted();
        return name + names.map(one -> " " + one).collect(Collectors.joining());
      }
    }
    if (!Files.exists(file)) {
      return name + " none";
    }
    String bytes = Files.readString(file, StandardCharsets.ISO_8859_1);
    if (!bytes.startsWith("\u0093NUMPY")) {
      return name + " text " + Files.readString(file);
    }
    boolean isOfInts = bytes.contains("'<i");
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = isOfInts ? Npy.readIntegers(file, arena) : Npy.readFloats(file, arena);
      StringBuilder text =
          new StringBuilder(name + " " + (isOfInts ? "<i8" : array.isDouble() ? "<f8" : "<f4"));
      text.append(Arrays.toString(array.shape()).replace("[", " (").replace("]", ")"));
      if (isOfInts) {
        for (long value : array.data().toArray((ValueLayout.OfLong) array.element())) {
          text.append(' ').append(value);
        }
      } else {
        for (double value : values(array)) {
          text.append(' ').append((float) value);
        }
      }
      return text.toString().replace(", ", ",").replaceAll("\\.0\\b", "");
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
    String command = line.substring(PROMPT.length());
    Result result = run(command);
    StringBuilder printed = new StringBuilder();
    readable(result.out()).forEach(text -> printed.append(text).append('\n'));
    readable(result.err()).forEach(text -> printed.append("! ").append(text).append('\n'));
    boolean isError = result.err().startsWith("kullback: ");
    if (result.status() != (isError ? 2 : 0)) {
      printed.append('[').append(result.status()).append("]\n");
    }
    if (result.status() == 0) {
      List<String> named = new ArrayList<>();
      for (String word : args(command)) {
        Path file = Path.of(word);
        boolean isLink = Files.isSymbolicLink(file);
        named.add(isLink ? file.resolveSibling(Files.readSymbolicLink(file)).toString() : word);
      }
      assertThat(contents())
          .as("%s writes to what it names alone", line)
          .filteredOn(file -> !before.contains(file))
          .allMatch(file -> named.stream().anyMatch(file::startsWith));
    } else {
      assertThat(contents()).as(line).isEqualTo(before);
    }
    return printed.toString();
  }

  /** Leaves out the folder, the time that something took, and last digits. */
  private Stream<String> readable(String text) {
    String plain =
        text.replace(folder + "/", "")
            .replaceAll(" in " + POSITIVE + " s\\b", " in … s")
            .replaceAll("(\"seconds\": )" + POSITIVE, "$1…")
            .replaceAll("(\"kullback\": )[^,}]+", "$1…");
    return DIGITS
        .matcher(plain)
        .replaceAll(number -> "%.7g".formatted(Double.parseDouble(number.group())))
        .lines();
  }
}
