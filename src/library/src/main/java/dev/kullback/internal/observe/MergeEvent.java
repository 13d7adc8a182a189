package dev.kullback.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A merge of segments. */
@Name("dev.kullback.Merge")
@Label("Merge")
@Category("Kullback")
@Description("A KlIndex made one segment of several")
@StackTrace(false)
public final class MergeEvent extends Event {
  private static final MergeEvent PROBE = new MergeEvent();

  @Label("Segments")
  int segments;

  @Label("References")
  long references;

  @Label("Bytes")
  @DataAmount
  long bytes;

  @Label("Failed")
  boolean failed;

  private MergeEvent() {}

  static @Nullable MergeEvent begun() {
    if (!PROBE.isEnabled()) {
      return null;
    }
    MergeEvent event = new MergeEvent();
    event.begin();
    return event;
  }

  public void end(int segments, long references, long bytes, boolean failed) {
    end();
    if (shouldCommit()) {
      this.segments = segments;
      this.references = references;
      this.bytes = bytes;
      this.failed = failed;
      commit();
    }
  }
}
