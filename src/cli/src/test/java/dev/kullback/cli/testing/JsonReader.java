package dev.kullback.cli.testing;

import dev.kullback.cli.terminal.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads JSON strictly, independently of {@link Json}: RFC 8259, and no key twice. */
public final class JsonReader {
  private static final Pattern SPACE = Pattern.compile("[ \\t\\r\\n]*");
  private static final Pattern NUMBER =
      Pattern.compile("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?");
  private static final Pattern STRING =
      Pattern.compile("\"((?:[^\"\\\\\\x00-\\x1f]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4})*)\"");
  private static final Pattern ESCAPE = Pattern.compile("\\\\(u(....)|.)");

  private final Matcher at;
  private int position;

  private JsonReader(String text) {
    at = SPACE.matcher(text);
  }

  /** Returns values of the kinds that Json writes, but every number as a Double. */
  public static Object read(String text) {
    JsonReader reader = new JsonReader(text);
    Object value = reader.value();
    if (reader.position != text.length()) {
      throw new IllegalArgumentException("more at " + reader.position + " of " + text);
    }
    return value;
  }

  private boolean take(Pattern pattern) {
    at.usePattern(pattern).region(position, at.regionEnd());
    boolean found = at.lookingAt();
    position = found ? at.end() : position;
    return found;
  }

  /** Takes a word and the space around it. */
  private boolean take(String word) {
    take(SPACE);
    boolean found = take(Pattern.compile(Pattern.quote(word)));
    take(SPACE);
    return found;
  }

  private void require(boolean condition) {
    if (!condition) {
      throw new IllegalArgumentException("no JSON at " + position);
    }
  }

  private String string() {
    require(take(STRING));
    return ESCAPE
        .matcher(at.group(1))
        .replaceAll(escape ->
            Matcher.quoteReplacement(
                escape.group(2) != null
                    ? "" + (char) Integer.parseInt(escape.group(2), 16)
                    : switch (escape.group(1)) {
                      case "b" -> "\b";
                      case "f" -> "\f";
                      case "n" -> "\n";
                      case "r" -> "\r";
                      case "t" -> "\t";
                      default -> escape.group(1);
                    }));
  }

  private Object value() {
    if (take("{")) {
      Map<String, Object> map = new LinkedHashMap<>();
      boolean more = !take("}");
      while (more) {
        String key = string();
        require(take(":") && !map.containsKey(key));
        map.put(key, value());
        more = take(",");
        require(more || take("}"));
      }
      return map;
    }
    if (take("[")) {
      List<Object> list = new ArrayList<>();
      boolean more = !take("]");
      while (more) {
        list.add(value());
        more = take(",");
        require(more || take("]"));
      }
      return list;
    }
    Object value;
    if (take("null")) {
      value = null;
    } else if (take("true")) {
      value = true;
    } else if (take("false")) {
      value = false;
    } else if (take(NUMBER)) {
      value = Double.parseDouble(at.group());
    } else {
      value = string();
    }
    take(SPACE);
    return value;
  }
}
