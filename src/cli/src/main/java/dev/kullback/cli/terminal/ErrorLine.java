package dev.kullback.cli.terminal;

import java.io.IOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Makes the line of an error. In a long one, what the user typed is cut, above all paths; what is wrong with it never is. */
final class ErrorLine {
  /** The longest line in which nothing is cut. */
  private static final int LINE = 200;

  /** What is left of a longer name, unless the file's own is longer. */
  private static final int NAME = 60;

  private ErrorLine() {}

  /**
   * Escapes a message, with long names cut if it is long.
   *
   * @param words the command line's
   */
  static String of(String message, Collection<String> words) {
    String whole = Text.escape(message);
    if (whole.length() <= LINE) {
      return whole;
    }
    List<String> named =
        names(words).stream()
            .filter(
                name -> message.contains(name) && !Text.name(name, NAME).equals(Text.escape(name)))
            .sorted(Comparator.comparingInt(String::length).reversed()) // a file before its folder
            .toList();
    List<String> cut = named.stream().map(name -> Text.name(name, NAME)).toList();
    String line = message;
    for (int n = 0; n < cut.size(); n++) {
      if (tellsApart(n, named, cut)) { // else only the folders of the two are cut
        line = line.replace(named.get(n), cut.get(n));
      }
    }
    return Text.escape(line);
  }

  /** Whether no other name is cut to the same, but a folder of this one or what is in it. */
  private static boolean tellsApart(int n, List<String> named, List<String> cut) {
    for (int m = 0; m < cut.size(); m++) {
      boolean isOther =
          !named.get(m).startsWith(named.get(n)) && !named.get(n).startsWith(named.get(m));
      if (isOther && cut.get(m).equals(cut.get(n))) {
        return false;
      }
    }
    return true;
  }

  /** Returns the words, and the names that a message may have for the files and folders that they name. */
  private static Set<String> names(Collection<String> words) {
    Set<String> names = new HashSet<>();
    for (String word : words) {
      names.add(word);
      String value = word.substring(word.indexOf('=') + 1); // of --mean=Q.npy
      names.add(value);
      int archive = value.lastIndexOf(':');
      Stream.of(value, value.substring(0, Math.max(0, archive))).forEach(name -> add(names, name));
    }
    names.remove("");
    return names;
  }

  private static void add(Set<String> names, String name) {
    try {
      Path path = Path.of(name);
      Path absolute = path.toAbsolutePath();
      for (Path known : new Path[] {path, absolute, absolute.normalize(), real(absolute)}) {
        for (@Nullable Path part = known; part != null; part = part.getParent()) {
          names.add(part.toString());
        }
      }
    } catch (InvalidPathException e) {
      // no path, but a word
    }
  }

  private static Path real(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) { // not there
      return path;
    }
  }
}
