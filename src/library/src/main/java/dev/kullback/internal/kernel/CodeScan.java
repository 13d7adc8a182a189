package dev.kullback.internal.kernel;

import java.lang.foreign.MemorySegment;

/**
 * Sums the terms of one query and many references that are given by codes: a word of 32 bits for two dimensions of a reference, a
 * quarter of what floats take. It sums KL's terms for the decoded reference; the caller bounds the error of coding.
 *
 * <p>A word has four bytes, from the highest: m₁, m₀, p₁, p₀. Numbers of the dimensions 2w and 2w + 1 are decoded so that each takes two
 * instructions at most, and lower bytes stand behind the point of higher ones:
 *
 * <pre>
 * m̃₀ = (float) (int) (word << 8)     p̃₀ = word & 0xFF
 * m̃₁ = (float) (int) word            p̃₁ = word & 0xFF00
 * </pre>
 *
 * Panels hold {@link #LANES} references each, little endian and not aligned: two rows of floats, r and l of each reference, and then {@code
 * [words][LANES]} words.
 */
public interface CodeScan {
  /** References of a panel: two panels of {@link PanelScan}. */
  int LANES = 32;

  /** Rows of a panel before the words. */
  int LEADING = 2;

  /** Numbers that a query has for each dimension. */
  int TERMS = 3;

  /**
   * Stores {@code S_j = Σ_h [(t_h − k_h m̃_h)² + s_h] p̃_h}, in float, and the most with which a reference counts, {@code (√max(0, base + logs·l_j)
   * + r_j)² · factor + more}; no sum exceeds NaN. Terms are not negative, so sums of some are lower bounds: once each of a panel's sums exceeds its most, any of
   * its partial sums that do may be stored. The panels of which some sum does not exceed its most are kept. Sums are within {@code
   * (2·words + 8)·2⁻²⁴} of the exact ones, relatively, but for underflow; the caller sees to it that none overflows.
   *
   * @param terms {@code [2·words][TERMS]}: t, −k and s
   * @param at byte of the segment at which the first panel begins
   * @param count number of panels
   * @param most takes the most of each reference
   * @param sum takes the sums
   * @param kept takes the numbers of the panels that are kept, ascending
   * @return how many panels are kept
   */
  int sums(
      float[] terms,
      int words,
      Limit limit,
      MemorySegment panels,
      long at,
      int count,
      float[] most,
      float[] sum,
      int[] kept);

  /** Numbers of a query from which follows the most that a reference's sum may be. */
  final class Limit {
    public float base;

    /** 1, or 0 where l does not count. */
    public float logs = 1;

    public float factor;
    public float more;
  }

  /** Decodes the mean of the first dimension of a word. */
  static float firstMean(int word) {
    return word << 8;
  }

  /** Decodes the mean of the second dimension of a word. */
  static float secondMean(int word) {
    return word;
  }

  /** Decodes the precision of the first dimension of a word. */
  static float firstPrecision(int word) {
    return word & 0xFF;
  }

  /** Decodes the precision of the second dimension of a word. */
  static float secondPrecision(int word) {
    return word & 0xFF00;
  }

  /** Returns the bytes of a panel. */
  static long panelBytes(int words) {
    return (long) Integer.BYTES * LANES * (LEADING + words);
  }
}
