package dev.kullback.testing;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Random;
import java.util.stream.LongStream;

/** Does everything that events are of; EventsTest runs it in virtual machines of its own. */
public final class EventsProbe {
  /** Few, whose vectors the fewest trials compile. */
  private static final int D = 3;

  private EventsProbe() {}

  /** Takes the folder of an index to make, and whether to wait for vectors. */
  public static void main(String[] arguments) throws Exception {
    DiagonalGaussians q = Batch.random(false, 21, D, 0, new Random(1)).gaussians();
    DiagonalGaussians p = Batch.random(false, 300, D, 3, new Random(2)).gaussians();
    Path folder = Path.of(arguments[0]);
    try (KlEngine engine = KlEngine.builder().build();
        KlIndex index = KlIndex.builder(D).open(folder)) {
      engine.pairwise(q, p);
      index.add(LongStream.range(0, p.size()).toArray(), p);
      index.commit();
      try (KlIndex reader = KlIndex.openReadOnly(folder)) {
        for (int k = 1; k <= 20; k++) {
          index.add(LongStream.range(k * 1000, k * 1000 + p.size()).toArray(), p);
        }
        index.commit();
        reader.refresh();
        reader.nearest(q, 3);
        Query hurried = Query.nearest(1).timeout(Duration.ofNanos(1));
        System.out.println(reader.search(q, hurried).isComplete(0) ? "complete" : "timeout");
      }
      if (arguments.length > 1) {
        engine.warmUp(1, 1, D);
      }
      boolean hasEvents = ModuleLayer.boot().findModule("jdk.jfr").isPresent();
      System.out.println((hasEvents ? "jdk.jfr" : "no jdk.jfr") + ", " + engine.stats().calls());
      System.out.println(index.stats().merges() > 0 ? "merged" : "not merged");
    }
    for (KernelGroup group : KernelGroup.values()) {
      if (group.isCompiled()) {
        System.out.println("compiled " + group.name().toLowerCase(Locale.ROOT));
      }
    }
  }
}
