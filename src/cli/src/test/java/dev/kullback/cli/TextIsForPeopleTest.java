package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.source.tree.BinaryTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.ConditionalExpressionTree;
import com.sun.source.tree.ExpressionTree;
import com.sun.source.tree.IdentifierTree;
import com.sun.source.tree.MemberSelectTree;
import com.sun.source.tree.MethodInvocationTree;
import com.sun.source.tree.ParenthesizedTree;
import com.sun.source.tree.Tree;
import com.sun.source.tree.TypeCastTree;
import com.sun.source.tree.VariableTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
import com.sun.source.util.Trees;
import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.Divergence;
import dev.kullback.EngineStats;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.IndexStats;
import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import dev.kullback.KlTile;
import dev.kullback.Verification;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What exceptions, backends and engines say is for people: no code here searches, splits or compares it, as types and accessors tell the
 * same. Sources are parsed, not attributed: a variable has the type that it is declared with, and a method without arguments that of the
 * API's method of its name.
 */
class TextIsForPeopleTest {
  private static final Path ROOT = Path.of(System.getProperty("basedir", "."), "../..");

  /** Methods that give text for people. */
  private static final Set<String> TEXTS =
      Set.of("getMessage", "getLocalizedMessage", "describe", "description", "reason");

  /** Methods of strings, and of patterns with a string, that look into it. */
  private static final Set<String> LOOKS =
      Set.of(
          ("charAt compareTo contains endsWith equals equalsIgnoreCase indexOf lastIndexOf matcher matches regionMatches replace"
                  + " replaceAll replaceFirst split startsWith substring")
              .split(" "));

  /** Methods that hand on a text. */
  private static final Set<String> HANDS_ON =
      Set.of("valueOf", "toLowerCase", "toUpperCase", "strip", "trim", "toString");

  /** Exceptions of others that tell what is wanted in words alone. */
  private static final Set<String> FOREIGN = Set.of("AnalysisException", "OutOfMemoryError");

  /** The simple names of the API's types. */
  private static final Set<String> TYPES = new HashSet<>();

  /** The API's methods without arguments that return a type of the API. */
  private static final Set<String> GETTERS = new HashSet<>();

  static {
    for (Class<?> type :
        List.of(
            Backend.class,
            DiagonalGaussians.class,
            Divergence.class,
            EngineStats.class,
            FullGaussians.class,
            Gaussians.class,
            IndexStats.class,
            KlEngine.class,
            KlIndex.class,
            KlTile.class,
            Verification.class,
            Verification.Operation.class)) {
      TYPES.add(type.getSimpleName());
      Arrays.stream(type.getDeclaredMethods())
          .filter(m -> Modifier.isPublic(m.getModifiers()) && m.getParameterCount() == 0)
          .filter(m -> m.getReturnType().getPackageName().equals("dev.kullback"))
          .map(Method::getName)
          .forEach(GETTERS::add);
    }
  }

