package dev.kullback.cli.terminal;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Writes JSON on one line. Numbers are as Java writes them; JSON has none
 * for what is infinite, which becomes the string "Infinity" or "-Infinity", nor for NaN: null.
 */
public final class Json {
  private Json() {}

  /** Of a map, a list, a number, a truth value or null; anything else is a string. */
  public static String of(@Nullable Object value) {
    StringBuilder text = new StringBuilder();
    append(text, value);
    return text.toString();
  }

  private static void append(StringBuilder text, @Nullable Object value) {
    switch (value) {
      case Map<?, ?> map -> {
        String before = "{";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
          text.append(before).append(quoted(String.valueOf(entry.getKey()))).append(": ");
          append(text, entry.getValue());
          before = ", ";
        }
        text.append(map.isEmpty() ? "{}" : "}");
      }
      case List<?> list -> {
        String before = "";
        text.append('[');
        for (Object element : list) {
          text.append(before);
          append(text, element);
          before = ", ";
        }
        text.append(']');
      }
      case Double d when d.isNaN() -> text.append("null");
      case Double d when d.isInfinite() -> text.append(quoted(d.toString()));
      case Number number -> text.append(number);
      case Boolean truth -> text.append(truth);
      case null -> text.append("null");
      default -> text.append(quoted(value.toString()));
    }
  }

  /** Text's escapes are JSON's. */
  private static String quoted(String text) {
    return '"' + Text.escape(text.replace("\\", "\\\\").replace("\"", "\\\"")) + '"';
  }
}
