package dev.kullback.testing;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import dev.kullback.internal.cuda.CudaLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Controls the emulated device beside its two ABIs, by {@code native/emulated/kullback_emulated.h}. */
@SuppressWarnings("restricted") // calls into the library
public final class Emulated {
  /** The runtime's code for memory that is exhausted. */
  public static final int OUT_OF_MEMORY = 2;

  private static final SymbolLookup LIBRARY =
      SymbolLookup.libraryLookup(Path.of(System.getProperty(CudaLibrary.LIBRARY)), Arena.global());

  private static final MethodHandle FAIL =
      handle("kullback_emulated_fail", FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_INT));
  private static final MethodHandle SET =
      handle("kullback_emulated_set", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
  private static final MethodHandle LIVE =
      handle("kullback_emulated_live", FunctionDescriptor.of(JAVA_LONG, ADDRESS));
  private static final MethodHandle RESET =
      handle("kullback_emulated_reset", FunctionDescriptor.ofVoid());

  private Emulated() {}

  private static MethodHandle handle(String name, FunctionDescriptor descriptor) {
    return Linker.nativeLinker().downcallHandle(LIBRARY.findOrThrow(name), descriptor);
  }

  public static boolean exports(String symbol) {
    return LIBRARY.find(symbol).isPresent();
  }

  /** Makes the after-th next call of a runtime function fail; 0 as error takes it back. */
  public static void fail(String call, long after, int error) {
    try (Arena arena = Arena.ofConfined()) {
      FAIL.invokeExact(arena.allocateFrom(call), after, error);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  public static void set(String what, long value) {
    int status;
    try (Arena arena = Arena.ofConfined()) {
      status = (int) SET.invokeExact(arena.allocateFrom(what), value);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
    if (status != 0) {
      throw new AssertionError("cannot set " + what + " to " + value);
    }
  }

  public static long live(String what) {
    try (Arena arena = Arena.ofConfined()) {
      return (long) LIVE.invokeExact(arena.allocateFrom(what));
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Counts everything that is live; empty when nothing is. */
  public static Map<String, Long> live() {
    Map<String, Long> live = new LinkedHashMap<>();
    for (String what :
        List.of("allocations", "pinned", "registered", "streams", "events", "bytes")) {
      if (live(what) != 0) {
        live.put(what, live(what));
      }
    }
    return live;
  }

  public static void reset() {
    try {
      RESET.invokeExact();
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Sets WHAT to VALUE in a fresh JVM, where the library has not been probed, and tells what there is. */
  static void main(String[] args) {
    set(args[0], Long.parseLong(args[1]));
    System.out.println(Backend.CUDA.reason());
    System.out.println(Backend.AUTO.reason());
    try (KlEngine engine = KlEngine.builder().build()) {
      System.out.println(engine.toString());
    }
    try {
      KlEngine.builder().backend(Backend.CUDA).build().close();
    } catch (IllegalStateException e) {
      System.out.println(e.getMessage());
    }
  }
}
