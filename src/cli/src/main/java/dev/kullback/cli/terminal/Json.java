package dev.kullback.cli.terminal;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Writes JSON on one line, numbers as Java does. JSON has no infinite numbers: they are strings; nor NaN: it is null. */
public final class Json {
  private Json() {}

  /** Writes a map, a list, a number, a truth value or null; anything else as a string. */
  public static String of(@Nullable Object value) {
    return switch (value) {
      case Map<?, ?> map ->
          map.entrySet().stream()
              .map(entry -> quoted(String.valueOf(entry.getKey())) + ": " + of(entry.getValue()))
              .collect(Collectors.joining(", ", "{", "}"));
      case List<?> list -> list.stream().map(Json::of).collect(Collectors.joining(", ", "[", "]"));
      case Double d when d.isInfinite() -> quoted(d.toString());
      case Double d when d.isNaN() -> "null";
      case Number number -> number.toString();
      case Boolean truth -> truth.toString();
      case null -> "null";
      default -> quoted(value.toString());
    };
  }

  /** Quotes a string; the escapes of {@link Text} are JSON's, too. */
  private static String quoted(String text) {
    return '"' + Text.escape(text.replace("\\", "\\\\").replace("\"", "\\\"")) + '"';
  }
}
