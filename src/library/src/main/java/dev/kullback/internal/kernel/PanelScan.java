package dev.kullback.internal.kernel;

import java.lang.foreign.MemorySegment;

/**
 * Sums the terms of one query and many references in float: what bounds the divergences of an index, and decides none. Panels hold {@link
 * #LANES} references each, {@code [h][2][LANES]} floats, little endian and not aligned: m̂, a mean, and then p̂ ≥ 0, a precision.
 */
public interface PanelScan {
  /** References of a panel. */
  int LANES = 16;

  /**
   * Stores {@code S_j = Σ_h [(x̂ − m̂_j)² + v̂] p̂_j}, or, in reverse, {@code S_j = Σ_h [(x̂ − m̂_j)² + 1/p̂_j] p̂_x} where 1/p̂ is at most 2¹²⁶.
   * Terms are not negative, so sums of some are lower bounds: once each of a panel's sums exceeds its {@code most}, any of its partial sums
   * that do may be stored. The panels of which some sum does not exceed its {@code most} are kept. Sums are within {@code (d + 8)·2⁻²⁴} of
   * the exact ones, relatively, but for over- and underflow.
   *
   * @param query {@code [h][2]}: x̂ and v̂, or x̂ and p̂_x
   * @param d number of dimensions h
   * @param at byte of the segment at which the first panel begins
   * @param count number of panels
   * @param most for each reference; that of a NaN or ∞ wants its whole sum
   * @param kept takes the numbers of the panels that are kept, ascending
   * @return how many panels are kept
   */
  int sums(
      float[] query,
      boolean reverse,
      int d,
      MemorySegment panels,
      long at,
      int count,
      float[] most,
      float[] sum,
      int[] kept);

  /** Queries of a group of {@link #sumsOfAll}. */
  int GROUP = 8;

  /**
   * Stores the whole sums of several queries, to the bits of {@link #sums}: that of query i and reference j at {@code sum[i·stride + j]}.
   *
   * @param queries from {@code first} on {@code [group][h][2][GROUP]}: x̂ and v̂, or x̂ and p̂_x
   * @param groups number of groups
   */
  @SuppressWarnings("TooManyParameters") // arrays with where they begin
  void sumsOfAll(
      float[] queries,
      int first,
      int groups,
      boolean reverse,
      int d,
      MemorySegment panels,
      long at,
      int count,
      float[] sum,
      int stride);

  /**
   * Finds the panels, of sums from {@code at} on and numbers of references from {@code first} on, of which some sum less its reference's number
   * does not exceed a limit.
   *
   * @param kept takes the numbers of these panels, ascending
   * @return how many there are
   */
  int keep(float[] sum, int at, float[] rest, int first, int count, float limit, int[] kept);
}
