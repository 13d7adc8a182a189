package dev.kullback.cli.npy;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The header of a .npy file: a Python dict literal with exactly the keys descr, fortran_order and
 * shape, in any order.
 *
 * @param descr the dtype as in the file: {@code <f4}, or the text of the list of a structured dtype
 */
public record NpyHeader(String descr, boolean fortranOrder, long[] shape) {

  /** Parses the text of a header of a version of the format; of 1 and 2, Python 2 may have written an L behind integers. */
  public static NpyHeader parse(String text, int version) throws NpyException {
    return new Parser(text, version).parse();
  }

  public String shapeText() {
    return Arrays.stream(shape)
        .mapToObj(Long::toString)
        .collect(Collectors.joining(", ", "(", shape.length == 1 ? ",)" : ")"));
  }

  /** Reads the literals of which {@code ast.literal_eval} makes a header, but no strings with escapes or of several parts. */
  private static final class Parser {
    private static final char END = '\0';
    private static final int MAX_DIMENSIONS = 64;
    private static final int MAX_DEPTH = 100;
    private static final BigInteger MOST = BigInteger.valueOf(Long.MAX_VALUE);
    private static final Pattern STRING =
        Pattern.compile("[uU]?('[^'\\\\]*'|\"[^\"\\\\]*\")|[rR]('[^']*'|\"[^\"]*\")");
    private static final Pattern WORD = Pattern.compile("[A-Za-z_][A-Za-z_0-9]*");

    // Possessive ones: of any others, each repetition of a group takes a frame of the stack.
    private static final Pattern DECIMAL = Pattern.compile("[1-9](?:_?[0-9])*+|0(?:_?0)*+");
    private static final Pattern RADIX =
        Pattern.compile(
            "0(?:[xX](?<x>(?:_?[0-9a-fA-F])++)|[oO](?<o>(?:_?[0-7])++)|[bB](?<b>(?:_?[01])++))");

    private final String text;
    private final int version;
    private int at;
    private int depth;

    Parser(String text, int version) {
      this.text = text;
      this.version = version;
    }

    NpyHeader parse() throws NpyException {
      @Nullable String descr = null;
      @Nullable Boolean fortranOrder = null;
      long @Nullable [] shape = null;
      int parentheses = 0;
      for (; peek() == '('; parentheses++) {
        at++;
      }
      expect('{');
      while (peek() != '}') {
        String key = string("a key in quotes or '}'");
        expect(':');
        int start = at;
        if (key.equals("descr") && descr == null) {
          Object value = value();
          descr = value instanceof String string ? string : text.substring(start, at).strip();
        } else if (key.equals("fortran_order") && fortranOrder == null) {
          peek();
          int there = at;
          fortranOrder = value() instanceof Boolean truth ? truth : null;
          if (fortranOrder == null) {
            throw malformed(there, "True or False");
          }
        } else if (key.equals("shape") && shape == null) {
          shape = shape(value(), start);
        } else {
          throw new NpyException("has an unexpected or repeated key '" + key + "' in its header");
        }
        if (peek() != '}') {
          expect(',', '}');
        }
      }
      expect('}');
      for (; parentheses > 0; parentheses--) {
        expect(')');
      }
      peek();
      if (at != text.length()) {
        throw malformed(at, "the end");
      }
      if (descr == null || fortranOrder == null || shape == null) {
        throw new NpyException("lacks descr, fortran_order or shape in its header");
      }
      return new NpyHeader(descr, fortranOrder, shape);
    }

    /** Goes to the next character that is not white space or a comment, and returns it. */
    private char peek() {
      while (at < text.length() && " \t\r\n\f#\\".indexOf(text.charAt(at)) >= 0) {
        if (text.charAt(at) == '#') {
          int end = text.indexOf('\n', at);
          at = end < 0 ? text.length() : end;
        } else if (text.charAt(at) == '\\' && !text.startsWith("\\\n", at)) {
          break;
        } else {
          at++;
        }
      }
      return at < text.length() ? text.charAt(at) : END;
    }

    private void expect(char c, char... others) throws NpyException {
      if (peek() != c || at == text.length()) {
        throw malformed(at, "'" + c + (others.length == 0 ? "'" : "' or '" + others[0] + "'"));
      }
      at++;
    }

    /** Takes what the pattern matches next. */
    private Matcher take(Pattern pattern, String expected) throws NpyException {
      peek();
      Matcher token = pattern.matcher(text).region(at, text.length());
      if (!token.lookingAt()) {
        throw malformed(at, expected);
      }
      at = token.end();
      return token;
    }

