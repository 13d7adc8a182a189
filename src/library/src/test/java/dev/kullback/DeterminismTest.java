package dev.kullback;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Results of batches so large that threads share more than the matrix have the bits of one thread; {@code LawsTest} tries all else. */
@Tag("device")
class DeterminismTest {
  /** Threads share the preparation of batches, for one call, and kept from the second use on; and rows of responsibilities. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsOfLargeBatches(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      Batch q = Batch.random(isDouble, 5, 67, 0, new Random(1));
      Batch p = Batch.random(isDouble, 3001, 67, 0, new Random(2));
      FullBatch a = FullBatch.random(isDouble, 203, 20, 10, 0, new Random(3));
      FullBatch b = FullBatch.random(isDouble, 7, 20, 10, 0, new Random(4));
      Gaussians points = points(Batch.random(isDouble, 2000, 20, 0, new Random(5)));
      double[] weights = new double[50];
      Arrays.fill(weights, 0, 20, 1.0 / 20);
      Arrays.fill(weights, 20, 50, 1.0 / 30);
      Gaussians components = Batch.random(isDouble, 50, 20, 0, new Random(6)).gaussians();
      Mixtures mixtures = Mixtures.of(components, weights, new int[] {0, 20, 50});
      List<double[]> expected = new ArrayList<>();
      for (int threads : Engines.threadCounts(backend)) {
        List<double[]> actual = new ArrayList<>();
        try (KlEngine engine = Engines.on(backend, threads)) {
          for (Gaussians[] pair :
              new Gaussians[][] {
                {q.gaussians(), p.gaussians()},
                {p.gaussians(), q.gaussians()},
                {a.gaussians(), b.gaussians()},
                {b.gaussians(), a.gaussians()}
              }) {
            for (int use = 0; use < 3; use++) {
              double[] out = new double[pair[0].size() * pair[1].size()];
              actual.add(engine.pairwise(pair[0], pair[1], out));
            }
          }
          actual.add(engine.responsibilities(points, mixtures, new double[2000 * 50]));
        }
        expected = expected.isEmpty() ? actual : expected;
        for (int i = 0; i < actual.size(); i++) {
          Check.sameBits("threads %d, %d".formatted(threads, i), 1, expected.get(i), actual.get(i));
        }
      }
    }
  }

  private static Gaussians points(Batch batch) {
    return batch.isDouble()
        ? DiagonalGaussians.ofPoints(batch.mean(), batch.dimension())
        : DiagonalGaussians.ofPoints(Batch.narrowed(batch.mean()), batch.dimension());
  }
}
