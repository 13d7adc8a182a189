package dev.kullback.bench;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Predicate;

/** The command line of a benchmark whose options, {@code --name N}, are whole numbers from 1 on. */
final class Command {
  private Command() {}

  /**
   * Runs a benchmark, which is given all options and tells whether it missed a figure, and ends the process: 0, or 1 when a
   * figure was missed or a result was wrong, or 2 for wrong usage.
   */
  static void run(
      String name,
      String usage,
      Map<String, Integer> defaults,
      String[] args,
      Predicate<Map<String, Integer>> benchmark) {
    int status = 0;
    try {
      if (args.length > 0 && (args[0].equals("--help") || args[0].equals("-h"))) {
        System.out.print(usage);
      } else if (benchmark.test(parse(defaults, args))) {
        status = 1;
      }
    } catch (Unavailable | Agreement.Disagreement e) {
      System.err.println(name + ": " + e.getMessage());
      status = 1;
    } catch (IllegalArgumentException e) { // the library's, too: it says which argument and why
      System.err.println(name + ": " + e.getMessage());
      status = 2;
    }
    System.exit(status);
  }

  private static Map<String, Integer> parse(Map<String, Integer> defaults, String... args) {
    Map<String, Integer> options = new HashMap<>(defaults);
    for (int i = 0; i < args.length; i += 2) {
      if (!defaults.containsKey(args[i]) || i + 1 == args.length) {
        throw new IllegalArgumentException(
            "unknown option or missing value: " + args[i] + " (--help lists the options)");
      }
      options.put(args[i], number(args[i], args[i + 1]));
    }
    return options;
  }

  private static int number(String option, String value) {
    try {
      int number = Integer.parseInt(value);
      if (number > 0) {
        return number;
      }
    } catch (NumberFormatException e) {
      // reported below
    }
    throw new IllegalArgumentException(option + " '" + value + "': a whole number from 1 on");
  }
}
