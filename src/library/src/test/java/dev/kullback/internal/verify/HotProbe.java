package dev.kullback.internal.verify;

import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Kl;

/** Runs every operation from the interpreter until C2 has compiled it; {@link HotTest} starts it in virtual machines of its own. */
public final class HotProbe {
  /** Calls with each kind of batches on each of six small shapes, in two rounds: 30,000 and more of most operations. */
  private static final int CALLS = 220;

  /** Windows of ten calls: C2 compiles a method that a call runs once after 5,000. */
  private static final int WINDOWS = 1000;

  private HotProbe() {}

  /** Prints what was found, first of large calls, whose loops are compiled on the way. */
  public static void main(String[] arguments) {
    try (Engine engine = new Engine(Kl.FORWARD, Platform.Choice.VECTOR, 1, null)) {
      System.out.println(engine.describe());
      print(engine, new int[][] {{130, 130, 24}, {16, 1100, 16}}, 1, 1);
      print(engine, Verify.SHAPES, CALLS, WINDOWS);
    }
  }

  private static void print(Engine engine, int[][] shapes, long least, long windows) {
    Verify.run(engine, shapes, 0, least, windows).operations().forEach(System.out::println);
  }
}
