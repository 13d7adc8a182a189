package example;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.kullback.Backend;
import org.junit.jupiter.api.Test;

final class VectorTest {
  @Test
  void testsHaveVectors() {
    assertTrue(Backend.VECTOR.isAvailable(), Backend.VECTOR.reason());
  }
}
