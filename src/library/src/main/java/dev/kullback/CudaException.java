package dev.kullback;

import dev.kullback.internal.api.Constructors;

/**
 * Thrown when a CUDA call fails: device memory is exhausted, the device is lost, or a kernel could not be launched. The
 * call that throws it has released what it held. Its output may be partly written.
 *
 * @since 0.1.0
 */
public final class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The code {@code cudaErrorMemoryAllocation}. */
  private static final int OUT_OF_MEMORY = 2;

  static {
    Constructors.CUDA.set(CudaException::new);
  }

  /** Error code that the failed call returned. */
  private final int code;

  /**
   * Makes an exception for a failed CUDA call.
   *
   * @param code the {@code cudaError_t} that the call returned
   * @param message the call, the error's name and text, and what to do
   */
  CudaException(int code, String message) {
    super(message);
    this.code = code;
  }

  /** {@return the {@code cudaError_t} that the failed call returned} */
  public int code() {
    return code;
  }

  /** {@return whether the call failed because device memory is exhausted, which smaller batches or fewer threads may mend} */
  public boolean isOutOfMemory() {
    return code == OUT_OF_MEMORY;
  }
}
