import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.CompoundElement;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.platform.engine.CancellationToken;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherExecutionRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs tests on one mutant after the other, whose classes take the place of the loaded ones: what a mutant does not change stays compiled, which is most
 * of a test's time. A line of standard input is a folder of classes and the names of tests, and is answered by {@code ok}, by the test that failed, or by
 * {@code new} where this virtual machine cannot take the change.
 */
public final class Worker implements TestExecutionListener {
  private static Instrumentation instrumentation;

  private final CancellationToken atFailure = CancellationToken.create();
  private String result = "none"; // where no test has run

  private Worker() {}

  public static void premain(String arguments, Instrumentation given) {
    instrumentation = given;
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(new PrintStream(OutputStream.nullOutputStream()));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      List<String> words = List.of(line.split(" "));
      List<ClassDefinition> before = new ArrayList<>();
      answers.println(
          replace(Path.of(words.getFirst()), before) ? run(words.subList(1, words.size())) : "new");
      answers.flush();
      instrumentation.redefineClasses(before.toArray(ClassDefinition[]::new));
    }
    System.exit(0); // whatever threads a mutant has left
  }

  /** Replaces classes by those of a folder that differ from them, if it can. */
  private static boolean replace(Path folder, List<ClassDefinition> before)
      throws IOException, ClassNotFoundException {
    List<ClassDefinition> after = new ArrayList<>();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(f -> f.toString().endsWith(".class")).toList()) {
        String name = folder.relativize(file).toString();
        byte[] old;
        try (var in = ClassLoader.getSystemResourceAsStream(name)) {
          if (in == null) {
            return false;
          }
          old = in.readAllBytes();
        }
        byte[] changed = Files.readAllBytes(file);
        if (!initializer(old).equals(initializer(changed))) {
          return false; // has run
        }
        Class<?> type =
            Class.forName(
                name.replace(".class", "").replace('/', '.'),
                false,
                ClassLoader.getSystemClassLoader());
        before.add(new ClassDefinition(type, old));
        after.add(new ClassDefinition(type, changed));
      }
      instrumentation.redefineClasses(after.toArray(ClassDefinition[]::new));
      return true;
    } catch (UnsupportedOperationException | LinkageError | java.lang.instrument.UnmodifiableClassException e) {
      before.clear();
      return false; // as it has other methods or fields
    }
  }

  private static String initializer(byte[] bytes) {
    return ClassFile.of().parse(bytes).methods().stream()
        .filter(method -> method.methodName().equalsString("<clinit>"))
        .map(CompoundElement::toDebugString)
        .findFirst()
        .orElse("");
  }

  private static String run(List<String> tests) {
    Worker worker = new Worker();
    Launcher launcher = LauncherFactory.create();
    for (String test : tests) { // the cheapest first
      if (worker.result.matches("none|ok")) {
        launcher.execute(
            LauncherExecutionRequestBuilder.request(
                    LauncherDiscoveryRequestBuilder.request()
                        .selectors(DiscoverySelectors.selectClass(test))
                        .filters(TagFilter.excludeTags("long", "cuda"))
                        .build())
                .cancellationToken(worker.atFailure)
                .listeners(worker)
                .build());
      }
    }
    return worker.result;
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult end) {
    if (end.getStatus() == Status.FAILED && result.matches("none|ok")) {
      result =
          test.getSource()
              .filter(MethodSource.class::isInstance)
              .map(MethodSource.class::cast)
              .map(
                  source ->
                      source.getClassName().replaceAll(".*\\.", "") + "." + source.getMethodName())
              .orElse(test.getDisplayName());
      atFailure.cancel();
    } else if (test.isTest() && end.getStatus() == Status.SUCCESSFUL && result.equals("none")) {
      result = "ok";
    }
  }
}
