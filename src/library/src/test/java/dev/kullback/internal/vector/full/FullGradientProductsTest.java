package dev.kullback.internal.vector.full;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.vector.GradientKernel;
import dev.kullback.internal.vector.GradientRows;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.Random;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which derivatives products settle, and that these are the sums over pairs. */
@Tag("vector")
class FullGradientProductsTest {
  private static final int SIDE = GradientKernel.SIDE;
  private static final int D = 5;

  private final Worker worker = new Worker();

  /** Draws Gaussians whose means and factors differ by the spread. */
  private static FullBatch draw(int size, double spread, long seed) {
    Random random = new Random(seed);
    double[] mean = new double[size * D];
    Arrays.setAll(mean, _ -> spread * random.nextDouble());
    double[] factors = new double[size * 15];
    Arrays.setAll(factors, _ -> spread * random.nextDouble());
    for (int i = 0; i < size; i++) {
      for (int r = 0, k = i * 15; r < D; k += ++r + 1) {
        factors[k] += 1;
      }
    }
    return new FullBatch(mean, factors, null, D, false, true);
  }

  @ParameterizedTest
  @CsvSource({
    "1, false, false, true",
    "1, false, true, true",
    "1, true, false, true",
    "1, true, true, true",
    "1e-9, true, true, false",
    "1e-9, false, true, false",
    "0, true, true, false"
  })
  void sumsOfPairs(double spread, boolean ofQ, boolean vectors, boolean isSettled) {
    FullBatch q = draw(70, spread, 1);
    FullBatch p = draw(21, spread, 2);
    double[] weights = new Random(3).doubles((long) SIDE * SIDE, -1, 1).toArray();
    FullOperands operands = new FullOperands(Jeffreys.FORMULA, FullOperands.Roles.BOTH);
    operands.pack(q, p, vectors, worker);
    FullGradientKernel kernel = new FullGradientKernel(Term.JEFFREYS, vectors, worker);
    FullGradientProducts products = kernel.products();
    int n = ofQ ? 70 : 21;
    double[] sums = new double[FullGradientKernel.sums(ofQ ? q : p)];
    products.begin(operands, ofQ, 0, n, 0, 91 - n);
    products.add(weights, 0, 91 - n, worker);
    assertThat(products.finish(sums, worker)).isEqualTo(!isSettled);
    for (int t = 0; t < n; t++) {
      assertThat(products.isOpen(t)).isEqualTo(!isSettled);
    }
    double[] expected = new double[sums.length];
    kernel.add(
        weights,
        new GradientRows<FullBatch>().set(q, 0, 70, ofQ ? expected : null),
        new GradientRows<FullBatch>().set(p, 0, 21, ofQ ? null : expected),
        worker);
    double most = Arrays.stream(expected).map(Math::abs).max().orElseThrow();
    for (int k = 0; k < sums.length; k++) {
      assertThat(sums[k]).isCloseTo(isSettled ? expected[k] : 0, Offset.offset(1e-12 * most));
    }
  }
}
