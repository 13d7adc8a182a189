import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import javax.tools.ToolProvider;

/**
 * Runs tests on mutants of the library and of the command line, each of which is to fail the laws, or the test that its entry names. An entry of
 * the list is {@code file}, {@code old}, {@code new} and perhaps {@code test}, one a line, and ends with an empty line; a text that goes over lines
 * has {@code \n}. A mutant is compiled alone, and its classes take the place of the module's in a virtual machine that tries one after the other, or
 * stand in front of them in a new one, so the sources stay as they are.
 */
public final class Mutants {
  private static final Path LIBRARY = Path.of("src/library").toAbsolutePath();
  private static final Path CLI = Path.of("src/cli").toAbsolutePath();
  private static final List<Path> SOURCES =
      List.of(
          LIBRARY.resolve("src/main/java/dev/kullback"),
          LIBRARY.resolve("target/generated-sources/kernels/dev/kullback"),
          CLI.resolve("src/main/java/dev/kullback"));

  /** An outside witness, and what holds of every method and every operation, the cheapest first: the tests of an entry that names none. */
  private static final String LAWS =
      "dev.kullback.WitnessTest dev.kullback.ArgumentLawsTest dev.kullback.internal.verify.LawsTest";

  /** The same of the command line. */
  private static final String TRANSCRIPTS = "dev.kullback.cli.TranscriptTest";

  private static final Path JAVA = Path.of(System.getProperty("java.home"), "bin", "java");

  private static final String VECTORS = "jdk.incubator.vector";

  /** Processor time of the tests of a mutant, at most: one that loops for ever is found. */
  private static final Duration MOST_TIME = Duration.ofMinutes(4);

  private static final Map<Path, WorkerProcess> WORKERS = new HashMap<>();

  /** Tests that have passed without a mutant. */
  private static final Set<String> PASSED = new HashSet<>();

  private static Path agent;

  private Mutants() {}

