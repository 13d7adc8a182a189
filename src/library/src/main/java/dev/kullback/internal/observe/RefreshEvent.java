package dev.kullback.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A refresh of an index. */
@Name("dev.kullback.Refresh")
@Label("Refresh")
@Category("Kullback")
@Description("A KlIndex that was opened to be read looked for a new commit")
@StackTrace(false)
public final class RefreshEvent extends Event {
  private static final RefreshEvent PROBE = new RefreshEvent();

  @Label("Folder")
  String folder = "";

  @Label("Changed")
  boolean changed;

  @Label("Segments")
  int segments;

  @Label("Failed")
  boolean failed;

  private RefreshEvent() {}

  static @Nullable RefreshEvent begun() {
    if (!PROBE.isEnabled()) {
      return null;
    }
    RefreshEvent event = new RefreshEvent();
    event.begin();
    return event;
  }

  public void end(String folder, boolean changed, int segments, boolean failed) {
    end();
    if (shouldCommit()) {
      this.folder = folder;
      this.changed = changed;
      this.segments = segments;
      this.failed = failed;
      commit();
    }
  }
}
