package dev.kullback.internal.cuda;

/** A CUDA call failed. {@link CudaDevice} turns it into what its user throws. */
final class CudaFailure extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** What {@code cudaMalloc} returns when device memory is exhausted. */
  static final int OUT_OF_MEMORY = 2;

  private final int code;

  CudaFailure(int code, String message) {
    super(message);
    this.code = code;
  }

  /** The {@code cudaError_t}. */
  int code() {
    return code;
  }
}
