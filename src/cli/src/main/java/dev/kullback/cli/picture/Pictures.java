package dev.kullback.cli.picture;

import org.jspecify.annotations.Nullable;

/** Tells whether this Java can draw. {@link Heatmap} cannot tell: without AWT it does not even load. */
public final class Pictures {
  private Pictures() {}

  /** Returns why no picture can be drawn, or null. */
  public static @Nullable String problem() {
    try {
      require();
      return null;
    } catch (IllegalStateException e) {
      return e.getMessage();
    }
  }

  /** Throws where no picture can be drawn: better before hours of work than after. */
  public static void require() {
    System.setProperty("java.awt.headless", "true");
    if (ModuleLayer.boot().findModule("java.desktop").isEmpty()) {
      throw new IllegalStateException(
          "a heatmap needs the module java.desktop: use a Java that has it");
    }
    try {
      Heatmap.drawText();
    } catch (RuntimeException | LinkageError | InternalError e) {
      throw new IllegalStateException("a heatmap needs fonts: install fontconfig and a font", e);
    }
  }
}
