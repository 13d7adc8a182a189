package dev.kullback.internal.cuda;

/** Failure of a CUDA call, which {@link CudaDevice} turns into the exception that its user gave it. */
final class CudaFailure extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Status of {@code cudaMalloc} when device memory is exhausted. */
  static final int OUT_OF_MEMORY = 2;

  private final int code;

  CudaFailure(int code, String message) {
    super(message);
    this.code = code;
  }

  /** Returns the {@code cudaError_t}. */
  int code() {
    return code;
  }
}
