package dev.kullback;

/**
 * A CUDA call failed: out of device memory, a device lost, a kernel that could not be launched. The call that throws it has
 * released what it held; its output may be partly written.
 */
public final class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** What {@code cudaMalloc} returns when device memory is exhausted. */
  public static final int OUT_OF_MEMORY = 2;

  private final int code;

  /**
   * A failure of a CUDA call.
   *
   * @param code its {@code cudaError_t}
   * @param message the call, the error's name and text, and what to do
   */
  public CudaException(int code, String message) {
    super(message);
    this.code = code;
  }

  /** The {@code cudaError_t}, such as {@link #OUT_OF_MEMORY}. */
  public int code() {
    return code;
  }
}
