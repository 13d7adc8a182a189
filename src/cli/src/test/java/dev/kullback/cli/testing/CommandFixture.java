package dev.kullback.cli.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.Main;
import dev.kullback.cli.npy.Npy;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Runs command lines in a folder with two batches, q.npy with s.npy and p.npy with t.npy. */
public abstract class CommandFixture {
  public static final int N = 7;
  public static final int M = 5;
  public static final int D = 6;

  @TempDir public Path folder;

  public final Random random = new Random(3);
  public final double[] qMean = floats(N * D, v -> 3 * v);
  public final double[] qStd = floats(N * D, Math::exp);
  public final double[] pMean = floats(M * D, v -> 3 * v);
  public final double[] pStd = floats(M * D, Math::exp);

  public double[] floats(int count, DoubleUnaryOperator f) {
    return IntStream.range(0, count)
        .mapToDouble(_ -> (float) f.applyAsDouble(random.nextGaussian()))
        .toArray();
  }

  @BeforeEach
  public void writeInputs() throws IOException {
    save("q.npy", "<f4", N, qMean);
    save("s.npy", "<f4", N, qStd);
    save("p.npy", "<f4", M, pMean);
    save("t.npy", "<f4", M, pStd);
  }

  public void save(String name, String descr, int rows, double... values) throws IOException {
    NpyFiles.write(folder.resolve(name), descr, new long[] {rows, values.length / rows}, values);
  }

  /** Saves an array of such axes as "2 3" or "(2,3)", which may be none. */
  public void save(String name, String descr, String axes, double... values) throws IOException {
    NpyFiles.write(folder.resolve(name), descr, axes(axes), values);
  }

  public static long[] axes(String text) {
    return Pattern.compile("\\d+")
        .matcher(text)
        .results()
        .mapToLong(axis -> Long.parseLong(axis.group()))
        .toArray();
  }

  public byte[] bytes(String name) throws IOException {
    return Files.readAllBytes(folder.resolve(name));
  }

  /** Makes an archive of files here, each of which may be given another name: {@code NAME=FILE}. */
  public void zip(String name, boolean isStored, String... members) throws IOException {
    try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(folder.resolve(name)))) {
      for (String member : members) {
        byte[] bytes = bytes(member.replaceFirst(".*=", ""));
        ZipEntry entry = new ZipEntry(member.replaceFirst("=.*", ""));
        if (isStored) {
          CRC32 crc = new CRC32();
          crc.update(bytes);
          entry.setMethod(ZipEntry.STORED);
          entry.setSize(bytes.length);
          entry.setCrc(crc.getValue());
        }
        zip.putNextEntry(entry);
        zip.write(bytes);
      }
    }
  }

  public record Result(int status, String out, String err) {}

  /** Words that begin with ./, end in .npy and some others, or name an array of an .npz are files in the folder. */
  public Result run(String commandLine) {
    return runRaw(args(commandLine));
  }

  public String[] args(String commandLine) {
    return Stream.of(commandLine.split(" "))
        .filter(a -> !a.isEmpty())
        .map(a ->
            a.matches("\\./.+|.*\\.(npy|npz|npz:.*|png|csv|txt|jpg|CSV)")
                ? folder.resolve(a.replaceFirst("^\\./", "")).toString()
                : a)
        .toArray(String[]::new);
  }

  public static Result runRaw(String... args) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    int status = Main.run(args, stream(out), stream(err));
    return new Result(
        status, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
  }

  public static PrintStream stream(ByteArrayOutputStream bytes) {
    return new PrintStream(bytes, true, StandardCharsets.UTF_8);
  }

  public void succeed(String commandLine) {
    Result result = run(commandLine);
    assertThat(result.err()).isEmpty();
    assertThat(result.status()).isZero();
    assertThat(result.out()).contains("wrote " + folder);
  }

  public Npy.Array read(String name, long... shape) throws IOException {
    Npy.Array array = Npy.readFloats(folder.resolve(name), Arena.ofAuto());
    assertThat(array.shape()).containsExactly(shape);
    return array;
  }

  public static double[] values(Npy.Array array) {
    long count = array.data().byteSize() / array.element().byteSize();
    return LongStream.range(0, count).mapToDouble(array::value).toArray();
  }

  public void assertSame(String name, String other) {
    assertThat(folder.resolve(name)).hasSameBinaryContentAs(folder.resolve(other));
  }

  /** One line, status 2, the folder as it was. */
  public void assertUserError(String commandLine, String... messages) throws IOException {
    assertFails(2, commandLine, messages);
  }

  public void assertFails(int status, String commandLine, String... messages) throws IOException {
    if (!Files.exists(folder.resolve("o.npy"))) {
      Files.writeString(folder.resolve("o.npy"), "precious");
    }
    List<String> before = contents();
    Result result = run(commandLine);
    assertThat(result.err())
        .startsWith("kullback: ")
        .contains(messages)
        .matches("[^\\r\\n]+\\R"); // one line
    assertThat(result.out()).isEmpty();
    assertThat(result.status()).isEqualTo(status);
    assertThat(contents()).isEqualTo(before);
  }

  public List<String> contents() throws IOException {
    List<String> contents = new ArrayList<>();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(f -> !f.equals(folder)).sorted().toList()) {
        String bytes =
            Files.isRegularFile(file) ? HexFormat.of().formatHex(Files.readAllBytes(file)) : "";
        contents.add(file + bytes);
      }
    }
    return contents;
  }
}
