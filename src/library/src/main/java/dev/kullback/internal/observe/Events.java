package dev.kullback.internal.observe;

import org.jspecify.annotations.Nullable;

/**
 * Begins events of JDK Flight Recorder. Where no recording wants one, or the module is missing, that is null, and nothing is allocated. No class
 * of an event is loaded without the module.
 */
public final class Events {
  private static final boolean HAS_RECORDER = hasRecorder();

  private Events() {}

  private static boolean hasRecorder() {
    try {
      Class.forName("jdk.jfr.Event", false, Events.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  public static @Nullable CallEvent call() {
    return HAS_RECORDER ? CallEvent.begun() : null;
  }

  public static @Nullable IndexSearchEvent indexSearch() {
    return HAS_RECORDER ? IndexSearchEvent.begun() : null;
  }

  public static @Nullable CommitEvent commit() {
    return HAS_RECORDER ? CommitEvent.begun() : null;
  }

  public static @Nullable MergeEvent merge() {
    return HAS_RECORDER ? MergeEvent.begun() : null;
  }

  public static @Nullable RefreshEvent refresh() {
    return HAS_RECORDER ? RefreshEvent.begun() : null;
  }

  public static @Nullable ChangeOverEvent changeOver() {
    return HAS_RECORDER ? ChangeOverEvent.begun() : null;
  }

  /** Records that a search was ended by its timeout. */
  public static void timeout(String operation, long limitNanos) {
    if (HAS_RECORDER) {
      TimeoutEvent.happened(operation, limitNanos);
    }
  }
}
