// Checks the emulated runtime: memory, order, deferral, faults, and many threads at once.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "../emulated/cuda_runtime_subset.h"
#include "../emulated/kullback_emulated.h"
#include "kullback_cuda.h"

namespace {

void expect(bool holds, const char *what, int line) {
  if (!holds) {
    printf("line %d: %s\n", line, what);
    exit(1);
  }
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)
#define RUN(call) expect((call) == 0, #call, __LINE__)

template <class T>
T *allocate(size_t count) {
  void *memory;
  RUN(cudaMalloc(&memory, count * sizeof(T)));
  return (T *)memory;
}

template <class T>
T *pin(size_t count) {
  void *memory;
  RUN(cudaHostAlloc(&memory, count * sizeof(T), 0));
  return (T *)memory;
}

cudaStream_t newStream() {
  cudaStream_t stream;
  RUN(cudaStreamCreateWithFlags(&stream, 1));
  return stream;
}

cudaEvent_t newEvent() {
  cudaEvent_t event;
  RUN(cudaEventCreateWithFlags(&event, 2));
  return event;
}

void checkThatTheHostFaults() {
  int *device = allocate<int>(1);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    fclose(stderr);
    *(volatile int *)device = 1;
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
  RUN(cudaFree(device));
}

void checkMemory() {
  int *a = allocate<int>(100);
  int *b = allocate<int>(100);
  EXPECT((size_t)a % 256 == 0 && (size_t)b % 256 == 0);
  EXPECT(kullback_emulated_live("allocations") == 2 && kullback_emulated_live("bytes") == 800);
  int host[100] = {};
  RUN(cudaMemcpyAsync(host, a, 400, cudaMemcpyDeviceToHost, nullptr));
  EXPECT(host[0] == -1 && host[99] == -1); // poisoned
  for (int n = 0; n < 100; n++) {
    host[n] = n;
  }
  RUN(cudaMemcpyAsync(a, host, 400, cudaMemcpyHostToDevice, nullptr));
  host[7] = 1000; // staged already
  RUN(cudaMemcpyAsync(b, a, 400, cudaMemcpyDeviceToDevice, nullptr));
  int square[100] = {};
  RUN(cudaMemcpy2DAsync(square, 20, b, 40, 12, 10, cudaMemcpyDeviceToHost, nullptr));
  EXPECT(square[2] == 2 && square[3] == 0 && square[5] == 10 && square[47] == 92);
  RUN(cudaMemcpyAsync(host, b, 400, cudaMemcpyDefault, nullptr));
  EXPECT(host[7] == 7);
  EXPECT(cudaMemcpyAsync(host, b, 400, cudaMemcpyHostToDevice, nullptr) == cudaErrorInvalidValue);
  EXPECT(cudaMemcpy2DAsync(square, 8, b, 40, 12, 10, cudaMemcpyDeviceToHost, nullptr) == cudaErrorInvalidPitchValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidPitchValue && cudaGetLastError() == cudaSuccess);
  EXPECT(cudaFree(a + 1) == cudaErrorInvalidValue);
  size_t available;
  size_t total;
  RUN(cudaMemGetInfo(&available, &total));
  EXPECT(total == 256 << 20 && available == total - 800);
  void *none;
  EXPECT(cudaMalloc(&none, total) == cudaErrorMemoryAllocation && none == nullptr);
  EXPECT(kullback_emulated_set("memory", 1 << 20) == -1);
  RUN(cudaFree(a));
  RUN(cudaFree(b));
  RUN(kullback_emulated_set("memory", 1 << 20));
  EXPECT(cudaMalloc(&none, 2 << 20) == cudaErrorMemoryAllocation);
  kullback_emulated_reset();

  a = allocate<int>(64);
  RUN(cudaMemcpyAsync(a, host, 260, cudaMemcpyHostToDevice, nullptr)); // one element too many
  EXPECT(cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress);
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress); // sticky
  EXPECT(cudaMalloc(&none, 4) == cudaErrorIllegalAddress);
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
  EXPECT(cudaFree(a) == cudaErrorIllegalAddress && kullback_emulated_live("allocations") == 0);
  kullback_emulated_reset();
  RUN(cudaDeviceSynchronize());
}

