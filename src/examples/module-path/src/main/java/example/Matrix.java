package example;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;

/** Prints the divergences of three Gaussians from each other. */
public final class Matrix {
  private Matrix() {}

  /** Takes no arguments. */
  public static void main(String[] args) {
    var gaussians =
        DiagonalGaussians.ofStd(
            new float[] {0, 0, 1, 0, 0, 2}, // means of three in two dimensions
            new float[] {1, 1, 1, 1, 2, 1},
            2);
    try (var engine = KlEngine.builder().build()) {
      float[] kl = engine.pairwise(gaussians, gaussians); // KL(i ‖ j) at 3·i + j, in nats
      for (int i = 0; i < 3; i++) {
        System.out.printf("%8.4f %8.4f %8.4f%n", kl[3 * i], kl[3 * i + 1], kl[3 * i + 2]);
      }
      System.out.println(engine);
    }
  }
}
