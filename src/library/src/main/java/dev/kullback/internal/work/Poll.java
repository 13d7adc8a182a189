package dev.kullback.internal.work;

import org.jspecify.annotations.Nullable;

/**
 * Makes a fault of a mapped file show at once. Where the file was cut off or its disk is full, compiled code skips the access, and throws
 * InternalError at the next poll of the virtual machine; a vector's load, which may come first, ends the process. A loop whose turns are not counted has a
 * poll in each turn, whatever is inlined and whichever collector runs.
 */
public final class Poll {
  /** Not final, so that no compiler knows how many there are. */
  private static Poll first = new Poll(new Poll(null));

  private @Nullable Poll next;

  private Poll(@Nullable Poll next) {
    this.next = next;
  }

  public static void now() {
    Poll at = first;
    while (at != null) {
      at = at.next;
    }
  }
}
