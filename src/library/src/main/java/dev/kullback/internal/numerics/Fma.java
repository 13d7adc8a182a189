package dev.kullback.internal.numerics;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Finds out whether {@link Math#fma} is an instruction; without hardware support it goes through BigDecimal. This happens once in a
 * process, as the bits of results depend on it.
 */
public final class Fma {
  /** System property, true or false, that overrules what is found out. A wrong true makes calls slow, and not wrong. */
  public static final String PROPERTY = "dev.kullback.fma";

  public static final boolean IS_HARDWARE;

  /** Tells how {@link #IS_HARDWARE} was found out, in words that follow "by". */
  public static final String SOURCE;

  /**
   * Least quotient of the times of an fma and of a product and a sum at which there is no instruction: an instruction takes 0.3 to 2.3
   * times as long, and BigDecimal 30 to 1500 times (x86; likewise under QEMU).
   */
  private static final int SLOWER = 8;

  private static final int TRIALS = 5;

  /** Trials before a no, so that some microseconds are undisturbed on a starved machine; they take 30 to 100 ms. */
  private static final int MOST_TRIALS = 15;

  static {
    Boolean known = property();
    String source = "system property " + PROPERTY;
    if (known == null) {
      known = isFast();
      source = "its speed compared with a product";
      Boolean flag = known ? null : flag(); // no replacement is fast, so only a no may be mistaken
      if (flag != null) {
        known = flag;
        source = "the JVM's flag UseFMA";
      }
    }
    IS_HARDWARE = known;
    SOURCE = source;
  }

  private Fma() {}

  /** Computes {@code ab + c}, rounded once where that is an instruction. */
  public static double of(double a, double b, double c) {
    return IS_HARDWARE ? Math.fma(a, b, c) : a * b + c;
  }

  private static @Nullable Boolean property() {
    return switch (System.getProperty(PROPERTY, "").toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> null; // nothing, or what no engine accepts
    };
  }

  /**
   * Whether fma is about as fast as other arithmetic, on processors of any speed and in emulators. The architecture and {@code
   * /proc/cpuinfo} tell what the processor has, not whether the VM uses it: {@code -XX:-UseFMA} may hide in a file of options. The best of
   * the trials counts, as others may use the processor; a no takes more of them than a yes, which nothing but an instruction can
   * explain.
   */
  static boolean isFast() {
    double x = 1;
    double y = 1;
    long fma = Long.MAX_VALUE;
    long plain = Long.MAX_VALUE;
    for (int trial = 0; trial < TRIALS || (trial < MOST_TRIALS && fma >= SLOWER * plain); trial++) {
      long start = System.nanoTime();
      for (int i = 0; i < 100; i++) {
        x = Math.fma(x, 0.9999, 1e-9);
      }
      long middle = System.nanoTime();
      for (int i = 0; i < 100; i++) {
        y = productAndSum(y, 0.9999, 1e-9);
      }
      fma = Math.min(fma, middle - start);
      plain = Math.min(plain, System.nanoTime() - middle);
    }
    return fma < SLOWER * plain && x + y < 3;
  }

  /** Stands in a method, so that the interpreter calls it as it calls {@link Math#fma}. */
  private static double productAndSum(double a, double b, double c) {
    return a * b + c;
  }

  /** Reads the VM's own flag, in 30 ms, by reflection, as its module need not be there; null where it cannot be read. */
  static @Nullable Boolean flag() {
    try {
      Class<?> type = Class.forName("com.sun.management.HotSpotDiagnosticMXBean");
      Object bean =
          Class.forName("java.lang.management.ManagementFactory")
              .getMethod("getPlatformMXBean", Class.class)
              .invoke(null, type);
      Object option = type.getMethod("getVMOption", String.class).invoke(bean, "UseFMA");
      Object value =
          Class.forName("com.sun.management.VMOption").getMethod("getValue").invoke(option);
      return Boolean.valueOf((String) value);
    } catch (ReflectiveOperationException | LinkageError | RuntimeException e) {
      return null; // no such module, or no such flag in this VM
    }
  }
}
