package dev.kullback.cli;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import java.net.URI;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Checks which package of the command line uses which. */
class ArchitectureTest {
  private static final String ROOT = "dev.kullback.cli";

  /** The packages that each may use besides itself; they come before it. The root may use all. */
  private static final Map<String, List<String>> PACKAGES = new LinkedHashMap<>();

  static {
    PACKAGES.put("terminal", List.of());
    PACKAGES.put("npy", List.of("terminal"));
    PACKAGES.put("output", List.of("npy", "terminal"));
    PACKAGES.put("picture", List.of("npy", "terminal"));
    PACKAGES.put("batch", List.of("npy", "terminal"));
    PACKAGES.put("command", List.of("batch", "picture", "output", "npy", "terminal"));
  }

  private static final JavaClasses CLASSES = new ClassFileImporter().importPath(main());

  @Test
  void arrowsGoOneWay() {
    Set<String> earlier = new HashSet<>();
    PACKAGES.forEach((name, used) -> {
      assertThat(earlier).as("packages before " + name).containsAll(used);
      earlier.add(name);
      arrows(name, used).check(CLASSES);
    });
    assertThatThrownBy(() -> arrows("output", List.of("terminal")).check(CLASSES))
        .as("the rule bites")
        .isInstanceOf(AssertionError.class);
  }

  /** Returns the rule that a package uses itself and {@code used} alone of the command line. */
  private static ArchRule arrows(String name, List<String> used) {
    String[] allowed =
        Stream.concat(Stream.of(name), used.stream())
            .map(ArchitectureTest::full)
            .toArray(String[]::new);
    return noClasses()
        .that()
        .resideInAPackage(full(name))
        .should()
        .dependOnClassesThat(resideInAPackage(ROOT + "..").and(not(resideInAnyPackage(allowed))));
  }

  @Test
  void everyClassHasAPackage() {
    Set<String> packages =
        CLASSES.stream().map(JavaClass::getPackageName).collect(Collectors.toSet());
    assertThat(packages)
        .containsExactlyInAnyOrderElementsOf(
            Stream.concat(Stream.of(ROOT), PACKAGES.keySet().stream().map(ArchitectureTest::full))
                .toList());
  }

  @Test
  void noCycles() {
    slices().matching(ROOT + ".(**)").should().beFreeOfCycles().check(CLASSES);
  }

  @Test
  void usesThePublicLibraryAlone() {
    noClasses()
        .should()
        .dependOnClassesThat()
        .resideInAPackage("dev.kullback.internal..")
        .check(CLASSES);
  }

  @Test
  void onlyPicturesNeedAwt() {
    ArchRule rule =
        noClasses()
            .that()
            .resideOutsideOfPackage(full("picture"))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("java.awt..", "javax.imageio..");
    rule.check(CLASSES);
    assertThatThrownBy(() -> rule.check(new ClassFileImporter().importClasses(Drawing.class)))
        .as("the rule bites")
        .isInstanceOf(AssertionError.class);
  }

  /** Breaks the rule. */
  private static final class Drawing {
    static final java.awt.Color COLOR = java.awt.Color.WHITE;
  }

  private static String full(String name) {
    return ROOT + "." + name;
  }

  private static Path main() {
    String file = Main.class.getName().replace('.', '/') + ".class";
    String path = Main.class.getResource("Main.class").toString();
    return Path.of(URI.create(path.substring(0, path.length() - file.length())));
  }
}
