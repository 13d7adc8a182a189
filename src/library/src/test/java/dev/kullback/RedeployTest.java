package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An application that is stopped and started again in one JVM, each time by a class loader of its own. */
class RedeployTest {
  private static final int GAUSSIANS = 200;
  private static final int DIMENSION = 64;

  private static Set<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("kullback-change-over"))
        .collect(Collectors.toSet());
  }

  @Timeout(100)
  @Test
  void noThreadIsLeft() throws Exception {
    redeploy(2, new ReferenceQueue<>());
  }

  /** The last loader may be held by C2 until there is another. */
  @Tag("long")
  @Test
  void loadersAreCollected() throws Exception {
    ReferenceQueue<ClassLoader> queue = new ReferenceQueue<>();
    Set<Reference<?>> left = new HashSet<>(redeploy(4, queue));
    for (int turn = 0; turn < 350 && left.size() > 1; turn++) {
      System.gc();
      Reference<?> cleared = queue.remove(100);
      left.remove(cleared);
    }
    assertThat(left).hasSizeLessThanOrEqualTo(1);
  }

  private static List<Reference<?>> redeploy(int times, ReferenceQueue<ClassLoader> queue)
      throws Exception {
    URL classes = KlEngine.class.getProtectionDomain().getCodeSource().getLocation();
    List<Reference<?>> loaders = new ArrayList<>();
    for (int i = 0; i < times; i++) {
      try (URLClassLoader loader =
          new URLClassLoader(new URL[] {classes}, ClassLoader.getPlatformClassLoader())) {
        run(loader);
        loaders.add(new PhantomReference<>(loader, queue));
      }
    }
    return loaders;
  }

  /** Uses an engine and an index of the loader's classes, until vectors are being compiled, and closes both. */
  private static void run(ClassLoader loader) throws Exception {
    Random random = new Random(1);
    float[] mean = new float[GAUSSIANS * DIMENSION];
    float[] std = new float[mean.length];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = random.nextFloat();
      std[k] = 1 + random.nextFloat();
    }
    Set<Thread> others = threads();
    Set<Thread> started;
    Class<?> gaussians = loader.loadClass("dev.kullback.Gaussians");
    Object batch =
        loader
            .loadClass("dev.kullback.DiagonalGaussians")
            .getMethod("ofStd", float[].class, float[].class, int.class)
            .invoke(null, mean, std, DIMENSION);
    Class<?> engines = loader.loadClass("dev.kullback.KlEngine");
    Class<?> indexes = loader.loadClass("dev.kullback.KlIndex");
    Object engineBuilder = engines.getMethod("builder").invoke(null);
    engineBuilder.getClass().getMethod("threads", int.class).invoke(engineBuilder, 2);
    engineBuilder
        .getClass()
        .getMethod("backgroundWarmUp", boolean.class)
        .invoke(engineBuilder, true);
    Object indexBuilder = indexes.getMethod("builder", int.class).invoke(null, DIMENSION);
    try (AutoCloseable engine =
            (AutoCloseable) engineBuilder.getClass().getMethod("build").invoke(engineBuilder);
        AutoCloseable index =
            (AutoCloseable) indexBuilder.getClass().getMethod("build").invoke(indexBuilder)) {
      assertThat(index.getClass().getClassLoader()).isSameAs(loader);
      for (int turn = 0; turn < 10; turn++) {
        engines.getMethod("pairwise", gaussians, gaussians).invoke(engine, batch, batch);
        long[] ids = LongStream.range(0, GAUSSIANS).toArray();
        indexes.getMethod("add", long[].class, gaussians).invoke(index, ids, batch);
        indexes.getMethod("nearest", gaussians, int.class).invoke(index, batch, 3);
        indexes.getMethod("remove", long[].class).invoke(index, (Object) ids);
      }
      do { // until the thread has rested, and computes
        Thread.sleep(10);
        started = threads();
        started.removeAll(others);
      } while (started.stream().noneMatch(thread -> thread.getState() == Thread.State.RUNNABLE));
    }
    assertThat(started).noneMatch(Thread::isAlive);
  }
}
