package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.BatchReader;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.NpyException;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import dev.kullback.cli.testing.SafetensorsFiles;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Inputs that options may name, and how they are checked before anything is computed. */
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
          "tril.npy: Gaussian %d, row %d, column %d is %s: not lower triangular; is it a covariance "
              .formatted(at[0], at[1], at[2], text);
      assertUserError(
          line,
          element
              + "(--covariance), or an upper factor? transpose a covariance's, such as R of QR; a precision's, such as"
              + " scikit-learn's precisions_cholesky_, is --precision-cholesky; np.tril clears what a program left above a"
              + " lower one (counted from 0)");
      String p = " --p-mean q.npy --p-scale-tril tril.npy -o o.npy";
      assertUserError("pairwise --mean q.npy --std s.npy" + p, element + "(--p-covariance), or");
      assertUserError("logsumexp --mean q.npy --std s.npy" + p, element + "(--p-covariance), or");
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
    Result result = run("standard --mean x.npy --std x.npy -o o.npy");
    assertThat(result.err())
        .isEqualTo(
            "kullback: %s: dimension 17000000 is too large: a Gaussian has at most 16777215 dimensions here%n"
                .formatted(folder.resolve("x.npy")));
    assertThat(result.status()).isEqualTo(2);
    assertThat(folder.resolve("o.npy")).doesNotExist();
  }

  private record Member(String name, byte[] bytes) {}

  private byte[] array(String file) throws IOException {
    return Files.readAllBytes(folder.resolve(file));
  }

  private byte[] zip(boolean stored, Member... members) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
      for (Member member : members) {
        ZipEntry entry = new ZipEntry(member.name);
        if (stored) {
          CRC32 crc = new CRC32();
          crc.update(member.bytes);
          entry.setMethod(ZipEntry.STORED);
          entry.setSize(member.bytes.length);
          entry.setCrc(crc.getValue());
        }
        zip.putNextEntry(entry);
        zip.write(member.bytes);
      }
    }
    return bytes.toByteArray();
  }

  private byte[] moments(boolean stored) throws IOException {
    return zip(
        stored,
        new Member("mean.npy", array("q.npy")),
        new Member("s/std.npy", array("s.npy")),
        new Member("README", new byte[] {1}));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void archives(boolean stored) throws IOException {
    NpyFiles.write(folder.resolve("w.npy"), "<f8", new long[] {N}, floats(N, v -> v));
    Files.write(folder.resolve("x.npz"), moments(stored));
    Files.write(folder.resolve("w.npz"), zip(stored, new Member("any.npy", array("w.npy"))));
    String plain = " --mean q.npy --std s.npy";
    String packed = " --mean x.npz:mean --std x.npz:s/std.npy";
    for (String weights : new String[] {"", " --log-weights w.npz", " --log-weights w.npz:any"}) {
      String w = weights.isEmpty() ? "" : " --log-weights w.npy";
      succeed("logsumexp -o o.npy" + plain + w);
      byte[] expected = array("o.npy");
      succeed("logsumexp -o o.npy" + packed + weights);
      assertThat(array("o.npy")).isEqualTo(expected);
      succeed(
          "logsumexp -o o.npy" + plain + " --p-mean x.npz:mean.npy --p-std x.npz:s/std" + weights);
      assertThat(array("o.npy")).isEqualTo(expected);
    }
  }

  @Test
  void namesTheArrayThatIsWrong() throws IOException {
    double[] std = qStd.clone();
    std[D + 2] = 0;
    save("s.npy", "<f4", N, std);
    save("m.npy", "<f4", N, Arrays.copyOf(qMean, N));
    Files.write(
        folder.resolve("x.npz"),
        zip(
            false,
            new Member("mean.npy", array("q.npy")),
            new Member("std.npy", array("s.npy")),
            new Member("m.npy", array("m.npy"))));
    assertUserError(
        "standard --mean x.npz:mean --std x.npz:std -o o.npy",
        "x.npz:std: row 1, column 2: std is");
    assertUserError(
        "standard --mean x.npz:m --std x.npz:std -o o.npy",
        "x.npz:std: has shape (7, 6), but the means in ",
        "x.npz:m have (7, 1)");
  }

  /** A colon in the name of an existing file is part of that name. */
  @Test
  void aFileOfTheWholeName() throws IOException {
    Files.write(folder.resolve("x.npz"), moments(false));
    succeed("standard --mean q.npy --std s.npy -o o.npy");
    byte[] expected = array("o.npy");
    Files.copy(folder.resolve("p.npy"), folder.resolve("x.npz:mean"));
    assertUserError(
        "standard --mean x.npz:mean --std s.npy -o o.npy",
        "the means in ",
        "x.npz:mean have (5, 6)");
    Files.delete(folder.resolve("x.npz:mean"));
    succeed("standard --mean x.npz:mean --std s.npy -o o.npy");
    assertThat(array("o.npy")).isEqualTo(expected);
    Files.move(folder.resolve("x.npz"), folder.resolve("a.npz:b.npz"));
    succeed("standard --mean a.npz:b.npz:mean --std s.npy -o o.npy");
    assertThat(array("o.npy")).isEqualTo(expected);
  }

  private void assertRejected(byte[] archive, String name, String... messages) throws IOException {
    Files.write(folder.resolve("x.npz"), archive);
    assertUserError("standard --mean " + name + " --std s.npy -o o.npy", messages);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whichArray(boolean stored) throws IOException {
    byte[] mean = array("q.npy");
    byte[] moments = moments(stored);
    assertRejected(
        moments,
        "x.npz",
        "x.npz: holds several arrays: name one, as in x.npz:mean; it has mean, s/std");
    assertRejected(moments, "x.npz:std", "x.npz:std: no such array: the archive has mean, s/std");
    assertRejected(moments, "x.npz:", "x.npz:: no such array");
    assertRejected(moments, "x.npz:README", "x.npz:README: is not a .npy file");
    assertRejected(moments, "y.npz:mean", "y.npz:mean: no such file");
    assertRejected(moments, "y.npz", "y.npz: no such file");
    assertRejected(
        zip(stored, new Member("mean", mean)), "x.npz", "x.npz: no array is in the archive");
    assertRejected(zip(stored, new Member("d.npy/", new byte[0])), "x.npz:a", "no array is in");
    Member[] many = new Member[1000];
    Arrays.setAll(many, i -> new Member("array" + i + ".npy", mean));
    assertRejected(zip(stored, many), "x.npz", " it has array0, array1, ", "array19 and 980 more");
    String far = "../../../" + "x".repeat(60_000);
    assertRejected(zip(stored, new Member(far + ".npy", mean)), "x.npz:far", "/xxxxx", "x\u2026");
    Files.write(folder.resolve("x.npz"), zip(stored, new Member("../../q.npy", mean)));
    succeed("standard --mean x.npz:../../q --std s.npy -o o.npy");
    Path capitals = Files.move(folder.resolve("x.npz"), folder.resolve("X.NPZ"));
    succeed("standard --mean " + capitals + ":../../q --std s.npy -o o.npy");
    Files.createDirectory(folder.resolve("d.npz"));
    assertRejected(moments, "d.npz:mean", "d.npz:mean: is a directory, not a .npz file");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void hostileArchives(boolean stored) throws IOException {
    byte[] mean = array("q.npy");
    byte[] good = zip(stored, new Member("mean.npy", mean));
    assertRejected(new byte[0], "x.npz", "x.npz: is not a usable .npz file: ");
    assertRejected(mean, "x.npz", "x.npz: is not a usable .npz file: ");
    assertRejected(
        "hello".getBytes(StandardCharsets.US_ASCII), "x.npz:mean", "x.npz:mean: is not a usable");
    byte[] encrypted = good.clone();
    encrypted[directory(good) + 8] |= 1;
    assertRejected(
        encrypted, "x.npz:mean", "mean.npy is encrypted: save the arrays again by np.savez");
    byte[] otherMethod = good.clone();
    otherMethod[directory(good) + 10] = 93;
    assertRejected(
        otherMethod,
        "x.npz:mean",
        "mean.npy is compressed by method 93 of zip: save the arrays again by np.savez");
    byte[] checksum = good.clone();
    checksum[directory(good) + 16] ^= 1;
    assertRejected(checksum, "x.npz:mean", "x.npz:mean: is damaged: its checksum is not that");
    byte[] twice =
        renamed(
            zip(stored, new Member("mean.npy", mean), new Member("neam.npy", mean)),
            "neam",
            "mean");
    assertRejected(twice, "x.npz:mean", "x.npz:mean: is in the archive more than once");
    assertRejected(twice, "x.npz", "it has mean, mean");
    byte[] data = Arrays.copyOfRange(mean, mean.length - 4 * N * D, mean.length);
    for (String dict :
        new String[] {
          NpyFiles.dict("<f4", false, 1L << 40, D), // more than any machine has
          NpyFiles.dict("<f8", false, N, D),
          NpyFiles.dict("<f4", false, Long.MAX_VALUE, D),
        }) {
      byte[] lies = zip(stored, new Member("mean.npy", NpyFiles.bytes(1, dict, data)));
      assertRejected(lies, "x.npz:mean", "x.npz:mean: is truncated: ");
    }
    byte[] bomb = new byte[1 << 24];
    System.arraycopy(mean, 0, bomb, 0, mean.length);
    assertRejected(
        zip(stored, new Member("mean.npy", bomb)),
        "x.npz:mean",
        " bytes after its data: shape (7, 6)");
  }

  /** Finds where the directory of an archive of one member begins. */
  private static int directory(byte[] zip) {
    int at = zip.length - 22; // before its end's 22 bytes
    while (!(zip[at] == 'P' && zip[at + 1] == 'K' && zip[at + 2] == 1 && zip[at + 3] == 2)) {
      at--;
    }
    return at;
  }

  private static byte[] renamed(byte[] zip, String from, String to) {
    return new String(zip, StandardCharsets.ISO_8859_1)
        .replace(from, to)
        .getBytes(StandardCharsets.ISO_8859_1);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void damagedArchivesGiveNothingButNpyExceptions(boolean stored) throws IOException {
    byte[] good = zip(stored, new Member("mean.npy", array("q.npy")));
    Path file = folder.resolve("x.npz");
    for (int length = 0; length < good.length; length++) {
      Files.write(file, Arrays.copyOf(good, length));
      assertThatThrownBy(() -> read("x.npz", N, D)).isInstanceOf(NpyException.class);
    }
    double[] want = values(read("q.npy", N, D));
    int rejected = 0;
    for (int round = 0; round < 1000; round++) {
      byte[] bytes = good.clone();
      for (int n = 1 + random.nextInt(3); n > 0; n--) {
        bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
      }
      Files.write(file, bytes);
      try {
        assertThat(values(read("x.npz", N, D)))
            .containsExactly(want); // or an error: never other values
      } catch (NpyException e) {
        rejected++;
      }
    }
    assertThat(rejected).isBetween(600, 999);
  }

  /** The bytes of a result are the same for equal arrays of safetensors, in shards and in several files of p, too. */
  @Test
  void safetensors() throws IOException {
    byte[] mean = data("p.npy");
    byte[] std = data("t.npy");
    String header =
        "{\"s\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%d,%d]},\"m\":{\"dtype\":\"F32\",\"shape\":[%1$d,%2$d],\"data_offsets\":[0,%3$d]}} "
            .formatted(M, D, mean.length, mean.length + std.length);
    byte[] both = Arrays.copyOf(mean, mean.length + std.length);
    System.arraycopy(std, 0, both, mean.length, std.length);
    SafetensorsFiles.write(folder.resolve("x.safetensors"), header, both);
    String x = folder.resolve("x.safetensors").toString();
    for (String line :
        List.of(
            "standard --mean MEAN --std STD -o OUT",
            "pairwise --mean q.npy --std s.npy --p-mean MEAN --p-std STD -o OUT",
            "topk -k 2 --shard 2/3 --mean MEAN --std STD --indices i.npy -o OUT",
            "topk -k 2 --mean q.npy --std s.npy --p-mean MEAN MEAN --p-std STD STD --indices i.npy -o OUT")) {
      succeed(line.replace("MEAN", "p.npy").replace("STD", "t.npy").replace("OUT", "want.npy"));
      succeed(line.replace("MEAN", x + ":m").replace("STD", x + ":s").replace("OUT", "o.npy"));
      assertThat(array("o.npy")).as(line).isEqualTo(array("want.npy"));
    }
    assertUserError(
        "standard --mean " + x + ":mean --std " + x + ":s -o o.npy",
        "x.safetensors:mean: no such array: the file has m, s");
    assertUserError(
        "standard --mean " + x + ":m --std " + x + ":s -o " + x, "the output has the format .npy");
  }

  private byte[] data(String file) throws IOException {
    byte[] bytes = array(file);
    return Arrays.copyOfRange(bytes, bytes.length - 4 * M * D, bytes.length);
  }

  /** KL of (1, -2) and (1/2, 3) with std 1: half of 0.25 + 25. */
  @ParameterizedTest
  @ValueSource(strings = {"<V2", "|V2", "bfloat16", "<u2"})
  void bfloat16(String descr) throws IOException {
    byte[] bits = NpyFiles.data(">f4", 1, -2, 0.5, 3);
    byte[] halves = new byte[8];
    for (int k = 0; k < halves.length; k++) {
      halves[k] = bits[k / 2 * 4 + 1 - k % 2];
    }
    String dict = NpyFiles.dict(descr, false, 2, 2);
    NpyFiles.write(folder.resolve("m.npy"), NpyFiles.bytes(1, dict, halves));
    NpyFiles.write(folder.resolve("ones.npy"), "<f4", new long[] {2, 2}, 1, 1, 1, 1);
    Files.write(folder.resolve("x.npz"), zip(false, new Member("m.npy", array("m.npy"))));
    String mark = descr.equals("<u2") ? ":bfloat16" : "";
    for (String name : List.of("m.npy", "x.npz", "x.npz:m")) {
      succeed("pairwise --mean " + folder.resolve(name) + mark + " --std ones.npy -o o.npy");
      assertThat(values(read("o.npy", 2, 2))).containsExactly(0, 12.625, 12.625, 0);
    }
    if (!mark.isEmpty()) {
      assertUserError(
          "pairwise --mean x.npz:m --std ones.npy -o o.npy",
          "x.npz:m: has the unsupported dtype <u2: convert it, np.save('m.npy', np.load('x.npz')['m'].astype('float32')), or put :bfloat16 behind the name");
    }
  }

  @Test
  void text() throws IOException {
    Files.writeString(folder.resolve("m.csv"), "x,y\n0,1\n2,3\n");
    Files.writeString(folder.resolve("s.txt"), "1 1\n1 1\n");
    succeed("pairwise --mean m.csv --std s.txt -o o.npy");
    assertThat(values(read("o.npy", 2, 2))).containsExactly(0, 4, 4, 0);
    String weighted = "logsumexp --mean m.csv --std s.txt --log-weights w.csv -o o.npy";
    Files.writeString(folder.resolve("w.csv"), "0.0\n-1.5\n");
    succeed(weighted);
    byte[] column = array("o.npy");
    Files.writeString(folder.resolve("w.csv"), "0,-1.5\n"); // a row
    succeed(weighted);
    assertThat(array("o.npy")).isEqualTo(column);
    for (String wrong : new String[] {"0,-1.5\n1,2\n", "0,-1.5,2\n", "0\n1\n2\n"}) {
      Files.writeString(folder.resolve("w.csv"), wrong.replaceFirst("0", "0.0"));
      assertUserError(
          weighted, "w.csv: has shape (", "m.csv has 2 rows: it must be (2, 1) or (1, 2)");
    }
    Files.writeString(folder.resolve("s.txt"), "1 1\n1 nan\n");
    assertUserError(
        "pairwise --mean m.csv --std s.txt -o o.npy", "s.txt: row 1, column 1: std is NaN: repair");
    Files.writeString(folder.resolve("s.txt"), "1 1\n1 one\n");
    assertUserError(
        "pairwise --mean m.csv --std s.txt -o o.npy",
        "s.txt: line 2, column 2 is 'one': it must be a number");
  }

  /** Ids, and offsets of mixtures, may be a row of text, too, even one that would be the numbers of columns. */
  @Test
  void rowsOfIntegers() throws IOException {
    String index = folder.resolve("index").toString();
    Files.writeString(folder.resolve("j.csv"), "0,1,2,3,4\n");
    assertThat(run("index create " + index + " --mean p.npy --std t.npy --ids j.csv").err())
        .isEmpty();
    Files.writeString(folder.resolve("j.csv"), "4,3\n");
    assertThat(run("index remove " + index + " --ids j.csv").err()).isEmpty();
    assertThat(run("index info " + index).out()).containsPattern("size +3\\R");
    Files.writeString(folder.resolve("j.csv"), "2,1\n1,2\n");
    assertUserError(
        "index remove " + index + " --ids j.csv",
        "j.csv: has shape (2, 2): ids are one column of text, or one row");
    String mixtures =
        "mixture-kl --mean q.npy --std s.npy --p-mean p.npy --p-std t.npy -o o.npy --offsets ";
    Files.writeString(folder.resolve("f.csv"), "0 3 7");
    NpyFiles.write(folder.resolve("f.npy"), "<i4", new long[] {3}, 0, 3, 7);
    succeed(mixtures + "f.npy");
    byte[] expected = array("o.npy");
    succeed(mixtures + "f.csv");
    assertThat(array("o.npy")).isEqualTo(expected);
  }

  /**
   * Blocks of rows are those of the whole file, which is opened and read once: it may be deleted meanwhile. Another opening for each block would
   * make the time quadratic in the size of a file that cannot seek.
   */
  @ParameterizedTest
  @ValueSource(strings = {"npy", "fortran", "csv", "stored", "deflated", "half"})
  void blocksOfRows(String format) throws IOException {
    int rows = 1000;
    double[] means = floats(rows * 3, v -> 0.25 * Math.round(8 * v)); // which float16 has, too
    double[] stds = floats(rows * 3, v -> 0.5 + Math.abs(0.25 * Math.round(8 * v)));
    Path mean = blocks("m", format, rows, means);
    Path std = blocks("x", format, rows, stds);
    BatchOptions.Files files = new BatchOptions.Files(mean, ScaleKind.STD, std);
    try (Arena arena = Arena.ofConfined();
        BatchReader in = new BatchReader(files, ScalePolicy.STRICT, Layout.of(files))) {
      Files.delete(Input.file(mean));
      Files.delete(Input.file(std));
      int[] ends = {0, 1, 400, 400, 650, 999, rows};
      for (int k = 1; k < ends.length - 1; k++) {
        int from = k == 4 ? 500 : ends[k - 1]; // some are left out
        Batch batch = in.next(from, ends[k], arena);
        assertThat(values(batch.mean()))
            .isEqualTo(Arrays.copyOfRange(means, 3 * from, 3 * ends[k]));
        assertThat(values(batch.scale()))
            .isEqualTo(Arrays.copyOfRange(stds, 3 * from, 3 * ends[k]));
      }
      assertThat(values(in.next(999, rows, arena).mean()))
          .isEqualTo(Arrays.copyOfRange(means, 3 * 999, 3 * rows));
    }
  }

  private Path blocks(String name, String format, int rows, double[] values) throws IOException {
    Path npy = folder.resolve(name + ".npy");
    boolean isTransposed = format.equals("fortran");
    double[] file = values.clone();
    for (int k = 0; isTransposed && k < file.length; k++) {
      file[k % 3 * rows + k / 3] = values[k];
    }
    String descr = format.equals("half") ? "<f2" : "<f8";
    String dict = NpyFiles.dict(descr, isTransposed, rows, 3);
    NpyFiles.write(npy, NpyFiles.bytes(1, dict, NpyFiles.data(descr, file)));
    if (format.equals("csv")) {
      StringBuilder text = new StringBuilder("a,b,c\n");
      for (int k = 0; k < values.length; k++) {
        text.append(values[k]).append(k % 3 == 2 ? '\n' : ',');
      }
      return Files.writeString(folder.resolve(name + ".csv"), text);
    }
    if (format.equals("stored") || format.equals("deflated")) {
      byte[] zip = zip(format.equals("stored"), new Member("a.npy", array(name + ".npy")));
      Files.write(folder.resolve(name + ".npz"), zip);
      return folder.resolve(name + ".npz:a");
    }
    return npy;
  }

  /** What is wrong behind a shard's rows makes these doubtful where only reading on tells. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void damageBehindAShard(boolean stored) throws IOException {
    byte[] good = array("q.npy");
    byte[] zip = zip(stored, new Member("mean.npy", good));
    Files.write(folder.resolve("x.npz"), zip);
    String line =
        "topk -k 1 --shard 1/7 --mean x.npz --std s.npy --p-mean p.npy --p-std t.npy -o o.npy";
    succeed(line + " --indices i.npy");
    zip[31 + "mean.npy".length() + good.length * 3 / 4] ^= 1;
    Files.write(folder.resolve("x.npz"), zip);
    assertUserError(line + " --indices j.npy", "x.npz: is damaged");
    Files.writeString(folder.resolve("m.csv"), "1\n2\n3\none\n");
    assertUserError(
        "topk -k 1 --shard 1/4 --mean m.csv --std m.csv --p-mean m.csv --p-std m.csv -o o.npy --indices j.npy",
        "m.csv: line 4, column 1 is 'one'");
  }

  @Test
  void float16() throws IOException {
    double[] mean =
        Arrays.stream(qMean)
            .map(v -> Float.float16ToFloat(Float.floatToFloat16((float) v)))
            .toArray();
    save("q.npy", "<f4", N, mean);
    succeed("standard --mean q.npy --std s.npy -o o.npy");
    byte[] expected = array("o.npy");
    for (String descr : new String[] {"<f2", ">f2"}) {
      save("h.npy", descr, N, mean);
      succeed("standard --mean h.npy --std s.npy -o o.npy");
      assertThat(array("o.npy")).isEqualTo(expected);
      assertThat(read("o.npy", N).isDouble()).isFalse();
      mean[D] = Double.NaN;
      save("h.npy", descr, N, mean);
      assertUserError(
          "standard --mean h.npy --std s.npy -o o.npy", "h.npy: row 1, column 0: mean is NaN");
      mean[D] = 1e5; // overflows
      save("h.npy", descr, N, mean);
      assertUserError(
          "standard --mean h.npy --std s.npy -o o.npy", "row 1, column 0: mean is Infinity");
      mean[D] = values(read("q.npy", N, D))[D];
    }
  }

  /** Runs work with other bytes on standard input, given out in small pieces. */
  private static void withStdin(InputStream bytes, Work work) throws IOException {
    InputStream before = System.in;
    System.setIn(
        new FilterInputStream(bytes) {
          @Override
          public int read(byte[] to, int from, int length) throws IOException {
            return super.read(to, from, Math.min(length, 1000));
          }
        });
    try {
      work.run();
    } finally {
      System.setIn(before);
    }
  }

  private interface Work {
    void run() throws IOException;
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "standard --mean # --std s.npy -o o.npy",
        "aligned --mean # --std s.npy --p-mean m.npy --p-std s.npy -o o.npy",
        "aligned --mean m.npy --std s.npy --p-mean # --p-std s.npy -o o.npy",
        "standard --mean m.npy --std # -o o.npy",
        "aligned --mean q.npy --std s.npy --p-mean m.npy --p-std # -o o.npy",
      })
  void standardInput(String line) throws IOException {
    save("m.npy", "<f8", N, floats(N * D, v -> v));
    String file = line.contains("std #") ? "s.npy" : "q.npy";
    succeed(line.replace("#", file));
    byte[] expected = array("o.npy");
    Files.writeString(folder.resolve("o.npy"), "precious");
    String piped = line.replace("#", "-");
    withStdin(new ByteArrayInputStream(array(file)), () -> succeed(piped));
    assertThat(array("o.npy")).isEqualTo(expected);
    byte[] whole = array(file);
    for (int length : new int[] {0, 5, 9, 50, whole.length - 1, whole.length + 1}) {
      withStdin(
          new ByteArrayInputStream(Arrays.copyOf(whole, length)),
          () ->
              assertUserError(
                  piped,
                  length == 0
                      ? "-: is empty"
                      : length == 5
                          ? "-: is not a .npy file"
                          : length < whole.length
                              ? "-: is truncated: "
                              : "-: has more bytes after its data: shape (7, 6) of <f4 needs 168"));
    }
  }

  /** Standard input takes as much memory as data comes: not the terabytes that a header claims, but more than a chunk. */
  @Test
  void sizesOfStandardInput() throws IOException {
    byte[] claim = NpyFiles.bytes(1, NpyFiles.dict("<f4", false, 1L << 38, 2), new byte[100]);
    withStdin(
        new ByteArrayInputStream(claim),
        () ->
            assertUserError(
                "standard --mean - --std s.npy -o o.npy",
                "-: is truncated: shape (274877906944, 2) of <f4 needs 2199023255552 bytes of data, 100 follow"));
    int rows = 50_000_000;
    byte[] large = NpyFiles.bytes(1, NpyFiles.dict("<f4", false, rows), new byte[4 * rows]);
    for (int i = large.length - 4 * rows; i < large.length; i++) {
      large[i] = (byte) (i * 31 >> 5);
    }
    InputStream before = System.in;
    System.setIn(new ByteArrayInputStream(large));
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.readFloats(Input.STDIN, arena);
      MemorySegment data = MemorySegment.ofArray(large).asSlice(large.length - 4L * rows);
      assertThat(array.data().mismatch(data)).isEqualTo(-1);
    } finally {
      System.setIn(before);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "standard --mean - --std -, only one input can be standard input; give ./- for a file of that name",
    "aligned --mean - --std s.npy --p-mean q.npy --p-std -, only one input can be",
    "pairwise --mean - --std s.npy, only standard and aligned read standard input; give ./- for",
    "pairwise --mean q.npy --std -, only standard and aligned",
    "pairwise --mean q.npy --std s.npy --p-mean p.npy --p-std -, only standard and aligned",
    "topk -k 1 --indices i.npy --mean - --std s.npy, only standard and aligned",
    "within --radius 1 --indices i.npy --mean - --std s.npy, only standard and aligned",
    "logsumexp --mean - --std s.npy, only standard and aligned",
    "logsumexp --mean q.npy --std s.npy --log-weights -, only standard and aligned",
    "entropy --mean - --std s.npy, only standard and aligned",
    "entropy --mean q.npy --std s.npy --weights -, only standard and aligned",
  })
  void refusedStandardInput(String line, String message) throws IOException {
    withStdin(
        new ByteArrayInputStream(array("q.npy")),
        () -> {
          assertUserError(line + " -o o.npy", "kullback: -: " + message);
          assertThat(System.in.available()).isPositive(); // unread
        });
  }
}
