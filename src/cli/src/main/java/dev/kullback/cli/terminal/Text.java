package dev.kullback.cli.terminal;

import static java.util.stream.Collectors.joining;

import java.io.File;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Writes numbers and strings for people. File names and arguments may hold anything; none of it may steer a terminal. */
public final class Text {
  private static final String CUT = "\u2026";

  /** The longest name of a file that usual file systems have, and its separator. */
  private static final int LONGEST_FILE = 256;

  /** What is before the text of a line: its indentation and, of a table, the first column. */
  private static final Pattern COLUMN = Pattern.compile(" *(\\S.{0,40}? {2,})?(?=\\S)");

  private static final Pattern WORDS = Pattern.compile(" ");

  private Text() {}

  /** Writes a text on one line, with characters that are invisible or reorder others as {@code \\uXXXX}. */
  public static String escape(String text) {
    return String.join("", shown(text));
  }

  /**
   * Escapes a name and, where it is longer than {@code length}, cuts its middle. Of a path, what is cut is before the file's name; the array's
   * of an archive belongs to that.
   */
  public static String name(String name, int length) {
    List<String> all = shown(name);
    int size = all.stream().mapToInt(String::length).sum();
    if (size <= length) {
      return String.join("", all);
    }
    int archive = name.toLowerCase(Locale.ROOT).lastIndexOf(".npz:");
    int slash = name.lastIndexOf(File.separatorChar, archive < 0 ? name.length() : archive);
    boolean isFile = name.length() - slash <= LONGEST_FILE;
    if (isFile && slash <= 0) {
      return String.join("", all);
    }
    String tail = isFile ? escape(name.substring(slash)) : end(all, length / 5 * 2);
    StringBuilder cut = new StringBuilder();
    for (String next : all) {
      if (cut.length() + next.length() + CUT.length() + tail.length() > length) {
        break;
      }
      cut.append(next);
    }
    return cut.append(CUT).append(tail).toString();
  }

  /** Returns the last characters, of at most so many chars. */
  private static String end(List<String> all, int length) {
    int from = all.size();
    for (int size = 0; (size += all.get(from - 1).length()) <= length; ) {
      from--;
    }
    return String.join("", all.subList(from, all.size()));
  }

  /**
   * Breaks lines that are longer than {@code width}, between words alone. What goes on is indented by 2 more than the line is or, of a table,
   * than its second column.
   */
  public static String wrap(String text, int width) {
    String wrapped =
        text.lines().map(line -> wrapLine(line, width)).collect(joining("%n".formatted()));
    return text.endsWith("\n") ? wrapped + "%n".formatted() : wrapped;
  }

  private static String wrapLine(String line, int width) {
    Matcher column = COLUMN.matcher(line);
    int start = column.lookingAt() ? column.end() : 0;
    int indent = start == 0 ? 0 : start + 2;
    StringBuilder done = new StringBuilder();
    StringBuilder last = new StringBuilder(line.substring(0, start));
    for (String word : WORDS.split(line.substring(start), -1)) {
      if (last.length() > start && last.length() + 1 + word.length() > width) {
        done.append(last).append("%n".formatted());
        last = new StringBuilder(" ".repeat(indent));
        start = indent;
      }
      last.append(last.length() > start ? " " : "").append(word);
    }
    return done.append(last).toString();
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

  /** Returns the characters of a text as they are shown. */
  private static List<String> shown(String text) {
    return text.codePoints().mapToObj(Text::shown).toList();
  }

  private static String shown(int point) {
    return switch (point == ' ' ? Character.OTHER_LETTER : Character.getType(point)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.SURROGATE,
          Character.PRIVATE_USE,
          Character.UNASSIGNED,
          Character.SPACE_SEPARATOR,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR ->
          Character.toString(point)
              .chars()
              .mapToObj(unit -> "\\u%04x".formatted(unit))
              .collect(joining());
      default -> Character.toString(point);
    };
  }
}
