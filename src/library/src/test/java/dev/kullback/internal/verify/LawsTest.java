package dev.kullback.internal.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.Backend;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Chernoff;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Jeffreys;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Share;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
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
  /** Rows, columns and dimension: several tiles and bands of rows with tails, several blocks of columns, and several of rows. */
  private static final int[][] SHAPES = {{45, 45, 33}, {3, 4200, 5}, {300, 7, 6}};

  static Stream<Arguments> ofKl() {
    return ofFormulas(Kl.FORWARD);
  }

  /** One of each other family of kernels. */
  static Stream<Arguments> ofOthers() {
    return ofFormulas(Jeffreys.FORMULA, Chernoff.HELLINGER, Wasserstein2.SQUARED);
  }

  private static Stream<Arguments> ofFormulas(Formula... formulas) {
    return Engines.backends()
        .flatMap(backend ->
            Stream.of(formulas)
                .filter(formula -> backend != Backend.CUDA || formula.hasDevice())
                .flatMap(formula ->
                    Stream.of(Kind.values())
                        .filter(kind ->
                            kind != Kind.LOW_RANK
                                || (formula.hasLowRank() && backend != Backend.CUDA))
                        .map(kind -> Arguments.of(backend, formula, kind))));
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

    void check(String what, Result first, Result result) {
      assertThat(result.isSame(first))
          .as(
              "%s of %s, %s: bits differ at %d",
              operation.name(), c, what, Arrays.mismatch(first.values, result.values))
          .isTrue();
    }
  }

  /**
   * Returns all operations on a share of the cases of a kind.
   *
   * @param threads of the searches of an index
   */
  private static List<Question> questions(
      Backend backend, Formula formula, Kind kind, int threads, Share share) {
    List<Question> questions = new ArrayList<>();
    boolean isIndexed = formula == Kl.FORWARD && kind.ordinal() <= Kind.MIXED.ordinal();
    for (int turn = 0; turn < SHAPES.length; turn++) {
      // what shares the work is the same on each backend
      if (!share.has(backend == Backend.SCALAR ? 1 : kind.ordinal() + turn)) {
        continue;
      }
      for (int of : isIndexed ? new int[] {0, threads} : new int[] {0}) {
        Case c = new Case(formula, kind, SHAPES[turn], turn, turn % 2, of);
        for (Operation operation : Operation.ALL) {
          if (operation.takes().test(c)) {
            questions.add(new Question(formula, operation, c, operation.expected().apply(c)));
          }
        }
      }
    }
    return questions;
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

  /** Threads, what ran before on them, what the batches have prepared, and whether C2 has compiled the vector kernels change no bit. */
  @ParameterizedTest
  @MethodSource("ofKl")
  void bitsAreThoseOfOneThreadAndNewBatches(Backend backend, Formula formula, Kind kind) {
    check(backend, formula, kind, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource({"ofKl", "ofOthers"})
  void bitsOfOtherCases(Backend backend, Formula formula, Kind kind) {
    check(backend, formula, kind, Share.OTHERS);
  }

  private static void check(Backend backend, Formula formula, Kind kind, Share share) {
    List<Question> alone = questions(backend, formula, kind, 1, share);
    List<Question> shared = questions(backend, formula, kind, 3, share);
    List<Result> first = answersAnew(alone, backend, _ -> true);
    int[] counts = share == Share.SOME ? new int[] {3} : Engines.threadCounts(backend);
    for (int threads : counts) {
      try (Engine engine = engine(formula, backend, threads, _ -> true)) {
        for (int k = shared.size() - 1; k >= 0; k--) {
          Question asked = shared.get(k);
          Result result = asked.answer(engine, asked.c.q, asked.c.p);
          asked.check(backend + ", threads " + threads, first.get(k), result);
        }
      }
    }
    if (backend == Backend.VECTOR) {
      List<Result> cold = answersAnew(alone, backend, _ -> false);
      for (int k = 0; k < cold.size(); k++) {
        alone.get(k).check("cold", first.get(k), cold.get(k));
      }
    }
    Stream.concat(alone.stream(), shared.stream()).forEach(question -> question.c.close());
  }
}
