package dev.kullback.testing;

/** Chooses among a test's many cases: one in four for the short run, the others for a method with the tag {@code long}. */
public enum Share {
  SOME,
  OTHERS;

  /**
   * Whether it has a case.
   *
   * @param number sums of the places in nested lists give each element of one to some of another
   */
  public boolean has(int number) {
    return (number % 4 == 0) == (this == SOME);
  }
}
