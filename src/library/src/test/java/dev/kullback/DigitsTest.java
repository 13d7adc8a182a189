package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Posteriors of a variational autoencoder of handwritten digits, against rows computed in 80-bit
 * arithmetic.
 */
@Tag("module")
class DigitsTest {
  private static final int IMAGES = 1797;
  private static final int DIMENSION = 32;

  /** Real inputs meet what the contract only aims at. */
  private static final Check.Precision AIM =
      new Check.Precision(1e-6, Float.MIN_NORMAL, Float.MAX_VALUE);

  private final double[] mean = read("digits_mean");
  private final double[] std = read("digits_std");
  private final int[] rows =
      IntStream.range(0, 16).map(k -> (int) read("digits_kl_row_index")[k]).toArray();

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void wholeMatrixFromStandardDeviations(Backend backend) {
    double[] expected = read("digits_kl_rows");
    DiagonalGaussians q = new Batch(Batch.Kind.STD, false, mean, std, DIMENSION).gaussians();
    try (KlEngine engine = Engines.on(backend, 2)) {
      float[] kl = engine.pairwise(q, q);
      double[] chosen = chosen(kl);
      Check.matrix(
          backend + ", digits, rows of digits_kl_row_index", IMAGES, expected, chosen, AIM);
      for (int i = 0; i < IMAGES; i++) {
        for (int j = 0; j < IMAGES; j++) {
          float entry = kl[i * IMAGES + j];
          if (i == j ? entry != 0 : !(entry > 0 && entry < Float.POSITIVE_INFINITY)) {
            assertThat(entry).as("[i=%d, j=%d]", i, j).isEqualTo(i == j ? 0f : Float.NaN);
          }
        }
      }
    }
  }

  /**
   * The stored logarithms are rounded, so they are other Gaussians than the standard deviations:
   * the oracle decides.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void rowsFromLogVariances(Backend backend) {
    Batch all = new Batch(Batch.Kind.LOG_VARIANCE, false, mean, read("digits_logvar"), DIMENSION);
    try (KlEngine engine = Engines.on(backend)) {
      for (int k = 0; k < rows.length; k += 5) {
        Batch one = all.rows(rows[k], rows[k] + 1);
        double[] expected = Oracle.pairwise(one, all);
        float[] actual = engine.pairwise(one.gaussians(), all.gaussians());
        String what = backend + ", digits, log-variance, row " + rows[k];
        Check.matrix(what, IMAGES, expected, Batch.widened(actual), AIM);
      }
    }
  }

  /** The rows that there are references for. */
  private double[] chosen(float[] kl) {
    double[] chosen = new double[rows.length * IMAGES];
    for (int k = 0; k < rows.length; k++) {
      for (int j = 0; j < IMAGES; j++) {
        chosen[k * IMAGES + j] = kl[rows[k] * IMAGES + j];
      }
    }
    return chosen;
  }

  /** Full covariances: what lies near each image, by principal components. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void wholeMatrixOfFullCovariances(Backend backend) {
    float[] localMean = Batch.narrowed(read("local_mean"));
    float[] scaleTril = Batch.narrowed(read("local_scale_tril"));
    FullGaussians q = FullGaussians.ofScaleTril(localMean, scaleTril, 8);
    try (KlEngine engine = Engines.on(backend, 2)) {
      float[] kl = engine.pairwise(q, q);
      double[] chosen = chosen(kl);
      Check.matrix(backend + ", local Gaussians", IMAGES, read("local_kl_rows"), chosen, AIM);
      for (int i = 0; i < IMAGES; i++) {
        assertThat(kl[i * IMAGES + i]).isEqualTo(0f);
      }
    }
  }

  /** Little-endian, C order; independent of the library's own reader. */
  private static double[] read(String name) {
    Path file = Path.of(System.getProperty("basedir", "."), "..", "demo", "data", name + ".npy");
    try {
      ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
      int start = 10 + bytes.getShort(8);
      String header = new String(bytes.array(), 10, start - 10, StandardCharsets.ISO_8859_1);
      ByteBuffer data = bytes.position(start).slice().order(ByteOrder.LITTLE_ENDIAN);
      int size = header.contains("<f8") ? 8 : 4;
      double[] values = new double[data.remaining() / size];
      for (int i = 0; i < values.length; i++) {
        values[i] =
            header.contains("<f8")
                ? data.getDouble(8 * i)
                : header.contains("<f4") ? data.getFloat(4 * i) : data.getInt(4 * i);
      }
      return values;
    } catch (IOException e) {
      throw new IllegalStateException("test data missing: " + file, e);
    }
  }
}