  /**
   * @param arguments the list, perhaps {@code laws}, which tries the laws alone whatever an entry names, and perhaps a text that a mutant's file, old text or
   *     test must contain, which all do that are tried
   */
  public static void main(String[] arguments) throws IOException, InterruptedException {
    boolean areLawsAlone = arguments.length > 1 && arguments[1].equals("laws");
    int next = areLawsAlone ? 2 : 1;
    String only = arguments.length > next ? arguments[next] : "";
    int tried = 0;
    int survived = 0;
    for (Map<String, String> mutant : entries(Path.of(arguments[0]))) {
      if (mutant.values().stream().noneMatch(text -> text.contains(only))) {
        continue;
      }
      String laws = mutant.get("file").startsWith("cli/") ? TRANSCRIPTS : LAWS;
      String tests = areLawsAlone ? laws : mutant.getOrDefault("test", laws);
      long start = System.nanoTime();
      String found = tryOut(mutant, tests);
      tried++;
      survived += found.startsWith("found") ? 0 : 1;
      System.out.printf(
          "%s, %d s: %s: %s%n",
          found,
          TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start),
          mutant.get("file"),
          mutant.get("new").replace("\n", "\\n"));
      System.out.flush();
    }
    System.out.printf("%d of %d mutants found%n", tried - survived, tried);
    for (WorkerProcess worker : WORKERS.values()) {
      worker.end();
    }
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
        entries.add(mutant);
      }
    }
    return entries;
  }

  private static String tryOut(Map<String, String> mutant, String tests)
      throws IOException, InterruptedException {
    Path home = mutant.get("file").startsWith("cli/") ? CLI : LIBRARY;
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
      if (!compiles(classes(home), folder, changed)) {
        return "BROKEN"; // is no Java
      }
      if (PASSED.add(tests)) {
        Path none = Files.createDirectory(folder.resolve("none"));
        String baseline = worker(home).ask(none + " " + tests);
        Files.delete(none);
        if (!baseline.equals("ok")) {
          throw new IllegalStateException(tests + " without a mutant: " + baseline);
        }
      }
      String answer = worker(home).ask(folder + " " + tests);
      if (answer.equals("new")) {
        WorkerProcess anew = new WorkerProcess(home, folder + File.pathSeparator);
        Path none = Files.createDirectory(folder.resolve("none"));
        answer = anew.ask(none + " " + tests);
        anew.end();
      }
      return answer.equals("ok") ? "SURVIVED" : "found by " + answer;
    } finally {
      try (Stream<Path> all = Files.walk(folder)) {
        all.sorted((a, b) -> b.compareTo(a)).forEach(path -> path.toFile().delete());
      }
    }
  }

  private static String classes(Path home) throws IOException {
    return Stream.of(
            home.resolve("target/test-classes").toString(),
            home.resolve("target/classes").toString(),
            Files.readString(home.resolve("target/mutants.classpath")).strip(),
            Files.readString(LIBRARY.resolve("target/mutants.classpath")).strip())
        .collect(Collectors.joining(File.pathSeparator));
  }

  private static boolean compiles(String classes, Path folder, Path source) {
    return ToolProvider.getSystemJavaCompiler()
            .run(
                null,
                OutputStream.nullOutputStream(),
                OutputStream.nullOutputStream(),
                "-g",
                "-proc:none",
                "--add-modules",
                VECTORS,
                "-cp",
                classes,
                "-d",
                folder.toString(),
                source.toString())
        == 0;
  }

  private static WorkerProcess worker(Path home) throws IOException {
    WorkerProcess worker = WORKERS.get(home);
    if (worker == null || !worker.process.isAlive()) {
      worker = new WorkerProcess(home, "");
      WORKERS.put(home, worker);
    }
    return worker;
  }

  /** A virtual machine that runs a {@link Worker}. */
  private static final class WorkerProcess {
    final Process process;
    final BufferedReader answers;

    /**
     * @param first of the class path
     */
    WorkerProcess(Path home, String first) throws IOException {
      Path agent = agent(classes(home));
      process =
          new ProcessBuilder(
                  JAVA.toString(),
                  "-javaagent:" + agent,
                  "--add-modules",
                  VECTORS,
                  "-Ddev.kullback.background=false",
                  "-Ddev.kullback.compiled=true",
                  "-ea",
                  "--enable-native-access=ALL-UNNAMED",
                  "-Xmx2g",
                  "-cp",
                  first + classes(home),
                  "Worker")
              .directory(home.toFile())
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      answers = process.inputReader();
    }

    /** Returns the answer, or what has happened instead. */
    String ask(String line) throws IOException, InterruptedException {
      Writer questions = process.outputWriter();
      questions.write(line + "\n");
      questions.flush();
      Duration most = processorTime().plus(MOST_TIME);
      while (process.isAlive() && !answers.ready()) {
        if (processorTime().compareTo(most) > 0) {
          process.destroyForcibly().waitFor();
          return "its time";
        }
        Thread.sleep(100);
      }
      String answer = answers.readLine();
      return answer == null ? "its end" : answer;
    }

    private Duration processorTime() {
      return process.info().totalCpuDuration().orElse(Duration.ZERO);
    }

    void end() throws IOException {
      process.outputWriter().close();
    }
  }

  /** Makes the archive of a worker, once. */
  private static Path agent(String classes) throws IOException {
    if (agent == null) {
      Path folder = Files.createTempDirectory("worker");
      if (!compiles(classes, folder, LIBRARY.resolve("src/test/mutants/Worker.java"))) {
        throw new IllegalStateException("Worker.java does not compile");
      }
      Manifest manifest = new Manifest();
      manifest.getMainAttributes().putValue("Manifest-Version", "1.0");
      manifest.getMainAttributes().putValue("Premain-Class", "Worker");
      manifest.getMainAttributes().putValue("Can-Redefine-Classes", "true");
      agent = folder.resolve("worker.jar");
      try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(agent), manifest)) {
        out.putNextEntry(new ZipEntry("Worker.class"));
        out.write(Files.readAllBytes(folder.resolve("Worker.class")));
      }
      folder.resolve("Worker.class").toFile().deleteOnExit();
      agent.toFile().deleteOnExit();
    }
    return agent;
  }
}
