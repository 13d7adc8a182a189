package dev.kullback;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
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
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;
import org.junit.jupiter.api.Test;

/** Checks which package may depend on which. */
class ArchitectureTest {
  private static final String VECTOR = "jdk.incubator.vector";

  /** The rooms that each room may use besides itself and the JDK; they come before it. The architecture page draws them. */
  private static final Map<String, List<String>> ROOMS = new LinkedHashMap<>();

  static {
    ROOMS.put("api", List.of());
    ROOMS.put("numerics", List.of());
    ROOMS.put("observe", List.of());
    ROOMS.put("work", List.of("api"));
    ROOMS.put("batch", List.of("api", "numerics", "work"));
    ROOMS.put("kernel", List.of("batch", "work"));
    ROOMS.put("formula", List.of("kernel", "batch", "numerics", "work"));
    ROOMS.put("vector", List.of("formula", "kernel", "batch", "numerics", "work"));
    ROOMS.put("vector.full", List.of("vector", "formula", "kernel", "batch", "numerics", "work"));
    ROOMS.put("vector.scan", List.of("vector", "kernel", "numerics"));
    ROOMS.put("cuda.abi", List.of());
    ROOMS.put("cuda", List.of("api", "cuda.abi", "kernel", "batch", "numerics", "work"));
    ROOMS.put("rows", List.of("formula", "kernel", "batch", "numerics", "work"));
    ROOMS.put(
        "engine",
        List.of(
            "api",
            "rows",
            "cuda",
            "vector.full",
            "vector.scan",
            "vector",
            "formula",
            "kernel",
            "batch",
            "numerics",
            "observe",
            "work"));
    ROOMS.put("mixture", List.of("engine", "rows", "formula", "batch", "numerics", "work"));
    ROOMS.put("index.store", List.of("api", "kernel", "batch", "numerics", "observe", "work"));
    ROOMS.put(
        "index.search",
        List.of(
            "index.store",
            "engine",
            "rows",
            "formula",
            "kernel",
            "batch",
            "numerics",
            "observe",
            "work"));
    ROOMS.put(
        "verify",
        List.of(
            "index.search",
            "index.store",
            "mixture",
            "engine",
            "rows",
            "formula",
            "batch",
            "numerics",
            "work"));
  }

  /** Values of the API that every room may use, as callers give or get them. */
  private static final DescribedPredicate<JavaClass> VALUES =
      describe(
          "are values of the API",
          c ->
              Stream.of(
                      AlreadyClosedException.class,
                      CorruptIndexException.class,
                      CudaException.class,
                      DiskFullException.class,
                      IndexLockedException.class,
                      InvalidGaussianException.class,
                      ScalePolicy.class,
                      SearchTimeoutException.class)
                  .anyMatch(c.getBaseComponentType()::isEquivalentTo));

  private static final Path MAIN = main();
  private static final JavaClasses CLASSES = new ClassFileImporter().importPath(MAIN);

  /** The rooms that the API may use. */
  private static final List<String> FACADE_USES =
      List.of(
          "index.search",
          "index.store",
          "verify",
          "engine",
          "rows",
          "mixture",
          "formula",
          "batch",
          "numerics",
          "observe",
          "work",
          "api");

  @Test
  void arrowsBetweenRoomsGoOneWay() {
    Set<String> earlier = new HashSet<>();
    ROOMS.forEach((room, used) -> {
      assertThat(earlier).as("rooms before " + room).containsAll(used);
      earlier.add(room);
      arrows(inRoom(room), used).check(CLASSES);
    });
    arrows("dev.kullback", FACADE_USES).check(CLASSES);
    assertThatThrownBy(() -> arrows(inRoom("rows"), List.of("batch")).check(CLASSES))
        .as("the rule bites")
        .isInstanceOf(AssertionError.class);
  }

  @Test
  void valuesOfTheApiUseNoRoomButOne() {
    noClasses()
        .that(VALUES)
        .should()
        .dependOnClassesThat(
            resideInAPackage("dev.kullback..")
                .and(not(resideInAPackage(inRoom("api"))))
                .and(not(VALUES)))
        .check(CLASSES);
  }

