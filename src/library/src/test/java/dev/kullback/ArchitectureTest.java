package dev.kullback;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.net.URI;
import java.nio.file.Path;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;
import org.junit.jupiter.api.Test;

/** What may depend on what. */
class ArchitectureTest {
  private static final String VECTOR = "jdk.incubator.vector";
  private static final String KERNELS =
      "dev\\.kullback\\.(FloatKernels|DoubleKernels|NearKernel|VectorKernel|CholeskyKernel|FullKernels|FullSolveKernel|FullVectorKernel|Epilogue|VectorScan|VectorWidth|Transpose|LogProduct\\$Vectors)(\\$.*)?";

  private static final Path MAIN = main();
  private static final JavaClasses CLASSES = new ClassFileImporter().importPath(MAIN);

  @Test
  void onlyVectorKernelsUseTheIncubatorModule() {
    noClasses()
        .that()
        .haveNameNotMatching(KERNELS)
        .should()
        .dependOnClassesThat()
        .resideInAPackage(VECTOR)
        .check(CLASSES);
    assertThat(CLASSES.stream().filter(type -> type.getFullName().matches(KERNELS)))
        .as("kernels by these names exist and use vectors: the rule above bites")
        .anyMatch(type ->
            type.getDirectDependenciesFromSelf().stream()
                .anyMatch(
                    dependency -> dependency.getTargetClass().getPackageName().equals(VECTOR)));
  }

  /**
   * C2 of JDK 25.0.3 may make an empty mask of a long that came from a mask (see VectorScan), which inlining can bring together from
   * anywhere.
   */
  @Test
  void noMaskIsMadeOfBits() {
    ArchRule rule =
        noClasses()
            .should()
            .callMethod(VectorMask.class, "fromLong", VectorSpecies.class, long.class);
    rule.check(CLASSES);
    assertThatThrownBy(() -> rule.check(new ClassFileImporter().importClasses(FromLong.class)))
        .as("the rule bites")
        .isInstanceOf(AssertionError.class);
  }

  /** What the rule forbids. */
  private static final class FromLong {
    static VectorMask<Double> of(long bits) {
      return VectorMask.fromLong(DoubleVector.SPECIES_PREFERRED, bits);
    }
  }

  @Test
  void theLibraryDependsOnTheJdkAlone() {
    noClasses()
        .that()
        .resideInAnyPackage("dev.kullback", "dev.kullback.internal..")
        .should()
        .dependOnClassesThat(
            DescribedPredicate.describe(
                "are neither the library nor the JDK nor annotations", ArchitectureTest::foreign))
        .check(CLASSES);
  }

  private static boolean foreign(JavaClass type) {
    String name = type.getBaseComponentType().getPackageName();
    return !type.getBaseComponentType().isPrimitive()
        && !name.matches("dev\\.kullback(\\.internal\\..*)?")
        && !name.matches("(java|jdk|com\\.sun\\.management|org\\.jspecify)(\\..*)?");
  }

  @Test
  void onePackageIsExported() {
    ModuleDescriptor module = ModuleFinder.of(MAIN).find("dev.kullback").orElseThrow().descriptor();
    assertThat(module.exports())
        .singleElement()
        .satisfies(exports -> {
          assertThat(exports.source()).isEqualTo("dev.kullback");
          assertThat(exports.isQualified()).isFalse();
        });
    assertThat(module.requires())
        .filteredOn(
            requires -> !requires.modifiers().contains(ModuleDescriptor.Requires.Modifier.STATIC))
        .allMatch(requires -> requires.name().matches("(java|jdk)\\..*"));
  }

  private static Path main() {
    String path = KlEngine.class.getResource("KlEngine.class").toString();
    return Path.of(
        URI.create(path.substring(0, path.length() - "dev/kullback/KlEngine.class".length())));
  }
}
