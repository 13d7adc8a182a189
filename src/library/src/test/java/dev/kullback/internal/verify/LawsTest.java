package dev.kullback.internal.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.Backend;
import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Share;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What holds of every operation of {@link Operation#ALL}, whatever the kind of its batches, the divergence and the backend. An operation is
 * held to it by standing in that list.
 */
@Tag("device")
@Tag("vector")
class LawsTest {
  /**
   * Rows, columns and dimension: several tiles and bands of rows with tails, several blocks of columns, and several of rows. In the last, q and p
   * are one batch.
   */
  private static final int[][] SHAPES = {{45, 45, 33}, {3, 9000, 5}, {300, 7, 6}, {26, 26, 9}};

  /** What an index has codes of, in the place of the first two. */
  private static final int[] CODED = {5, 700, 24};

  /** KL, and some of each other family of kernels. */
  private static final List<Formula> FORMULAS =
      List.of(
          Kl.FORWARD,
          Jeffreys.FORMULA,
          Chernoff.HELLINGER,
          Wasserstein2.SQUARED,
          Kl.REVERSE,
          Chernoff.ofOrder(0.1));

  /** Kinds whose scales, or those of the diagonal, may be one number for each Gaussian. */
  private static final List<Kind> SPHERICAL =
      List.of(
          Kind.FLOAT,
          Kind.NEAR_FLOAT,
          Kind.DOUBLE,
          Kind.NEAR_DOUBLE,
          Kind.LOW_RANK_FLOAT,
          Kind.LOW_RANK);

  static Stream<Arguments> cases() {
    return cases(Share.SOME);
  }

  static Stream<Arguments> otherCases() {
    return cases(Share.OTHERS);
  }

  /**
   * Returns every kind with every shape for KL and, as what shares the work is the same on each backend and of each divergence, every kind with each of
   * the other families and with each on the backend without vectors once, by turns with the shapes.
   */
  private static Stream<Arguments> cases(Share share) {
    List<Arguments> cases = new ArrayList<>();
    for (Backend backend : Engines.backends().toList()) {
      boolean isScalar = backend == Backend.SCALAR;
      for (int k = 0; k < FORMULAS.size() * Kind.values().length; k++) {
        int family = k / Kind.values().length;
        Formula formula = FORMULAS.get(family);
        Kind kind = Kind.values()[k % Kind.values().length];
        boolean isOfDevice = backend == Backend.CUDA;
        if ((isOfDevice && !formula.hasDevice())
            || (kind.isLowRank() && (isOfDevice || !formula.hasLowRank()))) {
          continue;
        }
        for (int shape = 0; shape < SHAPES.length; shape++) {
          int turn = (kind.ordinal() + family + shape) % SHAPES.length;
          boolean isSome = !isScalar && turn == 0 && (family == 0 || shape == SHAPES.length - 1);
          boolean isTaken = isScalar ? turn == 2 : family == 0 || turn == 0;
          if (isTaken && isSome == (share == Share.SOME)) {
            int[] threads = Engines.threadCounts(backend);
            int count = isSome ? 3 : threads[(kind.ordinal() + family) % threads.length];
            cases.add(Arguments.of(backend, formula, kind, shape, count));
          }
        }
      }
    }
    return cases.stream();
  }

  /** One operation and one case. */
  private record Question(Formula formula, Operation operation, Case c, Expected expected) {
    Result answer(Engine engine, Batch q, Batch p) {
      Result result = new Result();
      result.clear(expected);
      operation.call().run(engine, q, p, c, result);
      return result;
    }

    /** Answers with batches of which nothing is prepared. */
    Result answerAnew(Engine engine) {
      Batch q = c.makeQ.get();
      return answer(engine, q, c.isSelf ? q : c.makeP.get());
    }

    /** Whether every entry is within its contract: equal parameters give 0, and nothing NaN. */
    void checkContract(Result result) {
      assertThat(result.indices).as("%s of %s", operation.name(), c).isEqualTo(expected.indices());
      assertThat(result.values)
          .as("%s of %s", operation.name(), c)
          .hasSameSizeAs(expected.values());
      for (int k = 0; k < result.values.length; k++) {
        assertThat(expected.error(result, k))
            .as(
                "%s of %s, entry %d: %s, not %s",
                operation.name(), c, k, result.values[k], expected.values()[k])
            .isLessThanOrEqualTo(1);
      }
    }

    /** Whether blocks of rows, perhaps in segments, have the bits of the whole's rows. */
    void checkBlocks(Engine engine, Result whole, boolean areSegments) {
      int n = operation.rows() == Operation.Rows.OF_P ? c.m : c.n;
      int[] cuts = IntStream.of(0, n / 5, 2 * n / 3, n).distinct().toArray();
      int width = hasStarts(whole, n) ? 0 : whole.values.length / n;
      Result part = new Result();
      part.isOfSegments = areSegments;
      for (int k = 1; k < cuts.length; k++) {
        int from = cuts[k - 1];
        int to = cuts[k];
        Batch q = operation.rows() == Operation.Rows.OF_P ? c.q : part(c.q, from, to);
        Batch p = operation.rows() == Operation.Rows.OF_Q ? c.p : part(c.p, from, to);
        part.clear(expected);
        operation.call().run(engine, q, p, c, part);
        check(
            "rows %d to %d".formatted(from, to),
            rows(whole, n, width, from, to),
            rows(part, to - from, width, 0, to - from));
      }
    }

    /** Whether bits of a row depend on no other row: products of matrices, and a device's, are relative to medians of one batch or both. */
    boolean hasBlocks(boolean isOfDevice) {
      boolean isOfProducts = !(c.q instanceof DiagonalBatch && c.p instanceof DiagonalBatch);
      boolean isShared =
          c.q instanceof FullBatch full && full.isShared(); // one row alone shares nothing
      return switch (operation.rows()) {
        case NONE -> false;
        case OF_Q ->
            !isOfProducts || (formula == Kl.FORWARD && !isShared) || formula instanceof Chernoff;
        case OF_P, OF_BOTH -> !isOfProducts && !isOfDevice;
      };
    }

    /** Whether exchanging q and p transposes the matrix of a symmetric divergence. */
    void checkSymmetry(Engine engine, Result matrix) {
      double[] exchanged = new double[c.n * c.m];
      engine.into(exchanged).pairwise(c.p, c.q);
      Result transposed = new Result();
      transposed.values = Case.transposed(exchanged, c.m, c.n);
      check("exchanged", matrix, transposed);
    }

    void check(String what, Result first, Result result) {
      assertThat(result.isSame(first))
          .as(
              "%s of %s, %s: bits differ at %d, %s, not %s",
              operation.name(),
              c,
              what,
              Arrays.mismatch(first.values, result.values),
              Arrays.toString(Arrays.copyOf(result.values, 5)),
              Arrays.toString(Arrays.copyOf(first.values, 5)))
          .isTrue();
    }
  }

  private static Batch part(Batch batch, int from, int to) {
    int[] rows = IntStream.range(from, to).toArray();
    return switch (batch) {
      case DiagonalBatch d -> d.select(rows, Platform.rangeCheck());
      case FullBatch f -> f.select(rows);
      case LowRankBatch l -> l.select(rows, Platform.rangeCheck());
    };
  }

  private static boolean hasStarts(Result r, int n) {
    return r.indices.length == n + 1 + r.values.length;
  }

  /**
   * Returns rows of a result.
   *
   * @param width entries of each; 0 where the starts of n rows come before the indices
   */
  private static Result rows(Result r, int n, int width, int from, int to) {
    int a = width > 0 ? from * width : r.indices[from];
    int b = width > 0 ? to * width : r.indices[to];
    int ofIndices = width > 0 ? 0 : n + 1;
    Result rows = new Result();
    rows.values = Arrays.copyOfRange(r.values, a, b);
    if (r.indices.length > 0) {
      rows.indices = Arrays.copyOfRange(r.indices, ofIndices + a, ofIndices + b);
    }
    return rows;
  }

  /**
   * Returns all operations on a case, or on that with an index of p.
   *
   * @param threads of the searches of the index; 0 without
   */
  private static List<Question> questions(Formula formula, Kind kind, int shape, int threads) {
    int[] size = threads > 0 && shape < 2 ? CODED : SHAPES[shape];
    Case c = new Case(formula, kind, size, shape, shape % 2, threads);
    return Operation.ALL.stream()
        .filter(operation -> operation.takes().test(c))
        .map(operation -> new Question(formula, operation, c, operation.expected().apply(c)))
        .toList();
  }

  private static List<Result> answersAnew(
      List<Question> questions, Backend backend, Predicate<Object> vectors) {
    List<Result> answers = new ArrayList<>();
    for (Question question : questions) {
      try (Engine engine = engine(question.formula, backend, 1, vectors)) {
        answers.add(question.answerAnew(engine));
      }
    }
    return answers;
  }

  private static Engine engine(
      Formula formula, Backend backend, int threads, Predicate<Object> vectors) {
    return new Engine(
        formula, Platform.Choice.valueOf(backend.name()), threads, null, vectors::test);
  }

  /**
   * Entries are within their contract. Threads, what ran before on them, what the batches have prepared, whether C2 has compiled the vector kernels,
   * other rows, whether results go to arrays or segments, and which of a symmetric divergence's two comes first change no bit.
   */
  @ParameterizedTest
  @MethodSource("cases")
  void everyOperation(Backend backend, Formula formula, Kind kind, int shape, int threads) {
    List<Question> plain = questions(formula, kind, shape, 0);
    check(backend, plain, plain, threads);
    if (formula == Kl.FORWARD && kind.ordinal() <= Kind.MIXED.ordinal()) {
      check(
          backend,
          questions(formula, kind, shape, 1),
          questions(formula, kind, shape, threads),
          threads);
    }
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource("otherCases")
  void everyOperationOnOtherCases(
      Backend backend, Formula formula, Kind kind, int shape, int threads) {
    everyOperation(backend, formula, kind, shape, threads);
  }

  /** Every kind of scales, alike and not, in each precision, with each family of divergences. */
  static Stream<Arguments> sphericalCases() {
    List<Arguments> cases = new ArrayList<>();
    for (Backend backend : Engines.backends().toList()) {
      for (Formula formula : FORMULAS) {
        for (Kind kind : SPHERICAL) {
          boolean isTaken = formula.hasLowRank() && backend != Backend.CUDA;
          if ((kind.isLowRank() && !isTaken) || (backend == Backend.CUDA && !formula.hasDevice())) {
            continue;
          }
          for (int turn = 0; turn < Scale.values().length; turn++) {
            cases.add(Arguments.of(backend, formula, kind, turn));
          }
        }
      }
    }
    return cases.stream();
  }

  /** One number for each Gaussian, which is kept as such, gives what it gives written out, to the bit. */
  @ParameterizedTest
  @MethodSource("sphericalCases")
  void oneNumberForEach(Backend backend, Formula formula, Kind kind, int turn) {
    try (Case c = new Case(formula, kind, new int[] {7, 40, 9}, turn, 0, 0)) {
      for (Operation operation : Operation.ALL) {
        if (!operation.takes().test(c)) {
          continue;
        }
        Expected expected = operation.expected().apply(c);
        Batch q = spherical(c.q, true);
        Batch p = spherical(c.p, true);
        Question writtenOut = new Question(formula, operation, c, expected);
        try (Engine engine = engine(formula, backend, 1, _ -> true)) {
          Result first = writtenOut.answer(engine, q, p);
          Batch shortQ = spherical(c.q, false);
          Batch shortP = spherical(c.p, false);
          assertThat(shortQ.memoryBytes()).isLessThan(q.memoryBytes());
          writtenOut.check("kept as given", first, writtenOut.answer(engine, shortQ, shortP));
          writtenOut.check("again", first, writtenOut.answer(engine, shortQ, shortP));
          writtenOut.check(
              "parts",
              first,
              writtenOut.answer(engine, part(shortQ, 0, c.n), part(shortP, 0, c.m)));
        }
      }
    }
  }

  /** Returns a batch with the first scale of each row in all its dimensions, written out or given once. */
  private static Batch spherical(Batch batch, boolean isWrittenOut) {
    LowRankBatch lowRank = batch instanceof LowRankBatch g ? g : null;
    DiagonalBatch given = lowRank != null ? lowRank.diagonal() : (DiagonalBatch) batch;
    int d = given.dimension();
    double[] scales = new double[given.size() * (isWrittenOut ? d : 1)];
    Arrays.setAll(scales, k -> given.scale(isWrittenOut ? k / d * d : k * d));
    Elements mean = elements(given.mean64(), given.isDouble(), "mean");
    Elements scale = elements(scales, given.isDouble(), given.kind().argument());
    ScalePolicy policy = given.isSingular() ? ScalePolicy.SEMIDEFINITE : ScalePolicy.STRICT;
    return lowRank == null
        ? DiagonalBatch.of(mean, scale, d, given.kind(), policy, Platform.rangeCheck())
        : LowRankBatch.of(
            mean,
            elements(lowRank.factor(), lowRank.isDouble(), "factor"),
            scale,
            d,
            given.kind(),
            policy,
            Platform.rangeCheck());
  }

  private static Elements elements(double[] values, boolean isDouble, String name) {
    if (isDouble) {
      return Elements.of(values, name);
    }
    float[] floats = new float[values.length];
    for (int k = 0; k < values.length; k++) {
      floats[k] = (float) values[k];
    }
    return Elements.of(floats, name);
  }

  /**
   * Checks operations.
   *
   * @param shared the same, whose indices are searched by the threads
   */
  private static void check(
      Backend backend, List<Question> alone, List<Question> shared, int threads) {
    boolean isOfDevice = backend == Backend.CUDA;
    List<Result> first = answersAnew(alone, backend, _ -> true);
    for (int k = 0; k < first.size(); k++) {
      alone.get(k).checkContract(first.get(k));
    }
    Formula formula = alone.getFirst().formula;
    try (Engine engine = engine(formula, backend, threads, _ -> true)) {
      for (int k = shared.size() - 1; k >= 0; k--) {
        Question asked = shared.get(k);
        Result result = asked.answer(engine, asked.c.q, asked.c.p);
        asked.check(backend + ", threads " + threads, first.get(k), result);
        if (asked.hasBlocks(isOfDevice)) {
          asked.checkBlocks(engine, result, !isOfDevice);
        }
        if (formula.isSymmetric() && asked.operation.name().equals("pairwise to double")) {
          asked.checkSymmetry(engine, result);
        }
      }
    }
    if (backend == Backend.VECTOR) {
      List<Result> cold = answersAnew(alone, backend, _ -> false);
      for (int k = 0; k < cold.size(); k++) {
        alone.get(k).check("cold", first.get(k), cold.get(k));
      }
    }
    alone.getFirst().c.close();
    shared.getFirst().c.close();
  }
}
