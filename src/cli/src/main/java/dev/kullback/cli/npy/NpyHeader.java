package dev.kullback.cli.npy;

import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * The header of a .npy file: a Python dict literal with exactly the keys descr, fortran_order and
 * shape, in any order.
 *
 * @param descr the dtype as in the file: {@code <f4}, or the text of the list of a structured dtype
 */
public record NpyHeader(String descr, boolean fortranOrder, long[] shape) {

  public static NpyHeader parse(String text) throws NpyException {
    return new Parser(text).parse();
  }

  public String shapeText() {
    return Arrays.stream(shape)
        .mapToObj(Long::toString)
        .collect(Collectors.joining(", ", "(", shape.length == 1 ? ",)" : ")"));
  }

  private static final class Parser {
    private static final char END = '\0';
    private static final int MAX_DIMENSIONS = 64;
    private static final Pattern STRING = Pattern.compile("(?s)'[^']*'|\"[^\"]*\"");
    private static final Pattern TRUTH = Pattern.compile("True|False");
    private static final Pattern DIGITS = Pattern.compile("-?[0-9]*");

    private final String text;
    private int at;

    Parser(String text) {
      this.text = text;
    }

    NpyHeader parse() throws NpyException {
      @Nullable String descr = null;
      @Nullable Boolean fortranOrder = null;
      long @Nullable [] shape = null;
      expect('{');
      while (peek() != '}') {
        String key = string();
        expect(':');
        if (key.equals("descr") && descr == null) {
          descr = peek() == '[' || peek() == '(' ? bracketed() : string();
        } else if (key.equals("fortran_order") && fortranOrder == null) {
          fortranOrder = take(TRUTH).equals("True");
        } else if (key.equals("shape") && shape == null) {
          shape = shape();
        } else {
          throw new NpyException("has an unexpected or repeated key '" + key + "' in its header");
        }
        if (peek() != '}') {
          expect(',');
        }
      }
      expect('}');
      peek();
      if (at != text.length()) {
        throw malformed();
      }
      if (descr == null || fortranOrder == null || shape == null) {
        throw new NpyException("lacks descr, fortran_order or shape in its header");
      }
      return new NpyHeader(descr, fortranOrder, shape);
    }

    /** Goes to the next character that is not white space, and returns it. */
    private char peek() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
        at++;
      }
      return at < text.length() ? text.charAt(at) : END;
    }

    private void expect(char c) throws NpyException {
      if (peek() != c || at == text.length()) {
        throw malformed();
      }
      at++;
    }

    /** Takes what the pattern matches next. */
    private String take(Pattern pattern) throws NpyException {
      peek();
      Matcher token = pattern.matcher(text).region(at, text.length());
      if (!token.lookingAt()) {
        throw malformed();
      }
      at = token.end();
      return token.group();
    }

    private String string() throws NpyException {
      String quoted = take(STRING);
      return quoted.substring(1, quoted.length() - 1);
    }

    /** Takes the text of a list or tuple, which is shown in errors, never interpreted. */
    private String bracketed() throws NpyException {
      int start = at;
      int depth = 0;
      do {
        char c = peek();
        if (c == '\'' || c == '"') {
          string();
          continue;
        }
        if (at == text.length()) {
          throw malformed();
        }
        depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
        at++;
      } while (depth > 0);
      return text.substring(start, at);
    }

    private long[] shape() throws NpyException {
      LongStream.Builder dimensions = LongStream.builder();
      expect('(');
      while (peek() != ')') {
        dimensions.add(dimension());
        if (peek() != ')') {
          expect(',');
        }
      }
      expect(')');
      long[] shape = dimensions.build().toArray();
      if (shape.length > MAX_DIMENSIONS) {
        throw new NpyException("has " + shape.length + " dimensions, NumPy has at most 64");
      }
      return shape;
    }

    private long dimension() throws NpyException {
      String digits = take(DIGITS);
      if (digits.isEmpty() || digits.equals("-")) {
        throw malformed();
      }
      if (digits.startsWith("-")) {
        throw new NpyException("has the negative dimension " + digits + " in its shape");
      }
      try {
        return Long.parseLong(digits);
      } catch (NumberFormatException e) {
        throw new NpyException("has the impossible dimension " + digits + " in its shape");
      }
    }

    private NpyException malformed() {
      return new NpyException("has a malformed header (at its character " + at + ")");
    }
  }
}
