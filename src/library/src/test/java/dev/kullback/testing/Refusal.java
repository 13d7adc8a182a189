package dev.kullback.testing;

import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Checks calls that are refused for their arguments. */
public final class Refusal {
  private Refusal() {}

  /** Checks that the message has all these parts. */
  public static void refused(ThrowingCallable call, String... parts) {
    assertThatIllegalArgumentException().isThrownBy(call).withMessageContainingAll(parts);
  }

  /** Checks the whole message. */
  public static void refusedAs(String message, ThrowingCallable call) {
    assertThatIllegalArgumentException().isThrownBy(call).withMessage("%s", message);
  }
}
