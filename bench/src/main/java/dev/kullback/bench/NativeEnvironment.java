package dev.kullback.bench;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/** The C environment, which libraries loaded later read and {@link System#getenv} does not show. */
final class NativeEnvironment {
  private NativeEnvironment() {}

  static void set(String name, String value) {
    call("setenv", name, value);
  }

  static void unset(String name) {
    call("unsetenv", name, null);
  }

  @SuppressWarnings("restricted") // two functions of the C library
  private static void call(String function, String name, String value) {
    Linker linker = Linker.nativeLinker();
    FunctionDescriptor type =
        value == null
            ? FunctionDescriptor.of(JAVA_INT, ADDRESS)
            : FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
    MethodHandle handle = linker.downcallHandle(linker.defaultLookup().findOrThrow(function), type);
    int status;
    try (Arena arena = Arena.ofConfined()) {
      status =
          value == null
              ? (int) handle.invokeExact(arena.allocateFrom(name))
              : (int) handle.invokeExact(arena.allocateFrom(name), arena.allocateFrom(value), 1);
    } catch (Throwable e) {
      throw new AssertionError("a downcall does not throw", e);
    }
    if (status != 0) {
      throw new Unavailable(function + " failed for " + name);
    }
  }
}