  @Test
  void nobodyLooksIntoIt() throws IOException {
    List<JavaFileObject> sources = new ArrayList<>();
    for (String folder : List.of("src", "bench", "native")) {
      try (Stream<Path> files = Files.walk(ROOT.resolve(folder))) {
        for (Path file :
            files
                .filter(file -> file.toString().endsWith(".java"))
                .filter(file -> !file.toString().matches(".*/(test|target)/.*"))
                .toList()) {
          sources.add(source(file.toString(), Files.readString(file)));
        }
      }
    }
    assertThat(sources).hasSizeGreaterThan(300);
    assertThat(looks(sources)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "engine.describe().replaceFirst(\"(?s)\\\\W.*\", \"\")",
        "engine.toString().startsWith(\"vector\")",
        "String.valueOf(engine).startsWith(\"vector\")",
        "(\"\" + engine).contains(\"threads\")",
        "engine.divergence().toString().equals(\"kl\")",
        "\"kl\".equals(engine.divergence().toString())",
        "BITS.matcher(Backend.VECTOR.reason()).find()",
        "e.getMessage().contains(\"weights\")",
        "String.valueOf(e.getMessage()).indexOf('x')",
        "(e.getMessage() == null ? \"\" : e.getMessage()).strip().split(\" \")",
        "text.contains(\"weights\")",
        "lower.matches(\"w.*\")"
      })
  void theRuleBites(String expression) {
    assertThat(looks(List.of(source("/X.java", sample(expression))))).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "path.toString().startsWith(\"-\")",
        "String.valueOf(e.getMessage())",
        "new Error(engine + \": \" + e.getMessage())",
        "memory.getMessage().contains(\"heap\")",
        "engine.backend().equals(Backend.VECTOR)"
      })
  void whatItAllows(String expression) {
    assertThat(looks(List.of(source("/X.java", sample(expression))))).isEmpty();
  }

  private static String sample(String expression) {
    return """
    class X {
      Object x(KlEngine engine, Path path, RuntimeException e, OutOfMemoryError memory) {
        String text = String.valueOf(e.getMessage());
        String lower = text.toLowerCase(Locale.ROOT);
        return %s;
      }
    }
    """
        .formatted(expression);
  }

  private static JavaFileObject source(String path, String text) {
    return new SimpleJavaFileObject(URI.create("file://" + path), JavaFileObject.Kind.SOURCE) {
      @Override
      public CharSequence getCharContent(boolean ignoreEncodingErrors) {
        return text;
      }
    };
  }

  /** Returns the places where a text for people is looked into. */
  private static List<String> looks(List<JavaFileObject> sources) {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    JavacTask task =
        (JavacTask) compiler.getTask(null, null, d -> {}, List.of("-proc:none"), null, sources);
    List<String> found = new ArrayList<>();
    try {
      for (CompilationUnitTree unit : task.parse()) {
        new Scan(unit, Trees.instance(task).getSourcePositions(), found).scan(unit, null);
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return found;
  }

  /** Looks for calls in one source. */
  private static final class Scan extends TreeScanner<Void, Void> {
    private final CompilationUnitTree unit;
    private final SourcePositions positions;
    private final List<String> found;

    /** The types of variables by their names, of which the last that was declared counts. */
    private final Map<String, String> types = new HashMap<>();

    /** Variables that hold text for people. */
    private final Set<String> texts = new HashSet<>();

    Scan(CompilationUnitTree unit, SourcePositions positions, List<String> found) {
      this.unit = unit;
      this.positions = positions;
      this.found = found;
    }

    @Override
    public Void visitVariable(VariableTree variable, Void nothing) {
      String name = variable.getName().toString();
      types.put(name, String.valueOf(variable.getType()));
      texts.remove(name);
      if (variable.getInitializer() != null && isText(variable.getInitializer())) {
        texts.add(name);
      }
      return super.visitVariable(variable, nothing);
    }

    @Override
    public Void visitMethodInvocation(MethodInvocationTree call, Void nothing) {
      if (call.getMethodSelect() instanceof MemberSelectTree select
          && LOOKS.contains(select.getIdentifier().toString())
          && (isText(select.getExpression())
              || call.getArguments().stream().anyMatch(this::isText))) {
        found.add(
            "%s:%d: %s"
                .formatted(
                    unit.getSourceFile().getName(),
                    unit.getLineMap().getLineNumber(positions.getStartPosition(unit, call)),
                    call));
      }
      return super.visitMethodInvocation(call, nothing);
    }

    private boolean isText(Tree tree) {
      return switch (tree) {
        case IdentifierTree name -> texts.contains(name.getName().toString());
        case ParenthesizedTree inner -> isText(inner.getExpression());
        case TypeCastTree cast -> isText(cast.getExpression());
        case BinaryTree sum when sum.getKind() == Tree.Kind.PLUS ->
            Stream.of(sum.getLeftOperand(), sum.getRightOperand())
                .anyMatch(side -> isText(side) || isOurs(side));
        case ConditionalExpressionTree choice ->
            isText(choice.getTrueExpression()) || isText(choice.getFalseExpression());
        case MethodInvocationTree call when call.getMethodSelect() instanceof MemberSelectTree s ->
            isText(call, s);
        default -> false;
      };
    }

    private boolean isText(MethodInvocationTree call, MemberSelectTree select) {
      String name = select.getIdentifier().toString();
      ExpressionTree of = select.getExpression();
      boolean isEmpty = call.getArguments().isEmpty();
      return (isEmpty && TEXTS.contains(name) && !isForeign(of))
          || (isEmpty && name.equals("toString") && isOurs(of))
          || (name.equals("valueOf") && call.getArguments().stream().anyMatch(this::isOurs))
          || (HANDS_ON.contains(name)
              && (isText(of) || call.getArguments().stream().anyMatch(this::isText)));
    }

    private boolean isForeign(ExpressionTree of) {
      return of instanceof IdentifierTree name
          && FOREIGN.contains(types.getOrDefault(name.getName().toString(), ""));
    }

    /** Whether an expression is a value of the API, as far as names tell. */
    private boolean isOurs(ExpressionTree of) {
      return switch (of) {
        case IdentifierTree name ->
            TYPES.contains(types.getOrDefault(name.getName().toString(), ""));
        case MethodInvocationTree call ->
            call.getArguments().isEmpty()
                && call.getMethodSelect() instanceof MemberSelectTree select
                && GETTERS.contains(select.getIdentifier().toString());
        case MemberSelectTree constant ->
            TYPES.contains(constant.getExpression().toString()); // Backend.VECTOR
        default -> false;
      };
    }
  }
}
