package dev.kullback.cli.npy;

import dev.kullback.cli.terminal.Text;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ReadableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Text of numbers, UTF-8: a row a line, its cells apart by tabs, semicolons, commas or spaces, whichever the first line has. That line may
 * be names; empty ones and those from # on are left out. It is gone through twice, first for the shape.
 */
final class TextTable implements ReadableByteChannel {
  static final Set<String> SUFFIXES = Set.of("csv", "tsv", "txt");

  private static final int MAX_LINE = 1 << 26;
  private static final int LONGEST_CELL = 40;
  private static final char SPACE = ' ';
  private static final Pattern NUMBER = Pattern.compile("[-+]?\\.?[0-9][-+0-9.eE]*");
  private static final Pattern NOT_FINITE = Pattern.compile("[-+]?(nan|inf|infinity)");
  private static final Pattern DECIMAL_COMMA = Pattern.compile("[-+]?[0-9]+,[0-9]+");

  private final Reader reader;

  /** What was read, of which {@code at} to {@code end} is left. */
  private final char[] buffer = new char[1 << 13];

  private int at;
  private int end;

  private final Type type;
  private char separator;
  private int line;
  private int columns;

  /** The line that gave the number of columns. */
  private int first;

  /** The rest of a row. */
  private ByteBuffer row = ByteBuffer.allocate(0);

  private TextTable(Path file, Type type) throws IOException {
    reader = new InputStreamReader(Files.newInputStream(file), StandardCharsets.UTF_8);
    this.type = type;
  }

  /** Opens a table as integers where no floats are wanted. */
  static Opened open(Name name, Set<Type> wanted) throws IOException {
    Type type =
        wanted.contains(Type.FLOAT64)
            ? Type.FLOAT64
            : wanted.contains(Type.INT64) ? Type.INT64 : Type.INT32;
    long rows;
    int columns;
    try (TextTable table = new TextTable(name.file(), type)) {
      rows = table.count();
      columns = table.columns;
    }
    TextTable table = new TextTable(name.file(), type);
    return new Opened(
        new Input(table, rows * columns * type.bytes(), table),
        new NpyHeader(type.toString().toLowerCase(Locale.ROOT), false, new long[] {rows, columns}),
        type,
        ByteOrder.nativeOrder(),
        name.isBfloat16(),
        (_, to) -> "give " + to);
  }

  private long count() throws IOException {
    List<String> cells = next();
    if (cells == null) {
      throw new NpyException("has no line of numbers");
    }
    boolean isNumbered = isNumbered(cells);
    if (isNames(cells)) {
      cells = next();
    }
    long rows = 0;
    if (cells != null) {
      // A column of names is told of here: as a dimension, it would belie another file.
      parse(cells);
      rows = 1;
    }
    for (String text = text(); text != null; text = text(), rows++) {
      checkColumns(columns(text));
    }
    if (isNumbered && rows > 1) {
      throw new NpyException(
          "line %d may be the columns' numbers, as of pandas, or a row: leave numbers out, to_csv(…, header=False, index=False), or begin a row with %s"
              .formatted(first, type == Type.FLOAT64 ? "0.0" : "+0"));
    }
    return rows;
  }

  /** Whether a line is 0, 1, … as pandas writes for columns without names; a single 0 is a number as any. */
  private static boolean isNumbered(List<String> cells) {
    boolean is = cells.size() > 1;
    for (int k = 0; k < cells.size(); k++) {
      is &= cells.get(k).equals(Integer.toString(k));
    }
    return is;
  }

  private boolean isNames(List<String> cells) throws NpyException {
    if (cells.getFirst().isEmpty() && cells.size() > 1) {
      throw new NpyException(
          "line %d begins with an empty name: is the first column an index, as pandas and R write it? leave it out, to_csv(…, index=False) or row.names = FALSE"
              .formatted(line));
    }
    return cells.stream().noneMatch(cell -> isNumber(cell));
  }

  /** Returns the cells of the next line that has some, or null. */
  private @Nullable List<String> next() throws IOException {
    String text = text();
    if (text == null) {
      return null;
    }
    List<String> cells = cells(text);
    if (columns == 0) {
      columns = cells.size();
      first = line;
    }
    checkColumns(cells.size());
    return cells;
  }

  private void checkColumns(int count) throws NpyException {
    if (count != columns) {
      throw new NpyException(
          "line %d has %d cells, but line %d has %d".formatted(line, count, first, columns));
    }
  }

