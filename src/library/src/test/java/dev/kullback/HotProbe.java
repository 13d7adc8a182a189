package dev.kullback;

/** What {@link HotTest} runs in virtual machines of its own: everything, from the interpreter until C2 has compiled it. */
public final class HotProbe {
  /** With each kind of batches on each of six small shapes, in two rounds: 60,000 and more of most operations. */
  private static final int CALLS = 550;

  private HotProbe() {}

  /** Prints what was found, first of large calls, whose loops are compiled on the way. */
  public static void main(String[] arguments) {
    try (KlEngine engine = Engines.on(Backend.VECTOR)) {
      System.out.println(engine.describe());
      System.out.println(Verify.run(engine, new int[][] {{130, 130, 24}, {16, 1100, 16}}, 0, 1));
      System.out.println(Verify.run(engine, Verify.SHAPES, 0, CALLS));
    }
  }
}
