package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What holds of every public method of an engine and of its gradient that takes Gaussians, found by reflection: an argument that is null, of another
 * dimension, too short or beyond its range is an error that names it, a closed engine says so, and the arguments after that are as good as before.
 */
class ArgumentLawsTest {
  private static final int N = 4;
  private static final int D = 3;

  /** Names of parameters by their types. */
  private static final Map<Class<?>, String> NAMES =
      Map.of(
          Mixtures.class, "mixtures",
          Query.class, "query",
          Consumer.class, "consumer",
          int[].class, "indices|rows|columns",
          float[].class, "out|values|cotangent",
          double[].class, "out|values|logWeights|cotangent",
          MemorySegment.class, "out");

  static Stream<Method> methods() {
    return Stream.of(KlEngine.class, KlGradient.class)
        .flatMap(type -> Arrays.stream(type.getMethods()))
        .filter(method -> Arrays.asList(method.getParameterTypes()).contains(Gaussians.class));
  }

  private static DiagonalGaussians ones(int dimension) {
    float[] ones = new float[N * dimension];
    Arrays.fill(ones, 1);
    return DiagonalGaussians.ofStd(ones, ones, dimension);
  }

  private static Object argument(Method method, Class<?> type, int dimension) {
    boolean ofPoints =
        List.of("logDensity", "mahalanobis", "logLikelihood", "responsibilities")
            .contains(method.getName());
    boolean isMatrix =
        method.getName().equals("pairwise") && method.getDeclaringClass() == KlGradient.class;
    int length = isMatrix || !ofPoints && method.getName().equals("pairwise") ? N * N : N;
    length = ofPoints || method.getName().equals("search") ? N * N : length;
    if (type == Gaussians.class) {
      return ofPoints
          ? DiagonalGaussians.ofPoints(new float[N * dimension], dimension)
          : ones(dimension);
    } else if (type == Mixtures.class) {
      return Mixtures.of(ones(dimension));
    } else if (type == Query.class) {
      return Query.nearest(N);
    } else if (type == Consumer.class) {
      return (Consumer<Object>) _ -> {};
    } else if (type == int[].class) {
      return new int[method.getName().equals("pairs") ? N : length];
    } else if (type == float[].class) {
      return new float[length];
    } else if (type == double[].class) {
      return new double[length];
    } else if (type == MemorySegment.class) {
      return MemorySegment.ofArray(new float[N * N]);
    } else if (type == int.class) {
      return 2;
    } else if (type == long.class) {
      return 1L;
    }
    assertThat(type).isEqualTo(double.class);
    return 1.0;
  }

  /** Valid arguments. Where a method takes a p beside points, that is of Gaussians. */
  private static List<Object> arguments(Method method) {
    List<Object> arguments = new ArrayList<>();
    for (Class<?> type : method.getParameterTypes()) {
      boolean isSecond = type == Gaussians.class && !arguments.isEmpty();
      arguments.add(isSecond ? ones(D) : argument(method, type, D));
    }
    return arguments;
  }

  private static Object target(Method method, KlEngine engine) {
    return method.getDeclaringClass() == KlEngine.class
        ? engine
        : engine.gradient().q(new double[N * D], new double[N * D]);
  }

  private static void call(Object target, Method method, List<Object> arguments) throws Throwable {
    try {
      method.invoke(target, arguments.toArray());
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  @ParameterizedTest
  @MethodSource("methods")
  void anErrorNamesItsArgument(Method method) throws Throwable {
    KlEngine engine = KlEngine.builder().build();
    Object target = target(method, engine);
    List<Object> valid = arguments(method);
    call(target, method, valid);
    Class<?>[] types = method.getParameterTypes();
    for (int k = 0; k < types.length; k++) {
      List<Object> bad = new ArrayList<>(valid);
      String name =
          types[k] != Gaussians.class ? NAMES.getOrDefault(types[k], "") : k > 0 ? "p" : "q|points";
      if (!types[k].isPrimitive()) {
        bad.set(k, null);
        assertThatThrownBy(() -> call(target, method, bad))
            .isInstanceOf(NullPointerException.class)
            .message()
            .matches(name);
      }
      if (types[k].isArray() || types[k] == MemorySegment.class) {
        bad.set(
            k,
            types[k] == int[].class
                ? new int[1]
                : types[k] == float[].class
                    ? new float[1]
                    : types[k] == double[].class
                        ? new double[1]
                        : MemorySegment.ofArray(new float[1]));
        assertRefused(target, method, bad, "\\b(" + name + ")\\b.*\\b[14]\\b.*");
      }
      if (types[k] == Gaussians.class && k > 0) {
        bad.set(k, ones(D + 2));
        assertRefused(target, method, bad, "(q|points) .*\\b3\\b.*\\b5\\b.*");
      }
      if (types[k] == int.class) {
        bad.set(k, 0);
        assertRefused(target, method, bad, "(k|samples|n|m|dimension) must be .*\\b0\\b.*");
      }
      if (types[k] == double.class) {
        bad.set(k, Double.NaN);
        assertRefused(target, method, bad, "radius .*NaN.*");
      }
      if (types[k] == double[].class && target instanceof KlGradient) {
        double[] numbers = ((double[]) valid.get(k)).clone();
        numbers[1] = Double.NaN;
        bad.set(k, numbers);
        assertRefused(target, method, bad, "(cotangent|logWeights).*\\b1\\b.*NaN.*");
      }
    }
    call(target, method, valid);
    engine.close();
    engine.close(); // which changes nothing
    assertThatThrownBy(() -> call(target, method, valid))
        .isInstanceOf(AlreadyClosedException.class)
        .hasMessageContaining("closed");
  }

  private static void assertRefused(
      Object target, Method method, List<Object> bad, String message) {
    assertThatThrownBy(() -> call(target, method, bad))
        .as("%s of %s", method, bad)
        .isInstanceOf(IllegalArgumentException.class)
        .message()
        .matches("(?s).*" + message);
  }
}