  /** Returns the rule that a package uses, of the library, only itself, these rooms and {@link #VALUES}. */
  private static ArchRule arrows(String from, List<String> used) {
    String[] allowed =
        Stream.concat(Stream.of(from), used.stream().map(ArchitectureTest::inRoom))
            .toArray(String[]::new);
    return noClasses()
        .that()
        .resideInAPackage(from)
        .should()
        .dependOnClassesThat(
            resideInAPackage("dev.kullback..")
                .and(not(resideInAnyPackage(allowed)))
                .and(not(VALUES)));
  }

  @Test
  void everyClassHasARoom() {
    String[] rooms =
        Stream.concat(
                Stream.of("dev.kullback"), ROOMS.keySet().stream().map(ArchitectureTest::inRoom))
            .toArray(String[]::new);
    classes().should().resideInAnyPackage(rooms).check(CLASSES);
    for (String room : rooms) {
      assertThat(CLASSES.stream().map(JavaClass::getPackageName)).contains(room);
    }
  }

  @Test
  void noCycles() {
    slices().matching("dev.kullback.(**)").should().beFreeOfCycles().check(CLASSES);
  }

  private static String inRoom(String room) {
    return "dev.kullback.internal." + room;
  }

  /** The module of events may be missing. */
  @Test
  void onlyOneRoomUsesFlightRecorder() {
    noClasses()
        .that()
        .resideOutsideOfPackage(inRoom("observe"))
        .should()
        .dependOnClassesThat()
        .resideInAPackage("jdk.jfr..")
        .check(CLASSES);
  }

  @Test
  void onlyTheVectorRoomsUseTheIncubatorModule() {
    ArchRule rule =
        noClasses()
            .that()
            .resideOutsideOfPackage("dev.kullback.internal.vector..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage(VECTOR);
    rule.check(CLASSES);
    assertThatThrownBy(() -> rule.check(new ClassFileImporter().importClasses(FromLong.class)))
        .as("the rule bites")
        .isInstanceOf(AssertionError.class);
  }

  /** Twins without vectors run before it is known whether vectors do, and where there are none. */
  @Test
  void scalarTwinsUseNoVectors() {
    DescribedPredicate<JavaClass> twins =
        describe(
            "are twins without vectors",
            c ->
                c.getPackageName().startsWith(inRoom("vector"))
                    && c.getSimpleName().matches("(Float|Double)?Scalar.*|FullCold.*"));
    assertThat(CLASSES.that(twins).stream().map(JavaClass::getSimpleName))
        .contains(
            "ScalarElementary",
            "ScalarNearMicroKernel",
            "FloatScalarKlSums",
            "DoubleScalarKlSums",
            "FloatScalarChernoffSums",
            "DoubleScalarChernoffSums",
            "ScalarProductKernels",
            "FullColdKernel",
            "FullColdJeffreys",
            "FullColdChernoff",
            "FullColdWasserstein",
            "ScalarCodeScan");
    noClasses().that(twins).should().dependOnClassesThat().resideInAPackage(VECTOR).check(CLASSES);
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

  /** Breaks the rule. */
  private static final class FromLong {
    static VectorMask<Double> of(long bits) {
      return VectorMask.fromLong(DoubleVector.SPECIES_PREFERRED, bits);
    }
  }

  /** JDK 27 may box each view of a vector's bits that is not made by reinterpretShape (see Species). */
  @Test
  void bitsAreViewedByReinterpretShape() {
    ArchRule rule =
        noClasses()
            .should()
            .callMethodWhere(
                describe(
                    "views a vector by viewAs… or reinterpretAs…",
                    call ->
                        call.getTargetOwner().getPackageName().equals(VECTOR)
                            && call.getName().matches("viewAs.*|reinterpretAs.*")));
    rule.check(CLASSES);
    assertThatThrownBy(() -> rule.check(new ClassFileImporter().importClasses(View.class)))
        .as("the rule bites")
        .isInstanceOf(AssertionError.class);
  }

  /** Breaks the rule. */
  private static final class View {
    static LongVector of(DoubleVector vector) {
      return vector.viewAsIntegralLanes();
    }
  }

  @Test
  void theLibraryDependsOnTheJdkAlone() {
    noClasses()
        .that()
        .resideInAnyPackage("dev.kullback", "dev.kullback.internal..")
        .should()
        .dependOnClassesThat(
            describe(
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
