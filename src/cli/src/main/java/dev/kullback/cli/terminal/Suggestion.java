package dev.kullback.cli.terminal;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import picocli.CommandLine;

/** Finds the command or option that is meant by a word that is none. */
public final class Suggestion {
  private Suggestion() {}

  /** Returns the end of a message, which names the one command or option that the word comes near to; empty if there is not one. */
  public static String of(CommandLine command, String word) {
    boolean isOption = word.startsWith("-");
    Map<String, ?> named =
        isOption ? command.getCommandSpec().optionsMap() : command.getSubcommands();
    String typed = isOption ? word.replaceFirst("=.*", "") : word;
    List<String> longer = named.keySet().stream().filter(n -> n.startsWith(typed)).toList();
    List<String> near = longer.isEmpty() ? nearest(typed, named.keySet()) : longer;
    boolean isOne = near.stream().map(named::get).distinct().count() == 1; // it may have two names
    return isOne ? "; did you mean " + near.getFirst() + "?" : "";
  }

  /** Returns the names that come nearest to the word, if one typing error for each four of its letters makes it of them. */
  private static List<String> nearest(String word, Collection<String> names) {
    int letters = word.replace("-", "").length();
    int most = letters < 3 ? 0 : Math.max(1, letters / 4);
    Map<Integer, List<String>> byDistance =
        names.stream()
            .filter(name -> Math.abs(name.length() - word.length()) <= most)
            .collect(Collectors.groupingBy(name -> distance(word, name)));
    return IntStream.rangeClosed(1, most)
        .mapToObj(byDistance::get)
        .filter(Objects::nonNull)
        .findFirst()
        .orElse(List.of());
  }

  /** Counts the letters that are to be inserted, deleted, replaced, or exchanged with the next. */
  private static int distance(String a, String b) {
    int[][] d = new int[a.length() + 1][b.length() + 1];
    for (int i = 0; i <= a.length(); i++) {
      for (int j = 0; j <= b.length(); j++) {
        if (i == 0 || j == 0) {
          d[i][j] = i + j;
          continue;
        }
        int same = a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1;
        d[i][j] =
            IntStream.of(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + same).min().getAsInt();
        boolean isExchanged =
            i > 1
                && j > 1
                && a.charAt(i - 1) == b.charAt(j - 2)
                && a.charAt(i - 2) == b.charAt(j - 1);
        d[i][j] = isExchanged ? Math.min(d[i][j], d[i - 2][j - 2] + 1) : d[i][j];
      }
    }
    return d[a.length()][b.length()];
  }
}
