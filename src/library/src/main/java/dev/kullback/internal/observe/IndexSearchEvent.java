package dev.kullback.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

/** A search of an index. */
@Name("dev.kullback.IndexSearch")
@Label("Index Search")
@Category("Kullback")
@Description("A search of a KlIndex")
@Threshold("20 ms")
@StackTrace(false)
public final class IndexSearchEvent extends Event {
  private static final IndexSearchEvent PROBE = new IndexSearchEvent();

  @Label("Divergence")
  String divergence = "";

  @Label("k")
  int k;

  @Label("Radius")
  double radius;

  @Label("Queries")
  int queries;

  @Label("Incomplete Queries")
  @Description("Queries whose time or share of the work was up before all was found")
  int incomplete;

  @Label("Passes")
  int passes;

  @Label("Survivors")
  long survivors;

  @Label("Bytes Read")
  @DataAmount
  long bytesRead;

  @Label("Threads")
  int threads;

  @Label("Cold")
  boolean cold;

  @Label("Waited to be Gathered")
  @Timespan(Timespan.NANOSECONDS)
  long waited;

  @Label("Failed")
  boolean failed;

  private IndexSearchEvent() {}

  static @Nullable IndexSearchEvent begun() {
    if (!PROBE.isEnabled()) {
      return null;
    }
    IndexSearchEvent event = new IndexSearchEvent();
    event.begin();
    return event;
  }

  /** Says how long it waited for searches that it was gathered with, or that ran before. */
  public void waited(long nanos) {
    waited = nanos;
  }

  /** Says what it did. */
  public void did(int passes, long survivors, long bytesRead) {
    this.passes = passes;
    this.survivors = survivors;
    this.bytesRead = bytesRead;
  }

  /** Says how many queries were left open. */
  public void incomplete(int queries) {
    incomplete = queries;
  }

  /**
   * Ends it.
   *
   * @param queries that were answered
   */
  public void end(
      String divergence,
      int k,
      double radius,
      int queries,
      int threads,
      boolean cold,
      boolean failed) {
    end();
    if (shouldCommit()) {
      this.divergence = divergence;
      this.k = k;
      this.radius = radius;
      this.queries = queries;
      this.threads = threads;
      this.cold = cold;
      this.failed = failed;
      commit();
    }
  }
}
