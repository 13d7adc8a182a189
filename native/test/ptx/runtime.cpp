// The part of the CUDA runtime that the library and check.cpp call, over the interpreter: what is queued is done at once. Linked into the
// checker, its functions come before those of libcudart. Settings come from the environment:
//
//     PTX_FILE             the module
//     PTX_DEVICE           compute capability, 9.0 by default
//     PTX_MULTIPROCESSORS  1 by default, so that few tiles keep all busy
//     PTX_SEED             the order of blocks, warps and lanes; 0, the default, for none at random
//     PTX_UNUSED           parts of the names of kernels that need not run
//     PTX_STOP             ends at the first finding
//     PTX_COUNTS           prints the kernels' counts of instructions
//
// The process ends with 70 if anything was found, or if a kernel has not run. Between two events as many milliseconds pass as thousands
// of instructions were run by warps.
#include <cuda_runtime_api.h>
#include <malloc.h>

#include <mutex>

#include "parser.h"

namespace {

using namespace ptx;

std::recursive_mutex mutex; // as calls may come from several threads
using Lock = std::lock_guard<std::recursive_mutex>;

// Memory that is freed is kept for the next allocation: the system would clear it again, page by page.
[[maybe_unused]] const int kept[] = {mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, INT_MAX)};

uint64_t instructions = 0;
thread_local cudaError_t lastError = cudaSuccess;

cudaError_t failed(cudaError_t e) { return lastError = e; }

struct Chip {
  int major = 9, minor = 0;
  int multiprocessors = (int)setting("PTX_MULTIPROCESSORS", 1);

  Chip() {
    const char *name = getenv("PTX_DEVICE");
    if (name != nullptr && sscanf(name, "%d.%d", &major, &minor) != 2) {
      stop("PTX_DEVICE is to be like 9.0");
    }
  }

  bool isFastInDouble() const { return minor == 0 && major >= 8 && major <= 10; }
  size_t mostShared() const { return (!isFastInDouble() ? 99 : major == 8 ? 163 : 227) << 10; }
};

const Chip &chip() {
  static const Chip c;
  return c;
}

struct Function {
  std::string name;
  Kernel *kernel = nullptr;
  size_t shared = 48 << 10;
};

// By the host's function; filled before main.
std::map<const void *, Function> &functions() {
  static auto &all = *new std::map<const void *, Function>;
  return all;
}

// Ends the process.
void summarise() {
  uint64_t found = state().findings.size();
  const char *unused = getenv("PTX_UNUSED");
  std::string words = unused == nullptr ? "" : unused;
  for (auto &[host, f] : functions()) {
    if (setting("PTX_COUNTS", 0) && f.kernel != nullptr && f.kernel->launches > 0) {
      printf("PTX: %12lu instructions of warps in %6lu launches of %s\n", f.kernel->instructions, f.kernel->launches, f.name.c_str());
    }
    bool isExpected = false;
    for (size_t from = 0; from < words.size();) {
      size_t to = std::min(words.find(' ', from), words.size());
      isExpected |= f.name.find(words.substr(from, to - from)) != std::string::npos;
      from = to + 1;
    }
    if (unused != nullptr && !isExpected && f.kernel == nullptr) {
      printf("PTX: has not run: %s\n", f.name.c_str());
      found++;
    }
  }
  for (auto &[place, count] : state().findings) printf("PTX: %lu times: %s\n", count, place.c_str());
  printf("PTX: %lu findings\n", found);
  if (found > 0) {
    fflush(stdout);
    _Exit(70);
  }
}

Function *function(const void *host) {
  auto f = functions().find(host);
  if (f == functions().end()) {
    return nullptr;
  }
  if (f->second.kernel == nullptr) {
    static const Parser &module = *[] {
      const char *path = getenv("PTX_FILE");
      atexit(summarise);
      return new Parser(path == nullptr ? "" : path);
    }();
    for (auto &kernel : module.kernels) {
      if (kernel->name == f->second.name) {
        f->second.kernel = kernel.get();
      }
    }
    if (f->second.kernel == nullptr) {
      stop("the module has no " + f->second.name);
    }
  }
  return &f->second;
}

