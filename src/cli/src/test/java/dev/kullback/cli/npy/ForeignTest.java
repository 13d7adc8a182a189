package dev.kullback.cli.npy;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Files of formats that are not read are called by what they are. */
class ForeignTest {
  @TempDir Path folder;

  /** The beginnings are of the formats' specifications, as characters of a byte each. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "m.pt      | PK\\3\\4 | a PyTorch file, which is not read: np.save('m.npy', torch.load('m.pt').float().numpy())",
        "m.bin     | PK\\3\\4 | a PyTorch file",
        "m.pth     | \\80\\2  | a PyTorch file",
        "m.npy     | PK\\3\\4 | an archive of zip, which is not read: if it has .npy files, call it m.npz",
        "m.zip     | PK\\3\\4 | an archive of zip",
        "m.xlsx    | text     | an Excel file",
        "m.pkl     | \\80\\5  | a pickle of Python, which is not read: np.save('m.npy', np.load('m.pkl', allow_pickle=True))",
        "m.npy     | \\80\\4  | a pickle of Python",
        "m.mat     | MATLAB 5.0 MAT-file, Platform | a MATLAB file, which is not read: np.save('m.npy', scipy.io.loadmat('m.mat')['VARIABLE'])",
        "m.mat     | MATLAB 7.3 MAT-file | a MATLAB file of version 7.3, which is not read: np.save('m.npy', h5py.File('m.mat')['VARIABLE'][:].T)",
        "m.mat     | \\0\\0   | a MATLAB file",
        "m.h5      | \\89HDF\\d\\a\\1a\\a | an HDF5 file, which is not read: np.save('m.npy', h5py.File('m.h5')['DATASET'][:])",
        "m.npy     | \\89HDF\\d\\a\\1a\\a | an HDF5 file",
        "m.npy.gz  | \\1f\\8b | compressed by gzip, which is not read: gunzip -k m.npy.gz",
        "m.npy     | \\1f\\8b | compressed by gzip",
        "m.bz2     | BZh9     | compressed by bzip2",
        "m.npy.xz  | \\fd7zXZ\\0 | compressed by xz, which is not read: unxz -k m.npy.xz",
        "m.npy.zst | (\\b5/\\fd | compressed by Zstandard",
        "m.feather | ARROW1   | an Arrow or Feather file, which is not read: np.save('m.npy', pandas.read_feather('m.feather').to_numpy())",
        "m.png     | \\89PNG  | a picture",
        "m.npy     | \\ff\\d8\\ff | a picture",
        "m.npy     | version https://git-lfs.github.com/spec/v1 | text of Git LFS in the place of a file, which is not read: git lfs pull",
        "m.bin     | \\1\\2\\3 | numbers without a shape, which is not read: np.save('m.npy', np.fromfile('m.bin', 'float32').reshape(-1, D))",
        "m.json    | [[1      | JSON",
        "m.csv     | \\ff\\fe1\\0,\\0 | text of UTF-16, which is not read: iconv -f UTF-16 -t UTF-8 m.csv writes it as UTF-8",
        "m.txt     | \\fe\\ff\\0 1 | text of UTF-16",
        "m.csv     | \\1f\\8b | compressed by gzip",
        "m.tsv     | PK\\3\\4 | an archive of zip",
        "m.csv     | version https://git-lfs.github.com/spec/v1 | text of Git LFS in the place of a file",
      })
  void refused(String name, String start, String message) throws IOException {
    StringBuilder bytes = new StringBuilder();
    String text = start.strip();
    for (int k = 0; k < text.length(); k++) {
      int digits = text.substring(k).matches("(?s)\\\\[0-9a-f]{2}.*") ? 2 : 1;
      boolean isCode = text.charAt(k) == '\\';
      bytes.append(
          isCode
              ? (char) Integer.parseInt(text.substring(k + 1, k + 1 + digits), 16)
              : text.charAt(k));
      k += isCode ? digits : 0;
    }
    Path file = folder.resolve(name.strip());
    Files.write(file, bytes.toString().getBytes(StandardCharsets.ISO_8859_1));
    assertThatThrownBy(() -> Npy.readShape(file))
        .isInstanceOf(NpyException.class)
        .hasMessageStartingWith("is " + message.strip());
  }
}
