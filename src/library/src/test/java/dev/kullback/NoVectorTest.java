package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Regime;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Without {@code --add-modules jdk.incubator.vector}: its own run, left out of the ordinary one.
 */
@Tag("no-vector")
class NoVectorTest {
  private static final String FLAG = "--add-modules jdk.incubator.vector";

  @Test
  void theModuleIsAbsent() {
    assertThat(ModuleLayer.boot().findModule("jdk.incubator.vector"))
        .as("this run must not have " + FLAG)
        .isEmpty();
  }

  @Test
  void autoIsTheScalarBackendAndRight() {
    for (Regime regime :
        new Regime[] {Regime.VAE, Regime.NEAR_1E_4, Regime.WIDE, Regime.EXTREME_MIX}) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Regime.Case drawn = regime.draw(isDouble, 13, 37, 33);
        DiagonalGaussians q = drawn.q().gaussians();
        DiagonalGaussians p = drawn.p().gaussians();
        double[] expected = drawn.expected();
        try (KlEngine auto = KlEngine.builder().build();
            KlEngine scalar = Engines.on(Backend.SCALAR, 2)) {
          float[] actual = auto.pairwise(q, p);
          Check.matrix(regime + ", auto", p.size(), expected, actual);
          Check.sameBits(regime + ", scalar", p.size(), scalar.pairwise(q, p), actual);
          double[] twice = auto.pairwise(q, p, new double[expected.length]);
          Check.Precision precision = Check.Precision.ofDoubleResult(drawn.q(), drawn.p());
          Check.matrix(regime + ", auto", p.size(), expected, twice, precision);
          assertThat(auto.toString()).containsIgnoringCase("scalar").contains(FLAG);
        }
      }
    }
  }

  @Test
  void anIndexSearches() {
    DiagonalGaussians references =
        DiagonalGaussians.ofStd(new float[] {0, 3, 1}, new float[] {1, 1, 1}, 1);
    DiagonalGaussians query = DiagonalGaussians.ofStd(new float[] {0}, new float[] {1}, 1);
    try (KlIndex index = KlIndex.builder(1).build()) {
      index.add(new long[] {7, 8, 9}, references);
      IndexNeighbors found = index.nearest(query, 2);
      assertThat(new long[] {found.id(0, 0), found.id(0, 1)}).containsExactly(7, 9);
      assertThat(index.within(query, 0.5).count(0)).isEqualTo(2);
    }
  }

  @Test
  void theVectorBackendNamesTheFlag() {
    assertThat(Backend.VECTOR.reason()).contains(FLAG);
    assertThatIllegalStateException()
        .isThrownBy(() -> Engines.on(Backend.VECTOR))
        .withMessageContaining(FLAG);
  }
}