// Whether the host may copy from or to there, and that what it wrote is initialised.
bool isWithin(const void *memory, size_t bytes, bool isWrite) {
  Allocation *a = state().find((uintptr_t)memory, bytes);
  if (a != nullptr && isWrite) {
    size_t first = (uintptr_t)memory - a->at();
    while ((first | bytes) >> a->shift << a->shift != (first | bytes)) a->halveCells();
    for (size_t n = first >> a->shift; n < (first + bytes) >> a->shift; n++) a->cells[n].written = std::max(a->cells[n].written, OF_HOST);
  }
  return a != nullptr;
}

struct Event {
  uint64_t at = 0;
};

} // namespace

extern "C" {

// ---- Kernels ----

void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *, int *) {
  functions()[host].name = name;
}
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void *) { stop("launched by <<<>>>"); }
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *) { stop("launched by <<<>>>"); }
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *) { stop("launched by <<<>>>"); }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t) { stop("launched by <<<>>>"); }

cudaError_t cudaFuncSetAttribute(const void *host, cudaFuncAttribute attribute, int value) {
  Lock lock(mutex);
  Function *f = function(host);
  if (f == nullptr) {
    return failed(cudaErrorInvalidDeviceFunction);
  }
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if ((size_t)value > chip().mostShared()) {
      return failed(cudaErrorInvalidValue);
    }
    f->shared = value;
  }
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *host, dim3 blocks, dim3 threads, void **arguments, size_t shared, cudaStream_t) {
  Lock lock(mutex);
  Function *f = function(host);
  if (f == nullptr) {
    return failed(cudaErrorInvalidDeviceFunction);
  }
  if (blocks.x == 0 || blocks.y * blocks.z * threads.y * threads.z != 1 || threads.x == 0 || threads.x > 1024) {
    return failed(cudaErrorInvalidConfiguration);
  }
  if (shared > f->shared) {
    return failed(cudaErrorInvalidValue);
  }
  uint64_t before = f->kernel->instructions;
  Machine(*f->kernel, blocks.x, (int)threads.x, arguments, shared).run();
  instructions += f->kernel->instructions - before;
  return cudaSuccess;
}

// ---- The device ----

cudaError_t cudaGetDevice(int *ordinal) {
  *ordinal = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int ordinal) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = chip().multiprocessors; break;
    case cudaDevAttrComputeCapabilityMajor: *value = chip().major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = chip().minor; break;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: *value = chip().isFastInDouble() ? 2 : 64; break;
    case cudaDevAttrClockRate: *value = 0; break;
    default: return failed(cudaErrorInvalidValue);
  }
  return ordinal == 0 ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal) {
  memset(properties, 0, sizeof *properties);
  snprintf(properties->name, sizeof properties->name, "PTX as of compute capability %d.%d", chip().major, chip().minor);
  return ordinal == 0 ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *free = *total = (size_t)2 << 30;
  return cudaSuccess;
}

// ---- Memory ----

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  Lock lock(mutex);
  if (bytes > (size_t)4 << 30) {
    return failed(cudaErrorMemoryAllocation);
  }
  auto a = std::make_unique<Allocation>(bytes);
  *memory = a->bytes.data();
  state().allocations[a->at()] = std::move(a);
  return cudaSuccess;
}

cudaError_t cudaFree(void *memory) {
  Lock lock(mutex);
  state().last = nullptr;
  return memory == nullptr || state().allocations.erase((uintptr_t)memory) == 1 ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  *memory = malloc(bytes);
  return *memory != nullptr ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *memory) {
  free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  Lock lock(mutex);
  if ((kind == cudaMemcpyHostToDevice && !isWithin(to, bytes, true)) || (kind == cudaMemcpyDeviceToHost && !isWithin(from, bytes, false))) {
    return failed(cudaErrorInvalidValue);
  }
  memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(
    void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t error = toPitch < width || fromPitch < width ? failed(cudaErrorInvalidPitchValue) : cudaSuccess;
  for (size_t n = 0; n < height && error == cudaSuccess; n++) {
    error = cudaMemcpyAsync((char *)to + n * toPitch, (const char *)from + n * fromPitch, width, kind, stream);
  }
  return error;
}

// ---- Streams, events and errors ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = (cudaStream_t) new char;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete (char *)stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = (cudaEvent_t) new Event;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete (Event *)event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  Lock lock(mutex);
  ((Event *)event)->at = instructions;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = (float)(((Event *)to)->at - ((Event *)from)->at) * 1e-3f;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  cudaError_t error = lastError;
  lastError = cudaSuccess;
  return error;
}

const char *cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "an error"; }

} // extern "C"
