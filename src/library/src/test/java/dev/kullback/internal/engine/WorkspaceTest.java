package dev.kullback.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.kullback.internal.formula.Kl;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Work before a call's blocks, which its threads share. */
class WorkspaceTest {
  /** An interrupted caller begins no task: one may take long, as a panel of large matrices does. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void beginsNoTaskWhenInterrupted(int threads) {
    AtomicInteger begun = new AtomicInteger();
    try (Engine engine = new Engine(Kl.FORWARD, Platform.Choice.SCALAR, threads, null)) {
      Workspace workspace = engine.begin();
      Thread.currentThread().interrupt();
      assertThatExceptionOfType(CancellationException.class)
          .isThrownBy(() -> workspace.share(4, _ -> begun.incrementAndGet()));
      assertThat(Thread.interrupted()).isTrue();
      engine.end(workspace, "pairwise", 1, 1, 1, 1);
    }
    assertThat(begun).hasValue(0);
  }
}
