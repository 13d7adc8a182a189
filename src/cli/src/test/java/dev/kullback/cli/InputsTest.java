package dev.kullback.cli;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
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
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Inputs that options may name, and how they are checked before anything is computed. */
class InputsTest extends CommandFixture {
  private byte[] zip(boolean isStored, String... members) throws IOException {
    zip("x.npz", isStored, members);
    return bytes("x.npz");
  }

  private void assertRejected(byte[] archive, String name, String... messages) throws IOException {
    Files.write(folder.resolve("x.npz"), archive);
    assertUserError("standard --mean " + name + " --std s.npy -o o.npy", messages);
  }

  @Test
  void namesAreCut() throws IOException {
    String[] many = new String[1000];
    Arrays.setAll(many, i -> "array" + i + ".npy=q.npy");
    assertRejected(zip(false, many), "x.npz", " it has array0, array1, ", "array19 and 980 more");
    String far = "../../../" + "x".repeat(60_000) + ".npy=q.npy";
    assertRejected(zip(true, far), "x.npz:far", "/xxxxx", "x\u2026");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void hostileArchives(boolean stored) throws IOException {
    byte[] mean = bytes("q.npy");
    byte[] good = zip(stored, "mean.npy=q.npy");
    for (byte[] none : new byte[][] {{}, mean, {'h', 'e', 'l', 'l', 'o'}}) {
      assertRejected(none, "x.npz", "x.npz: is not a usable .npz file: ");
    }
    assertRejected(
        changed(good, 8, 1),
        "x.npz:mean",
        "mean.npy is encrypted: save the arrays again by np.savez");
    assertRejected(
        changed(good, 10, 93 ^ good[directory(good) + 10]),
        "x.npz:mean",
        "mean.npy is compressed by method 93 of zip: save the arrays again by np.savez");
    assertRejected(
        changed(good, 16, 1), "x.npz:mean", "x.npz:mean: is damaged: its checksum is not that");
    byte[] twice = zip(stored, "mean.npy=q.npy", "neam.npy=q.npy");
    twice = new String(twice, ISO_8859_1).replace("neam", "mean").getBytes(ISO_8859_1);
    assertRejected(twice, "x.npz:mean", "x.npz:mean: is in the archive more than once");
    assertRejected(twice, "x.npz", "it has mean, mean");
    byte[] data = Arrays.copyOfRange(mean, mean.length - 4 * N * D, mean.length);
    for (String dict :
        new String[] {
          NpyFiles.dict("<f4", false, 1L << 40, D), // more than any machine has
          NpyFiles.dict("<f8", false, N, D),
          NpyFiles.dict("<f4", false, Long.MAX_VALUE, D),
        }) {
      NpyFiles.write(folder.resolve("lie.npy"), NpyFiles.bytes(1, dict, data));
      assertRejected(zip(stored, "mean.npy=lie.npy"), "x.npz:mean", "x.npz:mean: is truncated: ");
    }
    Files.write(folder.resolve("bomb.npy"), Arrays.copyOf(mean, 1 << 20));
    assertRejected(
        zip(stored, "mean.npy=bomb.npy"), "x.npz:mean", " bytes after its data: shape (7, 6)");
  }

  private static byte[] changed(byte[] zip, int inDirectory, int bits) {
    byte[] changed = zip.clone();
    changed[directory(zip) + inDirectory] ^= (byte) bits;
    return changed;
  }

  /** Finds where the directory of an archive of one member begins. */
  private static int directory(byte[] zip) {
    int at = zip.length - 22; // before its end's 22 bytes
    while (!(zip[at] == 'P' && zip[at + 1] == 'K' && zip[at + 2] == 1 && zip[at + 3] == 2)) {
      at--;
    }
    return at;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void damagedArchivesGiveNothingButNpyExceptions(boolean stored) throws IOException {
    byte[] good = zip(stored, "mean.npy=q.npy");
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
  @ParameterizedTest
  @ValueSource(
      strings = {
        "standard --mean MEAN --std STD -o OUT",
        "pairwise --mean q.npy --std s.npy --p-mean MEAN --p-std STD -o OUT",
        "topk -k 2 --shard 2/3 --mean MEAN --std STD --indices i.npy -o OUT",
        "topk -k 2 --mean q.npy --std s.npy --p-mean MEAN MEAN --p-std STD STD --indices i.npy -o OUT"
      })
  void safetensors(String line) throws IOException {
    int size = 4 * M * D;
    String header =
        "{'s':{'dtype':'F32','shape':[%d,%d],'data_offsets':[%d,%d]},'m':{'dtype':'F32','shape':[%1$d,%2$d],'data_offsets':[0,%3$d]}} "
            .formatted(M, D, size, 2 * size)
            .replace('\'', '"');
    byte[] both = new byte[2 * size];
    System.arraycopy(bytes("p.npy"), bytes("p.npy").length - size, both, 0, size);
    System.arraycopy(bytes("t.npy"), bytes("t.npy").length - size, both, size, size);
    SafetensorsFiles.write(folder.resolve("x.safetensors"), header, both);
    String x = folder.resolve("x.safetensors").toString();
    succeed(line.replace("MEAN", "p.npy").replace("STD", "t.npy").replace("OUT", "want.npy"));
    succeed(line.replace("MEAN", x + ":m").replace("STD", x + ":s").replace("OUT", "o.npy"));
    assertSame("o.npy", "want.npy");
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
    save("ones.npy", "<f4", 2, 1, 1, 1, 1);
    zip("x.npz", false, "m.npy");
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
      zip(name + ".npz", format.equals("stored"), "a.npy=" + name + ".npy");
      return folder.resolve(name + ".npz:a");
    }
    return npy;
  }

  /** What is wrong behind a shard's rows makes these doubtful where only reading on tells. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void damageBehindAShard(boolean stored) throws IOException {
    byte[] good = bytes("q.npy");
    byte[] zip = zip(stored, "mean.npy=q.npy");
    String line =
        "topk -k 1 --shard 1/7 --mean x.npz --std s.npy --p-mean p.npy --p-std t.npy -o o.npy";
    succeed(line + " --indices i.npy");
    zip[31 + "mean.npy".length() + good.length * 3 / 4] ^= 1;
    Files.write(folder.resolve("x.npz"), zip);
    assertUserError(line + " --indices j.npy", "x.npz: is damaged");
  }

  /** Runs work with other bytes on standard input, given out in small pieces. */
  private static void withStdin(byte[] bytes, Work work) throws IOException {
    InputStream before = System.in;
    System.setIn(
        new FilterInputStream(new ByteArrayInputStream(bytes)) {
          @Override
          public int read(byte[] to, int from, int length) throws IOException {
            return super.read(to, from, Math.min(length, 100));
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
    byte[] expected = bytes("o.npy");
    Files.writeString(folder.resolve("o.npy"), "precious");
    String piped = line.replace("#", "-");
    byte[] whole = bytes(file);
    withStdin(whole, () -> succeed(piped));
    assertThat(bytes("o.npy")).isEqualTo(expected);
    for (int length : new int[] {0, 5, 9, 50, whole.length - 1, whole.length + 1}) {
      String message =
          length == 0
              ? "-: is empty"
              : length == 5
                  ? "-: is not a .npy file"
                  : length < whole.length
                      ? "-: is truncated: "
                      : "-: has more bytes after its data: shape (7, 6) of <f4 needs 168";
      withStdin(Arrays.copyOf(whole, length), () -> assertUserError(piped, message));
    }
  }

  /** Standard input takes as much memory as data comes: not the terabytes that a header claims, but more than a chunk. */
  @Test
  void sizesOfStandardInput() throws IOException {
    byte[] claim = NpyFiles.bytes(1, NpyFiles.dict("<f4", false, 1L << 38, 2), new byte[100]);
    withStdin(
        claim,
        () ->
            assertUserError(
                "standard --mean - --std s.npy -o o.npy",
                "-: is truncated: shape (274877906944, 2) of <f4 needs 2199023255552 bytes of data, 100 follow"));
    int rows = 50_000_000;
    byte[] large = NpyFiles.bytes(1, NpyFiles.dict("<f4", false, rows), new byte[4 * rows]);
    for (int i = large.length - 4 * rows; i < large.length; i++) {
      large[i] = (byte) (i * 31 >> 5);
    }
    withStdin(
        large,
        () -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = MemorySegment.ofArray(large).asSlice(large.length - 4L * rows);
            assertThat(Npy.readFloats(Input.STDIN, arena).data().mismatch(data)).isEqualTo(-1);
          }
        });
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
        bytes("q.npy"),
        () -> {
          assertUserError(line + " -o o.npy", "kullback: -: " + message);
          assertThat(System.in.available()).isPositive(); // unread
        });
  }
}
