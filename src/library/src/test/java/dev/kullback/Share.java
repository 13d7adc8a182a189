package dev.kullback;

/** Which of a test's many cases run: one in four in the short run, the others in a method with the tag {@code long}. */
enum Share {
  SOME,
  OTHERS;

  /**
   * Whether it has a case.
   *
   * @param number sums of the places in nested lists give each element of one to some of another
   */
  boolean has(int number) {
    return (number % 4 == 0) == (this == SOME);
  }
}
