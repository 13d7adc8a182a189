package dev.kullback.bench;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Measures in new JVMs, which have this one's options, except that vectors come as users have them. */
final class NewJvm {
  private static final String NUMBER = "(NaN|-?(Infinity|[0-9]+(\\.[0-9]+)?(E-?[0-9]+)?))";
  private static final Pattern NUMBERS = Pattern.compile(NUMBER + "( " + NUMBER + ")*+");

  private NewJvm() {}

  /** Runs a class, and returns the numbers of the last line that has nothing else. */
  static double[] measure(Class<?> main, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(o -> !o.startsWith("-Ddev.kullback.background"))
        .forEach(command::add);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      List<String> lines =
          process.inputReader().readAllLines(); // with warnings and the log, before and after
      int status = process.waitFor();
      String last =
          lines.reversed().stream().filter(NUMBERS.asMatchPredicate()).findFirst().orElse("");
      if (status != 0 || last.isEmpty()) {
        throw new Unavailable(
            "a JVM that runs %s %s: %s"
                .formatted(
                    main.getSimpleName(), String.join(" ", arguments), String.join("; ", lines)));
      }
      return Stream.of(last.split(" ")).mapToDouble(Double::parseDouble).toArray();
    } catch (IOException e) {
      throw new Unavailable("no JVM starts", e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
