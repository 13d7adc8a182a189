package jdk.test.whitebox;

/** Stops and restarts HotSpot's compilers, by methods that the VM lends to a class of this name with {@code -XX:+WhiteBoxAPI}. */
public final class WhiteBox {
  static {
    registerNatives();
  }

  private static native void registerNatives();

  public native void lockCompilation();

  public native void unlockCompilation();
}
