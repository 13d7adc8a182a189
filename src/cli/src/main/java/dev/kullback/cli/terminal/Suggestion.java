package dev.kullback.cli.terminal;

import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.UnmatchedArgumentException;

/** Finds the option that is meant by a word that is none. */
public final class Suggestion {
  private Suggestion() {}

  /** Returns the end of a message, which names the one option that begins with the word; empty if there is not one. */
  public static String of(CommandLine command, String word) {
    List<String> longer =
        new UnmatchedArgumentException(command, List.of(word))
            .getSuggestions().stream().filter(name -> name.startsWith(word)).toList();
    return longer.size() == 1 ? "; did you mean " + longer.getFirst() + "?" : "";
  }
}
