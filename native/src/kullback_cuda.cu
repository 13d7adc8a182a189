// The kernels on a CUDA device.
#include <cuda_runtime.h>

#include <utility>

#include "full.h"
#include "reduce.h"
#include "refine.h"

namespace kullback {

struct DeviceBlock {
  int64_t index;

  template <class T>
  struct Own {
    T value = T();

    __device__ explicit Own(DeviceBlock &) {}
    __device__ T &operator[](int) { return value; }
  };

  template <class F>
  __device__ void lanes(const F &f) {
    f((int)threadIdx.x);
  }

  template <class F>
  __device__ void each(const F &f) {
    f((int)threadIdx.x);
    __syncthreads();
  }

  template <class T>
  __device__ T &shared() {
    extern __shared__ __align__(16) char memory[];
    return *reinterpret_cast<T *>(memory);
  }

  template <class T>
  __device__ void reduce(Own<T> &own) {
    for (int mask = LANES / 2; mask > 0; mask /= 2) {
      own.value = own.value + exchange(own.value, mask);
    }
  }

  template <class T>
  __device__ void sumInOrder(Own<T> &own, int n, int width) {
    int first = (int)threadIdx.x % LANES & -width;
    for (int lane = 0; lane < n && lane < width; lane++) {
      own.value.total += __shfl_sync(0xffffffff, own.value.part, first + lane);
    }
  }

  // The value of the lane whose number differs in the bits of the mask.
  template <class T>
  __device__ static T exchange(const T &value, int mask) {
    static_assert(sizeof(T) % 4 == 0, "whole words");
    int words[sizeof(T) / 4];
    memcpy(words, &value, sizeof words);
    KB_UNROLL for (int n = 0; n < (int)(sizeof(T) / 4); n++) words[n] = __shfl_xor_sync(0xffffffff, words[n], mask);
    T other;
    memcpy(&other, words, sizeof words);
    return other;
  }

  template <class F>
  __device__ bool isOpen(const F &f, int width) {
    int open = f((int)threadIdx.x);
    for (int mask = width; mask < LANES; mask *= 2) open |= __shfl_xor_sync(0xffffffff, open, mask);
    return open != 0;
  }

  __device__ int add(int &counter, int n) { return atomicAdd(&counter, n); }

  template <class V, class T>
  __device__ void copy(int, V *to, const T *from) {
    static_assert(sizeof(V) == 16, "cp.async copies 16 bytes past the L1 cache");
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  }

  __device__ void commit(int) { asm volatile("cp.async.commit_group;" ::: "memory"); }

  template <int PENDING>
  __device__ void wait(int) {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
  }
};

// Blocks on a multiprocessor at least; left to itself the compiler spills for more.
template <class Body>
constexpr int RESIDENT = 2;

template <>
constexpr int RESIDENT<Product<4, 4, false>> = 1;

template <>
constexpr int RESIDENT<Product<2, 4, true>> = 1;

template <class P>
constexpr int RESIDENT<Refine<DiagonalPairs<P, NearForm<double>>>> = 1;

template <>
constexpr int RESIDENT<Refine<FullPairs>> = 1;

// These are to run beside a product, whose 224 registers a thread on sm_90 leave them 32. Other chips may have no more than 1536 threads.
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
constexpr int REDUCING = 8;
#else
constexpr int REDUCING = 6;
#endif

template <>
constexpr int RESIDENT<Select> = REDUCING;

template <>
constexpr int RESIDENT<Fold> = REDUCING;

template <class Body>
__global__ void __launch_bounds__(THREADS, RESIDENT<Body>) kernel(const __grid_constant__ Body body, int64_t first) {
  DeviceBlock block{first + blockIdx.x};
  body(block);
}

inline cudaError_t ask(int ordinal, Device &d) {
  const std::pair<int *, cudaDeviceAttr> attributes[] = {
      {&d.major, cudaDevAttrComputeCapabilityMajor},
      {&d.minor, cudaDevAttrComputeCapabilityMinor},
      {&d.multiprocessors, cudaDevAttrMultiProcessorCount},
      {&d.floatRate, cudaDevAttrSingleToDoublePrecisionPerfRatio}};
  cudaError_t error = cudaSuccess;
  for (auto [to, attribute] : attributes) {
    if (error == cudaSuccess) {
      error = cudaDeviceGetAttribute(to, attribute, ordinal);
    }
  }
  return error;
}

// The calling thread's device, asked once a thread: every call needs it several times. Without one nothing will be launched.
inline Device device() {
  thread_local int known = -1;
  thread_local Device d;
  int ordinal = -1;
  Device asked;
  if (cudaGetDevice(&ordinal) == cudaSuccess && ordinal != known && ask(ordinal, asked) == cudaSuccess) {
    d = asked;
    known = ordinal;
  }
  if (ordinal < 0 || ordinal != known) {
    cudaGetLastError();
    return {0, 0, 1, 0};
  }
  return d;
}

struct Launch {
  cudaStream_t stream;
  int32_t status = 0;

