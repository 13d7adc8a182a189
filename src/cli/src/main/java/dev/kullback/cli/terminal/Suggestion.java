package dev.kullback.cli.terminal;

import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import picocli.CommandLine;

/** Finds the command or option that is meant by a word that is none. */
public final class Suggestion {
  /** The commands that other programs call by these names. */
  private static final Map<String, String> SYNONYMS =
      Map.ofEntries(
          Map.entry("kl", "pairwise"),
          Map.entry("kld", "pairwise"),
          Map.entry("kl-div", "pairwise"),
          Map.entry("kl-divergence", "pairwise"),
          Map.entry("cdist", "pairwise"),
          Map.entry("knn", "topk"),
          Map.entry("nearest", "topk"),
          Map.entry("neighbors", "topk"),
          Map.entry("radius", "within"),
          Map.entry("search", "query"));

  /** What to give for an option that no command has, or not this one; where a command has it, it is not looked for. */
  private static final Map<String, String> OPTIONS =
      Map.of(
          "--mu", "did you mean --mean?",
          "--loc", "did you mean --mean?",
          "--means", "did you mean --mean?",
          "--scale", "give --std, --variance or another option of scales",
          "--sigma", "did you mean --std, or --covariance of matrices?",
          "--sigma2", "did you mean --variance?",
          "--points", "density, responsibilities, topk, within and index query take points",
          "--log-density",
              "density computes log-densities, and topk and within rank --points by them");

  /** The same of the commands of {@code index}. */
  private static final Map<String, String> OF_INDEX =
      Map.of(
          "--divergence",
          "an index ranks by what it was made for: index create takes it, and index info tells it");

  private Suggestion() {}

  /** Returns the whole message on words of a command line that nothing takes. */
  public static String unmatched(CommandLine command, List<String> words) {
    List<String> options = words.stream().filter(word -> word.startsWith("-")).toList();
    boolean hasCommands = !command.getSubcommands().isEmpty();
    String first = options.isEmpty() || hasCommands ? words.getFirst() : options.getFirst();
    String message;
    if (first.startsWith("-")) { // a value that follows one is none
      message =
          (options.size() == 1 ? "Unknown option: '" : "Unknown options: '")
              + String.join("', '", options)
              + "'";
    } else if (hasCommands) {
      message = "there is no command '" + first + "'";
    } else {
      return command.getCommandSpec().optionsMap().containsKey("--mean")
          ? "'%s' follows no option: give each file and value after its option, as in --mean %1$s"
              .formatted(first)
          : "unexpected argument '" + first + "'";
    }
    return message + of(command, first);
  }

  /** Returns the end of a message, which names the one command or option that the word comes near to; empty if there is not one. */
  public static String of(CommandLine command, String word) {
    boolean isOption = word.startsWith("-");
    Map<String, ?> named =
        isOption ? command.getCommandSpec().optionsMap() : command.getSubcommands();
    String typed = isOption ? word.replaceFirst("=.*", "") : word;
    String advice = advice(command, typed);
    if (!advice.isEmpty()) {
      return "; " + advice;
    }
    List<String> longer = named.keySet().stream().filter(n -> n.startsWith(typed)).toList();
    List<String> near = longer.isEmpty() ? nearest(typed, named.keySet()) : longer;
    boolean isOne = near.stream().map(named::get).distinct().count() == 1; // it may have two names
    return isOne ? "; did you mean " + near.getFirst() + "?" : "";
  }

  /** Returns what is known of a word that is no command or option here; empty where nothing is. */
  private static String advice(CommandLine command, String word) {
    String synonym = SYNONYMS.getOrDefault(word.toLowerCase(Locale.ROOT).replace('_', '-'), "");
    if (command.getSubcommands().containsKey(synonym)) {
      return "did you mean " + synonym + "?";
    }
    boolean isOfIndex = command.getCommandSpec().qualifiedName().contains(" index ");
    String ofAll = OPTIONS.getOrDefault(word, "");
    return isOfIndex ? OF_INDEX.getOrDefault(word, ofAll) : ofAll;
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
