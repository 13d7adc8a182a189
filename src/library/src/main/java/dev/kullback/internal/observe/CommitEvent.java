package dev.kullback.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A commit of an index. */
@Name("dev.kullback.Commit")
@Label("Commit")
@Category("Kullback")
@Description("A KlIndex wrote what had changed to its folder")
@StackTrace(false)
public final class CommitEvent extends Event {
  private static final CommitEvent PROBE = new CommitEvent();

  @Label("Folder")
  String folder = "";

  @Label("Changes")
  long changes;

  @Label("Segments Written")
  int segments;

  @Label("Bytes Written")
  @DataAmount
  long bytes;

  @Label("Failed")
  boolean failed;

  private CommitEvent() {}

  static @Nullable CommitEvent begun() {
    if (!PROBE.isEnabled()) {
      return null;
    }
    CommitEvent event = new CommitEvent();
    event.begin();
    return event;
  }

  public void end(String folder, long changes, int segments, long bytes, boolean failed) {
    end();
    if (shouldCommit()) {
      this.folder = folder;
      this.changes = changes;
      this.segments = segments;
      this.bytes = bytes;
      this.failed = failed;
      commit();
    }
  }
}
