package dev.kullback.internal.verify;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.index.search.Searches;
import dev.kullback.internal.index.store.Index;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.rows.SearchOptions;
import java.util.stream.LongStream;

/** An index in memory of a case's p, under ids that are the rows' numbers, and its searches. */
final class Indexed implements AutoCloseable {
  private final Index index;
  private final Snapshot snapshot;

  /** Takes vectors from the first search on, as the engine does that is tried. */
  private final Searches searches;

  /** The same of one thread, with which a query allocates nothing. */
  private final Searches alone;

  private final int dimension;
  private final long[] ids;
  private final float[] kl;
  private final SearchOptions nearest;
  private final SearchOptions densest;

  Indexed(DiagonalBatch references, int k, int threads) {
    dimension = references.dimension();
    index = Index.inMemory(dimension);
    index.add(LongStream.range(0, references.size()).toArray(), references);
    snapshot = index.acquire();
    searches = new Searches(dimension, threads, null, false);
    alone = new Searches(dimension, 1, null, false);
    ids = new long[k];
    kl = new float[k];
    nearest = SearchOptions.nearest(k);
    densest = nearest.rankedByDensity();
  }

  void search(DiagonalBatch queries, SearchOptions options, Result r) {
    r.set(searches.search(snapshot, queries, options, 0), options.isWithin());
  }

  /** Asks one after the other for the nearest k of queries that are floats and state σ. */
  void query(DiagonalBatch queries, Result r) {
    for (int i = 0; i < queries.size(); i++) {
      int at = i * dimension;
      int found =
          alone.query(
              snapshot,
              queries.mean32(),
              at,
              queries.scale32(),
              queries.scaleFrom(i),
              nearest,
              ids,
              kl,
              Searches.NO_PROOF);
      take(i, found, r);
    }
  }

  /** Asks one after the other for the densest k at points of floats. */
  void densest(DiagonalBatch points, Result r) {
    for (int i = 0; i < points.size(); i++) {
      int at = i * dimension;
      int found = alone.query(snapshot, points.mean32(), at, densest, ids, kl, Searches.NO_PROOF);
      take(i, found, r);
    }
  }

  private void take(int i, int found, Result r) {
    int k = ids.length;
    for (int s = 0; s < found; s++) {
      r.indices[i * k + s] = (int) ids[s];
      r.values[i * k + s] = kl[s];
    }
  }

  @Override
  public void close() {
    searches.close();
    alone.close();
    snapshot.close();
    index.close();
  }
}
