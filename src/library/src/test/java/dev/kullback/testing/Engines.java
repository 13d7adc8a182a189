package dev.kullback.testing;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import dev.kullback.internal.cuda.CudaLibrary;
import java.util.stream.Stream;

/**
 * Engines under test. A backend that is missing makes {@code build()} throw: it fails its tests and
 * skips none.
 */
public final class Engines {
  /** Property of the runs with fewer instructions or narrower vectors than the processor's. */
  public static final String NARROWER = "tests.narrower";

  private Engines() {}

  /**
   * Method source: the backends every test of results runs on; in the run on the emulated device that alone, and in those with narrower
   * vectors the one that has any.
   */
  public static Stream<Backend> backends() {
    if (System.getProperty(CudaLibrary.LIBRARY) != null) {
      return Stream.of(Backend.CUDA);
    }
    return Boolean.getBoolean(NARROWER)
        ? Stream.of(Backend.VECTOR)
        : Stream.of(Backend.VECTOR, Backend.SCALAR);
  }

  /** Thread counts, each of which must give the bits of one; a device does the same for all. */
  public static int[] threadCounts(Backend backend) {
    return backend == Backend.CUDA ? new int[] {1, 3} : new int[] {1, 2, 3, 8};
  }

  public static KlEngine on(Backend backend) {
    return KlEngine.builder().backend(backend).build();
  }

  public static KlEngine on(Backend backend, int threads) {
    return KlEngine.builder().backend(backend).threads(threads).build();
  }
}
