package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What an option may name, and what is made of it before anything is computed. */
class InputsTest extends CommandFixture {
  @ParameterizedTest
  @CsvSource({
    "<f4, 0.1, 0.1",
    ">f4, -2, -2.0",
    "<f8, 0.1, 0.1",
    ">f8, 1e-300, 1.0E-300",
    "<f4, 1e-45, 1.4E-45",
    "<f8, NaN, NaN",
    ">f4, -Infinity, -Infinity",
  })
  void matricesThatAreNotLowerTriangular(String descr, double value, String text)
      throws IOException {
    double[] tril = new double[N * D * D];
    for (int k = 0; k < tril.length; k++) {
      int row = k / D % D;
      tril[k] = row > k % D ? 0.5 : row == k % D ? 1 : k % 2 == 0 ? 0 : -0.0;
    }
    long[] shape = {N, D, D};
    NpyFiles.write(folder.resolve("tril.npy"), descr, shape, tril);
    String line = "standard --mean q.npy --scale-tril tril.npy -o o.npy";
    succeed(line);
    for (int[] at :
        new int[][] {{N - 1, D - 2, D - 1}, {3, 1, 4}, {0, 0, 1}}) { // the first is named
      tril[(at[0] * D + at[1]) * D + at[2]] = value;
      NpyFiles.write(folder.resolve("tril.npy"), descr, shape, tril);
      String element =
          "tril.npy: Gaussian %d, row %d, column %d is %s: not lower triangular; did you mean "
              .formatted(at[0], at[1], at[2], text);
      assertUserError(line, element + "--cov? (counted from 0)");
      String p = " --p-mean q.npy --p-scale-tril tril.npy -o o.npy";
      assertUserError("pairwise --mean q.npy --std s.npy" + p, element + "--p-cov?");
      assertUserError("logsumexp --mean q.npy --std s.npy" + p, element + "--p-cov?");
    }
  }

  /** A file without contents: one Gaussian that no split by rows makes smaller. */
  @Test
  void tooManyDimensions() throws IOException {
    byte[] header = NpyFiles.bytes(1, NpyFiles.dict("<f4", false, 1, 17_000_000), new byte[0]);
    try (RandomAccessFile file = new RandomAccessFile(folder.resolve("x.npy").toFile(), "rw")) {
      file.write(header);
      file.setLength(header.length + 4L * 17_000_000);
    }
    Result result = run("standard --mean x.npy --logvar x.npy -o o.npy");
    assertThat(result.err())
        .isEqualTo(
            "kullback: %s: dimension 17000000 is too large: a Gaussian has at most 16777215 dimensions here%n"
                .formatted(folder.resolve("x.npy")));
    assertThat(result.status()).isEqualTo(2);
    assertThat(folder.resolve("o.npy")).doesNotExist();
  }
}
