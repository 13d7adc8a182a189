import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Runs tests on mutants of the library and of the command line, each of which is to fail the laws, or the test that its entry names. An entry of
 * the list is {@code file}, {@code old}, {@code new} and perhaps {@code test}, one a line, and ends with an empty line; a text that goes over lines
 * has {@code \n}. A mutant is compiled alone, into a folder in front of the module's classes, so the sources stay as they are.
 */
public final class Mutants {
  private static final Path LIBRARY = Path.of("src/library").toAbsolutePath();
  private static final Path CLI = Path.of("src/cli").toAbsolutePath();
  private static final List<Path> SOURCES =
      List.of(
          LIBRARY.resolve("src/main/java/dev/kullback"),
          LIBRARY.resolve("target/generated-sources/kernels/dev/kullback"),
          CLI.resolve("src/main/java/dev/kullback"));

  /** What holds of every operation, and an outside witness: the tests of an entry that names none. */
  private static final String LAWS =
      "dev.kullback.WitnessTest dev.kullback.internal.verify.LawsTest";

  private static final Path JAVA = Path.of(System.getProperty("java.home"), "bin");

  private Mutants() {}

  /**
   * @param arguments the list, and perhaps a text that the file, the old text or the test of a mutant must contain, which all do that are tried
   */
  public static void main(String[] arguments) throws IOException, InterruptedException {
    String only = arguments.length > 1 ? arguments[1] : "";
    int tried = 0;
    int survived = 0;
    for (Map<String, String> mutant : entries(Path.of(arguments[0]))) {
      if (mutant.values().stream().noneMatch(text -> text.contains(only))) {
        continue;
      }
      tried++;
      String found = tryOut(mutant);
      survived += found.equals("found") ? 0 : 1;
      System.out.printf(
          "%-9s %s: %s by %s%n",
          found, mutant.get("file"), mutant.get("new").lines().findFirst().get(), mutant.get("test"));
    }
    System.out.printf("%d of %d mutants found%n", tried - survived, tried);
    System.exit(survived > 0 ? 1 : 0);
  }

  private static List<Map<String, String>> entries(Path list) throws IOException {
    List<Map<String, String>> entries = new ArrayList<>();
    for (String entry : Files.readString(list).split("\n\n+")) {
      Map<String, String> mutant = new TreeMap<>();
      entry
          .lines()
          .filter(line -> !line.startsWith("#"))
          .forEach(line -> {
            int colon = line.indexOf(": ");
            mutant.put(line.substring(0, colon), line.substring(colon + 2).replace("\\n", "\n"));
          });
      if (!mutant.isEmpty()) {
        mutant.putIfAbsent("test", LAWS);
        entries.add(mutant);
      }
    }
    return entries;
  }

  private static String tryOut(Map<String, String> mutant)
      throws IOException, InterruptedException {
    Path home = mutant.get("file").startsWith("cli/") ? CLI : LIBRARY;
    String classes =
        home.resolve("target/test-classes")
            + File.pathSeparator
            + home.resolve("target/classes")
            + File.pathSeparator
            + Files.readString(home.resolve("target/mutants.classpath")).strip();
    Path folder = Files.createTempDirectory("mutant");
    try {
      Path source =
          SOURCES.stream()
              .map(root -> root.resolve(mutant.get("file")))
              .filter(Files::exists)
              .findFirst()
              .orElseThrow(() -> new IllegalArgumentException("no file " + mutant.get("file")));
      String text = Files.readString(source);
      String old = mutant.get("old");
      if (text.indexOf(old) < 0 || text.indexOf(old) != text.lastIndexOf(old)) {
        return "STALE"; // not once in its file
      }
      Path changed = folder.resolve(source.getFileName());
      Files.writeString(changed, text.replace(old, mutant.get("new")));
      String javac = JAVA.resolve("javac").toString();
      String module = "jdk.incubator.vector";
      int compiled =
          run(
              home,
              folder,
              60,
              javac,
              "-nowarn",
              "-proc:none",
              "--add-modules",
              module,
              "-cp",
              classes,
              "-d",
              folder.toString(),
              changed.toString());
      if (compiled != 0) {
        return "BROKEN"; // is no Java
      }
      List<String> tests =
          new ArrayList<>(
              List.of(
                  JAVA.resolve("java").toString(),
                  "--add-modules",
                  module,
                  "-Ddev.kullback.background=false",
                  "-Ddev.kullback.compiled=true",
                  "-ea",
                  "-cp",
                  folder + File.pathSeparator + classes,
                  "org.junit.platform.console.ConsoleLauncher",
                  "execute",
                  "--fail-fast",
                  "--exclude-tag=long",
                  "--exclude-tag=cuda",
                  "--fail-if-no-tests"));
      for (String test : mutant.get("test").split(" ")) {
        tests.add("--select-class=" + test);
      }
      int status = run(home, folder, 240, tests.toArray(String[]::new));
      return status == 0 ? "SURVIVED" : "found";
    } finally {
      try (Stream<Path> all = Files.walk(folder)) {
        all.sorted((a, b) -> b.compareTo(a)).forEach(path -> path.toFile().delete());
      }
    }
  }

  /** Runs a command until it ends, or time is up, which tells of a mutant, too. */
  private static int run(Path home, Path folder, long seconds, String... command)
      throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(command)
            .directory(home.toFile())
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("out").toFile())
            .start();
    return process.waitFor(seconds, TimeUnit.SECONDS)
        ? process.exitValue()
        : process.destroyForcibly().waitFor();
  }
}
