package dev.kullback.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** The end of a search by its timeout. */
@Name("dev.kullback.Timeout")
@Label("Timeout")
@Category("Kullback")
@Description("A search took longer than the timeout of its Query")
@StackTrace(false)
public final class TimeoutEvent extends Event {
  private static final TimeoutEvent PROBE = new TimeoutEvent();

  @Label("Operation")
  String operation = "";

  @Label("Limit")
  @Timespan(Timespan.NANOSECONDS)
  long limit;

  private TimeoutEvent() {}

  static void happened(String operation, long limitNanos) {
    if (PROBE.isEnabled()) {
      TimeoutEvent event = new TimeoutEvent();
      event.operation = operation;
      event.limit = limitNanos;
      event.commit();
    }
  }
}
