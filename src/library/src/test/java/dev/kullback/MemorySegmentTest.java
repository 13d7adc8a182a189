package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Inputs and outputs off the heap, at odd addresses, in both byte orders. */
class MemorySegmentTest {
  private static final byte SENTINEL = 0x5a;
  private static final int N = 13;
  private static final int M = 21;
  private static final int DIMENSION = 19;

  private final Batch floatQ = Batch.random(false, N, DIMENSION, 0, new Random(1));
  private final Batch floatP = Batch.random(false, M, DIMENSION, 1, new Random(2));
  private final Batch doubleQ = Batch.random(true, N, DIMENSION, 0, new Random(3));
  private final Batch doubleP = Batch.random(true, M, DIMENSION, 1, new Random(4));

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void outputsHoldWhatArraysHold(Backend backend) {
    try (Arena arena = Arena.ofShared();
        Arena confined = Arena.ofConfined()) {
      for (int threads : new int[] {1, 3}) {
        try (KlEngine engine = Engines.on(backend, threads)) {
          checkOutput(engine, bytes -> arena.allocate(bytes, 8));
          checkOutput(engine, bytes -> confined.allocate(bytes, 8)); // this thread's alone
          checkOutput(engine, bytes -> MemorySegment.ofArray(new byte[(int) bytes]));
          checkOutput(engine, bytes -> MemorySegment.ofArray(new long[(int) bytes / 8]));
        }
      }
    }
  }

