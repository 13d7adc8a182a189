package dev.kullback.internal.verify;

/** Kinds of batches, each of which has code of its own somewhere. Diagonal ones state their scales in each way in turn. */
enum Kind {
  FLOAT("float", false),
  ALIKE_FLOAT("float alike", false),
  NEAR_FLOAT("float near-duplicates", false),
  DOUBLE("double", true),
  NEAR_DOUBLE("double near-duplicates", true),
  MIXED("float and double", true),
  FULL("full float", false),
  COVARIANCE("full double covariances", true),
  NEAR_FULL("full double near-duplicates", true),
  DIAGONAL_FULL("float diagonal and full", false),
  FULL_DIAGONAL("float full and diagonal", false),
  SHARED_FULL("full double that share a matrix", true),
  LOW_RANK_FLOAT("float low rank", false),
  LOW_RANK("double low rank", true);

  final String title;
  final boolean isDouble;

  Kind(String title, boolean isDouble) {
    this.title = title;
    this.isDouble = isDouble;
  }

  boolean isNear() {
    return this == NEAR_FLOAT || this == NEAR_DOUBLE || this == NEAR_FULL;
  }

  boolean isLowRank() {
    return this == LOW_RANK_FLOAT || this == LOW_RANK;
  }

  boolean isFull(boolean asQ) {
    return switch (this) {
      case FULL, COVARIANCE, NEAR_FULL, SHARED_FULL -> true;
      case DIAGONAL_FULL -> !asQ;
      case FULL_DIAGONAL -> asQ;
      default -> false;
    };
  }
}
