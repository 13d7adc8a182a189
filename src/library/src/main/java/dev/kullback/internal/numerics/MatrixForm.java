package dev.kullback.internal.numerics;

/** What the matrices of a full batch are, and how they are laid out. */
public enum MatrixForm implements ScaleForm {
  SCALE_TRIL("scaleTril"),
  SCALE_TRIL_IGNORING_UPPER("scaleTril"),
  PACKED_SCALE_TRIL("packed"),
  PLAIN_PACKED_SCALE_TRIL("packed"),
  COVARIANCE("covariance"),
  PRECISION("precision"),
  PRECISION_CHOLESKY("precisionCholesky");

  private final String argument;

  MatrixForm(String argument) {
    this.argument = argument;
  }

  @Override
  public String argument() {
    return argument;
  }

  /** Whether the caller states L, each element to the bit. */
  public boolean isFactor() {
    return switch (this) {
      case SCALE_TRIL, SCALE_TRIL_IGNORING_UPPER, PLAIN_PACKED_SCALE_TRIL -> true;
      case PACKED_SCALE_TRIL, COVARIANCE, PRECISION, PRECISION_CHOLESKY -> false;
    };
  }

  /** Whether the caller states L, the diagonal perhaps by its logarithms. */
  public boolean isTriangular() {
    return isFactor() || this == PACKED_SCALE_TRIL;
  }

  /** Whether a Gaussian has D(D+1)/2 elements instead of D². */
  public boolean isPacked() {
    return this == PACKED_SCALE_TRIL || this == PLAIN_PACKED_SCALE_TRIL;
  }

  /** Elements of a Gaussian. */
  public long length(int dimension) {
    return isPacked() ? dimension * (dimension + 1L) / 2 : (long) dimension * dimension;
  }
}