  /**
   * Every function, both element types, at aligned and at odd offsets, with guard zones on both
   * sides.
   */
  private void checkOutput(KlEngine engine, LongFunction<MemorySegment> allocator) {
    DiagonalGaussians q = floatQ.gaussians();
    DiagonalGaussians p = floatP.gaussians();
    DiagonalGaussians twiceQ = doubleQ.gaussians();
    DiagonalGaussians twiceP = doubleP.gaussians();
    float[] expected = engine.pairwise(q, p);
    double[] expectedTwice = engine.pairwise(twiceQ, twiceP, new double[N * M]);
    double[] expectedMixed = engine.pairwise(q, twiceP, new double[N * M]);
    float[] self = engine.toStandardNormal(q);
    float[] aligned = engine.aligned(q, q);
    double[] alignedTwice = engine.aligned(twiceQ, twiceQ, new double[N]);
    for (int offset : new int[] {0, 4, 1, 3, 64}) {
      Guarded out = new Guarded(allocator, offset, 4L * N * M);
      assertThat(engine.pairwise(q, p, out.inner)).isSameAs(out.inner);
      Check.sameBits("offset " + offset, M, expected, out.floats(N * M));
      Guarded twice = new Guarded(allocator, offset, 8L * N * M);
      engine.pairwise(twiceQ, twiceP, twice.inner);
      Check.sameBits("offset " + offset, M, expectedTwice, twice.doubles(N * M));
      Guarded mixed = new Guarded(allocator, offset, 8L * N * M);
      engine.pairwise(q, twiceP, mixed.inner);
      Check.sameBits("offset " + offset, M, expectedMixed, mixed.doubles(N * M));
      Guarded row = new Guarded(allocator, offset, 4L * N);
      engine.toStandardNormal(q, row.inner);
      Check.sameBits("offset " + offset, 1, self, row.floats(N));
      engine.aligned(q, q, row.inner);
      Check.sameBits("offset " + offset, 1, aligned, row.floats(N));
      Guarded rowTwice = new Guarded(allocator, offset, 8L * N);
      engine.aligned(twiceQ, twiceQ, rowTwice.inner);
      Check.sameBits("offset " + offset, 1, alignedTwice, rowTwice.doubles(N));
      // Longer than needed: the rest is left alone.
      Guarded longer = new Guarded(allocator, offset, 4L * N * M + 24);
      engine.pairwise(q, p, longer.inner);
      Check.sameBits("offset " + offset, M, expected, longer.floats(N * M));
      assertThat(longer.inner.asSlice(4L * N * M).toArray(ValueLayout.JAVA_BYTE))
          .containsOnly(SENTINEL);
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void inputsOfBothByteOrdersAndAnyAlignment(Kind kind) {
    double[] std = floatQ.scale();
    Batch single = Batch.ofStd(kind, false, floatQ.mean(), std, DIMENSION);
    Batch twice = Batch.ofStd(kind, true, doubleQ.mean(), doubleQ.scale(), DIMENSION);
    try (KlEngine engine = KlEngine.builder().build();
        Arena arena = Arena.ofConfined()) {
      float[] expected = engine.pairwise(single.gaussians(), floatP.gaussians());
      double[] expectedTwice =
          engine.pairwise(twice.gaussians(), doubleP.gaussians(), new double[N * M]);
      for (ByteOrder order : new ByteOrder[] {ByteOrder.LITTLE_ENDIAN, ByteOrder.BIG_ENDIAN}) {
        for (int offset : new int[] {0, 1, 4, 6}) {
          String what = kind + ", " + order + ", offset " + offset;
          ValueLayout.OfFloat floats = ValueLayout.JAVA_FLOAT.withOrder(order);
          MemorySegment mean = floats(arena, single.mean(), floats, offset);
          MemorySegment scale = floats(arena, single.scale(), floats, offset);
          Gaussians q = of(kind, mean, scale, floats);
          assertThat(q.isDouble()).isFalse();
          Check.sameBits(what, M, expected, engine.pairwise(q, floatP.gaussians()));
          if (order == ByteOrder.nativeOrder()) {
            Gaussians plain = of(kind, mean.asReadOnly(), scale.asReadOnly(), floats);
            assertThat(plain.isDouble()).isFalse();
            Check.sameBits(what, M, expected, engine.pairwise(plain, floatP.gaussians()));
          }
          ValueLayout.OfDouble doubles = ValueLayout.JAVA_DOUBLE.withOrder(order);
          Gaussians wide =
              of(
                  kind,
                  doubles(arena, twice.mean(), doubles, offset),
                  doubles(arena, twice.scale(), doubles, offset),
                  doubles);
          assertThat(wide.isDouble()).isTrue();
          double[] actual = engine.pairwise(wide, doubleP.gaussians(), new double[N * M]);
          Check.sameBits(what, M, expectedTwice, actual);
        }
      }
    }
  }

  @Test
  void heapSegmentsAsInputs() {
    MemorySegment mean = MemorySegment.ofArray(Batch.narrowed(floatQ.mean()));
    MemorySegment std = MemorySegment.ofArray(Batch.narrowed(floatQ.scale()));
    try (KlEngine engine = KlEngine.builder().build()) {
      float[] expected = engine.pairwise(floatQ.gaussians(), floatP.gaussians());
      Gaussians q = of(Kind.STD, mean, std, ValueLayout.JAVA_FLOAT);
      mean.fill(SENTINEL); // the batch is a copy
      std.fill(SENTINEL);
      Check.sameBits("heap", M, expected, engine.pairwise(q, floatP.gaussians()));
    }
  }

  @Test
  void unusableInputs() {
    MemorySegment ok = MemorySegment.ofArray(new float[] {1, 1, 1, 1});
    MemorySegment torn = MemorySegment.ofArray(new byte[15]);
    ValueLayout floats = ValueLayout.JAVA_FLOAT;
    assertThatIllegalArgumentException().isThrownBy(() -> of(Kind.STD, torn, ok, floats));
    assertThatIllegalArgumentException().isThrownBy(() -> of(Kind.STD, ok, torn, floats));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> of(Kind.STD, torn, torn, floats)) // 15 bytes: no whole floats
        .withMessageContaining("mean has 15 bytes");
    refused(() -> of(Kind.STD, ok, ok, ValueLayout.JAVA_INT), "float or double");
  }

  /** A file that was cut off faults as one does whose disk is full. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void aMappedFileThatDoesNotHoldIt(int threads, @TempDir Path folder) throws IOException {
    Gaussians q = Batch.random(false, 700, 5, 0, new Random(1)).gaussians();
    Path file = folder.resolve("out");
    try (KlEngine engine = KlEngine.builder().threads(threads).build();
        Arena arena = Arena.ofShared();
        FileChannel channel =
            FileChannel.open(
                file,
                StandardOpenOption.CREATE,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
      MemorySegment out =
          channel.map(FileChannel.MapMode.READ_WRITE, 0, 4L * q.size() * q.size(), arena);
      assertThat(engine.pairwise(q, q, out)).isSameAs(out);
      float[] expected = engine.pairwise(q, q);
      assertThat(out.toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
      channel.truncate(0);
      String message = "out is mapped to a file that does not hold it";
      assertThatThrownBy(() -> engine.pairwise(q, q, out))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageStartingWith(message);
      assertThatThrownBy(() -> engine.aligned(q, q.slice(0, 700), out))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageStartingWith(message);
      assertThatThrownBy(() -> engine.toStandardNormal(q, out))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageStartingWith(message);
      assertThat(engine.pairwise(q, q)).isEqualTo(expected);
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void unusableOutputs(Backend backend) throws InterruptedException {
    DiagonalGaussians q = floatQ.gaussians();
    DiagonalGaussians p = floatP.gaussians();
    try (KlEngine engine = Engines.on(backend);
        Arena arena = Arena.ofShared()) {
      MemorySegment readOnly = arena.allocate(4L * N * M, 8).asReadOnly();
      refused(() -> engine.pairwise(q, p, readOnly), "read-only");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.pairwise(q, p, arena.allocate(4L * N * M - 1, 8)));
      assertThatIllegalArgumentException()
          .isThrownBy(
              () -> engine.pairwise(doubleQ.gaussians(), p, arena.allocate(8L * N * M - 4, 8)));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.aligned(q, q, arena.allocate(4L * N - 4, 8)));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.toStandardNormal(q, arena.allocate(4L * N - 4, 8)));

      Arena closed = Arena.ofConfined();
      MemorySegment gone = closed.allocate(4L * N * M, 8);
      closed.close();
      assertThatThrownBy(() -> engine.pairwise(q, p, gone))
          .isInstanceOf(IllegalStateException.class);

      MemorySegment[] foreign = new MemorySegment[1];
      Thread owner =
          Thread.ofPlatform().start(() -> foreign[0] = Arena.ofConfined().allocate(4L * N * M, 8));
      owner.join();
      assertThatThrownBy(() -> engine.pairwise(q, p, foreign[0]))
          .isInstanceOf(WrongThreadException.class)
          .hasMessageContaining("out is confined");
      assertThatThrownBy(() -> of(Kind.STD, foreign[0], foreign[0], ValueLayout.JAVA_FLOAT))
          .isInstanceOf(WrongThreadException.class)
          .hasMessageContaining("mean is confined");
      assertThatThrownBy(() -> of(Kind.VARIANCE, gone, gone, ValueLayout.JAVA_FLOAT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("mean belongs to a closed arena");

      // None of these has harmed the engine.
      engine.pairwise(q, p, arena.allocate(4L * N * M, 8));
    }
  }

  /** A segment between two guard zones of 64 bytes or more, checked when the contents are read. */
  private static final class Guarded {
    private final MemorySegment whole;
    private final long start;
    final MemorySegment inner;

    Guarded(LongFunction<MemorySegment> allocator, int offset, long bytes) {
      whole = allocator.apply((bytes + 64 + offset + 64 + 7) / 8 * 8);
      whole.fill(SENTINEL);
      start = 64 + offset;
      inner = whole.asSlice(start, bytes);
    }

    float[] floats(int count) {
      checkGuards();
      float[] result = new float[count];
      for (int i = 0; i < count; i++) {
        result[i] = inner.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * i);
      }
      return result;
    }

    double[] doubles(int count) {
      checkGuards();
      double[] result = new double[count];
      for (int i = 0; i < count; i++) {
        result[i] = inner.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, 8L * i);
      }
      return result;
    }

