package dev.kullback;

/**
 * Thrown when a CUDA call fails: device memory is exhausted, the device is lost, or a kernel could not be launched. The
 * call that throws it has released what it held. Its output may be partly written.
 *
 * @since 0.1.0
 */
public final class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The code that {@code cudaMalloc} returns when device memory is exhausted. */
  public static final int OUT_OF_MEMORY = 2;

  /** Error code that the failed call returned. */
  private final int code;

  /**
   * Makes an exception for a failed CUDA call.
   *
   * @param code the {@code cudaError_t} that the call returned
   * @param message the call, the error's name and text, and what to do
   */
  public CudaException(int code, String message) {
    super(message);
    this.code = code;
  }

  /** {@return the {@code cudaError_t} of the failed call, such as {@link #OUT_OF_MEMORY}} */
  public int code() {
    return code;
  }
}
