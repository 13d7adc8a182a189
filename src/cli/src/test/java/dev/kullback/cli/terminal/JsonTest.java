package dev.kullback.cli.terminal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.cli.testing.JsonReader;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
  @Test
  void writesWhatAStrictReaderReads() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("", null);
    map.put("a \"b\\", List.of());
    map.put("c", Map.of());
    map.put("d", List.of(Map.of("x", List.of(1.0, -2.0)), true, false));
    for (int page = 0; page < 0x100; page++) {
      StringBuilder all = new StringBuilder();
      for (int c = 0; c < 0x100; c++) {
        all.append((char) (page << 8 | c));
      }
      map.put(all + "😀\\u0041", "" + page);
    }
    String text = Json.of(map);
    assertThat(text).doesNotContainPattern("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202e]");
    assertThat(JsonReader.read(text)).isEqualTo(map);
  }

  @Test
  void numbers() {
    for (double value :
        new double[] {0, -0.0, 1, 1e-5, 1e7, 1e300, Double.MIN_VALUE, Double.MAX_VALUE, -1 / 3.0}) {
      assertThat(JsonReader.read(Json.of(value))).isEqualTo(value);
    }
    assertThat(Json.of(Long.MAX_VALUE)).isEqualTo("9223372036854775807");
    assertThat(Json.of(-3)).isEqualTo("-3");
    assertThat(Json.of(Double.POSITIVE_INFINITY)).isEqualTo("\"Infinity\"");
    assertThat(Json.of(Double.NEGATIVE_INFINITY)).isEqualTo("\"-Infinity\"");
    assertThat(Json.of(Arrays.asList(Double.NaN, null))).isEqualTo("[null, null]");
    assertThat(Json.of(Path.of("a", "b"))).isEqualTo("\"a/b\"");
  }

  @Test
  void theReaderIsStrict() {
    for (String text :
        new String[] {
          "",
          "{",
          "[1,]",
          "{\"a\": 1,}",
          "{a: 1}",
          "{\"a\": 1, \"a\": 2}",
          "01",
          "1.",
          "+1",
          "NaN",
          "Infinity",
          "'a'",
          "\"\n\"",
          "\"\\x\"",
          "\"\\u12\"",
          "1 2",
          "nul"
        }) {
      assertThatThrownBy(() -> JsonReader.read(text)).isInstanceOf(IllegalArgumentException.class);
    }
  }
}
