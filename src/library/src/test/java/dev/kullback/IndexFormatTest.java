package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.testing.Batch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Folders that earlier versions wrote are opened: one of each version of the format is kept in {@code src/test/resources/index-format}, and
 * never made anew. A change of the format makes one more, by
 *
 * <pre>
 * ./mvnw -pl src/library -P'!all' test -Dtest='IndexFormatTest#makesTheFolder' -Dindex.format.folder=$PWD/src/library/src/test/resources/index-format/N
 * </pre>
 */
class IndexFormatTest {
  private static final Path FOLDERS =
      Path.of(System.getProperty("basedir", "."), "src/test/resources/index-format");

  private static final int D = 8;

  /** Enough for codes, of σ in float, which come first; of all others there are few. */
  private static final int MANY = 256;

  private static final int FEW = 5;

  /** Ids that are removed after the first commit; 20,002 is added by the second. */
  private static final long[] REMOVED = {0, 100, 3001, 7004};

  @TempDir private Path scratch;

  /** Gaussians of one kind and precision; numbers that float holds exactly, whatever computes them. */
  private static Batch batch(int part, int n) {
    double[] mean = IntStream.range(0, n * D).mapToDouble(k -> (k * 7 % 61 - 30) / 8.0).toArray();
    double[] scale =
        IntStream.range(0, n * D).mapToDouble(k -> (k * 5 % 31 + part + 4) / 16.0).toArray();
    return new Batch(Batch.Kind.values()[part / 2], part % 2 == 1, mean, scale, D);
  }

  private static long[] ids(int part, int n) {
    return LongStream.range(1000L * part, 1000L * part + n).toArray();
  }

  /** What the folders hold, by ids. */
  private static Map<Long, Batch> content() {
    Map<Long, Batch> content = new TreeMap<>();
    for (int part = 0; part < 8; part++) {
      int n = part == 0 ? MANY : FEW;
      for (int i = 0; i < n; i++) {
        content.put(1000L * part + i, batch(part, n).rows(i, i + 1));
      }
    }
    content.put(20_002L, batch(0, 1));
    content.keySet().removeAll(Arrays.stream(REMOVED).boxed().toList());
    return content;
  }

  /** Fills an index in two commits. */
  private static void fill(KlIndex index, Runnable commit) {
    for (int part = 0; part < 8; part++) {
      int n = part == 0 ? MANY : FEW;
      index.add(ids(part, n), batch(part, n).gaussians());
    }
    commit.run();
    index.remove(REMOVED);
    index.add(new long[] {20_002}, batch(0, 1).gaussians());
    commit.run();
  }

  @Test
  @EnabledIfSystemProperty(named = "index.format.folder", matches = ".+")
  void makesTheFolder() {
    try (KlIndex index =
        KlIndex.builder(D).open(Path.of(System.getProperty("index.format.folder")))) {
      fill(index, index::commit);
    }
  }

  static List<String> versions() throws IOException {
    try (Stream<Path> folders = Files.list(FOLDERS)) {
      return folders.map(folder -> folder.getFileName().toString()).sorted().toList();
    }
  }

  private Path copy(String version) throws IOException {
    Path copy = Files.createDirectory(scratch.resolve("index"));
    try (Stream<Path> files = Files.list(FOLDERS.resolve(version))) {
      for (Path file : files.toList()) {
        Files.copy(file, copy.resolve(file.getFileName()));
      }
    }
    return copy;
  }

  /** What is in it is found, also by its codes, and it is of the version that its name says. */
  @ParameterizedTest
  @MethodSource("versions")
  void isRead(String version) throws IOException {
    assertThat(Files.readAllLines(FOLDERS.resolve(version).resolve("manifest")))
        .startsWith("kullback-index " + version, "dimension 8");
    try (KlIndex index = KlIndex.openReadOnly(copy(version));
        KlIndex expected = KlIndex.builder(D).build()) {
      fill(expected, () -> {});
      index.verify();
      assertThat(index.stats().segments()).isEqualTo(9);
      assertThat(index.stats().deleted()).isEqualTo(REMOVED.length);
      check(index, content());
      for (int part = 0; part < 8; part++) {
        DiagonalGaussians queries = batch(part, FEW).gaussians();
        for (Query query : List.of(Query.nearest(20), Query.nearest(300).reverse())) {
          IndexNeighbors found = index.search(queries, query);
          IndexNeighbors other = expected.search(queries, query);
          assertThat(found.ids()).isEqualTo(other.ids());
          assertThat(found.values()).isEqualTo(other.values());
        }
      }
    }
  }

  private static void check(KlIndex index, Map<Long, Batch> content) {
    assertThat(index.ids())
        .isEqualTo(content.keySet().stream().mapToLong(Long::longValue).toArray());
    content.forEach((id, batch) -> {
      Gaussians found = index.get(id);
      assertThat(found.kind()).isEqualTo(batch.kind().scaleKind());
      assertThat(found.isDouble()).isEqualTo(batch.isDouble());
      assertThat(found.mean(0)).isEqualTo(batch.mean());
      assertThat(found.scale(0)).isEqualTo(batch.scale());
    });
  }

  /** It is changed, by a commit that merges what there was, and by one that does not. */
  @ParameterizedTest
  @MethodSource("versions")
  void isChanged(String version) throws IOException {
    Path folder = copy(version);
    Map<Long, Batch> content = content();
    for (int step = 0; step < 12; step++) {
      try (KlIndex index = KlIndex.open(folder)) {
        check(index, content);
        index.replace(new long[] {step, 5000 + step}, batch(0, 2).gaussians());
        index.remove(7000 + step);
        index.commit();
        index.verify();
      }
      content.put((long) step, batch(0, 2).rows(0, 1));
      content.put(5000L + step, batch(0, 2).rows(1, 2));
      content.remove(7000L + step);
    }
    try (KlIndex index = KlIndex.openReadOnly(folder)) {
      index.verify();
      check(index, content);
    }
  }
}
