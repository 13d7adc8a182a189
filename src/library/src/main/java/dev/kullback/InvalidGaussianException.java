package dev.kullback;

import dev.kullback.internal.api.Constructors;
import java.util.OptionalInt;

/**
 * Thrown where a Gaussian of a batch is invalid: a value is not finite, a scale is not positive, a matrix is not symmetric
 * or not positive definite, a log-variance is too large to meet a full covariance, or a covariance is singular where an inverse is needed.
 *
 * <p>The accessors tell what the message says, for a caller whose Gaussians have other names than their index: a row of a
 * file, or an id. They do not tell the advice that some messages end in, which names what to call in Java.
 *
 * @since 0.1.0
 */
public final class InvalidGaussianException extends IllegalArgumentException {
  private static final long serialVersionUID = 1;

  static {
    Constructors.INVALID_GAUSSIAN.set(InvalidGaussianException::new);
  }

  private final String argument;
  private final int gaussian;
  private final int element;
  private final String reason;

  /**
   * Makes an exception with a message such as {@code std[7][3] (Gaussian 7, dimension 3) is 0.0; it must be …}.
   *
   * @param element −1 if no single value is at fault
   * @param subscripts of the element within its Gaussian, in brackets, or nothing
   * @param place the same in words after a comma, or nothing
   * @param reason begins with a verb
   * @param advice follows the reason, or nothing
   */
  private InvalidGaussianException(
      String argument,
      int gaussian,
      int element,
      String subscripts,
      String place,
      String reason,
      String advice) {
    super(
        "%s[%d]%s (Gaussian %2$d%s) %s%s"
            .formatted(argument, gaussian, subscripts, place, reason, advice));
    this.argument = argument;
    this.gaussian = gaussian;
    this.element = element;
    this.reason = reason;
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
   * {@return the index of the value at fault among the Gaussian's values in the array, or nothing if it is not a single one}
   *
   * <p>For means and scales it is a dimension, for matrices {@code row·D + column}, and for packed factors it counts within
   * {@code D(D+1)/2}. A matrix that is not symmetric, or not positive definite, has no single value at fault.
   */
  public OptionalInt element() {
    return element < 0 ? OptionalInt.empty() : OptionalInt.of(element);
  }

  /** {@return what is wrong, without where: {@code is 0.0; it must be finite and > 0}} */
  public String reason() {
    return reason;
  }
}
