package dev.kullback.internal.observe;

import jdk.jfr.FlightRecorder;
import org.jspecify.annotations.Nullable;

/**
 * Begins events of JDK Flight Recorder. Where no recording wants one, or the module is missing, that is null, and nothing is allocated. No class
 * of an event is loaded without the module, nor before there is a recorder: the first one would take 130 ms of the first call in a JVM (Zen 4).
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

  private static boolean areRecorded() {
    return HAS_RECORDER && FlightRecorder.isInitialized();
  }

  public static @Nullable CallEvent call() {
    return areRecorded() ? CallEvent.begun() : null;
  }

  public static @Nullable IndexSearchEvent indexSearch() {
    return areRecorded() ? IndexSearchEvent.begun() : null;
  }

  public static @Nullable CommitEvent commit() {
    return areRecorded() ? CommitEvent.begun() : null;
  }

  public static @Nullable MergeEvent merge() {
    return areRecorded() ? MergeEvent.begun() : null;
  }

  public static @Nullable RefreshEvent refresh() {
    return areRecorded() ? RefreshEvent.begun() : null;
  }

  public static @Nullable ChangeOverEvent changeOver() {
    return areRecorded() ? ChangeOverEvent.begun() : null;
  }

  /** Records that a search was ended by its timeout. */
  public static void timeout(String operation, long limitNanos) {
    if (areRecorded()) {
      TimeoutEvent.happened(operation, limitNanos);
    }
  }
}
