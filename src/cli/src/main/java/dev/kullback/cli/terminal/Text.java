package dev.kullback.cli.terminal;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Locale;
import java.util.stream.Collectors;

/** Writes numbers and strings for people. File names and arguments may hold anything; none of it may steer a terminal. */
public final class Text {
  private static final String CUT = "\u2026";

  private Text() {}

  /** Writes a text on one line, with characters that are invisible or reorder others as {@code \\uXXXX}. */
  public static String escape(String text) {
    return fit(text, Integer.MAX_VALUE);
  }

  /** Escapes a text and cuts it in the middle to at most {@code length} characters: a message's end says what to do. */
  public static String fit(String text, int length) {
    StringBuilder head = new StringBuilder();
    Deque<String> tail = new ArrayDeque<>();
    int size = 0; // of the tail
    int whole = length / 5 * 3;
    int[] points = text.codePoints().toArray();
    for (int point : points) {
      String shown = shown(point);
      if (tail.isEmpty() && head.length() + shown.length() <= whole) {
        head.append(shown);
      } else {
        tail.add(shown);
        size += shown.length();
      }
    }
    if (head.length() + size > length) {
      while (head.length() + CUT.length() + size > length) {
        size -= tail.remove().length();
      }
      head.append(CUT);
    }
    tail.forEach(head::append);
    return head.toString();
  }

  /** Formats numbers alike in all locales. */
  @SuppressWarnings("AnnotateFormatMethod") // the format is a command's own
  public static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }

  /** Writes a number with four significant digits. */
  public static String number(double value) {
    if (value == 0 || !Double.isFinite(value)) {
      return value == 0 ? "0" : Double.toString(value);
    }
    double size = Math.abs(value);
    return size >= 1e-4 && size < 1e6
        ? new BigDecimal(value).round(new MathContext(4)).stripTrailingZeros().toPlainString()
        : format("%.3e", value).replaceAll("\\.?0*e\\+?(-?)0*", "e$1");
  }

  private static String shown(int point) {
    return switch (Character.getType(point)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.SURROGATE,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR ->
          Character.toString(point)
              .chars()
              .mapToObj(unit -> "\\u%04x".formatted(unit))
              .collect(Collectors.joining());
      default -> Character.toString(point);
    };
  }
}