  /** Returns the next line that has cells, or null. */
  private @Nullable String text() throws IOException {
    String text = line();
    while (text != null && (text.isBlank() || text.stripLeading().startsWith("#"))) {
      text = line();
    }
    if (text == null) {
      return null;
    }
    if (columns == 0) {
      separator =
          text.indexOf('\t') >= 0
              ? '\t'
              : text.indexOf(';') >= 0 ? ';' : text.indexOf(',') >= 0 ? ',' : SPACE;
    }
    return separator == SPACE ? text.strip() : text;
  }

  /** Reads a line, of no more characters than the rows of any array have. */
  private @Nullable String line() throws IOException {
    if (!hasMore()) {
      return null;
    }
    StringBuilder text = new StringBuilder();
    while (hasMore() && buffer[at] != '\n') {
      int from = at;
      while (at < end && buffer[at] != '\n') {
        at++;
      }
      if (text.length() + at - from > MAX_LINE) {
        throw new NpyException("line %d has more than %d characters".formatted(line + 1, MAX_LINE));
      }
      text.append(buffer, from, at - from);
    }
    at++;
    if (line++ == 0 && !text.isEmpty() && text.charAt(0) == '\ufeff') {
      text.deleteCharAt(0);
    }
    return text.toString();
  }

  private boolean hasMore() throws IOException {
    if (at >= end) {
      at = 0;
      end = reader.read(buffer);
    }
    return at < end;
  }

  private List<String> cells(String text) {
    List<String> cells = new ArrayList<>(columns);
    for (int from = 0, to; from <= text.length(); from = to + 1) {
      from = begin(text, from);
      int quote = quote(text, from);
      to = end(text, from, quote);
      String cell = text.substring(from, to).strip();
      cells.add(quote > 0 && cell.length() > 1 ? cell.substring(1, cell.length() - 1) : cell);
    }
    return cells;
  }

  /** Counts cells, which takes much less time than making them. */
  private int columns(String text) {
    int count = 0;
    for (int from = 0; from <= text.length(); count++) {
      from = begin(text, from);
      from = end(text, from, quote(text, from)) + 1;
    }
    return count;
  }

  private static int begin(String text, int from) {
    int begin = from;
    while (begin < text.length() && text.charAt(begin) == SPACE) {
      begin++;
    }
    return begin;
  }

  /** Returns where the quotes of a cell end; -1 where there are none. */
  private static int quote(String text, int begin) {
    boolean isQuoted = begin < text.length() && text.charAt(begin) == '"';
    return isQuoted ? text.indexOf('"', begin + 1) : -1;
  }

  private int end(String text, int begin, int quote) {
    int separator = text.indexOf(this.separator, Math.max(begin, quote));
    return separator < 0 ? text.length() : separator;
  }

  private static boolean isNumber(String cell) {
    return NUMBER.matcher(cell).matches()
        || NOT_FINITE.matcher(cell.toLowerCase(Locale.ROOT)).matches();
  }

  @Override
  public int read(ByteBuffer to) throws IOException {
    if (!row.hasRemaining()) {
      List<String> cells = next();
      if (cells != null && line == first && isNames(cells)) {
        cells = next();
      }
      if (cells == null) {
        return -1;
      }
      parse(cells);
    }
    int count = Math.min(to.remaining(), row.remaining());
    to.put(row.slice(row.position(), count));
    row.position(row.position() + count);
    return count;
  }

  private void parse(List<String> cells) throws NpyException {
    row = ByteBuffer.allocate(columns * type.bytes()).order(ByteOrder.nativeOrder());
    for (int k = 0; k < columns; k++) {
      put(cells.get(k), k + 1);
    }
    row.flip();
  }

  private void put(String cell, int column) throws NpyException {
    try {
      switch (type) {
        case FLOAT64 -> row.putDouble(number(cell));
        case INT64 -> row.putLong(Long.parseLong(cell));
        default -> row.putInt(Integer.parseInt(cell));
      }
    } catch (NumberFormatException e) {
      String is = cell.isEmpty() ? "empty" : "'" + Text.name(cell, LONGEST_CELL) + "'";
      throw new NpyException(
          "line %d, column %d is %s: it must be %s%s (counted from 1)"
              .formatted(
                  line,
                  column,
                  is,
                  type == Type.FLOAT64 ? "a number" : "an integer",
                  DECIMAL_COMMA.matcher(cell).matches() ? " with a decimal point" : ""));
    }
  }

  private static double number(String cell) {
    if (NUMBER.matcher(cell).matches()) {
      return Double.parseDouble(cell);
    }
    String word = cell.toLowerCase(Locale.ROOT);
    if (!NOT_FINITE.matcher(word).matches()) {
      throw new NumberFormatException();
    }
    return word.endsWith("nan")
        ? Double.NaN
        : word.startsWith("-") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
  }

  @Override
  public boolean isOpen() {
    return true;
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