  explicit Launch(void *stream) : stream((cudaStream_t)stream) {}

  template <class T>
  T *reach(const void *memory, int64_t) {
    return (T *)memory;
  }

  template <class Body>
  void operator()(const Body &body) {
    constexpr int64_t MOST = 0x7fffffff;
    constexpr int64_t shared = sharedBytes<Body>(nullptr);
    static DeviceSet asked;
    int ordinal = -1;
    int64_t blocks = body.blocks();
    if (shared > 0 && status == 0) {
      status = cudaGetDevice(&ordinal);
      if (status == 0 && !asked.has(ordinal)) {
        status = ask<Body>(shared);
        if (status == 0) {
          asked.add(ordinal);
        }
      }
    }
    for (int64_t first = 0; first < blocks && status == 0; first += MOST) {
      unsigned count = (unsigned)(blocks - first < MOST ? blocks - first : MOST);
      void *arguments[] = {(void *)&body, &first};
      status = cudaLaunchKernel((const void *)kernel<Body>, dim3(count), dim3(THREADS), arguments, shared, stream);
    }
    if (status != 0) {
      asked.remove(ordinal); // the device may have been reset
      cudaGetLastError(); // reported; not again by an unrelated call
    }
  }

  // For so much shared memory, beyond 48 KiB, too; and as much as there is rather than cache, so that blocks of two kernels, of which
  // each alone might have multiprocessors divided in another way, can run side by side.
  template <class Body>
  static int32_t ask(int64_t shared) {
    const void *function = (const void *)kernel<Body>;
    int32_t refused = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    return refused != 0 ? refused
                        : cudaFuncSetAttribute(
                              function, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  }
};

} // namespace kullback

#include "launchers.h"

#define KB_TEXT_(x) #x
#define KB_TEXT(x) KB_TEXT_(x)

int32_t kullback_cuda_abi_version(void) { return KULLBACK_CUDA_ABI_VERSION; }

const char *kullback_cuda_description(void) {
  return "CUDA " KB_TEXT(__CUDACC_VER_MAJOR__) "." KB_TEXT(__CUDACC_VER_MINOR__)
#ifdef KULLBACK_CUDA_ARCHITECTURES
      ", " KULLBACK_CUDA_ARCHITECTURES
#endif
      ;
}

int32_t kullback_cuda_device_name(int32_t device, char *name, int64_t capacity) {
  if (name == nullptr || capacity < 1) {
    return KULLBACK_CUDA_INVALID;
  }
  cudaDeviceProp properties;
  kullback::Device d;
  cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) {
    error = kullback::ask(device, d);
  }
  if (error != cudaSuccess) {
    cudaGetLastError();
    return error;
  }
  kullback::describe(properties.name, d, name, capacity);
  return 0;
}
