package dev.kullback;

import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.formula.ScaleRatio;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.vector.SmallOperands;
import dev.kullback.internal.work.Worker;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Up to four dimensions an entry is {@link PairKl#of}, to the bit, wherever it stands. */
@Tag("vector")
class SmallDimensionsTest {
  private static final double GUARD = -1;

  private static final int MOST = 20;

  private static final ScaleRatio SCALES = new ScaleRatio();

  /** First column of a block that is not the first. */
  private static final int COLUMN0 = 32;

  /** Every remainder of rows and columns, alone in a larger matrix. */
  @ParameterizedTest
  @MethodSource("batches")
  void everySize(Kind kind, int d, boolean isDouble) {
    Random random = new Random(d);
    Batch batch = batch(kind, isDouble, COLUMN0 + MOST, d, random);
    Kind other = Kind.values()[(kind.ordinal() + d) % Kind.values().length];
    Batch others = batch(other, isDouble, COLUMN0 + MOST, d, new Random(d));
    BlockTarget target = new BlockTarget();
    for (int n = 1; n <= MOST; n++) {
      for (int m = 1; m <= MOST; m++) {
        DiagonalBatch q = batch.rows(random.nextInt(9), 9 + n).gaussians().batch;
        DiagonalBatch p = batch.rows(0, COLUMN0 + m).gaussians().batch;
        check(q, p, target);
        if (d <= SmallKernel.MOST_OF_OTHER_KINDS) {
          check(q, others.rows(0, COLUMN0 + m).gaussians().batch, target);
        }
      }
    }
  }

  private static void check(DiagonalBatch q, DiagonalBatch p, BlockTarget target) {
    SmallOperands operands = new SmallOperands();
    operands.pack(q, p, false, new Worker());
    check(operands, q.size(), 0, target);
    check(operands, q.size(), COLUMN0, target);
  }

  /** Compares the block of n rows from a column on; what lies around it in the target's memory stays as it is. */
  private static void check(SmallOperands operands, int n, int column0, BlockTarget target) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    int m = p.size();
    int stride = m + n % 3;
    target.useBlock(true, (n + 1) * stride, 0, 0, stride);
    Arrays.fill(target.block(), GUARD);
    Worker worker = new Worker();
    new SmallKernel(worker, new Pair(Kl.FORWARD, worker), _ -> true)
        .block(operands, 0, n, column0, m, target);
    double[] expected = new double[target.block().length];
    Arrays.fill(expected, GUARD);
    for (int i = 0; i < n; i++) {
      for (int j = column0; j < m; j++) {
        expected[i * stride + j] = PairKl.of(SCALES, q, i, p, j);
      }
    }
    String what = "%d x %d from column %d".formatted(n, m, column0);
    Check.sameBits(what, stride, expected, target.block());
  }

  /** A batch with itself, and with many columns, of two kinds in turn: across the edges of an engine's blocks, by two threads. */
  @ParameterizedTest
  @MethodSource("batches")
  void everyBlock(Kind kind, int d, boolean isDouble) {
    Random random = new Random(d);
    Kind other = Kind.values()[(kind.ordinal() + d) % Kind.values().length];
    DiagonalGaussians q = batch(kind, isDouble, 67, d, random).gaussians();
    DiagonalGaussians same = batch(kind, isDouble, 2101, d, random).gaussians();
    DiagonalGaussians mixed = batch(other, d % 2 == 0, 2101, d, random).gaussians();
    try (KlEngine engine = KlEngine.builder().backend(Backend.VECTOR).threads(2).build()) {
      for (DiagonalGaussians p : new DiagonalGaussians[] {q, same, mixed}) {
        int m = p.size();
        if (q.batch.kind() != p.batch.kind() && d > SmallKernel.MOST_OF_OTHER_KINDS) {
          continue; // tiles', which laws and regimes cover as they do those of more dimensions
        }
        double[] expected = new double[q.size() * m];
        Arrays.setAll(expected, at -> PairKl.of(SCALES, q.batch, at / m, p.batch, at % m));
        Check.sameBits("double", m, expected, engine.pairwise(q, p, new double[expected.length]));
        Check.sameBits("float", m, Batch.narrowed(expected), engine.pairwise(q, p));
      }
    }
  }

  static Stream<Arguments> batches() {
    return Arrays.stream(Kind.values())
        .flatMap(kind ->
            IntStream.rangeClosed(1, SmallKernel.MOST_DIMENSIONS)
                .boxed()
                .flatMap(
                    d -> Stream.of(false, true).map(isDouble -> arguments(kind, d, isDouble))));
  }

  /** Row by row usual, alike, nearly or quite the same, and of every magnitude that the kind holds, in turn. */
  private static Batch batch(Kind kind, boolean isDouble, int n, int d, Random random) {
    double[] mean = new double[n * d];
    double[] std = new double[n * d];
    double most = isDouble ? 300 : 18;
    for (int k = 0; k < mean.length; k++) {
      double spread =
          switch (k / d % 5) {
            case 0 -> 1;
            case 1 -> 0.1;
            case 2 -> 1e-4;
            case 3 -> 0;
            default -> random.nextInt(8) == 0 ? -1 : 1;
          };
      mean[k] = 1 + spread * random.nextGaussian();
      std[k] = Math.exp(0.5 * spread * random.nextGaussian());
      if (spread < 0) {
        mean[k] = Math.pow(10, most * (2 * random.nextDouble() - 1));
        std[k] = Math.pow(10, most / 2 * (2 * random.nextDouble() - 1));
      }
    }
    return Batch.ofStd(kind, isDouble, mean, std, d);
  }
}
