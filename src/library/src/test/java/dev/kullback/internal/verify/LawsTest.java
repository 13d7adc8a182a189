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
import dev.kullback.internal.formula.RenyiAboveOne;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.verify.Kind.Form;
import dev.kullback.internal.verify.Kind.Spread;
import dev.kullback.testing.CoveringArray;
import dev.kullback.testing.Engines;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
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
   * Rows, columns and dimension: several tiles and bands of rows with tails, several blocks of columns, several of rows, one row or one column, each
   * small dimension, and several chunks of dimensions. The first have codes in an index.
   */
  private static final List<int[]> SHAPES =
      List.of(
          new int[] {45, 45, 33},
          new int[] {3, 9000, 5},
          new int[] {300, 7, 6},
          new int[] {26, 26, 9},
          new int[] {1, 67, 2},
          new int[] {1, 1, 1},
          new int[] {19, 1, 4},
          new int[] {9, 350, 3},
          new int[] {10, 10, 1},
          new int[] {6, 13, 131});

  private static final int[] FEW_ROWS = {2, 9000, 60};

  private static final int[] FEW_FULL_ROWS = {10, 9000, 12};

  /** What an index has codes of, in the place of the first two shapes. */
  private static final int[] CODED = {5, 700, 24};

  /** A divergence, or KL by an index. */
  private record Asked(String name, Formula formula, boolean isOfIndex) {
    Asked(String name, Formula formula) {
      this(name, formula, false);
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private static final List<Asked> ASKED =
      List.of(
          new Asked("KL", Kl.FORWARD),
          new Asked("KL by an index", Kl.FORWARD, true),
          new Asked("Jeffreys", Jeffreys.FORMULA),
          new Asked("Hellinger", Chernoff.HELLINGER),
          new Asked("squared Wasserstein", Wasserstein2.SQUARED),
          new Asked("reverse KL", Kl.REVERSE),
          new Asked("Chernoff of 0.1", Chernoff.ofOrder(0.1)),
          new Asked("Wasserstein", Wasserstein2.DISTANCE),
          new Asked("Rényi of 1.5", new RenyiAboveOne(1.5)));

  /** Cases of the short run beside those of KL of diagonal batches: the first, which have most pairs. */
  private static final int SOME = 30;

  private static final List<Boolean> BOTH = List.of(true, false);

  private static final List<Scale> SCALES = List.of(Scale.values());

  /** What a case is made of. */
  private record Choice(
      Asked asked,
      Form form,
      Spread spread,
      boolean isDoubleQ,
      boolean isDoubleP,
      Scale scaleQ,
      Scale scaleP,
      int[] shape,
      boolean mayBeSelf,
      Backend backend,
      int threads) {
    static Choice of(List<Object> row) {
      return new Choice(
          (Asked) row.get(0),
          (Form) row.get(1),
          (Spread) row.get(2),
          (boolean) row.get(3),
          (boolean) row.get(4),
          (Scale) row.get(5),
          (Scale) row.get(6),
          (int[]) row.get(7),
          (boolean) row.get(8),
          (Backend) row.get(9),
          (int) row.get(10));
    }

    /** Whether there is such a case, and no other that is the same. */
    boolean isAllowed() {
      boolean isLowRank = form == Form.LOW_RANK;
      boolean isOfDevice = backend == Backend.CUDA;
      return (!asked.isOfIndex || form == Form.DIAGONAL)
          && (!isOfDevice || (asked.formula.hasDevice() && !asked.isOfIndex && !isLowRank))
          && (!isLowRank || asked.formula.hasLowRank())
          && (scaleQ == Scale.STD || isDiagonal(true))
          && (scaleP == Scale.STD || isDiagonal(false))
          && (!mayBeSelf
              || (shape[0] == shape[1]
                  && form.isOne()
                  && isDoubleQ == isDoubleP
                  && scaleQ == scaleP));
    }

    private boolean isDiagonal(boolean asQ) {
      return !form.isFull(asQ) && form != Form.LOW_RANK;
    }

    /** Returns the case, of which an index is searched by so many threads. */
    Case make(int seed, int threads) {
      return new Case(
          asked.formula,
          new Kind(form, spread, isDoubleQ, isDoubleP),
          new Case.Scales(scaleQ, scaleP),
          asked.isOfIndex && SHAPES.indexOf(shape) < 2 ? CODED : shape,
          mayBeSelf,
          seed,
          asked.isOfIndex ? threads : 0);
    }

    @Override
    public String toString() {
      return "%s, %s, %s, %s, %s, %s, %s, %s%s, %s, threads %d"
          .formatted(
              asked,
              form,
              spread,
              isDoubleQ ? "double" : "float",
              isDoubleP ? "double" : "float",
              scaleQ,
              scaleP,
              Arrays.toString(shape),
              mayBeSelf ? ", q = p" : "",
              backend,
              threads);
    }
  }

  /** KL of diagonal batches, of which there are most kernels: every two choices. */
  private static final List<Choice> DIAGONAL_KL =
      choices(ASKED.subList(0, 2), List.of(Form.DIAGONAL));

  /** Every two choices. */
  private static final List<Choice> ALL = choices(ASKED, List.of(Form.values()));

  /**
   * Three or more that go together, of which two alone tell nothing: floats that float's kernels err on, means far from their centre, the
   * gradient of the Wasserstein distance by precisions, responsibilities that threads share by rows or by columns, and a million terms of few
   * rows, of which threads share the columns, whose references are unlike, all near, or full.
   */
  private static final List<Choice> TRIPLES =
      Engines.backends()
          .flatMap(backend ->
              Stream.of(
                  special(0, Form.DIAGONAL, Spread.CLOSE, false, Scale.STD, SHAPES.get(0), backend),
                  special(
                      0,
                      Form.SHARED_FULL,
                      Spread.CLUSTERS,
                      true,
                      Scale.STD,
                      SHAPES.get(0),
                      backend),
                  special(
                      4, Form.DIAGONAL, Spread.WIDE, true, Scale.PRECISION, SHAPES.get(0), backend),
                  special(0, Form.DIAGONAL, Spread.WIDE, false, Scale.STD, SHAPES.get(1), backend),
                  special(0, Form.DIAGONAL, Spread.WIDE, true, Scale.STD, SHAPES.get(2), backend),
                  special(0, Form.DIAGONAL, Spread.WIDE, false, Scale.STD, FEW_ROWS, backend),
                  special(0, Form.DIAGONAL, Spread.NEAR, true, Scale.STD, FEW_ROWS, backend),
                  special(0, Form.FULL, Spread.WIDE, false, Scale.STD, FEW_FULL_ROWS, backend)))
          .filter(Choice::isAllowed)
          .filter(c -> c.shape != FEW_FULL_ROWS || c.backend != Backend.SCALAR) // some seconds
          .toList();

  private static Choice special(
      int asked,
      Form form,
      Spread spread,
      boolean isDouble,
      Scale scale,
      int[] shape,
      Backend backend) {
    return new Choice(
        ASKED.get(asked), form, spread, isDouble, isDouble, scale, scale, shape, false, backend, 8);
  }

  private static List<Choice> choices(List<Asked> asked, List<Form> forms) {
    return CoveringArray.of(
            List.of(
                asked,
                forms,
                List.of(Spread.values()),
                BOTH,
                BOTH,
                SCALES,
                SCALES,
                SHAPES,
                BOTH,
                Engines.backends().toList(),
                IntStream.of(Engines.threadCounts(Backend.VECTOR)).boxed().toList()),
            row -> Choice.of(row).isAllowed())
        .stream()
        .map(Choice::of)
        .toList();
  }

  /** Kinds whose scales, or those of the diagonal, may be one number for each Gaussian. */
  private static final List<Kind> SPHERICAL =
      Kind.ALL.stream()
          .filter(kind -> kind.isOne() && !kind.isFull(true) && kind.spread() != Spread.ALIKE)
          .toList();

  static Stream<Arguments> cases() {
    return Stream.of(
            cases(TRIPLES, 0, TRIPLES.size()),
            cases(DIAGONAL_KL, 0, DIAGONAL_KL.size()),
            cases(ALL, 0, SOME))
        .flatMap(cases -> cases);
  }

  static Stream<Arguments> otherCases() {
    return cases(ALL, SOME, ALL.size());
  }

  private static Stream<Arguments> cases(List<Choice> choices, int from, int to) {
    return IntStream.range(from, Math.min(to, choices.size()))
        .mapToObj(k -> Arguments.of(choices.get(k), k));
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

    private boolean isOfDiagonals() {
      return c.q instanceof DiagonalBatch && c.p instanceof DiagonalBatch;
    }

    /** Whether bits of a row depend on no other row: products of matrices, and a device's, are relative to medians of one batch or both. */
    boolean hasBlocks(boolean isOfDevice) {
      boolean isOfProducts = !isOfDiagonals();
      boolean isShared =
          c.q instanceof FullBatch full && full.isShared(); // one row alone shares nothing
      return switch (operation.rows()) {
        case NONE -> false;
        case OF_Q ->
            !isOfProducts || (formula == Kl.FORWARD && !isShared) || formula instanceof Chernoff;
        case OF_P -> !isOfProducts && !isOfDevice;
        case OF_BOTH -> !isOfDevice;
      };
    }

    /** Whether blocks of p, one continued by the next or their lists merged, have what one search finds. */
    void checkContinued(Engine engine, Result whole) {
      SearchOptions options = c.nearest.exactly();
      int[] cuts = IntStream.of(0, 1, (c.m + 1) / 2, c.m).distinct().toArray();
      List<NeighborLists> blocks = new ArrayList<>();
      NeighborLists last = null;
      for (int b = 1; b < cuts.length; b++) {
        int from = cuts[b - 1];
        Batch p = part(c.p, from, cuts[b]);
        blocks.add(engine.search(c.q, p, options.from(from)));
        last = engine.search(c.q, p, last == null ? options : options.after(last, from));
      }
      Result continued = new Result();
      continued.setRows(last);
      check("continued", whole, continued);
      continued.setRows(
          NeighborLists.merge(options.k(), blocks.reversed().toArray(NeighborLists[]::new)));
      check("merged", whole, continued);
    }

    /** Whether entries have the bits of the whole's among any others, in any order. */
    void checkAmongOthers(Engine engine, Result whole) {
      Random random = new Random(c.n);
      int[] rows = mayCut(Kl.FORWARD) ? some(c.n, random) : IntStream.range(0, c.n).toArray();
      int[] columns = mayCut(Kl.REVERSE) ? some(c.m, random) : IntStream.range(0, c.m).toArray();
      Result among = new Result();
      among.clear(expected);
      operation.call().run(engine, select(c.q, rows), select(c.p, columns), c, among);
      Result same = new Result();
      same.values = new double[rows.length * columns.length];
      Arrays.setAll(
          same.values,
          at -> whole.values[rows[at / columns.length] * c.m + columns[at % columns.length]]);
      among.values = Arrays.copyOf(among.values, same.values.length);
      check("among others", same, among);
    }

    /** Whether the other rows of q change no bit, or for reverse KL those of p: products of matrices are relative to a median of one batch, or of both. */
    private boolean mayCut(Formula kl) {
      return isOfDiagonals()
          || formula instanceof Chernoff
          || formula instanceof Wasserstein2
          || (formula == kl && !isShared(c.q) && !isShared(c.p));
    }

    private static boolean isShared(Batch batch) {
      return batch instanceof FullBatch full && full.isShared(); // one row alone shares nothing
    }

    /** Returns most of so many numbers, in no order. */
    private static int[] some(int n, Random random) {
      List<Integer> all = new ArrayList<>(IntStream.range(0, n).boxed().toList());
      Collections.shuffle(all, random);
      return all.stream().mapToInt(k -> k).limit(1 + 4L * n / 5).toArray();
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
    return select(batch, IntStream.range(from, to).toArray());
  }

  private static Batch select(Batch batch, int[] rows) {
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

  private static List<Question> questions(Formula formula, Case c) {
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
  void everyOperation(Choice choice, int seed) {
    try (Case alone = choice.make(seed, 1);
        Case shared = choice.make(seed, choice.threads)) {
      List<Question> asked = questions(choice.asked.formula, alone);
      boolean isOfIndex = choice.asked.isOfIndex;
      List<Question> askedAgain = isOfIndex ? questions(choice.asked.formula, shared) : asked;
      check(choice.backend, asked, askedAgain, choice.threads);
    }
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource("otherCases")
  void everyOperationOnOtherCases(Choice choice, int seed) {
    everyOperation(choice, seed);
  }

  /** Every two of a backend, a divergence, a kind and a way to state scales. */
  static Stream<Arguments> sphericalCases() {
    List<Asked> divergences = ASKED.stream().filter(asked -> !asked.isOfIndex).toList();
    return CoveringArray.of(
            List.of(Engines.backends().toList(), divergences, SPHERICAL, SCALES),
            row -> {
              boolean isOfDevice = row.get(0) == Backend.CUDA;
              Formula formula = ((Asked) row.get(1)).formula;
              boolean isLowRank = ((Kind) row.get(2)).isLowRank();
              return (!isLowRank || (formula.hasLowRank() && !isOfDevice))
                  && (!isOfDevice || formula.hasDevice());
            })
        .stream()
        .map(row -> Arguments.of(row.toArray()));
  }

  /** One number for each Gaussian, which is kept as such, gives what it gives written out, to the bit. */
  @ParameterizedTest
  @MethodSource("sphericalCases")
  void oneNumberForEach(Backend backend, Asked asked, Kind kind, Scale scale) {
    Formula formula = asked.formula;
    int[] shape = {7, 40, 9};
    try (Case c = new Case(formula, kind, new Case.Scales(scale, scale), shape, false, 0, 0)) {
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
    if (lowRank == null) {
      return DiagonalBatch.of(mean, scale, d, given.kind(), policy, Platform.rangeCheck());
    }
    double[] w =
        IntStream.range(0, lowRank.size())
            .mapToObj(lowRank::factor)
            .flatMapToDouble(Arrays::stream)
            .toArray();
    Elements factor = elements(w, lowRank.isDouble(), "factor");
    return LowRankBatch.of(mean, factor, scale, d, given.kind(), policy, Platform.rangeCheck());
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
        if (asked.operation.name().equals("nearest, exact") && asked.c.m > 1) {
          asked.checkContinued(engine, result);
        }
        if (asked.operation.name().startsWith("pairwise") && !isOfDevice) {
          asked.checkAmongOthers(engine, result);
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
  }
}
