package dev.kullback;

import dev.kullback.internal.cuda.CudaLibrary;
import java.util.stream.Stream;

/**
 * Engines under test. A backend that is missing makes {@code build()} throw: it fails its tests and
 * skips none.
 */
final class Engines {
  private Engines() {}

  /** Method source: the backends every test of results runs on, in the run on the emulated device that alone. */
  static Stream<Backend> backends() {
    return System.getProperty(CudaLibrary.LIBRARY) != null
        ? Stream.of(Backend.CUDA)
        : Stream.of(Backend.VECTOR, Backend.SCALAR);
  }

  static KlEngine on(Backend backend) {
    return KlEngine.builder().backend(backend).build();
  }

  static KlEngine on(Backend backend, int threads) {
    return KlEngine.builder().backend(backend).threads(threads).build();
  }
}