void checkOrder() {
  RUN(kullback_emulated_set("delay_us", 3000));
  cudaStream_t first = newStream();
  cudaStream_t second = newStream();
  cudaEvent_t event = newEvent();
  int *device = allocate<int>(1);
  int *from = pin<int>(1);
  int *to = pin<int>(1);
  int late = 0;
#ifdef __SANITIZE_THREAD__
  bool isRacing = false; // the sanitizer would see it
#else
  bool isRacing = true;
#endif
  for (int n = 0; n < 20; n++) {
    *from = 1;
    RUN(cudaMemcpyAsync(device, from, 4, cudaMemcpyHostToDevice, first));
    if (isRacing) {
      *from = 2; // too early
    }
    RUN(cudaEventRecord(event, first));
    RUN(cudaStreamWaitEvent(second, event, 0));
    RUN(cudaMemcpyAsync(to, device, 4, cudaMemcpyDeviceToHost, second));
    RUN(cudaStreamSynchronize(second));
    EXPECT(cudaEventQuery(event) == cudaSuccess && (*to == 1 || *to == 2));
    late += *to == 2;
  }
  EXPECT(isRacing == (late > 0));
  RUN(cudaMemcpyAsync(device, from, 4, cudaMemcpyHostToDevice, first));
  RUN(cudaEventRecord(event, first));
  RUN(cudaStreamDestroy(first)); // its work goes on
  RUN(cudaEventSynchronize(event));
  EXPECT(cudaStreamSynchronize(first) == cudaErrorInvalidResourceHandle);
  EXPECT(kullback_emulated_live("streams") == 1 && kullback_emulated_live("events") == 1);
  EXPECT(kullback_emulated_live("pinned") == 2);
  RUN(cudaStreamDestroy(second));
  RUN(cudaEventDestroy(event));
  RUN(cudaFreeHost(from));
  RUN(cudaFreeHost(to));
  RUN(cudaFree(device));
  for (const char *what : {"streams", "events", "pinned", "allocations", "bytes"}) {
    EXPECT(kullback_emulated_live(what) == 0);
  }
  kullback_emulated_reset();
}

struct Problem {
  static constexpr int N = 37, D = 11;
  kullback_cuda_batch batch{nullptr, N, D, KULLBACK_STD, 0};
  std::vector<float> mean, scale;
  std::vector<float> result = std::vector<float>(N * N);

  explicit Problem(int seed) {
    for (int k = 0; k < N * D; k++) {
      mean.push_back(std::sin(k * 0.7f + seed));
      scale.push_back(1 + 0.5f * std::cos(k * 0.3f + seed));
    }
  }

  // 0, or the first error.
  int solve(cudaStream_t stream, float *pinned) {
    batch.data = allocate<char>(kullback_cuda_batch_bytes(&batch));
    float *out = allocate<float>(N * N);
    char *scratch = allocate<char>(kullback_cuda_scratch_bytes(&batch, &batch, N, N));
    int status = upload(stream);
    if (status == 0) {
      status = kullback_cuda_pairwise(&batch, &batch, 0, N, 0, N, 1, out, N, 0, 0, scratch, stream);
    }
    if (status == 0) {
      status = kullback_cuda_download(pinned, N * 4, out, N * 4, N * 4, N, stream);
    }
    if (status == 0) {
      memcpy(result.data(), pinned, N * N * 4);
    }
    cudaFree(scratch);
    cudaFree(out);
    cudaFree(batch.data);
    return status;
  }

  int upload(cudaStream_t stream) {
    char *data = (char *)batch.data;
    int status = cudaMemcpyAsync(data, mean.data(), mean.size() * 4, cudaMemcpyHostToDevice, stream);
    if (status == 0) {
      status = cudaMemcpyAsync(
          data + kullback_cuda_scale_offset(&batch), scale.data(), scale.size() * 4, cudaMemcpyHostToDevice, stream);
    }
    return status != 0 ? status : kullback_cuda_prepare(&batch, stream);
  }
};