    private void checkGuards() {
      assertThat(whole.asSlice(0, start).toArray(ValueLayout.JAVA_BYTE)).containsOnly(SENTINEL);
      assertThat(whole.asSlice(start + inner.byteSize()).toArray(ValueLayout.JAVA_BYTE))
          .containsOnly(SENTINEL);
    }
  }

  private static MemorySegment floats(
      Arena arena, double[] values, ValueLayout.OfFloat layout, int offset) {
    MemorySegment result = arena.allocate(4L * values.length + offset, 8).asSlice(offset);
    for (int i = 0; i < values.length; i++) {
      result.set(layout.withByteAlignment(1), 4L * i, (float) values[i]);
    }
    return result;
  }

  private static MemorySegment doubles(
      Arena arena, double[] values, ValueLayout.OfDouble layout, int offset) {
    MemorySegment result = arena.allocate(8L * values.length + offset, 8).asSlice(offset);
    for (int i = 0; i < values.length; i++) {
      result.set(layout.withByteAlignment(1), 8L * i, values[i]);
    }
    return result;
  }

  private static Gaussians of(
      Kind kind, MemorySegment mean, MemorySegment scale, ValueLayout element) {
    return Gaussians.of(
        kind.scaleKind(), mean, element, scale, element, DIMENSION, ScalePolicy.STRICT);
  }
}
