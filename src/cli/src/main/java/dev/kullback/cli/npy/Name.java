package dev.kullback.cli.npy;

import dev.kullback.cli.terminal.Text;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * What a name on the command line stands for: {@code moments.npz:mean}, for example.
 *
 * @param array null for the only one of the file
 * @param isBfloat16 whether elements of two bytes are said to be bfloat16, by {@code :bfloat16} at the end
 */
record Name(Path file, @Nullable String array, boolean isBfloat16) {
  private static final List<String> CONTAINERS = List.of(".npz:", ".safetensors:", ".parquet:");
  private static final String BFLOAT16 = ":bfloat16";

  /** Names of a file's arrays that an error shows, and characters of each. */
  private static final int MOST_NAMES = 20;

  private static final int LONGEST_NAME = 60;

  /** A name of an existing file is that file's, whatever its characters. */
  static Name of(Path name) {
    if (name.equals(Input.STDIN) || Files.exists(name)) {
      return new Name(name, null, false);
    }
    String text = name.toString();
    boolean isBfloat16 = text.endsWith(BFLOAT16);
    if (isBfloat16) {
      text = text.substring(0, text.length() - BFLOAT16.length());
    }
    int end = Files.exists(Path.of(text)) ? -1 : end(text.toLowerCase(Locale.ROOT));
    return end < 0
        ? new Name(Path.of(text), null, isBfloat16)
        : new Name(Path.of(text.substring(0, end)), text.substring(end + 1), isBfloat16);
  }

  /** Returns where the file's name ends in that of an array, or -1. */
  private static int end(String text) {
    int end = -1;
    for (String container : CONTAINERS) {
      int at = text.lastIndexOf(container);
      end = at < 0 ? end : Math.max(end, at + container.length() - 1);
    }
    return end;
  }

  static String shortened(String array) {
    return Text.name(array, LONGEST_NAME);
  }

  Name withArray(String name) {
    return new Name(file, name, isBfloat16);
  }

  /** Returns an error where no array, or none of the only ones that there are, is named. */
  NpyException noneOf(List<String> names) {
    String container = Input.suffix(file).equals("npz") ? "archive" : "file";
    if (names.isEmpty()) {
      return new NpyException("no array is in the " + container);
    }
    String list =
        names.stream().limit(MOST_NAMES).map(Name::shortened).collect(Collectors.joining(", "));
    if (names.size() > MOST_NAMES) {
      list += " and %d more".formatted(names.size() - MOST_NAMES);
    }
    return new NpyException(
        array == null
            ? "holds several arrays: name one, as in %s:%s; it has %s"
                .formatted(file.getFileName(), names.getFirst(), list)
            : "no such array: the %s has %s".formatted(container, list));
  }
}
