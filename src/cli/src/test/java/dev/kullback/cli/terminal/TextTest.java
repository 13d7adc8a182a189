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
  void cutsAPathBeforeTheFilesName() {
    assertThat(Text.name("/mnt/abc/d.npy", 14)).isEqualTo("/mnt/abc/d.npy");
    assertThat(Text.name("/mnt/abc/d.npy", 13)).isEqualTo("/mnt/a…/d.npy");
    assertThat(Text.name("/mnt/abc/d.npy", 8)).isEqualTo("/…/d.npy");
    assertThat(Text.name("/mnt/abc/d.npy", 3)).isEqualTo("…/d.npy");
    assertThat(Text.name("/mnt/abc/d.npz:g/h/mean", 20)).isEqualTo("/mnt…/d.npz:g/h/mean");
    assertThat(Text.name("/mnt/abc/D.NPZ:mean", 16)).isEqualTo("/mnt…/D.NPZ:mean");
    assertThat(Text.name("long-name-of-a-file.npy", 10)).isEqualTo("long-name-of-a-file.npy");
    assertThat(Text.name("/long-name-of-a-file.npy", 10)).isEqualTo("/long-name-of-a-file.npy");
    assertThat(Text.name("", 10)).isEmpty();
  }

  /** What is too long for a file's name loses its middle. */
  @Test
  void cutsOtherWordsInTheMiddle() {
    assertThat(Text.name("0123456789".repeat(30), 10)).isEqualTo("01234…6789");
    assertThat(Text.name("/a/" + "x".repeat(300), 10)).isEqualTo("/a/xx…xxxx");
  }

  /** Neither pairs of surrogates nor escapes are torn. */
  @Test
  void cutsBetweenCharacters() {
    for (int length = 10; length < 40; length++) {
      assertThat(Text.name("😀".repeat(300), length))
          .matches("(😀)*…(😀)+")
          .hasSizeBetween(length - 3, length);
      assertThat(Text.name("\u202e".repeat(300), length))
          .matches("(\\\\u202e)*…(\\\\u202e)*")
          .hasSizeLessThanOrEqualTo(length);
      assertThat(Text.name("/" + "😀\u202e".repeat(30) + "/x", length))
          .matches("/(😀\\\\u202e)*(😀)?…/x")
          .hasSizeLessThanOrEqualTo(length);
    }
  }
}
