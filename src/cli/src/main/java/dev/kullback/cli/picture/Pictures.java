package dev.kullback.cli.picture;

import org.jspecify.annotations.Nullable;

/** Whether this Java can draw: apart from {@link Heatmap}, which does not even load without AWT. */
public final class Pictures {
  private Pictures() {}

  /** Why no picture can be drawn, or null. */
  public static @Nullable String problem() {
    try {
      require();
      return null;
    } catch (IllegalStateException e) {
      return e.getMessage();
    }
  }

  /** Better told before hours of work than after. */
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
