package dev.kullback.internal.verify;

import java.util.List;

/**
 * A kind of batches: how q and p state covariances, how far apart their Gaussians are, and whether they are of double.
 *
 * @param isDoubleQ whether q is of double, or both are
 */
record Kind(Form form, Spread spread, boolean isDoubleQ, boolean isDoubleP) {
  /** Kinds each of which has code of its own somewhere. Diagonal ones state their scales in each way in turn. */
  static final List<Kind> ALL =
      List.of(
          floats(Form.DIAGONAL, Spread.WIDE),
          floats(Form.DIAGONAL, Spread.ALIKE),
          floats(Form.DIAGONAL, Spread.NEAR),
          doubles(Form.DIAGONAL, Spread.WIDE),
          doubles(Form.DIAGONAL, Spread.NEAR),
          new Kind(Form.DIAGONAL, Spread.WIDE, false, true),
          floats(Form.FULL, Spread.WIDE),
          doubles(Form.COVARIANCE, Spread.WIDE),
          doubles(Form.FULL, Spread.NEAR),
          floats(Form.DIAGONAL_FULL, Spread.WIDE),
          floats(Form.FULL_DIAGONAL, Spread.WIDE),
          doubles(Form.SHARED_FULL, Spread.WIDE),
          floats(Form.LOW_RANK, Spread.WIDE),
          doubles(Form.LOW_RANK, Spread.WIDE),
          doubles(Form.LOW_RANK, Spread.NEAR));

  /** How batches state covariances. */
  enum Form {
    DIAGONAL("diagonal"),
    FULL("full"),
    COVARIANCE("full covariances"),
    DIAGONAL_FULL("diagonal and full"),
    FULL_DIAGONAL("full and diagonal"),
    SHARED_FULL("full that share a matrix"),
    LOW_RANK("low rank");

    private final String title;

    Form(String title) {
      this.title = title;
    }

    boolean isFull(boolean asQ) {
      return this != DIAGONAL && this != LOW_RANK && this != (asQ ? DIAGONAL_FULL : FULL_DIAGONAL);
    }

    /** Whether q and p are of one form. */
    boolean isOne() {
      return this != DIAGONAL_FULL && this != FULL_DIAGONAL;
    }
  }

  /** How far apart Gaussians are. */
  enum Spread {
    WIDE(1),

    /** Float's usual chunks settle some of these entries, shorter ones most. */
    ALIKE(0.4),

    /** Float's kernels err by more than their contract on some of these entries, which their bound must tell. */
    CLOSE(0.05),

    /** Near duplicates of one Gaussian. */
    NEAR(1e-4),

    /** Nearer ones of several, which are unlike. */
    CLUSTERS(1e-6);

    final double size;

    Spread(double size) {
      this.size = size;
    }
  }

  private static Kind floats(Form form, Spread spread) {
    return new Kind(form, spread, false, false);
  }

  private static Kind doubles(Form form, Spread spread) {
    return new Kind(form, spread, true, true);
  }

  /** Whether its results have double's contract. */
  boolean isDouble() {
    return isDoubleQ || isDoubleP;
  }

  /** Whether q and p are of one form and precision. */
  boolean isOne() {
    return form.isOne() && isDoubleQ == isDoubleP;
  }

  boolean isDiagonal() {
    return form == Form.DIAGONAL;
  }

  boolean isLowRank() {
    return form == Form.LOW_RANK;
  }

  /** Whether a side's covariances are full. */
  boolean isFull(boolean asQ) {
    return form.isFull(asQ);
  }

  @Override
  public String toString() {
    String precision =
        isDoubleQ == isDoubleP
            ? (isDoubleQ ? "double" : "float")
            : (isDoubleQ ? "double and float" : "float and double");
    return "%s %s%s"
        .formatted(
            precision,
            form.title,
            switch (spread) {
              case WIDE -> "";
              case ALIKE -> ", alike";
              case CLOSE -> ", close";
              case NEAR -> ", near duplicates";
              case CLUSTERS -> ", clusters of near duplicates";
            });
  }
}
