// The part of the CUDA runtime that the emulated device implements, with its true names, types and values.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KULLBACK_RUNTIME __attribute__((visibility("default")))

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorLaunchFailure = 719,
  cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrSingleToDoublePrecisionPerfRatio = 87
};

#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

KULLBACK_RUNTIME cudaError_t cudaGetDeviceCount(int *count);
KULLBACK_RUNTIME cudaError_t cudaGetDevice(int *device);
KULLBACK_RUNTIME cudaError_t cudaSetDevice(int device);
KULLBACK_RUNTIME cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
KULLBACK_RUNTIME cudaError_t cudaRuntimeGetVersion(int *version);
KULLBACK_RUNTIME cudaError_t cudaDriverGetVersion(int *version);
KULLBACK_RUNTIME cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
KULLBACK_RUNTIME cudaError_t cudaMalloc(void **memory, size_t size);
KULLBACK_RUNTIME cudaError_t cudaFree(void *memory);
KULLBACK_RUNTIME cudaError_t cudaHostAlloc(void **memory, size_t size, unsigned int flags);
KULLBACK_RUNTIME cudaError_t cudaFreeHost(void *memory);
KULLBACK_RUNTIME cudaError_t cudaHostRegister(void *memory, size_t size, unsigned int flags);
KULLBACK_RUNTIME cudaError_t cudaHostUnregister(void *memory);
KULLBACK_RUNTIME cudaError_t cudaMemcpyAsync(
    void *to, const void *from, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream);
KULLBACK_RUNTIME cudaError_t cudaMemcpy2DAsync(
    void *to,
    size_t toPitch,
    const void *from,
    size_t fromPitch,
    size_t width,
    size_t height,
    enum cudaMemcpyKind kind,
    cudaStream_t stream);
KULLBACK_RUNTIME cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
KULLBACK_RUNTIME cudaError_t cudaStreamDestroy(cudaStream_t stream);
KULLBACK_RUNTIME cudaError_t cudaStreamSynchronize(cudaStream_t stream);
KULLBACK_RUNTIME cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
KULLBACK_RUNTIME cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
KULLBACK_RUNTIME cudaError_t cudaEventDestroy(cudaEvent_t event);
KULLBACK_RUNTIME cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
KULLBACK_RUNTIME cudaError_t cudaEventSynchronize(cudaEvent_t event);
KULLBACK_RUNTIME cudaError_t cudaEventQuery(cudaEvent_t event);
KULLBACK_RUNTIME cudaError_t cudaDeviceSynchronize(void);
KULLBACK_RUNTIME cudaError_t cudaGetLastError(void);
KULLBACK_RUNTIME const char *cudaGetErrorName(cudaError_t error);
KULLBACK_RUNTIME const char *cudaGetErrorString(cudaError_t error);

#ifdef __cplusplus
}
#endif
