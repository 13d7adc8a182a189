package dev.kullback.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Percentage;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import org.jspecify.annotations.Nullable;

/** A call of an engine. */
@Name("dev.kullback.Call")
@Label("Call")
@Category("Kullback")
@Description("A call of a KlEngine")
@Threshold("20 ms")
@StackTrace(false)
public final class CallEvent extends Event {
  private static final CallEvent PROBE = new CallEvent();

  @Label("Operation")
  String operation = "";

  @Label("Divergence")
  String divergence = "";

  @Label("N")
  int n;

  @Label("M")
  int m;

  @Label("D")
  int dimension;

  @Label("Entries")
  long entries;

  @Label("Recomputed in Double")
  @Percentage
  float recomputedInDouble;

  @Label("Recomputed Pair by Pair")
  @Percentage
  float recomputedPairByPair;

  @Label("Threads")
  int threads;

  @Label("Cold")
  boolean cold;

  @Label("Failed")
  boolean failed;

  private CallEvent() {}

  static @Nullable CallEvent begun() {
    if (!PROBE.isEnabled()) {
      return null;
    }
    CallEvent event = new CallEvent();
    event.begin();
    return event;
  }

  @SuppressWarnings("TooManyParameters") // the fields of the event
  public void end(
      String operation,
      String divergence,
      int n,
      int m,
      int dimension,
      long entries,
      long inDouble,
      long pairByPair,
      int threads,
      boolean cold,
      boolean failed) {
    end();
    if (shouldCommit()) {
      this.operation = operation;
      this.divergence = divergence;
      this.n = n;
      this.m = m;
      this.dimension = dimension;
      this.entries = entries;
      recomputedInDouble = (float) inDouble / entries;
      recomputedPairByPair = (float) pairByPair / entries;
      this.threads = threads;
      this.cold = cold;
      this.failed = failed;
      commit();
    }
  }
}