void checkFaults() {
  void *memory;
  kullback_emulated_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
  RUN(cudaMalloc(&memory, 8));
  EXPECT(cudaMalloc(&memory, 8) == cudaErrorMemoryAllocation);
  RUN(cudaMalloc(&memory, 8));
  EXPECT(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);

  Problem problem(1);
  cudaStream_t stream = newStream();
  float *pinned = pin<float>(Problem::N * Problem::N);
  kullback_emulated_fail("launch", 1, cudaErrorLaunchOutOfResources);
  EXPECT(problem.solve(stream, pinned) == cudaErrorLaunchOutOfResources);
  RUN(problem.solve(stream, pinned));
  kullback_emulated_fail("kernel", 3, cudaErrorLaunchFailure);
  EXPECT(problem.solve(stream, pinned) == cudaErrorLaunchFailure);
  EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  kullback_emulated_reset();

  // a download that fails leaves nothing under way, nor an event
  RUN(kullback_emulated_set("delay_us", 3000));
  stream = newStream();
  int *from = allocate<int>(100);
  int *to = pin<int>(100);
  for (const char *call : {"cudaEventCreateWithFlags", "cudaMemcpy2DAsync", "cudaEventRecord", "cudaEventSynchronize"}) {
    kullback_emulated_fail(call, 1, cudaErrorUnknown);
    EXPECT(kullback_cuda_download(to, 16, from, 40, 16, 10, stream) == cudaErrorUnknown);
    EXPECT(cudaGetLastError() == cudaSuccess);
    for (int n = 0; n < 100; n++) to[n] = 7; // an int that comes later would be −1, and is a race for the sanitizer
    RUN(cudaStreamSynchronize(stream));
    EXPECT(to[0] == 7 && to[36] == 7 && kullback_emulated_live("events") == 0);
  }
  RUN(kullback_cuda_download(to, 16, from, 40, 16, 10, stream));
  EXPECT(to[0] == -1 && to[39] == -1 && to[40] == 7 && kullback_emulated_live("events") == 0);
  kullback_emulated_reset();

  int count;
  RUN(kullback_emulated_set("devices", 0));
  EXPECT(cudaGetDeviceCount(&count) == cudaErrorNoDevice && count == 0);
  EXPECT(cudaMalloc(&memory, 8) == cudaErrorNoDevice);
  kullback_emulated_reset();
  RUN(kullback_emulated_set("driver", 0));
  EXPECT(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
  int version = -1;
  RUN(cudaDriverGetVersion(&version));
  EXPECT(version == 0);
  kullback_emulated_reset();
  RUN(kullback_emulated_set("abi", 99));
  EXPECT(kullback_cuda_abi_version() == 99);
  RUN(kullback_emulated_set("compute_major", 7));
  RUN(cudaDeviceGetAttribute(&version, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT(version == 7);
  char name[64];
  for (int rate : {2, 32}) { // an H100, and what has its compute capability without its rate
    kullback_emulated_reset();
    RUN(kullback_emulated_set("float_rate", rate));
    RUN(kullback_cuda_device_name(0, name, sizeof name));
    EXPECT((strstr(name, "products in double") != nullptr) == (rate == 2));
  }
  EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice);
  EXPECT(kullback_emulated_set("no such", 1) == -1 && kullback_emulated_live("no such") == -1);
  kullback_emulated_reset();

  // a batch whose memory is too small
  kullback_cuda_batch batch = problem.batch;
  batch.data = allocate<char>(kullback_cuda_batch_bytes(&batch) - 1);
  int status = kullback_cuda_prepare(&batch, nullptr); // may see the first kernel fail before it queues the second
  EXPECT(status == cudaSuccess || status == cudaErrorIllegalAddress);
  EXPECT(cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress);
  kullback_emulated_reset();
}

void checkThreads() {
  std::vector<std::vector<float>> expected;
  {
    cudaStream_t stream = newStream();
    float *pinned = pin<float>(Problem::N * Problem::N);
    for (int n = 0; n < 8; n++) {
      Problem problem(n);
      RUN(problem.solve(stream, pinned));
      EXPECT(problem.result[0] == 0 && problem.result[1] > 0);
      expected.push_back(problem.result);
    }
    RUN(cudaFreeHost(pinned));
    RUN(cudaStreamDestroy(stream));
  }
  RUN(kullback_emulated_set("delay_us", 50));
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; n++) {
    threads.emplace_back([&, n] {
      cudaStream_t stream = newStream();
      float *pinned = pin<float>(Problem::N * Problem::N);
      Problem problem(n);
      for (int round = 0; round < 10; round++) {
        RUN(problem.solve(stream, pinned));
        EXPECT(problem.result == expected[n]);
      }
      RUN(cudaFreeHost(pinned));
      RUN(cudaStreamDestroy(stream));
    });
  }
  for (auto &thread : threads) {
    thread.join();
  }
  EXPECT(kullback_emulated_live("allocations") == 0 && kullback_emulated_live("streams") == 0);
  kullback_emulated_reset();
}

} // namespace

int main() {
  checkThatTheHostFaults();
  checkMemory();
  checkOrder();
  checkFaults();
  checkThreads();
  printf("passed\n");
}
