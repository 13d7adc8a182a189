package dev.kullback.internal.index.search;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.index.store.Content;
import dev.kullback.internal.index.store.Index;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.TimeLimit;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Queries that are gathered get the answers that they would get alone, whatever becomes of the others. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GatheringTest {
  private static final int N = 100;
  private static final long HOUR = TimeUnit.HOURS.toNanos(1);

  private final Searches searches = new Searches(1, 1, null);
  private final Index index = Index.inMemory(1);
  private final Snapshot snapshot;
  private final ExecutorService callers = Executors.newCachedThreadPool();

  /** Holds up a search, as filters are asked in its course. */
  private final CountDownLatch held = new CountDownLatch(1);

  private final CountDownLatch release = new CountDownLatch(1);

  GatheringTest() {
    long[] ids = LongStream.range(0, N).toArray();
    index.add(ids, Content.batch(LongStream.range(0, N).map(id -> id % 50).toArray()));
    snapshot = index.acquire();
  }

  @AfterEach
  void end() {
    release.countDown();
    callers.shutdownNow();
    searches.close();
    snapshot.close();
    index.close();
  }

  /** Starts a search that does not end until {@link #release}, so that others wait behind it. */
  private Future<?> hold(Gathering gathering) throws InterruptedException {
    SearchOptions slow =
        SearchOptions.nearest(3)
            .reversed()
            .filteredBy(id -> {
              held.countDown();
              try {
                return release.await(1, TimeUnit.MINUTES);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            });
    Future<?> call =
        callers.submit(() -> gathering.nearest(snapshot, Content.batch(1), slow, slow.end()));
    held.await();
    return call;
  }

  private Future<NeighborIds> ask(Gathering gathering, DiagonalBatch query, SearchOptions options) {
    return callers.submit(() -> gathering.nearest(snapshot, query, options, options.end()));
  }

  private record Waiting(Future<NeighborIds> answer, Thread thread) {}

  /** Asks, and returns when that thread waits for others. */
  private Waiting asked(
      Gathering gathering, DiagonalBatch query, SearchOptions options, Thread.State state)
      throws InterruptedException, ExecutionException {
    CompletableFuture<Thread> thread = new CompletableFuture<>();
    Future<NeighborIds> answer =
        callers.submit(() -> {
          thread.complete(Thread.currentThread());
          return gathering.nearest(snapshot, query, options, options.end());
        });
    while (thread.get().getState() != state) {
      Thread.onSpinWait();
    }
    return new Waiting(answer, thread.get());
  }

  private void check(Future<NeighborIds> answer, DiagonalBatch query, SearchOptions options)
      throws InterruptedException, ExecutionException {
    NeighborIds found = answer.get();
    NeighborIds alone = searches.search(snapshot, query, options, options.end());
    assertThat(found.ids()).isEqualTo(alone.ids());
    assertThat(found.values()).isEqualTo(alone.values());
    assertThat(found.start()).isEqualTo(alone.start());
  }

  /** The pairs of a pass are those of all its queries, which no query's own limit may count. */
  @Test
  void queriesWithMostPairsSearchAlone() {
    assertThat(Gathering.takes(1, SearchOptions.nearest(5))).isTrue();
    assertThat(Gathering.takes(1, SearchOptions.nearest(5).withMostPairs(5))).isFalse();
  }

  /** Queries behind a pass wait for its end, and then get their own answers, also if they differ in kind, k or direction. */
  @Test
  void answersAreThoseOfEachAlone() throws Exception {
    Gathering gathering = new Gathering(searches, HOUR);
    Future<?> first = hold(gathering);
    List<Future<NeighborIds>> answers = new ArrayList<>();
    List<DiagonalBatch> queries = new ArrayList<>();
    List<SearchOptions> options = new ArrayList<>();
    for (int k = 0; k < 30; k++) {
      queries.add(Content.batch(1, k % 10 == 9, k));
      SearchOptions nearest = SearchOptions.nearest(k < 20 ? 5 : 4);
      options.add(nearest);
      answers.add(ask(gathering, queries.get(k), nearest));
    }
    release.countDown();
    for (int k = 0; k < answers.size(); k++) {
      check(answers.get(k), queries.get(k), options.get(k));
    }
    first.get();
  }

  /** Eight do not wait for the pass before them; and one does not wait longer than it may. */
  @Test
  void eightBeginAtOnce() throws Exception {
    SearchOptions options = SearchOptions.nearest(5);
    Gathering gathering = new Gathering(searches, HOUR);
    Future<?> first = hold(gathering);
    long queries = searches.queries();
    List<Future<NeighborIds>> answers = new ArrayList<>();
    for (int k = 0; k < 8; k++) {
      answers.add(ask(gathering, Content.batch(k), options));
    }
    for (int k = 0; k < 8; k++) {
      check(answers.get(k), Content.batch(k), options);
    }
    assertThat(searches.queries()).isEqualTo(queries + 16); // theirs, and those of the checks
    assertThat(first.isDone()).isFalse();
    Gathering hurried = new Gathering(searches, 1);
    check(ask(hurried, Content.batch(3), options), Content.batch(3), options);
  }

  /** One whose timeout passes, or whose thread is interrupted, ends by itself; the others get their answers, its followers too. */
  @Test
  void othersAreLeftAlone() throws Exception {
    SearchOptions options = SearchOptions.nearest(5);
    Gathering gathering = new Gathering(searches, HOUR);
    Future<?> first = hold(gathering);
    Waiting leader = asked(gathering, Content.batch(1), options, Thread.State.TIMED_WAITING);
    Waiting follower = asked(gathering, Content.batch(2), options, Thread.State.WAITING);
    SearchOptions hurried = options.limitedTo(TimeLimit.of(Duration.ofMillis(1), "the 5 nearest"));
    NeighborIds late = ask(gathering, Content.batch(3), hurried).get();
    assertThat(late.ids()).isEmpty();
    assertThat(late.isComplete()).containsExactly(false);
    assertThat(late.proven()).containsExactly(0);
    assertThat(follower.answer.isDone()).isFalse();
    leader.thread.interrupt();
    assertThatThrownBy(leader.answer::get)
        .hasCauseInstanceOf(CancellationException.class)
        .hasMessageContaining("interrupted");
    check(follower.answer, Content.batch(2), options);
    release.countDown();
    first.get();
  }
}
