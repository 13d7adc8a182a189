package dev.kullback;

/**
 * Thrown where a Gaussian of a batch is invalid: a value is not finite, a scale is not positive, a matrix is not symmetric
 * or not positive definite, or a log-variance is too large to meet a full covariance.
 *
 * <p>The accessors tell what the message says, for a caller whose Gaussians have other names than their index: a row of a
 * file, or an id.
 *
 * @since 0.1.0
 */
public final class InvalidGaussianException extends IllegalArgumentException {
  private static final long serialVersionUID = 1;

  private final String argument;
  private final int gaussian;
  private final int element;
  private final String subscripts;
  private final String place;
  private final String reason;
  private final String advice;

  /**
   * Makes an exception with a message such as {@code std[7][3] (Gaussian 7, dimension 3) is 0.0; it must be …}.
   *
   * @param argument the name of the array, or of the batch
   * @param gaussian the Gaussian's index in the batch
   * @param element the index of the value at fault among the Gaussian's values in the array, or −1
   * @param subscripts that index in brackets, or nothing
   * @param place the same in words after a comma, or nothing
   * @param reason what is wrong, beginning with a verb
   * @param advice what follows the reason in the message: what to call in Java, or nothing
   */
  public InvalidGaussianException(
      String argument,
      int gaussian,
      int element,
      String subscripts,
      String place,
      String reason,
      String advice) {
    this.argument = argument;
    this.gaussian = gaussian;
    this.element = element;
    this.subscripts = subscripts;
    this.place = place;
    this.reason = reason;
    this.advice = advice;
  }

  /**
   * {@return the name of the array at fault, which is that of the factory's parameter: {@code mean}, {@code std},
   * {@code covariance} …; or {@code q} or {@code p} where the batch does not suit the other one}
   */
  public String argument() {
    return argument;
  }

  /** {@return the index of the Gaussian in its batch} */
  public int gaussian() {
    return gaussian;
  }

  /**
   * {@return the index of the value at fault among the Gaussian's values in the array, or −1 if it is not a single one}
   *
   * <p>For means and scales it is a dimension, for matrices {@code row·D + column}, and for packed factors it counts within
   * {@code D(D+1)/2}. A matrix that is not symmetric, or not positive definite, has no single value at fault.
   */
  public int element() {
    return element;
  }

  /** {@return what is wrong, without where: {@code is 0.0; it must be finite and > 0}} */
  public String reason() {
    return reason;
  }

  /** {@return what is wrong, without the Gaussian's index: {@code std[3] is 0.0; it must be finite and > 0}} */
  public String description() {
    return argument + subscripts + " " + reason;
  }

  /** {@return argument, Gaussian, element, reason and what to do} */
  @Override
  public String getMessage() {
    return message(gaussian);
  }

  /**
   * {@return the message as it is for another index of the Gaussian, such as its row in a file that makes several batches}
   *
   * @param index what stands for {@link #gaussian()}
   */
  public String message(long index) {
    return "%s[%d]%s (Gaussian %2$d%s) %s%s"
        .formatted(argument, index, subscripts, place, reason, advice);
  }
}
