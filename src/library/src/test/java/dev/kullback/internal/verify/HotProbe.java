package dev.kullback.internal.verify;

import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Kl;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.Vector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;
import org.junit.platform.console.ConsoleLauncher;

/** Runs every operation from the interpreter until C2 has compiled it, for {@link HotTest}, in its process or in one of its own. */
public final class HotProbe {
  /**
   * Calls with each kind of batches on each of some small shapes: 10,600 and more of each operation. Those whose bytes are counted go on
   * until C2 has compiled what they run, and are compared all the while.
   */
  private static final int CALLS = 220;

  /** Windows of ten calls: C2 compiles a method that a call runs once after 5,000. */
  private static final int WINDOWS = 1000;

  /**
   * Part of the usual calls after which C2 compiles a method in a process that has vectors of other widths used first. The same part of {@link #CALLS} is twice as many as that takes, as the
   * whole is elsewhere: 76 s of processor time instead of 99 (AVX-512, CPU family 26).
   */
  static final double EARLY = 0.15;

  /** Argument that has vectors of other widths used first, where C2 compiles after {@link #EARLY} of the usual calls. */
  static final String BESIDE_OTHER_WIDTHS = "beside-other-widths";

  /** Calls at each width before: C1 compiles after fewer, and counts the classes of receivers. */
  private static final int CALLS_OF_OTHERS = 20_000;

  private static final List<VectorShape> NARROW =
      List.of(VectorShape.S_64_BIT, VectorShape.S_128_BIT, VectorShape.S_256_BIT);

  private HotProbe() {}

  /**
   * Prints what was found.
   *
   * @param arguments {@link #BESIDE_OTHER_WIDTHS}, or names of classes whose tests then run, except long ones
   */
  public static void main(String... arguments) {
    boolean isBesideOthers = List.of(arguments).contains(BESIDE_OTHER_WIDTHS);
    if (isBesideOthers) {
      for (int i = 0; i < CALLS_OF_OTHERS; i++) {
        for (VectorShape shape : NARROW) {
          use(VectorSpecies.of(float.class, shape));
          use(VectorSpecies.of(double.class, shape));
          use(VectorSpecies.of(long.class, shape));
          use(VectorSpecies.of(int.class, shape));
        }
      }
    }
    System.out.println(run(isBesideOthers ? EARLY : 1));
    if (arguments.length > 0 && !isBesideOthers) {
      System.exit(runTests(new PrintWriter(System.out, true), arguments));
    }
  }

  /**
   * Returns a line on the engine and one on each operation, first of large calls, whose loops are compiled on the way.
   *
   * @param part of the usual calls
   */
  static String run(double part) {
    long calls = Math.round(part * CALLS);
    try (Engine engine = new Engine(Kl.FORWARD, Platform.Choice.VECTOR, 1, null)) {
      List<Findings> findings =
          List.of(
              Verify.run(engine, new int[][] {{130, 130, 24}, {16, 1100, 16}}, 0, 1, 1),
              Verify.run(engine, Verify.SHAPES, 0, calls, WINDOWS));
      return Stream.concat(
              Stream.of(engine.describe()),
              findings.stream().flatMap(f -> f.operations().stream().map(Finding::toString)))
          .collect(Collectors.joining("\n"));
    }
  }

  /** Runs the tests of classes, except long ones; returns 0 unless one failed. */
  static int runTests(PrintWriter out, String... classes) {
    List<String> tests = new ArrayList<>();
    tests.addAll(List.of("execute", "--disable-banner", "--disable-ansi-colors"));
    tests.addAll(List.of("--exclude-tag=long", "--fail-if-no-tests"));
    for (String name : classes) {
      tests.add("--select-class=" + name);
    }
    return ConsoleLauncher.run(out, out, tests.toArray(String[]::new)).getExitCode();
  }

  /** Has the profiles of the Vector API's own methods meet a species, as other code of a process may. */
  private static <E> void use(VectorSpecies<E> species) {
    Vector<E> a = species.broadcast(3);
    for (int i = 0; i < 3; i++) {
      a = a.add(a).sub(a).mul(a).min(a).max(a).neg();
      a = a.blend(a, a.compare(VectorOperators.LT, a));
      Vector<?> more =
          switch (a) {
            case FloatVector x -> x.add(1).sub(1).mul(2).div(2).fma(x, x).sqrt();
            case DoubleVector x -> x.add(1).sub(1).mul(2).div(2).fma(x, x).sqrt();
            case LongVector x -> x.add(1).or(x).and(x).lanewise(VectorOperators.LSHR, 3);
            case IntVector x -> x.add(1).or(x).and(x).lanewise(VectorOperators.LSHR, 3);
            default -> a;
          };
      a = more.check(species);
    }
    if (a.reduceLanesToLong(VectorOperators.ADD) == Long.MIN_VALUE) {
      throw new AssertionError(a);
    }
  }
}
