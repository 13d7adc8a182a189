package dev.kullback.internal.formula;

/** Terms that near forms sum up, {@code square + H}, with H of {@link NearSeries} and w the weight of q's variance. */
public enum NearTerm {
  /** {@code square = d²/vp}. */
  KL,
  /** {@code square = d² (1/vq + 1/vp)}, with H of w = 0 and w = 1 together, {@code (vq − vp)²/(vq vp)}. */
  JEFFREYS,
  /** {@code square = d²/(w vq + (1 − w) vp)}. */
  CHERNOFF
}
