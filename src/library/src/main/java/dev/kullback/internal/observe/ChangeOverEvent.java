package dev.kullback.internal.observe;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A trial of a group of kernels. */
@Name("dev.kullback.ChangeOver")
@Label("Change-over")
@Category("Kullback")
@Description("The JVM was made to compile the vector code of a group of kernels")
@StackTrace(false)
public final class ChangeOverEvent extends Event {
  private static final ChangeOverEvent PROBE = new ChangeOverEvent();

  @Label("Group")
  String group = "";

  @Label("Compiled")
  boolean compiled;

  private ChangeOverEvent() {}

  static @Nullable ChangeOverEvent begun() {
    if (!PROBE.isEnabled()) {
      return null;
    }
    ChangeOverEvent event = new ChangeOverEvent();
    event.begin();
    return event;
  }

  public void end(String group, boolean compiled) {
    end();
    if (shouldCommit()) {
      this.group = group;
      this.compiled = compiled;
      commit();
    }
  }
}
