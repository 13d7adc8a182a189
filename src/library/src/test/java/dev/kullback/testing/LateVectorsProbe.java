package dev.kullback.testing;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.internal.kernel.Readiness;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import java.util.Arrays;
import java.util.Random;
import java.util.function.Predicate;
import jdk.test.whitebox.WhiteBox;

/** Calls engines while nothing is compiled, and then until vectors are used; LateVectorsTest runs it in virtual machines of its own. */
public final class LateVectorsProbe {
  private static final String REFUSED = "not compile";

  /** Time after which a call may have vectors tried again. */
  private static final long PAUSE_MILLIS = 1100;

  private LateVectorsProbe() {}

  /** Prints what the first engine and those made after it come to. */
  public static void main(String[] arguments) throws InterruptedException {
    WhiteBox compilers = new WhiteBox();
    compilers.lockCompilation();
    Predicate<KernelGroup> ready = Readiness.of(Readiness.IS_DEFERRED);
    DiagonalGaussians q = Batch.random(false, 21, 3, 0, new Random(1)).gaussians();
    try (KlEngine engine = KlEngine.builder().build()) {
      float[] matrix = engine.pairwise(q, q);
      while (!engine.toString().contains(REFUSED)) { // finds out, or waits for the thread that does
        Thread.sleep(10);
      }
      System.out.println(engine.toString());
      Thread.sleep(PAUSE_MILLIS);
      engine.pairwise(q, q);
      BackgroundWarmUpProbe.say("call");
      compilers.unlockCompilation();
      boolean same = true;
      while (!ready.test(KernelGroup.SMALL)) {
        same &= Arrays.equals(matrix, engine.pairwise(q, q));
        try (KlEngine later = KlEngine.builder().build()) {
          same &= Arrays.equals(matrix, later.pairwise(q, q));
        }
        Thread.sleep(10);
      }
      same &= Arrays.equals(matrix, engine.pairwise(q, q));
      System.out.println(same ? "same" : "different");
      System.out.println(engine.toString());
    }
  }
}
