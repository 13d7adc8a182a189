package dev.kullback.cli.terminal;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class TextTest {
  @Test
  void escapesWhatSteersATerminal() {
    assertThat(Text.escape("a\t\r\n\u007f\u0085\u001b[0m"))
        .isEqualTo("a\\u0009\\u000d\\u000a\\u007f\\u0085\\u001b[0m");
    assertThat(Text.escape("\u202e\u2066\u061c\u200f\ufeff\u00ad\u2028\u2029"))
        .isEqualTo("\\u202e\\u2066\\u061c\\u200f\\ufeff\\u00ad\\u2028\\u2029");
    assertThat(Text.escape("\udbff\udb40\udc01\ud800")).isEqualTo("\\udbff\\udb40\\udc01\\ud800");
    assertThat(Text.escape("\\u202e é ü 漢 😀")).isEqualTo("\\u202e é ü 漢 😀");
  }

  @Test
  void cutsInTheMiddle() {
    assertThat(Text.fit("0123456789", 10)).isEqualTo("0123456789");
    assertThat(Text.fit("0123456789a", 10)).isEqualTo("012345…89a");
    assertThat(Text.fit("", 10)).isEmpty();
  }

  /** Neither pairs of surrogates nor escapes are torn. */
  @Test
  void cutsBetweenCharacters() {
    for (int length = 10; length < 40; length++) {
      assertThat(Text.fit("😀".repeat(100), length))
          .matches("(😀)*…(😀)+")
          .hasSizeBetween(length - 2, length);
      assertThat(Text.fit("\u202e".repeat(100), length))
          .matches("(\\\\u202e)*…(\\\\u202e)*")
          .hasSizeLessThanOrEqualTo(length);
    }
  }
}