    private String string(String expected) throws NpyException {
      String quoted = take(STRING, expected).group();
      int prefix = Character.isLetter(quoted.charAt(0)) ? 1 : 0;
      return quoted.substring(prefix + 1, quoted.length() - 1);
    }

    /** Takes a string, True, False, None, an integer, a list or a tuple. */
    private @Nullable Object value() throws NpyException {
      char c = peek();
      if (c == '(' || c == '[') {
        return list(c == '(' ? ')' : ']');
      }
      if (c == '+' || c == '-' || (c >= '0' && c <= '9')) {
        return integer();
      }
      if (STRING.matcher(text).region(at, text.length()).lookingAt()) {
        return string("");
      }
      int start = at;
      return switch (take(WORD, "a value").group()) {
        case "True" -> true;
        case "False" -> false;
        case "None" -> null;
        default -> throw malformed(start, "a value");
      };
    }

    /** Takes the elements of a list or tuple, or the one value that there is in parentheses. */
    private @Nullable Object list(char end) throws NpyException {
      if (++depth > MAX_DEPTH) {
        throw malformed(at, "no further nesting");
      }
      at++;
      List<@Nullable Object> values = new ArrayList<>();
      boolean isTuple = end == ')' && peek() == end;
      while (peek() != end) {
        values.add(value());
        if (peek() != end) {
          expect(',', end);
          isTuple = end == ')';
        }
      }
      at++;
      depth--;
      return isTuple ? new Tuple(values) : end == ')' ? values.getFirst() : values;
    }

    private record Tuple(List<@Nullable Object> values) {}

    private BigInteger integer() throws NpyException {
      boolean isNegative = peek() == '-';
      if (isNegative || peek() == '+') {
        at++;
      }
      peek();
      Matcher radix = RADIX.matcher(text).region(at, text.length());
      BigInteger value;
      if (radix.lookingAt()) {
        at = radix.end();
        value =
            radix.group("x") != null
                ? number(radix.group("x"), 16)
                : radix.group("o") != null
                    ? number(radix.group("o"), 8)
                    : number(radix.group("b"), 2);
      } else {
        value = number(take(DECIMAL, "a number").group(), 10);
      }
      int end = at;
      if (at < text.length() && peek() == 'L' && version < 3) { // Python 2's
        at++;
        end = at;
      }
      at = end;
      if (at < text.length()
          && (Character.isLetterOrDigit(text.charAt(at)) || "_.".indexOf(text.charAt(at)) >= 0)) {
        throw malformed(at, "',' or ')'");
      }
      return isNegative ? value.negate() : value;
    }

    private static BigInteger number(String digits, int radix) {
      return new BigInteger(digits.replace("_", ""), radix);
    }

    private static String shortened(BigInteger number) {
      return Name.shortened(number.toString());
    }

    private long[] shape(@Nullable Object value, int start) throws NpyException {
      String written = Name.shortened(text.substring(start, at).strip());
      if (!(value instanceof Tuple tuple)) {
        throw new NpyException(
            "has the shape %s in its header, where NumPy has a tuple%s"
                .formatted(
                    written,
                    value instanceof BigInteger number ? ": (" + shortened(number) + ",)" : ""));
      }
      long[] shape = new long[tuple.values.size()];
      if (shape.length > MAX_DIMENSIONS) {
        throw new NpyException("has " + shape.length + " dimensions, NumPy has at most 64");
      }
      for (int k = 0; k < shape.length; k++) {
        if (!(tuple.values.get(k) instanceof BigInteger dimension)) {
          throw new NpyException(
              "has the shape %s in its header, where NumPy has a tuple of integers"
                  .formatted(written));
        }
        if (dimension.signum() < 0) {
          throw new NpyException(
              "has the negative dimension " + shortened(dimension) + " in its shape");
        }
        if (dimension.compareTo(MOST) > 0) {
          throw new NpyException(
              "has the impossible dimension " + shortened(dimension) + " in its shape");
        }
        shape[k] = dimension.longValue();
      }
      return shape;
    }

    /** Makes an error that tells what must be at a place, and what is. */
    private NpyException malformed(int place, String expected) {
      String there =
          place >= text.length()
              ? "the end"
              : "'" + Character.toString(text.codePointAt(place)) + "'";
      return new NpyException(
          "has a malformed header (at its character %d: %s is expected, not %s)"
              .formatted(place, expected, there));
    }
  }
}
