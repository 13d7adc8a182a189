package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.testing.CommandFixture;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Commands with all that they print, in {@code src/test/transcripts}: after {@code $ kullback …} come the lines of standard output, those of standard
 * error behind {@code !}, and the status in brackets, if it is not 0. Files are those of {@link CommandFixture}. An error leaves all of them as they
 * were. {@code -Dtranscripts.write=true} writes the transcripts anew.
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
    for (String line : expected) {
      if (line.startsWith("#")) {
        seen.append(seen.isEmpty() ? "" : "\n").append(line).append('\n');
      } else if (line.startsWith(PROMPT)) {
        seen.append('\n').append(line).append('\n').append(printed(line));
      }
    }
    if (Boolean.getBoolean("transcripts.write")) {
      Files.writeString(transcript, seen);
    }
    assertThat(seen.toString().lines()).containsExactlyElementsOf(expected);
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
