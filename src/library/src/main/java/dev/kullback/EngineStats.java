package dev.kullback;

import java.time.Duration;

/**
 * Figures of a {@link KlEngine} at one time: what its calls have done since it was built. Calls that failed count as others do, and so do those of {@link KlEngine#warmUp(int, int, int)}
 * and {@link KlEngine#verify}. {@link KlEngine#monteCarlo} does not count.
 *
 * @since 0.1.0
 */
public final class EngineStats {
  private final long calls;
  private final long coldCalls;
  private final long entries;
  private final Duration time;

  EngineStats(long calls, long coldCalls, long entries, Duration time) {
    this.calls = calls;
    this.coldCalls = coldCalls;
    this.entries = entries;
    this.time = time;
  }

  /** {@return how many calls have ended} */
  public long calls() {
    return calls;
  }

  /**
   * {@return how many of these calls began before the JVM had compiled all vector code that they would use}
   *
   * <p>They are slower. The number stays once the engine is warm; where it grows with {@link #calls} for minutes, the JVM does not
   * compile vectors, and the log says why.
   */
  public long coldCalls() {
    return coldCalls;
  }

  /** {@return how many divergences these calls were to compute: N·M for a matrix or a search, N for {@link KlEngine#aligned}} */
  public long entries() {
    return entries;
  }

  /** {@return the time of these calls together, of which several may have run at once} */
  public Duration time() {
    return time;
  }

  /** {@return every figure with its name} */
  @Override
  public String toString() {
    return "EngineStats[calls=%d, coldCalls=%d, entries=%d, time=%s]"
        .formatted(calls, coldCalls, entries, time);
  }
}
