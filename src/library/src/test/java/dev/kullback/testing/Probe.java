package dev.kullback.testing;

import dev.kullback.Backend;
import dev.kullback.FullGaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import dev.kullback.Verification;
import dev.kullback.internal.work.ThisThread;
import java.time.Duration;
import java.util.Random;
import java.util.stream.LongStream;

/**
 * Program that a test starts in a virtual machine of its own, with other flags or another library: prints what backends say and return.
 */
public final class Probe {
  private Probe() {}

  public static Batch q() {
    return Batch.random(false, 5, 33, 0, new Random(1));
  }

  public static Batch p() {
    return Batch.random(false, 19, 33, 3, new Random(2));
  }

  static FullGaussians full() {
    return FullGaussians.ofCovariance(
        new float[] {0, 0, 1, 1}, new float[] {2, 1, 1, 2, 1, 0, 0, 4}, 2);
  }

  private static void search() {
    try (KlIndex index = KlIndex.builder(p().dimension()).build()) {
      index.add(LongStream.range(0, p().size()).toArray(), p().gaussians());
      index.nearest(q().gaussians(), 3);
    }
  }

  private static void verify() {
    try (KlEngine engine = KlEngine.builder().build()) {
      Verification found = engine.verify(Duration.ofMillis(1));
      long counted =
          found.operations().stream().filter(o -> o.allocatedBytes().isPresent()).count();
      System.out.println("VERIFY passed: " + found.passed() + ", bytes counted of " + counted);
    }
  }

  /**
   * Prints what each backend says and what it returns.
   *
   * @param arguments the backends to use, in order, or VERIFY, INDEX or BYTES
   */
  public static void main(String[] arguments) {
    for (String argument : arguments) {
      if (argument.equals("VERIFY")) {
        verify();
        continue;
      }
      if (argument.equals("INDEX")) {
        search();
        continue;
      }
      if (argument.equals("BYTES")) {
        System.out.println("BYTES of this thread: " + ThisThread.allocatedBytes());
        continue;
      }
      Backend backend = Backend.valueOf(argument);
      System.out.println(backend + " describes " + backend.reason());
      System.out.println(backend + " is available: " + backend.isAvailable());
      try (KlEngine engine = KlEngine.builder().backend(backend).build()) {
        StringBuilder line = new StringBuilder(backend + " returns");
        for (float value : engine.pairwise(q().gaussians(), p().gaussians())) {
          line.append(' ').append(value);
        }
        System.out.println(line);
        engine.nearest(full(), full(), 2);
        if (backend != Backend.SCALAR) { // which no index is asked for by an engine
          search();
        }
      } catch (IllegalStateException | IllegalArgumentException e) {
        System.out.println(
            backend + " throws " + e.getClass().getSimpleName() + ' ' + e.getMessage());
      }
    }
  }
}
